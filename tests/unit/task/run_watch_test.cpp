// Tests what the run tracker concludes: which runs are lost, which rows have no run, which workers
// are dead.
#include "task/run_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outbox::task {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

EventId id_of(std::uint8_t number) {
  EventId id;
  id.bytes[15] = number;
  return id;
}

sink::KeptRun run(std::uint8_t seq, std::int64_t token) {
  return {.subscription = 1, .seq = seq, .id = id_of(seq), .token = token};
}

store::TaskRunRow row(std::uint8_t seq, std::int64_t token) {
  store::TaskRunRow row;
  row.subscription = 1;
  row.seq = seq;
  row.id = id_of(seq);
  row.token = token;
  return row;
}

class OwnRowsTest : public ::testing::Test {
 protected:
  void compare(const std::vector<EventId>& unkept, const std::vector<sink::KeptRun>& kept,
               const std::vector<store::TaskRunRow>& rows,
               const std::vector<store::TaskRunEnd>& ended = {}) {
    const auto difference = own_.compare(unkept, kept, ended, rows);
    lost_.clear();
    for (const auto& one : difference.lost) lost_.push_back(one.seq);
    runless_.clear();
    for (const auto& one : difference.runless) runless_.push_back(one.seq);
    cancelled_.clear();
    for (const auto& one : difference.cancelled) cancelled_.push_back(one.seq);
  }

  OwnRows own_;
  std::vector<std::int64_t> lost_;
  std::vector<std::int64_t> runless_;
  std::vector<std::int64_t> cancelled_;
};

TEST_F(OwnRowsTest, a_run_whose_row_has_gone_or_has_another_token_is_lost) {
  compare({}, {run(1, 1), run(2, 1), run(3, 1)}, {row(1, 1), row(3, 2)});
  EXPECT_THAT(lost_, ElementsAre(2, 3));
}

TEST_F(OwnRowsTest, a_run_that_a_person_has_cancelled_is_told_as_long_as_it_is_ours) {
  auto ours = row(1, 1);
  auto of_another_token = row(2, 2);
  auto without_a_run = row(3, 1);
  ours.cancelled = of_another_token.cancelled = without_a_run.cancelled = true;
  compare({}, {run(1, 1), run(2, 1), run(4, 1)},
          {ours, of_another_token, without_a_run, row(4, 1)});
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_THAT(lost_, ElementsAre(2));
}

TEST_F(OwnRowsTest, a_row_without_a_run_is_given_back_when_it_is_so_twice) {
  compare({}, {}, {row(1, 1), row(2, 1)});
  EXPECT_THAT(runless_, IsEmpty());
  compare({}, {run(2, 1)}, {row(1, 1), row(2, 1)});
  EXPECT_THAT(runless_, ElementsAre(1));
}

TEST_F(OwnRowsTest, a_row_whose_run_is_not_kept_yet_is_not_given_back) {
  for (int i = 0; i < 3; ++i) compare({id_of(1)}, {}, {row(1, 1)});
  EXPECT_THAT(runless_, IsEmpty());
}

TEST_F(OwnRowsTest, an_end_that_is_not_written_yet_leaves_its_row_alone) {
  const auto end = make_run_end({.run = run(1, 1)}, id_of(99));
  for (int i = 0; i < 3; ++i) compare({}, {}, {row(1, 1)}, {end});
  EXPECT_THAT(runless_, IsEmpty());
}

TEST(HeartbeatsTest, one_whose_heartbeat_stays_the_same_is_silent) {
  Heartbeats others;
  const TimePoint now{seconds(1000)};
  const auto look = [&](std::int64_t beat, int after) {
    const store::OtherWorker other{.id = id_of(1), .beat = beat};
    return others.silent({&other, 1}, now + seconds(after), seconds(10));
  };
  EXPECT_THAT(look(1, 0), IsEmpty());
  EXPECT_THAT(look(1, 19), IsEmpty());
  EXPECT_THAT(look(1, 20), ElementsAre(id_of(1)));
  EXPECT_THAT(look(2, 21), IsEmpty());
  EXPECT_THAT(look(2, 40), IsEmpty());
}

TEST(HeartbeatsTest, one_with_longer_heartbeats_may_be_silent_for_longer) {
  Heartbeats others;
  const TimePoint now{seconds(1000)};
  const store::OtherWorker slow{.id = id_of(1), .beat = 1, .heartbeat = seconds(60)};
  const auto look = [&](int after) {
    return others.silent({&slow, 1}, now + seconds(after), seconds(10));
  };
  EXPECT_THAT(look(0), IsEmpty());
  EXPECT_THAT(look(119), IsEmpty());
  EXPECT_THAT(look(120), ElementsAre(id_of(1)));
}

TEST(HeartbeatsTest, one_that_comes_back_is_watched_anew) {
  Heartbeats others;
  const TimePoint now{seconds(1000)};
  const store::OtherWorker gone{.id = id_of(1), .beat = std::nullopt};
  EXPECT_THAT(others.silent({&gone, 1}, now, seconds(10)), IsEmpty());
  EXPECT_THAT(others.silent({&gone, 1}, now + seconds(20), seconds(10)), ElementsAre(id_of(1)));
  others.forget(id_of(1));
  EXPECT_THAT(others.silent({&gone, 1}, now + seconds(25), seconds(10)), IsEmpty());
}

TEST(EndOfTest, a_run_that_is_given_back_counts_no_attempt_and_one_of_a_dead_worker_does) {
  const store::TaskRunEnd back = make_run_end({.run = run(1, 3)}, id_of(99));
  EXPECT_EQ(back.result.state, store::ParkedState::retrying);
  EXPECT_EQ(back.result.attempts, 0U);
  EXPECT_EQ(back.token, 3);
  store::TaskRunRow left = row(1, 3);
  left.headers = "{}";
  const RetrySchedule schedule({std::chrono::seconds(1)}, 0);
  EXPECT_EQ(end_of_dead(left, id_of(99), schedule).result.attempts, 1U);
  left.attempts = 1;
  EXPECT_EQ(end_of_dead(left, id_of(99), schedule).result.state, store::ParkedState::dead);
}

}  // namespace
}  // namespace outbox::task
