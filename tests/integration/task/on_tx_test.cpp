// Tests that what a handler writes in the transaction of on_tx() is there once or not at all, on
// both stores.
#include <gmock/gmock.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <outbox/postgres.hpp>
#include <outbox/sqlite.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>

#include "integration/relay/both_stores.hpp"
#include "store/store.hpp"
#include "support/catch_error.hpp"
#include "support/sqlite.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OnTxTest : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    if (IsSkipped()) return;
    GetParam() ? (void)(pg_ = std::make_unique<Pg>(url_))
               : (void)(sqlite_ = std::make_unique<SqliteFile>(folder_.file("shop.db")));
    execute("CREATE TABLE invoice (number text NOT NULL)");
  }

  void execute(const std::string& sql) { pg_ ? (void)pg_->run(sql) : (void)sqlite_->exec(sql); }
  std::string value(const std::string& sql) { return pg_ ? pg_->value(sql) : sqlite_->value(sql); }
  std::string invoices() { return value("SELECT count(*) FROM invoice"); }
  [[nodiscard]] std::string inbox() const { return pg_ ? "outbox.inbox" : "outbox_inbox"; }

  /// Writes an invoice in the transaction.
  static void write(postgres::Transaction& tx, std::string_view number) {
    const std::string sql = "INSERT INTO invoice VALUES ('" + std::string(number) + "')";
    const PgResult result(PQexec(tx.connection(), sql.c_str()));
    postgres::check(tx.connection(), result.get(), "insert");
  }
  static void write(sqlite::Transaction& tx, std::string_view number) {
    const std::string sql = "INSERT INTO invoice VALUES ('" + std::string(number) + "')";
    sqlite::check(tx.handle(), sqlite3_exec(tx.handle(), sql.c_str(), nullptr, nullptr, nullptr),
                  "insert");
  }
  static Event made(std::string_view number) {
    return {.aggregate_type = "invoice",
            .aggregate_id = std::string(number),
            .event_type = "InvoiceMade",
            .payload = "{}"};
  }

  /// Adds a handler for "invoice" that calls `body(tx, payload, run)`, whatever the store is.
  template <class Body>
  void handle(Body body) {
    if (pg_) {
      handlers_.on_tx("invoice", [body](postgres::Transaction& tx, const std::string_view& payload,
                                        const TaskRun& run) { return body(tx, payload, run); });
    } else {
      handlers_.on_tx("invoice", [body](sqlite::Transaction& tx, const std::string_view& payload,
                                        const TaskRun& run) { return body(tx, payload, run); });
    }
  }
  /// Runs the handler as a worker does.
  TaskEnd run(const EventId& id, std::string_view payload, std::string_view headers = "{}",
              std::string_view url = {}) {
    const TaskRun run{.id = id,
                      .queue = "bills",
                      .type = "invoice",
                      .key = {},
                      .content_type = {},
                      .headers = headers,
                      .store_url = url.empty() ? std::string_view(url_) : url,
                      .schema = "outbox"};
    return handlers_.all().at(0).run(payload, run);
  }

  std::unique_ptr<Pg> pg_;
  std::unique_ptr<SqliteFile> sqlite_;
  Handlers handlers_;
};

INSTANTIATE_TEST_SUITE_P(Store, OnTxTest, ::testing::Bool(), [](const auto& store) {
  return std::string(store.param ? "postgres" : "sqlite");
});

TEST_P(OnTxTest, the_effect_of_a_task_that_runs_twice_is_there_once) {
  handle([](auto& tx, std::string_view payload, const TaskRun&) { write(tx, payload); });
  const EventId id = EventId::generate();
  EXPECT_EQ(run(id, "1").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(run(id, "1").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(invoices(), "1");
  EXPECT_EQ(run(EventId::generate(), "2").kind(), TaskEnd::Kind::done);
  EXPECT_EQ(invoices(), "2");
}

TEST_P(OnTxTest, a_run_that_fails_leaves_nothing_and_the_next_one_does_it) {
  std::atomic<int> runs{0};
  handle([&runs](auto& tx, std::string_view payload, const TaskRun&) {
    write(tx, payload);
    (void)tx.enqueue(made(payload));
    switch (++runs) {
      case 1: throw std::runtime_error("no paper");
      case 2: return TaskEnd::failed("no ink");
      case 3: return TaskEnd::snooze(seconds(1));
      case 4: return TaskEnd::dead("no hope");
      default: return TaskEnd::done("printed");
    }
  });
  const EventId id = EventId::generate();
  EXPECT_THROW((void)run(id, "1"), std::runtime_error);
  EXPECT_EQ(run(id, "1").kind(), TaskEnd::Kind::failed);
  EXPECT_EQ(run(id, "1").kind(), TaskEnd::Kind::snoozed);
  EXPECT_EQ(run(id, "1").kind(), TaskEnd::Kind::dead);
  EXPECT_EQ(invoices(), "0");
  EXPECT_EQ(value("SELECT count(*) FROM " + inbox()), "0");
  const TaskEnd end = run(id, "1");
  EXPECT_EQ(end.kind(), TaskEnd::Kind::done);
  EXPECT_EQ(end.result(), "printed");
  EXPECT_EQ(invoices(), "1");
  const auto events = std::move(*store_->events())->list({.event_type = "InvoiceMade"}, 10, false);
  ASSERT_TRUE(events) << events.error().text();
  EXPECT_EQ(events->events.size(), 1U);
}

TEST_P(OnTxTest, what_is_enqueued_inherits_where_it_comes_from) {
  handle([](auto& tx, std::string_view payload, const TaskRun&) {
    Event own = made(payload);
    own.headers = {{"Correlation-Id", "mine"}};
    (void)tx.enqueue(own);
    (void)tx.enqueue(Task{.queue = "mail", .type = "send", .payload = "{}"});
  });
  (void)run(EventId::generate(), "1", R"({"correlation_id": "c-1", "message-id": "m-1"})");
  const EventId task = EventId::generate();
  (void)run(task, "2", R"({"tenant": "a"})");
  const auto headers = [&](const store::EventFilter& filter) {
    auto page = std::move(*store_->events())->list(filter, 10, true);
    std::vector<nlohmann::json> all;
    for (const auto& event : page->events) all.push_back(nlohmann::json::parse(event.headers));
    return all;
  };
  const auto events = headers({.event_type = "InvoiceMade"});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1], nlohmann::json({{"Correlation-Id", "mine"}, {"causation_id", "m-1"}}));
  EXPECT_EQ(events[0], nlohmann::json({{"Correlation-Id", "mine"}, {"causation_id", task.str()}}));
  const auto tasks = headers({.event_type = "send"});
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[1], nlohmann::json({{"correlation_id", "c-1"}, {"causation_id", "m-1"}}));
  EXPECT_EQ(tasks[0], nlohmann::json({{"causation_id", task.str()}}));
}

TEST_P(OnTxTest, two_runs_of_a_task_at_once_have_one_effect) {
  handle([](auto& tx, std::string_view payload, const TaskRun&) { write(tx, payload); });
  for (int round = 0; round < 30; ++round) {
    const EventId id = EventId::generate();
    {
      const std::jthread beside([&] { (void)run(id, "1"); });
      (void)run(id, "1");
    }
  }
  EXPECT_EQ(invoices(), "30");
}

TEST_P(OnTxTest, a_handler_that_stands_still_past_its_deadline_holds_nobody_up) {
  if (!pg_) GTEST_SKIP() << "needs PostgreSQL: on SQLite another worker waits for the only writer";
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const auto still = std::make_shared<std::atomic<bool>>(true);
  handle([runs, still](auto& tx, std::string_view payload, const TaskRun&) {
    if ((*runs)++ == 0) still->wait(true);
    write(tx, payload);
  });
  const EventId id = EventId::generate();
  {
    const std::jthread beside([&] { (void)run(id, "1"); });
    EXPECT_TRUE(eventually([&] { return *runs == 1; }));
    (void)run(id, "1");
    EXPECT_EQ(invoices(), "1");
    *still = false;
    still->notify_all();
  }
  EXPECT_EQ(invoices(), "1");
}

TEST_P(OnTxTest, a_worker_does_it) {
  handle([](auto& tx, std::string_view payload, const TaskRun&) { write(tx, payload); });
  std::vector<Event> tasks;
  for (int i = 0; i < 200; ++i)
    tasks.push_back(to_event(
        {.queue = "bills", .type = "invoice", .payload = std::to_string(i), .content_type = ""}));
  ASSERT_TRUE(store_->writer().value()->write(tasks));
  auto worker = Worker::create({.relay = {.store_url = url_}, .queues = {"bills"}}, handlers_);
  ASSERT_TRUE(worker) << worker.error().text();
  ASSERT_TRUE((*worker)->start());
  EXPECT_TRUE(eventually([&] { return invoices() == "200"; }));
  (void)(*worker)->stop(seconds(10));
  EXPECT_EQ(value("SELECT count(DISTINCT number) FROM invoice"), "200");
}

/// The answers of the server are lost at some moment of the transaction: at COMMIT, too. The run
/// begins anew, and finds out by itself whether the effect is there.
TEST_P(OnTxTest, a_commit_whose_answer_is_lost_is_not_repeated) {
  if (!pg_) GTEST_SKIP() << "SQLite has no connection that could be lost";
  const auto port_at = url_.find(':', url_.find('@'));
  const int port = std::stoi(url_.substr(port_at + 1));
  TcpGate gate(port);
  std::string url = url_;
  url.replace(port_at + 1, std::to_string(port).size(), std::to_string(gate.port()));
  handle([](auto& tx, std::string_view payload, const TaskRun&) {
    write(tx, payload);
    (void)tx.enqueue(made(payload));
  });
  constexpr int kRounds = 40;
  {
    std::atomic<bool> over{false};
    std::atomic<int> done{0};
    // An answer is lost, and then a run has time to end.
    const std::jthread breaking([&] {
      while (!over) {
        const int lost = gate.lost_answers();
        gate.set(TcpGate::Mode::answers_lost);
        (void)eventually([&] { return over || gate.lost_answers() > lost; });
        const int before = done;
        gate.set(TcpGate::Mode::open);
        (void)eventually([&] { return over || done > before; });
      }
    });
    for (int i = 0; i < kRounds; ++i, ++done) {
      const EventId id = EventId::generate();
      // A run that gives up is repeated by the worker.
      for (int attempt = 0;; ++attempt) {
        ASSERT_LT(attempt, 50);
        try {
          if (run(id, std::to_string(i), "{}", url).kind() == TaskEnd::Kind::done) break;
        } catch (const Exception&) {
        }
      }
    }
    over = true;
  }
  EXPECT_EQ(invoices(), std::to_string(kRounds));
  EXPECT_EQ(value("SELECT count(DISTINCT number) FROM invoice"), std::to_string(kRounds));
  EXPECT_GT(gate.connections(), 1) << "no connection was lost";
}

}  // namespace
}  // namespace outbox::test
