// Errors of libpq that have no SQLSTATE, as outbox::Error, and the fields of those that have one.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::pg {

/// The error for a broken connection: what was sent may have happened. `what` was being done.
[[nodiscard]] Error lost_connection(const PGconn* connection, std::string_view what);

/// The error for a connection that could not be made, in one line without the connection string.
[[nodiscard]] Error failed_connect(const PGconn* connection);

/// The message, which has several lines in libpq, as one line: "a; b".
[[nodiscard]] std::string one_line(std::string_view message);

/// The text "what: said".
[[nodiscard]] std::string in_words(std::string_view what, std::string_view said);

/// A field of the server's error, such as PG_DIAG_SQLSTATE; empty if the error does not have it.
[[nodiscard]] std::string_view field(const PGresult* result, int code);

}  // namespace outbox::pg
