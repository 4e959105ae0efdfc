// What a subscription's loop writes: settlements with what is parked, results of retries, the
// progress of a replay.
#include <algorithm>
#include <utility>

#include "relay/replay.hpp"
#include "relay/subscription_loop.hpp"

namespace outbox::relay {
namespace {

constexpr std::chrono::seconds kFindOrphans{1};

}  // namespace

void SubscriptionLoop::settle(TimePoint now) {
  if (!may_settle_) return;
  // If the trial waits for this settlement, everything is settled now.
  const TimePoint by = trial_waits_ && sink_state_.in_flight() == 0 ? TimePoint::max() : now;
  for (std::size_t strand = 0; strand < strands_.size(); ++strand) {
    auto due = strands_[strand]->core.settle(by);
    if (due.empty()) continue;
    settlements_ += due.rows.size();
    if (replay_) {
      settle_replay(strand, due);
      continue;
    }
    log_parked(due.parked);
    for (const auto& parked : due.parked) {
      // A waiting event is due with the one before it. If that one is gone already, the waiting
      // event is found a moment later.
      const std::chrono::milliseconds due_in =
          parked.state == store::ParkedState::waiting ? kFindOrphans : parked.due_in;
      retries_.due_at(now + std::chrono::duration_cast<TimePoint::duration>(due_in));
      // The row is read back after this is written.
      if (parked.state == store::ParkedState::ready) retries_.runs(parked.seq, parked.key);
    }
    write({.rows = std::move(due.rows), .parked = std::move(due.parked)}, strand);
  }
  settle_retries(now);
}

void SubscriptionLoop::settle_replay(std::size_t strand, const DeliveryCore::Due& due) {
  store::ReplayProgress progress = replay_progress(replay_->replay, due);
  log_skipped(progress);
  Settler::Work work{.rows = {}};
  work.replays.push_back(std::move(progress));
  write(std::move(work), strand);
}

/// Live delivery goes on once every strand has come to the end of the replay.
void SubscriptionLoop::watch_replay() {
  const bool done = std::all_of(strands_.begin(), strands_.end(), [](const auto& strand) {
    return strand->core.idle() && strand->core.done().drained();
  });
  if (!done) return;
  {
    const MutexLock lock(box_->mutex);
    box_->replayed = true;
  }
  const MutexLock lock(links_mutex_);
  if (links_ && links_->listener.replayed) links_->listener.replayed();
}

void SubscriptionLoop::settle_retries(TimePoint now) {
  if (!may_settle_) return;
  auto results = retries_.results(now);
  if (results.empty()) return;
  for (const auto& result : results) {
    if (result.state == store::ParkedState::dead)
      log_dead(result.seq, result.id, result.attempts, result.error);
  }
  write({.rows = {}, .results = std::move(results)}, std::nullopt);
}

void SubscriptionLoop::write(Settler::Work work, std::optional<std::size_t> strand) {
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  {
    const MutexLock box_lock(box_->mutex);
    ++box_->unwritten;
  }
  links_->settler->settle(std::move(work), [box = box_, strand, id = row_.id](const auto& keys) {
    Written written{.strand = strand};
    for (const store::ReleasedKey& key : keys) {
      if (key.subscription == id) written.released.push_back(key.key);
    }
    box->written(std::move(written));
  });
}

}  // namespace outbox::relay
