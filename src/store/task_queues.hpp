// Tasks and their queues for people (docs/design/tasks.md). Rows of tasks are parked events (store/parked_events.hpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/catalog.hpp"
#include "store/part.hpp"
#include "store/worker_note.hpp"

namespace outbox::store {

/// A task of the log that no worker has taken, or that has run for less than 1 s.
struct PendingTask {
  std::int64_t seq{0};
  EventId id{};
  std::string type;
  std::string key;
  std::int64_t created_at_us{0};  ///< Microseconds since 1970, UTC.
};

/// Which of them; what is not given does not matter.
struct PendingFilter {
  std::string type{};
  std::string key{};
};

/// How many tasks of a type are in a state.
struct TaskCount {
  std::int32_t subscription{0};
  std::string type;
  TaskState state{TaskState::pending};
  std::int64_t tasks{0};
  /// How long the first of them could have begun, by the clock of the store: since it was enqueued, or since its next run is due.
  std::chrono::microseconds waited{0};
};

struct WorkerRow {
  std::string name;
  std::chrono::microseconds silent{0};  ///< Since its last heartbeat, by the clock of the store.
  std::int64_t running{0};              ///< Runs that have a row.
  WorkerNote note;

  /// It has missed no more than two heartbeats.
  [[nodiscard]] bool is_alive() const {
    return silent <= std::max<std::chrono::microseconds>(3 * note.heartbeat, kShortestSilence);
  }
  static constexpr std::chrono::seconds kShortestSilence{30};
};

struct QueueReport {
  std::vector<TaskCount> counts;
  std::set<std::int32_t> more;  ///< Subscriptions of which not all were counted.
  std::vector<WorkerRow> workers;
};

/// Rows of a subscription that are counted, at most.
inline constexpr std::int64_t kMostRowsCounted = 100'000;
/// Events that are looked at, at most, for pending tasks of a subscription.
inline constexpr std::int64_t kMostPendingSearched = 100'000;

/// One thread at a time.
class TaskQueues : public Part {
 public:
  /// None: there is no task with this id.
  [[nodiscard]] virtual Result<std::optional<TaskStatus>> task(const EventId& id) = 0;
  /// Those of a subscription of a queue, the oldest first, at most `limit`.
  [[nodiscard]] virtual Result<std::vector<PendingTask>> pending(
      const SubscriptionRow& subscription, const PendingFilter& filter, std::size_t limit) = 0;
  /// Of subscriptions of queues, and all workers of the last hour. `limit`: events that are looked at for pending tasks of each.
  [[nodiscard]] virtual Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                                 std::int64_t limit) = 0;
};

}  // namespace outbox::store
