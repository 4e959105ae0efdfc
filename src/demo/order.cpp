#include "demo/order.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace outbox::demo {

Event to_event(const Order& order) {
  return Event{
      .aggregate_type = std::string(kAggregateType),
      .aggregate_id = std::to_string(order.customer),
      .event_type = std::string(kEventType),
      .payload = fmt::format(R"({{"order": "{}", "customer": {}, "version": {}, "cents": {}}})",
                             order.reference, order.customer, order.version, order.cents)};
}

std::optional<Order> parse_order(std::string_view message) {
  const auto json = nlohmann::json::parse(message, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto body = json.find("body");
  const auto& payload = body == json.end() ? json : *body;
  const auto reference = payload.find("order");
  if (reference == payload.end() || !reference->is_string()) return std::nullopt;
  for (const char* const name : {"customer", "version", "cents"}) {
    const auto number = payload.find(name);
    if (number == payload.end() || !number->is_number_integer()) return std::nullopt;
  }
  return Order{.reference = reference->get<std::string>(),
               .customer = payload["customer"].get<int>(),
               .version = payload["version"].get<std::int64_t>(),
               .cents = payload["cents"].get<std::int64_t>()};
}

testkit::Attempt committed(const Order& order) {
  testkit::Attempt attempt;
  attempt.id = order.reference;
  attempt.key = std::to_string(order.customer);
  attempt.version = order.version;
  attempt.body = to_event(order).payload;
  attempt.end = testkit::Attempt::End::committed;
  return attempt;
}

testkit::Delivery delivered(const std::optional<Order>& message) {
  if (!message) return {};
  return {.id = message->reference,
          .key = std::to_string(message->customer),
          .body = to_event(*message).payload};
}

}  // namespace outbox::demo
