// Defaults, file, environment and flags; all problems are reported at once, each with its place.
#include "config/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configuration.hpp"

namespace outbox::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Load, defaults) {
  Configuration empty("");
  const Loaded loaded = empty.loaded();
  EXPECT_EQ(loaded.config.relay.page_rows, 1000U);
  EXPECT_EQ(loaded.config.grace, std::chrono::seconds(10));
  EXPECT_EQ(empty.shown("relay", "lease"), R"("15s" default)");
  EXPECT_THAT(loaded.config.relay.subscriptions, IsEmpty());
}

TEST(Load, flags_override_variables_and_variables_the_file) {
  Configuration file("[relay]\npage = 7\nlease = \"1min\"\nwake_up = false\n");
  EXPECT_EQ(file.shown("relay", "page"), "7 outbox.toml:2");
  EXPECT_EQ(file.loaded().config.relay.lease, std::chrono::minutes(1));
  EXPECT_FALSE(file.loaded().config.relay.wake_up);
  file.set("OUTBOX_RELAY_PAGE", "8");
  EXPECT_EQ(file.shown("relay", "page"), "8 environment OUTBOX_RELAY_PAGE");
  file.request().flags = {{.path = "relay.page", .value = "9", .flag = "--set"}};
  EXPECT_EQ(file.shown("relay", "page"), "9 --set");
}

TEST(Load, an_empty_variable_counts_as_not_set) {
  Configuration file("");
  file.set("OUTBOX_RELAY_PAGE", "");
  EXPECT_EQ(file.shown("relay", "page"), "1000 default");
}

TEST(Load, a_variable_names_the_file) {
  Configuration file("[relay]\npage = 7\n");
  file.set("OUTBOX_CONFIG", *std::exchange(file.request().file, std::nullopt));
  EXPECT_EQ(file.shown("relay", "page"), "7 outbox.toml:2");
}

TEST(Load, a_variable_that_looks_like_a_setting_is_a_warning) {
  Configuration file("");
  file.set("OUTBOX_RELAY_PAEG", "8");
  EXPECT_THAT(
      file.loaded().warnings,
      ElementsAre("environment variable OUTBOX_RELAY_PAEG is not a setting (hint: did you mean "
                  "OUTBOX_RELAY_PAGE?)"));
}

TEST(Load, unknown_names_come_with_the_nearest_known_one) {
  EXPECT_THAT(Configuration("[relay]\npaeg = 5\n").problems(),
              ElementsAre("2 unknown setting relay.paeg (did you mean relay.page?)"));
  EXPECT_THAT(Configuration("[realy]\npage = 5\n").problems(),
              ElementsAre("1 unknown section realy (did you mean relay?)"));
  EXPECT_THAT(Configuration("page = 5\n").problems(),
              ElementsAre("1 unknown setting page (did you mean relay.page?)"));
  EXPECT_THAT(
      Configuration("[relay]\nbogosity = 5\n").problems(),
      ElementsAre(
          "2 unknown setting relay.bogosity (`outbox config reference` lists all settings)"));
}

TEST(Load, the_names_of_groups_are_checked) {
  EXPECT_THAT(Configuration("[relay]\ngroups = [\"heavy\", \"custom:mails\"]\n").problems(),
              IsEmpty());
  EXPECT_THAT(Configuration("[relay]\ngroups = [\"a b\"]\n").problems(),
              ElementsAre(HasSubstr("2 relay.groups: 'a b' is no name of a group")));
}

TEST(Load, all_problems_are_found_at_once) {
  Configuration file("[relay]\npaeg = 5\nlease = 15\npage = \"x\"\n[log]\nlevel = \"infos\"\n",
                     {{.path = "relay.grace", .value = "10", .flag = "--set"}});
  file.set("OUTBOX_RELAY_SETTLE_EVENTS", "0");
  EXPECT_THAT(file.problems(),
              ElementsAre(StartsWith("2 unknown setting relay.paeg"), StartsWith("3 relay.lease:"),
                          StartsWith("4 relay.page:"), StartsWith("6 log.level:"),
                          StartsWith("0 relay.settle_events:"), StartsWith("0 relay.grace:")));
}

TEST(Load, a_problem_says_what_was_found_where) {
  Configuration file("[relay]\nlease = 15\n",
                     {{.path = "relay.page", .value = "x", .flag = "--set"}});
  const auto all = load(file.request());
  ASSERT_FALSE(all);
  EXPECT_THAT(
      all.error()[0].text(),
      HasSubstr("expected a duration such as \"15s\" from 1s to 10min, found an integer 15: "));
  EXPECT_THAT(all.error()[0].text(),
              HasSubstr("outbox.toml:2:9 (hint: a duration needs a unit: lease = \"15s\")"));
  EXPECT_EQ(all.error()[1].where, "--set");
  EXPECT_EQ(all.error()[1].path, "relay.page");
  EXPECT_EQ(all.error()[1].hint, "write --set relay.page=1000");
}

TEST(Load, values_that_do_not_go_together) {
  EXPECT_THAT(Configuration("[relay]\npage = 500\nwindow_events = 100\n").problems(),
              ElementsAre(HasSubstr("the window (100 events) is smaller than a page (500)")));
}

TEST(Load, a_missing_store_is_a_problem_only_for_a_thorough_check) {
  Configuration file("[relay]\npage = 5\n");
  EXPECT_THAT(file.problems(), IsEmpty());
  file.request().thorough = true;
  EXPECT_THAT(file.problems(), ElementsAre(StartsWith("0 store.url: is not set")));
}

TEST(Load, relative_paths_count_from_the_folder_of_the_file) {
  Configuration file("[store]\nurl = \"sqlite:shop.db\"\n");
  EXPECT_EQ(file.loaded().config.relay.store_url, "sqlite:" + file.path("shop.db"));
}

TEST(Load, a_file_that_cannot_be_read) {
  Configuration file("");
  file.request().file = file.path("nope.toml");
  EXPECT_THAT(file.problems(), ElementsAre(HasSubstr("No such file")));
}

}  // namespace
}  // namespace outbox::config
