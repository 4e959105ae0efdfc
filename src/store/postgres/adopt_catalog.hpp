// What the server knows of a table that is to be adopted, and of those that are.
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
  std::int64_t relation{0};  ///< 0: nothing has this name.
  bool is_table{false};      ///< Rather than a view, an index or the like.
  std::vector<std::string>
      /// What it may mean, quoted, with its schema; without one, a name for each schema of the
      /// login.
      names{};
};
[[nodiscard]] Result<NamedTable> resolve_table(Connection& connection, const std::string& name);

/// The table with this oid, if a login may adopt it. None: it was dropped. `id_name`: see
/// AdoptTable.
[[nodiscard]] Result<std::optional<FoundTable>> read_table(Connection& connection,
                                                           const std::string& schema,
                                                           std::int64_t relation,
                                                           const std::string& id_name);
struct FoundAdoption {
  AdoptionRow row;
  std::int64_t relation{0};  ///< The table, whatever it is called now. 0: it is gone.
  std::string known_as;      ///< The last name that a command knew it by; quoted, with its schema.
  std::string id_name;       ///< See AdoptTable.
  std::string shape;         ///< adopt_shape_of()
  std::string columns;       ///< columns_of()
};
[[nodiscard]] Result<std::vector<FoundAdoption>> find_adoptions(Connection& connection,
                                                                const std::string& schema);

/// The first columns of a SELECT of the view adoption_state as `a`, for adoption_of().
inline constexpr std::string_view kAdoptionColumns =
    "a.id, coalesce(a.name_now, a.table_name), a.state, a.cut_lsn::text, a.taken_over, a.staged, a.begun_at, a.switched_at, "
    "a.shape::text, a.waiting, a.running, a.fault, a.fault_at, a.columns::text, a.table_name, a.relation_now::bigint, "
    "a.id_name";
inline constexpr int kAdoptionColumnCount = 17;
[[nodiscard]] FoundAdoption adoption_of(const Rows& rows, int row);

/// "pid 4711 (shop, idle in transaction for 12 s)", for those that keep a lock on the table from
/// us.
[[nodiscard]] Result<std::string> lock_holders(Connection& connection, std::int64_t relation);

}  // namespace outbox::store::postgres
