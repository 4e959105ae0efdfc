-- Tasks that run for long: their rows belong to a worker, not to the owner of a lane (docs/design/tasks.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- beat: grows with each heartbeat. A worker whose beat does not change is dead; when it was, is only shown.
CREATE TABLE {schema}.worker (
  id       uuid PRIMARY KEY,
  name     text NOT NULL,
  beat     bigint NOT NULL,
  beat_at  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What runs became, of those that are not over yet: as {schema}.write_results. The lanes may have another owner, which must not move rows
-- of these keys meanwhile.
CREATE FUNCTION {schema}.end_runs(sub integer, run_seqs bigint[], states text[], new_attempts bigint[], due_in_ms bigint[],
                                  errors text[], owners uuid[], hashes bigint[], event_ids uuid[], tokens bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  generation  bigint;
BEGIN
  SELECT max(held.generation) INTO generation FROM (
    SELECT l.generation FROM {schema}.lane l
    WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub)
      AND l.lane IN (SELECT p.lane FROM {schema}.parked p WHERE p.subscription = sub AND p.seq = ANY (run_seqs))
    ORDER BY l.lane FOR UPDATE) held;
  SELECT array_agg(n.seq), array_agg(n.state), array_agg(n.attempts), array_agg(n.due), array_agg(n.error), array_agg(n.hash),
    array_agg(n.id)
  INTO run_seqs, states, new_attempts, due_in_ms, errors, hashes, event_ids
  FROM unnest(run_seqs, states, new_attempts, due_in_ms, errors, owners, hashes, event_ids, tokens)
    n(seq, state, attempts, due, error, owner, hash, id, token)
  JOIN {schema}.parked p ON p.subscription = sub AND p.seq = n.seq
  WHERE p.state = 'running' AND p.worker = n.owner AND p.token = n.token AND p.id = n.id;
  IF run_seqs IS NULL THEN RETURN; END IF;
  PERFORM {schema}.write_results(sub, coalesce(generation, 0), run_seqs, states, new_attempts, due_in_ms, errors, hashes, event_ids,
                                 array_fill(NULL::uuid, ARRAY[cardinality(run_seqs)]));
END
$fn$;

-- ---- For applications

-- enqueue_task(queue, type, payload, key, headers, id, content_type): a task for the workers of a queue, in the caller's transaction. One
-- function for each type of the payload. Raises an error that names the field.
DO $make$
DECLARE
  payload_type  text;
BEGIN
  FOREACH payload_type IN ARRAY ARRAY['text', 'bytea', 'json', 'jsonb'] LOOP
    EXECUTE format($task$
CREATE FUNCTION {schema}.enqueue_task(queue text, type text, payload %1$s, key text DEFAULT '', headers jsonb DEFAULT '{}',
                                      id uuid DEFAULT NULL, content_type text DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql AS $fn$
BEGIN
  IF queue OPERATOR(pg_catalog.~) '^[A-Za-z0-9._-]{1,50}$' IS NOT TRUE THEN
    PERFORM {schema}.refuse(pg_catalog.format('queue: %%L is no name of a queue', queue), 'at most 50 letters, digits, ''-'', ''_'' and ''.''');
  END IF;
  IF type IS NULL THEN PERFORM {schema}.refuse('type: is null', 'what is to be done, such as report.make'); END IF;
  RETURN {schema}.enqueue(pg_catalog.concat('outbox-task:', queue), key, type, payload, headers, id, content_type);
END
$fn$
$task$, payload_type);
  END LOOP;
END
$make$;

-- What has become of a task; no row, with a notice: there is none with this id, or retention has removed it.
--   pending      no worker has taken it yet
--   running      by `worker` since `running_since`, for longer than 1 s, with what its handler has reported
--   retrying     runs again at `next_attempt_at`
--   waiting      behind an earlier one of its key
--   completed    until `ended_at`
--   dead         stays until a person decides
--   cancelled    by a person
CREATE FUNCTION {schema}.task_status(id uuid)
RETURNS TABLE (queue text, type text, key text, state text, attempts integer, enqueued_at timestamptz, next_attempt_at timestamptz,
               ended_at timestamptz, worker text, running_since timestamptz, percent smallint, progress text, error text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $fn$
#variable_conflict use_column
DECLARE
  seqs  bigint[] := {schema}.places_of(task_status.id);
BEGIN
  IF seqs IS NULL THEN RETURN; END IF;
  RETURN QUERY
    SELECT substr(l.aggregate_type, 13), l.event_type, l.aggregate_id,
      CASE l.state WHEN 'published' THEN 'completed' WHEN 'discarded' THEN 'cancelled' ELSE l.state END,
      coalesce(l.attempts, 0), l.created_at, l.next_attempt_at, l.published_at, w.name, p.begun_at, p.percent, p.progress, l.last_error
    FROM {schema}.event_life(seqs, array_fill(task_status.id, ARRAY[cardinality(seqs)])) l
      JOIN {schema}.subscription s ON s.name = l.subscription
      LEFT JOIN {schema}.parked p ON p.subscription = s.id AND p.seq = l.seq AND p.id = l.id
      LEFT JOIN {schema}.worker w ON w.id = p.worker
    WHERE l.aggregate_type LIKE 'outbox-task:%' AND l.subscription = 'task.' || substr(l.aggregate_type, 13);
  IF FOUND THEN RETURN; END IF;
  RETURN QUERY  -- of a queue that has had no worker yet
    SELECT substr(e.aggregate_type, 13), e.event_type, e.aggregate_id, 'pending', 0, e.created_at, NULL::timestamptz, NULL::timestamptz,
      NULL::text, NULL::timestamptz, NULL::smallint, NULL::text, NULL::text
    FROM {schema}.event e WHERE e.seq = ANY (seqs) AND e.id = task_status.id AND e.aggregate_type LIKE 'outbox-task:%';
END
$fn$;

SELECT {schema}.grant_to('outbox_relay', 'SELECT, INSERT, UPDATE, DELETE ON {schema}.worker');
SELECT {schema}.grant_to('outbox_reader', 'SELECT ON {schema}.worker');
