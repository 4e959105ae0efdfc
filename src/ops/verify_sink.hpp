// Compares the ledger with what a destination holds (docs/design/verify.md, "The destination").
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>

#include "ops/id_compare.hpp"
#include "ops/verify.hpp"

namespace outbox::ops {

/// Hands the id of each message of the destination to `take`, as often as it is there.
using ReadSink = std::function<Status(const std::function<void(const EventId&)>& take)>;

struct SinkVerification {
  Verification ledger;  ///< With a fault if something was lost, or is a ghost.
  IdCompare::Found sink;
};

/// As verify(), then the destination.
[[nodiscard]] Result<SinkVerification> verify_sink(store::LedgerReader& reader,
                                                   std::int32_t subscription,
                                                   const ReadSink& read_sink);

}  // namespace outbox::ops
