#include "store/sqlite/membership.hpp"

#include "base/error.hpp"
#include "store/sqlite/clock.hpp"
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
  // The file is of this machine, since its log works nowhere else: what ran before the last boot is gone.
  const bool other_boot = !member.process.boot_id.empty() && !self.boot_id.empty() &&
                          member.process.boot_id != self.boot_id;
  return other_boot || is_gone(member.process, self) ||
         now_us > member.beat + member.lease_ms * 1000;
}

SqliteMembership::SqliteMembership(Connection connection, std::string relay_name,
                                   const EventId& relay)
    : connection_(std::move(connection)),
      id_(relay.str()),
      name_(std::move(relay_name)),
      self_(this_process()),
      lock_(connection_.file() + ".relay.lock") {}

Result<Membership::Standing> SqliteMembership::keep(std::chrono::milliseconds lease) {
  if (Status status = connection_.check_in_place(); !status) return pass(status);
  auto locked = lock_.acquire();
  if (!locked) return pass(locked);
  auto standing = renew(lease, *locked);
  if (standing) claimed_ = standing->owns();
  // One that waits, or could not write, must not hold the lock: the owner may be about to take it anew (its file was
  // replaced), and another one that waits may be luckier.
  if (!claimed_) lock_.release();
  return standing;
}

Result<Membership::Standing> SqliteMembership::renew(std::chrono::milliseconds lease, bool locked) {
  auto transaction = WriteTransaction::begin(connection_);
  if (!transaction) return pass(transaction);
  auto owner = read_owner();
  if (!owner) return pass(owner);
  Standing standing;
  const bool ours = *owner && (*owner)->id == id_;
  if (ours && claimed_) {
    // Also after the lease ran out: nobody took over, so nothing of ours is void.
    standing = Standing{.lanes = kAllLanes, .generation = (*owner)->generation, .other = {}};
  } else if (ours || may_take(*owner, locked)) {
    auto generation = take();
    if (!generation) return pass(generation);
    standing = Standing{.lanes = kAllLanes, .generation = *generation, .other = {}};
  } else {
    standing.generation = (*owner)->generation;
    standing.other = (*owner)->name + " (pid " + std::to_string((*owner)->process.pid) + ")";
  }
  if (standing.owns() && lock_.held()) {
    if (Status status = lock_.write_owner(id_); !status) return pass(status);
  }
  if (Status status = write(standing.owns(), standing.generation, lease); !status)
    return pass(status);
  if (Status status = transaction->commit(); !status) return pass(status);
  return standing;
}

bool SqliteMembership::may_take(const std::optional<Member>& owner, bool locked) const {
  if (!owner) return true;
  if (locked && lock_.owner() == owner->id) return true;
  return is_dead(*owner, self_, monotonic_us());
}

/// Raises the generation and claims every subscription at its cursor.
Result<std::int64_t> SqliteMembership::take() {
  auto drop = connection_.statement(query::kDropOwner);
  if (!drop) return pass(drop);
  if (Status status = drop->bind(1, id_).run(); !status) return pass(status);
  if (Status status = connection_.run(query::kRaiseGeneration); !status) return pass(status);
  auto generation = connection_.integer(query::kGeneration);
  if (!generation) return generation;
  auto claim = connection_.statement(query::kClaim);
  if (!claim) return pass(claim);
  if (Status status = claim->bind(1, *generation).bind(2, wall_us()).run(); !status)
    return pass(status);
  auto forget = connection_.statement(query::kForgetRelays);
  if (!forget) return pass(forget);
  if (Status status = forget->bind(1, self_.boot_id).bind(2, monotonic_us()).run(); !status)
    return pass(status);
  return generation;
}

Status SqliteMembership::write(bool owner, std::int64_t generation,
                               std::chrono::milliseconds lease) {
  auto beat = connection_.statement(query::kBeat);
  if (!beat) return pass(beat);
  Status beaten = beat->bind(1, id_)
                      .bind(2, std::int64_t{owner ? 1 : 0})
                      .bind(3, generation)
                      .bind(4, monotonic_us())
                      .bind(5, std::int64_t{lease.count()})
                      .run();
  if (!beaten || connection_.changes() == 1) return beaten;
  auto write = connection_.statement(query::kWriteRelay);
  if (!write) return pass(write);
  return write->bind(1, id_)
      .bind(2, name_)
      .bind(3, std::int64_t{owner ? 1 : 0})
      .bind(4, generation)
      .bind(5, self_.boot_id)
      .bind(6, self_.pid_ns)
      .bind(7, self_.pid)
      .bind(8, self_.started)
      .bind(9, monotonic_us())
      .bind(10, std::int64_t{lease.count()})
      .run();
}

Result<std::optional<Member>> SqliteMembership::read_owner() {
  auto read = connection_.statement(query::kOwner);
  if (!read) return pass(read);
  auto row = read->step();
  if (!row) return pass(row);
  if (!*row) return std::optional<Member>{};
  return std::optional<Member>(member_of(*read));
}

Result<bool> SqliteMembership::vacant() {
  auto owner = read_owner();
  if (!owner) return pass(owner);
  if (*owner && (*owner)->id == id_) return true;
  auto locked = lock_.acquire();
  if (!locked) return pass(locked);
  const bool vacant = may_take(*owner, *locked);
  lock_.release();
  return vacant;
}

Status SqliteMembership::leave() {
  // Also when nothing can be written: whoever gets the lock then finds our name in it, and need not wait for the lease.
  claimed_ = false;
  lock_.release();
  auto transaction = WriteTransaction::begin(connection_);
  if (!transaction) return pass(transaction);
  auto leave = connection_.statement(query::kLeave);
  if (!leave) return pass(leave);
  if (Status status = leave->bind(1, id_).run(); !status) return status;
  return transaction->commit();
}

}  // namespace outbox::store::sqlite
