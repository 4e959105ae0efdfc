// What `outbox doctor` reads from a store (docs/design/doctor.md). Each fact is read on its own, so
// that one that is forbidden or too slow hides no other. Nothing is judged or changed here.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "store/adoption.hpp"
#include "store/store.hpp"

namespace outbox::store {

// ---- The schema as the database itself prints it. `migrate` stores that, and `outbox doctor`
// compares it with what is there. Pure.

/// One fact about the schema, as the statement that makes it so. It also changes a different fact.
struct Definition {
  std::string object{};   ///< "table outbox.parked"; empty: about the list, not the schema.
  std::string part{};     ///< "index parked_id", "SELECT ON outbox.parked"; may be empty.
  std::string grantee{};  ///< Who has a right; "PUBLIC" is everybody.
  std::string makes{};
  std::string undoes{};  ///< Empty if only removing the object undoes it.

  [[nodiscard]] bool operator==(const Definition&) const = default;
};

using Definitions = std::vector<Definition>;

/// If both are set, the fact differs.
struct DefinitionChange {
  std::optional<Definition> wanted{};  ///< Not set if it was added.
  std::optional<Definition> found{};   ///< Not set if it is missing.
};

/// Which server and program made the list, and how; lists that differ in it cannot be compared.
/// Empty if there is no list.
[[nodiscard]] std::string made_by(const Definitions& list);

/// The changes in the order of `wanted`, then additions. Additions that do not concern us are left
/// out: objects of others, and indexes that cannot refuse a row.
[[nodiscard]] std::vector<DefinitionChange> changes_between(const Definitions& wanted,
                                                            const Definitions& found);

/// The list to store after a migration that found `before` and left `after`. Changes that somebody
/// else had made before remain changes.
[[nodiscard]] Definitions wanted_after(const Definitions& wanted, const Definitions& before,
                                       const Definitions& after);

/// The store's clock, read between two readings of this machine's, in microseconds since 1970, UTC.
struct ClockFacts {
  std::int64_t before_us{0};
  std::int64_t store_us{0};
  std::int64_t after_us{0};
};

// ---- PostgreSQL

struct ServerFacts {
  std::string version{};
  std::string database{};
  std::string login{};
  bool standby{false};
  bool superuser{false};
  bool may_read{false};       ///< The events; false also if there are none.
  bool sees_sessions{false};  ///< Those of other logins, in full.
  bool pooler{false};         ///< One is between this program and the server.
  bool fsync{true};
  bool full_page_writes{true};
  std::string synchronous_commit{};
};

/// Facts about the log that cursors rely on.
struct LogFacts {
  bool own_lineage{true};         ///< Whether transaction ids and snapshots are this database's.
  std::int64_t payload_limit{0};  ///< In bytes.
};

/// A sequence that would return numbers that are in use.
struct SequenceFacts {
  std::string name{};
  std::string quoted_name{};  ///< As an SQL literal.
  std::int64_t last{0};
  std::int64_t used{0};
};

/// A role with a fault that the definitions do not show.
struct RoleFacts {
  bool exists{true};
  std::string name{};
  std::string what{};       ///< "has DELETE ON outbox.event, as a member of pg_write_all_data"
  std::string statement{};  ///< The statement that mends it.
};

struct PartitionFacts {
  std::optional<std::int64_t> end{};  ///< Where the newest ends; not set if there is no partition.
  std::int64_t next_xid{0};
  std::int64_t width{0};  ///< As many transaction ids as are used in about six hours.
  std::int64_t xids_per_h{0};
  std::int64_t count{0};
  bool default_used{false};  ///< Whether the default partition has events.
};

struct TableFacts {
  std::string name{};
  bool autovacuum{true};
  std::int64_t live{0};
  std::int64_t dead{0};
};

struct VacuumFacts {
  bool autovacuum{true};
  bool track_counts{true};
  std::int64_t freeze_max_age{0};
  std::int64_t database_age{0};        ///< The age of the oldest transaction id that is not frozen.
  std::int64_t database_multi_age{0};  ///< The same for multixacts.
  std::vector<TableFacts> tables{};
};

/// A session or another object that holds an old snapshot or transaction id.
struct HolderFacts {
  enum class Kind : std::uint8_t { session, standby, prepared, slot };
  Kind kind{Kind::session};
  std::int64_t pid{0};
  std::string name{};         ///< The application, or the gid of a transaction, or the slot.
  std::string quoted_name{};  ///< As an SQL literal.
  std::string login{};
  std::string state{};  ///< "idle in transaction"
  std::optional<std::int64_t> age_us{};
  std::int64_t xids{0};
  bool active{true};  ///< Whether the slot is in use.
};

/// A replication slot and how much WAL it keeps.
struct SlotFacts {
  std::string name{};
  std::string quoted_name{};
  bool active{false};
  std::int64_t bytes{0};
  std::string wal_status{};
};

struct WakeFacts {
  bool notified{false};            ///< LISTEN and NOTIFY work.
  bool armed{false};               ///< Whether a relay sleeps or listens.
  std::int64_t queue_permille{0};  ///< How full the queue of notifications is.
};

struct ConnectionFacts {
  std::int64_t allowed{0};  ///< Without connections reserved for superusers.
  std::int64_t used{0};
  std::int64_t role_limit{-1};  ///< -1 if there is no limit.
  std::int64_t role_used{0};
  std::int64_t database_limit{-1};
  std::int64_t database_used{0};
};

/// A column that the trigger of an adopted table reads and that has changed.
struct ColumnChange {
  std::string column{};
  std::string type{};
  std::optional<std::string> type_now{};    ///< Not set if the column is gone.
  std::optional<std::string> renamed_to{};  ///< The column that it probably is now.
  bool says_sent{false};                    ///< It tells which rows were sent.
  bool needed{false};                       ///< No event can be made without it.
};

struct AdoptionFacts {
  AdoptionRow row{};
  bool marks_sent{false};              ///< Whether the table tells which rows were sent.
  bool took_pending{false};            ///< Whether its pending rows were therefore forwarded.
  bool has_order{false};               ///< Whether a column gives the order of its rows.
  std::vector<std::string> options{};  ///< Those of its adoption, without --backlog.
  std::vector<ColumnChange> changes{};
  bool replicated{false};  ///< Whether it gets rows by logical replication.
};

/// Sessions with session_replication_role = replica, in which no trigger of an adopted table fires.
struct SilentSessions {
  std::string login{};     ///< As in a statement; empty: every login.
  std::string database{};  ///< As in a statement; empty: every database.
};

/// Tables whose INSERTs are forwarded.
struct AdoptionsFacts {
  std::vector<AdoptionFacts> tables{};
  std::vector<SilentSessions> silent{};
};

/// The schema as it should be and as it is, both as this program sees it.
struct SchemaFacts {
  Definitions wanted{};
  Definitions found{};
};

struct SizeFacts {
  std::int64_t events{0};
  std::int64_t progress{0};
  std::int64_t parked{0};
  std::int64_t rest{0};
};

struct PostgresFacts {
  std::string schema{};  ///< As in a statement.
  Result<ServerFacts> server;
  Result<ClockFacts> clock;
  Result<SchemaState> version;
  // Only if the schema has the version that this program needs:
  Result<LogFacts> log;
  Result<SchemaFacts> schema_facts{};
  Result<std::vector<SequenceFacts>> sequences;
  Result<std::vector<RoleFacts>> roles;
  Result<PartitionFacts> partitions;
  Result<VacuumFacts> vacuum;
  Result<SizeFacts> sizes;
  Result<WakeFacts> wake;
  Result<AdoptionsFacts> adoptions;
  Result<std::int64_t> recent_payload{};  ///< The largest of the newest events, in bytes.
  // Always:
  Result<std::vector<HolderFacts>> holders;
  Result<std::vector<SlotFacts>> slots;
  Result<ConnectionFacts> connections;
  Result<std::int64_t> wal_bytes;
};

// ---- SQLite

/// A file of the database.
struct FileFacts {
  std::string path{};
  std::int64_t bytes{0};
  std::uint32_t owner{0};
  std::uint32_t mode{0};  ///< Permission bits.
  std::uint64_t links{1};
  bool writable{true};
};

struct DiskFacts {
  std::int64_t free_bytes{0};
  std::int64_t all_bytes{0};
};

struct SqliteFacts {
  std::string path{};
  std::string library{};  ///< "3.40.1"
  bool wal_reset_bug{false};
  /// Those that exist of the database itself, -wal, -shm and -journal, in this order.
  Result<std::vector<FileFacts>> files;
  Result<DiskFacts> disk;
  Result<SchemaState> version;
  Result<SchemaFacts> schema_facts{};
  Result<std::string> journal_mode;
  /// How far a subscription is beyond the end of the log; more than 0 should be impossible.
  Result<std::int64_t> beyond_log;
  /// The pids that have the write lock, as far as they can be seen; empty if none has it for long.
  struct Busy {
    bool locked{false};
    std::vector<std::int64_t> pids{};
  };
  Result<Busy> busy;
  Result<std::int64_t> recent_payload{};  ///< The largest of the newest events, in bytes.
};

/// The facts of one of the two stores, or why it cannot be reached. SQLite facts known from outside
/// the file are there even then.
struct Diagnosis {
  Status reached{};
  std::optional<PostgresFacts> postgres{};
  std::optional<SqliteFacts> sqlite{};
};

/// Reads all facts. A fact that is not answered at `until` is an error.
[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

}  // namespace outbox::store
