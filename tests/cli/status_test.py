#!/usr/bin/env python3
"""outbox status."""

import unittest

from program import Case, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, jsonl


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

    def test_counting_has_a_limit(self):
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(20))
        row = self.succeeds("status", "--json", "--limit", "5").json()["subscriptions"][0]
        self.assertEqual((row["pending"], row["pending_is_more"]), (5, True))
        self.assertRegex(self.succeeds("status", "--limit", "5").out, r"(?m)^orders +active +file +5\+ ")


class StatusSqlite(OnSqlite, Status, Case):
    pass


class StatusPostgres(OnPostgres, Status, Case):
    pass


if __name__ == "__main__":
    unittest.main()
