// Tests how rows of the history are added up, and what percentiles follow from their buckets.
#include "history/figures.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace outbox::history {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

store::HistoryPoint make_point(const std::string& subscription, std::int64_t at_us,
                               std::int64_t delivered, std::int64_t pending,
                               std::vector<std::int64_t> latency, const std::string& type = {}) {
  store::HistoryPoint point{.subscription = subscription, .at_us = at_us};
  point.row.type = type;
  point.row.delivered = delivered;
  point.row.pending = pending;
  point.row.oldest_us = pending * 10;
  point.row.latency = std::move(latency);
  return point;
}

TEST(Figures, points_become_lines_with_sums) {
  const auto lines = add_up(
      {make_point("mails", 60, 1, 9, {}), make_point("orders", 60, 2, 3, {1, 1}),
       make_point("orders", 120, 5, 1, {0, 2, 3}), make_point("task.mail", 60, 4, 0, {4}, "note")});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].subscription, "mails");
  const Line& orders = lines[1];
  EXPECT_EQ(orders.sum.delivered, 7);
  EXPECT_EQ(orders.sum.pending, 3) << "the most, not the sum";
  EXPECT_EQ(orders.sum.oldest_us, 30);
  EXPECT_EQ(orders.sum.latency.counts[0], 1U);
  EXPECT_EQ(orders.sum.latency.counts[1], 3U);
  EXPECT_EQ(orders.sum.latency.count(), 7U);
  ASSERT_EQ(orders.points.size(), 2U);
  EXPECT_EQ(orders.points[1].at_us, 120);
  EXPECT_EQ(orders.points[1].figures.delivered, 5);
  EXPECT_EQ(lines[2].type, "note");
}

TEST(Figures, more_buckets_than_are_known_are_left_out) {
  Figures figures;
  figures.add({.latency = std::vector<std::int64_t>(100, 1)});
  EXPECT_EQ(figures.latency.count(), figures.latency.counts.size());
}

TEST(Figures, a_time_has_at_most_120_steps_of_whole_intervals) {
  const microseconds interval = minutes(1);
  EXPECT_EQ(choose_step(seconds(1), interval), interval);
  EXPECT_EQ(choose_step(hours(1), interval), interval);
  EXPECT_EQ(choose_step(hours(2), interval), 2 * interval);
  for (const microseconds since : {microseconds(hours(1)), microseconds(hours(2)),
                                   microseconds(hours(24)), microseconds(hours(24 * 14))}) {
    const microseconds step = choose_step(since, interval);
    EXPECT_EQ(step % interval, microseconds(0));
    // However it lies, it touches one step more than it is long.
    EXPECT_LE((since + step - microseconds(1)) / step + 1, kMostPoints) << since.count();
  }
}

TEST(Percentile, it_lies_in_a_straight_line_within_its_bucket) {
  DurationHistogram histogram;
  EXPECT_FALSE(percentile(histogram, 0.5));
  histogram.counts[DurationHistogram::bucket(0.2)] = 100;  // more than 100 ms, at most 250 ms
  EXPECT_NEAR(percentile(histogram, 0.5).value(), 0.175, 1e-9);
  EXPECT_NEAR(percentile(histogram, 0.99).value(), 0.2485, 1e-9);
  histogram.counts[DurationHistogram::bucket(4)] = 100;
  EXPECT_NEAR(percentile(histogram, 0.5).value(), 0.25, 1e-9);
  EXPECT_NEAR(percentile(histogram, 0.75).value(), 3.75, 1e-9);
}

TEST(Percentile, what_is_longer_than_all_bounds_counts_as_the_last_one) {
  DurationHistogram histogram;
  histogram.counts.back() = 3;
  EXPECT_EQ(percentile(histogram, 0.5).value(), 3600);
}

TEST(Percentile, of_one_it_is_the_bound_of_its_bucket) {
  DurationHistogram histogram;
  histogram.add(std::chrono::milliseconds(7));
  EXPECT_NEAR(percentile(histogram, 0.5).value(), 0.01, 1e-9);
  EXPECT_NEAR(percentile(histogram, 0.99).value(), 0.01, 1e-9);
}

}  // namespace
}  // namespace outbox::history
