#!/usr/bin/env python3
"""outbox prune: what would go, what holds it, archives; and what status says about it."""

import json
import unittest

from own_server import OwnServer
from program import CHECK_FAILED, ERROR, Case, OnPostgres, OnSqlite, USAGE


class Prune:
    """Five events delivered to one subscription; the other one is paused before them."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.small_parts()
        self.configure()
        self.succeeds("subscription", "apply")

    def configure(self, relay=""):
        self.config('[subscription.orders]\nsink = "null"\n[subscription.slow]\nsink = "null"\n', f"[relay]\n{relay}")

    def deliver(self):
        for number in range(5):
            self.succeeds("enqueue", "order", number, "Placed", "{}")
        self.close_part()
        self.succeeds("enqueue", "order", "last", "Placed", "{}")
        self.succeeds("relay", "--once")

    def prune(self, *arguments):
        return self.succeeds("prune", "--json", *arguments).json()

    @staticmethod
    def states(report):
        return [part["state"] for part in report["parts"] if part["state"] not in ("in use", "empty")]

    def test_it_shows_what_would_go_and_changes_nothing(self):
        self.deliver()
        self.assertIn("removable", self.states(self.prune("--older-than", "0")))
        text = self.succeeds("prune", "--older-than", "0").out
        self.assertIn("nothing was changed (--apply removes them)", text)
        self.assertEqual(self.events(), 6)
        self.assertEqual(set(self.states(self.prune())), {"young"})

    def test_it_removes_and_archives(self):
        self.deliver()
        self.fails(ERROR, "prune", "--older-than", "0", "--apply", "--archive", "missing", says="its events stay in the log")
        self.assertEqual(self.events(), 6)
        (self.folder / "archive").mkdir()
        removed = self.prune("--older-than", "0", "--apply", "--archive", "archive")["removed"]
        self.assertGreaterEqual(removed["events"], 5)
        self.assertEqual(self.events(), 6 - removed["events"])
        lines = [json.loads(line) for name in removed["archives"] for line in (self.folder / name).read_text().splitlines()]
        self.assertEqual([line["aggregate_id"] for line in lines][:5], ["0", "1", "2", "3", "4"])
        self.assertIn("removed 0 events", self.succeeds("prune", "--older-than", "0", "--apply").out)

    def test_verify_adds_up_with_what_was_removed(self):
        self.deliver()
        self.assertGreaterEqual(self.prune("--older-than", "0", "--apply")["removed"]["events"], 5)
        self.succeeds("enqueue", "order", "one more", "Placed", "{}")
        self.succeeds("relay", "--once")
        self.succeeds("prune", "--older-than", "0", "--apply")
        for report in self.succeeds("verify", "--json").json()["subscriptions"]:
            self.assertEqual((report["ok"], report["faults"]), (True, []))
            self.assertEqual([report[key] for key in ("enqueued", "delivered", "filtered", "pending", "parked", "discarded")],
                             [7, 7, 0, 0, 0, 0], report)

    def table(self, name):
        return f"{self.flags[1]}.{name}" if self.flags else f"outbox_{name}"

    def history_rows(self):
        found = self.sql(f"SELECT count(*) FROM {self.table('history')}")
        return int(found if self.flags else found[0][0])

    def test_it_removes_old_rows_of_the_history(self):
        self.deliver()
        rows = self.history_rows()
        self.assertGreater(rows, 0)
        self.assertEqual(self.prune("--apply")["removed"]["history"], 0)
        fifteen_days = "interval '15 days'" if self.flags else 15 * 86400 * 1_000_000
        self.sql(f"UPDATE {self.table('history')} SET at = at - {fifteen_days}")
        self.prune()
        self.assertEqual(self.history_rows(), rows, "without --apply nothing goes")
        self.assertEqual(self.prune("--apply")["removed"]["history"], rows)
        self.assertEqual(self.history_rows(), 0)

    def discard_two(self):
        """As if two of the first subscription's events had been parked, and discarded by a person."""
        settlement, end = self.table("settlement"), self.table("parked_end")
        at = ", at" if not self.flags else ""
        self.sql(f"UPDATE {settlement} SET acked = acked - 2, parked = parked + 2 WHERE id ="
                 f" (SELECT min(id) FROM {settlement} WHERE subscription = 1 AND acked >= 2)")
        self.sql(f"INSERT INTO {end} (subscription, seq, id, outcome, attempts, actor{at}) SELECT 1, seq, id, 'discarded', 1, 'ann'"
                 f"{', 1' if at else ''} FROM {self.table('event')} ORDER BY seq LIMIT 2")

    def test_verify_adds_up_with_discarded_events_that_were_removed(self):
        self.deliver()
        self.discard_two()
        self.assertGreaterEqual(self.prune("--older-than", "0", "--apply")["removed"]["events"], 5)
        orders = self.succeeds("verify", "--json").json()["subscriptions"][0]
        self.assertEqual([orders[key] for key in ("ok", "enqueued", "delivered", "discarded")], [True, 6, 4, 2], orders)
        self.assertIn("orders: 6 enqueued = 4 delivered + 0 filtered + 0 pending + 0 parked + 2 discarded",
                      self.succeeds("verify", "--subscription", "orders").out)

    def test_an_equation_that_does_not_add_up_is_a_difference(self):
        self.deliver()
        self.prune("--older-than", "0", "--apply")
        self.sql(f"UPDATE {self.table('pruned')} SET events = events + 1 WHERE subscription = 1 AND events > 0")
        failed = self.outbox("verify", "--json")
        self.assertEqual(failed.code, CHECK_FAILED, failed)
        orders, slow = failed.json()["subscriptions"]
        self.assertEqual(([fault["kind"] for fault in orders["faults"]], slow["faults"]), (["sum"], []))
        self.assertIn("7 events were enqueued, and 6 are accounted for", orders["faults"][0]["text"])

    def test_what_a_paused_subscription_has_not_passed_stays(self):
        self.succeeds("subscription", "pause", "slow")
        self.deliver()
        report = self.prune("--older-than", "0", "--apply")
        self.assertEqual(report["removed"]["events"], 0)
        self.assertEqual([hold["subscription"] for hold in report["holds"]], ["slow"])
        self.assertEqual(self.events(), 6)
        self.assertIn("slow", self.succeeds("prune", "--older-than", "0").out)

    def test_status_and_doctor_name_who_holds_history_back(self):
        self.succeeds("subscription", "pause", "slow")
        self.deliver()
        self.configure("retention = '0s'")
        self.assertEqual(self.doctor_on_history("slow")["severity"], "note")
        self.configure("retention = '0s'\nquota = '0'")
        status = self.succeeds("status", "--json").json()
        held = {line["name"]: line["held_back"]["parts"] for line in status["subscriptions"]}
        self.assertEqual((held["orders"], held["slow"] > 0), (0, True))
        self.assertIn("holds back history since", self.succeeds("status").out)
        failed = self.outbox("status", "--check", "--max-lag", "1h")
        self.assertEqual(failed.code, CHECK_FAILED, failed)
        self.assertIn("history slow: holds back history since", failed.err)
        self.fails(CHECK_FAILED, "doctor", says="history slow: holds back history since")
        self.assertEqual(self.doctor_on_history("slow")["severity"], "error")

    def doctor_on_history(self, subscription):
        [found] = [one for one in self.outbox("doctor", "--json").json()
                   if (one["check"], one["subject"]) == ("history", subscription)]
        return found

    def test_wrong_use(self):
        self.fails(USAGE, "prune", "--older-than", "soon", says="--older-than soon: is not a duration")


class PruneOnPostgres(OnPostgres, Prune, Case):
    """On a server of its own: transactions of other tests would hold history back."""

    @classmethod
    def setUpClass(cls):
        own = OwnServer()
        cls.addClassCleanup(own.remove)
        cls.server = own.url


class PruneOnSqlite(OnSqlite, Prune, Case):
    pass


if __name__ == "__main__":
    unittest.main()
