// Writes events for the command line: many in one transaction.
#pragma once

#include <utility>

#include "store/sqlite/connection.hpp"
#include "store/writer.hpp"

namespace outbox::store::sqlite {

class SqliteWriter final : public Writer {
 public:
  explicit SqliteWriter(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<EventId>> write(std::span<const Event> events) override;

 private:
  [[nodiscard]] Status keep_wal_small();

  Connection connection_;
  std::uint64_t writes_{0};
};

}  // namespace outbox::store::sqlite
