// The database of the shop: business tables and an outbox, a till for each writer, and the orders read back at the end.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

inline constexpr int kCustomers = 40;

struct Sale {
  Order order;            ///< The till fills in the version.
  bool with_event{true};  ///< Else it is a dual write.
  bool committed{true};   ///< Else it is rolled back just before the commit.
  std::function<void()> before_commit{};
};

/// One writer's connection. One thread.
class Till {
 public:
  virtual ~Till() = default;

  /// One transaction: raises the customer's version (which locks the customer), writes the order, and writes its event.
  virtual void sell(Sale& sale) = 0;
};

/// Makes the tables and the outbox beside them, and removes them at the end unless they are kept.
class Shop {
 public:
  virtual ~Shop() = default;

  /// Refuses a database with tables that are not ours.
  virtual void open() = 0;
  virtual void keep() = 0;
  [[nodiscard]] virtual std::unique_ptr<Till> till() = 0;
  /// All orders in the tables: those that were committed.
  [[nodiscard]] virtual std::vector<Order> orders() = 0;

  /// Of the outbox, for the relay's configuration.
  [[nodiscard]] virtual std::string schema() const = 0;
  /// For the screen; without a password.
  [[nodiscard]] virtual std::string place() const = 0;
};

/// `url`: sqlite:PATH.
[[nodiscard]] std::unique_ptr<Shop> make_sqlite_shop(const std::string& url);
[[nodiscard]] std::unique_ptr<Shop> make_postgres_shop(const std::string& url);

// ---- statements that both stores understand. `db`: a connection of the testkit; `schema`: of the shop's tables.

/// A reference is the primary key: an order cannot be written twice.
template <class Db>
void make_tables(Db& db, const std::string& schema) {
  db.run(fmt::format(
      "CREATE TABLE {0}.shop_customer (id INTEGER PRIMARY KEY, version bigint NOT NULL);"
      "CREATE TABLE {0}.shop_order (reference text PRIMARY KEY, customer int NOT NULL, version bigint NOT NULL,"
      " cents bigint NOT NULL)",
      schema));
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

template <class Db>
std::vector<Order> read_orders(Db& db, const std::string& schema) {
  std::vector<Order> orders;
  const std::string columns = "SELECT reference, customer, version, cents FROM ";
  for (const auto& row : db.exec(columns + schema + ".shop_order")) {
    orders.push_back({.reference = *row.at(0),
                      .customer = std::stoi(*row.at(1)),
                      .version = std::stoll(*row.at(2)),
                      .cents = std::stoll(*row.at(3))});
  }
  return orders;
}

}  // namespace outbox::demo
