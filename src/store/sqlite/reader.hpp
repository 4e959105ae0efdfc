// Reads the log by seq (docs/stores/sqlite.md).
#pragma once

#include <memory>

#include "store/log_reader.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/durable.hpp"

namespace outbox::store::sqlite {

class SqliteReader final : public LogReader {
 public:
  explicit SqliteReader(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Status begin(std::span<const Cursor> cursors) override;
  [[nodiscard]] Status start(const PageRequest& request) override;
  [[nodiscard]] Result<Page> finish() override;
  [[nodiscard]] Status wait_durable() override;
  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  [[nodiscard]] Status fill(Page& page);

  Connection connection_;
  DurableRead durable_;
  PageRequest request_;
  /// One for all pages: readers of the same place compare it.
  const std::shared_ptr<const Pair> pair_{std::make_shared<const Pair>(Pair::endless())};
};

}  // namespace outbox::store::sqlite
