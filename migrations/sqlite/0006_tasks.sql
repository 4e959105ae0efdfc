-- Tasks that run for long: their rows belong to a worker (docs/design/tasks.md).

-- beat: grows with each heartbeat. A worker whose beat does not change is dead. beat_at: microseconds since 1970, UTC.
CREATE TABLE outbox_worker (
  id       BLOB PRIMARY KEY,
  name     TEXT NOT NULL,
  beat     INTEGER NOT NULL,
  beat_at  INTEGER NOT NULL,
  types    TEXT NOT NULL DEFAULT '{}'  -- that it has handlers for, and how long their runs took: for people
) WITHOUT ROWID;

-- Ends of tasks that have a result, or that were cancelled before they began, or by their handlers. waits: a newer task has replaced this
-- one, which is still in the log or set aside: the row stays until a worker has passed it over, and nobody runs it before that. set_aside: it
-- has a row in outbox_parked, which a worker removes.
CREATE TABLE outbox_task_end (
  id         BLOB PRIMARY KEY,
  outcome    TEXT NOT NULL CHECK (outcome IN ('done', 'cancelled')),
  result     BLOB,
  reason     TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL,
  waits      INTEGER NOT NULL DEFAULT 0,
  set_aside  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX outbox_task_end_at ON outbox_task_end (at);
CREATE INDEX outbox_task_end_set_aside ON outbox_task_end (id) WHERE set_aside = 1;

-- The task that has a unique key, until it has ended, and the one of them that runs: `id` may have replaced it, and then begins after it.
CREATE TABLE outbox_task_unique (
  queue       TEXT NOT NULL,
  unique_key  TEXT NOT NULL,
  id          BLOB NOT NULL,
  running     BLOB,
  PRIMARY KEY (queue, unique_key)
) WITHOUT ROWID;
CREATE INDEX outbox_task_unique_id ON outbox_task_unique (id);
CREATE INDEX outbox_task_unique_running ON outbox_task_unique (running) WHERE running IS NOT NULL;

-- Messages that a consumer has applied.
CREATE TABLE outbox_inbox (
  consumer     TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  received_at  INTEGER NOT NULL,
  -- Of messages that a consumer of ours has read: where they were, the task that they became, and how often they arrived.
  event_type   TEXT,
  place        TEXT,
  task         TEXT,
  arrivals     INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (consumer, message_id)
) WITHOUT ROWID;
CREATE INDEX outbox_inbox_received ON outbox_inbox (consumer, received_at);

-- The highest number of a key's messages, for consumers that skip older ones, and when the last one came.
CREATE TABLE outbox_inbox_key (
  consumer  TEXT NOT NULL,
  key       TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (consumer, key)
) WITHOUT ROWID;
CREATE INDEX outbox_inbox_key_at ON outbox_inbox_key (at);

-- Tasks that recur. next_at is the tick that comes next; who enqueues its task moves it in the same transaction. paused: by a person.
-- revision: grows with each change of the row. Times: microseconds since 1970, UTC.
CREATE TABLE outbox_schedule (
  name          TEXT PRIMARY KEY,
  queue         TEXT NOT NULL,
  type          TEXT NOT NULL,
  payload       BLOB NOT NULL,
  content_type  TEXT NOT NULL,
  key           TEXT NOT NULL,
  headers       TEXT NOT NULL,
  cron          TEXT NOT NULL,
  every         TEXT NOT NULL,
  time_zone     TEXT NOT NULL,
  missed        TEXT NOT NULL CHECK (missed IN ('one', 'skip', 'all')),
  paused        INTEGER NOT NULL DEFAULT 0,
  revision      INTEGER NOT NULL DEFAULT 0,
  next_at       INTEGER NOT NULL,
  last_at       INTEGER,
  last_task     BLOB,
  CHECK ((cron = '') <> (every = ''))
) WITHOUT ROWID;

-- The types of tasks whose own subscription has begun to deliver them (docs/design/tasks.md).
DROP VIEW IF EXISTS outbox_type_apart;
CREATE VIEW outbox_type_apart AS
  SELECT json_extract(s.config, '$.aggregate_types[0]') AS aggregate_type, json_extract(s.config, '$.event_types[0]') AS event_type,
         (SELECT t.position FROM outbox_settlement t WHERE t.subscription = s.id AND t.kind = 'reset'
          ORDER BY t.generation, t.id LIMIT 1) AS begun_at
  FROM outbox_subscription s
  WHERE s.name LIKE 'type%' AND json_type(s.config, '$.event_types[0]') IS NOT NULL AND begun_at IS NOT NULL;
