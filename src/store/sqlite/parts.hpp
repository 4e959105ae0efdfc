// The parts of the store, each on a connection of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string>

#include "base/process.hpp"
#include "store/diagnosis.hpp"
#include "store/sqlite/connection.hpp"
#include "store/store.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::sqlite {

[[nodiscard]] std::unique_ptr<LogReader> make_reader(Connection connection);
/// `outbox` is the identity of the outbox whose cursors it writes. The connection should be opened
/// with Sync::normal: what power loss takes back is delivered again.
[[nodiscard]] std::unique_ptr<Progress> make_progress(Connection connection, std::string outbox);
[[nodiscard]] std::unique_ptr<Membership> make_membership(Connection connection,
                                                          RelayIdentity relay);
[[nodiscard]] std::unique_ptr<LaneOwners> make_lane_owners(Connection connection,
                                                           const EventId& relay);
[[nodiscard]] std::unique_ptr<Catalog> make_catalog(Connection connection);
[[nodiscard]] Result<std::unique_ptr<Wakeup>> make_wakeup(Connection connection, bool armed);
[[nodiscard]] std::unique_ptr<Maintenance> make_maintenance(Connection connection);
[[nodiscard]] std::unique_ptr<Writer> make_writer(Connection connection);
[[nodiscard]] std::unique_ptr<ParkedEvents> make_parked_events(Connection connection);
[[nodiscard]] std::unique_ptr<Replays> make_replays(Connection connection);
[[nodiscard]] std::unique_ptr<Events> make_events(Connection connection);
[[nodiscard]] std::unique_ptr<LedgerReader> make_ledger_reader(Connection connection);
[[nodiscard]] std::unique_ptr<Retention> make_retention(Connection connection);
[[nodiscard]] std::unique_ptr<TaskRuns> make_task_runs(Connection connection);
[[nodiscard]] std::unique_ptr<TaskQueues> make_task_queues(Connection connection);
[[nodiscard]] std::unique_ptr<SubscriptionChanges> make_subscription_changes(Connection connection);

[[nodiscard]] Status settle_replays(Connection& connection,
                                    std::span<const ReplayProgress> replays);

/// Reads in the transaction that is open.
[[nodiscard]] Status add_parked(Connection& connection, std::int64_t subscription,
                                ParkedLedger& ledger, const VisitParked& visit = {});

/// Reads in the transaction that is open, or in one of its own. Returns the newest of the tasks
/// with this id; nullopt if there is none.
[[nodiscard]] Result<std::optional<TaskStatus>> read_task(Connection& connection,
                                                          const EventId& id);

/// The first seq that was written at this time or later; one more than the newest seq if there is
/// none. The unit is microseconds since 1970, UTC.
[[nodiscard]] Result<std::int64_t> seq_at(Connection& connection, std::int64_t time_us);

[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

struct RelayMember {
  std::string id;
  std::string name;
  ProcessIdentity process;
  std::int64_t beat{0};
  std::int64_t lease_ms{0};
  std::string groups;  ///< The groups, joined by commas.
};

/// The first nine columns of query::kMembers, kMember and kRelays.
[[nodiscard]] RelayMember read_member(const Statement& row);

/// Whether the lease has run out, or the process is certainly gone.
[[nodiscard]] bool is_dead(const RelayMember& member, const ProcessIdentity& self,
                           std::int64_t now_us);

}  // namespace outbox::store::sqlite
