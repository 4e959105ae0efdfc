// The statements that rename, reset and drop subscriptions (docs/design/subscriptions.md), as in
// queries.hpp. The functions are in 0009_subscriptions.sql.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct SubscriptionQueries {
  explicit SubscriptionQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // $1 the slot.
  Query slot = of("look at the slot", R"(
SELECT s.slot_type, coalesce(s.plugin, ''), coalesce(s.database, ''), s.database = current_database(), coalesce(s.active_pid, 0)
FROM pg_replication_slots s WHERE s.slot_name = $1::name)");

  // A publication of partitions names those.
  Query publications = of("list publications of the log", R"(
SELECT DISTINCT t.pubname::text FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname
WHERE p.pubinsert AND t.schemaname = '{name}' AND t.tablename ~ '^event(_|$)'::text ORDER BY 1)");

  // $1 the slot, $2 a publication, $3 a snapshot that was taken before. Returns the first event in
  // the snapshot that was not confirmed to the slot, and the number of transactions in the stream
  // whose events were removed from the table. The stream has the lower half of transaction ids; an
  // insert begins with the byte I and the id of its table. Index event_by_xid.
  Query unconfirmed = of("ask what the slot has not confirmed", R"(
WITH stream AS MATERIALIZED (
  SELECT p.xid::text::bigint AS half, bool_or(pg_catalog.get_byte(p.data, 0) = 73 AND
           substring(p.data FROM 2 FOR 4) = pg_catalog.int4send('{schema}.event'::regclass::oid::bigint::bit(32)::int)) AS inserted
  FROM pg_catalog.pg_logical_slot_peek_binary_changes($1::name, NULL, NULL, 'proto_version', '1', 'publication_names', $2::text) p
  GROUP BY p.xid),
known AS (
  SELECT s.inserted, x.xmax + 2147483648 - mod(x.xmax - s.half + 6442450944, 4294967296) AS xid
  FROM stream s CROSS JOIN (SELECT pg_snapshot_xmax($3::pg_snapshot)::text::bigint AS xmax) x)
SELECT min(e.first), count(*) FILTER (WHERE k.inserted AND e.first IS NULL)
FROM known k CROSS JOIN LATERAL (SELECT min(t.seq) AS first FROM {schema}.event t WHERE t.xid = k.xid::text::xid8) e
WHERE k.xid > 0 AND pg_visible_in_snapshot(k.xid::text::xid8, $3::pg_snapshot))");

  // $1 subscription, $2 the seq after which it starts, or null, $3 the snapshot of that place, or
  // null.
  Query restart = of("reset a subscription",
                     "SELECT {schema}.restart_subscription($1::int, $2::bigint, $3::pg_snapshot)");

  // $1 subscription, $2 whether it starts from now on; or $3 a snapshot with $4 a seq up to which
  // it is passed, $5 the sequence's value, read after the snapshot and before this transaction, and
  // $6 the incarnation of both. The ledger begins with $7 to $10: how many events are parked
  // already, and how many were delivered by retries, each with its hash sum.
  Query begin_again = of("write a subscription's first cursor", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, from_position, position, l,
  parked, parked_hash, acked, acked_hash)
SELECT s.id, 'reset', -1, 0, s.config_version, CASE WHEN $2::boolean THEN pg_current_snapshot() ELSE '3:3:'::pg_snapshot END,
       $3::pg_snapshot, coalesce($4::bigint, 0::bigint), $4::bigint, $5::bigint, $7::int, $8::bigint, $9::int, $10::bigint
FROM {schema}.subscription s WHERE s.id = $1::int AND {schema}.same_server($6::bigint, $3::pg_snapshot) RETURNING id)");

  // $1 subscription, $2 the seq after which it starts, or null, $3 whether headers are counted
  // apart. It reads the whole log or, if nothing is sent again, what the oldest cursor does not
  // see.
  Query count_reset = of("count what is sent again", R"(
WITH cursor AS MATERIALIZED (
  SELECT lane.n AS lane, c.s1, c.s2, c.position
  FROM pg_catalog.generate_series(0, 63) lane(n) CROSS JOIN LATERAL {schema}.newest_settlement($1::int, lane.n) c)
SELECT r.aggregate_type, r.event_type, r.headers, count(*) FILTER (WHERE r.passed AND r.again),
       count(*) FILTER (WHERE NOT r.passed AND NOT r.again)
FROM (
  SELECT t.aggregate_type, t.event_type, CASE WHEN $3::boolean THEN t.headers::text ELSE ''::text END AS headers,
         coalesce(t.seq > $2::bigint, false) AS again,
         CASE WHEN c.position IS NULL THEN pg_visible_in_snapshot(t.xid, coalesce(c.s2, c.s1))
              ELSE pg_visible_in_snapshot(t.xid, c.s1) OR pg_visible_in_snapshot(t.xid, c.s2) AND t.seq <= c.position END AS passed
  FROM {schema}.event t JOIN cursor c ON c.lane = t.lane::int
  WHERE t.xid >= CASE WHEN $2::bigint IS NULL THEN (SELECT min(pg_snapshot_xmin(x.s1)::text::bigint) FROM cursor x)
                      ELSE 0::bigint END::text::xid8) r
GROUP BY 1, 2, 3)");

  // $1 subscription, $2 the seq after which it starts, or null. Primary key; event_by_seq for each
  // row.
  Query count_parked = of("count parked events", R"(
SELECT count(*) FILTER (WHERE r.again), count(*) FILTER (WHERE r.again AND r.corrected), count(*) FILTER (WHERE NOT r.again),
       (SELECT count(*) FROM {schema}.parked_end d WHERE d.subscription = $1::int AND d.outcome = 'discarded'
          AND d.seq > $2::bigint AND EXISTS (SELECT FROM {schema}.event e WHERE e.seq = d.seq))
FROM (
  SELECT coalesce(p.seq > $2::bigint, false) AND EXISTS (SELECT FROM {schema}.event e WHERE e.seq = p.seq) AS again,
         EXISTS (SELECT FROM {schema}.parked_end x WHERE x.subscription = $1::int AND x.seq = p.seq AND x.outcome = 'edited') AS corrected
  FROM {schema}.parked p WHERE p.subscription = $1::int) r)");

 private:
  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    return unprepared(what, sql, schema);
  }
};

}  // namespace outbox::store::postgres
