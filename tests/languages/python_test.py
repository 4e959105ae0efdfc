#!/usr/bin/env python3
"""Python: psycopg, asyncpg, SQLAlchemy and Django on PostgreSQL, sqlite3 on SQLite, as docs/guide/languages.md and its pages show them."""

import os
import sys
import unittest

from languages import HERE, HINT, REFUSED, OnPostgres, OnSqlite, client

PSYCOPG, NO_PSYCOPG = client("psycopg")
ASYNCPG, NO_ASYNCPG = client("asyncpg")
SQLALCHEMY, NO_SQLALCHEMY = client("sqlalchemy")
DJANGO, NO_DJANGO = client("django")


class Program:
    def shop(self, name, *folders, **more):
        path = os.pathsep.join(folders)
        return self.program(sys.executable, HERE / "python" / name, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", **more)

    def shop_behind_a_pooler(self, name, *folders):
        if not self.pooled:
            self.skipTest("OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
        return self.shop(name, *folders, DATABASE_URL=self.pooled, POOLER="1")


@unittest.skipIf(NO_PSYCOPG, NO_PSYCOPG)
class Psycopg(Program, OnPostgres):
    def test_the_events_arrive(self):
        self.check(self.shop("psycopg_shop.py", PSYCOPG))

    def test_behind_a_pooler(self):
        self.check(self.shop_behind_a_pooler("psycopg_shop.py", PSYCOPG))


@unittest.skipIf(NO_ASYNCPG, NO_ASYNCPG)
class Asyncpg(Program, OnPostgres):
    def test_the_events_arrive(self):
        said = self.shop("asyncpg_shop.py", ASYNCPG)
        self.check(said)
        self.assertEqual(said["refused"]["text"], f"{REFUSED}\nHINT:  {HINT}")
        for value, kind in (("number", "int"), ("dict", "dict"), ("bytes", "bytes")):
            self.assertIn(f"(expected str, got {kind})", said["trips"][value])

    def test_behind_a_pooler(self):
        self.check(self.shop_behind_a_pooler("asyncpg_shop.py", ASYNCPG))


@unittest.skipIf(NO_PSYCOPG or NO_SQLALCHEMY, NO_PSYCOPG or NO_SQLALCHEMY)
class Sqlalchemy(Program, OnPostgres):
    def test_the_events_arrive(self):
        said = self.shop("sqlalchemy_shop.py", PSYCOPG, SQLALCHEMY)
        self.check(said)
        self.assertEqual(said["trips"], {"without_flush": ["INSERT INTO outbox.new_event", "UPDATE orders SET"],
                                         "after_commit": "deleted"})

    def test_behind_a_pooler(self):
        self.check(self.shop_behind_a_pooler("sqlalchemy_shop.py", PSYCOPG, SQLALCHEMY))


@unittest.skipIf(NO_PSYCOPG or NO_DJANGO, NO_PSYCOPG or NO_DJANGO)
class Django(Program, OnPostgres):
    def test_the_events_arrive(self):
        said = self.shop("django_shop.py", PSYCOPG, DJANGO)
        self.check_more_only(said["more"])
        self.assertEqual(said["refused"], "event_type: is blank")
        self.assertEqual(said["save"], 'cannot update view "new_event"')


class Sqlite(Program, OnSqlite):
    def test_the_events_arrive(self):
        said = self.program(sys.executable, HERE / "python" / "sqlite_shop.py", PYTHONDONTWRITEBYTECODE="1")
        self.assertEqual(said["refused"], "headers: a name is not a token (RFC 9110)")
        self.assertIsNone(said["returned"])
        self.check_delivered(said, many=False)


if __name__ == "__main__":
    unittest.main()
