#include "event/json_scan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace outbox::event {
namespace {

using Json = nlohmann::json;

std::string find_fault(std::string_view text) {
  const auto fault = json_fault(text);
  return fault ? std::to_string(fault->offset) + " " + fault->what : "";
}

TEST(JsonScan, accepts_json) {
  for (const char* text : {"0", "-0", "1.5e+10", " null ", "true", R"("")", "[]", "{}", "[[],{}]",
                           R"({"a":[1,{"b":null}],"":""})", "\t\r\n[ 1 , 2 ]\n",
                           R"(["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"])", "\"\xc3\xa9\"", "1e999",
                           R"({"a":1,"a":2})", R"("\u0000")"}) {
    EXPECT_EQ(find_fault(text), "") << text;
  }
}

TEST(JsonScan, says_what_is_wrong_and_where) {
  EXPECT_EQ(find_fault(""), "0 it ends too early");
  EXPECT_EQ(find_fault("{\"a\": tru}"), "6 expected a value");
  EXPECT_EQ(find_fault("[1 2]"), "3 expected ',' or ']'");
  EXPECT_EQ(find_fault("{\"a\":1 \"b\"}"), "7 expected ',' or '}'");
  EXPECT_EQ(find_fault("{a:1}"), "1 expected '\"'");
  EXPECT_EQ(find_fault("{\"a\" 1}"), "5 expected ':'");
  EXPECT_EQ(find_fault("\"abc"), "4 string without end");
  EXPECT_EQ(find_fault("{} {}"), "3 something follows the value");
  EXPECT_EQ(find_fault("\"a\nb\""), "2 control character in a string");
  EXPECT_EQ(find_fault("\"\xff\""), "1 not UTF-8");
}

TEST(JsonScan, refuses_what_lenient_parsers_let_through) {
  using namespace std::string_view_literals;
  for (const auto text : {"[1,]"sv,
                          "{\"a\":1,}"sv,
                          "[,1]"sv,
                          "{,}"sv,
                          "01"sv,
                          "-"sv,
                          "1."sv,
                          ".5"sv,
                          "1e"sv,
                          "+1"sv,
                          "NaN"sv,
                          "'a'"sv,
                          "[1}"sv,
                          "{\"a\":1]"sv,
                          "]"sv,
                          "["sv,
                          "{"sv,
                          "nul"sv,
                          "nulll"sv,
                          "/**/1"sv,
                          "\"\\x\""sv,
                          "\"\\u12\""sv,
                          "\"\\ud800\""sv,
                          "\"\\udc00\""sv,
                          "\"\\ud800\\u0041\""sv,
                          "\"\\"sv,
                          "1\0"sv,
                          "{}\0{}"sv,
                          "\"\0\""sv,
                          "\"\\\0\""sv,
                          "\xef\xbb\xbf{}"sv,
                          "{\"a\"}"sv,
                          "[\"a\":1]"sv,
                          "{1:1}"sv}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
}

TEST(JsonScan, a_million_open_brackets_need_no_stack) {
  const std::size_t kDepth = 1'000'000;
  EXPECT_FALSE(is_json(std::string(kDepth, '[')));
  EXPECT_TRUE(is_json(std::string(kDepth, '[') + std::string(kDepth, ']')));
  std::string mixed;
  for (std::size_t i = 0; i < 1000; ++i) mixed += R"([{"a":)";
  mixed += "1";
  for (std::size_t i = 0; i < 1000; ++i) mixed += "}]";
  EXPECT_TRUE(is_json(mixed));
  mixed[mixed.size() - 700] = mixed[mixed.size() - 700] == '}' ? ']' : '}';
  EXPECT_FALSE(is_json(mixed));
}

/// nlohmann's verdict; nullopt where it is known to differ: it ends at a NUL, skips a byte order
/// mark, and refuses numbers that a double cannot represent.
class Verdict final : public nlohmann::json_sax<Json> {
 public:
  static std::optional<bool> on(const std::string& text) {
    if (text.find('\0') != std::string::npos || text.rfind('\xef', 0) == 0) return std::nullopt;
    Verdict verdict;
    const bool accepted = Json::sax_parse(text, &verdict);
    if (verdict.out_of_range_) return std::nullopt;
    return accepted;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    out_of_range_ = error.id == 406;
    return false;
  }

 private:
  bool out_of_range_{false};
};

const std::vector<std::string> kPieces{"{",           "}",           "[",
                                       "]",           ",",           ":",
                                       "\"a\"",       "\"\\u0041\"", "\"\\ud83d\\ude00\"",
                                       "\"\\ud83d\"", "1",           "-0",
                                       "01",          "1.5",         "1e5",
                                       "-",           "true",        "false",
                                       "null",        "tru",         "\"",
                                       "\\",          "\xc3\xa9",    "\"\xc3\xa9\"",
                                       "\xff",        " ",           "\n",
                                       "\x01",        "\"a\":",      "{\"a\":",
                                       "[1,",         "},",          "e",
                                       ".",           "0",           "\"12345678\"",
                                       "\\n",         "\"x\\\"y\"",  "{}",
                                       "[]"};

RC_GTEST_PROP(JsonScan, agrees_with_nlohmann_on_heaps_of_tokens, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces));
  std::string text;
  for (const auto& piece : pieces) text += piece;
  const auto wanted = Verdict::on(text);
  if (wanted) RC_ASSERT(is_json(text) == *wanted);
}

/// A random nested document.
Json document(const std::vector<std::uint8_t>& dice, std::size_t& at, int depth) {
  const auto roll = [&]() -> unsigned { return at < dice.size() ? dice[at++] : 0U; };
  static const std::vector<std::string> texts{"",
                                              "a",
                                              "payload",
                                              "quote\"",
                                              "back\\slash",
                                              "line\nbreak",
                                              "gr\xc3\xbc\xc3\x9f",
                                              "\xf0\x9f\x98\x80",
                                              "a longer text that fills more than one word",
                                              "}",
                                              "]:,"};
  switch (roll() % (depth > 4 ? 5U : 7U)) {
    case 0: return nullptr;
    case 1: return roll() % 2 == 0;
    case 2: return static_cast<int>(roll()) - 100;
    case 3: return static_cast<double>(roll()) / 7.0;
    case 4: return texts[roll() % texts.size()];
    case 5: {
      Json array = Json::array();
      for (unsigned i = roll() % 4U; i > 0; --i) array.push_back(document(dice, at, depth + 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (unsigned i = roll() % 4U; i > 0; --i)
        object[texts[roll() % texts.size()]] = document(dice, at, depth + 1);
      return object;
    }
  }
}

RC_GTEST_PROP(JsonScan, agrees_with_nlohmann_on_documents_with_one_byte_changed,
              (const std::vector<std::uint8_t>& dice)) {
  std::size_t at = 0;
  std::string text = document(dice, at, 0).dump(*rc::gen::inRange(-1, 3));
  RC_ASSERT(is_json(text));
  const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
  text[place] = *rc::gen::arbitrary<char>();
  const auto wanted = Verdict::on(text);
  if (wanted) RC_ASSERT(is_json(text) == *wanted);
}

RC_GTEST_PROP(JsonScan, agrees_with_nlohmann_on_documents_cut_short,
              (const std::vector<std::uint8_t>& dice)) {
  std::size_t at = 0;
  std::string text = document(dice, at, 0).dump();
  text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
  const auto wanted = Verdict::on(text);
  if (wanted) RC_ASSERT(is_json(text) == *wanted);
}

RC_GTEST_PROP(JsonScan, members_are_what_nlohmann_reads,
              (const std::vector<std::uint8_t>& dice, bool ascii)) {
  std::size_t at = 0;
  Json object = Json::object();
  for (const char* name : {"a", "gr\xc3\xbc\xc3\x9f", "quote\"", "z"})
    object[name] = document(dice, at, 0);
  const std::string text = object.dump(*rc::gen::inRange(-1, 3), ' ', ascii);
  Json seen = Json::object();
  const auto fault = for_each_member(text, [&](JsonString name, std::string_view value) {
    RC_ASSERT(value.data() >= text.data() &&
              value.data() + value.size() <= text.data() + text.size());
    RC_ASSERT(std::string_view(" \n").find(value.front()) == std::string_view::npos);
    RC_ASSERT(std::string_view(" \n").find(value.back()) == std::string_view::npos);
    seen[decode_json(name)] = Json::parse(value);
  });
  RC_ASSERT(!fault);
  RC_ASSERT(seen == object);
}

RC_GTEST_PROP(JsonScan, escapes_mean_what_nlohmann_reads, ()) {
  const auto points = *rc::gen::container<std::u32string>(
      rc::gen::suchThat(rc::gen::inRange<char32_t>(0, 0x110000),
                        [](char32_t c) { return c < 0xd800 || c >= 0xe000; }));
  for (const char32_t c : points) {
    std::string escaped = "\"";
    char text[16];
    const auto unit = [&](unsigned u) {
      static_cast<void>(std::snprintf(text, sizeof(text), "\\u%04x", u));
      escaped += text;
    };
    if (c < 0x10000) {
      unit(c);
    } else {
      unit(0xd800U + ((c - 0x10000U) >> 10U));
      unit(0xdc00U + ((c - 0x10000U) & 0x3ffU));
    }
    escaped += '"';
    RC_ASSERT(is_json(escaped));
    const std::string ours = decode_json(JsonString{
        .raw = std::string_view(escaped).substr(1, escaped.size() - 2), .escaped = true});
    RC_ASSERT(ours == Json::parse(escaped).get<std::string>());
  }
}

TEST(JsonScan, members_of_something_else_than_an_object_are_a_fault) {
  const auto ignore = [](JsonString, std::string_view) {};
  EXPECT_FALSE(for_each_member("{}", ignore));
  EXPECT_FALSE(for_each_member(" { } ", ignore));
  for (const char* text :
       {"", "[]", "1", "{", "{}x", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1]"}) {
    EXPECT_TRUE(for_each_member(text, ignore)) << text;
  }
}

}  // namespace
}  // namespace outbox::event
