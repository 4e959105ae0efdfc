// libpq with as little as possible around it: the tests do not use the product's own connection to check the product.
#pragma once

#include <libpq-fe.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::test {

class PgError : public std::runtime_error {
 public:
  PgError(const std::string& what, std::string state)
      : std::runtime_error(what), state_(std::move(state)) {}
  /// SQLSTATE; empty when the connection broke.
  [[nodiscard]] const std::string& state() const { return state_; }

 private:
  std::string state_;
};

using PgRow = std::vector<std::optional<std::string>>;

class Pg {
 public:
  explicit Pg(const std::string& url);

  /// Several statements, or one. Throws PgError.
  std::vector<PgRow> exec(const std::string& sql);
  /// One statement with text parameters.
  std::vector<PgRow> exec(const std::string& sql,
                          std::initializer_list<std::optional<std::string>> parameters);
  /// The only value of the only row.
  template <class... Parameters>
  [[nodiscard]] std::string value(const std::string& sql, Parameters... parameters) {
    const auto rows = exec(sql, {std::optional<std::string>(parameters)...});
    if (rows.size() != 1 || rows[0].size() != 1 || !rows[0][0])
      throw std::runtime_error("not one value: " + sql);
    return *rows[0][0];
  }
  [[nodiscard]] PGconn* native() const { return connection_.get(); }
  [[nodiscard]] bool broken() const { return PQstatus(connection_.get()) != CONNECTION_OK; }

 private:
  struct Close {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  std::vector<PgRow> take(PGresult* result);
  std::unique_ptr<PGconn, Close> connection_;
};

}  // namespace outbox::test
