-- Renaming, resetting and dropping subscriptions (docs/design/subscriptions.md).

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
