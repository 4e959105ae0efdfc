// Tells whether the function of an adopted table's trigger still fits the table's columns. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/postgres/adopt_shape.hpp"

namespace outbox::store::postgres {

/// The columns' names, numbers and types as JSON, which is stored with the adoption.
[[nodiscard]] std::string columns_json(const std::vector<AdoptColumn>& columns);
[[nodiscard]] std::vector<AdoptColumn> parse_columns(std::string_view json);

/// The columns that the function reads and that are gone, or have a type that the function was not
/// made for. A column is recognised by its name or, when no column has that name, by its number,
/// which a dump and restore may change.
[[nodiscard]] std::vector<ColumnChange> changed_columns(const AdoptShape& shape,
                                                        const std::vector<AdoptColumn>& then,
                                                        const std::vector<AdoptColumn>& now);

/// The options with which a person adopted the table, to adopt it again; options about columns that
/// are gone are left out.
[[nodiscard]] std::vector<std::string> options_again(const AdoptShape& shape,
                                                     const std::vector<ColumnChange>& changes);

}  // namespace outbox::store::postgres
