// UTF-8, base64, media types, times, JSON strings.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"

namespace outbox::event {
namespace {

std::string time_text(std::int64_t us) {
  std::string text(kTimeChars, '\0');
  write_time(us, text.data());
  return text;
}

std::string base64(const std::string& bytes) {
  std::string text(base64_length(bytes.size()), '\0');
  write_base64(bytes, text.data());
  return text;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(Utf8, takes_what_rfc_3629_allows_and_nothing_else) {
  for (const char* good :
       {"", "plain text of some length", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "12345678\xc3\xa9--------"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                          "\xe2\x82", "\xf0\x9f\x98", "12345678\xc3"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(Base64, vectors_of_rfc_4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, refuses_what_is_not_base64) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm9v\n", "Z===", "====", "Zm=v", "Zm9-", "=Zg="}) {
    EXPECT_EQ(read_base64(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(Base64, round_trip, (const std::string& bytes)) {
  RC_ASSERT(read_base64(base64(bytes)) == bytes);
}

TEST(ContentType, json_in_all_its_spellings) {
  for (const char* type :
       {"application/json", "Application/JSON", "application/json; charset=utf-8",
        "application/json;x=1", " application/json ", "application/cloudevents+json",
        "application/vnd.x+JSON; v=1"}) {
    EXPECT_TRUE(is_json_type(type)) << type;
  }
  for (const char* type : {"", "text/plain", "application/jsonx", "application/x-json", "+json",
                           "json", "text/plain; x=application/json", "text/plain; a+json"}) {
    EXPECT_FALSE(is_json_type(type)) << type;
  }
}

TEST(TimeText, is_rfc_3339_in_utc_with_microseconds) {
  EXPECT_EQ(time_text(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(time_text(1'714'566'896'123'456), "2024-05-01T12:34:56.123456Z");
  EXPECT_EQ(time_text(951'782'400'000'000), "2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(time_text(-1), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(time_text(4'107'542'399'999'999), "2100-02-28T23:59:59.999999Z");
  EXPECT_EQ(time_text(4'107'542'400'000'000), "2100-03-01T00:00:00.000000Z");
}

TEST(TimeText, stays_in_form_beyond_its_years) {
  EXPECT_EQ(time_text(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(time_text(std::numeric_limits<std::int64_t>::min()), "0000-01-01T00:00:00.000000Z");
}

TEST(JsonString, escapes_what_must_be_escaped) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string("a\"b\\c/d\n\t\x01\x7f"), "\"a\\\"b\\\\c/d\\n\\t\\u0001\x7f\"");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
}

RC_GTEST_PROP(JsonString, any_bytes_become_json, (const std::string& bytes)) {
  const auto parsed = nlohmann::json::parse(json_string(bytes), nullptr, false);
  RC_ASSERT(parsed.is_string());
  if (is_utf8(bytes)) RC_ASSERT(parsed.get<std::string>() == bytes);
}

}  // namespace
}  // namespace outbox::event
