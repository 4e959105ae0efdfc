// Loads cursors and appends settlements (docs/design/settlements.md).
#pragma once

#include <memory>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/postgres/marks.hpp"
#include "store/postgres/queries.hpp"
#include "store/progress.hpp"

namespace outbox::store::postgres {

class PostgresProgress final : public Progress {
 public:
  PostgresProgress(Connection connection, std::shared_ptr<const Queries> queries,
                   std::shared_ptr<MarkBook> marks)
      : connection_(std::move(connection)),
        queries_(std::move(queries)),
        marks_(std::move(marks)) {}

  [[nodiscard]] Result<std::vector<Strand>> load(std::int32_t subscription) override;
  [[nodiscard]] Status append(const ProgressBatch& batch, Durability durability) override;
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  Connection connection_;
  std::shared_ptr<const Queries> queries_;
  std::shared_ptr<MarkBook> marks_;
};

}  // namespace outbox::store::postgres
