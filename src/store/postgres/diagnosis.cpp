#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "pg/errors.hpp"
#include "store/postgres/adopt_catalog.hpp"
#include "store/postgres/adopt_changes.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/definitions.hpp"
#include "store/postgres/doctor_queries.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/schema.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// It is longer than the server's own limit for a statement (DoctorQueries::guard).
constexpr std::chrono::seconds kAnswer{8};
constexpr std::chrono::seconds kNotification{3};

std::int64_t here_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<std::int64_t> maybe(const Rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::nullopt;
  return rows.int8(row, column);
}

/// The schema's name, in quotes if it needs them.
std::string shown_schema(const std::string& schema) {
  const bool plain =
      std::none_of(schema.begin(), schema.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return plain ? schema : '"' + schema + '"';
}

class Questions {
 public:
  Questions(Connection connection, SteadyClock::time_point until)
      : connection_(std::move(connection)), queries_(connection_.queries().schema), until_(until) {
    connection_.set_deadline(kAnswer);
  }

  PostgresFacts all() {
    PostgresFacts facts{.schema = shown_schema(queries_.schema),
                        .server = server(),
                        .clock = clock(),
                        .version = version(),
                        .holders = holders(),
                        .slots = slots(),
                        .connections = connections(),
                        .standbys = standbys(),
                        .wal_bytes = wal_bytes()};
    const bool ours = facts.version && facts.version->version == facts.version->wanted;
    if (!ours || !facts.server) return facts;
    facts.log = log();
    facts.schema_facts = schema_facts();
    facts.sequences = sequences();
    facts.roles = roles();
    facts.partitions = partitions();
    facts.vacuum = vacuum();
    facts.sizes = sizes();
    facts.wake = wake(*facts.server);
    facts.wal = wal();
    facts.adoptions = adoptions();
    if (facts.server->may_read) facts.recent_payload = recent_payload();
    return facts;
  }

 private:
  [[nodiscard]] Status in_time() const {
    if (SteadyClock::now() < until_) return {};
    return fail(Errc::deadline_exceeded, "the time for all checks is up",
                "give a longer --timeout");
  }

  /// Runs the statement in a read-only transaction of its own, with time limits.
  [[nodiscard]] Result<Rows> ask(const Query& query) {
    OUTBOX_TRY(in_time());
    connection_.send(queries_.begin);
    connection_.send(queries_.guard);
    connection_.send(query);
    connection_.send(&Queries::commit);
    OUTBOX_TRY(auto rows, connection_.finish());
    return std::move(rows[2]);
  }

  Result<ServerFacts> server() {
    OUTBOX_TRY(const Rows rows, ask(queries_.server));
    return ServerFacts{.version = rows.text(0, 0),
                       .database = rows.text(0, 1),
                       .login = rows.text(0, 2),
                       .standby = rows.boolean(0, 3),
                       .superuser = rows.boolean(0, 4),
                       .may_read = rows.boolean(0, 5),
                       .sees_sessions = rows.boolean(0, 6),
                       // A pooler invents the process id that it reports to libpq.
                       .pooler = rows.int4(0, 7) != PQbackendPID(connection_.native()),
                       .fsync = rows.boolean(0, 8),
                       .full_page_writes = rows.boolean(0, 9),
                       .synchronous_commit = rows.text(0, 10)};
  }

  Result<ClockFacts> clock() {
    ClockFacts facts{.before_us = here_us()};
    OUTBOX_TRY(const Rows rows, ask(queries_.clock));
    facts.after_us = here_us();
    facts.store_us = rows.time_us(0, 0);
    return facts;
  }

  Result<SchemaState> version() {
    OUTBOX_TRY(in_time());
    return schema_state(connection_);
  }

  Result<LogFacts> log() {
    OUTBOX_TRY(const Rows condition, ask(connection_.queries().condition));
    OUTBOX_TRY(const Rows limit, ask(queries_.payload_limit));
    const auto holds = [&condition](int column) {
      return !condition.is_null(0, column) && condition.boolean(0, column);
    };
    return LogFacts{.own_lineage = holds(0) && holds(1), .payload_limit = limit.int4(0, 0)};
  }

  Result<SchemaFacts> schema_facts() {
    const DefinitionQueries definitions(queries_.schema);
    OUTBOX_TRY(const Rows wanted, ask(definitions.wanted));
    OUTBOX_TRY(const Rows found, ask(definitions.found));
    return SchemaFacts{.wanted = to_definitions(wanted), .found = to_definitions(found)};
  }

  Result<std::vector<SequenceFacts>> sequences() {
    OUTBOX_TRY(const Rows rows, ask(queries_.sequences));
    std::vector<SequenceFacts> behind;
    for (int row = 0; row < rows.size(); ++row) {
      SequenceFacts one{
          .name = rows.text(row, 0), .quoted_name = rows.text(row, 1), .last = rows.int8(row, 2)};
      OUTBOX_TRY(const Rows used, ask(Query{"look at the numbers in use", rows.text(row, 3), {}}));
      one.used = maybe(used, 0, 0).value_or(0);
      if (one.used > one.last) behind.push_back(std::move(one));
    }
    return behind;
  }

  Result<std::vector<RoleFacts>> roles() {
    OUTBOX_TRY(const Rows rows, ask(queries_.roles));
    return rows.list([&](int row) {
      return RoleFacts{.exists = rows.boolean(row, 0),
                       .name = rows.text(row, 1),
                       .what = rows.text(row, 2),
                       .statement = rows.text(row, 3)};
    });
  }

  Result<PartitionFacts> partitions() {
    OUTBOX_TRY(const Rows rows, ask(queries_.partitions));
    return PartitionFacts{.end = maybe(rows, 0, 0),
                          .next_xid = rows.int8(0, 1),
                          .width = rows.int8(0, 2),
                          .xids_per_h = rows.int8(0, 3),
                          .count = rows.int8(0, 4),
                          .default_used = rows.boolean(0, 5)};
  }

  Result<VacuumFacts> vacuum() {
    OUTBOX_TRY(const Rows rows, ask(queries_.vacuum));
    VacuumFacts facts{.autovacuum = rows.boolean(0, 0),
                      .track_counts = rows.boolean(0, 1),
                      .freeze_max_age = rows.int8(0, 2),
                      .database_age = rows.int8(0, 3),
                      .database_multi_age = rows.int8(0, 4)};
    OUTBOX_TRY(const Rows tables, ask(queries_.tables));
    facts.tables = tables.list([&](int row) {
      return TableFacts{.name = tables.text(row, 0),
                        .autovacuum = tables.boolean(row, 1),
                        .live = tables.int8(row, 2),
                        .dead = tables.int8(row, 3)};
    });
    return facts;
  }

  Result<std::vector<HolderFacts>> holders() {
    OUTBOX_TRY(const Rows rows, ask(queries_.holders));
    return rows.list([&](int row) {
      using Kind = HolderFacts::Kind;
      const auto kind = rows.bytes(row, 0);
      return HolderFacts{.kind = kind == "prepared"  ? Kind::prepared
                                 : kind == "slot"    ? Kind::slot
                                 : kind == "standby" ? Kind::standby
                                                     : Kind::session,
                         .pid = rows.int8(row, 1),
                         .name = rows.text(row, 2),
                         .quoted_name = rows.text(row, 3),
                         .login = rows.text(row, 4),
                         .state = rows.text(row, 5),
                         .age_us = maybe(rows, row, 6),
                         .xids = rows.int8(row, 7),
                         .active = rows.boolean(row, 8)};
    });
  }

  Result<std::vector<SlotFacts>> slots() {
    OUTBOX_TRY(const Rows rows, ask(queries_.slots));
    return rows.list([&](int row) {
      return SlotFacts{.name = rows.text(row, 0),
                       .quoted_name = rows.text(row, 1),
                       .active = rows.boolean(row, 2),
                       .bytes = rows.int8(row, 3),
                       .wal_status = rows.text(row, 4)};
    });
  }

  Result<ConnectionFacts> connections() {
    OUTBOX_TRY(const Rows rows, ask(queries_.connections));
    if (rows.empty()) return fail(Errc::unsupported, "the server does not list connections", "");
    return ConnectionFacts{.allowed = rows.int8(0, 0),
                           .used = rows.int8(0, 1),
                           .role_limit = rows.int8(0, 2),
                           .role_used = rows.int8(0, 3),
                           .database_limit = rows.int8(0, 4),
                           .database_used = rows.int8(0, 5)};
  }

  Result<std::vector<StandbyFacts>> standbys() {
    OUTBOX_TRY(const Rows rows, ask(queries_.standbys));
    return rows.list([&](int row) {
      return StandbyFacts{
          .name = rows.text(row, 0), .state = rows.text(row, 1), .behind = rows.int8(row, 2)};
    });
  }

  Result<std::int64_t> wal_bytes() {
    OUTBOX_TRY(const Rows rows, ask(queries_.wal));
    return rows.int8(0, 0);
  }

  Result<SizeFacts> sizes() {
    OUTBOX_TRY(const Rows rows, ask(queries_.sizes));
    return SizeFacts{.events = rows.int8(0, 0),
                     .progress = rows.int8(0, 1),
                     .parked = rows.int8(0, 2),
                     .rest = rows.int8(0, 3)};
  }

  Result<WakeFacts> wake(const ServerFacts& server) {
    OUTBOX_TRY(const Rows rows, ask(queries_.armed));
    WakeFacts facts{.armed = rows.boolean(0, 0), .queue_permille = rows.int8(0, 1)};
    if (server.pooler || server.standby) return facts;
    OUTBOX_TRY(facts.notified, hears_itself());
    return facts;
  }

  Result<WalFacts> wal() {
    OUTBOX_TRY(in_time());
    return read_wal_facts(connection_);
  }

  Result<std::int64_t> recent_payload() {
    OUTBOX_TRY(const Rows rows, ask(queries_.recent_payload));
    return rows.int8(0, 0);
  }

  Result<AdoptionsFacts> adoptions() {
    OUTBOX_TRY(const Rows rows, ask(queries_.adoptions));
    AdoptionsFacts facts;
    for (int row = 0; row < rows.size(); ++row) {
      const FoundAdoption found = read_adoption(rows, row);
      const AdoptShape shape = parse_adopt_shape(found.shape);
      AdoptionFacts& one = facts.tables.emplace_back();
      one.row = found.row;
      one.marks_sent = shape.mark != SentMark::none;
      one.took_pending = one.marks_sent && shape.backlog == Backlog::pending;
      one.has_order = shape.column("order") != nullptr;
      one.changes = changed_columns(shape, parse_columns(found.columns),
                                    parse_columns(rows.bytes(row, kAdoptionColumnCount)));
      one.options = options_again(shape, one.changes);
      one.replicated = rows.boolean(row, kAdoptionColumnCount + 1);
    }
    if (facts.tables.empty()) return facts;
    OUTBOX_TRY(const Rows silent, ask(queries_.silent_sessions));
    facts.silent = silent.list([&](int row) {
      return SilentSessions{.login = silent.text(row, 0), .database = silent.text(row, 1)};
    });
    return facts;
  }

  /// Whether a notification of ours comes back to us. The channel belongs to this session alone.
  Result<bool> hears_itself() {
    const std::string channel =
        "outbox_doctor_" + std::to_string(PQbackendPID(connection_.native()));
    const Query there = postgres::listen(channel);
    OUTBOX_TRY(ask(there));
    const Query& notify = queries_.notify;
    connection_.send(queries_.begin);
    connection_.send(queries_.guard);
    connection_.send(notify, {channel});
    connection_.send(&Queries::commit);
    OUTBOX_TRY(connection_.finish());
    OUTBOX_TRY(const EventFd never, EventFd::create());
    const auto until = std::min(until_, SteadyClock::now() + kNotification);
    bool heard = false;
    while (!(heard = take_notifications(connection_.native())) && SteadyClock::now() < until) {
      OUTBOX_TRY(wait_for(never, PQsocket(connection_.native()), until));
      if (PQconsumeInput(connection_.native()) != 1)
        return fail(pg::lost_connection(connection_.native(), "wait for a notification"));
    }
    OUTBOX_TRY(ask(queries_.unlisten));
    return heard;
  }

  Connection connection_;
  const DoctorQueries queries_;
  const SteadyClock::time_point until_;
};

}  // namespace

Diagnosis diagnose(const StoreOptions& options, SteadyClock::time_point until) {
  auto connection = Connection::open(options, "doctor");
  if (!connection) return {.reached = pass(connection)};
  Questions questions(std::move(*connection), until);
  return {.reached = {}, .postgres = questions.all()};
}

}  // namespace outbox::store::postgres
