// An order, its event, and what the judge compares. Pure.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

#include "testkit/judge.hpp"

namespace outbox::demo {

/// An order of a customer. `version` counts the orders of the customer. It is incremented in the transaction of the order, so it
/// gives the order of the commits independently of the outbox.
struct Order {
  /// Unique per attempt, so that a rolled back order never equals a committed one.
  std::string reference;
  int customer{0};
  std::int64_t version{0};
  std::int64_t cents{0};
};

/// The customer is the ordering key.
[[nodiscard]] Event to_event(const Order& order);

/// A message of the destination: the payload of such an event, or the JSON line that the file sink makes of it. Without an id if
/// it is neither.
[[nodiscard]] testkit::Delivery delivered(std::string_view message);
/// An order in the shop's tables.
[[nodiscard]] testkit::Attempt committed(const Order& order);

}  // namespace outbox::demo
