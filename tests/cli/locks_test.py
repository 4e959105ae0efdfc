#!/usr/bin/env python3
"""Every pair of commands that change parked events or subscriptions, against each other: none waits for another in a circle.

Each pair once by default, and three times with OUTBOX_TEST_LONG=1."""

import itertools
import threading
import unittest

from parked_rows import park
from program import Case, LONG, OnPostgres


class Locks(OnPostgres, Case):
    ROUNDS = 3 if LONG else 1
    VERBS = {
        "retry": ("parked", "retry", "--subscription", "orders", "--apply"),
        "discard": ("parked", "discard", "--subscription", "orders", "--state", "waiting", "--apply", "--reason", "a test"),
        "reset": ("subscription", "reset", "orders", "--to", "end", "--apply"),
        "drop": ("subscription", "drop", "orders", "--apply"),
        "pause": ("subscription", "pause", "orders"),
        "resume": ("subscription", "resume", "orders"),
        "apply": ("subscription", "apply"),
        "rename": ("subscription", "rename", "orders", "sales"),
        "prune": ("prune", "--apply"),
        "relay": ("relay", "--once", "--log-level", "error"),
    }

    def setUp(self):
        super().setUp()
        self.migrate()
        self.config('[subscription.orders]\nsink = "null"\n')

    def test_no_two_of_them_wait_for_each_other(self):
        for key, payload in (("a", '{"n":1}'), ("b", '{"n":2}'), ("b", '{"n":3}')):
            self.succeeds("enqueue", "order", key, "Placed", payload)
        self.succeeds("subscription", "apply")
        park(self)
        for one, other in itertools.combinations_with_replacement(self.VERBS, 2):
            for _ in range(self.ROUNDS):
                said = {}
                threads = [threading.Thread(target=lambda place=place, verb=verb: said.update({place: self.outbox(*self.VERBS[verb])}))
                           for place, verb in enumerate((one, other))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(120)
                    self.assertFalse(thread.is_alive(), f"{one} and {other} do not end")
                for result in said.values():
                    self.assertNotIn("deadlock", result.out + result.err, (one, other))
            # Those that were dropped or renamed come again, with what was parked.
            if {"drop", "rename", "reset", "discard"} & {one, other}:
                self.restore()

    def restore(self):
        schema = self.flags[1]
        names = [s["name"] for s in self.succeeds("subscription", "list", "--json").json()["subscriptions"]]
        for name in names:
            self.succeeds("subscription", "drop", name, "--apply")
        self.succeeds("subscription", "apply")
        [fresh] = [int(line) for line in self.sql(f"SELECT id FROM {schema}.subscription").split()]
        self.sql(f"DELETE FROM {schema}.parked; DELETE FROM {schema}.parked_key")
        park(self)
        self.sql(f"UPDATE {schema}.parked SET subscription = {fresh}; UPDATE {schema}.parked_key SET subscription = {fresh}")


if __name__ == "__main__":
    unittest.main()
