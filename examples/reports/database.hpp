// What the two programs share: the task, and libpq.
#pragma once

#include <libpq-fe.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <outbox/json.hpp>
#include <stdexcept>
#include <string>

namespace reports {

struct MakeReport {
  static constexpr const char* task_type = "report.make";
  std::string customer;
  std::string month;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(MakeReport, customer, month)
};

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

inline std::string database_url() {
  const char* const url = std::getenv("DATABASE_URL");
  return url == nullptr ? "" : url;
}

inline Connection connect() {
  Connection connection(PQconnectdb(database_url().c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  return connection;
}

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

/// A report names its task, and each task has one report at most: a run that comes again cannot
/// make a second one.
inline void make_tables() {
  const auto connection = connect();
  for (const char* const sql :
       {"CREATE TABLE IF NOT EXISTS report_request (task uuid PRIMARY KEY, customer text NOT NULL,"
        " month text NOT NULL)",
        "CREATE TABLE IF NOT EXISTS report (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " task uuid NOT NULL UNIQUE, text text NOT NULL)"})
    query(connection.get(), sql, std::array<std::string, 0>{});
}

}  // namespace reports
