// Every SQL statement of the program on SQLite, by name, with its purpose, index and cost. Each begins with a comment that
// names its purpose, which error messages show.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// ---- connections and transactions

// A memory map can show transient states of the WAL, and this workload does not need it.
inline constexpr std::string_view kNoMemoryMap = "/* set up connection */ PRAGMA mmap_size = 0";
inline constexpr std::string_view kSyncFull = "/* set up connection */ PRAGMA synchronous = FULL";
inline constexpr std::string_view kSyncNormal =
    "/* set up connection */ PRAGMA synchronous = NORMAL";
// IMMEDIATE takes the write lock now, waiting at most the busy timeout. A deferred transaction that has read cannot
// wait for it: it fails with SQLITE_BUSY_SNAPSHOT once another connection has committed.
inline constexpr std::string_view kBegin = "/* begin */ BEGIN IMMEDIATE";
inline constexpr std::string_view kCommit = "/* commit */ COMMIT";
inline constexpr std::string_view kRollback = "/* roll back */ ROLLBACK";
// Many events in the caller's transaction are written whole or not at all.
inline constexpr std::string_view kSavepoint = "/* enqueue */ SAVEPOINT outbox_enqueue";
inline constexpr std::string_view kRollbackToSavepoint = "/* enqueue */ ROLLBACK TO outbox_enqueue";
inline constexpr std::string_view kReleaseSavepoint = "/* enqueue */ RELEASE outbox_enqueue";
// Compiled, never run (kept_statements.hpp).
inline constexpr std::string_view kConnectStatements =
    "/* enqueue */ SELECT 1 FROM outbox_statements";

// ---- schema

inline constexpr std::string_view kHasMigrations =
    "/* find the outbox */ SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'outbox_migration'";
inline constexpr std::string_view kMigrations =
    "/* read schema version */ SELECT version, checksum FROM outbox_migration ORDER BY version";
inline constexpr std::string_view kRecordMigration =
    "/* record migration */ INSERT INTO outbox_migration (version, name, checksum) VALUES (?1, ?2, ?3)";
inline constexpr std::string_view kEncoding = "/* read encoding */ PRAGMA encoding";
inline constexpr std::string_view kJournalMode = "/* read journal mode */ PRAGMA journal_mode";
inline constexpr std::string_view kUseWal = "/* switch to WAL */ PRAGMA journal_mode = WAL";
// The farthest cursor of all subscriptions. One lookup in outbox_settlement_newest per subscription.
inline constexpr std::string_view kFarthestPosition =
    "/* read farthest cursor */ SELECT coalesce(max((SELECT t.position FROM outbox_settlement t"
    " WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1)), 0) FROM outbox_subscription s";

// ---- the log

// The only write on the application's side: one row at the end of the table, no index beside it.
inline constexpr std::string_view kInsertEvent =
    "/* enqueue */ INSERT INTO outbox_event"
    " (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
// By the rowid, from the cursor on: seq order is commit order.
inline constexpr std::string_view kReadPage =
    "/* read page */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT ?2";
// Differs from its last value on this connection when another connection has committed since. Touches no page.
inline constexpr std::string_view kDataVersion = "/* look for commits */ PRAGMA data_version";
// The highest seq ever given out by a committed transaction, also when its row is gone.
inline constexpr std::string_view kNewestSeq =
    "/* read newest seq */ SELECT seq FROM sqlite_sequence WHERE name = 'outbox_event'";
inline constexpr std::string_view kCountAfter =
    "/* count pending */ SELECT count(*) FROM (SELECT 1 FROM outbox_event WHERE seq > ?1 LIMIT ?2)";
inline constexpr std::string_view kFirstAfter =
    "/* read oldest pending */ SELECT created_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT 1";
// Waits for writers and readers, as long as the busy timeout; then it does what it can beside them.
inline constexpr std::string_view kTruncateWal = "/* checkpoint */ PRAGMA wal_checkpoint(TRUNCATE)";
// Does not wait.
inline constexpr std::string_view kCheckpoint = "/* checkpoint */ PRAGMA wal_checkpoint(PASSIVE)";

// ---- progress

// The last entry of one range of outbox_settlement_newest, read backwards.
inline constexpr std::string_view kNewestCursor =
    "/* read cursor */ SELECT position, generation FROM outbox_settlement"
    " WHERE subscription = ?1 AND kind IN ('settle', 'claim', 'reset') ORDER BY generation DESC, id DESC LIMIT 1";
// It adds to the totals of the row it continues, the newest one of no greater generation: one more lookup in the index.
inline constexpr std::string_view kAppendSettlement =
    "/* settle */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position,"
    " acked, acked_hash, filtered, filtered_hash, parked, parked_hash, at, acked_total, filtered_total)"
    " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
    " coalesce(last.acked_total, 0) + ?7, coalesce(last.filtered_total, 0) + ?9"
    " FROM (SELECT 1) LEFT JOIN outbox_settlement last ON last.id ="
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = ?1 AND t.generation <= ?3"
    " AND t.kind IN ('settle', 'claim', 'reset') ORDER BY t.generation DESC, t.id DESC LIMIT 1)";
// The newest row has the totals of all that count, and almost always is a settlement.
inline constexpr std::string_view kSettledTotals =
    "/* read totals */ SELECT acked_total + coalesce((SELECT r.acked_total FROM outbox_settlement r"
    " WHERE r.subscription = ?1 AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0), filtered_total,"
    " (SELECT t.at FROM outbox_settlement t WHERE t.subscription = ?1 AND t.kind = 'settle'"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1)"
    " FROM outbox_settlement WHERE subscription = ?1 AND kind IN ('settle', 'claim', 'reset')"
    " ORDER BY generation DESC, id DESC LIMIT 1";

// ---- runs and trials (docs/design/trials.md). ?1 subscription; all by primary keys, a row or two.

// ?2 relay. A relay that is registered lives: whoever takes its group over removes its row.
inline constexpr std::string_view kFormerRuns =
    "/* read former runs */ SELECT generation, place, tried, first_seq,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?1 AND p.seq = r.first_seq),"
    " relay IN ('', ?2) OR EXISTS (SELECT 1 FROM outbox_relay m WHERE m.id = r.relay), counted"
    " FROM outbox_run r WHERE subscription = ?1 ORDER BY generation DESC";
// ?2 generation.
inline constexpr std::string_view kForgetRun =
    "/* forget run */ DELETE FROM outbox_run WHERE subscription = ?1 AND generation = ?2";
inline constexpr std::string_view kCountRuns =
    "/* count runs */ UPDATE outbox_run SET counted = 1 WHERE subscription = ?1";
// ?2 generation, ?3 relay, ?4 place, ?5 events on trial.
inline constexpr std::string_view kBeginRun =
    "/* begin run */ INSERT INTO outbox_run (subscription, generation, relay, place, tried)"
    " VALUES (?1, ?2, ?3, ?4, ?5)";
// ?2 generation, ?3 events, ?4 the first one.
inline constexpr std::string_view kOpenRange =
    "/* try events */ UPDATE outbox_run SET tried = ?3, first_seq = ?4"
    " WHERE subscription = ?1 AND generation = ?2 AND relay <> ''";
inline constexpr std::string_view kDeadRuns =
    "/* read deaths */ SELECT generation FROM outbox_run WHERE subscription = ?1 AND generation < ?2 AND relay <> ''";
// ?2 generation.
inline constexpr std::string_view kEndRun =
    "/* end run */ DELETE FROM outbox_run WHERE subscription = ?1 AND generation = ?2 AND tried = 0";
inline constexpr std::string_view kLeaveTrial =
    "/* leave trial */ UPDATE outbox_run SET relay = '', first_seq = 0 WHERE subscription = ?1 AND generation = ?2";
// ?1 relay. A scan of a few rows.
inline constexpr std::string_view kComeBack =
    "/* come back */ UPDATE outbox_run SET relay = '' WHERE relay = ?1";

// ---- parked events (docs/design/parking.md)

// ?1 subscription, ?2 seq, ?3 state, ?4 attempts, ?5 due, ?6 error, ?7 now, ?8 worker or empty. Both tables by their primary key.
inline constexpr std::string_view kPark =
    "/* park */ INSERT INTO outbox_parked (subscription, seq, id, aggregate_type, aggregate_id, event_type, payload,"
    " content_type, headers, created_at, occurred_at, state, attempts, next_attempt_at, error, parked_at, worker, token,"
    " begun_at)"
    " SELECT ?1, seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at,"
    " ?3, ?4, ?5, ?6, ?7, CAST(nullif(?8, '') AS BLOB), ?3 = 'running', iif(?3 = 'running', ?7, NULL) FROM outbox_event WHERE seq = ?2";
inline constexpr std::string_view kParkedKey =
    "/* read parked key */ SELECT aggregate_type, aggregate_id FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// Unless a person edited it, which gave it another id.
inline constexpr std::string_view kParkedKeyOf =
    "/* read parked key */ SELECT aggregate_type, aggregate_id, cancelled_by, cancel_reason FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2 AND +id = CAST(?3 AS BLOB)";
// ?1 subscription, ?2 and ?3 the key, ?4 now. The first event of the key that is not dead, or dead where dead events block, is
// retried; the others wait. Index outbox_parked_key.
inline constexpr std::string_view kOrderParkedKey =
    "/* order parked */ UPDATE outbox_parked SET next_attempt_at = ?4,"
    " state = CASE outbox_parked.seq WHEN head.seq THEN 'retrying' ELSE 'waiting' END"
    " FROM (SELECT f.seq, f.state FROM outbox_parked f WHERE f.subscription = ?1 AND f.aggregate_type = ?2"
    " AND f.aggregate_id = ?3 AND (f.state <> 'dead' OR (SELECT json_extract(s.config, '$.on_dead') = 'block'"
    " FROM outbox_subscription s WHERE s.id = ?1)) ORDER BY f.seq LIMIT 1) AS head"
    " WHERE outbox_parked.subscription = ?1 AND outbox_parked.aggregate_type = ?2 AND outbox_parked.aggregate_id = ?3"
    " AND (outbox_parked.seq = head.seq AND outbox_parked.state = 'waiting'"
    " OR outbox_parked.seq > head.seq AND outbox_parked.state = 'retrying')";
// The same for who takes from a key or adds to it, as the relay does, at the cost of one row. kWakeParkedKey: whose turn it is now.
// kWaitBehind: the event with seq ?5 waits if it is not the first.
inline constexpr std::string_view kWakeParkedKey =
    "/* wake parked */ UPDATE outbox_parked SET state = 'retrying', next_attempt_at = ?4 WHERE subscription = ?1 AND seq ="
    " (SELECT f.seq FROM outbox_parked f WHERE f.subscription = ?1 AND f.aggregate_type = ?2"
    " AND f.aggregate_id = ?3 AND (f.state <> 'dead' OR (SELECT json_extract(s.config, '$.on_dead') = 'block'"
    " FROM outbox_subscription s WHERE s.id = ?1)) ORDER BY f.seq LIMIT 1) AND state = 'waiting'";
inline constexpr std::string_view kWaitBehind =
    "/* wait behind parked */ UPDATE outbox_parked SET state = 'waiting', next_attempt_at = ?4 WHERE subscription = ?1 AND seq = ?5"
    " AND state = 'retrying' AND EXISTS (SELECT 1 FROM outbox_parked f WHERE f.subscription = ?1 AND f.aggregate_type = ?2"
    " AND f.aggregate_id = ?3 AND f.seq < ?5 AND (f.state <> 'dead' OR (SELECT json_extract(s.config, '$.on_dead') = 'block'"
    " FROM outbox_subscription s WHERE s.id = ?1)))";
inline constexpr std::string_view kUnsettledKeys =
    "/* list parked keys */ SELECT DISTINCT aggregate_type, aggregate_id FROM outbox_parked"
    " WHERE subscription = ?1 AND state <> 'dead' AND aggregate_id <> ''";
// ?2: dead events block. Those that run each for itself.
inline constexpr std::string_view kBlockedKeys =
    "/* list blocked keys */ SELECT aggregate_type, aggregate_id, count(*), CASE state WHEN 'running' THEN seq END"
    " FROM outbox_parked WHERE subscription = ?1 AND (state <> 'dead' OR ?2) GROUP BY aggregate_type, aggregate_id, 4";
// ?1 subscription, ?2 now, ?3 rows that are due, ?4 events behind each of the first ?6 of them, ?5 generation: none if another one owns the
// group. The rows that are due by outbox_parked_due, what waits behind them by outbox_parked_key, up to a dead event that blocks.
inline constexpr std::string_view kDueParked =
    "/* read parked */ WITH head AS MATERIALIZED (SELECT seq, aggregate_type, aggregate_id, next_attempt_at,"
    " row_number() OVER (ORDER BY next_attempt_at, seq) AS n FROM outbox_parked"
    " WHERE subscription = ?1 AND state = 'retrying' AND next_attempt_at <= ?2"
    " AND ?5 = (SELECT o.generation FROM outbox_owner o JOIN outbox_subscription s ON s.lane_group = o.lane_group WHERE s.id = ?1)"
    " ORDER BY next_attempt_at, seq LIMIT ?3),"
    " chain AS (SELECT next_attempt_at AS due, seq AS head, seq, 0 AS place FROM head UNION ALL"
    " SELECT head.next_attempt_at, head.seq, p.seq, row_number() OVER (PARTITION BY head.seq ORDER BY p.seq)"
    " FROM head JOIN outbox_parked p ON p.subscription = ?1 AND p.aggregate_type = head.aggregate_type"
    " AND p.aggregate_id = head.aggregate_id AND p.seq > head.seq AND p.state = 'waiting'"
    // Without a key nothing waits behind it: no look at all the others without one.
    " WHERE head.aggregate_id <> '' AND head.n <= ?6"
    " AND NOT ((SELECT json_extract(s.config, '$.on_dead') = 'block' FROM outbox_subscription s WHERE s.id = ?1)"
    " AND EXISTS (SELECT 1 FROM outbox_parked d WHERE d.subscription = ?1 AND d.aggregate_type = head.aggregate_type"
    " AND d.aggregate_id = head.aggregate_id AND d.state = 'dead' AND d.seq > head.seq AND d.seq < p.seq)))"
    " SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type, t.headers, t.created_at,"
    " t.occurred_at, t.state, t.attempts, t.token FROM chain JOIN outbox_parked t ON t.subscription = ?1 AND t.seq = chain.seq"
    " WHERE chain.place <= ?4 ORDER BY chain.due, chain.head, t.seq";
// Primary key.
inline constexpr std::string_view kParkedAt =
    "/* read parked */ SELECT state FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
inline constexpr std::string_view kNextParked =
    "/* read next parked */ SELECT next_attempt_at FROM outbox_parked WHERE subscription = ?1 AND state = 'retrying'"
    " ORDER BY next_attempt_at LIMIT 1";
inline constexpr std::string_view kRemoveParked =
    "/* remove parked */ DELETE FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// Before it is removed. ?3 outcome, ?4 attempts, ?5 actor, ?6 reason, ?7 now.
inline constexpr std::string_view kEndParked =
    "/* end parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at)"
    " SELECT subscription, seq, id, ?3, ?4, ?5, ?6, ?7 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// ?3 state, ?4 attempts, ?5 due, ?6 error, ?7 now, ?8 worker or empty. Not one that a person let rest meanwhile.
inline constexpr std::string_view kReschedule =
    "/* reschedule parked */ UPDATE outbox_parked SET state = ?3, attempts = ?4, next_attempt_at = ?5, error = ?6,"
    " worker = CAST(nullif(?8, '') AS BLOB), token = token + (?3 = 'running'), begun_at = iif(?3 = 'running', ?7, NULL),"
    " percent = NULL, progress = NULL WHERE subscription = ?1 AND seq = ?2 AND state <> 'dead'";
// ?1 subscription, ?2 generation, ?3 count, ?4 hash, ?5 now. It adds to the newest row of its kind: outbox_settlement_retries.
inline constexpr std::string_view kAppendRetry =
    "/* settle parked */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, acked, acked_hash, at, acked_total)"
    " SELECT ?1, 'retry', ?2, 0, 0, 0, ?3, ?4, ?5, ?3 + coalesce((SELECT r.acked_total FROM outbox_settlement r"
    " WHERE r.subscription = ?1 AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0)";

// What people see and do. ?1 subscription or -1, ?2 state, ?3 and ?4 the key, ?5 part of the error, ?6 id as a UUID, each of
// them possibly empty, ?7 seq or -1, ?8 limit, ?9 with payload and headers, ?10 event type or empty, ?11 scheduled or not, or -1, ?12 now.
// A task is scheduled that waits for the time of its header. Primary key.
inline constexpr std::string_view kListParked =
    "/* list parked */ SELECT subscription, seq, id, aggregate_type, aggregate_id, event_type, state, attempts, error, parked_at,"
    " next_attempt_at, CASE WHEN ?9 THEN payload END, content_type, CASE WHEN ?9 THEN headers END, created_at, scheduled,"
    " (SELECT w.name FROM outbox_worker w WHERE w.id = r.worker), begun_at, percent, progress FROM (SELECT p.*,"
    " p.state = 'retrying' AND p.attempts = 0 AND p.next_attempt_at > ?12 AND p.aggregate_type LIKE 'outbox-task:%'"
    " AND json_valid(p.headers) AND coalesce(julianday(json_extract(p.headers, '$.\"task-execute-at\"'))"
    " > julianday(?12 / 1000000.0, 'unixepoch'), 0)"
    " AS scheduled FROM outbox_parked p) r"
    " WHERE (?1 = -1 OR subscription = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR aggregate_type = ?3)"
    " AND (?4 = '' OR aggregate_id = ?4) AND (?5 = '' OR instr(error, ?5) > 0)"
    " AND (?6 = '' OR lower(hex(id)) = replace(?6, '-', '')) AND (?7 = -1 OR seq = ?7)"
    " AND (?10 = '' OR event_type = ?10) AND (?11 = -1 OR scheduled = ?11)"
    " ORDER BY subscription, seq LIMIT ?8";
inline constexpr std::string_view kCountParked =
    "/* count parked */ SELECT count(*) FILTER (WHERE state = 'retrying'), count(*) FILTER (WHERE state = 'waiting'),"
    " count(*) FILTER (WHERE state = 'dead') FROM outbox_parked WHERE subscription = ?1";
// ?3 now, ?4 keep the attempts. A task does not wait for its execute_at any more.
inline constexpr std::string_view kRetryParked =
    "/* retry parked */ UPDATE outbox_parked SET state = CASE state WHEN 'dead' THEN 'retrying' ELSE state END,"
    " next_attempt_at = ?3, attempts = CASE WHEN ?4 THEN attempts ELSE 0 END,"
    " headers = CASE WHEN aggregate_type LIKE 'outbox-task:%' AND json_valid(headers)"
    " THEN json_remove(headers, '$.\"task-execute-at\"') ELSE headers END WHERE subscription = ?1 AND seq = ?2";
// Before it is removed. ?3 who, ?4 why, ?5 now.
inline constexpr std::string_view kDiscardParked =
    "/* discard parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at)"
    " SELECT subscription, seq, id, 'discarded', attempts, ?3, ?4, ?5 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// A task that runs: its row stays until its handler has returned. ?3 who, ?4 why.
inline constexpr std::string_view kCancelRun =
    "/* cancel run */ UPDATE outbox_parked SET cancelled_by = coalesce(cancelled_by, ?3), cancel_reason = coalesce(cancel_reason, ?4)"
    " WHERE subscription = ?1 AND seq = ?2 AND state = 'running'";
// Before it is edited. ?3 new id, ?4 who, ?5 why, ?6 now.
inline constexpr std::string_view kEndEdited =
    "/* edit parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at, replaced_by)"
    " SELECT subscription, seq, id, 'edited', attempts, ?4, ?5, ?6, CAST(?3 AS BLOB) FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2";
// ?3 new id, ?4 type, ?5 payload, ?6 content type, ?7 headers, ?8 now.
inline constexpr std::string_view kEditParked =
    "/* edit parked */ UPDATE outbox_parked SET id = CAST(?3 AS BLOB), event_type = ?4, payload = CAST(?5 AS BLOB),"
    " content_type = ?6, headers = ?7, state = 'retrying', attempts = 0, next_attempt_at = ?8, error = ''"
    " WHERE subscription = ?1 AND seq = ?2";
inline constexpr std::string_view kNoteParkedChange =
    "/* note parked change */ UPDATE outbox_subscription SET parked_version = parked_version + 1 WHERE id = ?1";

// ---- tasks that run (docs/design/tasks.md)

// ?1 worker, ?2 name, ?3 now, ?4 note. Primary key. The count begins with the time: one whose row was removed must not come to a number
// again that others have seen.
inline constexpr std::string_view kBeatWorker =
    "/* worker heartbeat */ INSERT INTO outbox_worker (id, name, beat, beat_at, types) VALUES (CAST(?1 AS BLOB), ?2, ?3, ?3, ?4)"
    " ON CONFLICT (id) DO UPDATE SET name = excluded.name, beat = beat + 1, beat_at = excluded.beat_at, types = excluded.types";
// ?2 now. And those that died a day ago without runs, which nobody looks for.
inline constexpr std::string_view kRemoveWorker =
    "/* remove worker */ DELETE FROM outbox_worker WHERE id = CAST(?1 AS BLOB) OR beat_at < ?2 - 86400000000";
// ?1 name of a subscription, ?2 worker, ?3 limit. Index outbox_parked_running.
inline constexpr std::string_view kRunsOfWorker =
    "/* read runs */ SELECT s.id, p.seq, p.id, p.attempts, p.token, p.event_type, p.headers, p.cancelled_by IS NOT NULL"
    " FROM outbox_subscription s JOIN outbox_parked p"
    " ON p.subscription = s.id AND p.state = 'running' AND p.worker = CAST(?2 AS BLOB) WHERE s.name = ?1 LIMIT ?3";
inline constexpr std::string_view kOtherWorkers =
    "/* look for workers */ SELECT DISTINCT p.worker, w.beat, w.types ->> 'heartbeat_ms' FROM outbox_subscription s JOIN outbox_parked p"
    " ON p.subscription = s.id AND p.state = 'running' AND p.worker <> CAST(?2 AS BLOB)"
    " LEFT JOIN outbox_worker w ON w.id = p.worker WHERE s.name = ?1";
// ?1 subscription, ?2 seq, ?3 worker, ?4 token. Primary key.
inline constexpr std::string_view kIsRun =
    "/* read run of task */ SELECT 1 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2 AND state = 'running'"
    " AND worker = CAST(?3 AS BLOB) AND token = ?4";
// As above, ?5 percent, ?6 text.
inline constexpr std::string_view kReportProgress =
    "/* report progress */ UPDATE outbox_parked SET percent = ?5, progress = ?6 WHERE subscription = ?1 AND seq = ?2"
    " AND state = 'running' AND worker = CAST(?3 AS BLOB) AND token = ?4";

// ?1 id, ?2 outcome, ?3 result, ?4 reason, ?5 now. Primary key.
inline constexpr std::string_view kNoteTaskEnd =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, result, reason, at)"
    " VALUES (CAST(?1 AS BLOB), ?2, CAST(?3 AS BLOB), ?4, ?5) ON CONFLICT DO NOTHING";
// The same without ?3.
inline constexpr std::string_view kNoteTaskEndWithoutResult =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, reason, at)"
    " VALUES (CAST(?1 AS BLOB), ?2, ?3, ?4) ON CONFLICT DO NOTHING";
// ?1 rows, ?2 a time. Index outbox_task_end_at.
inline constexpr std::string_view kRemoveTaskEnds =
    "/* remove ends of tasks */ DELETE FROM outbox_task_end WHERE id IN"
    " (SELECT id FROM outbox_task_end WHERE at < ?2 ORDER BY at LIMIT ?1)";
// The same. Index outbox_inbox_received.
inline constexpr std::string_view kRemoveMessages =
    "/* remove old messages */ DELETE FROM outbox_inbox WHERE (consumer, message_id) IN"
    " (SELECT consumer, message_id FROM outbox_inbox WHERE received_at < ?2 ORDER BY received_at LIMIT ?1)";
// ?1 queue, ?2 unique key, ?3 id. Primary key.
inline constexpr std::string_view kTakeUnique =
    "/* claim unique key */ INSERT INTO outbox_task_unique (queue, unique_key, id) VALUES (?1, ?2, CAST(?3 AS BLOB))"
    " ON CONFLICT DO NOTHING";
inline constexpr std::string_view kReplaceUnique =
    "/* claim unique key */ UPDATE outbox_task_unique SET id = CAST(?3 AS BLOB) WHERE queue = ?1 AND unique_key = ?2";
inline constexpr std::string_view kUniqueTask =
    "/* read unique key */ SELECT id FROM outbox_task_unique WHERE queue = ?1 AND unique_key = ?2";
// One whose row is gone was dead, and gets a new one.
inline constexpr std::string_view kBeginUnique =
    "/* begin unique task */ INSERT INTO outbox_task_unique (queue, unique_key, id, running)"
    " VALUES (?1, ?2, CAST(?3 AS BLOB), CAST(?3 AS BLOB)) ON CONFLICT (queue, unique_key) DO UPDATE SET running = id"
    " WHERE id = excluded.id AND coalesce(running, id) = id";
// ?1 id of a task that waits for a retry, ?2 now. One that was replaced gets none. Index outbox_task_unique_running.
inline constexpr std::string_view kEndReplaced =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, reason, at)"
    " SELECT running, 'cancelled', 'a newer task with its unique key took its place', ?2 FROM outbox_task_unique"
    " WHERE running = CAST(?1 AS BLOB) AND id <> running ON CONFLICT DO NOTHING";
// ?1 id. Primary key.
inline constexpr std::string_view kIsCancelled =
    "/* read end of task */ SELECT 1 FROM outbox_task_end WHERE id = CAST(?1 AS BLOB) AND outcome = 'cancelled'";
// ?1 id of a task that does not run any more. Index outbox_task_unique_running.
inline constexpr std::string_view kStopUnique =
    "/* unique task stops */ UPDATE outbox_task_unique SET running = NULL WHERE running = CAST(?1 AS BLOB)";
// ?1 the same, it is over. Index outbox_task_unique_id.
inline constexpr std::string_view kEndUnique =
    "/* give up unique key */ DELETE FROM outbox_task_unique WHERE id = CAST(?1 AS BLOB) AND running IS NULL";
// The same: one that it has replaced still runs.
inline constexpr std::string_view kHandBackUnique =
    "/* give up unique key */ UPDATE outbox_task_unique SET id = running WHERE id = CAST(?1 AS BLOB)";
// ?1 subscription, ?2 seq. Primary key.
inline constexpr std::string_view kUniqueParked =
    "/* read parked */ SELECT id FROM outbox_parked WHERE subscription = ?1 AND seq = ?2 AND headers LIKE '%task-unique-key%'";
// ?1 id of a task, ?2 of its corrected copy. Index outbox_task_unique_id.
inline constexpr std::string_view kHandOverUnique =
    "/* edit parked */ UPDATE outbox_task_unique SET id = CAST(?2 AS BLOB) WHERE id = CAST(?1 AS BLOB)";
// ?1 subscription, ?2 seq. Primary key. A task that is dead.
inline constexpr std::string_view kDeadTask =
    "/* read dead task */ SELECT id, aggregate_type, aggregate_id, event_type, attempts, error, headers FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2 AND state = 'dead' AND aggregate_type LIKE 'outbox-task:%'";
// ?1 consumer, ?2 message id, ?3 now. Primary key.
inline constexpr std::string_view kReceive =
    "/* receive message */ INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES (?1, ?2, ?3)"
    " ON CONFLICT DO NOTHING";

// ---- schedules of tasks: a few rows, by their primary key or all of them

// ?1 name, ?2 queue, ?3 type, ?4 payload, ?5 content_type, ?6 key, ?7 headers, ?8 cron, ?9 every, ?10 time_zone, ?11 missed,
// ?12 next_at of a new one, and of one with other ticks. No change where it is there as it is.
inline constexpr std::string_view kApplySchedule =
    "/* apply schedule */ INSERT INTO outbox_schedule AS s"
    " (name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed, next_at)"
    " VALUES (?1, ?2, ?3, CAST(?4 AS BLOB), ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    " ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, type = excluded.type, payload = excluded.payload,"
    " content_type = excluded.content_type, key = excluded.key, headers = excluded.headers, cron = excluded.cron,"
    " every = excluded.every, time_zone = excluded.time_zone, missed = excluded.missed, revision = s.revision + 1,"
    " next_at = iif((s.cron, s.every, s.time_zone) IS (excluded.cron, excluded.every, excluded.time_zone),"
    " s.next_at, excluded.next_at)"
    " WHERE (s.queue, s.type, s.payload, s.content_type, s.key, s.headers, s.cron, s.every, s.time_zone, s.missed) IS NOT"
    " (excluded.queue, excluded.type, excluded.payload, excluded.content_type, excluded.key, excluded.headers, excluded.cron,"
    " excluded.every, excluded.time_zone, excluded.missed)";
// ?1 queue.
inline constexpr std::string_view kNextTick =
    "/* look for ticks */ SELECT min(next_at) FROM outbox_schedule WHERE queue = ?1 AND NOT paused";
// ?1 queue, ?2 now.
inline constexpr std::string_view kDueSchedules =
    "/* read due schedules */ SELECT name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed,"
    " paused, revision, next_at, last_at, last_task FROM outbox_schedule"
    " WHERE queue = ?1 AND NOT paused AND next_at <= ?2 ORDER BY next_at, name";
// ?1 name, ?2 next_at, ?3 revision, as they were read; ?4 next_at, ?5 last_at, ?6 last_task, empty: no task.
inline constexpr std::string_view kMoveSchedule =
    "/* move schedule */ UPDATE outbox_schedule SET next_at = ?4, last_at = iif(?6 = '', last_at, ?5),"
    " last_task = iif(?6 = '', last_task, CAST(?6 AS BLOB)), revision = revision + 1"
    " WHERE name = ?1 AND next_at = ?2 AND revision = ?3 AND NOT paused";
inline constexpr std::string_view kListSchedules =
    "/* list schedules */ SELECT name, queue, type, payload, content_type, key, headers, cron, every, time_zone, missed,"
    " paused, revision, next_at, last_at, last_task FROM outbox_schedule ORDER BY name";
inline constexpr std::string_view kPauseSchedule =
    "/* pause schedule */ UPDATE outbox_schedule SET paused = 1, revision = revision + 1 WHERE name = ?1 AND NOT paused";
// ?1 name, ?2 revision, ?3 next_at.
inline constexpr std::string_view kResumeSchedule =
    "/* resume schedule */ UPDATE outbox_schedule SET paused = 0, next_at = ?3, revision = revision + 1"
    " WHERE name = ?1 AND revision = ?2 AND paused";
inline constexpr std::string_view kRemoveSchedule =
    "/* remove schedule */ DELETE FROM outbox_schedule WHERE name = ?1";

// ---- events and what became of them (docs/design/status.md)
// ---- the ledger, for `outbox verify` (docs/design/verify.md)

// The first statement that reads takes the snapshot.
inline constexpr std::string_view kBeginRead = "/* begin reading */ BEGIN";
inline constexpr std::string_view kNewestSettlement =
    "/* read newest settlement */ SELECT coalesce(max(id), 0) FROM outbox_settlement";
// ?1 subscription, ?2 generation, ?3 id, ?4 the newest id, ?5 limit. Index outbox_settlement_newest.
inline constexpr std::string_view kLedgerRows =
    "/* read settlements */ SELECT id, kind, generation, from_position, position, acked, acked_hash, filtered, filtered_hash,"
    " parked, parked_hash, at FROM outbox_settlement WHERE subscription = ?1 AND (generation, id) > (?2, ?3) AND id <= ?4"
    " ORDER BY generation, id LIMIT ?5";
// ?1 from, ?2 to, ?3 limit. By the rowid.
inline constexpr std::string_view kLedgerEvents =
    "/* read the log */ SELECT seq, id, created_at FROM outbox_event WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
inline constexpr std::string_view kLedgerCount =
    "/* count the log */ SELECT count(*) FROM outbox_event WHERE seq > ?1 AND seq <= ?2";
// ?1 subscription. Those that stand for an edited event are not in the log. Primary key; outbox_parked_end_seq.
inline constexpr std::string_view kLedgerParked =
    "/* add up parked */ SELECT p.id, '', EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?1"
    " AND x.seq = p.seq AND x.outcome = 'edited') FROM outbox_parked p WHERE p.subscription = ?1";
inline constexpr std::string_view kLedgerEnds =
    "/* add up ended */ SELECT e.id, e.outcome, EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?1"
    " AND x.seq = e.seq AND x.outcome = 'edited' AND x.at < e.at) FROM outbox_parked_end e WHERE e.subscription = ?1";

// ---- membership: outbox_relay has as many rows as there are relays at this file

// `outbox migrate --with-lookup-indexes`. Each costs every writer.
inline constexpr std::string_view kMakeIdIndex =
    "/* make look-up index */ CREATE INDEX outbox_event_by_id ON outbox_event (id)";
inline constexpr std::string_view kMakeKeyIndex =
    "/* make look-up index */ CREATE INDEX outbox_event_by_key ON outbox_event (aggregate_type, aggregate_id)";
inline constexpr std::string_view kHasIndex =
    "/* look for index */ SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = ?1";
inline constexpr std::string_view kOldestSeq =
    "/* read oldest seq */ SELECT seq FROM outbox_event ORDER BY seq LIMIT 1";
inline constexpr std::string_view kCreatedFrom =
    "/* find time */ SELECT seq, created_at FROM outbox_event WHERE seq >= ?1 AND seq < ?2 ORDER BY seq LIMIT 1";
// By the rowid; or by outbox_event_by_id, where it was made.
inline constexpr std::string_view kSeqsBetweenWithId =
    "/* find event */ SELECT seq FROM outbox_event WHERE seq >= ?1 AND seq < ?2 AND +id = CAST(?3 AS BLOB) ORDER BY seq";
inline constexpr std::string_view kSeqsWithId =
    "/* find event */ SELECT seq FROM outbox_event WHERE id = CAST(?1 AS BLOB) ORDER BY seq";
inline constexpr std::string_view kEventAt =
    "/* read event */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_event WHERE seq = ?1 AND +id = CAST(?2 AS BLOB)";
// What is known of an id that is not in the log: its copy in outbox_parked, else the event whose place it took. Indexes
// outbox_parked_id and outbox_parked_end_id.
inline constexpr std::string_view kParkedWithId =
    "/* find parked event */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_parked WHERE id = CAST(?1 AS BLOB)"
    " UNION SELECT e.seq, e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers,"
    " e.created_at, e.occurred_at FROM outbox_parked_end x JOIN outbox_event e ON e.seq = x.seq"
    " WHERE x.id = CAST(?1 AS BLOB) AND NOT EXISTS (SELECT 1 FROM outbox_parked p WHERE p.id = CAST(?1 AS BLOB))";
// ?1 from, ?2 to, ?3 and ?4 the key, ?5 type, each possibly empty, ?6 since, ?7 until, ?8 limit. By the rowid, backwards.
inline constexpr std::string_view kListEvents =
    "/* list events */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_event WHERE seq > ?1 AND seq <= ?2 AND (?3 = '' OR aggregate_type = ?3)"
    " AND (?4 = '' OR aggregate_id = ?4) AND (?5 = '' OR event_type = ?5) AND created_at >= ?6 AND created_at < ?7"
    " ORDER BY seq DESC LIMIT ?8";
// The same. By outbox_event_by_key, which ends in the rowid.
inline constexpr std::string_view kListKeyEvents =
    "/* list events of a key */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE aggregate_type = ?3 AND aggregate_id = ?4 AND seq > ?1 AND seq <= ?2"
    " AND (?5 = '' OR event_type = ?5) AND created_at >= ?6 AND created_at < ?7 ORDER BY seq DESC LIMIT ?8";
// Primary key, outbox_parked_key and outbox_parked_end_seq.
inline constexpr std::string_view kParkedLife =
    "/* read parked event */ SELECT state, attempts, next_attempt_at, error FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2 AND +id = CAST(?3 AS BLOB)";
inline constexpr std::string_view kWaitingFor =
    "/* read first parked event of a key */ SELECT f.seq, f.id FROM outbox_parked p JOIN outbox_parked f"
    " ON f.subscription = p.subscription AND f.aggregate_type = p.aggregate_type AND f.aggregate_id = p.aggregate_id"
    " WHERE p.subscription = ?1 AND p.seq = ?2 AND f.seq < p.seq AND (f.state <> 'dead' OR ?3) ORDER BY f.seq LIMIT 1";
inline constexpr std::string_view kParkedEndLife =
    "/* read end of parked event */ SELECT outcome, attempts, actor, reason, at, replaced_by FROM outbox_parked_end"
    " WHERE subscription = ?1 AND seq = ?2 AND +id = CAST(?3 AS BLOB) ORDER BY at DESC LIMIT 1";
// The first two by outbox_settlement_beginnings, one row each of few.
inline constexpr std::string_view kLastBeginningBefore =
    "/* read beginning */ SELECT id, generation FROM outbox_settlement WHERE subscription = ?1"
    " AND kind IN ('claim', 'reset') AND position < ?2 ORDER BY generation DESC, id DESC LIMIT 1";
inline constexpr std::string_view kNextBeginning =
    "/* read beginning */ SELECT id, kind FROM outbox_settlement WHERE subscription = ?1"
    " AND kind IN ('claim', 'reset') AND (generation, id) > (?2, ?3) ORDER BY generation, id LIMIT 1";
inline constexpr std::string_view kNewestCursorRow =
    "/* read cursor */ SELECT id FROM outbox_settlement"
    " WHERE subscription = ?1 AND kind IN ('settle', 'claim', 'reset') ORDER BY generation DESC, id DESC LIMIT 1";
inline constexpr std::string_view kSettlementUpTo =
    "/* read settlement */ SELECT id, position FROM outbox_settlement INDEXED BY outbox_settlement_by_id"
    " WHERE subscription = ?1 AND id > ?2 AND id <= ?3 AND generation >= ?4 AND kind IN ('settle', 'claim', 'reset')"
    " ORDER BY id DESC LIMIT 1";
inline constexpr std::string_view kSettlement =
    "/* read settlement */ SELECT position, config_version, acked, filtered, at FROM outbox_settlement WHERE id = ?1";

// ---- relays and owners: tables of a few rows

inline constexpr std::string_view kMembers =
    "/* list members */ SELECT id, name, boot_id, pid_ns, pid, started, beat, lease_ms, groups FROM outbox_relay";
inline constexpr std::string_view kOwners =
    "/* list owners */ SELECT lane_group, relay, generation FROM outbox_owner";
inline constexpr std::string_view kGroups =
    "/* list groups */ SELECT lane_group, max(group_generation) FROM outbox_subscription GROUP BY lane_group";
inline constexpr std::string_view kMember =
    "/* read relay */ SELECT id, name, boot_id, pid_ns, pid, started, beat, lease_ms, groups FROM outbox_relay WHERE id = ?1";
inline constexpr std::string_view kOwner =
    "/* read owner */ SELECT relay FROM outbox_owner WHERE lane_group = ?1";
// ?1 subscription. The relay that delivers it; columns as of kMember.
inline constexpr std::string_view kOwnerOf =
    "/* read owner */ SELECT r.id, r.name, r.boot_id, r.pid_ns, r.pid, r.started, r.beat, r.lease_ms, r.groups"
    " FROM outbox_subscription s JOIN outbox_owner o ON o.lane_group = s.lane_group JOIN outbox_relay r ON r.id = o.relay"
    " WHERE s.id = ?1";
inline constexpr std::string_view kTake =
    "/* take */ INSERT OR REPLACE INTO outbox_owner (lane_group, relay, generation) VALUES (?1, ?2, ?3)";
inline constexpr std::string_view kGiveBack =
    "/* give back */ UPDATE outbox_owner SET relay = '' WHERE lane_group = ?1 AND relay = ?2";
inline constexpr std::string_view kGiveAllBack =
    "/* give back */ UPDATE outbox_owner SET relay = '' WHERE relay = ?1";
inline constexpr std::string_view kRaiseGeneration =
    "/* raise generation */ UPDATE outbox_meta SET generation = generation + 1 WHERE one = 1";
inline constexpr std::string_view kGeneration =
    "/* read generation */ SELECT generation FROM outbox_meta WHERE one = 1";
// ?1 subscription. The generation of the owner that delivers it.
inline constexpr std::string_view kGenerationOf =
    "/* read generation */ SELECT o.generation FROM outbox_owner o JOIN outbox_subscription s ON s.lane_group = o.lane_group"
    " WHERE s.id = ?1";
// When only the time has changed: one page of the WAL instead of three, every few seconds.
inline constexpr std::string_view kBeat =
    "/* beat */ UPDATE outbox_relay SET beat = ?2, lease_ms = ?3, heartbeat_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    " WHERE id = ?1";
inline constexpr std::string_view kWriteRelay =
    "/* write relay */ INSERT OR REPLACE INTO outbox_relay"
    " (id, name, groups, boot_id, pid_ns, pid, started, beat, lease_ms, heartbeat_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";
// ?1 generation, ?2 now, ?3 group. The new owner's first row of every subscription: rows of a lower generation no longer count.
// Keeps the cursor.
inline constexpr std::string_view kClaim =
    "/* claim */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at, acked_total, filtered_total)"
    " SELECT s.id, 'claim', ?1, s.config_version, c.position, c.position, ?2, c.acked_total, c.filtered_total"
    " FROM outbox_subscription s JOIN outbox_settlement c ON c.id ="
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1) WHERE s.lane_group = ?3";
// The same of the subscription ?3.
inline constexpr std::string_view kClaimOne =
    "/* claim */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at, acked_total, filtered_total)"
    " SELECT ?3, 'claim', ?1, c.config_version, c.position, c.position, ?2, c.acked_total, c.filtered_total"
    " FROM outbox_settlement c WHERE c.subscription = ?3 AND c.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY c.generation DESC, c.id DESC LIMIT 1";
inline constexpr std::string_view kBeginBeside =
    "/* write first cursor */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at)"
    " SELECT ?4, 'reset', ?1, 1, c.position, c.position, ?2"
    " FROM outbox_settlement c WHERE c.subscription = ?3 AND c.kind IN ('settle', 'claim', 'reset')"
    " AND NOT EXISTS (SELECT 1 FROM outbox_settlement t WHERE t.subscription = ?4 AND t.kind IN ('settle', 'claim', 'reset'))"
    " ORDER BY c.generation DESC, c.id DESC LIMIT 1";
inline constexpr std::string_view kLeave = "/* leave */ DELETE FROM outbox_relay WHERE id = ?1";
// Relays that waited and died without leaving: of another boot, or silent for ten leases.
inline constexpr std::string_view kForgetRelays =
    "/* forget relays */ DELETE FROM outbox_relay WHERE id NOT IN (SELECT relay FROM outbox_owner)"
    " AND (boot_id <> ?1 OR beat + lease_ms * 10000 < ?2)";
inline constexpr std::string_view kRelays =
    "/* list relays */ SELECT id, name, boot_id, pid_ns, pid, started, beat, lease_ms, groups, heartbeat_at,"
    " (SELECT max(o.generation) FROM outbox_owner o WHERE o.relay = r.id) AS newest,"
    " coalesce((SELECT group_concat(o.lane_group || ' 64', ', ') FROM outbox_owner o WHERE o.relay = r.id), '')"
    " FROM outbox_relay r ORDER BY newest IS NULL, heartbeat_at";

// ---- retention (docs/design/retention.md)

// ?1 who, ?2 until, ?3 now, ?4 the latest end that a lease can have: a later one was written before the clock was set back.
inline constexpr std::string_view kHoldPruning =
    "/* hold pruning */ UPDATE outbox_meta SET pruner = ?1, pruner_until = ?2 WHERE one = 1"
    " AND (pruner IN ('', ?1) OR pruner_until < ?3 OR pruner_until > ?4)";
inline constexpr std::string_view kReleasePruning =
    "/* release pruning */ UPDATE outbox_meta SET pruner = '', pruner_until = 0 WHERE pruner = ?1";
// Per subscription its cursor, and its first one: what is not beyond that never counted. Index outbox_settlement_newest, both
// ends.
inline constexpr std::string_view kPositions =
    "/* read positions */ SELECT s.id,"
    " min((SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1),"
    " coalesce((SELECT r.first_seq - 1 FROM outbox_replay r WHERE r.subscription = s.id AND r.state = 'running'"
    " AND r.archived = 0), 9223372036854775807)),"
    " (SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'reset'"
    " ORDER BY t.generation, t.id LIMIT 1) FROM outbox_subscription s";
inline constexpr std::string_view kFirstFrom =
    "/* read first event */ SELECT seq, created_at FROM outbox_event WHERE seq >= ?1 ORDER BY seq LIMIT 1";
inline constexpr std::string_view kLastBefore =
    "/* read last event */ SELECT seq, created_at FROM outbox_event WHERE seq < ?1 ORDER BY seq DESC LIMIT 1";
// For the doctor. By the rows' own order; the length of a payload is known without reading it.
inline constexpr std::string_view kRecentPayload =
    "/* look at the newest payloads */ SELECT coalesce(max(length(payload)), 0) FROM"
    " (SELECT payload FROM outbox_event ORDER BY seq DESC LIMIT 1000)";
inline constexpr std::string_view kFileBytes =
    "/* ask for the size */ SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
// ?1 from, ?2 to, ?3 rows. Columns: those of event_row.hpp.
inline constexpr std::string_view kArchived =
    "/* read events to be removed */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
// ?1 to, ?2 rows.
inline constexpr std::string_view kOldestIds =
    "/* read ids to be removed */ SELECT seq, id, length(payload) FROM outbox_event WHERE seq <= ?1 ORDER BY seq LIMIT ?2";
inline constexpr std::string_view kRemoveEvents =
    "/* remove events */ DELETE FROM outbox_event WHERE seq <= ?1";
inline constexpr std::string_view kPrunedHash =
    "/* read ledger */ SELECT hash FROM outbox_pruned WHERE subscription = ?1";
// ?1 subscription, ?2 last seq, ?3 count, ?4 the new hash, ?5 now.
inline constexpr std::string_view kNotePruned =
    "/* write ledger */ INSERT INTO outbox_pruned (subscription, last_seq, events, hash, at) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (subscription) DO UPDATE SET last_seq = excluded.last_seq, events = events + excluded.events,"
    " hash = excluded.hash, at = excluded.at";
// The rows that stay whatever their age: cursors, totals of retries, and when was settled last.
inline constexpr std::string_view kKeptSettlements =
    "/* list newest settlements */ SELECT (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id"
    " AND t.kind IN ('settle', 'claim', 'reset') ORDER BY t.generation DESC, t.id DESC LIMIT 1),"
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'retry' ORDER BY t.id DESC LIMIT 1),"
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'settle'"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1) FROM outbox_subscription s";
// ?1 after which id, ?2 rows.
inline constexpr std::string_view kOldSettlements =
    "/* read settlements */ SELECT id, kind, position, at FROM outbox_settlement WHERE id > ?1 ORDER BY id LIMIT ?2";
// ?1 id, ?2 now. Before it is removed. A late row of a former owner, older than a claim of a higher generation, never counted.
inline constexpr std::string_view kNotePrunedSettlement =
    "/* write ledger */ INSERT INTO outbox_pruned (subscription, generation, settlement, acked, filtered, parked, at)"
    " SELECT t.subscription, t.generation, t.id, t.counts * t.acked, t.counts * t.filtered, t.counts * t.parked, ?2 FROM ("
    "SELECT s.*, NOT EXISTS (SELECT 1 FROM outbox_settlement c WHERE c.subscription = s.subscription AND c.kind = 'claim'"
    " AND c.generation > s.generation AND c.id < s.id) AS counts FROM outbox_settlement s WHERE s.id = ?1) t WHERE true"
    " ON CONFLICT (subscription) DO UPDATE SET acked = acked + excluded.acked, filtered = filtered + excluded.filtered,"
    " parked = parked + excluded.parked, generation = max(generation, excluded.generation), settlement ="
    " CASE WHEN (excluded.generation, excluded.settlement) > (generation, settlement) THEN excluded.settlement"
    " ELSE settlement END";
// ?1 subscription.
inline constexpr std::string_view kPruned =
    "/* read ledger */ SELECT last_seq, events, acked, filtered, parked, generation, settlement FROM outbox_pruned"
    " WHERE subscription = ?1";
inline constexpr std::string_view kRemoveSettlement =
    "/* remove settlement */ DELETE FROM outbox_settlement WHERE id = ?1";
// ?1 before when, ?2 rows.
inline constexpr std::string_view kOldEnds =
    "/* read parked ends */ SELECT e.rowid, e.subscription, e.outcome FROM outbox_parked_end e WHERE e.at < ?1"
    " AND NOT EXISTS (SELECT 1 FROM outbox_event v WHERE v.seq = e.seq) LIMIT ?2";
inline constexpr std::string_view kRemoveEnd =
    "/* remove parked end */ DELETE FROM outbox_parked_end WHERE rowid = ?1";
// ?1 subscription, ?2 outcome, ?3 now.
inline constexpr std::string_view kNotePrunedEnd =
    "/* write ledger */ INSERT INTO outbox_pruned (subscription, delivered, discarded, edited, at)"
    " VALUES (?1, ?2 = 'delivered', ?2 = 'discarded', ?2 = 'edited', ?3) ON CONFLICT (subscription) DO UPDATE SET"
    " delivered = delivered + excluded.delivered, discarded = discarded + excluded.discarded, edited = edited + excluded.edited";

// ---- subscriptions: a table of a few rows

inline constexpr std::string_view kIdentity =
    "/* ask which outbox this is */ SELECT identity FROM outbox_meta WHERE one = 1";
inline constexpr std::string_view kSubscriptions =
    "/* list subscriptions */ SELECT id, name, config, config_version, state, reason, stopped_seq, stopped_event,"
    " trouble, trouble_since, parked_version, lane_group, group_generation, trouble_relay,"
    " (SELECT r.id FROM outbox_replay r WHERE r.subscription = s.id AND r.state = 'running')"
    " FROM outbox_subscription s ORDER BY name";
inline constexpr std::string_view kSubscriptionByName =
    "/* read subscription */ SELECT id, config, lane_group FROM outbox_subscription WHERE name = ?1";
inline constexpr std::string_view kCreateSubscription =
    "/* create subscription */ INSERT INTO outbox_subscription (name, config, lane_group) VALUES (?1, ?2, ?3) RETURNING id";
inline constexpr std::string_view kChangeSubscription =
    "/* change subscription */ UPDATE outbox_subscription SET config = ?2, config_version = config_version + 1,"
    " changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1";
// ?1 id, ?2 group. After kRaiseGeneration.
inline constexpr std::string_view kChangeGroup =
    "/* change group */ UPDATE outbox_subscription SET lane_group = ?2,"
    " group_generation = (SELECT generation FROM outbox_meta WHERE one = 1) WHERE id = ?1";
inline constexpr std::string_view kFirstSettlement =
    "/* write first cursor */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at)"
    " VALUES (?1, 'reset', 0, 1, ?2, ?2, ?3)";
// A stopped one stays stopped, and keeps why: its first event would be rejected again.
inline constexpr std::string_view kPause =
    "/* pause subscription */ UPDATE outbox_subscription SET"
    " state = CASE state WHEN 'active' THEN 'paused' ELSE state END,"
    " reason = CASE state WHEN 'stopped' THEN reason ELSE ?2 END,"
    " changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1";
inline constexpr std::string_view kResume =
    "/* resume subscription */ UPDATE outbox_subscription SET state = 'active', reason = '', stopped_seq = NULL,"
    " stopped_event = '', changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE name = ?1";
inline constexpr std::string_view kStop =
    "/* stop subscription */ UPDATE outbox_subscription SET state = 'stopped', reason = ?3, stopped_seq = ?4,"
    " stopped_event = ?5, changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    " WHERE id = ?1 AND ?2 = (SELECT o.generation FROM outbox_owner o WHERE o.lane_group = outbox_subscription.lane_group)";
inline constexpr std::string_view kReportTrouble =
    "/* report trouble */ UPDATE outbox_subscription SET trouble = ?3, trouble_relay = CASE WHEN ?3 = '' THEN '' ELSE ?4 END,"
    " trouble_since = CASE WHEN ?3 = '' THEN '' WHEN trouble = '' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now') ELSE trouble_since END"
    " WHERE id = ?1 AND ?2 = (SELECT o.generation FROM outbox_owner o WHERE o.lane_group = outbox_subscription.lane_group)";

}  // namespace outbox::store::sqlite::query
