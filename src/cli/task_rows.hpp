// Which tasks the verbs of `outbox tasks` are about: their rows, and what is known of one by its
// id.
#pragma once

#include <functional>
#include <outbox/task.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/parked_rows.hpp"

namespace outbox::cli {

/// The subscriptions of queues, with their rows.
struct Queues : ParkedRows {
  explicit Queues(const config::Loaded& loaded, Decided decided = {})
      : ParkedRows(loaded, std::move(decided)) {}

  /// The subscriptions of this queue, or of all queues. Ends the verb if nothing is known of the
  /// queue.
  [[nodiscard]] std::vector<store::SubscriptionRow> of(
      const std::optional<std::string>& queue) const;
};

struct TaskChoice {
  std::optional<std::string> queue{};
  std::optional<std::string> type{};
  std::optional<std::string> state{};
  std::optional<std::string> key{};
  std::optional<PageEnd> after{};  ///< Only for read_rows().

  [[nodiscard]] bool any() const { return queue || type || state || key; }
};

/// The state that --state names. Ends the verb unless it can be listed.
[[nodiscard]] TaskState parse_state(const std::string& word);
[[nodiscard]] TaskState find_state(const store::ParkedListing& row);

[[nodiscard]] std::vector<store::ParkedListing> read_rows(const TaskChoice& choice,
                                                          const Queues& open, std::size_t limit);
/// Calls `take(rows)` for all chosen tasks, in pages so small that each change of one is a short
/// transaction.
void for_each_page(const TaskChoice& choice, const Queues& open,
                   const std::function<void(const std::vector<store::ParkedListing>&)>& take);
/// The rows of the tasks with these ids. Ends the verb if one of the tasks has no row.
[[nodiscard]] std::vector<store::ParkedListing> rows_with_ids(const std::vector<std::string>& ids,
                                                              const Queues& open);

[[nodiscard]] EventId parse_task_id(const std::string& text);

struct FoundTask {
  store::EventListing event;
  TaskStatus status;
};
/// The task with this id. Ends the verb if there is none.
[[nodiscard]] FoundTask find_task(const Queues& open, const std::string& id);

}  // namespace outbox::cli
