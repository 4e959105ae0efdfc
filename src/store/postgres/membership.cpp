// Which relay owns the lanes (docs/design/schema.md, "Relays"): a row per relay with a heartbeat, a row per lane with its
// owner and the generation.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresMembership final : public Membership {
 public:
  PostgresMembership(Connection connection, std::string relay_name, const EventId& relay)
      : connection_(std::move(connection)), name_(std::move(relay_name)), id_(relay) {
    // Shorter than the lease: the relay must notice in time that it cannot renew it.
    connection_.set_deadline(std::chrono::seconds(10));
  }

  [[nodiscard]] Result<Membership::Standing> keep(std::chrono::milliseconds lease) override {
    if (Status status = ctid_.empty() ? join(lease) : renew(lease); !status) return pass(status);
    OUTBOX_TRY(const Owner owner, read_owner());
    const Standing waiting{.lanes = 0, .generation = owner.generation, .other = owner.name};
    if (owner.id == id_ && claimed_)
      return Standing{.lanes = kAllLanes, .generation = owner.generation, .other = {}};
    if (owner.id != id_ && !owner.vacant) return waiting;
    OUTBOX_TRY(const Generation taken, take_over(owner));
    if (!taken) return waiting;
    return Standing{.lanes = kAllLanes, .generation = *taken, .other = {}};
  }

  [[nodiscard]] Result<bool> vacant() override {
    OUTBOX_TRY(const Owner owner, read_owner());
    return owner.vacant || owner.id == id_;
  }

  /// By the relay's id, so that it also ends a membership that began on a lost connection.
  [[nodiscard]] Status leave() override {
    connection_.send(&Queries::begin);
    connection_.send(&Queries::limits);
    connection_.send(&Queries::release_lanes, {id_});
    connection_.send(&Queries::remove_member, {id_});
    connection_.send(&Queries::commit);
    if (auto done = connection_.finish(); !done) return pass(done);
    ctid_.clear();
    claimed_ = false;
    return {};
  }

 private:
  /// None: the lanes may not be taken.
  using Generation = std::optional<std::int64_t>;

  /// The relay that owns the lanes, as seen a moment ago.
  struct Owner {
    std::optional<EventId> id;  ///< None: the lanes are free.
    std::int64_t generation{0};
    bool vacant{false};  ///< It gave them back, its lease has run out, or its process is gone.
    std::string name;
  };

  [[nodiscard]] Status join(std::chrono::milliseconds lease) {
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::join, {id_, name_, self_.boot_id, self_.pid_ns, self_.pid,
                                                 self_.started, lease.count()}));
    ctid_ = rows.text(0, 0);
    return {};
  }

  [[nodiscard]] Status renew(std::chrono::milliseconds lease) {
    const std::int64_t lease_ms = lease.count();
    OUTBOX_TRY(Rows rows, connection_.exec(&Queries::heartbeat, {ctid_, id_, lease_ms}));
    if (rows.empty()) {
      OUTBOX_TRY(rows, connection_.exec(&Queries::heartbeat_by_id, {id_, lease_ms}));
    }
    // Another relay considered this one dead and removed it; read_owner() will find that it owns the lanes.
    if (rows.empty()) return join(lease);
    ctid_ = rows.text(0, 0);
    return {};
  }

  [[nodiscard]] Result<Owner> read_owner() {
    OUTBOX_TRY(const Rows row, connection_.exec(&Queries::owner));
    if (!row.empty()) return owner_of(row);
    return fail(Errc::corrupt, "the table lane is empty", "it must hold the lanes 0 to 63");
  }

  [[nodiscard]] Owner owner_of(const Rows& row) {
    Owner owner{.id = std::nullopt, .generation = row.int8(0, 1), .vacant = true, .name = {}};
    if (row.is_null(0, 0)) return owner;
    owner.id = row.uuid(0, 0);
    if (!row.boolean(0, 2)) return owner;  // its row was removed by hand
    owner.name = row.text(0, 4);
    const ProcessIdentity process{.boot_id = row.text(0, 5),
                                  .pid_ns = row.text(0, 6),
                                  .pid = row.int8(0, 7),
                                  .started = row.int8(0, 8)};
    const bool silent =
        is_silent(*owner.id, row.int8(0, 9), std::chrono::milliseconds(row.int8(0, 10)));
    owner.vacant = row.boolean(0, 3) || silent || is_gone(process, self_);
    return owner;
  }

  /// By our own clock: the server's may be set back, and then an old heartbeat is in the future.
  [[nodiscard]] bool is_silent(const EventId& owner, std::int64_t heartbeat,
                               std::chrono::milliseconds lease) {
    const auto now = std::chrono::steady_clock::now();
    if (!seen_ || seen_->owner != owner || seen_->at != heartbeat)
      seen_ = Heartbeat{.owner = owner, .at = heartbeat, .since = now};
    return now - seen_->since > lease;
  }

  /// None: another relay took the lanes first, or the owner is alive.
  [[nodiscard]] Result<Generation> take_over(const Owner& owner) {
    const bool removes = owner.id && owner.id != id_;
    Generation taken;
    Status status = connection_.transact([&]() -> Result<Decision> {
      taken.reset();
      // It must survive a crash of the database.
      connection_.send(&Queries::flushed);
      connection_.send(&Queries::plan_settings);
      if (auto set = connection_.finish(); !set) return pass(set);
      OUTBOX_TRY(const Generation newest, lock_vacant(owner));
      if (!newest) return Decision::rollback;
      if (removes) connection_.send(&Queries::remove_member, {*owner.id});
      connection_.send(&Queries::lock_fleet);
      connection_.send(&Queries::take_lanes, {id_, *newest + 1});
      connection_.send(&Queries::claim, {id_, *newest + 1});
      if (auto done = connection_.finish(); !done) return pass(done);
      taken = *newest + 1;
      return Decision::commit;
    });
    // Another relay holds the locks; the next keep() sees who got the lanes.
    if (!status && status.error().origin == "pg:55P03") return Generation{};
    if (!status) return pass(status);
    claimed_ = taken.has_value();
    if (taken && removes)
      log::warn("lanes taken over", {{"from", owner.name}, {"generation", *taken}});
    return taken;
  }

  /// Locks the owner's row and the lanes, so that they do not change until we are done, and checks again. Returns the newest
  /// generation when the lanes may be taken.
  [[nodiscard]] Result<Generation> lock_vacant(const Owner& owner) {
    if (owner.id) {
      Status locked = connection_.run(&Queries::lock_owner, {*owner.id});
      if (!locked) return pass(locked);
    }
    OUTBOX_TRY(const Rows lanes, connection_.exec(&Queries::lock_lanes));
    std::int64_t newest = 0;
    for (int row = 0; row < lanes.size(); ++row) {
      const std::optional<EventId> now =
          lanes.is_null(row, 0) ? std::nullopt : std::optional(lanes.uuid(row, 0));
      if (now != owner.id) return Generation{};  // another relay took them first
      newest = std::max(newest, lanes.int8(row, 1));
    }
    OUTBOX_TRY(const Rows again, connection_.exec(&Queries::owner));
    const Owner seen = owner_of(again);
    return seen.vacant || seen.id == id_ ? Generation(newest) : Generation{};
  }

  /// A heartbeat as we first saw it, by the monotonic clock.
  struct Heartbeat {
    EventId owner;
    std::int64_t at{0};
    std::chrono::steady_clock::time_point since;
  };

  Connection connection_;
  const std::string name_;
  const EventId id_;
  const ProcessIdentity self_{this_process()};
  std::string ctid_;  ///< ctid of our row; empty: not registered.
  std::optional<Heartbeat> seen_;
  bool claimed_{false};  ///< The lanes are ours by a claim of this object, not of an earlier one.
};

}  // namespace

std::unique_ptr<Membership> make_membership(Connection connection, std::string relay_name,
                                            const EventId& relay) {
  return std::make_unique<PostgresMembership>(std::move(connection), std::move(relay_name), relay);
}

}  // namespace outbox::store::postgres
