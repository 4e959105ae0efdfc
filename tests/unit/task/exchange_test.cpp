// What workers tell each other about their free threads.
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

  // Not the exchange's.
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

class Queue final : public SharedQueue {
 public:
  std::size_t free{0};

  [[nodiscard]] const std::string& queue() const override { return name_; }
  [[nodiscard]] std::vector<std::string> subscriptions() const override { return {"task.mail"}; }
  [[nodiscard]] std::vector<std::string> types_to_claim() const override { return {"send"}; }
  [[nodiscard]] std::size_t free_threads() const override { return free; }
  [[nodiscard]] bool is_starved(TimePoint /*now*/) const override { return false; }
  void set_elsewhere(std::size_t /*threads*/) override {}
  void add_claimed(const store::ClaimedTasks& /*claimed*/) override {}

 private:
  const std::string name_{"mail"};
};

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() { exchange_.add(queue_); }
  void turns(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(exchange_.turn(rows_, now_ += milliseconds(100)));
  }

  OneOther rows_;
  const std::shared_ptr<Queue> queue_{std::make_shared<Queue>()};
  Exchange exchange_{EventId{}, {}};
  TimePoint now_{seconds(1000)};
};

TEST_F(ExchangeTest, free_threads_are_told_once_when_they_have_been_free_for_a_while) {
  turns(1);
  rows_.announced.clear();
  queue_->free = 8;
  turns(1);
  EXPECT_THAT(rows_.announced, IsEmpty());
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8));
  queue_->free = 3;
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8)) << "whether there are any matters";
  queue_->free = 0;
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8, 0));
}

/// The row is that of before: others would go on to leave tasks to threads that are busy.
TEST_F(ExchangeTest, after_a_lost_connection_it_is_told_again_that_no_thread_is_free) {
  queue_->free = 8;
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8));
  exchange_.start_over();
  queue_->free = 0;
  turns(5);
  EXPECT_THAT(rows_.announced, ElementsAre(8, 0));
}

}  // namespace
}  // namespace outbox::task
