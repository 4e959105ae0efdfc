#include "event/json_event.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "unit/event/any_text.hpp"

namespace outbox::event {
namespace {

std::string wrong(std::string_view line) {
  const auto event = parse_event(line);
  return event ? "" : event.error().text();
}

TEST(JsonEvent, reads_every_member) {
  const auto event = parse_event(
      R"({"aggregate_type": "order", "aggregate_id": "42", "event_type": "OrderPlaced", "payload": {"total": 1},)"
      R"( "headers": {"k": "v\n"}, "id": "018f3b1c-7a2e-7c3d-8e4f-0123456789ab", "content_type": "application/x+json",)"
      R"( "lock_key": true})");
  ASSERT_TRUE(event) << event.error().text();
  EXPECT_EQ(event->aggregate_type, "order");
  EXPECT_EQ(event->aggregate_id, "42");
  EXPECT_EQ(event->event_type, "OrderPlaced");
  EXPECT_EQ(event->payload, R"({"total": 1})");
  EXPECT_EQ(event->headers, (std::vector<Header>{{"k", "v\n"}}));
  EXPECT_EQ(event->id, EventId::parse("018f3b1c-7a2e-7c3d-8e4f-0123456789ab").value());
  EXPECT_EQ(event->content_type, "application/x+json");
  EXPECT_EQ(event->lock_key, true);
}

TEST(JsonEvent, a_payload_that_is_not_a_string_is_taken_byte_for_byte) {
  const std::string payload =
      "{ \"b\" : 1.0E+2,\t\"a\":[ 1, \"\\u00e9\\/\" ] , \"a\": 10000000000000000000000 }";
  const auto event =
      parse_event(R"({"aggregate_type":"o","event_type":"E","payload": )" + payload + " }");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->payload, payload);
  EXPECT_EQ(event->content_type, "application/json");
  EXPECT_EQ(parse_event(R"({"aggregate_type":"o","event_type":"E","payload":null})")->payload,
            "null");
  EXPECT_EQ(parse_event(R"({"aggregate_type":"o","event_type":"E","payload": -1.50 })")->payload,
            "-1.50");
}

TEST(JsonEvent, a_string_payload_is_json_like_any_other_and_characters_when_its_type_is_not_json) {
  const std::string start = R"({"aggregate_type":"o","event_type":"E","payload":"a\n\u00e9")";
  const auto event = parse_event(start + "}");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->payload, R"("a\n\u00e9")");
  EXPECT_EQ(event->content_type, "application/json");
  EXPECT_EQ(parse_event(start + R"(,"content_type":"a/b+json"})")->payload, R"("a\n\u00e9")");
  for (const char* type : {"text/plain", ""}) {
    const auto said = parse_event(start + R"(,"content_type":")" + type + R"("})");
    EXPECT_EQ(said->payload, "a\n\xc3\xa9");
    EXPECT_EQ(said->content_type, type);
  }
}

TEST(JsonEvent, it_may_have_happened_before) {
  const auto at = [](const std::string& time) {
    return parse_event(R"({"aggregate_type":"o","event_type":"E","payload":1,"occurred_at":)" +
                       time + "}");
  };
  EXPECT_EQ(at("\"2001-02-03T05:05:06.789012+01:00\"")->occurred_at->time_since_epoch().count(),
            981'173'106'789'012);
  EXPECT_FALSE(at("null")->occurred_at);
  EXPECT_EQ(at("\"yesterday\"").error().text(),
            "occurred_at: is not a time (hint: RFC 3339, for example 2026-01-05T08:09:12.5Z)");
  EXPECT_EQ(at("5").error().message, "occurred_at: is not a time");
}

TEST(JsonEvent, bytes_come_as_base64) {
  const auto event =
      parse_event(R"({"aggregate_type":"o","event_type":"E","payload_base64":"AP8="})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->payload, std::string("\0\xff", 2));
  EXPECT_EQ(wrong(R"({"aggregate_type":"o","event_type":"E","payload_base64":"A"})").substr(0, 29),
            "payload_base64: is not base64");
  EXPECT_EQ(wrong(R"({"aggregate_type":"o","event_type":"E","payload_base64":1})").substr(0, 29),
            "payload_base64: is not base64");
}

TEST(JsonEvent, optional_members_may_be_null) {
  const auto event =
      parse_event(R"({"aggregate_type":"o","event_type":"E","payload":{},"aggregate_id":null,)"
                  R"("headers":null,"id":null,"content_type":null,"lock_key":null})");
  ASSERT_TRUE(event) << event.error().text();
  EXPECT_EQ(event->aggregate_id, "");
  EXPECT_EQ(event->content_type, "application/json");
  EXPECT_FALSE(event->id);
  EXPECT_FALSE(event->lock_key);
}

TEST(JsonEvent, a_line_from_another_system_may_begin_with_a_byte_order_mark_and_end_with_cr) {
  EXPECT_EQ(wrong("\xef\xbb\xbf{\"aggregate_type\":\"o\",\"event_type\":\"E\",\"payload\":{}}\r"),
            "");
}

TEST(JsonEvent, names_what_is_wrong) {
  EXPECT_EQ(wrong(""), "is not a JSON object: expected '{' at byte 1");
  EXPECT_EQ(wrong("[]"), "is not a JSON object: expected '{' at byte 1");
  EXPECT_EQ(wrong("{\"aggregate_type\": \"o\""),
            "is not a JSON object: expected ',' or '}' at byte 23");
  EXPECT_EQ(wrong("{}"), "aggregate_type: is missing");
  EXPECT_EQ(wrong(R"({"aggregate_type":"o"})"), "event_type: is missing");
  EXPECT_EQ(wrong(R"({"aggregate_type":"o","event_type":"E"})"), "payload: is missing");
  EXPECT_EQ(wrong(R"({"agregate_type":"o"})"),
            "'agregate_type': unknown member of an event (hint: did you mean aggregate_type?)");
  EXPECT_EQ(wrong(R"({"aggregate_type":1})"),
            "aggregate_type: is not a string (hint: put it in quotes)");
  EXPECT_EQ(wrong(R"({"aggregate_type":"o","aggregate_id":42})"),
            "aggregate_id: is not a string (hint: put it in quotes)");
  EXPECT_EQ(wrong(R"({"payload":1,"payload":2})"), "payload: is given twice");
  EXPECT_EQ(wrong(R"({"payload":1,"p\u0061yload":2})"), "payload: is given twice");
  EXPECT_EQ(wrong(R"({"aggregate_type":"o","event_type":"E","payload":1,"payload_base64":""})"),
            "payload: is given twice: as payload and as payload_base64");
  EXPECT_EQ(wrong(R"({"headers":{"a":1}})"), "headers: the value of 'a' is not a string");
  EXPECT_EQ(wrong(R"({"headers":[]})"), "headers: is not a JSON object: expected '{' at byte 1");
  EXPECT_EQ(wrong(R"({"id":"x"})").substr(0, 17), "id: is not a UUID");
  EXPECT_EQ(wrong(R"({"lock_key":"yes"})"), "lock_key: is neither true nor false");
}

TEST(JsonEvent, a_broken_line_is_reported_as_broken_whatever_its_members) {
  EXPECT_EQ(wrong(R"({"unknown": 1, "x": })"), "is not a JSON object: expected a value at byte 21");
}

TEST(JsonEvent, headers_are_written_as_a_json_object) {
  EXPECT_EQ(headers_to_json({}), "{}");
  EXPECT_EQ(headers_to_json({{"a", "b"}, {"c", "d\"\n"}}), R"({"a": "b", "c": "d\"\n"})");
}

RC_GTEST_PROP(JsonEvent, headers_round_trip, ()) {
  const auto headers =
      *rc::gen::container<std::vector<Header>>(rc::gen::pair(any_text(), any_text()));
  RC_ASSERT(headers_from_json(headers_to_json(headers)) == headers);
}

RC_GTEST_PROP(JsonEvent, lines_that_nlohmann_wrote_are_read, ()) {
  const auto type = *any_text();
  const auto id = *any_text();
  const auto text = *any_text();
  const nlohmann::json payload = {{"text", text}, {"list", {1, 2.5, nullptr}}};
  const nlohmann::json line = {
      {"aggregate_type", type}, {"aggregate_id", id}, {"event_type", text}, {"payload", payload}};
  const auto event = parse_event(line.dump());
  RC_ASSERT(event.has_value());
  RC_ASSERT(event->aggregate_type == type);
  RC_ASSERT(event->aggregate_id == id);
  RC_ASSERT(event->event_type == text);
  RC_ASSERT(event->payload == payload.dump());
}

RC_GTEST_PROP(JsonEvent, any_bytes_are_read_or_refused, (const std::string& bytes)) {
  const auto event = parse_event("{\"aggregate_type\":" + bytes);
  RC_ASSERT(event || !event.error().message.empty());
}

}  // namespace
}  // namespace outbox::event
