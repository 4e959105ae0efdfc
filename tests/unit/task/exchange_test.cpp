// Tests what workers tell each other about their free threads.
#include "task/exchange.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

namespace outbox::task {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A store in which another worker is alive.
class OneOther final : public store::TaskRuns {
 public:
  std::vector<std::size_t> announced;

  Status announce_free_threads(const EventId& /*worker*/,
                               const std::map<std::string, std::size_t>& free) override {
    announced.push_back(free.at("mail"));
    return {};
  }
  Result<store::OtherThreads> other_threads(const EventId& /*me*/, std::string_view /*queue*/,
                                            milliseconds /*alive*/) override {
    return store::OtherThreads{.workers = 1};
  }
  Result<store::ClaimedTasks> claim(const EventId& /*worker*/,
                                    std::span<const std::string> /*subscriptions*/,
                                    std::span<const std::string> /*types*/,
                                    std::size_t /*limit*/) override {
    return store::ClaimedTasks{};
  }

  // The exchange does not call these.
  Result<std::int64_t> beat(const EventId&, std::string_view, std::string_view) override {
    return 0;
  }
  Status leave(const EventId&) override { return {}; }
  Result<std::vector<store::TaskRunRow>> runs_of(const EventId&, std::span<const std::string>,
                                                 std::size_t) override {
    return std::vector<store::TaskRunRow>{};
  }
  Result<std::vector<store::OtherWorker>> others(const EventId&,
                                                 std::span<const std::string>) override {
    return std::vector<store::OtherWorker>{};
  }
  Status end(std::span<const store::TaskRunEnd>, std::span<const store::TaskFinish>) override {
    return {};
  }
  Result<std::vector<store::MayBegin>> begin_unique(std::span<const store::UniqueTask>) override {
    return std::vector<store::MayBegin>{};
  }
  Result<std::vector<store::ReplacedTask>> replaced(std::span<const std::string>) override {
    return std::vector<store::ReplacedTask>{};
  }
  Result<bool> wait(const EventFd&, std::chrono::steady_clock::time_point) override {
    return false;
  }
  Status report(const EventId&, std::span<const store::TaskProgress>) override { return {}; }
};

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    (void)queue_->add_source("task.mail", 2);
    exchange_.add(queue_);
    free(0);
  }
  /// Leaves so many threads of the queue free.
  void free(std::size_t threads) {
    std::vector<Outcome> unused;
    queue_->give_up(0, unused);
    const auto batch = std::make_shared<Batch>(0, now_);
    const EventView event;
    Message message;
    message.event = &event;
    for (std::size_t i = threads; i < kThreads; ++i) batch->add(*type_, message, nullptr);
    queue_->add(batch);
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(exchange_.turn(rows_, now_ += milliseconds(100)));
  }

  static constexpr std::size_t kThreads = 8;
  const std::shared_ptr<TaskType> type_{std::make_shared<TaskType>(
      Handlers::Handler{.type = "send", .run = {}}, RetrySchedule({std::chrono::seconds(1)}, 0))};
  OneOther rows_;
  const std::shared_ptr<RunnerCore> queue_{std::make_shared<RunnerCore>(
      "mail", RunnerCore::Types{type_}, RunnerCore::Options{.threads = kThreads},
      RunnerCore::Actions{.wake = [](std::size_t) {}, .replace = {}})};
  Exchange exchange_{EventId{}, {}};
  TimePoint now_{seconds(1000)};
};

TEST_F(ExchangeTest, free_threads_are_told_once_when_they_have_been_free_for_a_while) {
  turns(1);
  rows_.announced.clear();
  free(8);
  turns(1);
  EXPECT_THAT(rows_.announced, IsEmpty());
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8));
  free(3);
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8)) << "whether there are any matters";
  free(0);
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8, 0));
}

/// The row in the store is from before the loss. Because of it other workers would go on leaving
/// tasks to threads that are busy.
TEST_F(ExchangeTest, after_a_lost_connection_it_is_told_again_that_no_thread_is_free) {
  free(8);
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8));
  exchange_.start_over();
  free(0);
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8, 0));
}

}  // namespace
}  // namespace outbox::task
