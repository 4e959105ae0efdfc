#include "relay/keeper.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "relay/retention_keeper.hpp"
#include "store/text.hpp"

namespace outbox::relay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kVacancyCheck{100};
constexpr std::chrono::milliseconds kUpdateEvery{1000};
constexpr std::chrono::seconds kMaintainEvery{30};
constexpr std::chrono::seconds kDefaultGrace{10};
/// A failure after a tenure of this length starts a new back-off.
constexpr std::chrono::seconds kSoundTenure{2};
/// When the store or the lanes are lost: how long to wait for the outcomes of what is in flight, so that it is not sent twice.
constexpr std::chrono::seconds kLostStoreGrace{5};
constexpr BackoffPolicy kReconnect{.first = std::chrono::milliseconds(50),
                                   .longest = std::chrono::seconds(5)};

}  // namespace

// ---- other threads

void Keeper::put_custom(const std::string& subscription, std::unique_ptr<Sink> sink) {
  sinks_.put_custom(subscription, std::move(sink));
}

Status Keeper::start(std::stop_token token) {
  {
    // First: a stop requested during the rest must not be lost.
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
  configured_under_.reset();
  thread_ = start_thread("ob-keeper", [this](const std::stop_token&) { run(); });
  on_token_.emplace(std::move(token), [this] { request_stop(std::nullopt); });
  const MutexLock lock(mutex_);
  bell_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return role_ != Role::undecided; });
  return {};
}

StopReport Keeper::join() {
  if (thread_.joinable()) thread_.join();
  on_token_.reset();
  return stop_report_;
}

void Keeper::request_stop(std::optional<std::chrono::milliseconds> grace) noexcept {
  {
    const MutexLock lock(mutex_);
    if (grace) grace_ = *grace;
    stop_requested_ = true;
  }
  bell_.notify_all();
}

bool Keeper::has_role() const {
  const MutexLock lock(mutex_);
  return role_ == Role::delivering || role_ == Role::waiting;
}

RelayReport Keeper::report() const {
  RelayReport report;
  const MutexLock lock(mutex_);
  report.owner = tenure_ != nullptr;
  report.generation = generation_;
  report.last_error = last_error_;
  if (tenure_ != nullptr) tenure_->report(report);
  return report;
}

// ---- the keeper's thread

void Keeper::run() {
  int failures = 0;
  while (!stopping()) {
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
}

void Keeper::back_off(const Error& error, int& failures) {
  set_role(Role::none);
  note_failure(error);
  if (!trust_.holds(Clock::now())) sinks_.close_all();
  // A tenure that fails at once does not reset the back-off.
  const auto since = std::exchange(delivering_since_, {});
  const bool was_sound =
      std::exchange(has_settled_, false) || (since && Clock::now() - *since >= kSoundTenure);
  if (was_sound) (void)outage_.works(Clock::now());
  failures = was_sound ? 1 : failures + 1;
  pause(backoff(kReconnect, failures, static_cast<std::uint64_t>(getpid())));
}

/// Connects again if a failed tenure has dropped the membership: the next owner should not have to wait for the end of the lease.
void Keeper::give_back_lanes() {
  if (was_member_) (void)join_members();
  if (membership_) (void)membership_->leave();
  membership_.reset();
}

Status Keeper::join_members() {
  if (membership_) return {};
  auto membership = store_->membership(options_.name, id_);
  if (!membership) return pass(membership);
  membership_ = std::move(*membership);
  was_member_ = true;
  return {};
}

/// Connects, waits for the lanes, delivers until the store or the lanes are lost or a stop is requested.
Status Keeper::run_once() {
  if (Status status = store_->check(); !status) return status;
  if (Status status = join_members(); !status) return status;
  auto standing = wait_for_lanes();
  if (standing && !standing->owns()) return {};
  Status status = standing ? deliver(standing->generation) : Status(pass(standing));
  // Joining again gives the next tenure a new generation: a write of this one that is still on its way then does not count.
  if (!status) membership_.reset();
  return status;
}

/// A standing that does not own the lanes: a stop was requested.
Result<store::Membership::Standing> Keeper::wait_for_lanes() {
  bool logged = false;
  std::unique_ptr<store::Catalog> catalog;
  while (true) {
    auto standing = renew(*membership_, options_.lease, trust_);
    if (!standing || standing->owns()) return standing;
    sinks_.close_all();
    // What our last tenure left in flight is now delivered by the owner.
    stop_report_ = {.drained = true, .abandoned = 0};
    if (!std::exchange(logged, true))
      log::info("waiting for the lanes", {{"owner", standing->other}});
    compare_configuration(catalog);
    set_role(Role::waiting);
    auto vacant = wait_for_vacancy();
    if (!vacant) return pass(vacant);
    if (!*vacant) return store::Membership::Standing{};
  }
}

/// Or until this relay's heartbeat is due.
Result<bool> Keeper::wait_for_vacancy() {
  const TimePoint heartbeat = Clock::now() + options_.lease / 3;
  while (Clock::now() < heartbeat) {
    if (pause(kVacancyCheck)) return false;
    auto vacant = membership_->vacant();
    if (!vacant || *vacant) return vacant;
  }
  return true;
}

/// Logs what differs. While another relay has the lanes nothing is applied.
void Keeper::compare_configuration(std::unique_ptr<store::Catalog>& catalog) {
  if (configuration_.empty()) return;
  if (!catalog) {
    auto made = store_->catalog();
    if (!made) return;
    catalog = std::move(*made);
  }
  const auto rows = catalog->subscriptions();
  if (!rows) {
    catalog.reset();
    return;
  }
  configuration_.compare(*rows,
                         "another relay has the lanes; it is applied when this one gets them");
}

Status Keeper::deliver(std::int64_t generation) {
  auto catalog = store_->catalog();
  if (!catalog) return pass(catalog);
  auto outbox = (*catalog)->identity();
  if (!outbox) return pass(outbox);
  Tenure tenure(*store_, options_, configuration_, sinks_, trust_, [this] { ring(); });
  // Destroyed after the tenure has ended: the lease is renewed while that waits for what is in flight.
  const LeaseKeeper lease(*membership_, options_.lease, generation, trust_, [this] { ring(); });
  RetentionKeeper retention(*store_, options_);
  if (Status status = configure(generation, **catalog, *outbox); !status) return status;
  set_role(Role::delivering);
  if (Status status = tenure.begin(generation, std::move(*catalog), std::move(*outbox)); !status)
    return status;
  log::info("this relay has the lanes", {{"generation", generation}});
  publish(&tenure, generation);
  delivering_since_ = Clock::now();
  Status status = run_tenure(tenure, lease);
  has_settled_ = tenure.has_settled();
  publish(nullptr, generation);
  retention.request_stop();
  // After an error the store or the lanes are lost: nothing more is written.
  stop_report_ = status ? tenure.end(grace(), true) : tenure.end(kLostStoreGrace, false);
  return status;
}

/// Applies the configuration. Not after a mere reconnect, which must not revert what a person changed since.
Status Keeper::configure(std::int64_t generation, store::Catalog& catalog,
                         const std::string& outbox) {
  if (outbox != outbox_) {
    if (!outbox_.empty()) {
      log::warn("the store has another outbox than before: the relay starts over with it");
      sinks_.forget_outbox();
      configured_under_.reset();
    }
    outbox_ = outbox;
  }
  // Each change of the owner raises the generation: if this is the next one, no other relay had the lanes in between.
  const bool reconnected = configured_under_ && *configured_under_ + 1 == generation;
  if (!reconnected) {
    configured_under_.reset();
    if (!trust_.holds(Clock::now()))
      return fail(lease_lost("the lease is over before the configuration could be applied"));
    if (Status status = configuration_.apply(catalog); !status) return status;
  }
  configured_under_ = generation;
  return {};
}

/// Until something fails or a stop is requested.
Status Keeper::run_tenure(Tenure& tenure, const LeaseKeeper& lease) {
  std::unique_ptr<store::Maintenance> maintenance;
  TimePoint maintain_at = Clock::now();
  TimePoint update_at = Clock::now() + kUpdateEvery;
  for (bool rung = false; !stopping(); rung = wait_until(std::min(update_at, maintain_at))) {
    if (auto failure = tenure.failure()) return fail(std::move(*failure));
    if (auto failure = lease.failure()) return fail(std::move(*failure));
    const TimePoint now = Clock::now();
    if (rung || now >= update_at) {
      if (Status status = tenure.update(); !status) {
        // A row that another session has locked is no reason to stop delivery.
        if (status.error().remedy != Remedy::retry_call) return status;
        note_failure(status.error());
      }
      update_at = now + kUpdateEvery;
    }
    if (now >= maintain_at) {
      maintain(maintenance);
      maintain_at = now + kMaintainEvery;
    }
  }
  return {};
}

/// Uses its own connection, which is opened again after a failure.
void Keeper::maintain(std::unique_ptr<store::Maintenance>& maintenance) {
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

void Keeper::note_failure(const Error& error) {
  const std::string reason = error.text();
  {
    const MutexLock lock(mutex_);
    last_error_ = reason;
  }
  // Each time: a tenure that began before it failed has cleared it.
  if (error.remedy == Remedy::fix) write_failure(error);
  const auto repeats = outage_.failed(reason, Clock::now());
  if (!repeats) return;
  if (error.remedy == Remedy::fix) {
    log::error("delivery is interrupted until a person acts, retries",
               {{"repeats", *repeats}, {"reason", reason}});
  } else {
    log::warn("delivery is interrupted, retries", {{"repeats", *repeats}, {"reason", reason}});
  }
}

/// For `outbox status`, if the store can be written to. The next tenure clears it.
void Keeper::write_failure(const Error& error) {
  auto catalog = store_->catalog();
  if (!catalog) return;
  const auto rows = (*catalog)->subscriptions();
  if (!rows) return;
  const std::int64_t generation = report().generation;
  for (const auto& row : *rows) {
    if (row.state == store::SubscriptionState::active)
      (void)(*catalog)->report_trouble(row.id, generation, store::storable_text(error.text()));
  }
}

// ---- shared state

void Keeper::publish(Tenure* tenure, std::int64_t generation) {
  const MutexLock lock(mutex_);
  tenure_ = tenure;
  generation_ = generation;
  if (tenure != nullptr) last_error_.clear();
}

void Keeper::set_role(Role role) {
  {
    const MutexLock lock(mutex_);
    role_ = role;
  }
  bell_.notify_all();
}

void Keeper::ring() {
  {
    const MutexLock lock(mutex_);
    rung_ = true;
  }
  bell_.notify_all();
}

bool Keeper::stopping() const {
  const MutexLock lock(mutex_);
  return stop_requested_;
}

std::chrono::milliseconds Keeper::grace() const {
  const MutexLock lock(mutex_);
  return grace_;
}

bool Keeper::wait_until(TimePoint until) {
  const MutexLock lock(mutex_);
  bell_.wait_until(mutex_, until,
                   [this]() OUTBOX_REQUIRES(mutex_) { return stop_requested_ || rung_; });
  return std::exchange(rung_, false);
}

bool Keeper::pause(std::chrono::nanoseconds length) {
  const MutexLock lock(mutex_);
  bell_.wait_for(mutex_, length, [this]() OUTBOX_REQUIRES(mutex_) { return stop_requested_; });
  return stop_requested_;
}

}  // namespace outbox::relay
