// One outbox in one database: opens the parts that the relay and the command line work with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/relay.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/audit.hpp"
#include "store/console_tokens.hpp"
#include "store/delivery.hpp"
#include "store/history.hpp"
#include "store/inbox.hpp"
#include "store/interface.hpp"
#include "store/ownership.hpp"
#include "store/parked.hpp"
#include "store/replay.hpp"
#include "store/subscriptions.hpp"
#include "store/tasks.hpp"
#include "store/work_history.hpp"

namespace outbox::store {

// ---- The repair of an outbox that was restored into another database (docs/design/lineage.md).

/// What a repair does, or did.
struct LineageRepair {
  struct Pending {
    std::string subscription;
    std::int64_t events{0};  ///< The restored events, of all types, that it still has to get.
  };

  bool needed{false};        ///< False if the outbox is of this database.
  std::int64_t restored{0};  ///< Events that came with the restore.
  std::int64_t fresh{0};     ///< Events that were written here since: every subscription gets them.
  std::vector<Pending> pending{};
};

// ---- Work that keeps a store healthy: partitions ahead of the writers (PostgreSQL), checkpoints
// (SQLite).

/// It is used by one thread at a time.
class Maintenance : public Interface {
 public:
  /// Does the work that is due. Returns what was done, for the log; empty if nothing was due.
  [[nodiscard]] virtual Result<std::string> run() = 0;
};

// ---- Writes events for the command line and the benchmarks. Applications use outbox/postgres.hpp
// and outbox/sqlite.hpp.

/// It is used by one thread at a time.
class Writer : public Interface {
 public:
  /// Writes all events in one transaction, or none. Returns the ids in the order of the events.
  [[nodiscard]] virtual Result<std::vector<EventId>> write(std::span<const Event> events) = 0;
};

// ---- The store.

struct StoreOptions {
  std::string url;
  std::string schema{"outbox"};
  std::string application{"outbox"};  ///< Shown in the server's list of connections.
  /// The person for whom the store is opened, if what it changes is to be recorded.
  std::optional<PersonDecision> decision{};
};

struct WakeupOptions {
  bool armed{true};  ///< Use the armed wake-up, where there is no stream of the log.
  Feed feed{Feed::poll};
};

struct SchemaState {
  int version{0};  ///< 0 if there is no schema.
  int wanted{0};
  std::string edited;  ///< The first migration that differs from the one applied; empty if there is
                       ///< none.
};

/// It may be used by any thread. Each part has a connection of its own and keeps what it needs, so
/// the store may be destroyed before its parts.
class Store : public Interface {
 public:
  /// It is safe to run this twice and from two processes at once. Returns the names of the
  /// migrations applied.
  [[nodiscard]] virtual Result<std::vector<std::string>> migrate() = 0;
  /// Creates the indexes that find events by id and by key, without blocking writers where the
  /// store can. Returns those that were missing.
  [[nodiscard]] virtual Result<std::vector<std::string>> make_lookup_indexes() = 0;
  /// Makes what a relay needs to follow the store's log (docs/design/feed.md). Returns what was
  /// made, in words; empty if all was there. Fails if the store has no such thing.
  [[nodiscard]] virtual Result<std::string> make_wal_publication() = 0;
  [[nodiscard]] virtual Result<SchemaState> schema_state() = 0;
  /// Checks that the server can be reached and is a primary, that the schema is neither too old nor
  /// too new, and that lineage and sequence are right. The error's hint says what to do.
  [[nodiscard]] virtual Status check() = 0;
  /// Returns what repair_lineage() would do. Changes nothing.
  [[nodiscard]] virtual Result<LineageRepair> plan_lineage_repair() = 0;
  /// Makes a copy of another database's outbox one of this database, which delivers what was
  /// pending (docs/design/lineage.md).
  [[nodiscard]] virtual Result<LineageRepair> repair_lineage() = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<LogReader>> reader() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Progress>> progress() = 0;
  /// There may be only one at a time with the same id.
  [[nodiscard]] virtual Result<std::unique_ptr<Membership>> membership(RelayIdentity relay) = 0;
  /// For a relay that is registered. A new object has no lanes until it changes something, so that
  /// nothing that an earlier object wrote can count late.
  [[nodiscard]] virtual Result<std::unique_ptr<LaneOwners>> lane_owners(const EventId& relay) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Catalog>> catalog() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Wakeup>> wakeup(const WakeupOptions& options) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Maintenance>> maintenance() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Writer>> writer() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<ParkedEvents>> parked_events() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Replays>> replays() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Events>> events() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LedgerReader>> ledger_reader() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Retention>> retention() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Verified>> verified() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<WorkHistory>> work_history() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Trials>> trials() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<TaskRuns>> task_runs() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<TaskQueues>> task_queues() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Schedules>> schedules() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Audit>> audit() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<ConsoleTokens>> console_tokens() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Inbox>> inbox() = 0;
};

/// Chooses the store by its URL (store/url.hpp). Opens nothing yet.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(StoreOptions options);

[[nodiscard]] Result<std::unique_ptr<SubscriptionChanges>> open_subscription_changes(
    StoreOptions options);

/// The SQL of the migrations, for `outbox migrate --print`.
[[nodiscard]] Result<std::string> print_migrations(const StoreOptions& options);

}  // namespace outbox::store
