-- Tasks that run for long: their rows belong to a worker, not to the owner of a lane (docs/design/tasks.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- beat: grows with each heartbeat. A worker whose beat does not change is dead; when it was, is only shown.
CREATE TABLE {schema}.worker (
  id       uuid PRIMARY KEY,
  name     text NOT NULL,
  beat     bigint NOT NULL,
  beat_at  timestamptz NOT NULL,
  types    jsonb NOT NULL DEFAULT '{}',  -- that it has handlers for, and how long their runs took: for people
  idle     jsonb NOT NULL DEFAULT '{}'   -- how many threads are free, by queue
) WITH (fillfactor = 50);

-- Wakes the workers that have a thread free.
CREATE FUNCTION {schema}.ready_channel() RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
  RETURN 'outbox_ready_' || to_hex(hashtextextended('outbox:ready:{name}', 0));
CREATE FUNCTION {schema}.tell_of_ready_tasks() RETURNS void LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
  RETURN pg_notify({schema}.ready_channel(), '');

-- Locks the lanes of these rows, of several subscriptions: before them all, and in one order. Subscriptions of a queue share their lanes, so
-- whoever locked them for one after the other could wait for somebody who waits for it.
CREATE FUNCTION {schema}.hold_lanes_of_runs(subs bigint[], run_seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
BEGIN
  PERFORM FROM {schema}.lane l WHERE (l.lane_group, l.lane) IN (
    SELECT s.lane_group, p.lane FROM unnest(subs, run_seqs) n(sub, seq)
      CROSS JOIN LATERAL (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = n.sub AND p.seq = n.seq OFFSET 0) p
      JOIN {schema}.subscription s ON s.id = n.sub)
  ORDER BY l.lane_group, l.lane FOR UPDATE;
END
$fn$;

-- What runs became, of those that are not over yet: as {schema}.write_results. A run is over when its key runs another event, or has another
-- worker or token; people's changes do not matter. The lanes, which the caller has locked, may have another owner, which must not move rows
-- of these keys meanwhile. Returns those runs.
CREATE FUNCTION {schema}.end_runs(sub integer, run_seqs bigint[], states text[], new_attempts bigint[], due_in_ms bigint[],
                                  errors text[], owners uuid[], keys bigint[], hashes bigint[], event_ids uuid[], tokens bigint[])
RETURNS TABLE (run_seq bigint, run_token bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  generation  bigint;
  versions    bigint[];
BEGIN
  SELECT array_agg(n.seq), array_agg(n.state), array_agg(n.attempts), array_agg(n.due), array_agg(n.error), array_agg(n.hash),
    array_agg(n.id), array_agg(n.token), array_agg(p.key), array_agg(k.version), (
      SELECT max(l.generation) FROM {schema}.lane l
      WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub) AND l.lane = ANY (array_agg(p.lane)))
  INTO run_seqs, states, new_attempts, due_in_ms, errors, hashes, event_ids, tokens, keys, versions, generation
  FROM unnest(run_seqs, states, new_attempts, due_in_ms, errors, owners, hashes, event_ids, tokens)
    n(seq, state, attempts, due, error, owner, hash, id, token)
  CROSS JOIN LATERAL (SELECT p.key, p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq AND p.id = n.id OFFSET 0) p
  CROSS JOIN LATERAL (SELECT * FROM {schema}.parked_key k WHERE k.subscription = sub AND k.key = p.key OFFSET 0) k
  WHERE k.run_seq = n.seq AND k.worker = n.owner AND k.token = n.token;
  IF run_seqs IS NULL THEN RETURN; END IF;
  PERFORM {schema}.write_results(sub, coalesce(generation, 0), run_seqs, states, new_attempts, due_in_ms, errors,
                                 array_fill(NULL::uuid, ARRAY[cardinality(run_seqs)]), keys, hashes, event_ids, versions);
  RETURN QUERY SELECT * FROM unnest(run_seqs, tokens);
END
$fn$;

-- ---- Ends of tasks that have a result, tell somebody, were cancelled, or had a unique key

-- waits: a newer task has replaced this one, which is still in the log or set aside: the row stays until a worker has passed it over, and
-- nobody runs it before that. set_aside: it has a row in `parked`, which a worker removes.
CREATE TABLE {schema}.task_end (
  id         uuid PRIMARY KEY,
  outcome    text NOT NULL CHECK (outcome IN ('done', 'cancelled')),
  result     bytea,
  reason     text NOT NULL DEFAULT '',
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  waits      boolean NOT NULL DEFAULT false,
  set_aside  boolean NOT NULL DEFAULT false
);
CREATE INDEX task_end_at ON {schema}.task_end (at);
CREATE INDEX task_end_set_aside ON {schema}.task_end (id) WHERE set_aside;
CREATE INDEX task_end_waits ON {schema}.task_end (id) WHERE waits AND NOT set_aside;

-- These tasks never run (again), whatever becomes of those that have replaced them.
CREATE FUNCTION {schema}.cancel_replaced(tasks uuid[], are_set_aside boolean) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  INSERT INTO {schema}.task_end (id, outcome, reason, waits, set_aside)
  SELECT DISTINCT t.id, 'cancelled', 'a newer task with its unique key took its place', true,
    are_set_aside OR EXISTS (SELECT FROM {schema}.parked p WHERE p.id = t.id)
  FROM unnest(tasks) t(id) ON CONFLICT DO NOTHING
$fn$;

-- The task that has a unique key, until it has ended, and the one of them that runs: `id` may have replaced it, and then begins after it.
CREATE TABLE {schema}.task_unique (
  queue       text NOT NULL,
  unique_key  text NOT NULL,
  id          uuid NOT NULL,
  running     uuid,
  PRIMARY KEY (queue, unique_key)
);
CREATE INDEX task_unique_id ON {schema}.task_unique (id);
CREATE INDEX task_unique_running ON {schema}.task_unique (running) WHERE running IS NOT NULL;

-- Tasks that do not run any more, whose row of task_unique still says so: an application had locked it. over: nor do they have the key.
CREATE TABLE {schema}.task_released (
  id    uuid PRIMARY KEY,
  over  boolean NOT NULL
);

-- For a task that is being enqueued. Null: it has the key now. Else the id of the task that has it. One that is replaced is cancelled in the
-- same transaction, unless it runs: then release_unique() does that when it waits for a retry. Of its row in `parked` nothing is
-- written, nor are its lanes locked: the transaction is the application's, may take long, and relays must not wait for it.
CREATE FUNCTION {schema}.claim_unique(in_queue text, wanted text, new_id uuid, replace boolean) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  held   uuid;
  runs   uuid;
  ended  boolean;  -- and its row says that it still has the key, or runs; over: it has not
BEGIN
  LOOP
    INSERT INTO {schema}.task_unique AS u (queue, unique_key, id) VALUES (in_queue, wanted, new_id) ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN NULL; END IF;
    IF replace THEN
      SELECT u.id, u.running INTO held, runs FROM {schema}.task_unique u WHERE u.queue = in_queue AND u.unique_key = wanted FOR UPDATE;
    ELSE
      SELECT u.id INTO held FROM {schema}.task_unique u WHERE u.queue = in_queue AND u.unique_key = wanted;
    END IF;
    CONTINUE WHEN held IS NULL;  -- that task has just ended
    ended := (SELECT r.over FROM {schema}.task_released r WHERE r.id = held);
    IF NOT replace AND ended IS NOT TRUE THEN RETURN held; END IF;
    UPDATE {schema}.task_unique u SET id = new_id WHERE u.queue = in_queue AND u.unique_key = wanted AND u.id = held;
    CONTINUE WHEN NOT FOUND;
    IF replace AND held <> new_id AND ended IS NOT TRUE AND (runs IS DISTINCT FROM held OR ended IS NOT NULL) THEN
      PERFORM {schema}.cancel_replaced(ARRAY[held], false);
    END IF;
    RETURN NULL;
  END LOOP;
END
$fn$;

-- These tasks do not run any more; are_over: nor do they have their unique keys, which go back to a task that they have replaced and that
-- still runs. If not, they wait for a retry, which those that were replaced do not get: what is newer must not be done before it. An
-- application may have locked a row, to replace its task: nobody waits for it, what is left is noted and done by a later call.
CREATE FUNCTION {schema}.release_unique(tasks uuid[], are_over boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $fn$
DECLARE
  ids       uuid[] := tasks || ARRAY(SELECT r.id FROM {schema}.task_released r WHERE r.id <> ALL (tasks));
  over_ids  uuid[] := CASE WHEN are_over THEN tasks ELSE '{}' END
                      || ARRAY(SELECT r.id FROM {schema}.task_released r WHERE r.over AND r.id <> ALL (tasks));
BEGIN
  PERFORM {schema}.cancel_replaced(ARRAY(
    SELECT u.running FROM {schema}.task_unique u
    WHERE u.running = ANY (ids) AND u.id <> u.running AND u.running <> ALL (over_ids)), true);
  -- Those that were replaced before: passed over, or set aside since.
  UPDATE {schema}.task_end e SET waits = NOT are_over, set_aside = NOT are_over, at = clock_timestamp()
  WHERE e.id = ANY (tasks) AND e.waits AND (are_over OR NOT e.set_aside);
  WITH held AS MATERIALIZED (
    SELECT u.ctid AS place, u.id = ANY (over_ids) AS over, coalesce(u.running <> ALL (ids), false) AS runs
    FROM {schema}.task_unique u WHERE u.id = ANY (ids) OR u.running = ANY (ids) FOR UPDATE SKIP LOCKED),
  gone AS (DELETE FROM {schema}.task_unique u USING held h WHERE u.ctid = h.place AND h.over AND NOT h.runs)
  UPDATE {schema}.task_unique u SET id = CASE WHEN h.over THEN u.running ELSE u.id END, running = CASE WHEN h.runs THEN u.running END
  FROM held h WHERE u.ctid = h.place AND NOT (h.over AND NOT h.runs) AND (h.over OR NOT h.runs);
  -- Those of others are noted already: of a row of theirs nothing is written, and none is waited for.
  INSERT INTO {schema}.task_released AS r (id, over)
  SELECT u.running, are_over FROM {schema}.task_unique u WHERE u.running = ANY (tasks)
  UNION SELECT u.id, true FROM {schema}.task_unique u WHERE are_over AND u.id = ANY (tasks)
  ON CONFLICT (id) DO UPDATE SET over = EXCLUDED.over;
  DELETE FROM {schema}.task_released d WHERE d.ctid = ANY (ARRAY(
    SELECT r.ctid FROM {schema}.task_released r
    WHERE r.id = ANY (ids) AND NOT EXISTS (SELECT FROM {schema}.task_unique u WHERE u.running = r.id OR u.id = r.id AND r.over)
    FOR UPDATE SKIP LOCKED));
END
$fn$;

-- Before these tasks begin. Returns what each may do: 'begin'; 'replaced', it never begins; 'later', the one that it has replaced still
-- runs; 'busy', asked again soon: somebody else has locked its row, for whom a worker does not wait. A task whose row is gone (it was dead)
-- gets a new one.
CREATE FUNCTION {schema}.begin_unique(queues text[], keys text[], ids uuid[]) RETURNS TABLE (id uuid, may text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '10ms' AS $fn$
#variable_conflict use_column
DECLARE
  one  record;
BEGIN
  IF EXISTS (SELECT FROM {schema}.task_released) THEN PERFORM {schema}.release_unique('{}', true); END IF;
  FOR one IN SELECT DISTINCT * FROM unnest(queues, keys, ids) w(queue, unique_key, id)
             WHERE NOT EXISTS (SELECT FROM {schema}.task_end e WHERE e.id = w.id AND e.outcome = 'cancelled')
               AND NOT EXISTS (SELECT FROM {schema}.task_unique u WHERE u.queue = w.queue AND u.unique_key = w.unique_key) LOOP
    BEGIN
      INSERT INTO {schema}.task_unique (queue, unique_key, id) VALUES (one.queue, one.unique_key, one.id) ON CONFLICT DO NOTHING;
    EXCEPTION WHEN lock_not_available THEN  -- an application enqueues another one with this key
    END;
  END LOOP;
  RETURN QUERY
    WITH wanted AS MATERIALIZED (
      SELECT DISTINCT w.*, e.id IS NOT NULL AS over FROM unnest(queues, keys, ids) w(queue, unique_key, id)
      LEFT JOIN {schema}.task_end e ON e.id = w.id AND e.outcome = 'cancelled'),
    free AS MATERIALIZED (
      SELECT u.ctid AS place, u.id, u.running AS was, u.running IS NULL OR u.running = u.id
        OR EXISTS (SELECT FROM {schema}.task_released r WHERE r.id = u.running) AS idle
      FROM wanted w JOIN {schema}.task_unique u ON u.queue = w.queue AND u.unique_key = w.unique_key AND u.id = w.id
      WHERE NOT w.over FOR UPDATE OF u SKIP LOCKED),
    begun AS (UPDATE {schema}.task_unique u SET running = u.id FROM free f WHERE u.ctid = f.place AND f.idle RETURNING u.id),
    again AS (DELETE FROM {schema}.task_released r USING begun b WHERE r.id = b.id),
    -- What it has replaced waits for a retry.
    ended AS (
      INSERT INTO {schema}.task_end (id, outcome, reason, waits, set_aside)
      SELECT f.was, 'cancelled', 'a newer task with its unique key took its place', true, true
      FROM free f JOIN {schema}.task_released r ON r.id = f.was AND NOT r.over WHERE f.idle AND f.was <> f.id ON CONFLICT DO NOTHING)
    SELECT w.id, CASE
      WHEN w.id IN (SELECT b.id FROM begun b) THEN 'begin'
      WHEN w.id IN (SELECT f.id FROM free f WHERE NOT f.idle) THEN 'later'
      WHEN w.over OR EXISTS (SELECT FROM {schema}.task_unique u
                   WHERE u.queue = w.queue AND u.unique_key = w.unique_key AND u.id <> w.id
                     AND NOT EXISTS (SELECT FROM {schema}.task_released r WHERE r.id = u.id AND r.over)) THEN 'replaced'
      ELSE 'busy' END
    FROM wanted w;
END
$fn$;

-- Notes ends in the transaction of the caller. Of a task that was noted before the first end counts, and no event is enqueued again: it
-- ran again because its worker died before the relay knew of its end. event_ids: null, no event.
CREATE FUNCTION {schema}.finish_tasks(ids uuid[], outcomes text[], results bytea[], reasons text[], keys text[], event_ids uuid[],
                                      types text[], aggregates text[], events text[], payloads bytea[])
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  noted     uuid[];
  with_key  uuid[];
BEGIN
  WITH ended AS (
    INSERT INTO {schema}.task_end AS e (id, outcome, result, reason)
    SELECT DISTINCT ON (n.id) n.id, n.outcome, n.result, n.reason
    FROM unnest(ids, outcomes, results, reasons) WITH ORDINALITY n(id, outcome, result, reason, place) ORDER BY n.id, n.place
    ON CONFLICT DO NOTHING RETURNING e.id)
  SELECT array_agg(d.id) INTO noted FROM ended d;
  INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
  SELECT f.event, f.type, f.aggregate, f.name, f.payload, 'application/json', '{}' FROM (
    SELECT DISTINCT ON (n.id) n.*
    FROM unnest(ids, event_ids, types, aggregates, events, payloads) WITH ORDINALITY n(id, event, type, aggregate, name, payload, place)
    WHERE n.id = ANY (noted) ORDER BY n.id, n.place) f
  WHERE f.event IS NOT NULL;
  SELECT array_agg(n.id) INTO with_key FROM unnest(ids, keys) n(id, key) WHERE n.key <> '';
  IF with_key IS NOT NULL THEN PERFORM {schema}.release_unique(with_key, true); END IF;
END
$fn$;

-- The event that a header asks for; null: none, or it cannot be read.
CREATE FUNCTION {schema}.told_event(header text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  told  jsonb;
BEGIN
  told := header::jsonb;
  PERFORM {schema}.check_text('aggregate_type', told ->> 'aggregate_type', true);
  PERFORM {schema}.check_text('aggregate_id', told ->> 'aggregate_id', false);
  PERFORM {schema}.check_text('event_type', told ->> 'event_type', true);
  RETURN told;
EXCEPTION WHEN data_exception OR statement_too_complex THEN
  RETURN NULL;
END
$fn$;

-- Some of these parked events have just become dead: the tasks among them give up their unique keys, and tell who asked.
CREATE FUNCTION {schema}.tasks_died(sub integer, seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  with_key  uuid[] := ARRAY(
    SELECT p.id FROM unnest(seqs) n(seq)
      CROSS JOIN LATERAL (SELECT * FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq OFFSET 0) p
    WHERE p.dead AND p.headers ? 'task-unique-key');
BEGIN
  IF with_key <> '{}' THEN PERFORM {schema}.release_unique(with_key, true); END IF;
  INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
  SELECT {schema}.new_id(), t.told ->> 'aggregate_type', coalesce(t.told ->> 'aggregate_id', ''), t.told ->> 'event_type',
    convert_to(json_build_object('task', p.id, 'queue', split_part(substr(p.aggregate_type, 13), '!', 1), 'type', p.event_type,
                                 'key', p.aggregate_id, 'attempts', p.attempts, 'error', p.error)::text, 'UTF8'),
    'application/json', '{}'
  FROM unnest(seqs) n(seq)
    CROSS JOIN LATERAL (SELECT * FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = n.seq OFFSET 0) p
    CROSS JOIN LATERAL (SELECT {schema}.told_event(p.headers ->> 'task-on-dead') AS told) t
  WHERE p.dead AND p.aggregate_type LIKE 'outbox-task:%'
    AND p.headers ? 'task-on-dead' AND t.told IS NOT NULL;
END
$fn$;

-- ---- For applications

CREATE FUNCTION {schema}.check_task(queue text, type text, key text, execute_at timestamptz, max_attempts integer, priority integer,
                                    unique_key text, on_conflict text, on_done jsonb, on_dead jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  IF queue ~ '^[A-Za-z0-9._-]{1,50}$' IS NOT TRUE THEN
    PERFORM {schema}.refuse(format('queue: %L is no name of a queue', queue), 'at most 50 letters, digits, ''-'', ''_'' and ''.''');
  END IF;
  IF type IS NULL THEN PERFORM {schema}.refuse('type: is null', 'what is to be done, such as report.make'); END IF;
  PERFORM {schema}.check_text('type', type, true);
  PERFORM {schema}.check_text('key', key, false);
  PERFORM {schema}.check_text('unique_key', unique_key, false);
  IF NOT {schema}.is_time(execute_at) THEN PERFORM {schema}.refuse('execute_at: lies outside the years 1 to 9999'); END IF;
  IF max_attempts NOT BETWEEN 1 AND 1000 THEN PERFORM {schema}.refuse('max_attempts: must be from 1 to 1000'); END IF;
  IF priority BETWEEN 1 AND 4 IS NOT TRUE THEN PERFORM {schema}.refuse('priority: must be from 1 to 4'); END IF;
  IF on_conflict IN ('skip', 'replace', 'error') IS NOT TRUE THEN
    PERFORM {schema}.refuse(format('on_conflict: %L is unknown', on_conflict), 'skip, replace or error');
  END IF;
  IF on_done IS NOT NULL AND {schema}.told_event(on_done::text) IS NULL THEN
    PERFORM {schema}.refuse('on_done: is no event', '{"aggregate_type": "report", "aggregate_id": "42", "event_type": "ReportMade"}');
  END IF;
  IF on_dead IS NOT NULL AND {schema}.told_event(on_dead::text) IS NULL THEN
    PERFORM {schema}.refuse('on_dead: is no event', '{"aggregate_type": "report", "aggregate_id": "42", "event_type": "ReportFailed"}');
  END IF;
END
$fn$;

CREATE FUNCTION {schema}.task_headers(headers jsonb, execute_at timestamptz, max_attempts integer, unique_key text, on_done jsonb,
                                      on_dead jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce(headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
    'task-execute-at', to_char(execute_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'task-max-attempts', max_attempts::text, 'task-unique-key', nullif(unique_key, ''),
    'task-on-done', on_done::text, 'task-on-dead', on_dead::text))
$fn$;

-- enqueue_task(queue, type, payload, key, headers, id, content_type, execute_at, max_attempts, priority, unique_key, on_conflict, on_done,
-- on_dead): a task for the workers of a queue, in the caller's transaction. Two functions for each type of the payload, as of enqueue().
-- Raises an error that names the field. on_conflict: 'skip' (returns the id of the task that has the unique key), 'replace' or 'error'. on_done, on_dead: an
-- event, {"aggregate_type": "report", "aggregate_id": "42", "event_type": "ReportMade"}.
DO $make$
DECLARE
  payload_type  text;
BEGIN
  FOREACH payload_type IN ARRAY ARRAY['text', 'bytea', 'json', 'jsonb'] LOOP
    EXECUTE format($task$
CREATE FUNCTION {schema}.enqueue_task(queue text, type text, payload %1$s, key text DEFAULT '', headers jsonb DEFAULT '{}',
                                      id uuid DEFAULT NULL, content_type text DEFAULT NULL, execute_at timestamptz DEFAULT NULL,
                                      max_attempts integer DEFAULT NULL, priority integer DEFAULT 2, unique_key text DEFAULT NULL,
                                      on_conflict text DEFAULT 'skip', on_done jsonb DEFAULT NULL, on_dead jsonb DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql AS $fn$
DECLARE
  held    pg_catalog.uuid;
  target  pg_catalog.text;
BEGIN
  PERFORM {schema}.check_task(queue, type, key, execute_at, max_attempts, priority, unique_key, on_conflict, on_done, on_dead);
  target := pg_catalog.concat('outbox-task:', queue,
                              CASE WHEN priority OPERATOR(pg_catalog.=) 2 THEN '' ELSE pg_catalog.concat('!', priority) END);
  IF pg_catalog.concat(execute_at, max_attempts, unique_key, on_done, on_dead) OPERATOR(pg_catalog.<>) '' THEN
    headers := {schema}.task_headers(headers, execute_at, max_attempts, unique_key, on_done, on_dead);
  END IF;
  IF unique_key OPERATOR(pg_catalog.<>) '' THEN
    id := coalesce(id, {schema}.new_id());
    held := {schema}.claim_unique(queue, unique_key, id, on_conflict OPERATOR(pg_catalog.=) 'replace');
    IF held IS NOT NULL AND on_conflict OPERATOR(pg_catalog.=) 'error' THEN
      RAISE EXCEPTION USING ERRCODE = '23505',
        MESSAGE = pg_catalog.format('unique_key: task %%s of queue %%s has %%L', held, queue, unique_key);
    END IF;
    IF held IS NOT NULL THEN RETURN held; END IF;
  END IF;
  RETURN {schema}.enqueue(target, key, type, payload, headers, id, content_type);
END
$fn$
$task$, payload_type);
    -- A key that is a number, a uuid or any other type but an array. It has no default: without a key the one above is meant.
    EXECUTE format($task$
CREATE FUNCTION {schema}.enqueue_task(queue text, type text, payload %1$s, key anynonarray, headers jsonb DEFAULT '{}',
                                      id uuid DEFAULT NULL, content_type text DEFAULT NULL, execute_at timestamptz DEFAULT NULL,
                                      max_attempts integer DEFAULT NULL, priority integer DEFAULT 2, unique_key text DEFAULT NULL,
                                      on_conflict text DEFAULT 'skip', on_done jsonb DEFAULT NULL, on_dead jsonb DEFAULT NULL)
RETURNS uuid LANGUAGE sql VOLATILE AS $fn$
  SELECT {schema}.enqueue_task(queue, type, payload, key::pg_catalog.text, headers, id, content_type, execute_at, max_attempts,
                               priority, unique_key, on_conflict, on_done, on_dead)
$fn$
$task$, payload_type);
  END LOOP;
END
$make$;

-- When the headers of a task say that it may begin; null: at once, or it cannot be read.
CREATE FUNCTION {schema}.execute_at(headers jsonb) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  RETURN (headers ->> 'task-execute-at')::timestamptz;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$fn$;

-- What has become of a task; no row, with a notice: there is none with this id, or retention has removed it. Who has enqueued it may ask,
-- without the right to read the log.
--   pending      no worker has taken it yet
--   scheduled    its time, `next_attempt_at`, has not come
--   running      by `worker` since `running_since`, for longer than 1 s, with what its handler has reported
--   retrying     runs again at `next_attempt_at`
--   waiting      behind an earlier one of its key
--   completed    until `ended_at`, with its `result`
--   dead         stays until a person decides
--   cancelled    by a person, by its handler, or for a task with the same unique key
CREATE FUNCTION {schema}.task_status(id uuid)
RETURNS TABLE (queue text, type text, key text, state text, attempts integer, enqueued_at timestamptz, next_attempt_at timestamptz,
               ended_at timestamptz, worker text, running_since timestamptz, percent smallint, progress text, error text, result bytea,
               priority integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $fn$
#variable_conflict use_column
DECLARE
  seqs  bigint[] := {schema}.places_of(task_status.id);
BEGIN
  IF seqs IS NULL THEN RETURN; END IF;
  RETURN QUERY
    SELECT t.queue, l.event_type, l.aggregate_id, t.state, coalesce(l.attempts, 0), l.created_at,
      CASE t.state WHEN 'scheduled' THEN t.execute_at ELSE l.next_attempt_at END,
      coalesce(x.at, l.published_at), w.name, p.begun_at, p.percent, p.progress, coalesce(nullif(x.reason, ''),
        'cancelled by ' || p.cancelled_by || ': ' || p.cancel_reason, nullif(l.reason, ''), l.last_error),
      x.result, t.priority
    FROM {schema}.event_life(seqs, array_fill(task_status.id, ARRAY[cardinality(seqs)])) l
      JOIN {schema}.subscription s ON s.name = l.subscription
      LEFT JOIN {schema}.parked_state p ON p.subscription = s.id AND p.seq = l.seq AND p.id = l.id
      LEFT JOIN {schema}.event e ON e.seq = l.seq AND e.id = l.id
      LEFT JOIN {schema}.worker w ON w.id = p.worker
      LEFT JOIN {schema}.task_end x ON x.id = l.id
      CROSS JOIN LATERAL (
        SELECT split_part(substr(l.aggregate_type, 13), '!', 1) AS queue,
          coalesce(nullif(split_part(l.aggregate_type, '!', 2), ''), '2')::integer AS priority,
          {schema}.execute_at(coalesce(p.headers, e.headers)) AS execute_at) h
      CROSS JOIN LATERAL (
        SELECT h.queue, h.priority, h.execute_at, CASE
          WHEN x.outcome = 'done' AND l.state <> 'dead' THEN 'completed'
          WHEN l.state = 'discarded' OR x.outcome = 'cancelled' THEN 'cancelled'
          WHEN l.state = 'published' THEN 'completed'
          WHEN l.state IN ('pending', 'retrying') AND coalesce(l.attempts, 0) = 0 AND h.execute_at > clock_timestamp() THEN 'scheduled'
          ELSE l.state END AS state) t
      CROSS JOIN LATERAL (
        SELECT e.xid IS NOT NULL AND {schema}.is_apart(l.aggregate_type, l.event_type, e.lane, e.xid, e.seq) AS apart OFFSET 0) a
    WHERE l.aggregate_type LIKE 'outbox-task:%' AND CASE
      WHEN l.subscription = 'task' || coalesce(nullif(t.priority, 2)::text, '') || '.' || t.queue THEN NOT a.apart
      ELSE l.subscription LIKE 'type%' AND s.config -> 'aggregate_types' = jsonb_build_array(l.aggregate_type)
        AND s.config -> 'event_types' = jsonb_build_array(l.event_type) AND (a.apart OR e.xid IS NULL) END;
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY  -- of a queue that has had no worker yet
    SELECT split_part(substr(e.aggregate_type, 13), '!', 1), e.event_type, e.aggregate_id,
      CASE WHEN x.id IS NOT NULL THEN 'cancelled' WHEN h.execute_at > clock_timestamp() THEN 'scheduled' ELSE 'pending' END, 0, e.created_at,
      CASE WHEN h.execute_at > clock_timestamp() AND x.id IS NULL THEN h.execute_at END, x.at,
      NULL::text, NULL::timestamptz, NULL::smallint, NULL::text, x.reason, NULL::bytea,
      coalesce(nullif(split_part(e.aggregate_type, '!', 2), ''), '2')::integer
    FROM {schema}.event e CROSS JOIN LATERAL (SELECT {schema}.execute_at(e.headers) AS execute_at) h
      LEFT JOIN {schema}.task_end x ON x.id = e.id
    WHERE e.seq = ANY (seqs) AND e.id = task_status.id AND e.aggregate_type LIKE 'outbox-task:%';
END
$fn$;

-- The types of these tasks whose own subscription has begun to deliver them.
CREATE FUNCTION {schema}.types_apart(in_aggregate text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce(array_agg(s.config -> 'event_types' ->> 0), '{}') FROM {schema}.subscription s
  WHERE s.name LIKE 'type%' AND s.config -> 'aggregate_types' = jsonb_build_array(in_aggregate)
    AND EXISTS (SELECT FROM {schema}.settlement t WHERE t.subscription = s.id)
$fn$;

-- ---- Consumers that do not apply a message twice

-- Ids are compared as bytes, which is faster than by the rules of a language.
CREATE TABLE {schema}.inbox (
  consumer     text COLLATE "C" NOT NULL,
  message_id   text COLLATE "C" NOT NULL,
  received_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Of messages that a consumer of ours has read: where they were, the task that they became, and how often they arrived.
  event_type   text NOT NULL DEFAULT '',
  place        text NOT NULL DEFAULT '',
  task         uuid,
  arrivals     integer NOT NULL DEFAULT 1,
  PRIMARY KEY (consumer, message_id)
);
CREATE INDEX inbox_received ON {schema}.inbox (consumer, received_at);

-- The highest number of a key's messages, for consumers that skip older ones, and when the last one came.
CREATE TABLE {schema}.inbox_key (
  consumer  text NOT NULL,
  key       text NOT NULL,
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, key)
);
CREATE INDEX inbox_key_at ON {schema}.inbox_key (at);

-- In the consumer's own transaction: true the first time, false when the message was applied before. Its commit waits for the disk, because
-- the broker, or the worker of the task, forgets the message then.
CREATE FUNCTION {schema}.receive(consumer text, message_id text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
#variable_conflict use_column
BEGIN
  PERFORM {schema}.check_text('consumer', receive.consumer, true);
  PERFORM {schema}.check_text('message_id', receive.message_id, true);
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  INSERT INTO {schema}.inbox (consumer, message_id) VALUES (receive.consumer, receive.message_id) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$fn$;

-- An id that is a number, a uuid or any other type but an array. Settings of the session must not change its text: the message would be
-- another one.
CREATE FUNCTION {schema}.receive(consumer text, message_id anynonarray) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET timezone = 'UTC' SET intervalstyle = 'postgres'
SET bytea_output = 'hex' SET extra_float_digits = 1 AS $fn$
  SELECT {schema}.receive(consumer, message_id::text)
$fn$;

-- ---- Tasks that recur

-- next_at is the tick that comes next; who enqueues its task moves it in the same transaction. paused: by a person. revision: grows with
-- each change of the row.
CREATE TABLE {schema}.schedule (
  name          text PRIMARY KEY,
  queue         text NOT NULL,
  type          text NOT NULL,
  payload       bytea NOT NULL,
  content_type  text NOT NULL,
  key           text NOT NULL,
  headers       jsonb NOT NULL,
  cron          text NOT NULL,
  every         text NOT NULL,
  time_zone     text NOT NULL,
  missed        text NOT NULL CHECK (missed IN ('one', 'skip', 'all')),
  paused        boolean NOT NULL DEFAULT false,
  revision      bigint NOT NULL DEFAULT 0,
  next_at       timestamptz NOT NULL,
  last_at       timestamptz,
  last_task     uuid,
  CHECK ((cron = '') <> (every = ''))
);

-- ---- Rights

REVOKE EXECUTE ON FUNCTION {schema}.task_status(uuid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.claim_unique(text, text, uuid, boolean) FROM PUBLIC;
SELECT {schema}.grant_to('outbox_app',
  'EXECUTE ON FUNCTION {schema}.claim_unique(text, text, uuid, boolean)',
  'SELECT, INSERT ON {schema}.inbox',
  'EXECUTE ON FUNCTION {schema}.task_status(uuid)');
SELECT {schema}.grant_to('outbox_relay',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.worker',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.task_unique',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.task_released',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.task_end',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.inbox',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.inbox_key',
  'SELECT, INSERT, UPDATE, DELETE ON {schema}.schedule',
  -- Events that tell of the end of a task; tasks of schedules.
  'INSERT ON {schema}.event_in',
  'EXECUTE ON FUNCTION {schema}.task_status(uuid)',
  'EXECUTE ON FUNCTION {schema}.claim_unique(text, text, uuid, boolean)',
  'USAGE ON SEQUENCE {schema}.event_seq');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.worker',
  'SELECT ON {schema}.task_unique',
  'SELECT ON {schema}.task_end',
  'SELECT ON {schema}.inbox',
  'EXECUTE ON FUNCTION {schema}.task_status(uuid)',
  'SELECT ON {schema}.schedule');
