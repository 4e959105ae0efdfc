-- Who may use `outbox console`, and what the console itself may do (docs/design/console.md).

-- Everything here belongs to the owner of the log.
SELECT set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{schema}.event'::regclass), true);

-- digest: SHA-256 of the token, hexadecimal. Only the owner may write here, so that nobody who can use the console, or a relay's login,
-- makes tokens.
CREATE TABLE {schema}.console_token (
  name        text PRIMARY KEY,
  digest      text NOT NULL UNIQUE,
  role        text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  payloads    boolean NOT NULL,
  created_by  text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at  timestamptz
);

-- ---- Rights: it reads, and does what people may decide. It cannot deliver: it has no INSERT into settlement.

SELECT {schema}.grant_to('outbox_console',
  'USAGE ON SCHEMA {schema}',
  'SELECT ON ALL TABLES IN SCHEMA {schema}',
  'SELECT ON SEQUENCE {schema}.event_seq',
  'EXECUTE ON FUNCTION {schema}.partitions()',
  'EXECUTE ON FUNCTION {schema}.task_status(uuid)',
  'INSERT (actor, origin, verb, subscription, filter, count, reason) ON {schema}.audit',
  -- Pauses and resumes, and tells the relay that parked events changed.
  'UPDATE (state, reason, stopped_seq, stopped_event, changed_at, parked_version) ON {schema}.subscription',
  -- A lock needs the right to change a column: these say which row it is, and are never changed.
  'UPDATE (lane) ON {schema}.lane',
  'UPDATE (one) ON {schema}.fleet',
  -- Retry, discard, edit; and the same for tasks.
  'INSERT, UPDATE, DELETE ON {schema}.parked',
  'INSERT, UPDATE, DELETE ON {schema}.parked_key',
  'INSERT ON {schema}.parked_end',
  'INSERT, UPDATE, DELETE ON {schema}.task_unique',
  'INSERT, UPDATE, DELETE ON {schema}.task_released',
  'INSERT, UPDATE ON {schema}.task_end',
  -- Events that tell of the end of a task.
  'INSERT ON {schema}.event_in',
  'USAGE ON SEQUENCE {schema}.event_seq',
  'INSERT, UPDATE, DELETE ON {schema}.replay',
  'INSERT ON {schema}.replay_progress',
  'UPDATE, DELETE ON {schema}.schedule',
  'UPDATE (differences, revision) ON {schema}.verified');
