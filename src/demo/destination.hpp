// The destination of the events. The demo reads it back itself, from the first message on.
#pragma once

#include <functional>
#include <memory>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "testkit/judge.hpp"

namespace outbox::demo {

class Destination {
 public:
  using Each = std::function<void(const testkit::Delivery&)>;

  virtual ~Destination() = default;

  /// Makes what sending requires. It is removed at the end unless it is kept.
  virtual void open() {}
  virtual void keep() {}
  /// A subscription that delivers here.
  [[nodiscard]] virtual SubscriptionSpec subscription() const = 0;
  /// Calls `each` for every message that has arrived since the last call, the first one from the beginning, in order.
  virtual void read(const Each& each) = 0;
  /// How a dual write sends: without an outbox, and without a second attempt. Returns at once.
  virtual void send(const std::vector<testkit::Delivery>& messages) = 0;
  /// Waits until everything is delivered.
  virtual void flush() {}
  /// For the screen.
  [[nodiscard]] virtual std::string place() const = 0;
};

/// `where`: file:PATH for JSON lines, or kafka:TOPIC@BROKERS.
[[nodiscard]] std::unique_ptr<Destination> make_destination(const std::string& where);

}  // namespace outbox::demo
