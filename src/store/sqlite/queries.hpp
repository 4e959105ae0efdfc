// Every SQL statement of the program on SQLite, by name; the comments name the index and the cost.
// Each statement begins with a comment that names its purpose, which error messages show.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// ---- connections and transactions

// The memory map is off: it can show transient states of the WAL, and this workload does not need
// it.
inline constexpr std::string_view kNoMemoryMap = "/* set up connection */ PRAGMA mmap_size = 0";
inline constexpr std::string_view kSyncFull = "/* set up connection */ PRAGMA synchronous = FULL";
inline constexpr std::string_view kSyncNormal =
    "/* set up connection */ PRAGMA synchronous = NORMAL";
// IMMEDIATE takes the write lock at once, waiting at most the busy timeout. A deferred transaction
// that has read cannot wait for the lock: it fails with SQLITE_BUSY_SNAPSHOT once another
// connection has committed.
inline constexpr std::string_view kBegin = "/* begin */ BEGIN IMMEDIATE";
inline constexpr std::string_view kCommit = "/* commit */ COMMIT";
inline constexpr std::string_view kRollback = "/* roll back */ ROLLBACK";
// With the savepoint, many events in the caller's transaction are written whole or not at all.
inline constexpr std::string_view kSavepoint = "/* enqueue */ SAVEPOINT outbox_enqueue";
inline constexpr std::string_view kRollbackToSavepoint = "/* enqueue */ ROLLBACK TO outbox_enqueue";
inline constexpr std::string_view kReleaseSavepoint = "/* enqueue */ RELEASE outbox_enqueue";
// This statement is compiled, but never run (kept_statements.hpp).
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
// The farthest cursor of all subscriptions. One lookup in outbox_settlement_newest per
// subscription.
inline constexpr std::string_view kFarthestPosition =
    "/* read farthest cursor */ SELECT coalesce(max((SELECT t.position FROM outbox_settlement t"
    " WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1)), 0) FROM outbox_subscription s";

// ---- the log

// The only write on the application's side: one row at the end of the table, without an index.
inline constexpr std::string_view kInsertEvent =
    "/* enqueue */ INSERT INTO outbox_event"
    " (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
// It reads by the rowid, from the cursor on: seq order is commit order.
inline constexpr std::string_view kReadPage =
    "/* read page */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT ?2";
// The value differs from the last one on this connection if another connection has committed since.
// It touches no page.
inline constexpr std::string_view kDataVersion = "/* look for commits */ PRAGMA data_version";
// The highest seq that a committed transaction was ever given, even if its row is gone.
inline constexpr std::string_view kNewestSeq =
    "/* read newest seq */ SELECT seq FROM sqlite_sequence WHERE name = 'outbox_event'";
inline constexpr std::string_view kCountAfter =
    "/* count pending */ SELECT count(*) FROM (SELECT 1 FROM outbox_event WHERE seq > ?1 LIMIT ?2)";
inline constexpr std::string_view kFirstAfter =
    "/* read oldest pending */ SELECT created_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT 1";
inline constexpr std::string_view kFileSize =
    "/* measure file */ SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
// It waits for writers and readers, as long as the busy timeout; then it does what it can beside
// them.
inline constexpr std::string_view kTruncateWal = "/* checkpoint */ PRAGMA wal_checkpoint(TRUNCATE)";
// This one does not wait.
inline constexpr std::string_view kCheckpoint = "/* checkpoint */ PRAGMA wal_checkpoint(PASSIVE)";

// ---- progress

// It reads the last entry of one range of outbox_settlement_newest, backwards.
inline constexpr std::string_view kNewestCursor =
    "/* read cursor */ SELECT position, generation FROM outbox_settlement"
    " WHERE subscription = ?1 AND kind IN ('settle', 'claim', 'reset') ORDER BY generation DESC, id DESC LIMIT 1";
// It adds to the totals of the row that it continues, which is the newest one of no greater
// generation: one more lookup in the index.
inline constexpr std::string_view kAppendSettlement =
    "/* settle */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position,"
    " acked, acked_hash, filtered, filtered_hash, parked, parked_hash, at, acked_total, filtered_total)"
    " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
    " coalesce(last.acked_total, 0) + ?7, coalesce(last.filtered_total, 0) + ?9"
    " FROM (SELECT 1) LEFT JOIN outbox_settlement last ON last.id ="
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = ?1 AND t.generation <= ?3"
    " AND t.kind IN ('settle', 'claim', 'reset') ORDER BY t.generation DESC, t.id DESC LIMIT 1)";
// The newest row has the totals of all rows that count, and almost always is a settlement.
inline constexpr std::string_view kSettledTotals =
    "/* read totals */ SELECT acked_total + coalesce((SELECT r.acked_total FROM outbox_settlement r"
    " INDEXED BY outbox_settlement_retries WHERE r.subscription = ?1 AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0), filtered_total,"
    " (SELECT t.at FROM outbox_settlement t WHERE t.subscription = ?1 AND t.kind = 'settle'"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1)"
    " FROM outbox_settlement WHERE subscription = ?1 AND kind IN ('settle', 'claim', 'reset')"
    " ORDER BY generation DESC, id DESC LIMIT 1";

// ---- runs and trials (docs/design/trials.md). ?1 subscription. All use primary keys and read a
// row or two.

// ?1 relay. It scans a few rows.
inline constexpr std::string_view kComeBack =
    "/* come back */ UPDATE outbox_run SET relay = '' WHERE relay = ?1";

// ---- parked events (docs/design/parking.md)

// ?1 subscription, ?2 seq, ?3 key, ?4 dead; for a dead event ?5 attempts, ?6 token, ?7 version, ?8
// error; ?9 now, ?10 whether it blocks. Both tables by their primary key.
inline constexpr std::string_view kPark =
    "/* park */ INSERT INTO outbox_parked (subscription, seq, key, dead, attempts, token, version, error, parked_at, blocks, id,"
    " aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at)"
    " SELECT ?1, seq, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE seq = ?2";
// Primary key.
inline constexpr std::string_view kParkedFacts =
    "/* read parked */ SELECT id, key, dead, attempts, token, version, error, blocks FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// ?3 dead, ?4 attempts, ?5 token, ?6 version, ?7 error, ?8 whether it blocks. Primary key.
inline constexpr std::string_view kWriteFacts =
    "/* change parked */ UPDATE outbox_parked SET dead = ?3, attempts = ?4, token = ?5, version = ?6, error = ?7, blocks = ?8"
    " WHERE subscription = ?1 AND seq = ?2";
// ?1 subscription, ?2 key. Primary key.
inline constexpr std::string_view kParkedKey =
    "/* read parked key */ SELECT version, attempts, next_attempt_at, error, blocked_by, run_seq, worker, token, begun_at, cancelled_by,"
    " cancel_reason, solo FROM outbox_parked_key WHERE subscription = ?1 AND key = ?2";
// ?1 subscription, ?2 key, ?3 solo, ?4 version, ?5 attempts, ?6 due, ?7 blocked by, ?8 what runs,
// ?9 its worker, ?10 token, ?11 when it began, ?12 error; 0 or empty stands for null. Primary key.
// What is known of a run is kept only as long as the run lasts.
inline constexpr std::string_view kWriteParkedKey =
    "/* write parked key */ INSERT INTO outbox_parked_key AS k (subscription, key, solo, version, attempts, next_attempt_at, blocked_by,"
    " run_seq, worker, token, begun_at, error)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, 0), nullif(?8, 0), CAST(nullif(?9, '') AS BLOB), ?10, nullif(?11, 0), ?12)"
    " ON CONFLICT (subscription, key) DO UPDATE SET solo = excluded.solo, version = excluded.version, attempts = excluded.attempts,"
    " next_attempt_at = excluded.next_attempt_at, blocked_by = excluded.blocked_by, run_seq = excluded.run_seq,"
    " worker = excluded.worker, token = excluded.token, begun_at = excluded.begun_at, error = excluded.error,"
    " percent = iif((k.run_seq, k.worker, k.token) IS (excluded.run_seq, excluded.worker, excluded.token), k.percent, NULL),"
    " progress = iif((k.run_seq, k.worker, k.token) IS (excluded.run_seq, excluded.worker, excluded.token), k.progress, NULL),"
    " cancelled_by = iif((k.run_seq, k.worker, k.token) IS (excluded.run_seq, excluded.worker, excluded.token), k.cancelled_by, NULL),"
    " cancel_reason = iif((k.run_seq, k.worker, k.token) IS (excluded.run_seq, excluded.worker, excluded.token), k.cancel_reason, NULL)";
inline constexpr std::string_view kRemoveParkedKey =
    "/* remove parked key */ DELETE FROM outbox_parked_key WHERE subscription = ?1 AND key = ?2";
inline constexpr std::string_view kHasParkedKey =
    "/* look whether a key is free */ SELECT 1 FROM outbox_parked_key WHERE subscription = ?1 AND key = ?2";
// The first event of a key that is not dead. It uses index outbox_parked_live, which the planner
// would not choose by itself, as do the statements below: dead events, however many, cost nothing.
inline constexpr std::string_view kFirstParked =
    "/* read first parked of a key */ SELECT seq FROM outbox_parked INDEXED BY outbox_parked_live"
    " WHERE subscription = ?1 AND key = ?2 AND dead = 0 ORDER BY seq LIMIT 1";
// ?1 subscription, ?2 key, ?3 an event. Returns the first other event that blocks the key. Index
// outbox_parked_blocks.
inline constexpr std::string_view kNextBlock =
    "/* read what else blocks a key */ SELECT seq FROM outbox_parked INDEXED BY outbox_parked_blocks"
    " WHERE subscription = ?1 AND key = ?2 AND blocks = 1 AND seq <> ?3 ORDER BY seq LIMIT 1";
// ?1 subscription, ?2 key. Index outbox_parked_blocks.
inline constexpr std::string_view kUnblock =
    "/* unblock a key */ UPDATE outbox_parked INDEXED BY outbox_parked_blocks SET blocks = 0"
    " WHERE subscription = ?1 AND key = ?2 AND blocks = 1";
// ?1 subscription. The table has a few rows.
inline constexpr std::string_view kDeadBlock =
    "/* ask whether dead events block */ SELECT 1 FROM outbox_subscription WHERE id = ?1 AND json_extract(config, '$.on_dead') = 'block'";
// ?1 subscription, ?2 limit. Index outbox_parked_key_blocked.
inline constexpr std::string_view kKeysBlockedByDead =
    "/* list blocked keys */ SELECT key FROM outbox_parked_key INDEXED BY outbox_parked_key_blocked"
    " WHERE subscription = ?1 AND blocked_by IS NOT NULL LIMIT ?2";
// ?1 subscription. Returns the keys whose events the stream must not send, and in the row without a
// key the number of events. The primary key of outbox_parked_key; index outbox_parked_live.
inline constexpr std::string_view kParkedKeys =
    "/* list parked keys */ SELECT key, coalesce(run_seq, 0) FROM outbox_parked_key"
    " WHERE subscription = ?1 AND (solo = 0 OR run_seq IS NOT NULL)"
    " UNION ALL SELECT NULL, count(*) FROM outbox_parked INDEXED BY outbox_parked_live WHERE subscription = ?1 AND dead = 0";
// ?1 subscription, ?2 seq, ?3 key. Primary keys.
inline constexpr std::string_view kAskParked =
    "/* ask what became of parked */ SELECT (SELECT p.state FROM outbox_parked_state p WHERE p.subscription = ?1 AND p.seq = ?2),"
    " EXISTS (SELECT 1 FROM outbox_parked_key k WHERE k.subscription = ?1 AND k.key = ?3)";
// ?1 subscription, ?2 a time that is never reached, ?3 limit, ?4 generation; there is no row if
// another generation owns the group. The key that has been due longest comes first, and keys that
// are not due yet follow. Index outbox_parked_key_due.
inline constexpr std::string_view kDueKeys =
    "/* read due keys */ SELECT key, next_attempt_at, version, attempts, token, coalesce(blocked_by, ?2) FROM outbox_parked_key"
    " INDEXED BY outbox_parked_key_due WHERE subscription = ?1 AND run_seq IS NULL AND next_attempt_at < ?2 AND ?4 ="
    " (SELECT o.generation FROM outbox_owner o JOIN outbox_subscription s ON s.lane_group = o.lane_group WHERE s.id = ?1)"
    " ORDER BY next_attempt_at, key LIMIT ?3";
// ?1 subscription, ?2 key, ?3 the seq of the event that blocks it, ?4 limit. Index
// outbox_parked_live.
inline constexpr std::string_view kDueParked =
    "/* read parked */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at"
    " FROM outbox_parked INDEXED BY outbox_parked_live WHERE subscription = ?1 AND key = ?2 AND dead = 0 AND seq < ?3"
    " ORDER BY seq LIMIT ?4";
inline constexpr std::string_view kRemoveParked =
    "/* remove parked */ DELETE FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// It runs before the event is removed. ?3 outcome, ?4 attempts, ?5 actor, ?6 reason, ?7 now.
inline constexpr std::string_view kEndParked =
    "/* end parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at)"
    " SELECT subscription, seq, id, ?3, ?4, ?5, ?6, ?7 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// ?1 subscription, ?2 generation, ?3 count, ?4 hash, ?5 now. It adds to the newest row of its kind,
// by outbox_settlement_retries.
inline constexpr std::string_view kAppendRetry =
    "/* settle parked */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, acked, acked_hash, at, acked_total)"
    " SELECT ?1, 'retry', ?2, 0, 0, 0, ?3, ?4, ?5, ?3 + coalesce((SELECT r.acked_total FROM outbox_settlement r"
    " INDEXED BY outbox_settlement_retries WHERE r.subscription = ?1 AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0)";

// ?1 subscription, ?2 seq. A task that a person retries does not wait for its execute_at any more.
// Primary key.
inline constexpr std::string_view kForgetExecuteAt =
    "/* retry parked */ UPDATE outbox_parked SET headers = json_remove(headers, '$.\"task-execute-at\"')"
    " WHERE subscription = ?1 AND seq = ?2 AND aggregate_type LIKE 'outbox-task:%'"
    " AND CASE WHEN json_valid(headers) THEN json_type(headers, '$.\"task-execute-at\"') IS NOT NULL ELSE 0 END";
// ?1 subscription, ?2 key, ?3 the actor, ?4 the reason. The event that its worker runs stays until
// its handler has returned. Primary key.
inline constexpr std::string_view kCancelRun =
    "/* cancel run */ UPDATE outbox_parked_key SET cancelled_by = coalesce(cancelled_by, ?3), cancel_reason = coalesce(cancel_reason, ?4)"
    " WHERE subscription = ?1 AND key = ?2";
// It runs before the event is edited. ?3 new id, ?4 the actor, ?5 the reason, ?6 now, ?7 attempts.
inline constexpr std::string_view kEndEdited =
    "/* edit parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at, replaced_by)"
    " SELECT subscription, seq, id, 'edited', ?7, ?4, ?5, ?6, CAST(?3 AS BLOB) FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2";
// ?3 new id, ?4 type, ?5 payload, ?6 content type, ?7 headers.
inline constexpr std::string_view kEditParked =
    "/* edit parked */ UPDATE outbox_parked SET id = CAST(?3 AS BLOB), event_type = ?4, payload = CAST(?5 AS BLOB),"
    " content_type = ?6, headers = ?7 WHERE subscription = ?1 AND seq = ?2";
inline constexpr std::string_view kNoteParkedChange =
    "/* note parked change */ UPDATE outbox_subscription SET parked_version = parked_version + 1 WHERE id = ?1";

// ---- tasks that run (docs/design/tasks.md)

// ?1 subscription, ?2 seq, ?3 worker, ?4 token, ?5 percent, ?6 text. Index
// outbox_parked_key_worker.
inline constexpr std::string_view kReportProgress =
    "/* report progress */ UPDATE outbox_parked_key INDEXED BY outbox_parked_key_worker SET percent = ?5, progress = ?6"
    " WHERE subscription = ?1 AND worker = CAST(?3 AS BLOB) AND run_seq = ?2 AND token = ?4";

// ?1 id, ?2 outcome, ?3 result, ?4 reason, ?5 now. Primary key.
inline constexpr std::string_view kNoteTaskEnd =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, result, reason, at)"
    " VALUES (CAST(?1 AS BLOB), ?2, CAST(?3 AS BLOB), ?4, ?5) ON CONFLICT DO NOTHING";
// The same without ?3.
inline constexpr std::string_view kNoteTaskEndWithoutResult =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, reason, at)"
    " VALUES (CAST(?1 AS BLOB), ?2, ?3, ?4) ON CONFLICT DO NOTHING";
// ?1 rows, ?2 a time. Index outbox_task_end_at. The end of a task that was replaced stays until the
// task is neither in the log, whose oldest event is younger by then, nor set aside (index
// outbox_parked_id).
inline constexpr std::string_view kRemoveTaskEnds =
    "/* remove ends of tasks */ DELETE FROM outbox_task_end WHERE id IN"
    " (SELECT e.id FROM outbox_task_end e WHERE e.at < ?2 AND (e.waits = 0 OR"
    " e.at < coalesce((SELECT v.created_at FROM outbox_event v ORDER BY v.seq LIMIT 1), 9223372036854775807) - 3600000000"
    " AND NOT EXISTS (SELECT 1 FROM outbox_parked p WHERE p.id = e.id)) ORDER BY e.at LIMIT ?1)";
// The same. For each consumer the primary key and index outbox_inbox_received.
inline constexpr std::string_view kRemoveMessages =
    "/* remove old messages */ DELETE FROM outbox_inbox WHERE (consumer, message_id) IN ("
    "WITH RECURSIVE c(consumer) AS (SELECT min(consumer) FROM outbox_inbox UNION ALL"
    " SELECT (SELECT min(i.consumer) FROM outbox_inbox i WHERE i.consumer > c.consumer) FROM c WHERE c.consumer IS NOT NULL)"
    " SELECT i.consumer, i.message_id FROM c CROSS JOIN outbox_inbox i ON i.consumer = c.consumer WHERE i.received_at < ?2 LIMIT ?1)";
// The same. Index outbox_inbox_key_at.
inline constexpr std::string_view kRemoveMessageKeys =
    "/* remove old keys of messages */ DELETE FROM outbox_inbox_key WHERE (consumer, key) IN"
    " (SELECT consumer, key FROM outbox_inbox_key WHERE at < ?2 ORDER BY at LIMIT ?1)";
// The same. Index outbox_audit_at.
inline constexpr std::string_view kRemoveAudit =
    "/* remove old audit */ DELETE FROM outbox_audit WHERE id IN"
    " (SELECT id FROM outbox_audit WHERE at < ?2 ORDER BY at LIMIT ?1)";
// ?1 queue, ?2 unique key, ?3 id. Primary key.
inline constexpr std::string_view kTakeUnique =
    "/* claim unique key */ INSERT INTO outbox_task_unique (queue, unique_key, id) VALUES (?1, ?2, CAST(?3 AS BLOB))"
    " ON CONFLICT DO NOTHING";
inline constexpr std::string_view kReplaceUnique =
    "/* claim unique key */ UPDATE outbox_task_unique SET id = CAST(?3 AS BLOB) WHERE queue = ?1 AND unique_key = ?2";
// ?1 queue, ?2 unique key, ?3 id, ?4 now. It runs before kReplaceUnique: the replaced task never
// runs, unless it runs already. Primary keys; outbox_parked_id.
inline constexpr std::string_view kCancelReplaced =
    "/* claim unique key */ INSERT INTO outbox_task_end (id, outcome, reason, at, waits, set_aside)"
    " SELECT u.id, 'cancelled', 'a newer task with its unique key took its place', ?4, 1,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.id = u.id) FROM outbox_task_unique u"
    " WHERE u.queue = ?1 AND u.unique_key = ?2 AND u.id <> CAST(?3 AS BLOB) AND u.running IS NOT u.id ON CONFLICT DO NOTHING";
inline constexpr std::string_view kUniqueTask =
    "/* read unique key */ SELECT id FROM outbox_task_unique WHERE queue = ?1 AND unique_key = ?2";
// A task whose row is gone was dead, and gets a new row.
inline constexpr std::string_view kBeginUnique =
    "/* begin unique task */ INSERT INTO outbox_task_unique (queue, unique_key, id, running)"
    " VALUES (?1, ?2, CAST(?3 AS BLOB), CAST(?3 AS BLOB)) ON CONFLICT (queue, unique_key) DO UPDATE SET running = id"
    " WHERE id = excluded.id AND coalesce(running, id) = id";
// ?1 id of a task that waits for a retry, ?2 now. If the task was replaced, it gets no retry. Index
// outbox_task_unique_running.
inline constexpr std::string_view kEndReplaced =
    "/* note end of task */ INSERT INTO outbox_task_end (id, outcome, reason, at, waits, set_aside)"
    " SELECT running, 'cancelled', 'a newer task with its unique key took its place', ?2, 1, 1 FROM outbox_task_unique"
    " WHERE running = CAST(?1 AS BLOB) AND id <> running ON CONFLICT DO NOTHING";
// ?1 id of a task that was replaced before, ?2 now. The first statement notes that the task was set
// aside since, the next one that it was skipped. Primary key.
inline constexpr std::string_view kSetReplacedAside =
    "/* note end of task */ UPDATE outbox_task_end SET set_aside = 1, at = ?2 WHERE id = CAST(?1 AS BLOB) AND waits = 1 AND set_aside = 0";
inline constexpr std::string_view kPassReplaced =
    "/* note end of task */ UPDATE outbox_task_end SET waits = 0, set_aside = 0, at = ?2 WHERE id = CAST(?1 AS BLOB) AND waits = 1";
// ?1 id. Primary key.
inline constexpr std::string_view kIsCancelled =
    "/* read end of task */ SELECT 1 FROM outbox_task_end WHERE id = CAST(?1 AS BLOB) AND outcome = 'cancelled'";
// ?1 id of a task that does not run any more. Index outbox_task_unique_running.
inline constexpr std::string_view kStopUnique =
    "/* unique task stops */ UPDATE outbox_task_unique SET running = NULL WHERE running = CAST(?1 AS BLOB)";
// ?1 id of a task that is over. Index outbox_task_unique_id.
inline constexpr std::string_view kEndUnique =
    "/* give up unique key */ DELETE FROM outbox_task_unique WHERE id = CAST(?1 AS BLOB) AND running IS NULL";
// The same if a task that it has replaced still runs.
inline constexpr std::string_view kHandBackUnique =
    "/* give up unique key */ UPDATE outbox_task_unique SET id = running WHERE id = CAST(?1 AS BLOB)";
// ?1 subscription, ?2 seq. Primary key.
inline constexpr std::string_view kUniqueParked =
    "/* read parked */ SELECT id FROM outbox_parked WHERE subscription = ?1 AND seq = ?2 AND headers LIKE '%task-unique-key%'";
// ?1 id of a task, ?2 id of its corrected copy. Index outbox_task_unique_id.
inline constexpr std::string_view kHandOverUnique =
    "/* edit parked */ UPDATE outbox_task_unique SET id = CAST(?2 AS BLOB) WHERE id = CAST(?1 AS BLOB)";
// ?1 subscription, ?2 seq. Returns the task if it is dead. Primary key.
inline constexpr std::string_view kDeadTask =
    "/* read dead task */ SELECT id, aggregate_type, aggregate_id, event_type, attempts, error, headers FROM outbox_parked"
    " WHERE subscription = ?1 AND seq = ?2 AND dead = 1 AND aggregate_type LIKE 'outbox-task:%'";
// ?1 consumer, ?2 message id, ?3 now. Primary key.
inline constexpr std::string_view kReceive =
    "/* receive message */ INSERT INTO outbox_inbox (consumer, message_id, received_at) VALUES (?1, ?2, ?3)"
    " ON CONFLICT DO NOTHING";

// ---- the ledger, for `outbox verify` (docs/design/verify.md)

// The first statement that reads takes the snapshot.
inline constexpr std::string_view kBeginRead = "/* begin reading */ BEGIN";
inline constexpr std::string_view kNewestSettlement =
    "/* read newest settlement */ SELECT coalesce(max(id), 0) FROM outbox_settlement";
// ?1 subscription, ?2 generation, ?3 id, ?4 the newest id, ?5 limit, ?6 the last generation. Index
// outbox_settlement_newest.
inline constexpr std::string_view kLedgerRows =
    "/* read settlements */ SELECT id, kind, generation, from_position, position, acked, acked_hash, filtered, filtered_hash,"
    " parked, parked_hash, at FROM outbox_settlement WHERE subscription = ?1 AND (generation, id) > (?2, ?3) AND id <= ?4"
    " AND generation <= ?6 ORDER BY generation, id LIMIT ?5";
// ?1 from, ?2 to, ?3 limit. By the rowid.
inline constexpr std::string_view kLedgerEvents =
    "/* read the log */ SELECT seq, id, created_at FROM outbox_event WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
inline constexpr std::string_view kLedgerCount =
    "/* count the log */ SELECT count(*) FROM outbox_event WHERE seq > ?1 AND seq <= ?2";
// ?1 subscription. The rows include the copies that stand for an edited event, which are not in the
// log. Primary key; outbox_parked_end_seq.
inline constexpr std::string_view kLedgerParked =
    "/* add up parked */ SELECT p.id, '', EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?1"
    " AND x.seq = p.seq AND x.outcome = 'edited') FROM outbox_parked p WHERE p.subscription = ?1";
inline constexpr std::string_view kLedgerEnds =
    "/* add up ended */ SELECT e.id, e.outcome, EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?1"
    " AND x.seq = e.seq AND x.outcome = 'edited' AND x.at < e.at) FROM outbox_parked_end e WHERE e.subscription = ?1";

// ---- events and what became of them (docs/design/status.md)

// For `outbox migrate --with-lookup-indexes`. Each of these indexes costs every writer.
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
// The first statement searches by the rowid, the second one by outbox_event_by_id, where that was
// made.
inline constexpr std::string_view kSeqsBetweenWithId =
    "/* find event */ SELECT seq FROM outbox_event WHERE seq >= ?1 AND seq < ?2 AND +id = CAST(?3 AS BLOB) ORDER BY seq";
inline constexpr std::string_view kSeqsWithId =
    "/* find event */ SELECT seq FROM outbox_event WHERE id = CAST(?1 AS BLOB) ORDER BY seq";
inline constexpr std::string_view kEventAt =
    "/* read event */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_event WHERE seq = ?1 AND +id = CAST(?2 AS BLOB)";
// What is known of an id that is not in the log: its copy in outbox_parked, or else the key and the
// time of the event that it replaced. Indexes outbox_parked_id and outbox_parked_end_id.
inline constexpr std::string_view kParkedWithId =
    "/* find parked event */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_parked WHERE id = CAST(?1 AS BLOB)"
    " UNION SELECT e.seq, e.id, e.aggregate_type, e.aggregate_id, '', x'', '', '', e.created_at, NULL FROM outbox_parked_end x JOIN outbox_event e ON e.seq = x.seq"
    " WHERE x.id = CAST(?1 AS BLOB) AND NOT EXISTS (SELECT 1 FROM outbox_parked p WHERE p.id = CAST(?1 AS BLOB))";
// ?1 from, ?2 to, ?3 and ?4 the key, ?5 type, where each may be empty, ?6 since, ?7 until, ?8
// limit. By the rowid, backwards.
inline constexpr std::string_view kListEvents =
    "/* list events */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,"
    " occurred_at FROM outbox_event WHERE seq > ?1 AND seq <= ?2 AND (?3 = '' OR aggregate_type = ?3)"
    " AND (?4 = '' OR aggregate_id = ?4) AND (?5 = '' OR event_type = ?5) AND created_at >= ?6 AND created_at < ?7"
    " ORDER BY seq DESC LIMIT ?8";
// The same by outbox_event_by_key, which ends in the rowid.
inline constexpr std::string_view kListKeyEvents =
    "/* list events of a key */ SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,"
    " created_at, occurred_at FROM outbox_event WHERE aggregate_type = ?3 AND aggregate_id = ?4 AND seq > ?1 AND seq <= ?2"
    " AND (?5 = '' OR event_type = ?5) AND created_at >= ?6 AND created_at < ?7 ORDER BY seq DESC LIMIT ?8";
// Primary keys, outbox_parked_live and outbox_parked_end_seq.
inline constexpr std::string_view kParkedLife =
    "/* read parked event */ SELECT state, attempts, next_attempt_at, error FROM outbox_parked_state"
    " WHERE subscription = ?1 AND seq = ?2 AND +id = CAST(?3 AS BLOB)";
// ?1 subscription, ?2 the seq of an event that waits, either for the first event of its key, or for
// a dead one that blocks the key.
inline constexpr std::string_view kWaitingFor =
    "/* read what a parked event waits for */ SELECT f.seq, f.id FROM outbox_parked p"
    " CROSS JOIN outbox_parked_key k ON k.subscription = p.subscription AND k.key = p.key"
    " CROSS JOIN outbox_parked f ON f.subscription = p.subscription AND f.seq = min(coalesce(k.blocked_by, p.seq), coalesce("
    "(SELECT l.seq FROM outbox_parked l INDEXED BY outbox_parked_live"
    " WHERE l.subscription = p.subscription AND l.key = p.key AND l.dead = 0 ORDER BY l.seq LIMIT 1), p.seq))"
    " WHERE p.subscription = ?1 AND p.seq = ?2 AND f.seq < p.seq";
inline constexpr std::string_view kParkedEndLife =
    "/* read end of parked event */ SELECT outcome, attempts, actor, reason, at, replaced_by FROM outbox_parked_end"
    " WHERE subscription = ?1 AND seq = ?2 AND +id = CAST(?3 AS BLOB) ORDER BY at DESC LIMIT 1";
// The first two use outbox_settlement_beginnings and read one row each of few.
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
// ?1 subscription. Returns the relay that delivers it; the columns are those of kMember.
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
// ?1 subscription. Returns the generation of the owner that delivers it.
inline constexpr std::string_view kGenerationOf =
    "/* read generation */ SELECT o.generation FROM outbox_owner o JOIN outbox_subscription s ON s.lane_group = o.lane_group"
    " WHERE s.id = ?1";
// It is used when only the time has changed: every few seconds it writes one page of the WAL
// instead of three.
inline constexpr std::string_view kBeat =
    "/* beat */ UPDATE outbox_relay SET beat = ?2, lease_ms = ?3, heartbeat_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    " WHERE id = ?1";
inline constexpr std::string_view kWriteRelay =
    "/* write relay */ INSERT OR REPLACE INTO outbox_relay"
    " (id, name, groups, boot_id, pid_ns, pid, started, beat, lease_ms, heartbeat_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";
// ?1 generation, ?2 now, ?3 group. Writes the new owner's first row of every subscription, which
// keeps the cursor; rows of a lower generation do not count any more.
inline constexpr std::string_view kClaim =
    "/* claim */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at, acked_total, filtered_total)"
    " SELECT s.id, 'claim', ?1, s.config_version, c.position, c.position, ?2, c.acked_total, c.filtered_total"
    " FROM outbox_subscription s JOIN outbox_settlement c ON c.id ="
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1) WHERE s.lane_group = ?3";
// The same for one subscription, ?3.
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
// Removes relays that waited and died without leaving: those of another boot, and those silent for
// ten leases.
inline constexpr std::string_view kForgetRelays =
    "/* forget relays */ DELETE FROM outbox_relay WHERE id NOT IN (SELECT relay FROM outbox_owner)"
    " AND (boot_id <> ?1 OR beat + lease_ms * 10000 < ?2)";
inline constexpr std::string_view kRelays =
    "/* list relays */ SELECT id, name, boot_id, pid_ns, pid, started, beat, lease_ms, groups, heartbeat_at,"
    " (SELECT max(o.generation) FROM outbox_owner o WHERE o.relay = r.id) AS newest,"
    " (SELECT json_group_object(o.lane_group, 64) FROM outbox_owner o WHERE o.relay = r.id)"
    " FROM outbox_relay r ORDER BY newest IS NULL, heartbeat_at";

// ---- retention (docs/design/retention.md)

// ?1 the owner's id, ?2 until when, ?3 now, ?4 the latest end that a lease can have: a later one
// was written before the clock was set back.
inline constexpr std::string_view kHoldPruning =
    "/* hold pruning */ UPDATE outbox_meta SET pruner = ?1, pruner_until = ?2 WHERE one = 1"
    " AND (pruner IN ('', ?1) OR pruner_until < ?3 OR pruner_until > ?4)";
inline constexpr std::string_view kReleasePruning =
    "/* release pruning */ UPDATE outbox_meta SET pruner = '', pruner_until = 0 WHERE pruner = ?1";
// Returns for each subscription its cursor and its first one; events up to the first cursor never
// counted. Index outbox_settlement_newest, both ends. A running replay is found by the partial
// index outbox_replay_running, which SQLite uses only if the index's own condition on the state
// stands in the statement, too.
inline constexpr std::string_view kPositions =
    "/* read positions */ SELECT s.id,"
    " min((SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1),"
    " coalesce((SELECT r.first_seq - 1 FROM outbox_replay r WHERE r.subscription = s.id AND r.state = 'running'"
    " AND r.state IN ('loading', 'running') AND r.archived = 0), 9223372036854775807)),"
    " (SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'reset'"
    " ORDER BY t.generation, t.id LIMIT 1) FROM outbox_subscription s";
inline constexpr std::string_view kFirstFrom =
    "/* read first event */ SELECT seq, created_at FROM outbox_event WHERE seq >= ?1 ORDER BY seq LIMIT 1";
inline constexpr std::string_view kLastBefore =
    "/* read last event */ SELECT seq, created_at FROM outbox_event WHERE seq < ?1 ORDER BY seq DESC LIMIT 1";
// For the doctor. It reads in the rows' own order; the length of a payload is known without reading
// it.
inline constexpr std::string_view kRecentPayload =
    "/* look at the newest payloads */ SELECT coalesce(max(length(payload)), 0) FROM"
    " (SELECT payload FROM outbox_event ORDER BY seq DESC LIMIT 1000)";
inline constexpr std::string_view kFileBytes =
    "/* ask for the size */ SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
// ?1 from, ?2 to, ?3 rows. The columns are those of event_row.hpp.
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
// ?1 subscription. Returns the rows that are kept whatever their age: its cursor, the total of its
// retries, and its last settlement. Indexes outbox_settlement_newest and outbox_settlement_retries.
inline constexpr std::string_view kKeptSettlements =
    "/* find newest settlements */ SELECT (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id"
    " AND t.kind IN ('settle', 'claim', 'reset') ORDER BY t.generation DESC, t.id DESC LIMIT 1),"
    " (SELECT t.id FROM outbox_settlement t INDEXED BY outbox_settlement_retries WHERE t.subscription = s.id"
    " AND t.kind = 'retry' ORDER BY t.id DESC LIMIT 1),"
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'settle'"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1) FROM outbox_subscription s WHERE s.id = ?1";
// ?1 after which id, ?2 rows.
inline constexpr std::string_view kOldSettlements =
    "/* read settlements */ SELECT id, kind, position, at, subscription FROM outbox_settlement WHERE id > ?1 ORDER BY id LIMIT ?2";
// ?1 id, ?2 now. It runs before the settlement is removed. A late row of a former owner, written
// after a claim of a higher generation, never counted.
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
    "/* read ledger */ SELECT last_seq, events, acked, filtered, parked, generation, settlement, discarded FROM outbox_pruned"
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

// ---- tasks for people (docs/design/tasks.md)

// ?1 name of a subscription, ?2 seq, ?3 id. Primary keys.
inline constexpr std::string_view kTaskRow =
    "/* look at a task */ SELECT w.name, k.begun_at, k.percent, k.progress,"
    " 'cancelled by ' || k.cancelled_by || ': ' || k.cancel_reason FROM outbox_subscription s"
    " JOIN outbox_parked p ON p.subscription = s.id AND p.seq = ?2 AND +p.id = CAST(?3 AS BLOB)"
    " LEFT JOIN outbox_parked_key k ON k.subscription = p.subscription AND k.key = p.key AND k.run_seq = p.seq"
    " LEFT JOIN outbox_worker w ON w.id = k.worker WHERE s.name = ?1";

// ?1 id. Primary key.
inline constexpr std::string_view kTaskEnd =
    "/* look at the end of a task */ SELECT outcome, result, reason, at FROM outbox_task_end WHERE id = CAST(?1 AS BLOB)";

// ?1 aggregate_type, ?2 type, ?3 seq. Few rows.
inline constexpr std::string_view kTypeApart =
    "/* look for a type apart */ SELECT 1 FROM outbox_type_apart WHERE aggregate_type = ?1 AND event_type = ?2 AND begun_at < ?3";

// ?1 cursor, ?2 the number of events that are looked at, ?3 aggregate_type, ?4 type and ?5 key,
// where each may be empty, ?6 limit, ?7 the type of the subscription, empty if the subscription is
// that of the queue. By the rowid.
inline constexpr std::string_view kPendingTasks =
    "/* list pending tasks */ SELECT seq, id, event_type, aggregate_id, created_at FROM"
    " (SELECT seq, id, aggregate_type, event_type, aggregate_id, created_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT ?2)"
    " WHERE aggregate_type = ?3 AND (?4 = '' OR event_type = ?4) AND (?5 = '' OR aggregate_id = ?5) AND"
    " iif(?7 <> '', event_type = ?7, event_type NOT IN (SELECT a.event_type FROM outbox_type_apart a WHERE a.aggregate_type = ?3))"
    " ORDER BY seq LIMIT ?6";

// ?1 cursor, ?2 the number of events that are looked at, ?3 aggregate_type, ?4 as ?7 above. By the
// rowid. The rows are per type; null stands for events that are no task of these.
inline constexpr std::string_view kCountPendingTasks =
    "/* count pending tasks */ SELECT iif(aggregate_type = ?3 AND iif(?4 <> '', event_type = ?4, event_type NOT IN"
    " (SELECT a.event_type FROM outbox_type_apart a WHERE a.aggregate_type = ?3)), event_type, NULL) AS type,"
    " count(*), outbox_now() - min(created_at) FROM"
    " (SELECT aggregate_type, event_type, created_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT ?2) GROUP BY type";
// ?1 subscription, ?2 rows. Primary keys.
inline constexpr std::string_view kCountTasks =
    "/* count tasks */ SELECT ?1, event_type, iif(scheduled, 'scheduled', state) AS word, count(*),"
    " coalesce(max(outbox_now() - next_attempt_at) FILTER (WHERE state = 'retrying'), 0) FROM (SELECT p.event_type, p.state, p.next_attempt_at,"
    " p.state = 'retrying' AND p.attempts = 0 AND p.next_attempt_at > outbox_now() AND p.aggregate_type LIKE 'outbox-task:%'"
    " AND json_valid(p.headers) AND coalesce(julianday(json_extract(p.headers, '$.\"task-execute-at\"'))"
    " > julianday(outbox_now() / 1000000.0, 'unixepoch'), 0) AS scheduled"
    " FROM outbox_parked_state p WHERE p.subscription = ?1 LIMIT ?2) GROUP BY event_type, word";
// The workers of the last hour. Few rows; index outbox_parked_key_worker, once for each
// subscription.
inline constexpr std::string_view kWorkers =
    "/* list workers */ SELECT w.name, outbox_now() - w.beat_at, (SELECT count(*) FROM outbox_subscription s CROSS JOIN"
    " outbox_parked_key k INDEXED BY outbox_parked_key_worker ON k.subscription = s.id AND k.worker = w.id), w.types"
    " FROM outbox_worker w WHERE w.beat_at > outbox_now() - 3600000000 ORDER BY w.name, w.id";

// ---- replays (docs/design/replay.md)

// ?1 subscription, ?2 first seq, ?3 last seq, ?4 filter, ?5 archived, ?6 state, ?7 the actor, ?8
// now.
inline constexpr std::string_view kStartReplay =
    "/* start replay */ INSERT INTO outbox_replay"
    " (subscription, first_seq, last_seq, filter, archived, state, actor, started_at, position)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?2 - 1) RETURNING id";
inline constexpr std::string_view kResumeReplay =
    "/* resume replay */ UPDATE outbox_replay SET state = 'running', reason = '', ended_at = NULL"
    " WHERE id = ?1 AND state = 'stopped' RETURNING id";
inline constexpr std::string_view kLoadEvent =
    "/* copy an event of an archive */ INSERT OR IGNORE INTO outbox_replay_event"
    " (replay, seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at)"
    " SELECT ?1, ?2, CAST(?3 AS BLOB), ?4, ?5, ?6, CAST(?7 AS BLOB), ?8, ?9, ?10, nullif(?11, ?12)"
    " WHERE NOT EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = ?2)";
// ?1 rows. Removes copies of archived events whose replay is done or does not exist any more. The
// oldest replay comes first, which the primary key gives without sorting.
inline constexpr std::string_view kRemoveReplayed =
    "/* remove replayed events */ DELETE FROM outbox_replay_event WHERE (replay, seq) IN"
    " (SELECT e.replay, e.seq FROM outbox_replay_event e"
    " WHERE NOT EXISTS (SELECT 1 FROM outbox_replay r WHERE r.id = e.replay AND r.state <> 'done')"
    " ORDER BY e.replay, e.seq LIMIT ?1)";
// ?1 replay, ?2 position, ?3 the number sent, ?4 now. The last event ends the replay, even while it
// is being stopped: nothing of it is left to be resumed.
inline constexpr std::string_view kSettleReplay =
    "/* settle replay */ UPDATE outbox_replay SET position = max(position, ?2), sent = sent + ?3,"
    " ended_at = CASE WHEN ?2 >= last_seq THEN ?4 ELSE ended_at END, reason = CASE WHEN ?2 >= last_seq THEN '' ELSE reason END,"
    " state = CASE WHEN ?2 >= last_seq THEN 'done' ELSE state END WHERE id = ?1";
inline constexpr std::string_view kSkipReplayed =
    "/* settle replay */ INSERT OR IGNORE INTO outbox_replay_skip (replay, seq, id, aggregate_type, aggregate_id, error)"
    " SELECT ?1, ?2, CAST(?3 AS BLOB), e.aggregate_type, e.aggregate_id, ?4 FROM ("
    " SELECT aggregate_type, aggregate_id FROM outbox_replay_event WHERE replay = ?1 AND seq = ?2"
    " UNION ALL SELECT aggregate_type, aggregate_id FROM outbox_event WHERE seq = ?2) e LIMIT 1";
// ?1 replay, ?2 how many may be skipped, ?3 the reason for which it stops, ?4 now.
inline constexpr std::string_view kStopSkipping =
    "/* settle replay */ UPDATE outbox_replay SET state = 'stopped', reason = ?3, ended_at = ?4"
    " WHERE id = ?1 AND state = 'running' AND (SELECT count(*) FROM outbox_replay_skip k WHERE k.replay = ?1) >= ?2";
// ?1 position, ?2 last seq, ?3 rows, ?4 subscription. By the rowid. An event is held if it is
// parked now, or was discarded or corrected by a person.
inline constexpr std::string_view kReplayPage =
    "/* read a page for a replay */ SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type,"
    " t.headers, t.created_at, t.occurred_at,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?4 AND p.seq = t.seq)"
    " OR EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?4 AND x.seq = t.seq AND x.outcome <> 'delivered')"
    " FROM outbox_event t WHERE t.seq > ?1 AND t.seq <= ?2 ORDER BY t.seq LIMIT ?3";
// The same for an archive, with ?5 replay. Primary key.
inline constexpr std::string_view kArchivedPage =
    "/* read a page for a replay */ SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type,"
    " t.headers, t.created_at, t.occurred_at,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?4 AND p.seq = t.seq)"
    " OR EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?4 AND x.seq = t.seq AND x.outcome <> 'delivered')"
    " FROM outbox_replay_event t WHERE t.replay = ?5 AND t.seq > ?1 AND t.seq <= ?2 ORDER BY t.seq LIMIT ?3";

// ---- what the outbox consists of (docs/design/doctor.md)

// Lists what the outbox consists of: everything that has a text in its tables and views. A list
// that another program made begins differently.
inline constexpr std::string_view kFoundDefinitions = R"(/* look at the schema */
SELECT '', 'made by', 'outbox 1', '' UNION ALL SELECT * FROM (
SELECT coalesce(t.type || ' ' || t.name, s.type || ' ' || s.name),
       CASE WHEN t.name IS NULL THEN '' ELSE CASE WHEN s.sql LIKE 'CREATE UNIQUE%' THEN 'unique ' WHEN s.type = 'index' AND s.sql LIKE '% WHERE %' THEN 'partial '
         ELSE '' END || s.type || ' ' || s.name END,
       CASE s.type WHEN 'table' THEN '' ELSE 'DROP ' || upper(s.type) || ' IF EXISTS "' || s.name || '"; ' END || s.sql, 'DROP ' || upper(s.type) || ' "' || s.name || '"'
FROM sqlite_master s LEFT JOIN sqlite_master t ON s.type NOT IN ('table', 'view') AND t.type IN ('table', 'view') AND t.name = s.tbl_name
WHERE s.sql IS NOT NULL AND s.tbl_name LIKE 'outbox!_%' ESCAPE '!' ORDER BY s.rowid))";
inline constexpr std::string_view kWantedDefinitions =
    "/* read what the schema should be */ SELECT object, part, makes, undoes FROM outbox_definition ORDER BY place";
inline constexpr std::string_view kForgetDefinitions =
    "/* forget definitions */ DELETE FROM outbox_definition";
inline constexpr std::string_view kStoreDefinition =
    "/* store definition */ INSERT INTO outbox_definition (object, part, makes, undoes) VALUES (?1, ?2, ?3, ?4)";

}  // namespace outbox::store::sqlite::query
