-- Events that are sent again (docs/design/replay.md).

-- One row per replay; a subscription has one at a time that is loading or running. archived: its events are in outbox_replay_event.
-- position: everything up to it was sent, or skipped. Times: microseconds since 1970, UTC.
CREATE TABLE outbox_replay (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription  INTEGER NOT NULL,
  first_seq     INTEGER NOT NULL,
  last_seq      INTEGER NOT NULL,
  filter        TEXT NOT NULL,
  archived      INTEGER NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('loading', 'running', 'stopped', 'done')),
  actor         TEXT NOT NULL,
  reason        TEXT NOT NULL DEFAULT '',
  started_at    INTEGER NOT NULL,
  ended_at      INTEGER,
  position      INTEGER NOT NULL,
  sent          INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX outbox_replay_running ON outbox_replay (subscription) WHERE state IN ('loading', 'running');

-- What a replay did not send: the destination rejected it, or (no error) one before it of its key.
CREATE TABLE outbox_replay_skip (
  replay          INTEGER NOT NULL,
  seq             INTEGER NOT NULL,
  id              BLOB NOT NULL,
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  error           TEXT NOT NULL,
  PRIMARY KEY (replay, seq)
) WITHOUT ROWID;

-- Events copied from an archive, until they are sent.
CREATE TABLE outbox_replay_event (
  replay          INTEGER NOT NULL,
  seq             INTEGER NOT NULL,
  id              BLOB NOT NULL,
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  payload         BLOB NOT NULL,
  content_type    TEXT NOT NULL,
  headers         TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  occurred_at     INTEGER,
  PRIMARY KEY (replay, seq)
) WITHOUT ROWID;
