// The statements that repair a lineage (docs/design/lineage.md), as in queries.hpp. They run once
// after a restore and read whole tables without an index. The tables lineage_... live as long as
// the transaction.
#pragma once

#include <string>
#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

struct LineageQueries {
  explicit LineageQueries(std::string_view schema_name) : schema(schema_name) {}

  const std::string schema;

  // The transaction that restored the witness (null if none did), and how many rows of the witness
  // this database has written.
  Query witness = of("read the witness", R"(
SELECT min(w.here) FILTER (WHERE w.here <> w.x), count(*) FILTER (WHERE w.here = w.x)
FROM (SELECT t.x::text::bigint AS x, {here} AS here FROM {schema}.witness t CROSS JOIN {now}) w)");

  // $1 the transaction that restored. Counts the events of the restore, and the other ones.
  Query counts = of("count the events", R"(
SELECT count(*) FILTER (WHERE {restored}), count(*) FILTER (WHERE NOT {restored}) FROM {schema}.event t CROSS JOIN {now})");

  // $1 the same. Returns for each subscription its name, whether it has all cursors, and the number
  // of restored events that it still has to get.
  Query pending = of("count what is pending", R"(
WITH c AS MATERIALIZED ({cursors})
SELECT s.name, (SELECT bool_and(c.s1 IS NOT NULL) FROM c WHERE c.subscription = s.id), coalesce(p.events, 0::bigint)
FROM {schema}.subscription s LEFT JOIN (
  SELECT c.subscription, count(*) AS events FROM {schema}.event t CROSS JOIN {now} JOIN c ON c.lane = t.lane
  WHERE {restored} AND NOT {delivered} GROUP BY c.subscription) p ON p.subscription = s.id
ORDER BY s.name)");

  // ---- The repair itself

  Query as_owner = of("become the owner", R"(
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass::oid), true))");

  Query patience = of("set the time limits", "SELECT set_config('lock_timeout', '10s', true)");

  Query write_witness = of("write the witness", R"(
INSERT INTO {schema}.witness (x) VALUES (pg_current_xact_id()) RETURNING x)");

  // It is run between the two rows of the witness, so that ids lie between theirs.
  Query use_id = of("use up a transaction id", "SELECT pg_current_xact_id()");

  // $1 the row that stays.
  Query forget_witness =
      of("remove the old witness", "DELETE FROM {schema}.witness w WHERE w.x <> $1::xid8");

  // From here on nobody reads or writes the log, and every transaction that wrote to it is over.
  Query lock = of("lock the log", R"(
LOCK TABLE {schema}.event, {schema}.settlement, {schema}.parked, {schema}.pruned IN ACCESS EXCLUSIVE MODE)");

  Query keep_cursors = of("read the cursors", R"(
CREATE UNLOGGED TABLE {schema}.lineage_cursor AS {cursors})");

  // The totals of each subscription, including those of retried events.
  Query keep_totals = of("read the totals", R"(
CREATE UNLOGGED TABLE {schema}.lineage_total AS
SELECT s.id AS subscription, s.config_version,
       coalesce(sum(c.acked_total) FILTER (WHERE c.lanes & ~(-1::bigint << lane.n) = 0::bigint), 0::numeric)::bigint
         + coalesce((SELECT r.acked_total FROM {schema}.settlement r WHERE r.subscription = s.id AND r.kind = 'retry'
                     ORDER BY r.acked_total DESC LIMIT 1), 0::bigint) AS acked,
       coalesce(sum(c.filtered_total) FILTER (WHERE c.lanes & ~(-1::bigint << lane.n) = 0::bigint), 0::numeric)::bigint AS filtered
FROM {schema}.subscription s CROSS JOIN pg_catalog.generate_series(0, 63) lane(n)
  LEFT JOIN LATERAL {schema}.newest_settlement(s.id, lane.n) c ON true
GROUP BY s.id, s.config_version)");

  // $1 the transaction that restored. This statement and the next one run before rows are moved,
  // since moving a row changes its xmin.
  Query find_fresh = of("find the events that were written here", R"(
CREATE UNLOGGED TABLE {schema}.lineage_fresh AS
SELECT t.xid, t.seq FROM {schema}.event t CROSS JOIN {now} WHERE NOT {restored})");

  // $1 the same. Finds the class of each restored event that is pending, that is, the subscriptions
  // that still have to get it.
  Query find_pending = of("find what is pending", R"(
CREATE UNLOGGED TABLE {schema}.lineage_pending AS
SELECT t.xid, t.seq, array_agg(c.subscription ORDER BY c.subscription) AS subs
FROM {schema}.event t CROSS JOIN {now} JOIN {schema}.lineage_cursor c ON c.lane = t.lane
WHERE {restored} AND NOT {delivered} GROUP BY t.xid, t.seq)");

  // $1 the same. Finds the transactions that began before the restore and are still open, since
  // they may write events after the repair. Those of other databases of the cluster write none, but
  // the snapshots of the next settlements name them, too.
  Query find_open = of("find transactions that are open", R"(
CREATE UNLOGGED TABLE {schema}.lineage_open AS
SELECT x.open::text::bigint AS xid FROM pg_snapshot_xip(pg_current_snapshot()) x(open)
WHERE x.open::text::bigint <= $1::bigint)");

  // $1 the same. Gives each class a number that no transaction has which is still open.
  Query make_classes = of("number the classes", R"(
CREATE UNLOGGED TABLE {schema}.lineage_class AS
SELECT d.subs, least($1::bigint, (SELECT min(o.xid) FROM {schema}.lineage_open o)) - row_number() OVER (ORDER BY d.subs) AS xid
FROM (SELECT DISTINCT p.subs FROM {schema}.lineage_pending p) d)");

  // Returns the least number of a class or an open transaction (null if there is none), the
  // greatest seq of the restore, the least seq of an event that was written here, and the next
  // transaction.
  Query bounds = of("read the bounds", R"(
SELECT least((SELECT min(c.xid) FROM {schema}.lineage_class c), (SELECT min(o.xid) FROM {schema}.lineage_open o)),
  greatest((SELECT max(t.seq) FROM {schema}.event t LEFT JOIN {schema}.lineage_fresh f ON f.xid = t.xid AND f.seq = t.seq
            WHERE f.seq IS NULL),
           (SELECT max(p.seq) FROM {schema}.parked p), (SELECT max(p.seq) FROM {schema}.parked_end p),
           (SELECT max(c.l) FROM {schema}.settlement c), (SELECT max(p.last_seq) FROM {schema}.pruned p), 0),
  (SELECT min(f.seq) FROM {schema}.lineage_fresh f), (SELECT n.next FROM {now}))");

  Query partitions =
      of("list partitions", "SELECT name FROM {schema}.partitions() WHERE first_xid IS NOT NULL");

  // The columns that a moved row keeps, as text for {columns}.
  Query columns = of("read the columns", R"(
SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
WHERE a.attrelid = '{schema}.event'::regclass::oid AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attname <> ALL ('{xid,seq}'::name[]))");

  // Needs {partition}.
  Query take_partition = of("take a partition out of the log", R"(
ALTER TABLE {schema}.event DETACH PARTITION {schema}.{partition})");
  Query rename_partition = of("rename a partition", R"(
ALTER TABLE {schema}.{partition} RENAME TO lineage_{partition})");
  Query copy_default = of("copy the default partition", R"(
CREATE UNLOGGED TABLE {schema}.lineage_event_default AS SELECT * FROM ONLY {schema}.event_default)");
  Query empty_default = of("empty the default partition", "TRUNCATE ONLY {schema}.event_default");
  // Needs {from} and {to}.
  Query make_partition = of("make a partition", R"(
CREATE TABLE {schema}.event_x{from} (LIKE {schema}.event INCLUDING ALL))");
  Query attach_partition = of("attach a partition", R"(
ALTER TABLE {schema}.event ATTACH PARTITION {schema}.event_x{from} FOR VALUES FROM ('{from}') TO ('{to}'))");

  // Needs {partition} and {columns}. $1 the transaction that restored, $2 what is added to the seqs
  // of events that were written here.
  Query move_events = of("move the events", R"(
INSERT INTO {schema}.event (xid, seq, {columns})
SELECT CASE WHEN f.seq IS NULL THEN coalesce(c.xid, $1::bigint)::text::xid8 ELSE t.xid END,
       t.seq + CASE WHEN f.seq IS NULL THEN 0::bigint ELSE $2::bigint END, {columns}
FROM {schema}.lineage_{partition} t
  LEFT JOIN {schema}.lineage_fresh f ON f.xid = t.xid AND f.seq = t.seq
  LEFT JOIN {schema}.lineage_pending p ON p.xid = t.xid AND p.seq = t.seq
  LEFT JOIN {schema}.lineage_class c ON c.subs = p.subs)");
  Query drop_partition = of("drop a partition", "DROP TABLE {schema}.lineage_{partition}");

  // $1 the greatest seq of the restore.
  Query raise_sequence = of("raise the sequence", R"(
SELECT setval('{schema}.event_seq'::regclass, top.seq) FROM (
  SELECT greatest(pg_sequence_last_value('{schema}.event_seq'::regclass), $1::bigint,
                  (SELECT t.seq FROM {schema}.event t ORDER BY t.seq DESC LIMIT 1)) AS seq) top WHERE top.seq > 0)");

  Query raise_generation =
      of("raise the generation", "UPDATE {schema}.fleet SET generation = generation + 1");
  Query forget_owners = of("remove the owners of lanes", "UPDATE {schema}.lane SET owner = NULL");
  Query forget_relays = of("remove the relays", "DELETE FROM {schema}.relay");
  Query forget_settlements = of("remove the settlements", "TRUNCATE {schema}.settlement");
  Query forget_pruned = of("remove what was pruned", "TRUNCATE {schema}.pruned");

  // $1 the transaction that restored. In the new snapshot everything up to that transaction is
  // visible except the classes that are pending and the transactions that are still open. What was
  // parked before is carried over, as by a reset.
  Query begin_again = of("write the cursors", R"(
INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, config_version, s1, acked_total, filtered_total, acked, parked)
SELECT t.subscription, 'reset', -1, (SELECT f.generation FROM {schema}.fleet f), t.config_version,
       format('%s:%s:%s', coalesce(x.first, $1::bigint + 1), $1::bigint + 1, x.all)::pg_snapshot, t.acked, t.filtered,
       (SELECT count(*) FROM {schema}.parked_end d WHERE d.subscription = t.subscription AND d.outcome = 'delivered'),
       (SELECT count(*) FROM {schema}.parked p WHERE p.subscription = t.subscription)
         + (SELECT count(*) FROM {schema}.parked_end d
            WHERE d.subscription = t.subscription AND d.outcome = ANY ('{delivered,discarded}'::text[]))
FROM {schema}.lineage_total t CROSS JOIN LATERAL (
  SELECT min(u.xid) AS first, string_agg(u.xid::text, ',' ORDER BY u.xid) AS all
  FROM (SELECT c.xid FROM {schema}.lineage_class c WHERE t.subscription = ANY (c.subs)
        UNION SELECT o.xid FROM {schema}.lineage_open o) u) x)");

  // $1 the least number of a class or an open transaction. Everything before it counts as removed.
  Query note_pruned = of("begin the ledger", R"(
INSERT INTO {schema}.pruned (subscription, end_xid) SELECT t.subscription, $1::xid8 FROM {schema}.lineage_total t)");

  Query rename_outbox = of("give the outbox another identity", R"(
UPDATE {schema}.meta SET identity = gen_random_uuid(), pruner = NULL, pruner_until = NULL, measured_at = clock_timestamp(),
  measured_xid = pg_snapshot_xmax(pg_current_snapshot())::text::bigint)");

  // Returns for each subscription its name, the number of events that its new cursor does not see,
  // and the number that the old cursor had not passed, including those that were written here.
  Query compare = of("compare", R"(
SELECT n.name, n.events, coalesce(p.events, 0::bigint) + (SELECT count(*) FROM {schema}.lineage_fresh) FROM (
  SELECT s.id, s.name, count(t.seq) AS events FROM {schema}.subscription s
    JOIN {schema}.settlement c ON c.subscription = s.id LEFT JOIN {schema}.event t ON NOT pg_visible_in_snapshot(t.xid, c.s1)
  GROUP BY s.id, s.name) n
LEFT JOIN (SELECT u.sub, count(*) AS events FROM {schema}.lineage_pending q CROSS JOIN LATERAL unnest(q.subs) u(sub) GROUP BY u.sub) p
  ON p.sub = n.id
ORDER BY n.name)");

  Query clean_up = of("remove the tables of the repair", R"(
DROP TABLE {schema}.lineage_cursor, {schema}.lineage_total, {schema}.lineage_fresh, {schema}.lineage_pending, {schema}.lineage_class,
  {schema}.lineage_open)");

  /// Fills in a marker that of() leaves open.
  [[nodiscard]] static Query with(Query query, std::string_view marker, std::string_view value) {
    replace_all(query.sql, marker, value);
    return query;
  }

 private:
  // The next transaction id. Each statement takes it anew, so that it is greater than every xmin
  // that the statement sees.
  static constexpr std::string_view kNow =
      "(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) n";
  // The transaction of this cluster that wrote row t, computed from the low half of its id.
  static constexpr std::string_view kHere =
      "(n.next - ((n.next - t.xmin::text::bigint) & 4294967295::bigint))";
  static constexpr std::string_view kRestored =
      "NOT (t.xid::text::bigint > $1::bigint AND t.xid::text::bigint <= {here})";
  static constexpr std::string_view kCursors =
      "SELECT s.id AS subscription, lane.n AS lane, c.s1, c.s2, c.position FROM {schema}.subscription s "
      "CROSS JOIN pg_catalog.generate_series(0, 63) lane(n) "
      "LEFT JOIN LATERAL {schema}.newest_settlement(s.id, lane.n) c ON true";
  static constexpr std::string_view kDelivered =
      "CASE WHEN c.position IS NULL THEN pg_visible_in_snapshot(t.xid, coalesce(c.s2, c.s1)) "
      "ELSE pg_visible_in_snapshot(t.xid, c.s1) OR pg_visible_in_snapshot(t.xid, c.s2) AND t.seq <= c.position END";

  [[nodiscard]] Query of(std::string_view what, std::string_view sql) const {
    std::string text(sql);
    replace_all(text, "{cursors}", kCursors);
    replace_all(text, "{delivered}", kDelivered);
    replace_all(text, "{restored}", kRestored);
    replace_all(text, "{here}", kHere);
    replace_all(text, "{now}", kNow);
    return unprepared(what, text, schema);
  }
};

}  // namespace outbox::store::postgres
