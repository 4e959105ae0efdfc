// The shop in a SQLite file. A till does what any application does: its own statements on its own
// connection, and the public header outbox/sqlite.hpp.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <outbox/sqlite.hpp>
#include <thread>

#include "base/mutex.hpp"
#include "demo/shop.hpp"
#include "store/url.hpp"
#include "support/sqlite.hpp"
#include "support/store.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;
using test::SqliteFile;

constexpr const char* kSchema = "main";

/// SQLite has one writer at a time, and the others poll for its lock. Tills queue here instead and
/// pause between two sales, so that the relay, another process, gets the lock, too.
struct Queue {
  static constexpr std::chrono::microseconds kShortestGap{100};
  static constexpr std::chrono::milliseconds kLongestGap{5};

  Mutex mutex;
  Clock::time_point free_at OUTBOX_GUARDED_BY(mutex){};
};

/// The turn of one transaction.
class Turn {
 public:
  explicit Turn(Queue& queue) : lock_(queue.mutex), queue_(queue) {
    std::this_thread::sleep_until(queue_.free_at);
    began_ = Clock::now();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    const auto now = Clock::now();
    queue_.free_at = now + std::clamp<Clock::duration>((now - began_) / 3, Queue::kShortestGap,
                                                       Queue::kLongestGap);
  }

 private:
  const MutexLock lock_;
  Queue& queue_;
  Clock::time_point began_;
};

class SqliteTill final : public Till {
 public:
  SqliteTill(const std::string& path, Queue& queue) : file_(path), queue_(queue) {}

  void sell(Sale& sale) override {
    const Turn turn(queue_);
    sqlite::Transaction transaction(file_.native());
    write_order(file_, kSchema, sale.order);
    tell([&](const auto& what) { transaction.enqueue(what); }, sale);
    sale.before_commit();
    if (sale.committed) transaction.commit();
  }

 private:
  SqliteFile file_;
  Queue& queue_;
};

class SqlitePacker final : public Packer {
 public:
  SqlitePacker(const std::string& path, Queue& queue) : file_(path), queue_(queue) {}

  void work(const TaskRun& run, const Order& order, bool drops) override {
    const Turn turn(queue_);
    sqlite::Transaction transaction(file_.native());
    work_once(transaction, file_, kSchema, run, order, drops);
  }

 private:
  SqliteFile file_;
  Queue& queue_;
};

class SqliteShop final : public Shop {
 public:
  explicit SqliteShop(const std::string& url) : url_(url), path_(store::find_file(url)) {}
  SqliteShop(const SqliteShop&) = delete;
  SqliteShop& operator=(const SqliteShop&) = delete;
  ~SqliteShop() override {
    if (made_) test::remove_sqlite_files(path_);
  }

  void open() override {
    if (std::filesystem::exists(path_)) {
      test::give_up(Errc::already_exists, "--store " + url_ + ": the file exists",
                    "the demo makes a file of its own");
    }
    made_ = true;
    (void)test::migrated_store(url_, schema(), "outbox-demo");
    SqliteFile file(path_);
    make_tables(file, kSchema, "INTEGER");
  }
  void keep() override { made_ = false; }
  std::unique_ptr<Till> till() override { return std::make_unique<SqliteTill>(path_, queue_); }
  std::vector<Order> orders() override {
    SqliteFile file(path_);
    return read_orders(file, kSchema);
  }
  std::unique_ptr<Packer> packer() override {
    return std::make_unique<SqlitePacker>(path_, queue_);
  }
  std::vector<Parcel> parcels(std::int64_t after) override {
    SqliteFile file(path_);
    return read_parcels(file, kSchema, after);
  }
  std::int64_t stale_statements() override {
    SqliteFile file(path_);
    return count_stale_statements(file, kSchema);
  }
  std::string schema() const override { return "outbox"; }
  std::string place() const override { return url_; }

 private:
  const std::string url_;
  const std::string path_;
  Queue queue_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Shop> make_sqlite_shop(const std::string& url) {
  return std::make_unique<SqliteShop>(url);
}

}  // namespace outbox::demo
