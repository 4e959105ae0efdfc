// Tests when the thread of a run that does not end is replaced.
#include "task/runner_core.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

namespace outbox::task {
namespace {

using std::chrono::seconds;

class RunnerCoreTest : public ::testing::Test {
 protected:
  /// Adds three tasks to a queue with the two slots 0 and 1.
  RunnerCoreTest() {
    auto batch = std::make_shared<Batch>(source_, kBegin);
    EventView event;
    event.event_type = "send";
    event.headers = "{}";
    Message message;
    message.event = &event;
    for (message.token = 1; message.token <= 3; ++message.token)
      batch->add(*type_, message, nullptr);
    core_.add(batch);
    batch_ = batch;
  }
  RunnerCore::Begun begin(std::size_t place, TimePoint now) {
    const auto begun = core_.begin(*core_.slot(place), *batch_, now);
    EXPECT_TRUE(begun);
    return *begun;
  }

  static constexpr TimePoint kBegin{seconds(1000)};
  const Handlers::Handler handler_{.type = "send", .run = {}, .options = {.deadline = seconds(60)}};
  const std::shared_ptr<TaskType> type_ =
      std::make_shared<TaskType>(handler_, RetrySchedule({seconds(1)}, 0));
  int replaced_{0};
  RunnerCore core_{
      "mail",
      {type_},
      {.threads = 2, .deadline_grace = seconds(10), .longest_wait = std::chrono::hours(1)},
      {.wake = [](std::size_t) {},
       .replace = [this](std::size_t, const std::string&) { ++replaced_; }}};
  const Source source_ = core_.add_source("tasks.mail", 2);
  std::shared_ptr<Batch> batch_;
};

TEST_F(RunnerCoreTest, a_thread_that_does_not_return_is_replaced) {
  (void)begin(0, kBegin);
  core_.watch(kBegin + seconds(69));
  EXPECT_EQ(replaced_, 0);
  core_.watch(kBegin + seconds(70));
  EXPECT_EQ(replaced_, 1);
  std::vector<Outcome> outcomes;
  core_.collect(source_, kBegin + seconds(70), outcomes);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Outcome::Kind::rejected);
}

TEST_F(RunnerCoreTest, a_thread_that_has_begun_another_run_meanwhile_is_not) {
  const auto slot = core_.slot(0);
  (void)begin(0, kBegin);
  const auto other = begin(1, kBegin + seconds(10));
  const TimePoint now = kBegin + seconds(70);
  // watch() tells the handler of slot 1 to stop after it has found slot 0 stuck. In the meantime
  // the run of slot 0 ends, and its thread begins another one.
  const std::stop_callback told(other.stop, [&] {
    core_.end(*slot, TaskEnd::done(), now);
    (void)begin(0, now);
  });
  core_.watch(now);
  EXPECT_EQ(replaced_, 0) << "its run is a new one";
  std::vector<Outcome> outcomes;
  core_.collect(source_, now, outcomes);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].token, 1U);
  EXPECT_EQ(outcomes[0].kind, Outcome::Kind::acked);
}

}  // namespace
}  // namespace outbox::task
