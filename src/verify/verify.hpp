// Compares what the settlements of a subscription say with the log, on a live system
// (docs/design/verify.md).
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "store/history.hpp"
#include "verify/ledger_walk.hpp"

namespace outbox::verify {

struct Verification {
  LedgerReport ledger;
  store::ParkedLedger parked;
  store::Pruned pruned;
  Place moment;              ///< Everything before this place was looked at.
  std::int64_t enqueued{0};  ///< Events since the baseline, counted by the database.

  // `enqueued` should equal sum(). What retention removed is part of both sides.
  [[nodiscard]] std::int64_t delivered() const {
    return ledger.acked.count + ledger.retried.count - ledger.repeated + pruned.acked;
  }
  [[nodiscard]] std::int64_t filtered() const { return ledger.filtered.count + pruned.filtered; }
  [[nodiscard]] std::int64_t discarded() const { return parked.discarded + pruned.discarded; }
  [[nodiscard]] std::int64_t sum() const {
    return delivered() + filtered() + ledger.pending + parked.rows + discarded() + ledger.skipped;
  }
  [[nodiscard]] bool ok() const { return ledger.fault_count == 0; }
};

/// Is told each event of the log and each parked event while the ledger is verified.
class LedgerObserver {
 public:
  LedgerObserver() = default;
  LedgerObserver(const LedgerObserver&) = delete;
  LedgerObserver& operator=(const LedgerObserver&) = delete;
  LedgerObserver(LedgerObserver&&) = delete;
  LedgerObserver& operator=(LedgerObserver&&) = delete;
  virtual ~LedgerObserver() = default;

  /// The verification begins, or begins again.
  [[nodiscard]] virtual Status restart() = 0;
  virtual void event(const store::LedgerEvent& event, LedgerWalk::Standing standing) = 0;
  virtual void parked(const store::ParkedEntry& entry) = 0;
};

struct VerifyOptions {
  LedgerWalk::Limits limits{};
  LedgerObserver* observer{nullptr};
};

[[nodiscard]] Result<Verification> verify(store::LedgerReader& reader, std::int32_t subscription,
                                          const VerifyOptions& options = {});

/// The place that has everything before it that the moment sees.
[[nodiscard]] Place to_place(const store::LedgerMoment& moment);

}  // namespace outbox::verify
