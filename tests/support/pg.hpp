// A thin wrapper of libpq. Checks and measurements do not use the connection class of the product.
#pragma once

#include <libpq-fe.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

namespace outbox::test {

class PgError : public Exception {
 public:
  PgError(const std::string& what, std::string state);
  /// The SQLSTATE; empty if the connection broke.
  [[nodiscard]] const std::string& state() const { return state_; }

 private:
  std::string state_;
};

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, ClearResult>;
using PgRow = std::vector<std::optional<std::string>>;

class Pg {
 public:
  /// Throws PgError, as all functions do.
  explicit Pg(const std::string& url);

  /// Executes one or several statements.
  std::vector<PgRow> exec(const std::string& sql);
  /// Executes one statement with text parameters.
  std::vector<PgRow> exec(const std::string& sql,
                          std::initializer_list<std::optional<std::string>> parameters);
  /// Does the same without returning rows.
  void run(const std::string& sql) { (void)check(PQexec(native(), sql.c_str())); }
  void run_prepared(const char* name, std::initializer_list<const char*> parameters);
  /// Returns the result if it is no error.
  PgResult check(PGresult* result) const;

  /// The only value of the only row.
  template <class... Parameters>
  [[nodiscard]] std::string value(const std::string& sql, Parameters... parameters) {
    return only_value(sql, exec(sql, {std::optional<std::string>(parameters)...}));
  }
  [[nodiscard]] PGconn* native() const { return connection_.get(); }
  [[nodiscard]] bool broken() const { return PQstatus(native()) != CONNECTION_OK; }

 private:
  struct Close {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  static std::string only_value(const std::string& sql, const std::vector<PgRow>& rows);

  std::unique_ptr<PGconn, Close> connection_;
};

}  // namespace outbox::test
