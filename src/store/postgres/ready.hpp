// Whether an application's connection can take our statements. The checks use libpq's state only: nothing is sent, and a
// refusal leaves the connection as it is.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::store::postgres {

/// No pipeline, no command under way, no transaction that has failed. `what`: for the message.
[[nodiscard]] Status check_open(PGconn* connection, std::string_view what);
/// Outside a transaction, no pipeline, no command under way.
[[nodiscard]] Status check_idle(PGconn* connection, std::string_view what);
/// The same inside a transaction that has not failed.
[[nodiscard]] Status check_ready(PGconn* connection, std::string_view what);

/// Texts are UTF-8. Under another client encoding the server would convert them: garbled, or refused in mid-transaction.
[[nodiscard]] Status check_encoding(PGconn* connection, std::string_view what);

[[nodiscard]] tl::unexpected<Error> not_in_transaction(std::string_view what);

}  // namespace outbox::store::postgres
