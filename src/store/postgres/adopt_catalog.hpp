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

/// None: there is no such table.
[[nodiscard]] Result<std::optional<FoundTable>> find_table(Connection& connection,
                                                           const std::string& schema,
                                                           const std::string& name);
struct FoundAdoption {
  AdoptionRow row;
  std::string shape;    ///< adopt_shape_of()
  std::string columns;  ///< columns_of()
};
[[nodiscard]] Result<std::vector<FoundAdoption>> find_adoptions(Connection& connection,
                                                                const std::string& schema);

/// The first columns of a SELECT of the view adoption_state as `a`, for adoption_of().
inline constexpr std::string_view kAdoptionColumns =
    "a.id, a.table_name, a.state, a.cut_lsn::text, a.taken_over, a.staged, a.begun_at, a.switched_at, a.shape::text, "
    "a.waiting, a.running, a.fault, a.fault_at, a.columns::text";
[[nodiscard]] FoundAdoption adoption_of(const Rows& rows, int row);

/// "pid 4711 (shop, idle in transaction for 12 s)", for those that keep a lock on the table from us.
[[nodiscard]] Result<std::string> lock_holders(Connection& connection, std::int64_t relation);

}  // namespace outbox::store::postgres
