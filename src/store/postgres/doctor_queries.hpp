// The statements of `outbox doctor`, as in queries.hpp. Each runs in a read-only transaction of its
// own, after `guard`. They read the server's catalogs and statistics; where they read the outbox's
// tables, the comment names the index.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/adopt_catalog.hpp"
#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct DoctorQueries {
  explicit DoctorQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // This also works on a standby, where a transaction cannot write.
  Query begin = of("begin a question", "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY");

  // It comes before each of the other statements, in its transaction. It limits how long the
  // statement waits for a lock and how long it runs, and turns the compiler off, which can take
  // longer than that (Queries::no_jit); and names mean the server's own objects, whatever the
  // login's search_path is.
  Query guard = of("limit a question", R"(
SELECT pg_catalog.set_config('lock_timeout', '1s', true), pg_catalog.set_config('statement_timeout', '5s', true), pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true))");

  // Where there is no outbox, or no right to see it, to_regclass() is null, and so is the right.
  Query server = of("ask what the server is", R"(
SELECT current_setting('server_version'), current_database()::text, current_user::text, pg_is_in_recovery(),
(SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
coalesce(CASE WHEN has_schema_privilege(to_regnamespace('{schema}')::oid, 'USAGE')
         THEN has_table_privilege(to_regclass('{schema}.event')::oid, 'SELECT') END, false),
pg_has_role('pg_read_all_stats', 'USAGE'), pg_backend_pid(), current_setting('fsync') = 'on',
current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'))");

  Query clock = of("read the clock", "SELECT clock_timestamp()");

  Query payload_limit = of("read the limit of payloads", "SELECT {schema}.payload_limit()");

  // The largest payload among the newest seqs, some of which were used up by transactions that were
  // rolled back. Index (seq) of each partition, whatever the planner knows of them; the length of a
  // payload is known without reading it.
  Query recent_payload = of("look at the newest payloads", R"(
SELECT coalesce(max(octet_length(payload)), 0)::bigint FROM {schema}.event
WHERE seq > coalesce(pg_sequence_last_value('{schema}.event_seq'::regclass), 0) - 1000)");

  // The sequences of columns that this login may look at, and for each the statement that finds the
  // greatest number in use. For the log this includes the numbers in marks and positions, since
  // events are removed: index (seq) of each partition, and all settlements.
  Query sequences = of("look at the sequences", R"(
SELECT s.oid::regclass::text, quote_literal(s.oid::regclass::text), coalesce(pg_sequence_last_value(s.oid), 0),
  CASE WHEN c.oid = '{schema}.event'::regclass
       THEN 'SELECT greatest(max(seq), (SELECT max(greatest(l, position)) FROM {schema}.settlement)) FROM {schema}.event'
       ELSE format('SELECT max(%I)::bigint FROM %s', a.attname, c.oid::regclass) END
FROM pg_class s JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.deptype IN ('a', 'i')
JOIN pg_class c ON c.oid = d.refobjid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
WHERE s.relnamespace = '{schema}'::regnamespace AND CASE s.relkind WHEN 'S' THEN has_sequence_privilege(s.oid, 'SELECT, USAGE') END
  AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege('{schema}.settlement'::regclass::oid, 'SELECT')
ORDER BY s.oid)");

  // Finds what the definitions do not tell. `held`: who has the rights of which role of the outbox;
  // whoever delivers counts as a relay. `edge`: the rights that such a role was given, directly or
  // through membership in a role that is none of the outbox's; at most three rights beyond its own
  // are named. Since PostgreSQL 16 it matters by whose grant a role is a member.
  Query roles = of("look at the roles", R"(
WITH ours(name) AS (VALUES ('outbox_app'), ('outbox_relay'), ('outbox_reader'), ('outbox_console')),
delivers AS (SELECT DISTINCT usesysid AS oid FROM pg_stat_activity
             WHERE datname = current_database() AND application_name ~ ' (lease|settler)$'),
held AS (
  SELECT r.oid AS member, o.oid AS role FROM pg_roles r JOIN pg_roles o ON o.rolname IN (SELECT name FROM ours)
  WHERE NOT r.rolsuper AND (pg_has_role(r.oid, o.oid, 'USAGE') OR o.rolname = 'outbox_relay' AND r.oid IN (SELECT oid FROM delivers))),
edge AS (
  SELECT m.member, m.roleid AS role, m.grantor FROM pg_auth_members m
  WHERE m.member IN (SELECT member FROM held) AND m.roleid NOT IN (SELECT member FROM held)
  UNION SELECT member, member, 0 FROM held h WHERE h.member NOT IN (SELECT role FROM held)),
beyond AS (
  SELECT e.*, format('%s ON %s', p.privilege, c.oid::regclass) AS shown
  FROM edge e CROSS JOIN pg_class c CROSS JOIN (VALUES ('DELETE'), ('UPDATE'), ('TRUNCATE'), ('INSERT'), ('SELECT')) p(privilege)
  WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
    AND CASE WHEN e.role <> e.member THEN has_table_privilege(e.role, c.oid, p.privilege)
        ELSE EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee = e.member AND a.grantee <> c.relowner AND a.privilege_type = p.privilege) END
    AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.privilege_type = p.privilege
                    AND (a.grantee = 0 OR a.grantee IN (SELECT h.role FROM held h WHERE h.member = e.member))))
SELECT false, name, 'does not exist', format('CREATE ROLE %I NOLOGIN', name) FROM ours WHERE name NOT IN (SELECT rolname FROM pg_roles)
UNION ALL
SELECT true, rolname::text, 'is a superuser', CASE WHEN oid IN (SELECT oid FROM delivers) THEN 'CREATE ROLE outbox_relay1 LOGIN IN ROLE outbox_relay'
    ELSE format('ALTER ROLE %I NOSUPERUSER', rolname) END
FROM pg_roles WHERE rolsuper AND (rolname IN (SELECT name FROM ours) OR oid IN (SELECT oid FROM delivers))
UNION ALL
SELECT true, r.rolname::text, 'delivers, and owns the tables of the outbox', 'CREATE ROLE outbox_relay1 LOGIN IN ROLE outbox_relay'
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.oid = '{schema}.event'::regclass AND NOT r.rolsuper AND c.relowner IN (SELECT oid FROM delivers)
UNION ALL
SELECT true, pg_get_userbyid(member)::text, concat('has ', array_to_string((array_agg(shown ORDER BY shown !~ '[.]event$', shown))[1:3], ', '),
    CASE WHEN count(*) > 3 THEN format(' and %s more rights', count(*) - 3) END,
    CASE WHEN role <> member THEN format(', as a member of %s', pg_get_userbyid(role)) END),
  CASE WHEN role = member THEN string_agg(format('REVOKE %s FROM %I', shown, pg_get_userbyid(member)), '; ' ORDER BY shown)
  ELSE format('REVOKE %I FROM %I%s', pg_get_userbyid(role), pg_get_userbyid(member), CASE WHEN current_setting('server_version_num')::integer >= 160000
         THEN format(' GRANTED BY %I', pg_get_userbyid(grantor)) ELSE '' END) END
FROM beyond GROUP BY member, role, grantor
ORDER BY 2, 3 LIMIT 200)");

  // Whether the default partition has a row: its index (xid, seq). The rest is a row of meta and
  // the catalog.
  Query partitions = of("look at the partitions", R"(
SELECT {schema}.partitions_end(), pg_snapshot_xmax(pg_current_snapshot())::text::bigint, {schema}.partition_width(),
(SELECT ceil(xids_per_s * 3600)::bigint FROM {schema}.meta),
(SELECT count(*) - 1 FROM pg_inherits WHERE inhparent = '{schema}.event'::regclass),
EXISTS (SELECT FROM ONLY {schema}.event_default WHERE xid > '0'::xid8))");

  // It reads one row.
  Query vacuum = of("look at autovacuum", R"(
SELECT current_setting('autovacuum')::boolean, current_setting('track_counts')::boolean,
current_setting('autovacuum_freeze_max_age')::bigint, age(datfrozenxid)::bigint, mxid_age(datminmxid)::bigint
FROM pg_database WHERE datname = current_database())");

  // A few dozen tables: those with autovacuum off, and those with many dead rows.
  Query tables = of("look at the tables", R"(
SELECT t.* FROM (
  SELECT c.relname::text AS name, coalesce((SELECT option_value::boolean FROM pg_options_to_table(c.reloptions)
           WHERE option_name = 'autovacuum_enabled'), true) AS autovacuum,
         coalesce(pg_stat_get_live_tuples(c.oid), 0) AS live, coalesce(pg_stat_get_dead_tuples(c.oid), 0) AS dead
  FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r') t
ORDER BY t.autovacuum, t.dead DESC LIMIT 50)");

  // The oldest ones come first. For transaction ids all databases count, since snapshots taken here
  // contain them. For snapshots only this database counts, since others do not keep its rows.
  Query holders = of("look for old snapshots", R"(
SELECT h.* FROM (
  SELECT CASE WHEN a.datid IS NULL THEN 'standby' ELSE 'session' END, a.pid::bigint, a.application_name,
         quote_literal(a.application_name), coalesce(a.usename, '')::text, coalesce(a.state, ''),
         (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint,
         greatest(age(a.backend_xid), age(a.backend_xmin))::bigint AS xids, true
  FROM pg_stat_activity a
  WHERE a.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
    AND (a.backend_xid IS NOT NULL
         OR a.backend_xmin IS NOT NULL AND (a.datid IS NULL OR a.datname = current_database()))
  UNION ALL
  SELECT 'prepared', 0, p.gid, quote_literal(p.gid), p.owner::text, p.database::text,
         (extract(epoch FROM clock_timestamp() - p.prepared) * 1000000)::bigint, age(p.transaction)::bigint, true
  FROM pg_prepared_xacts p
  UNION ALL
  SELECT 'slot', coalesce(s.active_pid, 0)::bigint, s.slot_name::text, quote_literal(s.slot_name), '', s.slot_type, NULL,
         age(s.xmin)::bigint, s.active
  FROM pg_replication_slots s WHERE s.xmin IS NOT NULL) h
ORDER BY h.xids DESC LIMIT 20)");

  Query slots = of("look at the replication slots", R"(
SELECT slot_name::text, quote_literal(slot_name), active, coalesce(CASE WHEN NOT pg_is_in_recovery()
  THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, 0)::bigint, coalesce(wal_status, '')
FROM pg_replication_slots ORDER BY 4 DESC LIMIT 20)");

  // The present columns of the table, in the form in which adopt_changes.hpp stores them; and
  // whether a subscription of the server fills it. A few rows; the catalogs by their indexes.
  Query adoptions =
      of("look at the adopted tables", "SELECT " + std::string(kAdoptionColumns) + R"(, coalesce((
  SELECT json_agg(json_build_object('name', c.attname, 'number', c.attnum, 'type', format_type(t.oid, NULL)))
  FROM pg_attribute c JOIN pg_type d ON d.oid = c.atttypid
  JOIN pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
  WHERE c.attrelid = a.relation_now AND c.attnum > 0 AND NOT c.attisdropped), '[]')::text,
EXISTS (SELECT FROM pg_subscription_rel r WHERE r.srrelid = a.relation_now)
FROM {schema}.adoption_state a WHERE a.state <> 'ended' ORDER BY a.id LIMIT 100)");

  // The settings of a login, a database or the server that keep all triggers from firing but those
  // that were enabled ALWAYS. Only logins that may insert into an adopted table count.
  Query silent_sessions = of("look for sessions without triggers", R"(
WITH adopted AS (SELECT a.relation_now AS relation FROM {schema}.adoption_state a WHERE a.state <> 'ended' AND NOT a.always)
SELECT coalesce(quote_ident(r.rolname), ''), coalesce(quote_ident(d.datname), '')
FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
WHERE EXISTS (SELECT FROM unnest(s.setconfig) c WHERE lower(c) = 'session_replication_role=replica')
  AND (s.setdatabase = 0 OR d.datname = current_database()) AND (s.setrole = 0 OR r.rolcanlogin)
  AND EXISTS (SELECT FROM adopted a WHERE s.setrole = 0 OR has_table_privilege(r.oid, a.relation, 'INSERT'))
UNION ALL
SELECT '', '' FROM pg_settings WHERE name = 'session_replication_role' AND setting = 'replica'
  AND source IN ('configuration file', 'command line') AND EXISTS (SELECT FROM adopted)
ORDER BY 1, 2 LIMIT 20)");

  Query wal = of("measure the WAL", "SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()");

  Query sizes = of("measure the tables", R"(
SELECT coalesce(sum(t.bytes) FILTER (WHERE t.event), 0)::bigint, coalesce(sum(t.bytes) FILTER (WHERE t.name = 'settlement'), 0)::bigint,
       coalesce(sum(t.bytes) FILTER (WHERE t.name LIKE 'parked%'), 0)::bigint,
       coalesce(sum(t.bytes) FILTER (WHERE NOT t.event AND t.name <> 'settlement' AND t.name NOT LIKE 'parked%'), 0)::bigint
FROM (SELECT c.relname::text AS name, pg_total_relation_size(c.oid) AS bytes,
             EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = '{schema}.event'::regclass) AS event
      FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r') t)");

  Query connections = of("count the connections", R"(
SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
       - coalesce(current_setting('reserved_connections', true), '0')::bigint,
  count(*), r.rolconnlimit::bigint, count(*) FILTER (WHERE a.usename = current_user), d.datconnlimit::bigint,
  count(*) FILTER (WHERE a.datname = current_database())
FROM pg_stat_activity a, pg_roles r, pg_database d
WHERE a.datid IS NOT NULL AND a.usesysid IS NOT NULL AND r.rolname = current_user AND d.datname = current_database()
GROUP BY r.rolconnlimit, d.datconnlimit)");

  // Without the right to see them, their state is null.
  Query standbys = of("ask for the standbys", R"(
SELECT coalesce(s.application_name, ''), coalesce(s.state, ''),
  coalesce(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.flush_lsn) END, 0)::bigint
FROM pg_stat_replication s
WHERE NOT EXISTS (SELECT FROM pg_replication_slots l WHERE l.active_pid = s.pid AND l.slot_type = 'logical')
ORDER BY 1)");

  // $1 a channel of our own.
  Query notify = of("notify ourselves", "SELECT pg_notify($1::text, '')");
  Query unlisten = of("listen no more", "UNLISTEN *");

  // Whether a relay has the lock of the armed wake-up (queries.hpp).
  Query armed = of("look at the wake-up", R"(
SELECT EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.classid::bigint << 32) + l.objid::bigint = hashtextextended('outbox:wake:{name}', 0::bigint)), (pg_notification_queue_usage() * 1000)::bigint)");

 private:
  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    return unprepared(what, sql, schema);
  }
};

}  // namespace outbox::store::postgres
