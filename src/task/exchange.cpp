#include "task/exchange.hpp"

#include <algorithm>
#include <utility>

namespace outbox::task {
namespace {

/// So long a queue is free, or is not, before others are told.
constexpr std::chrono::milliseconds kSettled{100};
/// While there are other workers. Costs no statement as long as nothing changes.
constexpr std::chrono::milliseconds kTurn{100};
/// Without a notification, which a pooler holds back.
constexpr std::chrono::seconds kClaimEvery{1};
/// A worker whose last heartbeat is older has no free threads.
constexpr int kMissed = 3;

}  // namespace

void Exchange::start_over() {
  told_ = true;
  others_at_ = next_at_ = TimePoint();
  for (Queue& queue : queues_) queue = Queue{.runner = std::move(queue.runner)};
}

Status Exchange::turn(store::TaskRuns& rows, TimePoint now) {
  if (Status status = look_for_others(rows, now); !status) return status;
  for (Queue& queue : queues_) {
    const bool free = queue.runner->free_threads() > 0;
    if (free != queue.free) queue.since = now;
    queue.free = free;
    if (told_) queue.claim_at = now;
    if (free && now >= queue.claim_at) {
      if (Status status = claim(rows, queue, now); !status) return status;
    }
    if (Status status = look_for_threads(rows, queue, now); !status) return status;
  }
  told_ = false;
  next_at_ = now + (alone_ ? heartbeat_ : kTurn);
  return announce(rows, now);
}

Status Exchange::look_for_others(store::TaskRuns& rows, TimePoint now) {
  if (now < others_at_) return {};
  OUTBOX_TRY(const auto others, rows.other_threads(worker_, "", kMissed * heartbeat_));
  alone_ = others.workers == 0;
  others_at_ = now + heartbeat_;
  return {};
}

/// Whether there are free threads matters to others, not how many.
Status Exchange::announce(store::TaskRuns& rows, TimePoint now) {
  if (alone_) return {};
  bool changed = false;
  std::map<std::string, std::size_t> free;
  for (Queue& queue : queues_) {
    if ((queue.announced > 0) != queue.free && now - queue.since >= kSettled) {
      queue.announced = queue.runner->free_threads();
      changed = true;
    }
    free[queue.runner->queue()] = queue.announced;
  }
  return changed ? rows.announce_free_threads(worker_, free) : Status{};
}

Status Exchange::claim(store::TaskRuns& rows, Queue& queue, TimePoint now) {
  // Also alone: others may have left some behind.
  queue.claim_at = now + (alone_ ? heartbeat_ : std::chrono::milliseconds(kClaimEvery));
  const std::size_t free = queue.runner->free_threads();
  OUTBOX_TRY(const auto claimed, rows.claim(worker_, queue.runner->subscriptions(),
                                            queue.runner->types_to_share(), free));
  queue.runner->add_claimed(claimed);
  // There may be more for a thread that becomes free.
  if (claimed.tasks.size() == free) queue.claim_at = now;
  return {};
}

Status Exchange::look_for_threads(store::TaskRuns& rows, Queue& queue, TimePoint now) {
  if (alone_ || !queue.runner->is_starved(now)) {
    queue.runner->set_elsewhere(0);
    return {};
  }
  if (now < queue.look_at) return {};
  OUTBOX_TRY(const auto others,
             rows.other_threads(worker_, queue.runner->queue(), kMissed * heartbeat_));
  queue.runner->set_elsewhere(static_cast<std::size_t>(std::max<std::int64_t>(others.free, 0)));
  queue.look_at = now + kTurn;
  return {};
}

}  // namespace outbox::task
