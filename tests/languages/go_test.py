#!/usr/bin/env python3
"""Go: pgx and GORM on PostgreSQL, go-sqlite3 on SQLite, as docs/guide/languages.md and its pages show them."""

import unittest

from languages import REFUSED, OnPostgres, OnSqlite, client

PROGRAM, NO_PROGRAM = client("go")
SQLITE, NO_SQLITE = client("go_sqlite")


@unittest.skipIf(NO_PROGRAM, NO_PROGRAM)
class Pgx(OnPostgres):
    def test_the_events_arrive(self):
        said = self.program(PROGRAM)
        self.check(said)
        self.assertEqual(said["refused"]["text"], f"ERROR: {REFUSED} (SQLSTATE 22023)")
        self.assertIn("unable to encode 42 into text format for text", said["number"])
        self.assertIn('invalid byte sequence for encoding "UTF8"', said["not_text"])
        self.assertEqual(said["gorm"], "event_type: is blank")

    def test_behind_a_pooler(self):
        if not self.pooled:
            self.skipTest("OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
        lines = self.check(self.program(PROGRAM, DATABASE_URL=self.pooled, POOLER="1"))
        self.assertEqual([line["body"] for line in lines if line["aggregate_id"] == "51"], [r"\x00ff"] * 2)


@unittest.skipIf(NO_SQLITE, NO_SQLITE)
class Sqlite(OnSqlite):
    def test_the_events_arrive(self):
        said = self.program(SQLITE)
        self.assertEqual(said["stale"], "database is locked")
        self.assertEqual(said["refused"], "headers: a name is not a token (RFC 9110)")
        self.check_delivered(said, many=False)


if __name__ == "__main__":
    unittest.main()
