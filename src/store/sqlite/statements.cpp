// The SQL of the statements in store/sql, as in queries.hpp. outbox_now() is the store's clock, in
// microseconds.
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

// ?1 subscription, ?2 state, ?3 and ?4 the key, ?5 part of the error, ?6 id, ?7 seq, where null
// means any; ?8 limit, ?9 with payload and headers, ?10 event type, ?11 scheduled or not, ?12 and
// ?13 after which subscription and seq. A task counts as scheduled if it waits for the time of its
// header. Primary key.
constexpr std::string_view kListParked = R"(
/* list parked */ SELECT subscription, seq, id, aggregate_type, aggregate_id, event_type, state, attempts, error, parked_at,
next_attempt_at, CASE WHEN ?9 THEN payload END, content_type, CASE WHEN ?9 THEN headers END, created_at, scheduled,
(SELECT w.name FROM outbox_worker w WHERE w.id = r.worker), begun_at, percent, progress FROM (SELECT p.*,
p.state = 'retrying' AND p.attempts = 0 AND p.next_attempt_at > outbox_now() AND p.aggregate_type LIKE 'outbox-task:%'
AND json_valid(p.headers) AND coalesce(julianday(json_extract(p.headers, '$."task-execute-at"'))
> julianday(outbox_now() / 1000000.0, 'unixepoch'), 0)
AS scheduled FROM outbox_parked_state p) r
WHERE (subscription, seq) > (?12, ?13) AND subscription <= coalesce(?1, 2147483647) AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR aggregate_type = ?3)
AND (?4 IS NULL OR aggregate_id = ?4) AND (?5 IS NULL OR instr(error, ?5) > 0)
AND (?6 IS NULL OR id = CAST(?6 AS BLOB)) AND (?7 IS NULL OR seq = ?7)
AND (?10 IS NULL OR event_type = ?10) AND (?11 IS NULL OR scheduled = ?11)
ORDER BY subscription, seq LIMIT ?8)";

constinit const sql::Statements kStatements{

    // ---- Changes of subscriptions, a table of a few rows. There is only one writer at a time, so
    // nothing needs to be locked.
    .flushed = {},
    // ?1 name.
    .find_subscription = {.text = R"(
/* read subscription */ SELECT id, config, lane_group FROM outbox_subscription WHERE name = ?1)"},
    .lock_fleet = {},
    .lock_lanes = {},
    // ?1 id, ?2 group. From now on only those owners of the new group count whose generation is
    // newer than every one of the old group.
    .change_group = {.text = R"(
/* raise generation */ UPDATE outbox_meta SET generation = generation + 1 WHERE one = 1;
/* change group */ UPDATE outbox_subscription SET lane_group = ?2,
group_generation = (SELECT generation FROM outbox_meta WHERE one = 1) WHERE id = ?1)"},

    // ---- Audit (docs/design/audit.md).
    .begin_decision = {},
    // ?1 actor, ?2 origin, ?3 verb, ?4 subscription or null, ?5 its id or null, ?6 filter, ?7
    // count, ?8 reason. Primary key of outbox_subscription.
    .record_decision = {.text = R"(
/* record who changed this */ INSERT INTO outbox_audit (at, actor, origin, verb, subscription, filter, count, reason)
VALUES (outbox_now(), ?1, ?2, ?3, coalesce(?4, (SELECT name FROM outbox_subscription WHERE id = ?5), ''), ?6, ?7, ?8) RETURNING id)"},
    // ?1 id, ?2 count of a further batch. Primary key.
    .record_more = {.text = R"(
/* record a further batch */ UPDATE outbox_audit SET count = count + ?2 WHERE id = ?1)"},
    // ?1 since, ?2 before which id, ?3 actor, ?4 subscription, where null means any; ?5 limit. Rows
    // are read from the newest on: primary key, backwards.
    .list_audit = {.text = R"(
/* list what people changed */ SELECT id, at, actor, origin, verb, subscription, filter, count, reason FROM outbox_audit
WHERE (?1 IS NULL OR at >= ?1) AND (?2 IS NULL OR id < ?2) AND (?3 IS NULL OR actor = ?3) AND (?4 IS NULL OR subscription = ?4)
ORDER BY id DESC LIMIT ?5)"},

    // ---- Catalog.
    .subscriptions = {.text = R"(
/* list subscriptions */ SELECT id, name, config, config_version, state, reason, stopped_seq, stopped_event,
trouble, trouble_since, parked_version, lane_group, group_generation, trouble_relay,
(SELECT r.id FROM outbox_replay r WHERE r.subscription = s.id AND r.state = 'running')
FROM outbox_subscription s ORDER BY name)"},
    // ?1 name. Returns the present name of the subscription that had this name. Primary key.
    .former_name = {.text = R"(
/* look for a former name */ SELECT s.name FROM outbox_former_name n JOIN outbox_subscription s ON s.id = n.subscription
WHERE n.name = ?1)"},
    // ?1 name.
    .forget_former_name = {.text = R"(
/* forget a former name */ DELETE FROM outbox_former_name WHERE name = ?1)"},
    // ?1 name, ?2 config, ?3 group.
    .create_subscription = {.text = R"(
/* create subscription */ INSERT INTO outbox_subscription (name, config, lane_group) VALUES (?1, ?2, ?3) RETURNING id)"},
    // ?1 subscription, ?2 whether it starts now. Under the write lock it neither misses nor repeats
    // an event that is being written.
    .first_settlement = {.text = R"(
/* write first cursor */ INSERT INTO outbox_settlement
(subscription, kind, generation, config_version, from_position, position, at)
SELECT ?1, 'reset', 0, 1, p.seq, p.seq, outbox_now() FROM (SELECT coalesce((SELECT s.seq FROM sqlite_sequence s
WHERE s.name = 'outbox_event' AND ?2), 0) AS seq) p)"},
    // ?1 id, ?2 config.
    .change_subscription = {.text = R"(
/* change subscription */ UPDATE outbox_subscription SET config = ?2, config_version = config_version + 1,
changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1)"},
    // ?1 name, ?2 reason. A stopped subscription stays stopped and keeps its reason, since its
    // first event would be rejected again.
    .pause = {.text = R"(
/* pause subscription */ UPDATE outbox_subscription SET
state = CASE state WHEN 'active' THEN 'paused' ELSE state END,
reason = CASE state WHEN 'stopped' THEN reason ELSE ?2 END,
changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1 RETURNING id)"},
    // ?1 name.
    .resume = {.text = R"(
/* resume subscription */ UPDATE outbox_subscription SET state = 'active', reason = '', stopped_seq = NULL,
stopped_event = '', changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1 RETURNING id)"},
    // ?1 id, ?2 generation, ?3 reason, ?4 seq, ?5 event.
    .stop = {.text = R"(
/* stop subscription */ UPDATE outbox_subscription SET state = 'stopped', reason = ?3, stopped_seq = ?4,
stopped_event = ?5, changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
WHERE id = ?1 AND ?2 = (SELECT o.generation FROM outbox_owner o WHERE o.lane_group = outbox_subscription.lane_group) RETURNING id)"},
    // ?1 id, ?2 generation, ?3 the trouble (empty if it is over), ?4 relay.
    .report_trouble = {.text = R"(
/* report trouble */ UPDATE outbox_subscription SET trouble = ?3, trouble_relay = CASE WHEN ?3 = '' THEN '' ELSE ?4 END,
trouble_since = CASE WHEN ?3 = '' THEN '' WHEN trouble = '' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now') ELSE trouble_since END
WHERE id = ?1 AND ?2 = (SELECT o.generation FROM outbox_owner o WHERE o.lane_group = outbox_subscription.lane_group))"},

    // ---- SubscriptionChanges.
    .former_names = {.text = R"(
/* list former names */ SELECT n.name, s.name FROM outbox_former_name n JOIN outbox_subscription s ON s.id = n.subscription
ORDER BY n.name)"},
    // ?1 name.
    .name_is_taken = {.text = R"(
/* read subscription */ SELECT EXISTS (SELECT 1 FROM outbox_subscription WHERE name = ?1))"},
    // ?1 id, ?2 name.
    .rename = {.text = R"(
/* forget a former name */ DELETE FROM outbox_former_name WHERE name = ?2;
/* note a former name */ INSERT INTO outbox_former_name (name, subscription, at)
SELECT name, id, outbox_now() FROM outbox_subscription WHERE id = ?1;
/* rename subscription */ UPDATE outbox_subscription SET name = ?2, config_version = config_version + 1,
changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1)"},
    // ?1 subscription. Index outbox_replay_running.
    .running_replay = {.text = R"(
/* look for a replay */ SELECT EXISTS (SELECT 1 FROM outbox_replay WHERE subscription = ?1
AND state IN ('loading', 'running')))"},
    // ?1 id. Drops the subscription with its parked events and replays; retention removes its other
    // rows later.
    .drop = {.text = R"(
/* note a dropped subscription */ INSERT INTO outbox_dropped (subscription, at) VALUES (?1, outbox_now());
/* drop subscription */ DELETE FROM outbox_subscription WHERE id = ?1;
/* drop parked */ DELETE FROM outbox_parked WHERE subscription = ?1;
/* drop parked keys */ DELETE FROM outbox_parked_key WHERE subscription = ?1;
/* drop run */ DELETE FROM outbox_run WHERE subscription = ?1;
/* drop verified */ DELETE FROM outbox_verified WHERE subscription = ?1;
/* drop former names */ DELETE FROM outbox_former_name WHERE subscription = ?1;
/* drop skips */ DELETE FROM outbox_replay_skip WHERE replay IN (SELECT id FROM outbox_replay WHERE subscription = ?1);
/* drop replays */ DELETE FROM outbox_replay WHERE subscription = ?1)"},

    // ---- Trials (docs/design/trials.md). ?1 subscription. All statements use primary keys and
    // read a row or two. ?2 lanes, ?3 relay. A registered relay counts as alive: whoever takes its
    // group over removes its row.
    .former_runs = {.text = R"(
/* read former runs */ SELECT generation, ?2, place, tried, first_seq,
EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?1 AND p.seq = r.first_seq),
relay IN ('', ?3) OR EXISTS (SELECT 1 FROM outbox_relay m WHERE m.id = r.relay), counted
FROM outbox_run r WHERE subscription = ?1 ORDER BY generation DESC)"},
    // ?3 generation, ?4 relay, ?5 place, ?6 events on trial, ?7 generations that are kept.
    .begin_run = {.for_owner = true, .text = R"(
/* forget run */ DELETE FROM outbox_run WHERE subscription = ?1 AND generation NOT IN (SELECT value FROM json_each(?7));
/* count runs */ UPDATE outbox_run SET counted = 1 WHERE subscription = ?1;
/* begin run */ INSERT INTO outbox_run (subscription, generation, relay, place, tried)
VALUES (?1, ?3, ?4, ?5, ?6))"},
    // ?3 generation, ?5 events, ?6 the first one.
    .open_range = {.for_owner = true, .text = R"(
/* try events */ UPDATE outbox_run SET tried = ?5, first_seq = ?6
WHERE subscription = ?1 AND generation = ?3 AND relay <> '';
/* read deaths */ SELECT ?3 UNION ALL SELECT generation FROM outbox_run WHERE subscription = ?1 AND generation < ?3 AND relay <> '')"},
    // ?3 generation, ?4 generations that are kept.
    .close_trial = {.for_owner = true, .text = R"(
/* forget run */ DELETE FROM outbox_run WHERE subscription = ?1 AND generation <> ?3 AND generation NOT IN (SELECT value FROM json_each(?4));
/* try events */ UPDATE outbox_run SET tried = 0, first_seq = 0
WHERE subscription = ?1 AND generation = ?3 AND relay <> '')"},
    // ?2 generation.
    .end_run = {.text = R"(
/* end run */ DELETE FROM outbox_run WHERE subscription = ?1 AND generation = ?2 AND tried = 0;
/* leave trial */ UPDATE outbox_run SET relay = '', first_seq = 0 WHERE subscription = ?1 AND generation = ?2)"},

    // ---- Verified (docs/design/verify.md). A row per subscription, found by primary key.
    .list_verified = {.text = R"(
/* read what is verified */ SELECT s.id, s.name, coalesce(v.place, ''), coalesce(v.events, 0), coalesce(v.differences, 0),
coalesce(v.verifier, ''), outbox_now() - v.at, coalesce(v.revision, 0), outbox_now()
FROM outbox_subscription s LEFT JOIN outbox_verified v ON v.subscription = s.id ORDER BY s.name)"},
    // ?1 subscription, ?2 place, ?3 events, ?4 differences, ?5 verifier, ?6 the revision that was
    // read. Returns no row if there is another one.
    .save_verified = {.text = R"(
/* note what is verified */ INSERT INTO outbox_verified AS v (subscription, place, events, differences, verifier, at, revision)
SELECT id, ?2, ?3, ?4, ?5, outbox_now(), 1 FROM outbox_subscription WHERE id = ?1
ON CONFLICT (subscription) DO UPDATE SET place = excluded.place, events = v.events + excluded.events,
differences = v.differences + excluded.differences, verifier = excluded.verifier, at = excluded.at, revision = v.revision + 1
WHERE v.revision = ?6 RETURNING 1)"},
    // ?1 subscription, ?2 the revision that was read. Returns no row if there is another one.
    .forget_differences = {.text = R"(
/* forget differences */ UPDATE outbox_verified SET differences = 0, revision = revision + 1
WHERE subscription = ?1 AND revision = ?2 RETURNING 1)"},

    // ---- WorkHistory (docs/design/history.md). The primary key begins with `at`.
    // ?1 who, ?2 the beginning of the interval, ?3 the rows, as JSON. What is there stays.
    .append_history = {.text = R"(
/* write history */ INSERT OR IGNORE INTO outbox_history
(at, subscription, type, who, delivered, failed, parked, dead, latency, pending, oldest)
SELECT ?2, value ->> 'subscription', value ->> 'type', CAST(?1 AS BLOB), value ->> 'delivered', value ->> 'failed',
value ->> 'parked', value ->> 'dead', value -> 'latency', value ->> 'pending', value ->> 'oldest' FROM json_each(?3))"},
    // ?1 since when, ?2 the length of a step. Reads the range of the primary key.
    .list_history = {.text = R"(
/* read history */ SELECT s.name, h.type, h.at / ?2 * ?2 AS step, sum(h.delivered), sum(h.failed), sum(h.parked), sum(h.dead),
max(h.pending), max(h.oldest), json_array(sum(h.latency ->> 0), sum(h.latency ->> 1), sum(h.latency ->> 2), sum(h.latency ->> 3), sum(h.latency ->> 4),
  sum(h.latency ->> 5), sum(h.latency ->> 6), sum(h.latency ->> 7), sum(h.latency ->> 8), sum(h.latency ->> 9),
  sum(h.latency ->> 10), sum(h.latency ->> 11), sum(h.latency ->> 12), sum(h.latency ->> 13), sum(h.latency ->> 14),
  sum(h.latency ->> 15), sum(h.latency ->> 16), sum(h.latency ->> 17), sum(h.latency ->> 18))
FROM outbox_history h CROSS JOIN outbox_subscription s ON s.id = h.subscription
WHERE h.at >= ?1 GROUP BY s.name, h.type, step ORDER BY s.name, h.type, step)"},
    // ?1 before when, ?2 how many, and then the rest of the last one's interval. Primary key.
    .remove_history = {.text = R"(
/* remove history */ DELETE FROM outbox_history WHERE at < ?1 AND at <= coalesce(
(SELECT at FROM outbox_history WHERE at < ?1 ORDER BY at LIMIT 1 OFFSET ?2), ?1) RETURNING 1)"},

    // ---- ConsoleTokens (docs/design/console.md). A few rows.
    .list_tokens = {.text = R"(
/* list tokens */ SELECT name, digest, role, payloads, created_by, created_at, expires_at FROM outbox_console_token ORDER BY name)"},
    // ?1 name, ?2 digest, ?3 role, ?4 payloads, ?5 by whom, ?6 when it expires, or null.
    .add_token = {.text = R"(
/* add token */ INSERT INTO outbox_console_token (name, digest, role, payloads, created_by, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, outbox_now(), ?6) ON CONFLICT (name) DO NOTHING RETURNING 1)"},
    .remove_token = {.text = R"(
/* remove token */ DELETE FROM outbox_console_token WHERE name = ?1 RETURNING 1)"},

    // ---- Inbox (docs/design/consumers.md).
    // ?1 consumer, then arrays in the order of the ids: id, type, place, task or ''. Returns the
    // ids that were new. Primary key.
    .insert_received = {.text = R"(
/* write received messages */ INSERT INTO outbox_inbox (consumer, message_id, received_at, event_type, place, task)
SELECT ?1, a.value, outbox_now(), ?3 ->> a.key, ?4 ->> a.key, nullif(?5 ->> a.key, '') FROM json_each(?2) a WHERE true
ON CONFLICT DO NOTHING RETURNING message_id)"},
    // ?1 consumer, ?2 ids. Primary key.
    .received_again = {.text = R"(
/* count messages that arrived again */ UPDATE outbox_inbox SET arrivals = arrivals + n.times
FROM (SELECT value AS id, count(*) AS times FROM json_each(?2) GROUP BY value) n WHERE consumer = ?1 AND message_id = n.id)"},
    // ?1 consumer, ?2 keys. Primary key. The transaction has the lock of the file.
    .latest_of_keys = {.text = R"(
/* read the latest messages of keys */ SELECT key, seq FROM outbox_inbox_key WHERE consumer = ?1 AND key IN (SELECT value FROM json_each(?2)))"},
    // ?1 consumer, ?2 keys, ?3 their numbers. Primary key.
    .note_latest = {.text = R"(
/* note the latest messages of keys */ INSERT INTO outbox_inbox_key (consumer, key, seq, at)
SELECT ?1, a.value, ?3 ->> a.key, outbox_now() FROM json_each(?2) a WHERE true
ON CONFLICT (consumer, key) DO UPDATE SET seq = max(seq, excluded.seq), at = excluded.at)"},
    // ?1 consumer, ?2 type and ?3 since, which may be null, ?4 time (or null) and ?5 id before
    // which the rows are, ?6 limit. Index outbox_inbox_received, backwards.
    .list_inbox = {.text = R"(
/* list inbox */ SELECT consumer, message_id, coalesce(event_type, ''), coalesce(place, ''), task, received_at, arrivals FROM outbox_inbox
WHERE consumer = ?1 AND (?2 IS NULL OR event_type = ?2) AND received_at >= coalesce(?3, 0)
AND (received_at, message_id) < (coalesce(?4, 9223372036854775807), ?5) ORDER BY received_at DESC, message_id DESC LIMIT ?6)"},
    // The same, and ?7 is the message's id. Primary key.
    .find_in_inbox = {.text = R"(
/* find message */ SELECT consumer, message_id, coalesce(event_type, ''), coalesce(place, ''), task, received_at, arrivals FROM outbox_inbox
WHERE consumer = ?1 AND message_id = ?7 AND (?2 IS NULL OR event_type = ?2) AND received_at >= coalesce(?3, 0)
AND (received_at, message_id) < (coalesce(?4, 9223372036854775807), ?5) LIMIT ?6)"},
    // ?1 the most rows that are counted. For each consumer the primary key and
    // outbox_inbox_received.
    .inbox_consumers = {.text = R"(
/* list consumers */ WITH RECURSIVE c(consumer) AS (SELECT min(consumer) FROM outbox_inbox UNION ALL
SELECT (SELECT min(i.consumer) FROM outbox_inbox i WHERE i.consumer > c.consumer) FROM c WHERE c.consumer IS NOT NULL)
SELECT c.consumer, (SELECT count(*) FROM (SELECT 1 FROM outbox_inbox i WHERE i.consumer = c.consumer LIMIT ?1)),
(SELECT min(i.received_at) FROM outbox_inbox i WHERE i.consumer = c.consumer),
(SELECT max(i.received_at) FROM outbox_inbox i WHERE i.consumer = c.consumer) FROM c WHERE c.consumer IS NOT NULL ORDER BY 1)"},
    // ?1 consumer, ?2 after this id, ?3 limit. Primary key.
    .read_inbox = {.text = R"(
/* read inbox */ SELECT consumer, message_id, coalesce(event_type, ''), coalesce(place, ''), task, received_at, arrivals FROM outbox_inbox
WHERE consumer = ?1 AND message_id > ?2 ORDER BY message_id LIMIT ?3)"},

    // ---- Replays (docs/design/replay.md).
    // Everything before the first seq was removed.
    .retained = {.text = R"(
/* ask what is retained */ SELECT r.first, r.first > 1,
(SELECT e.created_at FROM outbox_event e WHERE e.seq >= r.first ORDER BY e.seq LIMIT 1),
coalesce((SELECT s.seq FROM sqlite_sequence s WHERE s.name = 'outbox_event'), 0)
FROM (SELECT coalesce(max(last_seq), 0) + 1 AS first FROM outbox_pruned) r)"},
    // ?1 replay.
    .replay_loaded = {.text = R"(
/* start replay */ UPDATE outbox_replay SET state = 'running' WHERE id = ?1 AND state = 'loading' RETURNING subscription)"},
    // ?1 replay, ?2 the reason.
    .stop_replay = {.text = R"(
/* stop replay */ UPDATE outbox_replay SET state = 'stopped', reason = ?2, ended_at = outbox_now()
WHERE id = ?1 AND state = 'running' RETURNING subscription)"},
    // ?1 replay. It removes a replay whose events are not all loaded.
    .drop_replay = {.text = R"(
/* remove replay */ DELETE FROM outbox_replay WHERE id = ?1 AND state = 'loading' RETURNING subscription)"},
    // ?1 id (null for all), ?2 subscription (0 for all), ?3 limit.
    .list_replays = {.text = R"(
/* list replays */ SELECT r.id, r.subscription, r.first_seq, r.last_seq, r.filter, r.archived, r.state, r.actor, r.reason,
r.started_at, r.ended_at, r.position, r.sent,
(SELECT count(*) FROM outbox_replay_skip k WHERE k.replay = r.id)
FROM outbox_replay r WHERE (?1 IS NULL OR r.id = ?1) AND (?2 = 0 OR r.subscription = ?2) ORDER BY r.id DESC LIMIT ?3)"},
    // ?1 replay, ?2 limit.
    .replay_skips = {.text = R"(
/* read what a replay skipped */ SELECT seq, id, error, aggregate_type, aggregate_id FROM outbox_replay_skip WHERE replay = ?1 ORDER BY seq LIMIT ?2)"},
    // ?1 replay. All lanes are at one place.
    .replay_places = {.text = R"(
/* read how far a replay is */ SELECT -1, position FROM outbox_replay WHERE id = ?1)"},

    // ---- TaskRuns (docs/design/tasks.md). ?1 worker, ?2 name, ?3 note. Primary key. The count of
    // heartbeats begins with the time, so that a worker whose row was removed does not reach a
    // number again that others have seen.
    .beat_worker = {.text = R"(
/* worker heartbeat */ INSERT INTO outbox_worker (id, name, beat, beat_at, types) VALUES (CAST(?1 AS BLOB), ?2, outbox_now(), outbox_now(), ?3)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, beat = beat + 1, beat_at = excluded.beat_at, types = excluded.types
RETURNING outbox_now())"},
    // ?1 worker. It also removes workers that died a day ago without runs, since nobody looks for
    // them.
    .remove_worker = {.text = R"(
/* remove worker */ DELETE FROM outbox_worker WHERE id = CAST(?1 AS BLOB) OR beat_at < outbox_now() - 86400000000)"},
    // ?1 worker, ?2 names of subscriptions, ?3 limit. Index outbox_parked_key_worker.
    .runs_of_worker = {.text = R"(
/* read runs */ SELECT s.id, s.name, k.run_seq, p.id, k.attempts, k.token, p.event_type, p.headers, k.cancelled_by IS NOT NULL
FROM outbox_subscription s CROSS JOIN outbox_parked_key k INDEXED BY outbox_parked_key_worker
ON k.subscription = s.id AND k.worker = CAST(?1 AS BLOB)
CROSS JOIN outbox_parked p ON p.subscription = k.subscription AND p.seq = k.run_seq WHERE s.name IN (SELECT value FROM json_each(?2)) LIMIT ?3)"},
    // ?1 worker, ?2 names of subscriptions.
    .other_workers = {.text = R"(
/* look for workers */ SELECT DISTINCT k.worker, w.beat, w.types ->> 'heartbeat_ms' FROM outbox_subscription s
CROSS JOIN outbox_parked_key k INDEXED BY outbox_parked_key_worker ON k.subscription = s.id AND k.worker <> CAST(?1 AS BLOB)
LEFT JOIN outbox_worker w ON w.id = k.worker WHERE s.name IN (SELECT value FROM json_each(?2)))"},
    // ?1 names of subscriptions. Indexes outbox_task_end_set_aside and outbox_parked_id.
    .replaced_parked = {.text = R"(
/* list replaced tasks */ SELECT p.subscription, p.seq FROM outbox_task_end e CROSS JOIN outbox_parked p ON p.id = e.id
JOIN outbox_subscription s ON s.id = p.subscription WHERE e.set_aside = 1 AND s.name IN (SELECT value FROM json_each(?1)) LIMIT 1000)"},

    // ---- ParkedEvents (docs/design/parking.md).
    .list_parked = {.text = kListParked},
    .find_parked = {.text = kListParked},
    // ?1 subscription. Counts the events whose turn it is, those that wait, and the dead ones; an
    // event that runs is none of them. Indexes outbox_parked_key_due, outbox_parked_key_worker,
    // outbox_parked_live and outbox_parked_dead.
    .count_parked = {.text = R"(
/* count parked */ WITH n AS MATERIALIZED (SELECT
(SELECT count(*) FROM outbox_parked_key INDEXED BY outbox_parked_key_due
WHERE subscription = ?1 AND run_seq IS NULL AND next_attempt_at < 9223372036854775807) AS retrying,
(SELECT count(*) FROM outbox_parked_key INDEXED BY outbox_parked_key_worker
WHERE subscription = ?1 AND worker IS NOT NULL) AS running,
(SELECT count(*) FROM outbox_parked INDEXED BY outbox_parked_live WHERE subscription = ?1 AND dead = 0) AS live,
(SELECT count(*) FROM outbox_parked INDEXED BY outbox_parked_dead WHERE subscription = ?1 AND dead = 1) AS dead)
SELECT retrying, max(live - running - retrying, 0), dead FROM n)"},

    // ---- Schedules. The table has a few rows, which are found by primary key or all read.
    .clock = {.text = R"(
/* read the clock */ SELECT outbox_now())"},
    // ?1 name, ?2 queue, ?3 type, ?4 payload, ?5 content_type, ?6 key, ?7 headers, ?8 cron, ?9
    // every, ?10 time_zone, ?11 missed, ?12 next_at of a new schedule, and of one with other ticks.
    // Returns no row if nothing changed.
    .apply_schedule = {.text = R"(
/* apply schedule */ INSERT INTO outbox_schedule AS s
(name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed, next_at)
VALUES (?1, ?2, ?3, CAST(?4 AS BLOB), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, type = excluded.type, payload = excluded.payload,
content_type = excluded.content_type, key = excluded.key, headers = excluded.headers, cron = excluded.cron,
every = excluded.every, time_zone = excluded.time_zone, missed = excluded.missed, revision = s.revision + 1,
next_at = iif((s.cron, s.every, s.time_zone) IS (excluded.cron, excluded.every, excluded.time_zone),
s.next_at, excluded.next_at)
WHERE (s.queue, s.type, s.payload, s.content_type, s.key, s.headers, s.cron, s.every, s.time_zone, s.missed) IS NOT
(excluded.queue, excluded.type, excluded.payload, excluded.content_type, excluded.key, excluded.headers, excluded.cron,
excluded.every, excluded.time_zone, excluded.missed) RETURNING 1)"},
    // ?1 queues.
    .next_tick = {.text = R"(
/* look for ticks */ SELECT outbox_now(), min(next_at),
EXISTS (SELECT 1 FROM outbox_schedule WHERE queue IN (SELECT value FROM json_each(?1)))
FROM outbox_schedule WHERE queue IN (SELECT value FROM json_each(?1)) AND NOT paused)"},
    // ?1 queues, ?2 now.
    .due_schedules = {.text = R"(
/* read due schedules */ SELECT name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed,
paused, revision, next_at, last_at, last_task FROM outbox_schedule
WHERE queue IN (SELECT value FROM json_each(?1)) AND NOT paused AND next_at <= ?2 ORDER BY next_at, name)"},
    // ?1 name, ?2 next_at, ?3 revision, as they were read. Returns no row if another worker has
    // handled the schedule.
    .lock_schedule = {.text = R"(
/* look for schedule */ SELECT 1 FROM outbox_schedule WHERE name = ?1 AND next_at = ?2 AND revision = ?3 AND NOT paused)"},
    // ?1 name, ?2 next_at, ?3 last_at, ?4 last_task; ?3 and ?4 keep their values if null.
    .move_schedule = {.text = R"(
/* move schedule */ UPDATE outbox_schedule SET next_at = ?2, last_at = coalesce(?3, last_at),
last_task = coalesce(CAST(?4 AS BLOB), last_task), revision = revision + 1 WHERE name = ?1)"},
    .list_schedules = {.text = R"(
/* list schedules */ SELECT name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed,
paused, revision, next_at, last_at, last_task FROM outbox_schedule ORDER BY name)"},
    // ?1 name.
    .pause_schedule = {.text = R"(
/* pause schedule */ UPDATE outbox_schedule SET paused = 1, revision = revision + 1 WHERE name = ?1 AND NOT paused RETURNING 1)"},
    // ?1 name, ?2 revision, ?3 next_at.
    .resume_schedule = {.text = R"(
/* resume schedule */ UPDATE outbox_schedule SET paused = 0, next_at = ?3, revision = revision + 1
WHERE name = ?1 AND revision = ?2 AND paused RETURNING 1)"},
    // ?1 name.
    .remove_schedule = {.text = R"(
/* remove schedule */ DELETE FROM outbox_schedule WHERE name = ?1 RETURNING 1)"},
};

}  // namespace outbox::store::sqlite
