// The golden outputs of the formats: consumers depend on them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "event/time_text.hpp"
#include "format/render.hpp"

namespace outbox::format {
namespace {

constexpr std::string_view kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

EventView placed_order() {
  EventView event;
  event.seq = 1234567890123;
  event.id = EventId::parse("018f3b1c-7a2e-7c3d-8e4f-0123456789ab").value();
  event.aggregate_type = "order";
  event.aggregate_id = "42";
  event.event_type = "OrderPlaced";
  event.payload = "{ \"total\":12.50 }";
  event.content_type = "application/json";
  event.headers =
      R"({"tenant": "acme", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})";
  event.created_at = event::timestamp(1'714'566'896'123'456);
  return event;
}

/// A message as one readable text.
std::string shown(const EventView& event, const std::string& format) {
  SubscriptionSpec spec;
  spec.format = format;
  RenderBuffer buffer;
  Renderer::create(spec).value().render(7, event, buffer);
  const Message& message = buffer.messages().front();
  std::string text = "topic " + std::string(message.topic) + "\nkey " +
                     std::string(message.key.value_or("(none)")) + "\n";
  for (const auto& header : message.headers)
    text.append(header.name).append(": ").append(header.value).append("\n");
  return text.append("\n").append(message.body);
}

std::string envelope(const EventView& event) {
  const std::string text = shown(event, "json");
  return text.substr(text.find("\n\n") + 2);
}

TEST(FormatRaw, golden) {
  EXPECT_EQ(shown(placed_order(), "raw"),
            "topic order.events\n"
            "key 42\n"
            "outbox-id: 018f3b1c-7a2e-7c3d-8e4f-0123456789ab\n"
            "outbox-seq: 1234567890123\n"
            "outbox-time: 2024-05-01T12:34:56.123456Z\n"
            "outbox-type: OrderPlaced\n"
            "outbox-aggregate-type: order\n"
            "content-type: application/json\n"
            "tenant: acme\n"
            "traceparent: " +
                std::string(kTrace) +
                "\n"
                "\n"
                "{ \"total\":12.50 }");
}

TEST(FormatRaw, a_content_type_that_nobody_said_is_not_sent) {
  EventView event = placed_order();
  event.content_type = "";
  event.headers = "{}";
  EXPECT_EQ(shown(event, "raw").find("content-type"), std::string::npos);
  event.headers = R"({"Content-Type": "text/csv"})";
  EXPECT_NE(shown(event, "raw").find("\nContent-Type: text/csv\n"), std::string::npos);
}

TEST(FormatRaw, the_content_type_is_sent_once) {
  EventView event = placed_order();
  event.headers = R"({"Content-Type": "text/csv", "a": "b"})";
  EXPECT_EQ(shown(event, "raw").find("Content-Type"), std::string::npos);
  EXPECT_NE(shown(event, "raw").find("\na: b\n"), std::string::npos);
}

TEST(FormatRaw, any_bytes_are_a_body) {
  EventView event = placed_order();
  const std::string bytes("\0\xff\n", 3);
  event.payload = bytes;
  const std::string text = shown(event, "raw");
  EXPECT_EQ(text.substr(text.size() - 3), bytes);
}

TEST(FormatJson, golden) {
  EXPECT_EQ(
      shown(placed_order(), "json"),
      "topic order.events\n"
      "key 42\n"
      "outbox-id: 018f3b1c-7a2e-7c3d-8e4f-0123456789ab\n"
      "outbox-seq: 1234567890123\n"
      "outbox-time: 2024-05-01T12:34:56.123456Z\n"
      "outbox-type: OrderPlaced\n"
      "outbox-aggregate-type: order\n"
      "content-type: application/json\n"
      "tenant: acme\n"
      "traceparent: " +
          std::string(kTrace) +
          "\n"
          "\n"
          R"({"eventId":"018f3b1c-7a2e-7c3d-8e4f-0123456789ab","eventType":"OrderPlaced","aggregateType":"order",)"
          R"("aggregateId":"42","occurredAt":"2024-05-01T12:34:56.123456Z","seq":1234567890123,)"
          R"("payload":{ "total":12.50 },"metadata":{"tenant": "acme", "traceparent": ")" +
          std::string(kTrace) + "\"}}");
}

TEST(FormatJson, the_well_known_headers_are_its_metadata_and_headers_of_the_message) {
  EventView event = placed_order();
  event.headers =
      R"({"correlation_id": "c-1", "causation_id": "018f3b1c", "traceparent": "00-0a-b7-01", "tracestate": "v=1"})";
  const auto metadata = nlohmann::json::parse(envelope(event))["metadata"];
  EXPECT_EQ(metadata, nlohmann::json::parse(event.headers));
  for (const char* format : {"raw", "json"}) {
    EXPECT_NE(
        shown(event, format)
            .find(
                "\ncorrelation_id: c-1\ncausation_id: 018f3b1c\ntraceparent: 00-0a-b7-01\ntracestate: v=1\n"),
        std::string::npos)
        << format;
  }
}

TEST(FormatJson, text_is_a_string) {
  EventView event = placed_order();
  event.content_type = "text/plain";
  event.payload = "a \"b\"\n";
  EXPECT_NE(envelope(event).find(R"(,"payload":"a \"b\"\n",)"), std::string::npos);
  event.payload = "";
  EXPECT_NE(envelope(event).find(R"(,"payload":"",)"), std::string::npos);
  event.content_type = "";
  event.payload = "{}";
  EXPECT_NE(envelope(event).find(R"(,"payload":"{}",)"), std::string::npos);
}

TEST(FormatJson, bytes_are_base64_under_another_name) {
  EventView event = placed_order();
  event.content_type = "application/octet-stream";
  const std::string bytes("\0\xff", 2);
  event.payload = bytes;
  EXPECT_NE(envelope(event).find(R"(,"payloadBase64":"AP8=",)"), std::string::npos);
  EXPECT_EQ(envelope(event).find(R"("payload":)"), std::string::npos);
}

TEST(FormatJson, the_envelope_is_json_whatever_the_event_says) {
  EventView event = placed_order();
  event.aggregate_id = "quote\" and \xff";
  for (const char* payload : {"{\"broken\": ", "\xef\xbb\xbf{}", "{} {}", "", "nul", "\xff"}) {
    for (const char* headers : {"", "not json", "[]", "{\"a\": 1}", "{\"a\": 1} x", "{"}) {
      event.payload = payload;
      event.headers = headers;
      EXPECT_TRUE(nlohmann::json::accept(envelope(event))) << envelope(event);
    }
  }
  event.headers = "{\"a\": 1}";
  EXPECT_EQ(nlohmann::json::parse(envelope(event))["metadata"]["a"], 1);
}

}  // namespace
}  // namespace outbox::format
