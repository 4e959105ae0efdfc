// Writes events through a prepared INSERT, on any connection that is in a transaction.
#pragma once

#include <sqlite3.h>

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

namespace outbox::store::sqlite {

/// Checks all of them before one is written; the message names the event when there are several.
[[nodiscard]] Status validate_all(std::span<const Event> events, const EventLimits& limits);

/// Writes valid events with `insert`, a prepared query::kInsertEvent, and appends their ids. Stops at the first
/// failure: the caller takes back what was written.
[[nodiscard]] Status insert_events(sqlite3_stmt* insert, std::span<const Event> events,
                                   std::vector<EventId>& ids);

}  // namespace outbox::store::sqlite
