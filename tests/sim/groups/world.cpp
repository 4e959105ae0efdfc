// The scheduler of a world of groups.
#include "sim/groups/world.hpp"

#include <algorithm>
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
    any().lose_connection();
  }
  if (often(options.database_crashes)) crash_database();
  if (!in_transit_.empty() && world_.random.chance(5)) write_late();
  if (world_.random.chance(3)) world_.database.flush();
}

void GroupWorld::crash(std::size_t which) {
  ++world_.result.crashes;
  relays_[which]->crash();
  lies_ += relays_[which]->lies();
  relays_.erase(relays_.begin() + static_cast<std::ptrdiff_t>(which));
  if (relays_.empty()) start();
}

/// All connections break.
void GroupWorld::crash_database() {
  ++world_.result.database_crashes;
  world_.trace("the database crashes");
  world_.checks.arrivals();
  world_.checks.lost(world_.database.crash());
  world_.tables.crash();
  world_.checks.begin_again(world_.tables.rows());
  for (const auto& relay : relays_) relay->lose_connection();
}

/// A settlement of a tenure that has ended.
void GroupWorld::write_late() {
  const InTransit late = in_transit_.front();
  in_transit_.erase(in_transit_.begin());
  (void)world_.tables.append(late.rows, late.incarnation, false);
  world_.checks.follow(world_.tables.rows());
}

/// No more faults: everything committed must arrive and be settled.
void GroupWorld::heal() {
  world_.database.finish_writers();
  for (const auto& relay : relays_) relay->heal();
  for (int step = 0; step < 20000; ++step) {
    one_step();
    if (broken()) return;
    const bool rest = std::all_of(relays_.begin(), relays_.end(),
                                  [](const auto& relay) { return relay->at_rest(); });
    if (rest && world_.checks.complete(world_.tables)) return;
  }
  world_.checks.broke("liveness: not everything arrived after the faults ended");
}

}  // namespace

SimResult run(const GroupOptions& options) { return GroupWorld(options).run(); }

}  // namespace outbox::sim
