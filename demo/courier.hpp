// The child process that carries orders from the shop to the destination, and that the demo kills:
// a relay, or the publisher of a dual write.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "support/child_process.hpp"

namespace outbox::demo {

/// Only the main thread may use it, except for publish().
class Courier {
 public:
  struct Plan {
    std::string name;                       ///< "relay", for messages.
    std::vector<std::string> command;       ///< The name of the program and its arguments.
    std::string program{"/proc/self/exe"};  ///< Its path; by default this program.
    std::filesystem::path log;
    bool takes_orders{false};  ///< Whether it reads from a socket, its stdin, until that is closed.
  };

  explicit Courier(Plan plan) : plan_(std::move(plan)) {}
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  ~Courier() { hang_up(); }

  void start();
  /// Throws if the process has ended by itself.
  void check();
  /// Sends SIGKILL; start() may follow.
  void kill();
  /// Asks the process to stop, and waits.
  void finish(std::chrono::milliseconds limit);

  /// Hands over an order, on any thread. Returns false if the process is not running.
  bool publish(const std::string& order);

 private:
  void hang_up();

  const Plan plan_;
  std::optional<test::ChildProcess> child_;
  Mutex mutex_;
  int socket_ OUTBOX_GUARDED_BY(mutex_){-1};
};

/// The URL with an absolute path.
[[nodiscard]] std::string absolute_url(const std::string& store_url);
/// The content of the relay's configuration file.
[[nodiscard]] std::string relay_configuration(const std::string& store_url,
                                              const std::string& schema,
                                              const SubscriptionSpec& spec);

}  // namespace outbox::demo
