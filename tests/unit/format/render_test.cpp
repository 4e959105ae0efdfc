#include "format/render.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outbox::format {
namespace {

Renderer renderer(const SubscriptionSpec& spec) { return Renderer::create(spec).value(); }

EventView placed_by(std::string_view aggregate_id = "42") {
  EventView event;
  event.seq = 5;
  event.aggregate_type = "Order";
  event.aggregate_id = aggregate_id;
  event.event_type = "OrderPlaced";
  event.payload = "{}";
  event.content_type = "application/json";
  event.headers = R"({"tenant": "acme", "x-kind": "own"})";
  return event;
}

std::string header(const Message& message, std::string_view name) {
  std::string found = "(none)";
  for (const auto& one : message.headers) {
    if (one.name == name) found = found == "(none)" ? std::string(one.value) : "(twice)";
  }
  return found;
}

TEST(Render, route_key_token_and_event) {
  const EventView event = placed_by();
  RenderBuffer buffer;
  renderer({}).render(77, event, buffer);
  ASSERT_EQ(buffer.messages().size(), 1U);
  const Message& message = buffer.messages()[0];
  EXPECT_EQ(message.token, 77U);
  EXPECT_EQ(message.event, &event);
  EXPECT_EQ(message.topic, "order.events");
  EXPECT_EQ(message.key, "42");
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.body.data(), event.payload.data()) << "the body of raw is not copied";
}

TEST(Render, an_event_without_a_key_has_no_message_key) {
  const EventView event = placed_by("");
  SubscriptionSpec spec;
  spec.key = "constant";
  RenderBuffer buffer;
  const auto made = renderer(spec);
  made.render(1, event, buffer);
  EXPECT_EQ(buffer.messages()[0].key, std::nullopt);
}

TEST(Render, headers_of_the_subscription_come_last_and_hold_against_the_events_own) {
  SubscriptionSpec spec;
  spec.headers = {{"X-Kind", "{event_type|kebab}"}, {"x-tenant", "{header:tenant|upper}"}};
  const EventView event = placed_by();
  RenderBuffer buffer;
  const auto made = renderer(spec);
  made.render(1, event, buffer);
  const Message& message = buffer.messages()[0];
  EXPECT_EQ(header(message, "X-Kind"), "order-placed");
  EXPECT_EQ(header(message, "x-kind"), "(none)") << "as the subscription spells it";
  EXPECT_EQ(message.headers.back().name, "x-tenant");
  EXPECT_EQ(message.headers.back().value, "ACME");
}

TEST(Render, a_header_of_the_subscription_replaces_every_spelling_of_it) {
  SubscriptionSpec spec;
  spec.headers = {{"x-kind", "{event_type|kebab}"}};
  EventView event = placed_by();
  event.headers = R"({"X_Kind": "own", "x-other": "1", "X-KIND": "own"})";
  RenderBuffer buffer;
  const auto made = renderer(spec);
  made.render(1, event, buffer);
  std::string own;
  for (const auto& one : buffer.messages()[0].headers) {
    if (!one.name.starts_with("outbox-") && one.name != "content-type")
      own.append(one.name).append("=").append(one.value).append(" ");
  }
  EXPECT_EQ(own, "x-kind=order-placed x-other=1 ");
}

TEST(Render, later_messages_leave_earlier_ones_as_they_were) {
  SubscriptionSpec spec;
  spec.format = "json";
  const auto made = renderer(spec);
  std::vector<EventView> events;
  std::vector<std::string> payloads;
  for (std::size_t i = 0; i < 2000; ++i) {
    std::string payload(i % 1500 + 2, 'x');
    payload.front() = payload.back() = '"';
    payloads.push_back(std::move(payload));
  }
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    events.push_back(placed_by());
    events.back().payload = payloads[i];
    events.back().seq = static_cast<std::int64_t>(i);
  }
  RenderBuffer buffer;
  for (int round = 0; round < 3; ++round) {
    buffer.clear();
    for (std::size_t i = 0; i < events.size(); ++i) made.render(i, events[i], buffer);
    ASSERT_EQ(buffer.messages().size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Message& message = buffer.messages()[i];
      ASSERT_EQ(message.token, i);
      ASSERT_EQ(header(message, "outbox-seq"), std::to_string(i));
      ASSERT_NE(message.body.find("\"payload\":" + payloads[i] + ","), std::string_view::npos);
    }
  }
}

TEST(Render, a_cleared_buffer_is_empty) {
  const EventView event = placed_by();
  RenderBuffer buffer;
  renderer({}).render(1, event, buffer);
  buffer.clear();
  EXPECT_TRUE(buffer.messages().empty());
}

TEST(Render, an_empty_key_is_not_null) {
  EventView event = placed_by();
  SubscriptionSpec spec;
  spec.key = "{header:missing}";
  const auto made = renderer(spec);
  RenderBuffer buffer;
  made.render(1, event, buffer);
  ASSERT_TRUE(buffer.messages()[0].key.has_value());
  EXPECT_TRUE(buffer.messages()[0].key->empty());
  EXPECT_NE(buffer.messages()[0].key->data(), nullptr);
}

TEST(Render, broken_settings_are_refused_with_their_name) {
  const auto error = [](const SubscriptionSpec& spec) {
    return Renderer::create(spec).error().message;
  };
  SubscriptionSpec format;
  format.format = "rwa";
  EXPECT_EQ(error(format), "format: unknown format 'rwa'");
  SubscriptionSpec topic;
  topic.topic = "{x";
  EXPECT_EQ(error(topic), "topic: '{' without '}' at position 1");
  SubscriptionSpec content_type;
  content_type.headers = {{"Content-Type", "x"}};
  EXPECT_EQ(error(content_type), "headers: content-type is set by the format");
  SubscriptionSpec header;
  header.headers = {{"a", "{nope}"}};
  EXPECT_EQ(error(header), "headers.a: unknown field 'nope' at position 2");
}

}  // namespace
}  // namespace outbox::format
