#include "demo/order.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace outbox::demo {

Event to_event(const Order& order) {
  return Event{
      .aggregate_type = "customer",
      .aggregate_id = std::to_string(order.customer),
      .event_type = "OrderPlaced",
      .payload = fmt::format(R"({{"order": "{}", "customer": {}, "version": {}, "cents": {}}})",
                             order.reference, order.customer, order.version, order.cents)};
}

namespace {

Task make_task(const Order& order, const char* type) {
  Task task;
  task.queue = kQueue;
  task.type = type;
  task.key = std::to_string(order.customer);
  task.payload = to_event(order).payload;
  return task;
}

}  // namespace

Task make_packing(const Order& order) {
  return make_task(order, order.cents % 400 == 0 ? kWrap : kPack);
}

Task make_statement(const Order& order) {
  Task task = make_task(order, kStatement);
  task.unique_key = task.key;
  task.on_conflict = OnConflict::replace;
  return task;
}

Order parse_order(std::string_view payload) {
  const auto json = parse_json<nlohmann::json>(payload);
  return {.reference = json.at("order").get<std::string>(),
          .customer = json.at("customer").get<int>(),
          .version = json.at("version").get<std::int64_t>(),
          .cents = json.at("cents").get<std::int64_t>()};
}

test::Delivery delivered(std::string_view message) {
  using Json = nlohmann::ordered_json;
  try {
    const Json json = parse_json<Json>(message);
    const Json& payload = json.contains("body") ? json["body"] : json;
    return {.id = payload.at("order").get<std::string>(),
            .key = write_json(payload.at("customer")),
            .body = write_json(payload)};
  } catch (const Json::exception&) {
    return {};
  }
}

test::Attempt committed(const Order& order) {
  const test::Delivery expected = delivered(to_event(order).payload);
  test::Attempt attempt;
  attempt.id = expected.id;
  attempt.key = expected.key;
  attempt.version = order.version;
  attempt.body = expected.body;
  attempt.end = test::Attempt::End::committed;
  return attempt;
}

}  // namespace outbox::demo
