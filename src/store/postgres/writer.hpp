// Writes events for the command line and the benchmarks: each call one transaction and one round trip.
#pragma once

#include <memory>

#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"
#include "store/writer.hpp"

namespace outbox::store::postgres {

class PostgresWriter final : public Writer {
 public:
  PostgresWriter(Connection connection, std::shared_ptr<const Queries> queries)
      : connection_(std::move(connection)), queries_(std::move(queries)) {}

  [[nodiscard]] Result<std::vector<EventId>> write(std::span<const Event> events) override;

 private:
  Connection connection_;
  std::shared_ptr<const Queries> queries_;
};

}  // namespace outbox::store::postgres
