// An order, its event, and what the judge compares. Pure.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
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

/// The queue of the shop, and what is done there. Tasks of a customer are done in order.
inline constexpr const char* kQueue = "shop";
inline constexpr const char* kPack = "order.pack";
inline constexpr const char* kWrap = "order.wrap";  ///< Packing that takes longer than a second.
inline constexpr const char* kStatement = "customer.statement";

/// To pack it, or to wrap it: one in 400.
[[nodiscard]] Task packing_of(const Order& order);
/// Once for all orders of the customer until it is done; a later order takes its place.
[[nodiscard]] Task statement_of(const Order& order);
/// One in 20: packing it fails at first.
[[nodiscard]] inline bool is_fragile(const Order& order) { return order.cents % 20 == 1; }
/// Of the payload of its event, or its tasks.
[[nodiscard]] Order order_of(std::string_view payload);

/// A message of the destination: the payload of such an event, or the JSON line that the file sink makes of it. Without an id if
/// it is neither.
[[nodiscard]] testkit::Delivery delivered(std::string_view message);
/// An order in the shop's tables.
[[nodiscard]] testkit::Attempt committed(const Order& order);

}  // namespace outbox::demo
