#!/usr/bin/env python3
"""outbox status."""

import json
import unittest
import uuid

from program import CHECK_FAILED, Case, FILE_SUBSCRIPTION, OK, OnPostgres, OnSqlite, USAGE, jsonl, signal, wait_until


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
        self.assertRegex(self.succeeds("status").out, r"(?m)^orders +active +file +20 +\d+s +0 +0 +0 +-")

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


    # ---- with a relay

    def row(self):
        return self.succeeds("status", "--json").json()["subscriptions"][0]

    def relay(self, name="relay.log"):
        """A relay that has the lanes; its log in the file."""
        log = open(self.folder / name, "w", encoding="utf-8")  # closed with the process
        self.addCleanup(log.close)
        process = self.spawn("relay", "--log-format", "json", stderr=log)
        wait_until(lambda: "this relay has lanes" in self.log_text(name), "the relay")
        return process

    def log_text(self, name="relay.log"):
        return (self.folder / name).read_text(encoding="utf-8")

    def log_lines(self, message, name="relay.log"):
        """Only whole lines: the relay may be writing one."""
        lines = self.log_text(name).split("\n")[:-1]
        return [line for line in map(json.loads, lines) if line["msg"] == message]

    def check(self, code, *arguments, says=()):
        result = self.outbox("status", "--check", *arguments)
        self.assertEqual(result.code, code, result)
        for part in says:
            self.assertIn(part, result.err)
        if code == OK:
            self.assertEqual(result.err, "")
        return result

    def enqueue(self, count=20):
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(count))

    def block_the_sink(self):
        """A subscription to a file whose directory is missing."""
        self.config(FILE_SUBSCRIPTION.replace('"orders.jsonl"', '"later/orders.jsonl"'))

    def grow_older(self, seconds):
        raise NotImplementedError

    def test_delivered_and_filtered(self):
        self.config(FILE_SUBSCRIPTION.replace('sink = "file"', 'sink = "file"\naggregate_types = ["order"]'))
        self.enqueue(20)
        self.succeeds("enqueue", "customer", "1", "CustomerMoved", "{}")
        self.relay()
        wait_until(lambda: self.row()["pending"] == 0, "delivery")
        row = self.row()
        self.assertEqual((row["delivered"], row["filtered"], row["lag_seconds"]), (20, 1, None))
        self.assertFalse(row["matches_nothing"])
        text = self.succeeds("status").out
        self.assertRegex(text, r"(?m)^SUBSCRIPTION +STATE +SINK +PENDING +LAG +DELIVERED +FILTERED +PARKED +LAST SETTLED$")
        self.assertRegex(text, r"(?m)^orders +active +file +0 +- +20 +1 +0 +20")
        self.assertNotIn("PROBLEM", text)
        self.assertEqual(self.log_lines("the filter has matched nothing"), [])

    def test_a_filter_that_matches_nothing_is_said(self):
        self.config(FILE_SUBSCRIPTION.replace('sink = "file"', 'sink = "file"\nevent_types = ["OrderPlacd"]'))
        self.enqueue(1000)
        self.relay()
        warned = wait_until(lambda: self.log_lines("the filter has matched nothing"), "the warning")
        self.assertEqual((len(warned), warned[0]["level"], warned[0]["subscription"], warned[0]["filtered"]),
                         (1, "warning", "orders", 1000))
        self.assertIn("event_types", warned[0]["hint"])
        self.assertTrue(self.row()["matches_nothing"])
        self.assertIn("its filter has matched none of 1000 events", self.succeeds("status").out)

    def test_a_store_without_subscriptions_or_relay_fails_the_check(self):
        result = self.check(CHECK_FAILED, says=("relays: no relay is alive", "subscriptions: the store has no subscriptions"))
        for line in result.err.splitlines():
            self.assertRegex(line, r"^outbox: .+ \(hint: .+\)$")
        result = self.check(CHECK_FAILED, "--json")
        self.assertEqual([f"outbox: {problem}" for problem in result.json()["problems"]], result.err.splitlines())

    def test_nobody_delivers_is_said_loudly(self):
        self.succeeds("subscription", "apply")
        self.assertRegex(self.succeeds("status").out, r"(?m)^PROBLEM: relays: no relay is alive; nothing is delivered \(hint: outbox relay")
        process = self.relay()
        self.assertNotIn("PROBLEM", self.succeeds("status").out)
        process.kill()
        process.wait()
        said = wait_until(lambda: (out := self.succeeds("status").out) and "nothing is delivered" in out and out, "its end")
        self.assertRegex(said, r"(?m)^\S+ +gone +no ")

    def test_a_group_that_nobody_serves_is_a_problem(self):
        self.config(FILE_SUBSCRIPTION + '[subscription.reports]\nsink = "null"\ngroup = "heavy"\n', '[relay]\ngroups = ["default", "file:orders"]\n')
        self.succeeds("subscription", "apply")
        self.relay()
        self.check(CHECK_FAILED, says=("relays reports: no live relay has lanes of group heavy", "outbox relay --group heavy"))
        with open(self.folder / "heavy.log", "w", encoding="utf-8") as log:
            self.spawn("relay", "--group", "heavy", stderr=log)
        wait_until(lambda: self.outbox("status", "--check").code == OK, "the other relay")
        self.assertRegex(self.succeeds("status").out, r"(?m) heavy 64 ")

    def test_an_idle_store_with_a_relay_passes(self):
        self.relay()
        self.check(OK)
        self.check(OK, "--max-lag", "0s")

    def test_lag_beyond_the_limit_fails_the_check(self):
        self.block_the_sink()
        self.relay()
        self.enqueue(3)
        wait_until(lambda: self.row()["trouble"], "the missing directory in the status")
        self.check(OK)
        self.check(OK, "--max-lag", "5min")
        self.grow_older(200)
        row = self.row()
        self.assertTrue(200 <= row["lag_seconds"] < 240, row)
        self.assertRegex(self.succeeds("status").out, r"(?m)^orders +active +file +3 +3m +0 +0 +")
        self.check(CHECK_FAILED, says=("pending orders: 3 events are pending, the oldest for 3 min, more than 1min", "does not exist"))
        self.check(CHECK_FAILED, "--max-lag", "199s", "--json", says=("pending orders",))
        self.check(OK, "--max-lag", "1h")
        self.assertNotIn("PROBLEM", self.succeeds("status").out)

    def test_a_stopped_subscription_fails_the_check(self):
        self.relay()
        self.sql(f"UPDATE {self.table} SET state = 'stopped', reason = 'too large'")
        self.check(CHECK_FAILED, says=("subscriptions orders: stopped: too large", "outbox subscription resume orders"))
        self.assertIn("PROBLEM: subscriptions orders: stopped", self.succeeds("status").out)

    def test_a_paused_subscription_is_a_wish_and_said(self):
        self.relay()
        self.succeeds("subscription", "pause", "orders", "--reason", "holiday")
        paused = wait_until(lambda: self.log_lines("subscription delivers nothing until it is resumed"), "the pause")[0]
        self.assertEqual((paused["subscription"], paused["state"], paused["reason"]), ("orders", "paused", "holiday"))
        self.enqueue(3)
        self.grow_older(200)
        result = self.check(OK)
        self.assertRegex(result.out, r"(?m)^orders +paused +file +3 +3m ")
        self.assertIn("reason: holiday", result.out)

    def test_the_doctor_says_the_same(self):
        self.relay()
        self.sql(f"UPDATE {self.table} SET state = 'stopped', reason = 'too large'")
        [problem] = self.succeeds("status", "--json").json()["problems"]
        [found] = [one for one in self.outbox("doctor", "--json").json() if (one["check"], one["severity"]) == ("subscriptions", "error")]
        # Of the doctor's commands each names the store that was looked at.
        said = f"subscriptions {found['subject']}: {found['what']}; {found['reason']} (hint: "
        self.assertTrue(problem.startswith(said), (problem, said))
        self.assertTrue(found["command"].startswith(problem.removeprefix(said).removesuffix(")")), (problem, found["command"]))

    # ---- the past

    def history(self):
        return self.succeeds("status", "--json", "--since", "1h").json()["history"]

    def test_what_was_delivered_before(self):
        self.config(FILE_SUBSCRIPTION, '[history]\ninterval = "100ms"\n')
        self.assertIsNone(self.succeeds("status", "--json").json()["history"])
        self.assertEqual(self.history()["lines"], [])
        self.assertIn("nothing was delivered, and nothing was pending", self.succeeds("status", "--since", "1h").out)
        for count in (20, 5):
            self.enqueue(count)
            self.succeeds("relay", "--once")
        past = self.history()
        self.assertEqual(past["seconds"], 3600)
        [line] = past["lines"]
        self.assertEqual((line["subscription"], line["queue"], line["type"], line["delivered"], line["failed"]), ("orders", None, None, 25, 0))
        self.assertEqual(sum(point["delivered"] for point in line["points"]), 25)
        self.assertLessEqual(len(line["points"]), 120)
        self.assertGreater(line["p50_seconds"], 0)
        self.assertGreaterEqual(line["p99_seconds"], line["p50_seconds"])
        self.assertAlmostEqual(line["per_second"], 25 / 3600)
        text = self.succeeds("status", "--since", "1h").out
        self.assertRegex(text, r"(?m)^SUBSCRIPTION +DELIVERED +PER SECOND +FAILED +PARKED +DEAD +P50 +P99 +MOST PENDING +OLDEST$")
        self.assertRegex(text, r"(?m)^orders +25 +0\.01 +0 +0 +0 +\d+")

    def test_a_destination_that_is_down_is_in_the_past(self):
        self.config(FILE_SUBSCRIPTION.replace('"orders.jsonl"', '"later/orders.jsonl"'), '[history]\ninterval = "100ms"\n')
        self.enqueue(3)
        self.relay()
        [line] = wait_until(lambda: self.history()["lines"], "a row with what is pending")
        self.assertEqual((line["delivered"], line["most_pending"]), (0, 3))
        self.assertGreater(line["oldest_seconds"], 0)
        self.assertIsNone(line["p50_seconds"])

    def test_wrong_times(self):
        for wrong in ("soon", "5", "0s", "4000d"):
            self.fails(USAGE, "status", "--since", wrong, says=f"--since {wrong}")

    def test_wrong_limits(self):
        self.fails(USAGE, "status", "--max-lag", "60s", says="--check")
        self.fails(USAGE, "status", "--check", "--max-lag", "soon", says="--max-lag soon")

    # ---- the log of a destination that is down

    def test_a_destination_that_is_down_and_well_again(self):
        self.block_the_sink()
        self.enqueue(3)
        process = self.relay()
        down = wait_until(lambda: self.log_lines("cannot deliver, retries"), "the warning")[0]
        self.assertEqual((down["level"], down["subscription"], down["repeats"]), ("warning", "orders", 0))
        self.assertGreater(down["retry_in_seconds"], 0)
        self.assertIn("does not exist", down["reason"])
        self.assertEqual(self.log_lines("delivers again"), [])
        (self.folder / "later").mkdir()
        again = wait_until(lambda: self.log_lines("delivers again"), "the recovery")[0]
        self.assertEqual((again["level"], again["subscription"]), ("info", "orders"))
        self.assertGreater(again["down_seconds"], 0)
        self.assertGreater(again["failures"], 0)
        self.assertEqual(len(self.log_lines("cannot deliver, retries")), 1, "repeats are left out")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), OK)

    def test_a_file_that_was_rotated(self):
        self.relay()
        self.enqueue(1)
        wait_until(lambda: self.row()["delivered"] == 1, "the first event")
        self.assertEqual(self.log_lines("file was rotated, a new one is open"), [])
        (self.folder / "orders.jsonl").rename(self.folder / "orders.jsonl.1")
        self.enqueue(1)
        wait_until(lambda: self.row()["delivered"] == 2, "the second event")
        self.assertEqual(len(self.log_lines("file was rotated, a new one is open")), 1)


class StatusSqlite(OnSqlite, Status, Case):
    table = "outbox_subscription"

    def grow_older(self, seconds):
        self.sql("DROP TRIGGER outbox_event_is_never_changed")
        self.sql(f"UPDATE outbox_event SET created_at = created_at - {seconds * 1_000_000}")


class StatusPostgres(OnPostgres, Status, Case):
    @property
    def table(self):
        return f"{self.flags[1]}.subscription"

    def grow_older(self, seconds):
        self.sql(f"UPDATE {self.flags[1]}.event SET created_at = created_at - interval '{seconds} seconds'")

    def as_login(self):
        """The URL of a login without rights."""
        name = "cli_" + uuid.uuid4().hex[:12]
        self.sql(f"CREATE ROLE {name} LOGIN")
        self.addCleanup(self.sql, f"DROP OWNED BY {name}; DROP ROLE {name}")
        return name, f"{self.store}{'&' if '?' in self.store else '?'}user={name}"

    def test_a_login_without_rights_is_told_which(self):
        name, url = self.as_login()
        arguments = ("status", "--store", url)
        self.fails(1, *arguments, says=("permission denied for schema", "outbox_reader"))
        self.sql(f"GRANT USAGE ON SCHEMA {self.flags[1]} TO {name}")
        self.fails(1, *arguments, says=("permission denied for table", "outbox_reader"))
        self.sql(f"GRANT outbox_reader TO {name}")
        self.succeeds(*arguments)

    def test_a_right_that_was_revoked_is_the_reason(self):
        name, url = self.as_login()
        schema = self.flags[1]
        self.sql(f"GRANT outbox_relay TO {name}")
        self.succeeds("subscription", "apply")
        log = open(self.folder / "relay.log", "w", encoding="utf-8")
        self.addCleanup(log.close)
        self.spawn("relay", "--log-format", "json", "--no-apply", "--store", url, stderr=log)
        wait_until(lambda: "this relay has lanes" in self.log_text(), "the relay")
        self.sql(f"REVOKE SELECT ON {schema}.event FROM outbox_relay")
        self.enqueue(1)
        said = wait_until(lambda: (out := self.succeeds("status").out) and "permission denied" in out and out, "the reason")
        self.assertRegex(said, r"waiting since .*: .*permission denied for (table|view) event")
        error = self.log_lines("delivery is interrupted until a person acts, retries")[0]
        self.assertEqual(error["level"], "error")
        self.assertIn("permission denied", error["reason"])
        self.sql(f"GRANT SELECT ON {schema}.event TO outbox_relay")
        wait_until(lambda: self.row()["delivered"] == 1, "the event, after the GRANT")
        wait_until(lambda: self.row()["trouble"] is None, "the trouble to be cleared")


if __name__ == "__main__":
    unittest.main()
