#include "store/postgres/adopt_steps.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include "base/count.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "pg/identifier.hpp"
#include "store/postgres/adopt_changes.hpp"
#include "store/postgres/adopt_statements.hpp"
#include "store/postgres/error_map.hpp"
#include "store/sql/audit.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

/// The most rows that are moved while writers wait; moving them takes 0.2 s.
constexpr std::int64_t kUnderLock = 10'000;
constexpr std::chrono::seconds kRowLock{30};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Whether the adoption has lost its trigger, so that a trigger of that name belongs to another
/// outbox.
bool lost_its_trigger(const AdoptionRow& row) {
  return row.fault == AdoptionFault::remade || row.fault == AdoptionFault::no_trigger;
}

/// The number of rows in a command tag, such as "INSERT 0 12" or "UPDATE 12".
std::int64_t parse_count(std::string_view command) {
  const std::string_view last = command.substr(command.rfind(' ') + 1);
  std::int64_t count = 0;
  (void)std::from_chars(last.data(), last.data() + last.size(), count);
  return count;
}

}  // namespace

std::string AdoptSteps::in_schema(const std::string& name) const {
  return pg::quote_identifier(schema_) + "." + name;
}

Result<Rows> AdoptSteps::run(const std::string& what, const std::string& sql, Params params) {
  const Query query{.what = what, .sql = sql, .handle = {}};
  return connection_.exec(query, std::move(params));
}

Status AdoptSteps::set_state(std::int32_t id, const std::string& set, Params more) {
  Params params{id};
  for (auto& param : more) params.push_back(std::move(param));
  OUTBOX_TRY(run("note the state",
                 "UPDATE " + in_schema("adoption") + " SET " + set + " WHERE id = $1::int",
                 std::move(params)));
  return {};
}

Status AdoptSteps::transaction(Connection& connection, std::chrono::milliseconds lock_wait,
                               const Body& body) {
  // With this setting the server ends the statement of a client that was killed. Not every system
  // supports it.
  static const Query watch{
      .what = "watch the connection",
      .sql =
          "DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '1s', true); "
          "EXCEPTION WHEN others THEN NULL; END $$",
      .handle = {}};
  static const Query limits{
      .what = "set the time limits",
      .sql =
          "SELECT set_config('lock_timeout', $1::text, true), set_config('row_security', 'off', true), "
          "set_config('idle_in_transaction_session_timeout', '10s', true)",
      .handle = {}};
  // These are the settings of the trigger's function: a text must not depend on the session's
  // settings.
  static const Query texts{
      .what = "set how values are written as text",
      .sql =
          "SELECT set_config('datestyle', 'ISO, YMD', true), set_config('timezone', 'UTC', true), "
          "set_config('intervalstyle', 'postgres', true), set_config('bytea_output', 'hex', true), "
          "set_config('extra_float_digits', '1', true)",
      .handle = {}};
  return connection.transact([&]() -> Result<Decision> {
    connection.send(&Queries::no_limits);
    connection.send(&Queries::pin_search_path);
    connection.send(texts);
    connection.send(watch);
    connection.send(limits, {std::to_string(lock_wait.count()) + "ms"});
    OUTBOX_TRY(connection.finish());
    return body();
  });
}

/// Runs a transaction that needs the table's lock, until it has got it.
Status AdoptSteps::with_lock(std::int64_t relation, const Body& body) {
  const auto give_up = Clock::now() + locks_.patience;
  while (true) {
    const auto start = Clock::now();
    Status status = transaction(connection_, locks_.wait, body);
    longest_lock_ms_ = std::max(longest_lock_ms_, ms_since(start));
    if (status || !is_locked(status.error())) return status;
    OUTBOX_TRY(std::string holders, lock_holders(connection_, relation));
    if (holders.empty()) holders = "other sessions";
    if (Clock::now() >= give_up) {
      status.error().message = "the table's lock was not got: it is held by " + holders;
      status.error().hint =
          "let these transactions end, then run the command again; --lock-wait and --patience set "
          "how long it is tried";
      return status;
    }
    says_("the table is in use by " + holders + "; writers go on, trying again");
    std::this_thread::sleep_for(locks_.wait);
  }
}

/// The functions belong to the owner of the log, whose rights they need.
Status AdoptSteps::create_functions(const FoundTable& table, const AdoptShape& shape,
                                    const std::string& id, const std::vector<AdoptMode>& modes) {
  OUTBOX_TRY(const Rows login, run("read the role", "SELECT current_setting('role')"));
  OUTBOX_TRY(run("become the owner of the log",
                 "SELECT set_config('role', pg_get_userbyid(relowner)::text, true) FROM pg_class "
                 "WHERE oid = $1::text::regclass",
                 {in_schema("event")}));
  for (const AdoptMode mode : modes) {
    const Query function = create_adopt_function(table.table, shape, mode, id);
    OUTBOX_TRY(connection_.exec(function));
  }
  OUTBOX_TRY(run("become the login again", "SELECT set_config('role', $1::text, true)",
                 {login.text(0, 0)}));
  return {};
}

/// Without the right to execute the functions, nobody can create a trigger of another table with
/// them.
Status AdoptSteps::withdraw_functions(const FoundTable& table, const std::string& id) {
  for (const AdoptMode mode : {AdoptMode::stage, AdoptMode::forward}) {
    OUTBOX_TRY(run(
        "withdraw the function",
        "REVOKE EXECUTE ON FUNCTION " + adopt_function(table.table, mode, id) + "() FROM PUBLIC"));
  }
  return {};
}

/// If an adopted table that was renamed had this name, records the table's present name.
Status AdoptSteps::free_name(const std::string& name) {
  OUTBOX_TRY(run("note the name of now",
                 "UPDATE " + in_schema("adoption") + " a SET table_name = s.name_now FROM " +
                     in_schema("adoption_state") +
                     " s WHERE s.id = a.id AND a.table_name = $1::text AND a.state <> 'ended' "
                     "AND s.name_now <> a.table_name",
                 {name}));
  return {};
}

Result<Decision> AdoptSteps::begin(const FoundTable& table, const AdoptShape& shape) {
  OUTBOX_TRY(free_name(table.table.name));
  OUTBOX_TRY(
      const Rows begun,
      run("begin the adoption",
          "INSERT INTO " + in_schema("adoption") +
              " (table_name, id_name, relation, shape, columns, state, cut_lsn) SELECT $1::text, $1::text, $2::bigint::oid, "
              "$3::text::jsonb, $4::text::jsonb, 'copying', '0/0' RETURNING id",
          {table.table.name, table.relation, to_json(shape), columns_json(table.table.columns)}));
  const std::int32_t id = begun.int4(0, 0);
  const std::string number = std::to_string(id);
  if (Status status =
          create_functions(table, shape, number, {AdoptMode::stage, AdoptMode::forward});
      !status)
    return pass(status);
  const Query trigger = create_adopt_trigger(table.table, AdoptMode::stage, number);
  auto made = connection_.exec(trigger);
  if (!made && made.error().origin == "pg:42710")
    made.error().hint =
        "another outbox has adopted the table, or this one was made anew: if not, DROP TRIGGER outbox_adopt ON " +
        table.table.name;
  if (!made) return pass(made);
  OUTBOX_TRY(withdraw_functions(table, number));
  OUTBOX_TRY(set_state(id, "cut_lsn = pg_current_wal_insert_lsn()"));
  OUTBOX_TRY(sql::record(connection_, {}, 0));
  return Decision::commit;
}

Status AdoptSteps::first_cut(const FoundTable& table, const AdoptShape& shape) {
  return with_lock(table.relation, [&] { return begin(table, shape); });
}

/// Locks the adoption, so that of two commands only one does a step. Returns whether the adoption
/// is in this state.
Result<bool> AdoptSteps::hold(std::int32_t id, std::string_view state) {
  auto rows =
      run("lock the adoption",
          "SELECT state FROM " + in_schema("adoption") + " WHERE id = $1::int FOR UPDATE", {id});
  if (!rows && is_locked(rows.error())) {
    rows.error().message = "another command is adopting this table";
    rows.error().hint = "let it end, then run this one again";
  }
  if (!rows) return pass(rows);
  if (rows->empty()) return fail(Errc::not_found, "the adoption is gone");
  return rows->bytes(0, 0) == state;
}

Status AdoptSteps::copy(const FoundTable& table, const AdoptShape& shape, std::int32_t id) {
  const Query query = copy_backlog(table.table, shape, std::to_string(id));
  const auto start = Clock::now();
  std::int64_t copied = 0;
  Status status = transaction(connection_, kRowLock, [&]() -> Result<Decision> {
    OUTBOX_TRY(const bool due, hold(id, "copying"));
    if (!due) return Decision::rollback;
    if (shape.backlog != Backlog::none) {
      says_("copying the pending rows; writers go on");
      OUTBOX_TRY(const Rows rows, connection_.exec(query));
      copied = parse_count(rows.command());
    }
    OUTBOX_TRY(set_state(id, "state = 'draining', taken_over = $2::bigint", {copied}));
    OUTBOX_TRY(sql::record(connection_, {}, copied));
    return Decision::commit;
  });
  if (status && copied > 0)
    says_("copied " + count("row", copied) + " in " +
          std::to_string(static_cast<std::int64_t>(ms_since(start))) + " ms");
  return status;
}

Result<std::int64_t> AdoptSteps::move_staged(std::int32_t id) {
  OUTBOX_TRY(const Rows rows,
             run("move what is staged", "SELECT " + in_schema("adopt_drain") + "($1::int)", {id}));
  return rows.int8(0, 0);
}

Status AdoptSteps::drain(std::int32_t id) {
  std::int64_t moved = 0;
  do {
    OUTBOX_TRY(transaction(connection_, kRowLock, [&]() -> Result<Decision> {
      moved = 0;
      OUTBOX_TRY(const bool due, hold(id, "draining"));
      if (!due) return Decision::rollback;
      OUTBOX_TRY(moved, move_staged(id));
      if (moved == 0) return Decision::rollback;
      OUTBOX_TRY(sql::record(connection_, {}, moved));
      return Decision::commit;
    }));
    if (moved > 0) says_("moved " + count("row", moved) + " that came meanwhile");
  } while (moved >= kUnderLock / 10);
  return {};
}

Result<Decision> AdoptSteps::switch_over(const FoundTable& table, std::int32_t id, bool& done) {
  OUTBOX_TRY(const bool due, hold(id, "draining"));
  done = !due;
  if (done) return Decision::rollback;
  const std::string number = std::to_string(id);
  const Query trigger = create_adopt_trigger(table.table, AdoptMode::forward, number);
  OUTBOX_TRY(connection_.exec(trigger));
  OUTBOX_TRY(const Rows staged,
             run("count what is staged",
                 "SELECT count(*) FROM (SELECT FROM " + in_schema("adopt_stage") +
                     " WHERE adoption = $1::int LIMIT $2::bigint) s",
                 {id, kUnderLock + 1}));
  if (staged.int8(0, 0) > kUnderLock) return Decision::rollback;
  OUTBOX_TRY(const std::int64_t moved, move_staged(id));
  OUTBOX_TRY(run("drop a function",
                 "DROP FUNCTION " + adopt_function(table.table, AdoptMode::stage, number) + "()"));
  OUTBOX_TRY(set_state(id, "state = 'forwarding', switched_at = clock_timestamp()"));
  OUTBOX_TRY(sql::record(connection_, {}, moved));
  done = true;
  return Decision::commit;
}

Result<bool> AdoptSteps::second_cut(const FoundTable& table, std::int32_t id) {
  bool done = false;
  OUTBOX_TRY(with_lock(table.relation, [&] { return switch_over(table, id, done); }));
  return done;
}

/// A replaced function keeps its rights and the trigger keeps its function, so that no row is left
/// out.
Result<Decision> AdoptSteps::replace_functions(const FoundTable& table, const AdoptShape& shape,
                                               std::int32_t id) {
  OUTBOX_TRY(const bool ended, hold(id, "ended"));
  if (ended) return fail(Errc::cancelled, "another command has undone it");
  OUTBOX_TRY(const bool forwarding, hold(id, "forwarding"));
  std::vector<AdoptMode> modes{AdoptMode::forward};
  if (!forwarding) modes.push_back(AdoptMode::stage);
  OUTBOX_TRY(create_functions(table, shape, std::to_string(id), modes));
  OUTBOX_TRY(set_state(id, "shape = $2::text::jsonb, columns = $3::text::jsonb",
                       {to_json(shape), columns_json(table.table.columns)}));
  OUTBOX_TRY(sql::record(connection_, {}, 0));
  return Decision::commit;
}

Status AdoptSteps::remake(const FoundTable& table, const AdoptShape& shape, std::int32_t id) {
  return transaction(connection_, kRowLock, [&] { return replace_functions(table, shape, id); });
}

Result<std::int64_t> AdoptSteps::mark_rows(const FoundTable& table, const AdoptShape& shape) {
  const Query query = mark_as_sent(table.table, shape);
  OUTBOX_TRY(const Rows rows, connection_.exec(query));
  return parse_count(rows.command());
}

/// As long as the trigger is there, every pending row has been forwarded.
Status AdoptSteps::mark(const FoundTable& table, const AdoptShape& shape, std::int32_t id) {
  says_("marking what was forwarded as sent");
  std::int64_t rows = 0;
  Status status = transaction(connection_, kRowLock, [&]() -> Result<Decision> {
    OUTBOX_TRY(const bool due, hold(id, "forwarding"));
    if (!due) return fail(Errc::cancelled, "another command has undone it");
    OUTBOX_TRY(rows, mark_rows(table, shape));
    if (rows == 0) return Decision::rollback;
    OUTBOX_TRY(sql::record(connection_, {}, rows));
    return Decision::commit;
  });
  if (status) marked_ += rows;
  return status;
}

Result<Decision> AdoptSteps::finish(const std::optional<FoundTable>& table, const AdoptShape& shape,
                                    const AdoptionRow& adopted, bool marks) {
  OUTBOX_TRY(const bool ended, hold(adopted.id, "ended"));
  if (ended) return fail(Errc::cancelled, "another command has undone it");
  if (table && !lost_its_trigger(adopted)) {
    OUTBOX_TRY(run("remove the trigger of " + adopted.table,
                   "DROP TRIGGER IF EXISTS outbox_adopt ON " + table->table.name));
  }
  std::int64_t rows = 0;
  if (table && marks) {
    OUTBOX_TRY(rows, mark_rows(*table, shape));
  }
  // An adoption that lost its trigger before the switch has staged rows; they may be gone from the
  // table.
  OUTBOX_TRY(move_staged(adopted.id));
  for (const char* const kind : {"adopt_stage_", "adopt_forward_"}) {
    const std::string function = in_schema(pg::quote_identifier(kind + std::to_string(adopted.id)));
    OUTBOX_TRY(run("drop a function", "DROP FUNCTION IF EXISTS " + function + "()"));
  }
  OUTBOX_TRY(set_state(adopted.id,
                       "state = 'ended', ended_at = clock_timestamp(), table_name = $2::text",
                       {adopted.table}));
  OUTBOX_TRY(sql::record(connection_, {}, rows));
  marked_ += rows;
  return Decision::commit;
}

Status AdoptSteps::end(const std::optional<FoundTable>& table, const AdoptShape& shape,
                       const AdoptionRow& adopted, bool marks) {
  return with_lock(table ? table->relation : 0,
                   [&] { return finish(table, shape, adopted, marks); });
}

}  // namespace outbox::store::postgres
