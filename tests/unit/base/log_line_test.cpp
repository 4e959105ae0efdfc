#include "base/log_line.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace outbox::log {
namespace {

std::string text(std::string_view value) {
  return text_line("m", std::vector<Field>{{"k", value}}).substr(std::string("m k=").size());
}

std::string json(std::string_view value) {
  return json_line("m", std::vector<Field>{{"k", value}});
}

/// The worst that values may contain.
const std::vector<std::string> kHostile{
    "",
    "a b",
    "a=b",
    R"(say "hi")",
    R"(C:\temp)",
    "two\nlines",
    "\r\n",
    "tab\there",
    std::string("nul\0here", 8),
    "\x1b[31mred",
    "\x7f",
    "next\xc2\x85line",
    "line\xe2\x80\xa8separator",
    "\xc3\xbc and \xf0\x9f\x98\x80",
    "no utf-8 \xff\xfe",
    "cut short \xe2\x80",
    R"(x" level="error)",
    R"(x","level":"error)",
};

TEST(LogLine, text_is_the_message_then_key_and_value) {
  EXPECT_EQ(text_line("stopped", {}), "stopped");
  EXPECT_EQ(text_line("lanes taken over",
                      std::vector<Field>{{"from", "app-1:402"}, {"generation", std::int64_t{8}}}),
            "lanes taken over from=app-1:402 generation=8");
}

TEST(LogLine, text_quotes_what_is_not_one_plain_word) {
  EXPECT_EQ(text("orders"), "orders");
  EXPECT_EQ(text("sqlite:/a/b.db?x,y;{}"), "sqlite:/a/b.db?x,y;{}");
  EXPECT_EQ(text(""), R"("")");
  EXPECT_EQ(text("a b"), R"("a b")");
  EXPECT_EQ(text("a=b"), R"("a=b")");
  EXPECT_EQ(text(R"(say "hi")"), R"("say \"hi\"")");
  EXPECT_EQ(text(R"(C:\temp)"), R"("C:\\temp")");
  EXPECT_EQ(text("two\nlines"), R"("two\nlines")");
  EXPECT_EQ(text("\x1b[31m"), R"("\u001b[31m")");
  EXPECT_EQ(text("\x7f"), R"("\u007f")");
  EXPECT_EQ(text("a\xc2\x85z"), R"("a\u0085z")");
  EXPECT_EQ(text("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  EXPECT_EQ(text("\xff"), "\"\xef\xbf\xbd\"");
}

TEST(LogLine, json_has_a_member_for_each_field) {
  const auto line = nlohmann::json::parse(
      json_line("m", std::vector<Field>{{"text", "a"},
                                        {"no", false},
                                        {"int", -1},
                                        {"size", std::size_t{2}},
                                        {"most", std::numeric_limits<std::uint64_t>::max()},
                                        {"seconds", 3.5}}));
  EXPECT_EQ(line, nlohmann::json::parse(
                      R"({"msg":"m","text":"a","no":false,"int":-1,"size":2,"seconds":3.5,
                          "most":18446744073709551615})"));
}

TEST(LogLine, the_message_comes_first) { EXPECT_EQ(json("v"), R"({"msg":"m","k":"v"})"); }

TEST(LogLine, text_has_numbers_as_json_has) {
  EXPECT_EQ(text_line("m", std::vector<Field>{{"a", -1}, {"b", true}, {"c", 0.5}, {"d", 3U}}),
            "m a=-1 b=true c=0.5 d=3");
}

TEST(LogLine, whatever_is_in_a_value_text_stays_one_line_of_printable_characters) {
  for (const std::string& value : kHostile) {
    const std::string line = text_line("m", std::vector<Field>{{"k", value}, {"after", 1}});
    EXPECT_TRUE(line.ends_with(" after=1")) << line;
    for (const char c : line)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' && c != '\x7f') << line;
    for (const char* breaks : {"\xc2\x85", "\xe2\x80\xa8", "\xff"})
      EXPECT_EQ(line.find(breaks), std::string::npos) << line;
  }
}

TEST(LogLine, a_quoted_value_reads_back_as_json) {
  for (const std::string& value : kHostile) {
    const std::string written = text(value);
    if (written.front() != '"') continue;
    const auto read = nlohmann::json::parse(written);
    EXPECT_TRUE(read == value || value.find_first_of("\xff\xe2") != std::string::npos) << written;
  }
}

TEST(LogLine, whatever_is_in_a_value_json_stays_one_object_in_ascii) {
  for (const std::string& value : kHostile) {
    const std::string line = json(value);
    const auto read = nlohmann::json::parse(line);
    EXPECT_EQ(read.size(), 2U) << line;
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c < '\x7f') << line;
  }
}

TEST(LogLine, json_gives_the_value_back) {
  for (const std::string& value : kHostile) {
    if (value.find_first_of("\xff") != std::string::npos || value.ends_with("\xe2\x80")) continue;
    EXPECT_EQ(nlohmann::json::parse(json(value))["k"], value);
  }
  EXPECT_EQ(nlohmann::json::parse(json("a\xff"))["k"], "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace outbox::log
