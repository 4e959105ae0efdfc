// The shop in a PostgreSQL database, in two schemas of its own. What a till does is what any application does: its own
// statements on its own connection, and the public header outbox/postgres.hpp.
#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <outbox/postgres.hpp>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "demo/shop.hpp"
#include "store/store.hpp"

namespace outbox::demo {
namespace {

constexpr const char* kOutboxSchema = "outbox_demo";
constexpr const char* kShopSchema = "outbox_demo_shop";
/// On the shop's schema: whoever finds it may drop both.
constexpr const char* kMarker = "made by outbox demo, may be dropped";

// Held by a running demo, on its own session.
constexpr const char* kLock =
    "SELECT pg_try_advisory_lock(hashtextextended('outbox demo', 0::bigint))";
constexpr std::chrono::seconds kLockPatience{5};
// Outboxes, under whatever name.
constexpr const char* kOutboxes =
    "SELECT n.nspname FROM pg_namespace n WHERE EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND "
    "relname = 'subscription') AND EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'settlement')";
constexpr const char* kSchemas =
    "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace "
    "WHERE nspname IN ('outbox_demo', 'outbox_demo_shop') ORDER BY nspname DESC";
constexpr const char* kTables = R"(
CREATE TABLE outbox_demo_shop.shop_customer (id int PRIMARY KEY, version bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE TABLE outbox_demo_shop.shop_order (reference text PRIMARY KEY, customer int NOT NULL, version bigint NOT NULL,
                                          cents bigint NOT NULL))";
constexpr const char* kRaiseVersion =
    "UPDATE outbox_demo_shop.shop_customer SET version = version + 1 WHERE id = $1::int RETURNING version";
constexpr const char* kWriteOrder =
    "INSERT INTO outbox_demo_shop.shop_order (reference, customer, version, cents) "
    "VALUES ($1::text, $2::int, $3::bigint, $4::bigint)";
constexpr const char* kBooks =
    "SELECT reference, customer, version, cents FROM outbox_demo_shop.shop_order";

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Rows = std::unique_ptr<PGresult, Clear>;

Error trouble(PGconn* connection, const std::string& what, const PGresult* result = nullptr) {
  std::string said = PQerrorMessage(connection);
  said = said.substr(0, said.find('\n'));
  const char* const state =
      result != nullptr ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = "shop: " + what + ": " + said,
               .hint = {},
               .origin = state != nullptr ? std::string("pg:") + state : std::string()};
}

Result<Rows> checked(PGconn* connection, const std::string& what, PGresult* raw) {
  Rows rows(raw);
  const auto status = PQresultStatus(rows.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    return fail(trouble(connection, what, rows.get()));
  return rows;
}

Result<Rows> run(PGconn* connection, const std::string& what, const std::string& sql) {
  return checked(connection, what, PQexec(connection, sql.c_str()));
}

template <std::size_t N>
Result<Rows> run(PGconn* connection, const std::string& what, const char* sql,
                 const std::array<std::string, N>& values) {
  std::array<const char*, N> texts{};
  for (std::size_t i = 0; i < N; ++i) texts.at(i) = values.at(i).c_str();
  return checked(connection, what,
                 PQexecParams(connection, sql, static_cast<int>(N), nullptr, texts.data(), nullptr,
                              nullptr, 0));
}

Error no_connection(PGconn* connection) {
  Error error = trouble(connection, "connect");
  error.hint = "is the server up, and --store right?";
  return error;
}

Result<Connection> connect(const std::string& url) {
  Connection connection(PQconnectdb(url.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) return fail(no_connection(connection.get()));
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  return connection;
}

class PostgresTill final : public Till {
 public:
  explicit PostgresTill(Connection connection)
      : connection_(std::move(connection)), box_(postgres::Options{.schema = kOutboxSchema}) {}

  /// Every second sale is in a transaction that we begin ourselves. Its event is written at once, where the other kind
  /// writes it with COMMIT: so some of what is rolled back had reached the outbox's table.
  Status begin(Order& order) override {
    own_ = !own_;
    if (own_) {
      if (auto begun = run(connection_.get(), "begin", "BEGIN"); !begun) return pass(begun);
    } else {
      try {
        transaction_.emplace(connection_.get());
      } catch (const Exception& error) {
        return fail(error.error());
      }
    }
    Status status = write(order);
    if (!status) roll_back();
    return status;
  }

  Status enqueue(const Order& order) override {
    const Event event = to_event(order);
    auto id =
        own_ ? box_.try_enqueue(connection_.get(), event) : box_.try_enqueue(*transaction_, event);
    if (!id) return pass(id);
    return {};
  }

  Status commit() override {
    if (own_) {
      auto done = run(connection_.get(), "commit", "COMMIT");
      if (!done) return pass(done);
      return {};
    }
    try {
      transaction_->commit();
    } catch (const Exception& error) {
      transaction_.reset();
      return fail(error.error());
    }
    transaction_.reset();
    return {};
  }

  void roll_back() override {
    transaction_.reset();
    if (own_) (void)run(connection_.get(), "roll back", "ROLLBACK");
  }

 private:
  Status write(Order& order) {
    const std::string customer = std::to_string(order.customer);
    auto raised =
        run(connection_.get(), "raise a customer's version", kRaiseVersion, std::array{customer});
    if (!raised) return pass(raised);
    const std::string version = PQgetvalue(raised->get(), 0, 0);
    order.version = std::strtoll(version.c_str(), nullptr, 10);
    auto written = run(connection_.get(), "write an order", kWriteOrder,
                       std::array{order.reference, customer, version, std::to_string(order.cents)});
    if (!written) return pass(written);
    return {};
  }

  Connection connection_;
  postgres::Outbox box_;
  std::optional<postgres::Transaction> transaction_;
  bool own_{true};
};

class PostgresShop final : public Shop {
 public:
  explicit PostgresShop(std::string url) : url_(std::move(url)) {}

  Status open() override {
    auto connection = connect(url_);
    if (!connection) return pass(connection);
    admin_ = std::move(*connection);
    if (Status status = check_alone(); !status) return status;
    if (Status status = check_others(); !status) return status;
    if (Status status = drop_leftovers(); !status) return status;
    made_ = true;
    for (const std::string& sql :
         {fmt::format("CREATE SCHEMA {}", kShopSchema),
          fmt::format("COMMENT ON SCHEMA {} IS '{}'", kShopSchema, kMarker), std::string(kTables),
          fmt::format("INSERT INTO {}.shop_customer (id) SELECT generate_series(1, {})",
                      kShopSchema, kCustomers)}) {
      if (auto made = run(admin_.get(), "make the tables", sql); !made) return pass(made);
    }
    auto store =
        store::open_store({.url = url_, .schema = kOutboxSchema, .application = "outbox demo"});
    if (!store) return pass(store);
    auto migrated = (*store)->migrate();
    if (!migrated) return pass(migrated);
    return {};
  }

  Result<std::unique_ptr<Till>> till() override {
    auto connection = connect(url_);
    if (!connection) return pass(connection);
    return std::make_unique<PostgresTill>(std::move(*connection));
  }

  Result<std::vector<Order>> books() override {
    auto rows = run(admin_.get(), "read the orders", kBooks);
    if (!rows) return pass(rows);
    std::vector<Order> orders;
    orders.reserve(static_cast<std::size_t>(PQntuples(rows->get())));
    const auto number = [&rows](int row, int column) {
      return static_cast<std::int64_t>(
          std::strtoll(PQgetvalue(rows->get(), row, column), nullptr, 10));
    };
    for (int row = 0; row < PQntuples(rows->get()); ++row) {
      orders.push_back({.reference = PQgetvalue(rows->get(), row, 0),
                        .customer = static_cast<int>(number(row, 1)),
                        .version = number(row, 2),
                        .cents = number(row, 3)});
    }
    return orders;
  }

  Status clear() override {
    if (!made_) return {};
    return drop_schemas();
  }

  const std::string& url() const override { return url_; }
  std::string schema() const override { return kOutboxSchema; }
  std::string place() const override {
    return fmt::format("PostgreSQL database {} at {}:{}, schemas {} and {}", PQdb(admin_.get()),
                       PQhost(admin_.get()), PQport(admin_.get()), kShopSchema, kOutboxSchema);
  }

 private:
  /// The server may still be ending the session of a demo that has just ended.
  Status check_alone() {
    const auto until = std::chrono::steady_clock::now() + kLockPatience;
    do {
      auto locked = run(admin_.get(), "lock", kLock);
      if (!locked) return pass(locked);
      if (PQgetvalue(locked->get(), 0, 0)[0] == 't') return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (std::chrono::steady_clock::now() < until);
    return fail(Errc::already_exists, "another demo runs in this database",
                "wait for its end, or use another database");
  }

  /// A demo is no guest for a database at work.
  Status check_others() {
    auto outboxes = run(admin_.get(), "look for other outboxes", kOutboxes);
    if (!outboxes) return pass(outboxes);
    for (int row = 0; row < PQntuples(outboxes->get()); ++row) {
      const std::string schema = PQgetvalue(outboxes->get(), row, 0);
      const char* const others = schema == kOutboxSchema ? " WHERE name <> 'demo'" : "";
      auto found =
          run(admin_.get(), "look into schema " + schema,
              fmt::format("SELECT count(*) FROM {}.subscription{}", quoted(schema), others));
      if (!found) return pass(found);
      if (std::string_view(PQgetvalue(found->get(), 0, 0)) == "0") continue;
      return fail(Errc::already_exists,
                  "this database has an outbox in use: schema " + schema + " has subscriptions",
                  "run the demo in another database");
    }
    return {};
  }

  /// Of a demo that was killed, or told to keep what it made.
  Status drop_leftovers() {
    auto schemas = run(admin_.get(), "look for an earlier demo", kSchemas);
    if (!schemas) return pass(schemas);
    if (PQntuples(schemas->get()) == 0) return {};
    // The shop's schema comes first, and is made first.
    const bool ours = std::string_view(PQgetvalue(schemas->get(), 0, 0)) == kShopSchema &&
                      std::string_view(PQgetvalue(schemas->get(), 0, 1)) == kMarker;
    if (ours) return drop_schemas();
    return fail(
        Errc::already_exists,
        fmt::format("schema {} exists and is not the demo's", PQgetvalue(schemas->get(), 0, 0)),
        "run the demo in another database");
  }

  /// The shop's schema last: its comment is what allows it.
  Status drop_schemas() {
    auto dropped =
        run(admin_.get(), "drop the demo's schemas",
            fmt::format("DROP SCHEMA IF EXISTS {} CASCADE; DROP SCHEMA IF EXISTS {} CASCADE",
                        kOutboxSchema, kShopSchema));
    if (!dropped) return pass(dropped);
    return {};
  }

  [[nodiscard]] std::string quoted(const std::string& name) const {
    char* const text = PQescapeIdentifier(admin_.get(), name.data(), name.size());
    std::string out = text == nullptr ? std::string() : text;
    PQfreemem(text);
    return out;
  }

  const std::string url_;
  Connection admin_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Shop> make_postgres_shop(std::string url) {
  return std::make_unique<PostgresShop>(std::move(url));
}

}  // namespace outbox::demo
