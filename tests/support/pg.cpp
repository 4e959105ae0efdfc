#include "support/pg.hpp"

#include "support/failure.hpp"

namespace outbox::test {
namespace {

/// The first line of the text is the error. The further lines are details and hints.
Error make_error(const std::string& text, const std::string& state) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  std::string more = text.substr(std::min(line + 1, text.size()));
  while (more.ends_with('\n')) more.pop_back();
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = text.substr(0, line),
               .hint = std::move(more),
               .origin = state.empty() ? "pg" : "pg:" + state};
}

std::vector<PgRow> read_rows(const PGresult* result) {
  std::vector<PgRow> rows(static_cast<std::size_t>(PQntuples(result)));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < PQnfields(result); ++column) {
      auto& into = rows[static_cast<std::size_t>(row)].emplace_back();
      if (PQgetisnull(result, row, column) == 0) into = PQgetvalue(result, row, column);
    }
  }
  return rows;
}

}  // namespace

PgError::PgError(const std::string& what, std::string state)
    : Exception(make_error(what, state)), state_(std::move(state)) {}

Pg::Pg(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (broken()) throw PgError(std::string("connect: ") + PQerrorMessage(native()), {});
  PQsetNoticeProcessor(
      native(), [](void*, const char*) {}, nullptr);
}

std::vector<PgRow> Pg::exec(const std::string& sql) {
  return read_rows(check(PQexec(native(), sql.c_str())).get());
}

std::vector<PgRow> Pg::exec(const std::string& sql,
                            std::initializer_list<std::optional<std::string>> parameters) {
  std::vector<const char*> values;
  for (const auto& parameter : parameters)
    values.push_back(parameter ? parameter->c_str() : nullptr);
  return read_rows(check(PQexecParams(native(), sql.c_str(), static_cast<int>(values.size()),
                                      nullptr, values.data(), nullptr, nullptr, 0))
                       .get());
}

void Pg::run_prepared(const char* name, std::initializer_list<const char*> parameters) {
  (void)check(PQexecPrepared(native(), name, static_cast<int>(parameters.size()),
                             parameters.begin(), nullptr, nullptr, 0));
}

PgResult Pg::check(PGresult* result) const {
  PgResult owned(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return owned;
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  throw PgError(PQerrorMessage(native()), state == nullptr ? "" : state);
}

std::string Pg::only_value(const std::string& sql, const std::vector<PgRow>& rows) {
  if (rows.size() == 1 && rows[0].size() == 1 && rows[0][0]) return *rows[0][0];
  give_up(Errc::internal, "not one value: " + sql);
}

}  // namespace outbox::test
