// A relay's row at the file, and its lease.
#include <utility>

#include "base/error.hpp"
#include "store/ownership.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "subscription/group.hpp"

namespace outbox::store::sqlite {

RelayMember read_member(const Statement& row) {
  return RelayMember{.id = row.text(0),
                     .name = row.text(1),
                     .process = {.boot_id = row.text(2),
                                 .pid_ns = row.text(3),
                                 .pid = row.integer(4),
                                 .started = row.integer(5)},
                     .beat = row.integer(6),
                     .lease_ms = row.integer(7),
                     .groups = row.text(8)};
}

bool is_dead(const RelayMember& member, const ProcessIdentity& self, std::int64_t now_us) {
  // The file is local, since its WAL works nowhere else. So a process that ran before the last boot
  // is gone.
  const bool other_boot = !member.process.boot_id.empty() && !self.boot_id.empty() &&
                          member.process.boot_id != self.boot_id;
  return other_boot || is_gone(member.process, self) ||
         now_us > member.beat + member.lease_ms * 1000;
}

namespace {

class SqliteMembership final : public Membership {
 public:
  SqliteMembership(Connection connection, RelayIdentity relay)
      : connection_(std::move(connection)),
        id_(relay.id.str()),
        name_(std::move(relay.name)),
        groups_(subscription::join_groups(relay.groups)) {}

  [[nodiscard]] Result<bool> keep(std::chrono::milliseconds lease) override {
    OUTBOX_TRY(connection_.check_in_place());
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    Status status = connection_.run(query::kBeat, id_, monotonic_us(), lease.count());
    const bool known = status && connection_.changes() == 1;
    if (status && !known) status = join(lease);
    if (status) status = transaction.commit();
    if (!status) return pass(status);
    return std::exchange(joined_, true) ? known : true;
  }

  [[nodiscard]] Status leave() override {
    joined_ = false;
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    Status status = connection_.run(query::kGiveAllBack, id_);
    if (status) status = connection_.run(query::kLeave, id_);
    return status ? transaction.commit() : status;
  }

 private:
  [[nodiscard]] Status join(std::chrono::milliseconds lease) {
    OUTBOX_TRY(connection_.run(query::kForgetRelays, self_.boot_id, monotonic_us()));
    OUTBOX_TRY(connection_.run(query::kComeBack, id_));
    return connection_.run(query::kWriteRelay, id_, name_, groups_, self_.boot_id, self_.pid_ns,
                           self_.pid, self_.started, monotonic_us(), std::int64_t{lease.count()});
  }

  Connection connection_;
  const std::string id_;
  const std::string name_;
  const std::string groups_;
  const ProcessIdentity self_{this_process()};
  bool joined_{false};
};

}  // namespace

std::unique_ptr<Membership> make_membership(Connection connection, RelayIdentity relay) {
  return std::make_unique<SqliteMembership>(std::move(connection), std::move(relay));
}

}  // namespace outbox::store::sqlite
