// What a server says of itself when a connection is opened, and what follows for events. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/hiredis/purpose.hpp"
#include "sink/inspection.hpp"

namespace outbox::sink::hiredis {

/// An empty field is not known, because a user may lack the right to ask.
struct ServerFacts {
  std::string mode;  ///< "standalone", "cluster", "sentinel"
  std::string role;  ///< "master", "slave"
  std::string maxmemory;
  std::string maxmemory_policy;
  std::string aof_enabled;
  std::string appendfsync;
  std::optional<std::size_t> bulk_limit;   ///< proto-max-bulk-len
  std::optional<std::size_t> query_limit;  ///< client-query-buffer-limit
};

/// Copies the fields that are needed from the reply to INFO.
void read_info(std::string_view text, ServerFacts& facts);

/// Why nothing may be sent to the server; nullopt if it may be.
[[nodiscard]] std::optional<Error> find_refusal(const ServerFacts& facts, std::string_view address,
                                                std::string_view sink);

/// Settings of the server with which confirmed events can be lost or doubled. `waits`: with WAIT.
[[nodiscard]] std::vector<Weakness> find_weaknesses(const ServerFacts& facts, bool waits,
                                                    const Purpose& purpose);

/// The largest message that the server takes. `configured` is the subscription's limit, or 0.
[[nodiscard]] std::size_t limit_bytes(const ServerFacts& facts, std::size_t configured);
/// The limit for people; nullopt if neither the server nor the subscription has one.
[[nodiscard]] std::optional<MessageLimit> find_limit(const ServerFacts& facts,
                                                     std::size_t configured, std::string_view sink);
/// The subscription's limit; nullopt if it has none.
[[nodiscard]] std::optional<MessageLimit> own_limit(std::size_t configured, std::string_view sink);

}  // namespace outbox::sink::hiredis
