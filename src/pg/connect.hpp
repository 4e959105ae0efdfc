// Connecting, as the store and the sink do it.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace outbox::pg {

struct Disconnect {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
using ConnectionPointer = std::unique_ptr<PGconn, Disconnect>;

/// Parameters that libpq takes, as {"password", "hush"}.
using Parameters = std::vector<std::pair<const char*, std::string>>;

/// Connects within the connect_timeout (5 s per address unless the URL says otherwise); what the server says outside of results is
/// logged. `overriding`: in place of what the URL says. The caller owns the connection, which may be null or have failed.
[[nodiscard]] PGconn* connect(const std::string& url, const std::string& application,
                              const Parameters& overriding = {});

}  // namespace outbox::pg
