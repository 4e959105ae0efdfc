-- How events are written, from any language, in the caller's transaction. A search_path of their own would be a fifth of the cost
-- of enqueue() and new_event, so these two name everything in full and have their expressions in is_plain(), are_plain() and
-- new_id(), which are parsed here and inlined into their callers. What they call for events that are not plain has one.

-- Everything here belongs to the owner of the log.
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- A UUID of version 7 (RFC 9562): 48 bits of milliseconds before random bits.
CREATE FUNCTION {schema}.new_id() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN overlay(gen_random_uuid()::text
                 PLACING '0' || to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint) || '7' FROM 1 FOR 15)::uuid;

-- application/json, or anything that ends in +json.
CREATE FUNCTION {schema}.is_json_type(content_type text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN content_type = 'application/json'
      OR lower(btrim(split_part(content_type, ';', 1), E' \t')) ~ '^(application/json|[^/]+/.*[+]json)$';

-- Whether a \u escape of this JSON is half of a surrogate pair (\ud83d alone), which is no character: the parsers of consumers do not
-- agree about it, and other writers refuse it. jsonb cannot have it, the type json can. Escaped backslashes and whole pairs are
-- taken out before what is left is looked at.
CREATE FUNCTION {schema}.has_half_pair(document text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN strpos(document, E'\\u') > 0
     AND regexp_replace(document, E'\\\\\\\\|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', ' ', 'g') ~ E'\\\\u[dD][89a-fA-F]';

CREATE FUNCTION {schema}.is_json(payload bytea) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $fn$
BEGIN
  PERFORM convert_from(payload, 'UTF8')::json;
  RETURN NOT {schema}.has_half_pair(convert_from(payload, 'UTF8'));
EXCEPTION WHEN data_exception OR statement_too_complex THEN  -- too deeply nested JSON is refused
  RETURN false;
END
$fn$;

-- Raises an error that names the field, as outbox::validate() does.
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
  ELSIF value ~ E'[\\x01-\\x1f\\x7f-\\x9f]' THEN
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
    ELSIF lower(header.key) ~ '^outbox[-_]' THEN
      PERFORM {schema}.refuse(format('%s: ''%s'' is reserved: names that begin with outbox- or outbox_ are set by outbox itself',
                                     field, header.key));
    ELSIF lower(header.key) IN ('content-type', 'content_type') AND content_type <> '' THEN
      PERFORM {schema}.refuse(field || ': content-type is set twice', 'set the argument content_type instead of a header');
    ELSIF header.value ~ E'[\r\n]' THEN
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

-- Whether to lock the key, for writers that do not lock the aggregate.
CREATE FUNCTION {schema}.wants_lock(lock_key boolean) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(lock_key, nullif(current_setting('outbox.lock_key', true), '')::boolean, false);

-- True for nearly every event: these fields are valid, and only the INSERT is left to do. When they are false, check_event()
-- decides. PL/pgSQL sets up an expression anew in each transaction, at a cost for each function in it, so rarely used fields are
-- checked apart.
CREATE FUNCTION {schema}.is_plain(aggregate_type text, aggregate_id text, event_type text, payload_bytes integer, lock_key boolean)
RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(
    ascii(aggregate_type) > 32 AND ascii(event_type) > 32  -- so neither is empty or blank
    AND greatest(octet_length(aggregate_type), octet_length(aggregate_id), octet_length(event_type)) <= 255
    AND concat(aggregate_type, aggregate_id, event_type) !~ E'[\\x01-\\x1f\\x7f-\\x9f]'
    AND payload_bytes <= {schema}.payload_limit()
    AND NOT {schema}.wants_lock(lock_key), false);

CREATE FUNCTION {schema}.are_defaults(headers jsonb, content_type text, occurred_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN headers = '{}' AND content_type IS NULL AND occurred_at IS NULL;

CREATE FUNCTION {schema}.are_plain(headers jsonb, content_type text, occurred_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN coalesce(
    (headers IS NULL OR headers = '{}' OR octet_length(headers::text) <= 255  -- so no name is longer than that
     AND headers::text ~ E'^[{](?:"[-_.0-9a-z]+": "[^"\\\\\\x01-\\x1f\\x7f]*"(?:, |[}]$))+$'
     AND headers::text !~ '"outbox[-_]|"content[-_]type"')
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
  IF content_type !~ E'^([-!#$%&''*+.^_`|~0-9A-Za-z]+/[-!#$%&''*+.^_`|~0-9A-Za-z]+[ \t]*(;[ -~]*)?)?$' THEN
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

-- The rule below calls this instead of lane_of() for an event that is not valid; it raises the error.
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

-- The only way into the log: writers have a right on this view, not on the table, and cannot choose xid, seq or lane. It checks
-- the outermost limits once more. It is a view with a rule, because a rule becomes part of the writer's statement and is planned
-- with it, once; a generated column, domains and CHECKs are set up anew in each statement. LATERAL: NEW.column stands for the
-- writer's expression, which must be computed once, or the value written is not the value checked.
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

-- The bytes of a payload given as JSON: the JSON itself; of a string with another content type, its characters.
CREATE FUNCTION {schema}.json_payload(payload json, content_type text) RETURNS bytea LANGUAGE sql STABLE
  RETURN convert_to(CASE WHEN json_typeof(payload) = 'string' AND NOT {schema}.is_json_type(content_type)
                         THEN payload #>> '{}' ELSE payload::text END, 'UTF8');

-- For every event that is not plain: checks it and writes it, or raises an error.
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

-- enqueue(aggregate_type, aggregate_id, event_type, payload, headers, id, content_type, lock_key, occurred_at). Two functions for
-- each type of the payload: the key is text (also an untyped literal or parameter), or a number, a uuid or any other type but an
-- array. They differ in nothing else, and call no other function for a plain event.
DO $make$
DECLARE
  key   text;
  kind  record;
BEGIN
  FOREACH key IN ARRAY ARRAY['text', 'anynonarray'] LOOP
    FOR kind IN SELECT * FROM (VALUES
        ('text',  'payload', 'pg_catalog.convert_to(payload, ''UTF8'')',
                  ' AND payload::pg_catalog.json IS NOT NULL AND NOT {schema}.has_half_pair(payload)'),
        ('bytea', 'pg_catalog.convert_from(payload, ''UTF8'')', 'payload',
                  ' AND pg_catalog.convert_from(payload, ''UTF8'')::pg_catalog.json IS NOT NULL'
                  ' AND NOT {schema}.has_half_pair(pg_catalog.convert_from(payload, ''UTF8''))'),
        ('json',  'payload::pg_catalog.text', 'pg_catalog.convert_to(payload::pg_catalog.text, ''UTF8'')',
                  ' AND NOT {schema}.has_half_pair(payload::pg_catalog.text)'),
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
$enqueue$, key, kind.type, kind.as_text, kind.as_bytes, kind.is_json, kind.type LIKE 'json%');
    END LOOP;
  END LOOP;
END
$make$;

-- Checks the members of one event of enqueue_many(): known, of the right type, none missing.
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
        !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?([Zz]|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$' THEN
    PERFORM {schema}.refuse(at || 'occurred_at: is not a time', 'RFC 3339, for example 2026-01-05T08:09:12.5Z');
  END IF;
END
$fn$;

-- The format was checked before; the cast checks the day of the month.
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
  -- All writers use one order, so that they cannot deadlock.
  PERFORM pg_advisory_xact_lock(k) FROM (SELECT DISTINCT unnest(locks) AS k ORDER BY 1 OFFSET 0) l;
  INSERT INTO {schema}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
    SELECT a, b, c, d, x, y, z, t
    FROM unnest(ids, types, keys, names, bodies, media, heads, times) WITH ORDINALITY u(a, b, c, d, x, y, z, t, place)
    ORDER BY place;
  RETURN QUERY SELECT unnest(ids);
END
$fn$;

-- For drivers that say text or varchar, and for json_agg(). A literal or parameter without a type is text, as in enqueue().
CREATE FUNCTION {schema}.enqueue_many(events text, lock_key boolean DEFAULT NULL) RETURNS SETOF uuid LANGUAGE sql VOLATILE
  RETURN {schema}.enqueue_many(events::jsonb, lock_key);
CREATE FUNCTION {schema}.enqueue_many(events json, lock_key boolean DEFAULT NULL) RETURNS SETOF uuid LANGUAGE sql VOLATILE
  RETURN {schema}.enqueue_many(events::jsonb, lock_key);

-- A view's trigger does not fire where session_replication_role is replica, yet the server counts the row as inserted. The CHECK
-- of this type of one of its columns runs for each row.
CREATE DOMAIN {schema}.new_event_text AS text
  CONSTRAINT session_replication_role_is_not_replica CHECK (current_setting('session_replication_role') <> 'replica');

-- For ORMs and generated SQL: INSERT INTO new_event (...) VALUES (...) [RETURNING id]. Reads as empty.
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

-- What an application may do.
SELECT {schema}.grant_to('outbox_app',
  'USAGE ON SCHEMA {schema}',
  'INSERT ON {schema}.event_in',
  'USAGE ON SEQUENCE {schema}.event_seq',
  'SELECT ON {schema}.migration, {schema}.definition',
  'INSERT, SELECT ON {schema}.new_event');
