#include "history/history_job.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "store/subscriptions.hpp"

namespace outbox::history {
namespace {

using std::chrono::microseconds;

/// The most pending events of a subscription that are counted.
constexpr std::int64_t kMostPending = 10'000;

/// By the clock of this machine, since 1970.
microseconds read_wall_clock() {
  return std::chrono::duration_cast<microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

/// The rows that say something. One of a type of tasks says nothing of what is pending: the row of
/// its subscription does.
Result<std::vector<store::HistoryRow>> make_rows(std::vector<WorkDone> done,
                                                 const RelayReport& report, store::Store& store) {
  OUTBOX_TRY(const auto catalog, store.catalog());
  OUTBOX_TRY(const auto subscriptions, catalog->overview(kMostPending));
  std::vector<store::HistoryRow> rows;
  for (WorkDone& one : done) {
    const auto found =
        std::find_if(subscriptions.begin(), subscriptions.end(),
                     [&](const auto& each) { return each.row.spec.name == one.subscription; });
    if (found == subscriptions.end()) continue;  // It was dropped.
    one.row.subscription = found->row.id;
    const bool served = serves_subscription(report, one.subscription);
    if (one.row.type.empty() && served && found->progress.pending > 0) {
      one.row.pending = found->progress.pending;
      one.row.oldest_us = std::max<std::int64_t>(found->progress.lag.count(), 0);
    }
    if (one.any() || one.row.pending > 0) rows.push_back(std::move(one.row));
  }
  return rows;
}

}  // namespace

HistoryJobOptions history_options(const RelayOptions& relay) {
  const bool kept = relay.history.count() > 0;
  return {
      .store = {.url = relay.store_url, .schema = relay.schema, .application = "outbox history"},
      .interval = kept ? relay.history_interval : std::chrono::milliseconds(0)};
}

void HistoryJob::start() {
  if (options_.interval.count() == 0 || thread_.joinable()) return;
  who_ = EventId::generate();
  before_ = read_();
  taken_ = Clock::now();
  thread_ = start_thread("ob-history", [this](const std::stop_token& stop) { run(stop); });
}

void HistoryJob::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  if (read_().last_error.empty()) note(write());
  unwritten_.reset();
}

void HistoryJob::run(const std::stop_token& stop) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      (void)stopped_.wait_for(mutex_, stop, until_next(), [] { return false; });
    }
    if (stop.stop_requested()) return;
    note(write());
  }
}

microseconds HistoryJob::until_next() const {
  const microseconds interval = options_.interval;
  const microseconds left = interval - (read_wall_clock() + ahead_) % interval;
  // A thread that wakes a little too early, by another clock, does not look twice.
  return left < interval / 10 ? left + interval : left;
}

Status HistoryJob::write() {
  const auto made = Clock::now();
  const RelayReport report = read_();
  auto done = work_done(before_, report);
  const bool any = std::any_of(done.begin(), done.end(), [](const auto& one) { return one.any(); });
  if (!any && !unwritten_ && !may_have_pending(report)) {
    before_ = report;
    taken_ = made;
    return {};
  }
  OUTBOX_TRY(const auto store, store::open_store(options_.store));
  OUTBOX_TRY(const auto history, store->work_history());
  // First what may be there already: the rows of two intervals must not be mixed.
  OUTBOX_TRY(write_batch(*history));
  OUTBOX_TRY(const std::int64_t now_us, history->now());
  ahead_ = microseconds(now_us) - read_wall_clock();
  OUTBOX_TRY(auto rows, make_rows(std::move(done), report, *store));
  const auto length = std::chrono::duration_cast<microseconds>(made - std::exchange(taken_, made));
  before_ = report;
  if (rows.empty()) return {};
  const std::int64_t at_us = interval_begin(now_us, length, options_.interval);
  // The store's clock was set back, or what is known of it was corrected.
  if (at_us <= std::exchange(last_at_us_, at_us)) who_ = EventId::generate();
  unwritten_ = Batch{.who = who_, .at_us = at_us, .rows = std::move(rows)};
  return write_batch(*history);
}

Status HistoryJob::write_batch(store::WorkHistory& history) {
  if (!unwritten_) return {};
  OUTBOX_TRY(history.append(unwritten_->who, unwritten_->at_us, unwritten_->rows));
  unwritten_.reset();
  return {};
}

void HistoryJob::note(const Status& status) {
  const auto now = Clock::now();
  if (status) {
    if (const auto over = outage_.works(now))
      log::info("the history is written again", {{"down_seconds", in_seconds(over->lasted)}});
    return;
  }
  const std::string reason = status.error().text();
  if (const auto repeats = outage_.failed(reason, now))
    log::warn("the history cannot be written, retries",
              {{"repeats", *repeats}, {"reason", reason}});
}

}  // namespace outbox::history
