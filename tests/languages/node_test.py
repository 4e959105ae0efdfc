#!/usr/bin/env python3
"""Node: pg, TypeORM and Drizzle on PostgreSQL, better-sqlite3 on SQLite, as docs/guide/languages.md and its pages show them."""

import unittest

from languages import HERE, OnPostgres, OnSqlite, client

MODULES, NO_MODULES = client("node")
SQLITE, NO_SQLITE = client("node_sqlite")


@unittest.skipIf(NO_MODULES, NO_MODULES)
class Pg(OnPostgres):
    def shop(self, **more):
        return self.program("node", HERE / "node" / "pg_shop.mjs", NODE_PATH=MODULES, **more)

    def test_the_events_arrive(self):
        said = self.shop()
        lines = self.check(said)
        self.assertEqual([line["body"] for line in lines if line["event_type"] == "Empty"], [{}])   # an array became an object
        self.assertEqual(said["trips"], {"array": "payload: is not JSON", "many": "invalid input syntax for type json",
                                         "bytes": 'invalid byte sequence for encoding "UTF8": 0x00'})

    def test_behind_a_pooler(self):
        if not self.pooled:
            self.skipTest("OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
        self.check(self.shop(DATABASE_URL=self.pooled, POOLER="1"))


@unittest.skipIf(NO_MODULES, NO_MODULES)
class Orms(OnPostgres):
    def test_the_events_arrive(self):
        said = self.program("node", HERE / "node" / "orm_shop.mjs", NODE_PATH=MODULES)
        lines = self.check_more_only(said["more"])
        self.assertEqual([line["body"] for line in lines if line["event_type"] == "OrderShipped"], [[], []])
        self.assertEqual(said["one_save"], ["INSERT INTO", "UPDATE \"orders\""])
        self.assertEqual(said["typeorm"], ["QueryFailedError", "event_type: is blank", "22023"])
        self.assertEqual(said["drizzle"], ["event_type: is blank", "22023"])


@unittest.skipIf(NO_SQLITE, NO_SQLITE)
class Sqlite(OnSqlite):
    def test_the_events_arrive(self):
        said = self.program("node", HERE / "node" / "sqlite_shop.mjs", NODE_PATH=SQLITE)
        self.assertEqual(said["refused"], ["SQLITE_CONSTRAINT_TRIGGER", "headers: a name is not a token (RFC 9110)"])
        self.assertEqual(said["trips"], {"stale": ["SQLITE_BUSY_SNAPSHOT", "database is locked"], "number": "aggregate_id: must be text", "bigint": "nothing",
                                         "object": "Too few parameter values were provided"})
        self.check_delivered(said, many=False)


if __name__ == "__main__":
    unittest.main()
