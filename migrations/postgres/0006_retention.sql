-- Removing delivered history (docs/design/retention.md). Everything here runs as the owner: the relay owns nothing.
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- Who removes history now, so that several relays do not do the same work. Safety does not depend on it.
ALTER TABLE {schema}.meta ADD COLUMN pruner uuid, ADD COLUMN pruner_until timestamptz;

-- Who may set a cursor back, a claim or a new subscription, locks the row of `fleet` exclusively; removal shares it.

-- The ledger's entry for what was removed: the events of the transaction ids first_xid <= xid < end_xid that count for the
-- subscription, with the sum of the hashes of their ids; or settlements, what they counted and the newest of them, of its generation;
-- or rows of parked_end, by outcome. Many rows become one (fold_pruned).
CREATE TABLE {schema}.pruned (
  id            bigint GENERATED ALWAYS AS IDENTITY,
  subscription  integer NOT NULL,
  first_xid     xid8,
  end_xid       xid8,
  first_seq     bigint,
  last_seq      bigint,
  events        bigint NOT NULL DEFAULT 0,
  hash          bigint NOT NULL DEFAULT 0,
  generation    bigint,
  settlement    bigint,
  acked         bigint NOT NULL DEFAULT 0,
  filtered      bigint NOT NULL DEFAULT 0,
  parked        bigint NOT NULL DEFAULT 0,
  delivered     bigint NOT NULL DEFAULT 0,
  discarded     bigint NOT NULL DEFAULT 0,
  edited        bigint NOT NULL DEFAULT 0,
  at            timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pruned_subscription ON {schema}.pruned (subscription, id);
CREATE INDEX pruned_last_seq ON {schema}.pruned (last_seq);  -- from where on nothing was removed (0007_replay.sql)

-- How far continuous verification has come (docs/design/verify.md). `place` is JSON; whoever writes it must have read this revision.
CREATE TABLE {schema}.verified (
  subscription  integer PRIMARY KEY,
  place         text NOT NULL,
  events        bigint NOT NULL,   -- that were compared
  differences   bigint NOT NULL,   -- that were found since a person has looked at them
  verifier      text NOT NULL,     -- the relay that has written the row
  at            timestamptz NOT NULL,
  revision      bigint NOT NULL
);

-- The first cursors of a subscription: a row, or a few of lanes that began one after the other.
CREATE INDEX settlement_resets ON {schema}.settlement (subscription, generation, id) WHERE kind = 'reset';

-- ---- What has passed

-- The newest row of every lane of a subscription, and the snapshot up to which it is done: of a pair that was begun, the first one.
-- Null: a lane without a cursor, which holds everything. The newest row of each owner is looked up first, which usually has all its
-- lanes, and only what it has not lane by lane. In PL/pgSQL, which plans it once per session: planning takes longer than looking.
CREATE FUNCTION {schema}.cursors_of(sub integer) RETURNS TABLE (settlement bigint, done pg_snapshot)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
BEGIN
  RETURN QUERY
  WITH owned AS MATERIALIZED (
    SELECT l.generation AS low, l.generation AS high, bit_or(1::bigint << l.lane) AS lanes
    FROM {schema}.subscription s JOIN {schema}.lane l ON l.lane_group = s.lane_group AND l.generation >= s.group_generation
    WHERE s.id = sub GROUP BY l.generation),
  searched AS MATERIALIZED (
    SELECT o.low, o.high, o.lanes FROM owned o
    UNION ALL SELECT 0, 9223372036854775807, ~coalesce(bit_or(o.lanes), 0) FROM owned o),
  newest AS MATERIALIZED (
    SELECT t.*, t.lanes & o.lanes AS has FROM searched o CROSS JOIN LATERAL (
      SELECT n.* FROM {schema}.settlement n
      WHERE n.subscription = sub AND n.lanes & o.lanes <> 0 AND n.generation >= o.low AND n.generation <= o.high
      ORDER BY n.generation DESC, n.id DESC LIMIT 1) t
    WHERE o.lanes <> 0),
  missing AS MATERIALIZED (
    SELECT n AS lane FROM generate_series(0, 63) n
    WHERE ((SELECT coalesce(bit_or(w.has), 0) FROM newest w) >> n) & 1 = 0),
  every AS (
    SELECT w.id, w.s1, w.s2, w.position FROM newest w
    UNION ALL
    SELECT c.id, c.s1, c.s2, c.position FROM missing m LEFT JOIN LATERAL {schema}.newest_settlement(sub, m.lane) c ON true)
  SELECT e.id, CASE WHEN e.position IS NULL THEN coalesce(e.s2, e.s1) ELSE e.s1 END FROM every e
  WHERE EXISTS (SELECT FROM {schema}.subscription s WHERE s.id = sub);
END
$fn$;

CREATE FUNCTION {schema}.lane_cursors() RETURNS TABLE (subscription integer, settlement bigint, done pg_snapshot)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT s.id, c.settlement, c.done FROM {schema}.subscription s CROSS JOIN LATERAL {schema}.cursors_of(s.id) c
$fn$;

-- What changes when a lane may go back or a subscription is new: each claim raises the generation, and who makes a subscription gives it
-- a higher id. Both lock the row of `fleet` exclusively.
CREATE FUNCTION {schema}.owners_now(OUT generation bigint, OUT subscription integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT f.generation, (SELECT max(s.id) FROM {schema}.subscription s) FROM {schema}.fleet f
$fn$;

-- A transaction has passed if its id is less than `below` and not in `open`: it is over, and visible in every cursor. Without a
-- subscription nothing has passed, since nothing was delivered.
CREATE FUNCTION {schema}.passed(OUT below xid8, OUT open xid8[])
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce(min(coalesce(pg_snapshot_xmax(c.done::pg_snapshot)::text::bigint, 0)), 0)::text::xid8,
         coalesce(array_agg(x.xid) FILTER (WHERE x.xid IS NOT NULL), '{}')
  FROM (SELECT done::text FROM {schema}.lane_cursors()
        UNION SELECT pg_current_snapshot()::text
        UNION SELECT NULL WHERE NOT EXISTS (SELECT FROM {schema}.subscription)) c
  LEFT JOIN LATERAL (SELECT pg_snapshot_xip(c.done::pg_snapshot) AS xid) x ON true
$fn$;

-- The partitions with the transaction ids that they hold, the oldest first; the default partition has none.
CREATE FUNCTION {schema}.partitions() RETURNS TABLE (name text, first_xid xid8, end_xid xid8, bytes bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT p.name, p.bounds[1]::xid8, p.bounds[2]::xid8, p.bytes
  FROM (SELECT c.relname::text AS name, pg_total_relation_size(c.oid) AS bytes,
               regexp_match(pg_get_expr(c.relpartbound, 0::oid), 'FROM [(]''([0-9]+)''[)] TO [(]''([0-9]+)''[)]') AS bounds
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{schema}.event'::regclass) p
  ORDER BY p.bounds[1]::xid8
$fn$;

-- ---- Removing

-- The caller becomes, or remains, the one that removes history, for so long.
CREATE FUNCTION {schema}.hold_pruning(who uuid, lease interval) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $fn$
  WITH held AS (
    UPDATE {schema}.meta SET pruner = who, pruner_until = clock_timestamp() + lease
    WHERE pruner IS NULL OR pruner = who OR pruner_until < clock_timestamp()
       OR pruner_until > clock_timestamp() + 10 * lease  -- the clock was set back
    RETURNING 1)
  SELECT EXISTS (SELECT FROM held)
$fn$;

CREATE FUNCTION {schema}.release_pruning(who uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $fn$
  UPDATE {schema}.meta SET pruner = NULL, pruner_until = NULL WHERE pruner = who
$fn$;

-- Empties the partition of these transaction ids and appends what was in it to the ledger: per subscription how many events, with
-- which hash. False: something does not let it go. The cursors are read before the lock on the fleet, since there may be many; under it no
-- cursor can go back and no subscription can appear, and if none did since they were read, they are at least there. Else: the next pass.
CREATE FUNCTION {schema}.remove_partition(first xid8, ending xid8, subs integer[], counts bigint[], hashes bigint[],
                                          from_seq bigint, to_seq bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $fn$
DECLARE
  partition  text;
  passed     record;  -- all in one statement: of one snapshot
BEGIN
  SELECT p.below, p.open, o.generation, o.subscription INTO passed FROM {schema}.passed() p CROSS JOIN {schema}.owners_now() o;
  IF ending > passed.below OR EXISTS (SELECT FROM unnest(passed.open) x(xid) WHERE x.xid >= first AND x.xid < ending) THEN
    RETURN false;
  END IF;
  PERFORM FROM {schema}.fleet FOR SHARE;
  SELECT p.name INTO partition FROM {schema}.partitions() p WHERE p.first_xid = first AND p.end_xid = ending;
  IF partition IS NULL
     OR NOT EXISTS (SELECT FROM {schema}.owners_now() o
                    WHERE o.generation = passed.generation AND o.subscription = passed.subscription)
     OR EXISTS (SELECT FROM {schema}.replay_reads(first, ending)) THEN  -- of 0007_replay.sql
    RETURN false;
  END IF;
  INSERT INTO {schema}.pruned (subscription, first_xid, end_xid, first_seq, last_seq, events, hash)
    SELECT u.sub, first, ending, from_seq, to_seq, u.events, u.hash FROM unnest(subs, counts, hashes) u(sub, events, hash);
  EXECUTE format('TRUNCATE {schema}.%I', partition);
  RETURN true;
END
$fn$;

-- The same for the default partition, whose transactions are looked at one by one. Its lock lets no writer add rows; `known` is
-- how many rows the caller has counted.
CREATE FUNCTION {schema}.remove_default(known bigint, subs integer[], counts bigint[], hashes bigint[], from_seq bigint,
                                        to_seq bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $fn$
DECLARE
  first   xid8;
  last    xid8;
  passed  record;
BEGIN
  SELECT p.below, p.open, o.generation, o.subscription INTO passed FROM {schema}.passed() p CROSS JOIN {schema}.owners_now() o;
  IF EXISTS (SELECT FROM ONLY {schema}.event_default e WHERE e.xid >= passed.below OR e.xid = ANY (passed.open)) THEN
    RETURN false;
  END IF;
  PERFORM FROM {schema}.fleet FOR SHARE;
  LOCK TABLE ONLY {schema}.event_default IN ACCESS EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM {schema}.owners_now() o
                 WHERE o.generation = passed.generation AND o.subscription = passed.subscription)
     OR EXISTS (SELECT FROM ONLY {schema}.event_default e WHERE e.xid >= passed.below OR e.xid = ANY (passed.open))
     OR EXISTS (SELECT FROM {schema}.replay_reads(NULL, NULL))
     OR (SELECT count(*) FROM ONLY {schema}.event_default) <> known THEN
    RETURN false;
  END IF;
  SELECT e.xid INTO first FROM ONLY {schema}.event_default e ORDER BY e.xid LIMIT 1;
  SELECT e.xid INTO last FROM ONLY {schema}.event_default e ORDER BY e.xid DESC LIMIT 1;
  INSERT INTO {schema}.pruned (subscription, first_xid, end_xid, first_seq, last_seq, events, hash)
    SELECT u.sub, first, (last::text::bigint + 1)::text::xid8, from_seq, to_seq, u.events, u.hash FROM unnest(subs, counts, hashes) u(sub, events, hash);
  TRUNCATE ONLY {schema}.event_default;
  RETURN true;
END
$fn$;

-- Drops emptied partitions, at most eight, and returns their names. No transaction can write to them any more, so the cursors do
-- not matter. Every writer waits for this lock, so it is tried only briefly. The newest partition stays: it tells where the next
-- one begins.
CREATE FUNCTION {schema}.drop_emptied() RETURNS SETOF text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '20ms' AS $fn$
DECLARE
  part     record;
  is_full  boolean;
  emptied  text[] := '{}';
  now_is   pg_snapshot := pg_current_snapshot();
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('outbox:partitions:{name}', 0::bigint)) THEN RETURN; END IF;
  FOR part IN
    SELECT p.name FROM {schema}.partitions() p
    WHERE p.end_xid <= pg_snapshot_xmax(now_is) AND p.end_xid::text::bigint < {schema}.partitions_end()
      AND NOT EXISTS (SELECT FROM pg_snapshot_xip(now_is) x(xid) WHERE x.xid >= p.first_xid AND x.xid < p.end_xid)
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM {schema}.%I)', part.name) INTO is_full;
    CONTINUE WHEN is_full;
    emptied := emptied || part.name;
    EXIT WHEN cardinality(emptied) = 8;
  END LOOP;
  IF cardinality(emptied) = 0 THEN RETURN; END IF;
  LOCK TABLE ONLY {schema}.event IN ACCESS EXCLUSIVE MODE;
  LOCK TABLE ONLY {schema}.event_default IN ACCESS EXCLUSIVE MODE;
  FOR part IN SELECT unnest(emptied) AS name LOOP
    EXECUTE format('DROP TABLE {schema}.%I', part.name);
    RETURN NEXT part.name;
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  RETURN;  -- the next pass tries again
END
$fn$;

-- The settlements of one generation after `after_id`, the oldest first: where they are in the table, which of them stay, and which others are older
-- than `age` and cover no event that exists: `oldest` is the least transaction id in the log, null if it is empty. What stays: the
-- first row of the subscription, the cursor of each lane, the newest 200 marks, which the floor comes from, the newest row of retries, which has
-- their total, and the claims of a generation that owns lanes.
CREATE FUNCTION {schema}.old_settlements(sub integer, age interval, oldest xid8, this bigint, after_id bigint, is_live boolean, most integer)
RETURNS TABLE (id bigint, place tid, stays boolean, is_over boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH kept AS MATERIALIZED (
    SELECT c.settlement AS id FROM {schema}.cursors_of(sub) c WHERE c.settlement IS NOT NULL
    UNION ALL
    (SELECT t.id FROM {schema}.settlement t WHERE t.subscription = sub AND t.kind = 'retry' ORDER BY t.acked_total DESC LIMIT 1)),
  mark AS MATERIALIZED (  -- the 200th
    SELECT t.generation, t.id FROM {schema}.settlement t WHERE t.subscription = sub AND t.l IS NOT NULL AND t.kind <> 'claim'
    ORDER BY t.generation DESC, t.id DESC OFFSET 199 LIMIT 1)
  SELECT t.id, t.ctid, t.kind = 'reset' OR t.kind = 'claim' AND is_live
         OR t.l IS NOT NULL AND t.kind <> 'claim' AND coalesce((t.generation, t.id) >= (m.generation, m.id), true)
         OR t.id IN (SELECT k.id FROM kept k),
         t.at < clock_timestamp() - age
         AND (t.s1 IS NULL OR oldest IS NULL OR pg_snapshot_xmax(coalesce(t.s2, t.s1)) <= oldest)
  FROM {schema}.settlement t LEFT JOIN mark m ON true
  -- A range instead of an equality, so that only settlement_newest has this order.
  WHERE t.subscription = sub AND t.generation <= this AND (t.generation, t.id) > (this, after_id)
  ORDER BY t.generation, t.id LIMIT most;
END
$fn$;

-- How far a cursor is, for comparing the cursors that a lane has had.
CREATE FUNCTION {schema}.rank_of(s1 pg_snapshot, s2 pg_snapshot, "position" bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE
  RETURN (SELECT ARRAY[pg_snapshot_xmax(b.base)::text::bigint, -(SELECT count(*) FROM pg_snapshot_xip(b.base)), coalesce("position", 0)]
          FROM (SELECT CASE WHEN "position" IS NULL THEN coalesce(s2, s1) ELSE s1 END AS base) b);

-- Deletes those of old_settlements() that may go, up to the first that must not go yet (`stopped`), and adds what they counted to `pruned`,
-- with which of them was the newest. What is void counts nothing: the next claim of its lanes was written before it, or stands before its end.
-- The lanes `owned` were not claimed since.
CREATE FUNCTION {schema}.remove_settlements(sub integer, age interval, oldest xid8, this bigint, after_id bigint, owned bigint, most integer,
                                            OUT removed bigint, OUT stopped boolean, OUT seen bigint, OUT last_id bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
BEGIN
  -- In one statement, so that all of it sees the same rows: a row that is appended meanwhile would else be removed, although it is the
  -- cursor by then.
  WITH seen AS MATERIALIZED (
    SELECT s.* FROM {schema}.old_settlements(sub, age, oldest, this, after_id, owned <> 0, most) s),
  stop AS (SELECT min(s.id) AS id FROM seen s WHERE NOT s.stays AND NOT s.is_over),
  gone AS (
    DELETE FROM {schema}.settlement t USING seen s
    WHERE t.ctid = s.place AND NOT s.stays AND s.id < coalesce((SELECT stop.id FROM stop), 9223372036854775807)
    RETURNING t.lanes, t.id, t.s1, t.s2, t.position, t.acked, t.filtered, t.parked),
  claimed AS MATERIALIZED (
    SELECT d.lanes, c.id, {schema}.rank_of(c.s1, c.s2, c.position) AS rank
    FROM (SELECT DISTINCT g.lanes FROM gone g WHERE g.lanes & ~owned <> 0 AND g.acked + g.filtered + g.parked > 0) d
    CROSS JOIN LATERAL (
      SELECT t.id, t.s1, t.s2, t.position FROM {schema}.settlement t
      WHERE t.subscription = sub AND t.kind IN ('claim', 'reset') AND t.kind = 'claim' AND t.generation > this AND t.lanes & d.lanes <> 0
      ORDER BY t.generation, t.id LIMIT 1) c),
  counts AS (
    SELECT g.id, g.acked, g.filtered, g.parked FROM gone g
    WHERE NOT EXISTS (SELECT FROM claimed c WHERE c.lanes = g.lanes
                        AND (c.id < g.id OR c.rank < {schema}.rank_of(g.s1, g.s2, g.position)))),
  noted AS (
    INSERT INTO {schema}.pruned (subscription, generation, settlement, acked, filtered, parked)
    SELECT sub, this, max(g.id), coalesce(sum(c.acked), 0), coalesce(sum(c.filtered), 0), coalesce(sum(c.parked), 0)
    FROM gone g LEFT JOIN counts c USING (id) HAVING count(*) > 0)
  SELECT (SELECT count(*) FROM gone), (SELECT stop.id IS NOT NULL FROM stop), count(*), max(s.id)
  INTO removed, stopped, seen, last_id FROM seen s;
END
$fn$;

-- Many rows of a subscription in `pruned` become one with their sums.
CREATE FUNCTION {schema}.fold_pruned(sub integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $fn$
BEGIN
  IF (SELECT count(*) FROM (SELECT FROM {schema}.pruned p WHERE p.subscription = sub LIMIT 64) few) < 64 THEN RETURN; END IF;
  WITH gone AS (
    DELETE FROM {schema}.pruned p WHERE p.subscription = sub RETURNING p.*),
  total AS (
    SELECT mod(sum(g.hash::numeric), 18446744073709551616) AS hash, max(ARRAY[g.generation, g.settlement]) FILTER (WHERE g.settlement IS NOT NULL) AS newest,
      min(g.first_xid::text::bigint) AS first_xid, max(g.end_xid::text::bigint) AS end_xid, min(g.first_seq) AS first_seq,
      max(g.last_seq) AS last_seq, sum(g.events) AS events, sum(g.acked) AS acked, sum(g.filtered) AS filtered,
      sum(g.parked) AS parked, sum(g.delivered) AS delivered, sum(g.discarded) AS discarded, sum(g.edited) AS edited, max(g.at) AS at
    FROM gone g HAVING count(*) > 0)
  INSERT INTO {schema}.pruned (subscription, first_xid, end_xid, first_seq, last_seq, events, hash, generation, settlement, acked,
    filtered, parked, delivered, discarded, edited, at)
  SELECT sub, t.first_xid::text::xid8, t.end_xid::text::xid8, t.first_seq, t.last_seq, t.events,
    CASE WHEN t.hash >= 9223372036854775808 THEN t.hash - 18446744073709551616
         WHEN t.hash < -9223372036854775808 THEN t.hash + 18446744073709551616 ELSE t.hash END::bigint,
    t.newest[1], t.newest[2], t.acked, t.filtered, t.parked, t.delivered, t.discarded, t.edited, t.at
  FROM total t;
END
$fn$;

-- Removes settlements of a subscription from the oldest on, after the row (after_generation, after_id). Looks at `most` rows or a few more, and
-- ends with the first batch that it removes, so that its transaction is short. Returns how many it removed and where to go on; null:
-- nowhere.
-- A claim shows that late rows of former owners are void, so it must not go before them. So the claims of the generations that own lanes
-- now stay, and of the others one goes after the other: where one of them stops (`blocked`), the later ones wait for it.
-- Removal shares `fleet` with others, so that no claim copies a cursor that is older than what is removed; looking does not.
CREATE FUNCTION {schema}.prune_settlements(sub integer, age interval, oldest xid8, after_generation bigint, after_id bigint,
                                           most integer, INOUT blocked boolean, OUT removed bigint, OUT generation bigint,
                                           OUT id bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
#variable_conflict use_column
DECLARE
  no_id   CONSTANT bigint := 9223372036854775807;
  looked  bigint := 0;
  owned   bigint;  -- lanes, by this generation
  found   record;
  this    bigint;
BEGIN
  removed := 0;
  generation := prune_settlements.after_generation;
  id := prune_settlements.after_id;
  LOOP
    IF prune_settlements.blocked THEN
      SELECT min(l.generation) INTO this FROM {schema}.subscription s JOIN {schema}.lane l ON l.lane_group = s.lane_group
      WHERE s.id = sub AND (l.generation > prune_settlements.generation
                            OR l.generation = prune_settlements.generation AND prune_settlements.id < no_id);
    ELSE
      SELECT t.generation INTO this FROM {schema}.settlement t
      WHERE t.subscription = sub AND (t.generation, t.id) > (prune_settlements.generation, prune_settlements.id)
      ORDER BY t.generation, t.id LIMIT 1;
    END IF;
    IF this IS NULL THEN
      generation := NULL;
      id := NULL;
      PERFORM {schema}.fold_pruned(sub);
      RETURN;
    END IF;
    IF this <> prune_settlements.generation THEN id := 0; END IF;
    generation := this;
    SELECT coalesce(bit_or(1::bigint << l.lane), 0) INTO owned
    FROM {schema}.subscription s JOIN {schema}.lane l ON l.lane_group = s.lane_group WHERE s.id = sub AND l.generation = this;
    SELECT count(*) FILTER (WHERE o.is_over AND NOT o.stays) AS removed, coalesce(bool_or(NOT o.is_over AND NOT o.stays), false) AS stopped,
      count(*) AS seen, max(o.id) AS last_id
    INTO found FROM {schema}.old_settlements(sub, age, oldest, this, prune_settlements.id, owned <> 0, most) o;
    IF found.removed > 0 THEN
      PERFORM FROM {schema}.fleet FOR SHARE;
      SELECT * INTO found FROM {schema}.remove_settlements(sub, age, oldest, this, prune_settlements.id, owned, most);
    END IF;
    looked := looked + found.seen;
    removed := found.removed;
    blocked := prune_settlements.blocked OR (found.stopped AND owned = 0);
    id := CASE WHEN NOT found.stopped AND found.seen = most THEN found.last_id ELSE no_id END;
    IF removed > 0 OR looked >= most THEN RETURN; END IF;
  END LOOP;
END
$fn$;

-- Removes ends of parked events that are older than `age` and whose event is gone, and counts them in the ledger. Returns how
-- many; it looks at `most` of them, the oldest.
CREATE FUNCTION {schema}.prune_ends(age interval, most integer) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $fn$
  WITH gone AS (
    DELETE FROM {schema}.parked_end p
    WHERE p.ctid = ANY (ARRAY(
        SELECT e.ctid FROM {schema}.parked_end e
        WHERE e.at < clock_timestamp() - age AND NOT EXISTS (SELECT FROM {schema}.event v WHERE v.seq = e.seq) LIMIT most))
    RETURNING p.subscription, p.outcome),
  counted AS (
    INSERT INTO {schema}.pruned (subscription, delivered, discarded, edited)
    SELECT g.subscription, count(*) FILTER (WHERE g.outcome = 'delivered'), count(*) FILTER (WHERE g.outcome = 'discarded'),
           count(*) FILTER (WHERE g.outcome = 'edited') FROM gone g GROUP BY g.subscription)
  SELECT count(*) FROM gone
$fn$;

-- ---- Rights

REVOKE EXECUTE ON FUNCTION {schema}.partitions() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.hold_pruning(uuid, interval) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.release_pruning(uuid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.remove_partition(xid8, xid8, integer[], bigint[], bigint[], bigint, bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.remove_default(bigint, integer[], bigint[], bigint[], bigint, bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.drop_emptied() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.prune_settlements(integer, interval, xid8, bigint, bigint, integer, boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.prune_ends(interval, integer) FROM PUBLIC;
SELECT {schema}.grant_to('outbox_relay',
  'SELECT ON {schema}.pruned',
  'SELECT, INSERT, UPDATE ON {schema}.verified',
  'EXECUTE ON FUNCTION {schema}.partitions()',
  'EXECUTE ON FUNCTION {schema}.hold_pruning(uuid, interval)',
  'EXECUTE ON FUNCTION {schema}.release_pruning(uuid)',
  'EXECUTE ON FUNCTION {schema}.remove_partition(xid8, xid8, integer[], bigint[], bigint[], bigint, bigint)',
  'EXECUTE ON FUNCTION {schema}.remove_default(bigint, integer[], bigint[], bigint[], bigint, bigint)',
  'EXECUTE ON FUNCTION {schema}.drop_emptied()',
  'EXECUTE ON FUNCTION {schema}.prune_settlements(integer, interval, xid8, bigint, bigint, integer, boolean)',
  'EXECUTE ON FUNCTION {schema}.prune_ends(interval, integer)');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.pruned',
  'SELECT ON {schema}.verified',
  'EXECUTE ON FUNCTION {schema}.partitions()');
