// The shop on a SQLite file. What a till does is what any application does: its own statements on its own connection, and
// the public header outbox/sqlite.hpp.
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <outbox/sqlite.hpp>
#include <utility>

#include "base/error.hpp"
#include "demo/shop.hpp"
#include "store/store.hpp"

namespace outbox::demo {
namespace {

constexpr int kBusyTimeoutMs = 20000;

// A reference is the primary key: an order cannot be written twice.
constexpr const char* kTables = R"(
CREATE TABLE shop_customer (id INTEGER PRIMARY KEY, version INTEGER NOT NULL DEFAULT 0);
CREATE TABLE shop_order (reference TEXT PRIMARY KEY, customer INTEGER NOT NULL REFERENCES shop_customer (id),
                         version INTEGER NOT NULL, cents INTEGER NOT NULL) WITHOUT ROWID;)";
constexpr const char* kNewCustomer = "INSERT INTO shop_customer (id) VALUES (?1)";
constexpr const char* kRaiseVersion =
    "UPDATE shop_customer SET version = version + 1 WHERE id = ?1 RETURNING version";
constexpr const char* kWriteOrder =
    "INSERT INTO shop_order (reference, customer, version, cents) VALUES (?1, ?2, ?3, ?4)";
constexpr const char* kBooks = "SELECT reference, customer, version, cents FROM shop_order";

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Error trouble(sqlite3* db, const std::string& what) {
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = "shop: " + what + ": " + sqlite3_errmsg(db),
               .hint = {},
               .origin = "sqlite:" + std::to_string(sqlite3_extended_errcode(db))};
}

Result<Database> open_database(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) return fail(trouble(raw, "open " + path));
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  // What is committed survives a loss of power.
  if (sqlite3_exec(raw, "PRAGMA synchronous = FULL", nullptr, nullptr, nullptr) != SQLITE_OK) {
    return fail(trouble(raw, "set synchronous"));
  }
  return db;
}

Result<Statement> prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    return fail(trouble(db, "prepare"));
  }
  return Statement(statement);
}

/// SQLite has one writer at a time and lets the others try again and again. Tills stand in a queue of our own instead, and
/// leave the file alone for a moment between two sales, so that the relay, another process, gets its turn.
class Queue {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::unique_lock<std::mutex> wait() {
    std::unique_lock turn(mutex_);
    while (Clock::now() < free_at_) (void)nobody_.wait_until(turn, free_at_);
    began_ = Clock::now();
    return turn;
  }
  void leave(std::unique_lock<std::mutex>& turn) {
    const auto now = Clock::now();
    free_at_ = now + std::clamp<Clock::duration>((now - began_) / 3, kShortestGap, kLongestGap);
    turn.unlock();
  }

 private:
  static constexpr std::chrono::microseconds kShortestGap{100};
  static constexpr std::chrono::milliseconds kLongestGap{5};

  std::mutex mutex_;
  std::condition_variable nobody_;  // nobody rings: it is how to wait
  Clock::time_point began_{};
  Clock::time_point free_at_{};
};

class SqliteTill final : public Till {
 public:
  SqliteTill(Database db, Statement raise_version, Statement write_order, Queue& queue)
      : db_(std::move(db)),
        raise_version_(std::move(raise_version)),
        write_order_(std::move(write_order)),
        queue_(queue) {}

  Status begin(Order& order) override {
    turn_ = queue_.wait();
    try {
      transaction_.emplace(db_.get());
    } catch (const Exception& error) {
      queue_.leave(turn_);
      return fail(error.error());
    }
    Status status = write(order);
    if (!status) roll_back();
    return status;
  }

  Status enqueue(const Order& order) override {
    auto id = box_.try_enqueue(*transaction_, to_event(order));
    if (!id) return pass(id);
    return {};
  }

  Status commit() override {
    Status status;
    try {
      transaction_->commit();
    } catch (const Exception& error) {
      status = fail(error.error());
    }
    roll_back();
    return status;
  }

  void roll_back() override {
    transaction_.reset();
    if (turn_) queue_.leave(turn_);
  }

 private:
  Status write(Order& order) {
    sqlite3_stmt* const raise = raise_version_.get();
    sqlite3_bind_int(raise, 1, order.customer);
    const bool found = sqlite3_step(raise) == SQLITE_ROW;
    if (found) order.version = sqlite3_column_int64(raise, 0);
    if (sqlite3_reset(raise) != SQLITE_OK || !found)
      return fail(trouble(db_.get(), "raise a customer's version"));
    sqlite3_stmt* const insert = write_order_.get();
    sqlite3_bind_text(insert, 1, order.reference.data(), static_cast<int>(order.reference.size()),
                      SQLITE_STATIC);
    sqlite3_bind_int(insert, 2, order.customer);
    sqlite3_bind_int64(insert, 3, order.version);
    sqlite3_bind_int64(insert, 4, order.cents);
    (void)sqlite3_step(insert);
    if (sqlite3_reset(insert) != SQLITE_OK) return fail(trouble(db_.get(), "write an order"));
    return {};
  }

  Database db_;
  Statement raise_version_;
  Statement write_order_;
  Queue& queue_;
  std::unique_lock<std::mutex> turn_;
  sqlite::Outbox box_;
  std::optional<sqlite::Transaction> transaction_;
};

class SqliteShop final : public Shop {
 public:
  explicit SqliteShop(std::string url)
      : url_(std::move(url)), path_(url_.substr(url_.find(':') + 1)) {}

  Status open() override {
    if (std::filesystem::exists(path_)) {
      return fail(Errc::already_exists, "--store " + url_ + ": the file exists",
                  "the demo makes a file of its own");
    }
    made_ = true;
    auto store = store::open_store({.url = url_, .schema = "outbox", .application = "outbox demo"});
    if (!store) return pass(store);
    if (auto migrated = (*store)->migrate(); !migrated) return pass(migrated);
    auto db = open_database(path_);
    if (!db) return pass(db);
    if (sqlite3_exec(db->get(), kTables, nullptr, nullptr, nullptr) != SQLITE_OK) {
      return fail(trouble(db->get(), "make the tables"));
    }
    auto customer = prepare(db->get(), kNewCustomer);
    if (!customer) return pass(customer);
    for (int id = 1; id <= kCustomers; ++id) {
      sqlite3_bind_int(customer->get(), 1, id);
      (void)sqlite3_step(customer->get());
      if (sqlite3_reset(customer->get()) != SQLITE_OK)
        return fail(trouble(db->get(), "write a customer"));
    }
    return {};
  }

  Result<std::unique_ptr<Till>> till() override {
    auto db = open_database(path_);
    if (!db) return pass(db);
    auto raise_version = prepare(db->get(), kRaiseVersion);
    if (!raise_version) return pass(raise_version);
    auto write_order = prepare(db->get(), kWriteOrder);
    if (!write_order) return pass(write_order);
    return std::make_unique<SqliteTill>(std::move(*db), std::move(*raise_version),
                                        std::move(*write_order), queue_);
  }

  Result<std::vector<Order>> books() override {
    auto db = open_database(path_);
    if (!db) return pass(db);
    auto select = prepare(db->get(), kBooks);
    if (!select) return pass(select);
    std::vector<Order> orders;
    sqlite3_stmt* const row = select->get();
    while (sqlite3_step(row) == SQLITE_ROW) {
      orders.push_back({.reference = reinterpret_cast<const char*>(sqlite3_column_text(row, 0)),
                        .customer = sqlite3_column_int(row, 1),
                        .version = sqlite3_column_int64(row, 2),
                        .cents = sqlite3_column_int64(row, 3)});
    }
    if (sqlite3_reset(row) != SQLITE_OK) return fail(trouble(db->get(), "read the orders"));
    return orders;
  }

  Status clear() override {
    if (!made_) return {};
    for (const char* const suffix : {"", "-wal", "-shm", ".relay.lock"}) {
      std::error_code ignored;
      std::filesystem::remove(path_ + suffix, ignored);
    }
    return {};
  }

  const std::string& url() const override { return url_; }
  std::string schema() const override { return "outbox"; }
  std::string place() const override { return url_; }

 private:
  const std::string url_;
  const std::string path_;
  Queue queue_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Shop> make_sqlite_shop(std::string url) {
  return std::make_unique<SqliteShop>(std::move(url));
}

}  // namespace outbox::demo
