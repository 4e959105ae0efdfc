// A connection that is ready for events: logged in, checked, with the script loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/hiredis/connection.hpp"
#include "sink/hiredis/purpose.hpp"
#include "sink/hiredis/server_facts.hpp"
#include "sink/hiredis/settings.hpp"

namespace outbox::sink::hiredis {

struct Session {
  std::unique_ptr<Connection> connection;
  std::string script_hash;
  std::size_t most_bytes{0};  ///< The limit for one message.
  Inspection inspection;
};

/// Opens a session on the first address that takes events, within connect_timeout in all.
[[nodiscard]] Result<Session> open_session(const ServerOptions& options, const Purpose& purpose);

/// Connects to the first address of a master and logs in, within connect_timeout in all: for a
/// client that sends no events. Of the purpose it uses `sink` and `hints`.
[[nodiscard]] Result<std::unique_ptr<Connection>> open_connection(const ServerOptions& options,
                                                                  const Purpose& purpose);

/// Checks that the reply to WAIT says that enough replicas have what this connection wrote. A
/// time-out is not an error for the server: it replies with a smaller number.
[[nodiscard]] Status check_replicas(const redisReply& wait, std::size_t wanted,
                                    std::string_view address, const Purpose& purpose);

}  // namespace outbox::sink::hiredis
