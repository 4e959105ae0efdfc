// The shop on a SQLite file. A till does what any application does: its own statements on its own connection, and the public
// header outbox/sqlite.hpp.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <optional>
#include <outbox/sqlite.hpp>
#include <utility>

#include "base/mutex.hpp"
#include "demo/shop.hpp"
#include "store/url.hpp"
#include "testkit/sqlite.hpp"
#include "testkit/store.hpp"

namespace outbox::demo {
namespace {

using testkit::SqliteFile;

// A reference is the primary key: an order cannot be written twice.
constexpr const char* kTables = R"(
CREATE TABLE shop_customer (id INTEGER PRIMARY KEY, version INTEGER NOT NULL DEFAULT 0);
CREATE TABLE shop_order (reference TEXT PRIMARY KEY, customer INTEGER NOT NULL REFERENCES shop_customer (id),
                         version INTEGER NOT NULL, cents INTEGER NOT NULL) WITHOUT ROWID;)";
constexpr const char* kNewCustomer = "INSERT INTO shop_customer (id) VALUES (CAST(?1 AS INTEGER))";
constexpr const char* kRaiseVersion =
    "UPDATE shop_customer SET version = version + 1 WHERE id = CAST(?1 AS INTEGER) RETURNING version";
constexpr const char* kWriteOrder =
    "INSERT INTO shop_order (reference, customer, version, cents) "
    "VALUES (?1, CAST(?2 AS INTEGER), CAST(?3 AS INTEGER), CAST(?4 AS INTEGER))";
constexpr const char* kOrders = "SELECT reference, customer, version, cents FROM shop_order";

/// SQLite has one writer at a time, and the others poll for its lock. Tills queue here instead and pause between two sales, so
/// that the relay, another process, gets the lock too.
class Queue {
 public:
  using Clock = std::chrono::steady_clock;

  void enter() {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return !taken_; });
    taken_ = true;
    while (Clock::now() < free_at_) (void)changed_.wait_until(mutex_, free_at_);
    began_ = Clock::now();
  }
  void leave() {
    {
      const MutexLock lock(mutex_);
      const auto now = Clock::now();
      free_at_ = now + std::clamp<Clock::duration>((now - began_) / 3, kShortestGap, kLongestGap);
      taken_ = false;
    }
    changed_.notify_one();
  }

 private:
  static constexpr std::chrono::microseconds kShortestGap{100};
  static constexpr std::chrono::milliseconds kLongestGap{5};

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool taken_ OUTBOX_GUARDED_BY(mutex_){false};
  Clock::time_point began_ OUTBOX_GUARDED_BY(mutex_){};
  Clock::time_point free_at_ OUTBOX_GUARDED_BY(mutex_){};
};

class Turn {
 public:
  explicit Turn(Queue& queue) : queue_(queue) { queue_.enter(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  Turn(Turn&&) = delete;
  Turn& operator=(Turn&&) = delete;
  ~Turn() { queue_.leave(); }

 private:
  Queue& queue_;
};

class SqliteTill final : public Till {
 public:
  SqliteTill(const std::string& path, Queue& queue) : file_(path), queue_(queue) {}

  void begin(Order& order) override {
    turn_.emplace(queue_);
    transaction_.emplace(file_.native());
    const std::string customer = std::to_string(order.customer);
    const std::string version = file_.exec(kRaiseVersion, {customer}).at(0).at(0);
    order.version = std::stoll(version);
    file_.exec(kWriteOrder, {order.reference, customer, version, std::to_string(order.cents)});
  }

  void enqueue(const Order& order) override { box_.enqueue(*transaction_, to_event(order)); }

  void commit() override {
    transaction_->commit();
    roll_back();
  }

  void roll_back() noexcept override {
    transaction_.reset();
    turn_.reset();
  }

 private:
  SqliteFile file_;
  Queue& queue_;
  std::optional<Turn> turn_;
  sqlite::Outbox box_;
  std::optional<sqlite::Transaction> transaction_;
};

class SqliteShop final : public Shop {
 public:
  explicit SqliteShop(std::string url) : url_(std::move(url)), path_(store::file_of(url_)) {}
  SqliteShop(const SqliteShop&) = delete;
  SqliteShop& operator=(const SqliteShop&) = delete;
  ~SqliteShop() override {
    if (made_) testkit::remove_sqlite_files(path_);
  }

  void open() override {
    if (std::filesystem::exists(path_)) {
      testkit::give_up(Errc::already_exists, "--store " + url_ + ": the file exists",
                       "the demo makes a file of its own");
    }
    made_ = true;
    (void)testkit::migrated_store(url_, schema(), "outbox demo");
    SqliteFile file(path_);
    file.run(kTables);
    for (int id = 1; id <= kCustomers; ++id) file.exec(kNewCustomer, {std::to_string(id)});
  }

  void keep() override { made_ = false; }

  std::unique_ptr<Till> till() override { return std::make_unique<SqliteTill>(path_, queue_); }

  std::vector<Order> orders() override {
    std::vector<Order> orders;
    for (const auto& row : SqliteFile(path_).exec(kOrders)) orders.push_back(order_of(row));
    return orders;
  }

  const std::string& url() const override { return url_; }
  std::string schema() const override { return "outbox"; }
  std::string place() const override { return url_; }

 private:
  static Order order_of(const std::vector<std::string>& row) {
    return {.reference = row.at(0),
            .customer = std::stoi(row.at(1)),
            .version = std::stoll(row.at(2)),
            .cents = std::stoll(row.at(3))};
  }

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
