-- Events that a relay set aside, what their keys do next, and how each of them left (docs/design/parking.md, "The law").
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- The event is copied whole, since retention may remove the original. key: of its ordering key (event::key_hash), else its seq. attempts,
-- error, token, version: of dead ones; of others the row of their key has them. blocks: it is dead, and holds its key.
CREATE TABLE {schema}.parked (
  subscription     integer NOT NULL,
  seq              bigint NOT NULL,
  id               uuid NOT NULL,
  lane             smallint NOT NULL,
  key              bigint NOT NULL,
  dead             boolean NOT NULL,
  blocks           boolean NOT NULL DEFAULT false,
  attempts         integer NOT NULL DEFAULT 0,
  token            bigint NOT NULL DEFAULT 0,
  version          bigint NOT NULL DEFAULT 0,
  aggregate_type   text NOT NULL,
  aggregate_id     text NOT NULL,
  event_type       text NOT NULL,
  payload          bytea NOT NULL,
  content_type     text,
  headers          jsonb NOT NULL,
  created_at       timestamptz NOT NULL,
  occurred_at      timestamptz,
  error            text NOT NULL DEFAULT '',
  parked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (subscription, seq)
);
CREATE INDEX parked_live ON {schema}.parked (subscription, key, seq) WHERE NOT dead;
CREATE INDEX parked_dead ON {schema}.parked (subscription, seq) WHERE dead;
CREATE INDEX parked_blocks ON {schema}.parked (subscription, key, seq) WHERE blocks;
CREATE INDEX parked_id ON {schema}.parked (id);

-- There is a row if the key has an event that is not dead, or one that blocks it. version: people's changes. attempts, next_attempt_at,
-- error: of what runs, else of its first event that is not dead. blocked_by: the first dead event that holds it. run_seq: the event that a worker runs, or,
-- without a worker, that any worker may claim (docs/design/tasks.md). token: how often an event of it began to run. solo: one event without a key.
CREATE TABLE {schema}.parked_key (
  subscription     integer NOT NULL,
  key              bigint NOT NULL,
  lane             smallint NOT NULL,
  solo             boolean NOT NULL,
  version          bigint NOT NULL DEFAULT 0,
  attempts         integer NOT NULL DEFAULT 0,
  next_attempt_at  timestamptz NOT NULL,
  blocked_by       bigint,
  run_seq          bigint,
  worker           uuid,
  token            bigint NOT NULL DEFAULT 0,
  begun_at         timestamptz,
  percent          smallint,  -- what its handler reported
  cancelled_by     text,      -- who wants what runs to end as discarded; null: nobody
  cancel_reason    text,
  progress         text,
  error            text NOT NULL DEFAULT '',
  PRIMARY KEY (subscription, key)
) WITH (fillfactor = 70);
CREATE INDEX parked_key_due ON {schema}.parked_key (subscription, next_attempt_at, key) WHERE run_seq IS NULL;
CREATE INDEX parked_key_worker ON {schema}.parked_key (subscription, worker) WHERE worker IS NOT NULL;
CREATE INDEX parked_key_ready ON {schema}.parked_key (subscription, run_seq) WHERE run_seq IS NOT NULL AND worker IS NULL;
CREATE INDEX parked_key_blocked ON {schema}.parked_key (subscription, key) WHERE blocked_by IS NOT NULL;

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

-- Grows when a person changes parked events, so that the relay reads what is due again.
ALTER TABLE {schema}.subscription ADD COLUMN parked_version integer NOT NULL DEFAULT 0;

-- The newest settlement that counts retried events has the greatest total of them. Found by that, which no other index has.
CREATE INDEX settlement_retries ON {schema}.settlement (subscription, acked_total) WHERE kind = 'retry';

-- What people see: each parked event with its state. waits_for: the seq of the event that it waits for. Indexes parked_key_pkey and
-- parked_live, for each row that is read.
CREATE VIEW {schema}.parked_state AS
  SELECT p.subscription, p.seq, p.id, p.lane, p.key, p.aggregate_type, p.aggregate_id, p.event_type, p.payload, p.content_type, p.headers,
    p.created_at, p.occurred_at, p.parked_at, s.state,
    CASE WHEN s.state = 'waiting' THEN least(nullif(f.first, p.seq), CASE WHEN k.blocked_by < p.seq THEN k.blocked_by END) END AS waits_for,
    CASE WHEN p.dead THEN p.attempts WHEN s.state = 'waiting' THEN 0 ELSE k.attempts END AS attempts,
    CASE WHEN p.dead THEN p.error WHEN s.state = 'waiting' THEN '' ELSE k.error END AS error,
    coalesce(k.next_attempt_at, p.parked_at) AS next_attempt_at, coalesce(k.token, p.token) AS token,
    CASE WHEN s.state = 'running' THEN k.worker END AS worker, CASE WHEN s.state = 'running' THEN k.begun_at END AS begun_at,
    CASE WHEN s.state = 'running' THEN k.percent END AS percent, CASE WHEN s.state = 'running' THEN k.progress END AS progress,
    CASE WHEN s.state = 'running' THEN k.cancelled_by END AS cancelled_by,
    CASE WHEN s.state = 'running' THEN k.cancel_reason END AS cancel_reason
  FROM {schema}.parked p
    LEFT JOIN {schema}.parked_key k ON k.subscription = p.subscription AND k.key = p.key AND NOT p.dead
    LEFT JOIN LATERAL (SELECT f.seq AS first FROM {schema}.parked f
                       WHERE f.subscription = p.subscription AND f.key = p.key AND NOT f.dead ORDER BY f.seq LIMIT 1) f ON NOT p.dead
    CROSS JOIN LATERAL (SELECT CASE
      WHEN p.dead THEN 'dead'
      WHEN k.run_seq = p.seq THEN CASE WHEN k.worker IS NULL THEN 'ready' ELSE 'running' END
      WHEN p.seq <> f.first OR k.blocked_by < p.seq THEN 'waiting'
      ELSE 'retrying' END AS state) s;

-- How the functions below find rows: a minute may pass before there are statistics, and without them the planner would read all rows of
-- a subscription and compare each with each. So rows are found by scalar subqueries, each by a whole key of an index, and changed by the
-- ctid that they have in the statement's own snapshot; OFFSET 0 keeps the planner from making joins of them. A row that somebody else
-- changes meanwhile has another ctid afterwards and would be passed over, so rows of `parked_key`, which workers change too, are locked
-- first; all who change `parked` hold its lanes.

-- ---- Keys

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

CREATE FUNCTION {schema}.lanes_of_parked(sub integer, seqs bigint[]) RETURNS smallint[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
  SELECT array_agg(DISTINCT n.lane) FILTER (WHERE n.lane IS NOT NULL) FROM (
    SELECT (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS lane
    FROM unnest(seqs) n(seq) OFFSET 0) n
$fn$;

CREATE FUNCTION {schema}.lock_keys(sub integer, keys bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  PERFORM FROM (SELECT DISTINCT n.key FROM unnest(keys) n(key) ORDER BY n.key) n
    CROSS JOIN LATERAL (SELECT FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key OFFSET 0 FOR UPDATE) k;
END
$fn$;

CREATE FUNCTION {schema}.dead_events_block(sub integer) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT s.config ->> 'on_dead' = 'block' FROM {schema}.subscription s WHERE s.id = sub
$fn$;

-- These events, which are gone or live again, do not hold their keys any more, which are locked; others may.
CREATE FUNCTION {schema}.release_keys(sub integer, keys bigint[], seqs bigint[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
  UPDATE {schema}.parked_key k
  SET blocked_by = (SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.key = k.key AND p.blocks ORDER BY p.seq LIMIT 1)
  FROM (
    SELECT n.seq, (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key) AS at
    FROM unnest(keys, seqs) n(key, seq) OFFSET 0) n
  WHERE k.ctid = n.at AND k.blocked_by = n.seq
$fn$;

-- These events of these keys, which are locked, have left, or died. A key whose first event that was begins anew for the next one; without
-- another one, and unless a dead one blocks it, its row goes. were_dead: those that were so before were not the first, whatever their seq.
-- by_person: what is in flight decides nothing any more.
CREATE FUNCTION {schema}.parked_left(sub integer, keys bigint[], seqs bigint[], were_dead boolean[], by_person boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  WITH moved AS MATERIALIZED (
    SELECT m.key, max(m.seq) FILTER (WHERE NOT m.dead) AS seq, array_agg(m.seq) AS seqs,
      (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = m.key) AS at,
      (SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.key = m.key AND NOT p.dead ORDER BY p.seq LIMIT 1) AS first
    FROM unnest(keys, seqs, were_dead) m(key, seq, dead) GROUP BY m.key),
  gone AS (
    DELETE FROM {schema}.parked_key k USING moved m
    WHERE k.ctid = m.at AND m.first IS NULL AND k.blocked_by IS NULL)
  UPDATE {schema}.parked_key k
  SET attempts = CASE WHEN m.anew OR k.run_seq = ANY (m.seqs) THEN 0 ELSE k.attempts END,
    error = CASE WHEN m.anew OR k.run_seq = ANY (m.seqs) THEN '' ELSE k.error END,
    next_attempt_at = CASE WHEN m.first IS NULL OR k.blocked_by < m.first THEN 'infinity'
                           WHEN m.anew OR k.run_seq = ANY (m.seqs) OR k.next_attempt_at = 'infinity' THEN clock_timestamp()
                           ELSE k.next_attempt_at END,
    version = k.version + ((m.anew OR k.run_seq IS NOT NULL AND k.run_seq = ANY (m.seqs)) AND by_person)::integer,
    run_seq = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.run_seq END,
    worker = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.worker END,
    begun_at = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.begun_at END,
    percent = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.percent END,
    progress = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.progress END,
    cancelled_by = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.cancelled_by END,
    cancel_reason = CASE WHEN k.run_seq = ANY (m.seqs) THEN NULL ELSE k.cancel_reason END
  FROM (SELECT *, moved.seq IS NOT NULL AND (moved.first IS NULL OR moved.first > moved.seq) AS anew FROM moved) m
  WHERE k.ctid = m.at AND (m.first IS NOT NULL OR k.blocked_by IS NOT NULL);
END
$fn$;

-- These events are dead, and those of them that block hold their keys. Then their keys go on, or wait. at_once: they were never anything
-- else.
CREATE FUNCTION {schema}.parked_died(sub integer, dead_keys bigint[], seqs bigint[], at_once boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  INSERT INTO {schema}.parked_key AS k (subscription, key, lane, solo, next_attempt_at, blocked_by)
  SELECT sub, n.key, min(p.lane), min(n.seq) = n.key, 'infinity', min(n.seq)
  FROM unnest(dead_keys, seqs) n(key, seq)
    CROSS JOIN LATERAL (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq AND p.blocks OFFSET 0) p
  GROUP BY n.key
  ON CONFLICT (subscription, key) DO UPDATE SET blocked_by = least(k.blocked_by, EXCLUDED.blocked_by);
  PERFORM {schema}.lock_keys(sub, dead_keys);
  PERFORM {schema}.parked_left(sub, dead_keys, seqs, array_fill(at_once, ARRAY[cardinality(seqs)]), false);
END
$fn$;

-- Of at most this many keys of these lanes that dead events hold: they go on, since dead events do not block any more. Returns how many
-- there were.
CREATE FUNCTION {schema}.unblock_parked(sub integer, lanes bigint, most bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  blocked  bigint[];
BEGIN
  PERFORM FROM {schema}.lane l
  WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub) AND (lanes >> l.lane) & 1 = 1
  ORDER BY l.lane FOR SHARE;
  SELECT array_agg(k.key) INTO blocked FROM (
    SELECT k.key FROM {schema}.parked_key k
    WHERE k.subscription = sub AND k.blocked_by IS NOT NULL AND (lanes >> k.lane) & 1 = 1 LIMIT most FOR UPDATE) k;
  UPDATE {schema}.parked_key k
  SET blocked_by = NULL,
    next_attempt_at = CASE WHEN k.next_attempt_at = 'infinity' THEN clock_timestamp() ELSE k.next_attempt_at END
  FROM (
    SELECT (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = b.key) AS at
    FROM unnest(blocked) b(key) OFFSET 0) b
  WHERE k.ctid = b.at;
  UPDATE {schema}.parked p SET blocks = false
  FROM (
    SELECT p.at FROM unnest(blocked) b(key) CROSS JOIN LATERAL (
      SELECT p.ctid AS at FROM {schema}.parked p WHERE p.subscription = sub AND p.key = b.key AND p.blocks OFFSET 0) p OFFSET 0) b
  WHERE p.ctid = b.at;
  DELETE FROM {schema}.parked_key k USING (
    SELECT (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = b.key) AS at
    FROM unnest(blocked) b(key)
    WHERE (SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.key = b.key AND NOT p.dead ORDER BY p.seq LIMIT 1) IS NULL
    OFFSET 0) b
  WHERE k.ctid = b.at;
  RETURN coalesce(cardinality(blocked), 0);
END
$fn$;

-- ---- The relay's side

-- Sets events of the log aside, in the transaction of the settlement that passes them. A few rows among
-- millions, by index: the planner, which does not know how few they are, would read the whole log.
CREATE FUNCTION {schema}.park_events(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                     due_in_ms bigint[], errors text[], workers uuid[], keys bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS $fn$
DECLARE
  dead_block  boolean := {schema}.dead_events_block(sub);
  copied      integer;
  lanes       smallint[];
  dead_keys   bigint[];
  dead_seqs   bigint[];
  with_key    uuid[];
BEGIN
  WITH put AS (
    INSERT INTO {schema}.parked AS p (subscription, seq, id, lane, key, dead, blocks, attempts, aggregate_type, aggregate_id, event_type,
      payload, content_type, headers, created_at, occurred_at, error)
    SELECT sub, e.seq, e.id, e.lane, n.key, n.state = 'dead', n.state = 'dead' AND dead_block,
      CASE n.state WHEN 'dead' THEN n.attempts ELSE 0 END, e.aggregate_type, e.aggregate_id, e.event_type, e.payload,
      e.content_type, e.headers, e.created_at, e.occurred_at, CASE n.state WHEN 'dead' THEN n.error ELSE '' END
    FROM unnest(seqs, states, new_attempts, errors, keys) n(seq, state, attempts, error, key)
    JOIN {schema}.event e ON e.seq = n.seq
    RETURNING p.lane, p.seq, p.key, p.dead, CASE WHEN p.headers ? 'task-unique-key' AND NOT p.dead THEN p.id END AS with_key)
  SELECT count(*), array_agg(DISTINCT put.lane), array_agg(put.key) FILTER (WHERE put.dead), array_agg(put.seq) FILTER (WHERE put.dead),
    array_agg(put.with_key) FILTER (WHERE put.with_key IS NOT NULL)
  INTO copied, lanes, dead_keys, dead_seqs, with_key FROM put;
  IF copied <> cardinality(seqs) THEN
    RAISE EXCEPTION '% of % events that were to be parked are gone from the log', cardinality(seqs) - copied, cardinality(seqs)
      USING ERRCODE = 'OX003', HINT = 'never delete from the table event by hand';
  END IF;
  -- From here on nobody else changes the keys of these lanes.
  PERFORM {schema}.hold_lanes(sub, lanes, known_generation);
  -- The first of each key. Where the key has a row already they come behind.
  INSERT INTO {schema}.parked_key (subscription, key, lane, solo, attempts, next_attempt_at, error)
  SELECT DISTINCT ON (n.key) sub, n.key, (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq),
    n.key = n.seq, n.attempts, clock_timestamp() + n.due * interval '1 millisecond', n.error
  FROM unnest(seqs, states, new_attempts, due_in_ms, errors, keys) n(seq, state, attempts, due, error, key)
  WHERE n.state <> 'dead' ORDER BY n.key, n.seq
  ON CONFLICT DO NOTHING;
  IF states && '{running,ready}' THEN
    -- What runs is a fact, wherever it stands in its key.
    PERFORM {schema}.lock_keys(sub, keys);
    UPDATE {schema}.parked_key k
    SET run_seq = n.seq, worker = n.worker, token = k.token + (n.state = 'running')::integer,
      begun_at = CASE n.state WHEN 'running' THEN clock_timestamp() END,
      attempts = n.attempts
    FROM (
      SELECT DISTINCT ON (n.key) n.*, (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key) AS at
      FROM unnest(seqs, states, new_attempts, workers, keys) n(seq, state, attempts, worker, key)
      WHERE n.state IN ('running', 'ready') ORDER BY n.key, n.seq OFFSET 0) n
    WHERE k.ctid = n.at AND k.run_seq IS NULL;
  END IF;
  IF EXISTS (SELECT FROM {schema}.parked_key k WHERE k.subscription = sub AND k.blocked_by IS NOT NULL) THEN
    -- Transactions do not commit in the order of seq: one may come before a dead event that holds its key.
    PERFORM {schema}.lock_keys(sub, keys);
    UPDATE {schema}.parked_key k SET next_attempt_at = clock_timestamp()
    FROM (
      SELECT (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key) AS at, min(n.seq) AS seq
      FROM unnest(seqs, states, keys) n(seq, state, key) WHERE n.state <> 'dead' GROUP BY n.key OFFSET 0) n
    WHERE k.ctid = n.at AND k.next_attempt_at = 'infinity' AND (k.blocked_by < n.seq) IS NOT TRUE;
  END IF;
  IF dead_keys IS NOT NULL THEN PERFORM {schema}.parked_died(sub, dead_keys, dead_seqs, true); END IF;
  -- Functions of 0008_tasks.sql.
  IF with_key IS NOT NULL THEN
    SELECT array_agg(p.id) INTO with_key
    FROM unnest(seqs, states) n(seq, state)
      CROSS JOIN LATERAL (SELECT p.id FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq OFFSET 0) p
    WHERE n.state = 'retrying' AND p.id = ANY (with_key);
    IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, false); END IF;
  END IF;
  IF dead_keys IS NOT NULL THEN PERFORM {schema}.tasks_died(sub, dead_seqs); END IF;
  IF 'ready' = ANY (states) THEN PERFORM {schema}.tell_of_ready_tasks(); END IF;
END
$fn$;

-- Removes rows for good, as cancelled by whom their keys name, else by the actor. In lanes that the caller has locked against others.
-- by_person: see {schema}.parked_left.
CREATE FUNCTION {schema}.discard_rows(sub integer, seqs bigint[], actor text, reason text, by_person boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  gone_keys  bigint[];
  gone_seqs  bigint[];
  were_dead  boolean[];
  with_key   uuid[];
BEGIN
  WITH gone AS (
    DELETE FROM {schema}.parked p USING (
      SELECT (SELECT p.ctid FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS at
      FROM unnest(seqs) n(seq) OFFSET 0) n
    WHERE p.ctid = n.at
    RETURNING p.key, p.seq, p.id, p.dead, p.attempts, p.headers),
  ended AS (
    INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts, actor, reason)
    SELECT sub, g.seq, g.id, 'discarded', CASE WHEN g.dead THEN g.attempts WHEN l.run OR l.first THEN k.attempts ELSE 0 END,
      CASE WHEN l.run THEN coalesce(k.cancelled_by, discard_rows.actor) ELSE discard_rows.actor END,
      CASE WHEN l.run THEN coalesce(k.cancel_reason, discard_rows.reason) ELSE discard_rows.reason END
    FROM gone g
      LEFT JOIN LATERAL (SELECT * FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = g.key OFFSET 0) k ON true
      CROSS JOIN LATERAL (
        SELECT coalesce(k.run_seq = g.seq, false) AS run, NOT g.dead AND g.seq = (
          SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.key = g.key AND NOT p.dead ORDER BY p.seq LIMIT 1) AS first) l)
  SELECT array_agg(g.key), array_agg(g.seq), array_agg(g.dead), array_agg(g.id) FILTER (WHERE g.headers ? 'task-unique-key')
  INTO gone_keys, gone_seqs, were_dead, with_key FROM gone g;
  IF gone_keys IS NULL THEN RETURN 0; END IF;
  PERFORM {schema}.lock_keys(sub, gone_keys);
  PERFORM {schema}.release_keys(sub, gone_keys, gone_seqs);
  PERFORM {schema}.parked_left(sub, gone_keys, gone_seqs, were_dead, by_person);
  IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, true); END IF;
  RETURN cardinality(gone_seqs);
END
$fn$;

-- What became of parked events, in lanes that the caller has locked against others: a state of null means delivered. hashes: of the ids, for
-- the ledger. versions: of the keys, as the sender saw them; of another one nothing counts but an ack, and that an event runs. A task that a
-- person has cancelled while it ran ends as discarded, unless it was done.
CREATE FUNCTION {schema}.write_results(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                       due_in_ms bigint[], errors text[], workers uuid[], keys bigint[], hashes bigint[],
                                       event_ids uuid[], versions bigint[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  cancelled   bigint[];
  left_keys   bigint[];
  left_seqs   bigint[];
  were_dead   boolean[];
  dead_block  boolean;
  died_keys   bigint[];
  died_seqs   bigint[];
  again       uuid[];
BEGIN
  PERFORM {schema}.lock_keys(sub, keys);
  SELECT array_agg(n.seq) INTO cancelled
  FROM unnest(seqs, states, keys, event_ids) n(seq, state, key, id)
  WHERE n.state IS NOT NULL
    AND (SELECT k.run_seq = n.seq AND k.cancelled_by IS NOT NULL FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key)
    AND (SELECT p.id = n.id FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq);
  IF cancelled IS NOT NULL THEN PERFORM {schema}.discard_rows(sub, cancelled, '', '', false); END IF;
  IF array_position(states, NULL) IS NOT NULL THEN
    -- The retry rows carry a running total: one relay at a time adds to it.
    PERFORM pg_advisory_xact_lock(hashtextextended('outbox:retried:{name}', sub));
    WITH result AS (
      SELECT n.*, (SELECT p.ctid FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS at
      FROM unnest(seqs, states, new_attempts, hashes, event_ids) n(seq, state, attempts, hash, id) WHERE n.state IS NULL OFFSET 0),
    gone AS (
      DELETE FROM {schema}.parked p USING result r WHERE p.ctid = r.at AND p.id = r.id
      RETURNING p.seq, p.key, p.dead, p.id, r.attempts, r.hash),
    ended AS (
      INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts)
      SELECT sub, g.seq, g.id, 'delivered', g.attempts FROM gone g RETURNING 1),
    total AS (
      SELECT count(*) AS acked, mod(sum(g.hash::numeric), 18446744073709551616) AS hash FROM gone g HAVING count(*) > 0),
    counted AS (
      INSERT INTO {schema}.settlement (subscription, kind, lanes, generation, acked, acked_hash, acked_total)
      SELECT sub, 'retry', 0, known_generation, t.acked,
        CASE WHEN t.hash >= 9223372036854775808 THEN t.hash - 18446744073709551616
             WHEN t.hash < -9223372036854775808 THEN t.hash + 18446744073709551616 ELSE t.hash END::bigint,
        t.acked + coalesce((SELECT last.acked_total FROM {schema}.settlement last
                            WHERE last.subscription = sub AND last.kind = 'retry' ORDER BY last.acked_total DESC LIMIT 1), 0)
      FROM total t)
    SELECT array_agg(g.key), array_agg(g.seq), array_agg(g.dead) INTO left_keys, left_seqs, were_dead FROM gone g;
    -- An event that had died, or blocked its key, may have been delivered all the same.
    PERFORM {schema}.release_keys(sub, left_keys, left_seqs);
    PERFORM {schema}.parked_left(sub, left_keys, left_seqs, were_dead, false);
  END IF;
  WITH changed AS (
    UPDATE {schema}.parked_key k
    SET attempts = CASE WHEN f.over THEN 0 ELSE n.attempts END, error = CASE WHEN f.over THEN '' ELSE n.error END,
      next_attempt_at = CASE WHEN NOT f.over THEN clock_timestamp() + n.due * interval '1 millisecond'
                             WHEN k.blocked_by < f.first THEN 'infinity' ELSE clock_timestamp() END,
      run_seq = CASE WHEN n.state IN ('running', 'ready') THEN n.seq END, worker = n.worker,
      token = k.token + (n.state = 'running')::integer, begun_at = CASE n.state WHEN 'running' THEN clock_timestamp() END,
      percent = NULL, progress = NULL, cancelled_by = NULL, cancel_reason = NULL
    FROM (
        SELECT n.*, (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key) AS at
        FROM unnest(seqs, states, new_attempts, due_in_ms, errors, workers, keys, event_ids, versions)
          n(seq, state, attempts, due, error, worker, key, id, version)
        WHERE n.state IN ('retrying', 'running', 'ready') OFFSET 0) n
      CROSS JOIN LATERAL (
        SELECT p.id, p.headers FROM {schema}.parked p
        WHERE p.subscription = sub AND p.seq = n.seq AND p.id = n.id AND NOT p.dead OFFSET 0) p
      -- Of a run that ends while a person has put an event before it, only that it is over.
      CROSS JOIN LATERAL (SELECT h.first, n.state = 'retrying' AND n.seq <> h.first AS over FROM (SELECT (
        SELECT e.seq FROM {schema}.parked e WHERE e.subscription = sub AND e.key = n.key AND NOT e.dead ORDER BY e.seq LIMIT 1) AS first) h) f
    WHERE k.ctid = n.at
      AND CASE n.state WHEN 'running' THEN k.run_seq IS NULL ELSE k.version = n.version END
    RETURNING CASE WHEN n.state = 'retrying' AND p.headers ? 'task-unique-key' THEN p.id END AS with_key)
  SELECT array_agg(c.with_key) FILTER (WHERE c.with_key IS NOT NULL) INTO again FROM changed c;
  IF again IS NOT NULL THEN PERFORM {schema}.release_unique(again, false); END IF;
  IF 'dead' = ANY (states) THEN
    dead_block := {schema}.dead_events_block(sub);
    WITH died AS (
      UPDATE {schema}.parked p
      SET dead = true, blocks = dead_block, attempts = n.attempts, error = n.error, token = k.token, version = k.version
      FROM (
          SELECT n.*, (SELECT p.ctid FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS at
          FROM unnest(seqs, states, new_attempts, errors, keys, event_ids, versions) n(seq, state, attempts, error, key, id, version)
          WHERE n.state = 'dead' OFFSET 0) n
        CROSS JOIN LATERAL (
          SELECT k.token, k.version FROM {schema}.parked_key k
          WHERE k.subscription = sub AND k.key = n.key AND k.version = n.version OFFSET 0) k
      WHERE p.ctid = n.at AND p.id = n.id AND NOT p.dead
      RETURNING p.key, p.seq)
    SELECT array_agg(d.key), array_agg(d.seq) INTO died_keys, died_seqs FROM died d;
    IF died_keys IS NOT NULL THEN
      PERFORM {schema}.parked_died(sub, died_keys, died_seqs, false);
      PERFORM {schema}.tasks_died(sub, died_seqs);
    END IF;
  END IF;
  IF 'ready' = ANY (states) THEN PERFORM {schema}.tell_of_ready_tasks(); END IF;
END
$fn$;

-- The same of events that were sent again by the owner of their lanes.
CREATE FUNCTION {schema}.settle_parked(sub integer, known_generation bigint, seqs bigint[], states text[], new_attempts bigint[],
                                       due_in_ms bigint[], errors text[], workers uuid[], keys bigint[], hashes bigint[],
                                       event_ids uuid[], versions bigint[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  PERFORM {schema}.hold_lanes(sub, {schema}.lanes_of_parked(sub, seqs), known_generation);
  PERFORM {schema}.write_results(sub, known_generation, seqs, states, new_attempts, due_in_ms, errors, workers, keys, hashes, event_ids,
                                 versions);
END
$fn$;

-- ---- A person's side: at most 1,000 events in one transaction, since the relay waits for the lanes

-- The order of locks: the subscription's row, its lanes in their order, what is parked. Then the relay is told to read again.
CREATE FUNCTION {schema}.change_parked(sub integer, seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  UPDATE {schema}.subscription SET parked_version = parked_version + 1 WHERE id = sub;
  PERFORM FROM {schema}.lane l
  WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub)
    AND l.lane = ANY ({schema}.lanes_of_parked(sub, seqs)) ORDER BY l.lane FOR UPDATE;
END
$fn$;

-- Events of lanes that the caller has locked are sent again, at once or when it is their key's turn. A dead one lives again, at its own
-- place. Returns how many there were.
CREATE FUNCTION {schema}.revive_parked(sub integer, seqs bigint[], keep_attempts boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  there          integer;
  all_keys       bigint[];
  alive_keys     bigint[];
  alive_seqs     bigint[];
  alive_lanes    smallint[];
  had_attempts   bigint[];
  had_tokens     bigint[];
  had_versions   bigint[];
BEGIN
  SELECT count(*), array_agg(DISTINCT p.key), array_agg(p.key) FILTER (WHERE p.dead), array_agg(p.seq) FILTER (WHERE p.dead),
    array_agg(p.lane) FILTER (WHERE p.dead), array_agg(p.attempts) FILTER (WHERE p.dead), array_agg(p.token) FILTER (WHERE p.dead),
    array_agg(p.version) FILTER (WHERE p.dead)
  INTO there, all_keys, alive_keys, alive_seqs, alive_lanes, had_attempts, had_tokens, had_versions
  FROM unnest(seqs) n(seq) CROSS JOIN LATERAL (SELECT * FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq OFFSET 0) p;
  PERFORM {schema}.lock_keys(sub, all_keys);
  IF alive_keys IS NOT NULL THEN
    UPDATE {schema}.parked p SET dead = false, blocks = false, attempts = 0, error = '', token = 0, version = 0
    FROM (
      SELECT (SELECT p.ctid FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS at
      FROM unnest(alive_seqs) n(seq) OFFSET 0) n
    WHERE p.ctid = n.at;
    INSERT INTO {schema}.parked_key AS k (subscription, key, lane, solo, version, token, next_attempt_at)
    SELECT sub, a.key, min(a.lane), min(a.seq) = a.key, max(a.version), max(a.token), clock_timestamp()
    FROM unnest(alive_keys, alive_seqs, alive_lanes, had_tokens, had_versions) a(key, seq, lane, token, version) GROUP BY a.key
    -- Neither may come again: results and ends of runs name them.
    ON CONFLICT (subscription, key) DO UPDATE
    SET token = greatest(k.token, EXCLUDED.token), version = greatest(k.version, EXCLUDED.version);
    PERFORM {schema}.release_keys(sub, alive_keys, alive_seqs);
  END IF;
  UPDATE {schema}.parked_key k
  SET version = k.version + 1,
    attempts = CASE WHEN k.run_seq IS NOT NULL THEN k.attempts WHEN NOT keep_attempts THEN 0
                    ELSE coalesce(had_attempts[array_position(alive_seqs, f.first)], k.attempts) END,
    error = CASE WHEN k.run_seq IS NULL AND f.first = ANY (alive_seqs) THEN '' ELSE k.error END,
    next_attempt_at = CASE WHEN k.run_seq IS NOT NULL THEN k.next_attempt_at WHEN k.blocked_by < f.first THEN 'infinity'
                           ELSE clock_timestamp() END
  FROM (
    SELECT (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = n.key) AS at, n.first
    FROM (
      SELECT n.key, (SELECT p.seq FROM {schema}.parked p WHERE p.subscription = sub AND p.key = n.key AND NOT p.dead
                     ORDER BY p.seq LIMIT 1) AS first FROM unnest(all_keys) n(key) OFFSET 0) n
    WHERE n.first = ANY (seqs) OFFSET 0) f
  WHERE k.ctid = f.at;
  RETURN there;
END
$fn$;

-- The same for people. A task does not wait for its execute_at any more.
CREATE FUNCTION {schema}.retry_parked(sub integer, seqs bigint[], keep_attempts boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  UPDATE {schema}.parked p SET headers = p.headers - 'task-execute-at'
  FROM (
    SELECT (SELECT p.ctid FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) AS at
    FROM unnest(seqs) n(seq) OFFSET 0) n
  WHERE p.ctid = n.at AND p.headers ? 'task-execute-at' AND starts_with(p.aggregate_type, 'outbox-task:');
  RETURN {schema}.revive_parked(sub, seqs, keep_attempts);
END
$fn$;

-- Removes parked events for good; they are never delivered. The row of a task that runs stays until its handler has returned, so that no
-- other one of its key runs beside it: its worker tells it to stop. Returns how many there were.
CREATE FUNCTION {schema}.discard_parked(sub integer, seqs bigint[], actor text, reason text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  running  bigint[];
BEGIN
  PERFORM {schema}.change_parked(sub, seqs);
  -- A worker that is about to claim one locks no lane.
  PERFORM {schema}.lock_keys(sub, ARRAY(
    SELECT (SELECT p.key FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq) FROM unnest(seqs) n(seq)));
  WITH told AS (
    UPDATE {schema}.parked_key k SET cancelled_by = coalesce(k.cancelled_by, discard_parked.actor),
      cancel_reason = coalesce(k.cancel_reason, discard_parked.reason)
    FROM (
      SELECT n.seq, (SELECT k.ctid FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = p.key) AS at
      FROM unnest(seqs) n(seq)
        CROSS JOIN LATERAL (SELECT p.key FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq OFFSET 0) p OFFSET 0) n
    WHERE k.ctid = n.at AND k.run_seq = n.seq AND k.worker IS NOT NULL
    RETURNING k.run_seq)
  SELECT array_agg(t.run_seq) INTO running FROM told t;
  RETURN coalesce(cardinality(running), 0) + {schema}.discard_rows(
    sub, CASE WHEN running IS NULL THEN seqs ELSE ARRAY(SELECT n.seq FROM unnest(seqs) n(seq) WHERE n.seq <> ALL (running)) END,
    actor, reason, true);
END
$fn$;

-- ---- Rights

SELECT {schema}.grant_to('outbox_relay',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.parked',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.parked_key',
  'SELECT ON {schema}.parked_state',
  'SELECT, INSERT ON {schema}.parked_end');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.parked',
  'SELECT ON {schema}.parked_key',
  'SELECT ON {schema}.parked_state',
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
