#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <outbox/sink_conformance.hpp>
#include <set>
#include <unordered_map>

#include "mini_relay.hpp"

namespace outbox::conformance {
namespace {

EventId make_id(std::size_t place) {
  EventId id;
  for (std::size_t i = 0; i < 8; ++i)
    id.bytes[15 - i] = static_cast<std::uint8_t>(place >> (8 * i));
  id.bytes[6] = 0x70;
  return id;
}

}  // namespace

Harness::~Harness() = default;

void Load::add_many(std::size_t count, std::size_t keys) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = items_.size();
    add("k" + std::to_string(place % keys), "{\"place\":" + std::to_string(place) + "}");
  }
}

Load::Item& Load::add(std::optional<std::string> key, std::string body, std::string content_type) {
  const std::size_t place = items_.size();
  const EventId id = make_id(place);
  Item& item = items_.emplace_back();
  item.topic = topic_;
  item.key = std::move(key);
  item.body = std::move(body);
  item.content_type = std::move(content_type);
  item.id_text = id.str();
  item.seq_text = std::to_string(place + 1);
  item.event.seq = static_cast<std::int64_t>(place) + 1;
  item.event.id = id;
  item.event.aggregate_type = "order";
  item.event.event_type = "OrderPlaced";
  item.headers = {{.name = "outbox-id", .value = item.id_text},
                  {.name = "outbox-seq", .value = item.seq_text}};
  if (!item.content_type.empty())
    item.headers.push_back({.name = "content-type", .value = item.content_type});
  return item;
}

Message Load::message(std::size_t place, Token token) const {
  const Item& item = items_[place];
  Message message;
  message.token = token;
  message.event = &item.event;
  message.topic = item.topic;
  if (item.key) message.key = *item.key;
  message.body = item.body;
  message.content_type = item.content_type;
  message.headers = item.headers;
  return message;
}

std::vector<std::size_t> places(const std::vector<Arrived>& arrived, const Load& load) {
  std::unordered_map<std::string, std::size_t> place_of;
  for (std::size_t place = 0; place < load.size(); ++place)
    place_of.emplace(load.item(place).id_text, place);
  std::vector<std::size_t> found;
  for (const Arrived& message : arrived) {
    const auto place = place_of.find(message.id);
    if (place == place_of.end()) {
      ADD_FAILURE() << "arrived but was never sent: " << message.id;
    } else {
      found.push_back(place->second);
    }
  }
  return found;
}

void expect_complete_and_ordered(const std::vector<std::size_t>& arrived, const Load& load,
                                 const std::vector<std::size_t>& except) {
  const std::set<std::size_t> never(except.begin(), except.end());
  std::set<std::size_t> seen;
  std::map<std::optional<std::string>, std::size_t> last_of_key;
  std::size_t out_of_order = 0;
  for (const std::size_t place : arrived) {
    EXPECT_FALSE(never.contains(place)) << "must not arrive: " << place;
    if (!seen.insert(place).second || !load.item(place).key) continue;
    const auto [last, first_of_key] = last_of_key.emplace(load.item(place).key, place);
    if (!first_of_key && last->second > place) ++out_of_order;
    last->second = std::max(last->second, place);
  }
  EXPECT_EQ(out_of_order, 0U);
  EXPECT_EQ(seen.size(), load.size() - never.size()) << "messages are missing";
}

}  // namespace outbox::conformance
