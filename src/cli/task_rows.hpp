// Which tasks the verbs of `outbox tasks` are about: their rows, and what is known of one by its
// id.
#pragma once

#include <functional>
#include <outbox/task.hpp>
#include <string>
#include <vector>

#include "cli/parked_rows.hpp"

namespace outbox::cli {

/// The subscriptions of queues, with their rows.
struct Queues : ParkedRows {
  explicit Queues(const config::Loaded& loaded) : ParkedRows(loaded) {}

  /// Of this queue, or of all. Ends the verb when nothing is known of the queue.
  [[nodiscard]] std::vector<store::SubscriptionRow> of(
      const std::optional<std::string>& queue) const;
};

struct TaskChoice {
  std::optional<std::string> queue{};
  std::optional<std::string> type{};
  std::optional<std::string> state{};
  std::optional<std::string> key{};

  [[nodiscard]] bool any() const { return queue || type || state || key; }
};

/// Of --state: one that can be listed.
[[nodiscard]] TaskState state_of(const std::string& word);
[[nodiscard]] TaskState state_of(const store::ParkedListing& row);

[[nodiscard]] std::vector<store::ParkedListing> rows_of(const TaskChoice& choice,
                                                        const Queues& open, std::size_t limit);
/// Calls `take(rows)` for all of them, so many at a time that each change of them is a short
/// transaction.
void each_page_of(const TaskChoice& choice, const Queues& open,
                  const std::function<void(const std::vector<store::ParkedListing>&)>& take);
/// Those with these ids: all of them have rows, or the verb ends.
[[nodiscard]] std::vector<store::ParkedListing> rows_with_ids(const std::vector<std::string>& ids,
                                                              const Queues& open);

[[nodiscard]] EventId parse_task_id(const std::string& text);

struct FoundTask {
  store::EventListing event;
  TaskStatus status;
};
/// Or ends the verb.
[[nodiscard]] FoundTask find_task(const Queues& open, const std::string& id);

}  // namespace outbox::cli
