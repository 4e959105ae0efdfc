// What the schema consists of, as the server prints it (store/diagnosis.hpp,
// docs/design/doctor.md). The statements run with pg_catalog as the search_path, so that every name
// that the server prints has its schema.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "store/diagnosis.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct DefinitionQueries {
  explicit DefinitionQueries(std::string_view schema);

  Query found;   ///< Lists what is there. It scans the catalogs by the schema; the answer has about
                 ///< a thousand rows.
  Query wanted;  ///< Lists what was stored.
  Query may_store;
  Query forget;
  Query store;  ///< $1 to $5: the columns as arrays.
};

[[nodiscard]] Definitions to_definitions(const Rows& rows);

/// Reads the definitions that are there, or those that are wanted. It runs in a transaction with
/// the search_path above.
[[nodiscard]] Result<Definitions> read_definitions(Connection& connection, const Query& query);
[[nodiscard]] Status store_definitions(Connection& connection, const Definitions& wanted);

/// If the stored list was made by another version of the server or another program, it cannot be
/// compared; then what is there is stored instead. Does nothing for a login that may not store it.
[[nodiscard]] Status renew_definitions(Connection& connection);

/// The part of a script that stores what is there.
[[nodiscard]] std::string definitions_script(const std::string& schema);

}  // namespace outbox::store::postgres
