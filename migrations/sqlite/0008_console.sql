-- Who may use `outbox console` (docs/design/console.md). digest: SHA-256 of the token, hexadecimal. Times: microseconds since 1970, UTC.
CREATE TABLE outbox_console_token (
  name        TEXT PRIMARY KEY,
  digest      TEXT NOT NULL UNIQUE,
  role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  payloads    INTEGER NOT NULL,
  created_by  TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER
);
