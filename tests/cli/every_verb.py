"""The life of an outbox by every verb that reads or writes its database, in a database of its own whose defaults a test may change."""

import json
import os
import signal
import subprocess
import uuid

from program import Case, INTERRUPTED, OK, POSTGRES, create_database, drop_database_later, in_database, wait_until

# The settings of this file's own statements, whatever those of the database are.
SANE = ("-c search_path=pg_catalog,pg_temp -c standard_conforming_strings=on -c default_transaction_read_only=off "
        "-c default_transaction_isolation=read\\ committed -c datestyle=ISO -c timezone=UTC -c bytea_output=hex -c quote_all_identifiers=off")

SUBSCRIPTIONS = """
[subscription.orders]
sink = "file"
file.path = "orders.jsonl"

[subscription.copies]
sink = "postgres"
max_attempts = 1
event_types = ["Placed", "Refused"]
postgres.url = "{store}"
postgres.table = "copies"

[subscription.made]
sink = "postgres"
event_types = ["Placed"]
postgres.url = "{store}"
postgres.table = "made_{{aggregate_type|lower}}"
postgres.create = true
"""

HANDLERS = """
[task.note]
command = ["./note.sh"]

[task.bad]
command = ["./bad.sh"]

[schedule.monthly]
type = "note"
cron = "@monthly"
"""

# Found by its name alone, in the first schema of every search path.
COPIES = """CREATE TABLE public.copies (id uuid, seq bigint, key text, type text CHECK (type <> 'Refused'),
            payload jsonb, headers jsonb, occurred_at timestamptz)"""

THEIRS = """CREATE TABLE public.ob (id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb, tenant text,
            created_at timestamptz DEFAULT clock_timestamp(), status text DEFAULT 'pending')"""


class EveryVerb(Case):
    def setUp(self):
        if not POSTGRES:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        super().setUp()
        self.database = "cli_" + uuid.uuid4().hex[:12]
        create_database(POSTGRES, self.database, self.template())
        self.addCleanup(drop_database_later, POSTGRES, self.database)
        self.store = self.direct = self.at_database(POSTGRES)

    @classmethod
    def template(cls):
        """The database of which each test gets a copy."""
        return "template1"

    def at_database(self, server):
        return in_database(server, self.database)

    def sql(self, statement, options=SANE):
        """`options`: None: those of the database."""
        environment = {name: value for name, value in os.environ.items() if name != "PGOPTIONS"}
        if options:
            environment["PGOPTIONS"] = options
        run = subprocess.run(["psql", self.direct, "-qXAt", "-v", "ON_ERROR_STOP=1", "-c", statement], check=False, capture_output=True,
                             text=True, env=environment)
        self.assertEqual(run.returncode, 0, f"{statement}\n{run.stderr}")
        return run.stdout

    def their_insert(self, key):
        self.sql(f"INSERT INTO public.ob (topic, key, type, payload, tenant) VALUES ('order', '{key}', 'Placed', '{{\"n\": 1}}', 'acme')")

    def reads(self, *arguments):
        return self.succeeds(*arguments, "--json").json()

    def every_verb(self):
        self.sql(COPIES + "; " + THEIRS)
        self.config(SUBSCRIPTIONS.format(store=self.store))
        self.assertIn("applied 0001_", self.succeeds("migrate").out)
        self.reads("migrate", "--status")
        self.succeeds("subscription", "apply")
        self.enqueuing()
        self.succeeds("relay", "--once")
        self.assertEqual(self.sql("SELECT count(*) FROM public.copies"), "3\n")
        self.assertEqual(self.sql("SELECT count(*) FROM public.made_order"), "3\n")
        self.reading()
        self.parked()
        self.changing()
        self.adopting()
        self.tasks()
        self.succeeds("prune", "--older-than", "0s", "--apply")
        self.reads("doctor")
        self.assertIn("nothing to repair", self.succeeds("doctor", "--repair-lineage", "--apply").out)

    def enqueuing(self):
        self.succeeds("enqueue", "order", "1", "Placed", '{"n": 1}', "--header", "tenant=acme")
        lines = [{"aggregate_type": "order", "aggregate_id": str(n), "event_type": kind, "payload": {"back\\slash": "'quote'"}}
                 for n, kind in ((1, "Placed"), (2, "Placed"), (3, "Refused"), (4, "Refused"), (5, "Refused"))]
        self.succeeds("enqueue", "--jsonl", stdin="".join(json.dumps(line) + "\n" for line in lines))

    def reading(self):
        self.reads("status")
        self.assertTrue(self.reads("status", "--since", "1h")["history"]["lines"], "the relay has written what it did")
        self.reads("subscription", "list")
        self.reads("sinks")
        self.reads("verify")
        self.reads("events")
        [first, *_] = self.reads("events", "--key", "order/1", "--type", "Placed")["events"]
        self.reads("events", "--id", first["id"])
        self.reads("prune", "--older-than", "0s")
        self.reads("doctor", "--repair-lineage")

    def parked(self):
        dead = self.reads("parked", "list", "--state", "dead", "--subscription", "copies")["events"]
        self.assertEqual(len(dead), 3, dead)
        one, two, three = (str(event["seq"]) for event in dead)
        self.succeeds("parked", "show", one)
        self.succeeds("parked", "retry", "--subscription", "copies", "--error", "23514")
        self.succeeds("relay", "--once")
        self.succeeds("parked", "discard", two, "--apply", "--reason", "nobody's")
        self.succeeds("parked", "discard", three, "--apply", "--reason", "noon")
        self.succeeds("parked", "edit", one, "--payload", '{"n": 2}', "--event-type", "Placed", "--reason", "a typo", "--apply")
        self.succeeds("relay", "--once")
        self.reads("verify")

    def changing(self):
        self.succeeds("subscription", "pause", "orders", "--reason", "it's noon")
        self.succeeds("subscription", "resume", "orders")
        self.reads("replay", "orders")
        started = self.succeeds("replay", "orders", "--type", "Placed*", "--apply", "--no-wait", "--json").json()["replay"]
        self.succeeds("relay", "--once")
        self.reads("replay", "--list")
        self.reads("replay", "--show", started["id"])
        self.succeeds("subscription", "rename", "orders", "sales")
        self.succeeds("subscription", "reset", "sales", "--to", "beginning", "--apply")
        self.succeeds("subscription", "drop", "sales", "--apply")
        self.succeeds("subscription", "create", "orders", "--start", "now")
        [newest, *_] = self.reads("audit")["changes"]
        self.assertEqual((newest["verb"], newest["subscription"]), ("subscription create", "orders"))
        self.reads("audit", "--since", "1h", "--before", newest["id"], "--person", newest["person"], "--subscription", "sales")

    def adopting(self):
        self.their_insert("old")
        for options in ((), ("--column", "headers=", "--column", "sent=status", "--sent-values", "sent,DONE", "--pending-values", "pending"),
                        ("--header", "tenant=x-tenant", "--value", "content_type=application/json", "--backlog", "pending")):
            self.reads("adopt", "ob", *options)
            self.reads("adopt", "public.ob", *options)
        self.succeeds("adopt", "ob", "--header", "tenant=x-tenant", "--apply")
        self.their_insert("new")
        self.sql("ALTER TABLE public.ob DROP COLUMN created_at")
        self.succeeds("adopt", "public.ob", "--apply")
        self.their_insert("newest")
        self.reads("adopt")
        self.reads("adopt", "ob")
        self.reads("status")
        self.assertEqual(self.sql("SELECT pg_catalog.string_agg(aggregate_id, ' ' ORDER BY seq) FROM outbox.event "
                                  "WHERE headers ->> 'x-tenant' = 'acme'"), "old new newest\n")
        self.reads("doctor")
        self.succeeds("adopt", "ob", "--undo", "--apply")
        self.assertEqual(self.sql("SELECT count(*) FROM public.ob WHERE status = 'sent'"), "3\n")

    def tasks(self):
        for name, script in (("note", "cat >> done\n"), ("bad", "echo unreadable >&2; exit 65\n")):
            self.write(name + ".sh", "#!/bin/sh\n" + script).chmod(0o755)
        self.config(HANDLERS, '[worker]\ndelays = ["50ms"]\njitter = 0')
        for kind in ("note", "bad", "bad"):
            line = {"aggregate_type": "outbox-task:default", "event_type": kind, "payload": {}}
            self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line) + "\n")
        worker = self.spawn("work")
        dead = wait_until(lambda: len(found := self.succeeds("tasks", "list", "--state", "dead", "--json").json()["tasks"]) == 2 and found,
                          "two tasks are dead")
        wait_until((self.folder / "done").exists, "one is done")
        wait_until(lambda: self.succeeds("tasks", "schedule", "--json").json()["schedules"], "the schedule is written")
        worker.send_signal(signal.SIGTERM)
        _, error = worker.communicate(timeout=60)
        self.assertIn(worker.returncode, (OK, INTERRUPTED), error)
        self.reads("tasks", "list")
        one, two = (task["id"] for task in dead)
        self.reads("tasks", "show", one)
        self.succeeds("tasks", "retry", one, "--apply")
        self.succeeds("tasks", "cancel", two, "--apply", "--reason", "noon")
        self.succeeds("tasks", "pause", "default", "--reason", "noon")
        self.succeeds("tasks", "resume", "default")
        self.reads("tasks", "schedule", "list")
        self.succeeds("tasks", "schedule", "pause", "monthly")
        self.succeeds("tasks", "schedule", "resume", "monthly")
        self.succeeds("tasks", "schedule", "remove", "monthly", "--apply")


__all__ = ["EveryVerb", "SANE"]
