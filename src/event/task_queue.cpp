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

bool is_of_queue(const SubscriptionSpec& spec) {
  return spec.aggregate_types.size() == 1 && is_task(spec.aggregate_types.front()) &&
         subscription_of_task(spec.aggregate_types.front()) == spec.name;
}

std::string queue_of_task(std::string_view aggregate_type) {
  return std::string(place_of(aggregate_type).queue);
}

std::string subscription_of_queue(std::string_view queue, std::size_t priority) {
  std::string name(kSubscription);
  if (priority != kDefaultPriority) name += std::to_string(priority);
  return name.append(".").append(queue);
}

std::string subscription_of_task(std::string_view aggregate_type) {
  const TaskPlace place = place_of(aggregate_type);
  return subscription_of_queue(place.queue, place.priority);
}

}  // namespace event
}  // namespace outbox
