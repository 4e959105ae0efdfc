#include "relay/tenure.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/registry.hpp"
#include "store/text.hpp"

namespace outbox::relay {
namespace {

/// How long a subscription that is paused or changed may wait for what is in flight: a part of the lease, because no
/// heartbeat is sent meanwhile.
std::chrono::milliseconds retire_grace(const RelayOptions& options) { return options.lease / 4; }

/// That nothing is subscribed is said again after so long, then twice as long, and so on.
constexpr std::chrono::seconds kWarnFirst{4};
constexpr std::chrono::seconds kWarnEvery{60};

feed::PaceOptions pace_of(const RelayOptions& options) {
  feed::PaceOptions pace;
  pace.idle = options.idle_poll;
  pace.busy = std::min(pace.busy, pace.idle);
  pace.arm = options.wake_up;
  return pace;
}

std::size_t page_bytes(const RelayOptions& options) {
  return std::max<std::size_t>(options.window_bytes / 4, 1);
}

CoreOptions core_of(const RelayOptions& options, std::int32_t subscription) {
  CoreOptions core;
  core.window_events = options.window_events;
  core.window_bytes = options.window_bytes;
  core.page_events = options.page_rows;
  core.page_bytes = page_bytes(options);
  core.settle_interval = options.settle_interval;
  core.settle_events = options.settle_events;
  core.seed = static_cast<std::uint64_t>(subscription);
  return core;
}

}  // namespace

// ---- the shelf

SinkShelf::~SinkShelf() {
  reap();
  for (auto& [loop, of_former_outbox] : stuck_) {
    log::error("sink still does not return from a call, it is left behind",
               {{"subscription", loop->row().spec.name}});
    SubscriptionLoop::leak(std::move(loop));
  }
}

void SinkShelf::put_custom(const std::string& name, std::unique_ptr<Sink> sink) {
  shelf_[name] = Shelved{.remains = {.sink = std::move(sink), .unsettled_acks = {}}, .of = {}};
}

Result<Remains> SinkShelf::take(const store::SubscriptionRow& row) {
  reap();
  const std::string& name = row.spec.name;
  const bool stuck = std::any_of(stuck_.begin(), stuck_.end(), [&](const Stuck& one) {
    return one.loop->row().spec.name == name;
  });
  if (stuck) {
    return fail(Errc::unavailable,
                "subscription " + name + ": its sink does not return from a call",
                "it is tried again when the call has ended; if it never does, restart the relay");
  }
  const bool custom = row.spec.sink == "custom";
  Shelved& kept = shelf_[name];
  const Version wanted = version_of(row);
  if (kept.of && kept.of->id != wanted.id) {
    // Another subscription of that name: what the one before delivered says nothing about it.
    kept.remains.unsettled_acks.clear();
  }
  const bool same = custom || (kept.of && *kept.of == wanted);
  if (kept.remains.sink && same) return std::exchange(kept.remains, {});
  // One with other settings may hold the same file or connection. What it acked is delivered all the same: had the store
  // not been lost, it would be settled, and no settings of later would bring it again.
  if (kept.remains.sink) kept.remains.sink->close();
  kept.remains.sink.reset();
  if (custom) {
    return fail(Errc::not_found,
                "subscription " + name + ": sink is \"custom\" and no sink was given",
                "call Relay::use(\"" + name + "\", ...) before start()");
  }
  auto sink = sink::make_sink(row.spec);
  if (!sink) return pass(sink);
  return Remains{.sink = std::move(*sink),
                 .unsettled_acks = std::exchange(kept.remains.unsettled_acks, {})};
}

void SinkShelf::put_back(const store::SubscriptionRow& row, Remains remains) {
  shelf_[row.spec.name] = Shelved{.remains = std::move(remains), .of = version_of(row)};
}

void SinkShelf::leave(std::unique_ptr<SubscriptionLoop> loop) {
  loop->leave();
  stuck_.push_back({.loop = std::move(loop)});
}

void SinkShelf::forget(Shelved& shelved) {
  shelved.remains.unsettled_acks.clear();
  shelved.of.reset();
}

void SinkShelf::forget() {
  for (auto& [name, shelved] : shelf_) forget(shelved);
  for (Stuck& stuck : stuck_) stuck.of_former_outbox = true;
}

void SinkShelf::reap() {
  const auto back = std::stable_partition(stuck_.begin(), stuck_.end(),
                                          [](const Stuck& one) { return !one.loop->ended(); });
  for (auto one = back; one != stuck_.end(); ++one) {
    SubscriptionLoop& loop = *one->loop;
    (void)loop.stop(std::chrono::nanoseconds(0), false);
    put_back(loop.row(), loop.take_remains());
    if (one->of_former_outbox) forget(shelf_.at(loop.row().spec.name));
    log::info("sink returned from its call", {{"subscription", loop.row().spec.name}});
  }
  stuck_.erase(back, stuck_.end());
}

void SinkShelf::rest() {
  for (const auto& [name, shelved] : shelf_) rest(name);
}

void SinkShelf::rest(const std::string& name) {
  const auto found = shelf_.find(name);
  if (found != shelf_.end() && found->second.remains.sink) found->second.remains.sink->close();
}

SinkShelf::Version SinkShelf::version_of(const store::SubscriptionRow& row) {
  return {.id = row.id, .config_version = row.config_version};
}

// ---- the tenure

Tenure::Tenure(store::Store& store, const RelayOptions& options, Configuration& configuration,
               SinkShelf& shelf, const TrustDeadline& trust, std::function<void()> bell)
    : store_(store),
      options_(options),
      configuration_(configuration),
      shelf_(shelf),
      trust_(trust),
      bell_(std::move(bell)) {}

Tenure::~Tenure() { (void)end(std::chrono::nanoseconds(0), false); }

Status Tenure::begin(std::int64_t generation, std::unique_ptr<store::Catalog> catalog,
                     std::string outbox) {
  generation_ = generation;
  catalog_ = std::move(catalog);
  outbox_ = std::move(outbox);
  auto progress = store_.progress();
  if (!progress) return pass(progress);
  auto loader = store_.progress();
  if (!loader) return pass(loader);
  auto reader = store_.reader();
  if (!reader) return pass(reader);
  auto wakeup = store_.wakeup(options_.wake_up);
  if (!wakeup) return pass(wakeup);
  loader_ = std::move(*loader);
  const auto failed = [this](const Error& error) { broke(error); };
  settler_ = std::make_unique<Settler>(std::move(*progress), failed);
  PumpOptions pump;
  pump.page_rows = options_.page_rows;
  pump.page_bytes = page_bytes(options_);
  pump.pace = pace_of(options_);
  pump_ = std::make_unique<LogPump>(std::move(*reader), std::move(*wakeup), pump, failed);
  settler_->start();
  if (Status status = pump_->begin({}); !status) return status;
  pump_->start();
  return tend();
}

void Tenure::broke(const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = error;
  }
  bell_();
}

bool Tenure::has_settled() const {
  const std::scoped_lock lock(mutex_);
  return settler_ != nullptr && settler_->has_written();
}

std::optional<Error> Tenure::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

Result<std::unique_ptr<SubscriptionLoop>> Tenure::make_loop(const store::SubscriptionRow& row) {
  auto renderer = event::Renderer::create(row.spec);
  if (!renderer) return pass(renderer);
  auto strands = loader_->load(row.id);
  if (!strands) return pass(strands);
  if (strands->size() != 1) {
    return fail(
        Errc::unsupported,
        "subscription " + row.spec.name + ": its lanes stand at different cursors",
        "this version delivers with one relay for all lanes; finish with the version that wrote them");
  }
  auto remains = shelf_.take(row);
  if (!remains) return pass(remains);
  const std::string name = row.spec.name;
  SubscriptionLoop::Listener listener{
      .room = [this] { pump_->room(); },
      .rejected =
          [this, name](const Rejection& rejection) {
            {
              const std::scoped_lock lock(mutex_);
              if (const auto found = running_.find(name); found != running_.end())
                found->second.rejection = rejection;
            }
            bell_();
          },
      .distrusted =
          [this] {
            broke(Error{.code = Errc::lease_lost,
                        .remedy = Remedy::retry_call,
                        .effect = Effect::none,
                        .message = "the lease could not be renewed in time",
                        .hint = {},
                        .origin = {}});
          },
  };
  const LoopOptions options{.core = core_of(options_, row.id), .generation = generation_};
  return std::make_unique<SubscriptionLoop>(row, std::move(*renderer), strands->front().cursor,
                                            options, std::move(*remains), *settler_, trust_,
                                            std::move(listener));
}

Status Tenure::tend() {
  if (Status status = check_outbox(); !status) return status;
  if (Status status = write_rejections(); !status) return status;
  auto rows = catalog_->subscriptions();
  if (!rows) return pass(rows);
  configuration_.compare(
      *rows,
      "somebody changed the store since; restart the relay to apply its configuration again");
  if (Status status = follow(*rows); !status) return status;
  warn_of_nothing(*rows);
  if (Status status = tell_troubles(*rows); !status) return status;
  return warn_of_idle_filters(*rows);
}

/// A filter with a typing error looks like one that works: nothing fails, nothing is pending. Once in a tenure.
Status Tenure::warn_of_idle_filters(const std::vector<store::SubscriptionRow>& rows) {
  for (const auto& row : rows) {
    const auto found = running_.find(row.spec.name);
    if (found == running_.end() || found->second.filter_judged) continue;
    const SubscriptionReport here = found->second.loop->report();
    if (here.delivered == 0 && here.filtered < store::SubscriptionProgress::kManyFiltered) continue;
    found->second.filter_judged = true;
    if (here.delivered > 0) continue;
    store::SubscriptionProgress total;
    total.id = row.id;
    if (Status status = catalog_->add_totals(total); !status) return status;
    if (!total.matches_nothing()) continue;
    log::warn(
        "the filter has matched nothing",
        {{"subscription", row.spec.name},
         {"filtered", total.filtered},
         {"hint", "compare event_types, aggregate_types and match_headers with what is written"}});
  }
  return {};
}

/// The tables or the file may have been removed and made anew: then what we hold of cursors and sequence numbers means nothing.
Status Tenure::check_outbox() {
  auto outbox = catalog_->identity();
  if (!outbox) return pass(outbox);
  if (*outbox == outbox_) return {};
  return fail(Error{.code = Errc::unavailable,
                    .remedy = Remedy::reconnect,
                    .effect = Effect::none,
                    .message = "the outbox in the store was replaced by another one",
                    .hint = "delivery starts again from what is there",
                    .origin = {}});
}

/// Loudly, since somebody may wait for events. The first row that is there ends it.
void Tenure::warn_of_nothing(const std::vector<store::SubscriptionRow>& rows) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (!rows.empty()) {
    nothing_warned_ = 0;
    return;
  }
  if (nothing_warned_ > 0 && now < warn_again_at_) return;
  warn_again_at_ = now + std::min(kWarnFirst * (1 << std::min(nothing_warned_, 10)), kWarnEvery);
  ++nothing_warned_;
  log::warn(
      "there are no subscriptions: nothing is delivered",
      {{"hint",
        "outbox subscription apply -c FILE, or outbox relay -c FILE, with a [subscription.NAME] section"}});
}

/// What is in the table may be of the relay before us, so it is compared, not remembered.
Status Tenure::tell_troubles(const std::vector<store::SubscriptionRow>& rows) {
  for (const auto& row : rows) {
    const bool active = row.state == store::SubscriptionState::active;
    // A sink may say anything; what is no text must not become everybody's trouble.
    const std::string trouble =
        active ? store::storable_text(trouble_of(row.spec.name)) : std::string();
    if (trouble == row.trouble) continue;
    if (Status status = catalog_->report_trouble(row.id, generation_, trouble); !status)
      return status;
  }
  return {};
}

std::string Tenure::trouble_of(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  if (const auto found = running_.find(name); found != running_.end())
    return found->second.loop->report().reason;
  const auto complaint = complaints_.find(name);
  return complaint == complaints_.end() ? std::string() : complaint->second;
}

/// A rejected event stops its subscription, where a person can see it. Until that is written the loop rests anyway.
Status Tenure::write_rejections() {
  std::vector<std::pair<std::string, Rejection>> rejections;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, running] : running_) {
      if (running.rejection) rejections.emplace_back(name, *running.rejection);
    }
  }
  for (const auto& [name, rejection] : rejections) {
    const auto found = running_.find(name);
    auto stopped =
        catalog_->stop(found->second.loop->row().id, generation_,
                       store::storable_text(rejection.error.text()), rejection.seq, rejection.id);
    if (!stopped) return pass(stopped);
    if (*stopped) retire(name);  // else the next time
  }
  return {};
}

Status Tenure::follow(const std::vector<store::SubscriptionRow>& rows) {
  std::vector<std::string> gone;
  for (const auto& [name, running] : running_) {
    const store::SubscriptionRow& served = running.loop->row();
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.id == served.id; });
    if (row == rows.end()) {
      log::info("subscription was removed", {{"subscription", name}});
    } else if (row->state != store::SubscriptionState::active) {
      log::info("subscription rests until it is resumed", {{"subscription", name},
                                                           {"state", store::to_string(row->state)},
                                                           {"reason", row->reason}});
    } else if (row->config_version != served.config_version) {
      log::info("subscription was changed and starts again", {{"subscription", name}});
    } else {
      continue;
    }
    gone.push_back(name);
  }
  for (const std::string& name : gone) retire(name);
  std::map<std::string, SubscriptionReport> at_rest;
  for (const auto& row : rows) {
    const std::string& name = row.spec.name;
    if (row.state != store::SubscriptionState::active) {
      at_rest[name] = SubscriptionReport{
          .name = name, .state = store::to_string(row.state), .reason = row.reason};
      continue;
    }
    if (running_.contains(name)) continue;
    auto loop = make_loop(row);
    if (!loop) {
      if (loop.error().remedy == Remedy::reconnect) return pass(loop);
      // The others go on: a bad subscription stops itself only.
      complain(name, loop.error());
      at_rest[name] =
          SubscriptionReport{.name = name, .state = "broken", .reason = loop.error().text()};
      continue;
    }
    complaints_.erase(name);
    SubscriptionLoop* started = loop->get();
    {
      const std::scoped_lock lock(mutex_);
      running_[name] = Running{.loop = std::move(*loop), .rejection = {}};
    }
    started->start();
    pump_->add(started, started->start_cursor());
    log::info(
        "subscription started",
        {{"subscription", name}, {"sink", row.spec.sink}, {"config_version", row.config_version}});
  }
  const std::scoped_lock lock(mutex_);
  at_rest_ = std::move(at_rest);
  return {};
}

void Tenure::complain(const std::string& name, const Error& error) {
  std::string& said = complaints_[name];
  if (said == error.text()) return;
  said = error.text();
  log::error("subscription cannot start", {{"subscription", name}, {"reason", said}});
}

void Tenure::retire(const std::string& name) {
  const auto found = running_.find(name);
  SubscriptionLoop& loop = *found->second.loop;
  pump_->remove(&loop);
  const auto stopped = loop.stop(retire_grace(options_), true);
  Running retired;
  {
    // Out of the others' sight first: report() looks at every loop in the map.
    const std::scoped_lock lock(mutex_);
    retired = std::move(found->second);
    running_.erase(found);
  }
  // It starts again from its persisted cursor, which the settlement above has moved.
  const bool left = stopped == SubscriptionLoop::Stopped::in_a_call;
  shelve(std::move(retired.loop), stopped);
  // One that does not go on at once must not keep from others what it holds.
  if (!left) shelf_.rest(name);
}

void Tenure::shelve(std::unique_ptr<SubscriptionLoop> loop, SubscriptionLoop::Stopped stopped) {
  if (stopped == SubscriptionLoop::Stopped::in_a_call) {
    shelf_.leave(std::move(loop));
    return;
  }
  Remains remains = loop->take_remains();
  shelf_.put_back(loop->row(), std::move(remains));
}

StopReport Tenure::end(std::chrono::nanoseconds grace, bool settle) {
  StopReport report{.drained = true, .abandoned = 0};
  if (pump_) pump_->stop();
  std::map<std::string, Running> running;
  {
    const std::scoped_lock lock(mutex_);
    running.swap(running_);
  }
  std::vector<SubscriptionLoop::Stopped> stopped(running.size());
  std::vector<std::jthread> stopping;
  stopping.reserve(running.size());
  std::size_t at = 0;
  for (auto& [name, one] : running) {
    // Side by side, so that the grace period is one for all.
    stopping.emplace_back([&how = stopped[at++], loop = one.loop.get(), grace, settle] {
      how = loop->stop(grace, settle);
    });
  }
  stopping.clear();
  at = 0;
  for (auto& [name, one] : running) {
    if (stopped[at++] == SubscriptionLoop::Stopped::in_a_call) one.loop->leave();
  }
  std::unique_ptr<Settler> settler;
  {
    const std::scoped_lock lock(mutex_);
    settler = std::move(settler_);
  }
  settler.reset();  // writes what it was given; without the lock, since it may report a failure
  at = 0;
  for (auto& [name, one] : running) {
    const auto how = stopped[at++];
    const bool in_a_call = how == SubscriptionLoop::Stopped::in_a_call;
    report.drained = report.drained && !in_a_call && one.loop->drained();
    report.abandoned += in_a_call ? one.loop->window_events() : one.loop->abandoned();
    shelve(std::move(one.loop), how);
  }
  const std::scoped_lock lock(mutex_);
  pump_.reset();
  return report;
}

void Tenure::report(RelayReport& into) const {
  const std::scoped_lock lock(mutex_);
  if (pump_) {
    into.fetches = pump_->fetches();
    into.statements = pump_->statements();
  }
  if (settler_) into.statements += settler_->statements();
  for (const auto& [name, running] : running_) into.subscriptions.push_back(running.loop->report());
  for (const auto& [name, report] : at_rest_) into.subscriptions.push_back(report);
}

}  // namespace outbox::relay
