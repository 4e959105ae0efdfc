// The PostgreSQL store.
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "pg/url.hpp"
#include "store/backends.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/wal_feed.hpp"
#include "store/schema_name.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(StoreOptions options)
      : options_(std::move(options)), queries_(std::make_shared<const Queries>(options_.schema)) {}

  Result<std::vector<std::string>> migrate() override {
    OUTBOX_TRY(Connection connection, connect("migrate"));
    return postgres::migrate(connection);
  }

  Result<std::vector<std::string>> make_lookup_indexes() override {
    OUTBOX_TRY(Connection connection, connect("migrate"));
    return postgres::make_lookup_indexes(connection);
  }

  Result<std::string> make_wal_publication() override {
    OUTBOX_TRY(Connection connection, connect("migrate"));
    return postgres::make_wal_publication(connection);
  }

  Result<SchemaState> schema_state() override {
    OUTBOX_TRY(Connection connection, connect("check"));
    return postgres::schema_state(connection);
  }

  /// The connection is kept for the catalog, which most callers open next.
  Status check() override {
    (void)take_checked();
    OUTBOX_TRY(Connection connection, connect("catalog"));
    OUTBOX_TRY(postgres::check(connection));
    const MutexLock lock(mutex_);
    checked_.emplace(std::move(connection));
    return {};
  }

  Result<LineageRepair> plan_lineage_repair() override {
    OUTBOX_TRY(Connection connection, connect("doctor"));
    return postgres::plan_lineage_repair(connection);
  }

  Result<LineageRepair> repair_lineage() override {
    OUTBOX_TRY(Connection connection, connect("doctor"));
    return postgres::repair_lineage(connection);
  }

  Result<std::unique_ptr<LogReader>> reader() override {
    const auto open = [options = options_, queries = queries_] {
      return Connection::open(options, "read-ahead", queries);
    };
    return make("reader", make_reader, marks_, std::function<Result<Connection>()>(open));
  }
  Result<std::unique_ptr<Progress>> progress() override {
    return make("settler", make_progress, marks_);
  }
  Result<std::unique_ptr<Membership>> membership(RelayIdentity relay) override {
    return make("lease", make_membership, std::move(relay));
  }
  Result<std::unique_ptr<LaneOwners>> lane_owners(const EventId& relay) override {
    return make("owners", make_lane_owners, relay);
  }
  Result<std::unique_ptr<Catalog>> catalog() override {
    if (auto checked = take_checked(); checked && !checked->broken())
      return make_catalog(std::move(*checked));
    return make("catalog", make_catalog);
  }
  Result<std::unique_ptr<Maintenance>> maintenance() override {
    return make("maintenance", make_maintenance);
  }
  Result<std::unique_ptr<Writer>> writer() override { return make("writer", make_writer); }
  Result<std::unique_ptr<ParkedEvents>> parked_events() override {
    return make("parked events", make_parked_events);
  }
  Result<std::unique_ptr<Replays>> replays() override { return make("replay", make_replays); }
  Result<std::unique_ptr<Events>> events() override { return make("events", make_events); }
  Result<std::unique_ptr<LedgerReader>> ledger_reader() override {
    return make("ledger", make_ledger_reader);
  }
  Result<std::unique_ptr<Retention>> retention() override {
    return make("retention", make_retention);
  }
  Result<std::unique_ptr<Verified>> verified() override {
    return make("verified", sql::make_verified);
  }
  Result<std::unique_ptr<WorkHistory>> work_history() override {
    return make("history", sql::make_work_history);
  }
  Result<std::unique_ptr<Trials>> trials() override { return make("trials", sql::make_trials); }
  Result<std::unique_ptr<TaskRuns>> task_runs() override {
    return make("task runs", make_task_runs);
  }
  Result<std::unique_ptr<TaskQueues>> task_queues() override {
    return make("task queues", make_task_queues);
  }
  Result<std::unique_ptr<Schedules>> schedules() override {
    return make("schedules", sql::make_schedules);
  }
  Result<std::unique_ptr<Audit>> audit() override { return make("audit", sql::make_audit); }
  Result<std::unique_ptr<ConsoleTokens>> console_tokens() override {
    return make("tokens", sql::make_console_tokens);
  }
  Result<std::unique_ptr<Inbox>> inbox() override { return make("inbox", sql::make_inbox); }

  Result<std::unique_ptr<Wakeup>> wakeup(const WakeupOptions& options) override {
    std::optional<Connection> connection;
    if (options.armed) {
      OUTBOX_TRY(connection, connect("wake-up"));
    }
    OUTBOX_TRY(auto wakeup, make_wakeup(std::move(connection)));
    if (options.feed == Feed::poll) return wakeup;
    OUTBOX_TRY(auto feed, WalFeed::of_process(options_, options.feed));
    return make_wal_wakeup(std::move(wakeup), std::move(feed));
  }

 private:
  [[nodiscard]] Result<Connection> connect(std::string_view purpose) const {
    return Connection::open(options_, purpose, queries_);
  }

  [[nodiscard]] std::optional<Connection> take_checked() {
    const MutexLock lock(mutex_);
    return std::exchange(checked_, std::nullopt);
  }

  template <class Part, class... Params, class... Args>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(std::string_view purpose,
                                                   std::unique_ptr<Part> (*factory)(Connection,
                                                                                    Params...),
                                                   Args&&... args) const {
    OUTBOX_TRY(Connection connection, connect(purpose));
    return factory(std::move(connection), std::forward<Args>(args)...);
  }

  template <class Part>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(
      std::string_view purpose,
      std::unique_ptr<Part> (*factory)(std::unique_ptr<sql::Connection>)) const {
    OUTBOX_TRY(Connection connection, connect(purpose));
    return factory(std::make_unique<Connection>(std::move(connection)));
  }

  const StoreOptions options_;
  const std::shared_ptr<const Queries> queries_;
  /// Written by the settler, used by the reader.
  const std::shared_ptr<MarkBook> marks_{std::make_shared<MarkBook>()};
  Mutex mutex_;
  std::optional<Connection> checked_ OUTBOX_GUARDED_BY(mutex_);
};

Result<std::unique_ptr<Store>> open(StoreOptions options) {
  OUTBOX_TRY(check_schema(options.schema));
  return std::make_unique<PostgresStore>(std::move(options));
}

Result<std::unique_ptr<SubscriptionChanges>> open_changes(const StoreOptions& options) {
  OUTBOX_TRY(check_schema(options.schema));
  OUTBOX_TRY(
      Connection connection,
      Connection::open(options, "subscription", std::make_shared<const Queries>(options.schema)));
  return make_subscription_changes(std::move(connection));
}

Result<std::string> print(const StoreOptions& options) {
  OUTBOX_TRY(check_schema(options.schema));
  return print_migrations(options.schema);
}

}  // namespace

extern const Backend backend;
constexpr Backend backend{
    .check_url = pg::check_url,
    .check_place = [](const std::string&) { return Status{}; },
    .find_file = [](const std::string&) { return std::string{}; },
    .shown_url = pg::shown_url,
    .open = open,
    .open_changes = open_changes,
    .print_migrations = print,
    .diagnose = diagnose,
};

}  // namespace outbox::store::postgres
