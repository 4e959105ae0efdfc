// One prepared statement: binds, steps, reads columns. Move-only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace outbox::store::sqlite {

/// A statement lent by a Connection for one execution: given back (reset) when it goes out of scope, which also ends
/// the read transaction it may have opened. Bound text must stay valid until then.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* stmt) : stmt_(stmt) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement(Statement&& other) noexcept : stmt_(std::exchange(other.stmt_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);

  /// True: there is a row.
  [[nodiscard]] Result<bool> step();
  /// Runs it to its end, for statements without rows.
  [[nodiscard]] Status run();

  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(stmt_, column);
  }
  [[nodiscard]] bool is_null(int column) const {
    return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
  }
  /// Text or blob as it is stored, valid until the next step().
  [[nodiscard]] std::string_view bytes(int column) const;
  /// As UTF-8, whatever the encoding of the file.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] sqlite3_stmt* raw() const { return stmt_; }

 private:
  sqlite3_stmt* stmt_;
};

}  // namespace outbox::store::sqlite
