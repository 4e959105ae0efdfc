// The scheduler of a world of groups.
#include "sim/groups/world.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

#include "sim/groups/process.hpp"

namespace outbox::sim {
namespace {

class GroupWorld {
 public:
  explicit GroupWorld(const GroupOptions& options) : world_(options) { start(); }

  SimResult run();

 private:
  void one_step();
  void faults();
  void start() {
    if (relays_.size() < world_.options.most_relays)
      relays_.push_back(std::make_unique<SimProcess>(world_, ++started_, in_transit_));
  }
  void change_destination();
  void decide();
  void pause_type();
  void change_replay();
  void kill();
  void crash(std::size_t which);
  void crash_database();
  void write_late();
  void heal();
  [[nodiscard]] bool often(unsigned of_thousand) {
    return of_thousand != 0 && world_.random.below(1000) < of_thousand;
  }
  [[nodiscard]] SimProcess& any() { return *relays_[world_.random.below(relays_.size())]; }
  [[nodiscard]] bool broken() const { return !world_.checks.broken().empty(); }

  GroupShared world_;
  std::vector<InTransit> in_transit_;
  std::vector<std::unique_ptr<SimProcess>> relays_;
  std::uint64_t started_{0};
  std::uint64_t lies_{0};
};

SimResult GroupWorld::run() {
  for (int step = 0; step < world_.options.steps && !broken(); ++step) {
    world_.database.write();
    if (world_.random.chance(50)) world_.database.write();
    faults();
    one_step();
  }
  if (!broken()) heal();
  if (!broken()) world_.checks.verify(world_.tables.rows());
  SimResult result = world_.result;
  result.broken = world_.checks.broken();
  result.committed = world_.database.events();
  result.delivered = world_.topic.distinct();
  result.duplicates = world_.topic.duplicates();
  result.void_rows = world_.checks.void_rows();
  result.lies = lies_;
  for (const auto& relay : relays_) result.lies += relay->lies();
  return result;
}

void GroupWorld::one_step() {
  world_.now += std::chrono::milliseconds(1);
  for (std::size_t i = 0; i < 4 * relays_.size() && !broken(); ++i) {
    any().step();
    world_.checks.arrivals();
    kill();
  }
  for (const auto& relay : relays_) {
    if (world_.options.tasks && relay->has_left()) world_.runs.process_is_gone(relay->id());
  }
  std::erase_if(relays_, [](const auto& relay) { return relay->has_left(); });
  if (relays_.empty()) start();
}

void GroupWorld::faults() {
  const GroupOptions& options = world_.options;
  if (often(options.joins)) start();
  if (often(options.leaves)) any().leave();
  if (often(options.crashes)) crash(world_.random.below(relays_.size()));
  if (often(options.pauses)) any().stop_for(static_cast<int>(world_.random.below(120)), false);
  if (often(options.freezes)) any().stop_for(static_cast<int>(world_.random.below(120)), true);
  if (often(options.jumps)) {
    world_.server_offset +=
        std::chrono::milliseconds(static_cast<int>(world_.random.below(200)) - 50);
    world_.trace("the server's clock jumps");
  }
  if (often(options.lost_connections)) {
    ++world_.result.store_losses;
    SimProcess& relay = any();
    if (!options.tasks || world_.random.chance(70)) relay.lose_connection();
    if (options.tasks && world_.random.chance(50)) relay.lose_runs_connection();
  }
  if (often(options.database_crashes)) crash_database();
  if (often(options.people)) decide();
  if (often(options.pauses_of_type)) pause_type();
  change_destination();
  if (often(options.replays)) change_replay();
  if (!in_transit_.empty() && world_.random.chance(5)) write_late();
  if (world_.random.chance(3)) world_.database.flush();
}

void GroupWorld::change_destination() {
  if (world_.down_for > 0) {
    --world_.down_for;
  } else if (often(world_.options.outages)) {
    ++world_.result.outages;
    world_.down_for = 2 + static_cast<int>(world_.random.below(40));
    world_.trace("the destination goes down for ", world_.down_for, " ms");
  }
  for (const auto& relay : relays_) relay->go_down(world_.down_for > 0);
}

void GroupWorld::change_replay() {
  const store::Replay& newest = world_.tables.replay().replay;
  if (newest.state == store::ReplayState::running && newest.id != 0) {
    if (!world_.random.chance(30)) return;
    world_.trace("a person stops the replay");
    return world_.tables.change_replay(store::ReplayState::stopped);
  }
  if (newest.state == store::ReplayState::stopped && world_.random.chance(80)) {
    ++world_.result.replays_resumed;
    world_.trace("a person resumes the replay");
    return world_.tables.change_replay(store::ReplayState::running);
  }
  const std::int64_t last = world_.database.sequence();
  if (last < 10) return;
  ++world_.result.replays;
  const auto first =
      1 + static_cast<std::int64_t>(world_.random.below(static_cast<std::uint64_t>(last)));
  const auto length =
      static_cast<std::int64_t>(world_.random.below(static_cast<std::uint64_t>(last - first + 1)));
  world_.tables.start_replay(first, first + length);
  world_.trace("a person starts a replay of seqs ", first, " to ", first + length);
  world_.checks.replay_begins(world_.tables.replay());
}

void GroupWorld::pause_type() {
  ++world_.result.type_pauses;
  const Catalog& catalog = world_.tables.catalog();
  if (!catalog.has_type()) {
    world_.trace("a person pauses the type");
    return world_.tables.set_apart(true);
  }
  world_.trace("a person ", catalog.is_active() ? "pauses" : "resumes", " the type");
  world_.tables.set_active(!catalog.is_active());
}

/// A person retries or discards a parked event, in most cases a dead one.
void GroupWorld::decide() {
  const bool of_type = world_.tables.catalog().has_type() && world_.random.chance(30);
  const std::int32_t subscription = of_type ? kOfType : kSubscription;
  const auto& rows = world_.tables.parked(subscription).rows();
  if (rows.empty()) return;
  // Ready rows are few and do not last, so a person who sees one decides about it.
  auto row = std::ranges::find_if(
      rows, [](const auto& one) { return one.second.state == store::ParkedState::ready; });
  const bool ready = row != rows.end();
  if (!ready) {
    row = rows.begin();
    std::advance(row, static_cast<std::ptrdiff_t>(world_.random.below(rows.size())));
  }
  const bool dead = row->second.state == store::ParkedState::dead;
  if (!dead && !ready && world_.random.chance(80)) return;
  const bool discard = world_.random.chance(50);
  const bool runs = row->second.state == store::ParkedState::running;
  const std::int64_t seq = row->first;
  const std::size_t number = number_of(row->second.event.id);
  world_.trace("a person ", discard ? "discards" : "retries", " event ", number);
  if (discard && !runs) {
    world_.checks.discarded(number);
    world_.runs.decided(number);
  }
  world_.tables.decide(discard, subscription, seq, world_.server_now());
  if (discard && !runs) world_.runs.is_discarded(subscription, seq);
  ++world_.result.decisions;
  world_.result.ready_decisions += ready ? 1 : 0;
}

/// Crashes the process whose handler has killed it.
void GroupWorld::kill() {
  for (std::size_t which = 0; which < relays_.size(); ++which) {
    if (!relays_[which]->is_killed()) continue;
    ++world_.result.kills;
    crash(which);
    return start();
  }
}

void GroupWorld::crash(std::size_t which) {
  ++world_.result.crashes;
  relays_[which]->crash();
  lies_ += relays_[which]->lies();
  relays_.erase(relays_.begin() + static_cast<std::ptrdiff_t>(which));
  if (relays_.empty()) start();
}

/// Crashes the database, so that all connections break.
void GroupWorld::crash_database() {
  ++world_.result.database_crashes;
  world_.trace("the database crashes");
  world_.checks.arrivals();
  world_.checks.lost(world_.database.crash());
  world_.tables.crash();
  world_.checks.begin_again(world_.tables.rows());
  world_.checks.forget_unsettled();
  for (const auto& relay : relays_) relay->lose_connection();
}

/// Writes the settlements of a tenure that has ended.
void GroupWorld::write_late() {
  const InTransit late = in_transit_.front();
  in_transit_.erase(in_transit_.begin());
  (void)world_.write(late.batch, late.incarnation, false);
}

/// Ends all faults. After that everything committed must arrive and be settled.
void GroupWorld::heal() {
  world_.database.finish_writers();
  world_.healed = true;
  if (world_.tables.replay().replay.state == store::ReplayState::stopped)
    world_.tables.change_replay(store::ReplayState::running);
  if (world_.tables.catalog().has_type()) world_.tables.set_active(true);
  world_.down_for = 0;
  for (const auto& relay : relays_) {
    relay->heal();
    relay->go_down(false);
  }
  int too_many = 0;
  for (int step = 0; step < 20000; ++step) {
    one_step();
    if (broken()) return;
    const bool rest = std::all_of(relays_.begin(), relays_.end(),
                                  [](const auto& relay) { return relay->at_rest(); });
    if (!rest || !world_.checks.complete()) continue;
    if (!world_.options.tasks) return;
    too_many = 0;
    for (const auto& relay : relays_) {
      if (relay->keys_too_many() != 0) too_many = relay->keys_too_many();
    }
    if (too_many == 0) return world_.runs.all_ended();
  }
  if (too_many > 0) return world_.checks.broke("a key is held back that has no row any more");
  if (too_many < 0) return world_.checks.broke("a key is not held back that has a row");
  for (const store::SubscriptionRow& subscription : world_.tables.catalog().rows()) {
    for (const auto& [seq, row] : world_.tables.parked(subscription.id).rows())
      world_.trace("event ", number_of(row.event.id), " (seq ", seq, ", ", row.event.aggregate_id,
                   ") of ", subscription.spec.name, " is left, ", store::to_string(row.state),
                   ", attempts ", row.attempts);
  }
  world_.checks.broke("liveness: not everything arrived after the faults ended");
}

}  // namespace

SimResult run(const GroupOptions& options) { return GroupWorld(options).run(); }

}  // namespace outbox::sim
