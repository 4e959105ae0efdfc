#!/usr/bin/env python3
"""outbox tasks, on both stores, beside a worker."""

import json
import signal
import unittest
import uuid

from program import Case, ERROR, OK, OnPostgres, OnSqlite, USAGE, wait_until

HANDLERS = {
    "note": "cat >> done\n",
    "slow": "while [ ! -e go ]; do sleep 0.05; done; echo slow >> done\n",
    "fails": "[ -e go ] && exit 0; echo no paper >&2; exit 1\n",
    "bad": "[ -e go ] && exit 0; echo unreadable >&2; exit 65\n",
}


class Tasks:
    def setUp(self):
        super().setUp()
        self.migrate()
        text = ""
        for name, script in HANDLERS.items():
            program = self.write(name + ".sh", "#!/bin/sh\n" + script)
            program.chmod(0o755)
            text += f'\n[task."{name}"]\ncommand = ["./{program.name}"]\nqueue = "mail"\n'
        self.config(text, '[worker]\ndelays = ["1h"]\njitter = 0\n[relay]\nlease = "2s"')

    def start(self):
        log = open(self.folder / "log", "a", encoding="utf-8")
        self.addCleanup(log.close)
        return self.spawn("work", stdout=None, stderr=log)

    def enqueue(self, kind, key="", queue="mail", headers=None):
        name = str(uuid.uuid4())
        line = {"id": name, "aggregate_type": "outbox-task:" + queue, "aggregate_id": key, "event_type": kind,
                "payload": {"n": 1}, "headers": headers or {}}
        self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line) + "\n")
        return name

    def listed(self, *arguments):
        return self.succeeds("tasks", "list", "--json", *arguments).json()["tasks"]

    def task(self, name):
        return self.succeeds("tasks", "show", name, "--json").json()

    def becomes(self, name, state):
        wait_until(lambda: self.task(name)["state"] == state, f"{name} is {state}")

    def test_what_waits_in_the_log_is_pending_and_cannot_be_cancelled(self):
        worker = self.start()
        first = self.enqueue("note")
        self.becomes(first, "completed")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), OK)
        self.succeeds("enqueue", "order", "42", "OrderPlaced", "{}")
        names = [self.enqueue("note", "k"), self.enqueue("slow")]
        self.assertEqual(self.listed(), [])
        pending = self.listed("--state", "pending")
        self.assertEqual([(t["id"], t["queue"], t["type"], t["key"], t["state"]) for t in pending],
                         [(names[0], "mail", "note", "k", "pending"), (names[1], "mail", "slow", None, "pending")])
        self.assertEqual([t["id"] for t in self.listed("--state", "pending", "--type", "slow")], [names[1]])
        self.assertEqual([t["id"] for t in self.listed("--state", "pending", "--key", "k")], [names[0]])
        self.assertTrue(self.succeeds("tasks", "list", "--state", "pending", "--limit", "1", "--json").json()["more"])
        self.assertRegex(self.succeeds("tasks", "list", "--state", "pending").out, r"(?m)^mail +pending +note +k +20")
        for verb in (("cancel", names[0], "--reason", "x"), ("retry", names[0])):
            self.fails(ERROR, "tasks", *verb, says=("is pending", "in the log only", "outbox tasks pause mail"))
        self.fails(ERROR, "tasks", "cancel", first, "--reason", "x", says="is completed, it cannot be changed")
        self.assertEqual(self.task(names[0])["state"], "pending")

    def test_each_state_is_listed_and_shown(self):
        self.start()
        slow = self.enqueue("slow", "k")
        self.becomes(slow, "running")
        behind = self.enqueue("note", "k")
        self.becomes(behind, "waiting")
        fails, bad = self.enqueue("fails"), self.enqueue("bad")
        later = self.enqueue("note", headers={"task-execute-at": "2999-01-01T00:00:00Z"})
        self.becomes(fails, "retrying")
        self.becomes(bad, "dead")
        wait_until(lambda: len(self.listed()) == 5, "all have rows")
        self.assertEqual({t["id"]: t["state"] for t in self.listed()},
                         {slow: "running", behind: "waiting", fails: "retrying", bad: "dead", later: "scheduled"})
        for name, state in ((slow, "running"), (behind, "waiting"), (fails, "retrying"), (bad, "dead"), (later, "scheduled")):
            self.assertEqual([t["id"] for t in self.listed("--state", state)], [name])
        self.assertEqual(len(self.listed("--queue", "mail", "--type", "note")), 2)
        self.assertEqual(len(self.listed("--key", "k")), 2)
        self.assertEqual(len(self.listed("--limit", "2")), 2)
        text = self.succeeds("tasks", "list").out
        self.assertRegex(text, r"(?m)^QUEUE +STATE +TYPE +KEY +ATTEMPTS +NEXT RUN +ID$")
        self.assertRegex(text, r"(?m)^  runs on \S+ since 20")
        self.assertIn("no paper", text)

        shown = self.task(slow)
        self.assertEqual((shown["queue"], shown["type"], shown["key"], shown["payload"].replace(" ", ""), shown["headers"]),
                         ("mail", "slow", "k", '{"n":1}', {}))
        self.assertTrue(shown["worker"] and shown["running_since"])
        self.assertEqual(self.task(behind)["waiting_for"], slow)
        self.assertIn("no paper", self.task(fails)["error"])
        self.assertIn("unreadable", self.task(bad)["error"])
        self.assertRegex(self.succeeds("tasks", "show", bad).out, r"(?m)^state: +dead$")

    def test_a_scheduled_one_is_no_trouble(self):
        self.start()
        later = self.enqueue("note", headers={"task-execute-at": "2999-01-01T00:00:00Z"})
        self.becomes(later, "scheduled")
        fails = self.enqueue("fails")
        log = self.folder / "log"
        wait_until(lambda: fails in log.read_text() or "events are parked" in log.read_text(), "the other one is")
        self.assertRegex(log.read_text(), r"events are parked .*events=1 .*no paper")
        self.assertFalse(self.task(later)["error"])

    def test_dead_and_retrying_and_scheduled_ones_run_again_at_once(self):
        self.start()
        names = [self.enqueue("fails"), self.enqueue("bad", "k"), self.enqueue("note", headers={"task-execute-at": "2999-01-01T00:00:00Z"})]
        wait_until(lambda: len([t for t in self.listed() if t["state"] in ("dead", "retrying", "scheduled")]) == 3
                   and not self.listed("--state", "pending"), "they wait")
        wait_until(lambda: self.task(names[1])["state"] == "dead" and self.task(names[0])["attempts"] == 1, "they have run")
        dry = self.succeeds("tasks", "retry", "--queue", "mail").out
        self.assertEqual(dry.count("would run again mail "), 3)
        self.assertIn("3 tasks; nothing was changed", dry)
        self.assertEqual(self.task(names[1])["state"], "dead")
        (self.folder / "go").touch()
        self.assertIn("1 task runs again\n1 task was dead", self.succeeds("tasks", "retry", names[1]).out)
        self.becomes(names[1], "completed")
        self.assertIn("2 tasks run again", self.succeeds("tasks", "retry", "--queue", "mail", "--apply").out)
        for name in names:
            self.becomes(name, "completed")

    def test_a_cancelled_one_is_gone_and_its_handler_told(self):
        self.start()
        slow, behind, bad = self.enqueue("slow", "k"), self.enqueue("note", "k"), self.enqueue("bad")
        self.becomes(slow, "running")
        self.becomes(bad, "dead")
        self.fails(ERROR, "tasks", "retry", slow, says="it runs now")
        self.fails(USAGE, "tasks", "cancel", slow, says="--reason is missing")
        self.assertIn("would cancel mail bad", self.succeeds("tasks", "cancel", "--state", "dead").out)
        self.assertIn("1 task cancelled\n1 task runs now", self.succeeds("tasks", "cancel", slow, "--reason", "withdrawn").out)
        self.becomes(behind, "completed")
        self.assertIn("1 task cancelled", self.succeeds("tasks", "cancel", "--state", "dead", "--apply", "--reason", "wrong").out)
        shown = self.task(slow)
        self.assertEqual((shown["state"], shown["reason"]), ("cancelled", "withdrawn"))
        self.assertTrue(shown["ended_by"])
        self.assertEqual(self.listed(), [])

    def test_a_queue_is_paused_and_resumed(self):
        self.start()
        self.becomes(self.enqueue("note"), "completed")
        self.assertIn("queue mail is paused", self.succeeds("tasks", "pause", "mail", "--reason", "no ink").out)
        self.assertIn("reason: no ink", self.succeeds("status").out)
        wait_until(lambda: "paused" in (self.folder / "log").read_text(encoding="utf-8"), "the worker knows")
        name = self.enqueue("note")
        self.assertEqual(self.task(name)["state"], "pending")
        self.succeeds("tasks", "resume", "mail")
        self.becomes(name, "completed")

    def test_a_type_that_is_stopped_stays_so_when_it_is_paused(self):
        worker = self.start()
        self.becomes(self.enqueue("note"), "completed")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), OK)
        self.assertNotIn("stays stopped", self.succeeds("tasks", "pause", "mail", "--type", "note").out)
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"]
        name = next(one["name"] for one in listed if one["event_types"] == ["note"])
        table = f"{self.flags[1]}.subscription" if self.flags else "outbox_subscription"
        self.sql(f"UPDATE {table} SET state = 'stopped', reason = 'too large', stopped_seq = 7 WHERE name = '{name}'")
        told = self.succeeds("tasks", "pause", "mail", "--type", "note").out
        self.assertIn(f"type note of queue mail is paused: its tasks wait; what runs goes on\n{name} stays stopped: too large\n", told)

    def status(self, *arguments):
        return self.succeeds("status", "--json", *arguments).json()

    def test_status_shows_queues_by_type_and_workers(self):
        self.assertEqual((self.status()["queues"], self.status()["workers"]), ([], []))
        worker = self.start()
        slow = self.enqueue("slow", "k")
        self.becomes(slow, "running")
        self.enqueue("note", "k")
        self.enqueue("bad")
        self.enqueue("note", headers={"task-execute-at": "2999-01-01T00:00:00Z"})
        self.enqueue("new")
        self.enqueue("note")
        self.succeeds("enqueue", "order", "42", "OrderPlaced", "{}")
        wait_until(lambda: len(self.listed()) == 5 and len(self.listed("--state", "dead")) == 1
                   and not self.listed("--state", "pending"), "all have rows")
        report = self.status()
        lines = {line["type"]: line for line in report["queues"]}
        self.assertEqual(set(lines), {"slow", "note", "bad", "fails", "new"})
        states = ("ready", "running", "scheduled", "retrying", "waiting", "dead")
        for kind, counts in (("slow", (0, 1, 0, 0, 0, 0)), ("note", (0, 0, 1, 0, 1, 0)), ("bad", (0, 0, 0, 0, 0, 1)),
                             ("fails", (0, 0, 0, 0, 0, 0)), ("new", (0, 0, 0, 1, 0, 0))):
            self.assertEqual(tuple(lines[kind][state] for state in states), counts, kind)
            self.assertEqual((lines[kind]["queue"], lines[kind]["more"]), ("mail", False))
            self.assertEqual(lines[kind]["has_handler"], kind != "new")
        self.assertEqual([(w["alive"], sorted(w["queues"]["mail"]), w["running"]) for w in report["workers"]],
                         [(True, sorted(HANDLERS), 1)])
        self.assertTrue(any("no worker has a handler for type new, and 1 task of it waits" in problem for problem in report["problems"]), report["problems"])
        self.assertTrue(any("1 dead task; they do not run again" in problem and "--queue mail" in problem for problem in report["problems"]), report["problems"])
        text = self.succeeds("status").out
        self.assertRegex(text, r"(?m)^QUEUE +TYPE +READY +RUNNING +SCHEDULED +RETRYING +WAITING +DEAD +OLDEST +P50 +P95 +P99$")
        self.assertRegex(text, r"(?m)^mail +slow +0 +1 +0 +0 +0 +0 +- ")
        self.assertRegex(text, r"(?m)^WORKER +ALIVE +QUEUES +RUNNING +SEEN$")

        (self.folder / "go").touch()
        self.becomes(slow, "completed")
        done = lambda: next(line for line in self.status()["queues"] if line["type"] == "slow")["p50_seconds"]
        took = wait_until(done, "a heartbeat has told how long it took")
        self.assertGreater(took, 0.5)

        worker.kill()
        worker.wait()
        wait_until(lambda: any("no worker is alive" in problem for problem in self.status()["problems"]), "its end")
        for _ in range(3):
            self.enqueue("note")
        note = lambda *limit: next(line for line in self.status(*limit)["queues"] if line["type"] == "note")
        self.assertEqual((note()["ready"], note()["more"]), (3, False))
        self.assertIsNotNone(note()["oldest_seconds"])
        self.assertTrue(note("--limit", "1")["more"])

    def test_wrong_input(self):
        name = str(uuid.uuid4())
        self.fails(USAGE, "tasks", "list", "--state", "ded", says="pending, scheduled, running, retrying, waiting or dead")
        self.fails(USAGE, "tasks", "list", "--state", "completed", says="outbox tasks show ID")
        self.fails(USAGE, "tasks", "list", "--limit", "0", says="--limit 0")
        self.fails(ERROR, "tasks", "list", "--queue", "mails", says="unknown queue: mails")
        self.fails(ERROR, "tasks", "pause", "mails", says="unknown queue: mails")
        self.fails(USAGE, "tasks", "show", "soon", says="is not the id of a task")
        self.fails(ERROR, "tasks", "show", name, says=("not found", "--with-lookup-indexes"))
        self.fails(USAGE, "tasks", "retry", says="which tasks?")
        self.fails(USAGE, "tasks", "retry", name, "--queue", "mail", says="leave the filters out")
        self.fails(USAGE, "tasks", "retry", "--state", "running", says="nothing to run again")
        self.fails(USAGE, "tasks", "cancel", "--state", "pending", says="in the log only")
        self.fails(USAGE, "tasks", "cancel", "--state", "dead", "--apply", says="--reason is missing")
        event = self.succeeds("enqueue", "order", "42", "OrderPlaced", "{}").out.strip()
        self.fails(ERROR, "tasks", "show", event, says=("is an event, and no task", "outbox events --id"))


class TasksSqlite(OnSqlite, Tasks, Case):
    pass


class TasksPostgres(OnPostgres, Tasks, Case):
    pass


if __name__ == "__main__":
    unittest.main()
