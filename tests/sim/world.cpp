// The scheduler decides in what order the log, the relays and the faults take their steps.
#include "sim/world.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "sim/environment.hpp"
#include "sim/relay.hpp"

namespace outbox::sim {
namespace {

class World {
 public:
  explicit World(const SimOptions& options) : world_(options) { begin_relay(); }

  SimResult run();

 private:
  void one_step();
  void make_poison();
  void change_destination();
  void begin_relay() {
    relays_.push_back(std::make_unique<SimRelay>(world_));
    world_.trace("a relay begins, generation ", world_.generation);
  }
  void crash();
  void lose_store();
  void take_over();
  void bury_zombie();
  void allow_duplicates(const SimRelay& relay) {
    world_.checks.allow_duplicates(2 * relay.window.events() + 120);
  }
  void check() {
    const bool steady = world_.result.crashes + world_.result.takeovers == 0;
    world_.checks.step(steady);
  }
  void heal();
  [[nodiscard]] bool complete() const;
  [[nodiscard]] SimResult result() const;
  [[nodiscard]] bool broken() const { return !world_.checks.broken().empty(); }

  Environment world_;
  std::vector<std::unique_ptr<SimRelay>> relays_;  ///< The last one owns the lanes.
};

SimResult World::run() {
  for (int step = 0; step < world_.options.steps && !broken(); ++step) {
    one_step();
    check();
  }
  if (!broken()) heal();
  return result();
}

void World::one_step() {
  const SimOptions& options = world_.options;
  world_.now += std::chrono::milliseconds(1);
  for (int i = 0; i < 3; ++i) world_.log.begin_transaction();
  for (int i = 0; i < 3; ++i) world_.log.finish_transaction();
  if (options.poison && world_.poison.empty() && world_.log.events().size() > 40) make_poison();
  change_destination();
  for (auto& relay : relays_) relay->drive();
  if (world_.random.chance(options.crash_percent)) crash();
  if (world_.random.chance(options.takeover_percent)) take_over();
  if (options.store_loss_percent != 0 && world_.random.chance(options.store_loss_percent))
    lose_store();
  if (relays_.size() > 1 && world_.random.chance(10)) bury_zombie();
}

void World::make_poison() {
  world_.poison.insert(world_.log.events().back().view.seq + 3);
  for (auto& relay : relays_) relay->sink.poison = world_.poison;
}

void World::change_destination() {
  if (world_.options.outage_permille == 0) return;
  if (world_.down_for > 0) {
    --world_.down_for;
  } else if (world_.random.below(1000) < world_.options.outage_permille) {
    ++world_.result.outages;
    world_.down_for = 2 + static_cast<int>(world_.random.below(40));
    world_.trace("the destination goes down for ", world_.down_for, " ms");
  }
  for (auto& relay : relays_) relay->sink.outages.go_down(world_.down_for > 0);
}

void World::crash() {
  ++world_.result.crashes;
  world_.trace("the relay crashes");
  allow_duplicates(*relays_.back());
  relays_.back()->crash();
  relays_.pop_back();
  begin_relay();
  world_.checks.ledger_from(world_.persisted);
}

void World::lose_store() {
  ++world_.result.store_losses;
  world_.trace("the connection to the store breaks");
  relays_.back()->lose_store();
  relays_.back() = std::make_unique<SimRelay>(world_, relays_.back().get());
  world_.checks.ledger_from(world_.persisted);
}

/// The former owner does not know of it yet and continues for a while.
void World::take_over() {
  ++world_.result.takeovers;
  world_.trace("another relay takes over");
  allow_duplicates(*relays_.back());
  begin_relay();
  world_.checks.ledger_from(world_.persisted);
}

void World::bury_zombie() {
  world_.trace("a zombie ends");
  allow_duplicates(*relays_.front());
  relays_.front()->crash();
  relays_.erase(relays_.begin());
}

/// Ends all faults. After that everything committed must arrive.
void World::heal() {
  world_.log.finish_all();
  while (relays_.size() > 1) bury_zombie();
  SimRelay& relay = *relays_.back();
  world_.down_for = 0;
  relay.sink.outages.go_down(false);
  relay.sink.fail_percent = relay.sink.sick_percent = 0;
  for (int step = 0; step < 5000; ++step) {
    world_.now += std::chrono::milliseconds(1);
    relay.drive();
    check();
    if (broken() || complete() || relay.state.mode() == relay::Mode::rejected) return;
  }
  world_.checks.broke("liveness: not everything arrived after the faults ended");
}

bool World::complete() const {
  const relay::DeliveryCore& core = relays_.back()->core;
  if (!core.idle() && !world_.options.lazy_settling) return false;
  // Nothing is pending, so nothing may count as abandoned.
  if (core.idle() && !core.unsettled_acks().empty()) return false;
  const auto& events = world_.log.events();
  return std::all_of(events.begin(), events.end(), [this](const LoggedEvent& event) {
    const std::int64_t seq = event.view.seq;
    return event.committed_at == 0 || !world_.options.wanted(seq) || world_.topic.has(seq) ||
           world_.parked.rests(seq);
  });
}

SimResult World::result() const {
  SimResult result = world_.result;
  result.broken = world_.checks.broken();
  for (const auto& relay : relays_) result.lies += relay->sink.lies;
  result.delivered = world_.topic.distinct();
  result.duplicates = world_.topic.duplicates();
  for (const auto& [seq, row] : world_.parked.rows())
    result.dead += row.state == store::ParkedState::dead ? 1 : 0;
  for (const auto& event : world_.log.events()) result.committed += event.committed_at != 0 ? 1 : 0;
  return result;
}

}  // namespace

SimResult run(const SimOptions& options) { return World(options).run(); }

}  // namespace outbox::sim
