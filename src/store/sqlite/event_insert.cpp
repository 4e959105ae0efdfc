#include "store/sqlite/event_insert.hpp"

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/enqueue.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/error_map.hpp"

namespace outbox::store::sqlite {
namespace {

void bind_text(sqlite3_stmt* insert, int index, std::string_view text) {
  sqlite3_bind_text64(insert, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void bind_blob(sqlite3_stmt* insert, int index, const void* data, std::size_t size) {
  sqlite3_bind_blob64(insert, index, data, size, SQLITE_STATIC);
}

int insert_one(sqlite3_stmt* insert, const Event& event, const EventId& id,
               std::int64_t created_at) {
  const std::string headers = headers_text(event);
  bind_blob(insert, 1, id.bytes.data(), id.bytes.size());
  bind_text(insert, 2, event.aggregate_type);
  bind_text(insert, 3, event.aggregate_id);
  bind_text(insert, 4, event.event_type);
  bind_blob(insert, 5, event.payload.data(), event.payload.size());
  bind_text(insert, 6, event.content_type);
  bind_text(insert, 7, headers);
  sqlite3_bind_int64(insert, 8, created_at);
  if (const auto occurred = event::occurred_us(event)) {
    sqlite3_bind_int64(insert, 9, *occurred);
  } else {
    sqlite3_bind_null(insert, 9);
  }
  const int code = sqlite3_step(insert);
  sqlite3_reset(insert);
  // The bound memory belongs to the caller and to `headers`, so nothing may point to it later.
  sqlite3_clear_bindings(insert);
  return code;
}

}  // namespace

Status insert_events(sqlite3_stmt* insert, std::span<const Event> events,
                     std::span<const EventId> ids) {
  const std::int64_t now = wall_us();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const int code = insert_one(insert, events[i], ids[i], now);
    if (code != SQLITE_DONE)
      return fail(map_error(sqlite3_db_handle(insert), code, "sqlite: enqueue"));
  }
  return {};
}

}  // namespace outbox::store::sqlite
