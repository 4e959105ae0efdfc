// The shop's database: business tables, an outbox, a till for each writer, and the orders at the
// end.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <outbox/worker.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

inline constexpr int kCustomers = 40;

/// What is written in an order's transaction to tell others.
enum class Tells : std::uint8_t {
  nobody,  ///< Nothing, since it is a dual write.
  relay,   ///< An event.
  workers  ///< Two tasks.
};

struct Sale {
  Order order;  ///< The till fills in the version.
  Tells tells{Tells::relay};
  bool committed{true};  ///< Whether it is committed, or rolled back just before the commit.
  std::function<void()> before_commit{};
};

/// One writer's connection. Only one thread may use it.
class Till {
 public:
  virtual ~Till() = default;

  /// In one transaction raises the customer's version, which locks the customer, and writes the
  /// order and its event or tasks.
  virtual void sell(Sale& sale) = 0;
};

/// One worker's connection. Only one thread may use it.
class Packer {
 public:
  virtual ~Packer() = default;

  /// In one transaction does what the task is for, unless another run of it has committed. With
  /// `drops` throws just before the commit.
  virtual void work(const TaskRun& run, const Order& order, bool drops) = 0;
};

/// An order that was packed.
struct Parcel {
  /// Grows, but a parcel may be seen later than a greater one of another customer.
  std::int64_t number{0};
  Order order;
};

/// Makes the tables and the outbox beside them, and removes them at the end unless they are kept.
class Shop {
 public:
  virtual ~Shop() = default;

  /// Refuses a database with tables that are not the demo's.
  virtual void open() = 0;
  virtual void keep() = 0;
  [[nodiscard]] virtual std::unique_ptr<Till> till() = 0;
  /// All orders that were committed.
  [[nodiscard]] virtual std::vector<Order> orders() = 0;

  // These are for tasks. packer() works for a shop that another process has opened, too.
  [[nodiscard]] virtual std::unique_ptr<Packer> packer() = 0;
  [[nodiscard]] virtual std::vector<Parcel> parcels(std::int64_t after) = 0;
  /// Customers whose statement does not show their last order.
  [[nodiscard]] virtual std::int64_t stale_statements() = 0;

  /// The outbox's schema, for the relay's configuration.
  [[nodiscard]] virtual std::string schema() const = 0;
  /// The place for the screen, without a password.
  [[nodiscard]] virtual std::string place() const = 0;
};

/// The shop of the kind that the address says.
[[nodiscard]] std::unique_ptr<Shop> make_shop(const std::string& url);
/// `url` is sqlite:PATH.
[[nodiscard]] std::unique_ptr<Shop> make_sqlite_shop(const std::string& url);
[[nodiscard]] std::unique_ptr<Shop> make_postgres_shop(const std::string& url);

// ---- Statements for both stores. `db` is a connection of tests/support, `schema` the schema of
// the shop's tables.

/// A reference is the primary key, so an order cannot be written twice. A parcel can be, so that it
/// would be seen. `number` is the column that counts parcels.
template <class Db>
void make_tables(Db& db, const std::string& schema, const char* number) {
  db.run(fmt::format(
      "CREATE TABLE {0}.shop_customer (id INTEGER PRIMARY KEY, version bigint NOT NULL);"
      "CREATE TABLE {0}.shop_order (reference text PRIMARY KEY, customer int NOT NULL, version bigint NOT NULL,"
      " cents bigint NOT NULL);"
      "CREATE TABLE {0}.shop_parcel (number {1} PRIMARY KEY, reference text NOT NULL, customer int NOT NULL,"
      " version bigint NOT NULL, cents bigint NOT NULL);"
      "CREATE TABLE {0}.shop_statement (customer INTEGER PRIMARY KEY, version bigint NOT NULL)",
      schema, number));
  for (int id = 1; id <= kCustomers; ++id)
    db.run(fmt::format("INSERT INTO {}.shop_customer VALUES ({}, 0)", schema, id));
}

/// Raises the customer's version, and writes the order with it.
template <class Db>
void write_order(Db& db, const std::string& schema, Order& order) {
  const std::string version = db.value(fmt::format(
      "UPDATE {}.shop_customer SET version = version + 1 WHERE id = {} RETURNING version", schema,
      order.customer));
  order.version = std::stoll(version);
  db.run(fmt::format("INSERT INTO {}.shop_order VALUES ('{}', {}, {}, {})", schema, order.reference,
                     order.customer, order.version, order.cents));
}

/// Enqueues the event or the tasks of a sale.
template <class Enqueue>
void tell(const Enqueue& enqueue, const Sale& sale) {
  if (sale.tells == Tells::relay) enqueue(to_event(sale.order));
  if (sale.tells != Tells::workers) return;
  enqueue(make_packing(sale.order));
  enqueue(make_statement(sale.order));
}

/// Does what the task is for in the worker's transaction, unless another run of the task has done
/// so.
template <class Transaction, class Db>
void work_once(Transaction& transaction, Db& db, const std::string& schema, const TaskRun& run,
               const Order& order, bool drops) {
  const char* const sql =
      run.type == kStatement
          ? "INSERT INTO {0}.shop_statement SELECT id, version FROM {0}.shop_customer WHERE id = {2} "
            "ON CONFLICT (customer) DO UPDATE SET version = excluded.version"
          : "INSERT INTO {0}.shop_parcel (reference, customer, version, cents) VALUES ('{1}', {2}, {3}, {4})";
  if (run.once(transaction)) {
    db.run(fmt::format(fmt::runtime(sql), schema, order.reference, order.customer, order.version,
                       order.cents));
  }
  if (drops) throw std::runtime_error("order " + order.reference + " was dropped");
  transaction.commit();
}

/// The order in the columns of a row from this one on.
template <class Row>
Order read_order(const Row& row, std::size_t first) {
  return {.reference = *row.at(first),
          .customer = std::stoi(*row.at(first + 1)),
          .version = std::stoll(*row.at(first + 2)),
          .cents = std::stoll(*row.at(first + 3))};
}

template <class Db>
std::vector<Parcel> read_parcels(Db& db, const std::string& schema, std::int64_t after) {
  std::vector<Parcel> parcels;
  for (
      const auto& row : db.exec(fmt::format(
          "SELECT number, reference, customer, version, cents FROM {}.shop_parcel WHERE number > {} ORDER BY number",
          schema, after))) {
    parcels.push_back({.number = std::stoll(*row.at(0)), .order = read_order(row, 1)});
  }
  return parcels;
}

template <class Db>
std::int64_t count_stale_statements(Db& db, const std::string& schema) {
  return std::stoll(db.value(fmt::format(
      "SELECT count(*) FROM {0}.shop_customer c WHERE version > 0 AND NOT EXISTS "
      "(SELECT 1 FROM {0}.shop_statement s WHERE s.customer = c.id AND s.version = c.version)",
      schema)));
}

template <class Db>
std::vector<Order> read_orders(Db& db, const std::string& schema) {
  std::vector<Order> orders;
  const std::string columns = "SELECT reference, customer, version, cents FROM ";
  for (const auto& row : db.exec(columns + schema + ".shop_order"))
    orders.push_back(read_order(row, 0));
  return orders;
}

}  // namespace outbox::demo
