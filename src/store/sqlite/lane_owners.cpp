// One relay owns a group of a file. Two things identify it: the group's lock file (owner_lock.hpp),
// whose lock ends with the owner's process, and the owner's row with its lease, for an owner that
// hangs. Every change of the owner raises the generation.
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "store/ownership.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"
#include "subscription/group.hpp"

namespace outbox::store::sqlite {
namespace {

EventId id_from_text(const std::string& text) {
  const auto id = EventId::parse(text);
  return id ? *id : EventId{};
}

class SqliteLaneOwners final : public LaneOwners {
 public:
  SqliteLaneOwners(Connection connection, const EventId& relay)
      : connection_(std::move(connection)), id_(relay), name_(relay.str()) {}

  [[nodiscard]] Result<Fleet> look() override {
    Fleet fleet;
    OUTBOX_TRY(fleet.outbox, read_identity(connection_));
    std::map<std::string, Group> groups;
    OUTBOX_TRY(const auto owners, read_owners());
    OUTBOX_TRY(const auto members, read_members());
    for (const auto& [group, owner] : owners)
      groups[group].owners.push_back(
          {.owner = owner.relay.empty() ? std::nullopt : std::optional(id_from_text(owner.relay)),
           .lanes = kAllLanes,
           .generation = owner.generation});
    for (const RelayMember& member : members) {
      fleet.members.push_back({.id = id_from_text(member.id),
                               .name = named(member),
                               .groups = subscription::split_groups(member.groups),
                               .alive = member.id == name_ || !is_gone_owner(member, owners)});
    }
    OUTBOX_TRY(Statement row, connection_.query(query::kGroups));
    while (row.has_row()) {
      Group& group = groups[row.text(0)];
      group.has_subscriptions = true;
      group.least_generation = row.integer(1);
      OUTBOX_TRY(row.next());
    }
    for (auto& [name, group] : groups) {
      group.name = name;
      group.one_owner = true;
      fleet.groups.push_back(std::move(group));
    }
    return fleet;
  }

  [[nodiscard]] Result<std::optional<Holding>> change(const std::string& group,
                                                      LaneMask wanted) override {
    if (wanted == 0) return give_back(group);
    OwnerLock& lock = find_lock(group);
    const bool held_before = lock.held();
    OUTBOX_TRY(const bool locked, lock.acquire());
    auto taken = take(group, lock, locked);
    // A relay that does not own the group must not hold its lock, since another relay may be able
    // to write.
    if (!held_before && !(taken && *taken && (*taken)->lanes != 0)) lock.release();
    return taken;
  }

 private:
  struct Owner {
    std::string relay;  ///< Empty if there is none.
    std::int64_t generation{0};
  };
  using Owners = std::map<std::string, Owner>;

  static std::string named(const RelayMember& member) {
    return member.name + " (pid " + std::to_string(member.process.pid) + ")";
  }

  OwnerLock& find_lock(const std::string& group) {
    auto& lock = locks_[group];
    if (!lock) {
      const std::string infix = group == subscription::kDefaultGroup ? "" : "." + group;
      lock = std::make_unique<OwnerLock>(connection_.file() + infix + ".relay.lock");
    }
    return *lock;
  }

  [[nodiscard]] Result<Owners> read_owners() {
    Owners owners;
    OUTBOX_TRY(Statement row, connection_.query(query::kOwners));
    while (row.has_row()) {
      owners[row.text(0)] = {.relay = row.text(1), .generation = row.integer(2)};
      OUTBOX_TRY(row.next());
    }
    return owners;
  }

  [[nodiscard]] Result<std::vector<RelayMember>> read_members() {
    std::vector<RelayMember> members;
    OUTBOX_TRY(Statement row, connection_.query(query::kMembers));
    while (row.has_row()) {
      members.push_back(read_member(row));
      OUTBOX_TRY(row.next());
    }
    return members;
  }

  /// Whether the owner is dead, or a lock file that it wrote its id into is free: then its process
  /// has ended, or it has given the group up.
  [[nodiscard]] bool is_gone_owner(const RelayMember& member, const Owners& owners) {
    if (is_dead(member, self_, monotonic_us())) return true;
    for (const auto& [group, owner] : owners) {
      if (owner.relay != member.id) continue;
      OwnerLock& lock = find_lock(group);
      const auto locked = lock.acquire();
      const bool gone = locked && *locked && lock.owner() == member.id;
      lock.release();
      if (gone) return true;
    }
    return false;
  }

  [[nodiscard]] Result<std::optional<Holding>> give_back(const std::string& group) {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(connection_.run(query::kGiveBack, group, name_));
    OUTBOX_TRY(transaction.commit());
    find_lock(group).release();
    return Holding{};
  }

  [[nodiscard]] Result<std::optional<Holding>> take(const std::string& group, OwnerLock& lock,
                                                    bool locked) {
    OUTBOX_TRY(connection_.check_in_place());
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const auto self, member(name_));
    if (!self)
      return fail(Errc::lease_lost, Remedy::retry_call, "another relay took this one for dead");
    OUTBOX_TRY(const std::string owner, read_owner(group));
    std::optional<RelayMember> former;
    if (!owner.empty() && owner != name_) {
      OUTBOX_TRY(former, member(owner));
      const bool free =
          !former || (locked && lock.owner() == owner) || is_dead(*former, self_, monotonic_us());
      if (!free) return Holding{};
    }
    OUTBOX_TRY(const Holding holding, claim(group, former));
    if (lock.held()) {
      OUTBOX_TRY(lock.write_owner(name_));
    }
    OUTBOX_TRY(transaction.commit());
    if (former)
      log::warn("lanes taken over",
                {{"group", group}, {"from", named(*former)}, {"generation", holding.generation}});
    return holding;
  }

  [[nodiscard]] Result<std::optional<RelayMember>> member(const std::string& id) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kMember, id));
    return row.has_row() ? std::optional(read_member(row)) : std::nullopt;
  }

  [[nodiscard]] Result<std::string> read_owner(const std::string& group) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kOwner, group));
    return row.has_row() ? row.text(0) : std::string();
  }

  [[nodiscard]] Result<Holding> claim(const std::string& group,
                                      const std::optional<RelayMember>& former) {
    OUTBOX_TRY(former ? connection_.run(query::kLeave, former->id) : Status{});
    OUTBOX_TRY(connection_.run(query::kRaiseGeneration));
    OUTBOX_TRY(const std::int64_t generation, connection_.integer(query::kGeneration));
    OUTBOX_TRY(connection_.run(query::kTake, group, name_, generation));
    OUTBOX_TRY(connection_.run(query::kClaim, generation, wall_us(), group));
    return Holding{.lanes = kAllLanes, .generation = generation};
  }

  Connection connection_;
  const EventId id_;
  const std::string name_;
  const ProcessIdentity self_{this_process()};
  std::map<std::string, std::unique_ptr<OwnerLock>> locks_;  ///< The locks by group.
};

}  // namespace

std::unique_ptr<LaneOwners> make_lane_owners(Connection connection, const EventId& relay) {
  return std::make_unique<SqliteLaneOwners>(std::move(connection), relay);
}

}  // namespace outbox::store::sqlite
