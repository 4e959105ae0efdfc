#include "store/sqlite/event_row.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "event/time_text.hpp"

namespace outbox::store::sqlite {
namespace {

std::array<std::string_view*, 6> list_texts(EventView& view) {
  return {&view.aggregate_type, &view.aggregate_id, &view.event_type,
          &view.payload,        &view.content_type, &view.headers};
}

}  // namespace

EventView read_view(const Statement& row) {
  EventView view;
  view.seq = row.integer(kSeq);
  const std::string_view id = row.bytes(kId);
  std::memcpy(view.id.bytes.data(), id.data(), std::min(id.size(), view.id.bytes.size()));
  view.aggregate_type = row.bytes(kAggregateType);
  view.aggregate_id = row.bytes(kAggregateId);
  view.event_type = row.bytes(kEventType);
  view.payload = row.bytes(kPayload);
  view.content_type = row.bytes(kContentType);
  view.headers = row.bytes(kHeaders);
  view.created_at = event::timestamp(row.integer(kCreatedAt));
  if (!row.is_null(kOccurredAt)) view.occurred_at = event::timestamp(row.integer(kOccurredAt));
  return view;
}

std::size_t size_of_texts(EventView view) {
  std::size_t size = 0;
  for (const std::string_view* text : list_texts(view)) size += text->size();
  return size;
}

void keep(EventView& view, std::size_t size, EventMemory& memory) {
  char* to = static_cast<char*>(memory.allocate(size, 1));
  for (std::string_view* text : list_texts(view)) {
    if (text->empty()) continue;
    std::memcpy(to, text->data(), text->size());
    *text = {to, text->size()};
    to += text->size();
  }
}

}  // namespace outbox::store::sqlite
