#include "store/postgres/adopt_catalog.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "pg/identifier.hpp"

namespace outbox::store::postgres {
namespace {

// Each of these statements runs under a pinned search path, in which nobody can plant an operator.

// $1 a name as people write it, $2 the schemas of the login's search path. Index
// pg_class_relname_nsp_index.
constexpr std::string_view kResolve = R"(
WITH named AS (SELECT parse_ident($1::text)::name[] AS part),
place AS (
  SELECT s.name::name AS schema, n.part[1] AS name, s.place FROM named n CROSS JOIN unnest($2::text[]) WITH ORDINALITY s(name, place)
  WHERE cardinality(n.part) = 1
  UNION ALL
  SELECT n.part[cardinality(n.part) - 1], n.part[cardinality(n.part)], 1 FROM named n
  WHERE cardinality(n.part) = 2 OR cardinality(n.part) = 3 AND n.part[1] = current_database())
SELECT format('%I.%I', p.schema, p.name), coalesce(c.oid::bigint, 0::bigint), coalesce(c.relkind IN ('r', 'p'), false)
FROM place p LEFT JOIN pg_namespace s ON s.nspname = p.schema LEFT JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = p.name
ORDER BY p.place)";

// $1 the table's oid.
constexpr std::string_view kTable = R"(
SELECT pg_catalog.format('%I.%I', s.nspname, c.relname), c.relkind::text, c.relpersistence::text, c.relispartition,
       c.relkind = 'r' AND c.relhassubclass, pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.has_table_privilege(c.oid, 'TRIGGER'), pg_catalog.pg_has_role(c.relowner, 'USAGE'),
       pg_catalog.pg_has_role(o.relowner, 'USAGE'), pg_catalog.pg_get_userbyid(o.relowner)::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
JOIN pg_catalog.pg_class o ON o.oid = '{schema}.event'::regclass
WHERE c.oid = $1::bigint::oid)";

// $1 the table's oid, $2 whether it is partitioned; then a unique index must contain the partition
// key.
constexpr std::string_view kTableColumns = R"(
SELECT a.attname::text, pg_catalog.format_type(t.oid, NULL), t.typtype = 'e',
       a.attnotnull AND EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid
                                AND i.indpred IS NULL AND i.indexprs IS NULL
                                AND (i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
                                     OR $2::boolean AND i.indisprimary AND a.attnum = ANY (i.indkey::int2[]))),
       NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid
                   AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum),
       coalesce((SELECT pg_catalog.json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid)::text, '[]'), a.attnum::integer, a.attgenerated::text,
       (WITH RECURSIVE base(oid) AS (SELECT a.atttypid UNION ALL
          SELECT y.typbasetype FROM base b JOIN pg_catalog.pg_type y ON y.oid = b.oid WHERE y.typtype = 'd')
        SELECT y.typnamespace <> 'pg_catalog'::regnamespace
               AND NOT (y.typtype = 'e' AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.castsource = y.oid))
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend p WHERE p.classid = 'pg_catalog.pg_type'::regclass AND p.objid = y.oid
                               AND p.refclassid = 'pg_catalog.pg_extension'::regclass AND p.deptype = 'e')
        FROM base b JOIN pg_catalog.pg_type y ON y.oid = b.oid WHERE y.typtype <> 'd')
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type d ON d.oid = a.atttypid
JOIN pg_catalog.pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)";

// $1 the table's oid. A prepared transaction has no session.
constexpr std::string_view kHolders = R"(
SELECT coalesce(pg_catalog.string_agg(h.who, ', '), '') FROM (
  SELECT DISTINCT CASE WHEN l.pid IS NULL THEN 'a prepared transaction (pg_prepared_xacts)'
    ELSE pg_catalog.format('pid %s (%s, %s for %s s)', l.pid, coalesce(nullif(a.application_name, ''), a.backend_type), a.state,
                           pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start)::int) END AS who
  FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
  WHERE l.relation = $1::bigint::oid AND l.granted AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') LIMIT 5) h)";

Status check(const Rows& found, const std::string& name) {
  const std::string kind = found.text(0, 1);
  const std::string table = "table " + name;
  if (kind != "r" && kind != "p")
    return fail(Errc::unsupported, name + " is no table",
                "a view or a foreign table has no rows of its own: adopt the table below it");
  if (found.text(0, 2) == "t")
    return fail(Errc::unsupported, table + " is temporary", "only its own session sees it");
  if (found.boolean(0, 3))
    return fail(Errc::unsupported, table + " is a partition of another table", "adopt that one");
  if (found.boolean(0, 4))
    return fail(Errc::unsupported, table + " has child tables",
                "inheritance is not supported; partitions are");
  if (!found.boolean(0, 5) || !found.boolean(0, 6))
    return fail(Errc::permission_denied,
                table + ": this login may not read it and put a trigger on it",
                "use the table's owner, or GRANT SELECT, TRIGGER ON " + name + " TO the login");
  if (!found.boolean(0, 8))
    return fail(Errc::permission_denied, "this login may not make functions in the outbox's schema",
                "GRANT " + found.text(0, 9) + " TO the login, or use the one that migrates");
  return {};
}

/// Parses the words of the view adoption_state.
AdoptionFault parse_fault(std::string_view word) {
  using enum AdoptionFault;
  if (word == "dropped") return dropped;
  if (word == "remade") return remade;
  if (word == "replaced") return replaced;
  if (word == "off") return off;
  if (word == "replica_only") return replica_only;
  return no_trigger;
}

Generated parse_generated(std::string_view word) {
  if (word.empty()) return Generated::no;
  return word == "v" ? Generated::by_reading : Generated::stored;
}

std::vector<std::string> parse_words(std::string_view json) {
  return parse_json<nlohmann::json>(json).get<std::vector<std::string>>();
}

}  // namespace

Result<NamedTable> resolve_table(Connection& connection, const std::string& name) {
  OUTBOX_TRY(const Rows schemas,
             connection.exec_with(&Queries::logins_search_path, &Queries::schemas));
  pg::ArrayParam places(pg::ArrayParam::Element::text);
  for (int row = 0; row < schemas.size(); ++row) places.add(schemas.bytes(row, 0));
  const Query query = unprepared("look for the table " + in_quotes(name), kResolve, "");
  OUTBOX_TRY(const Rows rows,
             connection.exec_with(&Queries::pin_search_path, query, {name, places.take()}));
  NamedTable table;
  for (int row = 0; row < rows.size(); ++row) {
    table.names.push_back(rows.text(row, 0));
    if (table.relation != 0) continue;
    table.relation = rows.int8(row, 1);
    table.is_table = rows.boolean(row, 2);
  }
  return table;
}

Result<std::optional<FoundTable>> read_table(Connection& connection, const std::string& schema,
                                             std::int64_t relation, const std::string& id_name) {
  const Query table_query = unprepared("look for a table", kTable, schema);
  OUTBOX_TRY(const Rows found,
             connection.exec_with(&Queries::pin_search_path, table_query, {relation}));
  if (found.empty()) return std::optional<FoundTable>{};
  const std::string full = found.text(0, 0);
  OUTBOX_TRY(check(found, full));
  FoundTable table;
  table.table.name = full;
  table.table.id_name = id_name.empty() ? full : id_name;
  table.table.schema = pg::quote_identifier(schema);
  table.table.partitioned = found.text(0, 1) == "p";
  table.relation = relation;
  table.may_undo = found.boolean(0, 7);
  const Query columns_query = unprepared("read the columns of " + full, kTableColumns, schema);
  OUTBOX_TRY(const Rows columns, connection.exec_with(&Queries::pin_search_path, columns_query,
                                                      {table.relation, table.table.partitioned}));
  for (int row = 0; row < columns.size(); ++row) {
    table.table.columns.push_back({.name = columns.text(row, 0),
                                   .type = columns.text(row, 1),
                                   .is_enum = columns.boolean(row, 2),
                                   .unique = columns.boolean(row, 3),
                                   .repeats = columns.boolean(row, 4),
                                   .labels = parse_words(columns.bytes(row, 5)),
                                   .number = columns.int4(row, 6),
                                   .generated = parse_generated(columns.bytes(row, 7)),
                                   .foreign = columns.boolean(row, 8)});
  }
  return std::optional(std::move(table));
}

Result<std::vector<FoundAdoption>> find_adoptions(Connection& connection,
                                                  const std::string& schema) {
  const Query query = unprepared(
      "read the adopted tables",
      "SELECT " + std::string(kAdoptionColumns) + " FROM {schema}.adoption_state a ORDER BY a.id",
      schema);
  OUTBOX_TRY(const Rows rows, connection.exec(query));
  return rows.list([&](int row) { return read_adoption(rows, row); });
}

FoundAdoption read_adoption(const Rows& rows, int row) {
  FoundAdoption one;
  one.shape = rows.text(row, 8);
  one.columns = rows.text(row, 13);
  one.known_as = rows.text(row, 14);
  one.id_name = rows.text(row, 16);
  if (!rows.is_null(row, 15)) one.relation = rows.int8(row, 15);
  one.row = {.id = rows.int4(row, 0),
             .table = rows.text(row, 1),
             .state = rows.text(row, 2),
             .cut_lsn = rows.text(row, 3),
             .taken_over = rows.int8(row, 4),
             .staged = rows.int8(row, 5),
             .begun_us = rows.time_us(row, 6),
             .debezium = parse_adopt_shape(one.shape).debezium,
             .waiting = std::min(rows.int8(row, 9), AdoptionRow::kManyWaiting),
             .more_waiting = rows.int8(row, 9) > AdoptionRow::kManyWaiting,
             .running = rows.boolean(row, 10)};
  if (!rows.is_null(row, 7)) one.row.switched_us = rows.time_us(row, 7);
  if (!rows.is_null(row, 11)) {
    one.row.fault = parse_fault(rows.text(row, 11));
    if (one.row.fault != AdoptionFault::replaced) one.row.state = "broken";
    one.row.fault_at = rows.is_null(row, 12) ? "" : rows.text(row, 12);
  }
  return one;
}

Result<std::string> lock_holders(Connection& connection, std::int64_t relation) {
  const Query query = unprepared("look for who holds the lock", kHolders, "");
  OUTBOX_TRY(const Rows rows, connection.exec_with(&Queries::pin_search_path, query, {relation}));
  return rows.text(0, 0);
}

}  // namespace outbox::store::postgres
