// The statements of replays (docs/design/replay.md), as in queries.hpp. The functions are in
// 0007_replay.sql.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct ReplayQueries {
  explicit ReplayQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // $1 a time.
  Query seq_at = of("find events of a time", "SELECT {schema}.seq_at($1::timestamptz)");

  // $1 id (null for a new one), $2 subscription, $3 first seq, $4 last seq, $5 filter, $6 archived,
  // $7 the actor.
  Query start = of("start a replay", R"(
SELECT {schema}.start_replay($1::bigint, $2::int, $3::bigint, $4::bigint, $5::jsonb, $6::boolean, $7::text))");

  // $1 replay, then arrays: seq, id, aggregate_type, aggregate_id, event_type, payload,
  // content_type, headers, created_at, occurred_at. Index event_by_seq.
  Query load = of("copy events of an archive", R"(
INSERT INTO {schema}.replay_event (replay, seq, lane, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers,
  created_at, occurred_at)
SELECT $1::bigint, u.seq, {schema}.lane_of(u.type, u.key, u.id), u.id, u.type, u.key, u.event, u.payload, u.content, u.headers::jsonb,
       u.created, u.occurred
FROM unnest($2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::timestamptz[],
            $11::timestamptz[]) u(seq, id, type, key, event, payload, content, headers, created, occurred)
WHERE NOT EXISTS (SELECT FROM {schema}.event e WHERE e.seq = u.seq)
ON CONFLICT (replay, seq) DO NOTHING RETURNING seq)");

  // $1 to $3: replay, subscription, generation; $4 lanes, $5 position, $6 number sent, then arrays
  // of the skipped events: seq, id, error; $10 how many may be skipped.
  Query settle = often("settle a replay", R"(
SELECT {schema}.settle_replay($1::bigint, $2::int, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint[], $8::uuid[],
                              $9::text[], $10::bigint))");

  // $1 position, $2 last seq, $3 lanes, $4 rows, $5 bytes, $6 with payload, $7 subscription, $8 S1,
  // $9 S2 or null, $10 position in that pair, $11 the greater xmax of the two. The rows are those
  // that live delivery has passed: visible in S1, or in S2 and up to the position. Index
  // event_by_seq; partitions above the snapshots are pruned.
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
  /// It uses no EXISTS, which may read all parked events of the subscription for each page. The
  /// columns are those of event_row.hpp, held, and the number of rows before those beyond the byte
  /// limit were cut off.
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
