// The parts of the store, each on a connection of its own.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/task.hpp>
#include <string>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/marks.hpp"
#include "store/store.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::postgres {

/// `connect` opens another connection.
[[nodiscard]] std::unique_ptr<LogReader> make_reader(Connection connection,
                                                     std::shared_ptr<MarkBook> marks,
                                                     std::function<Result<Connection>()> connect);
[[nodiscard]] std::unique_ptr<Progress> make_progress(Connection connection,
                                                      std::shared_ptr<MarkBook> marks);
[[nodiscard]] std::unique_ptr<Membership> make_membership(Connection connection,
                                                          RelayIdentity relay);
[[nodiscard]] std::unique_ptr<LaneOwners> make_lane_owners(Connection connection,
                                                           const EventId& relay);
[[nodiscard]] std::unique_ptr<Catalog> make_catalog(Connection connection);
/// Without a connection, or on one that a pooler shares, arm() returns false.
[[nodiscard]] Result<std::unique_ptr<Wakeup>> make_wakeup(std::optional<Connection> connection);
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

/// Reads in the transaction that is open.
[[nodiscard]] Status add_parked(Connection& connection, std::int32_t subscription,
                                ParkedLedger& ledger, const VisitParked& visit = {});

/// The status of the newest of the tasks with this id; nullopt if there is none.
[[nodiscard]] std::optional<TaskStatus> read_task_status(const pg::Rows& rows, const EventId& id);

[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

/// Returns what repair_lineage() would do. Changes nothing.
[[nodiscard]] Result<LineageRepair> plan_lineage_repair(Connection& connection);

/// Runs as the owner of the schema. Writers wait meanwhile.
[[nodiscard]] Result<LineageRepair> repair_lineage(Connection& connection);

/// Creates the indexes that are missing, without blocking writers, and returns their names. An
/// interrupted run is continued.
[[nodiscard]] Result<std::vector<std::string>> make_lookup_indexes(Connection& connection);

/// Asks whether this login could follow the write-ahead log.
[[nodiscard]] Result<WalFacts> read_wal_facts(Connection& connection);
/// Makes the publication that names commits to relays. Returns what was made; empty if it is there.
[[nodiscard]] Result<std::string> make_wal_publication(Connection& connection);

struct FreeNotify {
  void operator()(PGnotify* notify) const noexcept { PQfreemem(notify); }
};

/// Takes what libpq has received; true when there was something.
inline bool take_notifications(PGconn* connection) {
  bool any = false;
  while (const std::unique_ptr<PGnotify, FreeNotify> one{PQnotifies(connection)}) any = true;
  return any;
}

}  // namespace outbox::store::postgres
