#include "sim/groups/checks.hpp"

#include <algorithm>

namespace outbox::sim {

void GroupChecks::follow(const std::vector<SettlementRow>& rows) {
  for (const SettlementRow& row : rows) {
    if (row.id <= followed_) continue;
    followed_ = row.id;
    follow(row, true);
  }
}

void GroupChecks::begin_again(const std::vector<SettlementRow>& rows) {
  split_.forget();
  for (LedgerChecks& ledger : ledgers_) ledger.begin_again();
  for (const SettlementRow& row : rows) follow(row, false);
}

void GroupChecks::follow(const SettlementRow& row, bool check) {
  if (row.row.kind == store::SettlementKind::mark) return;
  if (row.row.kind == store::SettlementKind::reset && row.row.subscription == kOfType) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      if ((row.row.lanes >> lane & 1U) != 0) split_.begins(row, lane, ledgers_[0].cursor(lane));
    }
  }
  ledgers_[static_cast<std::size_t>(row.row.subscription - 1)].follow(row, check, discarded_);
}

void GroupChecks::sent(std::int32_t subscription, const WrittenEvent& event, std::size_t number,
                       std::int64_t generation, const std::set<std::size_t>& acked) {
  if (tables_.members().generation_of(event.lane) != generation) return;  // a zombie
  if (event.committed && tables_.is_settled(subscription, event))
    broke("P5: sent again although it is settled");
  if (acked.contains(number)) broke("P5: sent again although it was acked");
  if (event.committed && split_.owner_of(event) != subscription)
    broke("types: a task was sent for a subscription that does not have it");
}

/// This does not check whether the event is still parked, because a person may discard an event
/// that a relay has in memory.
void GroupChecks::sent_again(std::int32_t subscription, const WrittenEvent& event,
                             std::size_t number, std::int64_t generation,
                             const std::set<std::size_t>& acked) {
  if (tables_.members().generation_of(event.lane) != generation) return;  // a zombie
  if (acked.contains(number)) broke("P5: a parked event was sent again although it was acked");
  if (tables_.parked(subscription).delivered().contains(event.view.seq) && event.committed)
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

void GroupChecks::replay_begins(const ReplayRecord& record) {
  arrivals();
  replay_ = record.replay.id;
  to_replay_.clear();
  replayed_.clear();
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    const bool chosen = event.committed && event.wanted && event.view.seq >= record.replay.first &&
                        event.view.seq <= record.replay.last;
    if (chosen && tables_.is_settled(kSubscription, event) && !is_parked(event.view) &&
        !discarded_.contains(number))
      to_replay_.insert(number);
  }
}

void GroupChecks::replays(const WrittenEvent& event, std::size_t number, std::int64_t generation) {
  if (tables_.members().generation_of(event.lane) != generation) return;  // a zombie
  if (!event.committed || !tables_.is_settled(kSubscription, event))
    broke("replay: an event beyond live delivery was sent");
  if (is_parked(event.view) || discarded_.contains(number))
    broke("replay: an event was sent that is parked or was discarded");
}

/// Earlier events of the key must come before it in the replay, too.
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

void GroupChecks::forget_unsettled() {
  std::erase_if(to_replay_, [&](std::size_t number) {
    const WrittenEvent& event = database_.event(number);
    return !event.committed || !tables_.is_settled(kSubscription, event);
  });
}

/// All earlier events of the key and subscription must have arrived before.
void GroupChecks::check_order(const WrittenEvent& event, std::size_t number) {
  if (is_out_of_order(number)) return;
  const auto& of_key = database_.of_key(event.key);
  auto earlier = std::find(of_key.rbegin(), of_key.rend(), number);
  while (earlier != of_key.rend() && ++earlier != of_key.rend()) {
    if (is_out_of_order(*earlier)) continue;
    if (split_.owner_of(database_.event(*earlier)) != split_.owner_of(event)) continue;
    if (*earlier >= arrived_.size() || !arrived_[*earlier])
      broke("P4: out of order in key k" + std::to_string(event.key));
    return;  // the earlier event was checked when it arrived
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

bool GroupChecks::is_complete(const WrittenEvent& event, std::size_t number) const {
  if (!event.committed) return true;
  bool rests = false;
  for (const store::SubscriptionRow& row : tables_.catalog().rows()) {
    if (!tables_.is_settled(row.id, event)) return false;
    rests = rests || tables_.parked(row.id).rests(event.view.seq);
  }
  return !event.wanted || rests || topic_.has(static_cast<std::int64_t>(number)) ||
         discarded_.contains(number);
}

bool GroupChecks::complete() const {
  const auto& subscriptions = tables_.catalog().rows();
  return tables_.running_replay() == 0 &&
         std::all_of(
             database_.rows().begin(), database_.rows().end(),
             [&](std::size_t number) { return is_complete(database_.event(number), number); }) &&
         std::all_of(subscriptions.begin(), subscriptions.end(),
                     [&](const store::SubscriptionRow& row) {
                       const ParkedTable& parked = tables_.parked(row.id);
                       return std::all_of(parked.rows().begin(), parked.rows().end(),
                                          [&](const auto& one) { return parked.rests(one.first); });
                     });
}

void GroupChecks::verify(const std::vector<SettlementRow>& rows) {
  for (const LedgerChecks& ledger : ledgers_) ledger.verify(rows);
}

}  // namespace outbox::sim
