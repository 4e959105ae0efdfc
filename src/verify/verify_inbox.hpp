// Reads the inbox of a consumer as the destination of a subscription: what the ledger says was
// delivered must have been received there (docs/design/verify.md, "The inbox").
#pragma once

#include <chrono>
#include <cstdint>
#include <outbox/error.hpp>
#include <string>

#include "sink/read_back.hpp"
#include "store/inbox.hpp"

namespace outbox::verify {

/// What is said to be removed from an inbox, which does not count it.
inline constexpr std::int64_t kUncounted = std::int64_t{1} << 52U;

/// Calls `take` for each message, as often as it has arrived. If the oldest row is about as old as
/// the inbox keeps rows, older ones may have been removed.
[[nodiscard]] Result<sink::ReadPart> read_inbox(store::Inbox& inbox, const std::string& consumer,
                                                std::chrono::milliseconds keeps, std::uint32_t part,
                                                const sink::TakeId& take);

}  // namespace outbox::verify
