// The shop in a PostgreSQL database, in two schemas of its own. A till does what any application does: its own statements on
// its own connection, and the public header outbox/postgres.hpp.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <outbox/postgres.hpp>
#include <utility>

#include "demo/shop.hpp"
#include "testkit/eventually.hpp"
#include "testkit/pg.hpp"
#include "testkit/store.hpp"

namespace outbox::demo {
namespace {

using testkit::give_up;
using testkit::Pg;

constexpr const char* kOutboxSchema = "outbox_demo";
constexpr const char* kShopSchema = "outbox_demo_shop";
/// The comment on the shop's schema, by which we recognize it: then both may be dropped.
constexpr const char* kMarker = "made by outbox demo, may be dropped";

// Held by a running demo.
constexpr const char* kLock =
    "SELECT pg_try_advisory_lock(hashtextextended('outbox demo', 0::bigint))";
constexpr std::chrono::seconds kLockPatience{5};
// Outboxes, whatever their schema is called.
constexpr const char* kOutboxes =
    "SELECT n.nspname FROM pg_namespace n WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND "
    "relname = 'subscription') AND EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'settlement')";
constexpr const char* kSchemas =
    "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace "
    "WHERE nspname IN ('outbox_demo', 'outbox_demo_shop') ORDER BY nspname DESC";
constexpr const char* kTables = R"(
CREATE SCHEMA outbox_demo_shop;
COMMENT ON SCHEMA outbox_demo_shop IS '{}';
CREATE TABLE outbox_demo_shop.shop_customer (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE outbox_demo_shop.shop_order (reference text PRIMARY KEY, customer int NOT NULL, version bigint NOT NULL,
                                          cents bigint NOT NULL);
INSERT INTO outbox_demo_shop.shop_customer (id) SELECT generate_series(1, {}))";
// The shop's schema last, since its comment is the permission.
constexpr const char* kDrop =
    "DROP SCHEMA IF EXISTS outbox_demo CASCADE; DROP SCHEMA IF EXISTS outbox_demo_shop CASCADE";
constexpr const char* kRaiseVersion =
    "UPDATE outbox_demo_shop.shop_customer SET version = version + 1 WHERE id = $1::int RETURNING version";
constexpr const char* kWriteOrder =
    "INSERT INTO outbox_demo_shop.shop_order (reference, customer, version, cents) "
    "VALUES ($1::text, $2::int, $3::bigint, $4::bigint)";
constexpr const char* kOrders =
    "SELECT reference, customer, version, cents FROM outbox_demo_shop.shop_order";

class PostgresTill final : public Till {
 public:
  explicit PostgresTill(const std::string& url) : pg_(url) {}

  /// Every second sale is in a transaction that we begin ourselves. Its event is written at once, where outbox::Transaction
  /// writes it with COMMIT: so some of what is rolled back had already been inserted.
  void begin(Order& order) override {
    own_ = !own_;
    if (own_) {
      pg_.run("BEGIN");
    } else {
      transaction_.emplace(pg_.native());
    }
    const std::string customer = std::to_string(order.customer);
    const std::string version = pg_.value(kRaiseVersion, customer);
    order.version = std::stoll(version);
    pg_.exec(kWriteOrder, {order.reference, customer, version, std::to_string(order.cents)});
  }

  void enqueue(const Order& order) override {
    const Event event = to_event(order);
    (void)(own_ ? box_.enqueue(pg_.native(), event) : box_.enqueue(*transaction_, event));
  }

  void commit() override {
    if (own_) return pg_.run("COMMIT");
    transaction_->commit();
    transaction_.reset();
  }

  void roll_back() noexcept override {
    transaction_.reset();
    // A failure does not matter: then the server rolls back when the connection closes.
    if (own_) PQclear(PQexec(pg_.native(), "ROLLBACK"));
  }

 private:
  Pg pg_;
  postgres::Outbox box_{{.schema = kOutboxSchema}};
  std::optional<postgres::Transaction> transaction_;
  bool own_{false};
};

class PostgresShop final : public Shop {
 public:
  explicit PostgresShop(std::string url) : url_(std::move(url)) {}
  PostgresShop(const PostgresShop&) = delete;
  PostgresShop& operator=(const PostgresShop&) = delete;
  ~PostgresShop() override {
    if (made_) PQclear(PQexec(admin_->native(), kDrop));
  }

  void open() override {
    admin_.emplace(url_);
    check_alone();
    check_others();
    drop_leftovers();
    made_ = true;
    admin_->run(fmt::format(fmt::runtime(kTables), kMarker, kCustomers));
    (void)testkit::migrated_store(url_, kOutboxSchema, "outbox demo");
  }

  void keep() override { made_ = false; }

  std::unique_ptr<Till> till() override { return std::make_unique<PostgresTill>(url_); }

  std::vector<Order> orders() override {
    std::vector<Order> orders;
    for (const testkit::PgRow& row : admin_->exec(kOrders)) {
      orders.push_back({.reference = *row.at(0),
                        .customer = std::stoi(*row.at(1)),
                        .version = std::stoll(*row.at(2)),
                        .cents = std::stoll(*row.at(3))});
    }
    return orders;
  }

  const std::string& url() const override { return url_; }
  std::string schema() const override { return kOutboxSchema; }
  std::string place() const override {
    PGconn* const connection = admin_->native();
    return fmt::format("PostgreSQL database {} at {}:{}, schemas {} and {}", PQdb(connection),
                       PQhost(connection), PQport(connection), kShopSchema, kOutboxSchema);
  }

 private:
  /// Waits a moment: the session of a demo that has just ended may still exist.
  void check_alone() {
    if (testkit::eventually([this] { return admin_->value(kLock) == "t"; }, kLockPatience)) return;
    give_up(Errc::already_exists, "another demo runs in this database",
            "wait for its end, or use another database");
  }

  /// The demo must not disturb a database in use.
  void check_others() {
    for (const testkit::PgRow& row : admin_->exec(kOutboxes)) {
      const char* const others = *row.at(0) == kOutboxSchema ? " WHERE name <> 'demo'" : "";
      const std::string count = admin_->value(fmt::format("SELECT count(*) FROM {}.subscription{}",
                                                          admin_->quoted(*row.at(0)), others));
      if (count == "0") continue;
      give_up(Errc::already_exists,
              "this database has an outbox in use: schema " + *row.at(0) + " has subscriptions",
              "run the demo in another database");
    }
  }

  /// Left by a demo that was killed or ran with --keep.
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

std::unique_ptr<Shop> make_postgres_shop(std::string url) {
  return std::make_unique<PostgresShop>(std::move(url));
}

}  // namespace outbox::demo
