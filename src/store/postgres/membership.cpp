// A relay's row and its lease (docs/design/groups.md).
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "store/postgres/parts.hpp"
#include "subscription/group.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresMembership final : public Membership {
 public:
  PostgresMembership(Connection connection, RelayIdentity relay)
      : connection_(std::move(connection)), relay_(std::move(relay)) {
    // The deadline is shorter than the lease: the relay must notice in time that it cannot renew
    // its lease.
    connection_.set_deadline(std::chrono::seconds(10));
  }

  [[nodiscard]] Result<bool> keep(std::chrono::milliseconds lease) override {
    if (ctid_.empty()) {
      OUTBOX_TRY(join(lease));
      return true;
    }
    const std::int64_t lease_ms = lease.count();
    OUTBOX_TRY(Rows rows, connection_.exec(&Queries::heartbeat, {ctid_, relay_.id, lease_ms}));
    if (rows.empty()) {
      OUTBOX_TRY(rows, connection_.exec(&Queries::heartbeat_by_id, {relay_.id, lease_ms}));
    }
    if (!rows.empty()) {
      ctid_ = rows.text(0, 0);
      return true;
    }
    OUTBOX_TRY(join(lease));
    return false;
  }

  /// The row is removed by the relay's id, so that this also ends a membership that began on a lost
  /// connection.
  [[nodiscard]] Status leave() override {
    connection_.send(&Queries::begin);
    connection_.send(&Queries::limits);
    connection_.send(&Queries::release_lanes, {relay_.id});
    connection_.send(&Queries::remove_member, {relay_.id});
    connection_.send(&Queries::commit);
    OUTBOX_TRY(connection_.finish());
    ctid_.clear();
    return {};
  }

 private:
  [[nodiscard]] Status join(std::chrono::milliseconds lease) {
    OUTBOX_TRY(
        const Rows rows,
        connection_.exec(&Queries::join,
                         {relay_.id, relay_.name, subscription::join_groups(relay_.groups),
                          self_.boot_id, self_.pid_ns, self_.pid, self_.started, lease.count()}));
    ctid_ = rows.text(0, 0);
    return {};
  }

  Connection connection_;
  const RelayIdentity relay_;
  const ProcessIdentity self_{this_process()};
  std::string ctid_;  ///< The ctid of our row; empty if the relay is not registered.
};

}  // namespace

std::unique_ptr<Membership> make_membership(Connection connection, RelayIdentity relay) {
  return std::make_unique<PostgresMembership>(std::move(connection), std::move(relay));
}

}  // namespace outbox::store::postgres
