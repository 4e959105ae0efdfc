// Which relay owns which lanes (docs/design/groups.md). Each relay has a row with a heartbeat; each
// lane of a group has a row with its owner and the generation.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "store/ownership.hpp"
#include "store/postgres/parts.hpp"
#include "subscription/group.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresLaneOwners final : public LaneOwners {
 public:
  PostgresLaneOwners(Connection connection, const EventId& relay)
      : connection_(std::move(connection)), id_(relay) {}

  [[nodiscard]] Result<Fleet> look() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::fleet));
    Fleet fleet;
    std::map<std::string, Group> groups;
    for (int row = 0; row < rows.size(); ++row) {
      const std::string_view what = rows.bytes(row, 0);
      if (what == "outbox") {
        fleet.outbox = rows.text(row, 1);
        continue;
      }
      if (what == "member") {
        fleet.members.push_back(read_member(rows, row, 2, 5));
        continue;
      }
      Group& group = groups[rows.text(row, 1)];
      if (what == "group") {
        group.has_subscriptions = true;
        group.least_generation = rows.int8(row, 4);
      } else {
        group.owners.push_back(
            {.owner = rows.is_null(row, 2) ? std::nullopt : std::optional(rows.uuid(row, 2)),
             .lanes = static_cast<LaneMask>(rows.int8(row, 3)),
             .generation = rows.int8(row, 4)});
      }
    }
    for (auto& [name, group] : groups) {
      group.name = name;
      group.one_owner = subscription::has_one_owner(name);
      fleet.groups.push_back(std::move(group));
    }
    forget_heartbeats(fleet);
    return fleet;
  }

  [[nodiscard]] Result<std::optional<Holding>> change(const std::string& group,
                                                      LaneMask wanted) override {
    Holding holding;
    std::vector<std::string> dead;
    Status status = connection_.transact([&]() -> Result<Decision> {
      holding = {};
      dead.clear();
      // The change must survive a crash of the database.
      connection_.send(&Queries::flushed);
      connection_.send(&Queries::plan_settings);
      connection_.send(&Queries::lock_fleet);
      connection_.send(&Queries::is_member, {id_});
      connection_.send(&Queries::make_lanes, {group});
      OUTBOX_TRY(const auto locked, connection_.finish());
      if (!locked[3].boolean(0, 0)) return fail(no_member());
      OUTBOX_TRY(const FreeLanes free, lock_free(group, dead));
      std::int64_t newest = locked[2].int8(0, 0);
      holding.lanes = free.all & wanted;
      // Lanes that stay free get a new generation, too, but another one: a late row of their former
      // owner must not count for only some of its lanes.
      const LaneMask rest = free.used & ~holding.lanes;
      if (rest != 0) give(group, Param::null(), rest, ++newest);
      if (holding.lanes != 0) {
        holding.generation = ++newest;
        give(group, id_, holding.lanes, newest);
      }
      connection_.send(&Queries::raise_generation, {newest});
      OUTBOX_TRY(connection_.finish());
      return Decision::commit;
    });
    // Another relay holds the locks.
    if (!status && status.error().origin == "pg:55P03") return std::optional<Holding>{};
    if (!status) return pass(status);
    for (const std::string& name : dead)
      log::warn("lanes taken over",
                {{"group", group}, {"from", name}, {"generation", holding.generation}});
    return holding;
  }

 private:
  /// A heartbeat, and when we first saw it, by the monotonic clock.
  struct Heartbeat {
    std::int64_t at{0};
    std::chrono::steady_clock::time_point since;
  };

  static Error no_member() {
    return fail(Errc::lease_lost, Remedy::retry_call, "another relay took this one for dead")
        .value();
  }

  /// `column` is the first column of {member}.
  [[nodiscard]] Member read_member(const Rows& rows, int row, int id, int column) {
    Member member{.id = rows.uuid(row, id),
                  .name = rows.text(row, column),
                  .groups = subscription::split_groups(rows.bytes(row, column + 1)),
                  .alive = true};
    if (member.id == id_) return member;
    const bool expired = rows.boolean(row, column + 2);
    const ProcessIdentity process{.boot_id = rows.text(row, column + 3),
                                  .pid_ns = rows.text(row, column + 4),
                                  .pid = rows.int8(row, column + 5),
                                  .started = rows.int8(row, column + 6)};
    const bool silent = is_silent(member.id, rows.int8(row, column + 7),
                                  std::chrono::milliseconds(rows.int8(row, column + 8)));
    member.alive = !expired && !silent && !is_gone(process, self_);
    return member;
  }

  /// This uses our own clock: the server's may be set back, and then an old heartbeat is in the
  /// future.
  [[nodiscard]] bool is_silent(const EventId& relay, std::int64_t heartbeat,
                               std::chrono::milliseconds lease) {
    const auto now = std::chrono::steady_clock::now();
    Heartbeat& seen = seen_[relay];
    if (seen.at != heartbeat || seen.since == std::chrono::steady_clock::time_point{})
      seen = {.at = heartbeat, .since = now};
    return now - seen.since > lease;
  }

  void forget_heartbeats(const Fleet& fleet) {
    std::set<EventId> known;
    for (const Member& member : fleet.members) known.insert(member.id);
    std::erase_if(seen_, [&](const auto& entry) { return !known.contains(entry.first); });
  }

  /// Lanes that no other live relay owns.
  struct FreeLanes {
    LaneMask all{0};
    LaneMask used{0};  ///< Those of `all` that had an owner before.
  };

  /// Locks the owners' rows and the lanes, so that they do not change before the transaction ends.
  /// Dead owners are removed.
  [[nodiscard]] Result<FreeLanes> lock_free(const std::string& group,
                                            std::vector<std::string>& dead) {
    connection_.send(&Queries::lock_owners, {group});
    connection_.send(&Queries::lock_lanes, {group});
    OUTBOX_TRY(const auto locked, connection_.finish());
    std::set<EventId> living;
    for (int row = 0; row < locked[0].size(); ++row) {
      const Member owner = read_member(locked[0], row, 0, 1);
      if (owner.id == id_) continue;
      if (owner.alive) {
        living.insert(owner.id);
      } else {
        connection_.send(&Queries::remove_member, {owner.id});
        dead.push_back(owner.name);
      }
    }
    FreeLanes free;
    const Rows& lanes = locked[1];
    for (int row = 0; row < lanes.size(); ++row) {
      if (!lanes.is_null(row, 1) && living.contains(lanes.uuid(row, 1))) continue;
      const LaneMask lane = LaneMask{1} << static_cast<unsigned>(lanes.int4(row, 0));
      free.all |= lane;
      if (lanes.int8(row, 2) > 0) free.used |= lane;
    }
    return free;
  }

  void give(const std::string& group, Param owner, LaneMask lanes, std::int64_t generation) {
    const auto mask = static_cast<std::int64_t>(lanes);
    connection_.send(&Queries::give_lanes, {owner, group, mask, generation});
    connection_.send(&Queries::claim, {group, Param::null(), mask, generation, std::move(owner)});
  }

  Connection connection_;
  const EventId id_;
  const ProcessIdentity self_{this_process()};
  std::map<EventId, Heartbeat> seen_;
};

}  // namespace

std::unique_ptr<LaneOwners> make_lane_owners(Connection connection, const EventId& relay) {
  return std::make_unique<PostgresLaneOwners>(std::move(connection), relay);
}

}  // namespace outbox::store::postgres
