// Places an order in shop.db: the order and its event are one transaction.
// Before the first run: outbox migrate --store sqlite:shop.db
#include <sqlite3.h>

#include <outbox/sqlite.hpp>
#include <string>

int main() {
  sqlite3* db = nullptr;
  if (sqlite3_open("shop.db", &db) != SQLITE_OK) return 1;
  sqlite3_busy_timeout(db, 5000);
  sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL)",
               nullptr, nullptr, nullptr);

  outbox::sqlite::Transaction tx(db);
  sqlite3_exec(db, "INSERT INTO orders (total) VALUES (12.5)", nullptr, nullptr, nullptr);
  const std::string id = std::to_string(sqlite3_last_insert_rowid(db));
  tx.enqueue({.aggregate_type = "order",
              .aggregate_id = id,
              .event_type = "OrderPlaced",
              .payload = R"({"total": 12.5})"});
  tx.commit();  // the order and its event, or neither
  return sqlite3_close(db);
}
