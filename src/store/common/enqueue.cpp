#include "store/common/enqueue.hpp"

#include "base/text.hpp"
#include "event/json_event.hpp"

namespace outbox::store {

Status validate_all(std::span<const Event> events, const EventLimits& limits) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    Status status = validate(events[i], limits);
    if (status) continue;
    if (events.size() > 1)
      status.error().message = "event " + std::to_string(i) + ": " + status.error().message;
    return status;
  }
  return {};
}

std::vector<EventId> ids_of(std::span<const Event> events) {
  std::vector<EventId> ids;
  ids.reserve(events.size());
  for (const Event& event : events) ids.push_back(event.id ? *event.id : EventId::generate());
  return ids;
}

std::string headers_text(const Event& event) {
  return event.headers.empty() ? std::string("{}") : event::headers_to_json(event.headers);
}

EventId holder_of_key(const EventId& holder, const Task& task) {
  if (task.on_conflict != OnConflict::error) return holder;
  throw Exception(fail(Errc::already_exists,
                       "unique_key: task " + holder.str() + " of queue " + task.queue + " has " +
                           in_quotes(task.unique_key),
                       "OnConflict::skip returns its id, replace takes its place")
                      .value());
}

}  // namespace outbox::store
