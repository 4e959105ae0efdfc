#include "store/postgres/read_queries.hpp"

#include <string>

namespace outbox::store::postgres {
namespace {

// Column 0..9 of every page. The order is known to reader.cpp.
constexpr std::string_view kColumns =
    "t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, "
    "CASE WHEN octet_length(t.payload) <= {big} THEN t.payload END AS payload, octet_length(t.payload) AS bytes, "
    "t.content_type, t.headers, t.created_at";

/// Puts the columns in their place, and nulls for what the server does not tell.
std::string build(std::string_view text, bool wal_functions) {
  std::string out(text);
  const auto put = [&out](std::string_view name, std::string_view value) {
    for (std::size_t at = out.find(name); at != std::string::npos;
         at = out.find(name, at + value.size())) {
      out.replace(at, name.size(), value);
    }
  };
  put("{columns}", kColumns);
  put("{big}", std::to_string(kBigPayload));
  put("{insert_lsn}", wal_functions ? "pg_current_wal_insert_lsn()" : "NULL::pg_lsn");
  put("{flush_lsn}", wal_functions ? "pg_current_wal_flush_lsn()" : "NULL::pg_lsn");
  return out;
}

// $1 xmax(S1), $2 position (floor or last seq), $3 page size, $4 xip(S1). Index: (seq) for the first stream, partitions
// below xmax(S1) pruned; (xid, seq) for the second, once per transaction that was in progress in S1 and is over now. Late
// rows may be older than the floor, so they are read from 0. One round trip.
constexpr std::string_view kPresent = R"(
WITH r AS (
  (SELECT {columns} FROM {schema}.event t WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, pg_current_snapshot()) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t WHERE t.xid = x.xid AND t.seq > 0
                        ORDER BY t.seq LIMIT $3::bigint) y)
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         (SELECT last_value - (NOT is_called)::int FROM {schema}.event_seq) AS last_value,
         {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         pg_postmaster_start_time() AS server_start) s
LEFT JOIN LATERAL (SELECT * FROM r ORDER BY seq LIMIT $3::bigint) z ON true ORDER BY z.seq)";

// As above with nothing in progress in S1. Same parameters, so that the caller need not care.
constexpr std::string_view kPresentLean = R"(
SELECT z.*, s.* FROM (
  SELECT pg_current_snapshot()::text AS snapshot,
         (SELECT last_value - (NOT is_called)::int FROM {schema}.event_seq) AS last_value,
         {insert_lsn} AS insert_lsn, {flush_lsn} AS flush_lsn,
         pg_postmaster_start_time() AS server_start) s
LEFT JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                   WHERE t.xid >= $1::xid8 AND t.seq > $2::bigint AND cardinality($4::xid8[]) = 0
                   ORDER BY t.seq LIMIT $3::bigint) z ON true ORDER BY z.seq)";

// $1 xmax(S1), $2 position, $3 page size, $4 xip(S1), $5 S2, $6 xmax(S2), $7 the sequence's value taken with S2,
// $8 position of late rows (0 on the first page of a pair). Without the upper bounds the merge would look for a visible
// row in every partition younger than S2. One round trip.
constexpr std::string_view kBounded = R"(
SELECT r.*, pg_postmaster_start_time() AS server_start FROM (
  (SELECT {columns} FROM {schema}.event t
   WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
     AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot) ORDER BY t.seq LIMIT $3::bigint)
  UNION ALL
  SELECT y.* FROM (SELECT xid FROM unnest($4::xid8[]) x(xid)
                   WHERE pg_visible_in_snapshot(xid, $5::pg_snapshot) OFFSET 0) x
    CROSS JOIN LATERAL (SELECT {columns} FROM {schema}.event t
                        WHERE t.xid = x.xid AND t.xid < $6::xid8 AND t.seq > $8::bigint AND t.seq <= $7::bigint
                        ORDER BY t.seq LIMIT $3::bigint) y) r
ORDER BY r.seq LIMIT $3::bigint)";

constexpr std::string_view kBoundedLean = R"(
SELECT {columns}, pg_postmaster_start_time() AS server_start FROM {schema}.event t
WHERE t.xid >= $1::xid8 AND t.xid < $6::xid8 AND t.seq > $2::bigint AND t.seq <= $7::bigint
  AND pg_visible_in_snapshot(t.xid, $5::pg_snapshot) AND cardinality($4::xid8[]) = 0 AND $8::bigint >= 0
ORDER BY t.seq LIMIT $3::bigint)";

// $1 seqs. Index (seq). They are rows of a page that was just read, so visibility was decided there.
constexpr std::string_view kBigPayloads =
    "SELECT t.seq, t.payload FROM {schema}.event t WHERE t.seq = ANY($1::bigint[]) ORDER BY t.seq";

constexpr std::string_view kFlushed = "SELECT {flush_lsn}";

// Transactional, so that it takes an xid and its commit flushes everything before it.
constexpr std::string_view kForceFlush = "SELECT pg_logical_emit_message(true, 'outbox', '')";

// A fresh sequence says last_value = 1, not called.
constexpr std::string_view kSequence =
    "SELECT last_value - (NOT is_called)::int::bigint FROM {schema}.event_seq";

// $1 l. No index. Moves no cursor: lanes = 0.
constexpr std::string_view kMark =
    "INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, l) VALUES (0, 'mark', 0, 0, $1::bigint) "
    "RETURNING w";

// The newest rows of each subscription, and of the readers' marks (subscription 0). Index (subscription, generation, id),
// read backwards.
constexpr std::string_view kMarks = R"(
SELECT m.w, m.l FROM (SELECT id FROM {schema}.subscription UNION ALL SELECT 0) s
CROSS JOIN LATERAL (SELECT w, l FROM {schema}.settlement t WHERE t.subscription = s.id
                    ORDER BY t.generation DESC, t.id DESC LIMIT 200) m
WHERE m.l IS NOT NULL)";

// Without statistics a range of xids looks small, and the planner would sort it for every page: quadratic. Where sorting
// is dear it reads by the index that has the order already.
constexpr std::string_view kSettingsCheck =
    "SELECT current_setting('jit') = 'off' AND current_setting('enable_seqscan') = 'off' "
    "AND current_setting('enable_bitmapscan') = 'off' AND current_setting('enable_sort') = 'off' "
    "AND current_setting('max_parallel_workers_per_gather') = '0' "
    "AND current_setting('plan_cache_mode') = 'force_generic_plan' "
    "AND current_setting('default_transaction_isolation') = 'read committed'";

constexpr std::string_view kSettings =
    "SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), "
    "set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true), "
    "set_config('max_parallel_workers_per_gather', '0', true), set_config('plan_cache_mode', 'force_generic_plan', true)";

constexpr std::string_view kFlushSettings =
    "SELECT set_config('synchronous_commit', 'local', true)";

}  // namespace

ReadQueries make_read_queries(std::string_view schema, bool wal_functions) {
  const auto often = [&](std::string_view what, std::string_view sql) {
    return prepared(what, build(sql, wal_functions), schema);
  };
  const auto rarely = [&](std::string_view what, std::string_view sql) {
    return unprepared(what, build(sql, wal_functions), schema);
  };
  return ReadQueries{
      .present = often("read the head", kPresent),
      .present_lean = often("read the head", kPresentLean),
      .bounded = often("read a page", kBounded),
      .bounded_lean = often("read a page", kBoundedLean),
      .big_payloads = often("read big payloads", kBigPayloads),
      .flushed = often("ask how far the log is flushed", kFlushed),
      .force_flush = often("force the log out", kForceFlush),
      .sequence = rarely("read the sequence", kSequence),
      .mark = rarely("write a mark", kMark),
      .marks = rarely("read the marks", kMarks),
      .settings_check = rarely("check the plan settings", kSettingsCheck),
      .begin = often("begin", "BEGIN ISOLATION LEVEL READ COMMITTED"),
      .settings = often("set the plan settings", kSettings),
      .flush_settings = often("set synchronous_commit", kFlushSettings),
      .commit = often("commit", "COMMIT"),
  };
}

}  // namespace outbox::store::postgres
