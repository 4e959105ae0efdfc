#include "demo/order.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace outbox::demo {

Event to_event(const Order& order) {
  return Event{
      .aggregate_type = "customer",
      .aggregate_id = std::to_string(order.customer),
      .event_type = "OrderPlaced",
      .payload = fmt::format(R"({{"order": "{}", "customer": {}, "version": {}, "cents": {}}})",
                             order.reference, order.customer, order.version, order.cents)};
}

testkit::Delivery delivered(std::string_view message) {
  using Json = nlohmann::ordered_json;
  try {
    const Json json = Json::parse(message);
    const Json& payload = json.contains("body") ? json["body"] : json;
    return {.id = payload.at("order").get<std::string>(),
            .key = payload.at("customer").dump(),
            .body = payload.dump()};
  } catch (const Json::exception&) {
    return {};
  }
}

testkit::Attempt committed(const Order& order) {
  const testkit::Delivery expected = delivered(to_event(order).payload);
  testkit::Attempt attempt;
  attempt.id = expected.id;
  attempt.key = expected.key;
  attempt.version = order.version;
  attempt.body = expected.body;
  attempt.end = testkit::Attempt::End::committed;
  return attempt;
}

}  // namespace outbox::demo
