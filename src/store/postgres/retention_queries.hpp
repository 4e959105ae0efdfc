// The statements of retention (docs/design/retention.md), as in queries.hpp. The functions are in
// 0006_retention.sql.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct RetentionQueries {
  explicit RetentionQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // $1 the owner's id, $2 lease in ms. One row of meta.
  Query hold = of("become the one that removes history",
                  "SELECT {schema}.hold_pruning($1::uuid, $2::bigint::float8 * interval '1 ms')");

  // $1 the owner's id.
  Query release = of("stop removing history", "SELECT {schema}.release_pruning($1::uuid)");

  // It reads the catalog: a few dozen rows.
  Query partitions =
      of("list partitions", "SELECT name, first_xid, end_xid, bytes FROM {schema}.partitions()");

  // How far each subscription is done, once for all lanes at one place; subscription 0 stands for
  // the present. Index settlement_newest, once per owner and for each lane that this does not show.
  Query cursors = of("read the cursors", R"(
SELECT 0, pg_current_snapshot()::text
UNION ALL SELECT DISTINCT c.subscription, c.done::text FROM {schema}.lane_cursors() c)");

  // $1 and $2: from and before which xid, $3 age in ms. Returns the newest event of a partition,
  // and whether it is younger than $3. Index event_by_seq of one partition.
  Query newest = of("read a partition's newest event", R"(
SELECT t.seq, t.created_at, t.created_at > clock_timestamp() - $3::bigint::float8 * interval '1 ms'
FROM {schema}.event t WHERE t.xid >= $1::xid8 AND t.xid < $2::xid8 ORDER BY t.seq DESC LIMIT 1)");

  // $1 age in ms.
  Query newest_default = of("read the default partition's newest event", R"(
SELECT t.seq, t.created_at, t.created_at > clock_timestamp() - $1::bigint::float8 * interval '1 ms'
FROM ONLY {schema}.event_default t ORDER BY t.seq DESC LIMIT 1)");

  // $1 xmax, $2 xip of a cursor. Returns whether the cursor has not passed the default partition.
  // The partition's index (xid, seq).
  Query holds_default = of("look at the default partition", R"(
SELECT EXISTS (SELECT FROM ONLY {schema}.event_default t WHERE t.xid >= $1::xid8)
    OR EXISTS (SELECT FROM ONLY {schema}.event_default t WHERE t.xid = ANY($2::xid8[])))");

  // $1 and $2: from and before which xid; null means the default partition. Returns the
  // subscriptions with a replay that reads there.
  Query replays =
      of("look for replays", "SELECT {schema}.replay_reads($1::text::xid8, $2::text::xid8)");

  // The first cursors of each subscription. Events that are visible in such a cursor, or up to the
  // place in a pair, never counted. Index settlement_resets.
  Query baselines = of("read the first cursors", R"(
SELECT s.id, t.s1::text, t.s2::text, coalesce(t.position, 0::bigint), coalesce(t.lanes, -1::bigint) FROM {schema}.subscription s
LEFT JOIN {schema}.settlement t ON t.subscription = s.id AND t.kind = 'reset')");

  // $1 and $2: from and before which xid, $3 after which seq, $4 rows, $5 with payload and headers.
  // The columns are those of event_row.hpp, xid, lane. Index event_by_seq of one partition.
  Query events = of("read events to be removed", std::string(kEvents) + R"(
FROM {schema}.event t WHERE t.xid >= $1::xid8 AND t.xid < $2::xid8 AND t.seq > $3::bigint ORDER BY t.seq LIMIT $4::bigint)");

  // The same for the default partition; $1 and $2 do not matter.
  Query default_events = of("read events to be removed", std::string(kEvents) + R"(
FROM ONLY {schema}.event_default t WHERE t.seq > $3::bigint AND $1::xid8 IS NOT NULL AND $2::xid8 IS NOT NULL
ORDER BY t.seq LIMIT $4::bigint)");

  // $1 and $2: from and before which xid, then arrays: subscription, count, hash; $6 first seq, $7
  // last seq.
  Query remove = of("remove a partition", R"(
SELECT {schema}.remove_partition($1::xid8, $2::xid8, $3::bigint[]::int[], $4::bigint[], $5::bigint[], $6::bigint, $7::bigint))");

  // $1 the number of its rows, then as above from $3 on.
  Query remove_default = of("empty the default partition", R"(
SELECT {schema}.remove_default($1::bigint, $2::bigint[]::int[], $3::bigint[], $4::bigint[], $5::bigint, $6::bigint))");

  Query drop_emptied = of("drop partitions", "SELECT {schema}.drop_emptied()");

  // The least xid in the log. Index event_by_xid, one row per partition.
  Query oldest =
      of("read the oldest event", "SELECT t.xid FROM {schema}.event t ORDER BY t.xid LIMIT 1");

  // Row 0 stands for the readers' marks.
  Query subscriptions =
      of("list subscriptions", "SELECT 0 UNION ALL SELECT s.id FROM {schema}.subscription s");

  // $1 subscription, $2 age in ms, $3 the least xid in the log or null, $4 and $5 the generation
  // and id of the row to go on after, $6 rows, $7 whether an earlier generation stopped.
  Query prune_settlements = of("remove settlements", R"(
SELECT p.removed, p.generation, p.id, p.blocked
FROM {schema}.prune_settlements($1::int, $2::bigint::float8 * interval '1 ms', $3::xid8, $4::bigint, $5::bigint, $6::int,
                                $7::boolean) p)");

  // $1 age in ms, $2 rows.
  Query prune_ends =
      of("remove ends of parked events",
         "SELECT {schema}.prune_ends($1::bigint::float8 * interval '1 ms', $2::int)");

  // $1 rows. Removes what is left of dropped subscriptions.
  Query prune_dropped =
      of("remove dropped subscriptions", "SELECT {schema}.prune_dropped($1::int)");

  // $1 rows. Removes copies of archived events whose replay is done or does not exist any more.
  Query prune_replayed = of("remove replayed events", R"(
DELETE FROM {schema}.replay_event WHERE ctid = ANY (ARRAY(
  SELECT e.ctid FROM {schema}.replay_event e
  WHERE NOT EXISTS (SELECT FROM {schema}.replay r WHERE r.id = e.replay AND r.state <> 'done') LIMIT $1::int))
RETURNING seq)");

  // The next three compare with the time of the statement: with clock_timestamp(), which changes
  // meanwhile, PostgreSQL would read the whole index.

  // $1 age in ms, $2 rows. Index task_end_at. The end of a task that was replaced stays until the
  // task is neither in the log, whose oldest event is younger by then, nor set aside (index
  // parked_id).
  Query prune_task_ends = of("remove ends of tasks", R"(
DELETE FROM {schema}.task_end WHERE ctid = ANY (ARRAY(
  SELECT e.ctid FROM {schema}.task_end e
  WHERE e.at < statement_timestamp() - $1::bigint::float8 * interval '1 ms'
    AND (NOT e.waits OR e.at < coalesce((SELECT v.created_at FROM {schema}.event v ORDER BY v.seq LIMIT 1), 'infinity'::timestamptz)
                               - interval '1 hour'
                        AND NOT EXISTS (SELECT FROM {schema}.parked p WHERE p.id = e.id))
  ORDER BY e.at LIMIT $2::int))
RETURNING 1)");
  // $1 age in ms, $2 rows. For each consumer the primary key and index inbox_received.
  Query prune_inbox = of("remove old messages of the inbox", R"(
DELETE FROM {schema}.inbox WHERE ctid = ANY (ARRAY(
  WITH RECURSIVE c(consumer) AS (
    (SELECT i.consumer FROM {schema}.inbox i ORDER BY i.consumer LIMIT 1) UNION ALL
    SELECT (SELECT i.consumer FROM {schema}.inbox i WHERE i.consumer > c.consumer ORDER BY i.consumer LIMIT 1) FROM c
    WHERE c.consumer IS NOT NULL)
  SELECT o.ctid FROM c CROSS JOIN LATERAL (
    SELECT i.ctid FROM {schema}.inbox i
    WHERE i.consumer = c.consumer AND i.received_at < statement_timestamp() - $1::bigint::float8 * interval '1 ms'
    ORDER BY i.received_at LIMIT $2::int) o
  LIMIT $2::int))
RETURNING 1)");

  // The same. Index inbox_key_at.
  Query prune_inbox_keys = of("remove old keys of the inbox", R"(
DELETE FROM {schema}.inbox_key WHERE ctid = ANY (ARRAY(
  SELECT k.ctid FROM {schema}.inbox_key k WHERE k.at < statement_timestamp() - $1::bigint::float8 * interval '1 ms'
  ORDER BY k.at LIMIT $2::int))
RETURNING 1)");

  // $1 age in ms, $2 rows. The function, in 0009_subscriptions.sql, uses index audit_at.
  Query prune_audit =
      of("remove old rows of the audit",
         "SELECT {schema}.prune_audit($1::bigint::float8 * interval '1 ms', $2::int)");

 private:
  static constexpr std::string_view kEvents =
      "SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, CASE WHEN $5::boolean THEN t.payload END AS payload, "
      "0 AS bytes, t.content_type, CASE WHEN $5::boolean THEN t.headers END AS headers, t.created_at, t.occurred_at, t.xid, t.lane ";

  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    return unprepared(what, sql, schema);
  }
};

}  // namespace outbox::store::postgres
