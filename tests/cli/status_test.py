#!/usr/bin/env python3
"""outbox status."""

import unittest

from program import Case, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE, jsonl


class Status:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)

    def test_an_empty_store(self):
        self.assertIn("no subscriptions", self.succeeds("status").out)
        status = self.succeeds("status", "--json").json()
        self.assertEqual((status["subscriptions"], status["relays"]), ([], []))

    def test_what_is_pending(self):
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(20))
        row = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual((row["name"], row["state"], row["sink"]), ("orders", "active", "file"))
        self.assertEqual((row["pending"], row["pending_is_more"], row["delivered"]), (20, False, 0))
        self.assertRegex(row["oldest_pending_at"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.assertIsNone(row["stopped_event"])
        self.assertRegex(self.succeeds("status").out, r"(?m)^orders +active +file +20 ")

    def test_a_limit_of_nothing_is_refused(self):
        self.fails(USAGE, "status", "--limit", "0", says="--limit 0")

    def test_counting_has_a_limit(self):
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(20))
        row = self.succeeds("status", "--json", "--limit", "5").json()["subscriptions"][0]
        self.assertEqual((row["pending"], row["pending_is_more"]), (5, True))
        self.assertRegex(self.succeeds("status", "--limit", "5").out, r"(?m)^orders +active +file +5\+ ")

    def test_as_many_as_the_limit_are_not_more(self):
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(3))
        for limit, counted in (("2", (2, True)), ("3", (3, False)), ("18446744073709551615", (3, False))):
            row = self.succeeds("status", "--json", "--limit", limit).json()["subscriptions"][0]
            self.assertEqual((row["pending"], row["pending_is_more"]), counted, limit)

    def test_a_subscription_that_stopped_says_why_and_where(self):
        self.succeeds("subscription", "apply")
        identifier = self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}").out.strip()
        self.sql(f"UPDATE {self.table} SET state = 'stopped', reason = 'too large', stopped_seq = 1, "
                 f"stopped_event = '{identifier}'")
        row = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual((row["state"], row["reason"]), ("stopped", "too large"))
        self.assertEqual(row["stopped_event"], {"id": identifier, "seq": 1})
        text = self.succeeds("status").out
        for part in ("reason: too large", f"event {identifier} (seq 1)", "outbox subscription resume orders"):
            self.assertIn(part, text)
        self.succeeds("subscription", "resume", "orders")
        row = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual((row["state"], row["reason"], row["stopped_event"]), ("active", None, None))


class StatusSqlite(OnSqlite, Status, Case):
    table = "outbox_subscription"


class StatusPostgres(OnPostgres, Status, Case):
    @property
    def table(self):
        return f"{self.flags[1]}.subscription"


if __name__ == "__main__":
    unittest.main()
