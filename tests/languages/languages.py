"""What the tests of other languages share.

Each language has a program that writes events with its usual client, as a login with the role outbox_app, and prints what it saw
as one JSON object. A real relay then delivers to a file, which is read back and compared.
"""

import base64
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import unittest
import uuid
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "languages"
BINARY = os.environ.get("OUTBOX_BINARY", str(ROOT / "build" / "outbox"))
POSTGRES = os.environ.get("OUTBOX_TEST_POSTGRES")
PGBOUNCER = os.environ.get("OUTBOX_TEST_PGBOUNCER")

CONFIGURATION = """
[store]
url = "{store}"
[subscription.all]
sink = "file"
file.path = "delivered.jsonl"
"""

# What every program writes, by its name in what the program prints; `many` are three events.
PLACED = {"customer": "Zoë 🚀", "cents": 1250}
MANY = [("43", "OrderPlaced", {"number": 1}), ("43", "OrderPaid", {"number": 2}), ("44", "OrderPlaced", {"number": 3})]
COMMON = {
    "placed": ("order", "42", "OrderPlaced", PLACED),
    "paid": ("order", "42", "OrderPaid", {"by": "card"}),
    "own": ("order", "42", "OrderShipped", {}),
    "bytes": ("picture", "7", "Uploaded", bytes(range(256))),
    "kept": ("order", "45", "OrderPlaced", {}),
}
OCCURRED = "2001-02-03T04:05:06.789000Z"
REFUSED = "headers: 'a b' is not a header name"
HINT = "letters, digits and !#$%&'*+-.^_`|~ are allowed"


def client(name):
    """What scripts/lib/clients.sh fetches once: (where it is, None), or (None, why not)."""
    script = ('root=$1; . "$root/scripts/lib/say.sh"; . "$root/scripts/lib/cache.sh"; . "$root/scripts/lib/clients.sh"; '
              '"client_$2"')
    try:
        run = subprocess.run(["sh", "-c", script, "sh", str(ROOT), name], check=False, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return None, f"{name}: could not be fetched within 600 s"
    said = run.stdout.strip()
    return (said, None) if run.returncode == 0 else (None, f"{name}: {said or run.stderr.strip()[-200:]}")


def without_settings():
    """The environment without variables of ours and of libpq."""
    return {k: v for k, v in os.environ.items() if not re.match("OUTBOX_|PG[A-Z]", k)}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="outbox-languages-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = without_settings()

    def run_it(self, *command, **more):
        run = subprocess.run([*map(str, command)], cwd=self.folder, env=self.environment | more, check=False,
                             capture_output=True, text=True, timeout=100)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def program(self, *command, **more):
        """What it printed."""
        return json.loads(self.run_it(*command, **more))

    def migrate(self, store):
        self.run_it(BINARY, "migrate", "--store", store)
        (self.folder / "outbox.toml").write_text(CONFIGURATION.format(store=store), encoding="utf-8")

    def delivered(self):
        """Everything that the relay delivers, in its order."""
        self.run_it(BINARY, "relay", "--once")
        lines = (self.folder / "delivered.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @staticmethod
    def content(line):
        return base64.b64decode(line["body_base64"]) if "body_base64" in line else line["body"]

    def check_more(self, lines, more):
        """These events of type order: [id, key, type], in the order of their commits."""
        by_id = {line["id"]: line for line in lines}
        for id_, key, kind in more:
            self.assertIn(id_, by_id, (key, kind))
            self.assertEqual([by_id[id_]["aggregate_id"], by_id[id_]["event_type"]], [key, kind])
        for key in {event[1] for event in more}:
            self.assertEqual([line["event_type"] for line in lines if line["aggregate_id"] == key],
                             [kind for _, its_key, kind in more if its_key == key])

    def check_more_only(self, more):
        """These events arrived, each once, and nothing else did."""
        lines = self.delivered()
        self.assertEqual(sorted(line["id"] for line in lines), sorted(event[0] for event in more))
        self.check_more(lines, more)
        return lines

    def check_delivered(self, said, common=tuple(COMMON), many=True):
        """The committed events arrived, each once, each key in order, and nothing else did. said["more"]: further ones."""
        lines = self.delivered()
        by_id = {line["id"]: line for line in lines}
        expected = [(said[name], *COMMON[name]) for name in common]
        if many:
            self.assertEqual(len(said["many"]), len(MANY))
            expected += [(id_, "order", *event) for id_, event in zip(said["many"], MANY)]
        for id_, *event, body in expected:
            self.assertIn(id_, by_id, event)
            line = by_id[id_]
            self.assertEqual([line["aggregate_type"], line["aggregate_id"], line["event_type"]], event)
            self.assertEqual(self.content(line), body, event)
        more = said.get("more", [])
        self.check_more(lines, more)
        committed = [event[0] for event in expected] + [event[0] for event in more]
        self.assertEqual(sorted(line["id"] for line in lines), sorted(committed))
        self.assertEqual(len(set(committed)), len(committed))
        self.assertNotIn(said["rolled_back"], by_id)
        order = {}
        for line in lines:
            order.setdefault(line["aggregate_id"], []).append(line["event_type"])
        self.assertEqual(order["42"], ["OrderPlaced", "OrderPaid", "OrderShipped"])
        if many:
            self.assertEqual(order["43"], ["OrderPlaced", "OrderPaid"])
        own = by_id[said["own"]]
        self.assertEqual(uuid.UUID(own["id"]).version, 7)
        self.assertEqual(own["occurred_at"], OCCURRED)
        self.assertEqual(own["headers"]["tenant"], "a")
        self.assertEqual(uuid.UUID(said["placed"]).version, 7)
        return lines


class OnSqlite(Case):
    """In a folder with the file shop.db, which has the service's tables."""

    def setUp(self):
        super().setUp()
        self.migrate("sqlite:shop.db")
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)")
        database.close()


@unittest.skipUnless(POSTGRES, "OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
class OnPostgres(Case):
    """In a database of its own, in which the program is a login that can enqueue, and has the service's tables."""

    def setUp(self):
        super().setUp()
        self.name = "languages_" + uuid.uuid4().hex[:12]
        self.sql(POSTGRES, f"CREATE DATABASE {self.name}", f"CREATE ROLE {self.name} LOGIN")
        self.addCleanup(self.sql, POSTGRES, f"DROP DATABASE {self.name} WITH (FORCE)", f"DROP ROLE {self.name}")
        server = urlsplit(POSTGRES)
        self.store = server._replace(path="/" + self.name).geturl()
        self.database = server._replace(netloc=f"{self.name}@{server.netloc.rpartition('@')[2]}", path="/" + self.name).geturl()
        self.pooled = PGBOUNCER and urlsplit(PGBOUNCER)._replace(path="/" + self.name).geturl()
        self.environment["DATABASE_URL"] = self.database
        self.migrate(self.store)
        self.sql(self.store, f"GRANT outbox_app TO {self.name}",
                 "CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, cents bigint NOT NULL, "
                 "paid boolean NOT NULL DEFAULT false)", f"GRANT SELECT, INSERT, UPDATE ON orders TO {self.name}")

    def sql(self, url, *statements):
        return self.run_it("psql", url, "-qXAtv", "ON_ERROR_STOP=1", *(word for text in statements for word in ("-c", text)))

    def check_shop(self, said):
        """The state of the shop, of the inbox and of the tasks agree with what the program said."""
        self.assertEqual(self.sql(self.store, "SELECT id, customer, cents, paid FROM orders WHERE id = 42"),
                         f"42|{PLACED['customer']}|{PLACED['cents']}|t\n")
        self.assertEqual(self.sql(self.store, "SELECT count(*) FROM orders WHERE id = 41"), "0\n")
        self.assertEqual(said["received"], [True, False])
        task = f"SELECT queue, type, key, state FROM outbox.task_status('{said['task']}')"
        self.assertEqual(self.sql(self.store, task), "reports|report.make|customer-42|pending\n")

    def check(self, said, **more):
        self.check_shop(said)
        self.assertEqual(said["refused"]["sqlstate"], "22023")
        self.assertEqual(said["refused"]["message"], REFUSED)
        self.assertEqual(said["refused"]["hint"], HINT)
        return self.check_delivered(said, **more)
