// The statements of replays (docs/design/replay.md), as in queries.hpp. The functions are in 0007_replay.sql.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct ReplayQueries {
  explicit ReplayQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // The first event that is certainly there, by event_by_seq; the newest one.
  Query retained = of("ask what is retained", R"(
SELECT f.seq, f.seq > 1::bigint,
       (SELECT e.created_at FROM {schema}.event e WHERE e.seq >= f.seq ORDER BY e.seq LIMIT 1),
       coalesce((SELECT e.seq FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1), 0::bigint)
FROM (SELECT {schema}.retained_from() AS seq) f)");

  // $1 a time.
  Query seq_at = of("find events of a time", "SELECT {schema}.seq_at($1::timestamptz)");

  // $1 id (null: a new one), $2 subscription, $3 first seq, $4 last seq, $5 filter, $6 archived, $7 who.
  Query start = of("start a replay", R"(
SELECT {schema}.start_replay($1::bigint, $2::int, $3::bigint, $4::bigint, $5::jsonb, $6::boolean, $7::text))");

  // $1 replay, then arrays: seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at,
  // occurred_at. Index event_by_seq.
  Query load = of("copy events of an archive", R"(
INSERT INTO {schema}.replay_event (replay, seq, lane, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,
  created_at, occurred_at)
SELECT $1::bigint, u.seq, {schema}.lane_of(u.type, u.key, u.id), u.id, u.type, u.key, u.event, u.payload, u.content, u.headers::jsonb,
       u.created, u.occurred
FROM unnest($2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::timestamptz[],
            $11::timestamptz[]) u(seq, id, type, key, event, payload, content, headers, created, occurred)
WHERE NOT EXISTS (SELECT FROM {schema}.event e WHERE e.seq = u.seq)
ON CONFLICT (replay, seq) DO NOTHING RETURNING seq)");

  // $1 replay.
  Query loaded = of("start a replay", R"(
UPDATE {schema}.replay SET state = 'running' WHERE id = $1::bigint AND state = 'loading')");

  // $1 replay, $2 why.
  Query stop = of("stop a replay", R"(
UPDATE {schema}.replay SET state = 'stopped', reason = $2::text, ended_at = clock_timestamp()
WHERE id = $1::bigint AND state = 'running' RETURNING id)");

  // $1 replay. One whose events are not all there is not kept.
  Query drop =
      of("remove a replay",
         "DELETE FROM {schema}.replay WHERE id = $1::bigint AND state = 'loading' RETURNING id");

  // $1 id (null: all), $2 subscription (0: all), $3 limit. A replay has some thousands of rows of progress at most; they are added up.
  Query list = of("list replays", R"(
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
      ORDER BY a.id DESC LIMIT $3::bigint) r ORDER BY r.id DESC)");

  // $1 replay, $2 limit. Primary key.
  Query skips = of("read what a replay skipped", R"(
SELECT seq, id, error, aggregate_type, aggregate_id FROM {schema}.replay_skip WHERE replay = $1::bigint ORDER BY seq LIMIT $2::bigint)");

  // $1 replay. Index replay_progress_replay.
  Query places = of("read how far a replay is", R"(
SELECT lanes, max(position) FROM {schema}.replay_progress WHERE replay = $1::bigint GROUP BY lanes)");

  // $1 to $3: replay, subscription, generation; $4 lanes, $5 position, $6 sent, then arrays of what was skipped: seq, id, error; $10 how many
  // may be skipped.
  Query settle = often("settle a replay", R"(
SELECT {schema}.settle_replay($1::bigint, $2::int, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint[], $8::uuid[],
                              $9::text[], $10::bigint))");

  // $1 position, $2 last seq, $3 lanes, $4 rows, $5 bytes, $6 with payload, $7 subscription, $8 S1, $9 S2 or null, $10 position in that
  // pair, $11 the greater xmax of the two. What live delivery has passed: visible in S1, or in S2 and up to the position. Index
  // event_by_seq; partitions above the snapshots pruned.
  Query page = often("read a page for a replay", paged(R"(
SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type, t.headers, t.created_at, t.occurred_at
FROM {schema}.event t
WHERE t.seq > $1::bigint AND t.seq <= $2::bigint AND ($3::bigint >> t.lane::int) & 1::bigint = 1 AND t.xid < $11::xid8
  AND (pg_visible_in_snapshot(t.xid, $8::pg_snapshot)
       OR $9::pg_snapshot IS NOT NULL AND t.seq <= $10::bigint AND pg_visible_in_snapshot(t.xid, $9::pg_snapshot))
ORDER BY t.seq LIMIT $4::bigint)"));

  // $1 to $7 as above, $8 replay. Primary key.
  Query archived_page = often("read a page for a replay", paged(R"(
SELECT t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, t.payload, t.content_type, t.headers, t.created_at, t.occurred_at
FROM {schema}.replay_event t
WHERE t.replay = $8::bigint AND t.seq > $1::bigint AND t.seq <= $2::bigint AND ($3::bigint >> t.lane::int) & 1::bigint = 1
ORDER BY t.seq LIMIT $4::bigint)"));

 private:
  /// No EXISTS: that may read all parked events of the subscription for each page.
  /// Columns: those of event_row.hpp, held, how many rows there were before those beyond the bytes were cut off.
  [[nodiscard]] static std::string paged(std::string_view rows) {
    return R"(
SELECT c.seq, c.id, c.aggregate_type, c.aggregate_id, c.event_type, CASE WHEN $6::boolean THEN c.payload END,
       c.bytes, c.content_type, c.headers, c.created_at, c.occurred_at,
       coalesce((SELECT true FROM {schema}.parked p WHERE p.subscription = $7::int AND p.seq = c.seq),
                (SELECT true FROM {schema}.parked_end x
                 WHERE x.subscription = $7::int AND x.seq = c.seq AND x.outcome <> 'delivered' LIMIT 1), false), c.found
FROM (
  SELECT r.*, octet_length(r.payload::bytea) + octet_length(r.headers::text) AS bytes, count(*) OVER () AS found,
         sum((octet_length(r.payload::bytea) + octet_length(r.headers::text))::bigint) OVER (ORDER BY r.seq) AS total,
         row_number() OVER (ORDER BY r.seq) AS n
  FROM ()" +
           std::string(rows) +
           R"() r) c
WHERE c.total <= $5::bigint::numeric OR c.n = 1::bigint ORDER BY c.seq)";
  }

  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    return unprepared(what, sql, schema);
  }
  [[nodiscard]] Query often(std::string_view what, std::string_view sql) const {
    return prepared(what, sql, schema);
  }
};

}  // namespace outbox::store::postgres
