#include "support/shop_options.hpp"

#include <string_view>

namespace outbox::test {

Attempt new_attempt(const std::string& key, std::int64_t version, const std::string& type,
                    std::size_t padding) {
  Attempt attempt;
  attempt.id = EventId::generate().str();
  attempt.key = key;
  attempt.version = version;
  attempt.type = type;
  attempt.body = make_body(attempt.id, key, version, padding);
  return attempt;
}

Event to_event(const Attempt& attempt) {
  Event event;
  event.aggregate_type = "Order";
  event.aggregate_id = attempt.key;
  event.event_type = attempt.type;
  event.payload = attempt.body;
  event.id = EventId::parse(attempt.id).value();
  return event;
}

std::string make_body(const std::string& id, const std::string& key, std::int64_t version,
                      std::size_t padding) {
  return R"({"id": ")" + id + R"(", "key": ")" + key + R"(", "pad": ")" +
         std::string(padding, 'x') + R"(", "version": )" + std::to_string(version) + "}";
}

std::string id_in(const std::string& body) {
  constexpr std::string_view start = R"({"id": ")";
  return body.rfind(start, 0) == 0 ? body.substr(start.size(), 36) : std::string();
}

}  // namespace outbox::test
