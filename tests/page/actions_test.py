#!/usr/bin/env python3
"""The page of the console: each change that it can make, and what the command line then finds."""

import json
import unittest
import urllib.error
import urllib.request

from page import OnPostgres, OnSqlite, SLOW, Shop, skip_without_browser, wait_until


def setUpModule():
    skip_without_browser()


class Actions:
    def ask(self, path):
        """The status and the document of a path of the API."""
        try:
            with urllib.request.urlopen(self.url + "/api/v1" + path, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def test_a_subscription_is_paused_and_resumed(self):
        self.browse("actions.mjs", "pause", url=self.url)

    def test_parked_events_are_retried_and_discarded_alone_selected_and_by_group(self):
        self.browse("actions.mjs", "parked", url=self.url)

    def test_a_parked_event_is_corrected(self):
        self.browse("actions.mjs", "edit", url=self.url, role=self.ask("/session")[1]["role"])

    def test_events_are_sent_again(self):
        self.browse("actions.mjs", "replay", url=self.url)
        lines = (self.folder / "orders.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), 7, "the file has the one event twice")

    def test_a_replay_is_stopped_and_goes_on(self):
        for number in range(60):
            self.event("bulk", str(number), "Counted")
        wait_until(lambda: self.subscription("slow")["delivered"] == 60, "all are delivered")
        # The replay needs hours now, so that it cannot end before it is stopped, however slow the browser is.
        self.configure(SLOW.replace("20/s", "20/h"))
        self.succeeds("subscription", "apply")
        self.browse("actions.mjs", "stop", url=self.url)

    def test_tasks_are_retried_and_cancelled(self):
        self.browse("actions.mjs", "tasks", url=self.url)

    def test_a_queue_is_paused_and_resumed(self):
        self.browse("actions.mjs", "queues", url=self.url)

    def test_a_schedule_is_paused_and_resumed(self):
        self.browse("actions.mjs", "schedules", url=self.url)

    def test_a_dead_event_is_found_and_retried_without_a_mouse(self):
        self.receiver.merciful = True
        self.browse("actions.mjs", "keyboard", url=self.url)
        self.assertEqual(len(self.receiver.taken), 2)

    def test_the_ledger_is_compared(self):
        self.browse("actions.mjs", "verify", url=self.url, compares=self.ask("/verify?subscription=orders")[0] == 200)


class ActionsOnSqlite(OnSqlite, Actions, Shop):
    pass


class ActionsOnPostgres(OnPostgres, Actions, Shop):
    pass


del Actions

if __name__ == "__main__":
    unittest.main()
