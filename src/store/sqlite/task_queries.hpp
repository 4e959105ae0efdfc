// The statements about tasks for people (docs/design/tasks.md), as in queries.hpp.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

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

// ?1 cursor, ?2 events that are looked at, ?3 aggregate_type, ?4 type and ?5 key, each possibly empty, ?6 limit, ?7 the type of the
// subscription, empty: it is that of the queue. By the rowid.
inline constexpr std::string_view kPendingTasks =
    "/* list pending tasks */ SELECT seq, id, event_type, aggregate_id, created_at FROM"
    " (SELECT seq, id, aggregate_type, event_type, aggregate_id, created_at FROM outbox_event WHERE seq > ?1 ORDER BY seq LIMIT ?2)"
    " WHERE aggregate_type = ?3 AND (?4 = '' OR event_type = ?4) AND (?5 = '' OR aggregate_id = ?5) AND"
    " iif(?7 <> '', event_type = ?7, event_type NOT IN (SELECT a.event_type FROM outbox_type_apart a WHERE a.aggregate_type = ?3))"
    " ORDER BY seq LIMIT ?6";

// ?1 cursor, ?2 events that are looked at, ?3 aggregate_type, ?4 as ?7 before. By the rowid. Per type, null: what is no task of these.
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
// Of the last hour. Few rows; index outbox_parked_key_worker, once for each subscription.
inline constexpr std::string_view kWorkers =
    "/* list workers */ SELECT w.name, outbox_now() - w.beat_at, (SELECT count(*) FROM outbox_subscription s CROSS JOIN"
    " outbox_parked_key k INDEXED BY outbox_parked_key_worker ON k.subscription = s.id AND k.worker = w.id), w.types"
    " FROM outbox_worker w WHERE w.beat_at > outbox_now() - 3600000000 ORDER BY w.name, w.id";

}  // namespace outbox::store::sqlite::query
