"""Runs a program under test, `outbox` if no other is named, and checks the form of its errors."""

import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("OUTBOX_BINARY", str(ROOT / "build" / "outbox"))
BENCH = str(Path(BINARY).with_name("outbox-bench"))
DEMO = str(Path(BINARY).with_name("outbox-demo"))
POSTGRES = os.environ.get("OUTBOX_TEST_POSTGRES")

OK, ERROR, USAGE, CHECK_FAILED, INTERRUPTED, NOT_NOW = range(6)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def wait_until(condition, what, seconds=60):
    """Polls, because the state of another process cannot be waited for."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return value


def drop_database(server, name):
    """Ignores failures: a session that is slow to end keeps its database for a while."""
    subprocess.run(["psql", server, "-qXc", f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Case(unittest.TestCase):
    """Each test has a folder of its own, in which the program runs, and no OUTBOX_ variables."""

    program = BINARY
    store = "sqlite:shop.db"
    flags = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="outbox-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("OUTBOX_")}

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def outbox(self, *arguments, stdin="", env=None, program=None, **more):
        source = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
        run = subprocess.run(
            [program or self.program, *map(str, arguments)], capture_output=True, text=True, check=False,
            timeout=120, cwd=self.folder, env=self.environment | (env or {}), **source, **more)
        return Result(run.returncode, run.stdout, run.stderr)

    def spawn(self, *arguments, **more):
        """A program in the background; killed at the end of the test if it still runs."""
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | more
        process = subprocess.Popen([self.program, *map(str, arguments)], text=True, cwd=self.folder,
                                   env=self.environment, **settings)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def succeeds(self, *arguments, **more):
        result = self.outbox(*arguments, **more)
        self.assertEqual(result.code, OK, result)
        return result

    def fails(self, code, *arguments, says=(), **more):
        """One line on stderr with what, where and a hint; nothing else."""
        result = self.outbox(*arguments, **more)
        self.assertEqual(result.code, code, result)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result)
        name = {BENCH: "outbox-bench", DEMO: "outbox-demo"}.get(more.get("program") or self.program, "outbox")
        self.assertRegex(lines[0], rf"^{name}: .+ \(hint: .+\)$")
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, lines[0])
        self.assertNotIn("terminate called", result.err)
        return result

    def at_store(self, *arguments):
        return (*arguments, "--store", self.store, *self.flags)

    def migrate(self):
        self.succeeds(*self.at_store("migrate"))

    def config(self, subscriptions="", more=""):
        """Writes outbox.toml for this test's store."""
        schema = self.flags[1] if self.flags else "outbox"
        self.write("outbox.toml", f'[store]\nurl = "{self.store}"\nschema = "{schema}"\n{more}\n{subscriptions}')


class OnPostgres:
    """Mix in before a Case: the same tests on PostgreSQL, in a schema of their own."""

    def setUp(self):
        if not POSTGRES:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        self.store = POSTGRES
        schema = "cli_" + uuid.uuid4().hex[:12]
        self.flags = ("--schema", schema)
        super().setUp()
        self.addCleanup(self.drop, schema)

    @staticmethod
    def drop(schema):
        subprocess.run(["psql", POSTGRES, "-qXc", f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @staticmethod
    def sql(statement):
        return subprocess.run(["psql", POSTGRES, "-qXAtc", statement], check=True, capture_output=True, text=True).stdout

    def events(self):
        return int(self.sql(f"SELECT count(*) FROM {self.flags[1]}.event"))

    def small_parts(self):
        """Partitions of 2,000 transactions instead of a million."""
        schema = self.flags[1]
        self.sql(f"""DO $$ DECLARE part record; start bigint := 3;
            ending bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
            BEGIN
              PERFORM set_config('role', 'outbox_owner', true);
              FOR part IN SELECT name FROM {schema}.partitions() WHERE first_xid IS NOT NULL LOOP
                EXECUTE 'DROP TABLE {schema}.' || part.name;
              END LOOP;
              FOR number IN 1..60 LOOP
                ending := ending + CASE number WHEN 60 THEN 100000000 ELSE 2000 END;
                EXECUTE format('CREATE TABLE {schema}.event_x%s (LIKE {schema}.event INCLUDING ALL)', start);
                EXECUTE format('ALTER TABLE {schema}.event ATTACH PARTITION {schema}.event_x%s FOR VALUES FROM (%L) TO (%L)',
                               start, start, ending);
                start := ending;
              END LOOP;
            END $$""")

    def close_part(self):
        """Uses up its transaction ids, and waits for other tests' transactions among them: they would hold the part."""
        self.sql("DO $$ BEGIN FOR n IN 1..2001 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
        end = int(self.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())"))
        wait_until(lambda: int(self.sql("SELECT pg_snapshot_xmin(pg_current_snapshot())")) >= end,
                   "the transactions of other tests are over", seconds=120)


class OnSqlite:
    def sql(self, statement):
        with sqlite3.connect(self.folder / "shop.db") as database:
            return database.execute(statement).fetchall()

    def events(self):
        return self.sql("SELECT count(*) FROM outbox_event")[0][0]

    def small_parts(self):
        """Any part of the log can be removed."""

    def close_part(self):
        pass


def jsonl(count, first=0, key=lambda i: i % 7):
    return "".join(
        json.dumps({"aggregate_type": "order", "aggregate_id": str(key(i)), "event_type": "OrderPlaced",
                    "payload": {"number": i}}) + "\n" for i in range(first, first + count))


FILE_SUBSCRIPTION = """
[subscription.orders]
sink = "file"
[subscription.orders.file]
path = "orders.jsonl"
"""

__all__ = ["BENCH", "BINARY", "CHECK_FAILED", "Case", "DEMO", "ERROR", "FILE_SUBSCRIPTION", "INTERRUPTED", "NOT_NOW", "OK", "OnPostgres", "OnSqlite",
           "POSTGRES", "ROOT", "USAGE", "drop_database", "jsonl", "signal", "wait_until"]
