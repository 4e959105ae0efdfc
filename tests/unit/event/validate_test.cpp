#include <gtest/gtest.h>

#include <outbox/event.hpp>
#include <string>

namespace outbox {
namespace {

Event placed() {
  return {.aggregate_type = "order",
          .aggregate_id = "42",
          .event_type = "OrderPlaced",
          .payload = R"({"total": 12.5})"};
}

std::string wrong(const Event& event, const EventLimits& limits = {}) {
  const auto status = validate(event, limits);
  return status ? "" : status.error().message;
}

template <class T>
std::string wrong(T Event::*member, T value) {
  Event event = placed();
  event.*member = std::move(value);
  return wrong(event);
}

std::string wrong_header(std::string name, std::string value) {
  Event event = placed();
  event.headers = {{std::move(name), std::move(value)}};
  return wrong(event);
}

TEST(Validate, accepts_a_plain_event) {
  EXPECT_EQ(wrong(placed()), "");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string()), "");
  EXPECT_EQ(wrong(&Event::aggregate_type, std::string(255, 'x')), "");
  EXPECT_EQ(wrong(&Event::event_type, std::string("Gr\xc3\xbc\xc3\x9f"
                                                  "e mit Leerzeichen")),
            "");
}

TEST(Validate, names_are_there_short_and_printable) {
  EXPECT_EQ(wrong(&Event::aggregate_type, std::string()), "aggregate_type: is empty");
  EXPECT_EQ(wrong(&Event::aggregate_type, std::string("  ")), "aggregate_type: is blank");
  EXPECT_EQ(wrong(&Event::event_type, std::string(" \n")), "event_type: is blank");
  EXPECT_EQ(wrong(&Event::event_type, std::string(256, 'x')),
            "event_type: is 256 bytes long, at most 255 are allowed");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string(256, 'x')),
            "aggregate_id: is 256 bytes long, at most 255 are allowed");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\0b", 3)),
            "aggregate_id: contains a NUL character");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\nb")),
            "aggregate_id: contains a control character");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\x7f")),
            "aggregate_id: contains a control character");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\xc2\x85")),
            "aggregate_id: contains a control character");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\xc2\xa0")), "");
  EXPECT_EQ(wrong(&Event::aggregate_id, std::string("a\xff")), "aggregate_id: is not UTF-8");
}

TEST(Validate, a_payload_over_the_limit_is_too_large_and_says_the_sizes) {
  Event event = placed();
  const auto status = validate(event, {.payload_bytes = 10});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::too_large);
  EXPECT_EQ(status.error().message, "payload: is 15 bytes, at most 10 are allowed");
  EXPECT_EQ(wrong(event, {.payload_bytes = 15}), "");
}

TEST(Validate, a_payload_that_says_json_is_json) {
  Event event = placed();
  event.payload = "{\"total\": }";
  EXPECT_EQ(wrong(event), "payload: is not JSON: expected a value at byte 11");
  event.content_type = "Application/Vnd.Order+JSON; v=2";
  EXPECT_EQ(wrong(event), "payload: is not JSON: expected a value at byte 11");
  event.content_type = "text/plain";
  EXPECT_EQ(wrong(event), "");
  event.content_type = "";
  EXPECT_EQ(wrong(event), "");
  event = placed();
  event.payload = "";
  EXPECT_EQ(wrong(event), "payload: is not JSON: it is empty");
  event.payload = R"({"a": 1, "a": 2})";
  EXPECT_EQ(wrong(event), "");
}

TEST(Validate, hostile_nesting_is_only_a_wrong_payload) {
  EXPECT_EQ(wrong(&Event::payload, std::string(std::size_t{1} << 20U, '[')),
            "payload: is not JSON: it ends too early at byte 1048577");
}

TEST(Validate, the_content_type_is_a_media_type) {
  EXPECT_EQ(wrong(&Event::content_type, std::string("application/x-protobuf; messageType=\"a.b\"")),
            "");
  for (const char* type :
       {"json", "application/", "/json", "a b/c", "application/json\r\nx: y", " "}) {
    EXPECT_EQ(wrong(&Event::content_type, std::string(type)).substr(0, 13), "content_type:")
        << type;
  }
}

TEST(Validate, header_names_are_tokens_and_not_ours) {
  EXPECT_EQ(wrong_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            "");
  EXPECT_EQ(wrong_header("", "x"), "headers: a header has no name");
  EXPECT_EQ(wrong_header("a b", "x"), "headers: 'a b' is not a header name");
  EXPECT_EQ(wrong_header("a\r\n", "x"), "headers: 'a\\x0d\\x0a' is not a header name");
  EXPECT_EQ(wrong_header("gr\xc3\xbcn", "x"), "headers: 'gr\\xc3\\xbcn' is not a header name");
  EXPECT_EQ(
      wrong_header("Outbox-Id", "x"),
      "headers: 'Outbox-Id' is reserved: names that begin with outbox- or outbox_ are set by outbox itself");
  EXPECT_NE(wrong_header("OUTBOX_ID", "x"), "") << "a program behind CGI sees it as outbox-id";
  EXPECT_EQ(wrong_header("outbox", "x"), "");
}

TEST(Validate, header_values_cannot_end_the_header) {
  EXPECT_EQ(wrong_header("a", ""), "");
  EXPECT_EQ(wrong_header("a", "tab\tand \xc3\xbc"), "");
  EXPECT_EQ(wrong_header("a", "x\r\ny: z"), "headers: the value of 'a' contains a line break");
  EXPECT_EQ(wrong_header("a", "x\ny"), "headers: the value of 'a' contains a line break");
  EXPECT_EQ(wrong_header("a", std::string("x\0y", 3)),
            "headers: the value of 'a' contains a NUL character");
  EXPECT_EQ(wrong_header("a", "\xff"), "headers: the value of 'a' is not UTF-8");
}

TEST(Validate, a_header_is_given_once_whatever_its_case) {
  Event event = placed();
  event.headers = {{"Tenant", "a"}, {"x", "1"}, {"tenant", "b"}};
  EXPECT_EQ(wrong(event).substr(0, 9), "headers: ");
  EXPECT_NE(wrong(event).find("is given twice"), std::string::npos);
  event.headers.pop_back();
  EXPECT_EQ(wrong(event), "");
}

TEST(Validate, the_content_type_is_said_once) {
  EXPECT_EQ(wrong_header("Content-Type", "text/csv"), "headers: content-type is set twice");
  Event event = placed();
  event.content_type = "";
  event.headers = {{"content-type", "text/csv"}};
  EXPECT_EQ(wrong(event), "");
}

TEST(Validate, headers_together_have_a_limit) {
  Event event = placed();
  event.headers = {{"a", std::string(60, 'x')}, {"b", std::string(60, 'x')}};
  EXPECT_EQ(wrong(event, {.headers_bytes = 122}), "");
  const auto status = validate(event, {.headers_bytes = 100});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::too_large);
  EXPECT_EQ(status.error().message,
            "headers: all names and values together is 122 bytes, at most 100 are allowed");
}

TEST(Validate, an_error_never_shows_what_a_payload_or_header_holds) {
  Event event = placed();
  event.payload = "secret";
  EXPECT_EQ(wrong(event).find("secret"), std::string::npos);
  EXPECT_EQ(wrong_header("a", "secret\n").find("secret"), std::string::npos);
}

}  // namespace
}  // namespace outbox
