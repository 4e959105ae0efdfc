// The child process that carries orders from the shop to the destination, and that the demo kills.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>

#include "demo/order.hpp"
#include "testkit/child_process.hpp"

namespace outbox::demo {

/// The main thread only, publish() excepted.
class Courier {
 public:
  /// `name`: "relay", for messages and the name of its log.
  Courier(std::string name, std::string program, const std::filesystem::path& folder);
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  virtual ~Courier() = default;

  virtual void start() = 0;
  /// Throws if it has ended by itself.
  void check();
  /// SIGKILL; start() may follow.
  virtual void kill();
  /// Asks it to stop, and waits.
  void finish(std::chrono::milliseconds limit);

  /// Any thread. Of a dual write: hands over an order. False: the publisher is not running.
  virtual bool publish(const Order& /*order*/) { return false; }

 protected:
  /// Runs `outbox ARGUMENTS`.
  void run(std::vector<std::string> arguments, int input = -1);
  virtual void ask_to_stop() { child_->signal(SIGTERM); }

 private:
  const std::string name_;
  const std::string program_;
  const std::filesystem::path log_;
  std::optional<testkit::ChildProcess> child_;
};

struct RelayPlan {
  std::string program;
  std::filesystem::path folder;  ///< For its configuration and its log.
  std::string store_url;
  std::string schema;
  SubscriptionSpec subscription;
};
/// `PROGRAM relay -c FOLDER/relay.toml`.
[[nodiscard]] std::unique_ptr<Courier> make_relay(const RelayPlan& plan);
/// The content of that file.
[[nodiscard]] std::string relay_configuration(const RelayPlan& plan);

struct PublisherPlan {
  std::string program;
  std::filesystem::path folder;  ///< For its log.
  std::string destination;       ///< As run_publisher() takes it.
};
/// `PROGRAM demo --publisher DESTINATION`, at the other end of a socket.
[[nodiscard]] std::unique_ptr<Courier> make_publisher(const PublisherPlan& plan);

/// The publisher itself: takes orders from stdin, a socket, and sends them in batches, as the client of a broker does.
/// `destination`: file:PATH or kafka:TOPIC@BROKERS. Returns when the socket is closed.
[[nodiscard]] Status run_publisher(const std::string& destination);

}  // namespace outbox::demo
