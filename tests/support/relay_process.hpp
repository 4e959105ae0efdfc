// The test's relay program as a child process, and the file that it fills.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/ledger.hpp"
#include "support/testkit.hpp"

namespace outbox::test {

struct RelayProcessOptions {
  std::string store_url;
  std::string file;
  std::chrono::milliseconds lease{15000};
  int page_rows{100};
  std::string log{"/dev/null"};
};

[[nodiscard]] std::unique_ptr<ChildProcess> start_relay(const RelayProcessOptions& options);

/// The program itself: outbox relay -c CONFIG.
[[nodiscard]] std::unique_ptr<ChildProcess> start_outbox_relay(const std::string& config,
                                                               const std::string& log);

/// The lines of a file, as deliveries of writers' bodies. Half lines are left out.
[[nodiscard]] std::vector<Delivery> deliveries_in(const std::string& file);
/// How many whole lines there are; cheap enough to poll.
[[nodiscard]] std::size_t lines_in(const std::string& file);

}  // namespace outbox::test
