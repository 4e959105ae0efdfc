#include "subscription/replay_filter.hpp"

#include <gtest/gtest.h>

#include "event/time_text.hpp"

namespace outbox::subscription {
namespace {

EventView view(std::string_view type, std::string_view key, std::int64_t created_us = 100) {
  return {.aggregate_type = "order",
          .aggregate_id = key,
          .event_type = type,
          .payload = {},
          .content_type = {},
          .headers = R"({"tenant": "acme"})",
          .created_at = event::timestamp(created_us)};
}

TEST(ReplayFilter, what_is_not_given_does_not_matter) {
  EXPECT_TRUE(ReplayFilter(ReplayChoice{}).matches(view("Placed", "42")));
}

TEST(ReplayFilter, each_part_restricts) {
  EXPECT_TRUE(ReplayFilter({.event_types = {"Pl*"}}).matches(view("Placed", "42")));
  EXPECT_FALSE(ReplayFilter({.event_types = {"Pl*"}}).matches(view("Paid", "42")));
  EXPECT_FALSE(ReplayFilter({.aggregate_types = {"invoice"}}).matches(view("Placed", "42")));
  EXPECT_TRUE(ReplayFilter({.match_headers = {{"Tenant", "acme"}}}).matches(view("Placed", "42")));
  EXPECT_FALSE(ReplayFilter({.match_headers = {{"tenant", "b"}}}).matches(view("Placed", "42")));
  const ReplayFilter key({.aggregate_type = "order", .aggregate_id = "42"});
  EXPECT_TRUE(key.matches(view("Placed", "42")));
  EXPECT_FALSE(key.matches(view("Placed", "43")));
  EventView event = view("Placed", "42");
  event.id = EventId::generate();
  EXPECT_TRUE(ReplayFilter({.ids = {event.id}}).matches(event));
  EXPECT_FALSE(ReplayFilter({.ids = {EventId::generate()}}).matches(event));
}

TEST(ReplayFilter, times_are_from_and_before) {
  const ReplayFilter filter({.since_us = 100, .until_us = 200});
  EXPECT_FALSE(filter.matches(view("Placed", "42", 99)));
  EXPECT_TRUE(filter.matches(view("Placed", "42", 100)));
  EXPECT_TRUE(filter.matches(view("Placed", "42", 199)));
  EXPECT_FALSE(filter.matches(view("Placed", "42", 200)));
}

TEST(ReplayFilter, it_is_stored_whole) {
  const ReplayChoice all{.event_types = {"A", "b*"},
                         .aggregate_types = {"order"},
                         .match_headers = {{"tenant", "a\"cme"}},
                         .aggregate_type = "order",
                         .aggregate_id = "42",
                         .ids = {EventId::generate(), EventId::generate()},
                         .since_us = -5,
                         .until_us = 7};
  EXPECT_EQ(replay_choice_from_json(to_json(all)).value(), all);
  EXPECT_EQ(to_json(ReplayChoice{}), "{}");
  EXPECT_EQ(replay_choice_from_json("{}").value(), ReplayChoice{});
}

TEST(ReplayFilter, what_cannot_be_read_is_refused) {
  for (const char* text :
       {"", "[]x", "{", R"({"event_types": 3})", R"({"ids": ["x"]})", R"({"key": ["order"]})"})
    EXPECT_FALSE(replay_choice_from_json(text)) << text;
}

}  // namespace
}  // namespace outbox::subscription
