#!/usr/bin/env python3
"""outbox events; the look-up indexes; outbox parked edit."""

import json
import unittest
import uuid

from parked_rows import park_blocked
from program import Case, ERROR, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE, wait_until


class Events:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config('[subscription.orders]\nsink = "null"\nevent_types = ["Placed"]\n')
        self.succeeds("subscription", "apply")
        self.ids = [self.succeeds("enqueue", "order", key, kind, payload).out.strip()
                    for key, kind, payload in (("a", "Placed", '{"n":1}'), ("b", "Placed", '{"n":2}'), ("a", "Paid", '{"n":3}'))]

    def events_of(self, *arguments):
        return self.succeeds("events", "--json", *arguments).json()["events"]

    def test_they_are_listed_newest_first(self):
        self.assertEqual([e["id"] for e in self.events_of()], self.ids[::-1])
        newest = self.events_of("--limit", "1")
        self.assertEqual([(e["aggregate_id"], e["event_type"], e["in_log"]) for e in newest], [("a", "Paid", True)])
        self.assertNotIn("payload", newest[0])
        self.assertTrue(self.succeeds("events", "--json", "--limit", "1").json()["more"])
        text = self.succeeds("events", "--limit", "2").out
        self.assertIn("order/a", text)
        self.assertIn("orders: pending", text)
        self.assertRegex(text, r"\.\.\. there are more: --before \d+ shows them\n$")
        [rest] = self.events_of("--before", text.split("--before ")[1].split()[0])
        self.assertEqual(rest["id"], self.ids[0])

    def test_they_are_chosen(self):
        for arguments, count in ((("--key", "order/a"), 2), (("--key", "order/a", "--type", "Paid"), 1), (("--type", "Placed"), 2),
                                 (("--key", "invoice/a"), 0), (("--since", "1h"), 3), (("--until", "1h"), 0),
                                 (("--since", "2026-01-05T08:09:12Z", "--until", "2026-01-05T08:09:13Z"), 0)):
            self.assertEqual(len(self.events_of(*arguments)), count, arguments)
        self.assertEqual(self.succeeds("events", "--key", "invoice/a").out, "no events\n")

    def test_one_is_found_by_its_id(self):
        for _ in range(2):
            event, = self.events_of("--id", self.ids[1], "--payload")
            self.assertEqual((event["id"], event["payload"].replace(" ", ""), event["headers"]), (self.ids[1], '{"n":2}', {}))
            self.assertIn('"n"', self.succeeds("events", "--id", self.ids[1], "--payload").out)
            self.succeeds("migrate", "--with-lookup-indexes")

    def test_an_id_that_is_not_there(self):
        unknown = str(uuid.uuid4())
        self.fails(ERROR, "events", "--id", unknown, says=("not found", "--with-lookup-indexes"))
        made = self.succeeds("migrate", "--with-lookup-indexes", "--json").json()
        self.assertEqual((made["applied"], len(made["indexes"])), ([], 2))
        self.assertIn("nothing to do", self.succeeds("migrate", "--with-lookup-indexes").out)
        self.fails(ERROR, "events", "--id", unknown, says="no such event")

    def test_what_became_of_them(self):
        self.assertEqual({e["subscriptions"][0]["state"] for e in self.events_of()}, {"pending"})
        self.succeeds("relay", "--once")
        states = {e["id"]: e["subscriptions"][0] for e in self.events_of()}
        self.assertEqual([states[i]["state"] for i in self.ids], ["published", "published", "filtered"])
        self.assertIsNotNone(states[self.ids[0]]["published_by"])
        self.assertIn("orders: published by 20", self.succeeds("events", "--id", self.ids[0]).out)

    def test_wrong_input(self):
        self.fails(USAGE, "events", "--id", "soon", says="is not a UUID")
        self.fails(USAGE, "events", "--id", self.ids[0], "--type", "Placed", says="leave the other options out")
        for key in ("order", "/a", "order/"):
            self.fails(USAGE, "events", "--key", key, says="AGGREGATE_TYPE/AGGREGATE_ID")
        self.fails(USAGE, "events", "--since", "yesterday", says="is not a time")
        self.fails(USAGE, "events", "--limit", "0", says="--limit")
        self.fails(USAGE, "migrate", "--with-lookup-indexes", "--print", says="--with-lookup-indexes")


class Edit:
    """A dead event with a waiting one behind it, as a relay with on_dead = "block" leaves them."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION.replace('sink = "file"', 'sink = "file"\non_dead = "block"\nstart = "now"'))
        for payload in ('{"n":1}', '{"n":2}'):
            self.succeeds("enqueue", "order", "a", "Placed", payload, "--header", "tenant=7")
        self.succeeds("subscription", "apply")
        park_blocked(self)
        self.first, self.second = self.parked()

    def parked(self):
        return self.succeeds("parked", "list", "--json").json()["events"]

    def delivered(self):
        self.spawn("relay")
        wait_until(lambda: not self.parked(), "the parked events are delivered")
        return [json.loads(line) for line in (self.folder / "orders.jsonl").read_text().splitlines()]

    def test_nothing_is_changed_without_apply_and_reason(self):
        dry = self.succeeds("parked", "edit", self.first["id"], "--payload", '{"n":5}').out
        for part in ("would replace orders seq", '{"n":5}', "tenant", "nothing was changed"):
            self.assertIn(part, dry)
        self.fails(USAGE, "parked", "edit", self.first["id"], "--payload", "{}", "--apply", says="--reason")
        self.assertEqual([e["id"] for e in self.parked()], [self.first["id"], self.second["id"]])

    def test_the_copy_is_delivered_before_what_waits(self):
        (self.folder / "fixed.json").write_text('{"n":10}')
        out = self.succeeds("parked", "edit", self.first["id"], "--payload", "@fixed.json", "--event-type", "Placed2",
                            "--header", "why=fixed", "--without-header", "tenant", "--apply", "--reason", "an amount").out
        self.assertIn("replaced orders seq", out)
        copy = self.parked()[0]
        self.assertEqual((copy["seq"], copy["state"], copy["attempts"], copy["event_type"]),
                         (self.first["seq"], "retrying", 0, "Placed2"))
        self.assertNotEqual(copy["id"], self.first["id"])
        self.assertIn(copy["id"], out)
        self.assertIn(f"its copy is {copy['id']}", self.succeeds("events", "--id", self.first["id"]).out)
        waits, = self.succeeds("events", "--json", "--id", self.second["id"]).json()["events"]
        self.assertEqual(waits["subscriptions"][0]["waiting_for"], copy["id"])
        first, second = self.delivered()
        self.assertEqual((first["id"], first["body"], first["event_type"]), (copy["id"], {"n": 10}, "Placed2"))
        self.assertEqual({name: first["headers"].get(name) for name in ("why", "tenant", "outbox-edited-from")},
                         {"why": "fixed", "tenant": None, "outbox-edited-from": self.first["id"]})
        self.assertEqual(second["id"], self.second["id"])

    def test_wrong_input(self):
        self.fails(USAGE, "parked", "edit", self.first["id"], says="nothing to change")
        self.fails(USAGE, "parked", "edit", self.first["id"], "--payload", "{", says="payload: is not JSON")
        reserved = self.outbox("parked", "edit", self.first["id"], "--header", "outbox-id=1")
        self.assertEqual((reserved.code, "reserved" in reserved.err), (USAGE, True), reserved)
        self.fails(ERROR, "parked", "edit", "4711", "--payload", "{}", says="no such parked event")
        self.fails(ERROR, "parked", "edit", self.second["id"], "--payload", "{}", "--apply", "--reason", "x",
                   says="waits behind an earlier event")


class EventsSqlite(OnSqlite, Events, Case):
    pass


class EventsPostgres(OnPostgres, Events, Case):
    pass


class EditSqlite(OnSqlite, Edit, Case):
    pass


class EditPostgres(OnPostgres, Edit, Case):
    pass


if __name__ == "__main__":
    unittest.main()
