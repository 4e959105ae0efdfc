-- The outbox: an append-only log in your database, and the progress of its subscriptions, appended as well.
-- `outbox migrate` replaces {schema} by the quoted name of the schema, and {name} by the bare one, for use inside strings.
-- The reasons: docs/design/schema.md. How events are written: 0003_enqueue.sql.

-- ---- Owner

DO $roles$
DECLARE
  wanted    text;
  is_owner  boolean := false;
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'the encoding of the database is %, the outbox needs UTF8', current_setting('server_encoding')
      USING ERRCODE = '0A000', HINT = 'create the database with ENCODING UTF8';
  END IF;
  -- Roles belong to the whole cluster: another database or schema may have created them.
  FOREACH wanted IN ARRAY ARRAY['outbox_owner', 'outbox_app', 'outbox_relay', 'outbox_reader', 'outbox_console'] LOOP
    BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
      END IF;
    EXCEPTION
      WHEN insufficient_privilege THEN
        RAISE NOTICE 'role % does not exist and % may not create it', wanted, current_user;
      WHEN duplicate_object OR unique_violation THEN
        NULL;  -- another session has created it
    END;
  END LOOP;
  -- The plans of the relay's reads must not depend on statistics. These settings apply to logins as this role; for other logins
  -- the relay sets them in each transaction.
  BEGIN
    IF NOT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
                   WHERE r.rolname = 'outbox_relay' AND s.setdatabase = 0
                     AND 'enable_sort=off' = ANY (s.setconfig)) THEN
      ALTER ROLE outbox_relay SET jit = off;
      ALTER ROLE outbox_relay SET max_parallel_workers_per_gather = 0;
      ALTER ROLE outbox_relay SET enable_seqscan = off;
      ALTER ROLE outbox_relay SET enable_bitmapscan = off;
      ALTER ROLE outbox_relay SET enable_sort = off;
      ALTER ROLE outbox_relay SET plan_cache_mode = force_generic_plan;
    END IF;
  EXCEPTION WHEN insufficient_privilege OR undefined_object THEN
    RAISE NOTICE 'the plan settings of role outbox_relay were not changed';
  END;
  -- Everything below belongs to outbox_owner where possible, so that nothing of ours runs as a superuser.
  BEGIN
    -- Since PostgreSQL 16 who has created a role is a member of it that may not become it.
    IF NOT pg_has_role(current_user, 'outbox_owner',
                       CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) THEN
      EXECUTE format('GRANT outbox_owner TO %I', current_user);
    END IF;
    IF to_regnamespace('{schema}') IS NULL THEN
      CREATE SCHEMA {schema} AUTHORIZATION outbox_owner;
    ELSE
      GRANT USAGE, CREATE ON SCHEMA {schema} TO outbox_owner WITH GRANT OPTION;  -- it grants USAGE to the others below
    END IF;
    PERFORM set_config('role', 'outbox_owner', true);
    is_owner := true;
  EXCEPTION WHEN insufficient_privilege OR undefined_object OR invalid_parameter_value THEN
    RAISE NOTICE 'role outbox_owner cannot be used: the outbox will belong to %', current_user;
  END;
  IF NOT is_owner AND to_regnamespace('{schema}') IS NULL THEN
    CREATE SCHEMA {schema};
  END IF;
END
$roles$;

-- ---- Bookkeeping

CREATE TABLE {schema}.migration (
  version     integer PRIMARY KEY,
  name        text NOT NULL,
  checksum    text NOT NULL,
  applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What the schema consists of, as the server printed it when `outbox migrate` had made it: `outbox doctor` compares it with what is
-- there. Each row has the statements that make it so, and undo it.
CREATE TABLE {schema}.definition (
  place    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  object   text NOT NULL,
  part     text NOT NULL,
  grantee  text NOT NULL,
  makes    text NOT NULL,
  undoes   text NOT NULL
);

-- One row. A relay that reads another identity notices that these tables were dropped and recreated. The rate of transaction ids
-- in the whole cluster determines the width of partitions.
CREATE TABLE {schema}.meta (
  one           boolean PRIMARY KEY DEFAULT true CHECK (one),
  identity      uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  measured_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  measured_xid  bigint NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  xids_per_s    double precision NOT NULL DEFAULT 700  -- a guess until measured; the peak of the last hours
);
INSERT INTO {schema}.meta DEFAULT VALUES;

-- Two rows, each inserted by a migration of its own, outside any savepoint: the system column xmin equals the low half of x, also
-- after VACUUM FREEZE, VACUUM FULL and pg_upgrade, but not after a dump and restore, when no xid or snapshot stored here is
-- valid.
CREATE TABLE {schema}.witness (x xid8 NOT NULL);
INSERT INTO {schema}.witness VALUES (pg_current_xact_id());

-- ---- The log

-- Functions run with the search_path of their caller, which may contain a planted function or operator that fits the arguments
-- better than the server's own. So they have a body that is parsed now (RETURN ..), a search_path of their own, or full names.

-- The lane of an event: equal keys are in one lane; events without a key are spread by their id. Never change it.
CREATE FUNCTION {schema}.lane_of(aggregate_type text, aggregate_id text, id uuid) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (CASE WHEN aggregate_id = '' THEN uuid_hash_extended(id, 0)
               ELSE hashtextextended(aggregate_id, hashtextextended(aggregate_type, 0)) END & 63)::smallint;

-- Called instead of pg_current_xact_id() when a relay sleeps and must be woken.
CREATE FUNCTION {schema}.wake_and_xid() RETURNS xid8 LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  PERFORM pg_notify('outbox_wake_' || to_hex(hashtextextended('outbox:wake:{name}', 0::bigint)), '');
  RETURN pg_current_xact_id();
END
$fn$;

-- CACHE 1: cached blocks would let sessions number their events out of order.
CREATE SEQUENCE {schema}.event_seq AS bigint CACHE 1;

-- xid comes before seq: a row's transaction id exists before its seq (the marks rely on it).
-- The default of xid is the writer's side of the armed wake-up: a relay that sleeps holds the lock exclusively, so a writer
-- cannot take the shared lock, and its commit notifies. Otherwise the shared lock shows that a writer is in flight.
CREATE TABLE {schema}.event (
  xid             xid8 NOT NULL DEFAULT CASE
                    WHEN lower(coalesce(current_setting('outbox.wake', true), ''))
                           = ANY (ARRAY['off', 'false', 'no', '0']::text[])
                      OR pg_try_advisory_xact_lock_shared(hashtextextended('outbox:wake:{name}', 0::bigint))
                    THEN pg_current_xact_id() ELSE {schema}.wake_and_xid() END,
  seq             bigint NOT NULL DEFAULT nextval('{schema}.event_seq'),
  lane            smallint NOT NULL,
  id              uuid NOT NULL,
  aggregate_type  text NOT NULL,
  aggregate_id    text NOT NULL,
  event_type      text NOT NULL,
  payload         bytea NOT NULL,
  content_type    text,
  headers         jsonb NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  occurred_at     timestamptz  -- given by the writer; null: when it was written
) PARTITION BY RANGE (xid);
ALTER SEQUENCE {schema}.event_seq OWNED BY {schema}.event.seq;
CREATE INDEX event_by_seq ON {schema}.event (seq);
CREATE INDEX event_by_xid ON {schema}.event (xid, seq);
-- Writers never fail for lack of a partition.
CREATE TABLE {schema}.event_default PARTITION OF {schema}.event DEFAULT;

-- ---- Progress

CREATE TABLE {schema}.subscription (
  id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name            text NOT NULL UNIQUE,
  config          jsonb NOT NULL,
  config_version  integer NOT NULL DEFAULT 1,
  state           text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'stopped')),
  reason          text NOT NULL DEFAULT '',
  stopped_seq     bigint,
  stopped_event   uuid,
  trouble         text NOT NULL DEFAULT '',  -- why it makes no progress while active, reported by its relay
  trouble_since   timestamptz,
  trouble_relay   uuid,                      -- which relay said so
  lane_group      text NOT NULL,             -- the relays that serve this group share its lanes
  group_generation bigint NOT NULL DEFAULT 0, -- when it came from another group: only ownership after this counts
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Append-only. The newest row of a lane by (generation, id) is its cursor; lanes is a bit mask, 0 moves no cursor.
--   position null      the pair (s1, s2) is finished: the cursor is s2, or s1 where s2 is null
--   position not null  of the pair (s1, s2), bounded by l, everything up to position is done
-- The row covers the events of its lanes visible in s2, not in s1, with from_position < seq <= position: how many were acked,
-- filtered and parked, with the sum of the hashes of their ids. (w, l) is a mark: every xid above w has only seqs above l;
-- except in a claim, which repeats the l of another row. The totals are those of the row that this one continues plus its own
-- counts, so that the newest row of a lane has the sum of all rows that count.
CREATE TABLE {schema}.settlement (
  id              bigint GENERATED ALWAYS AS IDENTITY,
  subscription    integer NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('settle', 'claim', 'mark', 'retry', 'reset')),
  lanes           bigint NOT NULL,
  generation      bigint NOT NULL,
  relay           uuid,
  config_version  integer NOT NULL DEFAULT 0,
  replay          bigint,
  s1              pg_snapshot CHECK (s1 IS NOT NULL OR lanes = 0),
  s2              pg_snapshot,
  from_position   bigint NOT NULL DEFAULT 0,
  position        bigint CHECK (position IS NULL OR (position >= from_position AND s2 IS NOT NULL AND l IS NOT NULL)),
  w               xid8 NOT NULL DEFAULT pg_current_xact_id(),
  l               bigint,
  acked           integer NOT NULL DEFAULT 0,
  acked_hash      bigint NOT NULL DEFAULT 0,
  filtered        integer NOT NULL DEFAULT 0,
  filtered_hash   bigint NOT NULL DEFAULT 0,
  parked          integer NOT NULL DEFAULT 0,
  parked_hash     bigint NOT NULL DEFAULT 0,
  acked_total     bigint NOT NULL DEFAULT 0,
  filtered_total  bigint NOT NULL DEFAULT 0,
  at              timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX settlement_newest ON {schema}.settlement (subscription, generation, id);
-- Without claims: a relay that starts often and settles nothing appends many.
CREATE INDEX settlement_marks ON {schema}.settlement (subscription, generation, id) WHERE l IS NOT NULL AND kind <> 'claim';

-- Names one incarnation of one server. A crash empties an unlogged table, and on a standby it is empty: a session that reads
-- another value, or none, is on a server that may have lost unflushed transactions, and may issue their transaction ids and
-- sequence numbers again. A relay names the incarnation when it starts.
CREATE UNLOGGED TABLE {schema}.incarnation (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  id   bigint NOT NULL DEFAULT uuid_hash_extended(gen_random_uuid(), 0)
);

-- Raises an error unless this is the incarnation `known` (null: not known) and has issued the transaction ids of `seen`. For
-- statements that write what was read before. The number is computed as in the program's reads (queries.cpp).
CREATE FUNCTION {schema}.same_server(known bigint, seen pg_snapshot) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  IF (known IS NOT NULL AND known IS DISTINCT FROM
        (SELECT id # tableoid::bigint # (date_part('epoch', pg_postmaster_start_time()) * 1000000)::bigint
         FROM {schema}.incarnation WHERE one))
     OR pg_snapshot_xmax(seen) > pg_snapshot_xmax(pg_current_snapshot()) THEN
    RAISE EXCEPTION 'this is not the server that was read from, or it crashed since' USING ERRCODE = 'OX001';
  END IF;
  RETURN true;
END
$fn$;

-- ---- Relays

-- One row per relay that lives. The columns boot_id to started identify its process, so that another relay on the same machine
-- notices at once that it has ended; for relays elsewhere the heartbeat and the lease decide, by this server's clock. groups: which
-- groups of subscriptions it serves; '*' is all of them but those of sinks that only an application has.
CREATE TABLE {schema}.relay (
  id            uuid PRIMARY KEY,
  name          text NOT NULL,
  groups        text[] NOT NULL,
  boot_id       text NOT NULL,
  pid_ns        text NOT NULL,
  pid           bigint NOT NULL,
  started       bigint NOT NULL,
  lease         interval NOT NULL,
  joined_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- Who owns the lanes of a group, 64 rows each, made when a relay first takes some of them. The rows of an owner have one generation.
CREATE TABLE {schema}.lane (
  lane_group  text NOT NULL,
  lane        smallint NOT NULL CHECK (lane BETWEEN 0 AND 63),
  owner       uuid,
  generation  bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (lane_group, lane)
) WITH (fillfactor = 50);

-- The newest generation of all groups. Its lock serializes the changes of owners.
CREATE TABLE {schema}.fleet (
  one         boolean PRIMARY KEY DEFAULT true CHECK (one),
  generation  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO {schema}.fleet DEFAULT VALUES;

-- The cursor of a lane: its newest settlement. By the generation of its owner, so that nothing is read of owners of other lanes; by the
-- greatest generation where that owner has not written one yet. Small enough to be inlined. A range instead of an equality: else the
-- planner may read all settlements by settlement_by_id, which has the same order within a generation, to find that it has none.
CREATE FUNCTION {schema}.newest_settlement(sub integer, in_lane integer) RETURNS SETOF {schema}.settlement
LANGUAGE sql STABLE BEGIN ATOMIC
  (SELECT mine.* FROM {schema}.subscription s JOIN {schema}.lane o ON o.lane_group = s.lane_group CROSS JOIN LATERAL (
     SELECT t.* FROM {schema}.settlement t
     WHERE t.subscription = sub AND (t.lanes >> in_lane) & 1 = 1 AND t.generation >= o.generation AND t.generation <= o.generation
     ORDER BY t.generation DESC, t.id DESC LIMIT 1) mine
   WHERE s.id = sub AND o.lane = in_lane::smallint AND o.generation >= s.group_generation)
  UNION ALL
  (SELECT t.* FROM {schema}.settlement t
   WHERE t.subscription = sub AND (t.lanes >> in_lane) & 1 = 1 ORDER BY t.generation DESC, t.id DESC LIMIT 1)
  LIMIT 1;
END;

-- ---- Partitions

-- The end of the newest partition; null: no partition. Without the oid of the relation, which would be locked.
CREATE FUNCTION {schema}.partitions_end() RETURNS bigint LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT max((regexp_match(pg_get_expr(c.relpartbound, 0::oid), 'TO [(]''([0-9]+)''[)]'))[1]::bigint)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{schema}.event'::regclass
$fn$;

-- Six hours of transaction ids.
CREATE FUNCTION {schema}.partition_width() RETURNS bigint LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT (least(greatest(ceil(xids_per_s * 21600 / 1000000), 1), 200) * 1000000)::bigint FROM {schema}.meta
$fn$;

-- What blocks adding partitions, for people; the oldest first, as far as the owner may see that. Statements may contain data of
-- events and are not shown.
CREATE FUNCTION {schema}.partition_blockers() RETURNS text LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT coalesce(string_agg(who, ', ' ORDER BY since, who), 'a transaction that is over now') FROM (
    SELECT who, min(since) AS since FROM (
      SELECT CASE WHEN l.pid IS NULL THEN format('prepared transaction %L of role %s', p.gid, p.owner)
                  ELSE format('pid %s (role %s, application %s)', l.pid, a.usename, a.application_name) END AS who,
             coalesce(p.prepared, a.xact_start) AS since
      FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
          AND x.locktype = 'transactionid'
        LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
      WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND (l.pid IS NOT NULL OR p.gid IS NOT NULL)
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.relation = '{schema}.event_default'::regclass
             OR l.relation = '{schema}.event'::regclass
               AND l.mode <> ALL (ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
             OR l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32) + l.objid::bigint
                  = hashtextextended('outbox:partitions:{name}', 0::bigint))) locks
    GROUP BY who ORDER BY since, who LIMIT 5) blockers
$fn$;

-- Adds partitions for a day ahead, or four of them; returns their names. Runs as the owner: the relay owns nothing. Uses CREATE
-- and ATTACH, since CREATE .. PARTITION OF would queue every writer behind an open transaction. ATTACH waits for transactions
-- that use the default partition, and meanwhile its writers wait too, at most for `patience`. A failure is reported only once the
-- newest partition is in use. When the default partition has rows, ATTACH reads them all under an exclusive lock: then only one
-- partition is added per call.
CREATE FUNCTION {schema}.make_partitions(patience interval DEFAULT interval '200 milliseconds') RETURNS SETOF text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $fn$
DECLARE
  here     bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  rate     double precision;
  width    bigint;
  top      bigint;  -- the end of the newest partition
  stray    bigint;  -- the newest xid in the default partition
  runway   bigint;
BEGIN
  PERFORM set_config('lock_timeout', ceil(extract(epoch FROM patience) * 1000)::bigint::text, true);
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('outbox:partitions:{name}', 0::bigint));
  EXCEPTION WHEN lock_not_available THEN
    -- Another relay is adding partitions, or a session keeps the lock.
    IF {schema}.partitions_end() - here > {schema}.partition_width() THEN RETURN; END IF;
    RAISE EXCEPTION 'no partition could be added: the lock for it is held by %', {schema}.partition_blockers()
      USING ERRCODE = '55P03', HINT = 'pg_stat_activity shows what a session does; pg_terminate_backend() ends it';
  END;
  UPDATE {schema}.meta SET measured_at = clock_timestamp(), measured_xid = here,
    xids_per_s = greatest((here - measured_xid) / extract(epoch FROM clock_timestamp() - measured_at),
                          xids_per_s * 0.999 ^ least(extract(epoch FROM clock_timestamp() - measured_at) / 60, 10000))
    WHERE clock_timestamp() > measured_at + interval '1 minute';
  SELECT xids_per_s INTO rate FROM {schema}.meta;
  width := {schema}.partition_width();
  top := {schema}.partitions_end();
  SELECT xid::text::bigint INTO stray FROM ONLY {schema}.event_default ORDER BY xid DESC LIMIT 1;
  runway := top - here;
  IF top IS NULL AND stray IS NULL THEN
    top := 3;
  ELSIF top IS NULL OR here >= top OR stray >= top THEN
    -- Writers use the default partition. The next one begins above its rows and above every transaction that may still write
    -- there while ATTACH waits.
    top := greatest(stray + 1, here + greatest(rate * 60, 10000)::bigint);
  END IF;
  WHILE top < here + 4 * width LOOP
    DECLARE
      below  text := top;
      above  text := (here + width + 999999) / 1000000 * 1000000;
    BEGIN
      IF above::bigint <= top THEN above := top + width; END IF;
      EXECUTE format('CREATE TABLE {schema}.event_x%s (LIKE {schema}.event INCLUDING ALL)', below);
      EXECUTE format('ALTER TABLE {schema}.event ATTACH PARTITION {schema}.event_x%s FOR VALUES FROM (%L) TO (%L)',
                     below, below, above);
      top := above;
      RETURN NEXT 'event_x' || below;
    EXCEPTION WHEN lock_not_available THEN
      IF runway > width THEN RETURN; END IF;
      RAISE EXCEPTION 'no partition could be added: the default partition is in use by %', {schema}.partition_blockers()
        USING ERRCODE = '55P03', HINT = 'let it end: pg_stat_activity shows what a session does, COMMIT PREPARED ends a prepared '
                                        'transaction. Until then events go to the default partition, which is read as a whole, '
                                        'under a lock, for each partition that is added later';
    END;
    EXIT WHEN stray IS NOT NULL;
  END LOOP;
END
$fn$;
SELECT {schema}.make_partitions();

-- ---- Rights

REVOKE EXECUTE ON FUNCTION {schema}.make_partitions(interval) FROM PUBLIC;

-- For migrations: rights of a role, if there is such a role.
CREATE FUNCTION {schema}.grant_to(grantee text, VARIADIC rights text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  one  text;
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = grantee) THEN
    FOREACH one IN ARRAY rights LOOP EXECUTE format('GRANT %s TO %I', one, grantee); END LOOP;
  END IF;
END
$fn$;
REVOKE EXECUTE ON FUNCTION {schema}.grant_to(text, text[]) FROM PUBLIC;

SELECT {schema}.grant_to('outbox_relay',
  'USAGE ON SCHEMA {schema}',
  'SELECT ON ALL TABLES IN SCHEMA {schema}',
  'SELECT ON SEQUENCE {schema}.event_seq',
  'INSERT ON {schema}.settlement',
  'INSERT ON {schema}.incarnation',
  'INSERT, UPDATE ON {schema}.subscription',
  'INSERT, UPDATE, DELETE ON {schema}.relay',
  'INSERT, UPDATE ON {schema}.lane',
  'UPDATE ON {schema}.fleet',
  'EXECUTE ON FUNCTION {schema}.make_partitions(interval)');
SELECT {schema}.grant_to('outbox_reader',
  'USAGE ON SCHEMA {schema}',
  'SELECT ON ALL TABLES IN SCHEMA {schema}',
  'SELECT ON SEQUENCE {schema}.event_seq');
