// Maps errors of SQLite to outbox::Error. This is the only place that reads SQLITE_* codes.
#pragma once

#include <sqlite3.h>

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store::sqlite {

/// Maps an extended result code to what the caller can do. `what` says what was being done, and
/// `said` is SQLite's own message.
[[nodiscard]] Error map_code(int code, std::string_view what, std::string_view said);

/// The error of the last call on this connection, which returned `code`. `db` may be null (out of
/// memory at open).
[[nodiscard]] Error map_error(sqlite3* db, int code, std::string_view what);

}  // namespace outbox::store::sqlite
