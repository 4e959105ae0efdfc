#include "task/exchange.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace outbox::task {
namespace {

/// A worker whose last heartbeat is older than this many heartbeats has no free threads.
constexpr int kMissed = 3;

}  // namespace

void Exchange::start_over() {
  told_ = true;
  others_at_ = next_at_ = TimePoint();
  for (Queue& queue : queues_) queue = Queue{.tasks = std::move(queue.tasks)};
}

Status Exchange::turn(store::TaskRuns& rows, TimePoint now) {
  OUTBOX_TRY(look_for_others(rows, now));
  for (Queue& queue : queues_) {
    const bool free = queue.tasks->free_threads() > 0;
    if (free != queue.free) queue.since = now;
    queue.free = free;
    if (told_) queue.claim_at = now;
    if (free && now >= queue.claim_at) {
      OUTBOX_TRY(claim(rows, queue, now));
    }
    OUTBOX_TRY(look_for_threads(rows, queue, now));
  }
  told_ = false;
  next_at_ = now + (alone_ ? options_.heartbeat : options_.turn);
  return announce(rows, now);
}

Status Exchange::look_for_others(store::TaskRuns& rows, TimePoint now) {
  if (now < others_at_) return {};
  OUTBOX_TRY(const auto others, rows.other_threads(worker_, "", kMissed * options_.heartbeat));
  alone_ = others.workers == 0;
  others_at_ = now + options_.heartbeat;
  return {};
}

/// It matters to others whether there are free threads, not how many.
Status Exchange::announce(store::TaskRuns& rows, TimePoint now) {
  if (alone_) return {};
  bool changed = false;
  std::map<std::string, std::size_t> free;
  for (Queue& queue : queues_) {
    const bool is_told = queue.announced && (*queue.announced > 0) == queue.free;
    if (!is_told && now - queue.since >= options_.settled) {
      queue.announced = queue.tasks->free_threads();
      changed = true;
    }
    free[queue.tasks->queue()] = queue.announced.value_or(0);
  }
  return changed ? rows.announce_free_threads(worker_, free) : Status{};
}

Status Exchange::claim(store::TaskRuns& rows, Queue& queue, TimePoint now) {
  // A worker that is alone claims, too: others may have left tasks behind.
  queue.claim_at = now + (alone_ ? options_.heartbeat : options_.claim_every);
  const std::size_t free = queue.tasks->free_threads();
  OUTBOX_TRY(const auto claimed, rows.claim(worker_, queue.tasks->subscriptions(),
                                            queue.tasks->types_to_claim(), free));
  queue.tasks->add_claimed(claimed, now);
  // There may be more tasks for a thread that becomes free.
  if (claimed.tasks.size() == free) queue.claim_at = now;
  return {};
}

Status Exchange::look_for_threads(store::TaskRuns& rows, Queue& queue, TimePoint now) {
  if (alone_ || !queue.tasks->is_starved(now)) {
    queue.tasks->set_elsewhere(0);
    return {};
  }
  if (now < queue.look_at) return {};
  OUTBOX_TRY(const auto others,
             rows.other_threads(worker_, queue.tasks->queue(), kMissed * options_.heartbeat));
  queue.tasks->set_elsewhere(static_cast<std::size_t>(std::max<std::int64_t>(others.free, 0)));
  queue.look_at = now + options_.turn;
  return {};
}

}  // namespace outbox::task
