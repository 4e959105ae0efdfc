// An `outbox relay` process with the sink stdout into a file, which can be frozen and killed.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/child_process.hpp"

namespace outbox::bench {

inline constexpr std::chrono::seconds kLeaseUnderTest{2};

class RelayUnderTest {
 public:
  /// `settings` are lines for the subscription, `environment` has variables in addition to ours.
  RelayUnderTest(const BenchOptions& options, const std::string& name, const std::string& folder,
                 const std::string& settings = {},
                 std::map<std::string, std::string> environment = {})
      : output_(folder + "/" + name),
        process_(started(options, name, output_, settings, std::move(environment))) {}

  void kill() { process_.kill(); }
  void freeze() { process_.signal(SIGSTOP); }
  void thaw() { process_.signal(SIGCONT); }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  /// The bytes delivered so far, which grow with each event.
  [[nodiscard]] std::uintmax_t bytes() const {
    std::error_code none;
    const auto size = std::filesystem::file_size(output_, none);
    return none ? 0 : size;
  }
  /// Whether it has delivered an event since the last call.
  [[nodiscard]] bool has_news() {
    const auto size = bytes();
    return std::exchange(seen_, size) != size;
  }

 private:
  static test::ChildProcess::Options started(const BenchOptions& options, const std::string& name,
                                             const std::string& output, const std::string& settings,
                                             std::map<std::string, std::string> environment) {
    const std::string config = output + ".toml";
    std::ofstream(config) << "[store]\nurl = \"" << options.store_url << "\"\nschema = \""
                          << kSchema << "\"\n[relay]\nname = \"" << name << "\"\nlease = \""
                          << kLeaseUnderTest.count()
                          << "s\"\n[subscription.under-test]\nsink = \"stdout\"\n"
                          << settings;
    return {.command = {"outbox", "relay", "-c", config, "--log-level", "off"},
            .program = test::program_beside_us("outbox"),
            .environment = std::move(environment),
            .output = output};
  }

  std::string output_;
  test::ChildProcess process_;
  std::uintmax_t seen_{0};
};

}  // namespace outbox::bench
