// Limits and errors of the TOML text itself.
#include "config/toml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outbox::config {
namespace {

using ::testing::HasSubstr;

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string complaint(const std::string& toml) {
  const auto parsed = parse_toml(toml, "x.toml");
  return parsed ? "" : parsed.error().text();
}

TEST(Toml, a_key_of_many_parts_is_refused_and_not_followed) {
  for (const std::string& key : {repeated("a.", 20'000) + "a", repeated("\"a\".", 20'000) + "a",
                                 repeated("'a' . ", 40) + "a"}) {
    for (const std::string& toml :
         {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n", "x = { " + key + " = 1 }\n"}) {
      EXPECT_THAT(complaint("# one.two\n" + toml),
                  HasSubstr("a key has more than 32 parts: x.toml:2:"));
    }
  }
}

TEST(Toml, deep_arrays_and_tables_are_refused) {
  for (const std::string& toml : {"x = " + repeated("[", 20'000) + repeated("]", 20'000) + "\n",
                                  "x = " + repeated("{ a = ", 20'000) + "1\n",
                                  "x = " + repeated("[{ a.b = ", 5'000) + "1\n"}) {
    EXPECT_THAT(complaint(toml), HasSubstr("nested more than 16 deep: x.toml:1:"));
  }
}

TEST(Toml, dots_elsewhere_are_no_parts_of_a_key) {
  const std::string dots = repeated("x.", 100);
  const std::vector<std::string> texts{"a = \"" + dots + "\"\n",
                                       "a = '" + dots + "'\n",
                                       "a = \"\"\"\n" + dots + "\n\"\" \"\"\"\n",
                                       "a = '''" + dots + "'''\n",
                                       "# " + dots + "\na = 1\n",
                                       "a = 1 # " + dots + "\n",
                                       "a = [ 1.5, 2.5, " + repeated("3.5, ", 100) + "]\n",
                                       "a = \"\\\"" + dots + "\"\n",
                                       "a.b.c.d = { e.f = 1.5 }\n",
                                       "\"" + dots + "\" = 1\n"};
  for (const std::string& toml : texts) {
    EXPECT_EQ(complaint(toml), "") << toml;
  }
}

TEST(Toml, members_come_in_the_order_of_the_file) {
  auto parsed = parse_toml("z = 1\n[b]\ny = 2\nx = 3\n[a]\n", "x.toml");
  ASSERT_TRUE(parsed);
  std::vector<std::string> keys;
  for (const Member& member : members(*parsed)) {
    keys.push_back(member.key);
    if (!member.value->is_table()) continue;
    for (const Member& inner : members(*member.value->as_table())) keys.push_back(inner.key);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"z", "b", "y", "x", "a"}));
}

TEST(Toml, a_syntax_error_has_its_place) {
  EXPECT_THAT(complaint("a = 1\na = 2\n"), HasSubstr("not valid TOML"));
  EXPECT_THAT(complaint("a = 1\na = 2\n"), HasSubstr("x.toml:2:"));
}

}  // namespace
}  // namespace outbox::config
