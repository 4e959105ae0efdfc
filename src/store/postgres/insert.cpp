#include "store/postgres/insert.hpp"

#include <algorithm>
#include <string>

#include "event/time_text.hpp"
#include "store/enqueue.hpp"

namespace outbox::store::postgres {
namespace {

using InsertElement = ArrayParam::Element;

/// Limits of one statement: memory stays bounded on both sides, and larger ones are not faster.
constexpr std::size_t kMostRowsInserted = 5000;
constexpr std::size_t kMostBytes = std::size_t{8} << 20U;

bool may_lock(const Event& event) { return !event.aggregate_id.empty() && event.lock_key != false; }

std::size_t count_bytes(const Event& event) {
  std::size_t bytes = event.payload.size() + event.aggregate_type.size() +
                      event.aggregate_id.size() + event.event_type.size();
  for (const auto& [name, value] : event.headers) bytes += name.size() + value.size();
  return bytes;
}

Step one(const EnqueueQueries& queries, const Event& event, const EventId& id) {
  Step step{.query = may_lock(event) ? &queries.insert_event : &queries.insert_event_unlocked,
            .params = {}};
  step.params.reserve(9);
  step.params.push_back(id);
  for (const std::string* text :
       {&event.aggregate_type, &event.aggregate_id, &event.event_type, &event.payload}) {
    step.params.push_back(Param::borrowed(*text));
  }
  step.params.push_back(event.content_type.empty() ? Param::null()
                                                   : Param::borrowed(event.content_type));
  step.params.push_back(headers_text(event));
  step.params.push_back(Param::time_us(event::occurred_us(event)));
  if (may_lock(event)) step.params.push_back(event.lock_key ? *event.lock_key : Param::null());
  return step;
}

Step locks(const EnqueueQueries& queries, std::span<const Event> events) {
  ArrayParam types(InsertElement::text);
  ArrayParam ids(InsertElement::text);
  ArrayParam wanted(InsertElement::boolean);
  for (const Event& event : events) {
    if (!may_lock(event)) continue;
    types.add(event.aggregate_type);
    ids.add(event.aggregate_id);
    if (event.lock_key) {
      wanted.add(std::string_view("\1", 1));
    } else {
      wanted.add_null();
    }
  }
  return Step{.query = &queries.lock_keys, .params = {types.take(), ids.take(), wanted.take()}};
}

Step many(const EnqueueQueries& queries, std::span<const Event> events,
          std::span<const EventId> ids) {
  ArrayParam uuids(InsertElement::uuid);
  ArrayParam types(InsertElement::text);
  ArrayParam keys(InsertElement::text);
  ArrayParam names(InsertElement::text);
  ArrayParam payloads(InsertElement::bytea);
  ArrayParam media(InsertElement::text);
  ArrayParam headers(InsertElement::text);
  ArrayParam times(InsertElement::timestamptz);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    uuids.add(
        std::string_view(reinterpret_cast<const char*>(ids[i].bytes.data()), ids[i].bytes.size()));
    types.add(event.aggregate_type);
    keys.add(event.aggregate_id);
    names.add(event.event_type);
    payloads.add(event.payload);
    if (event.content_type.empty()) {
      media.add_null();
    } else {
      media.add(event.content_type);
    }
    headers.add(headers_text(event));
    times.add_time(event.occurred_at);
  }
  return Step{.query = &queries.insert_events,
              .params = {uuids.take(), types.take(), keys.take(), names.take(), payloads.take(),
                         media.take(), headers.take(), times.take()}};
}

}  // namespace

void plan_insert(const EnqueueQueries& queries, std::span<const Event> events,
                 std::span<const EventId> ids, std::vector<Step>& steps) {
  if (events.size() == 1) {
    steps.push_back(one(queries, events.front(), ids.front()));
    return;
  }
  if (std::any_of(events.begin(), events.end(), may_lock)) steps.push_back(locks(queries, events));
  while (!events.empty()) {
    std::size_t count = 0;
    for (std::size_t bytes = 0;
         count < events.size() && count < kMostRowsInserted && bytes < kMostBytes; ++count) {
      bytes += count_bytes(events[count]);
    }
    steps.push_back(many(queries, events.first(count), ids.first(count)));
    events = events.subspan(count);
    ids = ids.subspan(count);
  }
}

}  // namespace outbox::store::postgres
