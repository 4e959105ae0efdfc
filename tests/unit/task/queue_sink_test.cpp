#include "task/queue_sink.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "task/runner.hpp"

namespace outbox::task {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using test::eventually;
using Kind = Outcome::Kind;

class QueueSinkTest : public ::testing::Test {
 protected:
  ~QueueSinkTest() override { release(); }

  void make(std::size_t threads = 2) {
    RunnerCore::Types types;
    for (const auto& handler : handlers_.all()) {
      types.push_back(std::make_shared<TaskType>(
          handler, RetrySchedule(handler.options.delays.empty() ? Delays{std::chrono::minutes(1)}
                                                                : handler.options.delays,
                                 0)));
    }
    const auto runner = make_runner("mail", types, {.threads = threads});
    sink_ =
        std::make_unique<QueueSink>(runner, runner->add_source("task.mail", 2),
                                    QueueOptions{.threads = threads}, EventId::generate(), clock_);
    ASSERT_TRUE(sink_->open());
  }
  /// Adds a handler that returns once release() is called or, if it listens, it is told to stop.
  void add_slow(const std::string& type, bool listens, milliseconds deadline = hours(1)) {
    handlers_.on(type, {.deadline = deadline},
                 [this, listens](std::string_view, const TaskRun& run) {
                   ++running_;
                   while (!released_ && !(listens && run.stop.stop_requested()))
                     std::this_thread::sleep_for(milliseconds(1));
                   --running_;
                 });
  }
  void release() { released_ = true; }

  /// Makes a message. The first one has token 1, the next one 2, and so on.
  Message& message(const std::string& type, std::string body = "{}") {
    EventView& event = events_.emplace_back();
    event.id = EventId::generate();
    event.aggregate_type = "outbox-task:mail";
    event.aggregate_id = "k";
    event.event_type = kept(type);
    event.content_type = "application/json";
    event.headers = R"({"a":"b"})";
    Message& made = messages_.emplace_back();
    made.token = messages_.size();
    made.event = &event;
    made.body = kept(std::move(body));
    return made;
  }
  [[nodiscard]] const std::deque<Message>& messages() const { return messages_; }
  std::size_t send(const std::vector<Message>& messages) { return sink_->send(messages); }
  const Outcome& outcome_of(Token token) {
    EXPECT_TRUE(eventually([&] {
      std::vector<Outcome> outcomes;
      sink_->receive(outcomes);
      for (Outcome& outcome : outcomes) {
        EXPECT_TRUE(outcomes_.try_emplace(outcome.token, outcome).second) << outcome.token;
      }
      return outcomes_.contains(token);
    }));
    return outcomes_[token];
  }

  Handlers handlers_;
  std::shared_ptr<StoreClock> clock_ = std::make_shared<StoreClock>();
  std::unique_ptr<QueueSink> sink_;
  std::atomic<int> running_{0};
  std::atomic<bool> released_{false};
  std::map<Token, Outcome> outcomes_;

 private:
  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<std::string> texts_;
  std::deque<EventView> events_;
  std::deque<Message> messages_;
};

struct Report {
  std::string text;
};

}  // namespace
}  // namespace outbox::task

template <>
struct outbox::Payload<outbox::task::Report> {
  static Result<task::Report> read(std::string_view payload) {
    if (payload == "broken") {
      Error error;
      error.message = "is broken";
      return tl::unexpected(error);
    }
    return task::Report{std::string(payload)};
  }
};

namespace outbox::task {
namespace {

TEST_F(QueueSinkTest, a_handler_sees_its_task) {
  std::promise<std::string> seen;
  handlers_.on("send", [&](std::string_view payload, const TaskRun& run) {
    seen.set_value(std::string(run.queue) + " " + std::string(run.type) + " " +
                   std::string(run.key) + " " + std::string(run.content_type) + " " +
                   std::string(run.headers) + " " + std::to_string(run.attempt) + " " +
                   run.id.str() + " " + std::string(payload));
  });
  make();
  Message& one = message("send", "hello");
  one.attempt = 3;
  ASSERT_EQ(send({one}), 1U);
  EXPECT_EQ(outcome_of(1).kind, Kind::acked);
  EXPECT_EQ(seen.get_future().get(),
            "mail send k application/json {\"a\":\"b\"} 3 " + one.event->id.str() + " hello");
}

TEST_F(QueueSinkTest, how_a_run_ends_decides_what_follows) {
  handlers_.on("fail", [](std::string_view, const TaskRun&) { return TaskEnd::failed("no"); });
  handlers_.on("later", [](std::string_view, const TaskRun&) {
    return TaskEnd::retry_after(seconds(7), "busy");
  });
  handlers_.on("snooze",
               [](std::string_view, const TaskRun&) { return TaskEnd::snooze(seconds(9)); });
  handlers_.on("dead", [](std::string_view, const TaskRun&) { return TaskEnd::dead("never"); });
  handlers_.on("throw", [](std::string_view, const TaskRun&) { throw std::runtime_error("oh"); });
  handlers_.on("odd", [](std::string_view, const TaskRun&) { throw 1; });
  handlers_.on<Report>(
      "typed", [](const Report& report, const TaskRun&) { return TaskEnd::failed(report.text); });
  make();
  Token token = 0;
  const auto outcome = [&](const char* type, const char* body = "{}") {
    EXPECT_EQ(send({message(type, body)}), 1U);
    return outcome_of(++token);
  };
  const auto expect = [](const Outcome& ended, Kind kind, const char* reason, bool final = false,
                         std::optional<Duration> pause = {}) {
    EXPECT_EQ(ended.kind, kind) << reason;
    EXPECT_EQ(ended.error.message, reason);
    EXPECT_EQ(ended.final, final) << reason;
    EXPECT_EQ(ended.retry_after, pause) << reason;
  };
  expect(outcome("fail"), Kind::rejected, "no", false, minutes(1));
  expect(outcome("later"), Kind::rejected, "busy", false, seconds(7));
  expect(outcome("snooze"), Kind::postponed, "snoozed", false, seconds(9));
  expect(outcome("dead"), Kind::rejected, "never", true);
  expect(outcome("throw"), Kind::rejected, "oh", false, minutes(1));
  expect(outcome("odd"), Kind::rejected, "the handler threw something that is not a std::exception",
         false, minutes(1));
  expect(outcome("typed", "text"), Kind::rejected, "text", false, minutes(1));
  expect(outcome("typed", "broken"), Kind::rejected, "the payload: is broken", true);
  expect(outcome("other"), Kind::postponed, "no worker here has a handler for type other", false,
         seconds(30));
}

TEST_F(QueueSinkTest, a_task_whose_time_has_not_come_waits_by_the_clock_of_the_store) {
  handlers_.on("send", [](std::string_view, const TaskRun&) {});
  make();
  EventView& event = *const_cast<EventView*>(message("send").event);
  event.headers = R"({"task-execute-at":"2026-01-01T00:01:00Z"})";
  EXPECT_EQ(send({messages().back()}), 0U) << "the store has not said what time it is";
  constexpr std::int64_t new_year = 1'767'225'600'000'000;
  clock_->set(new_year, std::chrono::steady_clock::now());
  EXPECT_EQ(send({messages().back()}), 1U);
  const Outcome& ahead = outcome_of(1);
  EXPECT_EQ(ahead.kind, Kind::postponed);
  EXPECT_GT(*ahead.retry_after, seconds(50));
  EXPECT_LE(*ahead.retry_after, seconds(60));
  const_cast<EventView*>(message("send").event)->headers =
      R"({"task-execute-at":"2025-12-31T23:59:59Z"})";
  EXPECT_EQ(send({messages().back()}), 1U);
  EXPECT_EQ(outcome_of(2).kind, Kind::acked);
}

TEST_F(QueueSinkTest, a_task_may_have_fewer_or_more_attempts_than_its_type_has_delays) {
  handlers_.on("fail", {.delays = {std::chrono::minutes(1), std::chrono::minutes(2)}},
               [](std::string_view, const TaskRun&) { return TaskEnd::failed("no"); });
  make();
  const auto after = [&](std::size_t attempt, const char* headers) {
    Message& one = message("fail");
    const_cast<EventView*>(one.event)->headers = headers;
    one.attempt = attempt;
    EXPECT_EQ(send({one}), 1U);
    const Outcome& ended = outcome_of(messages().size());
    return std::pair(ended.final, ended.retry_after.value_or(Duration::zero()));
  };
  using Next = std::pair<bool, Duration>;
  EXPECT_EQ(after(1, "{}"), Next(false, minutes(1)));
  EXPECT_EQ(after(2, "{}"), Next(false, minutes(2)));
  EXPECT_EQ(after(3, "{}"), Next(true, Duration::zero()));
  EXPECT_EQ(after(1, R"({"task-max-attempts":"1"})"), Next(true, Duration::zero()));
  EXPECT_EQ(after(4, R"({"task-max-attempts":"5"})"), Next(false, minutes(2)));
  EXPECT_EQ(after(5, R"({"task-max-attempts":"5"})"), Next(true, Duration::zero()));
}

TEST_F(QueueSinkTest, headers_that_cannot_be_read_make_a_task_dead) {
  handlers_.on("send", [](std::string_view, const TaskRun&) {});
  make();
  Token token = 0;
  for (const char* const headers :
       {R"({"task-execute-at":"tomorrow"})", R"({"task-max-attempts":"0"})",
        R"({"task-max-attempts":"12x"})", R"({"task-on-done":"{"})",
        R"({"task-on-dead":"{\"event_type\":\"x\"}"})"}) {
    const_cast<EventView*>(message("send").event)->headers = headers;
    EXPECT_EQ(send({messages().back()}), 1U);
    const Outcome& refused = outcome_of(++token);
    EXPECT_EQ(refused.kind, Kind::rejected) << headers;
    EXPECT_TRUE(refused.final) << headers;
    EXPECT_NE(refused.error.message.find("header task-"), std::string::npos) << headers;
  }
}

TEST_F(QueueSinkTest, slow_work_is_taken_only_for_a_thread_that_is_free) {
  add_slow("slow", false);
  make(2);
  EXPECT_EQ(send({message("slow"), message("slow"), message("slow")}), 2U);
  EXPECT_TRUE(eventually([&] { return running_ == 2; }));
  EXPECT_EQ(send({message("slow")}), 0U);
  release();
  EXPECT_EQ(outcome_of(1).kind, Kind::acked);
  EXPECT_EQ(outcome_of(2).kind, Kind::acked);
  EXPECT_EQ(send({message("slow")}), 1U);
  EXPECT_EQ(outcome_of(5).kind, Kind::acked);
}

TEST_F(QueueSinkTest, quick_work_is_taken_ahead_and_a_slow_task_delays_none_of_it) {
  handlers_.on("quick", [](std::string_view, const TaskRun&) {});
  add_slow("slow", false);
  make(2);
  ASSERT_EQ(send({message("quick")}), 1U);
  (void)outcome_of(1);
  std::vector<Message> many{message("slow")};
  for (int i = 0; i < 500; ++i) many.push_back(message("quick"));
  EXPECT_EQ(send(many), 501U);
  for (Token token = 3; token <= 502; ++token) EXPECT_EQ(outcome_of(token).kind, Kind::acked);
  EXPECT_EQ(running_, 1);
  EXPECT_FALSE(outcomes_.contains(2));
}

TEST_F(QueueSinkTest, what_is_given_up_gets_one_outcome_and_does_not_run_beside_itself) {
  add_slow("slow", false);
  make(1);
  ASSERT_EQ(send({message("slow")}), 1U);
  EXPECT_TRUE(eventually([&] { return running_ == 1; }));
  sink_->purge();
  EXPECT_EQ(outcome_of(1).kind, Kind::unknown);
  EXPECT_FALSE(sink_->open());
  release();
  EXPECT_TRUE(eventually([&] { return sink_->open().has_value(); }));
  ASSERT_EQ(send({message("slow")}), 1U);
  EXPECT_EQ(outcome_of(2).kind, Kind::acked);
}

TEST_F(QueueSinkTest, what_had_not_begun_is_given_back_as_not_done) {
  handlers_.on("quick", [](std::string_view, const TaskRun&) {});
  add_slow("slow", true);
  make(1);
  ASSERT_EQ(send({message("quick")}), 1U);
  (void)outcome_of(1);
  ASSERT_EQ(send({message("slow"), message("quick"), message("quick")}), 3U);
  EXPECT_TRUE(eventually([&] { return running_ == 1; }));
  sink_->purge();
  EXPECT_EQ(outcome_of(2).kind, Kind::unknown);
  EXPECT_EQ(outcome_of(3).kind, Kind::retry);
  EXPECT_EQ(outcome_of(4).kind, Kind::retry);
  EXPECT_TRUE(eventually([&] { return running_ == 0; })) << "it was told to stop";
}

TEST_F(QueueSinkTest, a_handler_is_told_when_its_deadline_has_passed) {
  add_slow("slow", true, milliseconds(20));
  make(1);
  ASSERT_EQ(send({message("slow")}), 1U);
  EXPECT_EQ(outcome_of(1).kind, Kind::acked) << "it decides what its end means";
}

TEST_F(QueueSinkTest, the_end_of_the_sink_does_not_wait_for_a_handler_that_hangs) {
  const auto hangs = std::make_shared<std::atomic<bool>>(true);
  const auto began = std::make_shared<std::atomic<bool>>(false);
  handlers_.on("hang", [hangs, began](std::string_view, const TaskRun&) {
    *began = true;
    while (*hangs) std::this_thread::sleep_for(milliseconds(1));
  });
  make(1);
  ASSERT_EQ(send({message("hang")}), 1U);
  EXPECT_TRUE(eventually([&] { return began->load(); }));
  sink_.reset();
  *hangs = false;
  EXPECT_TRUE(eventually([&] { return hangs.use_count() == 2; })) << "its thread has ended";
}

}  // namespace
}  // namespace outbox::task
