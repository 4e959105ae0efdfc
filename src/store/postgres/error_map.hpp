// Maps errors of PostgreSQL to outbox::Error. This is the only place of the store that reads
// SQLSTATEs.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store::postgres {

/// Maps a SQLSTATE such as "40001" to what the caller can do. `what` says what was being done, and
/// `said` is the server's primary message (its DETAIL may hold the values of a row and is never
/// shown).
[[nodiscard]] Error map_sqlstate(std::string_view sqlstate, std::string_view what,
                                 std::string_view said);

/// The error of a failed result. Falls back to pg::lost_connection() when the server gave no
/// reason.
[[nodiscard]] Error map_result(const PGresult* result, const PGconn* connection,
                               std::string_view what);

/// Whether the error says that a lock was not free in time.
[[nodiscard]] bool is_locked(const Error& error) noexcept;

}  // namespace outbox::store::postgres
