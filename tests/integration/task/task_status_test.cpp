// Tests what an application sees of its tasks in each state, on both stores.
#include <gmock/gmock.h>

#include <atomic>
#include <outbox/postgres.hpp>
#include <outbox/sqlite.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>

#include "integration/relay/both_stores.hpp"
#include "store/parked.hpp"
#include "support/catch_error.hpp"
#include "support/sqlite.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Timestamp in_an_hour() {
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()) +
         std::chrono::hours(1);
}

class TaskStatusTest : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    if (IsSkipped()) return;
    GetParam() ? (void)(pg_ = std::make_unique<Pg>(url_))
               : (void)(sqlite_ = std::make_unique<SqliteFile>(folder_.file("shop.db")));
    handlers_.on("send", [](std::string_view, const TaskRun&) {});
    handlers_.on("dead",
                 [](std::string_view, const TaskRun&) { return TaskEnd::dead("no such month"); });
    handlers_.on("again", [](std::string_view, const TaskRun&) {
      return TaskEnd::retry_after(std::chrono::hours(1), "the printer is off");
    });
    handlers_.on("slow", [this](std::string_view, const TaskRun& run) {
      run.progress(40, "page 2 of 5");
      while (!opened_ && !run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    });
  }

  /// Enqueues a task in a transaction of the application.
  EventId enqueue(const std::string& type, const std::string& key = {},
                  std::optional<Timestamp> execute_at = {}) {
    Task task{.queue = "mail", .type = type, .payload = "{}", .key = key, .execute_at = execute_at};
    if (pg_) {
      postgres::Transaction tx(pg_->native());
      const EventId id = tx.enqueue(std::move(task));
      tx.commit();
      return id;
    }
    sqlite::Transaction tx(sqlite_->native());
    const EventId id = tx.enqueue(std::move(task));
    tx.commit();
    return id;
  }
  /// The status of the task, read on the connection of the application.
  std::optional<TaskStatus> look(const EventId& id) {
    return pg_ ? postgres::task_status(pg_->native(), id)
               : sqlite::task_status(sqlite_->native(), id);
  }
  std::string state(const EventId& id) {
    const auto status = look(id);
    return status ? to_string(status->state) : "none";
  }
  bool becomes(const EventId& id, const std::string& wanted) {
    return eventually([&] { return state(id) == wanted; });
  }
  std::unique_ptr<Worker> start() {
    auto worker = Worker::create({.relay = {.store_url = url_, .name = "printer"},
                                  .queues = {"mail"},
                                  .threads = 4,
                                  .row_after = milliseconds(100),
                                  .heartbeat = milliseconds(200)},
                                 handlers_);
    EXPECT_TRUE(worker) << worker.error().text();
    const Status started = (*worker)->start();
    EXPECT_TRUE(started) << started.error().text();
    return std::move(*worker);
  }
  store::ParkedListing row(const EventId& id) const {
    auto rows = store_->parked_events().value()->list({.id = id}, 10, false).value();
    EXPECT_EQ(rows.size(), 1U);
    return rows.empty() ? store::ParkedListing{} : rows.front();
  }

  std::unique_ptr<Pg> pg_;
  std::unique_ptr<test::SqliteFile> sqlite_;
  Handlers handlers_;
  std::atomic<bool> opened_{false};
};

INSTANTIATE_TEST_SUITE_P(Store, TaskStatusTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(TaskStatusTest, it_is_pending_until_a_worker_takes_it_and_then_completed) {
  const EventId id = enqueue("send", "k");
  auto status = look(id);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->id, id);
  EXPECT_EQ(status->queue + " " + status->type + " " + status->key, "mail send k");
  EXPECT_EQ(status->state, TaskState::pending);
  EXPECT_EQ(status->attempts, 0U);
  EXPECT_FALSE(status->ended_at);
  const auto age = std::chrono::system_clock::now() - status->enqueued_at;
  EXPECT_LT(std::chrono::abs(age), std::chrono::minutes(10));
  const auto worker = start();
  EXPECT_TRUE(becomes(id, "completed"));
  status = look(id);
  ASSERT_TRUE(status->ended_at);
  EXPECT_GE(*status->ended_at, status->enqueued_at);
  EXPECT_FALSE(status->result);
}

TEST_P(TaskStatusTest, one_that_runs_says_where_since_when_and_how_far) {
  const auto worker = start();
  const EventId id = enqueue("slow", "k");
  EXPECT_TRUE(eventually([&] {
    const auto status = look(id);
    return status && status->state == TaskState::running && status->percent;
  })) << state(id);
  const auto status = look(id);
  EXPECT_EQ(status->worker, "printer");
  EXPECT_EQ(status->percent, 40U);
  EXPECT_EQ(status->progress, "page 2 of 5");
  ASSERT_TRUE(status->running_since);
  EXPECT_GE(*status->running_since, status->enqueued_at);
  const auto listed = row(id);
  EXPECT_EQ(listed.worker, "printer");
  EXPECT_EQ(listed.percent, 40);
  EXPECT_EQ(listed.progress, "page 2 of 5");
  EXPECT_TRUE(listed.begun_at_us);
  const EventId behind = enqueue("send", "k");
  EXPECT_TRUE(becomes(behind, "waiting"));
  opened_ = true;
  EXPECT_TRUE(becomes(id, "completed"));
  EXPECT_TRUE(becomes(behind, "completed"));
  EXPECT_EQ(look(id)->worker, "");
}

TEST_P(TaskStatusTest, one_that_failed_says_why_and_when_it_runs_again) {
  const auto worker = start();
  const EventId again = enqueue("again");
  const EventId dead = enqueue("dead");
  EXPECT_TRUE(becomes(again, "retrying"));
  auto status = look(again);
  EXPECT_EQ(status->attempts, 1U);
  EXPECT_EQ(status->error, "the printer is off");
  ASSERT_TRUE(status->next_attempt_at);
  EXPECT_GT(*status->next_attempt_at, status->enqueued_at + std::chrono::minutes(30));
  EXPECT_FALSE(row(again).scheduled);
  EXPECT_TRUE(becomes(dead, "dead"));
  status = look(dead);
  EXPECT_EQ(status->error, "no such month");
  EXPECT_FALSE(status->next_attempt_at);
}

TEST_P(TaskStatusTest, one_whose_time_has_not_come_is_scheduled_until_a_person_runs_it) {
  const auto worker = start();
  const EventId id = enqueue("send", "", in_an_hour());
  EXPECT_EQ(state(id), "scheduled");
  EXPECT_TRUE(look(id)->next_attempt_at.has_value());
  const auto people = store_->parked_events().value();
  EXPECT_TRUE(eventually([&] { return people->list({}, 10, false).value().size() == 1; }));
  const auto listed = row(id);
  EXPECT_TRUE(listed.scheduled);
  EXPECT_EQ(people->list({.scheduled = true}, 10, false).value().size(), 1U);
  EXPECT_EQ(people->list({.scheduled = false}, 10, false).value().size(), 0U);
  EXPECT_EQ(people->list({.event_type = "send"}, 10, false).value().size(), 1U);
  EXPECT_EQ(people->list({.event_type = "other"}, 10, false).value().size(), 0U);
  EXPECT_EQ(people->retry(listed.subscription, std::vector{listed.seq}, false).value(), 1U);
  EXPECT_TRUE(becomes(id, "completed"));
}

TEST_P(TaskStatusTest, one_that_a_person_ended_is_cancelled) {
  const auto worker = start();
  const EventId id = enqueue("again");
  EXPECT_TRUE(becomes(id, "retrying"));
  const auto listed = row(id);
  const auto people = store_->parked_events().value();
  EXPECT_EQ(people->discard(listed.subscription, std::vector{listed.seq}, "me", "no").value(), 1U);
  EXPECT_EQ(state(id), "cancelled");
}

TEST_P(TaskStatusTest, what_is_no_task_is_none) {
  EXPECT_FALSE(look(EventId::generate()));
  write("42", {"OrderPlaced"});
  const auto page = store_->events().value()->list({}, 1, false).value();
  ASSERT_EQ(page.events.size(), 1U);
  EXPECT_FALSE(look(page.events.front().id));
}

TEST_P(TaskStatusTest, it_can_be_asked_in_a_transaction_which_goes_on) {
  const EventId before = enqueue("send");
  if (pg_) {
    postgres::Transaction tx(pg_->native());
    const EventId id = tx.enqueue({.queue = "mail", .type = "send", .payload = "{}"});
    EXPECT_FALSE(look(id)) << "it is written with the commit";
    EXPECT_EQ(look(before)->state, TaskState::pending);
    tx.flush();
    EXPECT_EQ(look(id)->state, TaskState::pending);
    EXPECT_EQ(pg_->value("SHOW client_min_messages"), "notice");
    tx.commit();
    EXPECT_EQ(state(id), "pending");
    EXPECT_EQ(pg_->value("SHOW client_min_messages"), "notice");
    return;
  }
  sqlite::Transaction tx(sqlite_->native());
  const EventId id = tx.enqueue({.queue = "mail", .type = "send", .payload = "{}"});
  EXPECT_EQ(look(id)->state, TaskState::pending);
  EXPECT_EQ(look(before)->state, TaskState::pending);
  tx.commit();
  EXPECT_EQ(state(id), "pending");
}

TEST_P(TaskStatusTest, an_application_is_told_nothing_by_notices_and_what_is_wrong_by_errors) {
  if (!pg_) {
    EXPECT_EQ(catch_error([] { (void)sqlite::task_status(nullptr, EventId::generate()); }).code,
              Errc::invalid_argument);
    return;
  }
  std::atomic<int> notices{0};
  PQsetNoticeReceiver(
      pg_->native(), [](void* count, const PGresult*) { ++*static_cast<std::atomic<int>*>(count); },
      &notices);
  EXPECT_FALSE(look(EventId::generate()));
  EXPECT_EQ(notices, 0);
  PQsetNoticeReceiver(
      pg_->native(), [](void*, const PGresult*) {}, nullptr);
  const Error none = catch_error([] { (void)postgres::task_status(nullptr, EventId::generate()); });
  EXPECT_THAT(none.message, HasSubstr("the connection is null"));
  pg_->run("BEGIN");
  PQclear(PQexec(pg_->native(), "SELECT 1 / 0"));
  EXPECT_EQ(catch_error([&] { (void)look(EventId::generate()); }).remedy,
            Remedy::retry_transaction);
  pg_->run("ROLLBACK");
}

}  // namespace
}  // namespace outbox::test
