#include "relay/tenure_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "relay/assignment.hpp"
#include "store/text.hpp"
#include "subscription/group.hpp"

namespace outbox::relay {
namespace {

using Clock = std::chrono::steady_clock;

/// The pause between two looks while lanes that this relay should have are not free.
constexpr std::chrono::milliseconds kVacancyCheck{100};
constexpr std::chrono::milliseconds kUpdateEvery{1000};
constexpr std::chrono::seconds kMaintainEvery{30};
constexpr std::chrono::seconds kDefaultGrace{10};
/// The sum of a time and this grace period must not overflow.
constexpr std::chrono::milliseconds kLongestGrace = std::chrono::hours(24 * 366);
/// A failure after a tenure of this length starts a new back-off.
constexpr std::chrono::seconds kSoundTenure{2};
/// How long the end of a tenure waits for the outcomes of what is in flight when the store or the
/// lanes are lost, so that it is not sent twice.
constexpr std::chrono::seconds kLostStoreGrace{5};
constexpr BackoffPolicy kReconnect{.first = std::chrono::milliseconds(50),
                                   .longest = std::chrono::seconds(5)};

/// The first two characters of SQLSTATE, or SQLite's result code; nullopt if the error is none of
/// the store.
std::optional<std::string> store_error_class(std::string_view origin) {
  constexpr std::string_view kPostgres = "pg:";
  constexpr std::string_view kSqlite = "sqlite:";
  if (origin.starts_with(kPostgres)) return std::string(origin.substr(kPostgres.size(), 2));
  if (origin.starts_with(kSqlite)) return std::string(origin.substr(kSqlite.size()));
  return {};
}

/// Whether the error passes by itself, on a sound connection. Delivery need not end because of it.
bool passes(const Error& error) {
  return error.code != Errc::lease_lost &&
         (error.remedy == Remedy::retry_call || error.remedy == Remedy::retry_transaction);
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
                                 : subscription::group_of(*spec));
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
  auto store = store::open_store(
      {.url = options_.store_url, .schema = options_.schema, .application = "outbox relay"});
  if (!store) return pass(store);
  store_ = std::move(*store);
  if (Status status = store_->check(); !status) return status;
  stop_report_ = {.drained = true, .abandoned = 0};
  configuration_.forget();
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
  int failures = 0;
  while (!stopping()) {
    note_progress();
    const Status status = run_once();
    if (status) {
      failures = 0;
    } else if (!stopping()) {
      back_off(status.error(), failures);
    }
  }
  give_back_lanes();
  sinks_.close_all();
  set_role(Role::none);
  progress_.store(TimePoint::max(), std::memory_order_relaxed);
}

void TenureLoop::back_off(const Error& error, int& failures) {
  note_failure(error);
  set_role(Role::none);  // now, so that a caller waiting in start() finds the failure in the report
  if (!trust_.holds(Clock::now())) sinks_.close_all();
  // A tenure that fails at once does not reset the back-off.
  const auto since = std::exchange(delivering_since_, {});
  const bool was_sound =
      std::exchange(has_settled_, false) || (since && Clock::now() - *since >= kSoundTenure);
  if (was_sound) (void)outage_.works(Clock::now());
  failures = was_sound ? 1 : failures + 1;
  pause(backoff(kReconnect, failures, static_cast<std::uint64_t>(getpid())));
}

/// Opens a new connection to give the lanes back, because a failed run has dropped its own.
/// Otherwise the next owner would have to wait for the end of the lease.
void TenureLoop::give_back_lanes() {
  if (!std::exchange(was_member_, false)) return;
  auto membership = store_->membership(identity_);
  if (membership) (void)(*membership)->leave();
}

Result<TenureLoop::Parts> TenureLoop::open_parts() {
  if (Status status = store_->check(); !status) return pass(status);
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
  start_over_with(parts->outbox);
  if (!configuration_.empty()) {
    OUTBOX_TRY(const auto rows, parts->catalog->subscriptions());
    configuration_.know(rows);
  }
  configuration_.serve(identity_.groups);
  for (const auto& [group, holding] : std::exchange(holdings_, {})) held_before_[group] = holding;
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
void TenureLoop::start_over_with(const std::string& outbox) {
  if (outbox == outbox_) return;
  if (!outbox_.empty()) {
    log::warn("the store has another outbox than before: the relay starts over with it");
    sinks_.forget_outbox();
    configuration_.forget();
  }
  outbox_ = outbox;
}

Status TenureLoop::follow(Parts& parts, Tenure& tenure, const LeaseRenewer& lease) {
  TimePoint look_at = Clock::now();
  TimePoint update_at = look_at;
  TimePoint maintain_at = look_at;
  bool delivers = false;
  // Nothing is maintained before the tenure has begun.
  const auto maintain_next = [&] { return tenure.has_begun() ? maintain_at : TimePoint::max(); };
  for (bool rung = false; !stopping();
       rung = wait_until(std::min({look_at, update_at, maintain_next()}))) {
    note_progress();
    if (auto failure = tenure.failure()) return fail(std::move(*failure));
    if (auto failure = lease.failure()) return fail(std::move(*failure));
    const TimePoint now = Clock::now();
    if (now >= look_at) {
      const Holdings before = holdings_;
      auto short_of_lanes = settle_shares(parts, tenure);
      if (!short_of_lanes) {
        // The relay keeps the lanes that it has.
        if (!passes(short_of_lanes.error()) || holdings_.empty()) return pass(short_of_lanes);
        note_failure(short_of_lanes.error(), true);
      }
      look_at = Clock::now() + (short_of_lanes && *short_of_lanes ? kVacancyCheck : kUpdateEvery);
      if (holdings_ != before) rung = true;
    }
    if (rung || now >= update_at) {
      if (Status status = deliver(parts, tenure); status) {
        delivers = !holdings_.empty();
      } else {
        if (!passes(status.error()) || !delivers) return status;
        note_failure(status.error(), true);
      }
      update_at = now + kUpdateEvery;
    }
    if (now >= maintain_at && tenure.has_begun()) {
      maintain(parts.maintenance);
      maintain_at = now + kMaintainEvery;
    }
  }
  return {};
}

// ---- lanes

Result<bool> TenureLoop::settle_shares(Parts& parts, Tenure& tenure) {
  OUTBOX_TRY(const store::Fleet fleet, parts.owners->look());
  // The tables or the file may have been dropped and created again: then the cursors and sequence
  // numbers in memory are void.
  if (fleet.outbox != outbox_) {
    return fail(Errc::unavailable, Remedy::reconnect,
                "the outbox in the store was replaced by another one",
                "delivery starts again from what is there");
  }
  bool short_of_lanes = false;
  for (const store::Group& group : served_groups(fleet)) {
    forget_retries_of_lost_lanes(group);
    if (Status status = check_holding(group, fleet); !status) return pass(status);
    const store::LaneMask wanted = wanted_lanes(identity_.id, group, fleet.members);
    const auto held = holdings_.find(group.name);
    const bool holds = held != holdings_.end();
    const bool up_to_date =
        holds ? held->second.lanes == wanted && held->second.generation >= group.least_generation
              : wanted == 0;
    if (!up_to_date) {
      if (Status status = change_lanes(parts, tenure, group, wanted); !status) return pass(status);
    }
    short_of_lanes = short_of_lanes || share_is_short(identity_.id, group, fleet.members);
  }
  if (holdings_.empty()) wait_for_others(parts, fleet);
  return short_of_lanes || holdings_.empty();
}

/// The groups that the relay serves among these: the default group, those that it was told to
/// serve, and those of the subscriptions in the store and in the configuration.
std::vector<store::Group> TenureLoop::served_groups(const store::Fleet& fleet) const {
  std::map<std::string, store::Group> groups;
  std::set<std::string> wanted = configuration_.groups();
  wanted.emplace(subscription::kDefaultGroup);
  wanted.insert(identity_.groups.begin(), identity_.groups.end());
  wanted.erase(std::string(subscription::kAllGroups));
  for (const std::string& name : wanted)
    groups[name] = {.name = name, .one_owner = subscription::has_one_owner(name), .owners = {}};
  for (const store::Group& group : fleet.groups) {
    if (group.has_subscriptions || wanted.contains(group.name) || holdings_.contains(group.name))
      groups[group.name] = group;
  }
  std::vector<store::Group> served;
  for (auto& [name, group] : groups) {
    if (subscription::serves(identity_.groups, name)) served.push_back(std::move(group));
  }
  return served;
}

/// A relay that takes lanes over removes this relay's row, without which the change that follows
/// fails. So no relay can take lanes over unnoticed after this look.
void TenureLoop::forget_retries_of_lost_lanes(const store::Group& group) {
  const auto before = held_before_.extract(group.name);
  if (before.empty()) return;
  store::LaneMask kept = 0;
  for (const store::OwnedLanes& owned : group.owners) {
    if (owned.owner == identity_.id && owned.generation == before.mapped().generation)
      kept |= owned.lanes;
  }
  if ((before.mapped().lanes & ~kept) != 0) sinks_.forget_retries(group.name);
}

/// Lanes that the store gives to somebody else are lost, whatever this relay believes.
Status TenureLoop::check_holding(const store::Group& group, const store::Fleet& fleet) const {
  const auto held = holdings_.find(group.name);
  if (held == holdings_.end()) return {};
  for (const store::OwnedLanes& owned : group.owners) {
    const bool ours = owned.owner == identity_.id && owned.generation == held->second.generation;
    if (!ours && (owned.lanes & held->second.lanes) != 0) {
      const std::string other = other_owner(identity_.id, group, fleet.members);
      return fail(lease_lost("lanes of group " + group.name + " were taken over" +
                             (other.empty() ? "" : " by " + other)));
    }
  }
  return {};
}

Status TenureLoop::change_lanes(Parts& parts, Tenure& tenure, const store::Group& group,
                                store::LaneMask wanted) {
  if (tenure.has_begun()) {
    if (Status status = tenure.leave(group.name); !status) return status;
  }
  auto changed = parts.owners->change(group.name, wanted);
  if (!changed) return pass(changed);
  if (!*changed)
    return {};  // another relay changes lanes at this moment; the next look tries again
  const store::Holding& holding = **changed;
  count_takeover(group, holding);
  const auto held = holdings_.find(group.name);
  if (held != holdings_.end() && (held->second.lanes & ~holding.lanes) != 0)
    sinks_.forget_retries(group.name);
  if (holding.lanes == 0) {
    holdings_.erase(group.name);
    return {};
  }
  holdings_[group.name] = holding;
  return {};
}

/// Lanes that had another owner until now had a dead one: living relays give their lanes back
/// first.
void TenureLoop::count_takeover(const store::Group& group, const store::Holding& holding) {
  const bool takes_over =
      std::any_of(group.owners.begin(), group.owners.end(), [&](const store::OwnedLanes& owned) {
        return owned.owner && owned.owner != identity_.id && (owned.lanes & holding.lanes) != 0;
      });
  const MutexLock lock(mutex_);
  takeovers_[group.name] += takes_over ? 1 : 0;
}

void TenureLoop::wait_for_others(Parts& parts, const store::Fleet& fleet) {
  sinks_.close_all();
  // The owner now delivers what the last tenure of this relay left in flight.
  stop_report_ = {.drained = true, .abandoned = 0};
  if (!std::exchange(logged_waiting_, true)) {
    std::string owner;
    for (const store::Group& group : fleet.groups) {
      if (owner.empty()) owner = other_owner(identity_.id, group, fleet.members);
    }
    log::info("waiting for lanes", {{"owner", owner}});
  }
  const TimePoint now = Clock::now();
  if (parts.catalog && !configuration_.empty() && now >= compare_at_) {
    compare_at_ = now + kUpdateEvery;
    if (const auto rows = parts.catalog->subscriptions()) configuration_.compare(*rows);
  }
  set_role(Role::waiting);
}

void TenureLoop::log_lanes() {
  for (const auto& [group, holding] : holdings_) {
    if (std::exchange(logged_[group], holding) == holding) continue;
    log::info("this relay has lanes", {{"group", group},
                                       {"lanes", std::popcount(holding.lanes)},
                                       {"generation", holding.generation}});
  }
}

/// Starts and updates what is delivered from the lanes that this relay has.
Status TenureLoop::deliver(Parts& parts, Tenure& tenure) {
  if (holdings_.empty() && !tenure.has_begun()) return {};
  if (!tenure.has_begun()) {
    Status status = tenure.begin(identity_.id, std::move(parts.catalog));
    if (!status) return status;
    parts.retention = std::make_unique<RetentionJob>(*store_, options_);
    delivering_since_ = Clock::now();
  }
  for (const auto& [group, holding] : holdings_) {
    if (configuration_.is_applied(group)) continue;
    if (!trust_.holds(Clock::now()))
      return fail(lease_lost("the lease is over before the configuration could be applied"));
    if (Status status = tenure.apply_configuration(group); !status) return status;
  }
  Status status = tenure.update(holdings_);
  publish(&tenure);
  log_lanes();
  if (!holdings_.empty()) {
    logged_waiting_ = false;
    set_role(Role::delivering);
  }
  return status;
}

/// Runs the maintenance on a connection of its own, which is opened again after a failure.
void TenureLoop::maintain(std::unique_ptr<store::Maintenance>& maintenance) {
  const auto run = [&]() -> Result<std::string> {
    if (!maintenance) {
      auto made = store_->maintenance();
      if (!made) return pass(made);
      maintenance = std::move(*made);
    }
    return maintenance->run();
  };
  auto done = run();
  if (!done) {
    maintenance.reset();
    const std::string reason = done.error().text();
    if (const auto repeats = maintenance_outage_.failed(reason, Clock::now())) {
      log::warn("maintenance failed, retries", {{"repeats", *repeats}, {"reason", reason}});
    }
    return;
  }
  if (const auto over = maintenance_outage_.works(Clock::now())) {
    log::info("maintenance works again", {{"down_seconds", in_seconds(over->lasted)}});
  }
  if (!done->empty()) log::info("maintenance", {{"done", *done}});
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
    const auto held = holdings_.find(row.group);
    if (held != holdings_.end() && row.state == store::SubscriptionState::active)
      (void)(*catalog)->report_trouble(row.id, held->second.generation,
                                       store::storable_text(error.text()), identity_.id);
  }
}

// ---- shared state

void TenureLoop::publish(Tenure* tenure) {
  std::int64_t newest = 0;
  for (const auto& [group, holding] : holdings_) newest = std::max(newest, holding.generation);
  const MutexLock lock(mutex_);
  tenure_ = tenure;
  owner_ = tenure != nullptr && !holdings_.empty();
  if (newest != 0) generation_ = newest;
  if (tenure != nullptr) last_error_.clear();
  for (auto& [group, lanes] : lanes_) lanes = 0;
  if (tenure == nullptr) return;
  for (const auto& [group, holding] : holdings_)
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
