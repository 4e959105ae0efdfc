// The statements of replays (docs/design/replay.md), as in queries.hpp.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// ?1 subscription, ?2 first seq, ?3 last seq, ?4 filter, ?5 archived, ?6 state, ?7 who, ?8 now.
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
// ?1 rows. Copies of archived events whose replay is done, or was given up. The oldest replay first.
inline constexpr std::string_view kRemoveReplayed =
    "/* remove replayed events */ DELETE FROM outbox_replay_event WHERE (replay, seq) IN"
    " (SELECT e.replay, e.seq FROM outbox_replay_event e"
    " WHERE NOT EXISTS (SELECT 1 FROM outbox_replay r WHERE r.id = e.replay AND r.state <> 'done') LIMIT ?1)";
// ?1 replay, ?2 position, ?3 sent, ?4 now. The last event ends it, also while it is being
// stopped: there is nothing left of it to resume.
inline constexpr std::string_view kSettleReplay =
    "/* settle replay */ UPDATE outbox_replay SET position = max(position, ?2), sent = sent + ?3,"
    " ended_at = CASE WHEN ?2 >= last_seq THEN ?4 ELSE ended_at END, reason = CASE WHEN ?2 >= last_seq THEN '' ELSE reason END,"
    " state = CASE WHEN ?2 >= last_seq THEN 'done' ELSE state END WHERE id = ?1";
inline constexpr std::string_view kSkipReplayed =
    "/* settle replay */ INSERT OR IGNORE INTO outbox_replay_skip (replay, seq, id, aggregate_type, aggregate_id, error)"
    " SELECT ?1, ?2, CAST(?3 AS BLOB), e.aggregate_type, e.aggregate_id, ?4 FROM ("
    " SELECT aggregate_type, aggregate_id FROM outbox_replay_event WHERE replay = ?1 AND seq = ?2"
    " UNION ALL SELECT aggregate_type, aggregate_id FROM outbox_event WHERE seq = ?2) e LIMIT 1";
// ?1 replay, ?2 how many may be skipped, ?3 why it stops, ?4 now.
inline constexpr std::string_view kStopSkipping =
    "/* settle replay */ UPDATE outbox_replay SET state = 'stopped', reason = ?3, ended_at = ?4"
    " WHERE id = ?1 AND state = 'running' AND (SELECT count(*) FROM outbox_replay_skip k WHERE k.replay = ?1) >= ?2";
// ?1 position, ?2 last seq, ?3 rows, ?4 subscription. By the rowid. Held: parked now, or discarded or corrected by a person.
inline constexpr std::string_view kReplayPage =
    "/* read a page for a replay */ SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type,"
    " t.headers, t.created_at, t.occurred_at,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?4 AND p.seq = t.seq)"
    " OR EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?4 AND x.seq = t.seq AND x.outcome <> 'delivered')"
    " FROM outbox_event t WHERE t.seq > ?1 AND t.seq <= ?2 ORDER BY t.seq LIMIT ?3";
// The same of an archive: ?5 replay. Primary key.
inline constexpr std::string_view kArchivedPage =
    "/* read a page for a replay */ SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type,"
    " t.headers, t.created_at, t.occurred_at,"
    " EXISTS (SELECT 1 FROM outbox_parked p WHERE p.subscription = ?4 AND p.seq = t.seq)"
    " OR EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?4 AND x.seq = t.seq AND x.outcome <> 'delivered')"
    " FROM outbox_replay_event t WHERE t.replay = ?5 AND t.seq > ?1 AND t.seq <= ?2 ORDER BY t.seq LIMIT ?3";

}  // namespace outbox::store::sqlite::query
