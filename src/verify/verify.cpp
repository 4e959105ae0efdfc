#include "verify/verify.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/error.hpp"

namespace outbox::verify {
namespace {

using store::EventRange;
using store::LedgerReader;

constexpr std::size_t kRows = 1000;
/// The number of tries: each one fails if retention removes history meanwhile.
constexpr int kTries = 5;

Status compare(LedgerWalk& walk, LedgerReader& reader, LedgerObserver* observer) {
  for (const EventRange& range : walk.window()) {
    OUTBOX_TRY(reader.scan(range, [&](std::span<const store::LedgerEvent> events) {
      for (const store::LedgerEvent& event : events) {
        const auto standing = walk.count(event);
        if (observer != nullptr && standing != LedgerWalk::Standing::elsewhere)
          observer->event(event, standing);
      }
    }));
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
    OUTBOX_TRY(compare(walk, reader, observer));
  }
  walk.finish(now);
  return compare(walk, reader, observer);
}

/// Counts what is in the log between the beginning of some lanes and now.
Result<std::int64_t> count(LedgerReader& reader, const Beginning& beginning,
                           const store::LedgerMoment& moment) {
  const auto& [lanes, place] = beginning;
  OUTBOX_TRY(const std::int64_t events,
             reader.count(
                 {.lanes = lanes, .after = place.s1, .upto = moment.now, .last = moment.last_seq}));
  if (!place.begun()) return events;
  OUTBOX_TRY(
      const std::int64_t before,
      reader.count({.lanes = lanes, .after = place.s1, .upto = place.s2, .last = place.position}));
  return events - before;
}

/// Counts what is in the log between the beginnings and now. Lanes that begin at one place are
/// counted together.
Result<std::int64_t> count(LedgerReader& reader, const std::vector<Beginning>& beginnings,
                           const store::LedgerMoment& moment) {
  std::vector<Beginning> places;
  for (const Beginning& beginning : beginnings) {
    const auto known = std::find_if(places.begin(), places.end(), [&](const Beginning& other) {
      return same(other.place, beginning.place);
    });
    if (known == places.end()) {
      places.push_back(beginning);
    } else {
      known->lanes |= beginning.lanes;
    }
  }
  std::int64_t events = 0;
  for (const Beginning& place : places) {
    OUTBOX_TRY(const std::int64_t here, count(reader, place, moment));
    events += here;
  }
  return events;
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
                .text = "the settlements say that " +
                        outbox::count("event", report.parked.count, "was", "were") +
                        " parked; the tables parked and parked_end have " +
                        tally_text(parked.parked, report.parked)});
  }
  if (report.retried != parked.delivered) {
    walk.fault({.kind = FaultKind::parked,
                .text = "the settlements say that " +
                        outbox::count("parked event", report.retried.count, "was", "were") +
                        " delivered; the table parked_end has " +
                        tally_text(parked.delivered, report.retried)});
  }
}

/// The sum is checked only if nothing else is wrong: any other fault would show here, too.
void check_sum(LedgerWalk& walk, const Verification& found) {
  if (walk.report().fault_count > 0 || found.sum() == found.enqueued) return;
  walk.fault({.kind = FaultKind::sum,
              .text = outbox::count("event", found.enqueued, "was", "were") + " enqueued, and " +
                      std::to_string(found.sum()) +
                      " are accounted for: delivered, filtered, pending, parked or discarded"});
}

Result<Verification> verify_once(LedgerReader& reader, std::int32_t subscription,
                                 const store::Pruned& pruned, const VerifyOptions& options) {
  LedgerObserver* const observer = options.observer;
  store::VisitParked visit;
  if (observer != nullptr) {
    OUTBOX_TRY(observer->restart());
    visit = [observer](const store::ParkedEntry& entry) { observer->parked(entry); };
  }
  OUTBOX_TRY(const store::LedgerMoment moment, reader.begin(subscription, visit));
  LedgerWalk walk(pruned, options.limits);
  OUTBOX_TRY(walk_rows(walk, reader, to_place(moment), observer));
  if (walk.report().beginnings.empty()) {
    walk.fault({.kind = FaultKind::beginning,
                .text = "it has no settlement at all: the row of its first cursor is missing"});
  }
  // Removed settlements take the hashes of what they parked and delivered with them.
  if (!pruned.any() && pruned.newest == store::LedgerRank{}) check_parked(walk, moment.parked);
  OUTBOX_TRY(const std::int64_t events, count(reader, walk.report().beginnings, moment));
  Verification found{.ledger = walk.report(),
                     .parked = moment.parked,
                     .pruned = pruned,
                     .moment = to_place(moment),
                     .enqueued = pruned.events + events + walk.report().carried};
  check_sum(walk, found);
  found.ledger = walk.report();
  return found;
}

}  // namespace

Place to_place(const store::LedgerMoment& moment) {
  if (moment.last_seq == store::kNoSeqBound) return {.s1 = moment.now};
  // SQLite has one pair, which is read up to a seq.
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

}  // namespace outbox::verify
