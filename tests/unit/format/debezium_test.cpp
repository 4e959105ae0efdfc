// The format debezium against messages captured from Debezium (golden/README.md).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "format/connect_json.hpp"
#include "format/render.hpp"

namespace outbox::format {
namespace {

using Json = nlohmann::json;
using Options = std::map<std::string, std::string>;

EventView order(int number) {
  EventView event;
  event.seq = number;
  event.aggregate_type = "Order";
  event.content_type = "application/json";
  if (number == 1) {
    event.id = EventId::parse("00000000-0000-4000-8000-000000000001").value();
    event.aggregate_id = "42";
    event.event_type = "OrderPlaced";
    event.payload = R"({"n": null, "t": 12.50, "list": [1, 2], "name": "Zoë \"x\"", "order": 42})";
    event.headers = R"({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})";
  } else {
    event.id = EventId::parse("00000000-0000-4000-8000-000000000002").value();
    event.aggregate_id = "43";
    event.event_type = "OrderDeleted";
    event.payload = "";
  }
  return event;
}

SubscriptionSpec make_spec(const Options& options, const std::string& topic = "t") {
  SubscriptionSpec spec{.name = "orders", .sink = "kafka"};
  spec.format = "debezium";
  spec.format_options = options;
  spec.topic = topic;
  return spec;
}

/// The message as kcat -J shows it, without what the broker adds.
Json sent(const EventView& event, const Options& options, const std::string& topic) {
  RenderBuffer buffer;
  const Renderer renderer = Renderer::create(make_spec(options, topic)).value();
  renderer.render(1, event, buffer);
  const Message& message = buffer.messages().front();
  Json headers = Json::array();
  for (const HeaderView& header : message.headers) {
    headers.push_back(header.name);
    headers.push_back(header.absent ? Json() : Json(header.value));
  }
  return {{"topic", message.topic},
          {"headers", headers},
          {"key", message.key ? Json(*message.key) : Json()},
          {"payload", message.tombstone ? Json() : Json(message.body)}};
}

std::string value(std::string_view payload, const Options& options) {
  EventView event = order(1);
  event.payload = payload;
  return sent(event, options, "t")["payload"].get<std::string>();
}

/// The captured message, without Debezium's bookkeeping.
Json captured(const std::string& line) {
  const Json whole = Json::parse(line);
  Json headers = Json::array();
  for (std::size_t i = 0; i < whole["headers"].size(); i += 2) {
    if (whole["headers"][i].get<std::string>().rfind("__debezium.", 0) == 0) continue;
    headers.push_back(whole["headers"][i]);
    headers.push_back(whole["headers"][i + 1]);
  }
  return {{"topic", whole["topic"]},
          {"headers", headers},
          {"key", whole["key"]},
          {"payload", whole["payload"]}};
}

TEST(FormatDebezium, key_value_and_headers_are_those_of_the_event_router) {
  const std::vector<Options> options{
      {},
      {{"converter", "json"}, {"expand_json", "true"}},
      {{"converter", "json"},
       {"placement",
        "type:header:eventType, traceparent:header:traceparent, aggregatetype:envelope:aggregateType"}},
      {{"converter", "json"}, {"placement", "type:header,aggregatetype:header"}}};
  std::ifstream golden(OUTBOX_TEST_GOLDEN "/debezium-3.4.1-event-router.jsonl");
  std::size_t lines = 0;
  for (std::string line; std::getline(golden, line); ++lines) {
    const std::string topic = "g" + std::to_string(lines / 2 + 1) + ".{aggregate_type}.events";
    EXPECT_EQ(sent(order(lines % 2 == 0 ? 1 : 2), options.at(lines / 2), topic), captured(line));
  }
  EXPECT_EQ(lines, 8U);
}

TEST(FormatDebezium, what_is_no_object_or_array_is_not_expanded) {
  const Options expand{{"converter", "json"}, {"expand_json", "true"}};
  EXPECT_EQ(value("12.50", expand), R"("12.50")");
  EXPECT_EQ(value("{\"broken\": ", expand), R"("{\"broken\": ")");
  EXPECT_EQ(value("\x01\x1f", expand), R"("\u0001\u001F")");
  EXPECT_EQ(value("\xff", expand), R"("/w==")");
}

TEST(FormatDebezium, expanded_json_keeps_what_it_is_told_to_keep) {
  const std::string_view payload =
      R"( {"a": null, "b": [ ], "c": {"d": null, "e": [1, null, {"f": null}]}, "u": "\u00eb\n"} )";
  Options options{{"converter", "json"}, {"expand_json", "true"}};
  EXPECT_EQ(
      value(payload, options),
      "\""
      R"( {\"a\": null, \"b\": [ ], \"c\": {\"d\": null, \"e\": [1, null, {\"f\": null}]}, \"u\": \"\\u00eb\\n\"} )"
      "\"")
      << "only what begins with a bracket is expanded";
  EXPECT_EQ(value(payload.substr(1), options), R"({"c":{"e":[1,null,{}]},"u":"ë\n"})");
  options["keep_nulls"] = "true";
  options["keep_empty_arrays"] = "true";
  EXPECT_EQ(value(payload.substr(1), options),
            R"({"a":null,"b":[],"c":{"d":null,"e":[1,null,{"f":null}]},"u":"ë\n"})");
}

TEST(FormatDebezium, options_that_make_no_sense_are_refused) {
  const auto error = [](const Options& options) {
    const auto made = Renderer::create(make_spec(options));
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(error({{"expand_json", "true"}}),
            "format_options.expand_json: needs converter = \"json\"");
  EXPECT_EQ(error({{"placement", "type:envelope"}}),
            "format_options.placement: an envelope needs converter = \"json\"");
  EXPECT_EQ(
      error({{"placement", "type:partition"}}),
      "format_options.placement: expected field:header or field:envelope, found 'type:partition'");
  EXPECT_EQ(error({{"placement", "tenant:header:ID"}}),
            "format_options.placement: 'ID' is written already");
  EXPECT_EQ(error({{"converter", "json"}, {"placement", "tenant:envelope:payload"}}),
            "format_options.placement: 'payload' is written already");
  EXPECT_EQ(error({{"placement", "type:header:kind, tenant:header:kind"}}),
            "format_options.placement: 'kind' is written already");
  EXPECT_EQ(error({{"placement", "tenant:header:payload"}}), "");
  EXPECT_EQ(error({{"converter", "jsn"}}), "format_options.converter: unknown value 'jsn'");
  EXPECT_EQ(error({{"expand", "true"}}),
            "format_options.expand: format debezium has no such option");
}

TEST(JavaDouble, is_written_as_java_does) {
  // These are from the documentation of Double.toString().
  for (const auto& [number, text] : std::vector<std::pair<double, const char*>>{
           {0.0, "0.0"},
           {-0.0, "-0.0"},
           {12.5, "12.5"},
           {100, "100.0"},
           {-0.001, "-0.001"},
           {0.00012, "1.2E-4"},
           {9999999, "9999999.0"},
           {10000000, "1.0E7"},
           {2e23, "2.0E23"},
           {4.9e-324, "4.9E-324"},
           {1.7976931348623157e308, "1.7976931348623157E308"},
           {123456.789, "123456.789"}}) {
    EXPECT_EQ(java_double(number), text);
  }
}

TEST(JavaDouble, is_read_back_as_the_same_number) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = random();
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    if (!std::isfinite(number)) continue;
    ASSERT_EQ(std::strtod(java_double(number).c_str(), nullptr), number) << java_double(number);
  }
}

}  // namespace
}  // namespace outbox::format
