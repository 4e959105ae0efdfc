// The child process that carries orders from the shop to the destination, and that the demo kills: a relay, or the publisher of
// a dual write.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "testkit/child_process.hpp"

namespace outbox::demo {

/// The main thread only, publish() excepted.
class Courier {
 public:
  struct Plan {
    std::string name;                       ///< "relay", for messages.
    std::vector<std::string> command;       ///< The name of the program, then its arguments.
    std::string program{"/proc/self/exe"};  ///< Its path; this program by default.
    std::filesystem::path log;
    bool takes_orders{false};  ///< From a socket, its stdin; it ends when that is closed.
  };

  explicit Courier(Plan plan) : plan_(std::move(plan)) {}
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  ~Courier() { hang_up(); }

  void start();
  /// Throws if it has ended by itself.
  void check();
  /// SIGKILL; start() may follow.
  void kill();
  /// Asks it to stop, and waits.
  void finish(std::chrono::milliseconds limit);

  /// Any thread. Hands over an order. False: it is not running.
  bool publish(const std::string& order);

 private:
  void hang_up();

  const Plan plan_;
  std::optional<testkit::ChildProcess> child_;
  Mutex mutex_;
  int socket_ OUTBOX_GUARDED_BY(mutex_){-1};
};

/// With a path that is not relative.
[[nodiscard]] std::string absolute_url(const std::string& store_url);
/// The content of the relay's configuration file.
[[nodiscard]] std::string relay_configuration(const std::string& store_url,
                                              const std::string& schema,
                                              const SubscriptionSpec& spec);

}  // namespace outbox::demo
