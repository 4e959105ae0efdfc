// The shop's database: its business tables beside an outbox, a till for each writer, and the books read back at the end.
#pragma once

#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "demo/order.hpp"

namespace outbox::demo {

inline constexpr int kCustomers = 40;

/// One writer's connection. One thread. The four steps of a sale, in this order:
///   begin() opens a transaction, raises the customer's version (which locks the customer) and writes the order;
///   enqueue() writes its event in the same transaction (not in a dual write);
///   commit() or roll_back() ends it.
class Till {
 public:
  Till() = default;
  Till(const Till&) = delete;
  Till& operator=(const Till&) = delete;
  Till(Till&&) = delete;
  Till& operator=(Till&&) = delete;
  virtual ~Till() = default;

  /// Fills in the version.
  [[nodiscard]] virtual Status begin(Order& order) = 0;
  [[nodiscard]] virtual Status enqueue(const Order& order) = 0;
  [[nodiscard]] virtual Status commit() = 0;
  virtual void roll_back() = 0;
};

class Shop {
 public:
  Shop() = default;
  Shop(const Shop&) = delete;
  Shop& operator=(const Shop&) = delete;
  Shop(Shop&&) = delete;
  Shop& operator=(Shop&&) = delete;
  virtual ~Shop() = default;

  /// Makes the tables, and the outbox beside them. Refuses where something is that is not ours.
  [[nodiscard]] virtual Status open() = 0;
  /// Any thread.
  [[nodiscard]] virtual Result<std::unique_ptr<Till>> till() = 0;
  /// All orders in the tables: what was committed.
  [[nodiscard]] virtual Result<std::vector<Order>> books() = 0;
  /// Removes what open() made.
  [[nodiscard]] virtual Status clear() = 0;

  /// Of the outbox, for the relay's configuration.
  [[nodiscard]] virtual const std::string& url() const = 0;
  [[nodiscard]] virtual std::string schema() const = 0;
  /// For people; no password.
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
