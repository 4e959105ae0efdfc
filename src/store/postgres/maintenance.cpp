#include "store/postgres/maintenance.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// A day is provided for, so there is no hurry.
constexpr std::chrono::minutes kEvery{1};

/// Who waits for a lock keeps writers to the default partition waiting as well. It matters only when they have got there; then
/// longer transactions deserve a second and a third try.
constexpr std::array<std::chrono::milliseconds, 3> kPatience{std::chrono::milliseconds(200),
                                                             std::chrono::milliseconds(500),
                                                             std::chrono::milliseconds(1000)};

std::string list(const char* title, const Rows& names) {
  std::string text;
  for (int row = 0; row < names.size(); ++row)
    text += (row == 0 ? title : ", ") + names.text(row, 0);
  return text;
}

}  // namespace

Result<Rows> PostgresMaintenance::add_partitions() {
  for (const auto patience : kPatience) {
    connection_.send(queries_->begin);
    connection_.send(queries_->no_limits);
    connection_.send(queries_->make_partitions, {Param::int8(std::int64_t{patience.count()})});
    connection_.send(queries_->commit);
    auto done = connection_.finish();
    if (done) return std::move((*done)[2]);
    if (done.error().origin != "pg:55P03" || patience == kPatience.back()) return pass(done);
  }
  return Rows{};
}

Result<std::string> PostgresMaintenance::run() {
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - *last_ < kEvery) return std::string{};
  last_ = now;
  auto silent = connection_.exec(queries_->remove_silent);
  if (!silent) return pass(silent);
  auto partitions = add_partitions();
  if (!partitions) return pass(partitions);
  std::string done = list("partitions added: ", *partitions);
  if (!done.empty() && !silent->empty()) done += "; ";
  return done + list("silent relays removed: ", *silent);
}

}  // namespace outbox::store::postgres
