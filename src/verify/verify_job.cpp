#include "verify/verify_job.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "event/time_text.hpp"
#include "verify/checkpoint.hpp"

namespace outbox::verify {
namespace {

using std::chrono::nanoseconds;

/// A row that another relay has written less than so many passes ago is that relay's.
constexpr int kPassesOfAnother = 36;
/// The longest pause between two passes is so many times the shortest one.
constexpr int kIdle = 12;

nanoseconds read_cpu_time() {
  timespec used{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

}  // namespace

VerifyJob::VerifyJob(VerifyJobOptions options) : options_(std::move(options)) {
  thread_ = start_thread("ob-verify", [this](const std::stop_token& stop) { run(stop); });
}

void VerifyJob::run(const std::stop_token& stop) {
  cpu_used_ = read_cpu_time();
  pause_ = options_.every;
  while (!stop.stop_requested()) {
    const Status status = run_pass(stop);
    note(status);
    if (!status) {
      parts_.reset();
      followed_.clear();
    }
    if (std::exchange(more_, false)) continue;
    // While nothing is settled there is nothing to compare.
    pause_ = std::exchange(found_something_, false) ? options_.every
                                                    : std::min(2 * pause_, kIdle * options_.every);
    const MutexLock lock(mutex_);
    (void)stopped_.wait_for(mutex_, stop, pause_, [] { return false; });
  }
}

Status VerifyJob::run_pass(const std::stop_token& stop) {
  OUTBOX_TRY(connect());
  OUTBOX_TRY(const auto rows, parts_->verified->list());
  for (const store::VerifiedRow& row : rows) {
    OUTBOX_TRY(verify(row, stop));
    if (!rest(stop)) return {};
  }
  std::erase_if(followed_, [&](const auto& one) {
    return std::none_of(rows.begin(), rows.end(),
                        [&](const auto& row) { return row.subscription == one.first; });
  });
  return {};
}

/// The outbox in the store may have been replaced by another one.
Status VerifyJob::connect() {
  if (!parts_) {
    auto parts = std::make_unique<Parts>();
    OUTBOX_TRY(parts->store, store::open_store(options_.store));
    OUTBOX_TRY(parts->store->check());
    OUTBOX_TRY(parts->catalog, parts->store->catalog());
    OUTBOX_TRY(parts->verified, parts->store->verified());
    OUTBOX_TRY(parts->reader, parts->store->ledger_reader());
    parts_ = std::move(parts);
  }
  OUTBOX_TRY(std::string outbox, parts_->catalog->identity());
  if (outbox != parts_->outbox) followed_.clear();
  parts_->outbox = std::move(outbox);
  return {};
}

Status VerifyJob::verify(const store::VerifiedRow& row, const std::stop_token& stop) {
  Followed* const followed = find_or_begin(row);
  if (followed == nullptr) return {};
  const std::chrono::microseconds after = options_.after;
  OUTBOX_TRY(const Follower::Progress progress,
             followed->follower.advance(*parts_->reader, row.subscription,
                                        {.now_us = row.now_us, .age_us = after.count()},
                                        [&] { return rest(stop); }));
  if (!progress.finished) return {};  // The process ends.
  more_ = more_ || progress.more;
  if (progress.settlements == 0 && progress.fault_count == 0) return {};
  found_something_ = true;
  const std::string place =
      to_text({.outbox = parts_->outbox, .lanes = followed->follower.compared()});
  OUTBOX_TRY(const bool saved,
             parts_->verified->save(row, place, options_.verifier, progress.events,
                                    static_cast<std::int64_t>(progress.fault_count)));
  if (!saved) {
    // Another relay was here, or a person: what was found is found again by whoever goes on.
    followed_.erase(row.subscription);
    return {};
  }
  followed->revision = row.revision + 1;
  log_faults(row, progress);
  return {};
}

VerifyJob::Followed* VerifyJob::find_or_begin(const store::VerifiedRow& row) {
  const auto known = followed_.find(row.subscription);
  if (known != followed_.end() && known->second.revision == row.revision) return &known->second;
  const bool others = row.revision > 0 && row.verifier != options_.verifier;
  if (others && row.age < kPassesOfAnother * options_.every) {
    followed_.erase(row.subscription);
    return nullptr;
  }
  auto checkpoint = read_checkpoint(row.place);
  if (!checkpoint)
    log::warn("verification begins anew",
              {{"subscription", row.name}, {"reason", checkpoint.error().text()}});
  const bool of_this_outbox = checkpoint && checkpoint->outbox == parts_->outbox;
  const auto from = of_this_outbox ? checkpoint->lanes : std::vector<Compared>();
  const auto [begun, fresh] = followed_.insert_or_assign(
      row.subscription, Followed{.revision = row.revision, .follower = Follower(from)});
  return &begun->second;
}

void VerifyJob::log_faults(const store::VerifiedRow& row, const Follower::Progress& progress) {
  for (const Fault& fault : progress.faults) {
    log::error("the ledger differs from the log: see outbox verify",
               {{"subscription", row.name},
                {"kind", to_string(fault.kind)},
                {"settlement", fault.settlement},
                {"settled_at", event::time_text(fault.at_us)},
                {"first_seq", fault.first_seq},
                {"last_seq", fault.last_seq},
                {"reason", fault.text}});
  }
}

bool VerifyJob::rest(const std::stop_token& stop) {
  const nanoseconds used = read_cpu_time() - cpu_used_;
  const auto pause = std::chrono::duration_cast<nanoseconds>(used * (1 / options_.most_cpu - 1));
  {
    const MutexLock lock(mutex_);
    (void)stopped_.wait_for(mutex_, stop, pause, [] { return false; });
  }
  cpu_used_ = read_cpu_time();
  return !stop.stop_requested();
}

void VerifyJob::note(const Status& status) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (status) {
    if (const auto over = outage_.works(now))
      log::info("verification goes on", {{"down_seconds", in_seconds(over->lasted)}});
    return;
  }
  const std::string reason = status.error().text();
  if (const auto repeats = outage_.failed(reason, now))
    log::warn("verification is interrupted, retries", {{"repeats", *repeats}, {"reason", reason}});
}

}  // namespace outbox::verify
