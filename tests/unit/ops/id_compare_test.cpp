// Ids of the log against ids of a destination.
#include "ops/id_compare.hpp"

#include <gtest/gtest.h>

namespace outbox::ops {
namespace {

using Side = IdCompare::Side;

TEST(IdCompare, says_what_is_missing_foreign_and_double) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  std::vector<EventId> events;
  for (int i = 0; i < 1000; ++i) events.push_back(EventId::generate());
  const EventId ghost = EventId::generate();
  for (std::size_t i = 0; i < events.size(); ++i) {
    ids->add(events[i], i < 900 ? Side::settled : Side::pending);
    if (i == 7) continue;                          // lost
    if (i < 950) ids->add(events[i], Side::sink);  // 50 of those that are not settled are there
  }
  ids->add(events[3], Side::sink);
  ids->add(ghost, Side::sink);
  const auto found = ids->compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_sink, 951);
  EXPECT_EQ(found->duplicates, 1);
  EXPECT_EQ(found->unsettled, 50);
  EXPECT_EQ(found->ghosts, 1);
  EXPECT_EQ(found->some_ghosts, std::vector{ghost});
  EXPECT_EQ(found->missing, 1);
  EXPECT_EQ(found->some_missing, std::vector{events[7]});
}

TEST(IdCompare, what_was_set_aside_need_not_be_there) {
  auto ids = IdCompare::create();
  ASSERT_TRUE(ids);
  const EventId parked = EventId::generate();
  ids->add(parked, Side::settled);
  ids->add(parked, Side::aside);
  const auto found = ids->compare();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->missing, 0);
}

}  // namespace
}  // namespace outbox::ops
