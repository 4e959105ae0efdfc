// Reads from the server's catalogs what is known of a table that is to be adopted, and of the
// adopted tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/adoption.hpp"
#include "store/postgres/adopt_shape.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

struct FoundTable {
  AdoptTable table;
  std::int64_t relation{0};
  bool may_undo{false};  ///< Only the table's owner may remove a trigger.
};

/// What a name that a person wrote stands for.
struct NamedTable {
  std::int64_t relation{0};  ///< 0 if nothing has this name.
  bool is_table{false};      ///< False for a view, an index and the like.
  std::vector<std::string>
      /// What the name may mean, quoted, with its schema. A name without a schema has one entry for
      /// each schema of the login's search path.
      names{};
};
[[nodiscard]] Result<NamedTable> resolve_table(Connection& connection, const std::string& name);

/// The table with this oid, if the login may adopt it; nullopt if it was dropped. `id_name`: see
/// AdoptTable.
[[nodiscard]] Result<std::optional<FoundTable>> read_table(Connection& connection,
                                                           const std::string& schema,
                                                           std::int64_t relation,
                                                           const std::string& id_name);
struct FoundAdoption {
  AdoptionRow row;
  std::int64_t relation{0};  ///< The table, whatever it is called now; 0 if it is gone.
  std::string known_as;      ///< The last name that a command knew it by; quoted, with its schema.
  std::string id_name;       ///< See AdoptTable.
  std::string shape;         ///< parse_adopt_shape()
  std::string columns;       ///< parse_columns()
};
[[nodiscard]] Result<std::vector<FoundAdoption>> find_adoptions(Connection& connection,
                                                                const std::string& schema);

/// The first columns of a SELECT from the view adoption_state, which is called `a`; read_adoption()
/// reads them.
inline constexpr std::string_view kAdoptionColumns =
    "a.id, coalesce(a.name_now, a.table_name), a.state, a.cut_lsn::text, a.taken_over, a.staged, a.begun_at, a.switched_at, "
    "a.shape::text, a.waiting, a.running, a.fault, a.fault_at, a.columns::text, a.table_name, a.relation_now::bigint, "
    "a.id_name";
inline constexpr int kAdoptionColumnCount = 17;
[[nodiscard]] FoundAdoption read_adoption(const Rows& rows, int row);

/// Describes the sessions whose locks on the table block us, as in "pid 4711 (shop, idle in
/// transaction for 12 s)".
[[nodiscard]] Result<std::string> lock_holders(Connection& connection, std::int64_t relation);

}  // namespace outbox::store::postgres
