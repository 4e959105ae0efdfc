// enqueue on SQLite, with WAL and synchronous = FULL, in a new database beside the named one.
#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <outbox/sqlite.hpp>

#include "bench/bench.hpp"
#include "bench/rate.hpp"
#include "support/sqlite.hpp"
#include "support/store.hpp"

namespace outbox::bench {
namespace {

/// The tables of the outbox and of the business. They are removed at the end.
struct Database {
  explicit Database(const std::string& url)
      : path(std::filesystem::path(url.substr(std::string("sqlite:").size())).parent_path() /
             fmt::format("outbox-bench-{}.db",
                         std::chrono::steady_clock::now().time_since_epoch().count())) {
    (void)test::migrated_store("sqlite:" + path, "outbox", "outbox-bench");
    test::SqliteFile(path).run(
        "CREATE TABLE bench_account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL DEFAULT 0);"
        "CREATE TABLE bench_note (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, account TEXT, body TEXT, at INTEGER);"
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO bench_account (id) SELECT i FROM n");
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { test::remove_sqlite_files(path); }

  const std::string path;
};

class SqliteApplication {
 public:
  explicit SqliteApplication(const std::string& path) : file_(path) {}

  void transact(bool with_event, int account) {
    const std::string id = std::to_string(account);
    sqlite::Transaction tx(file_.native());
    run(update_, {id});
    if (with_event) {
      (void)tx.enqueue(Event{.aggregate_type = "account",
                             .aggregate_id = id,
                             .event_type = "AccountCredited",
                             .payload = body_});
    } else {
      const auto now = std::chrono::system_clock::now().time_since_epoch().count();
      run(note_, {"AccountCredited", id, body_, std::to_string(now)});
    }
    tx.commit();
  }

 private:
  static void run(const test::SqliteStatement& statement,
                  std::initializer_list<std::string_view> texts) {
    int number = 0;
    for (const std::string_view text : texts) {
      sqlite3_bind_text(statement.get(), ++number, text.data(), static_cast<int>(text.size()),
                        SQLITE_STATIC);
    }
    sqlite3_step(statement.get());
    sqlite3_reset(statement.get());
  }

  test::SqliteFile file_;
  test::SqliteStatement update_{
      file_.prepare("UPDATE bench_account SET balance = balance + 1 WHERE id = ?1")};
  test::SqliteStatement note_{
      file_.prepare("INSERT INTO bench_note (kind, account, body, at) VALUES (?1, ?2, ?3, ?4)")};
  std::string body_ = R"({"text": ")" + std::string(188, 'x') + R"("})";
};

}  // namespace

std::vector<Figure> bench_enqueue_sqlite(const BenchOptions& options) {
  const Database database(options.store_url);
  SqliteApplication application(database.path);
  const Side with_event{[&](int account) { application.transact(true, account); }};
  const Side plain{[&](int account) { application.transact(false, account); }};
  const auto tps = rates({with_event, plain}, options.repeats, options.seconds);
  if (options.progress) {
    options.progress(fmt::format("enqueue: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                                 tps[0], tps[1]));
  }
  return {Figure("enqueue.sqlite", tps[0], "tx/s").beside(tps[1]).ratio_at_least(0.85)};
}

}  // namespace outbox::bench
