// A prepared statement: binds values, steps, and reads columns. It is move-only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace outbox::store::sqlite {

/// A statement lent by a Connection for one execution. Its destructor resets it, which also ends
/// the read transaction that it may have opened. Bound text must stay valid until then.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* stmt) : stmt_(stmt) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement(Statement&& other) noexcept
      : stmt_(std::exchange(other.stmt_, nullptr)), has_row_(other.has_row_) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  void bind(int index, std::int64_t value) { sqlite3_bind_int64(stmt_, index, value); }
  void bind(int index, std::string_view text);

  /// Steps to the first row, or to the next one.
  [[nodiscard]] Status next();
  [[nodiscard]] bool has_row() const { return has_row_; }

  // The columns of the row.
  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(stmt_, column);
  }
  [[nodiscard]] bool is_null(int column) const {
    return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
  }
  /// Text or blob as it is stored, valid until the next next().
  [[nodiscard]] std::string_view bytes(int column) const;
  /// The column as UTF-8, whatever the encoding of the file.
  [[nodiscard]] std::string text(int column) const;

  [[nodiscard]] sqlite3_stmt* raw() const { return stmt_; }

 private:
  sqlite3_stmt* stmt_;
  bool has_row_{false};
};

}  // namespace outbox::store::sqlite
