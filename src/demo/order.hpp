// An order, and its event. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

#include "testkit/judge.hpp"

namespace outbox::demo {

/// An order of a customer. `version` counts the orders of the customer. It is incremented in the transaction of the order, so it
/// gives the order of the commits independently of the outbox.
struct Order {
  std::string
      reference;  ///< Unique per attempt, so that a rolled back order never equals a committed one.
  int customer{0};
  std::int64_t version{0};
  std::int64_t cents{0};

  bool operator==(const Order&) const = default;
};

inline constexpr std::string_view kAggregateType = "customer";
inline constexpr std::string_view kEventType = "OrderPlaced";

/// The customer is the ordering key.
[[nodiscard]] Event to_event(const Order& order);

/// From the payload of such an event, or from the JSON line that the file sink makes of it; none if it is neither.
[[nodiscard]] std::optional<Order> parse_order(std::string_view message);

/// For the judge: an order in the shop's tables, and a message of the destination.
[[nodiscard]] testkit::Attempt committed(const Order& order);
[[nodiscard]] testkit::Delivery delivered(const std::optional<Order>& message);

}  // namespace outbox::demo
