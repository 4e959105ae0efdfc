#include "store/postgres/queries.hpp"

#include <cstdint>

#include "pg/identifier.hpp"
#include "store/postgres/task_queries.hpp"

namespace outbox::store::postgres {
namespace {

// It does not read last_value of the sequence itself: while nextval() runs, the sequence's tuple
// briefly holds the value that nextval() logs in advance, up to 32 too high, and a mark that is too
// high loses events. This function takes the lock. It is null for a new sequence.
constexpr std::string_view kSequenceValue =
    "coalesce(pg_sequence_last_value('{schema}.event_seq'::regclass), 0::bigint)";

// Identifies the server, and since when it runs (docs/design/reading.md, "The incarnation"). Null
// if the incarnation has no name yet.
constexpr std::string_view kIncarnation =
    "(SELECT i.id # i.tableoid::bigint # (date_part('epoch'::text, pg_postmaster_start_time()) * 1000000::float8)::bigint "
    "FROM {schema}.incarnation i WHERE i.one)";

// Columns 0 to 10 of every page, in the order that reader.cpp knows. `bytes` is the size of the
// payload, and of the headers where they are left out; the reader measures by itself what is not
// left out.
constexpr std::string_view kColumns =
    "t.seq, t.id, t.aggregate_type, t.aggregate_id, t.event_type, "
    "CASE WHEN octet_length(t.payload::bytea) <= {big} THEN t.payload END AS payload, "
    "octet_length(t.payload::bytea) + CASE WHEN {small_headers} THEN 0 ELSE octet_length(t.headers::text) END AS bytes, "
    "t.content_type, CASE WHEN {small_headers} THEN t.headers END AS headers, t.created_at, "
    "t.occurred_at";

// The cheap tests come first (15 ns a row): a value that is stored in so few bytes is small even if
// it is compressed.
constexpr std::string_view kSmallHeaders =
    "(pg_catalog.pg_column_size(t.headers) <= 128 OR pg_catalog.pg_column_compression(t.headers) IS NULL "
    "AND pg_catalog.pg_column_size(t.headers) <= {big} OR octet_length(t.headers::text) <= {big})";

// The totals of a row are counted for the first of its lanes only.
constexpr std::string_view kFirstLane = "c.lanes & ~(-1::bigint << lane.n) = 0::bigint";

// Where row c leaves the cursor of its lanes: s1, s2, position and l. Without a position both
// snapshots are that cursor, so that lanes at one place have equal columns.
constexpr std::string_view kCursor =
    "CASE WHEN c.position IS NULL THEN coalesce(c.s2, c.s1) ELSE c.s1 END::text, "
    "CASE WHEN c.position IS NULL THEN coalesce(c.s2, c.s1) ELSE c.s2 END::text, "
    "c.position, CASE WHEN c.position IS NULL THEN NULL ELSE c.l END";

// The columns of a member, for lane_owners.cpp.
constexpr std::string_view kMember =
    "r.name, pg_catalog.array_to_string(r.groups, ','), clock_timestamp() - r.heartbeat_at > r.lease, r.boot_id, r.pid_ns, "
    "r.pid, r.started, r.heartbeat_at, (date_part('epoch'::text, r.lease) * 1000::float8)::bigint";

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// Fills in what is common to several statements, and nulls for the WAL functions that the server
/// refuses.
std::string filled(std::string_view sql, bool wal_functions) {
  std::string text(sql);
  replace_all(text, "{in_lanes}", "");
  replace_all(text, "{first_lane}", kFirstLane);
  replace_all(text, "{cursor}", kCursor);
  replace_all(text, "{member}", kMember);
  replace_all(text, "{scheduled}", kScheduled);
  replace_all(text, "{columns}", kColumns);
  replace_all(text, "{small_headers}", kSmallHeaders);
  replace_all(text, "{sequence_value}", kSequenceValue);
  replace_all(text, "{incarnation}", kIncarnation);
  replace_all(text, "{big}", std::to_string(kBigPart));
  replace_all(text, "{insert_lsn}", wal_functions ? "pg_current_wal_insert_lsn()" : "NULL::pg_lsn");
  replace_all(text, "{flush_lsn}", wal_functions ? "pg_current_wal_flush_lsn()" : "NULL::pg_lsn");
  return text;
}

}  // namespace

void replace_all(std::string& text, std::string_view marker, std::string_view value) {
  for (auto at = text.find(marker); at != std::string::npos;
       at = text.find(marker, at + value.size()))
    text.replace(at, marker.size(), value);
}

std::string with_schema(std::string_view sql, std::string_view schema) {
  std::string text(sql);
  replace_all(text, "{schema}", pg::quote_identifier(schema));
  replace_all(text, "{name}", schema);
  return text;
}

Query prepared(std::string_view what, std::string_view sql, std::string_view schema) {
  Query query = unprepared(what, sql, schema);
  query.handle = "outbox_" + std::to_string(fnv1a(query.sql));
  return query;
}

Query unprepared(std::string_view what, std::string_view sql, std::string_view schema) {
  return Query{.what = std::string(what), .sql = with_schema(sql, schema), .handle = {}};
}

EnqueueQueries::EnqueueQueries(std::string_view schema_name, bool with_wal_functions)
    : schema(schema_name), wal_functions(with_wal_functions) {}

const Query& Queries::of(sql::Named named) const {
  const sql::Statement& statement = kStatements.*named;
  const MutexLock lock(mutex_);
  const auto known = made_.find(&statement);
  if (known != made_.end()) return known->second;
  return made_
      .emplace(&statement, statement.how == sql::How::kept
                               ? prepared(statement.what, statement.text)
                               : unprepared(statement.what, statement.text))
      .first->second;
}

Query EnqueueQueries::prepared(std::string_view what, std::string_view sql) const {
  return postgres::prepared(what, filled(sql, wal_functions), schema);
}

Query EnqueueQueries::unprepared(std::string_view what, std::string_view sql) const {
  return postgres::unprepared(what, filled(sql, wal_functions), schema);
}

Query Queries::prepared_of_lanes(std::string_view what, std::string_view sql) const {
  std::string text(sql);
  const char* lanes = text.find("$8") == std::string::npos ? "$5" : "$9";
  replace_all(text, "{in_lanes}",
              " AND (" + std::string(lanes) + "::bigint >> t.lane::int) & 1::bigint = 1");
  return prepared(what, text);
}

Query listen(std::string_view channel) {
  return {.what = "listen", .sql = "LISTEN " + pg::quote_identifier(channel), .handle = {}};
}

}  // namespace outbox::store::postgres
