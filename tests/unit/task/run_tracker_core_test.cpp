// Tests what a stop of the run tracker waits for.
#include "task/run_tracker_core.hpp"

#include <gtest/gtest.h>

namespace outbox::task {
namespace {

using std::chrono::seconds;

TEST(RunTrackerCore, a_stop_is_looked_at_at_once) {
  RunTrackerCore core(EventId::generate(),
                      {.retries = RetrySchedule({std::chrono::seconds(1)}, 0)});
  core.start();
  const TimePoint now{seconds(1000)};
  core.begin_round(now);
  EXPECT_FALSE(core.is_over(nullptr, now));
  core.stop(now + seconds(10));
  EXPECT_EQ(core.next_at(now, std::nullopt), now);
  EXPECT_TRUE(core.is_over(nullptr, now)) << "nothing runs, and nothing is to be written";
}

}  // namespace
}  // namespace outbox::task
