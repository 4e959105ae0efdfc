#include "store/sqlite/statement.hpp"

#include "base/error.hpp"
#include "store/sqlite/error_map.hpp"

namespace outbox::store::sqlite {
namespace {

/// The comment that the statement begins with ("/* read page */ SELECT ...").
std::string_view purpose(sqlite3_stmt* stmt) {
  const std::string_view sql = sqlite3_sql(stmt);
  const auto end = sql.find(" */");
  if (!sql.starts_with("/* ") || end == std::string_view::npos) return "statement";
  return sql.substr(3, end - 3);
}

}  // namespace

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}

// Binding fails only for a wrong index or when memory is short; the NULL that is then bound
// violates a NOT NULL constraint.
void Statement::bind(int index, std::string_view text) {
  // An empty view may have a null address, and SQLite takes a null pointer for NULL.
  const char* const address = text.data() != nullptr ? text.data() : "";
  sqlite3_bind_text64(stmt_, index, address, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

Status Statement::next() {
  const int code = sqlite3_step(stmt_);
  has_row_ = code == SQLITE_ROW;
  if (has_row_ || code == SQLITE_DONE) return {};
  return fail(map_error(sqlite3_db_handle(stmt_), code, purpose(stmt_)));
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string{} : std::string(data, static_cast<std::size_t>(size));
}

std::string_view Statement::bytes(int column) const {
  // The order matters: after blob(), bytes() does not convert.
  const auto* data = static_cast<const char*>(sqlite3_column_blob(stmt_, column));
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string_view{}
                         : std::string_view{data, static_cast<std::size_t>(size)};
}

}  // namespace outbox::store::sqlite
