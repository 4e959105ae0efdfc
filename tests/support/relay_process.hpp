// Relays as child processes, and the files that they write.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/ledger.hpp"

namespace outbox::test {

struct RelayProcessOptions {
  std::string store_url;
  std::string file;
  std::chrono::milliseconds lease{15000};
  int page_rows{100};
  std::string log{"/dev/null"};
  std::map<std::string, std::string> environment{};
};

[[nodiscard]] std::unique_ptr<ChildProcess> start_relay(const RelayProcessOptions& options);

/// Starts `outbox relay -c CONFIG` with more arguments.
[[nodiscard]] std::unique_ptr<ChildProcess> start_outbox_relay(
    const std::string& config, const std::string& log,
    const std::vector<std::string>& arguments = {});
/// The path of the program `outbox`.
[[nodiscard]] std::string outbox_program();

/// The bodies of writers in the lines of a file. Incomplete lines are left out.
[[nodiscard]] std::vector<Delivery> deliveries_in(const std::string& file);
/// The ids of the events in the lines of a file, each once.
[[nodiscard]] std::set<std::string> event_ids_in(const std::string& file);
/// The number of lines. It is cheap enough to poll.
[[nodiscard]] std::size_t lines_in(const std::string& file);

}  // namespace outbox::test
