#include "store/postgres/definitions.hpp"

#include <array>
#include <cstddef>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

// Partitions come and go, so they are no objects of their own: what one of them has and its root
// has not is a part of the root. What people may choose is left out: storage parameters, comments,
// statistics, publications, and rights of roles that are not the outbox's.
constexpr std::string_view kFound =
    // The relations; for the sequence of an identity column, also which column it belongs to.
    R"(
WITH space AS (SELECT oid, nspowner, nspacl, quote_ident(nspname) AS name FROM pg_namespace WHERE nspname = '{name}'),
rel AS (
  SELECT c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
    c.relpartbound, c.relispartition AS part, c.oid::regclass::text AS name,
    CASE WHEN c.relispartition THEN ' of ' || c.relname ELSE '' END AS of,
    coalesce(CASE WHEN c.relispartition THEN pg_partition_root(c.oid) END, c.oid)::oid AS root, d.refobjid, d.refobjsubid
  FROM space s JOIN pg_class c ON c.relnamespace = s.oid
  LEFT JOIN pg_depend d ON c.relkind = 'S' AND d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i'
  WHERE c.relkind IN ('r', 'p', 'v', 'S')),)"
    // All objects. `usual` are the rights that PostgreSQL gives by itself. If `kind` is null, the
    // owner follows from another object.
    R"(
obj AS (
  SELECT oid, 'schema ' || name AS object, 'SCHEMA ' || name AS target, NULL AS kind, nspowner AS owner, nspacl AS acl,
    acldefault('n', nspowner) AS usual, NULL::oid AS root FROM space
  UNION ALL
  SELECT oid, CASE relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' ELSE 'table ' END || root::regclass,
    CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || name,
    CASE WHEN relkind <> 'S' THEN 'TABLE ' WHEN refobjid IS NULL THEN '' END, relowner, relacl,
    acldefault(CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, relowner), CASE WHEN part THEN root END FROM rel
  UNION ALL
  SELECT p.oid, format('function %s.%I', s.name, p.proname), 'FUNCTION ' || p.oid::regprocedure, '', p.proowner, p.proacl,
    acldefault('f', p.proowner), NULL FROM space s JOIN pg_proc p ON p.pronamespace = s.oid WHERE p.prokind IN ('f', 'p')
  UNION ALL
  SELECT t.oid, 'domain ' || t.oid::regtype, 'DOMAIN ' || t.oid::regtype, '', t.typowner, t.typacl, acldefault('T', t.typowner),
    NULL FROM space s JOIN pg_type t ON t.typnamespace = s.oid WHERE t.typtype = 'd'),
owner AS (SELECT mode() WITHIN GROUP (ORDER BY owner) AS oid FROM obj WHERE kind IS NOT NULL),)"
    // The rights as differences from the usual ones: granted, or taken away. What the root grants
    // may be granted on a partition, too.
    R"(
given AS (
  SELECT o.oid, o.target, a.grantee, a.privilege_type AS privilege, a.is_grantable
  FROM obj o CROSS JOIN aclexplode(coalesce(o.acl, o.usual)) a
  UNION ALL
  SELECT r.oid, r.name, a.grantee, format('%s (%I)', a.privilege_type, c.attname), a.is_grantable
  FROM rel r JOIN pg_attribute c ON c.attrelid = r.oid CROSS JOIN aclexplode(c.attacl) a),
usual AS (
  SELECT o.oid, o.target, a.grantee, a.privilege_type AS privilege FROM obj o CROSS JOIN aclexplode(o.usual) a),
of_root AS (
  SELECT o.oid, o.target, a.grantee, a.privilege_type
  FROM obj o JOIN pg_class c ON c.oid = o.root CROSS JOIN aclexplode(c.relacl) a),
rights(granted, oid, target, grantee, option, privilege) AS (
  SELECT true, g.oid, g.target, g.grantee, '', g.privilege
  FROM (SELECT oid, target, grantee, privilege FROM given EXCEPT (SELECT * FROM usual UNION SELECT * FROM of_root)) g
  UNION ALL
  SELECT true, oid, target, grantee, 'GRANT OPTION FOR ', privilege FROM given WHERE is_grantable
  UNION ALL
  SELECT false, u.oid, u.target, u.grantee, '', u.privilege
  FROM (SELECT * FROM usual EXCEPT SELECT oid, target, grantee, privilege FROM given) u),)"
    // The facts that ALTER TABLE makes.
    R"(
col AS (
  SELECT r.oid, r.name, a.attnum, a.attnum * 8 AS place, quote_ident(a.attname) AS col,
    format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid) AS value,
    format('ALTER COLUMN %I ', a.attname) AS it
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
  WHERE r.relkind IN ('r', 'p') AND NOT r.part AND a.attnum > 0 AND NOT a.attisdropped),
altered(oid, place, part, name, makes, undoes) AS (
  SELECT oid, place, 'column ' || col, name,
    format('ADD COLUMN IF NOT EXISTS %s %s; ALTER TABLE %s %sTYPE %2$s USING %1$s::%2$s', col, type, name, it), 'DROP COLUMN ' || col
  FROM col
  UNION ALL
  SELECT oid, place + 1, 'default of column ' || col, name, it || 'SET DEFAULT ' || value, it || 'DROP DEFAULT'
  FROM col WHERE value IS NOT NULL
  UNION ALL
  SELECT oid, place + 2, 'NOT NULL of column ' || col, name, it || 'SET NOT NULL', it || 'DROP NOT NULL' FROM col WHERE attnotnull
  UNION ALL
  SELECT c.oid, c.place + f.place, f.part || c.col, c.name, it || f.makes, it || 'DROP IDENTITY'
  FROM col c JOIN rel s ON s.refobjid = c.oid AND s.refobjsubid = c.attnum JOIN pg_sequence q ON q.seqrelid = s.oid
  CROSS JOIN LATERAL (VALUES
    (3, 'identity of column ', 'ADD GENERATED ALWAYS AS IDENTITY'),
    (4, 'sequence of column ', format('SET GENERATED %s SET INCREMENT %s SET MINVALUE %s SET MAXVALUE %s SET CACHE %s SET %s CYCLE',
       CASE c.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, q.seqincrement, q.seqmin, q.seqmax, q.seqcache,
       CASE WHEN q.seqcycle THEN '' ELSE 'NO' END))) f(place, part, makes)
  UNION ALL
  SELECT r.oid, 20000, 'constraint ' || conname || of, name,
    format('DROP CONSTRAINT IF EXISTS %I, ADD CONSTRAINT %1$I %s', conname, pg_get_constraintdef(c.oid)),
    format('DROP CONSTRAINT %I', conname)
  FROM rel r JOIN pg_constraint c ON c.conrelid = r.oid
  WHERE contype NOT IN ('t', 'n') AND conparentid = 0 AND NOT (part AND coninhcount > 0)
  UNION ALL
  SELECT oid, 20000, 'unlogged' || of, name, 'SET UNLOGGED', 'SET LOGGED' FROM rel WHERE relpersistence = 'u' AND relkind = 'r'
  UNION ALL
  SELECT oid, 20000, 'row level security' || of, name, 'ENABLE ROW LEVEL SECURITY', 'DISABLE ROW LEVEL SECURITY'
  FROM rel WHERE relrowsecurity
  UNION ALL
  SELECT oid, 20000, 'forced row level security' || of, name, 'FORCE ROW LEVEL SECURITY', 'NO FORCE ROW LEVEL SECURITY'
  FROM rel WHERE relforcerowsecurity),)"
    // A partitioned table is created with the columns of its key.
    R"(
fact(oid, place, part, makes, undoes, grantee) AS (
  SELECT oid, 0, '', 'CREATE SCHEMA ' || name, '', '' FROM space
  UNION ALL
  SELECT r.oid, 0, '', format('CREATE TABLE %s (%s)%s', name,
      (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ') FROM pg_partitioned_table p
       JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = ANY (p.partattrs) WHERE p.partrelid = r.oid),
      ' PARTITION BY ' || pg_get_partkeydef(r.oid)), '', ''
  FROM rel r WHERE relkind IN ('r', 'p') AND NOT part
  UNION ALL
  SELECT oid, 0, 'partition ' || relname, format('CREATE TABLE %s PARTITION OF %s DEFAULT', name, root::regclass), '', ''
  FROM rel WHERE part AND pg_get_expr(relpartbound, 0) = 'DEFAULT'
  UNION ALL
  SELECT oid, 0, '', format('CREATE OR REPLACE VIEW %s AS%s', name, rtrim(pg_get_viewdef(oid), ';')), '', ''
  FROM rel WHERE relkind = 'v'
  UNION ALL
  SELECT oid, 0, '', format('CREATE SEQUENCE IF NOT EXISTS %s; ALTER SEQUENCE %1$s AS %s INCREMENT %s MINVALUE %s MAXVALUE %s CACHE %s%s CYCLE',
      name, seqtypid::regtype, seqincrement, seqmin, seqmax, seqcache, CASE WHEN seqcycle THEN '' ELSE ' NO' END), '', ''
  FROM rel JOIN pg_sequence ON seqrelid = oid WHERE refobjid IS NULL
  UNION ALL
  SELECT oid, 0, substr(target, 10), rtrim(pg_get_functiondef(oid), E'\n'), 'DROP ' || target, ''
  FROM obj WHERE target LIKE 'FUNCTION %'
  UNION ALL
  SELECT t.oid, 0, '', format('CREATE DOMAIN %s AS %s', t.oid::regtype, format_type(t.typbasetype, t.typtypmod)), '', ''
  FROM obj o JOIN pg_type t ON t.oid = o.oid WHERE o.target LIKE 'DOMAIN %'
  UNION ALL
  SELECT o.oid, 1, 'constraint ' || conname, format('ALTER %s ADD CONSTRAINT %I %s', o.target, conname, pg_get_constraintdef(c.oid)),
      format('ALTER %s DROP CONSTRAINT %I', o.target, conname), ''
  FROM obj o JOIN pg_constraint c ON c.contypid = o.oid
  UNION ALL
  SELECT oid, place, part, format('ALTER TABLE %s %s', name, makes), format('ALTER TABLE %s %s', name, undoes), '' FROM altered
  UNION ALL
  SELECT r.oid, 20001, CASE WHEN indisunique THEN 'unique ' WHEN indexprs IS NOT NULL OR indpred IS NOT NULL THEN 'partial ' ELSE '' END
      || 'index ' || c.relname, format('DROP INDEX IF EXISTS %s; %s%s', c.oid::regclass,
      replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON '), CASE WHEN indisvalid THEN '' ELSE ' /* invalid */' END),
      format('DROP INDEX %s', c.oid::regclass), ''
  FROM rel r JOIN pg_index i ON i.indrelid = r.oid JOIN pg_class c ON c.oid = i.indexrelid
  WHERE NOT (c.relispartition OR part AND NOT indisunique)
    AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = c.oid AND n.conrelid = r.oid)
  UNION ALL
  SELECT r.oid, 20002, 'trigger ' || tgname || of, regexp_replace(pg_get_triggerdef(t.oid), '^CREATE ', 'CREATE OR REPLACE ')
      || CASE tgenabled WHEN 'O' THEN '' ELSE format(' /* enabled: %s */', tgenabled) END, format('DROP TRIGGER %I ON %s', tgname, name), ''
  FROM rel r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT tgisinternal AND tgparentid = 0
  UNION ALL
  SELECT r.oid, 20002, 'rule ' || rulename || of, regexp_replace(rtrim(pg_get_ruledef(w.oid), ';'), '^CREATE ', 'CREATE OR REPLACE '),
      format('DROP RULE %I ON %s', rulename, name), ''
  FROM rel r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE rulename <> '_RETURN'
  UNION ALL
  SELECT o.oid, 20003, 'owner of ' || target, format('ALTER %s OWNER TO %I', kind || target, pg_get_userbyid(o.owner)),
      format('ALTER %s OWNER TO %I', kind || target, pg_get_userbyid(w.oid)), ''
  FROM obj o JOIN owner w ON w.oid <> o.owner WHERE kind IS NOT NULL
  UNION ALL
  SELECT r.oid, 20004, format('%s%s ON %s', option, privilege, target), CASE WHEN granted THEN gives ELSE takes END,
      CASE WHEN granted THEN takes ELSE gives END, who
  FROM rights r JOIN obj o USING (oid, target) LEFT JOIN pg_roles g ON g.oid = grantee
  CROSS JOIN LATERAL (SELECT coalesce(quote_ident(g.rolname), 'PUBLIC') AS who) w CROSS JOIN LATERAL (
    SELECT format('GRANT %s ON %s TO %s%s', privilege, target, who, CASE option WHEN '' THEN '' ELSE ' WITH GRANT OPTION' END) AS gives,
           format('REVOKE %s%s ON %s FROM %s', option, privilege, target, who) AS takes) s
  WHERE grantee = 0 OR grantee = o.owner OR g.rolname IN ('outbox_owner', 'outbox_app', 'outbox_relay', 'outbox_reader', 'outbox_console'))
SELECT f.object, f.part, f.grantee, f.makes, f.undoes FROM (
  SELECT o.object, f.part, f.grantee, f.makes, f.undoes, f.oid, f.place FROM fact f JOIN obj o USING (oid)
  UNION ALL SELECT '', 'owner', '', quote_ident(pg_get_userbyid(oid)), '', 0, 0 FROM owner
  UNION ALL SELECT '', 'made by', '', format('PostgreSQL %s, {program}', current_setting('server_version_num')::integer / 10000), '', 0, 0) f
ORDER BY f.oid, f.place, f.part, f.grantee)";

/// The query contains the hash of its own text, since the lists of two programs that ask
/// differently cannot be compared.
Query found_query(std::string_view schema) {
  Query query = unprepared("look at what the schema consists of", kFound, schema);
  replace_all(query.sql, "{program}", prepared("", kFound, schema).handle);
  return query;
}

}  // namespace

DefinitionQueries::DefinitionQueries(std::string_view schema)
    : found(found_query(schema)),
      wanted(unprepared(
          "read what the schema should consist of",
          "SELECT object, part, grantee, makes, undoes FROM {schema}.definition ORDER BY place",
          schema)),
      may_store(unprepared(
          "ask for the right to store definitions",
          "SELECT coalesce(has_table_privilege(to_regclass('{schema}.definition')::oid, 'INSERT'), false)",
          schema)),
      forget(unprepared("forget the definitions", "DELETE FROM {schema}.definition", schema)),
      store(unprepared("store the definitions", R"(
INSERT INTO {schema}.definition (object, part, grantee, makes, undoes)
SELECT a, b, c, d, e FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS u(a, b, c, d, e, place)
ORDER BY place)",
                       schema)) {}

Definitions to_definitions(const Rows& rows) {
  return rows.list([&](int row) {
    return Definition{.object = rows.text(row, 0),
                      .part = rows.text(row, 1),
                      .grantee = rows.text(row, 2),
                      .makes = rows.text(row, 3),
                      .undoes = rows.text(row, 4)};
  });
}

Result<Definitions> read_definitions(Connection& connection, const Query& query) {
  OUTBOX_TRY(const Rows rows, connection.exec(query));
  return to_definitions(rows);
}

Status store_definitions(Connection& connection, const Definitions& wanted) {
  const DefinitionQueries queries(connection.queries().schema);
  constexpr std::array kColumns{&Definition::object, &Definition::part, &Definition::grantee,
                                &Definition::makes, &Definition::undoes};
  Params columns;
  for (const auto column : kColumns) {
    ArrayParam values(ArrayParam::Element::text);
    for (const Definition& one : wanted) values.add(one.*column);
    columns.push_back(values.take());
  }
  connection.send(queries.forget);
  connection.send(queries.store, std::move(columns));
  auto stored = connection.finish();
  return stored ? Status{} : Status(pass(stored));
}

Status renew_definitions(Connection& connection) {
  const DefinitionQueries queries(connection.queries().schema);
  OUTBOX_TRY(const Rows may, connection.exec(queries.may_store));
  if (!may.boolean(0, 0)) return {};
  OUTBOX_TRY(const Definitions wanted, read_definitions(connection, queries.wanted));
  OUTBOX_TRY(const Definitions found, read_definitions(connection, queries.found));
  if (made_by(wanted) == made_by(found)) return {};
  OUTBOX_TRY(store_definitions(connection, found));
  return connection.run(&Queries::commit);
}

std::string definitions_script(const std::string& schema) {
  const DefinitionQueries queries(schema);
  return queries.forget.sql + ";\n" +
         with_schema("INSERT INTO {schema}.definition (object, part, grantee, makes, undoes)",
                     schema) +
         queries.found.sql + ";\n";
}

}  // namespace outbox::store::postgres
