// The SQL of the statements in store/sql, as in queries.hpp.
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

using sql::How;

// $1 subscription, $2 state, $3 aggregate_type, $4 aggregate_id, $5 part of the error, $6 id, $7
// seq, where null means any; $8 limit, $9 with payload and headers, $10 event_type, $11 scheduled
// or not, $12 and $13 after which subscription and seq.
constexpr std::string_view kListParked = R"(
SELECT subscription, seq, id, aggregate_type, aggregate_id, event_type, state, attempts, error, parked_at, next_attempt_at,
       CASE WHEN $9::boolean THEN payload END, content_type, CASE WHEN $9::boolean THEN headers::text END,
       created_at, {scheduled}, coalesce((SELECT w.name FROM {schema}.worker w WHERE w.id = p.worker), ''::text), begun_at, percent,
       coalesce(progress, ''::text)
FROM {schema}.parked_state p
WHERE ($1::int IS NULL OR subscription = $1::int) AND ($2::text IS NULL OR state = $2::text)
  AND ($3::text IS NULL OR aggregate_type = $3::text) AND ($4::text IS NULL OR aggregate_id = $4::text)
  AND ($5::text IS NULL OR strpos(error, $5::text) > 0) AND ($6::uuid IS NULL OR id = $6::uuid)
  AND ($7::bigint IS NULL OR seq = $7::bigint) AND ($10::text IS NULL OR event_type = $10::text)
  AND ($11::boolean IS NULL OR {scheduled} = $11::boolean) AND (subscription, seq) > ($12::int, $13::bigint)
ORDER BY subscription, seq LIMIT $8::bigint)";

constinit const sql::Statements kStatements{

    // ---- Changes of subscriptions. The tables have few rows, which are found by primary key or
    // unique name.
    // With this setting the transaction's commit waits for the disk.
    .flushed = {.what = "set synchronous_commit", .text = R"(
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off')"},
    // $1 name. FOR UPDATE serializes concurrent calls of apply().
    .find_subscription = {.what = "find a subscription", .text = R"(
SELECT id, config::text, lane_group FROM {schema}.subscription WHERE name = $1::text FOR UPDATE)"},
    // One relay at a time changes owners. Primary key.
    .lock_fleet = {.what = "lock the owners", .text = R"(
SELECT generation FROM {schema}.fleet WHERE one FOR UPDATE)"},
    // $1 group. Primary key. It waits for transactions that are parking events.
    .lock_lanes = {.what = "lock the lanes", .text = R"(
SELECT lane::int, owner, generation FROM {schema}.lane WHERE lane_group = $1::text ORDER BY lane FOR UPDATE)"},
    // $1 id, $2 group. From now on only those owners of the new group's lanes count whose
    // generation is newer than every one of the old group's.
    .change_group = {.what = "change a subscription's group", .text = R"(
WITH newest AS (UPDATE {schema}.fleet SET generation = generation + 1 RETURNING generation)
UPDATE {schema}.subscription SET lane_group = $2::text, group_generation = newest.generation FROM newest WHERE id = $1::int)"},

    // ---- Audit (docs/design/audit.md).
    // A person waits for locks as long as a statement by itself would; the limit of an idle
    // transaction stays. The commit waits for the disk.
    .begin_decision = {.what = "begin a person's change", .text = R"(
SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),
CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', '0', true) END,
CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END)"},
    // $1 actor, $2 origin, $3 verb, $4 subscription or null, $5 its id or null, $6 filter, $7
    // count, $8 reason. Primary key of subscription.
    .record_decision = {.what = "record who changed this", .text = R"(
INSERT INTO {schema}.audit (actor, origin, verb, subscription, filter, count, reason)
SELECT $1::text, $2::text, $3::text,
  coalesce($4::text, (SELECT s.name FROM {schema}.subscription s WHERE s.id = $5::int), ''::text), $6::text::jsonb, $7::bigint, $8::text
RETURNING id)"},
    // Batches of one command that are too many for a row each there are only on SQLite.
    .record_more = {},
    // $1 since, $2 before which id, $3 actor, $4 subscription, where null means any; $5 limit. Rows
    // are read from the newest on: primary key, backwards.
    .list_audit = {.what = "list what people changed", .text = R"(
SELECT a.id, a.at, a.actor, a.origin, a.verb, a.subscription, a.filter::text, a.count, a.reason FROM {schema}.audit a
WHERE ($1::timestamptz IS NULL OR a.at >= $1::timestamptz) AND ($2::bigint IS NULL OR a.id < $2::bigint)
  AND ($3::text IS NULL OR a.actor = $3::text) AND ($4::text IS NULL OR a.subscription = $4::text)
ORDER BY a.id DESC LIMIT $5::bigint)"},

    // ---- Catalog.
    .subscriptions = {.how = How::kept, .what = "list subscriptions", .text = R"(
SELECT id, name, config::text, config_version, state, reason, stopped_seq, stopped_event, trouble,
to_char(trouble_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), parked_version, lane_group, group_generation,
trouble_relay, (SELECT r.id FROM {schema}.replay r WHERE r.subscription = s.id AND r.state = 'running')
FROM {schema}.subscription s ORDER BY name)"},
    // $1 name. Returns the present name of the subscription that had this name. Primary key.
    .former_name = {.what = "look for a former name", .text = R"(
SELECT s.name FROM {schema}.former_name n JOIN {schema}.subscription s ON s.id = n.subscription WHERE n.name = $1::text)"},
    // $1 name.
    .forget_former_name = {.what = "forget a former name", .text = R"(
SELECT {schema}.forget_former_name($1::text))"},
    // $1 name, $2 config, $3 group. Returns no row if another process has created it.
    .create_subscription = {.what = "create a subscription", .text = R"(
INSERT INTO {schema}.subscription (name, config, lane_group) VALUES ($1::text, $2::jsonb, $3::text) ON CONFLICT (name) DO NOTHING
RETURNING id)"},
    // $1 subscription, $2 whether it starts now. '3:3:' is a snapshot in which nothing is visible.
    // A statement's snapshot does not include its own transaction, so events of the same
    // transaction would still be delivered.
    .first_settlement = {.what = "write a subscription's first cursor", .text = R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1)
VALUES ($1::int, 'reset', -1, 0, 1, CASE WHEN $2::boolean THEN pg_current_snapshot() ELSE '3:3:'::pg_snapshot END))"},
    // $1 id, $2 config.
    .change_subscription = {.what = "change a subscription", .text = R"(
UPDATE {schema}.subscription SET config = $2::jsonb, config_version = config_version + 1, changed_at = clock_timestamp()
WHERE id = $1::int)"},
    // $1 name, $2 reason. A stopped subscription keeps its state and its reason.
    .pause = {.what = "pause a subscription", .text = R"(
UPDATE {schema}.subscription
SET state = CASE state WHEN 'active' THEN 'paused' ELSE state END, reason = CASE state WHEN 'stopped' THEN reason ELSE $2::text END,
    changed_at = clock_timestamp()
WHERE name = $1::text RETURNING id)"},
    // $1 name.
    .resume = {.what = "resume a subscription", .text = R"(
UPDATE {schema}.subscription SET state = 'active', reason = '', stopped_seq = NULL, stopped_event = NULL,
  changed_at = clock_timestamp()
WHERE name = $1::text RETURNING id)"},
    // $1 id, $2 generation, $3 reason, $4 seq, $5 event. It locks a lane of that generation, so
    // that a takeover waits until this is done; after a takeover no row qualifies. It returns no
    // row either while another transaction holds one of the locks, since this must not wait.
    .stop = {.what = "stop a subscription", .text = R"(
UPDATE {schema}.subscription SET state = 'stopped', reason = $3::text, stopped_seq = $4::bigint, stopped_event = $5::uuid,
  changed_at = clock_timestamp()
WHERE id = (SELECT s.id FROM {schema}.subscription s CROSS JOIN {schema}.lane l
            WHERE s.id = $1::int AND l.lane_group = s.lane_group AND l.generation = $2::bigint LIMIT 1
            FOR UPDATE OF s SKIP LOCKED FOR SHARE OF l SKIP LOCKED) RETURNING id)"},
    // $1 id, $2 generation, $3 the trouble (empty if it is over), $4 relay. Of several relays one
    // reports. Only that relay says that the trouble is over, or another one when that relay is
    // gone. It returns no row in the cases of `stop`.
    .report_trouble = {.what = "report a subscription's trouble", .text = R"(
UPDATE {schema}.subscription SET trouble = $3::text, trouble_relay = CASE WHEN $3::text = '' THEN NULL ELSE $4::uuid END,
  trouble_since = CASE WHEN $3::text = '' THEN NULL WHEN trouble = '' THEN clock_timestamp() ELSE trouble_since END
WHERE id = (SELECT s.id FROM {schema}.subscription s CROSS JOIN {schema}.lane l
            WHERE s.id = $1::int AND l.lane_group = s.lane_group AND l.generation = $2::bigint
              AND (s.trouble = '' OR s.trouble_relay IS NULL OR s.trouble_relay = $4::uuid
                   OR NOT EXISTS (SELECT FROM {schema}.relay r WHERE r.id = s.trouble_relay)) LIMIT 1
            FOR UPDATE OF s SKIP LOCKED FOR SHARE OF l SKIP LOCKED))"},

    // ---- SubscriptionChanges. The functions are in 0009_subscriptions.sql.
    // Few rows.
    .former_names = {.what = "list former names", .text = R"(
SELECT n.name, s.name FROM {schema}.former_name n JOIN {schema}.subscription s ON s.id = n.subscription ORDER BY n.name)"},
    // $1 name, which is unique.
    .name_is_taken = {.what = "look for the name", .text = R"(
SELECT EXISTS (SELECT FROM {schema}.subscription s WHERE s.name = $1::text))"},
    // $1 subscription, $2 name.
    .rename = {.what = "rename a subscription", .text = R"(
SELECT {schema}.rename_subscription($1::int, $2::text))"},
    // $1 subscription. Few rows.
    .running_replay = {.what = "look for a replay", .text = R"(
SELECT EXISTS (SELECT FROM {schema}.replay r WHERE r.subscription = $1::int AND r.state IN ('loading', 'running')))"},
    // $1 subscription.
    .drop = {.what = "drop a subscription", .text = R"(
SELECT {schema}.drop_subscription($1::int))"},

    // ---- Trials (docs/design/trials.md). The functions are in 0004_parking.sql. `run` has a few
    // rows; the others are found by primary key. $1 subscription, $2 lanes, $3 relay. A registered
    // relay counts as alive: whoever takes its lanes over removes its row.
    .former_runs = {.what = "read former runs", .text = R"(
SELECT r.generation, r.lanes & $2::bigint, r.place, r.tried, coalesce(r.first_seq, 0::bigint),
  EXISTS (SELECT FROM {schema}.parked p WHERE p.subscription = r.subscription AND p.seq = r.first_seq),
  r.relay IS NULL OR r.relay = $3::uuid OR EXISTS (SELECT FROM {schema}.relay m WHERE m.id = r.relay),
  r.uncounted & $2::bigint = 0::bigint
FROM {schema}.run r WHERE r.subscription = $1::int AND r.lanes & $2::bigint <> 0::bigint ORDER BY r.generation DESC)"},
    // $1 subscription, $2 lanes, $3 generation, $4 relay, $5 place, $6 events on trial, $7
    // generations that are kept.
    .begin_run = {.how = How::flushed, .what = "begin to deliver", .text = R"(
SELECT {schema}.begin_run($1::int, $2::bigint, $3::bigint, $4::uuid, $5::text, $6::bigint, $7::bigint[]))"},
    // $1 subscription, $2 lanes that are held, $3 generation, $4 lanes of the events, $5 how many
    // events, $6 the first one. It has no effect for a relay that was taken for dead. It runs
    // fourteen times in a trial that finds nothing.
    .open_range = {.how = How::flushed, .what = "try events", .text = R"(
WITH mine AS (
  UPDATE {schema}.run r SET tried = CASE WHEN r.lanes & $4::bigint <> 0::bigint THEN $5::bigint ELSE 0::bigint END,
    first_seq = CASE WHEN r.lanes & $4::bigint <> 0::bigint THEN $6::bigint END
  WHERE r.subscription = $1::int AND r.generation = $3::bigint
    AND EXISTS (SELECT FROM {schema}.relay m WHERE m.id = r.relay) RETURNING r.generation)
SELECT generation FROM mine UNION SELECT r.generation FROM {schema}.run r
WHERE r.subscription = $1::int AND r.generation < $3::bigint AND r.lanes & $2::bigint <> 0::bigint AND r.relay IS NOT NULL)"},
    // $1 subscription, $2 lanes, $3 generation, $4 generations that are kept.
    .close_trial = {.how = How::flushed, .what = "end a trial", .text = R"(
SELECT {schema}.close_trial($1::int, $2::bigint, $3::bigint, $4::bigint[]))"},
    // $1 subscription, $2 generation.
    .end_run = {.how = How::flushed, .what = "end in order", .text = R"(
WITH gone AS (DELETE FROM {schema}.run WHERE subscription = $1::int AND generation = $2::bigint AND tried = 0)
UPDATE {schema}.run SET relay = NULL, first_seq = NULL WHERE subscription = $1::int AND generation = $2::bigint AND tried > 0)"},

    // ---- Verified (docs/design/verify.md). `verified` has a row per subscription. Primary key.
    .list_verified = {.what = "read what is verified", .text = R"(
SELECT s.id, s.name, coalesce(v.place, ''::text), coalesce(v.events, 0::bigint), coalesce(v.differences, 0::bigint),
  coalesce(v.verifier, ''::text), (date_part('epoch'::text, clock_timestamp() - v.at) * 1000000::float8)::bigint, coalesce(v.revision, 0::bigint),
  (date_part('epoch'::text, clock_timestamp()) * 1000000::float8)::bigint
FROM {schema}.subscription s LEFT JOIN {schema}.verified v ON v.subscription = s.id ORDER BY s.name)"},
    // $1 subscription, $2 place, $3 events, $4 differences, $5 verifier, $6 the revision that was
    // read. Returns no row if there is another one.
    .save_verified = {.what = "note what is verified", .text = R"(
INSERT INTO {schema}.verified AS v (subscription, place, events, differences, verifier, at, revision)
SELECT s.id, $2::text, $3::bigint, $4::bigint, $5::text, clock_timestamp(), 1 FROM {schema}.subscription s WHERE s.id = $1::int
ON CONFLICT (subscription) DO UPDATE SET place = EXCLUDED.place, events = v.events + EXCLUDED.events,
  differences = v.differences + EXCLUDED.differences, verifier = EXCLUDED.verifier, at = EXCLUDED.at, revision = v.revision + 1
WHERE v.revision = $6::bigint RETURNING 1::int)"},
    // $1 subscription, $2 the revision that was read. Returns no row if there is another one.
    .forget_differences = {.what = "forget differences", .text = R"(
UPDATE {schema}.verified SET differences = 0, revision = revision + 1
WHERE subscription = $1::int AND revision = $2::bigint RETURNING 1::int)"},

    // ---- WorkHistory (docs/design/history.md). The primary key begins with `at`.
    // $1 who, $2 the beginning of the interval, $3 the rows, as JSON. What is there stays. The
    // commit waits for no disk and no standby: a row that a crash takes back is no loss.
    .append_history = {.what = "write history", .text = R"(
INSERT INTO {schema}.history (at, subscription, type, who, delivered, failed, parked, dead, latency, pending, oldest)
SELECT $2::timestamptz, r.subscription, r.type, $1::uuid, r.delivered, r.failed, r.parked, r.dead, r.latency, r.pending, r.oldest
FROM pg_catalog.jsonb_to_recordset($3::jsonb) AS r (subscription integer, type text, delivered bigint, failed bigint, parked bigint,
  dead bigint, latency bigint[], pending bigint, oldest bigint)
WHERE pg_catalog.set_config('synchronous_commit'::text, 'off'::text, true) = 'off'::text
ON CONFLICT DO NOTHING)"},
    // $1 since when, $2 the length of a step in microseconds. Reads the range of the primary key.
    .list_history = {.how = How::settings, .what = "read history", .text = R"(
SELECT s.name, h.type, h.step * $2::bigint, sum(h.delivered)::bigint, sum(h.failed)::bigint, sum(h.parked)::bigint,
  sum(h.dead)::bigint, max(h.pending), max(h.oldest), pg_catalog.array_to_json(ARRAY[sum(h.latency[1]), sum(h.latency[2]), sum(h.latency[3]), sum(h.latency[4]), sum(h.latency[5]), sum(h.latency[6]),
  sum(h.latency[7]), sum(h.latency[8]), sum(h.latency[9]), sum(h.latency[10]), sum(h.latency[11]), sum(h.latency[12]),
  sum(h.latency[13]), sum(h.latency[14]), sum(h.latency[15]), sum(h.latency[16]), sum(h.latency[17]),
  sum(h.latency[18]), sum(h.latency[19])])::text
FROM (SELECT t.*, (date_part('epoch'::text, t.at) * 1000000::float8)::bigint / $2::bigint AS step
      FROM {schema}.history t WHERE t.at >= $1::timestamptz) h
JOIN {schema}.subscription s ON s.id = h.subscription
GROUP BY s.name, h.type, h.step ORDER BY s.name, h.type, h.step)"},
    // $1 before when, $2 how many, and then the rest of the last one's interval. Primary key.
    .remove_history = {.what = "remove history", .text = R"(
DELETE FROM {schema}.history h WHERE h.at < $1::timestamptz AND h.at <= coalesce(
  (SELECT t.at FROM {schema}.history t WHERE t.at < $1::timestamptz ORDER BY t.at LIMIT 1 OFFSET $2::bigint), $1::timestamptz)
RETURNING 1::int)"},

    // ---- ConsoleTokens (docs/design/console.md). A few rows.
    .list_tokens = {.what = "list the console's tokens", .text = R"(
SELECT t.name, t.digest, t.role, t.payloads, t.created_by, t.created_at, t.expires_at FROM {schema}.console_token t ORDER BY t.name)"},
    // $1 name, $2 digest, $3 role, $4 payloads, $5 by whom, $6 when it expires, or null.
    .add_token = {.what = "add a token of the console", .text = R"(
INSERT INTO {schema}.console_token (name, digest, role, payloads, created_by, expires_at)
VALUES ($1::text, $2::text, $3::text, $4::boolean, $5::text, $6::timestamptz) ON CONFLICT (name) DO NOTHING RETURNING 1::int)"},
    .remove_token = {.what = "remove a token of the console", .text = R"(
DELETE FROM {schema}.console_token t WHERE t.name = $1::text RETURNING 1::int)"},

    // ---- Inbox (docs/design/consumers.md).
    // $1 consumer, then arrays in the order of the ids: id, type, place, task or ''. Returns the
    // ids that were new. Primary key. The commit waits for the disk, because the broker forgets
    // these messages then.
    .insert_received = {.how = How::kept, .what = "write received messages", .text = R"(
INSERT INTO {schema}.inbox (consumer, message_id, event_type, place, task)
SELECT $1::text, u.id, u.type, u.place, nullif(u.task, '')::uuid
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) u(id, type, place, task)
WHERE (SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) ELSE 'on' END) = 'on'
ON CONFLICT DO NOTHING RETURNING message_id)"},
    // $1 consumer, $2 ids. Primary key.
    .received_again = {.how = How::kept, .what = "count messages that arrived again", .text = R"(
UPDATE {schema}.inbox i SET arrivals = i.arrivals + n.times
FROM (SELECT u.id, count(*)::int AS times FROM unnest($2::text[]) u(id) GROUP BY u.id) n
WHERE i.consumer = $1::text AND i.message_id = n.id)"},
    // $1 consumer, $2 keys, sorted. Primary key. A key that is new gets a row, which locks it.
    .latest_of_keys = {.how = How::kept, .what = "read the latest messages of keys", .text = R"(
INSERT INTO {schema}.inbox_key (consumer, key, seq)
SELECT $1::text, u.key, '-9223372036854775808'::bigint FROM unnest($2::text[]) u(key)
ON CONFLICT (consumer, key) DO UPDATE SET seq = {schema}.inbox_key.seq RETURNING key, seq)"},
    // $1 consumer, $2 keys, sorted, $3 their numbers. Primary key.
    .note_latest = {.how = How::kept, .what = "note the latest messages of keys", .text = R"(
INSERT INTO {schema}.inbox_key (consumer, key, seq)
SELECT $1::text, u.key, u.seq FROM unnest($2::text[], $3::bigint[]) u(key, seq)
ON CONFLICT (consumer, key) DO UPDATE SET seq = greatest({schema}.inbox_key.seq, excluded.seq), at = excluded.at)"},
    // $1 consumer, $2 type and $3 since, which may be null, $4 time (or null) and $5 id before
    // which the rows are, $6 limit. Index inbox_received, backwards.
    .list_inbox = {.how = How::plan_settings, .what = "list the inbox", .text = R"(
SELECT i.consumer, i.message_id, i.event_type, i.place, i.task, i.received_at, i.arrivals FROM {schema}.inbox i
WHERE i.consumer = $1::text AND ($2::text IS NULL OR i.event_type = $2::text)
  AND i.received_at >= coalesce($3::timestamptz, '-infinity')
  AND (i.received_at, i.message_id) < (coalesce($4::timestamptz, 'infinity'), $5::text)
ORDER BY i.received_at DESC, i.message_id DESC LIMIT $6::bigint)"},
    // The same, and $7 is the message's id. Primary key.
    .find_in_inbox = {.how = How::plan_settings, .what = "find a message in the inbox", .text = R"(
SELECT i.consumer, i.message_id, i.event_type, i.place, i.task, i.received_at, i.arrivals FROM {schema}.inbox i
WHERE i.consumer = $1::text AND i.message_id = $7::text AND ($2::text IS NULL OR i.event_type = $2::text)
  AND i.received_at >= coalesce($3::timestamptz, '-infinity')
  AND (i.received_at, i.message_id) < (coalesce($4::timestamptz, 'infinity'), $5::text) LIMIT $6::bigint)"},
    // $1 the most rows that are counted. For each consumer the primary key and inbox_received.
    .inbox_consumers = {.how = How::plan_settings, .what = "list the consumers", .text = R"(
WITH RECURSIVE c(consumer) AS (
  (SELECT i.consumer FROM {schema}.inbox i ORDER BY i.consumer LIMIT 1) UNION ALL
  SELECT (SELECT i.consumer FROM {schema}.inbox i WHERE i.consumer > c.consumer ORDER BY i.consumer LIMIT 1) FROM c
  WHERE c.consumer IS NOT NULL)
SELECT c.consumer, (SELECT count(*) FROM (SELECT FROM {schema}.inbox i WHERE i.consumer = c.consumer LIMIT $1::bigint) n),
  (SELECT i.received_at FROM {schema}.inbox i WHERE i.consumer = c.consumer ORDER BY i.received_at LIMIT 1),
  (SELECT i.received_at FROM {schema}.inbox i WHERE i.consumer = c.consumer ORDER BY i.received_at DESC LIMIT 1)
FROM c WHERE c.consumer IS NOT NULL ORDER BY c.consumer)"},
    // $1 consumer, $2 after this id, $3 limit. Primary key.
    .read_inbox = {.how = How::plan_settings, .what = "read the inbox", .text = R"(
SELECT i.consumer, i.message_id, i.event_type, i.place, i.task, i.received_at, i.arrivals FROM {schema}.inbox i
WHERE i.consumer = $1::text AND i.message_id > $2::text ORDER BY i.message_id LIMIT $3::bigint)"},

    // ---- Replays (docs/design/replay.md). The functions are in 0007_replay.sql.
    // Returns the first event that is certainly there, by event_by_seq, and the newest one.
    .retained = {.how = How::settings, .what = "ask what is retained", .text = R"(
SELECT f.seq, f.seq > 1::bigint,
       (SELECT e.created_at FROM {schema}.event e WHERE e.seq >= f.seq ORDER BY e.seq LIMIT 1),
       coalesce((SELECT e.seq FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1), 0::bigint)
FROM (SELECT {schema}.retained_from() AS seq) f)"},
    // $1 replay.
    .replay_loaded = {.how = How::flushed, .what = "start a replay", .text = R"(
UPDATE {schema}.replay SET state = 'running' WHERE id = $1::bigint AND state = 'loading' RETURNING subscription)"},
    // $1 replay, $2 the reason.
    .stop_replay = {.how = How::flushed, .what = "stop a replay", .text = R"(
UPDATE {schema}.replay SET state = 'stopped', reason = $2::text, ended_at = clock_timestamp()
WHERE id = $1::bigint AND state = 'running' RETURNING subscription)"},
    // $1 replay. It removes a replay whose events are not all loaded.
    .drop_replay = {.how = How::flushed, .what = "remove a replay", .text = R"(
DELETE FROM {schema}.replay WHERE id = $1::bigint AND state = 'loading' RETURNING subscription)"},
    // $1 id (null for all), $2 subscription (0 for all), $3 limit. A replay has at most some
    // thousands of rows of progress, which are added up.
    .list_replays = {.how = How::settings, .what = "list replays", .text = R"(
SELECT r.id, r.subscription, r.first_seq, r.last_seq, r.filter::text, r.archived, r.state, r.actor, r.reason, r.started_at,
       r.ended_at,
       (SELECT min(coalesce((SELECT max(g.position) FROM (
                  SELECT p.lanes, max(p.position) AS position FROM {schema}.replay_progress p WHERE p.replay = r.id GROUP BY p.lanes) g
                WHERE (g.lanes >> lane.n) & 1::bigint = 1), r.first_seq - 1::bigint))
        FROM pg_catalog.generate_series(0, 63) lane(n)),
       (SELECT coalesce(sum(p.sent), 0::numeric)::bigint FROM {schema}.replay_progress p WHERE p.replay = r.id),
       (SELECT count(*) FROM {schema}.replay_skip k WHERE k.replay = r.id)
FROM (SELECT * FROM {schema}.replay a
      WHERE ($1::bigint IS NULL OR a.id = $1::bigint) AND ($2::int = 0 OR a.subscription = $2::int)
      ORDER BY a.id DESC LIMIT $3::bigint) r ORDER BY r.id DESC)"},
    // $1 replay, $2 limit. Primary key.
    .replay_skips = {.how = How::settings, .what = "read what a replay skipped", .text = R"(
SELECT seq, id, error, aggregate_type, aggregate_id FROM {schema}.replay_skip WHERE replay = $1::bigint ORDER BY seq LIMIT $2::bigint)"},
    // $1 replay. Index replay_progress_replay.
    .replay_places = {.how = How::settings, .what = "read how far a replay is", .text = R"(
SELECT lanes, max(position) FROM {schema}.replay_progress WHERE replay = $1::bigint GROUP BY lanes)"},

    // ---- TaskRuns (docs/design/tasks.md). $1 worker, $2 name, $3 note. Primary key. The count of
    // heartbeats begins with the time, so that a worker whose row was removed does not reach a
    // number again that others have seen.
    .beat_worker = {.how = How::kept, .what = "worker heartbeat", .text = R"(
INSERT INTO {schema}.worker AS w (id, name, beat, beat_at, types)
VALUES ($1::uuid, $2::text, (date_part('epoch'::text, clock_timestamp()) * 1000000::float8)::bigint, clock_timestamp(), $3::jsonb)
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, beat = w.beat + 1, beat_at = EXCLUDED.beat_at, types = EXCLUDED.types
RETURNING (date_part('epoch'::text, clock_timestamp()) * 1000000::float8)::bigint)"},
    // $1 worker. It also removes workers that died without runs, since nobody looks for them.
    .remove_worker = {.what = "remove a worker", .text = R"(
DELETE FROM {schema}.worker WHERE id = $1::uuid OR beat_at < clock_timestamp() - interval '1 day')"},
    // $1 worker, $2 names of subscriptions, $3 limit. Index parked_key_worker.
    .runs_of_worker = {.how = How::kept, .what = "read the runs of a worker", .text = R"(
SELECT s.id, s.name, p.seq, p.id, k.attempts, k.token, p.event_type, p.headers::text, k.cancelled_by IS NOT NULL
FROM {schema}.subscription s JOIN {schema}.parked_key k ON k.subscription = s.id AND k.worker = $1::uuid
  JOIN {schema}.parked p ON p.subscription = k.subscription AND p.seq = k.run_seq
WHERE s.name = ANY ($2::text[]) LIMIT $3::bigint)"},
    // $1 worker, $2 names of subscriptions. Index parked_key_worker.
    .other_workers = {.how = How::kept, .what = "look for other workers", .text = R"(
SELECT r.worker, w.beat, coalesce((w.types ->> 'heartbeat_ms')::bigint, 0::bigint) FROM (
  SELECT DISTINCT k.worker FROM {schema}.subscription s JOIN {schema}.parked_key k ON k.subscription = s.id AND k.worker IS NOT NULL
  WHERE s.name = ANY ($2::text[]) AND k.worker <> $1::uuid) r
LEFT JOIN {schema}.worker w ON w.id = r.worker)"},
    // $1 names of subscriptions. Indexes task_end_set_aside, task_end_waits and parked_id. It also
    // returns tasks that a transaction set aside before it saw that they were replaced, while the
    // replacing transaction did not see that they were set aside.
    .replaced_parked = {.how = How::kept, .what = "list replaced tasks", .text = R"(
WITH replaced AS MATERIALIZED (
  (SELECT e.id FROM {schema}.task_end e WHERE e.set_aside ORDER BY e.id LIMIT 1000)
  UNION ALL (SELECT e.id FROM {schema}.task_end e WHERE e.waits AND NOT e.set_aside ORDER BY e.id LIMIT 1000))
SELECT p.subscription, p.seq FROM replaced r
CROSS JOIN LATERAL (SELECT k.subscription, k.seq FROM {schema}.parked k WHERE k.id = r.id OFFSET 0) p
JOIN {schema}.subscription s ON s.id = p.subscription WHERE s.name = ANY ($1::text[]))"},

    // ---- ParkedEvents (docs/design/parking.md).
    // Primary key.
    .list_parked = {.how = How::plan_settings, .what = "list parked events", .text = kListParked},
    // The same with an id: the settings, which avoid a sort, would keep the planner from using
    // index parked_id.
    .find_parked = {.what = "find a parked event", .text = kListParked},
    // $1 subscription. Counts the events that are retried, wait, and are dead. Primary key of
    // parked_key, indexes parked_live and parked_dead.
    .count_parked = {.how = How::kept, .what = "count parked events", .text = R"(
SELECT k.retrying, greatest(l.live - k.heads, 0::bigint), d.dead
FROM (SELECT count(*) FILTER (WHERE run_seq IS NULL AND next_attempt_at < 'infinity') AS retrying,
             count(*) FILTER (WHERE run_seq IS NOT NULL OR next_attempt_at < 'infinity') AS heads
      FROM {schema}.parked_key WHERE subscription = $1::int) k,
     (SELECT count(*) AS live FROM {schema}.parked WHERE subscription = $1::int AND NOT dead) l,
     (SELECT count(*) AS dead FROM {schema}.parked WHERE subscription = $1::int AND dead) d)"},

    // ---- Schedules. The table has a few rows, which are found by primary key or all read.
    .clock = {.what = "read the clock", .text = R"(
SELECT (date_part('epoch'::text, clock_timestamp()) * 1000000::float8)::bigint)"},
    // $1 name, $2 queue, $3 type, $4 payload, $5 content_type, $6 key, $7 headers, $8 cron, $9
    // every, $10 time_zone, $11 missed, $12 next_at of a new schedule, and of one with other ticks.
    // Returns a row if something changed.
    .apply_schedule = {.what = "apply a schedule", .text = R"(
INSERT INTO {schema}.schedule AS s
  (name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed, next_at)
VALUES ($1::text, $2::text, $3::text, $4::bytea, $5::text, $6::text, $7::jsonb, $8::text, $9::text, $10::text, $11::text,
  $12::timestamptz)
ON CONFLICT (name) DO UPDATE SET queue = EXCLUDED.queue, type = EXCLUDED.type, payload = EXCLUDED.payload,
  content_type = EXCLUDED.content_type, key = EXCLUDED.key, headers = EXCLUDED.headers, cron = EXCLUDED.cron,
  every = EXCLUDED.every, time_zone = EXCLUDED.time_zone, missed = EXCLUDED.missed, revision = s.revision + 1,
  next_at = CASE WHEN (s.cron, s.every, s.time_zone) IS DISTINCT FROM (EXCLUDED.cron, EXCLUDED.every, EXCLUDED.time_zone)
    THEN EXCLUDED.next_at ELSE s.next_at END
WHERE (s.queue, s.type, s.payload, s.content_type, s.key, s.headers, s.cron, s.every, s.time_zone, s.missed) IS DISTINCT FROM
  (EXCLUDED.queue, EXCLUDED.type, EXCLUDED.payload, EXCLUDED.content_type, EXCLUDED.key, EXCLUDED.headers, EXCLUDED.cron,
   EXCLUDED.every, EXCLUDED.time_zone, EXCLUDED.missed)
RETURNING 1::int)"},
    // $1 queues.
    .next_tick = {.how = How::kept, .what = "look for ticks", .text = R"(
SELECT (date_part('epoch'::text, clock_timestamp()) * 1000000::float8)::bigint, min(next_at),
  EXISTS (SELECT FROM {schema}.schedule WHERE queue = ANY ($1::text[]))
FROM {schema}.schedule WHERE queue = ANY ($1::text[]) AND NOT paused)"},
    // $1 queues, $2 now.
    .due_schedules = {.how = How::kept, .what = "read due schedules", .text = R"(
SELECT name, queue, type, payload, content_type, key, headers::text, cron, every, time_zone, missed, paused, revision, next_at,
  last_at, last_task
FROM {schema}.schedule WHERE queue = ANY ($1::text[]) AND NOT paused AND next_at <= $2::timestamptz ORDER BY next_at, name)"},
    // $1 name, $2 next_at, $3 revision, as they were read. Returns no row if another worker is
    // handling the schedule, or has done so.
    .lock_schedule = {.how = How::kept, .what = "lock a schedule", .text = R"(
SELECT 1::int FROM {schema}.schedule
WHERE name = $1::text AND next_at = $2::timestamptz AND revision = $3::bigint AND NOT paused FOR UPDATE SKIP LOCKED)"},
    // $1 name, $2 next_at, $3 last_at, $4 last_task; $3 and $4 keep their values if null.
    .move_schedule = {.how = How::kept, .what = "move a schedule", .text = R"(
UPDATE {schema}.schedule SET next_at = $2::timestamptz, last_at = coalesce($3::timestamptz, last_at),
  last_task = coalesce($4::uuid, last_task), revision = revision + 1
WHERE name = $1::text)"},
    .list_schedules = {.what = "list schedules", .text = R"(
SELECT name, queue, type, payload, content_type, key, headers::text, cron, every, time_zone, missed, paused, revision, next_at,
  last_at, last_task
FROM {schema}.schedule ORDER BY name)"},
    // $1 name.
    .pause_schedule = {.what = "pause a schedule", .text = R"(
UPDATE {schema}.schedule SET paused = true, revision = revision + 1 WHERE name = $1::text AND NOT paused RETURNING 1::int)"},
    // $1 name, $2 revision, $3 next_at.
    .resume_schedule = {.what = "resume a schedule", .text = R"(
UPDATE {schema}.schedule SET paused = false, next_at = $3::timestamptz, revision = revision + 1
WHERE name = $1::text AND revision = $2::bigint AND paused RETURNING 1::int)"},
    // $1 name.
    .remove_schedule = {.what = "remove a schedule", .text = R"(
DELETE FROM {schema}.schedule WHERE name = $1::text RETURNING 1::int)"},
};

}  // namespace outbox::store::postgres
