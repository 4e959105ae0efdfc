-- Renaming, resetting and dropping subscriptions (docs/design/subscriptions.md), what relays and workers did to them
-- (docs/design/history.md), and what people changed (docs/design/audit.md).
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- Names that a subscription had. A configuration that still has one must not create a second subscription, which would deliver
-- everything again.
CREATE TABLE {schema}.former_name (
  name          text PRIMARY KEY,
  subscription  integer NOT NULL,
  at            timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Subscriptions that are gone. Retention removes their settlements, of which there may be millions, and what a relay that does not know
-- yet still writes.
CREATE TABLE {schema}.dropped (
  subscription  integer PRIMARY KEY,
  at            timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What relays and workers did, interval by interval (docs/design/history.md). latency: how many took how long, by the bounds of
-- outbox/histogram.hpp. oldest: microseconds.
CREATE TABLE {schema}.history (
  at            timestamptz NOT NULL,
  subscription  integer NOT NULL,
  type          text NOT NULL,
  who           uuid NOT NULL,
  delivered     bigint NOT NULL,
  failed        bigint NOT NULL,
  parked        bigint NOT NULL,
  dead          bigint NOT NULL,
  latency       bigint[] NOT NULL,
  pending       bigint NOT NULL,
  oldest        bigint NOT NULL,
  PRIMARY KEY (at, subscription, type, who)
);

-- In the next three the caller has locked the subscription, the row of `fleet` and the lanes of its group, so that no relay writes
-- meanwhile; afterwards hold_lanes() refuses what relays write of the old id.

-- The subscription goes, with its parked events.
CREATE FUNCTION {schema}.drop_subscription(sub integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  INSERT INTO {schema}.dropped (subscription) VALUES (sub);
  DELETE FROM {schema}.subscription s WHERE s.id = sub;
  DELETE FROM {schema}.parked p WHERE p.subscription = sub;
  DELETE FROM {schema}.parked_key k WHERE k.subscription = sub;
  DELETE FROM {schema}.run r WHERE r.subscription = sub;
  DELETE FROM {schema}.verified v WHERE v.subscription = sub;
  DELETE FROM {schema}.former_name n WHERE n.subscription = sub;
  DELETE FROM {schema}.replay_progress p WHERE p.replay IN (SELECT r.id FROM {schema}.replay r WHERE r.subscription = sub);
  DELETE FROM {schema}.replay_skip k WHERE k.replay IN (SELECT r.id FROM {schema}.replay r WHERE r.subscription = sub);
  DELETE FROM {schema}.replay r WHERE r.subscription = sub;
END
$fn$;

-- The subscription gets a new id, under which it has no history: its cursor is for the caller to write. Parked events that will be sent
-- again go: those of the log after this seq, and those that the snapshot of the new start does not see, which were committed and parked
-- between it and the caller's locks. The others stay parked, and so do the ends. null: none is sent again.
CREATE FUNCTION {schema}.restart_subscription(sub integer, after_seq bigint, seen pg_snapshot) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $fn$
DECLARE
  fresh      integer;
  gone_keys  bigint[];
  gone_seqs  bigint[];
  were_dead  boolean[];
BEGIN
  UPDATE {schema}.subscription s SET id = DEFAULT, config_version = s.config_version + 1, changed_at = clock_timestamp(),
    trouble = '', trouble_since = NULL, trouble_relay = NULL
  WHERE s.id = sub RETURNING s.id INTO fresh;
  INSERT INTO {schema}.dropped (subscription) VALUES (sub);
  WITH gone AS (
    DELETE FROM {schema}.parked p
    WHERE p.subscription = sub
      AND EXISTS (SELECT FROM {schema}.event e WHERE e.seq = p.seq
                  AND (e.seq > after_seq OR NOT pg_visible_in_snapshot(e.xid, seen)))
    RETURNING p.key, p.seq, p.dead)
  SELECT array_agg(g.key), array_agg(g.seq), array_agg(g.dead) INTO gone_keys, gone_seqs, were_dead FROM gone g;
  UPDATE {schema}.parked p SET subscription = fresh WHERE p.subscription = sub;
  UPDATE {schema}.parked_key k SET subscription = fresh WHERE k.subscription = sub;
  PERFORM {schema}.release_keys(fresh, gone_keys, gone_seqs);
  PERFORM {schema}.parked_left(fresh, gone_keys, gone_seqs, were_dead, true);
  UPDATE {schema}.parked_end d SET subscription = fresh
  WHERE d.subscription = sub
    AND NOT EXISTS (SELECT FROM {schema}.event e WHERE e.seq = d.seq
                    AND (e.seq > after_seq OR NOT pg_visible_in_snapshot(e.xid, seen)));
  DELETE FROM {schema}.run r WHERE r.subscription = sub;
  UPDATE {schema}.replay r SET subscription = fresh WHERE r.subscription = sub;
  UPDATE {schema}.former_name n SET subscription = fresh WHERE n.subscription = sub;
  RETURN fresh;
END
$fn$;

-- The name, which the subscription that is renamed may have had before.
CREATE FUNCTION {schema}.rename_subscription(sub integer, new_name text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fn$
BEGIN
  DELETE FROM {schema}.former_name n WHERE n.name = new_name;
  INSERT INTO {schema}.former_name (name, subscription) SELECT s.name, s.id FROM {schema}.subscription s WHERE s.id = sub;
  UPDATE {schema}.subscription s SET name = new_name, config_version = s.config_version + 1, changed_at = clock_timestamp()
  WHERE s.id = sub;
END
$fn$;

CREATE FUNCTION {schema}.forget_former_name(old_name text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fn$
  DELETE FROM {schema}.former_name n WHERE n.name = old_name
$fn$;

-- Removes rows of subscriptions that are gone, at most so many, and returns one row for each.
CREATE FUNCTION {schema}.prune_dropped(most integer) RETURNS SETOF integer
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $fn$
  WITH rows AS (
    DELETE FROM {schema}.settlement t WHERE t.ctid = ANY (ARRAY(
      SELECT y.ctid FROM {schema}.dropped d CROSS JOIN LATERAL (
        SELECT s.ctid FROM {schema}.settlement s WHERE s.subscription = d.subscription LIMIT most) y LIMIT most))
    RETURNING 1),
  ends AS (
    DELETE FROM {schema}.parked_end t WHERE t.ctid = ANY (ARRAY(
      SELECT y.ctid FROM {schema}.dropped d CROSS JOIN LATERAL (
        SELECT e.ctid FROM {schema}.parked_end e WHERE e.subscription = d.subscription LIMIT most) y LIMIT most))
    RETURNING 1),
  sums AS (
    DELETE FROM {schema}.pruned t WHERE t.ctid = ANY (ARRAY(
      SELECT y.ctid FROM {schema}.dropped d CROSS JOIN LATERAL (
        SELECT p.ctid FROM {schema}.pruned p WHERE p.subscription = d.subscription LIMIT most) y LIMIT most))
    RETURNING 1),
  over AS (
    DELETE FROM {schema}.dropped d WHERE d.at < clock_timestamp() - interval '1 day'
      AND NOT EXISTS (SELECT FROM {schema}.settlement t WHERE t.subscription = d.subscription)
      AND NOT EXISTS (SELECT FROM {schema}.parked_end t WHERE t.subscription = d.subscription)
      AND NOT EXISTS (SELECT FROM {schema}.pruned t WHERE t.subscription = d.subscription))
  SELECT 1 FROM (SELECT FROM rows UNION ALL SELECT FROM ends UNION ALL SELECT FROM sums LIMIT most) a
$fn$;

-- What people changed: a row in the transaction of each change. Append-only: nobody may update or delete, but prune_audit().
-- actor: as the program knows the person. origin: command line, console. filter: what was chosen. count: how much was changed.
CREATE TABLE {schema}.audit (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at            timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor         text NOT NULL,
  origin        text NOT NULL,
  verb          text NOT NULL,
  subscription  text NOT NULL,
  filter        jsonb NOT NULL,
  count         bigint NOT NULL,
  reason        text NOT NULL
);
CREATE INDEX audit_at ON {schema}.audit (at);

-- Removes rows that are older than this, at most so many, and returns one row for each. A day's rows stay whatever is asked for.
-- Index audit_at.
CREATE FUNCTION {schema}.prune_audit(age interval, most integer) RETURNS SETOF integer
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $fn$
  DELETE FROM {schema}.audit t WHERE t.ctid = ANY (ARRAY(
    SELECT a.ctid FROM {schema}.audit a WHERE a.at < clock_timestamp() - greatest(age, interval '1 day') ORDER BY a.at LIMIT most))
  RETURNING 1
$fn$;

REVOKE EXECUTE ON FUNCTION {schema}.drop_subscription(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.restart_subscription(integer, bigint, pg_snapshot) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.rename_subscription(integer, text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.forget_former_name(text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.prune_dropped(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION {schema}.prune_audit(interval, integer) FROM PUBLIC;
SELECT {schema}.grant_to('outbox_relay',
  'SELECT ON {schema}.former_name',
  'SELECT ON {schema}.dropped',
  'SELECT, INSERT, DELETE ON {schema}.history',
  'EXECUTE ON FUNCTION {schema}.drop_subscription(integer)',
  'EXECUTE ON FUNCTION {schema}.restart_subscription(integer, bigint, pg_snapshot)',
  'EXECUTE ON FUNCTION {schema}.rename_subscription(integer, text)',
  'EXECUTE ON FUNCTION {schema}.forget_former_name(text)',
  'EXECUTE ON FUNCTION {schema}.prune_dropped(integer)',
  'SELECT ON {schema}.audit',
  'INSERT (actor, origin, verb, subscription, filter, count, reason) ON {schema}.audit',
  'EXECUTE ON FUNCTION {schema}.prune_audit(interval, integer)');
SELECT {schema}.grant_to('outbox_reader',
  'SELECT ON {schema}.former_name',
  'SELECT ON {schema}.dropped',
  'SELECT ON {schema}.history',
  'SELECT ON {schema}.audit');
