#include "history/pruning.hpp"

#include "base/error.hpp"

namespace outbox::history {
namespace {

/// So few rows that writers of SQLite hardly wait.
constexpr std::size_t kPruneBatch = 1000;

}  // namespace

Result<std::int64_t> prune(store::Store& store, std::chrono::milliseconds keep,
                           const std::stop_token& stop) {
  std::int64_t removed = 0;
  if (keep.count() == 0) return removed;
  OUTBOX_TRY(const auto history, store.work_history());
  OUTBOX_TRY(const std::int64_t now_us, history->now());
  const std::int64_t before_us = now_us - std::chrono::microseconds(keep).count();
  for (bool more = true; more && !stop.stop_requested();) {
    OUTBOX_TRY(const std::size_t batch, history->remove(before_us, kPruneBatch));
    removed += static_cast<std::int64_t>(batch);
    more = batch > kPruneBatch;
  }
  return removed;
}

}  // namespace outbox::history
