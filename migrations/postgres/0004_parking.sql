-- Events that a relay set aside, and how each of them left (docs/design/parking.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- retrying: the first of its key, sent again at next_attempt_at. waiting: behind an earlier one of its key. dead: not sent again
-- unless a person says so. running: a task that a worker runs (docs/design/tasks.md); token: how often it became so. ready: a task that any worker may take. The event is copied whole, since retention may remove the original.
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
  state            text NOT NULL CHECK (state IN ('retrying', 'waiting', 'dead', 'running', 'ready')),
  attempts         integer NOT NULL,
  next_attempt_at  timestamptz NOT NULL,
  error            text NOT NULL,
  parked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  worker           uuid,
  token            bigint NOT NULL DEFAULT 0,
  begun_at         timestamptz,
  percent          smallint,  -- what its handler reported
  progress         text,
  cancelled_by     text,      -- who wants a task that runs to end as discarded; null: nobody
  cancel_reason    text,
  PRIMARY KEY (subscription, seq)
);
CREATE INDEX parked_due ON {schema}.parked (subscription, next_attempt_at, seq) WHERE state = 'retrying';
CREATE INDEX parked_key ON {schema}.parked (subscription, aggregate_type, aggregate_id, seq);
CREATE INDEX parked_id ON {schema}.parked (id);
CREATE INDEX parked_running ON {schema}.parked (subscription, worker) WHERE state = 'running';
CREATE INDEX parked_ready ON {schema}.parked (subscription, seq) WHERE state = 'ready';

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

-- The newest settlement that counts retried events has the greatest total of them. Found by that, which no other index has.
CREATE INDEX settlement_retries ON {schema}.settlement (subscription, acked_total) WHERE kind = 'retry';

-- ---- Keys

-- The first row of each key that is not dead, or dead in a subscription whose dead events block: the one that is retried; the others
-- of the key wait. Events without a key stand alone. n: place in the arrays. Rows are named by their place in the table, so that a
-- change costs the same without statistics as with them (by subscription and seq the planner reads all rows of the subscription).
CREATE FUNCTION {schema}.first_parked_of_keys(sub integer, types text[], ids text[],
  OUT n bigint, OUT place tid, OUT seq bigint, OUT state text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT keys.n, first.ctid, first.seq, first.state FROM unnest(types, ids) WITH ORDINALITY keys(t, i, n)
  CROSS JOIN LATERAL (
    SELECT f.ctid, f.seq, f.state FROM {schema}.parked f
    WHERE f.subscription = sub AND f.aggregate_type = keys.t AND f.aggregate_id = keys.i
      AND (f.state <> 'dead' OR (SELECT s.config ->> 'on_dead' = 'block' FROM {schema}.subscription s WHERE s.id = sub))
    ORDER BY f.seq LIMIT 1) first
  WHERE keys.i <> ''
$fn$;

-- After parked events of these keys left: whose turn it is now.
CREATE FUNCTION {schema}.wake_parked_keys(sub integer, types text[], ids text[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  UPDATE {schema}.parked p SET state = 'retrying', next_attempt_at = clock_timestamp()
  WHERE p.ctid = ANY (ARRAY(
    SELECT f.place FROM {schema}.first_parked_of_keys(sub, types, ids) f WHERE f.state = 'waiting'))
$fn$;

-- The same after a person's change, which may have put an event before one that is retried. Reads all rows of the keys.
CREATE FUNCTION {schema}.order_parked_keys(sub integer, types text[], ids text[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT {schema}.wake_parked_keys(sub, types, ids);
  UPDATE {schema}.parked p SET state = 'waiting', next_attempt_at = clock_timestamp()
  WHERE p.ctid = ANY (ARRAY(
    SELECT late.ctid FROM {schema}.first_parked_of_keys(sub, types, ids) f CROSS JOIN LATERAL (
      SELECT l.ctid FROM {schema}.parked l
      WHERE l.subscription = sub AND l.aggregate_type = types[f.n] AND l.aggregate_id = ids[f.n]
        AND l.seq > f.seq AND l.state = 'retrying' OFFSET 0) late))
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

-- Sets events of the log aside, in the transaction of the settlement that passes them. A few rows among
-- millions, by index: the planner, which does not know how few they are, would read the whole log.
CREATE FUNCTION {schema}.park_events(sub integer, known_generation bigint, seqs bigint[], states text[], attempts bigint[],
                                     due_in_ms bigint[], errors text[], workers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  copied      integer;
  lanes       smallint[];
  types       text[];
  ids         text[];
  placed      bigint[];
  places      tid[];
  heads       boolean[];
  late        tid[];
  woken       tid[];
  with_key    uuid[];
BEGIN
  WITH put AS (
    INSERT INTO {schema}.parked AS p (subscription, seq, id, lane, aggregate_type, aggregate_id, event_type, payload, content_type,
      headers, created_at, occurred_at, state, attempts, next_attempt_at, error, worker, token, begun_at)
    SELECT sub, e.seq, e.id, e.lane, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers,
      e.created_at, e.occurred_at, n.state, n.attempts, clock_timestamp() + n.due * interval '1 millisecond', n.error,
      n.worker, (n.state = 'running')::integer, CASE n.state WHEN 'running' THEN clock_timestamp() END
    FROM unnest(seqs, states, attempts, due_in_ms, errors, workers) n(seq, state, attempts, due, error, worker)
    JOIN {schema}.event e ON e.seq = n.seq
    RETURNING p.ctid, p.lane, p.aggregate_type, p.aggregate_id, p.seq, p.state IN ('retrying', 'ready') AS head,
      CASE WHEN p.state = 'retrying' AND p.headers ? 'task-unique-key' THEN p.id END AS with_key)
  SELECT count(*), array_agg(DISTINCT put.lane), array_agg(put.aggregate_type), array_agg(put.aggregate_id),
    array_agg(put.seq), array_agg(put.ctid), array_agg(put.head),
    array_agg(put.with_key) FILTER (WHERE put.with_key IS NOT NULL)
  INTO copied, lanes, types, ids, placed, places, heads, with_key FROM put;
  IF copied <> cardinality(seqs) THEN
    RAISE EXCEPTION '% of % events that were to be parked are gone from the log', cardinality(seqs) - copied, cardinality(seqs)
      USING ERRCODE = 'OX003', HINT = 'never delete from the table event by hand';
  END IF;
  -- From here on nobody else changes the rows of these lanes: the statement below sees what came or went before.
  PERFORM {schema}.hold_lanes(sub, lanes, known_generation);
  SELECT array_agg(places[f.n]) FILTER (WHERE heads[f.n] AND placed[f.n] > f.seq),
    array_agg(f.place) FILTER (WHERE f.state = 'waiting')
  INTO late, woken FROM {schema}.first_parked_of_keys(sub, types, ids) f;
  IF late IS NOT NULL THEN  -- another one of the key is there already, which this relay did not know
    UPDATE {schema}.parked p SET state = 'waiting', next_attempt_at = clock_timestamp() WHERE p.ctid = ANY (late);
  END IF;
  IF woken IS NOT NULL THEN  -- those before it have gone
    UPDATE {schema}.parked p SET state = 'retrying', next_attempt_at = clock_timestamp() WHERE p.ctid = ANY (woken);
  END IF;
  -- Functions of 0008_tasks.sql.
  IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, false); END IF;
  IF 'dead' = ANY (states) THEN PERFORM {schema}.tasks_died(sub, placed); END IF;
  IF 'ready' = ANY (states) THEN PERFORM {schema}.tell_of_ready_tasks(); END IF;
END
$fn$;

-- Removes rows for good, as cancelled by whom they name, else by the actor. In rows that the caller has locked against others.
CREATE FUNCTION {schema}.discard_rows(sub integer, seqs bigint[], actor text, reason text, OUT types text[], OUT ids text[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  with_key  uuid[];
BEGIN
  WITH gone AS (
    DELETE FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs) RETURNING p.*),
  ended AS (
    INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts, actor, reason)
    SELECT g.subscription, g.seq, g.id, 'discarded', g.attempts, coalesce(g.cancelled_by, discard_rows.actor),
      coalesce(g.cancel_reason, discard_rows.reason) FROM gone g)
  SELECT array_agg(g.aggregate_type), array_agg(g.aggregate_id), array_agg(g.id) FILTER (WHERE g.headers ? 'task-unique-key')
  INTO types, ids, with_key FROM gone g;
  IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, true); END IF;
END
$fn$;

-- What became of parked events, in rows that the caller has locked against others: a state of null means delivered. hashes: of the
-- ids, for the ledger. A task that a person has cancelled while it ran ends as discarded, unless it was done.
CREATE FUNCTION {schema}.write_results(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                       due_in_ms bigint[], errors text[], hashes bigint[], event_ids uuid[], workers uuid[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  types      text[];
  ids        text[];
  cancelled  bigint[];
  died       bigint[];
  with_key   uuid[];
BEGIN
  -- The retry rows carry a running total: one relay at a time adds to it.
  PERFORM pg_advisory_xact_lock(hashtextextended('outbox:retried:{name}', sub));
  SELECT array_agg(p.aggregate_type), array_agg(p.aggregate_id), array_agg(p.seq) FILTER (WHERE p.cancelled_by IS NOT NULL)
  INTO types, ids, cancelled
  FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs);
  IF cancelled IS NOT NULL THEN
    PERFORM {schema}.discard_rows(sub, ARRAY(
      SELECT n.seq FROM unnest(seqs, states, event_ids) n(seq, state, id)
      JOIN {schema}.parked p ON p.subscription = sub AND p.seq = n.seq AND p.id = n.id
      WHERE n.seq = ANY (cancelled) AND n.state IS NOT NULL), '', '');
  END IF;
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
                        WHERE last.subscription = sub AND last.kind = 'retry' ORDER BY last.acked_total DESC LIMIT 1), 0)
  FROM total t;
  WITH changed AS (
    UPDATE {schema}.parked p
    SET state = n.state, attempts = n.attempts, next_attempt_at = clock_timestamp() + n.due * interval '1 millisecond', error = n.error,
        worker = n.worker, token = p.token + (n.state = 'running')::integer,
        begun_at = CASE n.state WHEN 'running' THEN clock_timestamp() END, percent = NULL, progress = NULL
    FROM unnest(seqs, states, new_attempts, due_in_ms, errors, event_ids, workers) n(seq, state, attempts, due, error, id, worker)
    WHERE p.subscription = sub AND p.seq = n.seq AND p.id = n.id AND n.state IS NOT NULL AND p.state <> 'dead'
    RETURNING p.seq, p.state, CASE WHEN p.state = 'retrying' AND p.headers ? 'task-unique-key' THEN p.id END AS with_key)
  SELECT array_agg(c.seq) FILTER (WHERE c.state = 'dead'), array_agg(c.with_key) FILTER (WHERE c.with_key IS NOT NULL)
  INTO died, with_key FROM changed c;
  IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, false); END IF;
  IF died IS NOT NULL THEN PERFORM {schema}.tasks_died(sub, died); END IF;
  IF 'ready' = ANY (states) THEN PERFORM {schema}.tell_of_ready_tasks(); END IF;
  PERFORM {schema}.wake_parked_keys(sub, types, ids);
END
$fn$;

-- The same of events that were sent again by the owner of their lanes. An event that a person removed or edited meanwhile is left out.
CREATE FUNCTION {schema}.settle_parked(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                       due_in_ms bigint[], errors text[], workers uuid[], hashes bigint[], event_ids uuid[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  PERFORM {schema}.hold_lanes(sub, (SELECT array_agg(DISTINCT p.lane) FROM {schema}.parked p
                                    WHERE p.subscription = sub AND p.seq = ANY (seqs)), known_generation);
  PERFORM {schema}.write_results(sub, known_generation, seqs, states, new_attempts, due_in_ms, errors, hashes, event_ids, workers);
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

-- Sends parked events again, at once or when it is their key's turn; a task does not wait for its execute_at any more. Returns how many.
CREATE FUNCTION {schema}.retry_parked(sub integer, seqs bigint[], keep_attempts boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  changed  integer;
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  UPDATE {schema}.parked p
  SET state = CASE p.state WHEN 'dead' THEN 'retrying' ELSE p.state END, next_attempt_at = clock_timestamp(),
      attempts = CASE WHEN keep_attempts THEN p.attempts ELSE 0 END,
      headers = CASE WHEN starts_with(p.aggregate_type, 'outbox-task:') THEN p.headers - 'task-execute-at' ELSE p.headers END
  WHERE p.subscription = sub AND p.seq = ANY (seqs);
  GET DIAGNOSTICS changed = ROW_COUNT;
  PERFORM {schema}.order_parked_keys(sub, array_agg(p.aggregate_type), array_agg(p.aggregate_id))
  FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs);
  RETURN changed;
END
$fn$;

-- Removes parked events for good; they are never delivered. The row of a task that runs stays until its handler has returned, so that no
-- other one of its key runs beside it: its worker tells it to stop. Returns how many there were.
CREATE FUNCTION {schema}.discard_parked(sub integer, seqs bigint[], actor text, reason text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  running  integer;
  types    text[];
  ids      text[];
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  -- A worker that is about to claim one locks no lane.
  PERFORM FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs) FOR UPDATE;
  UPDATE {schema}.parked p SET cancelled_by = coalesce(p.cancelled_by, discard_parked.actor),
    cancel_reason = coalesce(p.cancel_reason, discard_parked.reason)
  WHERE p.subscription = sub AND p.seq = ANY (seqs) AND p.state = 'running';
  GET DIAGNOSTICS running = ROW_COUNT;
  SELECT d.types, d.ids INTO types, ids FROM {schema}.discard_rows(sub, ARRAY(
    SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (seqs) AND p.state <> 'running'), actor, reason) d;
  PERFORM {schema}.order_parked_keys(sub, types, ids);
  RETURN running + coalesce(cardinality(types), 0);
END
$fn$;

-- ---- Rights

SELECT {schema}.grant_to('outbox_relay',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.parked',
  'SELECT, INSERT ON {schema}.parked_end');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.parked',
  'SELECT ON {schema}.parked_end');

-- ---- An event that kills the relay (docs/design/trials.md)

-- Runs: a relay that delivers a subscription has a row for each of its strands, which it removes when it ends in order. What is left of
-- a relay that is not registered any more was left by a death.
CREATE TABLE {schema}.run (
  subscription  integer NOT NULL,
  lanes         bigint NOT NULL,
  generation    bigint NOT NULL,
  relay         uuid,               -- null: no death. The run ended in order during a trial, or its relay has come back
  place         text NOT NULL,      -- where the cursor of the strand stood when the run began
  tried         bigint NOT NULL,    -- events that were sent on trial and have not survived yet
  first_seq     bigint,             -- the first of them
  uncounted     bigint NOT NULL,    -- those of its lanes on which no other run has begun since
  PRIMARY KEY (subscription, lanes, generation)
);

-- Runs on these lanes, up to a generation, are forgotten, but for those of some generations; alone: of these, but for those that died
-- of one event.
CREATE FUNCTION {schema}.forget_runs(sub integer, mine bigint, newest bigint, keep bigint[], alone boolean) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  DELETE FROM {schema}.run r
  WHERE r.subscription = sub AND r.lanes & ~mine = 0 AND r.generation <= newest
    AND (r.generation <> ALL (keep) OR (alone AND r.tried <> 1));
  UPDATE {schema}.run r SET lanes = r.lanes & ~mine
  WHERE r.subscription = sub AND r.lanes & mine <> 0 AND r.generation <= newest
    AND (r.generation <> ALL (keep) OR (alone AND r.tried <> 1));
$fn$;

CREATE FUNCTION {schema}.begin_run(sub integer, mine bigint, known_generation bigint, me uuid, here text, range bigint, keep bigint[])
RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT {schema}.forget_runs(sub, mine, known_generation, keep, false);
  UPDATE {schema}.run r SET uncounted = r.uncounted & ~mine WHERE r.subscription = sub AND r.lanes & mine <> 0;
  INSERT INTO {schema}.run (subscription, lanes, generation, relay, place, tried, uncounted)
  VALUES (sub, mine, known_generation, me, here, range, mine);
$fn$;

CREATE FUNCTION {schema}.close_trial(sub integer, mine bigint, known_generation bigint, keep bigint[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT {schema}.forget_runs(sub, mine, known_generation - 1, keep, true);
  UPDATE {schema}.run r SET tried = 0, first_seq = NULL WHERE r.subscription = sub AND r.generation = known_generation;
$fn$;

SELECT {schema}.grant_to('outbox_relay', 'SELECT, INSERT, UPDATE, DELETE ON {schema}.run');
SELECT {schema}.grant_to('outbox_reader', 'SELECT ON {schema}.run');
