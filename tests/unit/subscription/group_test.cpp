// Which relays deliver a subscription.
#include "subscription/group.hpp"

#include <gtest/gtest.h>

#include "subscription/spec.hpp"

namespace outbox::subscription {
namespace {

SubscriptionSpec spec(const std::string& sink, const std::string& group = {}) {
  SubscriptionSpec spec;
  spec.name = "mails";
  spec.sink = sink;
  spec.group = group;
  return spec;
}

TEST(Group, follows_from_sink_and_setting) {
  EXPECT_EQ(choose_group(spec("kafka")), "default");
  EXPECT_EQ(choose_group(spec("kafka", "heavy")), "heavy");
  EXPECT_EQ(choose_group(spec("custom")), "custom:mails");
  EXPECT_EQ(choose_group(spec("file")), "file:mails");
  EXPECT_TRUE(has_one_owner("file:mails"));
  EXPECT_FALSE(has_one_owner("custom:mails"));
}

TEST(Group, of_a_file_stays_when_its_name_changes) {
  EXPECT_EQ(choose_group(spec("file"), "file:orders"), "file:orders");
  EXPECT_EQ(choose_group(spec("file"), "default"), "file:mails");
  EXPECT_EQ(choose_group(spec("kafka"), "file:orders"), "default");
  EXPECT_EQ(choose_group(spec("custom"), "custom:orders"), "custom:mails");
}

TEST(Group, all_groups_are_not_those_of_sinks_that_only_an_application_has) {
  const std::vector<std::string> all{"*"};
  EXPECT_TRUE(serves(all, "default"));
  EXPECT_TRUE(serves(all, "file:mails"));
  EXPECT_FALSE(serves(all, "custom:mails"));
  const std::vector<std::string> some{"heavy", "custom:mails"};
  EXPECT_TRUE(serves(some, "custom:mails"));
  EXPECT_TRUE(serves(some, "heavy"));
  EXPECT_FALSE(serves(some, "default"));
}

TEST(Group, names_are_kept_as_one_text) {
  const std::vector<std::string> groups{"*", "custom:mails"};
  EXPECT_EQ(join_groups(groups), "*,custom:mails");
  EXPECT_EQ(split_groups("*,custom:mails"), groups);
  EXPECT_TRUE(split_groups("").empty());
}

TEST(Group, a_bad_one_is_refused_with_a_hint) {
  EXPECT_TRUE(validate(spec("kafka", "heavy-1")));
  for (const char* bad : {"a b", "a,b", "*", "a:b"})
    EXPECT_FALSE(validate(spec("kafka", bad))) << bad;
  EXPECT_FALSE(validate(spec("kafka", std::string(64, 'x'))));
  for (const char* sink : {"custom", "file"}) {
    const Status refused = validate(spec(sink, "heavy"));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text().find("a group of its own"), std::string::npos);
  }
  EXPECT_TRUE(is_group_name("custom:mails"));
  EXPECT_FALSE(is_group_name("custom:"));
  EXPECT_FALSE(is_group_name("a,b"));
}

}  // namespace
}  // namespace outbox::subscription
