// Whether a server answers at all.
//
// cnats has no time limit in two places of its handshake, and none of its functions ends an attempt to connect: while it waits for TLS
// (to 3.8 at least) and, before 3.8, for the answer to CONNECT. So the server is asked first, with a limit, by a connection of our own
// that ends when the server has introduced itself. That also says why it cannot be reached.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>

#include "sink/endpoint.hpp"

namespace outbox::sink::nats {

/// The address that answered, as a URL has it: "127.0.0.1", "[::1]". Resolving the host's name is the only part that the limit does not
/// hold for.
[[nodiscard]] Result<std::string> reach(const Endpoint& server,
                                        std::chrono::steady_clock::time_point until);

}  // namespace outbox::sink::nats
