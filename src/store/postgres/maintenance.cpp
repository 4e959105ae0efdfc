#include "store/postgres/maintenance.hpp"

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// A day is provided for, so there is no hurry.
constexpr std::chrono::minutes kEvery{1};

std::string list(const char* title, const Rows& names) {
  std::string text;
  for (int row = 0; row < names.size(); ++row)
    text += (row == 0 ? title : ", ") + names.text(row, 0);
  return text;
}

}  // namespace

Result<std::string> PartitionMaintenance::run() {
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - *last_ < kEvery) return std::string{};
  last_ = now;
  auto silent = connection_.exec(queries_->remove_silent);
  if (!silent) return pass(silent);
  auto partitions = connection_.exec(queries_->make_partitions);
  if (!partitions) return pass(partitions);
  std::string done = list("partitions added: ", *partitions);
  if (!done.empty() && !silent->empty()) done += "; ";
  return done + list("silent relays removed: ", *silent);
}

}  // namespace outbox::store::postgres
