#include "support/pg.hpp"

namespace outbox::test {

Pg::Pg(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (broken()) throw PgError(PQerrorMessage(connection_.get()), {});
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

std::vector<PgRow> Pg::exec(const std::string& sql) {
  return take(PQexec(connection_.get(), sql.c_str()));
}

std::vector<PgRow> Pg::exec(const std::string& sql,
                            std::initializer_list<std::optional<std::string>> parameters) {
  std::vector<const char*> values;
  for (const auto& parameter : parameters)
    values.push_back(parameter ? parameter->c_str() : nullptr);
  return take(PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(values.size()), nullptr,
                           values.data(), nullptr, nullptr, 0));
}

std::vector<PgRow> Pg::take(PGresult* result) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> owned(result, &PQclear);
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    throw PgError(PQerrorMessage(connection_.get()), state == nullptr ? "" : state);
  }
  std::vector<PgRow> rows(static_cast<std::size_t>(PQntuples(result)));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < PQnfields(result); ++column) {
      auto& into = rows[static_cast<std::size_t>(row)].emplace_back();
      if (PQgetisnull(result, row, column) == 0) into = PQgetvalue(result, row, column);
    }
  }
  return rows;
}

}  // namespace outbox::test
