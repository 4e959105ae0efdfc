// Keeps partitions ahead of the writers (docs/stores/postgres.md, "Partitions"), and forgets relays that were killed.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "store/maintenance.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

class PostgresMaintenance final : public Maintenance {
 public:
  PostgresMaintenance(Connection connection, std::shared_ptr<const Queries> queries)
      : connection_(std::move(connection)), queries_(std::move(queries)) {}

  [[nodiscard]] Result<std::string> run() override;

 private:
  [[nodiscard]] Result<Rows> add_partitions();

  Connection connection_;
  std::shared_ptr<const Queries> queries_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace outbox::store::postgres
