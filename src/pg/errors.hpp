// Errors of libpq that have no SQLSTATE, as outbox::Error, and the fields of those that have one.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::pg {

/// The connection broke, and what was sent may or may not have happened. `what` was being done.
[[nodiscard]] Error lost_connection(const PGconn* connection, std::string_view what);

/// The connection could not be made: one line, without the connection string.
[[nodiscard]] Error failed_connect(const PGconn* connection);

/// libpq's messages span lines and end in one: "a\nb\n" -> "a; b".
[[nodiscard]] std::string one_line(std::string_view message);

/// "what: said"
[[nodiscard]] std::string in_words(std::string_view what, std::string_view said);

/// A field of the server's error (PG_DIAG_SQLSTATE); empty: it has none.
[[nodiscard]] std::string_view field(const PGresult* result, int code);

}  // namespace outbox::pg
