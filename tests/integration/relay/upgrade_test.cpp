// Tests the next version of the schema: what a relay and writers of this version do when it is
// applied under them, at their next start, and when it is taken back. There is no next version yet,
// so that the test applies one as `migrate` does, in one transaction with its record.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#ifdef OUTBOX_WITH_POSTGRES
#include <outbox/postgres.hpp>
#endif
#include <outbox/sqlite.hpp>
#include <outbox/worker.hpp>
#include <thread>

#include "integration/relay/both_stores.hpp"
#include "support/relay_process.hpp"
#include "support/sqlite.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class Upgrade : public OnBothStores {
 protected:
  /// Applies what a migration may do beside relays of the version before: new tables, and new
  /// columns that are nullable or have a default. (`settlement` of PostgreSQL gets no column:
  /// docs/design/schema.md, "Migrations".)
  void apply_next() {
    if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
      Pg(database_->url()).run(R"(BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('outbox:migrate:outbox', 0::bigint));
CREATE TABLE outbox.next (x integer);
ALTER TABLE outbox.event ADD COLUMN next text;
ALTER TABLE outbox.subscription ADD COLUMN next text NOT NULL DEFAULT '';
ALTER TABLE outbox.relay ADD COLUMN next text;
ALTER TABLE outbox.lane ADD COLUMN next text;
ALTER TABLE outbox.parked ADD COLUMN next text;
ALTER TABLE outbox.meta ADD COLUMN next text;
INSERT INTO outbox.migration (version, name, checksum) SELECT max(version) + 1, 'next', 'x' FROM outbox.migration;
COMMIT)");
#endif
      return;
    }
    SqliteFile application(folder_.file("shop.db"));
    application.run("BEGIN IMMEDIATE");
    for (const char* table : {"event", "settlement", "subscription", "relay", "parked", "meta"})
      application.run("ALTER TABLE outbox_" + std::string(table) + " ADD COLUMN next TEXT");
    application.run(
        "INSERT INTO outbox_migration (version, name, checksum) SELECT max(version) + 1, 'next', 'x' FROM outbox_migration");
    application.run("COMMIT");
  }
  /// Takes the version back, as a restore or an older release does.
  void take_back() {
    if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
      Pg(database_->url()).run("DELETE FROM outbox.migration WHERE name = 'next'");
#endif
      return;
    }
    SqliteFile(folder_.file("shop.db")).run("DELETE FROM outbox_migration WHERE name = 'next'");
  }

  /// Enqueues one event through the library, in a transaction of the application's own.
  void enqueue(int number) const {
    const Event event{.aggregate_type = "order",
                      .aggregate_id = std::to_string(number % 3),
                      .event_type = "Placed",
                      .payload = std::to_string(number)};
#ifdef OUTBOX_WITH_POSTGRES
    if (GetParam()) {
      Pg application(url_);
      postgres::Transaction tx(application.native());
      tx.enqueue(event);
      tx.commit();
      return;
    }
#endif
    SqliteFile application(folder_.file("shop.db"));
    sqlite::Transaction tx(application.native());
    tx.enqueue(event);
    tx.commit();
  }

  /// Runs the program, and returns its exit status.
  int outbox(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), outbox_program());
    arguments.insert(arguments.end(), {"--store", url_, "--log-level", "off"});
    ChildProcess program({.command = std::move(arguments), .output = folder_.file("said")});
    const int status = program.wait().value_or(-1);  // as waitpid() returns it
    std::ifstream in(folder_.file("said"));
    std::stringstream text;
    text << in.rdbuf();
    said_ = text.str();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string said_;
};

INSTANTIATE_TEST_SUITE_P(Store, Upgrade, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(Upgrade, what_runs_goes_on_and_what_starts_is_refused) {
  RelayOptions options{.store_url = url_};
  options.subscriptions = {custom("orders")};
  auto relay = make_relay(options);
  auto recording = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  // The writer never stops, so that the migration comes in the middle of its work.
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    while (!stop) enqueue(written++);
  });
  EXPECT_TRUE(eventually([&] { return recording->events().size() > 20; }));
  apply_next();
  const auto then = static_cast<std::size_t>(written.load());
  EXPECT_TRUE(eventually([&] { return recording->events().size() > then + 20; })) << "it goes on";

  // A program that starts now is refused, and says why.
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"status"},
                                               {"enqueue", "a", "b", "c", "{}"},
                                               {"relay"},
                                               {"subscription", "list"},
                                               {"subscription", "drop", "orders", "--apply"},
                                               {"parked", "list"},
                                               {"verify"},
                                               {"prune", "--apply"},
                                               {"migrate"}}) {
    EXPECT_EQ(outbox(verb), 1) << verb.front();
    EXPECT_THAT(said_, HasSubstr("use a newer outbox")) << verb.front();
  }
  Handlers handlers;
  handlers.on("send", [](std::string_view, const TaskRun&) {});
  auto worker = Worker::create({.relay = {.store_url = url_}, .queues = {"mail"}}, handlers);
  ASSERT_TRUE(worker);
  EXPECT_THAT((*worker)->start().error().text(), HasSubstr("use a newer outbox"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  auto again = make_relay(options);
  (void)record(*again, "orders");
  EXPECT_THAT(again->start().error().text(), HasSubstr("use a newer outbox"));

  // Writers go on all the time, and what they write waits.
  const int before = written;
  EXPECT_TRUE(eventually([&] { return written > before + 10; }));
  stop = true;
  writer.join();

  // A program of the old version may run again, and delivers the rest. What the first relay
  // delivered does not come again.
  take_back();
  relay = make_relay(options);
  const auto rest = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  EXPECT_TRUE(eventually([&] {
    return recording->events().size() + rest->events().size() == static_cast<std::size_t>(written);
  }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(recording->events().size() + rest->events().size(), static_cast<std::size_t>(written));
  EXPECT_EQ(Verifier::verify(url_, "orders"), "");
}

TEST_P(Upgrade, an_older_schema_is_refused_with_the_command) {
  if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
    Pg(database_->url())
        .run(
            "DELETE FROM outbox.migration WHERE version = (SELECT max(version) FROM outbox.migration)");
#endif
  } else {
    SqliteFile(folder_.file("shop.db"))
        .run(
            "DELETE FROM outbox_migration WHERE version = (SELECT max(version) FROM outbox_migration)");
  }
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"status"},
                                               {"enqueue", "a", "b", "c", "{}"},
                                               {"relay"},
                                               {"verify"}}) {
    EXPECT_EQ(outbox(verb), 1) << verb.front();
    EXPECT_THAT(said_, HasSubstr("run: outbox migrate")) << verb.front();
  }
  enqueue(1);
  EXPECT_EQ(store_->reader().has_value(), true);
}

}  // namespace
}  // namespace outbox::test
