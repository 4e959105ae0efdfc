// The shape of a line, to the byte: people's scripts depend on it.
#include "sink/json_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/sink/suite.hpp"

namespace outbox::test {
namespace {

std::string make_line(const Message& message) {
  std::string line;
  sink::append_json_line(line, message);
  return line;
}

class JsonLine : public testing::Test {
 protected:
  std::string line(std::string body, std::string content_type) {
    load_.add("42", std::move(body), std::move(content_type));
    return make_line(load_.message(load_.size() - 1, 1));
  }
  /// The end of the line, without its headers.
  std::string body_member(std::string body, std::string content_type) {
    const std::string text = line(std::move(body), std::move(content_type));
    const auto from = text.find("},\"body") + 2;
    return text.substr(from, text.find(",\"id\":") - from);
  }
  Load load_;
};

TEST_F(JsonLine, has_a_fixed_order_of_members) {
  EXPECT_EQ(
      line(R"({"total":12.50})", "application/json"),
      R"({"topic":"order.events","key":"42","headers":{"outbox-id":"00000000-0000-7000-0000-000000000000",)"
      R"("outbox-seq":"1","content-type":"application/json"},"body":{"total":12.50},)"
      R"("id":"00000000-0000-7000-0000-000000000000","seq":1,"aggregate_type":"order","aggregate_id":"",)"
      R"("event_type":"OrderPlaced","occurred_at":"1970-01-01T00:00:00.000000Z"})"
      "\n");
}

TEST_F(JsonLine, begins_as_the_file_sink_expects) {
  EXPECT_TRUE(line("1", "").starts_with(sink::kLineStart));
}

TEST_F(JsonLine, without_a_key_says_null) {
  load_.add(std::nullopt, "1");
  EXPECT_NE(make_line(load_.message(0, 1)).find(R"("key":null)"), std::string::npos);
}

TEST_F(JsonLine, keeps_json_as_it_stands) {
  EXPECT_EQ(body_member(R"({ "b":1.0,"a" : "\u00e9" })", "application/json"),
            R"("body":{ "b":1.0,"a" : "\u00e9" })");
  EXPECT_EQ(body_member("[1]", "application/vnd.x+json; v=1"), R"("body":[1])");
}

TEST_F(JsonLine, puts_json_of_several_lines_on_one) {
  EXPECT_EQ(body_member("{\r\n  \"a\": \"x\\ny\"\n}", "application/json"),
            R"("body":{    "a": "x\ny" })");
}

TEST_F(JsonLine, writes_other_text_as_a_string) {
  EXPECT_EQ(body_member("a\nb", "text/plain"), R"("body":"a\nb")");
  EXPECT_EQ(body_member("{\"a\":1}", ""), R"("body":"{\"a\":1}")");
  EXPECT_EQ(body_member("not json", "application/json"), R"("body":"not json")");
  EXPECT_EQ(body_member("", "application/json"), R"("body":"")");
}

TEST_F(JsonLine, writes_bytes_that_are_no_text_in_base64) {
  EXPECT_EQ(body_member("\xff\xfe", "application/octet-stream"), R"("body_base64":"//4=")");
  EXPECT_EQ(body_member("\"\xff\"", "application/json"), R"("body_base64":"Iv8i")");
}

TEST_F(JsonLine, is_one_line_whatever_is_in_it) {
  const std::string text = line("\n\r\n", "text/plain") + line("[\n]", "application/json");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

}  // namespace
}  // namespace outbox::test
