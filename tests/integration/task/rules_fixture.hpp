// An application that enqueues tasks, on both stores, and what the tests of their rules share.
#pragma once

#ifdef OUTBOX_WITH_POSTGRES
#include <libpq-fe.h>

#include <outbox/postgres.hpp>
#endif
#include <sqlite3.h>

#include <outbox/sqlite.hpp>

#include "integration/task/worker_fixture.hpp"
#include "store/url.hpp"

namespace outbox::test {

using std::chrono::hours;

/// Calls `use(transaction)` in a transaction of an application, and commits or not.
class Application {
 public:
  explicit Application(const std::string& url) {
    if (url.starts_with("sqlite:")) {
      EXPECT_EQ(sqlite3_open(url.substr(7).c_str(), &file_), SQLITE_OK);
      sqlite3_busy_timeout(file_, 10'000);
      return;
    }
#ifdef OUTBOX_WITH_POSTGRES
    connection_ = PQconnectdb(url.c_str());
    EXPECT_EQ(PQstatus(connection_), CONNECTION_OK);
#endif
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  ~Application() {
    sqlite3_close(file_);
#ifdef OUTBOX_WITH_POSTGRES
    PQfinish(connection_);
#endif
  }

  template <class Use>
  auto in_transaction(Use&& use, bool commit = true) {
#ifdef OUTBOX_WITH_POSTGRES
    if (file_ == nullptr) {
      postgres::Transaction tx(connection_);
      const auto result = use(tx);
      if (commit) tx.commit();
      return result;
    }
#endif
    sqlite::Transaction tx(file_);
    const auto result = use(tx);
    if (commit) tx.commit();
    return result;
  }
  EventId enqueue(Task task, bool commit = true) {
    return in_transaction([&](auto& tx) { return tx.enqueue(std::move(task)); }, commit);
  }
  [[nodiscard]] std::optional<TaskStatus> status(const EventId& id) const {
#ifdef OUTBOX_WITH_POSTGRES
    if (file_ == nullptr) return postgres::task_status(connection_, id);
#endif
    return sqlite::task_status(file_, id);
  }

 private:
  sqlite3* file_{nullptr};
#ifdef OUTBOX_WITH_POSTGRES
  PGconn* connection_{nullptr};
#endif
};

class TaskRulesTest : public WorkerTest {
 protected:
  static Task task(const std::string& type, const std::string& payload = "{}") {
    Task task;
    task.queue = "mail";
    task.type = type;
    task.payload = payload;
    task.content_type = "text/plain";
    return task;
  }
  static Timestamp in(Duration ahead) {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::microseconds>(ahead));
  }
  /// Adds the handler "told" of queue "mail", which notes the tasks that were enqueued at the end
  /// of others.
  void listen() {
    handlers_.on("told",
                 [this](std::string_view payload, const TaskRun& run) { runs_.add(payload, run); });
  }
  static TaskEvent told(const std::string& key = "told") {
    return {.aggregate_type = "outbox-task:mail", .aggregate_id = key, .event_type = "told"};
  }
};

}  // namespace outbox::test
