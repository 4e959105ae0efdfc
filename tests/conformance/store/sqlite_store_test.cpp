// Tests what only SQLite has: paths, requirements of the file, the lock file, checkpoints.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "conformance/store/fixture.hpp"
#include "conformance/store/sqlite_database.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/subscription_queries.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"
#include "support/sqlite.hpp"

namespace outbox::conformance {
namespace {

using test::LaneOwner;
using ::testing::HasSubstr;

// ---- URLs

TEST(SqlitePath, forms) {
  using store::sqlite::parse_path;
  EXPECT_EQ(parse_path("sqlite:/var/lib/shop.db").value(), "/var/lib/shop.db");
  EXPECT_EQ(parse_path("sqlite:///var/lib/shop.db").value(), "/var/lib/shop.db");
  EXPECT_EQ(parse_path("/var/lib/shop.db").value(), "/var/lib/shop.db");
  EXPECT_EQ(parse_path("sqlite:shop.db").value(),
            (std::filesystem::current_path() / "shop.db").string());
  EXPECT_EQ(parse_path("sqlite:a/../shop.db").value(),
            (std::filesystem::current_path() / "shop.db").string());
  for (const char* bad :
       {"sqlite:", "sqlite://", "sqlite://host/shop.db", "sqlite::memory:", "sqlite:~/shop.db"}) {
    EXPECT_FALSE(parse_path(bad)) << bad;
  }
}

TEST(OpenStore, an_unknown_kind_is_refused_without_showing_the_url) {
  for (const char* url : {"mysql://root:secret@localhost/shop", "", "shop"}) {
    auto store = store::open_store({.url = url});
    ASSERT_FALSE(store) << url;
    EXPECT_EQ(store.error().code, Errc::invalid_argument);
    EXPECT_THAT(store.error().hint, HasSubstr("sqlite:PATH"));
    EXPECT_THAT(store.error().text(), ::testing::Not(HasSubstr("secret")));
  }
}

TEST(SqliteVersion, the_wal_reset_bug_ends_with_3_51_3) {
  using store::sqlite::has_wal_reset_bug;
  EXPECT_TRUE(has_wal_reset_bug(3040001));
  EXPECT_TRUE(has_wal_reset_bug(3051002));
  EXPECT_FALSE(has_wal_reset_bug(3051003));
  EXPECT_FALSE(has_wal_reset_bug(3053000));
}

// ---- files

constexpr std::chrono::minutes kLong{10};

class SqliteStore : public ::testing::Test {
 protected:
  std::unique_ptr<store::Store> open() const {
    auto store = store::open_store({.url = database_.url()});
    EXPECT_TRUE(ok(store));
    return std::move(*store);
  }
  std::unique_ptr<store::Store> migrated() const {
    auto store = open();
    EXPECT_TRUE(ok(store->migrate()));
    return store;
  }
  void expect_refused(Errc code, const std::string& text) const {
    const Status status = open()->check();
    ASSERT_FALSE(status);
    EXPECT_STREQ(to_string(status.error().code), to_string(code));
    EXPECT_THAT(status.error().text(), HasSubstr(text));
    EXPECT_THAT(status.error().text(), HasSubstr("hint: "));
    EXPECT_THAT(status.error().text(), ::testing::Not(HasSubstr("\n")));
  }

  bool is_lock_free() const {
    const int lock = ::open((database_.path() + ".relay.lock").c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(lock, 0);
    const bool free = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
    ::close(lock);
    return free;
  }

  SqliteDatabase database_;
};

/// Becomes the user nobody, who owns the files, for this scope, because root may write everywhere.
class OrdinaryUser {
 public:
  explicit OrdinaryUser(const std::filesystem::path& directory) {
    if (::geteuid() != 0) return;
    std::vector<std::filesystem::path> paths{directory};
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      paths.push_back(entry.path());
    for (const auto& path : paths) EXPECT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    became_ = ::seteuid(kNobody) == 0;
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  OrdinaryUser(OrdinaryUser&&) = delete;
  OrdinaryUser& operator=(OrdinaryUser&&) = delete;
  ~OrdinaryUser() { EXPECT_TRUE(!became_ || ::seteuid(0) == 0); }

 private:
  static constexpr uid_t kNobody = 65534;
  bool became_{false};
};

TEST_F(SqliteStore, a_missing_file_is_made_by_migrate_only) {
  expect_refused(Errc::not_found, "does not exist");
  EXPECT_FALSE(open()->writer());
  EXPECT_FALSE(std::filesystem::exists(database_.path()));
  (void)migrated();
  EXPECT_TRUE(ok(open()->check()));
}

TEST_F(SqliteStore, a_missing_directory) {
  auto store = store::open_store({.url = database_.url() + "/no/shop.db"});
  const auto migrated = (*store)->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, Errc::not_found);
}

TEST_F(SqliteStore, a_directory_in_its_place) {
  std::filesystem::create_directory(database_.path());
  const auto migrated = open()->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().message, HasSubstr("is a directory"));
}

TEST_F(SqliteStore, a_file_that_is_no_database) {
  std::ofstream(database_.path()) << std::string(4096, 'x');
  expect_refused(Errc::invalid_argument, "not a database");
  EXPECT_FALSE(open()->migrate());
}

TEST_F(SqliteStore, a_read_only_file_or_directory) {
  (void)migrated();
  const OrdinaryUser user(database_.directory());
  ASSERT_EQ(::chmod(database_.path().c_str(), 0444), 0);
  expect_refused(Errc::permission_denied, "ermission denied");
  ASSERT_EQ(::chmod(database_.path().c_str(), 0644), 0);
  EXPECT_TRUE(ok(open()->check()));
  ASSERT_EQ(::chmod(database_.directory().c_str(), 0555), 0);
  expect_refused(Errc::permission_denied, "directory");
  ASSERT_EQ(::chmod(database_.directory().c_str(), 0755), 0);
}

TEST_F(SqliteStore, a_database_without_an_outbox) {
  Application(database_.path()).run("CREATE TABLE orders (id)");
  expect_refused(Errc::not_found, "has no outbox");
  (void)migrated();
  EXPECT_TRUE(ok(open()->check()));
}

TEST_F(SqliteStore, a_rollback_journal_is_refused_and_migrate_repairs_it) {
  (void)migrated();
  Application(database_.path()).run("PRAGMA journal_mode = DELETE");
  expect_refused(Errc::unsupported, "journal_mode delete");
  (void)migrated();
  EXPECT_TRUE(ok(open()->check()));
}

TEST_F(SqliteStore, another_encoding_is_refused) {
  {
    const Application app(database_.path());
    app.run("PRAGMA encoding = 'UTF-16'");
    app.run("CREATE TABLE orders (id)");
  }
  const auto migrated = open()->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().message, HasSubstr("UTF-16"));
}

TEST_F(SqliteStore, a_migration_that_was_another_one_is_refused) {
  (void)migrated();
  Application(database_.path()).run("UPDATE outbox_migration SET checksum = 'x'");
  const auto again = open()->migrate();
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("0001_init differs"));
}

TEST_F(SqliteStore, a_log_that_was_set_back_is_refused_with_the_repair) {
  auto store = migrated();
  auto catalog = store->catalog();
  auto writer = store->writer();
  ASSERT_TRUE(ok((*writer)->write(make_events(5))));
  SubscriptionSpec spec = make_spec("mails");
  spec.start = Start::now;
  ASSERT_TRUE(ok((*catalog)->apply(spec)));
  EXPECT_TRUE(ok(store->check()));
  Application(database_.path())
      .run("UPDATE sqlite_sequence SET seq = 2 WHERE name = 'outbox_event'");
  expect_refused(Errc::corrupt, "set its seq to at least 5");
}

TEST_F(SqliteStore, a_broken_configuration_stops_its_subscription_only) {
  auto store = migrated();
  auto catalog = store->catalog();
  ASSERT_TRUE(ok((*catalog)->apply(make_spec("a"))));
  ASSERT_TRUE(ok((*catalog)->apply(make_spec("b"))));
  Application(database_.path()).run("UPDATE outbox_subscription SET config = '{' WHERE name = 'a'");
  auto rows = (*catalog)->subscriptions();
  ASSERT_TRUE(ok(rows));
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].state, store::SubscriptionState::stopped);
  EXPECT_NE((*rows)[0].reason, "");
  EXPECT_EQ((*rows)[1].state, store::SubscriptionState::active);
}

TEST_F(SqliteStore, a_cursor_of_another_store_is_refused) {
  auto store = migrated();
  auto reader = store->reader();
  EXPECT_FALSE((*reader)->start({.cursor = {.s1 = "10:10:", .s2 = "", .position = 0, .bound = 0}}));
}

TEST_F(SqliteStore, events_are_never_changed) {
  auto store = migrated();
  auto writer = store->writer();
  ASSERT_TRUE(ok((*writer)->write(make_events(1))));
  const Application app(database_.path());
  EXPECT_EQ(
      sqlite3_exec(app.db(), "UPDATE outbox_event SET payload = x'00'", nullptr, nullptr, nullptr),
      SQLITE_CONSTRAINT);
}

TEST_F(SqliteStore, a_seq_is_never_used_twice) {
  auto store = migrated();
  auto writer = store->writer();
  ASSERT_TRUE(ok((*writer)->write(make_events(3))));
  const Application app(database_.path());
  app.run("DELETE FROM outbox_event");
  ASSERT_TRUE(ok((*writer)->write(make_events(1))));
  EXPECT_EQ(app.value("SELECT seq FROM outbox_event"), "4");
}

TEST_F(SqliteStore, the_relay_never_checkpoints_with_a_version_that_must_not) {
  auto store = migrated();
  auto writer = store->writer();
  auto progress = store->progress();
  auto maintenance = store->maintenance();
  ASSERT_TRUE(ok((*writer)->write(make_events(20'000))));
  const auto before = std::filesystem::file_size(database_.path());
  store::Settlement row;
  row.position = 1;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::eventual)));
  }
  ASSERT_TRUE(ok((*maintenance)->run()));
  if (!store::sqlite::has_wal_reset_bug(sqlite3_libversion_number()))
    GTEST_SKIP() << "needs SQLite before 3.51.3, whose checkpoints can corrupt a file";
  EXPECT_EQ(std::filesystem::file_size(database_.path()), before);
}

TEST_F(SqliteStore, writers_of_one_event_keep_the_wal_small) {
  auto store = migrated();
  std::vector<Event> event = make_events(1);
  event[0].payload = '"' + std::string(1'000'000, 'x') + '"';
  for (int i = 0; i < 60; ++i) {
    // Each write has a connection of its own, like each run of `outbox enqueue`.
    ASSERT_TRUE(ok((*store->writer())->write(event)));
  }
  EXPECT_LT(std::filesystem::file_size(database_.path() + "-wal"), std::uintmax_t{40} << 20U);
  EXPECT_GT(std::filesystem::file_size(database_.path()), std::uintmax_t{30} << 20U);
}

TEST_F(SqliteStore, a_write_that_is_committed_succeeds_although_the_checkpoint_fails) {
  auto store = migrated();
  auto writer = store->writer();
  ASSERT_TRUE(ok(writer));
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(ok((*writer)->write(make_events(1))));
  std::vector<Event> large = make_events(40);
  for (Event& event : large) event.payload = '"' + std::string(1'000'000, 'x') + '"';
  // A checkpoint opens the file by its name, and so fails while the file has another name.
  std::filesystem::rename(database_.path(), database_.path() + ".away");
  const auto written = (*writer)->write(large);
  std::filesystem::rename(database_.path() + ".away", database_.path());
  ASSERT_TRUE(ok(written));
  EXPECT_EQ(written->size(), 40U);
}

TEST_F(SqliteStore, a_relay_that_cannot_write_does_not_keep_the_lock_file) {
  auto store = migrated();
  const store::RelayIdentity identity{.name = "one"};
  LaneOwner one(*store, identity);
  ASSERT_TRUE(ok(store->membership(identity).value()->keep(kLong)));
  const Application other(database_.path());
  other.run("BEGIN IMMEDIATE");
  EXPECT_FALSE(one.owners().change("default", store::kAllLanes));
  EXPECT_TRUE(is_lock_free()) << "no other relay can take over";
  other.run("ROLLBACK");
  auto standing = one.keep(kLong);
  ASSERT_TRUE(ok(standing));
  EXPECT_TRUE(standing->owns());
}

TEST_F(SqliteStore, an_owner_that_cannot_write_keeps_the_lock_file) {
  auto store = migrated();
  LaneOwner one(*store, "one");
  ASSERT_TRUE(one.keep(kLong).value().owns());
  const Application other(database_.path());
  other.run("BEGIN IMMEDIATE");
  EXPECT_FALSE(one.owners().change("default", store::kAllLanes));
  EXPECT_FALSE(is_lock_free()) << "it still delivers";
  other.run("ROLLBACK");
}

TEST_F(SqliteStore, each_group_has_an_owner_of_its_own) {
  auto store = migrated();
  SubscriptionSpec reports = make_spec("reports");
  reports.group = "heavy";
  const auto catalog = store->catalog().value();
  ASSERT_TRUE(ok(catalog->apply(make_spec("mails"))));
  ASSERT_TRUE(ok(catalog->apply(reports)));
  LaneOwner one(*store, "one");
  LaneOwner two(*store, "two");
  ASSERT_TRUE(one.keep(kLong).value().owns());
  EXPECT_FALSE(two.keep(kLong).value().owns());
  const auto heavy = two.owners().change("heavy", store::kAllLanes);
  ASSERT_TRUE(ok(heavy));
  ASSERT_TRUE(heavy->has_value());
  EXPECT_EQ((*heavy)->lanes, store::kAllLanes);
  EXPECT_TRUE(one.keep(kLong).value().owns());
  const auto other = one.owners().change("heavy", store::kAllLanes);
  ASSERT_TRUE(ok(other));
  EXPECT_EQ((*other)->lanes, 0U) << "its owner lives";
  EXPECT_EQ((*store->progress())->load(2, store::kAllLanes)->front().generation,
            (*heavy)->generation);
}

TEST_F(SqliteStore, a_heartbeat_writes_one_page) {
  auto store = migrated();
  const auto membership = store->membership({.name = "one"}).value();
  ASSERT_TRUE(ok(membership->keep(kLong)));
  const auto before = std::filesystem::file_size(database_.path() + "-wal");
  ASSERT_TRUE(ok(membership->keep(kLong)));
  EXPECT_LT(std::filesystem::file_size(database_.path() + "-wal") - before, 2U * 4120U);
}

TEST_F(SqliteStore, a_file_that_was_replaced_is_noticed) {
  auto store = migrated();
  const auto membership = store->membership({.name = "one"}).value();
  ASSERT_TRUE(ok(membership->keep(kLong)));
  std::filesystem::copy_file(database_.path(), database_.path() + ".copy");
  std::filesystem::rename(database_.path() + ".copy", database_.path());
  auto standing = membership->keep(kLong);
  ASSERT_FALSE(standing);
  EXPECT_EQ(standing.error().remedy, Remedy::reconnect);
  EXPECT_NE(standing.error().message.find("replaced"), std::string::npos);
}

TEST_F(SqliteStore, a_position_of_tables_that_were_dropped_is_not_written_into_those_made_anew) {
  auto store = migrated();
  ASSERT_TRUE(ok((*store->catalog())->apply(make_spec("mails"))));
  auto progress = store->progress();
  ASSERT_TRUE(ok(progress));
  store::Settlement row{.subscription = 1, .generation = 1, .s1 = "-", .s2 = "-"};
  row.position = 1000;
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
  Application application(database_.path());
  for (const char* view : {"new_event", "parked_state"})
    application.run("DROP VIEW outbox_" + std::string(view));
  for (const char* table :
       {"event",       "subscription", "settlement",    "relay",      "meta",       "migration",
        "parked",      "parked_end",   "run",           "definition", "owner",      "pruned",
        "replay",      "replay_skip",  "replay_event",  "worker",     "schedule",   "task_end",
        "task_unique", "inbox",        "former_name",   "dropped",    "parked_key", "verified",
        "history",     "audit",        "console_token", "inbox_key"})
    application.run("DROP TABLE outbox_" + std::string(table));
  ASSERT_TRUE(ok(store->migrate()));
  ASSERT_TRUE(ok((*store->catalog())->apply(make_spec("mails"))));
  row.from_position = 1000;
  row.position = 2000;
  const auto status =
      (*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().remedy, Remedy::reconnect) << status.error().text();
  EXPECT_EQ((*store->progress())->load(1, store::kAllLanes)->front().cursor.position, 0);
}

TEST_F(SqliteStore, a_settlement_does_not_wake) {
  auto store = migrated();
  auto progress = store->progress();
  auto wakeup = store->wakeup({});
  ASSERT_TRUE((*wakeup)->arm().value_or(false));
  store::Settlement row;
  row.position = 1;
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::eventual)));
  EXPECT_EQ((*wakeup)->wait(std::chrono::milliseconds(50)).value(), store::Wakeup::Wake::timeout);
}

// ---- processes

/// Runs `body` in a child; returns its pid once the child has reported that it is ready.
pid_t start_child(const std::function<bool()>& body) {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const char said = body() ? 'y' : 'n';
    (void)!::write(ready[1], &said, 1);
    while (true) ::pause();
  }
  ::close(ready[1]);  // Now read() also returns if the child dies.
  char said = 'n';
  EXPECT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  ::close(ready[0]);
  return child;
}

void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SqliteStore, a_killed_owner_is_replaced_at_once) {
  auto store = migrated();
  std::unique_ptr<LaneOwner> theirs;
  const pid_t child = start_child([&] {
    theirs = std::make_unique<LaneOwner>(*store, "theirs");
    auto standing = theirs->keep(kLong);
    return standing && standing->owns();
  });
  const auto ours = std::make_unique<LaneOwner>(*store, "ours");
  auto standing = ours->keep(kLong);
  ASSERT_TRUE(ok(standing));
  EXPECT_FALSE(standing->owns());
  EXPECT_THAT(standing->other, HasSubstr("theirs (pid " + std::to_string(child) + ")"));
  EXPECT_FALSE(ours->vacant().value());
  kill_child(child);
  EXPECT_TRUE(ours->vacant().value());
  EXPECT_TRUE(ours->keep(kLong).value().owns());
}

TEST_F(SqliteStore, an_owner_that_hangs_is_replaced_when_its_lease_has_run_out) {
  auto store = migrated();
  std::unique_ptr<LaneOwner> theirs;
  const pid_t child = start_child([&] {
    theirs = std::make_unique<LaneOwner>(*store, "theirs");
    auto standing = theirs->keep(std::chrono::milliseconds(200));
    return standing && standing->owns();
  });
  ::kill(child, SIGSTOP);
  const auto ours = std::make_unique<LaneOwner>(*store, "ours");
  EXPECT_TRUE(eventually([&] { return ours->keep(kLong).value().owns(); }));
  EXPECT_TRUE(ours->keep(kLong).value().owns()) << "the other one still holds the lock file";
  kill_child(child);
  EXPECT_TRUE(ours->keep(kLong).value().owns());
}

TEST_F(SqliteStore, a_deleted_lock_file_does_not_make_two_owners) {
  auto store = migrated();
  const auto first = std::make_unique<LaneOwner>(*store, "first");
  const auto second = std::make_unique<LaneOwner>(*store, "second");
  ASSERT_TRUE(first->keep(kLong).value().owns());
  const std::string lock = database_.path() + ".relay.lock";
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove(lock);
    EXPECT_FALSE(second->vacant().value());
    EXPECT_FALSE(second->keep(kLong).value().owns());
    EXPECT_TRUE(first->keep(kLong).value().owns());
  }
  ASSERT_TRUE(ok(first->leave()));
  EXPECT_TRUE(second->keep(kLong).value().owns());
  EXPECT_TRUE(std::filesystem::exists(lock));
}

TEST_F(SqliteStore, an_unchanged_subscription_is_applied_while_somebody_writes) {
  const auto store = migrated();
  const auto catalog = store->catalog().value();
  const SubscriptionSpec mails{.name = "mails", .sink = "null"};
  EXPECT_TRUE(catalog->apply(mails).value());
  const Application application(database_.path());
  application.run("BEGIN IMMEDIATE");
  const auto again = catalog->apply(mails);
  ASSERT_TRUE(ok(again));
  EXPECT_FALSE(*again);
  application.run("ROLLBACK");
}

/// No statement scans a table that grows with history: it uses an index or goes on from a row id.
TEST_F(SqliteStore, no_statement_reads_all_settlements_or_all_that_was_removed) {
  using namespace store::sqlite::query;
  (void)migrated();
  test::SqliteFile file(database_.path());
  for (const std::string_view sql :
       {kFarthestPosition, kNewestCursor, kAppendSettlement, kSettledTotals, kAppendRetry,
        kNewestSettlement, kLedgerRows, kPositions, kKeptSettlements, kOldSettlements, kNotePruned,
        kPrunedHash, kNotePrunedSettlement, kPruned, kRemoveSettlement, kNotePrunedEnd,
        kRemoveDropped, kRemoveDroppedSums, kForgetDropped}) {
    for (const auto& row : file.exec("EXPLAIN QUERY PLAN " + std::string(sql))) {
      const std::string step = row.at(3).value();
      // s stands for the table of subscriptions, and d for that of dropped ones.
      EXPECT_TRUE(!step.starts_with("SCAN ") || step == "SCAN s" ||
                  step.starts_with("SCAN s USING ") || step == "SCAN d" ||
                  step == "SCAN outbox_dropped" || step == "SCAN CONSTANT ROW" ||
                  step == "SCAN (subquery-1)")
          << step << ": " << sql;
      // Without that index all rows would be read to find out that nothing was ever retried.
      EXPECT_FALSE(sql.find("r.kind = 'retry'") != std::string_view::npos &&
                   step.starts_with("SEARCH r ") &&
                   step.find("outbox_settlement_retries") == std::string::npos)
          << step << ": " << sql;
    }
  }
}

TEST_F(SqliteStore, processes_migrate_at_once) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(open()->migrate() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(ok(open()->check()));
}

}  // namespace
}  // namespace outbox::conformance
