// A row with the columns of an event, as the statements that read events return it.
#pragma once

#include <outbox/event.hpp>
#include <string_view>

#include "event/time_text.hpp"
#include "pg/rows.hpp"

namespace outbox::store::postgres {

using pg::Rows;

/// The columns in the order of queries.hpp.
enum EventColumn : int {
  kSeq,
  kId,
  kAggregateType,
  kAggregateId,
  kEventType,
  kPayload,
  kBytes,
  kContentType,
  kHeaders,
  kCreated,
  kOccurred
};
constexpr int kFirstExtra = kOccurred + 1;

/// The event without payload and headers. It points into the rows.
inline EventView read_view(const Rows& rows, int row) {
  EventView event;
  event.seq = rows.int8(row, kSeq);
  event.id = rows.uuid(row, kId);
  event.aggregate_type = rows.bytes(row, kAggregateType);
  event.aggregate_id = rows.bytes(row, kAggregateId);
  event.event_type = rows.bytes(row, kEventType);
  event.content_type = rows.bytes(row, kContentType);
  event.created_at = event::timestamp(rows.time_us(row, kCreated));
  if (!rows.is_null(row, kOccurred))
    event.occurred_at = event::timestamp(rows.time_us(row, kOccurred));
  return event;
}

/// `headers` is jsonb in its binary form.
inline void add_parts(EventView& event, std::string_view payload, std::string_view headers) {
  event.payload = payload;
  event.headers = headers;
  if (!event.headers.empty()) event.headers.remove_prefix(1);  // the version byte
}

}  // namespace outbox::store::postgres
