-- Removing delivered history (docs/design/retention.md).

-- Who removes history now, and until when (microseconds since 1970, UTC).
ALTER TABLE outbox_meta ADD COLUMN pruner TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox_meta ADD COLUMN pruner_until INTEGER NOT NULL DEFAULT 0;

-- The ledger's entry for what was removed, per subscription: the events that count for it, with the sum (mod 2^64) of the hashes of
-- their ids; what the settlements counted that were removed, and the newest of them, of its generation; the ends of parked events by
-- outcome.
CREATE TABLE outbox_pruned (
  subscription  INTEGER PRIMARY KEY,
  last_seq      INTEGER NOT NULL DEFAULT 0,
  events        INTEGER NOT NULL DEFAULT 0,
  hash          INTEGER NOT NULL DEFAULT 0,
  generation    INTEGER NOT NULL DEFAULT 0,
  settlement    INTEGER NOT NULL DEFAULT 0,
  acked         INTEGER NOT NULL DEFAULT 0,
  filtered      INTEGER NOT NULL DEFAULT 0,
  parked        INTEGER NOT NULL DEFAULT 0,
  delivered     INTEGER NOT NULL DEFAULT 0,
  discarded     INTEGER NOT NULL DEFAULT 0,
  edited        INTEGER NOT NULL DEFAULT 0,
  at            INTEGER NOT NULL
);

-- How far continuous verification has come (docs/design/verify.md). `place` is JSON; whoever writes it must have read this revision.
CREATE TABLE outbox_verified (
  subscription  INTEGER PRIMARY KEY,
  place         TEXT NOT NULL,
  events        INTEGER NOT NULL,   -- that were compared
  differences   INTEGER NOT NULL,   -- that were found since a person has looked at them
  verifier      TEXT NOT NULL,      -- the relay that has written the row
  at            INTEGER NOT NULL,
  revision      INTEGER NOT NULL
);
