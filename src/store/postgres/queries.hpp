// Every SQL statement of the program on PostgreSQL: its name, what it does for error messages, its text, with the purpose and
// the index. Parameters are cast in the text ($1::bigint); results are binary.
//
// Functions and operators get exactly the types they are declared with, or are named in full: the search_path is the login's,
// and a function planted in it whose types fit better would be called. (unnest() of several arguments is always the server's
// own.)
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

/// Made once per store; its connections share it.
struct Queries {
  /// `schema`: not quoted, checked by check_schema_name(). Without `wal_functions`, which some managed services refuse, the
  /// positions in the WAL are null, and every barrier is forced.
  explicit Queries(std::string_view schema, bool wal_functions = true);

  const std::string schema;
  const bool wal_functions;

  // ---- Transactions.
  Query commit = prepared("commit", "COMMIT");
  // READ COMMITTED whatever the database's default is: each statement must see what was committed before it.
  Query begin = unprepared("begin", "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE");

  // Names without a schema in a migration mean the server's own objects, whatever is in schema public.
  Query pin_search_path =
      unprepared("set the search path", "SET LOCAL search_path = pg_catalog, pg_temp");

  // For transactions of several round trips, in the round trip of BEGIN. A relay that is frozen in the middle of one must not hold
  // its locks: the server ends the session. lock_timeout is shorter than the lease.
  Query limits = unprepared("set the time limits", R"(
SELECT set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
set_config('statement_timeout', '15s', true),
CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', '60s', true) END)");

  // $1 the backend as libpq knows it. A database's limits are meant for applications, and would end an idle connection or a
  // migration. What the URL sets stays. Behind a pooler it is another backend, which others share: nothing is set.
  Query no_session_limits = unprepared("lift the time limits", R"(
SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE pg_backend_pid() = $1::int AND source <> 'client'
AND name IN ('idle_session_timeout', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
'transaction_timeout'))");

  // The same for one transaction, which also works behind a pooler.
  Query no_limits = unprepared("lift the time limits", R"(
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
set_config('idle_in_transaction_session_timeout', '0', true),
CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', '0', true) END)");

  // This transaction's commit waits for the disk.
  Query flushed = unprepared("set synchronous_commit", R"(
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off')");

  // ---- Schema. Once per start.

  // Whether the schema has a table of migrations. Index pg_class_relname_nsp_index. Not by to_regclass(): after waiting for a
  // lock it answers from a cache that is older than the lock.
  Query find_schema = unprepared("find the schema", R"(
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{name}' AND c.relname = 'migration'), pg_is_in_recovery())");

  // Few rows, no index needed.
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

  // A login that may not read the log delivers nothing from it, and has no right to run the next statement.
  Query may_read =
      unprepared("ask for the right to read",
                 "SELECT has_table_privilege('{schema}.event'::regclass::oid, 'SELECT'::text)");

  // What the cursors rely on. Column by column: both witnesses belong to this lineage (a missing row counts as another lineage);
  // no event comes from a transaction that has not begun yet (index (xid, seq), one row per partition); the sequence numbers in
  // order; the reader's indexes exist and are valid; row security does not hide rows.
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

  // ---- Writing. One row or many in one statement; the order of VALUES is the order of seq.

  // $1 id, $2 aggregate_type, $3 aggregate_id, $4 event_type, $5 payload, $6 content_type, $7 headers, $8 occurred_at, $9 lock_key:
  // null means the session's setting. The sub-select runs before the row's seq is taken, so that the key is locked first.
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

  // $1 aggregate types, $2 aggregate ids, $3 lock_key of each. Before kInsertEvents; in one order everywhere, so that two
  // writers of several keys cannot wait for each other.
  Query lock_keys = prepared("lock the keys", R"(
SELECT count(pg_advisory_xact_lock(k)) FROM (
  SELECT DISTINCT hashtextextended(b, hashtextextended(a, hashtextextended('outbox:key:{name}', 0::bigint))) AS k
  FROM unnest($1::text[], $2::text[], $3::boolean[]) u(a, b, wanted)
  WHERE b <> '' AND coalesce(wanted, nullif(current_setting('outbox.lock_key', true), '')::boolean, false)
  ORDER BY 1 OFFSET 0) l)");

  // Behind a pooler this is not the process id that libpq knows.
  Query backend = unprepared("ask for the backend", "SELECT pg_backend_pid()");

  // ---- Catalog. Few rows; by primary key or unique name.

  Query identity = prepared("ask which outbox this is", "SELECT identity::text FROM {schema}.meta");

  Query subscriptions = prepared("list subscriptions", R"(
SELECT id, name, config::text, config_version, state, reason, stopped_seq, stopped_event, trouble,
to_char(trouble_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), parked_version
FROM {schema}.subscription ORDER BY name)");

  // $1 name. FOR UPDATE serializes concurrent calls of apply().
  Query find_subscription = unprepared(
      "find a subscription",
      "SELECT id, config::text FROM {schema}.subscription WHERE name = $1::text FOR UPDATE");

  // $1 name, $2 config. No row: another process has created it.
  Query create_subscription = unprepared("create a subscription", R"(
INSERT INTO {schema}.subscription (name, config) VALUES ($1::text, $2::jsonb) ON CONFLICT (name) DO NOTHING
RETURNING id)");

  // $1 subscription, $2 from now on. '3:3:' is a snapshot in which nothing is visible. A statement's snapshot does not include
  // its own transaction, so events of the same transaction would still be delivered.
  Query first_settlement = unprepared("write a subscription's first cursor", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1)
VALUES ($1::int, 'reset', -1, 0, 1, CASE WHEN $2::boolean THEN pg_current_snapshot() ELSE '3:3:'::pg_snapshot END))");

  // $1 id, $2 config.
  Query change_subscription = unprepared("change a subscription", R"(
UPDATE {schema}.subscription SET config = $2::jsonb, config_version = config_version + 1, changed_at = clock_timestamp()
WHERE id = $1::int)");

  // $1 name, $2 reason. A stopped one keeps what stopped it.
  Query pause = unprepared("pause a subscription", R"(
UPDATE {schema}.subscription
SET state = CASE state WHEN 'active' THEN 'paused' ELSE state END, reason = CASE state WHEN 'stopped' THEN reason ELSE $2::text END,
    changed_at = clock_timestamp()
WHERE name = $1::text RETURNING id)");

  // $1 name.
  Query resume = unprepared("resume a subscription", R"(
UPDATE {schema}.subscription SET state = 'active', reason = '', stopped_seq = NULL, stopped_event = NULL,
  changed_at = clock_timestamp()
WHERE name = $1::text RETURNING id)");

  // $1 id, $2 generation, $3 reason, $4 seq, $5 event. Locks the lane: a takeover waits until this is done, or was done before and
  // then no row qualifies. No row either while another transaction holds one of the locks: this must not wait.
  Query stop = unprepared("stop a subscription", R"(
UPDATE {schema}.subscription SET state = 'stopped', reason = $3::text, stopped_seq = $4::bigint, stopped_event = $5::uuid,
  changed_at = clock_timestamp()
WHERE id = (SELECT s.id FROM {schema}.subscription s CROSS JOIN {schema}.lane l
            WHERE s.id = $1::int AND l.lane = 0::smallint AND l.generation = $2::bigint
            FOR UPDATE OF s SKIP LOCKED FOR SHARE OF l SKIP LOCKED) RETURNING id)");

  // $1 id, $2 generation, $3 the trouble; empty: it is over. No row as above.
  Query report_trouble = unprepared("report a subscription's trouble", R"(
UPDATE {schema}.subscription SET trouble = $3::text,
  trouble_since = CASE WHEN $3::text = '' THEN NULL WHEN trouble = '' THEN clock_timestamp() ELSE trouble_since END
WHERE id = (SELECT s.id FROM {schema}.subscription s CROSS JOIN {schema}.lane l
            WHERE s.id = $1::int AND l.lane = 0::smallint AND l.generation = $2::bigint
            FOR UPDATE OF s SKIP LOCKED FOR SHARE OF l SKIP LOCKED))");

  // $1 subscription. The newest row of every lane that moves a cursor. Index settlement_newest, read backwards; while one
  // relay owns all lanes the first row is enough.
  Query cursors = unprepared("read a subscription's cursor", R"(
SELECT lanes, s1::text, s2::text, position, l, generation FROM {schema}.settlement
WHERE subscription = $1::int AND lanes <> 0 ORDER BY generation DESC, id DESC LIMIT 64)");

  // For statements whose plan must not depend on statistics. Otherwise a table that was never analysed is read whole to find that
  // nothing is pending, a backlog is sorted to count the first thousand, the claim is compiled for longer than it runs.
  Query plan_settings = unprepared("set the plan settings", R"(
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
set_config('enable_sort', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
set_config('jit', 'off', true), set_config('statement_timeout', '30s', true))");

  // $1 xmax(S1), $2 xip(S1), $3 lanes, $4 limit: what is visible now and not in S1. Index event_by_xid in both streams,
  // partitions below xmax(S1) pruned; as cheap at the head as a poll. Not sorted, so that the limit ends it; the index and the
  // partitions begin with the oldest.
  Query pending_drained = unprepared("count pending events", R"(
SELECT count(*), min(created_at), (date_part('epoch'::text, clock_timestamp() - min(created_at)) * 1000000::float8)::bigint FROM (
  SELECT created_at FROM {schema}.event t WHERE t.xid >= $1::xid8 AND ($3::bigint >> t.lane::int) & 1::bigint = 1
  UNION ALL
  SELECT y.created_at FROM pg_catalog.unnest($2::xid8[]) x(xid) CROSS JOIN LATERAL
    (SELECT created_at FROM {schema}.event t WHERE t.xid = x.xid AND ($3::bigint >> t.lane::int) & 1::bigint = 1 OFFSET 0) y
  LIMIT $4::bigint) pending)");

  // The same in the middle of a pair: $1 S1, $2 xmin(S1), $3 lanes, $4 limit, $5 position, $6 xmax(S2), $7 xip(S2). Beyond the
  // position what was not visible in S1, by event_by_seq; up to it what was not visible in S2, by event_by_xid.
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

  // $1 subscription. The newest row has the totals of all rows that count, without late rows of a former owner. Indexes
  // settlement_newest and settlement_marks, one row of each.
  Query totals = unprepared("sum up settlements", R"(
SELECT acked_total + coalesce((SELECT r.acked_total FROM {schema}.settlement r
                               WHERE r.subscription = $1::int AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0::bigint),
       filtered_total,
       (SELECT to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') FROM {schema}.settlement t
        WHERE t.subscription = $1::int AND t.l IS NOT NULL AND t.kind <> 'claim' AND t.kind = 'settle'
        ORDER BY t.generation DESC, t.id DESC LIMIT 1)
FROM {schema}.settlement WHERE subscription = $1::int AND lanes <> 0 ORDER BY generation DESC, id DESC LIMIT 1)");

  Query relays = unprepared("list relays", R"(
SELECT r.id, r.name, l.generation,
       greatest(clock_timestamp() - r.heartbeat_at, r.heartbeat_at - clock_timestamp()) <= r.lease,
       to_char(r.heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
FROM {schema}.relay r LEFT JOIN (SELECT owner, max(generation) AS generation FROM {schema}.lane GROUP BY owner) l
  ON l.owner = r.id
ORDER BY r.joined_at)");

  // ---- Membership. This server's clock decides about leases, unless it is set back: then a relay that waits measures by its own
  // clock how long a heartbeat has not changed. A heartbeat in the future was written before that.

  // $1 id, $2 name, $3 boot id, $4 pid namespace, $5 pid, $6 process start, $7 lease in ms.
  Query join = unprepared("register the relay", R"(
INSERT INTO {schema}.relay (id, name, boot_id, pid_ns, pid, started, lease)
VALUES ($1::uuid, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::bigint::float8 * interval '1 millisecond')
ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp()
RETURNING ctid::text)");

  // $1 ctid, $2 id, $3 lease in ms. By ctid: while an old snapshot is held, an update by key would walk every dead version since,
  // 17,000 a day.
  Query heartbeat = prepared("renew the lease", R"(
UPDATE {schema}.relay SET heartbeat_at = clock_timestamp(), lease = $3::bigint::float8 * interval '1 millisecond'
WHERE ctid = $1::tid AND id = $2::uuid RETURNING ctid::text)");

  // $1 id, $2 lease in ms. When the row has moved.
  Query heartbeat_by_id = unprepared("renew the lease", R"(
UPDATE {schema}.relay SET heartbeat_at = clock_timestamp(), lease = $2::bigint::float8 * interval '1 millisecond'
WHERE id = $1::uuid RETURNING ctid::text)");

  // The owner of the lanes. One relay owns all of them, so lane 0 suffices; primary keys of lane and relay.
  Query owner = prepared("ask who owns the lanes", R"(
SELECT l.owner, l.generation, r.id IS NOT NULL, coalesce(clock_timestamp() - r.heartbeat_at > r.lease, true),
       r.name, r.boot_id, r.pid_ns, r.pid, r.started, r.heartbeat_at,
       (date_part('epoch'::text, r.lease) * 1000::float8)::bigint
FROM {schema}.lane l LEFT JOIN {schema}.relay r ON r.id = l.owner WHERE l.lane = 0)");

  // $1 the owner. Its next heartbeat waits for this lock; an earlier one is visible here.
  Query lock_owner = unprepared("lock the owner's lease", R"(
SELECT clock_timestamp() - heartbeat_at > lease FROM {schema}.relay WHERE id = $1::uuid FOR UPDATE)");

  // Serializes relays that take over at once, all in one order.
  Query lock_lanes = unprepared(
      "lock the lanes", "SELECT owner, generation FROM {schema}.lane ORDER BY lane FOR UPDATE");

  // $1 id.
  Query remove_member =
      unprepared("remove a relay", "DELETE FROM {schema}.relay WHERE id = $1::uuid");

  // Before cursors are set back or appear: no history is removed until the transaction ends. One row.
  Query lock_fleet = unprepared("lock the fleet", "SELECT one FROM {schema}.fleet FOR UPDATE");

  // $1 owner, $2 generation.
  Query take_lanes = unprepared(
      "take the lanes", "UPDATE {schema}.lane SET owner = $1::uuid, generation = $2::bigint");

  // $1 relay, $2 generation. Copies the newest cursor of every lane of every subscription, lanes at one place in one row.
  // Index settlement_newest, read backwards once per lane; under the plan settings, since by its estimated cost it would be
  // compiled first (0.3 s, on a busy machine 2 s without delivery). A later row of the old owner has a lower generation and does
  // not count.
  Query claim = unprepared("claim the cursors", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, relay, config_version, s1, s2, from_position, position, l,
  acked_total, filtered_total)
SELECT c.subscription, 'claim', bit_or(1::bigint << lane), $2::bigint, $1::uuid, max(c.config_version),
       c.s1::pg_snapshot, c.s2::pg_snapshot, coalesce(c.position, 0), c.position, c.l, c.acked_total, c.filtered_total
FROM {schema}.subscription s CROSS JOIN generate_series(0, 63) AS lane CROSS JOIN LATERAL
  (SELECT t.subscription, t.config_version, t.s1::text, t.s2::text, t.position, t.l, t.acked_total, t.filtered_total
   FROM {schema}.settlement t
   WHERE t.subscription = s.id AND (t.lanes >> lane) & 1::bigint = 1
   ORDER BY t.generation DESC, t.id DESC LIMIT 1) c
GROUP BY c.subscription, c.s1, c.s2, c.position, c.l, c.acked_total, c.filtered_total)");

  // $1 owner.
  Query release_lanes = unprepared("give the lanes back",
                                   "UPDATE {schema}.lane SET owner = NULL WHERE owner = $1::uuid");

  // ---- Wake-up: the relay's side; the writer's is the default of event.xid. On a connection of its own.

  Query wake_channel = unprepared("ask for the wake-up's channel", R"(
SELECT 'outbox_wake_' || to_hex(hashtextextended('outbox:wake:{name}', 0::bigint)),
pg_backend_pid())");

  // While a frozen relay holds the lock, every commit notifies, and so queues for one lock: the server ends an armed session that
  // is silent for 3 s.
  Query arm = prepared("arm the wake-up", R"(
SELECT CASE WHEN pg_try_advisory_lock(hashtextextended('outbox:wake:{name}', 0::bigint))
       THEN set_config('idle_session_timeout', '3s', false) END IS NOT NULL)");

  Query disarm = prepared("disarm the wake-up", R"(
SELECT pg_advisory_unlock(hashtextextended('outbox:wake:{name}', 0::bigint)),
set_config('idle_session_timeout', '0', false))");

  Query ping = prepared("keep the wake-up armed", "SELECT 1");

  // ---- Marks.

  // Names this incarnation of the server, once. Primary key.
  Query name_incarnation =
      unprepared("name the server's incarnation",
                 "INSERT INTO {schema}.incarnation DEFAULT VALUES ON CONFLICT DO NOTHING");

  Query sequence = unprepared("read the sequence", "SELECT {sequence_value}, {incarnation}");

  // $1 l, $2 the incarnation that l was read from. No index. Moves no cursor: lanes = 0. In a transaction that waits for the disk:
  // then l is durable too, and no crash gives it to another event.
  Query mark = unprepared("write a mark", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, l) SELECT 0, 'mark', 0, 0, $1::bigint
WHERE {schema}.same_server($2::bigint, NULL::pg_snapshot) RETURNING w)");

  // ---- Settling.

  // Durable on this server; a standby need not have it.
  Query flushed_here =
      prepared("set synchronous_commit", "SELECT set_config('synchronous_commit', 'local', true)");

  // The row that a settlement continues is found by index, whatever the planner estimates. $1: as above; or off: a crash of the
  // database then takes back at most 100 ms of progress, which costs duplicates, never events.
  Query settle_settings = prepared("set synchronous_commit", R"(
SELECT set_config('synchronous_commit', $1::text, true), set_config('enable_seqscan', 'off', true),
set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
set_config('statement_timeout', '30s', true))");

  // $1 to $16 in the order of the columns, $17 the incarnation that the reader read from (null: not known).
  // The row continues the newest one of its lanes up to its own generation, and adds to its totals: a late row of a former owner
  // adds to that owner's totals only, which do not count any more. Index settlement_newest, read backwards. Raises on another
  // incarnation, which ends the whole transaction: what a reader learned on one server must not become a cursor or a mark on
  // another.
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

  // $1 subscription, $2 generation, then arrays: seq, state, attempts, due in milliseconds, error. Index event_by_seq.
  Query park = unprepared("park events", R"(
SELECT {schema}.park_events($1::int, $2::bigint, $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[]))");

  // The same arrays, and the hashes of the ids. Primary key.
  Query settle_parked = unprepared("settle parked events", R"(
SELECT {schema}.settle_parked($1::int, $2::bigint, $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
                              $8::bigint[]))");

  // $1 subscription.
  Query order_parked =
      unprepared("order parked events", "SELECT {schema}.order_all_parked_keys($1::int)");

  // $1 subscription, $2 dead events block. Index parked_key.
  Query blocked_keys = unprepared("read the keys of parked events", R"(
SELECT aggregate_type, aggregate_id, count(*) FROM {schema}.parked
WHERE subscription = $1::int AND (state <> 'dead' OR $2::boolean) GROUP BY aggregate_type, aggregate_id)");

  // $1 subscription, $2 keys, $3 events behind each, $4 bytes. First the rows that are due, by parked_due, then what waits behind
  // each of them, by parked_key, up to a dead event that blocks; cut where the bytes are reached, but not before the first row.
  Query due_parked = unprepared("read parked events", R"(
WITH head AS (
  SELECT p.seq, p.aggregate_type, p.aggregate_id, p.next_attempt_at FROM {schema}.parked p
  WHERE p.subscription = $1::int AND p.state = 'retrying' AND p.next_attempt_at <= clock_timestamp()
  ORDER BY p.next_attempt_at, p.seq LIMIT $2::bigint),
chain AS (
  SELECT h.next_attempt_at AS due, h.seq AS head, r.seq, r.bytes FROM head h CROSS JOIN LATERAL (
    (SELECT p.seq, octet_length(p.payload) + octet_length(p.headers::text) AS bytes FROM {schema}.parked p
     WHERE p.subscription = $1::int AND p.seq = h.seq)
    UNION ALL
    (SELECT p.seq, octet_length(p.payload) + octet_length(p.headers::text) FROM {schema}.parked p
     WHERE p.subscription = $1::int AND h.aggregate_id <> ''::text AND p.aggregate_type = h.aggregate_type
       AND p.aggregate_id = h.aggregate_id AND p.seq > h.seq AND p.state = 'waiting'
       AND NOT ((SELECT s.config ->> 'on_dead'::text = 'block' FROM {schema}.subscription s WHERE s.id = $1::int)
         AND EXISTS (
           SELECT FROM {schema}.parked d WHERE d.subscription = $1::int AND d.aggregate_type = h.aggregate_type
             AND d.aggregate_id = h.aggregate_id AND d.state = 'dead' AND d.seq > h.seq AND d.seq < p.seq))
     ORDER BY p.seq LIMIT $3::bigint)) r),
cut AS (
  SELECT chain.*, sum(bytes) OVER (ORDER BY due, head, seq) AS total, row_number() OVER (ORDER BY due, head, seq) AS n FROM chain)
SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, 0 AS bytes, t.content_type, t.headers,
       t.created_at, t.occurred_at, t.state, t.attempts
FROM cut JOIN {schema}.parked t ON t.subscription = $1::int AND t.seq = cut.seq
WHERE cut.total <= $4::bigint::numeric OR cut.n = 1::bigint
ORDER BY cut.due, cut.head, cut.seq)");

  // $1 subscription. Index parked_due, one row.
  Query next_parked = unprepared("ask when a parked event is due", R"(
SELECT greatest(date_part('epoch'::text, next_attempt_at - clock_timestamp()) * 1000::float8, 0::float8)::bigint
FROM {schema}.parked WHERE subscription = $1::int AND state = 'retrying' ORDER BY next_attempt_at LIMIT 1)");

  // $1 subscription, $2 state, $3 aggregate_type, $4 aggregate_id, $5 part of the error, $6 id, $7 seq: null means any; $8 limit,
  // $9 with payload and headers. Primary key, or parked_id.
  Query list_parked = unprepared("list parked events", R"(
SELECT subscription, seq, id, aggregate_type, aggregate_id, event_type, state, attempts, error, parked_at, next_attempt_at,
       CASE WHEN $9::boolean THEN payload END, content_type, CASE WHEN $9::boolean THEN headers::text END
FROM {schema}.parked
WHERE ($1::int IS NULL OR subscription = $1::int) AND ($2::text IS NULL OR state = $2::text)
  AND ($3::text IS NULL OR aggregate_type = $3::text) AND ($4::text IS NULL OR aggregate_id = $4::text)
  AND ($5::text IS NULL OR strpos(error, $5::text) > 0) AND ($6::uuid IS NULL OR id = $6::uuid)
  AND ($7::bigint IS NULL OR seq = $7::bigint)
ORDER BY subscription, seq LIMIT $8::bigint)");

  // $1 subscription. Primary key.
  Query count_parked = unprepared("count parked events", R"(
SELECT count(*) FILTER (WHERE state = 'retrying'), count(*) FILTER (WHERE state = 'waiting'),
       count(*) FILTER (WHERE state = 'dead') FROM {schema}.parked WHERE subscription = $1::int)");

  // $1 subscription, $2 seqs, $3 keep the attempts.
  Query retry_parked = unprepared("retry parked events", R"(
SELECT {schema}.retry_parked($1::int, $2::bigint[], $3::boolean))");

  // $1 subscription, $2 seqs, $3 outcome, $4 who, $5 why.
  Query end_parked = unprepared("end parked events", R"(
SELECT {schema}.end_parked($1::int, $2::bigint[], $3::text, $4::text, $5::text))");

  // ---- Reading the log. The argument for the form of these statements is in docs/design/reading.md; do not simplify them
  // without the storm test. Each is one round trip.

  // $1 xmax(S1), $2 position (floor or last seq), $3 page size, $4 xip(S1). Index: (seq) for the first stream, partitions
  // below xmax(S1) pruned; (xid, seq) for the second, once per transaction that was in progress in S1 and is over now. Late
  // rows may be older than the floor, so they are read from 0. The bounds of t.xid are those of xip(S1), which is in ascending
  // order: a join alone would have every partition opened for each poll. The snapshot is asked for once; per element of xip it
  // would be sorted each time.
  Query present = prepared("read the head", R"(
WITH r AS (
  (SELECT {columns} FROM {schema}.event t WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM pg_catalog.unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, (SELECT pg_current_snapshot())) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                        WHERE t.xid = x.xid AND t.xid >= ($4::xid8[])[1] AND t.xid < $1::xid8 AND t.seq > 0
                        ORDER BY t.seq LIMIT $3::bigint) y)
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         {sequence_value} AS last_value, {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         {incarnation} AS incarnation) s
LEFT JOIN LATERAL (SELECT * FROM r ORDER BY seq LIMIT $3::bigint) z ON true ORDER BY z.seq)");

  // As above with nothing in progress in S1. The same parameters, so that the caller makes no difference.
  Query present_lean = prepared("read the head", R"(
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         {sequence_value} AS last_value, {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         {incarnation} AS incarnation) s
LEFT JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                   WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint AND pg_catalog.cardinality($4::xid8[]) = 0
                   ORDER BY t.seq LIMIT $3::bigint) z ON true ORDER BY z.seq)");

  // $1 xmax(S1), $2 position, $3 page size, $4 xip(S1), $5 S2, $6 xmax(S2), $7 the sequence's value taken with S2,
  // $8 position of late rows (0 on the first page of a pair). Without the upper bounds the merge would look for a visible
  // row in every partition younger than S2.
  Query bounded = prepared("read a page", R"(
SELECT r.*, {incarnation} AS incarnation FROM (
  (SELECT {columns} FROM {schema}.event t
   WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
     AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot) ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM pg_catalog.unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, $5::pg_snapshot) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                        WHERE t.xid = x.xid AND t.xid >= ($4::xid8[])[1] AND t.xid < $1::xid8
                          AND t.seq > $8::bigint AND t.seq <= $7::bigint
                        ORDER BY t.seq LIMIT $3::bigint) y) r
ORDER BY r.seq LIMIT $3::bigint)");

  Query bounded_lean = prepared("read a page", R"(
SELECT {columns}, {incarnation} AS incarnation FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
  AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot) AND pg_catalog.cardinality($4::xid8[]) = 0 AND $8::bigint >= 0
ORDER BY t.seq LIMIT $3::bigint)");

  // $1 seqs. Index (seq). They are rows of a page that was just read, which decided about visibility.
  Query big_parts = prepared("read big events", R"(
SELECT t.seq, t.payload, t.headers FROM {schema}.event t WHERE t.seq = ANY($1::bigint[]) ORDER BY t.seq)");

  // How far the WAL is. Both, so that a login that may not call one of them is found at the start.
  Query wal_positions =
      prepared("ask how far the log is", "SELECT {insert_lsn}, {flush_lsn}, {incarnation}");

  // Transactional, so that it takes an xid and its commit flushes everything before it.
  Query force_flush =
      prepared("force the log out",
               "SELECT {incarnation}, pg_logical_emit_message(true, 'outbox'::text, ''::text)");

  // The newest rows of each subscription, and of the readers' marks (subscription 0). A claim is no mark: it repeats an l in a
  // transaction that had taken its id before that l was read. Index settlement_marks, read backwards.
  Query marks = unprepared("read the marks", R"(
SELECT m.w, m.l FROM (SELECT id FROM {schema}.subscription UNION ALL SELECT 0) s
CROSS JOIN LATERAL (SELECT w, l FROM {schema}.settlement t WHERE t.subscription = s.id AND t.l IS NOT NULL AND t.kind <> 'claim'
                    ORDER BY t.generation DESC, t.id DESC LIMIT 200) m)");

  // Without statistics a range of xids looks small, and the planner would sort it for every page: quadratic. With sorting off it
  // reads by the index that has the order.
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

  // ---- Maintenance.

  // $1 in ms: how long it may wait for locks.
  Query make_partitions =
      unprepared("add partitions",
                 "SELECT {schema}.make_partitions($1::bigint::float8 * interval '1 millisecond')");

  // Relays that were killed while they waited: a takeover removes only the owner. One that was only frozen registers again.
  Query remove_silent = unprepared("remove silent relays", R"(
DELETE FROM {schema}.relay r
WHERE greatest(clock_timestamp() - r.heartbeat_at, r.heartbeat_at - clock_timestamp()) > 10::float8 * r.lease
  AND NOT EXISTS (SELECT FROM {schema}.lane l WHERE l.owner = r.id)
RETURNING name)");

 private:
  [[nodiscard]] Query prepared(std::string_view what, std::string_view sql) const;
  [[nodiscard]] Query unprepared(std::string_view what, std::string_view sql) const;
};

/// The channel's name cannot be a parameter.
[[nodiscard]] Query listen(std::string_view channel);

/// Payloads and headers above this are left out of a page and fetched separately, so that it cannot be arbitrarily large.
inline constexpr int kBigPart = 16384;

}  // namespace outbox::store::postgres
