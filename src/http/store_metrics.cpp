#include "http/store_metrics.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "event/time_text.hpp"

namespace outbox::http {
namespace {

/// The most pending events of a subscription that are counted.
constexpr std::int64_t kMostCounted = 10'000;

double to_seconds(std::int64_t us) { return static_cast<double>(us) / 1e6; }

void add_subscription(const store::SubscriptionOverview& one, metrics::Families& into) {
  const std::string& name = one.row.spec.name;
  into.add(metrics::metric::kPending, {name}, static_cast<double>(one.progress.pending));
  into.add(metrics::metric::kPendingEstimated, {name}, one.progress.pending_capped ? 1 : 0);
  const auto oldest = event::read_time(one.progress.oldest_pending_at);
  into.add(metrics::metric::kOldestPending, {name}, oldest ? to_seconds(*oldest) : 0);
  into.add(metrics::metric::kParkedEvents, {name, "retrying"},
           static_cast<double>(one.parked.retrying));
  into.add(metrics::metric::kParkedEvents, {name, "waiting"},
           static_cast<double>(one.parked.waiting));
  into.add(metrics::metric::kParkedEvents, {name, "dead"}, static_cast<double>(one.parked.dead));
}

/// Each group that a subscription belongs to is named, so that a group without a relay shows as 0.
void add_relays(const health::Deliveries& seen, metrics::Families& into) {
  if (!seen.relays) return;
  std::map<std::string, int> alive;
  for (const auto& one : seen.subscriptions) alive[one.row.group];
  for (const store::RelayRow& relay : *seen.relays) {
    if (!relay.alive) continue;
    for (const auto& [group, lanes] : relay.lanes) ++alive[group];
  }
  for (const auto& [group, relays] : alive)
    into.add(metrics::metric::kRelaysAlive, {group}, relays);
}

void add_holds(const health::Deliveries& seen, metrics::Families& into) {
  if (!seen.holds) return;
  for (const auto& one : seen.subscriptions) {
    const auto hold = std::find_if(seen.holds->begin(), seen.holds->end(), [&](const auto& each) {
      return each.subscription == one.row.id;
    });
    const double bytes = hold == seen.holds->end() ? 0 : static_cast<double>(hold->bytes);
    into.add(metrics::metric::kHistoryHeld, {one.row.spec.name}, bytes);
  }
}

void add_tasks(const health::QueueLine& line, metrics::Families& into) {
  const auto add = [&](std::string_view state, std::int64_t tasks) {
    into.add(metrics::metric::kTasks, {line.queue, line.type, state}, static_cast<double>(tasks));
  };
  add("pending", line.ready);
  add("scheduled", line.scheduled);
  add("running", line.running);
  add("retrying", line.retrying);
  add("waiting", line.waiting);
  add("dead", line.dead);
}

void add_queues(const health::Queues& queues, std::int64_t at_us, metrics::Families& into) {
  std::map<std::string, std::int64_t> oldest;
  for (const health::QueueLine& line : queues.lines) {
    if (!line.type.empty()) add_tasks(line, into);
    std::int64_t& waited = oldest[line.queue];
    if (line.oldest) waited = std::max<std::int64_t>(waited, line.oldest->count());
  }
  for (const auto& [queue, waited] : oldest) {
    into.add(metrics::metric::kOldestTask, {queue}, waited == 0 ? 0 : to_seconds(at_us - waited));
    const auto serves = [&](const store::WorkerRow& worker) {
      return worker.is_alive() &&
             std::any_of(worker.note.types.begin(), worker.note.types.end(),
                         [&](const auto& type) { return type.queue == queue; });
    };
    into.add(
        metrics::metric::kWorkersAlive, {queue},
        static_cast<double>(std::count_if(queues.workers.begin(), queues.workers.end(), serves)));
  }
}

void add_verified(const std::vector<store::VerifiedRow>& rows, metrics::Families& into) {
  for (const store::VerifiedRow& row : rows) {
    into.add(metrics::metric::kVerified, {row.name}, static_cast<double>(row.events));
    into.add(metrics::metric::kDifferences, {row.name}, static_cast<double>(row.differences));
  }
}

}  // namespace

void add_store(const health::Deliveries& seen, std::int64_t at_us, metrics::Families& into) {
  for (const auto& one : seen.subscriptions) add_subscription(one, into);
  add_relays(seen, into);
  add_holds(seen, into);
  if (seen.queues) add_queues(*seen.queues, at_us, into);
  if (seen.verified) add_verified(*seen.verified, into);
}

void add_figures(const store::StoreFigures& figures, metrics::Families& into) {
  using namespace metrics::metric;  // NOLINT(google-build-using-namespace): the table
  for (const auto& [table, bytes] : figures.bytes)
    into.add(kStoreBytes, {table}, static_cast<double>(bytes));
  if (figures.partitions_ahead)
    into.add(kPartitionsAhead, {}, static_cast<double>(*figures.partitions_ahead));
  into.add(kOldestRetained, {}, to_seconds(figures.oldest_event_us.value_or(0)));
  if (figures.has_snapshots)
    into.add(kOldestSnapshot, {}, to_seconds(figures.oldest_snapshot_us.value_or(0)));
}

StoreMetrics::StoreMetrics(Options options)
    : options_(std::move(options)),
      seen_(fail(Errc::unavailable, Remedy::retry_call, "the store was not asked yet")) {
  thread_ = start_thread("ob-metrics", [this](const std::stop_token& stop) { run(stop); });
}

void StoreMetrics::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto seen = look();
    if (!seen) store_.reset();
    const MutexLock lock(mutex_);
    seen_ = std::move(seen);
    at_us_ = event::to_us(
        std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()));
    (void)stopped_.wait_for(mutex_, stop, options_.interval, [] { return false; });
  }
}

Result<StoreMetrics::Seen> StoreMetrics::look() {
  if (!store_) {
    OUTBOX_TRY(store_, store::open_store(options_.store));
  }
  OUTBOX_TRY(store_->check());
  OUTBOX_TRY(auto deliveries,
             health::look_at_deliveries(*store_, options_.retention, kMostCounted));
  OUTBOX_TRY(const auto catalog, store_->catalog());
  return Seen{.deliveries = std::move(deliveries), .figures = catalog->figures()};
}

void StoreMetrics::add_to(metrics::Families& into) const {
  const MutexLock lock(mutex_);
  into.add(metrics::metric::kStoreUp, {}, seen_ ? 1 : 0);
  if (!seen_) return;
  add_store(seen_->deliveries, at_us_, into);
  if (seen_->figures) add_figures(*seen_->figures, into);
}

Status StoreMetrics::ready() const {
  const MutexLock lock(mutex_);
  if (seen_) return {};
  return tl::unexpected(seen_.error());
}

}  // namespace outbox::http
