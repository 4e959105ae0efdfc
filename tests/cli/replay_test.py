#!/usr/bin/env python3
"""outbox replay: dry run, start, stop, resume, what is refused; relays carry it out."""

import json
import os
import sqlite3
import subprocess
import unittest
import uuid

from program import CHECK_FAILED, ERROR, FILE_SUBSCRIPTION, INTERRUPTED, Case, OnPostgres, OnSqlite, USAGE, signal, wait_until


class Replay:
    """Six events of two keys, delivered to a file."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        for number in range(6):
            self.succeeds("enqueue", "order", "ab"[number % 2], "Placed" if number < 4 else "Paid", json.dumps({"n": number}),
                          "--header", f"tenant={'acme' if number == 0 else 'other'}")
        self.succeeds("relay", "--once")
        self.seqs = sorted(event["seq"] for event in self.succeeds("events", "--json").json()["events"])

    def lines(self):
        return [json.loads(line) for line in (self.folder / "orders.jsonl").read_text().splitlines()]

    def relay(self):
        self.spawn("relay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def again(self):
        """The numbers of the events that were sent again."""
        return [line["body"]["n"] for line in self.lines()[6:]]

    def count(self, *arguments):
        return self.succeeds("replay", "orders", "--json", *arguments).json()["events"]

    def started(self, *arguments):
        """The id of a replay that is started and left."""
        return self.succeeds("replay", "orders", "--apply", "--no-wait", "--json", *arguments).json()["replay"]["id"]

    def state(self, number):
        return self.succeeds("replay", "--show", number).json()["state"]

    def test_without_apply_it_only_counts(self):
        text = self.succeeds("replay", "orders").out
        self.assertIn("would send 6 events again to orders (sink file", text)
        self.assertIn(f"seq {self.seqs[0]} to {self.seqs[-1]}, created 20", text)
        self.assertIn("nothing was sent (--apply starts it", text)
        self.assertEqual(self.succeeds("replay", "--list").out, "no replays\n")
        self.assertEqual(len(self.lines()), 6)

    def test_events_are_chosen(self):
        first, ids = self.seqs[0], [event["id"] for event in self.succeeds("events", "--json").json()["events"]]
        created = {event["seq"]: event["created_at"] for event in self.succeeds("events", "--json").json()["events"]}
        for arguments, count in ((("--from-seq", first + 2), 4), (("--from-seq", first + 1, "--until-seq", first + 2), 2),
                                 (("--type", "P*d"), 6), (("--type", "Paid"), 2), (("--type", "Paid", "--type", "Placed"), 6),
                                 (("--aggregate-type", "order"), 6), (("--aggregate-type", "x*"), 0), (("--header", "tenant=acme"), 1),
                                 (("--key", "order/a"), 3), (("--id", ids[0]), 1), (("--id", ids[0], "--id", ids[5]), 2),
                                 (("--from-time", created[self.seqs[2]]), 4), (("--until-time", created[self.seqs[2]]), 2),
                                 (("--from-time", "1h"), 6), (("--until-time", "1h"), 0), (("--from-seq", first + 100), 0)):
            self.assertEqual(self.count(*arguments), count, arguments)

    def test_a_relay_sends_them_again_and_the_command_waits(self):
        self.relay()
        done = self.succeeds("replay", "orders", "--type", "Paid", "--apply")
        self.assertIn("is done: 2 events sent again", done.out)
        self.assertEqual(self.again(), [4, 5])
        before, after = self.lines()[4], self.lines()[6]
        number = str(self.succeeds("replay", "--list", "--json").json()["replays"][0]["id"])
        self.assertEqual(after["headers"].pop("outbox-replay"), number)
        self.assertEqual(before, after)
        listed = self.succeeds("replay", "--list").out
        self.assertIn("done", listed)
        report = self.succeeds("verify", "--json").json()
        self.assertTrue(report["ok"], report)
        self.assertEqual(report["subscriptions"][0]["delivered"], 6)

    def test_relays_finish_what_the_command_left(self):
        process = self.spawn("replay", "orders", "--apply")
        wait_until(lambda: self.succeeds("replay", "--list", "--json").json()["replays"], "a replay")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, (out, err))
        self.assertIn("goes on in the relays (hint: outbox replay --stop 1 stops it", err)
        status = self.succeeds("status", "--json").json()["subscriptions"][0]
        self.assertEqual(status["replay"]["id"], 1)
        self.assertIn("waits for replay 1: 0 sent", self.succeeds("status").out)
        self.relay()
        wait_until(lambda: self.state(1) == "done", "the replay is done")
        self.assertEqual(self.again(), [0, 1, 2, 3, 4, 5])
        self.assertIsNone(self.succeeds("status", "--json").json()["subscriptions"][0]["replay"])

    def test_it_is_stopped_and_resumed(self):
        number = self.started()
        self.fails(ERROR, "replay", "orders", "--apply", says="another replay of this subscription is running")
        self.assertIn(f"replay {number} is stopped, live delivery goes on: 0 sent", self.succeeds("replay", "--stop", number).out)
        self.fails(ERROR, "replay", "--stop", number, says=f"replay {number} is stopped")
        self.succeeds("relay", "--once")
        self.assertEqual(self.again(), [])
        self.relay()
        self.assertIn("6 events sent again", self.succeeds("replay", "--resume", number).out)
        self.assertEqual(len(self.again()), 6)
        self.fails(ERROR, "replay", "--resume", number, says=f"replay {number} is not stopped")

    def test_a_relay_that_delivers_once_finishes_it(self):
        number = self.started("--type", "Paid")
        self.succeeds("relay", "--once")
        self.assertEqual(self.state(number), "done")
        self.assertEqual(self.again(), [4, 5])

    def test_one_that_is_stopped_meanwhile_ends_the_command(self):
        process = self.spawn("replay", "orders", "--apply")
        wait_until(lambda: self.succeeds("replay", "--list", "--json").json()["replays"], "a replay")
        self.succeeds("replay", "--stop", 1)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, ERROR, (out, err))
        self.assertIn("replay 1 was stopped: stopped by", err)
        self.assertIn("outbox replay --resume 1", err)

    def test_a_paused_subscription_is_mentioned(self):
        self.succeeds("subscription", "pause", "orders")
        started = self.succeeds("replay", "orders", "--apply", "--no-wait")
        self.assertIn("subscription orders is paused: it begins when that is resumed", started.err)

    def test_wrong_use(self):
        for arguments, says in (((), "of which subscription?"), (("orders", "--from-seq", 1, "--from-time", "1h"), "which of them?"),
                                (("orders", "--until-seq", 1, "--until-time", "1h"), "which of them?"),
                                (("orders", "--from-seq", 0), "--from-seq 0: is not a seq"),
                                (("orders", "--from-time", "soon"), "--from-time soon: is not a time"),
                                (("orders", "--id", "x"), "--id x: is not a UUID"), (("orders", "--key", "x"), "--key x: is not a key"),
                                (("orders", "--id", "x", "--from-seq", 1), "--id names the events"),
                                (("orders", "--header", "x"), "--header x: no value"),
                                (("orders", "--from-seq", 5, "--until-seq", 3), "--from-seq 5 is after --until-seq 3"),
                                (("orders", "--from-time", "1h", "--until-time", "2h"), "--from-time is not before --until-time"),
                                (("--list", "--stop", 1), "one at a time"),
                                (("--list", "--apply"), "--list --apply: --list only shows replays"), (("orders", "--stop", 1), "name a replay by its id"),
                                (("--list", "--limit", 0), "--limit 0")):
            self.fails(USAGE, "replay", *arguments, says=says)
        self.fails(ERROR, "replay", "ordres", says=("unknown subscription: ordres", "did you mean"))
        self.fails(ERROR, "replay", "--stop", 77, says="no such replay: 77")
        self.fails(ERROR, "replay", "--show", 77, says="no such replay: 77")
        self.fails(ERROR, "replay", "orders", "--id", "0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f", says="is not in the log")
        self.fails(ERROR, "replay", "orders", "--from-seq", self.seqs[-1] + 10, "--apply", says="there are no such events")


class Archive:
    """Ten events that were archived and removed, and one that the log still has."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.small_parts()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")
        for number in range(10):
            self.succeeds("enqueue", "order", "abc"[number % 3], "Placed" if number < 8 else "Paid", json.dumps({"n": number}))
        self.close_part()
        self.succeeds("enqueue", "order", "a", "Placed", '{"n": 10}')
        self.succeeds("relay", "--once")
        (self.folder / "archive").mkdir()
        removed = self.succeeds("prune", "--older-than", "0", "--archive", "archive", "--apply", "--json").json()["removed"]["events"]
        self.assertGreaterEqual(removed, 10)
        self.delivered = len(self.lines())

    def lines(self):
        return [json.loads(line) for line in (self.folder / "orders.jsonl").read_text().splitlines()]

    def replay(self, *arguments):
        return self.succeeds("replay", "orders", "--archive", "archive", *arguments)

    def test_a_log_of_which_nothing_is_left_says_so(self):
        self.succeeds("enqueue", "order", "a", "Placed", '{"n": 11}')
        self.close_part()
        self.succeeds("relay", "--once")
        self.succeeds("prune", "--older-than", "0", "--apply")
        self.assertEqual(self.events(), 0)
        self.fails(ERROR, "replay", "orders", "--from-seq", 1, says=("everything from seq 13 on", "--archive DIR"))

    def test_what_was_removed_is_sent_again(self):
        self.assertIn("--archive DIR", self.outbox("replay", "orders", "--from-seq", 1).err)
        self.assertEqual(self.replay("--json", "--type", "Paid").json()["events"], 2)
        self.assertIn("nothing was sent", self.replay().out)
        self.assertEqual(len(self.lines()), self.delivered)
        self.spawn("relay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.replay("--until-seq", 10, "--apply")
        again = self.lines()[self.delivered:]
        self.assertEqual([line["body"]["n"] for line in again], list(range(10)))
        number = str(self.succeeds("replay", "--list", "--json").json()["replays"][0]["id"])
        for before, after in zip(self.lines(), again):
            self.assertEqual(after["headers"].pop("outbox-replay"), number)
            self.assertEqual(before, after)
        self.assertTrue(self.succeeds("verify", "--json").json()["ok"])
        self.succeeds("prune", "--older-than", "0", "--apply")
        self.assertEqual(self.copies(), 0)

    def test_relays_finish_it_and_it_can_be_stopped_and_resumed(self):
        started = self.replay("--type", "Placed", "--until-seq", 10, "--apply", "--no-wait", "--json").json()["replay"]
        self.assertEqual((started["archived"], started["state"], started["first_seq"], started["last_seq"]), (True, "running", 1, 8))
        self.assertEqual(self.copies(), 8)
        self.succeeds("replay", "--stop", started["id"])
        self.succeeds("prune", "--older-than", "0", "--apply")
        self.assertEqual(self.copies(), 8)
        self.spawn("relay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertIn("8 events sent again", self.succeeds("replay", "--resume", started["id"]).out)

    def test_what_the_log_still_has_is_left_out(self):
        self.succeeds("enqueue", "order", "a", "Placed", '{"n": 11}')
        self.succeeds("relay", "--once")
        newest = self.succeeds("events", "--json").json()["events"][0]
        line = json.loads(next(iter((self.folder / "archive").glob("*.jsonl"))).read_text().splitlines()[0])
        (self.folder / "other").mkdir()
        self.write("other/events-x.jsonl", json.dumps(line | {"seq": newest["seq"], "id": newest["id"]}) + "\n")
        self.fails(ERROR, "replay", "orders", "--archive", "other", "--apply", says="the log still has all events that were chosen")
        self.assertEqual(self.succeeds("replay", "--list").out, "no replays\n")

    def test_an_archive_that_cannot_be_read_is_named_and_leaves_nothing(self):
        self.fails(ERROR, "replay", "orders", "--archive", "none", says="cannot read the archive none")
        (self.folder / "empty").mkdir()
        self.fails(ERROR, "replay", "orders", "--archive", "empty", "--apply", says="the archive empty has no .jsonl files")
        (self.folder / "broken").mkdir()
        self.write("broken/events-x.jsonl", '{"seq": 1\n')
        self.fails(ERROR, "replay", "orders", "--archive", "broken", "--apply", says="events-x.jsonl, line 1: is not a JSON object")
        self.fails(ERROR, "replay", "orders", "--archive", "archive", "--type", "None", "--apply", says="there are no such events")
        self.assertEqual(self.succeeds("replay", "--list").out, "no replays\n")

    def loading(self):
        """A replay that has counted an event of an archive, and waits in order to copy it until more is written to this pipe."""
        line = next(iter((self.folder / "archive").glob("*.jsonl"))).read_text().splitlines()[0]
        (self.folder / "pipe").mkdir()
        pipe = self.folder / "pipe" / "events-x.jsonl"
        os.mkfifo(pipe)
        process = self.spawn("replay", "orders", "--archive", "pipe", "--apply")
        pipe.write_text(line + "\n")
        listed = wait_until(lambda: self.succeeds("replay", "--list", "--json").json()["replays"], "a replay")
        self.assertEqual([one["state"] for one in listed], ["loading"])
        return process, pipe, listed[0]["id"]

    def test_what_a_killed_command_left_is_removed(self):
        process, _, number = self.loading()
        process.kill()
        process.communicate()
        removed = self.succeeds("replay", "--stop", number, "--json").json()["replay"]
        self.assertEqual((removed["id"], removed["state"], removed["subscription"]), (number, "removed", "orders"))
        self.assertEqual(self.succeeds("replay", "--list").out, "no replays\n")


class ArchiveOnSqlite(Archive, OnSqlite, Case):
    def test_one_that_cannot_be_removed_either_is_named_beside_the_first_error(self):
        process, pipe, number = self.loading()
        database = sqlite3.connect(self.folder / "shop.db", isolation_level=None)
        self.addCleanup(database.close)
        database.execute("BEGIN IMMEDIATE")
        pipe.write_text('{"seq": 1\n')
        _, err = process.communicate(timeout=60)
        database.execute("ROLLBACK")
        self.assertEqual(process.returncode, ERROR, err)
        for part in ("events-x.jsonl, line 1: is not a JSON object", f"replay {number} has not begun", f"outbox replay --stop {number} removes it"):
            self.assertIn(part, err)
        self.assertIn(f"replay {number} had not begun and is removed", self.succeeds("replay", "--stop", number).out)

    def copies(self):
        return self.sql("SELECT count(*) FROM outbox_replay_event")[0][0]


class ArchiveOnPostgres(Archive, OnPostgres, Case):
    def copies(self):
        return int(self.sql(f"SELECT count(*) FROM {self.flags[1]}.replay_event"))


class ReplayOnSqlite(Replay, OnSqlite, Case):
    def test_a_start_before_what_is_retained_is_refused(self):
        self.succeeds("prune", "--older-than", "0", "--apply")
        self.succeeds("enqueue", "order", "a", "Placed", '{"n": 6}')
        self.succeeds("relay", "--once")
        self.fails(ERROR, "replay", "orders", "--from-seq", 3, says=("everything from seq 7 on, written at 20", "--archive DIR"))
        self.fails(ERROR, "replay", "orders", "--from-time", "1h", says=("everything only from seq 7 on", "--archive DIR"))
        self.assertEqual(self.count(), 1)


class ReplayOnPostgres(Replay, OnPostgres, Case):
    def test_a_command_that_loses_its_connection_says_that_the_replay_goes_on(self):
        name = "outbox-test-" + uuid.uuid4().hex[:12]
        store = self.store + ("&" if "?" in self.store else "?") + "application_name=" + name
        process = self.spawn("replay", "orders", "--apply", "--store", store, *self.flags)
        wait_until(lambda: self.succeeds("replay", "--list", "--json").json()["replays"], "a replay")
        # It looks again and again.
        looked = f"SELECT max(query_start) FROM pg_stat_activity WHERE application_name = '{name}'"
        first = self.sql(looked)
        wait_until(lambda: self.sql(looked) != first, "the command looks at the replay")
        self.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertIn("replay 1 goes on in the relays, but cannot be watched any more", err)
        self.assertIn("outbox replay --show 1", err)
        self.relay()
        wait_until(lambda: self.state(1) == "done", "the replay is done")
        self.assertEqual(self.again(), [0, 1, 2, 3, 4, 5])


if __name__ == "__main__":
    unittest.main()
