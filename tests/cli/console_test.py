#!/usr/bin/env python3
"""outbox console: the API answers with what the verbs print, and does what they do."""

import concurrent.futures
import http.client
import json
import re
import unittest

from parked_rows import make_parked
from program import Case, OK, OnPostgres, OnSqlite, USAGE, jsonl, signal, wait_until

CHANGE = {"Content-Type": "application/json", "Outbox-Console": "1"}


class Console:
    """The rows of tests/cli/parked_test.py: two keys, one event dead, one retrying with one behind it."""

    def setUp(self):
        super().setUp()
        make_parked(self)
        self.console = self.start()

    def start(self, *arguments):
        log = self.folder / "console.log"
        with open(log, "w", encoding="utf-8") as to:
            process = self.spawn("console", "--listen", "127.0.0.1:0", *arguments, stderr=to)
        found = wait_until(lambda: re.search(r"url=http://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8")), "it listens")
        self.port = int(found[1])
        return process

    def ask(self, path, method="GET", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, "/api/v1" + path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            connection.close()

    def get(self, path):
        status, body, headers = self.ask(path)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json; charset=utf-8"), body)
        return json.loads(body)

    def post(self, path, **members):
        status, body, _ = self.ask(path, "POST", json.dumps(members), CHANGE)
        self.assertEqual(status, 200, body)
        return json.loads(body)["output"]

    def problem(self, status, path, *, method="GET", body=None, headers=None):
        found, text, received = self.ask(path, method, body, headers)
        self.assertEqual((found, received["Content-Type"]), (status, "application/problem+json; charset=utf-8"), text)
        problem = json.loads(text)
        self.assertEqual(problem["status"], status)
        self.assertTrue(problem["title"])
        return problem

    def parked(self, *arguments):
        return self.succeeds("parked", "list", "--json", *arguments).json()["events"]

    # ---- looking

    def test_it_answers_with_the_documents_of_the_verbs(self):
        for path, verb in (("/subscriptions", ["subscription", "list"]), ("/parked", ["parked", "list"]), ("/parked/errors", ["parked", "errors"]),
                           ("/parked?state=dead&limit=1", ["parked", "list", "--state", "dead", "--limit", "1"]),
                           ("/events?key=order/b", ["events", "--key", "order/b"]), ("/replays", ["replay", "--list"]),
                           ("/tasks", ["tasks", "list"]), ("/schedules", ["tasks", "schedule", "list"]), ("/audit", ["audit"]),
                           ("/audit?subscription=orders&limit=1&since=1d&before=1000", ["audit", "--subscription", "orders", "--limit", "1",
                                                                                       "--before", "1000"])):
            self.assertEqual(self.get(path), self.succeeds(*verb, "--json").json(), path)
        # These say how things are at this moment.
        self.assertIn(("parked", "orders"), [(one["check"], one["subject"]) for one in self.get("/doctor")])
        status = self.get("/status")
        self.assertEqual(status["subscriptions"][0]["parked"], {"retrying": 1, "waiting": 1, "dead": 1})
        self.assertIsNone(status["history"])
        self.assertEqual(self.get("/status?since=1h")["history"]["seconds"], 3600)
        self.problem(400, "/status?since=soon")

    def test_one_event_and_its_payload(self):
        first = self.parked()[0]
        self.assertNotIn("payload", self.get(f"/events/{first['id']}")["events"][0])
        self.assertEqual(json.loads(self.get(f"/events/{first['id']}/payload")["events"][0]["payload"]), {"n": 1})
        self.assertEqual(self.get(f"/parked/{first['seq']}")["events"][0]["id"], first["id"])

    def test_live_events_are_those_that_a_browser_reads(self):
        status, body, headers = self.ask("/live")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream; charset=utf-8"))
        fields = [line.split(": ", 1) for line in body.rstrip("\n").split("\n")]
        document = json.loads("\n".join(value for name, value in fields if name == "data"))
        self.assertEqual([value for name, value in fields if name == "event"], ["status"])
        self.assertEqual(document["subscriptions"][0]["name"], "orders")
        self.assertTrue(body.endswith("\n\n"))

    def test_who_is_asked(self):
        session = self.get("/session")
        self.assertEqual(session["role"], "operator")
        self.assertNotIn("password", session["store"])

    def test_many_ask_at_once_and_each_gets_its_own_answer(self):
        ids = {one["id"] for one in self.parked()}

        def look(number):
            wanted = sorted(ids)[number % len(ids)]
            events = self.get(f"/events/{wanted}")["events"]
            return [one["id"] for one in events] == [wanted] and self.get("/schedules") == {"schedules": []}

        with concurrent.futures.ThreadPoolExecutor(20) as many:
            self.assertTrue(all(many.map(look, range(100))))

    # ---- changing

    def test_a_preview_changes_nothing_and_then_it_is_done(self):
        dead = self.parked("--state", "dead")[0]["seq"]
        before = self.parked()
        self.assertIn(f"would send again orders seq {dead}", self.post("/parked/retry", events=[str(dead)]))
        self.assertIn("2 events; nothing was changed", self.post("/parked/retry", key="b"))
        self.assertIn("would discard", self.post("/parked/discard", state="dead"))
        self.assertEqual(self.parked(), before)
        self.assertIn("1 event is sent again", self.post("/parked/retry", events=[str(dead)], apply=True))
        self.assertEqual(self.parked("--state", "dead"), [])

    def test_what_is_discarded_says_who_did_it_and_why(self):
        dead = self.parked("--state", "dead")[0]
        self.assertIn("1 event discarded", self.post("/parked/discard", events=[dead["id"]], apply=True, reason="a duplicate"))
        life = self.get(f"/events/{dead['id']}")["events"][0]["subscriptions"][0]
        self.assertEqual((life["state"], life["ended_by"], life["reason"]), ("discarded", "console", "a duplicate"))

    def test_what_is_changed_here_is_recorded_as_the_consoles(self):
        self.post("/subscriptions/orders/pause", reason="noon")
        self.post("/parked/retry", state="dead")  # a preview
        [newest, before] = self.get("/audit")["changes"]
        self.assertEqual([newest[name] for name in ("verb", "subscription", "person", "origin", "count", "reason")],
                         ["subscription pause", "orders", "console", "console", 1, "noon"])
        self.assertEqual((before["verb"], before["origin"]), ("subscription apply", "command line"))
        self.assertEqual(self.get("/audit?person=console")["changes"], [newest])

    def test_an_event_is_corrected_and_no_file_is_read(self):
        retrying = self.parked("--state", "retrying")[0]
        secret = self.write("secret", "not for the destination")
        said = self.post(f"/parked/{retrying['seq']}/edit", payload=f"@{secret}", content_type="text/plain", apply=True, reason="a test")
        copy = re.search(r"as ([0-9a-f-]{36})", said)[1]
        self.assertEqual(self.get(f"/events/{copy}/payload")["events"][0]["payload"], f"@{secret}")

    def test_a_subscription_is_paused_and_goes_on(self):
        self.post("/subscriptions/orders/pause", reason="the shop is closed")
        paused = self.get("/subscriptions")["subscriptions"][0]
        self.assertEqual((paused["state"], paused["reason"]), ("paused", "the shop is closed"))
        self.post("/subscriptions/orders/resume")
        self.assertEqual(self.get("/subscriptions")["subscriptions"][0]["state"], "active")

    # ---- what is refused

    def test_what_is_wrong_is_said_with_a_hint(self):
        self.assertIn("limit", self.problem(400, "/events?limit=many")["title"])
        self.assertIn("at most 500", self.problem(400, "/parked?limit=1000000")["hint"])
        self.assertIn("hint", self.problem(400, "/events?key=nothing"))
        self.problem(404, "/events/0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f")
        self.problem(404, "/nothing")
        self.problem(409, "/subscriptions/unknown/pause", method="POST", body="{}", headers=CHANGE)
        self.problem(400, "/parked/discard", method="POST", body='{"state": "dead", "apply": true}', headers=CHANGE)
        self.problem(405, "/status", method="POST", body="{}", headers=CHANGE)

    def test_pages_of_other_sites_can_change_nothing(self):
        before = self.parked()
        body = '{"state": "dead", "apply": true}'
        for headers, status in (({"Outbox-Console": "1", "Content-Type": "text/plain"}, 415), ({"Content-Type": "application/json"}, 403),
                                (CHANGE | {"Origin": "http://attacker.example"}, 403), (CHANGE | {"Sec-Fetch-Site": "cross-site"}, 403),
                                (CHANGE | {"Host": "attacker.example"}, 403)):
            self.problem(status, "/parked/retry", method="POST", body=body, headers=headers)
        self.problem(403, "/status", headers={"Host": "attacker.example"})
        self.assertEqual(self.parked(), before)

    def test_every_answer_says_how_a_browser_must_treat_it(self):
        for path in ("/status", "/nothing", "/live"):
            headers = self.ask(path)[2]
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual((headers["Cache-Control"], headers["X-Content-Type-Options"], headers["Referrer-Policy"]),
                             ("no-store", "nosniff", "no-referrer"))

    def test_other_machines_are_not_answered(self):
        self.fails(1, "console", "--listen", "0.0.0.0:0", says="other machines")
        self.fails(USAGE, "console", "--listen", "nowhere", says="--listen")

    def test_it_ends_when_it_is_told(self):
        self.console.send_signal(signal.SIGTERM)
        self.assertEqual(self.console.wait(timeout=60), OK)


class ConsoleOnSqlite(OnSqlite, Console, Case):
    def test_a_store_that_is_away_is_said_and_comes_back(self):
        away = self.folder / "away.db"
        (self.folder / "shop.db").rename(away)
        self.assertIn(self.ask("/status")[0], (409, 500, 503))
        away.rename(self.folder / "shop.db")
        self.get("/events")


class ConsoleOnPostgres(OnPostgres, Console, Case):
    def test_while_nobody_asks_the_store_is_asked_nothing(self):
        self.get("/events")
        sessions = f"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox%' AND query LIKE '%{self.flags[1]}%'"
        wait_until(lambda: self.sql(sessions).strip() == "0", "the console has no session")


del Console

if __name__ == "__main__":
    unittest.main()
