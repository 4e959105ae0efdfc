#include "relay/retention_job.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "history/pruning.hpp"

namespace outbox::relay {
namespace {

using Clock = std::chrono::steady_clock;

/// The pause between two passes. It is short enough that little more history exists than must be
/// kept.
std::chrono::milliseconds interval(std::chrono::milliseconds keep) {
  return std::clamp(keep / 1000, std::chrono::milliseconds(1000), std::chrono::milliseconds(60000));
}

/// Rows of the history stay little longer than they must.
std::chrono::milliseconds history_pause(std::chrono::milliseconds keep) {
  return std::min(keep / 100, std::chrono::milliseconds(std::chrono::hours(1)));
}

}  // namespace

RetentionJob::RetentionJob(store::Store& store, const RelayOptions& options)
    : store_(store), options_(options) {
  thread_ = start_thread("ob-retention", [this](const std::stop_token& stop) { run(stop); });
}

void RetentionJob::run(const std::stop_token& stop) {
  while (true) {
    sleep_for(interval(options_.retention), stop);
    if (stop.stop_requested()) return;
    const auto pass = run_pass(stop);
    if (!stop.stop_requested()) note(pass);
  }
}

Result<RetentionPass> RetentionJob::run_pass(const std::stop_token& stop) {
  // The connection exists only during the pass.
  OUTBOX_TRY(const auto retention, store_.retention());
  const auto on_removed = [](const store::LogPiece& piece, const store::Removal& removal) {
    log::info("delivered history removed",
              {{"part", piece.name}, {"events", removal.events}, {"archive", removal.archived}});
  };
  auto pass = remove_history(*retention, id_,
                             {.keep = options_.retention,
                              .archive = options_.archive,
                              .keep_inbox = options_.inbox_retention,
                              .keep_audit = options_.audit_keep},
                             on_removed, stop);
  if (pass && !pass->elsewhere) {
    OUTBOX_TRY(prune_history(stop));
  }
  return pass;
}

Status RetentionJob::prune_history(const std::stop_token& stop) {
  if (Clock::now() < next_history_) return {};
  OUTBOX_TRY(history::prune(store_, options_.history, stop));
  next_history_ = Clock::now() + history_pause(options_.history);
  return {};
}

void RetentionJob::note(const Result<RetentionPass>& pass) {
  outage_.note(pass, Clock::now());
  if (pass && !pass->elsewhere) log_holds(pass->left);
}

void RetentionJob::log_holds(const std::vector<store::LogPiece>& pieces) {
  const auto holds = store::find_holds(pieces);
  std::erase_if(logged_, [&](const auto& entry) {
    return std::none_of(holds.begin(), holds.end(),
                        [&](const auto& hold) { return hold.subscription == entry.first; });
  });
  if (holds.empty()) return;
  auto catalog = store_.catalog();
  if (!catalog) return;
  const auto rows = (*catalog)->subscriptions();
  if (!rows) return;
  for (const store::Hold& hold : holds) {
    const auto row = std::find_if(rows->begin(), rows->end(),
                                  [&](const auto& each) { return each.id == hold.subscription; });
    Logged& logged = logged_[hold.subscription];
    if (row == rows->end() || Clock::now() < logged.next) continue;
    logged.next = Clock::now() + logged.pause;
    logged.pause = std::min(logged.pause * 2, std::chrono::hours(24));
    log::warn("a subscription holds history back that could be removed",
              {{"subscription", row->spec.name},
               {"state", store::to_string(row->state)},
               {"parts", hold.pieces},
               {"bytes", hold.bytes},
               {"over_quota", static_cast<std::size_t>(hold.bytes) > options_.quota}});
  }
}

}  // namespace outbox::relay
