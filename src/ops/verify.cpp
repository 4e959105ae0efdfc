#include "ops/verify.hpp"

#include <span>
#include <string>
#include <utility>

#include "base/count.hpp"
#include "base/error.hpp"

namespace outbox::ops {
namespace {

using store::EventRange;
using store::LedgerReader;

constexpr std::size_t kRows = 1000;
/// How often it begins again because retention removed history meanwhile.
constexpr int kTries = 5;

Status compare(LedgerWalk& walk, LedgerReader& reader, LedgerObserver* observer) {
  for (const EventRange& range : walk.window()) {
    Status scanned = reader.scan(range, [&](std::span<const store::LedgerEvent> events) {
      for (const store::LedgerEvent& event : events) {
        const auto standing = walk.count(event);
        if (observer != nullptr && standing != LedgerWalk::Standing::elsewhere)
          observer->event(event, standing);
      }
    });
    if (!scanned) return scanned;
  }
  walk.close();
  return {};
}

Status walk_rows(LedgerWalk& walk, LedgerReader& reader, const Place& now,
                 LedgerObserver* observer) {
  while (true) {
    OUTBOX_TRY(auto rows, reader.next_rows(kRows));
    if (rows.empty()) break;
    for (store::LedgerRow& row : rows) walk.add(std::move(row));
    if (!walk.full()) continue;
    if (Status status = compare(walk, reader, observer); !status) return status;
  }
  walk.finish(now);
  return compare(walk, reader, observer);
}

/// What is in the log between the baseline and now.
Result<std::int64_t> count(LedgerReader& reader, const Place& baseline,
                           const store::LedgerMoment& moment) {
  const EventRange all{.after = baseline.s1, .upto = moment.now, .last = moment.last_seq};
  OUTBOX_TRY(std::int64_t events, reader.count(all));
  if (!baseline.begun()) return events;
  OUTBOX_TRY(const std::int64_t before,
             reader.count({.after = baseline.s1, .upto = baseline.s2, .last = baseline.position}));
  return events - before;
}

std::string tally_text(const store::Tally& tally, const store::Tally& other) {
  if (tally.count != other.count) return std::to_string(tally.count);
  return outbox::count("other", tally.count);
}

/// What became of parked events is recorded twice: in settlements, and in rows.
void check_parked(LedgerWalk& walk, const store::ParkedLedger& parked) {
  const LedgerReport& report = walk.report();
  if (report.parked != parked.parked) {
    walk.fault({.kind = FaultKind::parked,
                .text = "the settlements parked " + outbox::count("event", report.parked.count) +
                        "; in parked and parked_end are " +
                        tally_text(parked.parked, report.parked)});
  }
  if (report.retried != parked.delivered) {
    walk.fault({.kind = FaultKind::parked,
                .text = "the settlements of retries delivered " +
                        outbox::count("parked event", report.retried.count) +
                        "; parked_end says that " + tally_text(parked.delivered, report.retried) +
                        " were"});
  }
}

/// Once nothing else is wrong: any other fault would show here too.
void check_sum(LedgerWalk& walk, const store::Pruned& pruned, std::int64_t enqueued) {
  const LedgerReport& report = walk.report();
  const std::int64_t settled = report.acked.count + report.filtered.count + report.parked.count -
                               report.repeated + pruned.acked + pruned.filtered + pruned.parked;
  const std::int64_t sum = settled + report.pending + report.skipped;
  if (report.fault_count > 0 || sum == enqueued) return;
  walk.fault({.kind = FaultKind::sum,
              .text = "the log has " + outbox::count("event", enqueued) + "; " +
                      std::to_string(settled) + " are settled and " +
                      std::to_string(report.pending) + " pending"});
}

Result<Verification> verify_once(LedgerReader& reader, std::int32_t subscription,
                                 const store::Pruned& pruned, const VerifyOptions& options) {
  LedgerObserver* const observer = options.observer;
  store::VisitParked visit;
  if (observer != nullptr) {
    if (Status status = observer->restart(); !status) return pass(status);
    visit = [observer](const store::ParkedEntry& entry) { observer->parked(entry); };
  }
  OUTBOX_TRY(const store::LedgerMoment moment, reader.begin(subscription, visit));
  LedgerWalk walk(pruned, options.limits);
  if (Status status = walk_rows(walk, reader, place_of(moment), observer); !status)
    return pass(status);
  std::int64_t enqueued = pruned.events;
  if (const auto& baseline = walk.report().baseline) {
    OUTBOX_TRY(const std::int64_t events, count(reader, *baseline, moment));
    enqueued += events + walk.report().carried;
  } else {
    walk.fault({.kind = FaultKind::beginning,
                .text = "it has no settlement at all: the row of its first cursor is missing"});
  }
  // Settlements that are gone parked events of which rows may be left, and the sums of both are written at different times.
  if (!pruned.any()) {
    check_parked(walk, moment.parked);
    check_sum(walk, pruned, enqueued);
  }
  return Verification{.ledger = walk.report(),
                      .parked = moment.parked,
                      .pruned = pruned,
                      .moment = place_of(moment),
                      .enqueued = enqueued};
}

}  // namespace

Place place_of(const store::LedgerMoment& moment) {
  if (moment.last_seq == store::kNoSeqBound) return {.s1 = moment.now};
  // SQLite: its one pair, up to a seq.
  if (moment.last_seq == 0) return {.s1 = store::Visible::nothing()};
  return {.s1 = store::Visible::nothing(), .s2 = moment.now, .position = moment.last_seq};
}

Result<Verification> verify(LedgerReader& reader, std::int32_t subscription,
                            const VerifyOptions& options) {
  for (int tries = 0; tries < kTries; ++tries) {
    OUTBOX_TRY(const store::Pruned before, reader.pruned(subscription));
    OUTBOX_TRY(Verification found, verify_once(reader, subscription, before, options));
    OUTBOX_TRY(const store::Pruned after, reader.pruned(subscription));
    if (before == after) return found;
  }
  return fail(Errc::unavailable, Remedy::retry_call,
              "history was removed while it was verified, each time that it was tried",
              "run it again when retention has less to do");
}

}  // namespace outbox::ops
