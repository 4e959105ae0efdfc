// The database of the shop: business tables and an outbox, a till for each writer, and the orders read back at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

inline constexpr int kCustomers = 40;

/// One writer's connection. One thread. The steps of a sale, in this order:
///   begin() opens a transaction, raises the customer's version (which locks the customer) and writes the order;
///   enqueue() writes its event in the same transaction (not in a dual write);
///   commit() or roll_back() ends it. After an exception: roll_back().
class Till {
 public:
  virtual ~Till() = default;

  /// Fills in the version.
  virtual void begin(Order& order) = 0;
  virtual void enqueue(const Order& order) = 0;
  virtual void commit() = 0;
  virtual void roll_back() noexcept = 0;
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
  [[nodiscard]] virtual const std::string& url() const = 0;
  [[nodiscard]] virtual std::string schema() const = 0;
  /// For the screen; without a password.
  [[nodiscard]] virtual std::string place() const = 0;
};

#ifdef OUTBOX_WITH_SQLITE
/// `url`: sqlite:PATH.
[[nodiscard]] std::unique_ptr<Shop> make_sqlite_shop(std::string url);
#endif
#ifdef OUTBOX_WITH_POSTGRES
[[nodiscard]] std::unique_ptr<Shop> make_postgres_shop(std::string url);
#endif

}  // namespace outbox::demo
