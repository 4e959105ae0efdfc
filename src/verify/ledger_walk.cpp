#include "verify/ledger_walk.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/count.hpp"
#include "event/key.hpp"

namespace outbox::verify {
namespace {

using store::LaneMask;
using store::LedgerRow;
using store::SettlementKind;
using store::Tally;

constexpr std::size_t kMostFaults = 100;
constexpr std::size_t kLanes = 64;

Tally claimed_by(const LedgerRow& row) {
  Tally all = row.acked;
  all += row.filtered;
  all += row.parked;
  return all;
}

/// A place as people read it.
std::string to_text(const Place& place) {
  if (place.begun()) return "seq " + std::to_string(place.position);
  return place.s1->xmax == 0 ? "the beginning" : "transaction " + std::to_string(place.s1->xmax);
}

/// Adds a range. Strands that need the same events read them together.
void add_range(LaneMask lanes, store::EventRange range, std::vector<store::EventRange>& ranges) {
  range.lanes = lanes;
  for (store::EventRange& other : ranges) {
    const bool same = *other.after == *range.after && *other.upto == *range.upto &&
                      other.above == range.above && other.last == range.last;
    if (!same) continue;
    other.lanes |= lanes;
    return;
  }
  ranges.push_back(std::move(range));
}

}  // namespace

const char* to_string(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::counts: return "counts";
    case FaultKind::uncovered: return "uncovered";
    case FaultKind::disjoint: return "disjoint";
    case FaultKind::cursor: return "cursor";
    case FaultKind::beginning: return "beginning";
    case FaultKind::overlap: return "overlap";
    case FaultKind::parked: return "parked";
    case FaultKind::sum: return "sum";
    case FaultKind::lost: return "lost";
    case FaultKind::ghosts: return "ghosts";
  }
  return "counts";
}

LedgerWalk::LedgerWalk(store::Pruned pruned) : LedgerWalk(pruned, Limits()) {}
LedgerWalk::LedgerWalk(store::Pruned pruned, Limits limits)
    : pruned_(pruned), limits_(limits), by_lane_(kLanes, nullptr) {}

void LedgerWalk::fault(Fault fault) {
  ++report_.fault_count;
  if (report_.faults.size() < kMostFaults) report_.faults.push_back(std::move(fault));
}

void LedgerWalk::row_fault(FaultKind kind, const Entry& entry, LaneMask lanes, std::string text) {
  fault({.kind = kind,
         .settlement = entry.row.id,
         .lanes = lanes,
         .at_us = entry.row.at_us,
         .first_seq = entry.first_seq,
         .last_seq = entry.last_seq,
         .text = std::move(text)});
}

// ---- rows

void LedgerWalk::add(LedgerRow row) {
  if (row.kind == SettlementKind::retry) report_.retried += row.acked;
  if (row.kind == SettlementKind::reset) {
    // The row repeats what had been parked, and delivered by retries, when the subscription was
    // reset.
    report_.parked += row.parked;
    report_.retried += row.acked;
    report_.carried += row.parked.count;
  }
  if (row.lanes == 0 || row.kind == SettlementKind::mark || row.kind == SettlementKind::retry)
    return;
  const auto entry = std::make_shared<Entry>();
  entry->row = std::move(row);
  const store::LedgerRank rank{.generation = entry->row.generation, .id = entry->row.id};
  for (Strand* const strand : find_strands(entry->row.lanes)) {
    if (expects_late_ && strand->base.s1 != nullptr && rank <= strand->last) {
      entry->voided |= strand->lanes;
      continue;
    }
    switch (entry->row.kind) {
      case SettlementKind::reset: reset(*strand, entry); break;
      case SettlementKind::claim: claim(*strand, entry); break;
      default: settle(*strand, entry);
    }
    strand->last = rank;
  }
  // The settlement is void on all its lanes: it is no step of any strand, so nothing releases it
  // later.
  if (entry->row.kind == SettlementKind::settle && entry->open == 0) settle_up(*entry);
}

void LedgerWalk::resume(const Compared& from) {
  strands_.push_back(
      {.lanes = from.lanes, .last = from.row, .compared = from.row, .base = from.place});
}

std::vector<Compared> LedgerWalk::compared() const {
  std::vector<Compared> all;
  all.reserve(strands_.size());
  for (const Strand& strand : strands_)
    all.push_back({.lanes = strand.lanes, .row = strand.compared, .place = strand.base});
  return all;
}

std::vector<LedgerWalk::Strand*> LedgerWalk::find_strands(LaneMask lanes) {
  std::vector<Strand*> found;
  LaneMask known = 0;
  // The loop does not visit the halves that it appends: they have none of the lanes.
  for (std::size_t i = 0, count = strands_.size(); i < count; ++i) {
    Strand& strand = strands_[i];
    known |= strand.lanes;
    if ((strand.lanes & lanes) == 0) continue;
    if ((strand.lanes & ~lanes) != 0) {
      Strand rest = strand;
      rest.lanes &= ~lanes;
      strands_.push_back(std::move(rest));
      strand.lanes &= lanes;
    }
    found.push_back(&strand);
  }
  if ((lanes & ~known) != 0) {
    strands_.push_back({.lanes = lanes & ~known, .base = {}});
    found.push_back(&strands_.back());
  }
  return found;
}

void LedgerWalk::begin_lanes(const EntryPtr& entry, Strand& strand) {
  const LedgerRow& row = entry->row;
  strand.base = row.kind == SettlementKind::settle ? start_place(row) : end_place(row);
  // A settlement is read again until it is compared.
  strand.compared = {.generation = row.generation,
                     .id = row.kind == SettlementKind::settle ? row.id - 1 : row.id};
  report_.beginnings.push_back({.lanes = strand.lanes, .place = strand.base});
  if (row.kind == SettlementKind::reset || pruned_.any()) return;
  row_fault(
      FaultKind::beginning, *entry, strand.lanes,
      "it is the first of its lanes, but not the subscription's first cursor: the settlements "
      "before it are missing");
}

void LedgerWalk::reset(Strand& strand, const EntryPtr& entry) {
  if (strand.base.s1 == nullptr) return begin_lanes(entry, strand);
  const Place place = end_place(entry->row);
  if (within(strand.cursor(), place)) {
    if (!same(strand.cursor(), place)) push_gap(strand, Use::skipped, entry->row, place);
  } else if (!set_back(strand, place)) {
    force_to(strand, place, entry->row, Use::ignored);
  }
}

void LedgerWalk::claim(Strand& strand, const EntryPtr& entry) {
  if (strand.base.s1 == nullptr) return begin_lanes(entry, strand);
  const Place place = end_place(entry->row);
  if (same(place, strand.cursor()) || set_back(strand, place)) return;
  if (is_explained(strand, entry->row, place))
    return force_to(strand, place, entry->row, Use::uncovered);
  row_fault(FaultKind::cursor, *entry, strand.lanes,
            "it claims the lanes at " + to_text(place) +
                ", where no settlement ends; their cursor is at " + to_text(strand.cursor()));
  const bool forward = within(strand.cursor(), place);
  force_to(strand, place, entry->row, forward ? Use::uncovered : Use::ignored);
}

void LedgerWalk::settle(Strand& strand, const EntryPtr& entry) {
  const LedgerRow& row = entry->row;
  if (strand.base.s1 == nullptr) begin_lanes(entry, strand);
  const Place start = start_place(row);
  const Place end = end_place(row);
  const bool joins = same(start, strand.cursor()) ||
                     (row.generation > strand.last.generation && set_back(strand, start));
  if (!within(start, end) || (row.position && row.bound > 0 && *row.position > row.bound)) {
    row_fault(FaultKind::disjoint, *entry, strand.lanes,
              "it goes from " + to_text(start) + " to " + to_text(end) +
                  ", which is no way that a relay can go");
    entry->use = Use::disputed;
  } else if (!joins && is_explained(strand, row, start)) {
    force_to(strand, start, row, Use::uncovered);
  } else if (!joins && within(strand.cursor(), start)) {
    row_fault(FaultKind::disjoint, *entry, strand.lanes,
              "it begins at " + to_text(start) + ", the cursor was at " + to_text(strand.cursor()) +
                  ": a settlement between is missing, or was changed");
    push_gap(strand, Use::uncovered, row, start);
  } else if (!joins) {
    row_fault(FaultKind::disjoint, *entry, strand.lanes,
              "it begins at " + to_text(start) + ", but the cursor was at " +
                  to_text(strand.cursor()) +
                  " already: this settlement or the one before it was forged or changed");
    entry->use = Use::disputed;
  }
  if (within(strand.cursor(), end)) return push(strand, entry, end);
  entry->voided |= strand.lanes;
  force_to(strand, end, row, Use::ignored);
}

void LedgerWalk::push(Strand& strand, const EntryPtr& entry, const Place& end) {
  entry->open |= strand.lanes;
  strand.steps.push_back({.end = end, .entry = entry});
}

void LedgerWalk::push_gap(Strand& strand, Use use, const LedgerRow& row, const Place& end) {
  const auto gap = std::make_shared<Entry>();
  gap->use = use;
  gap->row.id = row.id;
  gap->row.at_us = row.at_us;
  gap->row.lanes = strand.lanes;
  push(strand, gap, end);
}

bool LedgerWalk::set_back(Strand& strand, const Place& place) {
  std::size_t kept = strand.steps.size();
  while (!same(strand.place(kept), place)) {
    if (kept-- == 0) return false;
  }
  pop_to(strand, kept);
  return true;
}

void LedgerWalk::pop_to(Strand& strand, std::size_t kept) {
  while (strand.steps.size() > kept) {
    const EntryPtr entry = std::move(strand.steps.back().entry);
    strand.steps.pop_back();
    entry->voided |= strand.lanes;
    release(entry, strand.lanes);
  }
}

void LedgerWalk::force_to(Strand& strand, const Place& place, const LedgerRow& row, Use gap) {
  std::size_t kept = strand.steps.size();
  while (kept > 0 && !within(strand.place(kept), place)) --kept;
  pop_to(strand, kept);
  if (!within(strand.cursor(), place)) {
    strand.base = place;
  } else if (!same(strand.cursor(), place)) {
    push_gap(strand, gap, row, place);
  }
}

// ---- windows

std::size_t LedgerWalk::due_steps(const Strand& strand) const {
  if (finished_) return strand.steps.size();
  if (until_us_) {
    const auto young =
        std::find_if(strand.steps.begin(), strand.steps.end(),
                     [&](const Step& step) { return step.entry->row.at_us >= *until_us_; });
    return static_cast<std::size_t>(young - strand.steps.begin());
  }
  // The limits are those of all strands together.
  const std::size_t window = std::max<std::size_t>(1, limits_.window / strands_.size());
  const std::size_t longest = std::max(window, limits_.longest / strands_.size());
  if (strand.steps.size() < window + limits_.tail) return 0;
  std::size_t due = strand.steps.size() - limits_.tail;
  if (due >= longest) return due;
  // A window ends at a cheap place if it can: the events before any other place are found only by
  // reading its whole pair.
  const auto cheap = [&](const Place& end) {
    return !end.begun() ||
           (strand.base.begun() && *end.s1 == *strand.base.s1 && *end.s2 == *strand.base.s2);
  };
  while (due > 0 && !cheap(strand.place(due))) --due;
  return due;
}

bool LedgerWalk::full() const {
  return std::any_of(strands_.begin(), strands_.end(),
                     [this](const Strand& strand) { return due_steps(strand) > 0; });
}

void LedgerWalk::finish(const Place& now) {
  finished_ = true;
  for (Strand& strand : strands_) {
    if (within(strand.cursor(), now)) {
      push_gap(strand, Use::pending, {}, now);
      continue;
    }
    fault({.kind = FaultKind::cursor,
           .lanes = strand.lanes,
           .text =
               "the cursor is at " + to_text(strand.cursor()) + ", beyond everything in the log"});
  }
}

std::vector<store::EventRange> LedgerWalk::window() {
  std::vector<store::EventRange> ranges;
  for (Strand& strand : strands_) {
    strand.due = due_steps(strand);
    strand.hint = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((strand.lanes >> lane & 1U) != 0) by_lane_[lane] = &strand;
    }
    if (strand.due == 0) continue;
    for (store::EventRange& range : events_between(strand.base, strand.place(strand.due)))
      add_range(strand.lanes, std::move(range), ranges);
  }
  return ranges;
}

LedgerWalk::Standing LedgerWalk::count(const store::LedgerEvent& event) {
  Strand* const strand = event.lane < kLanes ? by_lane_[event.lane] : nullptr;
  if (strand == nullptr || strand->due == 0) return Standing::elsewhere;
  const auto before = [&](std::size_t step) {
    return strand->place(step).has(event.xid, event.seq);
  };
  if (before(0) || !before(strand->due)) return Standing::elsewhere;
  // Events of one settlement come one after the other.
  std::size_t low = strand->hint;
  std::size_t high = strand->hint + 1;
  if (high > strand->due || before(low) || !before(high)) {
    low = 0;
    high = strand->due;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (before(middle) ? high : low) = middle;
    }
    strand->hint = low;
  }
  Entry& entry = *strand->steps[low].entry;
  entry.found.add(event::id_hash(event.id));
  entry.first_seq = entry.first_seq == 0 ? event.seq : std::min(entry.first_seq, event.seq);
  entry.last_seq = std::max(entry.last_seq, event.seq);
  if (entry.use == Use::pending) return Standing::pending;
  return entry.use <= Use::disputed ? Standing::settled : Standing::elsewhere;
}

void LedgerWalk::close() {
  for (Strand& strand : strands_) {
    strand.base = Place(strand.place(strand.due));
    for (; strand.due > 0; --strand.due) {
      const EntryPtr entry = std::move(strand.steps.front().entry);
      strand.steps.pop_front();
      if (entry->use <= Use::disputed)
        strand.compared = {.generation = entry->row.generation, .id = entry->row.id};
      release(entry, strand.lanes);
    }
  }
}

// ---- comparing

void LedgerWalk::release(const EntryPtr& entry, LaneMask lanes) {
  entry->open &= ~lanes;
  if (entry->open == 0) settle_up(*entry);
}

void LedgerWalk::settle_up(const Entry& entry) {
  if (entry.voided == entry.row.lanes && entry.row.lanes != 0) {
    if (entry.row.kind == SettlementKind::settle && entry.use <= Use::disputed) ++report_.voided;
    return;
  }
  switch (entry.use) {
    case Use::pending: report_.pending += entry.found.count; return;
    case Use::skipped: report_.skipped += entry.found.count; return;
    case Use::ignored: return;
    case Use::uncovered:
      if (entry.found.count == 0) return;
      row_fault(FaultKind::uncovered, entry, entry.row.lanes,
                outbox::count("event", entry.found.count) +
                    " before it are in the log, and no settlement covers them: they may never have "
                    "been delivered");
      return;
    case Use::disputed:
    case Use::compare: compare(entry);
  }
}

void LedgerWalk::compare(const Entry& entry) {
  const Tally claimed = claimed_by(entry.row);
  report_.acked += entry.row.acked;
  report_.filtered += entry.row.filtered;
  report_.parked += entry.row.parked;
  report_.events += entry.found.count;
  if (is_pruned(start_place(entry.row))) {
    ++report_.unchecked;
    return;
  }
  ++report_.settlements;
  if (entry.use == Use::disputed) return;
  const std::string counted = "it counts " + outbox::count("event", claimed.count);
  if (entry.voided != 0) {
    report_.repeated += claimed.count - entry.found.count;
    if (entry.found.count > claimed.count)
      row_fault(FaultKind::overlap, entry, entry.row.lanes,
                counted + ", and " + std::to_string(entry.found.count) +
                    " are in the lanes that it kept");
    return;
  }
  if (claimed == entry.found) return;
  const std::string between =
      " between " + to_text(start_place(entry.row)) + " and " + to_text(end_place(entry.row));
  if (claimed.count == entry.found.count) {
    row_fault(FaultKind::counts, entry, entry.row.lanes,
              counted + between + ", and the log has as many, but others: their hash sums differ");
    return;
  }
  row_fault(FaultKind::counts, entry, entry.row.lanes,
            counted + between + ", and the log has " + std::to_string(entry.found.count));
}

bool LedgerWalk::is_explained(const Strand& strand, const LedgerRow& row,
                              const Place& place) const {
  const bool others = row.generation > strand.last.generation;
  if (pruned_.newest > strand.last && (others || within(strand.cursor(), place))) return true;
  // Where rows were removed, the settlements after the gap may be void.
  for (std::size_t i = 0; others && i < strand.steps.size(); ++i) {
    if (strand.steps[i].entry->use == Use::uncovered && within(strand.place(i), place) &&
        within(place, strand.steps[i].end))
      return true;
  }
  return false;
}

bool LedgerWalk::is_pruned(const Place& start) const {
  if (pruned_.below_xid > 0 && first_open_xid(start) < pruned_.below_xid) return true;
  return pruned_.through_seq > 0 && first_open_seq(start) <= pruned_.through_seq;
}

}  // namespace outbox::verify
