-- Removing delivered history (docs/design/retention.md). Everything here runs as the owner: the relay owns nothing.
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- Who removes history now, so that several relays do not do the same work. Safety does not depend on it.
ALTER TABLE {schema}.meta ADD COLUMN pruner uuid, ADD COLUMN pruner_until timestamptz;

-- Who may set a cursor back, a claim or a new subscription, locks the row of `fleet` exclusively; removal shares it.

-- The ledger's entry for what was removed: the events of the transaction ids first_xid <= xid < end_xid that count for the
-- subscription, with the sum of the hashes of their ids; or settlements, what they counted and the newest of them, of its generation;
-- or rows of parked_end, by outcome.
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

-- ---- What has passed

-- The newest row of every lane of every subscription, and the snapshot up to which it is done: of a pair that was begun, the
-- first one. Null: a lane without a cursor, which holds everything.
CREATE FUNCTION {schema}.lane_cursors() RETURNS TABLE (subscription integer, settlement bigint, done pg_snapshot)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
  SELECT s.id, c.id, CASE WHEN c.position IS NULL THEN coalesce(c.s2, c.s1) ELSE c.s1 END
  FROM {schema}.subscription s CROSS JOIN generate_series(0, 63) AS lane
    LEFT JOIN LATERAL {schema}.newest_settlement(s.id, lane) c ON true
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
-- which hash. False: something does not let it go. After the lock on the fleet no cursor can go back and no subscription can
-- appear, so cursors that are read now, in a new statement, decide.
CREATE FUNCTION {schema}.remove_partition(first xid8, ending xid8, subs integer[], counts bigint[], hashes bigint[],
                                          from_seq bigint, to_seq bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $fn$
DECLARE
  partition  text;
BEGIN
  PERFORM FROM {schema}.fleet FOR SHARE;
  SELECT p.name INTO partition FROM {schema}.partitions() p WHERE p.first_xid = first AND p.end_xid = ending;
  IF partition IS NULL OR EXISTS (
       SELECT FROM {schema}.passed() p
       WHERE ending > p.below OR EXISTS (SELECT FROM unnest(p.open) x(xid) WHERE x.xid >= first AND x.xid < ending))
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
  first  xid8;
  last   xid8;
BEGIN
  PERFORM FROM {schema}.fleet FOR SHARE;
  LOCK TABLE ONLY {schema}.event_default IN ACCESS EXCLUSIVE MODE;
  IF EXISTS (SELECT FROM {schema}.passed() p JOIN ONLY {schema}.event_default e ON e.xid >= p.below OR e.xid = ANY (p.open))
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

-- Removes settlements of one generation from the oldest on: the generation of the first row after (after_generation, after_id). Looks at
-- `most` rows at most and stops at the first that is younger than `age` or covers an event that exists: `oldest` is the least
-- transaction id in the log, null if it is empty. What stays: the first row of the subscription, the cursor of each lane, the newest 200
-- marks, which the floor comes from, and the newest row of retries, which has their total.
-- A claim shows that late rows of former owners are void, so it must not go before them. So the claims of the generations that own lanes
-- now stay, and of the others one goes after the other: where one of them stops (`blocked`), the later ones wait for it.
-- What the removed rows counted goes to `pruned`, except where they were void, and which of them was the newest. Returns how many it
-- removed and where to go on; null: nowhere.
CREATE FUNCTION {schema}.prune_settlements(sub integer, age interval, oldest xid8, after_generation bigint, after_id bigint,
                                           most integer, INOUT blocked boolean, OUT removed bigint, OUT generation bigint,
                                           OUT id bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
#variable_conflict use_column
DECLARE
  is_live  boolean;  -- it owns lanes
  stopped  boolean;
  seen     bigint;
  last_id  bigint;
  this     bigint;
BEGIN
  removed := 0;
  SELECT t.generation INTO this FROM {schema}.settlement t
  WHERE t.subscription = sub AND (t.generation, t.id) > (after_generation, after_id) ORDER BY t.generation, t.id LIMIT 1;
  IF this IS NULL THEN RETURN; END IF;
  generation := this;
  id := 9223372036854775807;
  is_live := EXISTS (SELECT FROM {schema}.lane l JOIN {schema}.subscription s ON s.lane_group = l.lane_group
                     WHERE s.id = sub AND l.generation = this);
  IF prune_settlements.blocked AND NOT is_live THEN RETURN; END IF;
  PERFORM FROM {schema}.fleet FOR SHARE;
  -- In one statement, so that all of it sees the same rows: a row that is appended meanwhile would else be removed, although it is the
  -- cursor by then.
  WITH kept AS MATERIALIZED (
    SELECT c.settlement AS id FROM {schema}.lane_cursors() c WHERE c.subscription = sub
    UNION ALL
    (SELECT t.id FROM {schema}.settlement t WHERE t.subscription = sub AND t.kind = 'retry' ORDER BY t.acked_total DESC LIMIT 1)
    UNION ALL
    (SELECT t.id FROM {schema}.settlement t WHERE t.subscription = sub AND t.l IS NOT NULL AND t.kind <> 'claim'
     ORDER BY t.generation DESC, t.id DESC LIMIT 200)),
  seen AS MATERIALIZED (
    SELECT t.id, t.ctid AS place, t.kind = 'reset' OR t.kind = 'claim' AND is_live OR t.id IN (SELECT k.id FROM kept k) AS stays,
           t.at < clock_timestamp() - age
           AND (t.s1 IS NULL OR oldest IS NULL OR pg_snapshot_xmax(coalesce(t.s2, t.s1)) <= oldest) AS is_over
    FROM {schema}.settlement t
    -- A range instead of an equality, so that only settlement_newest has this order.
    WHERE t.subscription = sub AND t.generation <= this
      AND (t.generation, t.id) > (this, CASE WHEN after_generation = this THEN after_id ELSE 0 END)
    ORDER BY t.generation, t.id LIMIT most),
  stop AS (SELECT min(s.id) AS id FROM seen s WHERE NOT s.stays AND NOT s.is_over),
  gone AS (
    DELETE FROM {schema}.settlement t USING seen s
    WHERE t.ctid = s.place AND NOT s.stays AND s.id < coalesce((SELECT stop.id FROM stop), 9223372036854775807)
    RETURNING t.lanes, t.id, t.acked, t.filtered, t.parked),
  counts AS (
    SELECT g.* FROM gone g
    WHERE g.acked + g.filtered + g.parked > 0 AND NOT EXISTS (
      SELECT FROM {schema}.settlement c
      WHERE c.subscription = sub AND c.kind = 'claim' AND c.generation > this AND c.id < g.id AND c.lanes & g.lanes <> 0)),
  noted AS (
    INSERT INTO {schema}.pruned (subscription, generation, settlement, acked, filtered, parked)
    SELECT sub, this, max(g.id), coalesce(sum(c.acked), 0), coalesce(sum(c.filtered), 0), coalesce(sum(c.parked), 0)
    FROM gone g LEFT JOIN counts c USING (id) HAVING count(*) > 0)
  SELECT (SELECT count(*) FROM gone), (SELECT stop.id IS NOT NULL FROM stop), count(*), max(s.id)
  INTO removed, stopped, seen, last_id FROM seen s;
  blocked := prune_settlements.blocked OR (stopped AND NOT is_live);
  IF NOT stopped AND seen = most THEN id := last_id; END IF;
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
  'EXECUTE ON FUNCTION {schema}.partitions()');
