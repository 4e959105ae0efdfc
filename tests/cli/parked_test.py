#!/usr/bin/env python3
"""outbox parked: list, show, retry, discard."""

import unittest

from parked_rows import make_parked
from program import Case, ERROR, OnPostgres, OnSqlite, USAGE


class Parked:
    """Rows as a relay writes them: two keys, one event dead, one retrying with one behind it."""

    def setUp(self):
        super().setUp()
        make_parked(self)

    def parked(self, *arguments):
        return self.succeeds("parked", "list", "--json", *arguments).json()["events"]

    def test_they_are_listed(self):
        self.assertEqual([(e["subscription"], e["state"], e["attempts"], e["error"]) for e in self.parked()],
                         [("orders", "dead", 3, "too large"), ("orders", "retrying", 3, "too large"), ("orders", "waiting", 0, None)])
        text = self.succeeds("parked", "list").out
        self.assertIn("order/a", text)
        self.assertIn("error: too large", text)
        self.assertEqual(len(self.parked("--limit", "2")), 2)
        text = self.succeeds("parked", "list", "--limit", "2").out
        self.assertRegex(text, r"\.\.\. there are more: --after 1\.\d+ shows them\n$")
        [rest] = self.parked("--after", text.split("--after ")[1].split()[0])
        self.assertEqual(rest["state"], "waiting")
        for place in ("", "1", "1.", ".1", "x.1", "1.1.1", "99999999999.1"):
            self.fails(USAGE, "parked", "list", "--after", place, says="--after")

    def test_they_are_grouped_by_error(self):
        listed = self.parked()
        found = self.succeeds("parked", "errors", "--json").json()
        self.assertFalse(found["more"])
        self.assertEqual([(one["error"], one["events"], one["dead"]) for one in found["errors"]], [("too large", 2, 1), (None, 1, 0)])
        self.assertEqual(found["errors"][1]["newest"], listed[2])
        self.assertIn(found["errors"][0]["newest"], listed[:2])
        self.assertEqual(found["errors"][0]["first_parked_at"], min(event["parked_at"] for event in listed[:2]))
        text = self.succeeds("parked", "errors").out
        self.assertIn("error: too large", text)
        self.assertIn("they wait for an earlier event of their key", text)
        self.assertIn("there are more errors", self.succeeds("parked", "errors", "--limit", "1").out)
        self.assertEqual(self.succeeds("parked", "errors", "--key", "none").out, "no parked events\n")
        self.fails(USAGE, "parked", "errors", "--limit", "0", says="--limit 0")

    def test_they_are_chosen(self):
        for arguments, count in ((("--state", "dead"), 1), (("--key", "b"), 2), (("--type", "order"), 3), (("--type", "x"), 0),
                                 (("--error", "large"), 2), (("--subscription", "orders"), 3), (("--key", "b", "--state", "dead"), 0)):
            self.assertEqual(len(self.parked(*arguments)), count, arguments)

    def test_they_are_shown_whole(self):
        first = self.parked()[0]
        for name in (first["id"], first["seq"]):
            shown = self.succeeds("parked", "show", name).json()["events"]
            self.assertEqual([(e["payload"].replace(" ", ""), e["headers"]) for e in shown], [('{"n":1}', {})])

    def test_status_counts_them(self):
        report = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual(report["parked"], {"retrying": 1, "waiting": 1, "dead": 1})
        self.assertIn("parked: 1 retrying, 1 waiting behind them, 1 dead", self.succeeds("status").out)

    def test_a_dead_one_is_sent_again(self):
        dead = self.parked("--state", "dead")[0]["seq"]
        self.assertIn("1 event is sent again\n1 event was dead", self.succeeds("parked", "retry", dead).out)
        again = [e for e in self.parked() if e["seq"] == dead][0]
        self.assertEqual((again["state"], again["attempts"]), ("retrying", 0))
        dry = self.succeeds("parked", "retry", "--key", "b", "--keep-attempts").out
        self.assertIn("would send again orders seq", dry)
        self.assertIn("2 events; nothing was changed (--apply sends them again)", dry)
        self.succeeds("parked", "retry", "--key", "b", "--keep-attempts", "--apply")
        self.assertEqual([e["attempts"] for e in self.parked("--key", "b")], [3, 0])

    def test_nothing_is_discarded_without_apply_and_reason(self):
        dry = self.succeeds("parked", "discard", "--state", "dead").out
        self.assertIn("would discard orders seq", dry)
        self.assertIn("nothing was changed", dry)
        self.assertEqual(len(self.parked()), 3)
        self.fails(USAGE, "parked", "discard", "--state", "dead", "--apply", says="--reason")
        self.assertIn("1 event discarded", self.succeeds("parked", "discard", "--state", "dead", "--apply", "--reason", "a test").out)
        self.assertEqual([e["state"] for e in self.parked()], ["retrying", "waiting"])
        self.succeeds("parked", "discard", "--state", "retrying", "--apply", "--reason", "a test")
        self.assertEqual([e["state"] for e in self.parked()], ["retrying"])

    def test_wrong_input(self):
        self.fails(USAGE, "parked", "retry", says="which events?")
        self.fails(USAGE, "parked", "discard", "--apply", "--reason", "x", says="which events?")
        self.fails(USAGE, "parked", "show", "soon", says="neither an id nor a seq")
        self.fails(USAGE, "parked", "list", "--state", "ded", says="retrying, waiting, dead or running")
        self.fails(USAGE, "parked", "list", "--limit", "0", says="--limit")
        self.fails(ERROR, "parked", "retry", "4711", says="no such parked event")
        self.fails(ERROR, "parked", "list", "--subscription", "ordres", says=("unknown subscription", "did you mean orders?"))


class ParkedSqlite(OnSqlite, Parked, Case):
    pass


class ParkedPostgres(OnPostgres, Parked, Case):
    pass


if __name__ == "__main__":
    unittest.main()
