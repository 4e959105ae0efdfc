// Queues of tasks and their workers, as `outbox status` shows them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace outbox::health {

/// The tasks of one type in a queue.
struct QueueLine {
  std::string queue;
  std::string type;  ///< Empty if no type of the queue is known.
  std::int64_t ready{0};
  std::int64_t running{0};
  std::int64_t scheduled{0};
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
  bool more{false};  ///< Whether not all tasks were counted.
  std::optional<std::chrono::microseconds> oldest{};
  DurationCounts runs{};  ///< Durations of the runs of live workers.
  bool has_handler{false};

  [[nodiscard]] std::int64_t tasks_to_do() const {
    return ready + running + scheduled + retrying + waiting;
  }
};

struct Queues {
  std::vector<QueueLine> lines;
  std::vector<store::WorkerRow> workers;

  /// Whether a live worker serves the queue.
  [[nodiscard]] bool has_worker(const std::string& queue) const;
};

/// Reads the queues among the subscriptions. If none is a queue, it reads nothing.
[[nodiscard]] Result<Queues> look_at_queues(
    store::Store& store, const std::vector<store::SubscriptionOverview>& subscriptions,
    std::int64_t limit);

}  // namespace outbox::health
