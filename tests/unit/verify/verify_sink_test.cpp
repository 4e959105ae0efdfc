// Tests what counts as missing in a destination that removes messages by itself, and in topics that
// may be somebody else's.
#include "verify/verify_sink.hpp"

#include <gtest/gtest.h>

namespace outbox::verify {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

SinkFound found(std::int64_t missing, std::int64_t removed, std::int64_t young) {
  SinkFound made;
  made.ids.missing = missing;
  made.ids.young_missing = young;
  made.removed = removed;
  return made;
}

TEST(CountLost, all_that_is_missing_and_was_not_filtered) {
  SinkFound sink = found(7, 0, 7);
  EXPECT_EQ(count_lost(sink, 5), 2);
  EXPECT_EQ(sink.uncompared, 0);
  EXPECT_EQ(count_lost(sink, 9), 0);
  EXPECT_EQ(sink.uncompared, 0);
}

TEST(CountLost, what_may_have_been_removed_is_not_lost_for_certain) {
  SinkFound sink = found(7, 100, 0);
  EXPECT_EQ(count_lost(sink, 0), 0);
  EXPECT_EQ(sink.uncompared, 7);
}

TEST(CountLost, no_more_can_be_among_the_removed_than_were_removed) {
  SinkFound sink = found(7, 3, 0);
  EXPECT_EQ(count_lost(sink, 1), 3);
  EXPECT_EQ(sink.uncompared, 3);
}

TEST(CountLost, what_was_created_later_is_not_among_the_removed) {
  SinkFound sink = found(7, 100, 2);
  EXPECT_EQ(count_lost(sink, 0), 2);
  EXPECT_EQ(sink.uncompared, 5);
  EXPECT_EQ(count_lost(sink, 1), 1) << "one of the young ones may have been filtered";
}

TEST(YoungFrom, is_an_hour_after_the_last_that_was_removed) {
  SinkFound sink;
  EXPECT_EQ(young_from(sink), 0);
  sink.removed = 1;
  sink.removed_before_us = 50'000 * kSecond;
  EXPECT_EQ(young_from(sink), 53'600);
}

/// The first topic has two messages of this log, the second one has three ghosts.
IdCompare::Found two_parts() {
  IdCompare::Found ids;
  ids.in_sink = 5;
  ids.ghosts = 3;
  ids.parts.resize(2);
  ids.parts[0] = {.messages = 2, .known = 2};
  ids.parts[1] = {.messages = 3};
  ids.ghosts_by_parts[{1}] = {.count = 3, .some = {EventId::generate()}};
  return ids;
}

TEST(SumParts, a_topic_found_by_name_without_a_message_of_this_log_is_anothers) {
  const sink::ReadParts parts{{.name = "order.events", .certain = false, .without_id = 1},
                              {.name = "bill.events",
                               .certain = false,
                               .removed = 9,
                               .removed_before_us = 9,
                               .without_id = 4}};
  const SinkFound sink = sum_parts(two_parts(), parts, true);
  EXPECT_EQ(sink.others, std::vector<std::string>{"bill.events"});
  EXPECT_EQ(sink.ids.in_sink, 2);
  EXPECT_EQ(sink.ids.ghosts, 0);
  EXPECT_TRUE(sink.ids.some_ghosts.empty());
  EXPECT_EQ(sink.removed, 0);
  EXPECT_EQ(sink.without_id, 1);
}

TEST(SumParts, a_ghost_that_is_also_in_a_topic_of_ours_is_a_ghost) {
  IdCompare::Found ids = two_parts();
  ids.in_sink = 6;
  ids.parts[0].messages = 3;
  ids.ghosts_by_parts.clear();
  ids.ghosts_by_parts[{1}] = {.count = 2, .some = {}};
  ids.ghosts_by_parts[{0, 1}] = {.count = 1, .some = {EventId::generate()}};
  const sink::ReadParts parts{{.name = "order.events", .certain = false},
                              {.name = "bill.events", .certain = false}};
  const SinkFound sink = sum_parts(std::move(ids), parts, true);
  EXPECT_EQ(sink.others, std::vector<std::string>{"bill.events"});
  EXPECT_EQ(sink.ids.in_sink, 3);
  EXPECT_EQ(sink.ids.ghosts, 1);
  EXPECT_EQ(sink.ids.some_ghosts.size(), 1U);
}

TEST(SumParts, in_a_topic_of_its_own_a_ghost_is_a_ghost) {
  const sink::ReadParts parts{{.name = "a"}, {.name = "b", .removed = 9, .removed_before_us = 8}};
  const SinkFound sink = sum_parts(two_parts(), parts, true);
  EXPECT_TRUE(sink.others.empty());
  EXPECT_EQ(sink.ids.ghosts, 3);
  EXPECT_EQ(sink.ids.some_ghosts.size(), 1U);
  EXPECT_EQ(sink.removed, 9);
  EXPECT_EQ(sink.removed_before_us, 8);
}

TEST(SumParts, an_empty_topic_may_be_ours_and_all_of_it_removed) {
  IdCompare::Found ids;
  const sink::ReadParts parts{
      {.name = "order.events", .certain = false, .removed = 9, .removed_before_us = 8}};
  const SinkFound sink = sum_parts(std::move(ids), parts, true);
  EXPECT_TRUE(sink.others.empty());
  EXPECT_EQ(sink.removed, 9);
}

TEST(SumParts, when_the_log_was_pruned_ids_that_it_has_not_say_nothing) {
  const sink::ReadParts parts{{.name = "order.events", .certain = false},
                              {.name = "old.events", .certain = false, .removed = 9}};
  const SinkFound sink = sum_parts(two_parts(), parts, false);
  EXPECT_TRUE(sink.others.empty());
  EXPECT_EQ(sink.ids.ghosts, 0);
  EXPECT_EQ(sink.removed, 9);
}

}  // namespace
}  // namespace outbox::verify
