// The parts of the store, each on a connection of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <outbox/event.hpp>
#include <string>

#include "store/postgres/connection.hpp"
#include "store/postgres/marks.hpp"
#include "store/store.hpp"
#include "store/subscription_changes.hpp"

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

}  // namespace outbox::store::postgres
