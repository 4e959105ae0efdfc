-- The outbox in a SQLite file. SQLite has no schemas, so every name carries the prefix outbox_.
--
-- One writer at a time makes the order of seq the order of commits: a cursor is a seq. AUTOINCREMENT prevents that a seq is
-- used again after the newest rows were deleted; without it new events could be behind a cursor.
--
-- The CHECKs are the second line of defence; the library and the view outbox_new_event give readable errors.

CREATE TABLE outbox_meta (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  identity       TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),  -- of this outbox; changes when it is recreated
  generation     INTEGER NOT NULL DEFAULT 0,            -- grows with each change of the owning relay
  payload_limit  INTEGER NOT NULL DEFAULT 1048576       -- bytes; what outbox_new_event accepts
                 CHECK (payload_limit BETWEEN 0 AND 67108864)
);
INSERT INTO outbox_meta (one) VALUES (1);

CREATE TABLE outbox_migration (
  version     INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,
  checksum    TEXT NOT NULL,
  applied_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

-- What the outbox consists of, as SQLite had it when `outbox migrate` had made it: `outbox doctor` compares it with what is there.
CREATE TABLE outbox_definition (
  place   INTEGER PRIMARY KEY,
  object  TEXT NOT NULL,
  part    TEXT NOT NULL,
  makes   TEXT NOT NULL,
  undoes  TEXT NOT NULL
);

-- Append-only. created_at: microseconds since 1970, UTC. One short CHECK, because every connection of the application
-- compiles it into its INSERT: seven thorough ones cost 9 us per prepared statement, this one 3 us.
CREATE TABLE outbox_event (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              BLOB NOT NULL,
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  payload         BLOB NOT NULL,
  content_type    TEXT NOT NULL DEFAULT 'application/json',
  headers         TEXT NOT NULL DEFAULT '{}',
  created_at      INTEGER NOT NULL
                  DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
  occurred_at     INTEGER,  -- given by the writer, in the same unit; null: when it was written
  CONSTRAINT outbox_event_limits CHECK (
    typeof(id) || typeof(payload) = 'blobblob' AND length(id) = 16 AND length(payload) <= 67108864
    AND aggregate_type <> '' AND event_type <> ''
    AND length(aggregate_type || aggregate_id || event_type || content_type) <= 1020 AND length(headers) <= 1048576)
);

CREATE TRIGGER outbox_event_is_never_changed BEFORE UPDATE ON outbox_event
BEGIN
  SELECT RAISE(ABORT, 'outbox_event: events are never changed; enqueue another one');
END;

-- state: active, paused or stopped (by an event that the destination rejected). config: the subscription as JSON.
CREATE TABLE outbox_subscription (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL UNIQUE,
  config          TEXT NOT NULL,
  config_version  INTEGER NOT NULL DEFAULT 1,
  state           TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'stopped')),
  reason          TEXT NOT NULL DEFAULT '',
  stopped_seq     INTEGER,
  stopped_event   TEXT NOT NULL DEFAULT '',
  trouble         TEXT NOT NULL DEFAULT '',  -- why it makes no progress while active
  trouble_since   TEXT NOT NULL DEFAULT '',
  trouble_relay   TEXT NOT NULL DEFAULT '',     -- which relay said so
  lane_group      TEXT NOT NULL,                -- one relay at a time serves the subscriptions of a group
  group_generation INTEGER NOT NULL DEFAULT 0,  -- when it came from another group: only ownership after this counts
  created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  changed_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

-- Append-only progress. The settle, claim or reset row with the greatest (generation, id) is a subscription's cursor:
-- everything up to its position is done. A row covers the events with from_position < seq <= position; acked, filtered
-- and parked count them, the hashes are sums (mod 2^64) over their ids. The totals are those of the row that this one
-- continues plus its own counts: the newest row has the sum of all rows that count. at: microseconds since 1970, UTC.
CREATE TABLE outbox_settlement (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription    INTEGER NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('settle', 'claim', 'mark', 'retry', 'reset')),
  generation      INTEGER NOT NULL,
  config_version  INTEGER NOT NULL,
  from_position   INTEGER NOT NULL,
  position        INTEGER NOT NULL CHECK (position >= from_position),
  acked           INTEGER NOT NULL DEFAULT 0,
  acked_hash      INTEGER NOT NULL DEFAULT 0,
  filtered        INTEGER NOT NULL DEFAULT 0,
  filtered_hash   INTEGER NOT NULL DEFAULT 0,
  parked          INTEGER NOT NULL DEFAULT 0,
  parked_hash     INTEGER NOT NULL DEFAULT 0,
  acked_total     INTEGER NOT NULL DEFAULT 0,
  filtered_total  INTEGER NOT NULL DEFAULT 0,
  at              INTEGER NOT NULL
);
CREATE INDEX outbox_settlement_newest ON outbox_settlement (subscription, generation, id);

-- The relays of this file that live. groups: which groups of subscriptions it serves, joined by commas; '*' is all of them but those of
-- sinks that only an application has. The columns boot_id to started identify the process, so that a relay notices at once that
-- another has ended. beat: the monotonic clock of that boot in microseconds; heartbeat_at: for people.
CREATE TABLE outbox_relay (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL,
  groups        TEXT NOT NULL,
  boot_id       TEXT NOT NULL,
  pid_ns        TEXT NOT NULL,
  pid           INTEGER NOT NULL,
  started       INTEGER NOT NULL,
  beat          INTEGER NOT NULL,
  lease_ms      INTEGER NOT NULL,
  heartbeat_at  TEXT NOT NULL
);

-- Which relay serves a group; empty: none.
CREATE TABLE outbox_owner (
  lane_group  TEXT PRIMARY KEY,
  relay       TEXT NOT NULL,
  generation  INTEGER NOT NULL
);

-- For programs in any language, inside their own transaction:
--   INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload, headers)
--   VALUES ('order', '42', 'OrderPlaced', '{"total": 12.5}', '{}');
-- Optional: headers (default '{}'), id (UUID as text or 16 bytes; default: a new UUIDv7), content_type (default
-- application/json: the payload must then be JSON; '': unknown), occurred_at (RFC 3339 text, kept to the millisecond, or
-- microseconds since 1970; default: when it is written).
CREATE VIEW outbox_new_event AS
  SELECT aggregate_type, aggregate_id, event_type, payload, headers, id, content_type, occurred_at FROM outbox_event;

CREATE TRIGGER outbox_new_event_insert INSTEAD OF INSERT ON outbox_new_event
BEGIN
  SELECT CASE
    WHEN NEW.aggregate_type IS NULL OR typeof(NEW.aggregate_type) <> 'text'
      THEN RAISE(ABORT, 'aggregate_type: must be text')
    WHEN trim(NEW.aggregate_type, char(9, 10, 11, 12, 13, 32)) = '' AND instr(NEW.aggregate_type, char(0)) = 0
      THEN RAISE(ABORT, 'aggregate_type: is blank')
    WHEN NEW.aggregate_type GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
         OR instr(NEW.aggregate_type, char(0)) > 0
      THEN RAISE(ABORT, 'aggregate_type: has a control character')
    WHEN length(CAST(NEW.aggregate_type AS BLOB)) > 255
      THEN RAISE(ABORT, 'aggregate_type: is longer than 255 bytes')
  END;
  SELECT CASE
    WHEN typeof(NEW.aggregate_id) NOT IN ('text', 'integer', 'null')
      THEN RAISE(ABORT, 'aggregate_id: must be text')
    WHEN NEW.aggregate_id GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
         OR instr(NEW.aggregate_id, char(0)) > 0
      THEN RAISE(ABORT, 'aggregate_id: has a control character')
    WHEN length(CAST(CAST(NEW.aggregate_id AS TEXT) AS BLOB)) > 255
      THEN RAISE(ABORT, 'aggregate_id: is longer than 255 bytes')
  END;
  SELECT CASE
    WHEN NEW.event_type IS NULL OR typeof(NEW.event_type) <> 'text'
      THEN RAISE(ABORT, 'event_type: must be text')
    WHEN trim(NEW.event_type, char(9, 10, 11, 12, 13, 32)) = '' AND instr(NEW.event_type, char(0)) = 0
      THEN RAISE(ABORT, 'event_type: is blank')
    WHEN NEW.event_type GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
         OR instr(NEW.event_type, char(0)) > 0
      THEN RAISE(ABORT, 'event_type: has a control character')
    WHEN length(CAST(NEW.event_type AS BLOB)) > 255
      THEN RAISE(ABORT, 'event_type: is longer than 255 bytes')
  END;
  SELECT CASE
    WHEN NEW.content_type IS NOT NULL AND typeof(NEW.content_type) <> 'text'
      THEN RAISE(ABORT, 'content_type: must be text')
    WHEN length(CAST(NEW.content_type AS BLOB)) > 255
      THEN RAISE(ABORT, 'content_type: is longer than 255 bytes')
    WHEN NEW.content_type <> ''
         AND (NEW.content_type GLOB '*[^ -~]*' OR instr(NEW.content_type, char(0)) > 0
              OR kind NOT GLOB '?*/?*' OR kind GLOB '*/*/*' OR kind GLOB '*[^-!#$%&''*+.^_`|~0-9A-Za-z/]*')
      THEN RAISE(ABORT, 'content_type: is not a media type (type/subtype)')
  END
  FROM (SELECT trim(CASE WHEN instr(NEW.content_type, ';') > 0
                         THEN substr(NEW.content_type, 1, instr(NEW.content_type, ';') - 1)
                         ELSE NEW.content_type END, char(9, 32)) AS kind);
  -- The type is the text before the first ';'.
  SELECT CASE
    WHEN NEW.payload IS NULL
      THEN RAISE(ABORT, 'payload: is null')
    WHEN length(CAST(NEW.payload AS BLOB)) > (SELECT payload_limit FROM outbox_meta)
      THEN RAISE(ABORT, 'payload: is larger than outbox_meta.payload_limit bytes')
    WHEN (kind = 'application/json' OR kind GLOB '?*/?*+json')
         AND (instr(CAST(NEW.payload AS BLOB), X'00') > 0 OR NOT json_valid(CAST(NEW.payload AS TEXT)))
      THEN RAISE(ABORT, 'payload: is not JSON, which its content type says')
  END
  FROM (SELECT lower(trim(CASE WHEN instr(type, ';') > 0 THEN substr(type, 1, instr(type, ';') - 1) ELSE type END,
                          char(9, 32))) AS kind
        FROM (SELECT coalesce(NEW.content_type, 'application/json') AS type));
  SELECT CASE
    WHEN NEW.headers IS NULL
      THEN NULL
    WHEN typeof(NEW.headers) <> 'text' OR instr(NEW.headers, char(0)) > 0 OR NOT json_valid(NEW.headers)
         OR json_type(NEW.headers) <> 'object'
      THEN RAISE(ABORT, 'headers: must be a JSON object of strings')
    WHEN EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text')
      THEN RAISE(ABORT, 'headers: a value is not a string')
    WHEN EXISTS (SELECT 1 FROM json_each(NEW.headers)
                 WHERE key = '' OR key GLOB '*[^-!#$%&''*+.^_`|~0-9A-Za-z]*')
      THEN RAISE(ABORT, 'headers: a name is not a token (RFC 9110)')
    WHEN coalesce(NEW.content_type, 'application/json') <> ''
         AND EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE lower(key) IN ('content-type', 'content_type'))
      THEN RAISE(ABORT, 'headers: content-type is set twice; set the column content_type')
    WHEN EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE lower(key) GLOB 'outbox[-_]*')
      THEN RAISE(ABORT, 'headers: names that begin with outbox- or outbox_ are reserved')
    WHEN EXISTS (SELECT 1 FROM json_each(NEW.headers)
                 WHERE value GLOB '*[' || char(1) || '-' || char(8) || char(10) || '-' || char(31) || char(127) || ']*'
                       OR instr(value, char(0)) > 0) OR instr(NEW.headers, '\u0000') > 0
      THEN RAISE(ABORT, 'headers: a value has a control character')
    WHEN (SELECT count(*) <> count(DISTINCT lower(key)) FROM json_each(NEW.headers))
      THEN RAISE(ABORT, 'headers: a name comes twice')
    WHEN (SELECT sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))) FROM json_each(NEW.headers)) > 65536
      THEN RAISE(ABORT, 'headers: are larger than 65536 bytes')
  END;
  -- Half of a surrogate pair (\ud83d alone) is no character: the parsers of consumers do not agree about it, and other writers refuse
  -- it. json_valid() takes it. Decoded it is one of the bytes ED A0 to ED BF, which are in no UTF-8 text. In old versions of SQLite
  -- a decoded text ends at \u0000.
  SELECT CASE field WHEN 'payload' THEN RAISE(ABORT, 'payload: is not JSON: a \u escape is half of a pair')
                    ELSE RAISE(ABORT, 'headers: a \u escape is half of a pair') END
  FROM (SELECT 'payload' AS field, CAST(NEW.payload AS TEXT) AS given,
               lower(trim(CASE WHEN instr(type, ';') > 0 THEN substr(type, 1, instr(type, ';') - 1) ELSE type END,
                          char(9, 32))) AS kind
        FROM (SELECT coalesce(NEW.content_type, 'application/json') AS type)
        UNION ALL SELECT 'headers', NEW.headers, 'application/json')
       CROSS JOIN json_tree(CASE WHEN (kind = 'application/json' OR kind GLOB '?*/?*+json') AND instr(lower(given), '\ud') > 0
                                 THEN replace(replace(given, '\\', 'x'), '\u0000', 'x') ELSE '[]' END) AS part
       CROSS JOIN (VALUES (X'EDA0'), (X'EDA1'), (X'EDA2'), (X'EDA3'), (X'EDA4'), (X'EDA5'), (X'EDA6'), (X'EDA7'),
                          (X'EDA8'), (X'EDA9'), (X'EDAA'), (X'EDAB'), (X'EDAC'), (X'EDAD'), (X'EDAE'), (X'EDAF'),
                          (X'EDB0'), (X'EDB1'), (X'EDB2'), (X'EDB3'), (X'EDB4'), (X'EDB5'), (X'EDB6'), (X'EDB7'),
                          (X'EDB8'), (X'EDB9'), (X'EDBA'), (X'EDBB'), (X'EDBC'), (X'EDBD'), (X'EDBE'), (X'EDBF')) AS half
  WHERE instr(CAST(part.key AS BLOB), half.column1) > 0 OR instr(CAST(part.atom AS BLOB), half.column1) > 0;
  SELECT CASE
    WHEN NEW.id IS NULL OR (typeof(NEW.id) = 'blob' AND length(NEW.id) = 16)
      THEN NULL
    WHEN typeof(NEW.id) = 'text' AND length(CAST(NEW.id AS BLOB)) = 36
         AND NEW.id GLOB '????????-????-????-????-????????????'
         AND length(replace(NEW.id, '-', '')) = 32 AND replace(NEW.id, '-', '') NOT GLOB '*[^0-9a-fA-F]*'
      THEN NULL
    ELSE RAISE(ABORT, 'id: is not a UUID')
  END;
  SELECT CASE
    WHEN typeof(NEW.occurred_at) = 'text'
         AND (NEW.occurred_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9]*[Z0-9]'
              OR NEW.occurred_at NOT GLOB '*Z' AND NEW.occurred_at NOT GLOB '*[-+][0-9][0-9]:[0-9][0-9]'
              OR julianday(NEW.occurred_at) IS NULL)
      THEN RAISE(ABORT, 'occurred_at: is not a time (RFC 3339, for example 2026-01-05T08:09:12.5Z)')
    WHEN typeof(NEW.occurred_at) NOT IN ('text', 'integer', 'null')
      THEN RAISE(ABORT, 'occurred_at: must be text or microseconds since 1970')
    WHEN us < -62135596800000000 OR us >= 253402300800000000
      THEN RAISE(ABORT, 'occurred_at: lies outside the years 1 to 9999')
  END
  FROM (SELECT CASE typeof(NEW.occurred_at)
                 WHEN 'text' THEN CAST(round((julianday(NEW.occurred_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000
                 ELSE NEW.occurred_at END AS us);

  -- hex: the id as 32 digits. A new UUIDv7 is 48 bits of milliseconds, the version 7, 12 random bits, the variant 10 in
  -- binary and 62 random bits. bytes: all bytes in order, since SQLite has no unhex() before 3.41; joining blobs with
  -- || gives their bytes as text, which the CAST turns back.
  INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, occurred_at)
  SELECT CASE WHEN typeof(NEW.id) = 'blob' THEN NEW.id ELSE CAST(
           substr(bytes, 1 + 16 * (instr(digits, substr(hex,  1, 1)) - 1) + instr(digits, substr(hex,  2, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex,  3, 1)) - 1) + instr(digits, substr(hex,  4, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex,  5, 1)) - 1) + instr(digits, substr(hex,  6, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex,  7, 1)) - 1) + instr(digits, substr(hex,  8, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex,  9, 1)) - 1) + instr(digits, substr(hex, 10, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 11, 1)) - 1) + instr(digits, substr(hex, 12, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 13, 1)) - 1) + instr(digits, substr(hex, 14, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 15, 1)) - 1) + instr(digits, substr(hex, 16, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 17, 1)) - 1) + instr(digits, substr(hex, 18, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 19, 1)) - 1) + instr(digits, substr(hex, 20, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 21, 1)) - 1) + instr(digits, substr(hex, 22, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 23, 1)) - 1) + instr(digits, substr(hex, 24, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 25, 1)) - 1) + instr(digits, substr(hex, 26, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 27, 1)) - 1) + instr(digits, substr(hex, 28, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 29, 1)) - 1) + instr(digits, substr(hex, 30, 1)) - 1, 1) ||
           substr(bytes, 1 + 16 * (instr(digits, substr(hex, 31, 1)) - 1) + instr(digits, substr(hex, 32, 1)) - 1, 1)
         AS BLOB) END,
         NEW.aggregate_type, coalesce(CAST(NEW.aggregate_id AS TEXT), ''), NEW.event_type,
         CAST(NEW.payload AS BLOB), coalesce(NEW.content_type, 'application/json'), coalesce(NEW.headers, '{}'),
         CASE typeof(NEW.occurred_at)
           WHEN 'text' THEN CAST(round((julianday(NEW.occurred_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000
           ELSE NEW.occurred_at END
  FROM (SELECT CASE
                 WHEN typeof(NEW.id) = 'text' THEN lower(replace(NEW.id, '-', ''))
                 ELSE printf('%012x', CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)) ||
                      '7' || substr(random_hex, 1, 3) ||
                      substr('89ab', 1 + (random() & 3), 1) || substr(random_hex, 4, 15)
               END AS hex
        FROM (SELECT lower(hex(randomblob(9))) AS random_hex LIMIT 1) LIMIT 1)
       CROSS JOIN (SELECT '0123456789abcdef' AS digits,
                          X'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff' AS bytes);
END;
