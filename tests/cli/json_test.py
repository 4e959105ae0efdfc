#!/usr/bin/env python3
"""What --json prints has the documented shape (docs/reference/json), for every verb that has it, on both stores."""

import json
import re
import signal
import subprocess
import unittest
import uuid
from pathlib import Path

from adopting import Adopting, HAND
from inbox_rows import receive_some
from parked_rows import park
from program import BENCH, CHECK_FAILED, Case, OK, OnPostgres, OnSqlite, ROOT, jsonl, wait_until

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = ROOT / "docs" / "reference" / "json"
PAGE = ROOT / "docs" / "reference" / "json.md"


def schema_of(path):
    """Of "parked list": the file parked-list.schema.json."""
    schema = json.loads((SCHEMAS / (path.replace(" ", "-") + ".schema.json")).read_text(encoding="utf-8"))
    other = schema.get("$ref")
    return json.loads((SCHEMAS / other).read_text(encoding="utf-8")) if other else schema


def objects_of(schema):
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for value in schema.values():
            yield from objects_of(value)
    if isinstance(schema, list):
        for value in schema:
            yield from objects_of(value)


class Checked(Case):
    """Each output of --json is compared with the schema of its verb."""

    def setUp(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        super().setUp()

    def checked(self, path, *arguments, code=OK, lines=False, stdin=""):
        result = self.outbox(*path.split(), *arguments, "--json", stdin=stdin)
        self.assertEqual(result.code, code, result)
        return [self.fits(path, line) for line in result.out.splitlines()] if lines else self.fits(path, result.out)

    def fits(self, path, text):
        schema = schema_of(path)
        found = json.loads(text)
        validator = jsonschema.Draft202012Validator(schema)
        errors = [f"{error.json_path}: {error.message}" for one in validator.iter_errors(found) for error in (one.context or [one])]
        self.assertEqual(errors, [], f"{path}: {text}")
        return found


class Definitions(Checked):
    def verbs_with_json(self, path=""):
        """By the help of each verb."""
        text = self.succeeds(*path.split(), "--help").out
        if re.search(r"(?m)^  --json ", text):
            yield path
        if "\nVerbs:\n" in text:
            for name in re.findall(r"(?m)^  ([a-z]+)(?: |$)", text.split("\nVerbs:\n")[1].split("\n\n")[0]):
                yield from self.verbs_with_json(f"{path} {name}".strip())

    def test_each_verb_has_a_schema_that_the_page_names(self):
        verbs = {"outbox-bench", "outbox-demo", *self.verbs_with_json()}
        self.assertLess({"status", "parked list", "tasks schedule list", "version"}, verbs)
        files = {file.name for file in SCHEMAS.iterdir()}
        page = PAGE.read_text(encoding="utf-8")
        for verb in verbs:
            name = verb.replace(" ", "-") + ".schema.json"
            self.assertIn(name, files)
            self.assertIn(f"(json/{name})", page)
            files.remove(name)
        self.assertEqual(files, set(), "schemas of no verb")

    def test_the_schemas_are_right_and_closed(self):
        for file in SCHEMAS.iterdir():
            schema = json.loads(file.read_text(encoding="utf-8"))
            jsonschema.Draft202012Validator.check_schema(schema)
            for one in objects_of(schema):
                self.assertIs(one["additionalProperties"], False, file.name)
                self.assertLessEqual(set(one["required"]), set(one["properties"]), file.name)

    def test_a_schema_refuses_what_is_not_documented(self):
        for wrong in ({}, {"version": "1", "stores": [], "sinks": [], "more": 1}, {"version": 1, "stores": [], "sinks": []}):
            self.assertFalse(jsonschema.Draft202012Validator(schema_of("version")).is_valid(wrong), wrong)


SUBSCRIPTIONS = """
[subscription.orders]
sink = "file"
file.path = "orders.jsonl"
event_types = ["Order*"]

[subscription.full]
sink = "file"
file.path = "/dev/full"
headers = { "x-shop" = "{aggregate_type}" }

[subscription.paused]
sink = "null"
"""

TASKS = """
[task.note]
command = ["true"]
queue = "mail"
[task.bad]
command = ["sh", "-c", "echo unreadable >&2; exit 65"]
queue = "mail"
[task.slow]
command = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
queue = "mail"
[schedule.nightly]
type = "note"
queue = "mail"
cron = "0 3 * * *"
time_zone = "Europe/Berlin"
[schedule.often]
type = "note"
queue = "mail"
every = "1h"
"""


class Shapes:
    """A store with something of everything."""

    def setUp(self):
        super().setUp()
        self.config(SUBSCRIPTIONS)
        if self.flags:  # a file that is not there has no status
            self.checked("migrate", "--status", code=CHECK_FAILED)
        self.assertTrue(self.checked("migrate")["applied"])
        self.assertEqual(self.checked("migrate"), {"applied": []})
        self.assertTrue(self.checked("migrate", "--with-lookup-indexes")["indexes"])
        self.assertTrue(self.checked("migrate", "--status")["current"])

    def with_events(self):
        self.checked("enqueue", "order", "42", "OrderPlaced", '{"total": 12.5}', "--header", "tenant=7")
        summary = self.checked("enqueue", "--jsonl", stdin=jsonl(40) + json.dumps(
            {"aggregate_type": "bill", "aggregate_id": "", "event_type": "BillSent", "payload": "x", "content_type": "text/plain",
             "occurred_at": "2026-01-05T08:09:12Z"}))
        self.assertEqual(summary["events"], 41)

    def test_version_config_and_bench(self):
        self.checked("version")
        self.checked("config show")
        self.assertTrue(self.checked("config check")["ok"])
        self.write("wrong.toml", '[relay]\npaeg = 5\nlease = 3\n')
        found = self.checked("config check", "-c", "wrong.toml", code=CHECK_FAILED)
        self.assertEqual(found["problems"][0]["line"], 2)
        if Path(BENCH).exists():
            listed = self.succeeds("--list", "--json", program=BENCH)
            self.assertTrue(self.fits("outbox-bench", listed.out)["benchmarks"])

    def test_an_empty_store(self):
        self.assertEqual(self.checked("status")["subscriptions"], [])
        self.assertEqual(self.checked("status", "--since", "1d")["history"]["lines"], [])
        self.checked("events")
        self.checked("parked list")
        self.checked("tasks list")
        self.checked("tasks schedule")
        self.checked("verify")
        self.checked("prune")
        self.checked("replay", "--list")
        self.checked("subscription list")
        self.assertEqual(self.checked("audit")["changes"], [])

    def test_the_doctor(self):
        findings = self.fits("doctor", self.outbox("doctor", "--json").out)
        self.assertIn("ok", {one["severity"] for one in findings})
        self.assertFalse(self.checked("doctor", "--repair-lineage")["needed"])

    def test_each_line_of_a_watch(self):
        process = self.spawn("status", "--watch", "100ms", "--json")
        for _ in range(2):
            self.assertIn("problems", self.fits("status", process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), OK)
        away = self.spawn("status", "--watch", "--json", "--store", "postgresql://app@127.0.0.1:1/shop")
        self.assertIn("error", self.fits("status", away.stdout.readline()))

    def test_subscriptions_and_sinks(self):
        changes = self.checked("subscription apply", "--dry-run")["subscriptions"]
        self.assertEqual({change["action"] for change in changes}, {"created"})
        self.checked("subscription apply")
        self.succeeds("subscription", "pause", "paused", "--reason", "holiday")
        listed = self.checked("subscription list")["subscriptions"]
        self.assertEqual({one["name"]: one["state"] for one in listed}, {"orders": "active", "full": "active", "paused": "paused"})
        self.config(SUBSCRIPTIONS.replace('"Order*"', '"Order*", "Bill*"').replace("[subscription.paused]", "[subscription.other]"))
        changes = self.checked("subscription apply")["subscriptions"]
        self.assertEqual({change["action"] for change in changes}, {"created", "changed", "unchanged", "left alone"})
        found = self.checked("sinks", "orders", "other")
        self.assertEqual([one["subscription"] for one in found], ["orders", "other"])
        self.assertEqual(self.checked("subscription reset", "orders", "--to", "beginning")["begins_at"], "the beginning of the log")
        self.checked("subscription reset", "orders", "--to", "now", "--apply")
        self.assertFalse(self.checked("subscription drop", "paused")["in_configuration"])
        self.assertTrue(self.checked("subscription drop", "full", "--apply")["in_configuration"])
        self.config('[subscription.gone]\nsink = "file"\nfile.path = "no/such/folder/x"\n')
        self.assertIn("error", self.checked("sinks", code=1)[0])

    @staticmethod
    def is_stuck(status):
        found = {one["name"]: one for one in status["subscriptions"]}
        return found["full"]["trouble"] and found["orders"]["pending"] == 0

    def relay_until(self, condition, what):
        relay = self.spawn("relay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(condition, what)
        status = self.checked("status")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(60), OK)
        return status

    def test_events_that_are_delivered_parked_and_paused(self):
        self.checked("subscription apply")
        self.with_events()
        self.succeeds("subscription", "pause", "paused")
        status = self.relay_until(lambda: self.is_stuck(self.checked("status")), "one is delivered and one is stuck")
        self.assertTrue(status["relays"])
        self.checked("status", "--check", code=CHECK_FAILED)
        states = {life["state"] for event in self.checked("events", "--payload", "--limit", "100")["events"]
                  for life in event["subscriptions"]}
        self.assertLessEqual({"published", "pending", "filtered"}, states)
        self.assertIn("orders", {line["subscription"] for line in self.checked("status", "--since", "1h")["history"]["lines"]})
        self.assertTrue(self.checked("verify")["ok"])
        self.assertEqual(self.checked("verify", "--subscription", "orders", "--sink")["subscriptions"][0]["sink"]["ghosts"], 0)
        self.checked("events", "--key", "order/42")

    def test_parked_events(self):
        self.config('[subscription.orders]\nsink = "null"\n')
        self.checked("subscription apply")
        self.with_events()
        park(self)
        listed = self.checked("parked list")["events"]
        self.assertEqual({event["state"] for event in listed}, {"retrying", "waiting", "dead"})
        self.assertIn("payload", self.checked("parked show", str(listed[0]["seq"]))["events"][0])
        self.assertTrue(any("dead" in problem for problem in self.checked("status")["problems"]))
        self.checked("parked list", "--limit", "1")
        self.checked("parked errors")
        states = {life["state"] for event in self.checked("events", "--limit", "100")["events"] for life in event["subscriptions"]}
        self.assertLessEqual({"retrying", "waiting", "dead"}, states)
        self.succeeds("parked", "discard", "--state", "dead", "--apply", "--reason", "noon")
        self.assertEqual({one["verb"] for one in self.checked("audit")["changes"]}, {"subscription apply", "parked discard"})
        self.assertTrue(self.checked("audit", "--limit", "1")["more"])

    def test_a_settlement_that_differs(self):
        self.config('[subscription.orders]\nsink = "null"\n')
        self.with_events()
        self.succeeds("relay", "--once")
        table = f"{self.flags[1]}.settlement" if self.flags else "outbox_settlement"
        self.sql(f"UPDATE {table} SET acked = acked + 1 WHERE kind = 'settle' AND acked > 0")
        found = self.checked("verify", code=CHECK_FAILED)
        self.assertTrue(found["subscriptions"][0]["faults"])

    def test_replays(self):
        self.config('[subscription.orders]\nsink = "file"\nfile.path = "orders.jsonl"\n')
        self.with_events()
        self.succeeds("relay", "--once")
        self.assertEqual(self.checked("replay", "orders")["events"], 42)
        started = self.checked("replay", "orders", "--type", "Order*", "--apply", "--no-wait")["replay"]
        self.assertEqual(started["state"], "running")
        self.assertTrue(self.checked("status")["subscriptions"][0]["replay"])
        self.assertEqual(self.checked("replay", "--stop", started["id"])["replay"]["state"], "stopped")
        self.checked("replay", "--resume", started["id"], "--no-wait")
        self.succeeds("relay", "--once")
        self.assertEqual(self.checked("replay", "--list")["replays"][0]["state"], "done")
        self.checked("replay", "--show", started["id"])

    def test_the_inbox(self):
        self.assertEqual(self.checked("inbox"), {"consumers": []})
        self.assertEqual(self.checked("inbox", "--messages"), {"messages": [], "more": False, "next": None})
        receive_some(self)
        self.assertEqual([one["messages"] for one in self.checked("inbox")["consumers"]], [2, 2])
        self.assertIsNotNone(self.checked("inbox", "--messages", "--limit", "1")["next"])

    def test_prune(self):
        self.config('[subscription.orders]\nsink = "null"\n[subscription.held]\nsink = "null"\n')
        self.with_events()
        self.succeeds("subscription", "apply")
        self.succeeds("subscription", "pause", "held")
        self.succeeds("relay", "--once")
        found = self.checked("prune", "--older-than", "0s")
        self.assertTrue(found["parts"])
        self.checked("prune", "--older-than", "0s", "--archive", str(self.folder), "--apply")

    def test_tasks(self):
        self.config(TASKS)
        worker = self.spawn("work", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(self.checked("tasks schedule")["schedules"]) == 2, "the schedules are there")
        self.checked("tasks schedule list")
        ids = {kind: self.enqueue(kind, key) for kind, key in (("note", ""), ("bad", ""), ("slow", "k"))}
        for kind, state in (("note", "completed"), ("bad", "dead"), ("slow", "running")):
            wait_until(lambda name=ids[kind], wanted=state: self.checked("tasks show", name)["state"] == wanted, f"{kind} is {state}")
        self.enqueue("note", "k")
        wait_until(lambda: {task["state"] for task in self.checked("tasks list")["tasks"]} == {"dead", "running", "waiting"},
                   "one waits")
        status = self.checked("status")
        self.assertTrue(status["queues"] and status["workers"])
        (self.folder / "go").touch()
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), OK)
        past = self.checked("status", "--since", "1h")["history"]["lines"]
        self.assertLessEqual({("mail", "note"), ("mail", "bad")}, {(line["queue"], line["type"]) for line in past})
        self.enqueue("note")
        self.assertTrue(self.checked("tasks list", "--state", "pending")["tasks"])
        self.checked("tasks list", "--limit", "1")

    def enqueue(self, kind, key=""):
        name = str(uuid.uuid4())
        line = {"id": name, "aggregate_type": "outbox-task:mail", "aggregate_id": key, "event_type": kind, "payload": {"n": 1},
                "headers": {}}
        self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line) + "\n")
        return name


class Postgres(OnPostgres, Shapes, Checked):
    pass


class Sqlite(OnSqlite, Shapes, Checked):
    pass


class Adoption(Adopting, Checked):
    def adopted(self, *arguments, table=None):
        return self.fits("adopt", self.succeeds(*self.adopt(*arguments, "--json", table=table)).out)

    def test_a_table_is_adopted_and_given_back(self):
        self.table(HAND + ", tenant text")
        self.insert("1", 1)
        self.assertEqual(self.adopted("--header", "tenant=shop")["pending"], 1)
        self.assertEqual(self.adopted("--apply")["taken_over"], 1)
        self.assertEqual(len(self.adopted(table="")["tables"]), 1)
        self.assertEqual(self.adopted("--undo")["state"], "forwarding")
        self.assertEqual(self.adopted("--undo", "--apply")["state"], "ended")


if __name__ == "__main__":
    unittest.main()
