"""Runs a program under test, `outbox` if no other is named, and checks the form of its errors."""

import atexit
import concurrent.futures
import functools
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
# The psql of the server's own programs: the one in /usr/bin of Debian is a Perl script that takes
# several times as long.
if "OUTBOX_TEST_PGBIN" in os.environ:
    os.environ["PATH"] = os.environ["OUTBOX_TEST_PGBIN"] + os.pathsep + os.environ["PATH"]

# Also what repeats the same check many times: CONTRIBUTING.md.
LONG = os.environ.get("OUTBOX_TEST_LONG") == "1"

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
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        # A condition that starts programs takes no more than half of the time.
        time.sleep(max(0.02, now - began))


def drop_database(server, name):
    """Ignores failures: a session that is slow to end keeps its database for a while."""
    subprocess.run(["psql", server, "-qXc", f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# Dropping a database waits for a checkpoint. The next test begins meanwhile, and this program ends
# when all are dropped.
_dropping = concurrent.futures.ThreadPoolExecutor(max_workers=1)


def drop_database_later(server, name):
    _dropping.submit(drop_database, server, name)


def in_database(server, name):
    """The address of another database of a server."""
    base, question, query = server.partition("?")
    return base.rpartition("/")[0] + "/" + name + question + query


def create_database(server, name, template="template1"):
    subprocess.run(["psql", server, "-qXc", f'CREATE DATABASE "{name}" TEMPLATE "{template}"'], check=True)


@functools.cache
def migrated_database(server, schema):
    """The name of a database with an empty outbox, made once, of which each test gets a copy: a
    migration takes several times as long as a copy."""
    name = "cli_template_" + uuid.uuid4().hex[:12]
    create_database(server, name)
    atexit.register(drop_database, server, name)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OUTBOX_")}
    subprocess.run([BINARY, "migrate", "--store", in_database(server, name), "--schema", schema], check=True,
                   stdout=subprocess.DEVNULL, env=environment)
    return name


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
    """Mix in before a Case: the same tests on PostgreSQL. A test begins in the database of all
    tests, with the name of a schema that is not there; migrate() gives it a database of its own
    with that schema. `direct` is its address, whatever a test makes of `store`."""

    SCHEMA = "cli_" + uuid.uuid4().hex[:12]  # of this process
    # False: migrate() runs `outbox migrate` in the database of all tests.
    copies = True
    server = POSTGRES

    def setUp(self):
        if not self.server:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        self.store = self.direct = self.server
        self.flags = ("--schema", self.SCHEMA)
        super().setUp()
        self.addCleanup(self.clean_up)

    def clean_up(self):
        if self.direct == self.server:
            self.drop(self.SCHEMA)

    def migrate(self):
        if not self.copies or self.direct != self.server:
            super().migrate()
            return
        self.assertFalse((self.folder / "outbox.toml").exists(), "config() names the database, so it comes after migrate()")
        name = "cli_" + uuid.uuid4().hex[:12]
        create_database(self.server, name, migrated_database(self.server, self.SCHEMA))
        self.addCleanup(drop_database_later, self.server, name)
        self.store = self.direct = in_database(self.server, name)

    def drop(self, schema):
        subprocess.run(["psql", self.direct, "-qXc", f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sql(self, statement):
        return subprocess.run(["psql", self.direct, "-qXAtc", statement], check=True, capture_output=True, text=True).stdout

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

__all__ = ["BENCH", "BINARY", "CHECK_FAILED", "Case", "DEMO", "ERROR", "FILE_SUBSCRIPTION", "INTERRUPTED", "LONG", "NOT_NOW", "OK", "OnPostgres", "OnSqlite",
           "POSTGRES", "ROOT", "USAGE", "create_database", "drop_database", "drop_database_later", "in_database", "jsonl", "signal",
           "wait_until"]
