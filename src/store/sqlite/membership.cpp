// One relay per file. Two things identify it: the lock file (owner_lock.hpp), which ends with the owner's process, and the
// owner's row with its lease, for an owner that hangs. Every change of the owner raises the generation.
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/member.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {

Member member_of(const Statement& row) {
  return Member{.id = row.text(0),
                .name = row.text(1),
                .generation = row.integer(2),
                .process = {.boot_id = row.text(3),
                            .pid_ns = row.text(4),
                            .pid = row.integer(5),
                            .started = row.integer(6)},
                .beat = row.integer(7),
                .lease_ms = row.integer(8)};
}

bool is_dead(const Member& member, const ProcessIdentity& self, std::int64_t now_us) {
  // The file is local, since its WAL works nowhere else: what ran before the last boot is gone.
  const bool other_boot = !member.process.boot_id.empty() && !self.boot_id.empty() &&
                          member.process.boot_id != self.boot_id;
  return other_boot || is_gone(member.process, self) ||
         now_us > member.beat + member.lease_ms * 1000;
}

namespace {

class SqliteMembership final : public Membership {
 public:
  SqliteMembership(Connection connection, std::string relay_name, const EventId& relay)
      : connection_(std::move(connection)),
        id_(relay.str()),
        name_(std::move(relay_name)),
        self_(this_process()),
        lock_(connection_.file() + ".relay.lock") {}

  [[nodiscard]] Result<Standing> keep(std::chrono::milliseconds lease) override {
    if (Status status = connection_.check_in_place(); !status) return pass(status);
    OUTBOX_TRY(const bool locked, lock_.acquire());
    auto standing = renew(lease, locked);
    if (standing) claimed_ = standing->owns();
    // A relay that waits or could not write must not hold the lock: the owner may need it again because its file was replaced,
    // and another relay may be able to write.
    if (!claimed_) lock_.release();
    return standing;
  }

  [[nodiscard]] Result<bool> vacant() override {
    OUTBOX_TRY(const std::optional<Member> owner, read_owner());
    if (owner && owner->id == id_) return true;
    OUTBOX_TRY(const bool locked, lock_.acquire());
    const bool vacant = may_take(owner, locked);
    lock_.release();
    return vacant;
  }

  [[nodiscard]] Status leave() override {
    // Even if nothing can be written: the relay that gets the lock finds our id in it and need not wait for the lease.
    claimed_ = false;
    lock_.release();
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    if (Status status = connection_.run(query::kLeave, id_); !status) return status;
    return transaction.commit();
  }

 private:
  [[nodiscard]] Result<Standing> renew(std::chrono::milliseconds lease, bool locked) {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(const std::optional<Member> owner, read_owner());
    Standing standing;
    const bool ours = owner && owner->id == id_;
    if (ours && claimed_) {
      // Even after the lease ran out: no other relay took over, so our rows still count.
      standing = {.lanes = kAllLanes, .generation = owner->generation, .other = {}};
    } else if (ours || may_take(owner, locked)) {
      OUTBOX_TRY(const std::int64_t generation, take());
      standing = {.lanes = kAllLanes, .generation = generation, .other = {}};
    } else {
      standing.generation = owner->generation;
      standing.other = owner->name + " (pid " + std::to_string(owner->process.pid) + ")";
    }
    if (standing.owns() && lock_.held()) {
      if (Status status = lock_.write_owner(id_); !status) return pass(status);
    }
    Status status = write(standing.owns(), standing.generation, lease);
    if (status) status = transaction.commit();
    if (!status) return pass(status);
    return standing;
  }

  [[nodiscard]] Result<std::optional<Member>> read_owner() {
    OUTBOX_TRY(const Statement row, connection_.query(query::kOwner));
    return row.has_row() ? std::optional(member_of(row)) : std::nullopt;
  }

  [[nodiscard]] bool may_take(const std::optional<Member>& owner, bool locked) const {
    if (!owner) return true;
    if (locked && lock_.owner() == owner->id) return true;
    return is_dead(*owner, self_, monotonic_us());
  }

  /// Raises the generation and claims every subscription at its cursor.
  [[nodiscard]] Result<std::int64_t> take() {
    Status status = connection_.run(query::kDropOwner, id_);
    if (status) status = connection_.run(query::kRaiseGeneration);
    if (!status) return pass(status);
    OUTBOX_TRY(const std::int64_t generation, connection_.integer(query::kGeneration));
    status = connection_.run(query::kClaim, generation, wall_us());
    if (status) status = connection_.run(query::kForgetRelays, self_.boot_id, monotonic_us());
    if (!status) return pass(status);
    return generation;
  }

  [[nodiscard]] Status write(bool owner, std::int64_t generation, std::chrono::milliseconds lease) {
    const std::int64_t lease_ms = lease.count();
    Status beaten = connection_.run(query::kBeat, id_, owner, generation, monotonic_us(), lease_ms);
    if (!beaten || connection_.changes() == 1) return beaten;
    return connection_.run(query::kWriteRelay, id_, name_, owner, generation, self_.boot_id,
                           self_.pid_ns, self_.pid, self_.started, monotonic_us(), lease_ms);
  }

  Connection connection_;
  const std::string id_;
  const std::string name_;
  const ProcessIdentity self_;
  OwnerLock lock_;
  bool claimed_{false};  ///< The file is ours by a claim of this object, not of an earlier one.
};

}  // namespace

std::unique_ptr<Membership> make_membership(Connection connection, std::string relay_name,
                                            const EventId& relay) {
  return std::make_unique<SqliteMembership>(std::move(connection), std::move(relay_name), relay);
}

}  // namespace outbox::store::sqlite
