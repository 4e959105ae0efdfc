// What `outbox doctor` asks of a store (docs/design/doctor.md). Each fact is asked for on its own,
// so that the others remain when this login may not know a fact, or it takes too long. Nothing is
// judged here, and nothing is changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "store/adoption.hpp"
#include "store/store.hpp"

namespace outbox::store {

// ---- What a store's schema consists of, as the database itself prints it. `migrate` stores that,
// and `outbox doctor` compares it with what is there (docs/design/doctor.md). Pure.

/// One fact about the schema, as the statement that makes it so. It can also be run where the fact
/// is only different.
struct Definition {
  std::string object{};  ///< Such as "table outbox.parked"; empty for an entry about the list
                         ///< itself.
  /// A part of the object, such as "index parked_id" or "SELECT ON outbox.parked"; may be empty.
  std::string part{};
  std::string grantee{};  ///< Who has a right; "PUBLIC" is everybody.
  std::string makes{};
  std::string undoes{};  ///< Empty if only removing the object undoes it.

  [[nodiscard]] bool operator==(const Definition&) const = default;
};

using Definitions = std::vector<Definition>;

/// A difference. If both members are set, the definition differs.
struct DefinitionChange {
  std::optional<Definition> wanted{};  ///< Nullopt if it was added.
  std::optional<Definition> found{};   ///< Nullopt if it is missing.
};

/// How the list was made, and by which server and program; lists that differ in this cannot be
/// compared. Empty if there is no list.
[[nodiscard]] std::string made_by(const Definitions& list);

/// The changes in the order of `wanted`, then what was added. Additions that are no change of ours
/// are left out: whole objects of somebody else, and indexes that can refuse no row.
[[nodiscard]] std::vector<DefinitionChange> changes_between(const Definitions& wanted,
                                                            const Definitions& found);

/// What is wanted after a migration that found `before` and left `after`: a change that somebody
/// had made before remains a change.
[[nodiscard]] Definitions wanted_after(const Definitions& wanted, const Definitions& before,
                                       const Definitions& after);

/// The store's clock was read between two readings of this machine's. Microseconds since 1970, UTC.
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
  bool may_read{false};  ///< Whether the login may read events; also false if there is no outbox.
  bool sees_sessions{false};  ///< Whether the login sees the sessions of others in full.
  bool pooler{false};         ///< Whether a pooler is between this program and the server.
  bool fsync{true};
  bool full_page_writes{true};
  std::string synchronous_commit{};
};

/// What the cursors rely on.
struct LogFacts {
  bool own_lineage{true};         ///< Transaction ids and snapshots are of this database.
  std::int64_t payload_limit{0};  ///< In bytes.
};

/// A sequence whose last number is not above those that are in use.
struct SequenceFacts {
  std::string name{};
  std::string quoted_name{};  ///< The name as a literal.
  std::int64_t last{0};
  std::int64_t used{0};
};

/// A role that is not as it should be, beyond what the definitions tell.
struct RoleFacts {
  bool exists{true};
  std::string name{};
  std::string what{};       ///< "has DELETE ON outbox.event, as a member of pg_write_all_data"
  std::string statement{};  ///< The statement that corrects it.
};

struct PartitionFacts {
  std::optional<std::int64_t> end{};  ///< The end of the newest one; nullopt if there is no
                                      ///< partition.
  std::int64_t next_xid{0};
  std::int64_t width{0};  ///< Transaction ids in about six hours.
  std::int64_t xids_per_h{0};
  std::int64_t count{0};
  bool default_used{false};  ///< Events are in the default partition.
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

/// Who holds an old snapshot or transaction id.
struct HolderFacts {
  enum class Kind : std::uint8_t { session, standby, prepared, slot };
  Kind kind{Kind::session};
  std::int64_t pid{0};
  std::string name{};  ///< The application's name; the gid of a prepared transaction; the name of a
                       ///< slot.
  std::string quoted_name{};  ///< The name as a literal.
  std::string login{};
  std::string state{};  ///< Such as "idle in transaction".
  std::optional<std::int64_t> age_us{};
  std::int64_t xids{0};
  bool active{true};  ///< Whether a slot is active.
};

/// WAL that a replication slot keeps.
struct SlotFacts {
  std::string name{};
  std::string quoted_name{};
  bool active{false};
  std::int64_t bytes{0};
  std::string wal_status{};
};

struct WakeFacts {
  bool notified{false};            ///< LISTEN and NOTIFY work.
  bool armed{false};               ///< A relay holds the lock of the armed wake-up.
  std::int64_t queue_permille{0};  ///< How full the queue of notifications is.
};

/// What following the write-ahead log needs (docs/design/feed.md).
struct WalFacts {
  enum class Publication : std::uint8_t {
    missing,
    wrong,  ///< It has the name, and does not publish what is inserted into the log.
    good,
  };
  std::string wal_level{};
  bool standby{false};
  bool pooler{false};
  std::string login{};
  bool may_replicate{false};
  std::string publication_name{};
  Publication publication{Publication::missing};
  std::int64_t slots{0};  ///< How many the server may have.
  std::int64_t free_slots{0};
  std::int64_t senders{0};
  std::int64_t free_senders{0};
  /// Whether any session that replicates may count as a synchronous standby.
  bool any_is_standby{false};
};

struct ConnectionFacts {
  std::int64_t allowed{0};  ///< Without those reserved for superusers.
  std::int64_t used{0};
  std::int64_t role_limit{-1};  ///< -1 if there is no limit.
  std::int64_t role_used{0};
  std::int64_t database_limit{-1};
  std::int64_t database_used{0};
};

/// A server that has the log of this one by streaming replication.
struct StandbyFacts {
  std::string name{};  ///< Its application_name.
  std::string state{};
  std::int64_t behind{0};  ///< The bytes of the log that it has not flushed.
};

/// A column that the trigger of an adopted table reads, and that is not what it was.
struct ColumnChange {
  std::string column{};
  std::string type{};
  std::optional<std::string> type_now{};    ///< Nullopt if the column is gone.
  std::optional<std::string> renamed_to{};  ///< The column that it probably is now.
  bool says_sent{false};                    ///< It tells which rows were sent.
  bool needed{false};                       ///< No event can be made without it.
};

struct AdoptionFacts {
  AdoptionRow row{};
  bool marks_sent{false};    ///< The table says which rows were sent.
  bool took_pending{false};  ///< Its pending rows were taken over, so that every pending row was
                             ///< forwarded.
  bool has_order{false};     ///< A column gives the order of its rows.
  std::vector<std::string> options{};  ///< The options with which it was adopted, without
                                       ///< --backlog.
  std::vector<ColumnChange> changes{};
  bool replicated{false};  ///< It gets rows by logical replication.
};

/// Sessions that have session_replication_role = replica, in which no trigger of an adopted table
/// fires.
struct SilentSessions {
  std::string login{};     ///< As it is written in a statement; empty means every login.
  std::string database{};  ///< The same; empty means every database.
};

/// Tables whose INSERTs are forwarded.
struct AdoptionsFacts {
  std::vector<AdoptionFacts> tables{};
  std::vector<SilentSessions> silent{};
};

/// What the schema should consist of, and what it consists of. Both lists are of the same program.
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

/// The value of a fact that has not been asked for.
[[nodiscard]] inline tl::unexpected<Error> not_asked() {
  return fail(Errc::unsupported, "not asked");
}

struct PostgresFacts {
  std::string schema{};  ///< As it is written in a statement.
  Result<ServerFacts> server{not_asked()};
  Result<ClockFacts> clock{not_asked()};
  Result<SchemaState> version{not_asked()};
  // These are asked for only if the version is the one that this program needs.
  Result<LogFacts> log{not_asked()};
  Result<SchemaFacts> schema_facts{not_asked()};
  Result<std::vector<SequenceFacts>> sequences{not_asked()};
  Result<std::vector<RoleFacts>> roles{not_asked()};
  Result<PartitionFacts> partitions{not_asked()};
  Result<VacuumFacts> vacuum{not_asked()};
  Result<SizeFacts> sizes{not_asked()};
  Result<WakeFacts> wake{not_asked()};
  Result<WalFacts> wal{not_asked()};
  Result<AdoptionsFacts> adoptions{not_asked()};
  Result<std::int64_t> recent_payload{not_asked()};  ///< The largest payload of the newest events,
                                                     ///< in bytes.
  // These are always asked for.
  Result<std::vector<HolderFacts>> holders{not_asked()};
  Result<std::vector<SlotFacts>> slots{not_asked()};
  Result<ConnectionFacts> connections{not_asked()};
  Result<std::vector<StandbyFacts>> standbys{not_asked()};
  Result<std::int64_t> wal_bytes{not_asked()};
};

// ---- SQLite

/// A file that belongs to the database.
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
  /// The database comes first, then those of -wal, -shm and -journal that exist.
  Result<std::vector<FileFacts>> files;
  Result<DiskFacts> disk;
  Result<SchemaState> version{not_asked()};
  Result<SchemaFacts> schema_facts{not_asked()};
  Result<std::string> journal_mode{not_asked()};
  /// How far a subscription stands beyond the end of the log. More than 0 is an error.
  Result<std::int64_t> beyond_log{not_asked()};
  /// The pids that have the write lock, as far as they can be seen; empty if nobody has it for
  /// long.
  struct Busy {
    bool locked{false};
    std::vector<std::int64_t> pids{};
  };
  Result<Busy> busy{not_asked()};
  Result<std::int64_t> recent_payload{not_asked()};  ///< The largest payload of the newest events,
                                                     ///< in bytes.
};

/// The facts of one of the two stores, or why the store cannot be reached; then `sqlite` has what
/// is known of a SQLite file from outside.
struct Diagnosis {
  Status reached{};
  std::optional<PostgresFacts> postgres{};
  std::optional<SqliteFacts> sqlite{};
};

/// Asks for all facts. A fact that is not answered at `until` is an error.
[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

}  // namespace outbox::store
