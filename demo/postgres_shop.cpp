// The shop in a PostgreSQL database, in two schemas of its own. A till does what any application
// does: its own statements on its own connection, and the public header outbox/postgres.hpp.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <outbox/postgres.hpp>

#include "demo/shop.hpp"
#include "support/eventually.hpp"
#include "support/pg.hpp"
#include "support/store.hpp"

namespace outbox::demo {
namespace {

using test::give_up;
using test::Pg;

constexpr const char* kOutboxSchema = "outbox_demo";
const postgres::Options kOutbox{.schema = kOutboxSchema};
constexpr const char* kShopSchema = "outbox_demo_shop";
/// The comment on the shop's schema, by which the demo recognizes that it may drop both schemas.
constexpr const char* kMarker = "made by outbox-demo, may be dropped";

// A running demo holds this lock.
constexpr const char* kLock =
    "SELECT pg_try_advisory_lock(hashtextextended('outbox-demo', 0::bigint))";
constexpr std::chrono::seconds kLockPatience{5};
// Finds outboxes, whatever their schema is called.
constexpr const char* kOutboxes =
    "SELECT n.nspname, quote_ident(n.nspname) FROM pg_namespace n WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND "
    "relname = 'subscription') AND EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'settlement')";
constexpr const char* kSchemas =
    "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace "
    "WHERE nspname IN ('outbox_demo', 'outbox_demo_shop') ORDER BY nspname DESC";
// The shop's schema is dropped last, since its comment is the permission.
constexpr const char* kDrop =
    "DROP SCHEMA IF EXISTS outbox_demo CASCADE; DROP SCHEMA IF EXISTS outbox_demo_shop CASCADE";
/// A connection on which names mean the server's own objects, whatever its search_path was.
Pg connected(const std::string& url) {
  Pg pg(url);
  pg.run("SET search_path = pg_catalog, pg_temp");
  return pg;
}

class PostgresTill final : public Till {
 public:
  explicit PostgresTill(const std::string& url) : pg_(connected(url)) {}

  /// Every second sale is in a transaction that the till begins itself. Its event is written at
  /// once, while outbox::Transaction writes it with COMMIT. So some events had been inserted before
  /// a rollback.
  void sell(Sale& sale) override {
    own_ = !own_;
    std::optional<postgres::Transaction> transaction;
    if (own_) {
      pg_.run("BEGIN");
    } else {
      transaction.emplace(pg_.native(), kOutbox);
    }
    write_order(pg_, kShopSchema, sale.order);
    tell(
        [&](const auto& what) {
          own_ ? postgres::enqueue(pg_.native(), what, kOutbox) : transaction->enqueue(what);
        },
        sale);
    sale.before_commit();
    // An exception ends this writer. The server then rolls back, because the connection closes.
    if (own_) return pg_.run(sale.committed ? "COMMIT" : "ROLLBACK");
    if (sale.committed) transaction->commit();
  }

 private:
  Pg pg_;
  bool own_{false};
};

class PostgresPacker final : public Packer {
 public:
  explicit PostgresPacker(const std::string& url) : pg_(connected(url)) {}

  void work(const TaskRun& run, const Order& order, bool drops) override {
    postgres::Transaction transaction(pg_.native(), kOutbox);
    work_once(transaction, pg_, kShopSchema, run, order, drops);
  }

 private:
  Pg pg_;
};

class PostgresShop final : public Shop {
 public:
  explicit PostgresShop(const std::string& url) : url_(url) {}
  PostgresShop(const PostgresShop&) = delete;
  PostgresShop& operator=(const PostgresShop&) = delete;
  ~PostgresShop() override {
    if (made_) PQclear(PQexec(admin_->native(), kDrop));
  }

  void open() override {
    admin_.emplace(connected(url_));
    check_alone();
    check_others();
    drop_leftovers();
    made_ = true;
    admin_->run(
        fmt::format("CREATE SCHEMA {0}; COMMENT ON SCHEMA {0} IS '{1}'", kShopSchema, kMarker));
    make_tables(*admin_, kShopSchema, "bigint GENERATED ALWAYS AS IDENTITY");
    (void)test::migrated_store(url_, kOutboxSchema, "outbox-demo");
  }

  void keep() override { made_ = false; }

  std::unique_ptr<Till> till() override { return std::make_unique<PostgresTill>(url_); }

  std::vector<Order> orders() override { return read_orders(*admin_, kShopSchema); }
  std::unique_ptr<Packer> packer() override { return std::make_unique<PostgresPacker>(url_); }
  std::vector<Parcel> parcels(std::int64_t after) override {
    return read_parcels(*admin_, kShopSchema, after);
  }
  std::int64_t stale_statements() override { return count_stale_statements(*admin_, kShopSchema); }
  std::string schema() const override { return kOutboxSchema; }
  std::string place() const override {
    PGconn* const connection = admin_->native();
    return fmt::format("PostgreSQL database {} at {}:{}, schemas {} and {}", PQdb(connection),
                       PQhost(connection), PQport(connection), kShopSchema, kOutboxSchema);
  }

 private:
  /// Waits a moment, because the session of a demo that has just ended may still exist.
  void check_alone() {
    if (test::eventually([this] { return admin_->value(kLock) == "t"; }, kLockPatience)) return;
    give_up(Errc::already_exists, "another demo runs in this database",
            "wait for its end, or use another database");
  }

  /// Refuses a database in use, which the demo must not disturb.
  void check_others() {
    for (const test::PgRow& row : admin_->exec(kOutboxes)) {
      const char* const others =
          *row.at(0) == kOutboxSchema ? " WHERE name <> 'demo' AND name NOT LIKE 'task%.shop'" : "";
      const std::string count =
          admin_->value(fmt::format("SELECT count(*) FROM {}.subscription{}", *row.at(1), others));
      if (count == "0") continue;
      give_up(Errc::already_exists,
              "this database has an outbox in use: schema " + *row.at(0) + " has subscriptions",
              "run the demo in another database");
    }
  }

  /// Drops what a demo left that was killed or ran with --keep.
  void drop_leftovers() {
    const auto schemas = admin_->exec(kSchemas);
    if (schemas.empty()) return;
    // The shop's schema is first in this order.
    if (schemas[0].at(0) == kShopSchema && schemas[0].at(1) == kMarker) return admin_->run(kDrop);
    give_up(Errc::already_exists,
            fmt::format("schema {} exists and is not the demo's", *schemas[0].at(0)),
            "run the demo in another database");
  }

  const std::string url_;
  std::optional<Pg> admin_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Shop> make_postgres_shop(const std::string& url) {
  return std::make_unique<PostgresShop>(url);
}

}  // namespace outbox::demo
