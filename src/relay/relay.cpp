// The facade: checks the options, and starts and stops the tenure loop.
#include "outbox/relay.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "history/history_job.hpp"
#include "relay/pending.hpp"
#include "relay/tenure_loop.hpp"
#include "sink/registry.hpp"
#include "store/history.hpp"
#include "store/url.hpp"
#include "subscription/group.hpp"
#include "subscription/spec.hpp"

namespace outbox {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRunOnceCheck{5};

RelayOptions with_name(RelayOptions options) {
  if (options.name.empty()) options.name = process_name();
  return options;
}

Status check_options(const RelayOptions& options) {
  const auto bad = [](const std::string& what, const std::string& hint) {
    return Status(fail(Errc::invalid_argument, "relay options: " + what, hint));
  };
  if (options.store_url.empty())
    return bad("store_url is empty", "postgresql://... or sqlite:PATH");
  if (options.page_rows < 1 || options.page_rows > 10000)
    return bad("page_rows is out of range", "1 to 10000");
  if (options.window_events < options.page_rows) {
    return bad("window_events is smaller than page_rows", "the window must hold at least one page");
  }
  if (options.window_bytes < 1024) return bad("window_bytes is too small", "at least 1 KiB");
  if (options.settle_events < 1) return bad("settle_events is zero", "at least 1");
  if (options.settle_interval.count() < 0)
    return bad("settle_interval is negative", "0 ms or more");
  if (options.lease < std::chrono::seconds(1)) return bad("lease is too short", "at least 1 s");
  if (options.feed == Feed::wal && store::store_kind(options.store_url) == store::StoreKind::sqlite)
    return bad("feed is wal, which SQLite does not have", "poll, or auto");
  if (options.idle_poll < std::chrono::milliseconds(1))
    return bad("idle_poll is too short", "at least 1 ms");
  for (const std::string& group : options.groups) {
    if (!subscription::is_group_name(group))
      return bad("groups: " + in_quotes(group) + " is no name of a group",
                 "letters, digits, '-', '_' and '.'; custom:NAME, file:NAME");
  }
  if (options.publish_after == PublishAfter::replicated) {
    if (store::store_kind(options.store_url) == store::StoreKind::sqlite)
      return bad("publish_after is replicated, and SQLite has no standbys",
                 "PublishAfter::flushed");
    if (options.replicated < 1) return bad("replicated is zero", "at least 1");
    if (options.replicated_timeout.count() < 0)
      return bad("replicated_timeout is negative", "0 or more");
  }
  if (options.retention.count() < 0) return bad("retention is negative", "0 or more");
  if (options.history.count() < 0 || options.history_interval.count() < 0)
    return bad("history or history_interval is negative", "0 or more");
  if (options.audit_keep < store::kLeastAuditKept)
    return bad("audit_keep is too short", "a day or more");
  for (const SubscriptionSpec& spec : options.subscriptions) {
    OUTBOX_TRY(subscription::validate(spec));
    OUTBOX_TRY(sink::check_settings(spec));
  }
  return {};
}

/// Waits until the relay has a role and nothing is pending. Returns why that did not happen before
/// `until`; empty if it did.
Result<std::string> wait_until_nothing_is_pending(relay::TenureLoop& tenures,
                                                  Clock::time_point until) {
  OUTBOX_TRY(const auto catalog, tenures.store().catalog());
  while (true) {
    auto pending = relay::find_pending_subscription(*catalog, tenures.groups());
    if (!pending) {
      pending.error().message = "run_once: " + pending.error().message;
      return pass(pending);
    }
    if (pending->empty() && tenures.has_role()) return std::string();
    if (Clock::now() >= until) {
      const std::string error = tenures.report().last_error;
      return (pending->empty() ? "the relay could not start delivery"
                               : "events of subscription " + *pending + " are still pending") +
             (error.empty() ? "" : ": " + error);
    }
    tenures.pause(kRunOnceCheck);
  }
}

}  // namespace

struct Relay::Impl {
  Impl(RelayOptions options, history::HistoryJobOptions history_options)
      : tenures(with_name(std::move(options))),
        history_job(std::move(history_options), [this] { return tenures.report(); }) {}

  Mutex control;  ///< Serializes use(), start() and stop().
  relay::TenureLoop tenures;
  history::HistoryJob history_job;
};

Result<std::unique_ptr<Relay>> Relay::create(RelayOptions options) {
  OUTBOX_TRY(check_options(options));
  auto history = history::history_options(options);
  return std::unique_ptr<Relay>(
      new Relay(std::make_unique<Impl>(std::move(options), std::move(history))));
}

Relay::Relay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Relay::~Relay() { (void)stop(std::chrono::milliseconds(0)); }

Status Relay::use(std::string_view subscription, std::unique_ptr<Sink> sink) {
  const MutexLock lock(impl_->control);
  if (impl_->tenures.is_running())
    return fail(Errc::invalid_argument, "Relay::use() after start()");
  if (!sink) return fail(Errc::invalid_argument, "Relay::use(): sink is null");
  impl_->tenures.put_custom(std::string(subscription), std::move(sink));
  return {};
}

Status Relay::use_for_group(std::string_view group, MakeSink make) {
  const MutexLock lock(impl_->control);
  if (impl_->tenures.is_running())
    return fail(Errc::invalid_argument, "Relay::use_for_group() after start()");
  if (!subscription::is_group_name(std::string(group)))
    return fail(Errc::invalid_argument,
                "Relay::use_for_group(): " + in_quotes(group) + " is no name of a group");
  if (!make) return fail(Errc::invalid_argument, "Relay::use_for_group(): make is empty");
  impl_->tenures.put_custom(std::string(group), std::move(make));
  return {};
}

Status Relay::start(std::stop_token token) {
  const MutexLock lock(impl_->control);
  if (impl_->tenures.is_running()) return {};
  impl_->history_job.start();  // first: events may be delivered before the tenure loop has started
  return impl_->tenures.start(std::move(token));
}

void Relay::request_stop() noexcept { impl_->tenures.request_stop(std::nullopt); }

StopReport Relay::stop(std::chrono::milliseconds grace) {
  impl_->tenures.request_stop(grace);
  const MutexLock lock(impl_->control);
  impl_->tenures.request_stop(grace);  // again: a start() that held the mutex has reset the request
  const StopReport report = impl_->tenures.join();
  impl_->history_job.stop();
  return report;
}

Result<RunReport> Relay::run_once(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  const auto before = impl_->tenures.settled();
  OUTBOX_TRY(start({}));
  auto reason = wait_until_nothing_is_pending(impl_->tenures, until);
  const bool settled = reason && reason->empty();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  const StopReport stopped =
      stop(settled ? std::max(left, std::chrono::milliseconds(0)) : std::chrono::milliseconds(0));
  if (!reason) return pass(reason);
  const auto counts = impl_->tenures.settled() - before;
  return RunReport{.settled = settled,
                   .reason = std::move(*reason),
                   .delivered = counts.delivered,
                   .filtered = counts.filtered,
                   .parked = counts.parked,
                   .dead = counts.dead,
                   .abandoned = stopped.abandoned};
}

RelayReport Relay::report() const { return impl_->tenures.report(); }

}  // namespace outbox
