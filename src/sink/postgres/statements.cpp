#include "sink/postgres/statements.hpp"

#include <fmt/format.h>

#include "pg/identifier.hpp"

namespace outbox::sink::postgres {
namespace {

std::string to_milliseconds(std::chrono::milliseconds time) {
  return std::to_string(time.count()) + "ms";
}

/// The quoted names of the target's columns, with commas.
std::string join_names(std::span<const Column> columns) {
  std::string names;
  for (const Column& column : columns)
    names.append(names.empty() ? "" : ", ").append(pg::quote_identifier(column.name));
  return names;
}

/// Makes `e.c0::jsonb, e.c1`. Types have no length: a cast to varchar(3) would cut the text, while
/// the assignment to the column refuses it.
std::string make_values(std::span<const ColumnType> types) {
  std::string values;
  for (std::size_t i = 0; i < types.size(); ++i)
    values.append(fmt::format("{}e.c{}::{}", i == 0 ? "" : ", ", i, types[i].cast));
  return values;
}

/// Texts such as "$5::text[], $6::bytea[]" and "c0, c1".
struct Arrays {
  std::string params;
  std::string names;
};
Arrays make_arrays(std::span<const ColumnType> types, std::size_t first) {
  Arrays arrays;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const char* const comma = i == 0 ? "" : ", ";
    arrays.params.append(
        fmt::format("{}${}::{}[]", comma, first + i, types[i].is_bytes ? "bytea" : "text"));
    arrays.names.append(fmt::format("{}c{}", comma, i));
  }
  return arrays;
}

}  // namespace

// READ COMMITTED is set whatever the database's default is, to wait for an id that another
// transaction is about to commit.
Statement begin() { return {"BEGIN ISOLATION LEVEL READ COMMITTED"}; }

Statement limits(std::chrono::milliseconds deadline) {
  // What is weaker than "on" would let a crash take back what was acked. remote_apply stays.
  return {R"(SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
pg_catalog.set_config('standard_conforming_strings', 'on', true),
pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true),
pg_catalog.set_config('idle_in_transaction_session_timeout', $2::pg_catalog.text, true),
CASE WHEN pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL
THEN pg_catalog.set_config('transaction_timeout', $2::pg_catalog.text, true) END,
CASE WHEN pg_catalog.array_position('{off,local,remote_write}'::pg_catalog.text[],
                                    pg_catalog.current_setting('synchronous_commit')) IS NOT NULL
THEN pg_catalog.set_config('synchronous_commit', 'on', true) END)",
          {to_milliseconds(deadline * 3 / 4), to_milliseconds(deadline)}};
}

Statement keep_alive() {
  return {R"(SELECT pg_catalog.set_config('tcp_keepalives_idle', '10', false),
pg_catalog.set_config('tcp_keepalives_interval', '5', false), pg_catalog.set_config('tcp_keepalives_count', '3', false))"};
}

Statement check_at_once() { return {"SET CONSTRAINTS ALL IMMEDIATE"}; }
Statement commit() { return {"COMMIT"}; }
Statement rollback() { return {"ROLLBACK"}; }
Statement savepoint() { return {"SAVEPOINT outbox"}; }
Statement release() { return {"RELEASE SAVEPOINT outbox"}; }
Statement rollback_to() { return {"ROLLBACK TO SAVEPOINT outbox"}; }

Statement find_schemas() {
  return {"SELECT s.name FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS s (name)"};
}

Statement find_columns(const TableName& table, std::span<const std::string> schemas) {
  pg::ArrayParam places(pg::ArrayParam::Element::text);
  if (table.schema.empty()) {
    for (const std::string& schema : schemas) places.add(schema);
  } else {
    places.add(table.schema);
  }
  return {
      R"(SELECT found.schema::text, a.attname::text, format_type(a.atttypid, -1), t.typcategory = 'S'::"char",
CASE t.typtype WHEN 'd'::"char" THEN t.typbasetype ELSE t.oid END = 17::oid
FROM (SELECT c.oid, n.nspname AS schema FROM unnest($1::text[]) WITH ORDINALITY AS s (name, place)
      JOIN pg_namespace n ON n.nspname = s.name::name JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = $2::text::name
      ORDER BY s.place LIMIT 1) AS found
JOIN pg_attribute a ON a.attrelid = found.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0::int2 AND NOT a.attisdropped)",
      {places.take(), table.table}};
}

std::string define_table(const TableName& table, std::span<const Column> columns, bool id_is_key) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + table.quoted() + " (";
  const char* comma = "";
  for (const Column& column : columns) {
    sql.append(comma).append(pg::quote_identifier(column.name)).append(" ");
    sql.append(column.definition());
    if (id_is_key && column.is_id()) sql.append(" UNIQUE");
    comma = ", ";
  }
  return sql.append(")");
}

std::string definition_of_delivered(const TableName& delivered) {
  return "CREATE TABLE IF NOT EXISTS " + delivered.quoted() +
         " (event_id uuid NOT NULL, seq bigint NOT NULL, subscription text NOT NULL, replay text NOT NULL, "
         "delivered_at timestamptz NOT NULL, times integer NOT NULL, "
         "PRIMARY KEY (event_id, seq, subscription, replay))";
}

std::string definition_of_index(const TableName& delivered) {
  // The server cuts longer names off, and then they might equal the table's.
  constexpr std::size_t kMostBytes = 50;
  const std::string name = delivered.table.substr(0, kMostBytes) + "_times";
  return "CREATE INDEX IF NOT EXISTS " + pg::quote_identifier(name) + " ON " + delivered.quoted() +
         " (subscription, delivered_at)";
}

Statement lock_creation() {
  return {
      "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('outbox:create'::text, 0::bigint))"};
}

std::string insert_remembered(const TableName& table, const TableName& delivered,
                              std::span<const Column> columns, std::span<const ColumnType> types) {
  const Arrays arrays = make_arrays(types, 5);
  return fmt::format(
      R"(WITH event AS MATERIALIZED (
SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::text[], {params}) WITH ORDINALITY AS e (event_id, seq, replay, {names}, place)),
known AS (INSERT INTO {delivered} AS d (event_id, seq, subscription, replay, delivered_at, times)
SELECT e.event_id, e.seq, $1::text, e.replay, pg_catalog.now(), 1 FROM event e ORDER BY e.event_id, e.seq
ON CONFLICT (event_id, seq, subscription, replay) DO UPDATE SET times = d.times + 1, delivered_at = excluded.delivered_at
RETURNING d.event_id, d.seq, d.replay, d.times)
INSERT INTO {table} ({columns})
SELECT {values} FROM event e JOIN known k ON k.event_id = e.event_id AND k.seq = e.seq AND k.replay = e.replay
WHERE k.times = 1 ORDER BY e.place)",
      fmt::arg("params", arrays.params), fmt::arg("names", arrays.names),
      fmt::arg("delivered", delivered.quoted()), fmt::arg("table", table.quoted()),
      fmt::arg("columns", join_names(columns)), fmt::arg("values", make_values(types)));
}

std::string insert_by_id(const TableName& table, const Column& id, std::span<const Column> columns,
                         std::span<const ColumnType> types) {
  const Arrays arrays = make_arrays(types, 1);
  return fmt::format(
      R"(INSERT INTO {table} ({columns})
SELECT {values} FROM unnest({params}) WITH ORDINALITY AS e ({names}, place) ORDER BY e.place
ON CONFLICT ({id}) DO NOTHING)",
      fmt::arg("table", table.quoted()), fmt::arg("columns", join_names(columns)),
      fmt::arg("values", make_values(types)), fmt::arg("params", arrays.params),
      fmt::arg("names", arrays.names), fmt::arg("id", pg::quote_identifier(id.name)));
}

Statement prune(const TableName& delivered, const std::string& subscription,
                std::chrono::milliseconds window, const std::string& from, std::size_t most) {
  // Index (subscription, delivered_at). Another relay may remove the same rows.
  return {fmt::format(
              R"(WITH gone AS (DELETE FROM {0} WHERE (event_id, seq, subscription, replay) IN (
SELECT d.event_id, d.seq, d.subscription, d.replay FROM {0} d
WHERE d.subscription = $1::text AND d.delivered_at >= $3::timestamptz AND d.delivered_at < pg_catalog.now() - $2::interval
ORDER BY d.delivered_at LIMIT $4::bigint FOR UPDATE SKIP LOCKED) RETURNING delivered_at)
SELECT pg_catalog.count(*), coalesce(pg_catalog.max(delivered_at)::text, $3::text) FROM gone)",
              delivered.quoted()),
          {subscription, to_milliseconds(window), from, static_cast<std::int64_t>(most)}};
}

}  // namespace outbox::sink::postgres
