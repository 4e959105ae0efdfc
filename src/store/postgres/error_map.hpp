// Errors of PostgreSQL and libpq as outbox::Error. The only place that reads SQLSTATEs.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store::postgres {

/// "40001" -> what the caller can do. `what` was being done, `said` is the server's primary message (its DETAIL
/// may hold the values of a row and is never shown).
[[nodiscard]] Error map_sqlstate(std::string_view sqlstate, std::string_view what,
                                 std::string_view said);

/// The error of a failed result. Falls back to lost_connection() when the server gave no reason.
[[nodiscard]] Error map_result(const PGresult* result, const PGconn* connection,
                               std::string_view what);

/// The connection broke, and what was sent may or may not have happened.
[[nodiscard]] Error lost_connection(const PGconn* connection, std::string_view what);

/// The connection could not be made: one line, without the connection string.
[[nodiscard]] Error failed_connect(const PGconn* connection);

/// libpq's messages span lines and end in one: "a\nb\n" -> "a; b".
[[nodiscard]] std::string one_line(std::string_view message);

}  // namespace outbox::store::postgres
