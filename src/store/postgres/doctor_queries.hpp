// The statements of `outbox doctor`, as in queries.hpp. Each runs in a read-only transaction of its own, behind `guard`. They read the
// server's catalogs and statistics; what they read of the outbox's tables has its index named.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/adopt_catalog.hpp"
#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct DoctorQueries {
  explicit DoctorQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // Also on a standby, where a transaction cannot write.
  Query begin = of("begin a question", "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY");

  // Before each of the others, in its transaction: it does not wait for a lock for long, and ends soon; names mean the server's own objects,
  // whatever the login's search_path is.
  Query guard = of("limit a question", R"(
SELECT pg_catalog.set_config('lock_timeout', '1s', true), pg_catalog.set_config('statement_timeout', '5s', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true))");

  // to_regclass() is null, and so is the right, where there is no outbox or no right to see it.
  Query server = of("ask what the server is", R"(
SELECT current_setting('server_version'), current_database()::text, current_user::text, pg_is_in_recovery(),
(SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
coalesce(CASE WHEN has_schema_privilege(to_regnamespace('{schema}')::oid, 'USAGE')
         THEN has_table_privilege(to_regclass('{schema}.event')::oid, 'SELECT') END, false),
pg_has_role('pg_read_all_stats', 'USAGE'), pg_backend_pid(), current_setting('fsync') = 'on',
current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'))");

  Query clock = of("read the clock", "SELECT clock_timestamp()");

  Query payload_limit = of("read the limit of payloads", "SELECT {schema}.payload_limit()");

  // The largest payload among the newest numbers, of which each transaction that was rolled back has used up some. Index (seq) of each
  // partition, whatever the planner knows of them; the length of a payload is known without reading it.
  Query recent_payload = of("look at the newest payloads", R"(
SELECT coalesce(max(octet_length(payload)), 0)::bigint FROM {schema}.event
WHERE seq > coalesce(pg_sequence_last_value('{schema}.event_seq'::regclass), 0) - 1000)");

  Query sequence = of("look at the sequence", R"(
SELECT seqcache, seqincrement, seqcycle FROM pg_sequence WHERE seqrelid = '{schema}.event_seq'::regclass)");

  // The roles of the outbox, everybody, and the logins that have the rights of one, or deliver although they are superusers: what each lacks
  // of what the migrations grant, and what it has beyond that. What does not exist here is null, and not missing.
  Query roles = of("look at the roles", R"(
WITH o AS (SELECT relowner AS owner FROM pg_class WHERE oid = '{schema}.event'::regclass),
wanted(kind, privilege, type, object, good) AS (VALUES
  ('app', 'USAGE', 'SCHEMA', '', true), ('relay', 'USAGE', 'SCHEMA', '', true), ('reader', 'USAGE', 'SCHEMA', '', true),
  ('app', 'INSERT', '', 'event_in', true), ('app', 'INSERT', '', 'new_event', true), ('app', 'SELECT', '', 'migration', true),
  ('app', 'USAGE', 'SEQUENCE', 'event_seq', true), ('app', 'INSERT', '', 'inbox', true), ('app', 'EXECUTE', 'FUNCTION', 'claim_unique(text,text,uuid,boolean)', true),
  ('app', 'SELECT', '', 'event', false), ('app', 'UPDATE', '', 'event', false), ('app', 'DELETE', '', 'event', false),
  ('app', 'TRUNCATE', '', 'event', false), ('app', 'INSERT', '', 'settlement', false), ('app', 'UPDATE', '', 'settlement', false),
  ('app', 'DELETE', '', 'settlement', false),
  ('relay', 'SELECT', '', 'event', true), ('relay', 'INSERT', '', 'settlement', true), ('relay', 'INSERT', '', 'incarnation', true),
  ('relay', 'UPDATE', '', 'subscription', true), ('relay', 'DELETE', '', 'relay', true), ('relay', 'UPDATE', '', 'lane', true),
  ('relay', 'UPDATE', '', 'fleet', true), ('relay', 'DELETE', '', 'parked', true), ('relay', 'INSERT', '', 'parked_end', true),
  ('relay', 'DELETE', '', 'run', true), ('relay', 'DELETE', '', 'worker', true),
  ('relay', 'EXECUTE', 'FUNCTION', 'make_partitions(interval)', true),
  ('relay', 'UPDATE', '', 'event', false), ('relay', 'DELETE', '', 'event', false), ('relay', 'TRUNCATE', '', 'event', false),
  ('relay', 'UPDATE', '', 'settlement', false), ('relay', 'DELETE', '', 'settlement', false),
  ('reader', 'SELECT', '', 'event', true), ('reader', 'SELECT', '', 'settlement', true), ('reader', 'SELECT', '', 'parked', true),
  ('reader', 'UPDATE', '', 'event', false), ('reader', 'DELETE', '', 'event', false), ('reader', 'TRUNCATE', '', 'event', false),
  ('reader', 'INSERT', '', 'settlement', false), ('reader', 'UPDATE', '', 'subscription', false),
  ('reader', 'UPDATE', '', 'parked', false), ('reader', 'DELETE', '', 'parked', false),
  ('everybody', 'SELECT', '', 'event', false), ('everybody', 'UPDATE', '', 'event', false), ('everybody', 'DELETE', '', 'event', false),
  ('everybody', 'INSERT', '', 'event', false), ('everybody', 'SELECT', '', 'parked', false),
  ('everybody', 'INSERT', '', 'settlement', false)),
roles(oid, name, kind, super, owner, login) AS (
  SELECT r.oid, g.name, g.kind, r.rolsuper, NOT r.rolsuper AND pg_has_role(r.oid, o.owner, 'MEMBER'), false
  FROM o, (VALUES ('outbox_app', 'app'), ('outbox_relay', 'relay'), ('outbox_reader', 'reader')) g(name, kind)
  LEFT JOIN pg_roles r ON r.rolname = g.name
  UNION ALL SELECT 0::oid, 'PUBLIC', 'everybody', false, false, false
  UNION ALL
  SELECT r.oid, r.rolname::text, CASE WHEN d.delivers OR m.relay THEN 'relay' WHEN m.app THEN 'app' ELSE 'reader' END, r.rolsuper,
         NOT r.rolsuper AND pg_has_role(r.oid, o.owner, 'MEMBER'), true
  FROM o, pg_roles r CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = r.oid AND a.datname = current_database()
                     AND a.application_name ~ ' (lease|settler)$') AS delivers) d
  CROSS JOIN LATERAL (
    SELECT coalesce(bool_or(g.rolname = 'outbox_relay'), false) AS relay, coalesce(bool_or(g.rolname = 'outbox_app'), false) AS app,
           coalesce(bool_or(g.rolname = 'outbox_reader'), false) AS reader
    FROM pg_roles g WHERE g.rolname = ANY (ARRAY['outbox_app', 'outbox_relay', 'outbox_reader']) AND NOT r.rolsuper
      AND pg_has_role(r.oid, g.oid, 'MEMBER')) m
  WHERE r.rolcanlogin AND (d.delivers OR m.relay OR m.app OR m.reader))
SELECT r.name, CASE r.kind WHEN 'everybody' THEN r.name ELSE quote_ident(r.name) END, r.kind, r.oid IS NOT NULL, coalesce(r.super, false), coalesce(r.owner, false), r.login,
  quote_ident((SELECT pg_get_userbyid(owner)::text FROM o)),
  coalesce(string_agg(h.shown, ', ' ORDER BY h.shown) FILTER (WHERE h.good AND NOT h.has), ''),
  coalesce(string_agg(h.shown, ', ' ORDER BY h.shown) FILTER (WHERE NOT h.good AND h.has), '')
FROM roles r LEFT JOIN LATERAL (
  SELECT w.good, concat_ws(' ', w.privilege, 'ON', nullif(w.type, ''), quote_ident('{name}') || coalesce('.' || nullif(w.object, ''), '')) AS shown,
    CASE w.type WHEN 'SCHEMA' THEN has_schema_privilege(r.oid, '{schema}'::regnamespace::oid, w.privilege)
      WHEN 'SEQUENCE' THEN has_sequence_privilege(r.oid, to_regclass('{schema}.' || w.object)::oid, w.privilege)
      WHEN 'FUNCTION' THEN has_function_privilege(r.oid, to_regprocedure('{schema}.' || w.object)::oid, w.privilege)
      ELSE has_table_privilege(r.oid, to_regclass('{schema}.' || w.object)::oid, w.privilege) END AS has
  FROM wanted w WHERE w.kind = r.kind AND NOT coalesce(r.super OR r.owner, true)) h ON true
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY r.login, r.name LIMIT 200)");

  // Whether the default partition has a row: its index (xid, seq). The rest is a row of meta and the catalog.
  Query partitions = of("look at the partitions", R"(
SELECT {schema}.partitions_end(), pg_snapshot_xmax(pg_current_snapshot())::text::bigint, {schema}.partition_width(),
(SELECT ceil(xids_per_s * 3600)::bigint FROM {schema}.meta),
(SELECT count(*) - 1 FROM pg_inherits WHERE inhparent = '{schema}.event'::regclass),
EXISTS (SELECT FROM ONLY {schema}.event_default WHERE xid > '0'::xid8))");

  // One row.
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

  // The oldest first. Transaction ids of all databases: snapshots taken here contain them. Snapshots of this database only: others do not
  // keep its rows.
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

  // The columns of the table of now, as adopt_changes.hpp keeps them; and whether a subscription of the server fills it. A few rows; the
  // catalogs by their indexes.
  Query adoptions =
      of("look at the adopted tables", "SELECT " + std::string(kAdoptionColumns) + R"(, coalesce((
  SELECT json_agg(json_build_object('name', c.attname, 'number', c.attnum, 'type', format_type(t.oid, NULL)))
  FROM pg_attribute c JOIN pg_type d ON d.oid = c.atttypid
  JOIN pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
  WHERE c.attrelid = a.relation_now AND c.attnum > 0 AND NOT c.attisdropped), '[]')::text,
EXISTS (SELECT FROM pg_subscription_rel r WHERE r.srrelid = a.relation_now)
FROM {schema}.adoption_state a WHERE a.state <> 'ended' ORDER BY a.id LIMIT 100)");

  // Settings of a login, a database or the server by which no trigger fires, but those that were enabled ALWAYS. Of logins only those that
  // may insert into an adopted table.
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
