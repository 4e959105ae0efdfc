-- Events that are sent again (docs/design/replay.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- One row per replay. A subscription has one at a time that is loading or running.
CREATE TABLE {schema}.replay (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subscription  integer NOT NULL,
  first_seq     bigint NOT NULL,
  last_seq      bigint NOT NULL,
  filter        jsonb NOT NULL,
  archived      boolean NOT NULL,  -- its events are in replay_event
  state         text NOT NULL CHECK (state IN ('loading', 'running', 'stopped', 'done')),
  actor         text NOT NULL,
  reason        text NOT NULL DEFAULT '',
  started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at      timestamptz
);
CREATE UNIQUE INDEX replay_running ON {schema}.replay (subscription) WHERE state IN ('loading', 'running');

-- Append-only: how far a replay is. A lane is at the greatest position of the rows that have it: only its owner adds rows.
CREATE TABLE {schema}.replay_progress (
  replay    bigint NOT NULL,
  lanes     bigint NOT NULL,
  position  bigint NOT NULL,
  sent      bigint NOT NULL,
  at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX replay_progress_replay ON {schema}.replay_progress (replay);

-- What a replay did not send: the destination rejected it, or (no error) one before it of its key.
CREATE TABLE {schema}.replay_skip (
  replay          bigint NOT NULL,
  seq             bigint NOT NULL,
  id              uuid NOT NULL,
  aggregate_type  text NOT NULL,
  aggregate_id    text NOT NULL,
  error           text NOT NULL,
  PRIMARY KEY (replay, seq)
);

-- Events copied from an archive, until they are sent.
CREATE TABLE {schema}.replay_event (
  replay          bigint NOT NULL,
  seq             bigint NOT NULL,
  lane            smallint NOT NULL,
  id              uuid NOT NULL,
  aggregate_type  text NOT NULL,
  aggregate_id    text NOT NULL,
  event_type      text NOT NULL,
  payload         bytea NOT NULL,
  content_type    text,
  headers         jsonb NOT NULL,
  created_at      timestamptz NOT NULL,
  occurred_at     timestamptz,
  PRIMARY KEY (replay, seq)
);

-- From which seq on nothing was removed from the log; 1: nothing ever was.
CREATE FUNCTION {schema}.retained_from() RETURNS bigint LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $fn$
  SELECT coalesce(max(p.last_seq), 0) + 1 FROM {schema}.pruned p
$fn$;

-- A running replay still reads events of the transaction ids first <= xid < ending (ending null: of the default partition). Its
-- callers share `fleet`, which start_replay() locks.
CREATE FUNCTION {schema}.replay_reads(first xid8, ending xid8) RETURNS SETOF integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $fn$
  SELECT r.subscription FROM {schema}.replay r
  WHERE r.state = 'running' AND NOT r.archived AND CASE
    WHEN ending IS NULL THEN EXISTS (SELECT FROM ONLY {schema}.event_default e WHERE e.seq BETWEEN r.first_seq AND r.last_seq)
    ELSE EXISTS (SELECT FROM {schema}.event e
                 WHERE e.xid >= first AND e.xid < ending AND e.seq BETWEEN r.first_seq AND r.last_seq) END
$fn$;

-- Starts a replay, or resumes the one of that id. The lock keeps history from being removed meanwhile. Raises OX004 when it begins
-- before what is retained, and OX005 when another one is running.
CREATE FUNCTION {schema}.start_replay(INOUT this bigint, sub integer, from_seq bigint, to_seq bigint, filter jsonb, archived boolean,
                                      actor text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  oldest  bigint;
  other   bigint;
BEGIN
  PERFORM FROM {schema}.fleet FOR UPDATE;
  SELECT r.id INTO other FROM {schema}.replay r WHERE r.subscription = sub AND r.state IN ('loading', 'running');
  IF FOUND THEN
    RAISE EXCEPTION 'replay % of this subscription is running', other USING ERRCODE = 'OX005';
  END IF;
  oldest := {schema}.retained_from();
  IF NOT archived AND from_seq < oldest THEN
    RAISE EXCEPTION 'it begins at seq %, before what is retained: everything from seq % on', from_seq, oldest
      USING ERRCODE = 'OX004';
  END IF;
  IF this IS NULL THEN
    INSERT INTO {schema}.replay (subscription, first_seq, last_seq, filter, archived, state, actor)
    VALUES (sub, from_seq, to_seq, start_replay.filter, start_replay.archived,
            CASE WHEN start_replay.archived THEN 'loading' ELSE 'running' END, start_replay.actor)
    RETURNING id INTO this;
  ELSE
    UPDATE {schema}.replay SET state = 'running', reason = '', ended_at = NULL WHERE id = this AND state = 'stopped';
    IF NOT FOUND THEN this := NULL; END IF;
  END IF;
END
$fn$;

-- Appends what a replay did on some lanes, of which the relay must be the owner. The last of the 64 lanes ends it; the lock on its
-- row lets one of two that end at the same moment see the other.
CREATE FUNCTION {schema}.settle_replay(this bigint, sub integer, known_generation bigint, lanes bigint, new_position bigint,
                                       sent bigint, seqs bigint[], ids uuid[], errors text[], most bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  last   bigint;
  ended  bigint;
BEGIN
  PERFORM {schema}.hold_lanes(sub, (SELECT array_agg(n::smallint) FROM generate_series(0, 63) n
                                    WHERE (settle_replay.lanes >> n) & 1 = 1), known_generation);
  INSERT INTO {schema}.replay_progress (replay, lanes, position, sent)
    VALUES (this, settle_replay.lanes, new_position, settle_replay.sent);
  IF cardinality(seqs) > 0 THEN
    INSERT INTO {schema}.replay_skip (replay, seq, id, aggregate_type, aggregate_id, error)
      SELECT this, u.seq, u.id, e.aggregate_type, e.aggregate_id, u.error FROM unnest(seqs, ids, errors) u(seq, id, error)
      CROSS JOIN LATERAL (
        SELECT a.aggregate_type, a.aggregate_id FROM {schema}.replay_event a WHERE a.replay = this AND a.seq = u.seq
        UNION ALL SELECT l.aggregate_type, l.aggregate_id FROM {schema}.event l WHERE l.seq = u.seq LIMIT 1) e
      ON CONFLICT DO NOTHING;
    IF (SELECT count(*) FROM {schema}.replay_skip k WHERE k.replay = this) >= most THEN
      UPDATE {schema}.replay SET state = 'stopped', ended_at = clock_timestamp(),
        reason = format('%s events were skipped: the destination rejects too much', most)
      WHERE id = this AND state = 'running';
    END IF;
  END IF;
  SELECT r.last_seq INTO last FROM {schema}.replay r WHERE r.id = this;
  IF new_position < last THEN RETURN; END IF;
  PERFORM FROM {schema}.replay r WHERE r.id = this FOR UPDATE;
  SELECT bit_or(p.lanes) INTO ended FROM {schema}.replay_progress p WHERE p.replay = this AND p.position >= last;
  IF ended = -1 THEN
    -- Also one that is being stopped: there is nothing left of it to resume.
    UPDATE {schema}.replay SET state = 'done', reason = '', ended_at = clock_timestamp() WHERE id = this AND state <> 'done';
  END IF;
END
$fn$;

SELECT {schema}.grant_to('outbox_relay',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.replay',
  'SELECT, INSERT ON {schema}.replay_progress',
  'SELECT, INSERT ON {schema}.replay_skip',
  'SELECT, INSERT, DELETE ON {schema}.replay_event');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.replay',
  'SELECT ON {schema}.replay_progress',
  'SELECT ON {schema}.replay_skip');
