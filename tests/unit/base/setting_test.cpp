// How text becomes the value of a setting, and what is said when it cannot.
#include "base/setting.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace outbox {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

const Setting kPage{
    .name = "relay.page", .type = SettingType::count, .help = "", .least = 1, .most = 10000};
const Setting kLease{.name = "relay.lease",
                     .type = SettingType::duration,
                     .help = "",
                     .least = 1000,
                     .most = 600'000};
const Setting kBytes{
    .name = "relay.bytes", .type = SettingType::size, .help = "", .least = 1024, .most = 1U << 30U};
const Setting kLevel{.name = "log.level",
                     .type = SettingType::choice,
                     .help = "",
                     .choices = {"debug", "info", "warn"}};

/// What is wrong, as "message (hint: ...)"; empty if the value was assigned.
template <class Value>
std::string wrong(const Setting& setting, const std::string& text, Value value = {},
                  const std::string& writing = {}) {
  const Status status = assign(setting, &value, text, writing);
  return status ? "" : status.error().text();
}

template <class Value>
Value assigned(const Setting& setting, const std::string& text) {
  Value value{};
  EXPECT_TRUE(assign(setting, &value, text)) << text;
  return value;
}

TEST(Setting, takes_what_fits) {
  EXPECT_EQ(assigned<std::size_t>(kPage, "500"), 500U);
  EXPECT_EQ(assigned<milliseconds>(kLease, "15s"), milliseconds(15'000));
  EXPECT_EQ(
      assigned<microseconds>({.name = "x", .type = SettingType::duration, .help = ""}, "250us"),
      microseconds(250));
  EXPECT_EQ(assigned<std::size_t>(kBytes, "16MiB"), 16U << 20U);
  EXPECT_EQ(assigned<std::size_t>(kBytes, "2048"), 2048U);
  EXPECT_EQ(assigned<std::string>(kLevel, "warn"), "warn");
  EXPECT_EQ(assigned<bool>({.name = "x", .type = SettingType::boolean, .help = ""}, "true"), true);
  EXPECT_EQ(assigned<std::vector<std::string>>({.name = "x", .type = SettingType::list, .help = ""},
                                               "a,,b"),
            (std::vector<std::string>{"a", "", "b"}));
}

TEST(Setting, says_what_was_expected_and_found) {
  EXPECT_EQ(wrong<std::size_t>(kPage, "many", 1000),
            "expected an integer from 1 to 10000, found \"many\" (hint: write page = 1000)");
  EXPECT_EQ(wrong<std::size_t>(kPage, "0"),
            "expected an integer from 1 to 10000, found 0 (hint: choose a value from 1 to 10000)");
  EXPECT_EQ(
      wrong<std::size_t>(kBytes, "1B"),
      "expected a size such as \"16MiB\" from 1KiB to 1GiB, found \"1B\" (hint: choose a value from 1KiB to 1GiB)");
  EXPECT_EQ(wrong<std::string>(kLevel, "inof"),
            "expected one of debug | info | warn, found \"inof\" (hint: did you mean \"info\"?)");
  EXPECT_EQ(wrong<milliseconds>(kLease, "1ms").substr(0, 70),
            "expected a duration such as \"15s\" from 1s to 10min, found \"1ms\" (hint:");
  EXPECT_NE(wrong<milliseconds>(kLease, "1500001us").find("the shortest unit is ms"),
            std::string::npos);
  EXPECT_NE(wrong<bool>({.name = "x.wake", .type = SettingType::boolean, .help = ""}, "yes")
                .find("write wake = true or false"),
            std::string::npos);
}

TEST(Setting, a_number_gets_the_units_that_make_it_fit) {
  EXPECT_NE(wrong<milliseconds>(kLease, "15").find("lease = \"15s\")"), std::string::npos);
  EXPECT_NE(wrong<milliseconds>(kLease, "5").find("lease = \"5s\" or \"5min\")"),
            std::string::npos);
}

TEST(Setting, a_hint_is_written_as_the_value_was) {
  EXPECT_NE(wrong<std::size_t>(kPage, "x", 1000, "OUTBOX_RELAY_PAGE=")
                .find("write OUTBOX_RELAY_PAGE=1000)"),
            std::string::npos);
  EXPECT_NE(
      wrong<milliseconds>(kLease, "15", {}, "--set relay.lease=").find("--set relay.lease=15s)"),
      std::string::npos);
}

TEST(Setting, a_refused_value_changes_nothing) {
  std::size_t page = 7;
  EXPECT_FALSE(assign(kPage, &page, "0"));
  EXPECT_EQ(page, 7U);
}

TEST(Setting, paths_and_required_texts) {
  const Setting path{
      .name = "path", .type = SettingType::path, .help = "The file.", .required = true};
  EXPECT_EQ(wrong<std::string>(path, ""), "is empty (hint: The file.)");
  EXPECT_NE(wrong<std::string>(path, "~/x").find("begins with ~"), std::string::npos);
}

TEST(Setting, a_secret_is_not_quoted) {
  const Setting secret{
      .name = "x.url", .type = SettingType::choice, .help = "", .choices = {"a"}, .secret = true};
  EXPECT_EQ(wrong<std::string>(secret, "hush").find("hush"), std::string::npos);
}

TEST(Setting, values_as_toml_and_json) {
  std::size_t bytes = 16U << 20U;
  EXPECT_EQ(toml_text(kBytes, &bytes), "\"16MiB\"");
  std::map<std::string, std::string> table{{"a", "x\"y"}, {"b", "\n"}};
  const Setting headers{.name = "headers", .type = SettingType::table, .help = ""};
  EXPECT_EQ(toml_text(headers, &table), R"({"a" = "x\"y", "b" = "\u000A"})");
  EXPECT_EQ(to_json(headers, &table).dump(), R"({"a":"x\"y","b":"\n"})");
  std::vector<std::string> list{"a", "b"};
  EXPECT_EQ(toml_text({.name = "l", .type = SettingType::list, .help = ""}, &list),
            R"(["a", "b"])");
}

}  // namespace
}  // namespace outbox
