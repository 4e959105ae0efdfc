// order_service CUSTOMER AMOUNT CURRENCY: places an order in the database that DATABASE_URL names,
// and prints its number. The order and the event OrderPlaced are one transaction. Before the first
// one: outbox migrate --store "$DATABASE_URL"
#include <libpq-fe.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <outbox/json.hpp>
#include <outbox/postgres.hpp>
#include <stdexcept>

#include "types.hpp"

namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

template <std::size_t count>
Result query(PGconn* connection, const char* sql, const std::array<std::string, count>& values) {
  std::array<const char*, count> texts{};
  for (std::size_t i = 0; i < count; ++i) texts[i] = values[i].c_str();
  Result result(PQexecParams(connection, sql, static_cast<int>(count), nullptr, texts.data(),
                             nullptr, nullptr, 0),
                &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(PQerrorMessage(connection));
  return result;
}

Connection connect() {
  const char* const url = std::getenv("DATABASE_URL");
  Connection connection(PQconnectdb(url == nullptr ? "" : url), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  query(connection.get(),
        "CREATE TABLE IF NOT EXISTS shop_order (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " customer bigint NOT NULL, cents bigint NOT NULL, currency char(3) NOT NULL)",
        std::array<std::string, 0>{});
  return connection;
}

struct OrderPlaced {
  static constexpr const char* aggregate_type = "order";
  static constexpr const char* event_type = "OrderPlaced";
  std::int64_t order, customer, cents;
  std::string currency;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(OrderPlaced, order, customer, cents, currency)
};

shop::OrderId place(PGconn* connection, shop::CustomerId customer, const shop::Money& total) {
  outbox::postgres::Transaction tx(connection);
  const Result row = query(
      connection,
      "INSERT INTO shop_order (customer, cents, currency) VALUES ($1, $2, $3) RETURNING id",
      std::array{std::to_string(customer.value), std::to_string(total.cents()), total.currency()});
  const shop::OrderId order{std::stoll(PQgetvalue(row.get(), 0, 0))};
  tx.enqueue(OrderPlaced{order.value, customer.value, total.cents(), total.currency()},
             std::to_string(order.value));
  tx.commit();  // the order and its event exist if and only if this succeeds
  return order;
}

}  // namespace

int main(int argc, char** argv) {
  const auto total = argc == 4 ? shop::Money::parse(argv[2], argv[3]) : std::nullopt;
  if (!total) {
    (void)std::fprintf(stderr,
                       "usage: order_service CUSTOMER AMOUNT CURRENCY, such as 7 12.50 EUR\n");
    return 2;
  }
  try {
    const Connection connection = connect();
    const auto order = place(connection.get(), {std::stoll(argv[1])}, *total);
    std::printf("%lld\n", static_cast<long long>(order.value));
    return 0;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "order_service: %s\n", error.what());
    return 1;
  }
}
