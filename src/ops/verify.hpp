// Compares what the settlements of a subscription say with the log, on a live system (docs/design/verify.md).
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "ops/ledger_walk.hpp"
#include "store/ledger_reader.hpp"

namespace outbox::ops {

struct Verification {
  LedgerReport ledger;
  store::ParkedLedger parked;
  store::Pruned pruned;
  std::int64_t enqueued{0};  ///< Since the baseline, counted by the database.

  // enqueued() = delivered() + ledger.filtered + ledger.pending + parked.rows + parked.discarded, and what a reset passed
  [[nodiscard]] std::int64_t delivered() const {
    return ledger.acked.count + ledger.retried.count - ledger.repeated + pruned.acked;
  }
  [[nodiscard]] std::int64_t filtered() const { return ledger.filtered.count + pruned.filtered; }
  [[nodiscard]] bool ok() const { return ledger.fault_count == 0; }
};

/// `reader` is left at the moment that was verified.
[[nodiscard]] Result<Verification> verify(store::LedgerReader& reader, std::int32_t subscription,
                                          LedgerWalk::Limits limits = {});

}  // namespace outbox::ops
