#include "store/sqlite/store.hpp"

#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/sqlite/catalog.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/maintenance.hpp"
#include "store/sqlite/membership.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/progress.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/version.hpp"
#include "store/sqlite/wakeup.hpp"
#include "store/sqlite/writer.hpp"

namespace outbox::store::sqlite {
namespace {

/// Once per process, when it becomes a relay.
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

/// The relay asks again by itself, and a stop must not wait long for somebody who holds the write lock.
constexpr std::chrono::milliseconds kRelayPatience{1000};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::string path) : path_(std::move(path)) {}

  Result<std::vector<std::string>> migrate() override {
    auto applied = sqlite::migrate(path_);
    if (!applied) return fail(named(applied.error()));
    return applied;
  }

  Result<SchemaState> schema_state() override {
    auto connection = connect();
    if (!connection) return pass(connection);
    return sqlite::schema_state(*connection);
  }

  Status check() override {
    auto connection = connect();
    if (!connection) return pass(connection);
    auto state = sqlite::schema_state(*connection);
    if (!state) return pass(state);
    if (Status status = check_schema(*state, path_); !status) return status;
    return check_log(*connection, path_);
  }

  Result<std::unique_ptr<LogReader>> reader() override { return make<LogReader, SqliteReader>({}); }
  Result<std::unique_ptr<Progress>> progress() override {
    auto connection = connect({.sync = Sync::normal, .busy_timeout = kRelayPatience});
    if (!connection) return pass(connection);
    auto outbox = identity_of(*connection);
    if (!outbox) return pass(outbox);
    return std::unique_ptr<Progress>(
        std::make_unique<SqliteProgress>(std::move(*connection), std::move(*outbox)));
  }
  Result<std::unique_ptr<Catalog>> catalog() override { return make<Catalog, SqliteCatalog>({}); }
  Result<std::unique_ptr<Writer>> writer() override { return make<Writer, SqliteWriter>({}); }

  Result<std::unique_ptr<Membership>> membership(std::string relay_name,
                                                 const EventId& relay) override {
    warn_of_wal_reset_bug();
    return make<Membership, SqliteMembership>({.busy_timeout = kRelayPatience},
                                              std::move(relay_name), relay);
  }

  Result<std::unique_ptr<Maintenance>> maintenance() override {
    return make<Maintenance, SqliteMaintenance>({}, sqlite3_libversion_number());
  }

  Result<std::unique_ptr<Wakeup>> wakeup(bool armed) override {
    auto connection = connect();
    if (!connection) return pass(connection);
    auto wakeup = SqliteWakeup::create(std::move(*connection), armed);
    if (!wakeup) return pass(wakeup);
    return std::unique_ptr<Wakeup>(std::move(*wakeup));
  }

 private:
  /// The first statement finds that it is no database, and does not say which file.
  [[nodiscard]] Error named(Error error) const {
    if (error.message.find(path_) == std::string::npos) error.message += ": " + path_;
    return error;
  }

  [[nodiscard]] Result<Connection> connect(const ConnectOptions& options = {}) const {
    if (Status status = check_path(path_, false); !status) return pass(status);
    auto connection = Connection::open(path_, options);
    if (!connection) return fail(named(connection.error()));
    return connection;
  }

  template <class Part, class Implementation, class... Args>
  [[nodiscard]] Result<std::unique_ptr<Part>> make(const ConnectOptions& options,
                                                   Args&&... args) const {
    auto connection = connect(options);
    if (!connection) return pass(connection);
    return std::unique_ptr<Part>(
        std::make_unique<Implementation>(std::move(*connection), std::forward<Args>(args)...));
  }

  const std::string path_;
};

}  // namespace

Result<std::unique_ptr<Store>> open(const StoreOptions& options) {
  auto path = path_of(options.url);
  if (!path) return pass(path);
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(*path)));
}

// What migrate() does, as a script for sqlite3(1). WAL is a property of the file, and is set outside of transactions.
std::string print_migrations() {
  std::string text = "PRAGMA journal_mode = WAL;\n";
  for (const Migration& migration : migrations()) {
    text += "-- migration " + std::string(migration.name) + "\nBEGIN IMMEDIATE;\n" +
            std::string(migration.sql) +
            "\nINSERT INTO outbox_migration (version, name, checksum) VALUES (" +
            std::to_string(migration.version) + ", '" + std::string(migration.name) + "', '" +
            std::string(migration.checksum) + "');\nCOMMIT;\n";
  }
  return text;
}

}  // namespace outbox::store::sqlite
