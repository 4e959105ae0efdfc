-- Renaming, resetting and dropping subscriptions (docs/design/subscriptions.md), and the record of what people change
-- (docs/design/audit.md).

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
