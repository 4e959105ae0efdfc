#!/usr/bin/env python3
"""outbox relay: from the store to a file, and how it stops."""

import json
import os
import select
import subprocess
import time
import unittest

from program import Case, ERROR, FILE_SUBSCRIPTION, INTERRUPTED, OK, OnPostgres, OnSqlite, jsonl, signal, wait_until

TWO = FILE_SUBSCRIPTION + """
[subscription.paid]
sink = "file"
event_types = ["*Paid"]
format = "json"
[subscription.paid.file]
path = "paid.jsonl"
"""


def full(pipe):
    """Whether its writer has to wait for a reader."""
    writer = os.open(f"/proc/self/fd/{pipe.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


class Relay:
    def setUp(self):
        super().setUp()
        self.migrate()

    def lines(self, name="orders.jsonl"):
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        whole = text[:text.rfind("\n") + 1]  # the relay may be writing the next one
        return [json.loads(line) for line in whole.splitlines()]

    def relay(self, *arguments):
        """To a file: a pipe that nobody reads would fill up."""
        with open(self.folder / "relay.log", "a", encoding="utf-8") as log:
            return self.spawn("relay", *arguments, stdout=subprocess.DEVNULL, stderr=log)

    def log(self):
        return (self.folder / "relay.log").read_text(encoding="utf-8")

    def stop(self, process, number=signal.SIGTERM, code=OK):
        process.send_signal(number)
        self.assertEqual(process.wait(timeout=60), code, self.log())

    def test_enqueue_and_relay_to_a_file(self):
        self.config(TWO)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(500))
        process = self.relay()
        wait_until(lambda: len(self.lines()) == 500, "500 lines in the file")
        self.succeeds("enqueue", "order", "3", "OrderPaid", '{"number": 500}')
        wait_until(lambda: len(self.lines()) == 501 and len(self.lines("paid.jsonl")) == 1, "the late event")
        self.stop(process)
        by_key = {}
        for line in self.lines():
            by_key.setdefault(line["key"], []).append(line["body"]["number"])
        self.assertEqual(sorted(sum(by_key.values(), [])), list(range(501)))
        for numbers in by_key.values():
            self.assertEqual(numbers, sorted(numbers))

    def test_signals_stop_it_with_success(self):
        self.config(FILE_SUBSCRIPTION)
        for number in (signal.SIGTERM, signal.SIGINT):
            self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
            before = len(self.lines())
            process = self.relay()
            wait_until(lambda: len(self.lines()) == before + 1, "the event")
            self.stop(process, number)
        pending = self.succeeds("status", "--json").json()["subscriptions"][0]["pending"]
        self.assertEqual(pending, 0)

    def test_what_was_delivered_is_not_delivered_again(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(10))
        for times in (1, 2, 3):
            process = self.relay()
            wait_until(lambda n=times: self.log().count("delivering generation") == n and len(self.lines()) >= 10, "the relay")
            self.stop(process)
        self.assertEqual(len(self.lines()), 10)

    def test_no_apply_leaves_the_subscriptions_alone(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        self.config(TWO)
        self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
        process = self.relay("--no-apply")
        wait_until(lambda: len(self.lines()) == 1, "the event")
        self.stop(process)
        names = [s["name"] for s in self.succeeds("subscription", "list", "--json").json()["subscriptions"]]
        self.assertEqual(names, ["orders"])

    def test_its_name_and_role_are_in_the_status(self):
        self.config(FILE_SUBSCRIPTION)
        process = self.relay("--name", "left")
        relay = wait_until(lambda: next((r for r in self.succeeds("status", "--json").json()["relays"] if r["owner"]), None),
                           "an owner")
        self.assertEqual((relay["name"], relay["alive"]), ("left", True))
        self.stop(process)

    def test_the_status_says_what_a_destination_suffers_from(self):
        self.config(FILE_SUBSCRIPTION)
        (self.folder / "orders.jsonl").mkdir()
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(3))
        process = self.relay()

        def row():
            return self.succeeds("status", "--json").json()["subscriptions"][0]

        wait_until(lambda: row()["trouble"], "a word on the directory")
        self.assertEqual(row()["state"], "active")
        self.assertIn("orders.jsonl", row()["trouble"])
        self.assertRegex(row()["trouble_since"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.assertRegex(self.succeeds("status").out, r"(?m)^  waits since .*Z: .*orders\.jsonl")
        (self.folder / "orders.jsonl").rmdir()
        wait_until(lambda: len(self.lines()) == 3, "3 lines in the file", seconds=60)
        wait_until(lambda: row()["trouble"] is None, "the word taken back")
        self.assertNotIn("waits since", self.succeeds("status").out)
        self.stop(process)

    def test_paused_subscriptions_wait(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        self.succeeds("subscription", "pause", "orders", "--reason", "holiday")
        self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
        process = self.relay()
        wait_until(lambda: "delivering generation" in self.log(), "the relay")
        self.assertRegex(self.log(), r"subscription is paused .* subscription=orders reason=holiday")
        row = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual((row["state"], row["reason"], row["pending"]), ("paused", "holiday", 1))
        self.assertEqual(self.lines(), [])
        self.succeeds("subscription", "resume", "orders")
        wait_until(lambda: len(self.lines()) == 1, "the event, after resume")
        self.stop(process)

    def test_logs_as_json(self):
        self.config(FILE_SUBSCRIPTION, '[log]\nformat = "json"\n')
        process = self.relay()
        wait_until(lambda: "delivering" in self.log(), "the relay")
        self.stop(process)
        for line in self.log().splitlines():
            self.assertIn("level", json.loads(line))

    def test_without_subscriptions_it_says_so(self):
        self.config()
        process = self.relay()
        wait_until(lambda: "there are no subscriptions" in self.log() and "delivering generation" in self.log(), "the warning")
        self.stop(process)

    def test_a_bad_configuration_starts_nothing(self):
        self.config('[subscription.a]\nsink = "file"\n')
        self.fails(ERROR, "relay", says="subscription.a.file.path")


class RelaySqlite(OnSqlite, Relay, Case):
    def test_a_second_signal_ends_it_at_once(self):
        """The sink writes into a pipe that nobody reads, so there is something in flight for ever."""
        self.config('[subscription.out]\nsink = "stdout"\n', '[relay]\ngrace = "1h"\n')
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(5000))
        with open(self.folder / "relay.log", "w", encoding="utf-8") as log:
            process = self.spawn("relay", stdout=subprocess.PIPE, stderr=log)
        # A full pipe, not a word in the log: a relay that is stopped before it has sent anything ends with success.
        wait_until(lambda: full(process.stdout), "a full pipe")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in self.log(), "the first signal")
        # One that follows at once counts as the first: timeout(1) sends two.
        wait_until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None, "the end")
        self.assertEqual(process.wait(timeout=10), INTERRUPTED, self.log())

    def test_two_signals_at_once_are_one(self):
        self.config(FILE_SUBSCRIPTION)
        process = self.relay()
        wait_until(lambda: "delivering generation" in self.log(), "the relay")
        process.send_signal(signal.SIGTERM)
        self.stop(process, signal.SIGINT)


class RelayPostgres(OnPostgres, Relay, Case):
    def hang(self, process):
        """Stops the servers of the relay's connections, in a database that only this test uses."""
        pids = [int(pid) for pid in self.sql(
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{self.flags[1]}' AND pid <> pg_backend_pid()").split()]
        self.assertTrue(pids)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGSTOP)
            except (PermissionError, ProcessLookupError):
                self.skipTest("the database's processes are not ours to stop")
            self.addCleanup(os.kill, pid, signal.SIGCONT)

    def test_a_database_that_hangs_does_not_hold_up_the_end(self):
        database = self.flags[1]
        self.sql(f"CREATE DATABASE {database}")
        self.addCleanup(self.sql, f"DROP DATABASE {database} WITH (FORCE)")
        self.store = self.store.rsplit("/", 1)[0] + "/" + database
        self.migrate()
        self.config(FILE_SUBSCRIPTION, '[relay]\ngrace = "100ms"\n')
        process = self.relay()
        wait_until(lambda: "delivering generation" in self.log(), "the relay")
        self.hang(process)
        began = time.monotonic()
        self.stop(process, code=INTERRUPTED)
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn("does not answer", self.log())


if __name__ == "__main__":
    unittest.main()
