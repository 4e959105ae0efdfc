// Compares the ledger with what a destination holds (docs/design/verify.md, "The destination").
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "sink/read_back.hpp"
#include "verify/id_compare.hpp"
#include "verify/verify.hpp"

namespace outbox::verify {

using ReadSink = std::function<Result<sink::ReadParts>(const sink::TakeId& take)>;

/// What was found in a destination. A part that evidently belongs to somebody else is named in
/// `others` and not counted.
struct SinkFound {
  IdCompare::Found ids;
  std::vector<std::string> others;  ///< Parts found by name that have no message of this log.
  std::int64_t without_id{0};       ///< Messages that are no events.
  std::int64_t removed{0};          ///< At most this many messages were removed by the destination.
  std::int64_t removed_before_us{0};
  /// Events that were delivered, are not there, and may be among the removed ones.
  std::int64_t uncompared{0};
};

struct SinkVerification {
  Verification ledger;  ///< Has a fault if an event was lost, or if there is a ghost.
  SinkFound sink;
};

/// Adds up the parts; what they hold must be in `ids.parts`. Unless `ghosts_known`, ids that the
/// log does not have are not counted.
[[nodiscard]] SinkFound sum_parts(IdCompare::Found ids, const sink::ReadParts& parts,
                                  bool ghosts_known);

/// Returns how many events were lost for certain, and sets `uncompared` to how many more may have
/// been. A settled event that is not in the destination was filtered, removed by the destination,
/// or lost, and which events were filtered is not recorded. An event that was created long after
/// the last removed message was sent is not among the removed ones.
[[nodiscard]] std::int64_t count_lost(SinkFound& found, std::int64_t filtered);
/// Events created from then on (seconds since 1970) cannot be among the removed messages.
[[nodiscard]] std::int64_t young_from(const SinkFound& found);

/// Verifies the ledger as verify() does, then compares it with the destination.
[[nodiscard]] Result<SinkVerification> verify_sink(store::LedgerReader& reader,
                                                   std::int32_t subscription,
                                                   const ReadSink& read_sink);

}  // namespace outbox::verify
