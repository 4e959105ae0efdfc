// Finds out whether a server answers at all.
//
// None of cnats' functions ends an attempt to connect, and two places of its handshake have no time
// limit: waiting for TLS (to 3.8 at least) and, before 3.8, for the answer to CONNECT. So a
// connection of our own, with a limit, asks the server first and ends when the server has
// introduced itself. It also says why the server cannot be reached.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>

#include "sink/endpoint.hpp"

namespace outbox::sink::nats {

/// The address that answered, as in a URL: "127.0.0.1", "[::1]". The limit does not hold for
/// resolving the host's name.
[[nodiscard]] Result<std::string> reach(const Endpoint& server,
                                        std::chrono::steady_clock::time_point until);

}  // namespace outbox::sink::nats
