#!/usr/bin/env python3
"""outbox tasks schedule, and schedules in the configuration of outbox work, on both stores."""

import json
import re
import signal
import unittest

from program import Case, ERROR, OK, OnPostgres, USAGE, wait_until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000000Z")


class Schedules(Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    def work(self, schedules):
        """A worker that notes the headers of each task of type note."""
        program = self.write("note.sh", "#!/bin/sh\necho \"$OUTBOX_TASK_HEADERS\" >> done\n")
        program.chmod(0o755)
        self.config('[task.note]\ncommand = ["./note.sh"]\n' + schedules)
        return self.spawn("work", stdout=None, stderr=open(self.folder / "log", "a", encoding="utf-8"))

    def done(self):
        path = self.folder / "done"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def schedules(self):
        return {row["name"]: row for row in self.succeeds("tasks", "schedule", "--json").json()["schedules"]}

    def test_a_worker_runs_its_schedules_and_people_see_and_pause_them(self):
        worker = self.work('[schedule.often]\ntype = "note"\nevery = "1s"\nmissed = "all"\n'
                           '[schedule.monthly]\nqueue = "elsewhere"\ntype = "report.make"\ncron = "30 6 1 * *"\n'
                           'time_zone = "Europe/Berlin"\n')
        done = wait_until(lambda: len(done := self.done()) >= 2 and done, "two ticks")
        self.assertEqual({task["task-schedule"] for task in done}, {"often"})
        self.assertEqual(len({task["task-scheduled-at"] for task in done}), len(done), "each tick once")

        seen = self.schedules()
        self.assertEqual(sorted(seen), ["monthly", "often"])
        often, monthly = seen["often"], seen["monthly"]
        self.assertEqual((often["queue"], often["type"], often["every"], often["cron"], often["paused"], often["missed"]),
                         ("default", "note", "1s", None, False, "all"))
        self.assertRegex(often["last_at"], TIME)
        self.assertEqual((monthly["cron"], monthly["time_zone"], monthly["last_at"], monthly["last_task"]),
                         ("30 6 1 * *", "Europe/Berlin", None, None))
        self.assertRegex(monthly["next_at"], r"-01T0[45]:30:00\.000000Z$")
        table = self.succeeds("tasks", "schedule", "list").out.splitlines()
        self.assertEqual(table[0].split(), ["NAME", "QUEUE", "TYPE", "WHEN", "ZONE", "NEXT", "LAST", "PAUSED"])
        self.assertRegex(table[1], r"^monthly +elsewhere +report\.make +30 6 1 \* \* +Europe/Berlin +\S+Z +- +no$")
        self.assertRegex(table[2], r"^often +default +note +every 1s +- +\S+Z +\S+Z +no$")

        self.assertIn("paused", self.succeeds("tasks", "schedule", "pause", "often").out)
        self.assertIn("already", self.succeeds("tasks", "schedule", "pause", "often").out)
        paused = self.schedules()["often"]
        self.assertEqual((paused["paused"], paused["next_at"]), (True, None))
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), OK)
        at_rest = len(self.done())
        self.work('[schedule.often]\ntype = "note"\nevery = "1s"\nmissed = "all"\n')
        self.assertTrue(self.schedules()["often"]["paused"])
        self.assertRegex(self.succeeds("tasks", "schedule", "resume", "often").out, r"^often resumed, its next tick is at \S+Z\n$")
        self.assertIn("not paused", self.succeeds("tasks", "schedule", "resume", "often").out)
        done = wait_until(lambda: len(done := self.done()) >= at_rest + 2 and done, "two more ticks")
        self.assertGreater(done[at_rest]["task-scheduled-at"], paused["last_at"])

    def test_one_is_removed_only_when_asked_twice(self):
        self.work('[schedule.monthly]\ntype = "note"\ncron = "@monthly"\n')
        wait_until(self.schedules, "it is written")
        out = self.succeeds("tasks", "schedule", "remove", "monthly").out
        self.assertIn("would remove monthly (queue default, type note); nothing was changed", out)
        self.assertEqual(sorted(self.schedules()), ["monthly"])
        self.assertIn("removed monthly", self.succeeds("tasks", "schedule", "remove", "monthly", "--apply").out)
        self.assertEqual(self.succeeds("tasks", "schedule").out, "no schedules\n")

    def test_an_unknown_name_is_an_error_with_the_nearest(self):
        self.work('[schedule.monthly]\ntype = "note"\ncron = "@monthly"\n')
        wait_until(self.schedules, "it is written")
        for command in (["pause"], ["resume"], ["remove"], ["remove", "--apply"]):
            self.fails(ERROR, "tasks", "schedule", *command, "montly", says=("unknown schedule: montly", "did you mean monthly?"))
        self.fails(USAGE, "tasks", "schedule", "pause", says=("NAME is missing",))


class SchedulesOnPostgres(OnPostgres, Schedules):
    pass


if __name__ == "__main__":
    unittest.main()
