-- Events that a relay set aside, and how each of them left (docs/design/parking.md).

-- state: retrying: the first of its key, sent again at next_attempt_at; waiting: behind an earlier one of its key; dead: not sent
-- again unless a person says so; running: a task that a worker runs (docs/design/tasks.md), token: how often it became so. The event is copied whole, since retention may remove the original. Times: microseconds since
-- 1970, UTC.
CREATE TABLE outbox_parked (
  subscription     INTEGER NOT NULL,
  seq              INTEGER NOT NULL,
  id               BLOB NOT NULL,
  aggregate_type   TEXT NOT NULL,
  aggregate_id     TEXT NOT NULL,
  event_type       TEXT NOT NULL,
  payload          BLOB NOT NULL,
  content_type     TEXT NOT NULL,
  headers          TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  occurred_at      INTEGER,
  state            TEXT NOT NULL CHECK (state IN ('retrying', 'waiting', 'dead', 'running')),
  attempts         INTEGER NOT NULL,
  next_attempt_at  INTEGER NOT NULL,
  error            TEXT NOT NULL,
  parked_at        INTEGER NOT NULL,
  worker           BLOB,
  token            INTEGER NOT NULL DEFAULT 0,
  begun_at         INTEGER,
  percent          INTEGER,  -- what its handler reported
  progress         TEXT,
  cancelled_by     TEXT,     -- who wants a task that runs to end as discarded; null: nobody
  cancel_reason    TEXT,
  PRIMARY KEY (subscription, seq)
) WITHOUT ROWID;
CREATE INDEX outbox_parked_due ON outbox_parked (subscription, next_attempt_at, seq) WHERE state = 'retrying';
CREATE INDEX outbox_parked_key ON outbox_parked (subscription, aggregate_type, aggregate_id, seq);
CREATE INDEX outbox_parked_id ON outbox_parked (id);
CREATE INDEX outbox_parked_running ON outbox_parked (subscription, worker) WHERE state = 'running';

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
