// The parts of the store, each on a connection of its own.
#pragma once

#include <memory>
#include <outbox/event.hpp>
#include <string>

#include "store/sqlite/connection.hpp"
#include "store/store.hpp"
#include "store/subscription_changes.hpp"

namespace outbox::store::sqlite {

[[nodiscard]] std::unique_ptr<LogReader> make_reader(Connection connection);
/// `outbox`: the identity of the outbox whose cursors it writes. Open the connection with Sync::normal: what power loss takes
/// back is delivered again.
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

}  // namespace outbox::store::sqlite
