#!/usr/bin/env python3
"""outbox relay: from the store to a file, and how it stops."""

import json
import os
import re
import select
import socket
import subprocess
import threading
import time
import unittest
from urllib.parse import urlsplit

from program import Case, ERROR, FILE_SUBSCRIPTION, INTERRUPTED, NOT_NOW, OK, OnPostgres, OnSqlite, jsonl, signal, wait_until

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


class Door:
    """Between a program and a server. When shut it passes nothing on, and neither side gets an error. Of the first `cuts` connections each
    breaks one message of the program later than the one before."""

    def __init__(self, server, port=0, cuts=0):
        self.messages = iter(range(cuts))
        self.server = (server.hostname, server.port or 5432)
        self.open = threading.Event()
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", port))
        who, at, _ = server.netloc.rpartition("@")
        self.url = server._replace(netloc=f"{who}{at}127.0.0.1:{self.listener.getsockname()[1]}").geturl()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.server)
                for ends in ((client, server, next(self.messages, None)), (server, client)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()
        except OSError:
            pass  # closed

    def carry(self, source, target, messages=None):
        try:
            while data := source.recv(65536):
                self.open.wait()
                if messages == 0:
                    for end in (source, target):
                        end.shutdown(socket.SHUT_RDWR)
                    return
                messages = messages and messages - 1
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One end is gone; the other will notice.

    def shut(self):
        self.open.clear()

    def close(self):
        self.listener.close()
        self.open.set()


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
        """To a file: a pipe without a reader would fill up."""
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
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
            before = len(self.lines())
            process = self.relay()
            wait_until(lambda: len(self.lines()) == before + 1, "the event")
            self.stop(process, number)
        pending = self.succeeds("status", "--json").json()["subscriptions"][0]["pending"]
        self.assertEqual(pending, 0)

    def test_under_nohup_it_goes_on_when_the_terminal_is_closed(self):
        self.config(FILE_SUBSCRIPTION)
        with open(self.folder / "relay.log", "w", encoding="utf-8") as log:
            process = self.spawn("relay", stdout=subprocess.DEVNULL, stderr=log,
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        process.send_signal(signal.SIGHUP)
        self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
        wait_until(lambda: len(self.lines()) == 1, "the event")
        self.assertNotIn("stopping", self.log())
        self.stop(process)

    def test_once_delivers_what_is_there_and_ends(self):
        self.config(TWO)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(500))
        self.succeeds("enqueue", "order", "3", "OrderPaid", '{"number": 500}')
        self.succeeds("relay", "--once")
        self.assertEqual((len(self.lines()), len(self.lines("paid.jsonl"))), (501, 1))
        self.succeeds("relay", "--once")
        self.assertEqual(len(self.lines()), 501)

    def test_once_is_interrupted_while_a_destination_takes_nothing(self):
        self.config(FILE_SUBSCRIPTION)
        (self.folder / "orders.jsonl").mkdir()
        self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
        process = self.relay("--once")
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        self.stop(process, code=INTERRUPTED)

    def test_once_does_not_wait_for_a_person(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        table = f"{self.flags[1]}.subscription" if self.flags else "outbox_subscription"
        self.sql(f"UPDATE {table} SET state = 'stopped', reason = 'too large', stopped_seq = 7")
        self.fails(ERROR, "relay", "--once", "--log-level", "off", says=("subscription orders is stopped", "too large"))

    def test_what_was_delivered_is_not_delivered_again(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(10))
        for _ in range(3):
            before = self.log().count("this relay has lanes") if (self.folder / "relay.log").exists() else 0
            process = self.relay()
            wait_until(lambda n=before: self.log().count("this relay has lanes") > n and len(self.lines()) >= 10, "the relay")
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

        troubled = wait_until(lambda: (now := row())["trouble"] and now, "the missing directory in the status")
        self.assertEqual(troubled["state"], "active")
        self.assertIn("orders.jsonl", troubled["trouble"])
        self.assertRegex(troubled["trouble_since"], r"^\d{4}-\d\d-\d\dT.*Z$")
        wait_until(lambda: re.search(r"(?m)^  waiting since .*Z: .*orders\.jsonl", self.succeeds("status").out), "it for people")
        (self.folder / "orders.jsonl").rmdir()
        wait_until(lambda: len(self.lines()) == 3, "3 lines in the file", seconds=60)
        wait_until(lambda: row()["trouble"] is None, "the trouble to be cleared")
        self.assertNotIn("waiting since", self.succeeds("status").out)
        self.stop(process)

    def test_paused_subscriptions_wait(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        self.succeeds("subscription", "pause", "orders", "--reason", "holiday")
        self.succeeds("enqueue", "order", "1", "OrderPlaced", "{}")
        process = self.relay()
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        self.assertRegex(self.log(), r"info subscription is paused, .* subscription=orders reason=holiday")
        row = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual((row["state"], row["reason"], row["pending"]), ("paused", "holiday", 1))
        self.assertEqual(self.lines(), [])
        self.succeeds("subscription", "resume", "orders")
        wait_until(lambda: len(self.lines()) == 1, "the event, after resume")
        self.stop(process)

    def test_logs_as_json(self):
        self.config(FILE_SUBSCRIPTION, '[log]\nformat = "json"\n')
        self.succeeds("subscription", "apply")
        self.succeeds("subscription", "pause", "orders", "--reason", 'say "no",\nlevel=error')
        process = self.relay()
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        self.stop(process)
        lines = {line["msg"]: line for line in map(json.loads, self.log().splitlines())}
        for line in lines.values():
            self.assertEqual(list(line)[:3], ["ts", "level", "msg"])
            self.assertRegex(line["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        starting = lines["starting"]
        self.assertEqual((starting["level"], starting["config"], starting["subscriptions"]), ("info", "outbox.toml", 1))
        paused = lines["subscription is paused, it delivers nothing until it is resumed"]
        self.assertEqual((paused["subscription"], paused["reason"]), ("orders", 'say "no",\nlevel=error'))
        self.assertGreater(lines["this relay has lanes"]["generation"], 0)

    def test_a_line_of_the_log_stays_one_line(self):
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        self.succeeds("subscription", "pause", "orders", "--reason", 'say "no",\nlevel=error')
        process = self.relay()
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        self.stop(process)
        self.assertIn(r'subscription=orders reason="say \"no\",\nlevel=error"', self.log())

    def test_without_subscriptions_it_says_so(self):
        self.config()
        process = self.relay()
        wait_until(lambda: "there are no subscriptions" in self.log() and "this relay has lanes" in self.log(), "the warning")
        self.stop(process)

    def test_a_bad_configuration_starts_nothing(self):
        self.config('[subscription.a]\nsink = "file"\n')
        self.fails(ERROR, "relay", says="subscription.a.file.path")


class RelaySqlite(OnSqlite, Relay, Case):
    def test_a_second_signal_ends_it_at_once(self):
        """The sink writes into a pipe that is not read, so something stays in flight."""
        self.config('[subscription.out]\nsink = "stdout"\n', '[relay]\ngrace = "1h"\n')
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(5000))
        with open(self.folder / "relay.log", "w", encoding="utf-8") as log:
            process = self.spawn("relay", stdout=subprocess.PIPE, stderr=log)
        # Wait for a full pipe, not for a log line: a relay that is stopped before it has sent anything ends with success.
        wait_until(lambda: full(process.stdout), "a full pipe")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in self.log(), "the first signal")
        # A second signal that follows at once is not counted: timeout(1) sends two.
        wait_until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None, "the end")
        self.assertEqual(process.wait(timeout=10), INTERRUPTED, self.log())

    def test_two_signals_at_once_are_one(self):
        self.config(FILE_SUBSCRIPTION)
        process = self.relay()
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        self.stop(process, signal.SIGCONT)


class RelayPostgres(OnPostgres, Relay, Case):
    def test_wait_is_for_a_store_that_is_not_there_yet(self):
        """A port without a listener, until the server starts."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = self.store
        who, at, _ = urlsplit(server).netloc.rpartition("@")
        self.store = urlsplit(server)._replace(netloc=f"{who}{at}127.0.0.1:{port}").geturl()
        self.config(FILE_SUBSCRIPTION)
        self.fails(NOT_NOW, "relay", "--log-level", "off", says=("cannot connect", str(port)))
        process = self.relay("--wait")
        wait_until(lambda: "the store cannot be used yet" in self.log(), "the first attempt")
        door = Door(urlsplit(server), port)
        self.addCleanup(door.close)
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        self.stop(process)

    def test_wait_is_also_for_a_store_that_goes_away_during_the_start(self):
        cuts = 40
        door = Door(urlsplit(self.store), cuts=cuts)
        self.addCleanup(door.close)
        self.store = door.url
        self.config(FILE_SUBSCRIPTION)
        process = self.relay("--wait")
        wait_until(lambda: "this relay has lanes" in self.log() or process.poll() is not None, "the relay")
        self.assertIsNone(process.poll(), self.log())
        self.assertIn("the store cannot be used yet", self.log())
        self.stop(process)

    def test_wait_is_not_for_what_a_person_must_change(self):
        self.config(FILE_SUBSCRIPTION)
        missing = self.store.rsplit("/", 1)[0] + "/no_such_database"
        self.fails(ERROR, "relay", "--wait", "--log-level", "off", "--store", missing, says="no_such_database")

    def test_a_signal_ends_the_waiting(self):
        self.store = "postgresql://postgres@127.0.0.1:1/none"
        self.config(FILE_SUBSCRIPTION)
        process = self.relay("--wait")
        wait_until(lambda: "the store cannot be used yet" in self.log(), "the first attempt")
        self.stop(process, code=INTERRUPTED)

    def test_a_database_that_hangs_does_not_hold_up_the_end(self):
        self.migrate()
        door = Door(urlsplit(self.store))
        self.addCleanup(door.close)
        self.store = door.url
        self.config(FILE_SUBSCRIPTION, '[relay]\ngrace = "100ms"\n')
        process = self.relay()
        wait_until(lambda: "this relay has lanes" in self.log(), "the relay")
        door.shut()
        began = time.monotonic()
        self.stop(process, code=INTERRUPTED)
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn("does not answer", self.log())


if __name__ == "__main__":
    unittest.main()
