#include "event/task_queue.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"
#include "event/key.hpp"
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
constexpr std::string_view kOfType = "type";
/// How many digits of a type's hash stand for the type, which may be no name of a subscription.
/// They are in the store and must never change.
constexpr std::size_t kHashDigits = 6;
constexpr unsigned kHashShift = 40;

std::string with_priority(std::string_view word, std::size_t priority) {
  std::string name(word);
  if (priority != kDefaultPriority) name += std::to_string(priority);
  return name;
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
  const bool of_type = name.starts_with(kOfType);
  if (!of_type && !name.starts_with(kSubscription)) return std::nullopt;
  name.remove_prefix(kSubscription.size());
  if (!name.empty() && is_digit(name.front())) name.remove_prefix(1);
  if (!name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  if (of_type) {
    const std::size_t end = name.rfind('.');
    if (end == std::string_view::npos || name.size() - end != kHashDigits + 1) return std::nullopt;
    name = name.substr(0, end);
  }
  if (!check_queue(name)) return std::nullopt;
  return std::string(name);
}

bool is_of_queue(const SubscriptionSpec& spec) {
  return spec.aggregate_types.size() == 1 && is_task(spec.aggregate_types.front()) &&
         (subscription_of_task(spec.aggregate_types.front()) == spec.name || is_of_type(spec));
}

bool is_of_type(const SubscriptionSpec& spec) {
  return spec.aggregate_types.size() == 1 && is_task(spec.aggregate_types.front()) &&
         spec.event_types.size() == 1 &&
         subscription_of_type(spec.aggregate_types.front(), spec.event_types.front()) == spec.name;
}

bool is_split_from(const SubscriptionSpec& spec, const SubscriptionSpec& base) {
  return is_of_type(spec) && subscription_of_task(spec.aggregate_types.front()) == base.name;
}

std::string queue_of_task(std::string_view aggregate_type) {
  return std::string(parse_task_place(aggregate_type).queue);
}

std::string subscription_of_queue(std::string_view queue, std::size_t priority) {
  return with_priority(kSubscription, priority).append(".").append(queue);
}

std::string subscription_of_task(std::string_view aggregate_type) {
  const TaskPlace place = parse_task_place(aggregate_type);
  return subscription_of_queue(place.queue, place.priority);
}

std::string subscription_of_type(std::string_view aggregate_type, std::string_view event_type) {
  const TaskPlace place = parse_task_place(aggregate_type);
  return fmt::format("{}.{}.{:06x}", with_priority(kOfType, place.priority), place.queue,
                     key_hash(kOfType, event_type) >> kHashShift);
}

SubscriptionSpec spec_of_type(const SubscriptionSpec& base, std::string_view type) {
  SubscriptionSpec spec = base;
  spec.event_types = {std::string(type)};
  spec.name = subscription_of_type(base.aggregate_types.front(), type);
  return spec;
}

}  // namespace event
}  // namespace outbox
