-- Events that a relay set aside, and how each of them left (docs/design/parking.md).

-- Set aside, for one subscription. The event is copied whole, since retention may remove the original. key: of its ordering key, see
-- outbox_parked_key. attempts, error, token, version: of one that is dead, which is not sent again unless a person says so; of any other
-- its key has them. Times: microseconds since 1970, UTC. What is long comes last, so that the rest is read without it.
CREATE TABLE outbox_parked (
  subscription    INTEGER NOT NULL,
  seq             INTEGER NOT NULL,
  key             INTEGER NOT NULL,
  dead            INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1)),
  blocks          INTEGER NOT NULL DEFAULT 0 CHECK (blocks IN (0, 1)),  -- it is dead, and holds its key
  attempts        INTEGER NOT NULL DEFAULT 0,
  token           INTEGER NOT NULL DEFAULT 0,
  version         INTEGER NOT NULL DEFAULT 0,
  parked_at       INTEGER NOT NULL,
  id              BLOB NOT NULL,
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  content_type    TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  occurred_at     INTEGER,
  error           TEXT NOT NULL DEFAULT '',
  headers         TEXT NOT NULL,
  payload         BLOB NOT NULL,
  PRIMARY KEY (subscription, seq)
) WITHOUT ROWID;
-- They end in a constant, without which SQLite would look up each row for its condition.
CREATE INDEX outbox_parked_live ON outbox_parked (subscription, key, seq, dead) WHERE dead = 0;
CREATE INDEX outbox_parked_dead ON outbox_parked (subscription, seq, dead) WHERE dead = 1;
CREATE INDEX outbox_parked_blocks ON outbox_parked (subscription, key, seq, blocks) WHERE blocks = 1;
CREATE INDEX outbox_parked_id ON outbox_parked (id);

-- What a key does next. It has a row if it has an event that is not dead, or is blocked by a dead one. key: the hash of the ordering key,
-- or the seq of an event without one, which is a key of its own (solo). version: raised by people's changes. attempts, next_attempt_at,
-- error: of its first event that is not dead. blocked_by: the first dead event that holds it. run_seq: the event that a worker runs
-- (docs/design/tasks.md). token: how often one of its events began to run.
CREATE TABLE outbox_parked_key (
  subscription     INTEGER NOT NULL,
  key              INTEGER NOT NULL,
  solo             INTEGER NOT NULL,
  version          INTEGER NOT NULL DEFAULT 0,
  attempts         INTEGER NOT NULL DEFAULT 0,
  next_attempt_at  INTEGER NOT NULL,  -- the greatest number: while it is blocked
  blocked_by       INTEGER,
  run_seq          INTEGER,
  worker           BLOB,
  token            INTEGER NOT NULL DEFAULT 0,
  begun_at         INTEGER,
  percent          INTEGER,  -- what the handler of the one that runs reported
  cancelled_by     TEXT,     -- who wants the one that runs to end as discarded; null: nobody
  cancel_reason    TEXT,
  progress         TEXT,
  error            TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (subscription, key)
) WITHOUT ROWID;
CREATE INDEX outbox_parked_key_due ON outbox_parked_key (subscription, next_attempt_at, key, run_seq) WHERE run_seq IS NULL;
CREATE INDEX outbox_parked_key_worker ON outbox_parked_key (subscription, worker) WHERE worker IS NOT NULL;
CREATE INDEX outbox_parked_key_blocked ON outbox_parked_key (subscription, key) WHERE blocked_by IS NOT NULL;

-- What people see: each parked event with its state. retrying: the first of its key, sent again at next_attempt_at; waiting: behind an
-- earlier one of its key; dead; running: a task that a worker runs; ready: one that any worker may take. `h`: the row of its key, if
-- that says something about this event. Indexes: the primary keys and outbox_parked_live, once for each row that is read.
CREATE VIEW outbox_parked_state AS
  SELECT p.subscription, p.seq, p.id, p.aggregate_type, p.aggregate_id, p.event_type, p.payload, p.content_type, p.headers,
    p.created_at, p.occurred_at, p.parked_at,
    CASE WHEN p.dead = 1 THEN 'dead' WHEN h.key IS NULL THEN 'waiting' WHEN h.run_seq IS NOT p.seq THEN 'retrying'
         WHEN h.worker IS NULL THEN 'ready' ELSE 'running' END AS state,
    CASE WHEN p.dead = 1 THEN p.attempts ELSE coalesce(h.attempts, 0) END AS attempts, h.next_attempt_at AS next_attempt_at,
    CASE WHEN p.dead = 1 THEN p.error ELSE coalesce(h.error, '') END AS error,
    CASE WHEN p.dead = 1 THEN p.token ELSE coalesce(h.token, 0) END AS token,
    CASE WHEN h.run_seq = p.seq THEN h.worker END AS worker, CASE WHEN h.run_seq = p.seq THEN h.begun_at END AS begun_at,
    CASE WHEN h.run_seq = p.seq THEN h.percent END AS percent, CASE WHEN h.run_seq = p.seq THEN h.progress END AS progress,
    CASE WHEN h.run_seq = p.seq THEN h.cancelled_by END AS cancelled_by,
    CASE WHEN h.run_seq = p.seq THEN h.cancel_reason END AS cancel_reason
  FROM outbox_parked p LEFT JOIN outbox_parked_key h ON h.subscription = p.subscription AND h.key = p.key AND p.dead = 0
    AND (h.run_seq = p.seq OR coalesce(h.blocked_by, p.seq) >= p.seq AND NOT EXISTS (
      SELECT 1 FROM outbox_parked l INDEXED BY outbox_parked_live
      WHERE l.subscription = p.subscription AND l.key = p.key AND l.dead = 0 AND l.seq < p.seq));

CREATE TABLE outbox_parked_end (
  subscription  INTEGER NOT NULL,
  seq           INTEGER NOT NULL,
  id            BLOB NOT NULL,
  outcome       TEXT NOT NULL CHECK (outcome IN ('delivered', 'discarded', 'edited')),
  attempts      INTEGER NOT NULL,
  actor         TEXT NOT NULL DEFAULT '',  -- who decided; empty: the relay
  reason        TEXT NOT NULL DEFAULT '',
  at            INTEGER NOT NULL
);
CREATE INDEX outbox_parked_end_seq ON outbox_parked_end (subscription, seq);
CREATE INDEX outbox_parked_end_id ON outbox_parked_end (id);

-- Grows when a person changes parked events, so that the relay reads them again.
ALTER TABLE outbox_subscription ADD COLUMN parked_version INTEGER NOT NULL DEFAULT 0;

-- The newest settlement that counts retried events; it has their total.
CREATE INDEX outbox_settlement_retries ON outbox_settlement (subscription, id) WHERE kind = 'retry';

-- Runs: a relay that delivers a subscription has a row, which it removes when it ends in order. What is left of a relay that is not
-- registered any more was left by a death (docs/design/trials.md).
CREATE TABLE outbox_run (
  subscription  INTEGER NOT NULL,
  generation    INTEGER NOT NULL,
  relay         TEXT NOT NULL,      -- empty: no death. The run ended in order during a trial, or its relay has come back
  place         TEXT NOT NULL,      -- where the cursor stood when the run began
  tried         INTEGER NOT NULL,   -- events that were sent on trial and have not survived yet
  first_seq     INTEGER NOT NULL DEFAULT 0,  -- the first of them; 0: none was sent
  counted       INTEGER NOT NULL DEFAULT 0,  -- 1: another run has begun since
  PRIMARY KEY (subscription, generation)
) WITHOUT ROWID;
