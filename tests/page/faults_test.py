#!/usr/bin/env python3
"""The page of the console for somebody who is woken at night: ten faults, each with its cause and remedy on the first screen or one click from it."""

import threading
import unittest
import urllib.error
import urllib.request

from page import SETTINGS, SHOP, TASKS, OnPostgres, OnSqlite, PageCase, skip_without_browser, wait_until, webhook
from own_server import OwnServer
from parked_rows import make_parked


def setUpModule():
    skip_without_browser()


class Looking(PageCase):
    def look(self, scenario, **facts):
        self.browse("faults.mjs", scenario, url=self.console(), **facts)

    def shop(self, subscriptions=SHOP, more=SETTINGS):
        self.config(subscriptions, more)
        self.succeeds("subscription", "apply")

    def away_and_back(self, go, come, scenario="database", url=None):
        """Runs the scenario; `go` and `come` are called when it is ready for them."""
        away, back = self.folder / "go-away", self.folder / "come-back"
        ended = threading.Event()

        def watch():
            for signal, act in ((away, go), (back, come)):
                while not signal.exists():
                    if ended.wait(0.02):
                        return
                act()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            self.browse("faults.mjs", scenario, url=url or self.console(), away=str(away), back=str(back))
        finally:
            ended.set()
            watcher.join()

class Faults:

    def test_a_destination_that_is_down(self):
        self.shop(SHOP + webhook("mails", "http://127.0.0.1:9/hook"))
        self.event("mail", "1", "MailWanted")
        self.begin("relay", log="relay.log")
        wait_until(lambda: self.subscription("mails")["trouble"], "its relay says so")
        self.look("destination")

    def test_no_relay(self):
        self.shop()
        relay = self.begin("relay", log="relay.log")
        wait_until(lambda: any(one["owner"] for one in self.status()["relays"]), "the relay has lanes")
        relay.kill()
        relay.wait()
        wait_until(lambda: not any(one["alive"] for one in self.status()["relays"]), "its lease is over")
        self.look("relay")

    def test_a_dead_event(self):
        make_parked(self)
        self.look("dead")

    def test_a_paused_subscription(self):
        self.shop()
        self.succeeds("subscription", "pause", "orders", "--reason", "the night")
        self.look("paused")

    def test_history_that_a_paused_subscription_holds(self):
        if self.flags:
            self.small_parts()
        null = '[subscription.orders]\nsink = "null"\n[subscription.slow]\nsink = "null"\n'
        self.shop(null, "[relay]\nretention = '0s'\nquota = '0'\n")
        self.succeeds("subscription", "pause", "slow")
        for number in range(5):
            self.event("order", str(number), "Placed")
        self.close_part()
        self.event("order", "last", "Placed")
        self.config(null)  # A relay with that retention would remove what it can.
        self.succeeds("relay", "--once")
        self.config(null, "[relay]\nretention = '0s'\nquota = '0'\n")
        wait_until(lambda: self.subscription("slow")["held_back"]["bytes"] > 0, "it holds history")
        self.look("history")

    def test_an_event_that_is_gone_from_the_log(self):
        self.shop('[subscription.orders]\nsink = "null"\n')
        for number in range(3):
            self.event("order", str(number), "Placed")
        self.succeeds("relay", "--once")
        self.sql(f"DELETE FROM {self.table('event')} WHERE seq = (SELECT min(seq) + 1 FROM {self.table('event')})")
        # As continuous verification would have found it.
        now = "now()" if self.flags else "1"
        self.sql(f"INSERT INTO {self.table('verified')} (subscription, place, events, differences, verifier, at, revision) "
                 f"VALUES (1, '', 0, 1, 'a test', {now}, 1)")
        url = self.console()
        try:
            with urllib.request.urlopen(url + "/api/v1/verify?subscription=orders", timeout=60) as answer:
                compares = answer.status == 200
        except urllib.error.HTTPError as error:
            compares = error.code != 404
            error.close()
        self.browse("faults.mjs", "ledger", url=url, compares=compares)

    def test_a_dead_task(self):
        self.config(TASKS, SETTINGS)
        self.begin("work", log="work.log")
        self.task("report.bad")
        wait_until(lambda: self.parked("--state", "dead"), "it is dead")
        self.look("task_dead")

    def test_a_task_that_is_stuck(self):
        self.config(TASKS, SETTINGS)
        self.begin("work", log="work.log")
        self.task("report.long")
        wait_until(lambda: [one["state"] for one in self.tasks()] == ["running"], "it runs")
        # As if it had begun two hours ago.
        earlier = "begun_at - interval '2 hours'" if self.flags else "begun_at - 7200000000"
        self.sql(f"UPDATE {self.table('parked_key')} SET begun_at = {earlier}")
        self.look("task_stuck")

    def test_a_schedule_that_missed_its_tick(self):
        self.config(TASKS, SETTINGS)
        worker = self.begin("work", log="work.log")
        wait_until(lambda: self.succeeds("tasks", "schedule", "list", "--json").json()["schedules"], "it is written")
        worker.terminate()
        worker.wait()
        earlier = "next_at - interval '2 days'" if self.flags else "next_at - 172800000000"
        self.sql(f"UPDATE {self.table('schedule')} SET next_at = {earlier}")
        self.look("schedule")


class FaultsOnSqlite(OnSqlite, Faults, Looking):
    def test_the_database_is_away(self):
        self.shop()
        file = self.folder / "shop.db"
        away = self.folder / "away.db"
        self.away_and_back(lambda: file.rename(away), lambda: away.rename(file))

    def test_the_console_is_away(self):
        self.shop()
        url = self.console()

        def go():
            self.running.kill()
            self.running.wait()

        self.away_and_back(go, lambda: self.console(url.removeprefix("http://")), "console", url)


class FaultsOnPostgres(OnPostgres, Faults, Looking):
    pass


class DatabaseAway(Looking):
    """On a server of its own, which stops."""

    @classmethod
    def setUpClass(cls):
        cls.server = OwnServer()
        cls.addClassCleanup(cls.server.remove)
        cls.store = cls.server.url

    def test_the_database_is_away(self):
        self.shop()
        self.away_and_back(self.server.stop, self.server.start)


del Faults

if __name__ == "__main__":
    unittest.main()
