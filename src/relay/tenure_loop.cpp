#include "relay/tenure_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "store/text.hpp"
#include "subscription/group.hpp"

namespace outbox::relay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDefaultGrace{10};
/// The sum of a time and this grace period must not overflow.
constexpr std::chrono::milliseconds kLongestGrace = std::chrono::hours(24 * 366);
/// How long the end of a tenure waits for the outcomes of what is in flight when the store or the
/// lanes are lost, so that it is not sent twice.
constexpr std::chrono::seconds kLostStoreGrace{5};

/// The first two characters of SQLSTATE, or SQLite's result code; nullopt if the error is none of
/// the store.
std::optional<std::string> store_error_class(std::string_view origin) {
  constexpr std::string_view kPostgres = "pg:";
  constexpr std::string_view kSqlite = "sqlite:";
  if (origin.starts_with(kPostgres)) return std::string(origin.substr(kPostgres.size(), 2));
  if (origin.starts_with(kSqlite)) return std::string(origin.substr(kSqlite.size()));
  return {};
}

}  // namespace

// ---- other threads

TenureLoop::TenureLoop(RelayOptions options) : options_(std::move(options)) {
  identity_.name = options_.name;
  identity_.groups = options_.groups;
  if (identity_.groups.empty()) identity_.groups.emplace_back(subscription::kAllGroups);
}

void TenureLoop::put_custom(const std::string& subscription, std::unique_ptr<Sink> sink) {
  const auto spec = std::find_if(options_.subscriptions.begin(), options_.subscriptions.end(),
                                 [&](const auto& one) { return one.name == subscription; });
  identity_.groups.push_back(spec == options_.subscriptions.end()
                                 ? subscription::custom_group(subscription)
                                 : subscription::choose_group(*spec));
  sinks_.put_custom(subscription, std::move(sink));
}

void TenureLoop::put_custom(const std::string& group, Relay::MakeSink make) {
  identity_.groups.push_back(group);
  sinks_.put_custom(group, std::move(make));
}

Status TenureLoop::start(std::stop_token token) {
  {
    // This comes first, because a stop that is requested during the rest must not be lost.
    const MutexLock lock(mutex_);
    stop_requested_ = false;
    grace_ = kDefaultGrace;
    role_ = Role::undecided;
  }
  OUTBOX_TRY(store_, store::open_store({.url = options_.store_url,
                                        .schema = options_.schema,
                                        .application = "outbox relay"}));
  OUTBOX_TRY(store_->check());
  stop_report_ = {.drained = true, .abandoned = 0};
  configuration_.forget();
  core_.start(static_cast<std::uint64_t>(getpid()));
  thread_ = start_thread("ob-tenure", [this](const std::stop_token&) { run(); });
  on_token_.emplace(std::move(token), [this] { request_stop(std::nullopt); });
  const MutexLock lock(mutex_);
  bell_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return role_ != Role::undecided; });
  return {};
}

StopReport TenureLoop::join() {
  if (thread_.joinable()) thread_.join();
  on_token_.reset();
  return stop_report_;
}

void TenureLoop::request_stop(std::optional<std::chrono::milliseconds> grace) noexcept {
  {
    const MutexLock lock(mutex_);
    if (grace) grace_ = std::min(*grace, kLongestGrace);
    stop_requested_ = true;
  }
  bell_.notify_all();
}

bool TenureLoop::has_role() const {
  const MutexLock lock(mutex_);
  return role_ == Role::delivering || role_ == Role::waiting;
}

RelayReport TenureLoop::report() const {
  RelayReport report;
  const MutexLock lock(mutex_);
  report.owner = owner_;
  report.generation = generation_;
  report.last_error = last_error_;
  if (tenure_ != nullptr) tenure_->report(report);
  report.totals = totals_.by_name();
  report.wakeups_by_commit = totals_.wakeups().by_commit.load(std::memory_order_relaxed);
  report.wakeups_by_time = totals_.wakeups().by_time.load(std::memory_order_relaxed);
  report.lanes = lanes_;
  report.takeovers = takeovers_;
  report.store_errors = store_errors_;
  // A stop waits for what is in flight, for as long as it was told.
  report.progress = stop_requested_ ? TimePoint::max() : progress_.load(std::memory_order_relaxed);
  return report;
}

// ---- the thread of the tenure loop

void TenureLoop::run() {
  while (!stopping()) {
    note_progress();
    const Status status = run_once();
    if (!status && !stopping()) back_off(status.error());
  }
  give_back_lanes();
  sinks_.close_all();
  set_role(Role::none);
  progress_.store(TimePoint::max(), std::memory_order_relaxed);
}

void TenureLoop::back_off(const Error& error) {
  note_failure(error);
  set_role(Role::none);  // now, so that a caller waiting in start() finds the failure in the report
  const auto next = core_.back_off(std::exchange(has_settled_, false), Clock::now());
  if (next.close_sinks) sinks_.close_all();
  if (next.was_sound) (void)outage_.works(Clock::now());
  pause(next.pause);
}

/// Opens a new connection to give the lanes back, because a failed run has dropped its own.
/// Otherwise the next owner would have to wait for the end of the lease.
void TenureLoop::give_back_lanes() {
  if (!std::exchange(was_member_, false)) return;
  auto membership = store_->membership(identity_);
  const Status left = membership ? (*membership)->leave() : Status(pass(membership));
  if (left) return;
  const MutexLock lock(mutex_);
  last_error_ = left.error().text();
}

Result<TenureLoop::Parts> TenureLoop::open_parts() {
  OUTBOX_TRY(store_->check());
  Parts parts;
  OUTBOX_TRY(parts.membership, store_->membership(identity_));
  OUTBOX_TRY(parts.owners, store_->lane_owners(identity_.id));
  OUTBOX_TRY(parts.catalog, store_->catalog());
  OUTBOX_TRY(parts.outbox, parts.catalog->identity());
  was_member_ = true;
  OUTBOX_TRY(const bool kept, renew(*parts.membership, options_.lease, trust_));
  if (!kept) return fail(lease_lost("another relay took this one for dead"));
  return parts;
}

/// Connects, registers, and delivers what the relay owns until the store or the lease is lost or a
/// stop is requested.
Status TenureLoop::run_once() {
  auto parts = open_parts();
  if (!parts) return pass(parts);
  if (core_.replaces_outbox(parts->outbox)) start_over();
  if (!configuration_.empty()) {
    OUTBOX_TRY(const auto rows, parts->catalog->subscriptions());
    configuration_.know(rows);
  }
  configuration_.serve(identity_.groups);
  core_.begin_tenure(Clock::now());
  Tenure tenure(*store_, options_, configuration_, sinks_, totals_, trust_, [this] { ring(); });
  Status status = renew_and_follow(*parts, tenure);
  if (status && parts->membership->leave()) was_member_ = false;
  return status;
}

/// The lease is renewed while the end of the tenure waits for what is in flight.
Status TenureLoop::renew_and_follow(Parts& parts, Tenure& tenure) {
  const LeaseRenewer lease(*parts.membership, options_.lease, trust_, [this] { ring(); });
  Status status = follow(parts, tenure, lease);
  has_settled_ = tenure.has_settled();
  publish(nullptr);
  if (parts.retention) parts.retention->request_stop();
  if (!tenure.has_begun()) return status;
  // After an error the store or the lease is lost: nothing more is written.
  stop_report_ = status ? tenure.end(grace(), true) : tenure.end(kLostStoreGrace, false);
  return status;
}

/// Forgets what belongs to another outbox. The configuration is applied once to each outbox, and
/// not after a mere reconnect, which must not revert what a person has changed since.
void TenureLoop::start_over() {
  log::warn("the store has another outbox than before: the relay starts over with it");
  sinks_.forget_outbox();
  configuration_.forget();
}

Status TenureLoop::follow(Parts& parts, Tenure& tenure, const LeaseRenewer& lease) {
  tell(tenure, lease);
  while (true) {
    const TenureAction action = core_.next(Clock::now());
    if (action.kind == TenureAction::Kind::end)
      return action.error ? Status(fail(*action.error)) : Status();
    if (action.kind == TenureAction::Kind::sleep) {
      if (wait_until(action.until)) core_.ring();
      tell(tenure, lease);
    } else if (const Status status = carry_out(action, parts, tenure); !status) {
      core_.failed(status.error());
    }
  }
}

void TenureLoop::tell(const Tenure& tenure, const LeaseRenewer& lease) {
  note_progress();
  if (stopping()) core_.stop();
  if (const auto failure = tenure.failure()) core_.lose(*failure);
  if (const auto failure = lease.failure()) core_.lose(*failure);
}

Status TenureLoop::carry_out(const TenureAction& action, Parts& parts, Tenure& tenure) {
  using Kind = TenureAction::Kind;
  switch (action.kind) {
    case Kind::look: return look(parts);
    case Kind::leave: return tenure.leave(action.group);
    case Kind::change: return change_lanes(parts, action);
    case Kind::forget_retries: sinks_.forget_retries(action.group); break;
    case Kind::wait: wait_for_others(parts, action); break;
    case Kind::begin: return begin(parts, tenure);
    case Kind::apply: return tenure.apply_configuration(action.group);
    case Kind::update: return update(tenure);
    case Kind::maintain: maintain(parts.maintenance); break;
    case Kind::report: note_failure(*action.error, true); break;
    case Kind::sleep:
    case Kind::end: break;
  }
  return {};
}

Status TenureLoop::look(Parts& parts) {
  OUTBOX_TRY(auto fleet, parts.owners->look());
  core_.looked(std::move(fleet));
  return {};
}

Status TenureLoop::change_lanes(Parts& parts, const TenureAction& action) {
  OUTBOX_TRY(const auto holding, parts.owners->change(action.group, action.lanes));
  core_.changed(holding);
  // Lanes that another relay had until now had a dead one: living relays give their lanes back
  // first.
  const bool takes_over = holding && (holding->lanes & action.of_others) != 0;
  const MutexLock lock(mutex_);
  takeovers_[action.group] += takes_over ? 1 : 0;
  return {};
}

void TenureLoop::wait_for_others(Parts& parts, const TenureAction& action) {
  sinks_.close_all();
  // The owner now delivers what the last tenure of this relay left in flight.
  stop_report_ = {.drained = true, .abandoned = 0};
  if (action.owner) log::info("waiting for lanes", {{"owner", *action.owner}});
  if (action.compares) {
    if (const auto rows = parts.catalog->subscriptions()) configuration_.compare(*rows);
  }
  set_role(Role::waiting);
}

Status TenureLoop::begin(Parts& parts, Tenure& tenure) {
  OUTBOX_TRY(tenure.begin(identity_.id, std::move(parts.catalog)));
  parts.retention = std::make_unique<RetentionJob>(*store_, options_);
  return {};
}

Status TenureLoop::update(Tenure& tenure) {
  Status status = tenure.update(core_.holdings());
  publish(&tenure);
  log_lanes();
  if (!core_.holdings().empty()) set_role(Role::delivering);
  return status;
}

void TenureLoop::log_lanes() {
  for (const auto& [group, holding] : core_.holdings()) {
    if (std::exchange(logged_[group], holding) == holding) continue;
    log::info("this relay has lanes", {{"group", group},
                                       {"lanes", std::popcount(holding.lanes)},
                                       {"generation", holding.generation}});
  }
}

/// Runs the maintenance on a connection of its own, which is opened again after a failure.
void TenureLoop::maintain(std::unique_ptr<store::Maintenance>& maintenance) {
  const auto run = [&]() -> Result<std::string> {
    if (!maintenance) {
      OUTBOX_TRY(maintenance, store_->maintenance());
    }
    return maintenance->run();
  };
  const auto done = run();
  if (!done) maintenance.reset();
  maintenance_outage_.note(done, Clock::now());
  if (done && !done->empty()) log::info("maintenance", {{"done", *done}});
}

void TenureLoop::note_failure(const Error& error, bool delivers) {
  const std::string reason = error.text();
  {
    const MutexLock lock(mutex_);
    last_error_ = reason;
    if (const auto of_class = store_error_class(error.origin)) ++store_errors_[*of_class];
  }
  // The failure is written each time, because a tenure that began before it failed has cleared it.
  if (error.remedy == Remedy::fix) write_failure(error);
  const auto repeats = outage_.failed(reason, Clock::now());
  if (!repeats) return;
  if (error.remedy == Remedy::fix) {
    log::error("delivery is interrupted until a person acts, retries",
               {{"repeats", *repeats}, {"reason", reason}});
  } else if (delivers) {
    log::warn("delivery goes on, but changes of lanes and subscriptions wait, retries",
              {{"repeats", *repeats}, {"reason", reason}});
  } else {
    log::warn("delivery is interrupted, retries", {{"repeats", *repeats}, {"reason", reason}});
  }
}

/// Writes the failure for `outbox status`, if the store can be written to. The next tenure clears
/// it.
void TenureLoop::write_failure(const Error& error) {
  auto catalog = store_->catalog();
  if (!catalog) return;
  const auto rows = (*catalog)->subscriptions();
  if (!rows) return;
  for (const auto& row : *rows) {
    const auto held = core_.holdings().find(row.group);
    if (held != core_.holdings().end() && row.state == store::SubscriptionState::active)
      (void)(*catalog)->report_trouble(row.id, held->second.generation,
                                       store::storable_text(error.text()), identity_.id);
  }
}

// ---- shared state

void TenureLoop::publish(Tenure* tenure) {
  std::int64_t newest = 0;
  for (const auto& [group, holding] : core_.holdings())
    newest = std::max(newest, holding.generation);
  const MutexLock lock(mutex_);
  tenure_ = tenure;
  owner_ = tenure != nullptr && !core_.holdings().empty();
  if (newest != 0) generation_ = newest;
  if (tenure != nullptr) last_error_.clear();
  for (auto& [group, lanes] : lanes_) lanes = 0;
  if (tenure == nullptr) return;
  for (const auto& [group, holding] : core_.holdings())
    lanes_[group] = static_cast<std::size_t>(std::popcount(holding.lanes));
}

void TenureLoop::set_role(Role role) {
  {
    const MutexLock lock(mutex_);
    role_ = role;
  }
  bell_.notify_all();
}

void TenureLoop::ring() {
  {
    const MutexLock lock(mutex_);
    rung_ = true;
  }
  bell_.notify_all();
}

bool TenureLoop::stopping() const {
  const MutexLock lock(mutex_);
  return stop_requested_;
}

std::chrono::milliseconds TenureLoop::grace() const {
  const MutexLock lock(mutex_);
  return grace_;
}

bool TenureLoop::wait_until(TimePoint until) {
  const MutexLock lock(mutex_);
  bell_.wait_until(mutex_, until,
                   [this]() OUTBOX_REQUIRES(mutex_) { return stop_requested_ || rung_; });
  return std::exchange(rung_, false);
}

bool TenureLoop::pause(std::chrono::nanoseconds length) {
  const MutexLock lock(mutex_);
  bell_.wait_for(mutex_, length, [this]() OUTBOX_REQUIRES(mutex_) { return stop_requested_; });
  return stop_requested_;
}

}  // namespace outbox::relay
