// A message of JetStream as a consumer needs it.
#pragma once

#include <nats/nats.h>

#include <outbox/error.hpp>
#include <string_view>
#include <vector>

#include "base/owned.hpp"
#include "source/source.hpp"

namespace outbox::source::nats {

using Meta = Owned<jsMsgMetaData, jsMsgMetaData_Destroy>;

/// The subject to acknowledge a message; empty for what the server itself says of a request.
[[nodiscard]] std::string_view ack_subject(natsMsg* message);
/// The message's place in its stream.
[[nodiscard]] Result<Meta> read_meta(natsMsg* message);
[[nodiscard]] Received make_received(natsMsg* message, const jsMsgMetaData& meta);

/// The headers in the order of the block that begins with NATS/1.0. Lines that are no header are
/// left out. Pure.
[[nodiscard]] std::vector<Header> parse_headers(std::string_view block);

}  // namespace outbox::source::nats
