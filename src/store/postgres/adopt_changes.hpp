// Whether the function of an adopted table's trigger still fits its columns. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/postgres/adopt_shape.hpp"

namespace outbox::store::postgres {

/// Names, numbers and types, as they are kept with the adoption.
[[nodiscard]] std::string columns_json(const std::vector<AdoptColumn>& columns);
[[nodiscard]] std::vector<AdoptColumn> columns_of(std::string_view json);

/// Columns that the function reads and that are gone, or have a type that it was not made for. One
/// is known by its name; when that is gone, by its number, which a dump and restore may change.
[[nodiscard]] std::vector<ColumnChange> changed_columns(const AdoptShape& shape,
                                                        const std::vector<AdoptColumn>& then,
                                                        const std::vector<AdoptColumn>& now);

/// The options with which a person adopted the table, for another adoption of it; not those about
/// columns that are gone.
[[nodiscard]] std::vector<std::string> options_again(const AdoptShape& shape,
                                                     const std::vector<ColumnChange>& changes);

}  // namespace outbox::store::postgres
