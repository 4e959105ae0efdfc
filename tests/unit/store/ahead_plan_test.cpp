#include "store/postgres/ahead_plan.hpp"

#include <gtest/gtest.h>

namespace outbox::store::postgres {
namespace {

constexpr std::int64_t kStretch = AheadPlan::kStretch;
constexpr std::int64_t kEnd = 1000 * kStretch;

TEST(AheadPlan, a_small_backlog_is_left_to_the_reader) {
  AheadPlan plan;
  EXPECT_EQ(plan.next(100, 100 + kStretch - 1), std::nullopt);
}

TEST(AheadPlan, a_cold_backlog_is_read_in_one_piece_and_not_too_far_ahead) {
  AheadPlan plan;
  std::int64_t reached = 500;
  while (const auto range = plan.next(500, kEnd)) {
    EXPECT_EQ(*range, (AheadRange{.from = reached, .to = reached + kStretch}));
    reached = range->to;
    plan.found(true);
  }
  EXPECT_EQ(reached, 500 + AheadPlan::kFar);
  // The next stretch is read as soon as the reader has moved on.
  EXPECT_EQ(plan.next(500 + kStretch, kEnd),
            (AheadRange{.from = reached, .to = reached + kStretch}));
}

TEST(AheadPlan, what_the_reader_has_passed_is_not_read_any_more) {
  AheadPlan plan;
  (void)plan.next(0, kEnd);
  EXPECT_EQ(plan.next(10 * kStretch, kEnd)->from, 10 * kStretch);
}

TEST(AheadPlan, of_a_warm_backlog_ever_less_is_looked_at) {
  AheadPlan plan;
  std::int64_t looks = 0;
  for (std::int64_t position = 0; position < kEnd; position += 1000) {
    if (!plan.next(position, kEnd)) continue;
    ++looks;
    plan.found(false);
  }
  EXPECT_LE(looks, 20);
  EXPECT_GE(looks, 3);
}

TEST(AheadPlan, where_it_gets_cold_every_stretch_is_read_again) {
  AheadPlan plan;
  (void)plan.next(0, kEnd);
  plan.found(false);
  const auto cold = plan.next(kStretch, kEnd);
  ASSERT_TRUE(cold);
  plan.found(true);
  EXPECT_EQ(plan.next(kStretch, kEnd)->from, cold->to);
}

TEST(AheadPlan, a_strand_further_back_is_followed) {
  AheadPlan plan;
  (void)plan.next(900 * kStretch, kEnd);
  EXPECT_EQ(plan.next(0, kEnd)->from, 0);
}

}  // namespace
}  // namespace outbox::store::postgres
