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

// ---- parked events (docs/design/parking.md)

// ?1 subscription, ?2 seq, ?3 state, ?4 attempts, ?5 due, ?6 error, ?7 now. Both tables by their primary key.
inline constexpr std::string_view kPark =
    "/* park */ INSERT INTO outbox_parked (subscription, seq, id, aggregate_type, aggregate_id, event_type, payload,"
    " content_type, headers, created_at, occurred_at, state, attempts, next_attempt_at, error, parked_at)"
    " SELECT ?1, seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at, occurred_at,"
    " ?3, ?4, ?5, ?6, ?7 FROM outbox_event WHERE seq = ?2";
inline constexpr std::string_view kParkedKey =
    "/* read parked key */ SELECT aggregate_type, aggregate_id FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
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
inline constexpr std::string_view kUnsettledKeys =
    "/* list parked keys */ SELECT DISTINCT aggregate_type, aggregate_id FROM outbox_parked"
    " WHERE subscription = ?1 AND state <> 'dead' AND aggregate_id <> ''";
// ?2: dead events block.
inline constexpr std::string_view kBlockedKeys =
    "/* list blocked keys */ SELECT aggregate_type, aggregate_id, count(*) FROM outbox_parked"
    " WHERE subscription = ?1 AND (state <> 'dead' OR ?2) GROUP BY aggregate_type, aggregate_id";
// ?1 subscription, ?2 now, ?3 keys, ?4 events behind each. The rows that are due by outbox_parked_due, what waits behind each by
// outbox_parked_key, up to a dead event that blocks.
inline constexpr std::string_view kDueParked =
    "/* read parked */ WITH head AS MATERIALIZED (SELECT seq, aggregate_type, aggregate_id, next_attempt_at FROM outbox_parked"
    " WHERE subscription = ?1 AND state = 'retrying' AND next_attempt_at <= ?2 ORDER BY next_attempt_at, seq LIMIT ?3),"
    " chain AS (SELECT head.next_attempt_at AS due, head.seq AS head, p.seq,"
    " row_number() OVER (PARTITION BY head.seq ORDER BY p.seq) AS place"
    " FROM head JOIN outbox_parked p ON p.subscription = ?1 AND p.aggregate_type = head.aggregate_type"
    " AND p.aggregate_id = head.aggregate_id AND (p.seq = head.seq"
    " OR p.seq > head.seq AND p.state = 'waiting' AND head.aggregate_id <> ''"
    " AND NOT ((SELECT json_extract(s.config, '$.on_dead') = 'block' FROM outbox_subscription s WHERE s.id = ?1)"
    " AND EXISTS (SELECT 1 FROM outbox_parked d WHERE d.subscription = ?1 AND d.aggregate_type = head.aggregate_type"
    " AND d.aggregate_id = head.aggregate_id AND d.state = 'dead' AND d.seq > head.seq AND d.seq < p.seq))))"
    " SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type, t.headers, t.created_at,"
    " t.occurred_at, t.state, t.attempts FROM chain JOIN outbox_parked t ON t.subscription = ?1 AND t.seq = chain.seq"
    " WHERE chain.place <= ?4 + 1 ORDER BY chain.due, chain.head, t.seq";
inline constexpr std::string_view kNextParked =
    "/* read next parked */ SELECT next_attempt_at FROM outbox_parked WHERE subscription = ?1 AND state = 'retrying'"
    " ORDER BY next_attempt_at LIMIT 1";
inline constexpr std::string_view kRemoveParked =
    "/* remove parked */ DELETE FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// Before it is removed. ?3 outcome, ?4 attempts, ?5 actor, ?6 reason, ?7 now.
inline constexpr std::string_view kEndParked =
    "/* end parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at)"
    " SELECT subscription, seq, id, ?3, ?4, ?5, ?6, ?7 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
// ?3 state, ?4 attempts, ?5 due, ?6 error. Not one that a person let rest meanwhile.
inline constexpr std::string_view kReschedule =
    "/* reschedule parked */ UPDATE outbox_parked SET state = ?3, attempts = ?4, next_attempt_at = ?5, error = ?6"
    " WHERE subscription = ?1 AND seq = ?2 AND state <> 'dead'";
// ?1 subscription, ?2 generation, ?3 count, ?4 hash, ?5 now. It adds to the newest row of its kind: outbox_settlement_retries.
inline constexpr std::string_view kAppendRetry =
    "/* settle parked */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, acked, acked_hash, at, acked_total)"
    " SELECT ?1, 'retry', ?2, 0, 0, 0, ?3, ?4, ?5, ?3 + coalesce((SELECT r.acked_total FROM outbox_settlement r"
    " WHERE r.subscription = ?1 AND r.kind = 'retry' ORDER BY r.id DESC LIMIT 1), 0)";

// What people see and do. ?1 subscription or -1, ?2 state, ?3 and ?4 the key, ?5 part of the error, ?6 id as a UUID, each of
// them possibly empty, ?7 seq or -1, ?8 limit, ?9 with payload and headers. Primary key.
inline constexpr std::string_view kListParked =
    "/* list parked */ SELECT subscription, seq, id, aggregate_type, aggregate_id, event_type, state, attempts, error, parked_at,"
    " next_attempt_at, CASE WHEN ?9 THEN payload END, content_type, CASE WHEN ?9 THEN headers END FROM outbox_parked"
    " WHERE (?1 = -1 OR subscription = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR aggregate_type = ?3)"
    " AND (?4 = '' OR aggregate_id = ?4) AND (?5 = '' OR instr(error, ?5) > 0)"
    " AND (?6 = '' OR lower(hex(id)) = replace(?6, '-', '')) AND (?7 = -1 OR seq = ?7)"
    " ORDER BY subscription, seq LIMIT ?8";
inline constexpr std::string_view kCountParked =
    "/* count parked */ SELECT count(*) FILTER (WHERE state = 'retrying'), count(*) FILTER (WHERE state = 'waiting'),"
    " count(*) FILTER (WHERE state = 'dead') FROM outbox_parked WHERE subscription = ?1";
// ?3 now, ?4 keep the attempts.
inline constexpr std::string_view kRetryParked =
    "/* retry parked */ UPDATE outbox_parked SET state = CASE state WHEN 'dead' THEN 'retrying' ELSE state END,"
    " next_attempt_at = ?3, attempts = CASE WHEN ?4 THEN attempts ELSE 0 END WHERE subscription = ?1 AND seq = ?2";
// Before it is removed. ?3 who, ?4 why, ?5 now.
inline constexpr std::string_view kDiscardParked =
    "/* discard parked */ INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, actor, reason, at)"
    " SELECT subscription, seq, id, 'discarded', attempts, ?3, ?4, ?5 FROM outbox_parked WHERE subscription = ?1 AND seq = ?2";
inline constexpr std::string_view kNoteParkedChange =
    "/* note parked change */ UPDATE outbox_subscription SET parked_version = parked_version + 1 WHERE id = ?1";

// ---- membership: outbox_relay has as many rows as there are relays at this file

inline constexpr std::string_view kOwner =
    "/* read owner */ SELECT id, name, generation, boot_id, pid_ns, pid, started, beat, lease_ms FROM outbox_relay"
    " WHERE owner = 1";
inline constexpr std::string_view kRaiseGeneration =
    "/* raise generation */ UPDATE outbox_meta SET generation = generation + 1 WHERE one = 1";
inline constexpr std::string_view kGeneration =
    "/* read generation */ SELECT generation FROM outbox_meta WHERE one = 1";
inline constexpr std::string_view kDropOwner =
    "/* drop owner */ DELETE FROM outbox_relay WHERE owner = 1 AND id <> ?1";
// When only the time has changed: one page of the WAL instead of three, every few seconds.
inline constexpr std::string_view kBeat =
    "/* beat */ UPDATE outbox_relay SET beat = ?4, lease_ms = ?5, heartbeat_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    " WHERE id = ?1 AND owner = ?2 AND generation = ?3";
inline constexpr std::string_view kWriteRelay =
    "/* write relay */ INSERT OR REPLACE INTO outbox_relay"
    " (id, name, owner, generation, boot_id, pid_ns, pid, started, beat, lease_ms, heartbeat_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";
// The new owner's first row of every subscription: rows of a lower generation no longer count. Keeps the cursor.
inline constexpr std::string_view kClaim =
    "/* claim */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at, acked_total, filtered_total)"
    " SELECT s.id, 'claim', ?1, s.config_version, c.position, c.position, ?2, c.acked_total, c.filtered_total"
    " FROM outbox_subscription s JOIN outbox_settlement c ON c.id ="
    " (SELECT t.id FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1)";
inline constexpr std::string_view kLeave = "/* leave */ DELETE FROM outbox_relay WHERE id = ?1";
// Relays that waited and died without leaving: of another boot, or silent for ten leases.
inline constexpr std::string_view kForgetRelays =
    "/* forget relays */ DELETE FROM outbox_relay WHERE owner = 0 AND (boot_id <> ?1 OR beat + lease_ms * 10000 < ?2)";
inline constexpr std::string_view kRelays =
    "/* list relays */ SELECT id, name, generation, boot_id, pid_ns, pid, started, beat, lease_ms, owner, heartbeat_at"
    " FROM outbox_relay ORDER BY owner DESC, heartbeat_at";

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
    " (SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind IN ('settle', 'claim', 'reset')"
    " ORDER BY t.generation DESC, t.id DESC LIMIT 1),"
    " (SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'reset'"
    " ORDER BY t.generation, t.id LIMIT 1) FROM outbox_subscription s";
inline constexpr std::string_view kFirstFrom =
    "/* read first event */ SELECT seq, created_at FROM outbox_event WHERE seq >= ?1 ORDER BY seq LIMIT 1";
inline constexpr std::string_view kLastBefore =
    "/* read last event */ SELECT seq, created_at FROM outbox_event WHERE seq < ?1 ORDER BY seq DESC LIMIT 1";
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
    " trouble, trouble_since, parked_version FROM outbox_subscription ORDER BY name";
inline constexpr std::string_view kSubscriptionByName =
    "/* read subscription */ SELECT id, config FROM outbox_subscription WHERE name = ?1";
inline constexpr std::string_view kCreateSubscription =
    "/* create subscription */ INSERT INTO outbox_subscription (name, config) VALUES (?1, ?2) RETURNING id";
inline constexpr std::string_view kChangeSubscription =
    "/* change subscription */ UPDATE outbox_subscription SET config = ?2, config_version = config_version + 1,"
    " changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1";
inline constexpr std::string_view kFirstSettlement =
    "/* write first cursor */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at)"
    " VALUES (?1, 'reset', (SELECT generation FROM outbox_meta WHERE one = 1), 1, ?2, ?2, ?3)";
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
    " WHERE id = ?1 AND ?2 = (SELECT generation FROM outbox_meta WHERE one = 1)";
inline constexpr std::string_view kReportTrouble =
    "/* report trouble */ UPDATE outbox_subscription SET trouble = ?3, trouble_since = CASE WHEN ?3 = '' THEN ''"
    " WHEN trouble = '' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now') ELSE trouble_since END"
    " WHERE id = ?1 AND ?2 = (SELECT generation FROM outbox_meta WHERE one = 1)";

}  // namespace outbox::store::sqlite::query
