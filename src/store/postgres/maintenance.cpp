#include "store/postgres/maintenance.hpp"

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// A day is provided for, so there is no hurry.
constexpr std::chrono::minutes kEvery{1};

}  // namespace

Result<std::string> PartitionMaintenance::run() {
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - *last_ < kEvery) return std::string{};
  last_ = now;
  auto rows = connection_.exec(queries_->make_partitions);
  if (!rows) return pass(rows);
  std::string names;
  for (int row = 0; row < rows->size(); ++row)
    names += (row == 0 ? "partitions added: " : ", ") + rows->text(row, 0);
  return names;
}

}  // namespace outbox::store::postgres
