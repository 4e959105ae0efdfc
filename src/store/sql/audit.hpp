// Records a person's change in the transaction that makes it (docs/design/audit.md). The only place
// that writes into the table `audit`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string_view>

#include "store/audit.hpp"
#include "store/sql/connection.hpp"

namespace outbox::store::sql {

/// The subscription that a change is of; empty if it is of no subscription, or of several. One that
/// the change removes or renames is given by its name.
struct ChangedSubscription {
  std::optional<std::int32_t> id{};
  std::string_view name{};
};

/// Records what the open transaction has changed, of which this must be the last statement. Does
/// nothing if the connection acts for no person.
[[nodiscard]] Status record(Connection& connection, const ChangedSubscription& of,
                            std::int64_t count);
/// The same for one of many short batches, which share a row: `row` is 0 for the first one, and
/// then what the call before has returned. Only for SQLite: on PostgreSQL nobody may update a row.
[[nodiscard]] Result<std::int64_t> record_batch(Connection& connection, std::int64_t row,
                                                std::int64_t count);

/// Runs `change`, which returns how many rows it changed, and records it in the same transaction.
/// A change of nothing is not recorded. If the connection acts for no person, it runs `change` as
/// it is. `of` is read after the change. The change may run twice (Connection::transact()).
[[nodiscard]] Status change_recorded(Connection& connection, const ChangedSubscription& of,
                                     const std::function<Result<std::int64_t>()>& change);

[[nodiscard]] std::unique_ptr<store::Audit> make_audit(std::unique_ptr<Connection> connection);

}  // namespace outbox::store::sql
