// What a server's error means for a message and for people. Pure.
#pragma once

#include <outbox/error.hpp>
#include <outbox/sink.hpp>
#include <string_view>

#include "sink/hiredis/purpose.hpp"

namespace outbox::sink::hiredis {

/// The first word of an error reply in upper case ("OOM", "WRONGTYPE"); "ERR" for all that has none of its own.
[[nodiscard]] std::string_view code_of(std::string_view reply);

/// Whether the event is at fault (`rejected`) or the destination (`blocked`). Nothing was added in either case.
[[nodiscard]] Outcome::Kind kind_of(std::string_view reply);

/// The error for people. `where`: the server's address, or what is on it.
[[nodiscard]] Error describe(std::string_view reply, std::string_view where,
                             const Purpose& purpose);

}  // namespace outbox::sink::hiredis
