#!/usr/bin/env python3
"""outbox subscription create, rename, reset, drop."""

import json
import time
import unittest
from datetime import datetime, timezone

from adopting import Session
from program import Case, ERROR, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE, jsonl, wait_until

RENAMED = FILE_SUBSCRIPTION.replace("subscription.orders", "subscription.sales")


MORE = '[subscription.more]\nsink = "null"\n'


class Changes:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)

    def enqueue(self, count, first=0):
        self.succeeds("enqueue", "--jsonl", "-", stdin=jsonl(count, first))

    def relay(self):
        return self.succeeds("relay", "--once", "--log-level", "warn")

    def deliver(self, count, first=0):
        self.enqueue(count, first)
        self.relay()

    def lines(self):
        path = self.folder / "orders.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def names(self):
        return [s["name"] for s in self.succeeds("subscription", "list", "--json").json()["subscriptions"]]

    def verified(self):
        verified = self.succeeds("verify", "--json").json()["subscriptions"]
        self.assertEqual([s["faults"] for s in verified], [[]] * len(verified), verified)
        return {s["name"]: s for s in verified}

    def running_relay(self):
        with open(self.folder / "relay.log", "w", encoding="utf-8") as log:
            relay = self.spawn("relay", stderr=log)
        wait_until(lambda: self.logged("subscription started"), "the relay starts")
        return relay

    def logged(self, words):
        return words in (self.folder / "relay.log").read_text()

    def stop(self, relay):
        relay.terminate()
        self.assertEqual(relay.wait(timeout=60), 0)

    # ---- create

    def test_create(self):
        self.enqueue(3)
        self.assertEqual(self.succeeds("subscription", "create", "orders", "--start", "now").out,
                         "+ orders created, gets events from now on\n")
        self.deliver(2, 3)
        self.assertEqual(len(self.lines()), 2)
        self.fails(ERROR, "subscription", "create", "orders", says=("there is a subscription orders already", "reset"))
        self.fails(USAGE, "subscription", "create", "ordres", says=("[subscription.ordres]", "outbox.toml"))
        self.config(MORE)
        self.fails(USAGE, "subscription", "create", "more", "--start", "noon", says="start")
        self.succeeds("subscription", "create", "more")
        self.assertEqual(self.names(), ["more", "orders"])

    # ---- rename

    def test_all_that_it_has_stays(self):
        self.deliver(5)
        before = self.verified()["orders"]
        self.assertIn("orders is now sales", self.succeeds("subscription", "rename", "orders", "sales").out)
        self.assertEqual(self.names(), ["sales"])
        self.assertEqual(self.verified()["sales"] | {"name": "orders"}, before)
        self.config(RENAMED)
        self.deliver(3, 5)
        self.assertEqual(len(self.lines()), 8)
        self.assertEqual(self.verified()["sales"]["delivered"], 8)

    def test_a_create_that_fails_forgets_no_former_name(self):
        """Else a relay with that name in its file would begin at the beginning of the log."""
        self.succeeds("subscription", "create", "orders")
        self.succeeds("subscription", "rename", "orders", "sales")
        self.fails(USAGE, "subscription", "create", "orders", "--start", "noon", says="start")
        refused = self.outbox("subscription", "apply")
        self.assertEqual((refused.code, refused.out.splitlines()[0]), (ERROR, "! orders is now sales"), refused)
        self.assertEqual(self.names(), ["sales"])

    def test_a_configuration_with_the_old_name_creates_nothing(self):
        self.deliver(5)
        self.succeeds("subscription", "rename", "orders", "sales")
        for flags in ((), ("--dry-run",)):
            refused = self.outbox("subscription", "apply", *flags)
            self.assertEqual((refused.code, refused.out.splitlines()[0]), (ERROR, "! orders is now sales"), refused)
            self.assertIn("[subscription.sales]", refused.err)
        told = self.deliver_with_warning(2)
        self.assertIn("was renamed to sales", told)
        self.assertEqual(self.names(), ["sales"])
        self.assertEqual(len(self.lines()), 7, "sales goes on, and nothing comes again")
        # It may be wanted. Each of the two needs a file of its own: a relay locks it.
        self.config(FILE_SUBSCRIPTION.replace("orders.jsonl", "new.jsonl"))
        self.succeeds("subscription", "create", "orders")
        self.relay()
        self.assertEqual(self.names(), ["orders", "sales"])
        self.verified()

    def deliver_with_warning(self, count):
        self.enqueue(count, 100)
        return self.relay().err

    def test_what_is_no_name(self):
        self.deliver(1)
        self.config(FILE_SUBSCRIPTION + MORE)
        self.succeeds("subscription", "create", "more")
        self.fails(ERROR, "subscription", "rename", "orders", "more", says="there is a subscription more already")
        self.fails(ERROR, "subscription", "rename", "orders", "orders", says="already")
        for name in ("", "a b", "x" * 200, "a/b", "ä\n"):
            self.fails(ERROR, "subscription", "rename", "orders", name, says="name")
        self.fails(USAGE, "subscription", "rename", "orders", "task.mails", says="queue")
        self.fails(ERROR, "subscription", "rename", "ordres", "sales", says="did you mean orders?")
        self.assertEqual(self.names(), ["more", "orders"])
        # There and back again.
        self.succeeds("subscription", "rename", "orders", "sales")
        self.fails(ERROR, "subscription", "rename", "orders", "less", says="orders was renamed to sales")
        self.succeeds("subscription", "rename", "sales", "orders")
        self.assertEqual(self.succeeds("subscription", "apply").out.splitlines()[0], "= orders unchanged")

    def test_a_running_relay_follows_each(self):
        relay = self.running_relay()
        self.enqueue(10)
        wait_until(lambda: len(self.lines()) == 10, "the first ten")
        self.succeeds("subscription", "rename", "orders", "sales")
        self.enqueue(10, 10)
        wait_until(lambda: self.logged("subscription started subscription=sales"), "it delivers under the new name")
        wait_until(lambda: self.numbers() == list(range(20)), "the next ten")
        wait_until(lambda: self.logged("it was renamed or dropped since; the configuration must be changed, too"), "a warning")
        self.succeeds("subscription", "reset", "sales", "--to", "beginning", "--apply")
        wait_until(lambda: len(self.lines()) >= 40, "all of them again")
        self.succeeds("subscription", "drop", "sales", "--apply")
        wait_until(lambda: self.logged("subscription was removed subscription=sales"), "it stops")
        held = len(self.lines())
        self.enqueue(10, 20)
        self.assertEqual(self.names(), [], "only a relay that starts creates it")
        self.stop(relay)
        self.assertEqual(len(self.lines()), held)
        self.assertFalse(self.logged("restart"), "it followed by itself")

    def numbers(self):
        return sorted({line["body"]["number"] for line in self.lines()})

    # ---- reset

    def test_to_the_beginning(self):
        self.deliver(5)
        self.enqueue(2, 5)
        shown = self.succeeds("subscription", "reset", "orders", "--to", "beginning").out
        self.assertIn("would begin at the beginning of the log\n  5 events that it has passed are delivered again\n"
                      "  0 events that wait for it are never", shown)
        self.assertIn("nothing was changed", shown)
        self.relay()
        self.assertEqual(len(self.lines()), 7)
        self.succeeds("subscription", "reset", "orders", "--to", "beginning", "--apply")
        self.relay()
        self.assertEqual([line["body"]["number"] for line in self.lines()], [*range(7), *range(7)])
        self.assertEqual(self.verified()["orders"]["delivered"], 7)

    def test_to_now_says_how_many_are_never_delivered(self):
        self.deliver(5)
        self.enqueue(4, 5)
        self.succeeds("enqueue", "order", "1", "Other", "{}")
        self.config(FILE_SUBSCRIPTION.replace('"file"', '"file"\nevent_types = ["OrderPlaced"]'))
        self.succeeds("subscription", "apply")
        done = self.succeeds("subscription", "reset", "orders", "--to", "now", "--apply", "--json").json()
        self.assertEqual((done["delivered_again"], done["never_delivered"], done["applied"]), (0, 4, True))
        self.deliver(1, 50)
        self.assertEqual([line["body"]["number"] for line in self.lines()], [0, 1, 2, 3, 4, 50])
        self.verified()

    def test_to_a_time(self):
        self.deliver(3)
        time.sleep(1.1)  # the two halves are to be told apart by their times
        between = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.deliver(3, 3)
        told = self.succeeds("subscription", "reset", "orders", "--to", "1h").out
        self.assertIn("6 events that it has passed are delivered again", told)
        told = self.succeeds("subscription", "reset", "orders", "--to", between, "--apply").out
        self.assertIn("orders begins at seq 4\n  3 events that it has passed are delivered again", told)
        self.deliver(2, 6)
        self.assertEqual([line["body"]["number"] for line in self.lines()], [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7])
        self.assertEqual(self.verified()["orders"]["delivered"], 5)

    def test_what_is_no_place(self):
        self.deliver(1)
        for where, says in (("noon", "is not a time"), ("2099-01-01T00:00:00Z", "future"), ("", "is not a time")):
            self.fails(USAGE, "subscription", "reset", "orders", "--to", where, says=says)
        self.fails(USAGE, "subscription", "reset", "orders", says="--to beginning")
        self.fails(ERROR, "subscription", "reset", "ordres", "--to", "now", says="did you mean orders?")

    def test_a_replay_refuses_reset_and_drop(self):
        self.deliver(3)
        self.succeeds("replay", "orders", "--apply", "--no-wait")
        for verb in (("reset", "orders", "--to", "now"), ("drop", "orders")):
            for flags in ((), ("--apply",)):
                self.fails(ERROR, "subscription", *verb, *flags, says=("replay", "outbox replay --stop"))
        # Renamed, it goes on.
        self.succeeds("subscription", "rename", "orders", "sales")
        self.config(RENAMED)
        self.relay()
        self.relay()
        self.assertEqual(len(self.lines()), 6)
        self.succeeds("subscription", "drop", "sales", "--apply")

    # ---- drop

    def test_drop(self):
        self.deliver(3)
        self.enqueue(2, 3)
        shown = self.succeeds("subscription", "drop", "orders").out
        self.assertIn("would be dropped\n  2 events of the log wait for it", shown)
        self.assertIn("outbox.toml has [subscription.orders]", shown)
        self.assertEqual(self.names(), ["orders"])
        self.assertTrue(self.succeeds("subscription", "drop", "orders", "--apply", "--json").json()["applied"])
        self.assertEqual(self.names(), [])
        self.fails(ERROR, "subscription", "drop", "orders", "--apply", says="unknown subscription")
        self.verified()
        # What is left of it goes with history.
        self.assertGreater(self.settlements(), 0)
        self.config(MORE)
        self.relay()
        self.succeeds("prune", "--apply")
        self.assertEqual(self.settlements(), 0)

    def settlements(self):
        table = f"{self.flags[1]}." if self.flags else "outbox_"
        out = self.sql(f"SELECT count(*) FROM {table}settlement s WHERE s.subscription <> 0 AND NOT EXISTS "
                       f"(SELECT 1 FROM {table}subscription x WHERE x.id = s.subscription)")
        return int(out) if isinstance(out, str) else out[0][0]

    def test_the_subscriptions_of_a_queue_are_refused(self):
        table = f"{self.flags[1]}.subscription" if self.flags else "outbox_subscription"
        self.deliver(1)
        self.sql(f"UPDATE {table} SET name = 'task.mails'")
        for verb in (("rename", "task.mails", "x"), ("reset", "task.mails", "--to", "now"), ("drop", "task.mails")):
            self.fails(ERROR, "subscription", *verb, says=("queue mails", "outbox tasks"))

    # ---- interrupted, and at once

    def test_killed_at_any_moment_it_is_done_or_not(self):
        self.deliver(50)
        for number in range(8):
            name = self.names()[0]
            verb = [("rename", name, f"n{number}"), ("reset", name, "--to", "beginning", "--apply")][number % 2]
            process = self.spawn("subscription", *verb)
            time.sleep(0.004 * number)  # any moment is as good
            process.kill()
            process.wait()
            self.assertEqual(len(self.names()), 1)
            self.verified()
        self.config(RENAMED)
        self.succeeds("subscription", "rename", self.names()[0], "sales")
        self.relay()
        self.verified()
        self.assertEqual(self.numbers(), list(range(50)))

    def test_two_at_once(self):
        self.deliver(20)
        for _ in range(3):
            both = [self.spawn("subscription", "reset", "orders", "--to", "beginning", "--apply") for _ in range(2)]
            both += [self.spawn("subscription", "apply"), self.spawn("subscription", "pause", "orders")]
            for process in both:
                _, error = process.communicate(timeout=60)
                self.assertEqual((process.returncode, error), (0, ""))
            self.assertEqual(self.names(), ["orders"])
            self.verified()
        renames = [self.spawn("subscription", "rename", "orders", name) for name in ("a", "b")]
        codes = sorted(process.wait(timeout=60) for process in renames)
        self.assertEqual(codes, [0, ERROR])
        name = self.names()[0]
        drops = [self.spawn("subscription", "drop", name, "--apply") for _ in range(2)]
        self.assertIn(0, [process.wait(timeout=60) for process in drops])
        self.assertEqual(self.names(), [])

    # ---- apply shows each kind of change

    def test_every_kind_of_change_is_shown(self):
        kafka = ('[subscription.orders]\nsink = "kafka"\n%s\n[subscription.orders.kafka]\nbrokers = "b:1"\nsasl.password = "%s"\n')
        self.config(kafka % ("", "hush1"))
        self.succeeds("subscription", "apply")
        changed = ('event_types = ["A*"]\naggregate_types = ["b"]\nmatch_headers = { tenant = "x" }\ntopic = "t"\nformat = "json"\n'
                   'key = "{id}"\nheaders = { h = "v" }\nmax_attempts = 3\nretry_base = "2s"\nretry_factor = 3\nretry_cap = "1m"\n'
                   'max_waiting = 7\non_reject = "stop"\non_dead = "block"\ngroup = "heavy"\nstart = "now"')
        self.config(kafka % (changed, "hush2"))
        shown = self.succeeds("subscription", "apply").out
        self.assertNotIn("hush", shown)
        for setting in ("event_types", "aggregate_types", "match_headers", "topic", "format", "key", "headers", "max_attempts",
                        "retry_base", "retry_factor", "retry_cap", "max_waiting", "on_reject", "on_dead", "group",
                        "kafka.sasl.password"):
            self.assertRegex(shown, rf"(?m)^~ orders changed {setting}[.a-z]*: .* -> .*$")


class ChangesSqlite(OnSqlite, Changes, Case):
    pass


class ChangesPostgres(OnPostgres, Changes, Case):
    def test_what_is_committed_and_parked_while_a_reset_waits_comes_once(self):
        """The reset does not see the event, so it comes by the stream, although its seq is before the new start."""
        self.relay()
        schema = self.flags[1]
        late = Session(self.direct)
        self.addCleanup(late.close)
        [pid] = late.run("BEGIN; SELECT pg_backend_pid()")
        late.run(f"SELECT {schema}.enqueue('order', 'late', 'Placed', '{{}}')")
        time.sleep(1.2)  # times are looked up a second early
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.enqueue(1)
        self.relay()
        late.run(f"INSERT INTO {schema}.parked (subscription, seq, id, lane, key, dead, aggregate_type, aggregate_id, event_type, payload, headers, "
                 f"created_at) SELECT s.id, e.seq, e.id, e.lane, 77, false, e.aggregate_type, e.aggregate_id, e.event_type, "
                 f"e.payload, e.headers, e.created_at FROM {schema}.event e, {schema}.subscription s WHERE e.aggregate_id = 'late'; "
                 f"INSERT INTO {schema}.parked_key (subscription, key, lane, solo, next_attempt_at) "
                 f"SELECT subscription, key, lane, false, now() FROM {schema}.parked WHERE key = 77; "
                 f"SELECT FROM {schema}.fleet FOR UPDATE")
        reset = self.spawn("subscription", "reset", "orders", "--to", moment, "--apply")
        wait_until(lambda: self.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY (pg_blocking_pids(pid))") != "0\n", "the reset waits")
        late.run("COMMIT")
        out, err = reset.communicate(timeout=60)
        self.assertEqual(reset.returncode, 0, out + err)
        self.assertEqual(self.sql(f"SELECT count(*) FROM {schema}.parked"), "0\n")
        self.relay()
        self.assertEqual(sorted(line["key"] for line in self.lines()), ["0", "0", "late"])
        self.verified()


if __name__ == "__main__":
    unittest.main()
