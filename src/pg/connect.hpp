// Connects to a server, for both the store and the sink.
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

/// Parameters for libpq, such as {"password", "hush"}.
using Parameters = std::vector<std::pair<const char*, std::string>>;

/// Connects within the connect_timeout (5 s per address unless the URL sets another), and logs what
/// the server says outside of results. `overriding` replaces what the URL says. The caller owns the
/// connection, which may be null or have failed.
[[nodiscard]] PGconn* connect(const std::string& url, const std::string& application,
                              const Parameters& overriding = {});

}  // namespace outbox::pg
