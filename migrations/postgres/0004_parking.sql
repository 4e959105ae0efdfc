-- Events that a relay set aside, and how each of them left (docs/design/parking.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- retrying: the first of its key, sent again at next_attempt_at. waiting: behind an earlier one of its key. dead: not sent again
-- unless a person says so. The event is copied whole, since retention may remove the original.
CREATE TABLE {schema}.parked (
  subscription     integer NOT NULL,
  seq              bigint NOT NULL,
  id               uuid NOT NULL,
  lane             smallint NOT NULL,
  aggregate_type   text NOT NULL,
  aggregate_id     text NOT NULL,
  event_type       text NOT NULL,
  payload          bytea NOT NULL,
  content_type     text,
  headers          jsonb NOT NULL,
  created_at       timestamptz NOT NULL,
  occurred_at      timestamptz,
  state            text NOT NULL CHECK (state IN ('retrying', 'waiting', 'dead')),
  attempts         integer NOT NULL,
  next_attempt_at  timestamptz NOT NULL,
  error            text NOT NULL,
  parked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (subscription, seq)
);
CREATE INDEX parked_due ON {schema}.parked (subscription, next_attempt_at) WHERE state = 'retrying';
CREATE INDEX parked_key ON {schema}.parked (subscription, aggregate_type, aggregate_id, seq);
CREATE INDEX parked_id ON {schema}.parked (id);

CREATE TABLE {schema}.parked_end (
  subscription  integer NOT NULL,
  seq           bigint NOT NULL,
  id            uuid NOT NULL,
  outcome       text NOT NULL CHECK (outcome IN ('delivered', 'discarded', 'edited')),
  attempts      integer NOT NULL,
  actor         text NOT NULL DEFAULT '',  -- who decided; empty: the relay
  reason        text NOT NULL DEFAULT '',
  at            timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX parked_end_seq ON {schema}.parked_end (subscription, seq);
CREATE INDEX parked_end_id ON {schema}.parked_end (id);

-- Grows when a person changes parked events, so that the relay reads them again.
ALTER TABLE {schema}.subscription ADD COLUMN parked_version integer NOT NULL DEFAULT 0;

-- The newest settlement that counts retried events; it has their total.
CREATE INDEX settlement_retries ON {schema}.settlement (subscription, id) WHERE kind = 'retry';

-- ---- Keys

-- After parked events of these keys came or went: the first of each key that is not dead, or dead in a subscription whose dead
-- events block, is the one that is retried; the others wait. Events without a key stand alone.
CREATE FUNCTION {schema}.order_parked_keys(sub integer, types text[], ids text[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  UPDATE {schema}.parked p
  SET state = CASE WHEN p.seq = first.seq THEN 'retrying' ELSE 'waiting' END, next_attempt_at = clock_timestamp()
  FROM (SELECT DISTINCT k.t, k.i FROM unnest(types, ids) k(t, i) WHERE k.i <> '') keys
  CROSS JOIN LATERAL (
    SELECT f.seq, f.state FROM {schema}.parked f
    WHERE f.subscription = sub AND f.aggregate_type = keys.t AND f.aggregate_id = keys.i
      AND (f.state <> 'dead' OR (SELECT s.config ->> 'on_dead' = 'block' FROM {schema}.subscription s WHERE s.id = sub))
    ORDER BY f.seq LIMIT 1) first
  WHERE p.subscription = sub AND p.aggregate_type = keys.t AND p.aggregate_id = keys.i
    AND (p.seq = first.seq AND p.state = 'waiting' OR p.seq > first.seq AND p.state = 'retrying')
$fn$;

-- All keys of a subscription in these lanes: when its settings have changed, whether dead events block may have.
CREATE FUNCTION {schema}.order_all_parked_keys(sub integer, lanes bigint) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT {schema}.order_parked_keys(sub, array_agg(k.aggregate_type), array_agg(k.aggregate_id))
  FROM (SELECT DISTINCT p.aggregate_type, p.aggregate_id FROM {schema}.parked p
        WHERE p.subscription = sub AND p.state <> 'dead' AND p.aggregate_id <> '' AND (lanes >> p.lane) & 1 = 1) k
$fn$;

-- Locks lanes of the subscription's group, so that they do not change hands until the transaction ends, and refuses a relay that
-- does not own them.
CREATE FUNCTION {schema}.hold_lanes(sub integer, lanes smallint[], known_generation bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  owned  bigint;
BEGIN
  SELECT count(*) INTO owned FROM (
    SELECT l.generation FROM {schema}.lane l
    WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub) AND l.lane = ANY (lanes)
    ORDER BY l.lane FOR SHARE) held
  WHERE held.generation = known_generation;
  IF owned <> cardinality(lanes) THEN
    RAISE EXCEPTION 'the lanes of these events have another owner' USING ERRCODE = 'OX002';
  END IF;
END
$fn$;

-- ---- The relay's side

-- Sets events of the log aside, in the transaction of the settlement that passes them.
CREATE FUNCTION {schema}.park_events(sub integer, known_generation bigint, seqs bigint[], states text[], attempts bigint[],
                                     due_in_ms bigint[], errors text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  copied  integer;
BEGIN
  PERFORM {schema}.hold_lanes(sub, (SELECT array_agg(DISTINCT e.lane) FROM {schema}.event e WHERE e.seq = ANY (seqs)), known_generation);
  INSERT INTO {schema}.parked (subscription, seq, id, lane, aggregate_type, aggregate_id, event_type, payload, content_type,
    headers, created_at, occurred_at, state, attempts, next_attempt_at, error)
  SELECT sub, e.seq, e.id, e.lane, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers,
    e.created_at, e.occurred_at, n.state, n.attempts, clock_timestamp() + n.due * interval '1 millisecond', n.error
  FROM unnest(seqs, states, attempts, due_in_ms, errors) n(seq, state, attempts, due, error)
  JOIN {schema}.event e ON e.seq = n.seq;
  GET DIAGNOSTICS copied = ROW_COUNT;
  IF copied <> cardinality(seqs) THEN
    RAISE EXCEPTION '% of % events that were to be parked are gone from the log', cardinality(seqs) - copied, cardinality(seqs)
      USING ERRCODE = 'OX003', HINT = 'never delete from the table event by hand';
  END IF;
  PERFORM {schema}.order_parked_keys(sub, array_agg(p.aggregate_type), array_agg(p.aggregate_id))
  FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs);
END
$fn$;

-- What became of parked events that were sent again: a state of null means delivered. An event that a person removed or
-- edited meanwhile is left out. hashes: of the ids, for the ledger.
CREATE FUNCTION {schema}.settle_parked(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                       due_in_ms bigint[], errors text[], hashes bigint[], event_ids uuid[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  types   text[];
  ids     text[];
BEGIN
  PERFORM {schema}.hold_lanes(sub, (SELECT array_agg(DISTINCT p.lane) FROM {schema}.parked p
                                    WHERE p.subscription = sub AND p.seq = ANY (seqs)), known_generation);
  -- The retry rows carry a running total: one relay at a time adds to it.
  PERFORM pg_advisory_xact_lock(hashtextextended('outbox:retried:{name}', sub));
  SELECT array_agg(p.aggregate_type), array_agg(p.aggregate_id) INTO types, ids
  FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs);
  WITH result AS (
    SELECT * FROM unnest(seqs, states, new_attempts, hashes, event_ids) n(seq, state, attempts, hash, id) WHERE n.state IS NULL),
  gone AS (
    DELETE FROM {schema}.parked p USING result r WHERE p.subscription = sub AND p.seq = r.seq AND p.id = r.id
    RETURNING p.seq, p.id, r.attempts, r.hash),
  ended AS (
    INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts)
    SELECT sub, g.seq, g.id, 'delivered', g.attempts FROM gone g RETURNING 1),
  total AS (
    SELECT count(*) AS acked, mod(sum(g.hash::numeric), 18446744073709551616) AS hash FROM gone g HAVING count(*) > 0)
  INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, acked, acked_hash, acked_total)
  SELECT sub, 'retry', 0, known_generation, t.acked,
    CASE WHEN t.hash >= 9223372036854775808 THEN t.hash - 18446744073709551616
         WHEN t.hash < -9223372036854775808 THEN t.hash + 18446744073709551616 ELSE t.hash END::bigint,
    t.acked + coalesce((SELECT last.acked_total FROM {schema}.settlement last
                        WHERE last.subscription = sub AND last.kind = 'retry' ORDER BY last.id DESC LIMIT 1), 0)
  FROM total t;
  UPDATE {schema}.parked p
  SET state = n.state, attempts = n.attempts, next_attempt_at = clock_timestamp() + n.due * interval '1 millisecond', error = n.error
  FROM unnest(seqs, states, new_attempts, due_in_ms, errors, event_ids) n(seq, state, attempts, due, error, id)
  WHERE p.subscription = sub AND p.seq = n.seq AND p.id = n.id AND n.state IS NOT NULL AND p.state <> 'dead';
  PERFORM {schema}.order_parked_keys(sub, types, ids);
END
$fn$;

-- ---- A person's side

-- Locks the lanes of these events against the relay that owns them, and tells it to read them again.
CREATE FUNCTION {schema}.change_parked(sub integer, seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  PERFORM FROM {schema}.lane l
  WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub)
    AND l.lane IN (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs)) ORDER BY l.lane FOR UPDATE;
  UPDATE {schema}.subscription SET parked_version = parked_version + 1 WHERE id = sub;
END
$fn$;

-- Sends parked events again, at once or when it is their key's turn. Returns how many.
CREATE FUNCTION {schema}.retry_parked(sub integer, seqs bigint[], keep_attempts boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  changed  integer;
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  UPDATE {schema}.parked p
  SET state = CASE p.state WHEN 'dead' THEN 'retrying' ELSE p.state END, next_attempt_at = clock_timestamp(),
      attempts = CASE WHEN keep_attempts THEN p.attempts ELSE 0 END
  WHERE p.subscription = sub AND p.seq = ANY (seqs);
  GET DIAGNOSTICS changed = ROW_COUNT;
  PERFORM {schema}.order_parked_keys(sub, array_agg(p.aggregate_type), array_agg(p.aggregate_id))
  FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs);
  RETURN changed;
END
$fn$;

-- Removes parked events for good; they are never delivered. Returns how many.
CREATE FUNCTION {schema}.end_parked(sub integer, seqs bigint[], outcome text, actor text, reason text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  types    text[];
  ids      text[];
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  WITH gone AS (
    DELETE FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs) RETURNING p.*),
  ended AS (
    INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts, actor, reason)
    SELECT g.subscription, g.seq, g.id, end_parked.outcome, g.attempts, end_parked.actor, end_parked.reason FROM gone g)
  SELECT array_agg(g.aggregate_type), array_agg(g.aggregate_id) INTO types, ids FROM gone g;
  PERFORM {schema}.order_parked_keys(sub, types, ids);
  RETURN coalesce(cardinality(types), 0);
END
$fn$;

-- ---- Rights

SELECT {schema}.grant_to('outbox_relay',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.parked',
  'SELECT, INSERT ON {schema}.parked_end');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.parked',
  'SELECT ON {schema}.parked_end');
