// Loads cursors and appends settlements (docs/design/settlements.md).
#pragma once

#include <memory>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/postgres/marks.hpp"
#include "store/store.hpp"

namespace outbox::store::postgres {

struct ProgressQueries {
  Query load;
  Query begin;
  Query eventual;
  Query flushed;
  Query append;
  Query commit;
};
[[nodiscard]] ProgressQueries make_progress_queries(std::string_view schema);

class PostgresProgress final : public Progress {
 public:
  PostgresProgress(Connection connection, std::shared_ptr<const ProgressQueries> queries,
                   std::shared_ptr<MarkBook> marks)
      : connection_(std::move(connection)),
        queries_(std::move(queries)),
        marks_(std::move(marks)) {}

  [[nodiscard]] Result<std::vector<Strand>> load(std::int32_t subscription) override;
  [[nodiscard]] Status append(std::span<const Settlement> rows, Durability durability) override;
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  Connection connection_;
  std::shared_ptr<const ProgressQueries> queries_;
  std::shared_ptr<MarkBook> marks_;
};

}  // namespace outbox::store::postgres
