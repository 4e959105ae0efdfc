// enqueue on SQLite: a business transaction with an event against the same with one plain INSERT more. WAL, FULL.
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <outbox/sqlite.hpp>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "store/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  return Statement(statement);
}

/// A database of the benchmark's own beside the one named; removed at the end.
class Workspace {
 public:
  explicit Workspace(const std::string& url) {
    path_ = std::filesystem::path(url.substr(std::string("sqlite:").size())).parent_path() /
            fmt::format("outbox-bench-{}.db", Clock::now().time_since_epoch().count());
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  Workspace(Workspace&&) = delete;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace() {
    for (const char* suffix : {"", "-wal", "-shm", ".relay.lock"}) {
      std::error_code ignored;
      std::filesystem::remove(path_.string() + suffix, ignored);
    }
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class Business {
 public:
  explicit Business(sqlite3* db)
      : db_(db),
        update_(prepare(db, "UPDATE bench_account SET balance = balance + 1 WHERE id = ?1")),
        note_(prepare(
            db, "INSERT INTO bench_note (kind, account, body, at) VALUES (?1, ?2, ?3, ?4)")) {}

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
  Statement update_;
  Statement note_;
  sqlite::Outbox box_;
  std::string body_ = R"({"text": ")" + std::string(188, 'x') + R"("})";
};

}  // namespace

Result<std::vector<Figure>> bench_enqueue_sqlite(const BenchOptions& options) {
  const Workspace workspace(options.store_url);
  auto store = store::open_store(
      {.url = "sqlite:" + workspace.path(), .schema = "outbox", .application = "outbox bench"});
  if (!store) return pass(store);
  if (auto migrated = (*store)->migrate(); !migrated) return pass(migrated);
  sqlite3* raw = nullptr;
  if (sqlite3_open(workspace.path().c_str(), &raw) != SQLITE_OK)
    return fail(Errc::unavailable, "cannot open " + workspace.path());
  const Db db(raw);
  const int made = sqlite3_exec(
      raw,
      "PRAGMA synchronous = FULL; CREATE TABLE bench_account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL DEFAULT 0);"
      "CREATE TABLE bench_note (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, account TEXT, body TEXT, at INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO bench_account (id) SELECT i FROM n",
      nullptr, nullptr, nullptr);
  if (made != SQLITE_OK) return fail(Errc::internal, std::string("bench: ") + sqlite3_errmsg(raw));
  Business business(raw);
  std::vector<double> plain;
  std::vector<double> event;
  try {
    for (int i = 0; i < kTurns * options.repeats; ++i) {
      event.push_back(business.rate(true, options.seconds / kTurns));
      plain.push_back(business.rate(false, options.seconds / kTurns));
    }
  } catch (const Exception& error) {
    return fail(error.error());
  }
  if (options.progress) {
    options.progress(fmt::format("enqueue: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                                 median(event), median(plain)));
  }
  return std::vector<Figure>{against("enqueue.sqlite", median(event), "tx/s", median(plain), 0.85)};
}

}  // namespace outbox::bench
