-- What became of an event, for people and programs: event_status(), recent_status, pending() (docs/design/status.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- The corrected copy of an event that left `parked` as edited.
ALTER TABLE {schema}.parked_end ADD COLUMN replaced_by uuid;

-- Where the history of a lane begins anew, few rows; and the settlements of a subscription in the order in which they were written.
CREATE INDEX settlement_beginnings ON {schema}.settlement (subscription, generation, id) WHERE kind IN ('claim', 'reset');
CREATE INDEX settlement_by_id ON {schema}.settlement (subscription, id);

-- ---- Filters: what src/event/filter.cpp decides, tested against it

-- As a pattern of LIKE, in which a character is one of UTF-8, too.
CREATE FUNCTION {schema}.glob_pattern(glob text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN replace(replace(replace(replace(replace(glob, E'\\', E'\\\\'), '%', E'\\%'), '_', E'\\_'), '*', '%'), '?', '_');

CREATE FUNCTION {schema}.any_glob_matches(globs jsonb, value text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce(jsonb_array_length(globs), 0) = 0
      OR EXISTS (SELECT FROM jsonb_array_elements_text(globs) g(glob) WHERE value COLLATE "C" LIKE {schema}.glob_pattern(g.glob))
$fn$;

-- Names in any case; a value that is not a string counts as its JSON text.
CREATE FUNCTION {schema}.headers_match(wanted jsonb, headers jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT NOT EXISTS (
    SELECT FROM jsonb_each_text(wanted) w(name, value) WHERE NOT EXISTS (
      SELECT FROM jsonb_each(CASE jsonb_typeof(headers) WHEN 'object' THEN headers ELSE '{}' END) h(name, value)
      WHERE lower(h.name COLLATE "C") = lower(w.name COLLATE "C")
        AND CASE jsonb_typeof(h.value) WHEN 'string' THEN h.value #>> '{}' ELSE h.value::text END = w.value))
$fn$;

-- Whether a subscription with this config takes the event. A task only if its queue is named in full.
CREATE FUNCTION {schema}.filter_matches(config jsonb, event_type text, aggregate_type text, headers jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT {schema}.any_glob_matches(config -> 'event_types', event_type)
     AND CASE WHEN starts_with(aggregate_type, 'outbox-task:') THEN coalesce(config -> 'aggregate_types' ? aggregate_type, false)
              ELSE {schema}.any_glob_matches(config -> 'aggregate_types', aggregate_type) END
     AND {schema}.headers_match(coalesce(config -> 'match_headers', '{}'), headers)
$fn$;

-- ---- Progress

-- Whether an event is behind a cursor, or behind the beginning of a settlement when `place` is its from_position.
CREATE FUNCTION {schema}.is_passed(xid xid8, seq bigint, s1 pg_snapshot, s2 pg_snapshot, place bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN place IS NULL THEN pg_visible_in_snapshot(xid, coalesce(s2, s1))
              ELSE pg_visible_in_snapshot(xid, s1) OR coalesce(seq <= place AND pg_visible_in_snapshot(xid, s2), false) END;

-- The first settlement of a lane that passed an event; the event must be behind the lane's cursor. Null: the subscription began after
-- it. `near` is the id of a settlement that may be close, or null. Along the rows that count of a lane the cursor only goes
-- on, from one beginning (claim or reset) to the next: so the last beginning that had not passed the event is found first, and between
-- it and the next one the rows are halved.
CREATE FUNCTION {schema}.settled_by(sub integer, in_lane integer, event_xid xid8, event_seq bigint, near bigint)
RETURNS {schema}.settlement LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  started  {schema}.settlement;
  later    {schema}.settlement;
  probe    record;
  low      bigint;  -- up to here the event was not passed
  high     bigint;  -- a row that passed it
  middle   bigint;
  step     bigint := 9223372036854775807;
BEGIN
  SELECT c.* INTO started FROM {schema}.settlement c
  WHERE c.subscription = sub AND c.kind IN ('claim', 'reset') AND (c.lanes >> in_lane) & 1 = 1
    AND NOT {schema}.is_passed(event_xid, event_seq, c.s1, c.s2, c.position)
  ORDER BY c.generation DESC, c.id DESC LIMIT 1;
  SELECT c.* INTO later FROM {schema}.settlement c
  WHERE c.subscription = sub AND c.kind IN ('claim', 'reset') AND (c.lanes >> in_lane) & 1 = 1
    AND (c.generation, c.id) > (coalesce(started.generation, -1), coalesce(started.id, -1))
  ORDER BY c.generation, c.id LIMIT 1;
  IF started.id IS NULL AND later.kind = 'reset' THEN RETURN NULL; END IF;
  IF started.id IS NULL AND later.id IS NOT NULL THEN RETURN later; END IF;  -- what was before it was removed
  low := coalesce(started.id, 0);
  high := later.id;
  IF high IS NULL THEN
    SELECT t.id INTO high FROM {schema}.newest_settlement(sub, in_lane) t;
  END IF;
  IF near > low AND near < high THEN
    SELECT {schema}.is_passed(event_xid, event_seq, t.s1, t.s2, t.position) AS passed INTO probe FROM {schema}.settlement t
    WHERE t.subscription = sub AND t.id = near AND (t.lanes >> in_lane) & 1 = 1 AND t.generation >= coalesce(started.generation, 0);
    IF FOUND AND NOT probe.passed THEN
      low := near;
      step := 64;  -- in ids: first look close by
    END IF;
  END IF;
  WHILE low + 1 < high LOOP
    middle := low + least((high - low) / 2, step);
    step := CASE WHEN step < 4611686018427387904 THEN step * 2 ELSE step END;
    SELECT t.id, {schema}.is_passed(event_xid, event_seq, t.s1, t.s2, t.position) AS passed INTO probe
    FROM {schema}.settlement t
    WHERE t.subscription = sub AND t.id > low AND t.id <= middle AND (t.lanes >> in_lane) & 1 = 1
      AND t.generation >= coalesce(started.generation, 0)
    ORDER BY t.id DESC LIMIT 1;
    IF FOUND AND probe.passed THEN high := probe.id; ELSE low := middle; END IF;
  END LOOP;
  SELECT t.* INTO later FROM {schema}.settlement t WHERE t.subscription = sub AND t.id = high;
  RETURN later;
END
$fn$;

-- Whether a subscription of its type delivers this task, not that of its queue any more: it began on the task's lane before it.
CREATE FUNCTION {schema}.is_apart(in_aggregate text, in_type text, in_lane integer, event_xid xid8, event_seq bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce((
    SELECT NOT {schema}.is_passed(event_xid, event_seq, c.s1, c.s2, c.position)
    FROM {schema}.subscription s CROSS JOIN LATERAL (
      SELECT t.* FROM {schema}.settlement t WHERE t.subscription = s.id AND t.kind = 'reset' AND (t.lanes >> in_lane) & 1 = 1
      ORDER BY t.generation, t.id LIMIT 1) c
    WHERE s.name LIKE 'type%' AND s.config -> 'aggregate_types' = jsonb_build_array(in_aggregate)
      AND s.config -> 'event_types' = jsonb_build_array(in_type)), false)
$fn$;

-- Committed events that a subscription has not passed yet, whether they match its filter or not. Counts all of them.
CREATE FUNCTION {schema}.pending(subscription text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET max_parallel_workers_per_gather = 0 SET jit = off AS $fn$
DECLARE
  sub     integer;
  strand  record;
  part    bigint;
  total   bigint := 0;
BEGIN
  SELECT s.id INTO sub FROM {schema}.subscription s WHERE s.name = pending.subscription;
  IF sub IS NULL THEN
    RAISE EXCEPTION 'no such subscription: %', pending.subscription
      USING ERRCODE = '22023', HINT = 'SELECT name FROM {schema}.subscription';
  END IF;
  -- Lanes at one place are counted together, by the statements of `outbox status`.
  FOR strand IN
    SELECT bit_or(1::bigint << n.lane) AS lanes, c.s1::pg_snapshot AS s1, coalesce(c.s2, c.s1)::pg_snapshot AS s2, c.position
    FROM generate_series(0, 63) n(lane) CROSS JOIN LATERAL (
      SELECT t.s1::text, t.s2::text, t.position FROM {schema}.newest_settlement(sub, n.lane) t) c
    GROUP BY c.s1, c.s2, c.position
  LOOP
    SELECT count(*) INTO part FROM (
      SELECT FROM {schema}.event e
      WHERE strand.position IS NOT NULL AND e.xid >= pg_snapshot_xmin(strand.s1) AND e.seq > strand.position
        AND NOT pg_visible_in_snapshot(e.xid, strand.s1) AND (strand.lanes >> e.lane::integer) & 1 = 1
      UNION ALL
      SELECT FROM {schema}.event e
      WHERE e.xid >= pg_snapshot_xmax(strand.s2) AND (strand.position IS NULL OR e.seq <= strand.position)
        AND (strand.lanes >> e.lane::integer) & 1 = 1
      UNION ALL
      SELECT FROM pg_snapshot_xip(strand.s2) x(xid) CROSS JOIN LATERAL (
        SELECT FROM {schema}.event e
        WHERE e.xid = x.xid AND (strand.position IS NULL OR e.seq <= strand.position)
          AND (strand.lanes >> e.lane::integer) & 1 = 1 OFFSET 0) late) ahead;
    total := total + part;
  END LOOP;
  RETURN total;
END
$fn$;

-- ---- Finding events

-- Whether `outbox migrate --with-lookup-indexes` made this index: event_by_id or event_by_key.
CREATE FUNCTION {schema}.has_lookup_index(which text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('{schema}.' || quote_ident(which)) AND i.indisvalid)
$fn$;

-- The partitions that lack their part of a look-up index; `broken`: one was begun and not finished.
CREATE FUNCTION {schema}.lookup_gaps(which text) RETURNS TABLE (part text, broken boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT c.relname::text, coalesce(NOT own.indisvalid, false)
  FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
    LEFT JOIN pg_index own ON own.indexrelid = to_regclass('{schema}.' || quote_ident(c.relname || substr(which, 6)))
  WHERE h.inhparent = '{schema}.event'::regclass AND NOT EXISTS (
    SELECT FROM pg_inherits a JOIN pg_index i ON i.indexrelid = a.inhrelid
    WHERE a.inhparent = to_regclass('{schema}.' || quote_ident(which)) AND i.indrelid = c.oid)
  ORDER BY c.relname
$fn$;

-- Where the log was at that time: events before it have lower seqs, and events after it higher ones, but for the moment between the
-- taking of a seq and that of created_at.
CREATE FUNCTION {schema}.seq_at(moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $fn$
DECLARE
  low     bigint;
  high    bigint;
  middle  bigint;
  probe   record;
BEGIN
  SELECT e.seq INTO low FROM {schema}.event e ORDER BY e.seq LIMIT 1;
  SELECT e.seq + 1 INTO high FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1;
  WHILE low < high LOOP
    middle := low + (high - low) / 2;
    SELECT e.seq, e.created_at INTO probe FROM {schema}.event e WHERE e.seq >= middle AND e.seq < high ORDER BY e.seq LIMIT 1;
    IF FOUND AND probe.created_at < moment THEN low := probe.seq + 1; ELSE high := middle; END IF;
  END LOOP;
  RETURN coalesce(low, 0);
END
$fn$;

-- The seqs of the events in the log with this id. By the index event_by_id if there is one. Else one of our own ids (UUIDv7) is
-- looked for around its time, first close by, since the event may have been committed long after its id was made; any other among the
-- newest 100,000 events.
CREATE FUNCTION {schema}.find_event(wanted uuid) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0 SET jit = off SET plan_cache_mode = force_generic_plan AS $fn$
DECLARE
  at      timestamptz;
  around  record;
  low     bigint;
  high    bigint;
BEGIN
  IF {schema}.has_lookup_index('event_by_id') THEN
    RETURN QUERY SELECT e.seq FROM {schema}.event e WHERE e.id = wanted;  -- in any order: that of event_by_seq would be tempting
    RETURN;
  END IF;
  IF substr(wanted::text, 15, 1) <> '7' THEN
    SELECT e.seq INTO high FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1;
    RETURN QUERY SELECT e.seq FROM {schema}.event e WHERE e.seq > high - 100000 AND e.id = wanted ORDER BY e.seq;
    RETURN;
  END IF;
  at := to_timestamp(('x' || substr(replace(wanted::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0);
  FOR around IN SELECT * FROM (VALUES (interval '10 ms', interval '100 ms'), (interval '1 s', interval '5 s'),
                               (interval '1 min', interval '10 min'), (interval '1 hour', interval '1 day')) w(before, after) LOOP
    low := {schema}.seq_at(at - around.before);
    high := least({schema}.seq_at(at + around.after), low + 1000000);
    RETURN QUERY SELECT e.seq FROM {schema}.event e WHERE e.seq >= low AND e.seq < high AND e.id = wanted ORDER BY e.seq;
    EXIT WHEN FOUND;
  END LOOP;
END
$fn$;

-- ---- The life of events

-- What became of events in each subscription. `ids`: only of the event with that id at its seq, which is how a corrected copy of a
-- parked event is told from its original; one that is not in the log (any more) is reported where it was parked.
--   pending       not passed yet
--   published     accepted by the destination between created_at and published_at
--   filtered      passed, and not matched by the filter
--   skipped       the subscription began after it
--   retrying, waiting (behind waiting_for), dead    parked
--   running       a task whose worker runs it
--   discarded, edited (replaced_by)                 parked, until a person (ended_by) ended that
CREATE FUNCTION {schema}.event_life(seqs bigint[], ids uuid[] DEFAULT NULL)
RETURNS TABLE (seq bigint, id uuid, aggregate_type text, aggregate_id text, event_type text, created_at timestamptz,
               subscription text, state text, published_at timestamptz, attempts integer, next_attempt_at timestamptz,
               last_error text, waiting_for uuid, waiting_for_seq bigint, ended_by text, reason text, replaced_by uuid)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0 SET jit = off AS $fn$
#variable_conflict use_column
DECLARE
  one      record;
  held     {schema}.parked_state;
  ended    {schema}.parked_end;
  cursor   {schema}.settlement;
  settled  {schema}.settlement;
  before   bigint;  -- the settlement of the event before this one
BEGIN
  FOR one IN
    SELECT s.id AS sub, s.name, s.config, s.config_version, n.seq, coalesce(n.id, e.id) AS id, e.xid, e.lane,
           e.aggregate_type, e.aggregate_id, e.event_type, e.headers, e.created_at
    FROM {schema}.subscription s CROSS JOIN unnest(seqs, ids) n(seq, id)
      LEFT JOIN {schema}.event e ON e.seq = n.seq AND (n.id IS NULL OR e.id = n.id)
    ORDER BY s.name, n.seq
  LOOP
    seq := one.seq; id := one.id; aggregate_type := one.aggregate_type; aggregate_id := one.aggregate_id;
    event_type := one.event_type; created_at := one.created_at; subscription := one.name;
    published_at := NULL; attempts := NULL; next_attempt_at := NULL; last_error := NULL;
    waiting_for := NULL; waiting_for_seq := NULL; ended_by := NULL; reason := NULL; replaced_by := NULL;
    SELECT p.* INTO held FROM {schema}.parked_state p WHERE p.subscription = one.sub AND p.seq = one.seq AND p.id = one.id;
    IF FOUND THEN
      state := CASE held.state WHEN 'ready' THEN 'pending' ELSE held.state END; attempts := held.attempts; last_error := nullif(held.error, '');
      aggregate_type := held.aggregate_type; aggregate_id := held.aggregate_id; event_type := held.event_type;
      created_at := held.created_at;
      IF held.state = 'retrying' THEN next_attempt_at := held.next_attempt_at; END IF;
      IF held.state = 'waiting' THEN
        SELECT f.id, f.seq INTO waiting_for, waiting_for_seq FROM {schema}.parked f
        WHERE f.subscription = one.sub AND f.seq = held.waits_for;
      END IF;
      RETURN NEXT;
      CONTINUE;
    END IF;
    SELECT x.* INTO ended FROM {schema}.parked_end x
    WHERE x.subscription = one.sub AND x.seq = one.seq AND x.id = one.id ORDER BY x.at DESC LIMIT 1;
    IF FOUND THEN
      state := CASE ended.outcome WHEN 'delivered' THEN 'published' ELSE ended.outcome END;
      attempts := ended.attempts; ended_by := nullif(ended.actor, ''); reason := nullif(ended.reason, '');
      replaced_by := ended.replaced_by;
      IF ended.outcome = 'delivered' THEN published_at := ended.at; END IF;
      RETURN NEXT;
      CONTINUE;
    END IF;
    CONTINUE WHEN one.xid IS NULL;
    SELECT t.* INTO cursor FROM {schema}.newest_settlement(one.sub, one.lane::integer) t;
    IF NOT FOUND OR NOT {schema}.is_passed(one.xid, one.seq, cursor.s1, cursor.s2, cursor.position) THEN
      state := 'pending';
      RETURN NEXT;
      CONTINUE;
    END IF;
    settled := {schema}.settled_by(one.sub, one.lane, one.xid, one.seq, before);
    before := settled.id;
    IF settled.id IS NULL THEN
      state := 'skipped';
    ELSE
      -- Under other settings the counts may tell what it was; else the filter of today does.
      state := CASE WHEN CASE
          WHEN settled.config_version <> one.config_version AND settled.filtered = 0 AND settled.acked > 0 THEN true
          WHEN settled.config_version <> one.config_version AND settled.acked = 0 AND settled.filtered > 0 THEN false
          WHEN NOT {schema}.filter_matches(one.config, one.event_type, one.aggregate_type, one.headers) THEN false
          ELSE NOT (starts_with(one.aggregate_type, 'outbox-task:') AND one.name LIKE 'task%'
            AND {schema}.is_apart(one.aggregate_type, one.event_type, one.lane, one.xid, one.seq)) END
        THEN 'published' ELSE 'filtered' END;
      IF state = 'published' THEN published_at := settled.at; END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END
$fn$;

-- Where events with this id are, in the log or parked; null, with a notice: none was found.
CREATE FUNCTION {schema}.places_of(wanted uuid) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  seqs  bigint[];
BEGIN
  SELECT array_agg(f.seq ORDER BY f.seq) INTO seqs FROM (
    SELECT * FROM {schema}.find_event(wanted) UNION
    SELECT p.seq FROM {schema}.parked p WHERE p.id = wanted UNION
    SELECT x.seq FROM {schema}.parked_end x WHERE x.id = wanted) f(seq);
  IF seqs IS NULL THEN
    RAISE NOTICE 'no event with the id % was found', wanted
      USING HINT = 'without the index of outbox migrate --with-lookup-indexes, ids that are not UUIDv7 are looked for among the '
                   'newest 100000 events, others around their time';
  END IF;
  RETURN seqs;
END
$fn$;

-- The life of the events with this id, also of those that retention has removed while they were parked.
CREATE FUNCTION {schema}.event_status(id uuid)
RETURNS TABLE (subscription text, state text, published_at timestamptz, attempts integer, next_attempt_at timestamptz,
               last_error text, waiting_for uuid, ended_by text, reason text, replaced_by uuid, seq bigint, created_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
#variable_conflict use_column
DECLARE
  seqs  bigint[] := {schema}.places_of(event_status.id);
BEGIN
  IF seqs IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT l.subscription, l.state, l.published_at, l.attempts, l.next_attempt_at, l.last_error, l.waiting_for,
    l.ended_by, l.reason, l.replaced_by, l.seq, l.created_at
  FROM {schema}.event_life(seqs, array_fill(event_status.id, ARRAY[cardinality(seqs)])) l;
END
$fn$;

-- The newest 1,000 events.
CREATE VIEW {schema}.recent_status AS
  SELECT * FROM {schema}.event_life(ARRAY(SELECT e.seq FROM {schema}.event e ORDER BY e.seq DESC LIMIT 1000));

-- ---- Correcting a parked event

-- A corrected copy, with an id of its own, takes the place of a parked event; the original ends as edited. Only an event that no relay can
-- have in its hands: one that is dead, or is not due yet, or whose lane has no live owner. Returns what stood in the way:
-- 'gone', 'waiting' (behind another one), 'due'; or 'edited'.
CREATE FUNCTION {schema}.edit_parked(sub integer, place bigint, old_id uuid, new_id uuid, new_type text, new_payload bytea,
                                     new_content_type text, new_headers jsonb, actor text, reason text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  old  {schema}.parked_state;
BEGIN
  PERFORM {schema}.change_parked(sub, ARRAY[place]);
  SELECT p.* INTO old FROM {schema}.parked_state p WHERE p.subscription = sub AND p.seq = place AND p.id = old_id;
  IF NOT FOUND THEN RETURN 'gone'; END IF;
  IF old.state = 'waiting' THEN RETURN 'waiting'; END IF;
  IF old.state IN ('running', 'ready') THEN RETURN 'due'; END IF;
  IF old.state = 'retrying' AND old.next_attempt_at <= clock_timestamp() AND EXISTS (
    SELECT FROM {schema}.lane l JOIN {schema}.relay r ON r.id = l.owner
    WHERE l.lane_group = (SELECT s.lane_group FROM {schema}.subscription s WHERE s.id = sub) AND l.lane = old.lane AND greatest(clock_timestamp() - r.heartbeat_at, r.heartbeat_at - clock_timestamp()) <= r.lease) THEN
    RETURN 'due';
  END IF;
  INSERT INTO {schema}.parked_end (subscription, seq, id, outcome, attempts, actor, reason, replaced_by)
  VALUES (sub, place, old_id, 'edited', old.attempts, edit_parked.actor, edit_parked.reason, new_id);
  UPDATE {schema}.parked p
  SET id = new_id, event_type = new_type, payload = new_payload, content_type = new_content_type, headers = new_headers
  WHERE p.subscription = sub AND p.seq = place;
  UPDATE {schema}.task_unique u SET id = new_id WHERE u.id = old_id;  -- the copy has its unique key
  PERFORM {schema}.revive_parked(sub, ARRAY[place], false);
  UPDATE {schema}.parked_key k SET error = '' WHERE k.subscription = sub AND k.key = old.key;
  RETURN 'edited';
END
$fn$;

-- ---- Rights

SELECT {schema}.grant_to('outbox_relay',
  'SELECT ON {schema}.recent_status');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.recent_status');
