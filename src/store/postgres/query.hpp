// A statement, and the functions that make its text.
#pragma once

#include <string>
#include <string_view>

namespace outbox::store::postgres {

/// A statement with the schema filled in. It is made once for each store (queries.hpp) and lives as
/// long as the store.
struct Query {
  std::string what;  ///< For error messages: "append settlements".
  std::string sql;
  std::string handle;  ///< Its name as a prepared statement; if empty, it is sent unnamed each
                       ///< time.
};

/// Replaces every `marker` by the value.
void replace_all(std::string& text, std::string_view marker, std::string_view value);
/// Replaces every {schema} by the quoted schema, and every {name} by the unquoted one, for use
/// inside strings.
[[nodiscard]] std::string with_schema(std::string_view sql, std::string_view schema);

/// A statement to be prepared. Its name is a hash of its text, so that behind a pooler another
/// program's statement is never taken for ours.
[[nodiscard]] Query prepared(std::string_view what, std::string_view sql, std::string_view schema);
/// A statement that is not worth preparing because it is run only once, or has no plan.
[[nodiscard]] Query unprepared(std::string_view what, std::string_view sql,
                               std::string_view schema);

}  // namespace outbox::store::postgres
