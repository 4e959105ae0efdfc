// What the service does to its tables. Each function is one transaction, with its event in it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <outbox/postgres.hpp>
#include <string>
#include <variant>

#include "database.hpp"
#include "types.hpp"

namespace orders {

struct PlacedOrder {
  OrderId id;
  CustomerId customer;
  Money total;
  bool paid{false};
};

/// The key was sent with another order.
struct OtherOrder {};
/// The customer owes too much already.
struct OverLimit {};

/// Unpaid orders of a customer, in one currency.
constexpr std::int64_t kCreditLimitCents = 100'000;

inline nlohmann::json to_json(const PlacedOrder& order) {
  return {{"order", order.id.value()},
          {"customer", order.customer.value()},
          {"amount", order.total.amount()},
          {"currency", order.total.currency()},
          {"paid", order.paid}};
}

/// None: there is no such order.
inline std::optional<PlacedOrder> find(PGconn* connection, OrderId id) {
  const Rows rows = query(
      connection, "SELECT customer, cents, currency, paid FROM orders WHERE id = $1", {id.text()});
  if (PQntuples(rows.get()) == 0) return std::nullopt;
  const auto text = [&](int column) { return std::string(PQgetvalue(rows.get(), 0, column)); };
  return PlacedOrder{.id = id,
                     .customer = CustomerId::parse(text(0)).value(),
                     .total = Money::of_cents(std::stoll(text(1)), text(2)),
                     .paid = text(3) == "t"};
}

class Shop {
 public:
  using Placed = std::variant<PlacedOrder, OtherOrder, OverLimit>;

  /// The limit reads what other transactions write: at this isolation one of two that would break
  /// it together fails, and is done again.
  [[nodiscard]] Placed place(PGconn* connection, CustomerId customer, const Money& total,
                             const std::string& request_key) const {
    return outbox::postgres::with_transaction(
        connection,
        [&](outbox::postgres::Transaction& tx) -> Placed {
          const Rows known =
              query(connection, "SELECT id FROM orders WHERE customer = $1 AND request_key = $2",
                    {customer.text(), request_key});
          if (PQntuples(known.get()) == 1) {
            const auto order =
                find(connection, OrderId::parse(PQgetvalue(known.get(), 0, 0)).value());
            if (order->total == total) return *order;
            return OtherOrder{};
          }
          const Rows open = query(connection,
                                  "SELECT coalesce(sum(cents), 0)::bigint FROM orders"
                                  " WHERE customer = $1 AND currency = $2 AND NOT paid",
                                  {customer.text(), total.currency()});
          const std::int64_t owed = std::stoll(PQgetvalue(open.get(), 0, 0));
          if (total.cents() > kCreditLimitCents - owed) return OverLimit{};
          const Rows row = query(
              connection,
              "INSERT INTO orders (customer, request_key, cents, currency)"
              " VALUES ($1, $2, $3, $4) RETURNING id",
              {customer.text(), request_key, std::to_string(total.cents()), total.currency()});
          const PlacedOrder order{.id = OrderId::parse(PQgetvalue(row.get(), 0, 0)).value(),
                                  .customer = customer,
                                  .total = total};
          enqueue(tx, "OrderPlaced", order);
          return order;
        },
        serializable_);
  }

  /// None: there is no such order. An order is paid once, however often it is asked.
  [[nodiscard]] std::optional<PlacedOrder> pay(PGconn* connection, OrderId id) const {
    return outbox::postgres::with_transaction(
        connection,
        [&](outbox::postgres::Transaction& tx) -> std::optional<PlacedOrder> {
          const Rows changed = query(
              connection, "UPDATE orders SET paid = true WHERE id = $1 AND NOT paid RETURNING id",
              {id.text()});
          const auto order = find(connection, id);
          if (PQntuples(changed.get()) == 1) enqueue(tx, "OrderPaid", *order);
          return order;
        },
        serializable_);
  }

 private:
  static void enqueue(outbox::postgres::Transaction& tx, const char* what,
                      const PlacedOrder& order) {
    tx.enqueue({.aggregate_type = "order",
                .aggregate_id = order.id.text(),
                .event_type = what,
                .payload = to_json(order).dump()});
  }

  const outbox::postgres::TransactionOptions serializable_{
      .isolation = outbox::postgres::Isolation::serializable, .retry = {.attempts = 30}};
};

}  // namespace orders
