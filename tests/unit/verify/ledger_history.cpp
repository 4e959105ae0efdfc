#include "unit/verify/ledger_history.hpp"

#include <algorithm>

#include "event/key.hpp"

namespace outbox::verify::test {

using store::EventRange;
using store::LaneMask;
using store::LedgerEvent;
using store::LedgerRow;
using store::SettlementKind;
using store::VisiblePtr;

LedgerHistory::LedgerHistory(std::uint64_t seed) : random_(seed) {
  const Place start{.s1 = std::make_shared<const store::Visible>(store::Visible{.xmax = 3})};
  append({.kind = SettlementKind::reset, .s1 = start.s1});
  strands_.push_back({.lanes = store::kAllLanes, .generation = 0, .cursor = start});
}

void LedgerHistory::append(LedgerRow row) {
  row.id = static_cast<std::int64_t>(rows_.size()) + 1;
  row.at_us = row.id * 1'000'000;
  rows_.push_back(std::move(row));
}

VisiblePtr LedgerHistory::snapshot() const {
  return std::make_shared<const store::Visible>(
      store::Visible{.xmax = next_xid_, .running = {running_.begin(), running_.end()}});
}

Place LedgerHistory::now() { return {.s1 = snapshot()}; }

void LedgerHistory::run(int steps) {
  for (int step = 0; step < steps; ++step) {
    const auto what = any(20);
    if (what < 9) {
      write();
    } else if (what < 17) {
      settle(strands_[any(strands_.size())], true);
    } else if (what < 18) {
      take_over();
    } else if (what < 19) {
      if (!zombies_.empty()) settle(zombies_[any(zombies_.size())], false);
    } else {
      merge();
    }
  }
}

/// Begins a transaction or continues one, and perhaps commits it.
void LedgerHistory::write() {
  std::uint64_t xid = next_xid_;
  if (!running_.empty() && any(2) == 0) {
    xid = *std::next(running_.begin(), static_cast<std::ptrdiff_t>(any(running_.size())));
  } else {
    running_.insert(next_xid_++);
  }
  for (std::size_t i = any(5); i > 0; --i) {
    LedgerEvent event{.xid = xid, .seq = next_seq_++, .lane = static_cast<std::uint8_t>(any(64))};
    for (auto& byte : event.id.bytes)
      byte = static_cast<std::remove_reference_t<decltype(byte)>>(random_());
    events_.push_back(event);
  }
  if (any(3) > 0) running_.erase(xid);
}

std::vector<LedgerEvent> LedgerHistory::pending(const Strand& strand,
                                                const EventRange& range) const {
  std::vector<LedgerEvent> found;
  for (const LedgerEvent& event : events_) {
    if (range.has(event) && !strand.cursor.has(event.xid, event.seq)) found.push_back(event);
  }
  return found;
}

/// Settles a part of the pair, or all of it. `counts` says whether the relay owns the lanes, so
/// that the settlement counts.
void LedgerHistory::settle(Strand& strand, bool counts) {
  const Place& from = strand.cursor;
  const VisiblePtr s2 = from.begun() ? from.s2 : snapshot();
  const std::int64_t bound = from.begun() ? from.bound : next_seq_ - 1;
  std::vector<LedgerEvent> page =
      pending(strand, {.lanes = strand.lanes, .after = from.s1, .upto = s2});
  LedgerRow row{.kind = SettlementKind::settle,
                .lanes = strand.lanes,
                .generation = strand.generation,
                .s1 = from.s1,
                .s2 = s2,
                .from_position = from.position,
                .bound = bound};
  if (page.size() > 1 && any(2) == 0) {
    page.resize(1 + any(page.size() - 1));
    row.position = page.back().seq;
  }
  for (const LedgerEvent& event : page) {
    // Only a relay that owns the lanes parks events.
    const auto outcome = any(counts ? 10 : 7);
    store::Tally& tally = outcome < 6 ? row.acked : outcome < 8 ? row.filtered : row.parked;
    tally.add(event::id_hash(event.id));
  }
  strand.cursor = end_place(row);
  append(std::move(row));
}

/// Another relay takes a relay's lanes or some of them. The former owner may settle once more
/// before the takeover, which the claim does not see, and also later.
void LedgerHistory::take_over() {
  Strand& old = strands_[any(strands_.size())];
  Strand taken = old;
  taken.lanes &= any(2) == 0 ? store::kAllLanes : random_();
  if (taken.lanes == 0) return;
  const bool clean = any(2) == 0;
  if (!clean) {
    Strand zombie = old;
    if (any(2) == 0) settle(zombie, false);
    zombies_.push_back(zombie);
    // The claim of the lanes that stay may see what the zombie wrote last, though the claim of
    // those that are taken does not.
    if (any(2) == 0) old.cursor = zombie.cursor;
  }
  claim(taken);
  old.lanes &= ~taken.lanes;
  // After a clean takeover the former owner goes on with the lanes that it keeps, without a claim.
  if (old.lanes != 0 && !clean) claim(old);
  strands_.push_back(taken);
  std::erase_if(strands_, [](const Strand& strand) { return strand.lanes == 0; });
}

void LedgerHistory::claim(Strand& strand) {
  const Place& cursor = strand.cursor;
  strand.generation = ++generation_;
  LedgerRow row{.kind = SettlementKind::claim,
                .lanes = strand.lanes,
                .generation = strand.generation,
                .s1 = cursor.s1,
                .s2 = cursor.s2,
                .from_position = cursor.position};
  if (cursor.begun()) {
    row.position = cursor.position;
    row.bound = cursor.bound;
  }
  append(std::move(row));
}

/// Makes two strands one: both settle up to the same snapshot, and then stand at the same place.
void LedgerHistory::merge() {
  if (strands_.size() < 2) return;
  Strand& first = strands_[0];
  Strand& second = strands_[1];
  if (first.cursor.begun() || second.cursor.begun()) return;
  const VisiblePtr s2 = snapshot();
  for (Strand* const strand : {&first, &second}) {
    LedgerRow row{.kind = SettlementKind::settle,
                  .lanes = strand->lanes,
                  .generation = strand->generation,
                  .s1 = strand->cursor.s1,
                  .s2 = s2,
                  .bound = next_seq_ - 1};
    for (const LedgerEvent& event :
         pending(*strand, {.lanes = strand->lanes, .after = strand->cursor.s1, .upto = s2}))
      row.acked.add(event::id_hash(event.id));
    strand->cursor = end_place(row);
    append(std::move(row));
  }
  first.lanes |= second.lanes;
  claim(first);
  strands_.erase(strands_.begin() + 1);
}

std::vector<LedgerRow> LedgerHistory::rows() const {
  std::vector<LedgerRow> sorted = rows_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const LedgerRow& a, const LedgerRow& b) {
    return a.generation < b.generation;
  });
  return sorted;
}

LedgerReport walk(const std::vector<LedgerRow>& rows, const std::vector<LedgerEvent>& events,
                  const Place& now, const store::Pruned& pruned) {
  LedgerWalk walk(pruned, {.window = 3, .longest = 12, .tail = 20});
  const auto compare = [&] {
    for (const EventRange& range : walk.window()) {
      for (const LedgerEvent& event : events) {
        if (range.has(event)) walk.count(event);
      }
    }
    walk.close();
  };
  for (const LedgerRow& row : rows) {
    walk.add(row);
    if (walk.full()) compare();
  }
  walk.finish(now);
  compare();
  return walk.report();
}

}  // namespace outbox::verify::test
