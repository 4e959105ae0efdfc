// Places an order in the database that DATABASE_URL names: the order and its event are one
// transaction. Before the first run: outbox migrate --store "$DATABASE_URL"
#include <libpq-fe.h>

#include <cstdio>
#include <cstdlib>
#include <outbox/postgres.hpp>

namespace {

PGresult* checked(PGconn* connection, PGresult* result) {
  const auto status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return result;
  (void)std::fprintf(stderr, "%s", PQerrorMessage(connection));
  std::exit(1);
}

}  // namespace

int main() {
  const char* const url = std::getenv("DATABASE_URL");
  PGconn* connection = PQconnectdb(url != nullptr ? url : "");
  if (PQstatus(connection) != CONNECTION_OK) {
    (void)std::fprintf(stderr, "%s", PQerrorMessage(connection));
    PQfinish(connection);
    return 1;
  }
  PQclear(checked(
      connection,
      PQexec(connection,
             "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, total numeric)")));

  outbox::postgres::Transaction tx(connection);
  PGresult* placed = checked(
      connection, PQexec(connection, "INSERT INTO orders (total) VALUES (12.5) RETURNING id"));
  tx.enqueue({.aggregate_type = "order",
              .aggregate_id = PQgetvalue(placed, 0, 0),
              .event_type = "OrderPlaced",
              .payload = R"({"total": 12.5})"});
  tx.commit();  // writes the event and commits, in one round trip
  PQclear(placed);
  PQfinish(connection);
}
