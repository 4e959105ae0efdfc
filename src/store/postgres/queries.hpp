// Every SQL statement of the program on PostgreSQL: its name, its text, and for error messages what
// it does. The comments name its purpose and the index that it uses. Parameters are cast in the
// text ($1::bigint); results are binary.
//
// Functions and operators get exactly the types they are declared with, or are named in full.
// Behind a pooler, and on an application's connection, the search_path is the login's, and a
// function planted in it whose types fit better would be called. (unnest() of several arguments is
// always the server's own.)
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.hpp"
#include "store/postgres/query.hpp"
#include "store/sql/statements.hpp"

namespace outbox::store::postgres {

/// The statements of the parts in store/sql.
extern const sql::Statements kStatements;

/// The statements that an application's transactions use, on the application's connections.
struct EnqueueQueries {
  /// `schema` is not quoted and was checked by check_schema_name(). Without `wal_functions`, which
  /// some managed services refuse, the positions in the WAL are null, and every barrier is forced.
  explicit EnqueueQueries(std::string_view schema, bool wal_functions = true);

  const std::string schema;
  const bool wal_functions;

  Query commit = prepared("commit", "COMMIT");

  // $1 id, $2 aggregate_type, $3 aggregate_id, $4 event_type, $5 payload, $6 content_type, $7
  // headers, $8 occurred_at, $9 lock_key, where null means the session's setting. The sub-select
  // runs before the row's seq is taken, so that the key is locked first.
  Query insert_event = prepared("enqueue", R"(
INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
SELECT $1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::text, $7::jsonb, $8::timestamptz
FROM (SELECT CASE WHEN coalesce($9::boolean, nullif(current_setting('outbox.lock_key', true), '')::boolean, false)
                    AND $3::text <> ''
             THEN pg_advisory_xact_lock(hashtextextended($3::text, hashtextextended($2::text,
                    hashtextextended('outbox:key:{name}', 0::bigint)))) END OFFSET 0) AS locked)");

  // The same without a lock: $1 to $8.
  Query insert_event_unlocked = prepared("enqueue", R"(
INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
VALUES ($1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::text, $7::jsonb, $8::timestamptz))");

  // $1 to $8: the columns as arrays.
  Query insert_events = prepared("enqueue", R"(
INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
SELECT a, b, c, d, e, f, g::jsonb, h
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::timestamptz[])
  WITH ORDINALITY AS u(a, b, c, d, e, f, g, h, place) ORDER BY place)");

  // $1 aggregate types, $2 aggregate ids, $3 lock_key of each. It runs before insert_events, and
  // locks keys in one order everywhere, so that two writers of several keys cannot deadlock.
  Query lock_keys = prepared("lock the keys", R"(
SELECT count(pg_advisory_xact_lock(k)) FROM (
  SELECT DISTINCT hashtextextended(b, hashtextextended(a, hashtextextended('outbox:key:{name}', 0::bigint))) AS k
  FROM unnest($1::text[], $2::text[], $3::boolean[]) u(a, b, wanted)
  WHERE b <> '' AND coalesce(wanted, nullif(current_setting('outbox.lock_key', true), '')::boolean, false)
  ORDER BY 1 OFFSET 0) l)");

  // Behind a pooler this is not the process id that libpq knows.
  Query backend = unprepared("ask for the backend", "SELECT pg_backend_pid()");

  // $1 queue, $2 unique key, $3 id, $4 whether it replaces another. Primary key.
  Query claim_unique = unprepared("claim a unique key", R"(
SELECT {schema}.claim_unique($1::text, $2::text, $3::uuid, $4::boolean))");

  // $1 consumer, $2 message id. Primary key.
  Query receive = unprepared("receive a message", "SELECT {schema}.receive($1::text, $2::text)");

 protected:
  [[nodiscard]] Query prepared(std::string_view what, std::string_view sql) const;
  [[nodiscard]] Query unprepared(std::string_view what, std::string_view sql) const;
};

/// All statements. They are made once per store, and its connections share them.
struct Queries : EnqueueQueries {
 private:
  mutable Mutex mutex_;
  mutable std::unordered_map<const sql::Statement*, Query> made_ OUTBOX_GUARDED_BY(mutex_);

 public:
  using EnqueueQueries::EnqueueQueries;

  /// Makes the statement when it is used for the first time. May be called by any thread.
  [[nodiscard]] const Query& of(sql::Named statement) const;

  // ---- Transactions. They are READ COMMITTED whatever the database's default is: each statement
  // must see what was committed before it.
  Query begin = unprepared("begin", "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE");

  // With this search path, names without a schema in a migration mean the server's own objects,
  // whatever is in schema public.
  Query pin_search_path =
      unprepared("set the search path", "SET LOCAL search_path = pg_catalog, pg_temp");

  // $1 the backend as libpq knows it. It is the first statement of a connection of ours, so it uses
  // full names and no operator of the login's search_path. From then on names mean the server's own
  // objects, and no default of a role or a database changes what a statement means. Behind a pooler
  // the backend is another one, which others share: then nothing is set.
  Query session = unprepared("set up the session", R"(
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
pg_catalog.set_config('standard_conforming_strings', 'on', false), pg_catalog.set_config('quote_all_identifiers', 'off', false),
pg_catalog.set_config('transform_null_equals', 'off', false) WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::int)");

  // These two tell what an unqualified name means to the login: they restore its own search path,
  // and read that path's schemas in their order.
  Query logins_search_path =
      unprepared("take the login's search path", "SET LOCAL search_path TO DEFAULT");
  Query schemas = unprepared("read the search path", R"(
SELECT s.name FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) s(name))");

  // For transactions of several round trips; it is sent in the round trip of BEGIN. A relay that is
  // frozen in the middle of a transaction must not hold its locks, so the server ends the session.
  // lock_timeout is shorter than the lease.
  Query limits = unprepared("set the time limits", R"(
SELECT set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
set_config('statement_timeout', '15s', true),
CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', '60s', true) END)");

  // $1 the backend as libpq knows it. A database's limits are meant for applications, and would end
  // an idle connection or a migration. Limits that the URL sets are kept. Behind a pooler the
  // backend is another one, which others share: then nothing is set.
  Query no_session_limits = unprepared("lift the time limits", R"(
SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE pg_backend_pid() = $1::int AND source <> 'client'
AND name IN ('idle_session_timeout', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
'transaction_timeout'))");

  // Lifts the limits for one transaction, which also works behind a pooler.
  Query no_limits = unprepared("lift the time limits", R"(
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
set_config('idle_in_transaction_session_timeout', '0', true),
CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', '0', true) END)");

  // For the look at what the schema consists of: in a database with many tables the estimate of its
  // cost passes jit_above_cost, and compiling it takes many times as long as running it.
  Query no_jit = unprepared("turn the compiler off", "SELECT set_config('jit', 'off', true)");

  // For a transaction that changes tables. It follows the wait for the migration lock, which may
  // take long.
  Query short_lock_limit =
      unprepared("limit the waits for locks", "SELECT set_config('lock_timeout', '1s', true)");

  Query flushed = of(&sql::Statements::flushed);

  // ---- Schema. These statements run once per start.

  // Whether the schema has a table of migrations. Index pg_class_relname_nsp_index. It does not use
  // to_regclass(), which after waiting for a lock answers from a cache that is older than the lock.
  Query find_schema = unprepared("find the schema", R"(
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{name}' AND c.relname = 'migration'), pg_is_in_recovery())");

  // The table has few rows and needs no index.
  Query migrations =
      unprepared("read the schema's version",
                 "SELECT version, checksum FROM {schema}.migration ORDER BY version");

  // Serializes processes that migrate at once.
  Query lock_migration = unprepared(
      "wait for other migrations",
      "SELECT pg_advisory_xact_lock(hashtextextended('outbox:migrate:{name}', 0::bigint))");

  // $1 version, $2 name, $3 checksum.
  Query record_migration = unprepared("record a migration", R"(
INSERT INTO {schema}.migration (version, name, checksum) VALUES ($1::int, $2::text, $3::text))");

  // A login that may not read the log delivers nothing from it, and has no right to run the next
  // statement.
  Query may_read =
      unprepared("ask for the right to read",
                 "SELECT has_table_privilege('{schema}.event'::regclass::oid, 'SELECT'::text)");

  // Checks what the cursors rely on. The columns are: whether both witnesses belong to this lineage
  // (a missing row counts as another lineage); whether no event comes from a transaction that has
  // not begun yet (index (xid, seq), one row per partition); whether the sequence gives numbers in
  // order; whether the reader's indexes exist and are valid; whether no row security hides rows.
  Query condition = unprepared("check the schema", R"(
SELECT (SELECT count(*) = 2 AND bool_and(xmin = x::xid AND x < pg_snapshot_xmax(pg_current_snapshot()))
        FROM {schema}.witness),
       NOT EXISTS (SELECT FROM (SELECT xid FROM {schema}.event ORDER BY xid DESC LIMIT 1) newest
                   WHERE newest.xid >= pg_snapshot_xmax(pg_current_snapshot())),
       (SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
        WHERE seqrelid = '{schema}.event_seq'::regclass::oid),
       (SELECT count(*) = 2 FROM pg_index i WHERE i.indisvalid
          AND i.indexrelid = ANY (ARRAY[to_regclass('{schema}.event_by_seq'), to_regclass('{schema}.event_by_xid')]::oid[])),
       NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace::oid AND c.relrowsecurity))");

  // ---- Catalog. The tables have few rows, which are found by primary key or unique name.

  Query identity = prepared("ask which outbox this is", "SELECT identity::text FROM {schema}.meta");

  // $1 subscription, $2 lanes. Returns the newest row of each of these lanes, with lanes at one
  // place together, and from how many rows they come. Index settlement_newest, once per lane.
  Query cursors = prepared("read a subscription's cursors", R"(
SELECT bit_or(1::bigint << lane.n), {cursor}, min(c.generation), count(DISTINCT c.id)
FROM {schema}.subscription s CROSS JOIN pg_catalog.generate_series(0, 63) lane(n) CROSS JOIN LATERAL {schema}.newest_settlement(s.id, lane.n) c
WHERE s.id = $1::int AND ($2::bigint >> lane.n) & 1::bigint = 1
GROUP BY 2, 3, 4, 5)");

  // $1 subscription. Returns the same for all lanes, for people. The newest row of each owner's
  // lanes is looked up first, which usually covers all lanes; only the lanes that are missing are
  // looked up one by one. The rows have the totals of all rows that count, without late rows of a
  // former owner; the totals of a row belong to its first lane. Index settlement_newest.
  Query standing = prepared("read where a subscription stands", R"(
SELECT bit_or(c.has), {cursor}, min(c.generation), count(DISTINCT c.id),
       coalesce(sum(c.acked_total) FILTER (WHERE c.counts), 0::numeric)::bigint,
       coalesce(sum(c.filtered_total) FILTER (WHERE c.counts), 0::numeric)::bigint,
       to_char(max(c.at) FILTER (WHERE c.kind = 'settle') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM (
  WITH owned AS MATERIALIZED (
    SELECT l.generation AS low, l.generation AS high, bit_or(1::bigint << l.lane::int) AS lanes
    FROM {schema}.subscription s JOIN {schema}.lane l ON l.lane_group = s.lane_group AND l.generation >= s.group_generation
    WHERE s.id = $1::int GROUP BY l.generation),
  searched AS MATERIALIZED (
    SELECT o.low, o.high, o.lanes FROM owned o
    UNION ALL SELECT 0::bigint, 9223372036854775807::bigint, ~coalesce(bit_or(o.lanes), 0::bigint) FROM owned o),
  newest AS MATERIALIZED (
    SELECT t.*, t.lanes & o.lanes AS has FROM searched o CROSS JOIN LATERAL (
      SELECT n.* FROM {schema}.settlement n
      WHERE n.subscription = $1::int AND n.lanes & o.lanes <> 0::bigint AND n.generation >= o.low AND n.generation <= o.high
      ORDER BY n.generation DESC, n.id DESC LIMIT 1) t
    WHERE o.lanes <> 0::bigint),
  missing AS MATERIALIZED (
    SELECT lane.n FROM pg_catalog.generate_series(0, 63) lane(n)
    WHERE ((SELECT coalesce(bit_or(w.has), 0::bigint) FROM newest w) >> lane.n) & 1::bigint = 0::bigint),
  every AS (
    SELECT w.* FROM newest w
    UNION ALL SELECT t.*, 1::bigint << m.n FROM missing m CROSS JOIN LATERAL {schema}.newest_settlement($1::int, m.n) t)
  SELECT e.*, (SELECT (e.has >> min(lane.n)) & 1::bigint = 1::bigint FROM pg_catalog.generate_series(0, 63) lane(n)
               WHERE (e.lanes >> lane.n) & 1::bigint = 1::bigint) AS counts
  FROM every e) c
GROUP BY 2, 3, 4, 5)");

  // For statements whose plan must not depend on statistics. Without these settings, a table that
  // was never analysed is read whole to find that nothing is pending, a backlog is sorted to count
  // the first thousand, and compiling the claim takes longer than running it.
  Query plan_settings = unprepared("set the plan settings", R"(
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
set_config('enable_sort', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
set_config('jit', 'off', true), set_config('statement_timeout', '30s', true))");

  // It follows the plan settings, for statements that are executed once per subscription: a new
  // connection would plan each of the first five executions anew, which takes longer than executing
  // them.
  Query plan_once = unprepared("plan statements once", R"(
SELECT set_config('plan_cache_mode', 'force_generic_plan', true))");

  // $1 xmax(S1), $2 xip(S1), $3 lanes, $4 limit. Counts the events that are visible now and not in
  // S1. Index event_by_xid in both streams; partitions below xmax(S1) are pruned. At the head it is
  // as cheap as a poll. The rows are not sorted, so that the limit ends the scan; the index and the
  // partitions begin with the oldest events.
  Query pending_drained = prepared("count pending events", R"(
SELECT count(*), min(created_at), (date_part('epoch'::text, clock_timestamp() - min(created_at)) * 1000000::float8)::bigint FROM (
  SELECT created_at FROM {schema}.event t WHERE t.xid >= $1::xid8 AND ($3::bigint >> t.lane::int) & 1::bigint = 1
  UNION ALL
  SELECT y.created_at FROM pg_catalog.unnest($2::xid8[]) x(xid) CROSS JOIN LATERAL
    (SELECT created_at FROM {schema}.event t WHERE t.xid = x.xid AND ($3::bigint >> t.lane::int) & 1::bigint = 1 OFFSET 0) y
  LIMIT $4::bigint) pending)");

  // The same in the middle of a pair: $1 S1, $2 xmin(S1), $3 lanes, $4 limit, $5 position, $6
  // xmax(S2), $7 xip(S2). Beyond the position, events that were not visible in S1 count, by
  // event_by_seq; up to it, events that were not visible in S2, by event_by_xid.
  Query pending_begun = unprepared("count pending events", R"(
SELECT count(*), min(created_at), (date_part('epoch'::text, clock_timestamp() - min(created_at)) * 1000000::float8)::bigint FROM (
  (SELECT created_at FROM {schema}.event t
   WHERE t.xid >= $2::xid8 AND t.seq > $5::bigint AND NOT pg_visible_in_snapshot(t.xid, $1::pg_snapshot)
     AND ($3::bigint >> t.lane::int) & 1::bigint = 1 ORDER BY t.seq LIMIT $4::bigint)
  UNION ALL
  SELECT created_at FROM {schema}.event t
  WHERE t.xid >= $6::xid8 AND t.seq <= $5::bigint AND ($3::bigint >> t.lane::int) & 1::bigint = 1
  UNION ALL
  SELECT y.created_at FROM pg_catalog.unnest($7::xid8[]) x(xid) CROSS JOIN LATERAL
    (SELECT created_at FROM {schema}.event t
     WHERE t.xid = x.xid AND t.seq <= $5::bigint AND ($3::bigint >> t.lane::int) & 1::bigint = 1 OFFSET 0) y
  LIMIT $4::bigint) pending)");

  // $1 subscription. Returns how many events were delivered by retries, and when the last
  // settlement was written. Indexes settlement_retries and settlement_marks.
  Query last = prepared("read the last settlements", R"(
SELECT coalesce((SELECT r.acked_total FROM {schema}.settlement r
                 WHERE r.subscription = $1::int AND r.kind = 'retry' ORDER BY r.acked_total DESC LIMIT 1), 0::bigint),
       to_char((SELECT t.at FROM {schema}.settlement t
                WHERE t.subscription = $1::int AND t.l IS NOT NULL AND t.kind <> 'claim' AND t.kind = 'settle'
                ORDER BY t.generation DESC, t.id DESC LIMIT 1) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))");

  // With what the feed of its process says in the name of a session (wal_feed.hpp).
  Query relays = unprepared("list relays", R"(
SELECT r.id, r.name, l.generation,
       greatest(clock_timestamp() - r.heartbeat_at, r.heartbeat_at - clock_timestamp()) <= r.lease,
       to_char(r.heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), l.lanes,
       coalesce((SELECT substr(a.application_name, length(f.name) + 1)
                 FROM (SELECT pg_catalog.concat('outbox feed ', r.pid, '.', r.started, ' ') AS name) f
                 JOIN pg_stat_activity a ON a.datname = current_database() AND pg_catalog.starts_with(a.application_name, f.name) LIMIT 1), 'poll')
FROM {schema}.relay r LEFT JOIN (
  SELECT owner, max(generation) AS generation, json_object_agg(lane_group, lanes)::text AS lanes
  FROM (SELECT owner, lane_group, max(generation) AS generation, count(*) AS lanes FROM {schema}.lane GROUP BY owner, lane_group) g
  GROUP BY owner) l ON l.owner = r.id
ORDER BY r.joined_at)");

  // For metrics: the sizes as in doctor_queries.hpp; partitions ahead; the oldest event, by index
  // event_by_xid of each partition; the oldest transaction that this login sees. Times in us.
  Query figures = unprepared("measure the store", R"(
SELECT coalesce(sum(t.bytes) FILTER (WHERE t.event), 0)::bigint,
       coalesce(sum(t.bytes) FILTER (WHERE t.name = 'settlement'), 0)::bigint,
       coalesce(sum(t.bytes) FILTER (WHERE t.name LIKE 'parked%'), 0)::bigint,
       coalesce(sum(t.bytes) FILTER (WHERE NOT t.event AND t.name <> 'settlement' AND t.name NOT LIKE 'parked%'), 0)::bigint,
       greatest((({schema}.partitions_end() - pg_snapshot_xmax(pg_current_snapshot())::text::bigint) / {schema}.partition_width())::bigint, 0),
       (SELECT (extract(epoch FROM e.created_at) * 1000000)::bigint FROM {schema}.event e ORDER BY e.xid, e.seq LIMIT 1),
       (SELECT (extract(epoch FROM min(a.xact_start)) * 1000000)::bigint FROM pg_stat_activity a
        WHERE a.pid <> pg_backend_pid() AND a.datname = current_database() AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL))
FROM (SELECT c.relname::text AS name, pg_total_relation_size(c.oid) AS bytes,
             EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = '{schema}.event'::regclass) AS event
      FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r') t)");

  // ---- Members and owners. This server's clock decides about leases, unless it is set back: then
  // a relay measures by its own clock how long a heartbeat has not changed. A heartbeat in the
  // future was written before the clock was set back.

  // $1 id, $2 name, $3 groups, $4 boot id, $5 pid namespace, $6 pid, $7 process start, $8 lease in
  // ms. Returns the ctid of the relay's row.
  Query join = unprepared("register the relay", R"(
WITH alive AS (UPDATE {schema}.run SET relay = NULL WHERE relay = $1::uuid)
INSERT INTO {schema}.relay (id, name, groups, boot_id, pid_ns, pid, started, lease)
VALUES ($1::uuid, $2::text, pg_catalog.string_to_array($3::text, ','), $4::text, $5::text, $6::bigint, $7::bigint,
        $8::bigint::float8 * interval '1 millisecond')
ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp()
RETURNING ctid::text)");

  // $1 ctid, $2 id, $3 lease in ms. The row is found by its ctid: while an old snapshot is held, an
  // update by key would visit every dead version since then, which are 17,000 a day.
  Query heartbeat = prepared("renew the lease", R"(
UPDATE {schema}.relay SET heartbeat_at = clock_timestamp(), lease = $3::bigint::float8 * interval '1 millisecond'
WHERE ctid = $1::tid AND id = $2::uuid RETURNING ctid::text)");

  // $1 id, $2 lease in ms. It is used when the row has moved.
  Query heartbeat_by_id = unprepared("renew the lease", R"(
UPDATE {schema}.relay SET heartbeat_at = clock_timestamp(), lease = $2::bigint::float8 * interval '1 millisecond'
WHERE id = $1::uuid RETURNING ctid::text)");

  // The outbox, the members, the owners of lanes and the groups of the subscriptions. The tables
  // are small and are read whole.
  Query fleet = prepared("look who owns the lanes", R"(
SELECT 'outbox' AS what, m.identity::text, NULL::uuid, 0::bigint, 0::bigint, NULL::text, NULL::text, false, NULL::text, NULL::text,
       NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bigint FROM {schema}.meta m
UNION ALL
SELECT 'member', ''::text, r.id, 0::bigint, 0::bigint, {member} FROM {schema}.relay r
UNION ALL
SELECT 'owner', l.lane_group, l.owner, bit_or(1::bigint << l.lane::int), l.generation, NULL::text, NULL::text, false, NULL::text,
       NULL::text, NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bigint
FROM {schema}.lane l GROUP BY l.lane_group, l.owner, l.generation
UNION ALL
SELECT 'group', s.lane_group, NULL::uuid, 0::bigint, max(s.group_generation), NULL::text, NULL::text, false, NULL::text, NULL::text,
       NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bigint
FROM {schema}.subscription s GROUP BY s.lane_group)");

  Query lock_fleet = of(&sql::Statements::lock_fleet);

  // $1 id. Returns false if the relay was taken for dead, since its row was removed then.
  Query is_member = unprepared(
      "look for this relay", "SELECT EXISTS (SELECT FROM {schema}.relay r WHERE r.id = $1::uuid)");

  // $1 group. Creates the lanes of a group that never had an owner.
  Query make_lanes = unprepared("make the lanes of a group", R"(
INSERT INTO {schema}.lane (lane_group, lane) SELECT $1::text, n::smallint FROM pg_catalog.generate_series(0, 63) n
ON CONFLICT (lane_group, lane) DO NOTHING)");

  // $1 group. Owners' heartbeats wait for these locks; an earlier heartbeat is visible here. The
  // rows are locked in the order of their ids, so that two such statements cannot deadlock.
  Query lock_owners = unprepared("lock the owners' leases", R"(
SELECT r.id, {member} FROM {schema}.relay r
WHERE r.id IN (SELECT l.owner FROM {schema}.lane l WHERE l.lane_group = $1::text) ORDER BY r.id FOR UPDATE OF r)");

  Query lock_lanes = of(&sql::Statements::lock_lanes);

  // $1 id.
  Query remove_member =
      unprepared("remove a relay", "DELETE FROM {schema}.relay WHERE id = $1::uuid");

  // $1 generation.
  Query raise_generation = unprepared(
      "raise the generation", "UPDATE {schema}.fleet SET generation = $1::bigint WHERE one");

  // $1 owner (null for none), $2 group, $3 lanes, $4 generation.
  Query give_lanes = unprepared("change the owner of lanes", R"(
UPDATE {schema}.lane SET owner = $1::uuid, generation = $4::bigint
WHERE lane_group = $2::text AND ($3::bigint >> lane::int) & 1::bigint = 1)");

  // $1 group (if null, $2 decides), $2 subscription, $3 lanes, $4 generation, $5 relay. Copies the
  // newest cursor of every lane; lanes at one place share a row with the sum of their totals. Index
  // settlement_newest, read backwards once per lane. It runs under the plan settings, since its
  // estimated cost would have it compiled first (0.3 s, on a busy machine 2 s without delivery). A
  // later row of the old owner has a lower generation and does not count.
  Query claim = unprepared("claim the cursors", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, relay, config_version, s1, s2, from_position, position, l,
  acked_total, filtered_total)
SELECT f.subscription, 'claim', f.lanes, $4::bigint, $5::uuid, f.config_version, f.s1::pg_snapshot, f.s2::pg_snapshot,
       coalesce(f.position, 0::bigint), f.position, f.l, f.acked, f.filtered
FROM (
  SELECT s.id, bit_or(1::bigint << lane.n), max(c.config_version), {cursor},
         coalesce(sum(c.acked_total) FILTER (WHERE {first_lane}), 0::numeric)::bigint,
         coalesce(sum(c.filtered_total) FILTER (WHERE {first_lane}), 0::numeric)::bigint
  FROM {schema}.subscription s CROSS JOIN pg_catalog.generate_series(0, 63) lane(n) CROSS JOIN LATERAL {schema}.newest_settlement(s.id, lane.n) c
  WHERE ($1::text IS NULL AND s.id = $2::int OR s.lane_group = $1::text) AND ($3::bigint >> lane.n) & 1::bigint = 1
  GROUP BY s.id, 4, 5, 6, 7) f (subscription, lanes, config_version, s1, s2, position, l, acked, filtered))");

  // $1 base, $2 subscription, $3 lanes, $4 generation. Copies cursors as `claim` does.
  Query begin_beside = unprepared("write the first cursors of a type", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, from_position, position, l)
SELECT $2::int, 'reset', f.lanes, $4::bigint, 1, f.s1::pg_snapshot, f.s2::pg_snapshot, coalesce(f.position, 0::bigint), f.position, f.l
FROM (
  SELECT bit_or(1::bigint << lane.n), {cursor}
  FROM pg_catalog.generate_series(0, 63) lane(n) CROSS JOIN LATERAL {schema}.newest_settlement($1::int, lane.n) c
  WHERE ($3::bigint >> lane.n) & 1::bigint = 1 AND NOT EXISTS (SELECT FROM {schema}.newest_settlement($2::int, lane.n))
  GROUP BY 2, 3, 4, 5) f (lanes, s1, s2, position, l))");

  // $1 subscription, $2 lanes, $3 generation. Raises an error unless this relay still owns them.
  Query hold_lanes = unprepared("check who owns the lanes", R"(
SELECT {schema}.hold_lanes($1::int, (SELECT pg_catalog.array_agg(n::smallint) FROM pg_catalog.generate_series(0, 63) n
                                     WHERE ($2::bigint >> n) & 1::bigint = 1), $3::bigint))");

  // $1 owner.
  Query release_lanes = unprepared("give the lanes back",
                                   "UPDATE {schema}.lane SET owner = NULL WHERE owner = $1::uuid");

  // ---- Wake-up: the relay's side, on a connection of its own. The writer's side is the default of
  // event.xid.

  Query wake_channel = unprepared("ask for the wake-up's channel", R"(
SELECT 'outbox_wake_' || to_hex(hashtextextended('outbox:wake:{name}', 0::bigint)),
pg_backend_pid())");

  // Returns whether we are armed and, if not, whether another relay is: then even the shared lock
  // that writers take cannot be had. While a frozen relay holds the lock, every commit notifies,
  // and so queues for one lock; therefore the server ends an armed session that is silent for 3 s.
  Query arm = prepared("arm the wake-up", R"(
SELECT l.armed,
       CASE WHEN l.armed THEN set_config('idle_session_timeout', '3s', false) IS NULL
            WHEN pg_try_advisory_lock_shared(hashtextextended('outbox:wake:{name}', 0::bigint))
            THEN NOT pg_advisory_unlock_shared(hashtextextended('outbox:wake:{name}', 0::bigint)) ELSE true END
FROM (SELECT pg_try_advisory_lock(hashtextextended('outbox:wake:{name}', 0::bigint)) AS armed OFFSET 0) l)");

  Query disarm = prepared("disarm the wake-up", R"(
SELECT pg_advisory_unlock(hashtextextended('outbox:wake:{name}', 0::bigint)),
set_config('idle_session_timeout', '0', false))");

  Query ping = prepared("keep the wake-up armed", "SELECT 1");

  // ---- The feed from the write-ahead log (docs/design/feed.md).

  // What it needs. Catalogs and a few slots and senders, which every login may see. The publication
  // is 2 if it publishes what is inserted into the log, 1 if it does not, 0 if there is none.
  Query wal_conditions = unprepared("ask whether the log can be followed", R"(
SELECT pg_catalog.current_setting('wal_level'), pg_is_in_recovery(), pg_backend_pid(), session_user::text,
  coalesce((SELECT r.rolreplication OR r.rolsuper FROM pg_roles r WHERE r.rolname = session_user), false),
  '{name}_wal', coalesce((
    SELECT CASE WHEN p.pubinsert AND EXISTS (
             SELECT FROM pg_publication_tables t WHERE t.pubname = p.pubname AND t.schemaname = '{name}' AND t.tablename = 'event'
               AND pg_catalog.to_jsonb(t) ->> 'rowfilter'::text IS NULL) THEN 2 ELSE 1 END
    FROM pg_publication p WHERE p.pubname = '{name}_wal'), 0),
  pg_catalog.current_setting('max_replication_slots')::bigint,
  pg_catalog.current_setting('max_replication_slots')::bigint - (SELECT count(*) FROM pg_replication_slots),
  pg_catalog.current_setting('max_wal_senders')::bigint,
  pg_catalog.current_setting('max_wal_senders')::bigint - (SELECT count(*) FROM pg_stat_get_wal_senders()),
  pg_catalog.strpos(pg_catalog.current_setting('synchronous_standby_names'), '*') > 0)");

  // $1 the backend that makes a slot. For whom it waits: pid 0 stands for a prepared transaction.
  Query slot_blocker = unprepared("ask who blocks the slot", R"(
SELECT b.pid, coalesce(a.application_name, ''),
  coalesce((SELECT p.gid FROM pg_prepared_xacts p ORDER BY pg_catalog.age(p.transaction) DESC LIMIT 1), '')
FROM pg_catalog.unnest(pg_blocking_pids($1::int)) b(pid) LEFT JOIN pg_stat_activity a ON a.pid = b.pid LIMIT 1)");

  // $1 what the feed does. `outbox status` reads it from the list of sessions.
  Query name_session = unprepared(
      "name the session", "SELECT pg_catalog.set_config('application_name', $1::text, false)");

  // These are sent on the replication connection, which has no parameters.
  // A relay that is suspended keeps no log: wal_sender_timeout ends its stream, lock_timeout a slot
  // that still waits for a transaction, and idle_session_timeout the session between both.
  Query wal_session = unprepared("set up the stream", R"(
SELECT pg_catalog.set_config('wal_sender_timeout', '15s', false), pg_catalog.set_config('statement_timeout', '0', false),
  pg_catalog.set_config('lock_timeout', '6min', false), pg_catalog.set_config('idle_session_timeout', '15s', false))");
  Query make_slot =
      unprepared("make the slot",
                 "CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT");
  Query start_stream = unprepared("start the stream", R"(
START_REPLICATION SLOT {slot} LOGICAL 0/0 (proto_version '1', publication_names '"{name}_wal"'))");

  // A list of columns, which PostgreSQL 14 does not have, keeps the payload out of the stream.
  Query make_publication = unprepared("make the publication", R"(
CREATE PUBLICATION "{name}_wal" FOR TABLE {schema}.event {published} WITH (publish = 'insert', publish_via_partition_root = true))");

  // ---- Marks.

  // Names this incarnation of the server, once. Primary key.
  Query name_incarnation =
      unprepared("name the server's incarnation",
                 "INSERT INTO {schema}.incarnation DEFAULT VALUES ON CONFLICT DO NOTHING");

  Query sequence = unprepared("read the sequence", "SELECT {sequence_value}, {incarnation}");

  // $1 l, $2 the incarnation that l was read from. No index. It moves no cursor, since lanes = 0.
  // It runs in a transaction that waits for the disk: then l is durable too, and no crash gives it
  // to another event.
  Query mark = unprepared("write a mark", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, l) SELECT 0, 'mark', 0, 0, $1::bigint
WHERE {schema}.same_server($2::bigint, NULL::pg_snapshot) RETURNING w)");

  // ---- Settling.

  // The commit is durable on this server; a standby need not have it.
  Query flushed_here =
      prepared("set synchronous_commit", "SELECT set_config('synchronous_commit', 'local', true)");

  // These settings make the planner find the row that a settlement continues by index, whatever it
  // estimates. $1 is 'local' as above, or 'off': then a crash of the database takes back at most
  // 100 ms of progress, which costs duplicates, never events.
  Query settle_settings = prepared("set synchronous_commit", R"(
SELECT set_config('synchronous_commit', $1::text, true), set_config('enable_seqscan', 'off', true),
set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
set_config('statement_timeout', '30s', true))");

  // $1 to $16 in the order of the columns, $17 the incarnation that the reader read from (null if
  // it is not known). The row continues the newest row of its lanes up to its own generation, and
  // adds to its totals: a late row of a former owner adds only to that owner's totals, which do not
  // count any more. Index settlement_newest, read backwards. On another incarnation it raises an
  // error, which ends the whole transaction: what a reader learned on one server must not become a
  // cursor or a mark on another.
  Query append = prepared("append settlements", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, from_position, position, l,
  acked, acked_hash, filtered, filtered_hash, parked, parked_hash, acked_total, filtered_total)
SELECT $1::int, $2::text, $3::bigint, $4::bigint, $5::int, $6::pg_snapshot, $7::pg_snapshot, $8::bigint, $9::bigint,
  $10::bigint, $11::int, $12::bigint, $13::int, $14::bigint, $15::int, $16::bigint,
  coalesce(last.acked_total, 0::bigint) + $11::int, coalesce(last.filtered_total, 0::bigint) + $13::int
FROM (SELECT) one LEFT JOIN LATERAL
  (SELECT t.acked_total, t.filtered_total FROM {schema}.settlement t
   WHERE t.subscription = $1::int AND t.generation <= $4::bigint AND t.lanes & $3::bigint <> 0::bigint
   ORDER BY t.generation DESC, t.id DESC LIMIT 1) last ON true
WHERE {schema}.same_server($17::bigint, coalesce($7::pg_snapshot, $6::pg_snapshot))
RETURNING w)");

  // ---- Parked events (docs/design/parking.md). The functions are in 0004_parking.sql.

  // Arrays: subscription, its generation. Primary key of lane. It runs before several statements
  // that lock lanes, and locks all of these lanes in the one order in which everybody locks lanes
  // of more than one subscription. Subscriptions may share a group.
  Query hold_own_lanes = prepared("hold the lanes", R"(
SELECT count(*) FROM (
  SELECT FROM {schema}.lane l
  WHERE (l.lane_group, l.generation) IN (
    SELECT s.lane_group, o.generation FROM unnest($1::bigint[], $2::bigint[]) o(subscription, generation)
    JOIN {schema}.subscription s ON s.id = o.subscription)
  ORDER BY l.lane_group, l.lane FOR SHARE) held)");

  // $1 subscription, $2 generation, then arrays: seq, state, attempts, due in milliseconds, error,
  // worker, key. Index event_by_seq.
  Query park = unprepared("park events", R"(
SELECT {schema}.park_events($1::int, $2::bigint, $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
                            $8::uuid[], $9::bigint[]))");

  // The same arrays, then the hashes of the ids, the ids, and the versions of the keys. Primary
  // keys.
  Query settle_parked = unprepared("settle parked events", R"(
SELECT {schema}.settle_parked($1::int, $2::bigint, $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
                              $8::uuid[], $9::bigint[], $10::bigint[], $11::uuid[], $12::bigint[]))");

  // Arrays: subscription, key. Returns the keys that have no row. Primary key; it is not a join,
  // for which the table might be read as a whole.
  Query released_keys = unprepared("look which keys are free", R"(
SELECT n.sub, n.key FROM unnest($1::bigint[], $2::bigint[]) n(sub, key)
WHERE coalesce((SELECT false FROM {schema}.parked_key k WHERE k.subscription = n.sub::int AND k.key = n.key), true))");

  // $1 subscription, $2 lanes, $3 the most keys. Index parked_key_blocked.
  Query unblock_parked = unprepared("release keys of dead events", R"(
SELECT {schema}.unblock_parked($1::int, $2::bigint, $3::bigint))");

  // $1 subscription, $2 lanes. The key of a single event without a key is left out, unless a worker
  // has the event or may take it. Primary key.
  Query parked_keys = unprepared("read the keys of parked events", R"(
SELECT key, coalesce(run_seq, 0::bigint) FROM {schema}.parked_key
WHERE subscription = $1::int AND (NOT solo OR run_seq IS NOT NULL) AND ($2::bigint >> lane::int) & 1::bigint = 1)");

  // $1 subscription, $2 lanes. Index parked_live.
  Query count_live = unprepared("count parked events", R"(
SELECT count(*) FROM {schema}.parked
WHERE subscription = $1::int AND NOT dead AND ($2::bigint >> lane::int) & 1::bigint = 1)");

  // $1 subscription, $2 number of due keys, $3 number of events behind the first one of each of the
  // first $7 keys, $4 bytes, $5 lanes, $6 generation; only lanes that this generation still owns
  // count. First come the keys that are due, by parked_key_due (the statement's time is a constant
  // for the index, so that keys that are not due are not read). Then come their events, by
  // parked_live, up to a dead event that blocks. The rows end where the bytes are reached, but not
  // before the first row.
  Query due_parked = unprepared("read parked events", R"(
WITH owned AS (
  SELECT $5::bigint & bit_or(1::bigint << l.lane::int) AS lanes
  FROM {schema}.subscription s JOIN {schema}.lane l ON l.lane_group = s.lane_group
  WHERE s.id = $1::int AND l.generation = $6::bigint AND l.generation >= s.group_generation),
head AS (
  SELECT k.key, k.next_attempt_at, k.version, k.attempts, k.token, k.blocked_by,
         row_number() OVER (ORDER BY k.next_attempt_at, k.key) AS n
  FROM {schema}.parked_key k
  WHERE k.subscription = $1::int AND k.run_seq IS NULL AND k.next_attempt_at <= statement_timestamp()
    AND ((SELECT lanes FROM owned) >> k.lane::int) & 1::bigint = 1
  ORDER BY k.next_attempt_at, k.key LIMIT $2::bigint),
chain AS (
  SELECT h.*, r.seq, r.bytes, r.place FROM head h CROSS JOIN LATERAL (
    SELECT p.seq, octet_length(p.payload) + octet_length(p.headers::text) AS bytes, row_number() OVER (ORDER BY p.seq) AS place
    FROM {schema}.parked p
    WHERE p.subscription = $1::int AND p.key = h.key AND NOT p.dead AND (h.blocked_by IS NULL OR p.seq < h.blocked_by)
    ORDER BY p.seq LIMIT CASE WHEN h.n <= $7::bigint THEN $3::bigint + 1::bigint ELSE 1::bigint END) r),
cut AS (
  SELECT chain.*, sum(bytes) OVER (ORDER BY chain.n, seq) AS total, row_number() OVER (ORDER BY chain.n, seq) AS line FROM chain)
SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, 0 AS bytes, t.content_type, t.headers,
       t.created_at, t.occurred_at, cut.key, cut.version, CASE cut.place WHEN 1::bigint THEN cut.attempts ELSE 0 END, cut.token
FROM cut CROSS JOIN LATERAL (SELECT * FROM {schema}.parked p WHERE p.subscription = $1::int AND p.seq = cut.seq OFFSET 0) t
WHERE cut.total <= $4::bigint OR cut.line = 1::bigint
ORDER BY cut.n, cut.seq)");

  // $1 subscription, arrays: seq, key. Primary keys.
  Query asked_parked = unprepared("read what became of parked events", R"(
SELECT n.seq, (SELECT p.state FROM {schema}.parked_state p WHERE p.subscription = $1::int AND p.seq = n.seq),
       coalesce((SELECT true FROM {schema}.parked_key k WHERE k.subscription = $1::int AND k.key = n.key), false)
FROM unnest($2::bigint[], $3::bigint[]) n(seq, key))");

  // $1 subscription, $2 lanes. Index parked_key_due.
  Query next_parked = unprepared("ask when a parked event is due", R"(
SELECT greatest(date_part('epoch'::text, next_attempt_at - clock_timestamp()) * 1000::float8, 0::float8)::bigint
FROM {schema}.parked_key
WHERE subscription = $1::int AND run_seq IS NULL AND next_attempt_at < 'infinity' AND ($2::bigint >> lane::int) & 1::bigint = 1
ORDER BY next_attempt_at LIMIT 1)");

  // $1 subscription, $2 seqs, $3 whether the attempts are kept.
  Query retry_parked = unprepared("retry parked events", R"(
SELECT {schema}.retry_parked($1::int, $2::bigint[], $3::boolean))");

  // $1 subscription, $2 seqs, $3 the actor, $4 the reason.
  Query discard_parked = unprepared("discard parked events", R"(
SELECT {schema}.discard_parked($1::int, $2::bigint[], $3::text, $4::text))");

  // $1 subscription, $2 seq, $3 id, $4 new id, $5 event type, $6 payload, $7 content type, $8
  // headers, $9 the actor, $10 the reason.
  Query edit_parked = unprepared("edit a parked event", R"(
SELECT {schema}.edit_parked($1::int, $2::bigint, $3::uuid, $4::uuid, $5::text, $6::bytea, $7::text, $8::jsonb, $9::text,
                            $10::text))");

  // ---- Tasks that run (docs/design/tasks.md). The functions are in 0008_tasks.sql.

  // $1 worker, $2 free threads by queue. Primary key.
  Query announce_free = prepared("announce free threads", R"(
UPDATE {schema}.worker SET idle = $2::jsonb WHERE id = $1::uuid)");
  // $1 worker, $2 queue, $3 milliseconds since the last heartbeat, unless three of the worker's own
  // intervals are longer. A few rows.
  Query other_threads = prepared("look for free threads", R"(
SELECT count(*), coalesce(sum((w.idle ->> $2::text)::bigint), 0::numeric)::bigint FROM {schema}.worker w
WHERE w.id <> $1::uuid
  AND w.beat_at > clock_timestamp() - greatest($3::bigint, 3::bigint * (w.types ->> 'heartbeat_ms')::bigint) * interval '1 millisecond')");
  // $1 worker, $2 names of subscriptions, $3 types, $4 limit. Index parked_key_ready. Tasks of
  // types that are paused are left out, and tasks that another worker claims at the same time are
  // skipped.
  Query claim_ready = prepared("claim tasks", R"(
WITH mine AS MATERIALIZED (
  SELECT k.ctid AS place
  FROM {schema}.subscription s JOIN {schema}.parked_key k ON k.subscription = s.id AND k.run_seq IS NOT NULL AND k.worker IS NULL
    JOIN {schema}.parked p ON p.subscription = k.subscription AND p.seq = k.run_seq
  WHERE s.name = ANY ($2::text[]) AND s.state = 'active' AND p.event_type = ANY ($3::text[])
    AND NOT EXISTS (
      SELECT FROM {schema}.subscription t
      WHERE t.name LIKE 'type%' AND t.state <> 'active' AND t.config -> 'aggregate_types' = jsonb_build_array(p.aggregate_type)
        AND t.config -> 'event_types' ->> 0 = p.event_type)
  ORDER BY k.run_seq LIMIT $4::bigint FOR UPDATE OF k SKIP LOCKED),
claimed AS (
  UPDATE {schema}.parked_key k SET worker = $1::uuid, token = k.token + 1, begun_at = clock_timestamp()
  WHERE k.ctid = ANY (ARRAY(SELECT m.place FROM mine m))
  RETURNING k.subscription, k.run_seq, k.attempts, k.token)
SELECT p.seq, p.id, p.aggregate_type, p.aggregate_id, p.event_type, p.payload, 0 AS bytes, p.content_type, p.headers, p.created_at,
       p.occurred_at, c.attempts, c.token, c.subscription, (SELECT s.name FROM {schema}.subscription s WHERE s.id = c.subscription)
FROM claimed c
CROSS JOIN LATERAL (SELECT * FROM {schema}.parked k WHERE k.subscription = c.subscription AND k.seq = c.run_seq OFFSET 0) p)");
  // Returns the channel and the backend, which behind a pooler is not the one that libpq knows.
  Query ready_channel = unprepared("ask for the channel of workers",
                                   "SELECT {schema}.ready_channel(), pg_backend_pid()");
  // Arrays: subscription and seq of the runs that end. Primary keys.
  Query hold_lanes_of_runs = prepared("hold the lanes of runs", R"(
SELECT {schema}.hold_lanes_of_runs($1::bigint[], $2::bigint[]))");
  // $1 subscription, then arrays as for settle_parked, and the tokens of the runs. Returns the runs
  // that had not ended yet. Primary key.
  Query end_runs = unprepared("end runs of tasks", R"(
SELECT $1::int, r.run_seq, r.run_token
FROM {schema}.end_runs($1::int, $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::uuid[], $8::bigint[],
                       $9::bigint[], $10::uuid[], $11::bigint[]) r)");
  // Arrays: id, outcome, result, reason, unique key, and for the event its id, type, key, name and
  // payload. Primary keys.
  Query finish_tasks = unprepared("note the ends of tasks", R"(
SELECT {schema}.finish_tasks($1::uuid[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[],
                             $9::text[], $10::bytea[]))");
  // Arrays: queue, unique key, id. Primary key.
  Query begin_unique = prepared("begin unique tasks", R"(
SELECT b.id, b.may FROM {schema}.begin_unique($1::text[], $2::text[], $3::uuid[]) b)");
  // $1 worker, then arrays: subscription, seq, token, percent, text. Index parked_key_worker.
  Query report_progress = unprepared("report the progress of tasks", R"(
UPDATE {schema}.parked_key k SET percent = n.percent, progress = n.text
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) n(sub, seq, token, percent, text)
WHERE k.subscription = n.sub AND k.worker = $1::uuid AND k.run_seq = n.seq AND k.token = n.token)");

  // ---- Events and what became of them (docs/design/status.md). The functions are in
  // 0005_status.sql.

  // $1 id, $2 limit. The seqs of events with this id: in the log by find_event(), parked by
  // parked_id and parked_end_id.
  Query find_event = unprepared("find an event", R"(
SELECT f.seq FROM (
  SELECT l.seq FROM {schema}.find_event($1::uuid) l(seq) UNION
  SELECT p.seq FROM {schema}.parked p WHERE p.id = $1::uuid UNION
  SELECT x.seq FROM {schema}.parked_end x WHERE x.id = $1::uuid) f
ORDER BY f.seq DESC LIMIT $2::bigint)");

  // $1 since, $2 until; null means the first or the last event. A second is added on each side, as
  // seq_at() demands. Returns the range of seqs (from, to], the first seq in the log, and whether
  // there are look-up indexes. Index event_by_seq.
  Query event_range = unprepared("find events of a time", R"(
SELECT CASE WHEN $1::timestamptz IS NULL THEN 0::bigint
            ELSE {schema}.seq_at($1::timestamptz - '1 second'::interval) - 1::bigint END,
       CASE WHEN $2::timestamptz IS NULL THEN coalesce((SELECT e.seq FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1), 0::bigint)
            ELSE {schema}.seq_at($2::timestamptz + '1 second'::interval) - 1::bigint END,
       coalesce((SELECT e.seq FROM {schema}.event e ORDER BY e.seq LIMIT 1), 0::bigint),
       {schema}.has_lookup_index('event_by_key'::text), {schema}.has_lookup_index('event_by_id'::text))");

  // $1 from, $2 to, $3 aggregate_type, $4 aggregate_id, $5 event_type, $6 since, $7 until, where
  // null means any; $8 limit. Index event_by_seq, read backwards.
  Query list_events = unprepared("list events", R"(
SELECT e.seq FROM {schema}.event e
WHERE e.seq > $1::bigint AND e.seq <= $2::bigint
  AND ($3::text IS NULL OR e.aggregate_type = $3::text) AND ($4::text IS NULL OR e.aggregate_id = $4::text)
  AND ($5::text IS NULL OR e.event_type = $5::text)
  AND ($6::timestamptz IS NULL OR e.created_at >= $6::timestamptz) AND ($7::timestamptz IS NULL OR e.created_at < $7::timestamptz)
ORDER BY e.seq DESC LIMIT $8::bigint)");

  // The same parameters. Index event_by_key, which is made on request; the events of the key are
  // sorted.
  Query list_key_events = unprepared("list the events of a key", R"(
SELECT e.seq FROM (SELECT * FROM {schema}.event k WHERE k.aggregate_type = $3::text AND k.aggregate_id = $4::text OFFSET 0) e
WHERE e.seq > $1::bigint AND e.seq <= $2::bigint AND ($5::text IS NULL OR e.event_type = $5::text)
  AND ($6::timestamptz IS NULL OR e.created_at >= $6::timestamptz) AND ($7::timestamptz IS NULL OR e.created_at < $7::timestamptz)
ORDER BY e.seq DESC LIMIT $8::bigint)");

  // $1 seqs, $2 null, or the id of the event that is meant at these seqs; $3 with payload and
  // headers. Indexes event_by_seq, parked_id. Of a corrected copy that has left `parked`, only its
  // key and its time are known: they are those of its original. `kept` is false then.
  Query describe_events = unprepared("read events", R"(
SELECT n.seq, coalesce($2::uuid, e.id), w.in_log, w.kept,
       coalesce(p.aggregate_type, e.aggregate_type, ''::text), coalesce(p.aggregate_id, e.aggregate_id, ''::text),
       CASE WHEN w.kept THEN coalesce(p.event_type, e.event_type, ''::text) ELSE ''::text END,
       CASE WHEN w.kept THEN coalesce(p.content_type, e.content_type, ''::text) ELSE ''::text END,
       coalesce(p.created_at, e.created_at, 'epoch'::timestamptz),
       CASE WHEN w.kept THEN coalesce(p.occurred_at, e.occurred_at) END,
       CASE WHEN $3::boolean AND w.kept THEN coalesce(p.payload, e.payload) END,
       CASE WHEN $3::boolean AND w.kept THEN coalesce(p.headers, e.headers)::text END
FROM pg_catalog.unnest($1::bigint[]) n(seq) LEFT JOIN {schema}.event e ON e.seq = n.seq
  LEFT JOIN LATERAL (SELECT * FROM {schema}.parked k WHERE k.id = $2::uuid AND k.seq = n.seq LIMIT 1) p
    ON e.id IS DISTINCT FROM $2::uuid
  CROSS JOIN LATERAL (SELECT e.id IS NOT DISTINCT FROM coalesce($2::uuid, e.id),
                             p.id IS NOT NULL OR e.id IS NOT DISTINCT FROM coalesce($2::uuid, e.id)) w(in_log, kept)
WHERE coalesce($2::uuid, e.id) IS NOT NULL ORDER BY n.seq DESC)");

  // $1 seqs, $2 ids.
  Query event_life = unprepared("read what became of events", R"(
SELECT l.seq, l.id, l.subscription, l.state, l.published_at, l.attempts, l.next_attempt_at, coalesce(l.last_error, ''::text),
       l.waiting_for, l.waiting_for_seq, coalesce(l.ended_by, ''::text), coalesce(l.reason, ''::text), l.replaced_by
FROM {schema}.event_life($1::bigint[], $2::uuid[]) l)");

  // ---- Look-up indexes, made on request. PostgreSQL cannot create an index of a partitioned table
  // without blocking writers, so the parts are created one by one and then attached.
  // lookup_indexes.cpp fills in {index}, {part}, {part_index} and {keys}.

  // $1 index.
  Query has_lookup_index =
      unprepared("look for an index", "SELECT {schema}.has_lookup_index($1::text)");
  // $1 index.
  Query lookup_gaps = unprepared("look for parts of an index",
                                 "SELECT part, broken FROM {schema}.lookup_gaps($1::text)");
  // These two wait for writers, and writers wait for them, so they wait only briefly and are
  // repeated.
  Query begin_index = unprepared("begin an index", R"(
BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '200ms';
CREATE INDEX IF NOT EXISTS {index} ON ONLY {schema}.event ({keys}); COMMIT)");
  Query attach_index = unprepared("attach a part of an index", R"(
BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '200ms';
ALTER INDEX {schema}.{index} ATTACH PARTITION {schema}.{part_index}; COMMIT)");
  Query make_index_part = unprepared(
      "make a part of an index",
      "CREATE INDEX CONCURRENTLY IF NOT EXISTS {part_index} ON {schema}.{part} ({keys})");
  Query drop_index_part = unprepared("remove a part of an index",
                                     "DROP INDEX CONCURRENTLY IF EXISTS {schema}.{part_index}");
  // ---- The ledger, for `outbox verify` (docs/design/verify.md). These statements run under
  // `settings`.

  // The moment that is verified is this transaction's snapshot. Only the sums of parked events are
  // read in the transaction.
  Query begin_moment = unprepared("begin", "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
  Query moment = unprepared("take a snapshot", "SELECT pg_current_snapshot()::text");

  // $1 subscription, $2 seq, $3 limit. The rows include the copies that stand for an edited event,
  // which are not in the log. Primary key; parked_end_seq.
  Query ledger_parked = unprepared("add up parked events", R"(
SELECT p.seq, p.id, ''::text AS outcome,
       EXISTS (SELECT FROM {schema}.parked_end x
               WHERE x.subscription = $1::int AND x.seq = p.seq AND x.outcome = 'edited') AS copied
FROM {schema}.parked p WHERE p.subscription = $1::int AND p.seq > $2::bigint ORDER BY p.seq LIMIT $3::bigint)");

  // The same for events that left `parked`. Index parked_end_seq.
  Query ledger_ends = unprepared("add up ended events", R"(
SELECT e.seq, e.id, e.outcome,
       EXISTS (SELECT FROM {schema}.parked_end x WHERE x.subscription = $1::int AND x.seq = e.seq
                 AND x.outcome = 'edited' AND x.at < e.at) AS copied
FROM {schema}.parked_end e WHERE e.subscription = $1::int AND e.seq > $2::bigint ORDER BY e.seq LIMIT $3::bigint)");

  // $1 subscription, $2 generation, $3 id, $4 the moment, $5 limit, $6 the last generation. Index
  // settlement_newest.
  Query ledger_rows = prepared("read settlements", R"(
SELECT id, kind, lanes, generation, s1::text, s2::text, from_position, position, l, acked, acked_hash, filtered, filtered_hash,
       parked, parked_hash, at
FROM {schema}.settlement
WHERE subscription = $1::int AND (generation, id) > ($2::bigint, $3::bigint) AND generation <= $6::bigint
  AND pg_visible_in_snapshot(w, $4::pg_snapshot)
ORDER BY generation, id LIMIT $5::bigint)");

  // $1 and $2 the range of transactions, $3 and $4 where the last page ended, $5 lanes, $6 limit.
  // Index event_by_xid; other partitions are pruned.
  Query ledger_by_xid = prepared("read the log", R"(
SELECT t.xid, t.seq, t.lane, t.id, t.created_at FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $2::xid8 AND (t.xid, t.seq) > ($3::xid8, $4::bigint)
  AND ($5::bigint >> t.lane::int) & 1::bigint = 1
ORDER BY t.xid, t.seq LIMIT $6::bigint)");

  // $1 and $2 the range of transactions, $3 where the last page ended, $4 the last seq, $5 lanes,
  // $6 limit. Index event_by_seq.
  Query ledger_by_seq = prepared("read the log", R"(
SELECT t.xid, t.seq, t.lane, t.id, t.created_at FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $2::xid8 AND t.seq > $3::bigint AND t.seq <= $4::bigint
  AND ($5::bigint >> t.lane::int) & 1::bigint = 1
ORDER BY t.seq LIMIT $6::bigint)");

  // $1 subscription. Returns what retention removed.
  Query ledger_pruned = unprepared("read what was removed", R"(
SELECT coalesce(max(p.end_xid::text::bigint), 0::bigint)::text::xid8, coalesce(sum(p.events), 0::numeric)::bigint,
       coalesce(sum(p.acked), 0::numeric)::bigint, coalesce(sum(p.filtered), 0::numeric)::bigint,
       coalesce(sum(p.parked), 0::numeric)::bigint,
       coalesce((max(ARRAY[p.generation, p.settlement]) FILTER (WHERE p.settlement IS NOT NULL))[1], 0::bigint),
       coalesce((max(ARRAY[p.generation, p.settlement]) FILTER (WHERE p.settlement IS NOT NULL))[2], 0::bigint),
       coalesce(sum(p.discarded), 0::numeric)::bigint
FROM {schema}.pruned p WHERE p.subscription = $1::int)");

  // $1 and $2 the range of transactions, $3 the moment, $4 and $5 the range of seqs, $6 lanes.
  // Index event_by_xid.
  Query ledger_count = prepared("count the log", R"(
SELECT count(*) FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $2::xid8 AND pg_visible_in_snapshot(t.xid, $3::pg_snapshot)
  AND t.seq > $4::bigint AND t.seq <= $5::bigint AND ($6::bigint >> t.lane::int) & 1::bigint = 1)");

  // The oldest transaction in the log. Index event_by_xid, one row per partition.
  Query ledger_oldest = prepared("read the oldest event",
                                 "SELECT t.xid FROM {schema}.event t ORDER BY t.xid LIMIT 1");

  // ---- Reading the log. The argument for the form of these statements is in
  // docs/design/reading.md; do not simplify them without the storm test. Each is one round trip.

  // $1 xmax(S1), $2 position (floor or last seq), $3 page size, $4 xip(S1). The first stream uses
  // index (seq), and partitions below xmax(S1) are pruned; the second uses (xid, seq), once per
  // transaction that was in progress in S1 and is over now. Late rows may be older than the floor,
  // so they are read from 0. The bounds of t.xid are those of xip(S1), which is in ascending order:
  // a join alone would have every partition opened for each poll. The snapshot is asked for once;
  // if it were asked for per element of xip, it would be sorted each time. The four statements
  // exist twice: for all lanes, and for some, where the lanes are $9 ($5 at the head).
  static constexpr std::string_view kPresent = R"(
WITH r AS (
  (SELECT {columns} FROM {schema}.event t WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint{in_lanes} ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM pg_catalog.unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, (SELECT pg_current_snapshot())) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                        WHERE t.xid = x.xid AND t.xid >= ($4::xid8[])[1] AND t.xid < $1::xid8 AND t.seq > 0{in_lanes}
                        ORDER BY t.seq LIMIT $3::bigint) y)
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         {sequence_value} AS last_value, {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         {incarnation} AS incarnation) s
LEFT JOIN LATERAL (SELECT * FROM r ORDER BY seq LIMIT $3::bigint) z ON true ORDER BY z.seq)";
  Query present = prepared("read the head", kPresent);
  Query present_of_lanes = prepared_of_lanes("read the head", kPresent);

  // The same if nothing was in progress in S1. The parameters are the same too, so that the caller
  // need not distinguish.
  static constexpr std::string_view kPresentLean = R"(
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         {sequence_value} AS last_value, {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         {incarnation} AS incarnation) s
LEFT JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                   WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint AND pg_catalog.cardinality($4::xid8[]) = 0{in_lanes}
                   ORDER BY t.seq LIMIT $3::bigint) z ON true ORDER BY z.seq)";
  Query present_lean = prepared("read the head", kPresentLean);
  Query present_lean_of_lanes = prepared_of_lanes("read the head", kPresentLean);

  // $1 xmax(S1), $2 position, $3 page size, $4 xip(S1), $5 S2, $6 xmax(S2), $7 the sequence's value
  // taken with S2, $8 position of late rows (0 on the first page of a pair). Without the upper
  // bounds the merge would look for a visible row in every partition younger than S2.
  static constexpr std::string_view kBounded = R"(
SELECT r.*, {incarnation} AS incarnation FROM (
  (SELECT {columns} FROM {schema}.event t
   WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
     AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot){in_lanes} ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM pg_catalog.unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, $5::pg_snapshot) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                        WHERE t.xid = x.xid AND t.xid >= ($4::xid8[])[1] AND t.xid < $1::xid8
                          AND t.seq > $8::bigint AND t.seq <= $7::bigint{in_lanes}
                        ORDER BY t.seq LIMIT $3::bigint) y) r
ORDER BY r.seq LIMIT $3::bigint)";
  Query bounded = prepared("read a page", kBounded);
  Query bounded_of_lanes = prepared_of_lanes("read a page", kBounded);

  static constexpr std::string_view kBoundedLean = R"(
SELECT {columns}, {incarnation} AS incarnation FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
  AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot) AND pg_catalog.cardinality($4::xid8[]) = 0 AND $8::bigint >= 0{in_lanes}
ORDER BY t.seq LIMIT $3::bigint)";
  Query bounded_lean = prepared("read a page", kBoundedLean);
  Query bounded_lean_of_lanes = prepared_of_lanes("read a page", kBoundedLean);

  // $1 seqs. Index (seq). The rows belong to a page that was just read, which decided about
  // visibility.
  Query big_parts = prepared("read big events", R"(
SELECT t.seq, t.payload, t.headers FROM {schema}.event t WHERE t.seq = ANY($1::bigint[]) ORDER BY t.seq)");

  // The positions up to which the WAL is inserted and flushed. Both are read, so that a login that
  // may not call one of the functions is found at the start.
  Query wal_positions =
      prepared("ask how far the log is", "SELECT {insert_lsn}, {flush_lsn}, {incarnation}");

  // $1 a position in the log, $2 names. Logical replication is no standby. Without the right to see
  // it, the state of the others is null.
  Query replication = unprepared("ask how far the standbys are", R"(
SELECT count(DISTINCT r.name) FILTER (WHERE r.flush_lsn >= $1::pg_lsn), count(DISTINCT r.name) FILTER (WHERE r.state = 'streaming'),
       coalesce(bool_or(r.state IS NULL), false), {incarnation}
FROM (SELECT s.state, s.flush_lsn, CASE WHEN cardinality($2::text[]) = 0 THEN s.pid::text ELSE s.application_name END AS name
      FROM pg_stat_replication s
      WHERE (cardinality($2::text[]) = 0 OR s.state IS NULL OR s.application_name = ANY ($2::text[]))
        AND NOT EXISTS (SELECT FROM pg_replication_slots l WHERE l.active_pid = s.pid AND l.slot_type = 'logical')) r)");

  // The message is transactional, so that it takes an xid and its commit flushes everything before
  // it.
  Query force_flush =
      prepared("force the log out",
               "SELECT {incarnation}, pg_logical_emit_message(true, 'outbox'::text, ''::text)");

  // The newest rows of each subscription, and of the readers' marks (subscription 0). A claim is no
  // mark: it repeats an l in a transaction that had taken its id before that l was read. Index
  // settlement_marks, read backwards.
  Query marks = unprepared("read the marks", R"(
SELECT m.w, m.l FROM (SELECT id FROM {schema}.subscription UNION ALL SELECT 0) s
CROSS JOIN LATERAL (SELECT w, l FROM {schema}.settlement t WHERE t.subscription = s.id AND t.l IS NOT NULL AND t.kind <> 'claim'
                    ORDER BY t.generation DESC, t.id DESC LIMIT 200) m)");

  // Without statistics a range of xids looks small, and the planner would sort it for every page,
  // which takes quadratic time. With sorting off it reads by the index that has the order.
  Query settings_check = unprepared("check the plan settings", R"(
SELECT current_setting('jit') = 'off' AND current_setting('enable_seqscan') = 'off'
AND current_setting('enable_bitmapscan') = 'off' AND current_setting('enable_sort') = 'off'
AND current_setting('max_parallel_workers_per_gather') = '0'
AND current_setting('plan_cache_mode') = 'force_generic_plan' AND current_setting('statement_timeout') = '0'
AND current_setting('default_transaction_isolation') = 'read committed')");

  Query settings = prepared("set the plan settings", R"(
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true),
set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
set_config('max_parallel_workers_per_gather', '0', true), set_config('plan_cache_mode', 'force_generic_plan', true),
set_config('statement_timeout', '30s', true))");

  // The opposite settings: they make the planner choose a bitmap scan, which asks the disk for many
  // blocks at once. The rows themselves are not used.
  Query ahead_settings = unprepared("set the settings for reading ahead", R"(
SELECT set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false), set_config('enable_indexscan', 'off', false),
set_config('enable_indexonlyscan', 'off', false), set_config('enable_bitmapscan', 'on', false),
set_config('max_parallel_workers_per_gather', '0', false), set_config('effective_io_concurrency', '64', false),
set_config('statement_timeout', '30s', false))");

  // $1 from, $2 to. Index event_by_seq. Returns the number of rows and the microseconds that
  // reading them took.
  Query read_ahead = prepared("read ahead", R"(
SELECT count(created_at), (date_part('epoch'::text, clock_timestamp() - statement_timestamp()) * 1000000::float8)::bigint
FROM {schema}.event WHERE seq > $1::bigint AND seq <= $2::bigint)");

  // ---- Maintenance.

  // $1 how long it may wait for locks, in ms.
  Query make_partitions =
      unprepared("add partitions",
                 "SELECT {schema}.make_partitions($1::bigint::float8 * interval '1 millisecond')");

  // Removes relays that were killed while they waited, since a takeover removes only the owner. A
  // relay that was only frozen registers again.
  Query remove_silent = unprepared("remove silent relays", R"(
DELETE FROM {schema}.relay r
WHERE greatest(clock_timestamp() - r.heartbeat_at, r.heartbeat_at - clock_timestamp()) > 10::float8 * r.lease
  AND NOT EXISTS (SELECT FROM {schema}.lane l WHERE l.owner = r.id)
RETURNING name)");

 private:
  /// The same text with a condition on the lanes, which are one more parameter after the text's
  /// last one.
  [[nodiscard]] Query prepared_of_lanes(std::string_view what, std::string_view sql) const;
};

/// The channel's name cannot be a parameter.
[[nodiscard]] Query listen(std::string_view channel);

/// Payloads and headers above this size are left out of a page and fetched separately, so that the
/// page cannot be arbitrarily large.
inline constexpr int kBigPart = 16384;

}  // namespace outbox::store::postgres
