-- The outbox: an append-only log in your database, and the progress of its subscriptions, appended as well.
-- The runner puts the schema's name in place of the markers: quoted where it names an object, bare inside strings.
-- Why each thing is as it is: docs/design/schema.md.

-- ---- Who owns it

DO $roles$
DECLARE
  wanted    text;
  is_owner  boolean := false;
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'the encoding of the database is %, the outbox needs UTF8', current_setting('server_encoding')
      USING ERRCODE = '0A000', HINT = 'create the database with ENCODING UTF8';
  END IF;
  -- Roles belong to the whole cluster: other databases and schemas may have made them.
  FOREACH wanted IN ARRAY ARRAY['outbox_owner', 'outbox_app', 'outbox_relay', 'outbox_reader'] LOOP
    BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
      END IF;
    EXCEPTION
      WHEN insufficient_privilege THEN
        RAISE NOTICE 'role % is not there and % may not create it', wanted, current_user;
      WHEN duplicate_object OR unique_violation THEN
        NULL;  -- somebody else was faster
    END;
  END LOOP;
  -- The plans of the relay's reads must not depend on statistics. This reaches logins as that very role; where another
  -- one logs in, the relay sets them for each transaction.
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
  -- Everything below belongs to outbox_owner where that can be had, so that nothing of ours runs as a superuser.
  BEGIN
    IF NOT pg_has_role(current_user, 'outbox_owner', 'MEMBER') THEN
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
    RAISE NOTICE 'role outbox_owner is not to be had: the outbox will belong to %', current_user;
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

-- One row. Relays tell by the identity when these tables were dropped and made anew. The rate of transaction ids in the whole
-- cluster decides how wide partitions are.
CREATE TABLE {schema}.meta (
  one           boolean PRIMARY KEY DEFAULT true CHECK (one),
  identity      uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  measured_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  measured_xid  bigint NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
  xids_per_s    double precision NOT NULL DEFAULT 700  -- a guess until it was measured; the peak of the last hours
);
INSERT INTO {schema}.meta DEFAULT VALUES;

-- Two rows, each inserted by a migration of its own, outside any savepoint: the system column xmin is the low half of x
-- through VACUUM FREEZE, VACUUM FULL and pg_upgrade, and another one after a dump and restore. Then every xid and snapshot
-- stored here means nothing.
CREATE TABLE {schema}.witness (x xid8 NOT NULL);
INSERT INTO {schema}.witness VALUES (pg_current_xact_id());

-- ---- The log

-- Functions run with the search_path of their caller, where somebody may have planted a function or an operator that fits
-- the arguments better than the server's own. So: bodies that are parsed here and now (RETURN ..), a search_path of their
-- own, or names in full.

-- A UUID of version 7 (RFC 9562): 48 bits of milliseconds before random bits.
CREATE FUNCTION {schema}.new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN overlay(gen_random_uuid()::text
                 PLACING '0' || to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint) || '7' FROM 1 FOR 15)::uuid;

-- The lane of an event: equal keys are in one lane; events without a key spread by their id. Never change it.
CREATE FUNCTION {schema}.lane_of(aggregate_type text, aggregate_id text, id uuid) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (CASE WHEN aggregate_id = '' THEN uuid_hash_extended(id, 0)
               ELSE hashtextextended(aggregate_id, hashtextextended(aggregate_type, 0)) END & 63)::smallint;

-- Called instead of pg_current_xact_id() when a relay sleeps and must be woken, or when outbox.wake is set.
CREATE FUNCTION {schema}.wake_and_xid() RETURNS xid8 LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  wake_lock  bigint := hashtextextended('outbox:wake:{name}', 0::bigint);
BEGIN
  IF lower(coalesce(current_setting('outbox.wake', true), '')) NOT IN ('off', 'false', 'no', '0')
     AND NOT pg_try_advisory_xact_lock_shared(wake_lock) THEN
    PERFORM pg_notify('outbox_wake_' || to_hex(wake_lock), '');
  END IF;
  RETURN pg_current_xact_id();
END
$fn$;

-- CACHE 1: cached blocks would let sessions number their events out of order.
CREATE SEQUENCE {schema}.event_seq AS bigint CACHE 1;

-- xid stands before seq: a row's transaction id exists before its seq (the marks rest on it).
-- The default of xid is the writer's side of the armed wake-up: a relay that sleeps holds the lock exclusively, so the
-- shared one cannot be had, and the commit notifies. Otherwise the shared lock says that a writer is in flight. The server
-- sets up a default anew for each statement, so it calls as few functions as possible.
CREATE TABLE {schema}.event (
  xid             xid8 NOT NULL DEFAULT CASE
                    WHEN coalesce(current_setting('outbox.wake', true), '') = ''
                     AND pg_try_advisory_xact_lock_shared(hashtextextended('outbox:wake:{name}', 0::bigint))
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
  occurred_at     timestamptz  -- as the writer said; null: when it was written
) PARTITION BY RANGE (xid);
ALTER SEQUENCE {schema}.event_seq OWNED BY {schema}.event.seq;
CREATE INDEX event_by_seq ON {schema}.event (seq);
CREATE INDEX event_by_xid ON {schema}.event (xid, seq);
-- A net: writers never fail for want of a partition.
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
  trouble         text NOT NULL DEFAULT '',  -- why it does not get on although it is active, in its relay's words
  trouble_since   timestamptz,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Append-only. The newest row of a lane by (generation, id) is its cursor; lanes is a bit mask, 0 moves none.
--   position null      the pair (s1, s2) is finished: the cursor is s2, or s1 where s2 is null
--   position not null  of the pair (s1, s2), bounded by l, everything up to position is done
-- The row covers the events of its lanes visible in s2, not in s1, with from_position < seq <= position: so many acked,
-- filtered and parked, with the sum of the hashes of their ids. (w, l) is a mark: every xid above w has only seqs above l;
-- not so in a claim, which repeats the l of another row. The totals are those of the row that this one continues and its
-- own counts, so that the newest row of a lane has the sum of all rows that count.
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
-- The marks alone: a relay that began many times and settled nothing leaves many claims.
CREATE INDEX settlement_marks ON {schema}.settlement (subscription, generation, id) WHERE l IS NOT NULL AND kind <> 'claim';

-- Names one life of one server. A crash empties an unlogged table, and a standby's is empty: so whoever reads another
-- value, or none, talks to a server that may have taken back what it had not flushed, and issue its transaction ids and
-- sequence numbers again. Relays name it when they begin.
CREATE UNLOGGED TABLE {schema}.incarnation (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  id   bigint NOT NULL DEFAULT uuid_hash_extended(gen_random_uuid(), 0)
);

-- True, or raised: this is the incarnation `known` (null: not known), and has issued the transaction ids of `seen`. Asked by
-- whoever writes down what was read before. Its number is made as in the program's reads (queries.cpp).
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

-- One row per relay. boot_id to started name its process, so that another relay on the same machine sees at once that it
-- is gone; for everybody else the heartbeat and the lease decide, by this server's clock.
CREATE TABLE {schema}.relay (
  id            uuid PRIMARY KEY,
  name          text NOT NULL,
  boot_id       text NOT NULL,
  pid_ns        text NOT NULL,
  pid           bigint NOT NULL,
  started       bigint NOT NULL,
  lease         interval NOT NULL,
  joined_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

CREATE TABLE {schema}.lane (
  lane        smallint PRIMARY KEY CHECK (lane BETWEEN 0 AND 63),
  owner       uuid,
  generation  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO {schema}.lane (lane) SELECT generate_series(0, 63);

-- ---- Partitions

-- Where the newest partition ends; null: there is none. Without the oid of the relation, which would be locked.
CREATE FUNCTION {schema}.partitions_end() RETURNS bigint LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT max((regexp_match(pg_get_expr(c.relpartbound, 0::oid), 'TO \(''(\d+)''\)'))[1]::bigint)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{schema}.event'::regclass
$fn$;

-- Six hours of transaction ids.
CREATE FUNCTION {schema}.partition_width() RETURNS bigint LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $fn$
  SELECT (least(greatest(ceil(xids_per_s * 21600 / 1000000), 1), 200) * 1000000)::bigint FROM {schema}.meta
$fn$;

-- Who keeps partitions from being added, for people, the oldest first as far as the owner may see that. Their statements may
-- hold what is in events, and are not shown.
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

-- Adds partitions until the next day, or four of them, are provided for; returns their names. Runs as the owner: the relay
-- owns nothing. CREATE and ATTACH, since CREATE .. PARTITION OF would queue every writer behind an open transaction.
-- ATTACH waits for transactions that have the default partition open, and meanwhile writers to that one wait as well: so long
-- at most is its patience. There is no hurry while the newest partition is not in use; then it says what is in its way. When
-- there are rows in the default partition, ATTACH reads them all while nobody else can use it: then one partition must do
-- until the next call.
CREATE FUNCTION {schema}.make_partitions(patience interval DEFAULT interval '200 milliseconds') RETURNS SETOF text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $fn$
DECLARE
  here     bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  rate     double precision;
  width    bigint;
  top      bigint;  -- where the newest partition ends
  stray    bigint;  -- the newest xid in the default partition
  runway   bigint;
BEGIN
  PERFORM set_config('lock_timeout', ceil(extract(epoch FROM patience) * 1000)::bigint::text, true);
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('outbox:partitions:{name}', 0::bigint));
  EXCEPTION WHEN lock_not_available THEN
    -- Another relay is at it, or somebody who will not give it back.
    IF {schema}.partitions_end() - here > {schema}.partition_width() THEN RETURN; END IF;
    RAISE EXCEPTION 'no partition could be added: the lock for it is held by %', {schema}.partition_blockers()
      USING ERRCODE = '55P03', HINT = 'pg_stat_activity has what a session does; pg_terminate_backend() ends it';
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
    -- Writers are in the default partition. The next one begins above what is in it and above every transaction that may
    -- still go there while ATTACH waits.
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
        USING ERRCODE = '55P03', HINT = 'let it end: pg_stat_activity has what a session does, COMMIT PREPARED ends a prepared '
                                        'transaction. Until then events go to the default partition, which is read as a whole, '
                                        'under a lock, for each partition that is added later';
    END;
    EXIT WHEN stray IS NOT NULL;
  END LOOP;
END
$fn$;
SELECT {schema}.make_partitions();

-- ---- Writing, from any language, in the caller's transaction. A search_path of their own would make up a fifth of what
-- enqueue() and new_event cost, so these two name everything in full and have their expressions in is_plain() and new_id(),
-- which are parsed here and become part of their caller's. What they call for all but plain events has one.

-- application/json, or anything that ends in +json.
CREATE FUNCTION {schema}.is_json_type(content_type text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN content_type = 'application/json'
      OR lower(btrim(split_part(content_type, ';', 1), E' \t')) ~ '^(application/json|[^/]+/.*\+json)$';

CREATE FUNCTION {schema}.is_json(payload bytea) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $fn$
BEGIN
  PERFORM convert_from(payload, 'UTF8')::json;
  RETURN true;
EXCEPTION WHEN data_exception OR statement_too_complex THEN  -- nested too deeply is no JSON for anybody
  RETURN false;
END
$fn$;

-- Refuses with the field's name, as outbox::validate() does.
CREATE FUNCTION {schema}.refuse(problem text, hint text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $fn$
BEGIN
  IF hint = '' THEN RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = problem; END IF;
  RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = problem, HINT = hint;
END
$fn$;

CREATE FUNCTION {schema}.check_text(field text, value text, required boolean) RETURNS void LANGUAGE plpgsql AS $fn$
BEGIN
  IF value IS NULL AND required THEN
    PERFORM {schema}.refuse(field || ': is null');
  ELSIF value = '' AND required THEN
    PERFORM {schema}.refuse(field || ': is empty');
  ELSIF required AND btrim(value, E' \t\r\n\013\f') = '' THEN
    PERFORM {schema}.refuse(field || ': is blank');
  ELSIF octet_length(value) > 255 THEN
    PERFORM {schema}.refuse(format('%s: is %s bytes long, at most 255 are allowed', field, octet_length(value)));
  ELSIF value ~ '[\x01-\x1f\x7f-\x9f]' THEN
    PERFORM {schema}.refuse(field || ': contains a control character');
  END IF;
END
$fn$;

CREATE FUNCTION {schema}.check_headers(field text, headers jsonb, content_type text) RETURNS void LANGUAGE plpgsql AS $fn$
DECLARE
  header  record;
  bytes   integer := 0;
  seen    text[] := '{}';
BEGIN
  IF jsonb_typeof(headers) <> 'object' THEN PERFORM {schema}.refuse(field || ': is not a JSON object'); END IF;
  FOR header IN SELECT key, value #>> '{}' AS value, jsonb_typeof(value) AS type FROM jsonb_each(headers) LOOP
    IF header.type <> 'string' THEN
      PERFORM {schema}.refuse(format('%s: the value of ''%s'' is not a string', field, header.key));
    ELSIF header.key = '' THEN
      PERFORM {schema}.refuse(field || ': a header has no name');
    ELSIF octet_length(header.key) > 255 THEN
      PERFORM {schema}.refuse(field || ': a header name is longer than 255 bytes');
    ELSIF header.key !~ '^[-!#$%&''*+.^_`|~0-9A-Za-z]+$' THEN
      PERFORM {schema}.refuse(format('%s: %s is not a header name', field, quote_literal(header.key)),
                              'letters, digits and !#$%&''*+-.^_`|~ are allowed');
    ELSIF lower(header.key) LIKE 'outbox-%' THEN
      PERFORM {schema}.refuse(format('%s: ''%s'' is reserved: names that begin with outbox- are set by outbox itself',
                                     field, header.key));
    ELSIF lower(header.key) = 'content-type' AND content_type <> '' THEN
      PERFORM {schema}.refuse(field || ': content-type is said twice', 'set the argument content_type instead of a header');
    ELSIF header.value ~ '[\r\n]' THEN
      PERFORM {schema}.refuse(format('%s: the value of ''%s'' contains a line break', field, header.key));
    ELSIF lower(header.key) = ANY (seen) THEN
      PERFORM {schema}.refuse(format('%s: ''%s'' is given twice', field, header.key),
                              'upper and lower case are the same in header names');
    END IF;
    seen := seen || lower(header.key);
    bytes := bytes + octet_length(header.key) + octet_length(header.value);
  END LOOP;
  IF bytes > 65536 THEN
    PERFORM {schema}.refuse(format('%s: all names and values together is %s bytes, at most 65536 are allowed',
                                   field, bytes));
  END IF;
END
$fn$;

-- Years that RFC 3339 can write.
CREATE FUNCTION {schema}.is_time(moment timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN moment >= '0001-01-01 00:00:00+00'::timestamptz AND moment < '10000-01-01 00:00:00+00'::timestamptz;

-- The settings outbox.payload_limit (bytes) and outbox.lock_key may be set for a session, a role or a database.
CREATE FUNCTION {schema}.payload_limit() RETURNS integer LANGUAGE sql STABLE
  RETURN coalesce(nullif(current_setting('outbox.payload_limit', true), '')::integer, 1048576);

-- Whether to lock the key, for writers that do not lock the aggregate themselves.
CREATE FUNCTION {schema}.wants_lock(lock_key boolean) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(lock_key, nullif(current_setting('outbox.lock_key', true), '')::boolean, false);

-- True for nearly every event: these fields are valid, and nothing but the INSERT is to be done. What they are not sure of,
-- check_event() looks at. PL/pgSQL sets up an expression anew in each transaction, at a price for each function in it: so
-- what few events have stands apart.
CREATE FUNCTION {schema}.is_plain(aggregate_type text, aggregate_id text, event_type text, payload_bytes integer, lock_key boolean)
RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(
    ascii(aggregate_type) > 32 AND ascii(event_type) > 32  -- so neither is empty or blank
    AND greatest(octet_length(aggregate_type), octet_length(aggregate_id), octet_length(event_type)) <= 255
    AND concat(aggregate_type, aggregate_id, event_type) !~ '[\x01-\x1f\x7f-\x9f]'
    AND payload_bytes <= {schema}.payload_limit()
    AND NOT {schema}.wants_lock(lock_key), false);

CREATE FUNCTION {schema}.are_defaults(headers jsonb, content_type text, occurred_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN headers = '{}' AND content_type IS NULL AND occurred_at IS NULL;

CREATE FUNCTION {schema}.are_plain(headers jsonb, content_type text, occurred_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(
    (headers IS NULL OR headers = '{}' OR octet_length(headers::text) <= 255  -- so no name is longer than that
     AND headers::text ~ '^\{(?:"[-_.0-9a-z]+": "[^"\\\x01-\x1f\x7f]*"(?:, |\}$))+$'
     AND headers::text !~ '"outbox-|"content-type"')
    AND (content_type IS NULL OR content_type = 'application/json')
    AND (occurred_at IS NULL OR {schema}.is_time(occurred_at)), false);

-- Checks everything of an event; `at` names its place among several.
CREATE FUNCTION {schema}.check_event(at text, aggregate_type text, aggregate_id text, event_type text, payload bytea,
                                     headers jsonb, content_type text, occurred_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $fn$
DECLARE
  most  integer := {schema}.payload_limit();
BEGIN
  PERFORM {schema}.check_text(at || 'aggregate_type', aggregate_type, true);
  PERFORM {schema}.check_text(at || 'aggregate_id', aggregate_id, false);
  PERFORM {schema}.check_text(at || 'event_type', event_type, true);
  PERFORM {schema}.check_text(at || 'content_type', content_type, false);
  IF content_type !~ '^([-!#$%&''*+.^_`|~0-9A-Za-z]+/[-!#$%&''*+.^_`|~0-9A-Za-z]+[ \t]*(;[ -~]*)?)?$' THEN
    PERFORM {schema}.refuse(at || 'content_type: is not a media type',
                            'write type/subtype, for example application/json, or leave it empty');
  END IF;
  PERFORM {schema}.check_headers(at || 'headers', headers, content_type);
  IF NOT {schema}.is_time(occurred_at) THEN
    PERFORM {schema}.refuse(at || 'occurred_at: lies outside the years 1 to 9999');
  END IF;
  IF payload IS NULL THEN PERFORM {schema}.refuse(at || 'payload: is null'); END IF;
  IF octet_length(payload) > most THEN
    PERFORM {schema}.refuse(format('%spayload: is %s bytes, at most %s are allowed', at, octet_length(payload), most),
                            'store large content elsewhere and send a reference to it');
  END IF;
  IF {schema}.is_json_type(content_type) AND NOT {schema}.is_json(payload) THEN
    PERFORM {schema}.refuse(at || 'payload: is not JSON',
                            format('the content type is %s; set another one for other payloads', content_type));
  END IF;
END
$fn$;

CREATE FUNCTION {schema}.key_lock(aggregate_type text, aggregate_id text) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN hashtextextended(aggregate_id, hashtextextended(aggregate_type, hashtextextended('outbox:key:{name}', 0::bigint)));

-- What the rule below writes as the lane of an event that may not be: it raises.
CREATE FUNCTION {schema}.no_lane(id uuid, aggregate_type text, aggregate_id text, event_type text, payload bytea,
                                 content_type text, headers jsonb, occurred_at timestamptz)
RETURNS smallint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  IF id IS NULL THEN PERFORM {schema}.refuse('id: is null'); END IF;
  IF aggregate_id IS NULL THEN PERFORM {schema}.refuse('aggregate_id: is null', 'leave it empty for an event without a key'); END IF;
  PERFORM {schema}.check_text('aggregate_type', aggregate_type, true);
  PERFORM {schema}.check_text('aggregate_id', aggregate_id, false);
  PERFORM {schema}.check_text('event_type', event_type, true);
  PERFORM {schema}.check_text('content_type', content_type, false);
  IF payload IS NULL THEN PERFORM {schema}.refuse('payload: is null'); END IF;
  IF octet_length(payload) > 67108864 THEN
    PERFORM {schema}.refuse(format('payload: is %s bytes, at most 67108864 are allowed', octet_length(payload)));
  END IF;
  IF headers IS NULL THEN PERFORM {schema}.refuse('headers: is null', 'write {} for none'); END IF;
  IF octet_length(headers::text) > 1048576 THEN
    PERFORM {schema}.refuse(format('headers: is %s bytes, at most 1048576 are allowed', octet_length(headers::text)));
  END IF;
  PERFORM {schema}.refuse('occurred_at: lies outside the years 1 to 9999');
END
$fn$;

-- The only way into the log: whoever writes has a right on this view, not on the table, and cannot choose xid, seq or lane.
-- It checks the outermost limits once more. A view with a rule, because a rule becomes part of the writer's statement and
-- is planned with it, once; a generated column, domains and CHECKs are set up anew in each statement. LATERAL: NEW.column
-- stands for an expression of the writer's, which must be computed once, or what is written is not what was checked.
CREATE VIEW {schema}.event_in AS
  SELECT NULL::uuid AS id, NULL::text AS aggregate_type, NULL::text AS aggregate_id, NULL::text AS event_type,
         NULL::bytea AS payload, NULL::text AS content_type, NULL::jsonb AS headers, NULL::timestamptz AS occurred_at
  WHERE false;
CREATE RULE append AS ON INSERT TO {schema}.event_in DO INSTEAD
  INSERT INTO {schema}.event (lane, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
  SELECT CASE WHEN e.aggregate_type <> '' AND e.event_type <> '' AND octet_length(e.payload) <= 67108864
                   AND greatest(octet_length(e.aggregate_type), octet_length(e.aggregate_id),
                                octet_length(e.event_type), octet_length(e.content_type)) <= 255
                   AND e.id IS NOT NULL AND e.aggregate_id IS NOT NULL AND octet_length(e.headers::text) <= 1048576
                   AND (e.occurred_at IS NULL OR {schema}.is_time(e.occurred_at))
              THEN {schema}.lane_of(e.aggregate_type, e.aggregate_id, e.id)
              ELSE {schema}.no_lane(e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type,
                                    e.headers, e.occurred_at) END,
         e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers, e.occurred_at
  FROM LATERAL (SELECT NEW.id, NEW.aggregate_type, NEW.aggregate_id, NEW.event_type, NEW.payload, NEW.content_type,
                       NEW.headers, NEW.occurred_at) e;

-- The bytes of a payload that is given as JSON: that JSON, but the characters of a string whose content type is another.
CREATE FUNCTION {schema}.json_payload(payload json, content_type text) RETURNS bytea LANGUAGE sql STABLE
  RETURN convert_to(CASE WHEN json_typeof(payload) = 'string' AND NOT {schema}.is_json_type(content_type)
                         THEN payload #>> '{}' ELSE payload::text END, 'UTF8');

-- For every event that is not plain: says what is wrong, or does what is to be done.
CREATE FUNCTION {schema}.append_event(aggregate_type text, aggregate_id text, event_type text, payload bytea, given_as_json boolean,
                                      headers jsonb, id uuid, content_type text, lock_key boolean, occurred_at timestamptz)
RETURNS uuid LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  aggregate_id := coalesce(aggregate_id, '');
  headers := coalesce(headers, '{}');
  content_type := coalesce(content_type, 'application/json');
  IF given_as_json THEN payload := {schema}.json_payload(convert_from(payload, 'UTF8')::json, content_type); END IF;
  PERFORM {schema}.check_event('', aggregate_type, aggregate_id, event_type, payload, headers, content_type, occurred_at);
  IF aggregate_id <> '' AND {schema}.wants_lock(lock_key) THEN
    PERFORM pg_advisory_xact_lock({schema}.key_lock(aggregate_type, aggregate_id));
  END IF;
  id := coalesce(id, {schema}.new_id());
  INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
    VALUES (id, aggregate_type, aggregate_id, event_type, payload, nullif(content_type, ''), headers, occurred_at);
  RETURN id;
END
$fn$;

-- enqueue(aggregate_type, aggregate_id, event_type, payload, headers, id, content_type, lock_key, occurred_at). One function
-- for each type of the payload, with a key that is text (an untyped literal or parameter also comes here) and one that is a
-- number, a uuid or anything else that is no array. They differ in nothing else, and call nothing for a plain event.
DO $make$
DECLARE
  key   text;
  kind  record;
BEGIN
  FOREACH key IN ARRAY ARRAY['text', 'anynonarray'] LOOP
    FOR kind IN SELECT * FROM (VALUES
        ('text',  'payload', 'pg_catalog.convert_to(payload, ''UTF8'')', ' AND payload::pg_catalog.json IS NOT NULL'),
        ('bytea', 'pg_catalog.convert_from(payload, ''UTF8'')', 'payload',
                  ' AND pg_catalog.convert_from(payload, ''UTF8'')::pg_catalog.json IS NOT NULL'),
        ('json',  'payload::pg_catalog.text', 'pg_catalog.convert_to(payload::pg_catalog.text, ''UTF8'')', ''),
        ('jsonb', 'payload::pg_catalog.text', 'pg_catalog.convert_to(payload::pg_catalog.text, ''UTF8'')', '')
      ) AS k(type, as_text, as_bytes, is_json) LOOP
      EXECUTE format($enqueue$
CREATE FUNCTION {schema}.enqueue(aggregate_type text, aggregate_id %1$s, event_type text, payload %2$s,
                                 headers jsonb DEFAULT '{}', id uuid DEFAULT NULL, content_type text DEFAULT NULL,
                                 lock_key boolean DEFAULT NULL, occurred_at timestamptz DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql AS $fn$
DECLARE
  plain  pg_catalog.bool;
BEGIN
  BEGIN
    plain := {schema}.is_plain(aggregate_type, aggregate_id::pg_catalog.text, event_type, pg_catalog.octet_length(%3$s), lock_key)%5$s;
    IF {schema}.are_defaults(headers, content_type, occurred_at) IS NOT TRUE THEN
      plain := plain AND {schema}.are_plain(headers, content_type, occurred_at);
    END IF;
  EXCEPTION WHEN data_exception OR statement_too_complex THEN
    plain := false;  -- it is not JSON, or not in UTF-8
  END;
  IF plain THEN
    id := coalesce(id, {schema}.new_id());
    INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
      VALUES (id, aggregate_type, coalesce(aggregate_id::pg_catalog.text, ''), event_type, %4$s, 'application/json',
              coalesce(headers, '{}'), occurred_at);
    RETURN id;
  END IF;
  RETURN {schema}.append_event(aggregate_type, aggregate_id::pg_catalog.text, event_type, %4$s, %6$L, headers, id,
                               content_type, lock_key, occurred_at);
END
$fn$
$enqueue$, key, kind.type, kind.as_text, kind.as_bytes, kind.is_json, kind.is_json = '');
    END LOOP;
  END LOOP;
END
$make$;

-- The members of one event of enqueue_many(): known, of the right type, and what is needed is there.
CREATE FUNCTION {schema}.check_members(at text, event jsonb) RETURNS void LANGUAGE plpgsql AS $fn$
DECLARE
  member  record;
BEGIN
  IF jsonb_typeof(event) <> 'object' THEN PERFORM {schema}.refuse(at || 'is not a JSON object'); END IF;
  FOR member IN SELECT key, jsonb_typeof(value) AS type FROM jsonb_each(event) WHERE key NOT IN ('payload', 'headers') LOOP
    IF member.key = 'lock_key' THEN
      CONTINUE WHEN member.type IN ('boolean', 'null');
      PERFORM {schema}.refuse(at || 'lock_key: is neither true nor false');
    ELSIF member.key IN ('aggregate_type', 'aggregate_id', 'event_type', 'content_type', 'id', 'payload_base64',
                         'occurred_at') THEN
      CONTINUE WHEN member.type IN ('string', 'null');
      PERFORM {schema}.refuse(at || member.key || ': is not a string');
    END IF;
    PERFORM {schema}.refuse(format('%s%L: unknown member of an event', at, member.key));
  END LOOP;
  IF event ->> 'payload_base64' IS NOT NULL AND event ? 'payload' THEN
    PERFORM {schema}.refuse(at || 'payload: is given twice: as payload and as payload_base64');
  ELSIF event ->> 'payload_base64' IS NULL AND NOT event ? 'payload' THEN
    PERFORM {schema}.refuse(at || 'payload: is missing');
  ELSIF translate(event ->> 'payload_base64', E' \t\r\n', '')
        !~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' THEN
    PERFORM {schema}.refuse(at || 'payload_base64: is not base64');
  ELSIF event ->> 'id' !~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN
    PERFORM {schema}.refuse(at || 'id: is not a UUID');
  ELSIF event ->> 'occurred_at'
        !~ '^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[-+]([01]\d|2[0-3]):[0-5]\d)$' THEN
    PERFORM {schema}.refuse(at || 'occurred_at: is not a time', 'RFC 3339, for example 2026-01-05T08:09:12.5Z');
  END IF;
END
$fn$;

-- The form is checked before; the server knows the days of the months.
CREATE FUNCTION {schema}.time_of(moment text, field text) RETURNS timestamptz LANGUAGE plpgsql AS $fn$
BEGIN
  RETURN moment::timestamptz;
EXCEPTION WHEN datetime_field_overflow THEN
  PERFORM {schema}.refuse(field || ': is not a time');
END
$fn$;

-- An array of objects with the members of enqueue's arguments; payload_base64 carries bytes. All or none, in the order of
-- the array; returns the ids in that order.
CREATE FUNCTION {schema}.enqueue_many(events jsonb, lock_key boolean DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  e        record;
  ids      uuid[] := '{}';
  types    text[] := '{}';
  keys     text[] := '{}';
  names    text[] := '{}';
  bodies   bytea[] := '{}';
  media    text[] := '{}';
  heads    jsonb[] := '{}';
  times    timestamptz[] := '{}';
  locks    bigint[] := '{}';
  body     bytea;
  happened timestamptz;
BEGIN
  IF jsonb_typeof(events) IS DISTINCT FROM 'array' THEN PERFORM {schema}.refuse('events: is not a JSON array'); END IF;
  FOR e IN SELECT value AS j, format('event %s: ', ordinality - 1) AS at, coalesce(value ->> 'aggregate_id', '') AS key,
                  coalesce(nullif(value -> 'headers', 'null'), '{}') AS headers,
                  coalesce(value ->> 'content_type', 'application/json') AS medium
           FROM jsonb_array_elements(events) WITH ORDINALITY LOOP
    PERFORM {schema}.check_members(e.at, e.j);
    body := coalesce(decode(e.j ->> 'payload_base64', 'base64'), {schema}.json_payload((e.j -> 'payload')::json, e.medium));
    happened := {schema}.time_of(e.j ->> 'occurred_at', e.at || 'occurred_at');
    PERFORM {schema}.check_event(e.at, e.j ->> 'aggregate_type', e.key, e.j ->> 'event_type', body, e.headers, e.medium,
                                 happened);
    ids := ids || coalesce((e.j ->> 'id')::uuid, {schema}.new_id());
    types := types || (e.j ->> 'aggregate_type');
    keys := keys || e.key;
    names := names || (e.j ->> 'event_type');
    bodies := bodies || body;
    media := media || nullif(e.medium, '');
    heads := heads || e.headers;
    times := times || happened;
    IF e.key <> '' AND {schema}.wants_lock(coalesce((e.j ->> 'lock_key')::boolean, lock_key)) THEN
      locks := locks || {schema}.key_lock(e.j ->> 'aggregate_type', e.key);
    END IF;
  END LOOP;
  -- In one order everywhere, so that two of us cannot wait for each other.
  PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT unnest(locks) AS k ORDER BY 1 OFFSET 0) l;
  INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
    SELECT a, b, c, d, x, y, z, t
    FROM unnest(ids, types, keys, names, bodies, media, heads, times) WITH ORDINALITY u(a, b, c, d, x, y, z, t, place)
    ORDER BY place;
  RETURN QUERY SELECT unnest(ids);
END
$fn$;

-- A view's trigger does not fire where session_replication_role is replica, and the server counts the row as inserted all
-- the same. This type of one of its columns is looked at for each row.
CREATE DOMAIN {schema}.new_event_text AS text
  CONSTRAINT session_replication_role_is_not_replica CHECK (current_setting('session_replication_role') <> 'replica');

-- For ORMs and generated SQL: INSERT INTO new_event (...) VALUES (...) [RETURNING id]. Always empty when read.
CREATE VIEW {schema}.new_event AS
  SELECT NULL::{schema}.new_event_text AS aggregate_type, NULL::text AS aggregate_id, NULL::text AS event_type, NULL::jsonb AS payload,
         NULL::jsonb AS headers, NULL::uuid AS id, NULL::text AS content_type, NULL::timestamptz AS occurred_at
  WHERE false;

CREATE FUNCTION {schema}.insert_new_event() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF {schema}.is_plain(NEW.aggregate_type::pg_catalog.text, NEW.aggregate_id, NEW.event_type,
                       pg_catalog.octet_length(NEW.payload::pg_catalog.text), NULL)
     AND ({schema}.are_defaults(NEW.headers, NEW.content_type, NEW.occurred_at) IS TRUE
          OR {schema}.are_plain(NEW.headers, NEW.content_type, NEW.occurred_at)) THEN
    NEW.id := coalesce(NEW.id, {schema}.new_id());
    INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
      VALUES (NEW.id, NEW.aggregate_type, coalesce(NEW.aggregate_id, ''), NEW.event_type,
              pg_catalog.convert_to(NEW.payload::pg_catalog.text, 'UTF8'), 'application/json', coalesce(NEW.headers, '{}'),
              NEW.occurred_at);
  ELSE
    NEW.id := {schema}.append_event(NEW.aggregate_type, NEW.aggregate_id, NEW.event_type,
                                    pg_catalog.convert_to(NEW.payload::pg_catalog.text, 'UTF8'), true, NEW.headers, NEW.id,
                                    NEW.content_type, NULL, NEW.occurred_at);
  END IF;
  RETURN NEW;
END
$fn$;
CREATE TRIGGER new_event_insert INSTEAD OF INSERT ON {schema}.new_event
  FOR EACH ROW EXECUTE FUNCTION {schema}.insert_new_event();

-- ---- Who may do what

REVOKE EXECUTE ON FUNCTION {schema}.make_partitions(interval) FROM PUBLIC;

DO $grants$
DECLARE
  step  record;
BEGIN
  FOR step IN SELECT * FROM (VALUES
    ('outbox_app', 'USAGE ON SCHEMA {schema}'),
    ('outbox_app', 'INSERT ON {schema}.event_in'),
    ('outbox_app', 'USAGE ON SEQUENCE {schema}.event_seq'),
    ('outbox_app', 'SELECT ON {schema}.migration'),
    ('outbox_app', 'INSERT, SELECT ON {schema}.new_event'),
    ('outbox_relay', 'USAGE ON SCHEMA {schema}'),
    ('outbox_relay', 'SELECT ON ALL TABLES IN SCHEMA {schema}'),
    ('outbox_relay', 'SELECT ON SEQUENCE {schema}.event_seq'),
    ('outbox_relay', 'INSERT ON {schema}.settlement'),
    ('outbox_relay', 'INSERT ON {schema}.incarnation'),
    ('outbox_relay', 'INSERT, UPDATE ON {schema}.subscription'),
    ('outbox_relay', 'INSERT, UPDATE, DELETE ON {schema}.relay'),
    ('outbox_relay', 'UPDATE ON {schema}.lane'),
    ('outbox_relay', 'EXECUTE ON FUNCTION {schema}.make_partitions(interval)'),
    ('outbox_reader', 'USAGE ON SCHEMA {schema}'),
    ('outbox_reader', 'SELECT ON ALL TABLES IN SCHEMA {schema}'),
    ('outbox_reader', 'SELECT ON SEQUENCE {schema}.event_seq')) AS granted(grantee, what)
  LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = step.grantee) THEN
      EXECUTE format('GRANT %s TO %I', step.what, step.grantee);
    END IF;
  END LOOP;
END
$grants$;
