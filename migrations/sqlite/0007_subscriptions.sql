-- Renaming, resetting and dropping subscriptions (docs/design/subscriptions.md), what relays and workers did to them
-- (docs/design/history.md), and what people changed (docs/design/audit.md).

-- Names that a subscription had. A configuration that still has one must not create a second subscription, which would deliver
-- everything again. at: microseconds since 1970, UTC.
CREATE TABLE outbox_former_name (
  name          TEXT PRIMARY KEY,
  subscription  INTEGER NOT NULL,
  at            INTEGER NOT NULL
) WITHOUT ROWID;

-- Subscriptions that are gone. Retention removes their settlements, and what a relay that does not know yet still writes.
CREATE TABLE outbox_dropped (
  subscription  INTEGER PRIMARY KEY,
  at            INTEGER NOT NULL
);

-- What relays and workers did, interval by interval (docs/design/history.md). at: microseconds since 1970, UTC. latency: a JSON array, how
-- many took how long, by the bounds of outbox/histogram.hpp. oldest: microseconds.
CREATE TABLE outbox_history (
  at            INTEGER NOT NULL,
  subscription  INTEGER NOT NULL,
  type          TEXT NOT NULL,
  who           BLOB NOT NULL,
  delivered     INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  parked        INTEGER NOT NULL,
  dead          INTEGER NOT NULL,
  latency       TEXT NOT NULL,
  pending       INTEGER NOT NULL,
  oldest        INTEGER NOT NULL,
  PRIMARY KEY (at, subscription, type, who)
) WITHOUT ROWID;

-- What people changed: a row in the transaction of each change. Append-only, but for retention. at: microseconds since 1970, UTC.
-- actor: as the program knows the person. origin: command line, console. filter: what was chosen, a JSON object.
CREATE TABLE outbox_audit (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  at            INTEGER NOT NULL,
  actor         TEXT NOT NULL,
  origin        TEXT NOT NULL,
  verb          TEXT NOT NULL,
  subscription  TEXT NOT NULL,
  filter        TEXT NOT NULL,
  count         INTEGER NOT NULL,
  reason        TEXT NOT NULL
);
CREATE INDEX outbox_audit_at ON outbox_audit (at);
