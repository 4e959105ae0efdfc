// Writes events through a prepared INSERT, on any connection that is in a transaction.
#pragma once

#include <sqlite3.h>

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>

namespace outbox::store::sqlite {

/// Writes valid events under these ids with `insert`, which is a prepared query::kInsertEvent.
/// Stops at the first failure; the caller rolls back what was written.
[[nodiscard]] Status insert_events(sqlite3_stmt* insert, std::span<const Event> events,
                                   std::span<const EventId> ids);

}  // namespace outbox::store::sqlite
