// enqueue on SQLite: business transactions per second with an event, beside the same with a plain INSERT instead. WAL, FULL.
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <outbox/sqlite.hpp>

#include "bench/bench.hpp"
#include "testkit/sqlite.hpp"
#include "testkit/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// A database of our own beside the one named; removed at the end.
class Workspace {
 public:
  explicit Workspace(const std::string& url) {
    path_ = std::filesystem::path(url.substr(std::string("sqlite:").size())).parent_path() /
            fmt::format("outbox-bench-{}.db", Clock::now().time_since_epoch().count());
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() { testkit::remove_sqlite_files(path()); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class Business {
 public:
  explicit Business(testkit::SqliteFile& file)
      : db_(file.native()),
        update_(file.prepare("UPDATE bench_account SET balance = balance + 1 WHERE id = ?1")),
        note_(file.prepare(
            "INSERT INTO bench_note (kind, account, body, at) VALUES (?1, ?2, ?3, ?4)")) {}

  void transact(bool event, int account) {
    sqlite::Transaction tx(db_);
    sqlite3_bind_int(update_.get(), 1, account);
    sqlite3_step(update_.get());
    sqlite3_reset(update_.get());
    const std::string id = std::to_string(account);
    if (event) {
      (void)box_.enqueue(tx, Event{.aggregate_type = "account",
                                   .aggregate_id = id,
                                   .event_type = "AccountCredited",
                                   .payload = body_});
    } else {
      sqlite3_bind_text(note_.get(), 1, "AccountCredited", -1, SQLITE_STATIC);
      sqlite3_bind_text(note_.get(), 2, id.data(), static_cast<int>(id.size()), SQLITE_STATIC);
      sqlite3_bind_text(note_.get(), 3, body_.data(), static_cast<int>(body_.size()),
                        SQLITE_STATIC);
      sqlite3_bind_int64(note_.get(), 4,
                         std::chrono::system_clock::now().time_since_epoch().count());
      sqlite3_step(note_.get());
      sqlite3_reset(note_.get());
    }
    tx.commit();
  }

  double rate(bool event, double seconds) {
    const auto start = Clock::now();
    const auto until = start + std::chrono::duration<double>(seconds);
    std::int64_t done = 0;
    for (; Clock::now() < until; ++done) transact(event, static_cast<int>(done * 7919 % 10000));
    return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  sqlite3* db_;
  testkit::SqliteStatement update_;
  testkit::SqliteStatement note_;
  sqlite::Outbox box_;
  std::string body_ = R"({"text": ")" + std::string(188, 'x') + R"("})";
};

}  // namespace

std::vector<Figure> bench_enqueue_sqlite(const BenchOptions& options) {
  const Workspace workspace(options.store_url);
  (void)testkit::migrated_store("sqlite:" + workspace.path(), "outbox", "outbox bench");
  testkit::SqliteFile file(workspace.path());
  file.run(
      "CREATE TABLE bench_account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL DEFAULT 0);"
      "CREATE TABLE bench_note (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, account TEXT, body TEXT, at INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO bench_account (id) SELECT i FROM n");
  Business business(file);
  std::vector<double> plain;
  std::vector<double> event;
  for (int i = 0; i < kTurns * options.repeats; ++i) {
    event.push_back(business.rate(true, options.seconds / kTurns));
    plain.push_back(business.rate(false, options.seconds / kTurns));
  }
  if (options.progress) {
    options.progress(fmt::format("enqueue: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                                 median(event), median(plain)));
  }
  return {against("enqueue.sqlite", median(event), "tx/s", median(plain), 0.85)};
}

}  // namespace outbox::bench
