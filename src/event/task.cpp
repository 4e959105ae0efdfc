#include "event/task.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "event/text_rules.hpp"

namespace outbox {
namespace event {
namespace {

/// So that the name of its subscription is not longer than that of any other.
constexpr std::size_t kLongestQueue = 50;

}  // namespace

Status check_queue(std::string_view queue) {
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (!queue.empty() && queue.size() <= kLongestQueue &&
      std::all_of(queue.begin(), queue.end(), allowed))
    return {};
  return bad_field("queue",
                   queue.empty() ? "is empty" : in_quotes(queue) + " is no name of a queue",
                   "at most 50 letters, digits, '-', '_' and '.'");
}

}  // namespace event

namespace {

/// Under the names that a task has for them; an event calls the type event_type.
Status check_names(const Task& task) {
  if (Status status = event::check_queue(task.queue); !status) return status;
  if (Status status =
          event::check_required_name("type", task.type, "what is to be done, such as report.make");
      !status)
    return status;
  return event::check_name("key", task.key);
}

Event unchecked_event_of(Task task) {
  Event event;
  event.aggregate_type = event::aggregate_type_of(task.queue);
  event.aggregate_id = std::move(task.key);
  event.event_type = std::move(task.type);
  event.payload = std::move(task.payload);
  event.headers = std::move(task.headers);
  event.content_type = std::move(task.content_type);
  event.id = task.id;
  return event;
}

}  // namespace

Status validate(const Task& task, const EventLimits& limits) {
  if (Status status = check_names(task); !status) return status;
  return validate(unchecked_event_of(task), limits);
}

Event event_of(Task task) {
  if (Status status = check_names(task); !status) throw Exception(std::move(status.error()));
  return unchecked_event_of(std::move(task));
}

}  // namespace outbox
