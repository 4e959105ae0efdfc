// The destination of the events. The demo reads it back itself, from the first message on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

/// Reads a destination from its beginning, continuing with each call.
class Reading {
 public:
  using Each = std::function<void(const std::optional<Order>&)>;

  virtual ~Reading() = default;
  /// Calls `each` for every message that has arrived since the last call, in order; without an order if it is unreadable.
  virtual void next(const Each& each) = 0;
};

/// How a dual write sends: without an outbox, and without a second attempt.
class Sender {
 public:
  virtual ~Sender() = default;
  /// These orders, in this order; returns at once.
  virtual void send(const std::vector<Order>& orders) = 0;
  /// Waits until everything is delivered.
  virtual void finish() {}
};

class Destination {
 public:
  virtual ~Destination() = default;

  /// Makes what sending requires. It is removed at the end unless it is kept.
  virtual void open() {}
  virtual void keep() {}
  /// A subscription that delivers here.
  [[nodiscard]] virtual SubscriptionSpec subscription() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Reading> read() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Sender> sender() const = 0;
  /// For the screen.
  [[nodiscard]] virtual std::string place() const = 0;
};

/// A file of JSON lines. It is removed with its folder.
[[nodiscard]] std::unique_ptr<Destination> make_file_destination(std::string path);
#ifdef OUTBOX_WITH_KAFKA
/// A topic of its own, with several partitions.
[[nodiscard]] std::unique_ptr<Destination> make_kafka_destination(const std::string& brokers,
                                                                  const std::string& topic);
#endif

}  // namespace outbox::demo
