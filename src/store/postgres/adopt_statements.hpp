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

/// The name of the trigger's function, quoted, with its schema. `adoption` is the adoption's
/// number, or "N" while it has none.
[[nodiscard]] std::string adopt_function(const AdoptTable& table, AdoptMode mode,
                                         const std::string& adoption);
[[nodiscard]] Query create_adopt_function(const AdoptTable& table, const AdoptShape& shape,
                                          AdoptMode mode, const std::string& adoption);
/// The statement waits for the transactions that have written to the table, and blocks other
/// writers.
[[nodiscard]] Query create_adopt_trigger(const AdoptTable& table, AdoptMode mode,
                                         const std::string& adoption);
/// Copies the rows that were pending before the trigger was created.
[[nodiscard]] Query copy_backlog(const AdoptTable& table, const AdoptShape& shape,
                                 const std::string& adoption);
/// Counts the rows that would be copied and the rows that are refused, and returns the first
/// refused one.
[[nodiscard]] Query check_backlog(const AdoptTable& table, const AdoptShape& shape);
/// Finds ids that several rows have.
[[nodiscard]] Query repeated_ids(const AdoptTable& table, const AdoptShape& shape);
/// Lists every word that a status column contains.
[[nodiscard]] Query words_in_use(const AdoptTable& table, const AdoptShape& shape);
[[nodiscard]] Query mark_as_sent(const AdoptTable& table, const AdoptShape& shape);

}  // namespace outbox::store::postgres
