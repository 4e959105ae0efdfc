#include "relay/tenure.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "event/task_queue.hpp"
#include "relay/lease_core.hpp"
#include "store/text.hpp"

namespace outbox::relay {
namespace {

/// How long a subscription that is paused or changed waits for what is in flight: a fraction of the
/// lease, because changes of other subscriptions wait for it.
std::chrono::milliseconds retire_grace(const RelayOptions& options) { return options.lease / 4; }

/// The warning that there are no subscriptions is repeated after kWarnFirst, then after twice as
/// long, up to kWarnEvery.
constexpr std::chrono::seconds kWarnFirst{4};
constexpr std::chrono::seconds kWarnEvery{60};

Window::Limits make_window_limits(const RelayOptions& options) {
  return {.events = options.window_events,
          .bytes = options.window_bytes,
          .page_events = options.page_rows,
          .page_bytes = std::max<std::size_t>(options.window_bytes / 4, 1)};
}

feed::PumpOptions pump_options(const RelayOptions& options, feed::Wakeups& wakeups) {
  feed::PumpOptions pump;
  pump.wakeups = &wakeups;
  pump.page_rows = options.page_rows;
  pump.page_bytes = make_window_limits(options).page_bytes;
  pump.pace.idle = options.idle_poll;
  pump.pace.busy = std::min(pump.pace.busy, pump.pace.idle);
  pump.pace.arm = options.wake_up;
  if (options.publish_after == PublishAfter::replicated) {
    pump.standbys = store::Standbys{.count = options.replicated, .names = options.replicated_by};
    pump.standby_limit = options.replicated_timeout;
  }
  return pump;
}

/// Whether a subscription has this name. One that was reset has another id.
bool has_subscription(const std::vector<store::SubscriptionRow>& rows, const std::string& name) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row.spec.name == name; });
}

}  // namespace

Tenure::Tenure(store::Store& store, const RelayOptions& options, Configuration& configuration,
               SinkCache& sinks, Totals& totals, const TrustDeadline& trust,
               std::function<void()> bell)
    : store_(store),
      options_(options),
      configuration_(configuration),
      sinks_(sinks),
      totals_(totals),
      trust_(trust),
      bell_(std::move(bell)) {}

Tenure::~Tenure() { (void)end(std::chrono::nanoseconds(0), false); }

Status Tenure::begin(const EventId& relay, std::unique_ptr<store::Catalog> catalog) {
  relay_ = relay;
  catalog_ = std::move(catalog);
  OUTBOX_TRY(auto progress, store_.progress());
  OUTBOX_TRY(auto loader, store_.progress());
  OUTBOX_TRY(auto reader, store_.reader());
  OUTBOX_TRY(auto wakeup, store_.wakeup({.armed = options_.wake_up, .feed = options_.feed}));
  OUTBOX_TRY(auto trials, store_.trials());
  loader_ = std::move(loader);
  {
    const MutexLock lock(trials_mutex_);
    trials_ = std::move(trials);
  }
  const auto failed = [this](const Error& error) { fail_with(error); };
  settler_ = std::make_unique<Settler>(std::move(progress), totals_, failed);
  pump_ = std::make_unique<feed::Pump>(std::move(reader), std::move(wakeup),
                                       pump_options(options_, totals_.wakeups()), failed);
  settler_->start();
  return pump_->start();
}

void Tenure::fail_with(const Error& error) {
  {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = error;
  }
  bell_();
}

std::optional<Error> Tenure::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

SubscriptionLoop* Tenure::running(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = running_.find(name);
  return found == running_.end() ? nullptr : found->second.get();
}

std::vector<SubscriptionLoop*> Tenure::running() const {
  std::vector<SubscriptionLoop*> loops;
  const MutexLock lock(mutex_);
  for (const auto& [name, loop] : running_) loops.push_back(loop.get());
  return loops;
}

// ---- following the store

Status Tenure::update(const Holdings& holdings) {
  holdings_ = holdings;
  OUTBOX_TRY(stop_rejected());
  OUTBOX_TRY(const auto rows, catalog_->subscriptions());
  configuration_.compare(rows);
  OUTBOX_TRY(retire_changed(rows));
  OUTBOX_TRY(begin_types(rows));
  OUTBOX_TRY(start_new(rows));
  warn_of_no_subscriptions(rows);
  OUTBOX_TRY(write_troubles(rows));
  return warn_of_idle_filters(rows);
}

/// Writes rejections to the store, where `outbox status` shows them. The loop itself sends nothing
/// after one.
Status Tenure::stop_rejected() {
  for (SubscriptionLoop* loop : running()) {
    const auto rejection = loop->rejection();
    if (!rejection) continue;
    if (loop->replay() != 0) {
      OUTBOX_TRY(stop_replay(store_, loop->replay(), *rejection));
      OUTBOX_TRY(retire({loop}));
      continue;
    }
    OUTBOX_TRY(const bool stopped, catalog_->stop(loop->row().id, loop->holding().generation,
                                                  store::storable_text(rejection->error.text()),
                                                  rejection->seq, rejection->id));
    if (!stopped) continue;  // tried again at the next update
    OUTBOX_TRY(retire({loop}));
  }
  return {};
}

/// What this relay owns of the subscription's group. It is null if the relay owns no lanes of the
/// group, or owned them before the subscription came into the group.
const store::Holding* Tenure::find_holding(const store::SubscriptionRow& row) const {
  const auto found = holdings_.find(row.group);
  if (found == holdings_.end() || found->second.generation < row.group_generation) return nullptr;
  return &found->second;
}

Status Tenure::leave(const std::string& group) {
  std::vector<SubscriptionLoop*> leaving;
  for (SubscriptionLoop* loop : running()) {
    if (loop->row().group == group) leaving.push_back(loop);
  }
  holdings_.erase(group);
  return retire(leaving);
}

Status Tenure::retire_changed(const Rows& rows) {
  std::vector<SubscriptionLoop*> changed;
  for (SubscriptionLoop* loop : running()) {
    const store::SubscriptionRow& served = loop->row();
    const std::string& name = served.spec.name;
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.id == served.id; });
    if (row == rows.end() && has_subscription(rows, name)) {
      log::info("subscription was reset, it begins anew", {{"subscription", name}});
    } else if (row == rows.end()) {
      log::info("subscription was removed", {{"subscription", name}});
    } else if (row->spec.name != name) {
      log::info("subscription was renamed", {{"subscription", name}, {"name", row->spec.name}});
    } else if (row->state != store::SubscriptionState::active) {
      log::info("subscription delivers nothing until it is resumed",
                {{"subscription", name},
                 {"state", store::to_string(row->state)},
                 {"reason", row->reason}});
    } else if (row->left_out != served.left_out || row->paused_types != served.paused_types) {
      log::info("types of tasks have a subscription of their own, or were paused or resumed",
                {{"subscription", name}});
    } else if (row->config_version != served.config_version) {
      log::info("subscription was changed and starts again", {{"subscription", name}});
    } else if (const auto* const held = find_holding(*row);
               held == nullptr || *held != loop->holding()) {
      log::info("subscription has other lanes here now", {{"subscription", name}});
    } else if (row->replay != 0 && row->replay != loop->replay() && row->replay != served.replay) {
      log::info("live delivery waits for a replay",
                {{"subscription", name}, {"replay", row->replay}});
    } else if (loop->replayed() || (loop->replay() != 0 && loop->replay() != row->replay)) {
      log::info("the replay has ended here, live delivery goes on",
                {{"subscription", name}, {"replay", loop->replay()}});
    } else if (!loop->could_merge()) {
      std::int32_t& told = told_of_parked_[served.id];
      if (std::exchange(told, row->parked_version) != row->parked_version) loop->parked_changed();
      continue;
    }
    changed.push_back(loop);
  }
  return retire(changed);
}

/// Gives each subscription of a task type its first cursors, before the subscription of the queue
/// starts that leaves this type out. That one goes past the tasks of the type, so the type's own
/// subscription must begin where it stands, even if it is paused.
Status Tenure::begin_types(const Rows& rows) {
  for (const auto& row : rows) {
    const store::Holding* const holding = find_holding(row);
    if (holding == nullptr || !event::is_of_type(row.spec)) continue;
    const auto base = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return event::is_split_from(row.spec, candidate.spec) && candidate.group == row.group;
    });
    const auto begun = begun_types_.find(row.id);
    if (base == rows.end() || (begun != begun_types_.end() && begun->second == *holding)) continue;
    OUTBOX_TRY(loader_->begin_beside(base->id, row.id, holding->lanes, holding->generation));
    begun_types_[row.id] = *holding;
  }
  return {};
}

Status Tenure::start_new(const Rows& rows) {
  std::vector<SubscriptionReport> inactive;
  for (const auto& row : rows) {
    const std::string& name = row.spec.name;
    if (find_holding(row) == nullptr) continue;  // another relay delivers it
    if (row.state != store::SubscriptionState::active) {
      inactive.push_back(
          {.name = name, .state = store::to_string(row.state), .reason = row.reason});
      continue;
    }
    if (running(name) != nullptr) continue;
    // The queue of this type has no subscription beside which the type could begin.
    if (event::is_of_type(row.spec) && !begun_types_.contains(row.id)) continue;
    Status status = start(row);
    if (status) {
      broken_.erase(name);
      continue;
    }
    if (status.error().remedy == Remedy::reconnect) return status;
    // The others continue: a subscription that cannot start affects only itself.
    const std::string reason = status.error().text();
    if (std::exchange(broken_[name], reason) != reason)
      log::error("subscription cannot start", {{"subscription", name}, {"reason", reason}});
    inactive.push_back({.name = name, .state = "broken", .reason = reason});
  }
  const MutexLock lock(mutex_);
  inactive_ = std::move(inactive);
  return {};
}

Status Tenure::start(const store::SubscriptionRow& row) {
  OUTBOX_TRY(auto made, make_loop(row));
  SubscriptionLoop& loop = *made;
  {
    const MutexLock lock(mutex_);
    running_[row.spec.name] = std::move(made);
  }
  loop.start();
  loop.read_from(*pump_);
  log::info("subscription started", {{"subscription", row.spec.name},
                                     {"sink", row.spec.sink},
                                     {"config_version", row.config_version}});
  return {};
}

Result<std::unique_ptr<SubscriptionLoop>> Tenure::make_loop(const store::SubscriptionRow& row) {
  OUTBOX_TRY(auto renderer, format::Renderer::create(row.spec));
  // The sink is taken before the store is asked, so that a subscription without a sink costs the
  // store nothing, and its run does not begin.
  OUTBOX_TRY(RetainedSink sink, sinks_.take(row));
  auto beginning = begin_loop(row);
  if (!beginning) {
    sinks_.put_back(row, std::move(sink));
    return pass(beginning);
  }
  totals_.name(row.id, row.spec.name, row.spec.sink);
  const store::Holding holding = beginning->options.holding;
  return std::make_unique<SubscriptionLoop>(
      std::move(beginning->row), std::move(renderer), beginning->strands, beginning->parked,
      beginning->options, std::move(sink), *settler_, trust_, listen(row.id, holding));
}

/// Reads what the store has for a loop that begins now.
Result<Tenure::Beginning> Tenure::begin_loop(const store::SubscriptionRow& row) {
  const store::Holding holding = *find_holding(row);
  Beginning beginning{.row = row};
  OUTBOX_TRY(beginning.strands, load_strands(row, holding));
  const auto failed = [this](const Error& error) { fail_with(error); };
  std::shared_ptr<ReplayRun> replay;
  if (row.replay != 0) {
    OUTBOX_TRY(auto replays, store_.replays());
    OUTBOX_TRY(replay, begin_replay(std::move(replays), row.replay, holding.lanes,
                                    beginning.strands, make_window_limits(options_), failed));
    if (!replay) beginning.row.replay = 0;
    if (replay && replay->strands.empty()) replay = nullptr;  // others still have lanes to do
  }
  if (replay) {
    beginning.strands = replay->strands;
  } else {
    OUTBOX_TRY(beginning.parked,
               loader_->parked_keys(row.id, holding.lanes, row.spec.on_dead == OnDead::block));
    told_of_parked_[row.id] = row.parked_version;
  }
  OUTBOX_TRY(auto trial, begin_runs(row, holding, beginning.strands));
  beginning.options = {.window = make_window_limits(options_),
                       .settle_interval = options_.settle_interval,
                       .settle_events = options_.settle_events,
                       .holding = holding,
                       .trial = std::move(trial),
                       .replay = std::move(replay)};
  return beginning;
}

/// Loads the strands. If lanes have become one strand again, or if the subscription has no row
/// under this generation, a claim comes first. It continues the totals in one row.
Result<std::vector<store::Strand>> Tenure::load_strands(const store::SubscriptionRow& row,
                                                        const store::Holding& holding) {
  auto strands = loader_->load(row.id, holding.lanes);
  if (!strands) return strands;
  const bool claimed =
      std::all_of(strands->begin(), strands->end(), [&](const store::Strand& strand) {
        return strand.generation == holding.generation && strand.rows == 1;
      });
  if (claimed) return strands;
  OUTBOX_TRY(loader_->claim(row.id, holding.lanes, holding.generation));
  return loader_->load(row.id, holding.lanes);
}

Result<TrialGate> Tenure::begin_runs(const store::SubscriptionRow& row,
                                     const store::Holding& holding,
                                     const std::vector<store::Strand>& strands) {
  // Without parking there is nothing to be done about an event that kills the relay.
  TrialGate trial(row.spec.on_reject == OnReject::park ? options_.window_events : 0);
  const MutexLock lock(trials_mutex_);
  std::size_t source = TrialGate::kRetries;
  for (const store::Strand& strand : strands) {
    const store::Cursor& cursor = strand.cursor;
    std::string place = cursor.s1 + " " + cursor.s2 + " " + std::to_string(cursor.position);
    if (row.replay != 0) place += " of replay " + std::to_string(row.replay);
    OUTBOX_TRY(auto former, trials_->former(row.id, strand.lanes, relay_));
    const auto beginning = trial.add(++source, std::move(former), place);
    OUTBOX_TRY(trials_->begin(row.id, {.lanes = strand.lanes, .generation = holding.generation},
                              relay_, place, beginning.range, beginning.keep));
  }
  if (trial.on())
    log::warn(
        "relays died here again and again: growing numbers of events are tried to find out why",
        {{"subscription", row.spec.name}});
  return trial;
}

SubscriptionLoop::Listener Tenure::listen(std::int32_t subscription,
                                          const store::Holding& holding) {
  return {
      .room = [this] { pump_->room(); },
      .rejected = bell_,
      .distrusted = [this] { fail_with(lease_lost("the lease could not be renewed in time")); },
      .try_range = [this, subscription, holding](const store::Trials::Range& range)
          -> std::optional<std::vector<std::int64_t>> {
        const MutexLock lock(trials_mutex_);
        auto dead = trials_->open(subscription, holding, range);
        if (dead) return std::move(*dead);
        fail_with(dead.error());
        return {};
      },
      .end_trial =
          [this, subscription, holding](const std::vector<std::int64_t>& keep) {
            const MutexLock lock(trials_mutex_);
            const Status status = trials_->close(subscription, holding, keep);
            if (!status) fail_with(status.error());
          },
      .measured = [this,
                   subscription](const SendTotals& sends) { totals_.add(subscription, sends); },
      .replayed = bell_,
  };
}

Status Tenure::end_run(const SubscriptionLoop& loop) {
  const MutexLock lock(trials_mutex_);
  return trials_->end(loop.row().id, loop.holding());
}

/// Ends these loops, all within one grace period. The subscriptions may start again at once, from
/// the cursors of their last settlements.
Status Tenure::retire(const std::vector<SubscriptionLoop*>& loops) {
  for (SubscriptionLoop* loop : loops) loop->stop_reading(*pump_);
  {
    std::vector<std::jthread> stopping;
    stopping.reserve(loops.size());
    for (SubscriptionLoop* loop : loops) {
      stopping.push_back(start_thread("ob-retire", [this, loop](const std::stop_token&) {
        if (!loop->stop(retire_grace(options_), true)) loop->abandon();
      }));
    }
  }
  std::string unwritten;
  for (SubscriptionLoop* loop : loops) {
    const std::string name = loop->row().spec.name;
    const bool ended = loop->ended();
    if (loop->has_unwritten_rows()) unwritten = name;
    if (ended) {
      if (Status status = end_run(*loop); !status) fail_with(status.error());
    }
    std::unique_ptr<SubscriptionLoop> retired;
    {
      // The loop is removed from the map first, because report() reads every loop in it.
      const MutexLock lock(mutex_);
      retired = std::move(running_.extract(name).mapped());
    }
    judged_filters_.erase(name);
    sinks_.put_back(std::move(retired));
    // If it does not start again at once, another subscription or relay may need the file or
    // connection that the sink holds.
    if (ended) sinks_.close(name);
  }
  if (unwritten.empty()) return {};
  // A loop that started before the rows are written would settle the same events again. Under a new
  // generation it does not.
  return fail(Errc::unavailable, Remedy::reconnect,
              "subscription " + unwritten + ": the store did not take its last settlement in time",
              "delivery starts again from the persisted cursors");
}

// ---- warnings and reports

/// Warns of a filter that has matched nothing, once per tenure. A filter with a typing error looks
/// like one that works, because nothing fails and nothing is pending.
Status Tenure::warn_of_idle_filters(const Rows& rows) {
  for (const auto& row : rows) {
    const SubscriptionLoop* loop = running(row.spec.name);
    if (loop == nullptr || judged_filters_.contains(row.spec.name)) continue;
    if (event::is_of_queue(row.spec)) continue;
    const SubscriptionReport here = loop->report();
    if (here.delivered == 0 && here.filtered < store::SubscriptionProgress::kManyFiltered) continue;
    store::SubscriptionProgress total;
    total.id = row.id;
    if (here.delivered == 0) {
      OUTBOX_TRY(catalog_->add_totals(total));
      // The events that were passed are settled a moment later.
      if (total.acked == 0 && !total.matches_nothing()) continue;
    }
    judged_filters_.insert(row.spec.name);
    if (!total.matches_nothing()) continue;
    log::warn(
        "the filter has matched nothing",
        {{"subscription", row.spec.name},
         {"filtered", total.filtered},
         {"hint", "compare event_types, aggregate_types and match_headers with what is written"}});
  }
  return {};
}

void Tenure::warn_of_no_subscriptions(const Rows& rows) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (!rows.empty()) {
    empty_warnings_ = 0;
    return;
  }
  if (empty_warnings_ > 0 && now < warn_again_at_) return;
  warn_again_at_ = now + std::min(kWarnFirst * (1 << std::min(empty_warnings_, 10)), kWarnEvery);
  ++empty_warnings_;
  log::warn(
      "there are no subscriptions: nothing is delivered",
      {{"hint",
        "outbox subscription apply -c FILE, or outbox relay -c FILE, with a [subscription.NAME] section"}});
}

/// Each trouble is compared with the table, not with what was written last, because the row may
/// come from the previous owner.
Status Tenure::write_troubles(const Rows& rows) {
  for (const auto& row : rows) {
    const bool active = row.state == store::SubscriptionState::active;
    // A sink may return any bytes as its error; invalid text must not fail the update.
    const std::string trouble =
        active ? store::storable_text(describe_trouble(row.spec.name)) : std::string();
    const store::Holding* const holding = find_holding(row);
    if (trouble == row.trouble || holding == nullptr) continue;
    OUTBOX_TRY(catalog_->report_trouble(row.id, holding->generation, trouble, relay_));
  }
  return {};
}

std::string Tenure::describe_trouble(const std::string& name) const {
  if (const SubscriptionLoop* loop = running(name)) {
    std::string reason = loop->report().reason;
    return reason.empty() ? pump_->waits() : reason;
  }
  const auto broken = broken_.find(name);
  return broken == broken_.end() ? std::string() : broken->second;
}

void Tenure::report(RelayReport& into) const {
  into.fetches = pump_->fetches();
  into.statements = pump_->statements() + settler_->statements();
  store::FeedState feed = pump_->feed();
  if (feed.streams) into.feed = "wal";
  into.feed_trouble = std::move(feed.trouble);
  const MutexLock lock(mutex_);
  for (const auto& [name, loop] : running_) into.subscriptions.push_back(loop->report());
  into.subscriptions.insert(into.subscriptions.end(), inactive_.begin(), inactive_.end());
}

// ---- the end

StopReport Tenure::end(std::chrono::nanoseconds grace, bool settle) {
  if (pump_) pump_->stop();
  std::map<std::string, std::unique_ptr<SubscriptionLoop>> loops;
  {
    const MutexLock lock(mutex_);
    loops.swap(running_);
  }
  {
    // The loops stop in parallel, so that all share one grace period.
    std::vector<std::jthread> stopping;
    stopping.reserve(loops.size());
    for (const auto& [name, loop] : loops) {
      stopping.push_back(
          start_thread("ob-stop", [&loop = *loop, grace, settle](const std::stop_token&) {
            (void)loop.stop(grace, settle);
          }));
    }
  }
  for (const auto& [name, loop] : loops) {
    if (!loop->ended()) loop->abandon();
  }
  settler_.reset();  // the destructor writes the queue first
  StopReport report{.drained = true, .abandoned = 0};
  for (auto& [name, loop] : loops) {
    const bool ended = loop->ended();
    // Without the end of its run a loop looks like a death, which harms nothing.
    if (settle && ended) (void)end_run(*loop);
    report.drained = report.drained && ended && loop->drained();
    report.abandoned += ended ? loop->abandoned() : loop->window_events();
    sinks_.put_back(std::move(loop));
  }
  pump_.reset();
  return report;
}

}  // namespace outbox::relay
