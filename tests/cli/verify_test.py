#!/usr/bin/env python3
"""outbox verify: nothing differs after delivery; what is changed by hand is found and named."""

import json
import unittest
import uuid

from program import CHECK_FAILED, Case, ERROR, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE, jsonl, signal, wait_until

MASK = (1 << 64) - 1
ALL_LANES = -1


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_of(ids):
    """As settlements have it: a sum mod 2^64, with a sign."""
    total = sum(splitmix64((i.int >> 64) ^ splitmix64(i.int & MASK)) for i in ids) & MASK
    return total - (1 << 64) if total >= 1 << 63 else total


class Verify:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")

    def table(self, name):
        return f"{self.flags[1]}.{name}" if self.flags else f"outbox_{name}"

    def enqueue(self, count, first=0):
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(count, first))

    def deliver(self, count):
        """A relay of its own each time: each writes a claim."""
        log = self.folder / "relay.log"
        with log.open("w", encoding="utf-8") as out:
            relay = self.spawn("relay", stderr=out)
        file = self.folder / "orders.jsonl"
        wait_until(lambda: file.exists() and file.read_text(encoding="utf-8").count("\n") >= count, f"{count} lines")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(60), 0, log.read_text(encoding="utf-8"))

    def deliver_three_times(self):
        for total in (10, 20, 30):
            self.enqueue(10, total - 10)
            self.deliver(total)

    def begin_verifying(self):
        """A relay that compares its settlements six seconds after it wrote them."""
        self.config(FILE_SUBSCRIPTION, '[relay]\nlease = "3s"\nverify = true\nverify_after = "1s"\n')
        with (self.folder / "relay.log").open("a", encoding="utf-8") as out:
            return self.spawn("relay", stderr=out)

    def verified(self):
        """The events that were compared all the time, and the differences."""
        rows = self.sql(f"SELECT events, differences FROM {self.table('verified')}")
        if not rows:
            return 0, 0
        return tuple(map(int, rows.strip().split("|"))) if isinstance(rows, str) else rows[0]

    def delivered_lines(self):
        file = self.folder / "orders.jsonl"
        return file.read_text(encoding="utf-8").count("\n") if file.exists() else 0

    def report(self, code=0):
        result = self.outbox("verify", "--json")
        self.assertEqual(result.code, code, result)
        return result.json()["subscriptions"][0]

    def settled(self):
        """The id of the second settlement with events."""
        rows = self.sql(f"SELECT id FROM {self.table('settlement')} WHERE kind = 'settle' AND acked > 0 ORDER BY id")
        ids = [int(line) for line in rows.split()] if isinstance(rows, str) else [row[0] for row in rows]
        return ids[1]

    def finds(self, kind, settlement=None):
        """Exit 3, with a line for it."""
        report = self.report(CHECK_FAILED)
        self.assertFalse(report["ok"])
        kinds = [fault["kind"] for fault in report["faults"]]
        self.assertIn(kind, kinds, report)
        text = self.outbox("verify")
        self.assertEqual(text.code, CHECK_FAILED, text)
        self.assertIn("subscription orders", text.err)
        self.assertIn("(hint: ", text.err)
        if settlement is not None:
            self.assertIn(settlement, [fault["settlement"]["id"] for fault in report["faults"] if fault["settlement"]], report)
            self.assertIn(f"settlement {settlement} of ", text.err)
        return report

    def test_a_relay_compares_all_the_time_and_goes_on_where_it_was(self):
        relay = self.begin_verifying()
        self.enqueue(30)
        wait_until(lambda: self.verified() == (30, 0), "30 events are compared")
        self.succeeds("status", "--check")
        relay.kill()
        relay.wait(60)
        self.begin_verifying()
        self.enqueue(10, 30)
        wait_until(lambda: self.verified()[0] >= 40, "40 events are compared")
        self.assertEqual(self.verified(), (40, 0), "none is compared twice")

    def test_an_event_that_is_deleted_before_it_was_compared_is_told(self):
        self.begin_verifying()
        self.enqueue(30)
        wait_until(lambda: self.verified()[0] == 30, "30 events are compared")
        self.enqueue(5, 30)
        wait_until(lambda: self.delivered_lines() >= 35, "they are delivered")
        self.sql(f"DELETE FROM {self.table('event')} WHERE seq = (SELECT max(seq) FROM {self.table('event')})")
        wait_until(lambda: self.verified()[1] == 1, "a difference")
        log = (self.folder / "relay.log").read_text(encoding="utf-8")
        self.assertIn("the ledger differs from the log", log)
        self.assertRegex(log, r"kind=counts .*and the log has")
        self.fails(CHECK_FAILED, "status", "--check", says="the ledger differs from the log in 1 place")
        self.assertIn("orders: 1 difference acknowledged", self.succeeds("verify", "--acknowledge").out)
        self.assertEqual(self.verified()[1], 0)
        self.fails(USAGE, "verify", "--acknowledge", "--sink", says="--acknowledge")
        self.enqueue(10, 35)
        wait_until(lambda: self.verified() == (44, 0), "it goes on behind the difference")

    def test_an_empty_log(self):
        report = self.report()
        self.assertEqual((report["ok"], report["enqueued"], report["faults"]), (True, 0, []))

    def test_what_is_delivered_adds_up(self):
        self.deliver_three_times()
        self.enqueue(7, 30)
        report = self.report()
        self.assertEqual([report[key] for key in ("enqueued", "delivered", "filtered", "pending", "parked", "discarded")],
                         [37, 30, 0, 7, 0, 0])
        self.assertGreaterEqual(report["settlements"], 3)
        self.assertIn("orders: 37 enqueued = 30 delivered + 0 filtered + 7 pending + 0 parked + 0 discarded",
                      self.succeeds("verify").out)
        self.assertIn("nothing differs", self.succeeds("verify", "--subscription", "orders").out)

    def test_a_subscription_that_starts_now(self):
        self.enqueue(5)
        self.config(FILE_SUBSCRIPTION + '[subscription.late]\nsink = "null"\nstart = "now"\n')
        self.succeeds("subscription", "apply")
        self.enqueue(3, 5)
        late = self.succeeds("verify", "--json", "--subscription", "late").json()["subscriptions"]
        self.assertEqual([(s["name"], s["enqueued"], s["pending"]) for s in late], [("late", 3, 3)])

    def test_a_deleted_event(self):
        self.deliver_three_times()
        settlement = self.settled()
        self.sql(f"DELETE FROM {self.table('event')} WHERE seq IN (SELECT seq FROM {self.table('event')} ORDER BY seq LIMIT 1 OFFSET 14)")
        report = self.finds("counts", settlement)
        self.assertIn("counts 10 events", report["faults"][0]["text"])
        self.assertIn("the log has 9", report["faults"][0]["text"])

    def test_a_changed_settlement(self):
        self.deliver_three_times()
        settlement = self.settled()
        self.sql(f"UPDATE {self.table('settlement')} SET acked_hash = acked_hash + 1 WHERE id = {settlement}")
        self.assertIn("their hash sums differ", self.finds("counts", settlement)["faults"][0]["text"])

    def test_a_removed_settlement(self):
        self.deliver_three_times()
        self.sql(f"DELETE FROM {self.table('settlement')} WHERE id = {self.settled()}")
        report = self.finds("uncovered")
        uncovered = [fault for fault in report["faults"] if fault["kind"] == "uncovered"][0]
        self.assertIn("10 events", uncovered["text"])

    def test_a_removed_first_cursor(self):
        self.deliver_three_times()
        self.sql(f"DELETE FROM {self.table('settlement')} WHERE kind = 'reset'")
        self.finds("beginning")

    def test_no_settlement_is_left(self):
        self.deliver_three_times()
        self.sql(f"DELETE FROM {self.table('settlement')}")
        self.finds("beginning")

    def test_a_forged_settlement(self):
        self.deliver_three_times()
        columns = ("subscription, kind, generation, config_version, from_position, position, acked, acked_hash, filtered, filtered_hash,"
                   " parked, parked_hash, at")
        columns += ", lanes, s1, s2, l" if self.flags else ""
        self.sql(f"INSERT INTO {self.table('settlement')} ({columns}) SELECT {columns} FROM {self.table('settlement')}"
                 f" WHERE id = {self.settled()}")
        self.finds("disjoint")

    def test_a_moved_cursor(self):
        self.deliver_three_times()
        forward = ("s1 = (SELECT pg_current_snapshot())" if self.flags
                   else "position = position + 5, from_position = from_position + 5")
        self.enqueue(20, 30)
        newest = f"(SELECT max(id) FROM {self.table('settlement')} WHERE kind = 'claim')"
        if self.flags:
            self.sql(f"UPDATE {self.table('settlement')} SET {forward}, s2 = NULL, position = NULL WHERE id = {newest}")
        else:
            self.sql(f"UPDATE {self.table('settlement')} SET {forward} WHERE id = {newest}")
        self.finds("cursor")

    def test_a_parked_event_that_is_gone(self):
        self.deliver_three_times()
        settlement = self.settled()
        self.sql(f"UPDATE {self.table('settlement')} SET acked = 0, acked_hash = 0, parked = acked, parked_hash = acked_hash"
                 f" WHERE id = {settlement}")
        report = self.finds("parked")
        self.assertIn("that 10 events were parked", report["faults"][0]["text"])

    def test_a_retry_that_did_not_happen(self):
        self.deliver_three_times()
        columns, values = (("lanes, ", "0, ") if self.flags else ("from_position, position, at, config_version, ", "0, 0, 0, 0, "))
        self.sql(f"INSERT INTO {self.table('settlement')} (subscription, kind, generation, {columns}acked, acked_hash)"
                 f" VALUES (1, 'retry', 1, {values}2, 12345)")
        self.assertIn("the table parked_end has 0", self.finds("parked")["faults"][0]["text"])

    def lines(self):
        return (self.folder / "orders.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)

    def with_sink(self, code=0, *arguments):
        arguments = arguments or ("--sink",)
        result = self.outbox("verify", "--json", "--subscription", "orders", *arguments)
        self.assertEqual(result.code, code, result)
        return result.json()["subscriptions"][0]

    def test_the_destination_holds_what_was_delivered(self):
        self.deliver_three_times()
        self.enqueue(5, 30)
        self.assertEqual(self.with_sink()["sink"], {
            "messages": 30, "duplicates": 0, "unsettled": 0, "ghosts": 0, "missing": 0, "without_id": 0, "removed": 0,
            "removed_before": None, "uncompared": 0, "others": []})
        ids = "".join(json.loads(line)["id"] + "\n" for line in self.lines())
        self.write("half1", ids[:15 * 37])
        self.write("half2", ids[15 * 37:])
        self.assertEqual(self.with_sink(0, "--delivered", "half1", "--delivered", "half2")["sink"]["messages"], 30)

    def test_a_message_that_is_gone(self):
        self.deliver_three_times()
        lines = self.lines()
        self.write("orders.jsonl", "".join(lines[:12] + lines[13:]))
        report = self.with_sink(CHECK_FAILED)
        self.assertEqual([fault["kind"] for fault in report["faults"]], ["lost"])
        self.assertIn(json.loads(lines[12])["id"], report["faults"][0]["text"])

    def test_a_message_that_was_never_committed_and_one_that_comes_twice(self):
        self.deliver_three_times()
        lines = self.lines()
        ghost = str(uuid.uuid4())
        self.write("orders.jsonl", "".join(lines + [lines[3], lines[4].replace(json.loads(lines[4])["id"], ghost)]))
        report = self.with_sink(CHECK_FAILED)
        self.assertEqual((report["sink"]["duplicates"], report["sink"]["ghosts"]), (1, 1))
        self.assertIn(ghost, report["faults"][0]["text"])
        self.assertIn("1 of them duplicates", self.outbox("verify", "--sink").out)

    def test_what_was_filtered_is_not_expected(self):
        self.config(FILE_SUBSCRIPTION.replace('sink = "file"', 'sink = "file"\nevent_types = ["Order*"]'))
        self.succeeds("subscription", "apply")
        for i in range(5):
            self.succeeds("enqueue", "cart", str(i), "CartFilled", "{}")
        self.enqueue(10)
        self.deliver(10)
        wait_until(lambda: self.report()["pending"] == 0 or self.deliver(10), "everything is settled")
        report = self.with_sink()
        self.assertEqual((report["delivered"], report["filtered"], report["sink"]["missing"]), (10, 5, 5))
        self.write("orders.jsonl", "".join(self.lines()[1:]))
        self.assertIn("1 delivered event is not", self.with_sink(CHECK_FAILED)["faults"][0]["text"])

    def test_a_destination_that_cannot_be_read(self):
        self.config('[subscription.orders]\nsink = "null"\n')
        self.succeeds("subscription", "apply")
        self.fails(ERROR, "verify", "--sink", says="cannot be read back")
        self.fails(ERROR, "verify", "--subscription", "orders", "--delivered", "nothing", says="cannot read nothing")
        self.fails(USAGE, "verify", "--delivered", "nothing", says="--subscription")

    def test_wrong_input(self):
        self.fails(ERROR, "verify", "--subscription", "ordres", says=("unknown subscription", "did you mean orders?"))


class VerifySqlite(OnSqlite, Verify, Case):
    pass


class VerifyPostgres(OnPostgres, Verify, Case):
    def settle(self, lanes, **changes):
        """A row of these lanes from its last snapshot to the present, as a relay would write it."""
        mask = lanes & MASK
        s1 = changes.pop("s1")
        s2 = self.sql("SELECT pg_current_snapshot()").strip()
        rows = self.sql(f"SELECT lane, id FROM {self.table('event')} WHERE pg_visible_in_snapshot(xid, '{s2}')"
                        f" AND NOT pg_visible_in_snapshot(xid, '{s1}')").split()
        ids = [uuid.UUID(i) for lane, i in (row.split("|") for row in rows) if mask >> int(lane) & 1]
        self.sql(f"INSERT INTO {self.table('settlement')} (subscription, kind, lanes, generation, s1, s2, l, acked, acked_hash)"
                 f" VALUES (1, 'settle', {lanes}, {changes.get('generation', 1)}, '{s1}', '{s2}', 1000000,"
                 f" {len(ids)}, {hash_of(ids)})")
        return s2, len(ids)

    def claim(self, lanes, generation, s1):
        self.sql(f"INSERT INTO {self.table('settlement')} (subscription, kind, lanes, generation, s1)"
                 f" VALUES (1, 'claim', {lanes}, {generation}, '{s1}')")

    def test_lanes_of_several_relays(self):
        upper, lower = -(1 << 32), (1 << 32) - 1
        start = "3:3:"
        self.enqueue(40)
        self.claim(upper, 1, start)
        self.claim(lower, 2, start)
        ends = {}
        for round_ in range(3):
            for lanes, generation in ((upper, 1), (lower, 2)):
                ends[lanes], _ = self.settle(lanes, s1=ends.get(lanes, start), generation=generation)
            self.enqueue(40, 40 * (round_ + 1))
        # One relay is gone; the other takes its lanes, and a late row of the first is void.
        self.claim(upper, 3, ends[upper])
        self.settle(upper, s1=ends[upper], generation=1)
        self.settle(upper, s1=ends[upper], generation=3)
        report = self.report()
        self.assertEqual((report["enqueued"], report["delivered"] + report["pending"], report["settlements_void"]), (160, 160, 1))
        self.sql(f"UPDATE {self.table('settlement')} SET acked = acked + 1 WHERE generation = 2 AND id = "
                 f"(SELECT min(id) FROM {self.table('settlement')} WHERE generation = 2 AND kind = 'settle')")
        fault = self.finds("counts")["faults"][0]
        self.assertEqual(fault["lanes"], list(range(32)))


if __name__ == "__main__":
    unittest.main()
