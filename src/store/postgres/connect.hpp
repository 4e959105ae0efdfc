// Opening a connection: the settings that the URL leaves open.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store::postgres {

/// Connects within the connect_timeout (5 s per address unless the URL says otherwise) and checks that the server is
/// PostgreSQL 14 or newer. The caller owns the connection.
[[nodiscard]] Result<PGconn*> connect(const std::string& url, const std::string& application);

}  // namespace outbox::store::postgres
