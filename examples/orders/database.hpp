// libpq, and the tables.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <outbox/postgres.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace orders {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Rows = std::unique_ptr<PGresult, decltype(&PQclear)>;

inline Connection connect(const std::string& url) {
  Connection connection(PQconnectdb(url.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  return connection;
}

/// What fails is an outbox::Exception: with_transaction() sees a serialization failure by it.
inline Rows query(PGconn* connection, const char* sql,
                  const std::vector<std::string>& values = {}) {
  std::vector<const char*> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(value.c_str());
  Rows rows(PQexecParams(connection, sql, static_cast<int>(texts.size()), nullptr, texts.data(),
                         nullptr, nullptr, 0),
            &PQclear);
  outbox::postgres::check(connection, rows.get(), "orders");
  return rows;
}

/// A request of a customer, known by its key, is one order.
inline void make_tables(PGconn* connection) {
  query(
      connection,
      "CREATE TABLE IF NOT EXISTS orders ("
      " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer bigint NOT NULL, request_key text NOT NULL,"
      " cents bigint NOT NULL CHECK (cents > 0), currency text NOT NULL, paid boolean NOT NULL DEFAULT false,"
      " UNIQUE (customer, request_key))");
}

}  // namespace orders
