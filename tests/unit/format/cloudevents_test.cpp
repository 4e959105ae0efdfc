// The golden outputs of CloudEvents, in both modes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "event/time_text.hpp"
#include "format/render.hpp"

namespace outbox::format {
namespace {

using Json = nlohmann::json;

EventView placed_event() {
  EventView event;
  event.seq = 7;
  event.id = EventId::parse("018f3b1c-7a2e-7c3d-8e4f-0123456789ab").value();
  event.aggregate_type = "PurchaseOrder";
  event.aggregate_id = "Zoë 42";
  event.event_type = "OrderPlaced";
  event.payload = "{ \"total\":12.50 }";
  event.content_type = "application/json";
  event.headers =
      R"({"tenant": "acme 50%", "X-Shop": "a", "id": "not ours", "correlation_id": "c1",
          "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})";
  event.created_at = event::timestamp(1'714'566'896'123'456);
  return event;
}

using Options = std::map<std::string, std::string>;

std::string shown(const EventView& event, const std::string& format, std::string_view prefix,
                  const Options& options = {}) {
  SubscriptionSpec spec{.name = "orders", .sink = "custom"};
  spec.format = format;
  spec.format_options = options;
  Renderer renderer = Renderer::create(spec).value();
  renderer.bind({.name = "test", .attribute_prefix = prefix});
  RenderBuffer buffer;
  renderer.render(1, event, buffer);
  const Message& message = buffer.messages().front();
  std::string text;
  for (const auto& header : message.headers)
    text.append(header.name).append(": ").append(header.value).append("\n");
  return text.append("\n").append(message.body);
}

Json structured(const EventView& event, const Options& options = {}) {
  const std::string text = shown(event, "cloudevents-json", "ce-", options);
  return Json::parse(text.substr(text.find("\n\n") + 2));
}

TEST(CloudEventsBinary, golden_with_kafkas_prefix) {
  EXPECT_EQ(shown(placed_event(), "cloudevents", "ce_"),
            "ce_specversion: 1.0\n"
            "ce_id: 018f3b1c-7a2e-7c3d-8e4f-0123456789ab\n"
            "ce_source: /purchase-order\n"
            "ce_type: OrderPlaced\n"
            "ce_time: 2024-05-01T12:34:56.123456Z\n"
            "ce_subject: Zoë 42\n"
            "ce_partitionkey: Zoë 42\n"
            "ce_outboxseq: 7\n"
            "ce_tenant: acme 50%\n"
            "ce_correlationid: c1\n"
            "ce_traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
            "content-type: application/json\n"
            "X-Shop: a\n"
            "id: not ours\n"
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
            "\n"
            "{ \"total\":12.50 }");
}

TEST(CloudEventsBinary, no_header_of_the_event_passes_for_an_attribute) {
  EventView event = placed_event();
  event.headers =
      R"({"ce_id": "x", "CE-ID": "x", "ce_new": "x", "cloudEvents_id": "x", "Content_Type": "x"})";
  const auto spoofed = [&](const std::string& format, std::string_view prefix) {
    std::string names;
    std::istringstream lines(shown(event, format, prefix));
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(": x")) names += line.substr(0, line.size() - 2);
    }
    return names;
  };
  for (const char* format : {"cloudevents", "cloudevents-json"}) {
    for (const char* prefix : {"ce_", "ce-"})
      EXPECT_EQ(spoofed(format, prefix), "cloudEvents_id:") << format << prefix;
    EXPECT_EQ(spoofed(format, "cloudEvents:"), "ce_id:CE-ID:ce_new:") << format;
  }
}

TEST(CloudEventsStructured, two_headers_do_not_become_one_attribute) {
  EventView event = placed_event();
  event.headers = R"({"correlationid": "second", "correlation_id": "first"})";
  const std::string text = shown(event, "cloudevents-json", "ce-");
  EXPECT_EQ(structured(event)["correlationid"], "first");
  EXPECT_EQ(text.find("\"correlationid\""), text.rfind("\"correlationid\""));
}

TEST(CloudEventsBinary, values_are_percent_encoded_for_http) {
  const std::string text = shown(placed_event(), "cloudevents", "ce-");
  EXPECT_NE(text.find("\nce-subject: Zo%C3%AB%2042\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nce-tenant: acme%2050%25\n"), std::string::npos) << text;
}

TEST(CloudEventsBinary, an_attribute_is_absent_rather_than_empty) {
  EventView event = placed_event();
  event.aggregate_id = "";
  event.headers = "{}";
  event.content_type = "";
  const std::string text = shown(event, "cloudevents", "ce-");
  EXPECT_EQ(text.find("subject"), std::string::npos);
  EXPECT_EQ(text.find("partitionkey"), std::string::npos);
  EXPECT_EQ(text.find("content-type"), std::string::npos);
}

TEST(CloudEventsStructured, golden) {
  EXPECT_EQ(
      shown(placed_event(), "cloudevents-json", "ce_"),
      "outbox-id: 018f3b1c-7a2e-7c3d-8e4f-0123456789ab\n"
      "outbox-seq: 7\n"
      "content-type: application/cloudevents+json; charset=utf-8\n"
      "X-Shop: a\n"
      "id: not ours\n"
      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
      "\n"
      R"({"specversion":"1.0","id":"018f3b1c-7a2e-7c3d-8e4f-0123456789ab","source":"/purchase-order",)"
      R"("type":"OrderPlaced","time":"2024-05-01T12:34:56.123456Z","subject":"Zoë 42",)"
      R"("partitionkey":"Zoë 42","outboxseq":"7","tenant":"acme 50%","correlationid":"c1",)"
      R"("traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",)"
      R"("datacontenttype":"application/json","data":{ "total":12.50 }})");
}

TEST(CloudEventsStructured, data_is_json_text_or_base64) {
  EventView event = placed_event();
  event.payload = "hello \"you\"";
  event.content_type = "text/plain";
  EXPECT_EQ(structured(event)["data"], "hello \"you\"");
  event.content_type = "";
  EXPECT_EQ(structured(event)["datacontenttype"], "text/plain; charset=utf-8");
  event.payload = "{\"a\": 1}";
  EXPECT_FALSE(structured(event).contains("datacontenttype"));
  EXPECT_EQ(structured(event)["data"]["a"], 1);
  event.payload = "\xff";
  EXPECT_EQ(structured(event)["datacontenttype"], "application/octet-stream");
  EXPECT_EQ(structured(event)["data_base64"], "/w==");
  event.content_type = "application/json";
  event.payload = "broken";
  EXPECT_EQ(structured(event)["data_base64"], "YnJva2Vu") << "a string would be JSON";
}

TEST(CloudEventsStructured, the_options_are_templates) {
  const Json event =
      structured(placed_event(), {{"source", "https://shop.example/{header:tenant}"},
                                  {"type", "com.example.{event_type|kebab}"},
                                  {"subject", ""},
                                  {"dataschema", "https://shop.example/{event_type}"}});
  EXPECT_EQ(event["source"], "https://shop.example/acme%2050%25");
  EXPECT_EQ(event["type"], "com.example.order-placed");
  EXPECT_FALSE(event.contains("subject"));
  EXPECT_EQ(event["dataschema"], "https://shop.example/OrderPlaced");
}

TEST(CloudEventsStructured, it_is_json_whatever_the_event_says) {
  EventView event = placed_event();
  event.aggregate_id = "quote\" and \xff";
  for (const char* payload : {"{\"broken\": ", "{} {}", "", "nul", "\xff"}) {
    for (const char* headers : {"", "not json", "[]", "{\"a\": 1}", "{\"data\": \"x\"}"}) {
      for (const char* type : {"", "application/json", "text/plain", "nonsense"}) {
        event.payload = payload;
        event.headers = headers;
        event.content_type = type;
        EXPECT_NO_THROW(structured(event)) << payload << headers;
      }
    }
  }
}

TEST(CloudEvents, options_that_make_no_sense_are_refused) {
  const auto error = [](const Options& options) {
    SubscriptionSpec spec{.name = "orders", .sink = "custom"};
    spec.format = "cloudevents";
    spec.format_options = options;
    const auto made = Renderer::create(spec);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(error({{"source", ""}}), "format_options.source: is empty: CloudEvents requires it");
  EXPECT_EQ(error({{"type", "{nonsense}"}}),
            "format_options.type: unknown field 'nonsense' at position 2");
  EXPECT_EQ(error({{"sorce", "x"}}), "format_options.sorce: format cloudevents has no such option");
}

}  // namespace
}  // namespace outbox::format
