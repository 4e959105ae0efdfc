#include "store/sqlite/statement.hpp"

#include "base/error.hpp"
#include "store/sqlite/error_map.hpp"

namespace outbox::store::sqlite {
namespace {

/// What the statement was for: the comment it begins with ("/* read page */ SELECT ...").
std::string_view purpose(sqlite3_stmt* stmt) {
  const std::string_view sql = sqlite3_sql(stmt);
  const auto end = sql.find(" */");
  if (sql.substr(0, 3) != "/* " || end == std::string_view::npos) return "statement";
  return sql.substr(3, end - 3);
}

// An empty view may have no address, and SQLite takes a null pointer for NULL.
const char* address(std::string_view bytes) { return bytes.data() != nullptr ? bytes.data() : ""; }

}  // namespace

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(stmt_, index, value);
  return *this;
}

// Binding fails only for an index that is not there or without memory; the NULL that then stands there breaks a NOT
// NULL.
Statement& Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(stmt_, index, address(text), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(stmt_, index, address(bytes), bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(stmt_, index);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(map_error(sqlite3_db_handle(stmt_), code, purpose(stmt_)));
}

Status Statement::run() {
  while (true) {
    auto row = step();
    if (!row) return pass(row);
    if (!*row) return {};
  }
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string{} : std::string(data, static_cast<std::size_t>(size));
}

std::string_view Statement::bytes(int column) const {
  // The order of the two calls matters: bytes() after blob() does not convert.
  const auto* data = static_cast<const char*>(sqlite3_column_blob(stmt_, column));
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string_view{}
                         : std::string_view{data, static_cast<std::size_t>(size)};
}

}  // namespace outbox::store::sqlite
