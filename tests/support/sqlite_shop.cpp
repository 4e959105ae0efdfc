#include "support/sqlite_shop.hpp"

#include <sqlite3.h>

#include <outbox/sqlite.hpp>
#include <stdexcept>
#include <utility>

#include "store/store.hpp"

namespace outbox::test {

SqliteFile::SqliteFile(const std::string& path) {
  if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK)
    throw std::runtime_error("cannot open " + path);
  sqlite3_busy_timeout(db_, 60000);
  exec("PRAGMA journal_mode = WAL");
  exec("PRAGMA synchronous = FULL");
}

SqliteFile::~SqliteFile() { sqlite3_close(db_); }

std::vector<std::vector<std::string>> SqliteFile::exec(const std::string& sql,
                                                       const std::vector<std::string>& parameters) {
  sqlite3_stmt* statement = nullptr;
  const auto fail = [&](const char* what) {
    const std::string text = std::string(what) + ": " + sqlite3_errmsg(db_) + ": " + sql;
    sqlite3_finalize(statement);
    throw std::runtime_error(text);
  };
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail("prepare");
  int number = 0;
  for (const std::string& value : parameters) {
    sqlite3_bind_text(statement, ++number, value.c_str(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  std::vector<std::vector<std::string>> rows;
  int step = sqlite3_step(statement);
  for (; step == SQLITE_ROW; step = sqlite3_step(statement)) {
    auto& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      row.emplace_back(text == nullptr ? "" : text);
    }
  }
  if (step != SQLITE_DONE) fail("step");
  sqlite3_finalize(statement);
  return rows;
}

void migrate_sqlite(const std::string& path) {
  auto store = store::open_store(
      {.url = "sqlite:" + path, .schema = "outbox", .application = "outbox test"});
  if (!store) throw std::runtime_error(store.error().text());
  if (auto done = (*store)->migrate(); !done) throw std::runtime_error(done.error().text());
}

SqliteShop::SqliteShop(std::string path, ShopOptions options)
    : path_(std::move(path)), options_(std::move(options)) {
  SqliteFile file(path_);
  file.exec(
      "CREATE TABLE IF NOT EXISTS shop_aggregate (key TEXT PRIMARY KEY, version INTEGER NOT NULL DEFAULT 0)");
  for (int key = 0; key < options_.keys; ++key) {
    file.exec("INSERT OR IGNORE INTO shop_aggregate (key) VALUES (?)", {"k" + std::to_string(key)});
  }
}

void SqliteShop::start() {
  team_.start(options_.writers, [this](int number) {
    SqliteFile file(path_);
    Random random(options_.seed * 1000 + static_cast<std::uint64_t>(number));
    for (int done = 0;
         (options_.transactions == 0 || done < options_.transactions) && !team_.stopping();
         ++done) {
      one_transaction(file, random);
      random.dawdle(options_.longest_pause);
    }
  });
}

void SqliteShop::one_transaction(SqliteFile& file, Random& random) {
  static const sqlite::Outbox box;
  std::vector<Attempt> attempts;
  const std::string key =
      "k" + std::to_string(random.below(static_cast<std::uint64_t>(options_.keys)));
  const bool rolls_back = random.chance(options_.rollback_percent);
  sqlite::Transaction transaction(file.native());
  std::int64_t version =
      std::stoll(file.exec("SELECT version FROM shop_aggregate WHERE key = ?", {key}).at(0).at(0));
  const auto count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    Attempt attempt;
    attempt.id = EventId::generate().str();
    attempt.key = key;
    attempt.version = ++version;
    attempt.type = options_.types[random.below(options_.types.size())];
    attempt.body = body_of(attempt.id, key, version, options_.padding);
    if (random.chance(50)) {
      file.exec(
          "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES ('Order', ?, ?, ?)",
          {attempt.key, attempt.type, attempt.body});
    } else {
      Event event;
      event.aggregate_type = "Order";
      event.aggregate_id = attempt.key;
      event.event_type = attempt.type;
      event.payload = attempt.body;
      box.enqueue(transaction, event);
    }
    attempts.push_back(std::move(attempt));
  }
  file.exec("UPDATE shop_aggregate SET version = CAST(? AS INTEGER) WHERE key = ?",
            {std::to_string(version), key});
  if (rolls_back) {
    transaction.rollback();
  } else {
    transaction.commit();
  }
  for (Attempt& attempt : attempts)
    attempt.end = rolls_back ? Attempt::End::rolled_back : Attempt::End::committed;
  log_.add(attempts);
}

}  // namespace outbox::test
