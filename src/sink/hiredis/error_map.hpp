// What a server's error means for a message and for people. Pure.
#pragma once

#include <outbox/error.hpp>
#include <outbox/sink.hpp>
#include <string_view>

#include "sink/hiredis/purpose.hpp"

namespace outbox::sink::hiredis {

/// The first word of an error reply if it is in upper case ("OOM", "WRONGTYPE"), else "ERR".
[[nodiscard]] std::string_view parse_code(std::string_view reply);

/// Whether the event is at fault (`rejected`) or the destination (`blocked`); nothing was added.
[[nodiscard]] Outcome::Kind outcome_kind(std::string_view reply);

/// The error for people. `where` is the server's address, or a key on the server.
[[nodiscard]] Error describe(std::string_view reply, std::string_view where,
                             const Purpose& purpose);

}  // namespace outbox::sink::hiredis
