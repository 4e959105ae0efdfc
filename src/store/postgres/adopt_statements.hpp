// The statements that adopt a table (docs/design/adopt.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/postgres/adopt_shape.hpp"
#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

/// Where the trigger puts new rows.
enum class AdoptMode : std::uint8_t { stage, forward };

/// Quoted, with its schema. `adoption`: its number, or "N" while it has none.
[[nodiscard]] std::string adopt_function(const AdoptTable& table, AdoptMode mode,
                                         const std::string& adoption);
[[nodiscard]] Query create_adopt_function(const AdoptTable& table, const AdoptShape& shape,
                                          AdoptMode mode, const std::string& adoption);
/// Waits for the transactions that have written to the table, and keeps others waiting.
[[nodiscard]] Query create_adopt_trigger(const AdoptTable& table, AdoptMode mode,
                                         const std::string& adoption);
/// Copies what was pending before the trigger was there.
[[nodiscard]] Query copy_backlog(const AdoptTable& table, const AdoptShape& shape,
                                 const std::string& adoption);
/// How many rows would be copied, how many are refused, and the first of these.
[[nodiscard]] Query check_backlog(const AdoptTable& table, const AdoptShape& shape);
/// Ids that several rows have.
[[nodiscard]] Query repeated_ids(const AdoptTable& table, const AdoptShape& shape);
/// Every word of a status column.
[[nodiscard]] Query words_in_use(const AdoptTable& table, const AdoptShape& shape);
[[nodiscard]] Query mark_as_sent(const AdoptTable& table, const AdoptShape& shape);

}  // namespace outbox::store::postgres
