// The statements about tasks that people ask (docs/design/tasks.md), as in queries.hpp. The
// functions are in 0008_tasks.sql.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

/// Whether row p of `parked_state` is a task that waits for the time in its header, and that a
/// worker has set aside for that time, so that the header can be read. (An offset that PostgreSQL
/// does not know is left to next_attempt_at.)
inline constexpr std::string_view kScheduled =
    "CASE WHEN p.state = 'retrying' AND p.attempts = 0 AND p.next_attempt_at > clock_timestamp() "
    "AND starts_with(p.aggregate_type, 'outbox-task:'::text) "
    "AND (p.headers ->> 'task-execute-at'::text) ~ '([Zz]|[+-](0[0-9]|1[0-3]):[0-9][0-9])$'::text "
    "THEN (p.headers ->> 'task-execute-at'::text)::timestamptz > clock_timestamp() ELSE false END";

struct TaskQueries {
  explicit TaskQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // These two surround the next statement on connections of applications, so that a task that does
  // not exist makes no notice in their logs.
  Query quiet = of("look at a task", R"(
SELECT set_config('client_min_messages', CASE s.was WHEN 'error'::text THEN s.was ELSE 'warning'::text END, true)
FROM (SELECT set_config('outbox.messages', current_setting('client_min_messages'), true) AS was OFFSET 0) s)");
  Query loud = of("look at a task", R"(
SELECT set_config('client_min_messages', current_setting('outbox.messages'), true))");

  // $1 id. The columns are found by name, since later migrations add some.
  Query status = of("look at a task", "SELECT t.* FROM {schema}.task_status($1::uuid) t");

  // At most $4 events that some lanes of a subscription have not passed: $1 S1, $2 xmin(S1), $3
  // lanes, $5 position, null when the cursor is no pair, $6 xmax(S2), $7 xip(S2), as in
  // Queries::pending_drained and pending_begun; indexes event_by_seq and event_by_xid. The oldest
  // come first, as far as the indexes are in that order. $8 aggregate_type; $9 the type of the
  // subscription, null if the subscription is that of the queue; $10 type and $11 key, null means
  // any; $12 limit. It runs under the plan settings.
  Query pending = of("list pending tasks", std::string(R"(
SELECT e.seq, e.id, e.event_type, e.aggregate_id, e.created_at FROM ()") +
                                               std::string(kAhead) + R"() e
WHERE e.aggregate_type = $8::text AND ($10::text IS NULL OR e.event_type = $10::text)
  AND ($11::text IS NULL OR e.aggregate_id = $11::text)
  AND CASE WHEN $9::text IS NULL THEN e.event_type <> ALL ((SELECT {schema}.types_apart($8::text))::text[])
           ELSE e.event_type = $9::text END
ORDER BY e.seq LIMIT $12::bigint)");

  // $1 to $9 as above. The rows are per type; null stands for events that are no task of these.
  Query count_pending = of("count pending tasks", std::string(R"(
SELECT CASE WHEN e.aggregate_type = $8::text
             AND CASE WHEN $9::text IS NULL THEN e.event_type <> ALL ((SELECT {schema}.types_apart($8::text))::text[])
                      ELSE e.event_type = $9::text END
            THEN e.event_type END, count(*),
       (date_part('epoch'::text, clock_timestamp() - min(e.created_at)) * 1000000::float8)::bigint
FROM ()") + std::string(kAhead) + R"() e GROUP BY 1)");

  // $1 subscriptions, $2 rows of each. Primary key. A row has some hundred bytes beside its
  // payload; at most max_waiting rows are retried or wait.
  Query count_rows = of("count tasks", std::string(R"(
SELECT r.subscription, r.event_type, CASE WHEN r.scheduled THEN 'scheduled'::text ELSE r.state END, count(*),
       coalesce((max(date_part('epoch'::text, clock_timestamp() - r.next_attempt_at)) FILTER (WHERE r.state = 'retrying')
                 * 1000000::float8)::bigint, 0::bigint)
FROM pg_catalog.unnest($1::bigint[]) s(id) CROSS JOIN LATERAL (
  SELECT p.subscription, p.event_type, p.state, p.next_attempt_at, )") +
                                           std::string(kScheduled) + R"( AS scheduled
  FROM {schema}.parked_state p WHERE p.subscription = s.id::int LIMIT $2::bigint) r
GROUP BY 1, 2, 3)");

  // $1 subscriptions. Few rows; index parked_key_worker.
  Query workers = of("list workers", R"(
SELECT w.name, (date_part('epoch'::text, clock_timestamp() - w.beat_at) * 1000000::float8)::bigint,
       (SELECT count(*) FROM {schema}.parked_key k
        WHERE k.subscription = ANY ($1::bigint[]) AND k.worker = w.id), w.types::text
FROM {schema}.worker w WHERE w.beat_at > clock_timestamp() - interval '1 hour' ORDER BY w.name, w.id)");

 private:
  static constexpr std::string_view kAhead = R"(
  (SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.created_at FROM {schema}.event t
   WHERE $5::bigint IS NOT NULL AND t.xid >= $2::xid8 AND t.seq > $5::bigint
     AND NOT pg_visible_in_snapshot(t.xid, $1::pg_snapshot) AND ($3::bigint >> t.lane::int) & 1::bigint = 1
   ORDER BY t.seq LIMIT $4::bigint)
  UNION ALL
  SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.created_at FROM {schema}.event t
  WHERE t.xid >= $6::xid8 AND ($5::bigint IS NULL OR t.seq <= $5::bigint) AND ($3::bigint >> t.lane::int) & 1::bigint = 1
  UNION ALL
  SELECT y.* FROM pg_catalog.unnest($7::xid8[]) x(xid) CROSS JOIN LATERAL
    (SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.created_at FROM {schema}.event t
     WHERE t.xid = x.xid AND ($5::bigint IS NULL OR t.seq <= $5::bigint) AND ($3::bigint >> t.lane::int) & 1::bigint = 1 OFFSET 0) y
  LIMIT $4::bigint)";

  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    return unprepared(what, sql, schema);
  }
};

}  // namespace outbox::store::postgres
