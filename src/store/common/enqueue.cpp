#include "store/common/enqueue.hpp"

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

}  // namespace outbox::store
