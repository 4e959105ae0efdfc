#include "sim/groups/ledger_checks.hpp"

#include <algorithm>
#include <memory>

#include "event/key.hpp"
#include "verify/ledger_walk.hpp"

namespace outbox::sim {
namespace {

store::LedgerRow ledger_row(const SettlementRow& row) {
  return {.id = row.id,
          .kind = row.row.kind,
          .lanes = row.row.lanes,
          .generation = row.row.generation,
          .s1 = row.s1,
          .s2 = row.s2,
          .from_position = row.row.from_position,
          .position = row.row.position,
          .bound = row.row.bound,
          .acked = row.row.acked,
          .filtered = row.row.filtered,
          .parked = row.row.parked};
}

/// Whether `all` is the sum of `least` and of some of these hashes.
bool differs_by_some(const store::Tally& all, const store::Tally& least,
                     const std::vector<std::uint64_t>& some, std::size_t from = 0) {
  if (all == least) return true;
  for (std::size_t i = from; i < some.size(); ++i) {
    store::Tally more = least;
    more.add(some[i]);
    if (differs_by_some(all, more, some, i + 1)) return true;
  }
  return false;
}

}  // namespace

void LedgerChecks::begin_again() {
  cursors_.fill({.s1 = subscription_ == kSubscription ? "3:3:" : ""});
  generations_ = {};
}

void LedgerChecks::follow(const SettlementRow& row, bool check,
                          const std::set<std::size_t>& discarded) {
  const bool is_claim = row.row.kind == store::SettlementKind::claim;
  unsigned counts = 0;
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((row.row.lanes >> lane & 1U) == 0) continue;
    ++lanes;
    if (row.row.generation < generations_[lane]) continue;
    ++counts;
    const store::Cursor& cursor = cursors_[lane];
    if (row.row.kind == store::SettlementKind::reset) {
      generations_[lane] = row.row.generation;
    } else if (is_claim) {
      generations_[lane] = row.row.generation;
      if (check && !(row.row.end() == cursor || cursor == store::Cursor{.s1 = row.row.s2}))
        promises_.broke("ledger: a claim moves the cursor");
    } else if (check) {
      const bool starts = cursor.drained() ? row.row.s1 == cursor.s1 && row.row.from_position == 0
                                           : row.row.s1 == cursor.s1 && row.row.s2 == cursor.s2 &&
                                                 row.row.from_position == cursor.position;
      if (!starts) promises_.broke("ledger: a row does not start at the cursor");
    }
    cursors_[lane] = row.row.end();
  }
  if (counts == 0) ++void_rows_;
  if (counts != 0 && counts != lanes)
    promises_.broke("ledger: a row counts for some of its lanes only");
  if (check && counts != 0 && row.row.kind == store::SettlementKind::settle)
    compare(row, discarded);
}

bool LedgerChecks::covers(const SettlementRow& row, const WrittenEvent& event) const {
  return (row.row.lanes >> event.lane & 1U) != 0 && event.view.seq > row.row.from_position &&
         (!row.row.position || event.view.seq <= *row.row.position) &&
         database_.sees(*row.s2, event.xid) && !database_.sees(*row.s1, event.xid);
}

bool LedgerChecks::has_arrived(const WrittenEvent& event, std::size_t number,
                               const std::set<std::size_t>& discarded) const {
  const auto& rows = tables_.parked(subscription_).rows();
  const auto row = rows.find(event.view.seq);
  return topic_.has(static_cast<std::int64_t>(number)) || discarded.contains(number) ||
         (row != rows.end() && row->second.event.id == event.view.id);
}

void LedgerChecks::compare(const SettlementRow& row, const std::set<std::size_t>& discarded) const {
  store::Tally done;
  store::Tally all;
  std::vector<std::uint64_t> either;
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    if (!covers(row, event)) continue;
    const std::uint64_t hash = event::id_hash(event.view.id);
    all.add(hash);
    if (!event.wanted) continue;
    if (split_.owner_of(event) == subscription_) {
      done.add(hash);
      if (!has_arrived(event, number, discarded))
        promises_.broke("P2: the cursor passed an event that never arrived");
    } else if (split_.is_remembered(subscription_, number)) {
      either.push_back(hash);
    }
  }
  store::Tally counted = row.row.acked;
  counted += row.row.parked;
  const bool as_expected = differs_by_some(counted, done, either);
  counted += row.row.filtered;
  if (!as_expected || !(all == counted)) promises_.broke("ledger: the sums differ");
  if (tables_.parked(subscription_).parks_twice()) promises_.broke("an event is parked twice");
}

void LedgerChecks::verify(const std::vector<SettlementRow>& rows) const {
  std::vector<const SettlementRow*> sorted;
  for (const SettlementRow& row : rows) {
    if (row.row.subscription == subscription_) sorted.push_back(&row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->row.generation < b->row.generation;
  });
  verify::LedgerWalk walk;
  const auto compare = [&] {
    for (const store::EventRange& range : walk.window()) {
      for (const std::size_t number : database_.rows()) {
        const WrittenEvent& event = database_.event(number);
        const store::LedgerEvent read{.xid = event.xid,
                                      .seq = event.view.seq,
                                      .lane = static_cast<std::uint8_t>(event.lane),
                                      .id = event.view.id};
        if (event.committed && range.has(read)) walk.count(read);
      }
    }
    walk.close();
  };
  for (const SettlementRow* row : sorted) {
    walk.add(ledger_row(*row));
    if (walk.full()) compare();
  }
  walk.finish({.s1 = std::make_shared<const store::Visible>(database_.snapshot())});
  compare();
  for (const verify::Fault& fault : walk.report().faults)
    promises_.broke("verify: " + fault.text + " (settlement " + std::to_string(fault.settlement) +
                    ")");
}

}  // namespace outbox::sim
