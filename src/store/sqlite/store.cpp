// The SQLite store.
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/backends.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/schema.hpp"

namespace outbox::store::sqlite {
namespace {

/// Warns once per process, when the process becomes a relay.
void warn_of_wal_reset_bug() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!has_wal_reset_bug(sqlite3_libversion_number())) return;
    log::warn(
        "this SQLite can corrupt a file when two connections checkpoint at once; the relay leaves checkpoints to the "
        "application",
        {{"version", sqlite3_libversion()}, {"fixed_in", "3.51.3"}});
  });
}

/// The relay retries by itself, and a stop must not wait long for a connection that holds the write
/// lock.
constexpr ConnectOptions kRelays{.busy_timeout = std::chrono::seconds(1)};
/// For what is done again if power loss takes it back, or is missed by nobody.
constexpr ConnectOptions kLossy{.sync = Sync::normal, .busy_timeout = kRelays.busy_timeout};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, std::optional<PersonDecision> decision)
      : path_(std::move(path)), decision_(std::move(decision)) {}

  Result<std::vector<std::string>> migrate() override {
    auto applied = sqlite::migrate(path_);
    if (!applied) return fail(named(applied.error()));
    return applied;
  }

  Result<std::vector<std::string>> make_lookup_indexes() override {
    OUTBOX_TRY(Connection connection, connect());
    return sqlite::make_lookup_indexes(connection);
  }

  Result<std::string> make_wal_publication() override {
    return fail(Errc::unsupported, "a SQLite store has no log that a relay could follow",
                "leave it out: a relay sees each commit in the file");
  }

  Result<SchemaState> schema_state() override {
    OUTBOX_TRY(Connection connection, connect());
    return sqlite::schema_state(connection);
  }

  Status check() override {
    OUTBOX_TRY(Connection connection, connect());
    return sqlite::check(connection, path_);
  }

  // A copied file is complete, including its positions, so there is nothing to repair.
  Result<LineageRepair> plan_lineage_repair() override {
    OUTBOX_TRY(check());
    return LineageRepair{};
  }
  Result<LineageRepair> repair_lineage() override { return plan_lineage_repair(); }

  Result<std::unique_ptr<LogReader>> reader() override { return make(make_reader); }
  Result<std::unique_ptr<Catalog>> catalog() override { return make(make_catalog); }
  Result<std::unique_ptr<Maintenance>> maintenance() override { return make(make_maintenance); }
  Result<std::unique_ptr<Writer>> writer() override { return make(make_writer); }
  Result<std::unique_ptr<ParkedEvents>> parked_events() override {
    return make(make_parked_events);
  }
  Result<std::unique_ptr<Replays>> replays() override { return make(make_replays); }
  Result<std::unique_ptr<Events>> events() override { return make(make_events); }
  Result<std::unique_ptr<TaskQueues>> task_queues() override { return make(make_task_queues); }
  Result<std::unique_ptr<LedgerReader>> ledger_reader() override {
    return make(make_ledger_reader);
  }
  Result<std::unique_ptr<Audit>> audit() override { return make(sql::make_audit); }
  Result<std::unique_ptr<ConsoleTokens>> console_tokens() override {
    return make(sql::make_console_tokens);
  }
  Result<std::unique_ptr<Inbox>> inbox() override { return make(sql::make_inbox); }
  /// If power loss takes back a removal, the next pass removes the events again.
  Result<std::unique_ptr<Retention>> retention() override { return make(make_retention, kLossy); }
  /// Rows that power loss takes back are missing from the history, and from nothing else.
  Result<std::unique_ptr<WorkHistory>> work_history() override {
    return make(sql::make_work_history, kLossy);
  }
  Result<std::unique_ptr<Verified>> verified() override {
    return make(sql::make_verified, kRelays);
  }
  Result<std::unique_ptr<Trials>> trials() override { return make(sql::make_trials, kRelays); }
  Result<std::unique_ptr<TaskRuns>> task_runs() override { return make(make_task_runs, kRelays); }
  Result<std::unique_ptr<Schedules>> schedules() override {
    return make(sql::make_schedules, kRelays);
  }

  Result<std::unique_ptr<Progress>> progress() override {
    OUTBOX_TRY(Connection connection, connect(kLossy));
    OUTBOX_TRY(std::string outbox, read_identity(connection));
    return make_progress(std::move(connection), std::move(outbox));
  }

  Result<std::unique_ptr<Membership>> membership(RelayIdentity relay) override {
    warn_of_wal_reset_bug();
    return make(make_membership, kRelays, std::move(relay));
  }

  Result<std::unique_ptr<LaneOwners>> lane_owners(const EventId& relay) override {
    return make(make_lane_owners, kRelays, relay);
  }

  Result<std::unique_ptr<Wakeup>> wakeup(const WakeupOptions& options) override {
    OUTBOX_TRY(Connection connection, connect());
    return make_wakeup(std::move(connection), options.armed);
  }

 private:
  /// Adds the path, which the error of a file that is no database lacks.
  [[nodiscard]] Error named(Error error) const {
    if (error.message.find(path_) == std::string::npos) error.message += ": " + path_;
    return error;
  }

  [[nodiscard]] Result<Connection> connect(const ConnectOptions& options = {}) const {
    OUTBOX_TRY(check_path(path_, false));
    auto connection = Connection::open(path_, options);
    if (!connection) return fail(named(connection.error()));
    connection->decided_by(decision_);
    return connection;
  }

  template <class Part, class... Params, class... Args>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(std::unique_ptr<Part> (*factory)(Connection,
                                                                                    Params...),
                                                   const ConnectOptions& options = {},
                                                   Args&&... args) const {
    OUTBOX_TRY(Connection connection, connect(options));
    return factory(std::move(connection), std::forward<Args>(args)...);
  }

  template <class Part>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(
      std::unique_ptr<Part> (*factory)(std::unique_ptr<sql::Connection>),
      const ConnectOptions& options = {}) const {
    OUTBOX_TRY(Connection connection, connect(options));
    return factory(std::make_unique<Connection>(std::move(connection)));
  }

  const std::string path_;
  const std::optional<PersonDecision> decision_;
};

Status check_url(const std::string& url) {
  auto path = parse_path(url);
  return path ? Status{} : Status(pass(path));
}

Status check_place(const std::string& url) {
  OUTBOX_TRY(const std::string path, parse_path(url));
  return check_path(path, true);
}

Result<std::unique_ptr<Store>> open(StoreOptions options) {
  OUTBOX_TRY(std::string path, parse_path(options.url));
  return std::make_unique<SqliteStore>(std::move(path), std::move(options.decision));
}

Result<std::unique_ptr<SubscriptionChanges>> open_changes(const StoreOptions& options) {
  OUTBOX_TRY(const std::string path, parse_path(options.url));
  OUTBOX_TRY(check_path(path, false));
  OUTBOX_TRY(Connection connection, Connection::open(path));
  connection.decided_by(options.decision);
  return make_subscription_changes(std::move(connection));
}

}  // namespace

extern const Backend backend;
constexpr Backend backend{
    .check_url = check_url,
    .check_place = check_place,
    .find_file = [](const std::string& url) { return written_path(url); },
    .shown_url = [](const std::string& url) { return url; },
    .open = open,
    .open_changes = open_changes,
    .print_migrations = [](const StoreOptions&) -> Result<std::string> {
      return print_migrations();
    },
    .diagnose = diagnose,
};

}  // namespace outbox::store::sqlite
