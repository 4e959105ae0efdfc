// The steps of an adoption, each in a transaction of its own (docs/design/adopt.md). A step does
// nothing if another command has done it already.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/adoption.hpp"
#include "store/postgres/adopt_catalog.hpp"
#include "store/postgres/adopt_shape.hpp"
#include "store/postgres/adopt_statements.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// The steps for one table. The object refers to its arguments.
class AdoptSteps {
 public:
  using Body = std::function<Result<Decision>()>;

  AdoptSteps(Connection& connection, const std::string& schema, const AdoptionLocks& locks,
             const Adopter::Says& says)
      : connection_(connection), schema_(schema), locks_(locks), says_(says) {}

  /// From here on new rows are staged; rows that were committed before are the backlog.
  [[nodiscard]] Status first_cut(const FoundTable& table, const AdoptShape& shape);
  /// Copies the backlog into the log.
  [[nodiscard]] Status copy(const FoundTable& table, const AdoptShape& shape, std::int32_t id);
  /// Moves staged rows into the log, until a pass has found only few.
  [[nodiscard]] Status drain(std::int32_t id);
  /// From here on new rows go into the log. Returns false if too many rows were staged to move them
  /// while writers wait.
  [[nodiscard]] Result<bool> second_cut(const FoundTable& table, std::int32_t id);
  /// Makes the functions again for columns that were changed.
  [[nodiscard]] Status remake(const FoundTable& table, const AdoptShape& shape, std::int32_t id);
  /// Marks most of the forwarded rows as sent, without blocking writers.
  [[nodiscard]] Status mark(const FoundTable& table, const AdoptShape& shape, std::int32_t id);
  /// Removes the trigger, and marks the remaining rows. `table` is nullopt if it was dropped.
  [[nodiscard]] Status end(const std::optional<FoundTable>& table, const AdoptShape& shape,
                           const AdoptionRow& adopted, bool marks);

  /// Runs `body` in a transaction with time limits of its own, which depends neither on the
  /// session's search path nor on how the session writes a value as text.
  [[nodiscard]] static Status transaction(Connection& connection,
                                          std::chrono::milliseconds lock_wait, const Body& body);

  [[nodiscard]] double longest_lock_ms() const noexcept { return longest_lock_ms_; }
  [[nodiscard]] std::int64_t marked() const noexcept { return marked_; }

 private:
  [[nodiscard]] Status with_lock(std::int64_t relation, const Body& body);
  [[nodiscard]] Status free_name(const std::string& name);
  [[nodiscard]] Result<Decision> begin(const FoundTable& table, const AdoptShape& shape);
  [[nodiscard]] Result<Decision> switch_over(const FoundTable& table, std::int32_t id, bool& done);
  [[nodiscard]] Result<Decision> finish(const std::optional<FoundTable>& table,
                                        const AdoptShape& shape, const AdoptionRow& adopted,
                                        bool marks);
  [[nodiscard]] Status create_functions(const FoundTable& table, const AdoptShape& shape,
                                        const std::string& id, const std::vector<AdoptMode>& modes);
  [[nodiscard]] Result<Decision> replace_functions(const FoundTable& table, const AdoptShape& shape,
                                                   std::int32_t id);
  [[nodiscard]] Status withdraw_functions(const FoundTable& table, const std::string& id);
  [[nodiscard]] Result<bool> hold(std::int32_t id, std::string_view state);
  [[nodiscard]] Result<std::int64_t> move_staged(std::int32_t id);
  [[nodiscard]] Result<std::int64_t> mark_rows(const FoundTable& table, const AdoptShape& shape);
  [[nodiscard]] Result<Rows> run(const std::string& what, const std::string& sql,
                                 Params params = {});
  [[nodiscard]] Status set_state(std::int32_t id, const std::string& set, Params more = {});
  [[nodiscard]] std::string in_schema(const std::string& name) const;

  Connection& connection_;
  const std::string& schema_;
  const AdoptionLocks& locks_;
  const Adopter::Says& says_;
  double longest_lock_ms_{0};
  std::int64_t marked_{0};
};

}  // namespace outbox::store::postgres
