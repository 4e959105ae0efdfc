// An order, its event, and what the judge compares. The functions are pure.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <string>
#include <string_view>

#include "support/judge.hpp"

namespace outbox::demo {

/// An order of a customer. `version` counts the customer's orders. The order's transaction
/// increments it, so it gives the order of the commits independently of the outbox.
struct Order {
  /// Unique per attempt, so that a rolled back order never equals a committed one.
  std::string reference;
  int customer{0};
  std::int64_t version{0};
  std::int64_t cents{0};
};

/// The order's event, with the customer as the ordering key.
[[nodiscard]] Event to_event(const Order& order);

/// The queue of the shop, and the types of its tasks. A customer's tasks are done in order.
inline constexpr const char* kQueue = "shop";
inline constexpr const char* kPack = "order.pack";
inline constexpr const char* kWrap = "order.wrap";  ///< Packing that takes longer than a second.
inline constexpr const char* kStatement = "customer.statement";

/// The task to pack an order or, for one order in 400, to wrap it.
[[nodiscard]] Task make_packing(const Order& order);
/// The task of a customer's statement, unique until it is done; a later order takes its place.
[[nodiscard]] Task make_statement(const Order& order);
/// Whether packing the order fails at first, as it does for one order in 20.
[[nodiscard]] inline bool is_fragile(const Order& order) { return order.cents % 20 == 1; }
/// The order in the payload of its event or its tasks.
[[nodiscard]] Order parse_order(std::string_view payload);

/// A message of the destination: the payload of such an event, or the JSON line that the file sink
/// makes of it. Other messages have no id.
[[nodiscard]] test::Delivery delivered(std::string_view message);
/// An order in the shop's tables.
[[nodiscard]] test::Attempt committed(const Order& order);

}  // namespace outbox::demo
