-- Tasks that run for long: their rows belong to a worker (docs/design/tasks.md).

-- beat: grows with each heartbeat. A worker whose beat does not change is dead. beat_at: microseconds since 1970, UTC.
CREATE TABLE outbox_worker (
  id       BLOB PRIMARY KEY,
  name     TEXT NOT NULL,
  beat     INTEGER NOT NULL,
  beat_at  INTEGER NOT NULL
) WITHOUT ROWID;
