-- Outbox tables of others whose INSERTs are forwarded to the log: docs/design/adopt.md. The trigger's functions are made per table,
-- by `outbox adopt`.

-- Everything here belongs to the owner of the log.
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- One row per adoption. A table has one that is not ended, since it has one trigger of this name. Which table it is, its trigger says:
-- it goes with the table when that is renamed, and with a dump.
CREATE TABLE {schema}.adoption (
  id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  table_name    text NOT NULL,                -- quoted, with its schema: the last name that a command knew it by
  id_name       text NOT NULL,                -- the first one, of which ids are made
  relation      oid NOT NULL,                 -- the table, to tell it from another one of this name when its trigger is gone
  shape         jsonb NOT NULL,               -- which columns are what
  columns       jsonb NOT NULL,               -- [{"name": "payload", "number": 5, "type": "jsonb"}, ...]: what the function was made for
  state         text NOT NULL CHECK (state IN ('copying', 'draining', 'forwarding', 'ended')),
  cut_lsn       pg_lsn NOT NULL,              -- the first cut: what was written to the table before has a lower position
  taken_over    bigint NOT NULL DEFAULT 0,    -- rows that were pending
  staged        bigint NOT NULL DEFAULT 0,    -- rows that came meanwhile
  begun_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  switched_at   timestamptz,
  ended_at      timestamptz
);
CREATE UNIQUE INDEX adoption_of ON {schema}.adoption (table_name) WHERE state <> 'ended';

-- Rows that came while older ones were copied. CACHE 1, for the same reason as the log's sequence.
CREATE TABLE {schema}.adopt_stage (
  adoption        integer NOT NULL,
  seq             bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
  id              uuid NOT NULL,
  aggregate_type  text NOT NULL,
  aggregate_id    text NOT NULL,
  event_type      text NOT NULL,
  payload         bytea NOT NULL,
  content_type    text,
  headers         jsonb NOT NULL,
  occurred_at     timestamptz,
  PRIMARY KEY (adoption, seq)
);

-- The id of an event: that of its row if it is a UUID, else one that is made of it (RFC 9562, version 8).
CREATE FUNCTION {schema}.adopt_id(table_name text, id text) RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE WHEN id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' THEN id
              ELSE overlay(overlay(left(encode(sha256(convert_to(concat('outbox adopt:', table_name, ':', id), 'UTF8')), 'hex'), 32)
                                   PLACING '8' FROM 13) PLACING '8' FROM 17) END::uuid;

-- The headers of a row: the members of a JSON object as text, without those that are null. What is no object becomes an array, which
-- check_event() refuses with the name of the row, and which stays one when more headers are added.
CREATE FUNCTION {schema}.adopt_headers(given jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE coalesce(jsonb_typeof(given), 'null')
           WHEN 'null' THEN '{}'
           WHEN 'object' THEN coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each_text(given) WHERE value IS NOT NULL), '{}')
           ELSE jsonb_build_array(given) END;

-- Whether the row is valid at a glance; else check_event() decides. known_json: the payload is JSON, or need not be.
CREATE FUNCTION {schema}.adopt_is_plain(aggregate_type text, aggregate_id text, event_type text, payload bytea, headers jsonb,
                                        occurred_at timestamptz, known_json boolean) RETURNS boolean LANGUAGE sql STABLE
  RETURN {schema}.is_plain(aggregate_type, aggregate_id, event_type, octet_length(payload), NULL)
     AND {schema}.are_plain(headers, NULL, occurred_at) AND (known_json OR {schema}.is_json(payload));

-- The aggregate type of a row that is not plain, or an error that names the row.
CREATE FUNCTION {schema}.adopt_check(row_id text, aggregate_type text, aggregate_id text, event_type text, payload bytea,
                                     content_type text, headers jsonb, occurred_at timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  PERFORM {schema}.check_event(format('row %s: ', row_id), aggregate_type, aggregate_id, event_type, payload, headers,
                               coalesce(content_type, ''), occurred_at);
  IF aggregate_id <> '' AND {schema}.wants_lock(NULL) THEN
    PERFORM pg_advisory_xact_lock({schema}.key_lock(aggregate_type, aggregate_id));
  END IF;
  RETURN aggregate_type;
END
$fn$;

-- What the log has against a row; null: nothing. For the check before anything is changed.
CREATE FUNCTION {schema}.adopt_problem(row_id text, aggregate_type text, aggregate_id text, event_type text, payload bytea,
                                       content_type text, headers jsonb, occurred_at timestamptz) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  PERFORM {schema}.check_event(format('row %s: ', row_id), aggregate_type, aggregate_id, event_type, payload, headers,
                               coalesce(content_type, ''), occurred_at);
  RETURN NULL;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN SQLERRM;
END
$fn$;

-- Moves what is staged into the log, in the order in which it was staged; returns how many. Not through event_in, whose rule does not
-- allow a DELETE in the same statement, which gives both one snapshot; the rows were checked when they were staged.
CREATE FUNCTION {schema}.adopt_drain(one integer) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $fn$
DECLARE
  moved  bigint;
BEGIN
  WITH gone AS (DELETE FROM {schema}.adopt_stage WHERE adoption = one RETURNING *)
  INSERT INTO {schema}.event (lane, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
    SELECT {schema}.lane_of(g.aggregate_type, g.aggregate_id, g.id), g.id, g.aggregate_type, g.aggregate_id, g.event_type, g.payload,
           g.content_type, g.headers, g.occurred_at
    FROM gone g ORDER BY g.seq;
  GET DIAGNOSTICS moved = ROW_COUNT;
  UPDATE {schema}.adoption SET staged = staged + moved WHERE id = one AND moved > 0;
  RETURN moved;
END
$fn$;
REVOKE EXECUTE ON FUNCTION {schema}.adopt_drain(integer) FROM PUBLIC;

-- What has become of each adoption, whatever its table is called now. `fault` says why rows are not forwarded any more: its own, or, with
-- 'replaced', those of another table that has its former name; null: all are. It reads catalogs by their indexes and takes no lock on the tables, so that it does not wait for DDL; with the rights of its owner, so
-- that a reader learns how many rows are staged, and not what is in them.
CREATE VIEW {schema}.adoption_state AS
SELECT a.*, coalesce(holder.oid, named.oid) AS relation_now,
  (SELECT format('%I.%I', s.nspname, c.relname) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
   WHERE c.oid = coalesce(holder.oid, named.oid)) AS name_now,
  coalesce(holder.tgenabled = 'A', false) AS always,
  (SELECT count(*) FROM (SELECT FROM {schema}.adopt_stage s WHERE s.adoption = a.id LIMIT 10001) w) AS waiting,
  EXISTS (SELECT FROM pg_stat_activity c WHERE c.datname = current_database() AND c.application_name LIKE '% adopt'
                                           AND c.pid <> pg_backend_pid()) AS running,
  CASE WHEN a.state = 'ended' THEN NULL
       WHEN off.tgenabled = 'R' THEN 'replica_only'
       WHEN off.tgenabled IS NOT NULL THEN 'off'
       WHEN replaced.name IS NOT NULL THEN 'replaced'
       WHEN holder.oid IS NOT NULL THEN NULL
       WHEN named.oid IS NULL THEN 'dropped'
       WHEN named.oid <> a.relation THEN 'remade'
       ELSE 'no_trigger' END AS fault,
  coalesce(off.partition, replaced.name) AS fault_at  -- the partition, or the table that has the name
FROM {schema}.adoption a
LEFT JOIN LATERAL (SELECT c.oid FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
                   WHERE s.nspname = (parse_ident(a.table_name))[1]::name AND c.relname = (parse_ident(a.table_name))[2]::name
                     AND c.relkind IN ('r', 'p')) named ON true
LEFT JOIN LATERAL (SELECT p.oid FROM pg_proc p WHERE p.pronamespace = '{schema}'::regnamespace
                     AND p.proname = concat(CASE a.state WHEN 'forwarding' THEN 'adopt_forward_' ELSE 'adopt_stage_' END, a.id)::name) f ON true
LEFT JOIN LATERAL (SELECT t.tgrelid AS oid, t.tgenabled FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid
                   WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid AND d.classid = 'pg_trigger'::regclass
                     AND t.tgparentid = 0 LIMIT 1) holder ON true
LEFT JOIN LATERAL (WITH RECURSIVE part(oid) AS (SELECT holder.oid UNION ALL
                     SELECT h.inhrelid FROM part p JOIN pg_inherits h ON h.inhparent = p.oid)
                   SELECT t.tgenabled, CASE WHEN c.oid <> holder.oid THEN format('%I.%I', s.nspname, c.relname) END AS partition
                   FROM part p JOIN pg_trigger t ON t.tgrelid = p.oid AND t.tgfoid = f.oid AND t.tgenabled NOT IN ('O', 'A')
                   JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace s ON s.oid = c.relnamespace
                   ORDER BY c.oid <> holder.oid, c.relname LIMIT 1) off ON true
LEFT JOIN LATERAL (SELECT a.table_name AS name WHERE off.tgenabled IS NULL AND named.oid <> holder.oid AND NOT EXISTS (
                     SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
                     WHERE t.tgrelid = named.oid AND p.pronamespace = '{schema}'::regnamespace
                       AND starts_with(p.proname::text, 'adopt_'))) replaced ON true;

-- ---- Rights

SELECT {schema}.grant_to('outbox_relay', 'SELECT ON {schema}.adoption, {schema}.adoption_state');
SELECT {schema}.grant_to('outbox_reader', 'SELECT ON {schema}.adoption, {schema}.adoption_state');
