#!/usr/bin/env python3
"""Java: JDBC and Hibernate on PostgreSQL, JDBC on SQLite, as docs/guide/languages.md and its pages show them."""

import subprocess
import tempfile
import unittest
from urllib.parse import urlsplit

from languages import HERE, HINT, REFUSED, OnPostgres, OnSqlite, client

JARS, NO_JARS = client("java")


CLASSES = tempfile.TemporaryDirectory(prefix="outbox-languages-java-")


def setUpModule():
    unittest.addModuleCleanup(CLASSES.cleanup)
    if not NO_JARS:
        subprocess.run(["javac", "-encoding", "UTF-8", "-d", CLASSES.name, "-cp", f"{JARS}/*", *(HERE / "java").glob("*.java")], check=True)


class Program:
    def shop(self, name, **more):
        """What it printed: a name has one value, or a list of them."""
        out = self.run_it("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dfile.encoding=UTF-8",
                          f"-Dorg.sqlite.tmpdir={self.folder}", "-cp", f"{CLASSES.name}:{JARS}/*", name, **more)
        said = {}
        for line in out.splitlines():
            name, _, value = line.partition("\t")
            said.setdefault(name, []).append(value)
        more = [value.split() for value in said.pop("more", [])]
        return {name: values[0] if len(values) == 1 else values for name, values in said.items()} | {"more": more}

    @staticmethod
    def jdbc(url):
        parts = urlsplit(url)
        return f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}?user={parts.username}"


@unittest.skipIf(NO_JARS, NO_JARS)
class Jdbc(Program, OnPostgres):
    def check_jdbc(self, said):
        said["many"] = said["many"].split()
        said["received"] = [value == "true" for value in said["received"]]
        said["refused"] = {name: said[name] for name in ("sqlstate", "message", "hint")}
        self.check(said)
        self.assertEqual(said["text"], "ERROR: " + REFUSED)
        self.assertEqual(said["hint"], HINT)
        self.assertIn("headers => character varying) does not exist", said["headers"])
        self.assertEqual(said["view"], 'ERROR: column "payload" is of type jsonb but expression is of type character varying')
        self.assertEqual(said["update"], "A result was returned when none was expected.")

    def test_the_events_arrive(self):
        self.check_jdbc(self.shop("JdbcShop", JDBC_URL=self.jdbc(self.database) + "&reWriteBatchedInserts=true"))

    def test_behind_a_pooler(self):
        if not self.pooled:
            self.skipTest("OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
        self.check_jdbc(self.shop("JdbcShop", JDBC_URL=self.jdbc(self.pooled), POOLER="1"))


@unittest.skipIf(NO_JARS, NO_JARS)
class Hibernate(Program, OnPostgres):
    def test_the_events_arrive(self):
        said = self.shop("HibernateShop", JDBC_URL=self.jdbc(self.database))
        self.check_delivered(said, common=("placed", "paid", "own"), many=False)
        self.assertEqual(said["refused"], "event_type: is blank")
        self.assertEqual(said["without_flush"], ["insert into", "update orders"])


@unittest.skipIf(NO_JARS, NO_JARS)
class Sqlite(Program, OnSqlite):
    def test_the_events_arrive(self):
        said = self.shop("SqliteShop")
        self.assertIn("event_type: is blank", said["refused"])
        lines = self.delivered()
        self.assertEqual([line["id"] for line in lines], [said["placed"], said["bytes"]])
        self.assertEqual(self.content(lines[0]), {"customer": "Zoë 🚀", "cents": 1250})
        self.assertEqual(self.content(lines[1]), b"\0\xff")


if __name__ == "__main__":
    unittest.main()
