// How a task looks in the log. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/task.hpp>
#include <string>
#include <string_view>

#include "event/arena.hpp"

namespace outbox::event {

[[nodiscard]] inline bool is_task(std::string_view aggregate_type) {
  return aggregate_type.starts_with(kTaskPrefix);
}
inline constexpr std::size_t kPriorities = 4;
inline constexpr std::size_t kDefaultPriority = 2;
inline constexpr std::size_t kMostAttempts = 1000;

/// What a task's aggregate type says. It includes the priority, so that each has its own cursor.
struct TaskPlace {
  std::string_view queue;
  std::size_t priority{kDefaultPriority};
};
[[nodiscard]] TaskPlace parse_task_place(std::string_view aggregate_type);
[[nodiscard]] std::string make_aggregate_type(std::string_view queue,
                                              std::size_t priority = kDefaultPriority);

[[nodiscard]] Status check_queue(std::string_view queue);

/// What the headers of a task say about its runs.
struct TaskRules {
  std::optional<std::int64_t> execute_at_us{};  ///< Microseconds since 1970.
  std::optional<std::size_t> max_attempts{};
  std::string unique_key{};
  std::optional<TaskEvent> on_done{};
};

/// The header of a received message that could not be understood, with the reason. No run of its
/// task can succeed.
inline constexpr std::string_view kUnreadableHeader = "task-unreadable";

/// Whether the task may have rules. Nearly no task has any.
[[nodiscard]] inline bool has_rules(std::string_view headers) {
  return headers.find("task-") != std::string_view::npos;
}
/// Fails for a header that cannot be read, which makes its task impossible.
[[nodiscard]] Result<TaskRules> parse_task_rules(std::string_view headers, Arena& arena);
/// The event of on_dead; nullopt if there is none or it cannot be read.
[[nodiscard]] std::optional<TaskEvent> read_on_dead(std::string_view headers, Arena& arena);

/// How a task ended, for those who want to be told.
struct TaskNews {
  EventId id{};
  std::string_view queue;
  std::string_view type;
  std::string_view key;
  std::size_t attempts{0};
  /// Inserted as it is if it is JSON, otherwise as a string.
  std::optional<std::string_view> result{};
  std::string_view error{};  ///< Empty if there was none.
};
[[nodiscard]] Event make_event(const TaskEvent& told, const TaskNews& news);

}  // namespace outbox::event
