// The part of `outbox status` about queues of tasks and their workers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "store/store.hpp"

namespace outbox::cli {

/// The tasks of one type in a queue.
struct QueueLine {
  std::string queue;
  std::string type;  ///< Empty: nothing is known of any.
  std::int64_t ready{0};
  std::int64_t running{0};
  std::int64_t scheduled{0};
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
  bool more{false};  ///< Not all were counted.
  std::optional<std::chrono::microseconds> oldest{};
  DurationCounts runs{};  ///< Of live workers.
  bool has_handler{false};
};

struct QueueView {
  std::vector<QueueLine> lines;
  std::vector<store::WorkerRow> workers;
};

/// Nothing is read when there is no queue.
[[nodiscard]] QueueView look_at_queues(
    store::Store& store, const std::vector<store::SubscriptionOverview>& subscriptions,
    std::int64_t limit);
/// What needs a person.
[[nodiscard]] std::vector<std::string> problems_of(const QueueView& view);
void print_queues(const QueueView& view);
[[nodiscard]] Json queues_to_json(const QueueView& view);
[[nodiscard]] Json workers_to_json(const QueueView& view);

/// In its largest unit: "0s", "12s", "3m", "2h", "5d".
[[nodiscard]] std::string age_text(std::chrono::microseconds age);

}  // namespace outbox::cli
