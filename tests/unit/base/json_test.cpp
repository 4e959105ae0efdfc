#include "base/json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace outbox {
namespace {

using Json = nlohmann::ordered_json;

TEST(Json, what_is_read_is_written_the_same) {
  const std::string text = R"({"b":[1,2.5,null],"a":"\"é"})";
  EXPECT_EQ(write_json(try_parse_json<Json>(text)), text);
  EXPECT_EQ(write_json(parse_json<Json>(text)), text);
  EXPECT_EQ(write_json(parse_json<nlohmann::json>(text)), R"({"a":"\"é","b":[1,2.5,null]})");
}

TEST(Json, what_is_not_json_is_discarded_or_thrown) {
  for (const char* text : {"", "{", "{} {}", "nul", "\"\xff\""}) {
    EXPECT_TRUE(try_parse_json<Json>(text).is_discarded()) << text;
    EXPECT_THROW((void)parse_json<Json>(text), Json::exception) << text;
  }
}

TEST(Json, can_be_indented_and_in_ascii) {
  const Json value{{"a", "é"}};
  EXPECT_EQ(write_json(value, {.indent = 2}), "{\n  \"a\": \"é\"\n}");
  EXPECT_EQ(write_json(value, {.ascii = true}), R"({"a":"\u00e9"})");
}

TEST(Json, bytes_that_are_no_utf8_are_replaced) {
  EXPECT_EQ(write_json(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace outbox
