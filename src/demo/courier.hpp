// What stands between the shop and the destination, in a process of its own: it is what gets killed.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>

#include "demo/order.hpp"

namespace outbox::demo {

class Courier {
 public:
  Courier() = default;
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  Courier(Courier&&) = delete;
  Courier& operator=(Courier&&) = delete;
  virtual ~Courier() = default;

  // The main thread only.
  [[nodiscard]] virtual Status start() = 0;
  /// An error when it has ended by itself.
  [[nodiscard]] virtual Status check() = 0;
  /// SIGKILL. start() may follow.
  virtual void kill() = 0;
  /// Lets it finish what it has, and end in order.
  [[nodiscard]] virtual Status finish(std::chrono::milliseconds limit) = 0;

  /// Any thread. Of a dual write: hands it an order. False: nobody was there to take it.
  virtual bool publish(const Order& order) = 0;
};

struct RelayPlan {
  std::string program;
  std::filesystem::path folder;  ///< For its configuration and its log.
  std::string store_url;
  std::string schema;
  SubscriptionSpec subscription;
};
/// `PROGRAM relay -c FOLDER/relay.toml`.
[[nodiscard]] std::unique_ptr<Courier> make_relay(RelayPlan plan);
/// What the relay gets to read.
[[nodiscard]] std::string relay_configuration(const RelayPlan& plan);

struct PublisherPlan {
  std::string program;
  std::filesystem::path folder;  ///< For its log.
  std::string destination;       ///< As run_publisher() takes it.
};
/// `PROGRAM demo --publisher DESTINATION`, at the other end of a socket.
[[nodiscard]] std::unique_ptr<Courier> make_publisher(PublisherPlan plan);

/// The publisher itself: takes orders from stdin, a socket, and sends them, some at a time, as the client of a broker does.
/// `destination`: file:PATH or kafka:TOPIC@BROKERS. Returns when the socket is closed.
[[nodiscard]] Status run_publisher(const std::string& destination);

}  // namespace outbox::demo
