#!/usr/bin/env python3
"""outbox audit: each change that a person makes leaves its row, and nothing else does."""

import json
import os
import pwd
import re
import signal
import subprocess
import unittest
import uuid
from urllib.parse import urlsplit

from adopting import Adopting, HAND
from parked_rows import make_parked, park
from program import Case, ERROR, OK, OnPostgres, OnSqlite, USAGE, wait_until

ME = pwd.getpwuid(os.geteuid()).pw_name

ORDERS = '[subscription.orders]\nsink = "null"\n'
COPIES = '[subscription.copies]\nsink = "null"\n'
HANDLERS = """
[task.bad]
command = ["./bad.sh"]
queue = "mail"

[schedule.monthly]
type = "bad"
queue = "mail"
cron = "@monthly"
"""

# Verbs that change nothing of the outbox, or change it for no person: docs/design/audit.md.
OTHERS = {"init", "migrate", "enqueue", "relay", "work", "consume", "inbox", "status", "top", "events", "audit", "doctor", "sinks", "completion", "man", "version", "console token list",
          "help", "subscription list", "parked list", "parked errors", "parked show", "tasks list", "tasks show", "tasks schedule list", "config check",
          "config show", "config reference"}


class Change:
    """A verb that changes something: `does` leaves `rows` (verb, subscription, count); `dry` and `fails` leave none.

    In the words DEAD is the seq of the dead event, and TASK the id of the dead task. A subscription QUEUE stands for a row of each
    subscription of the queue."""

    def __init__(self, does, *rows, dry=None, fails=None, reason=None, chosen=None, before=None):
        self.does, self.rows, self.dry, self.fails = does, rows, dry, fails
        self.reason, self.chosen, self.before = reason, chosen, before


def apply_two(case):
    case.config('[subscription.orders]\nsink = "null"\nmax_attempts = 3\n' + COPIES)


def pause_orders(case):
    case.succeeds("subscription", "pause", "orders")


def find_differences(case):
    """As if continuous verification had found some."""
    now = "now()" if case.flags else "1"
    case.sql(f"INSERT INTO {case.table('verified')} (subscription, place, events, differences, verifier, at, revision) "
             f"VALUES (1, '', 0, 2, 'a test', {now}, 1)")


def pause_queue(case):
    case.with_tasks()
    case.succeeds("tasks", "pause", "mail")


def pause_schedule(case):
    case.with_tasks()
    case.succeeds("tasks", "schedule", "pause", "monthly")


NOBODY = ("parked", "retry", "4711")

# Every verb that changes something for a person. A new one belongs here.
CHANGES = {
    "parked retry": Change(("parked", "retry", "DEAD"), ("parked retry", "orders", 1), dry=("parked", "retry", "DEAD", "--preview"),
                           fails=NOBODY),
    "parked discard": Change(("parked", "discard", "--state", "dead", "--apply", "--reason", "a duplicate"), ("parked discard", "orders", 1),
                             dry=("parked", "discard", "--state", "dead"), reason="a duplicate", chosen={"state": "dead"},
                             fails=("parked", "discard", "4711", "--apply", "--reason", "none")),
    "parked edit": Change(("parked", "edit", "DEAD", "--payload", '{"secret": 2}', "--apply", "--reason", "a comma"),
                          ("parked edit", "orders", 1), dry=("parked", "edit", "DEAD", "--payload", "{}"), reason="a comma",
                          fails=("parked", "edit", "4711", "--payload", "{}", "--apply", "--reason", "none")),
    "subscription apply": Change(("subscription", "apply"), ("subscription apply", "copies", 1), ("subscription apply", "orders", 1),
                                 dry=("subscription", "apply", "--dry-run"), before=apply_two),
    "subscription create": Change(("subscription", "create", "copies", "--start", "now"), ("subscription create", "copies", 1),
                                  chosen={"start": "now"}, fails=("subscription", "create", "orders"),
                                  before=lambda case: case.config(ORDERS + COPIES)),
    "subscription pause": Change(("subscription", "pause", "orders", "--reason", "noon"), ("subscription pause", "orders", 1), reason="noon",
                                 chosen={}, fails=("subscription", "pause", "nobody")),
    "subscription resume": Change(("subscription", "resume", "orders"), ("subscription resume", "orders", 1), before=pause_orders,
                                  fails=("subscription", "resume", "nobody")),
    "subscription rename": Change(("subscription", "rename", "orders", "sales"), ("subscription rename", "orders", 1),
                                  chosen={"new_name": "sales"}, fails=("subscription", "rename", "nobody", "sales")),
    "subscription reset": Change(("subscription", "reset", "orders", "--to", "now", "--apply"), ("subscription reset", "orders", 1),
                                 dry=("subscription", "reset", "orders", "--to", "now"), chosen={"to": "now"},
                                 fails=("subscription", "reset", "nobody", "--to", "now", "--apply")),
    "subscription drop": Change(("subscription", "drop", "orders", "--apply"), ("subscription drop", "orders", 1),
                                dry=("subscription", "drop", "orders"), fails=("subscription", "drop", "nobody", "--apply")),
    "replay": Change(("replay", "orders", "--from-seq", "1", "--apply", "--no-wait"), ("replay start", "orders", 1), dry=("replay", "orders"),
                     chosen={"from_seq": 1}, fails=("replay", "nobody", "--apply")),
    "console token add": Change(("console", "token", "add", "anna", "--role", "viewer"), ("console token add", None, 1),
                                chosen={"name": "anna", "role": "viewer"}, fails=("console", "token", "remove", "nobody")),
    "console token remove": Change(("console", "token", "remove", "bert"), ("console token remove", None, 1), chosen={"name": "bert"},
                                   before=lambda case: case.succeeds("console", "token", "add", "bert", "--role", "admin"),
                                   fails=("console", "token", "add", "bert", "--role", "viewer")),
    "verify": Change(("verify", "--acknowledge"), ("verify acknowledge", "orders", 2), before=find_differences,
                     fails=("verify", "--acknowledge", "--subscription", "nobody")),
    "tasks retry": Change(("tasks", "retry", "TASK"), ("tasks retry", "task.mail", 1), dry=("tasks", "retry", "--state", "dead"),
                          before=lambda case: case.with_tasks()),
    "tasks cancel": Change(("tasks", "cancel", "--type", "bad", "--apply", "--reason", "withdrawn"), ("tasks cancel", "task.mail", 1),
                           dry=("tasks", "cancel", "TASK", "--preview"), reason="withdrawn", chosen={"type": "bad"},
                           before=lambda case: case.with_tasks()),
    "tasks pause": Change(("tasks", "pause", "mail", "--reason", "repair"), ("tasks pause", "QUEUE", 1), reason="repair",
                          chosen={"queue": "mail"}, fails=("tasks", "pause", "nobody"), before=lambda case: case.with_tasks()),
    "tasks resume": Change(("tasks", "resume", "mail"), ("tasks resume", "QUEUE", 1), fails=("tasks", "resume", "nobody"),
                           before=pause_queue),
    "tasks schedule pause": Change(("tasks", "schedule", "pause", "monthly"), ("tasks schedule pause", None, 1),
                                   chosen={"schedule": "monthly"}, fails=("tasks", "schedule", "pause", "nobody"),
                                   before=lambda case: case.with_tasks()),
    "tasks schedule resume": Change(("tasks", "schedule", "resume", "monthly"), ("tasks schedule resume", None, 1),
                                    fails=("tasks", "schedule", "resume", "nobody"), before=pause_schedule),
    "tasks schedule remove": Change(("tasks", "schedule", "remove", "monthly", "--apply"), ("tasks schedule remove", None, 1),
                                    dry=("tasks", "schedule", "remove", "monthly"), fails=("tasks", "schedule", "remove", "nobody"),
                                    before=lambda case: case.with_tasks()),
    # These have tests of their own.
    "prune": None,
    "adopt": None,
}


class Recorded:
    """What is recorded since a moment."""

    def changes(self, *arguments):
        return self.succeeds("audit", "--json", *arguments).json()["changes"]

    def newest(self):
        return max((row["id"] for row in self.changes("--limit", "1")), default=0)

    def since(self, last):
        """The rows after this one, the oldest first."""
        return [row for row in reversed(self.changes()) if row["id"] > last]

    def table(self, name):
        return f"{self.flags[1]}.{name}" if self.flags else f"outbox_{name}"


class Audit(Recorded):
    def setUp(self):
        super().setUp()
        make_parked(self)
        self.words = {"DEAD": str(self.parked("--state", "dead")[0]["seq"])}

    def parked(self, *arguments):
        return self.succeeds("parked", "list", "--json", *arguments).json()["events"]

    def with_tasks(self):
        """A queue with a dead task and a schedule."""
        self.write("bad.sh", "#!/bin/sh\nexit 65\n").chmod(0o755)
        self.config(HANDLERS)
        line = {"aggregate_type": "outbox-task:mail", "event_type": "bad", "payload": {}}
        self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line) + "\n")
        worker = self.spawn("work")
        [dead] = wait_until(lambda: self.succeeds("tasks", "list", "--state", "dead", "--json").json()["tasks"], "the task is dead")
        wait_until(lambda: self.succeeds("tasks", "schedule", "--json").json()["schedules"], "the schedule is written")
        worker.send_signal(signal.SIGTERM)
        _, error = worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, OK, error)
        self.words["TASK"] = dead["id"]

    def of_queue(self):
        """The subscriptions of the queue, one for each priority."""
        return [one["name"] for one in self.succeeds("subscription", "list", "--json").json()["subscriptions"] if one["name"] != "orders"]

    def expected(self, change):
        rows = []
        for verb, subscription, count in change.rows:
            names = self.of_queue() if subscription == "QUEUE" else [subscription]
            rows += [(verb, name, count) for name in names]
        return sorted(rows, key=str)

    def given(self, words):
        return [self.words.get(word, word) for word in words]

    def check(self, verb):
        change = CHANGES[verb]
        if change.before:
            change.before(self)
        last = self.newest()
        if change.dry:
            self.succeeds(*self.given(change.dry))
        if change.fails:
            self.fails(ERROR, *change.fails)
        self.assertEqual(self.since(last), [], "what changed nothing")
        expected = self.expected(change)
        self.succeeds(*self.given(change.does))
        rows = self.since(last)
        self.assertEqual(sorted(((row["verb"], row["subscription"], row["count"]) for row in rows), key=str), expected)
        for row in rows:
            self.assertEqual((row["person"], row["origin"], row["reason"]), (ME, "command line", change.reason))
            self.assertEqual(row["queue"], "mail" if (row["subscription"] or "").startswith("task") else None)
            self.assertNotIn("secret", json.dumps(row))
            if change.chosen is not None:
                self.assertEqual(row["filter"], change.chosen)

    # ---- all verbs

    def verbs(self, path=""):
        """Those without verbs of their own, by the help."""
        text = self.succeeds(*path.split(), "--help").out
        if "\nVerbs:\n" not in text:
            yield path
            return
        for name in re.findall(r"(?m)^  ([a-z]+)(?: |$)", text.split("\nVerbs:\n")[1].split("\n\n")[0]):
            yield from self.verbs(f"{path} {name}".strip())

    def test_each_verb_is_known_to_change_something_or_not(self):
        verbs = set(self.verbs())
        self.assertEqual(verbs - OTHERS - set(CHANGES), set(), "a new verb: add it to CHANGES if a person changes something with it")
        self.assertEqual(set(CHANGES) - verbs, set(), "verbs that are gone")

    # ---- what belongs to no verb of the table

    def test_a_change_of_nothing_leaves_nothing(self):
        last = self.newest()
        self.succeeds("subscription", "apply")
        self.succeeds("parked", "retry", "--error", "no such error", "--apply")
        self.succeeds("verify", "--acknowledge")
        self.succeeds("prune", "--apply")
        self.assertEqual(self.since(last), [])

    def test_a_change_that_fails_in_the_store_leaves_nothing(self):
        self.succeeds("replay", "orders", "--apply", "--no-wait")
        last = self.newest()
        self.fails(ERROR, "replay", "orders", "--apply", "--no-wait", says="another replay")
        self.assertNotEqual(self.outbox("subscription", "drop", "orders", "--apply").code, OK)
        self.assertEqual(self.since(last), [])

    def test_a_row_that_cannot_be_written_prevents_the_change(self):
        table = self.table("audit")
        if self.flags:
            self.sql(f"ALTER TABLE {table} ADD CHECK (verb <> 'parked discard')")
        else:
            self.sql(f"CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN NEW.verb = 'parked discard' BEGIN SELECT RAISE(ABORT, 'full'); END")
        before = self.parked()
        self.assertNotEqual(self.outbox("parked", "discard", "--state", "dead", "--apply", "--reason", "noon").code, OK)
        self.assertEqual(self.parked(), before)

    def test_a_replay_is_recorded_when_it_is_stopped_and_resumed(self):
        started = self.succeeds("replay", "orders", "--apply", "--no-wait", "--json").json()["replay"]["id"]
        last = self.newest()
        self.succeeds("replay", "--stop", started)
        self.succeeds("replay", "--resume", started, "--no-wait")
        self.assertEqual([(row["verb"], row["subscription"], row["filter"], row["count"]) for row in self.since(last)],
                         [("replay stop", "orders", {"replay": started}, 1), ("replay resume", "orders", {"replay": started}, 1)])

    def test_old_rows_go_with_a_pass_of_retention(self):
        table = self.table("audit")
        self.succeeds("subscription", "pause", "orders")
        newest = self.newest()
        ago = "now() - interval '{} days'" if self.flags else "at - {} * 86400000000"
        self.sql(f"UPDATE {table} SET at = {ago.format(401)}")
        self.succeeds("subscription", "resume", "orders")
        self.sql(f"UPDATE {table} SET at = {ago.format(2)} WHERE id > {newest}")
        self.succeeds("prune", "--apply")
        self.assertEqual([row["verb"] for row in self.changes()], ["subscription resume"])
        self.succeeds("subscription", "pause", "orders")
        self.succeeds("prune", "--apply", "--set", "audit.keep=1d")
        self.assertEqual([row["verb"] for row in self.changes()], ["subscription pause"])
        self.fails(USAGE, "prune", "--set", "audit.keep=1h", says="audit.keep")

    # ---- killed

    def stall_at_second_batch(self):
        """The statement that removes parked events of the second subscription does not end."""
        if self.flags:
            self.sql(f"""CREATE FUNCTION {self.flags[1]}.stall() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3600); RETURN OLD; END';
                CREATE TRIGGER stall BEFORE DELETE ON {self.table('parked')} FOR EACH ROW WHEN (OLD.subscription = 2)
                EXECUTE FUNCTION {self.flags[1]}.stall()""")
            return
        self.sql("CREATE VIEW endless AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c")
        self.sql("CREATE TRIGGER stall BEFORE DELETE ON outbox_parked WHEN OLD.subscription = 2 BEGIN SELECT n FROM endless; END")

    def end_sessions(self):
        """Those of the killed program: the server does not notice that it is gone."""
        if not self.flags:
            return
        ours = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        wait_until(lambda: self.sql(f"SELECT count(pg_terminate_backend(pid)) {ours}") == "0\n", "its sessions have ended")

    def test_a_command_that_is_killed_between_two_batches_has_recorded_what_it_did(self):
        self.config(ORDERS + COPIES)
        self.succeeds("subscription", "apply")
        park(self, subscription=2)
        self.stall_at_second_batch()
        last = self.newest()
        command = self.spawn("parked", "discard", "--state", "dead", "--apply", "--reason", "noon")
        wait_until(lambda: self.since(last), "the first batch is committed")
        command.send_signal(signal.SIGKILL)
        command.wait()
        self.end_sessions()
        self.assertEqual([(row["verb"], row["subscription"], row["count"]) for row in self.since(last)], [("parked discard", "orders", 1)])
        self.assertEqual([event["subscription"] for event in self.parked("--state", "dead")], ["copies"])

    # ---- the verb

    def test_it_is_listed_by_people_and_filtered(self):
        self.succeeds("subscription", "pause", "orders", "--reason", "it is noon")
        self.succeeds("parked", "discard", "--key", "a", "--apply", "--reason", "a duplicate")
        [discard, pause, apply] = self.changes()
        self.assertEqual([row["verb"] for row in (discard, pause, apply)], ["parked discard", "subscription pause", "subscription apply"])
        text = self.succeeds("audit").out
        self.assertRegex(text, rf"(?m)^{discard['id']} +\S+Z +{re.escape(ME)} +command line +parked discard +orders +1$")
        self.assertIn('"key"', text)
        self.assertIn("  reason: a duplicate\n", text)
        self.assertEqual(self.changes("--limit", "1"), [discard])
        self.assertIn(f"--before {discard['id']}", self.succeeds("audit", "--limit", "1").out)
        self.assertEqual(self.changes("--before", discard["id"]), [pause, apply])
        self.assertEqual(self.changes("--before", discard["id"], "--limit", "1"), [pause])
        self.assertEqual(self.changes("--since", "1d"), [discard, pause, apply])
        self.assertEqual(self.changes("--since", pause["at"]), [discard, pause])
        self.assertEqual(self.changes("--since", "2999-01-01T00:00:00Z"), [])
        self.assertEqual(self.changes("--person", ME), [discard, pause, apply])
        self.assertEqual(self.changes("--person", "nobody"), [])
        self.assertEqual(self.changes("--subscription", "copies"), [])
        self.assertEqual(self.succeeds("audit", "--person", "nobody").out, "nothing was changed by a person\n")

    def test_wrong_input(self):
        self.fails(USAGE, "audit", "--limit", "0", says="--limit")
        self.fails(USAGE, "audit", "--since", "soon", says="is not a time")

    def test_a_reason_is_one_line_for_a_terminal(self):
        self.succeeds("subscription", "pause", "orders", "--reason", "two\nlines \x1b[31m")
        self.assertIn("  reason: two lines [31m\n", self.succeeds("audit").out)
        self.assertEqual(self.changes()[0]["reason"], "two\nlines \x1b[31m")


def add_tests():
    """One for each verb of the table."""
    for verb, change in CHANGES.items():
        if change:
            setattr(Audit, "test_recorded_" + verb.replace(" ", "_"), lambda self, verb=verb: self.check(verb))


add_tests()


class AuditSqlite(OnSqlite, Audit, Case):
    pass


class AuditPostgres(OnPostgres, Audit, Case):
    pass


class AuditDelivered(Recorded):
    """Three events that are delivered, and one more."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.small_parts()
        self.config(ORDERS)
        self.succeeds("subscription", "apply")
        for number in range(3):
            self.succeeds("enqueue", "order", number, "Placed", "{}")
        self.close_part()
        self.succeeds("enqueue", "order", "last", "Placed", "{}")
        self.succeeds("relay", "--once")
        self.last = self.newest()

    def prune(self, *arguments):
        return self.succeeds("prune", "--older-than", "0s", "--json", *arguments).json()["removed"]

    def test_what_relays_and_writers_do_is_not_recorded(self):
        self.config(ORDERS + COPIES)
        self.succeeds("enqueue", "order", "c", "Placed", "{}")
        self.succeeds("relay", "--once")
        self.succeeds("migrate")
        self.assertIn("copies", self.succeeds("subscription", "list").out)
        self.assertEqual(self.since(self.last), [])

    def test_a_pass_of_retention_is_recorded_by_what_it_removed(self):
        self.prune()
        self.assertEqual(self.since(self.last), [])
        removed = self.prune("--apply")
        self.assertGreaterEqual(removed["events"], 3)
        rows = self.since(self.last)
        self.assertEqual(sum(row["count"] for row in rows), removed["events"])
        self.assertEqual({(row["verb"], row["subscription"]) for row in rows}, {("prune", None)})
        self.assertLessEqual(len(rows), removed["parts"])
        last = self.newest()
        self.prune("--apply")
        self.assertEqual(self.since(last), [])

    def test_a_replay_from_an_archive_is_recorded_once_it_begins(self):
        (self.folder / "archive").mkdir()
        self.prune("--archive", "archive", "--apply")
        self.succeeds("enqueue", "order", "a", "Placed", "{}")
        self.succeeds("relay", "--once")
        last = self.newest()
        line = json.loads(next(iter((self.folder / "archive").glob("*.jsonl"))).read_text(encoding="utf-8").splitlines()[0])
        [there] = self.succeeds("events", "--limit", "1", "--json").json()["events"]
        (self.folder / "other").mkdir()
        self.write("other/events-x.jsonl", json.dumps(line | {"seq": there["seq"], "id": there["id"]}) + "\n")
        self.fails(ERROR, "replay", "orders", "--archive", "other", "--apply", says="the log still has all events that were chosen")
        self.assertEqual(self.since(last), [], "it was given up before it began")
        self.succeeds("replay", "orders", "--archive", "archive", "--apply", "--no-wait")
        self.assertEqual([(row["verb"], row["subscription"], row["filter"], row["count"]) for row in self.since(last)],
                         [("replay start", "orders", {"archive": "archive"}, 1)])


# What the console's API does with a verb: src/console/operations.cpp.
OF_CONSOLE = ("parked retry", "parked discard", "parked edit", "subscription pause", "subscription resume", "replay", "verify", "tasks retry",
              "tasks cancel", "tasks pause", "tasks resume", "tasks schedule pause", "tasks schedule resume", "tasks schedule remove")


class AuditOfConsole(OnPostgres, Audit, Case):
    """The role outbox_console can do, and record, whatever the console's API does."""

    def setUp(self):
        super().setUp()
        self.login = "console_" + uuid.uuid4().hex[:12]
        self.sql(f"CREATE ROLE {self.login} LOGIN IN ROLE outbox_console")
        self.addCleanup(subprocess.run, ["psql", self.server, "-qXc", f"DROP ROLE {self.login}"], check=False, capture_output=True)

    def given(self, words):
        url = urlsplit(self.direct)
        return [*super().given(words), "--store", url._replace(netloc=f"{self.login}@{url.netloc.rpartition('@')[2]}").geturl()]

    def test_as_console_a_replay_is_stopped_and_goes_on(self):
        started = self.succeeds(*self.given(["replay", "orders", "--apply", "--no-wait", "--json"])).json()["replay"]["id"]
        self.succeeds(*self.given(["replay", "--stop", started]))
        self.succeeds(*self.given(["replay", "--resume", started, "--no-wait"]))


for name in dir(Audit):
    if name.startswith("test_"):
        setattr(AuditOfConsole, name, None)  # Those are not about the role.
for verb in OF_CONSOLE:
    setattr(AuditOfConsole, "test_as_console_" + verb.replace(" ", "_"), lambda self, verb=verb: self.check(verb))


class AuditDeliveredSqlite(OnSqlite, AuditDelivered, Case):
    pass


class AuditDeliveredPostgres(OnPostgres, AuditDelivered, Case):
    pass


class AuditAdoption(Recorded, Adopting):
    def test_each_step_of_an_adoption_is_recorded(self):
        self.config()
        self.table_of_theirs()
        self.insert("1", 1)
        self.succeeds(*self.adopt())
        self.assertEqual(self.changes(), [])
        self.succeeds(*self.adopt("--apply"))
        rows = self.since(0)
        self.assertEqual({(row["verb"], row["filter"]["table"]) for row in rows}, {("adopt", self.name)})
        self.assertEqual(sum(row["count"] for row in rows), 1, "the pending row was taken over")
        last = self.newest()
        self.succeeds(*self.adopt("--apply"))
        self.succeeds(*self.adopt("--undo"))
        self.assertEqual(self.since(last), [], "nothing to do")
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.assertEqual({row["verb"] for row in self.since(last)}, {"adopt undo"})

    def table_of_theirs(self):
        Adopting.table(self, HAND)


if __name__ == "__main__":
    unittest.main()
