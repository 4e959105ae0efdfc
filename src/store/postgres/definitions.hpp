// What the schema consists of, as the server prints it (store/diagnosis.hpp,
// docs/design/doctor.md). Its statements run where the search_path is pg_catalog, so that every
// name that the server prints has its schema.
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

  Query found;   ///< What is there. The catalogs by the schema; about a thousand rows.
  Query wanted;  ///< What was stored.
  Query may_store;
  Query forget;
  Query store;  ///< $1 to $5: the columns as arrays.
};

[[nodiscard]] Definitions definitions_of(const Rows& rows);

/// Those that are there, and those that are wanted. In a transaction with the search_path above.
[[nodiscard]] Result<Definitions> read_definitions(Connection& connection, const Query& query);
[[nodiscard]] Status store_definitions(Connection& connection, const Definitions& wanted);

/// For a list that another server's version or another program made, which nothing can be compared
/// with: stores what is there. Does nothing for a login that may not.
[[nodiscard]] Status renew_definitions(Connection& connection);

/// Stores what is there, as a part of a script.
[[nodiscard]] std::string definitions_script(const std::string& schema);

}  // namespace outbox::store::postgres
