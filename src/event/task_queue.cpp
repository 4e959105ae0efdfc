#include "event/task_queue.hpp"

#include <array>

#include "base/text.hpp"
#include "event/task.hpp"

namespace outbox {

const char* to_string(TaskState state) noexcept {
  switch (state) {
    case TaskState::pending: return "pending";
    case TaskState::scheduled: return "scheduled";
    case TaskState::running: return "running";
    case TaskState::retrying: return "retrying";
    case TaskState::waiting: return "waiting";
    case TaskState::completed: return "completed";
    case TaskState::dead: return "dead";
    case TaskState::cancelled: return "cancelled";
  }
  return "unknown";
}

namespace event {
namespace {

constexpr std::string_view kSubscription = "task";

struct Place {
  std::string_view queue;
  std::string_view priority;  ///< A digit; empty: the default.
};

Place place_in(std::string_view aggregate_type) {
  const std::string_view rest = aggregate_type.substr(kTaskPrefix.size());
  const std::size_t end = rest.find('!');
  if (end == std::string_view::npos) return {.queue = rest, .priority = {}};
  return {.queue = rest.substr(0, end), .priority = rest.substr(end + 1)};
}

}  // namespace

std::optional<TaskState> find_task_state(std::string_view word) {
  using enum TaskState;
  for (const TaskState state :
       {pending, scheduled, running, retrying, waiting, completed, dead, cancelled}) {
    if (word == to_string(state)) return state;
  }
  return std::nullopt;
}

std::optional<std::string> queue_of_subscription(std::string_view name) {
  if (!name.starts_with(kSubscription)) return std::nullopt;
  name.remove_prefix(kSubscription.size());
  if (!name.empty() && is_digit(name.front())) name.remove_prefix(1);
  if (!name.starts_with('.') || !check_queue(name.substr(1))) return std::nullopt;
  return std::string(name.substr(1));
}

std::string queue_of_task(std::string_view aggregate_type) {
  return std::string(place_in(aggregate_type).queue);
}

std::string subscription_of_task(std::string_view aggregate_type) {
  const Place place = place_in(aggregate_type);
  return std::string(kSubscription).append(place.priority).append(".").append(place.queue);
}

}  // namespace event
}  // namespace outbox
