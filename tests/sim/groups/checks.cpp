#include "sim/groups/checks.hpp"

#include <algorithm>

#include "event/key.hpp"
#include "ops/ledger_walk.hpp"

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

}  // namespace

void GroupChecks::follow(const std::vector<SettlementRow>& rows) {
  for (const SettlementRow& row : rows) {
    if (row.id <= followed_) continue;
    followed_ = row.id;
    follow(row, true);
  }
}

void GroupChecks::begin_again(const std::vector<SettlementRow>& rows) {
  cursors_.fill({.s1 = "3:3:"});
  generations_ = {};
  for (const SettlementRow& row : rows) follow(row, false);
}

void GroupChecks::follow(const SettlementRow& row, bool check) {
  const bool is_claim = row.row.kind == store::SettlementKind::claim;
  if (!is_claim && row.row.kind != store::SettlementKind::settle) return;
  unsigned counts = 0;
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((row.row.lanes >> lane & 1U) == 0) continue;
    ++lanes;
    if (row.row.generation < generations_[lane]) continue;
    ++counts;
    const store::Cursor& cursor = cursors_[lane];
    if (is_claim) {
      generations_[lane] = row.row.generation;
      if (check && !(row.row.end() == cursor || cursor == store::Cursor{.s1 = row.row.s2}))
        broke("ledger: a claim moves the cursor");
    } else if (check) {
      const bool starts = cursor.drained() ? row.row.s1 == cursor.s1 && row.row.from_position == 0
                                           : row.row.s1 == cursor.s1 && row.row.s2 == cursor.s2 &&
                                                 row.row.from_position == cursor.position;
      if (!starts) broke("ledger: a row does not start at the cursor");
    }
    cursors_[lane] = row.row.end();
  }
  if (counts == 0) ++void_rows_;
  if (counts != 0 && counts != lanes) broke("ledger: a row counts for some of its lanes only");
  if (check && counts != 0 && !is_claim) compare(row);
}

bool GroupChecks::covers(const SettlementRow& row, const WrittenEvent& event) const {
  return (row.row.lanes >> event.lane & 1U) != 0 && event.view.seq > row.row.from_position &&
         (!row.row.position || event.view.seq <= *row.row.position) &&
         database_.sees(*row.s2, event.xid) && !database_.sees(*row.s1, event.xid);
}

void GroupChecks::compare(const SettlementRow& row) {
  store::Tally done;
  store::Tally filtered;
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    if (!covers(row, event)) continue;
    (event.wanted ? done : filtered).add(event::id_hash(event.view.id));
    if (event.wanted && !topic_.has(static_cast<std::int64_t>(number)) && !is_parked(event.view) &&
        !discarded_.contains(number))
      broke("P2: the cursor passed an event that never arrived");
  }
  store::Tally counted = row.row.acked;
  counted += row.row.parked;
  if (!(done == counted) || !(filtered == row.row.filtered)) broke("ledger: the sums differ");
  if (parked_.parks_twice()) broke("an event is parked twice");
}

void GroupChecks::sent(const WrittenEvent& event, std::size_t number, std::int64_t generation,
                       const Tables& tables, const std::set<std::size_t>& acked) {
  if (tables.generation_of(event.lane) != generation) return;  // a zombie
  if (event.committed && tables.is_settled(event)) broke("P5: sent again although it is settled");
  if (acked.contains(number)) broke("P5: sent again although it was acked");
}

/// A person may discard what is in memory.
void GroupChecks::sent_again(const WrittenEvent& event, std::size_t number, std::int64_t generation,
                             const Tables& tables, const std::set<std::size_t>& acked) {
  if (tables.generation_of(event.lane) != generation) return;  // a zombie
  if (acked.contains(number)) broke("P5: a parked event was sent again although it was acked");
  if (parked_.delivered().contains(event.view.seq) && event.committed)
    broke("P5: a parked event was sent again although its end is written");
}

void GroupChecks::parks(const store::ParkedEvent& event, std::size_t number, bool bad) {
  const unsigned key = database_.event(number).key;
  if (event.state == store::ParkedState::waiting) {
    if (!troubled_.contains(key)) broke("P6: a key waits of which nothing was set aside");
    return;
  }
  troubled_.insert(key);
  if (event.attempts > 0 && !bad) broke("P6: an event that nothing is wrong with was parked");
}

void GroupChecks::replay_begins(const ReplayRecord& record, const Tables& tables) {
  arrivals();
  replay_ = record.replay.id;
  to_replay_.clear();
  replayed_.clear();
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    const bool chosen = event.committed && event.wanted && event.view.seq >= record.replay.first &&
                        event.view.seq <= record.replay.last;
    if (chosen && tables.is_settled(event) && !is_parked(event.view) &&
        !discarded_.contains(number))
      to_replay_.insert(number);
  }
}

void GroupChecks::replays(const WrittenEvent& event, std::size_t number, std::int64_t generation,
                          const Tables& tables) {
  if (tables.generation_of(event.lane) != generation) return;  // a zombie
  if (!event.committed || !tables.is_settled(event))
    broke("replay: an event beyond live delivery was sent");
  if (is_parked(event.view) || discarded_.contains(number))
    broke("replay: an event was sent that is parked or was discarded");
}

/// Earlier ones of the key come before it in the replay, too.
void GroupChecks::check_replayed(const WrittenEvent& event, std::size_t number) {
  if (!to_replay_.contains(number) || !replayed_.insert(number).second) return;
  for (const std::size_t earlier : database_.of_key(event.key)) {
    if (earlier == number) return;
    if (to_replay_.contains(earlier) && !replayed_.contains(earlier))
      return broke("replay: out of order in key k" + std::to_string(event.key));
  }
}

void GroupChecks::follow(const ReplayRecord& record) {
  if (replay_ == 0 || record.replay.state != store::ReplayState::done) return;
  arrivals();
  replay_ = 0;
  std::set<std::size_t> skipped;
  for (const store::ReplaySkip& skip : record.skips) skipped.insert(number_of(skip.id));
  for (const std::size_t number : to_replay_) {
    if (!replayed_.contains(number) && !skipped.contains(number))
      broke("replay: an event was left out");
  }
}

void GroupChecks::forget_unsettled(const Tables& tables) {
  std::erase_if(to_replay_, [&](std::size_t number) {
    return !database_.event(number).committed || !tables.is_settled(database_.event(number));
  });
}

/// All earlier ones of the key must have arrived before.
void GroupChecks::check_order(const WrittenEvent& event, std::size_t number) {
  if (is_out_of_order(number)) return;
  const auto& of_key = database_.of_key(event.key);
  auto earlier = std::find(of_key.rbegin(), of_key.rend(), number);
  while (earlier != of_key.rend() && ++earlier != of_key.rend()) {
    if (is_out_of_order(*earlier)) continue;
    if (*earlier >= arrived_.size() || !arrived_[*earlier])
      broke("P4: out of order in key k" + std::to_string(event.key));
    return;  // that one was checked when it arrived
  }
}

void GroupChecks::arrivals() {
  for (; checked_ < topic_.arrivals().size(); ++checked_) {
    const auto number = static_cast<std::size_t>(topic_.arrivals()[checked_]);
    const WrittenEvent& event = database_.event(number);
    if (replay_ != 0 && topic_.replays()[checked_] == replay_) check_replayed(event, number);
    if (arrived_.size() <= number) arrived_.resize(number + 1);
    if (arrived_[number]) continue;
    arrived_[number] = true;
    if (!event.committed) return broke("P3: a ghost was delivered");
    if (!event.wanted) return broke("a filtered event was delivered");
    check_order(event, number);
  }
  if (exact_ && topic_.duplicates() > 0) broke("P5: a duplicate that nothing excuses");
}

void GroupChecks::lost(const std::vector<std::size_t>& numbers) {
  for (const std::size_t number : numbers) {
    if (topic_.has(static_cast<std::int64_t>(number)))
      broke("P3: an event was delivered that a crash took back");
  }
}

bool GroupChecks::complete(const Tables& tables) const {
  return tables.running_replay() == 0 &&
         std::all_of(database_.rows().begin(), database_.rows().end(),
                     [&](std::size_t number) {
                       const WrittenEvent& event = database_.event(number);
                       if (!event.committed) return true;
                       const bool over = topic_.has(static_cast<std::int64_t>(number)) ||
                                         parked_.rests(event.view.seq) ||
                                         discarded_.contains(number);
                       return tables.is_settled(event) && (!event.wanted || over);
                     }) &&
         std::all_of(parked_.rows().begin(), parked_.rows().end(),
                     [this](const auto& row) { return parked_.rests(row.first); });
}

void GroupChecks::verify(const std::vector<SettlementRow>& rows) {
  std::vector<const SettlementRow*> sorted;
  for (const SettlementRow& row : rows) {
    if (row.row.subscription == kSubscription) sorted.push_back(&row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->row.generation < b->row.generation;
  });
  ops::LedgerWalk walk;
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
  for (const ops::Fault& fault : walk.report().faults)
    broke("verify: " + fault.text + " (settlement " + std::to_string(fault.settlement) + ")");
}

}  // namespace outbox::sim
