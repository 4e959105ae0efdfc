#include "base/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace outbox {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"aggregate_type", "aggregate_id", "event_type",
                                                 "id"};

TEST(Nearest, finds_the_word_that_was_meant) {
  EXPECT_EQ(nearest("agregate_type", kKnown), "aggregate_type");
  EXPECT_EQ(nearest("aggregate_di", kKnown), "aggregate_id");
  EXPECT_EQ(nearest("EventType", kKnown), "event_type");
  EXPECT_EQ(nearest("event_type", kKnown), "event_type");
  EXPECT_EQ(nearest("di", kKnown), "id");
}

TEST(Nearest, says_nothing_rather_than_mislead) {
  EXPECT_EQ(nearest("payload", kKnown), std::nullopt);
  EXPECT_EQ(nearest("", kKnown), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), kKnown), std::nullopt);
}

TEST(DidYouMean, names_the_nearest_or_what_is_known) {
  EXPECT_EQ(did_you_mean("agregate_type", kKnown), "did you mean aggregate_type?");
  EXPECT_EQ(did_you_mean("payload", kKnown),
            "known are aggregate_type, aggregate_id, event_type, id");
  EXPECT_EQ(did_you_mean("payload", kKnown, "see --help"), "see --help");
}

TEST(Text, trims_spaces_and_tabs_at_both_ends_only) {
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, hexadecimal_digits) {
  std::string out = "0x";
  append_hex(out, '\xaf');
  append_hex(out, '\x0b', kUpperHexDigits);
  EXPECT_EQ(out, "0xaf0B");
  EXPECT_EQ(hex_value('9'), 9);
  EXPECT_EQ(hex_value('a'), 10);
  EXPECT_EQ(hex_value('F'), 15);
  for (const char c : std::string_view("g/:@G`\xe1")) EXPECT_EQ(hex_value(c), -1) << c;
}

TEST(Text, commas_group_digits) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1234), "-1,234");
}

TEST(Text, quotes_are_one_short_printable_line) {
  EXPECT_EQ(in_quotes("a b"), "'a b'");
  EXPECT_EQ(in_quotes("a\n\xff"), "'a\\x0a\\xff'");
  EXPECT_EQ(in_quotes(std::string(65, 'x')), "'" + std::string(64, 'x') + "...'");
}

TEST(Text, control_characters_of_ascii_and_latin_1) {
  for (const char* with : {"\n", "a\x7f", "a\xc2\x85z", "\x1b["}) EXPECT_TRUE(has_control(with));
  for (const char* without : {"", "a b", "\xc2\xa0", "\xc3\x85", "\xe2\x80\xa8"})
    EXPECT_FALSE(has_control(without));
}

}  // namespace
}  // namespace outbox
