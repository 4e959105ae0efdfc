#!/usr/bin/env python3
"""outbox console: the API answers with what the verbs print, and does what they do."""

import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import unittest
import uuid
from urllib.parse import urlsplit

from inbox_rows import receive_some
from parked_rows import make_parked
from program import Case, OK, OnPostgres, OnSqlite, USAGE, jsonl, signal, wait_until

SCHEMATHESIS = os.environ.get("OUTBOX_TEST_SCHEMATHESIS")
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
        found = wait_until(lambda: re.search(r"url=https?://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8")), "it listens")
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
                           ("/audit?subscription=orders&limit=1&since=1d&cursor=1000", ["audit", "--subscription", "orders", "--limit", "1",
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

    def test_the_inbox_of_consumers(self):
        self.assertEqual(self.get("/inbox"), {"consumers": []})
        receive_some(self)
        self.assertEqual(self.get("/inbox"), self.succeeds("inbox", "--json").json())
        self.assertEqual([(one["name"], one["messages"]) for one in self.get("/inbox")["consumers"]], [("billing", 2), ("mails", 2)])
        for query, options in (("", []), ("?consumer=billing&limit=1", ["--consumer", "billing", "--limit", "1"]), ("?id=b-1", ["--id", "b-1"]),
                               ("?type=OrderPaid&since=1h", ["--type", "OrderPaid", "--since", "1h"]), ("?until=1h", ["--until", "1h"])):
            self.assertEqual(self.get("/inbox/messages" + query), self.succeeds("inbox", "--messages", "--json", *options).json(), query)
        ids = lambda query: [(one["consumer"], one["id"]) for one in self.get("/inbox/messages" + query)["messages"]]
        self.assertEqual(ids(""), [("mails", "b-1"), ("billing", "b-2"), ("billing", "b-1"), ("mails", "m-1")])
        self.assertEqual(ids("?id=b-1"), [("mails", "b-1"), ("billing", "b-1")])
        self.assertEqual(ids("?consumer=nobody"), [])
        self.problem(400, "/inbox/messages?since=soon")
        self.problem(400, "/inbox/messages?payload=true")
        self.problem(400, "/inbox?consumer=billing")

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
        self.assertEqual([session[name] for name in ("person", "role", "payloads", "login")], ["console", "admin", True, False])
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

    # ---- pages

    def test_pages_have_each_row_once(self):
        receive_some(self)
        for path, name, key in (("/parked", "events", "seq"), ("/events", "events", "seq"), ("/audit", "changes", "id"),
                                ("/inbox/messages", "messages", "place")):
            if path == "/audit":
                self.post("/subscriptions/orders/pause")
                self.post("/subscriptions/orders/resume")
            whole = [row[key] for row in self.get(path)[name]]
            self.assertGreater(len(whole), 1, path)
            page, seen = self.get(f"{path}?limit=1"), []
            while True:
                seen += [row[key] for row in page[name]]
                if page["next"] is None:
                    break
                self.assertTrue(page["more"])
                page = self.get(f"{path}?limit=1&cursor={page['next']}")
            self.assertEqual(seen, whole, path)
            self.problem(400, f"{path}?cursor=nonsense")

    # ---- tokens

    def token(self, name, role, *more):
        return self.succeeds("console", "token", "add", name, "--role", role, *more).out.strip()

    def start_with_tokens(self, *more):
        self.tokens = {role: self.token(role, role) for role in ("viewer", "operator", "admin")}
        self.tokens["reader"] = self.token("reader", "viewer", "--payloads")
        self.start("--tokens", *more)

    def as_(self, name):
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def test_tokens_are_shown_once_and_stored_hashed(self):
        token = self.token("anna", "operator", "--expires", "90d")
        self.assertRegex(token, "^outbox_[0-9a-f]{64}$")
        [row] = self.succeeds("console", "token", "list", "--json").json()["tokens"]
        self.assertEqual([row[name] for name in ("name", "role", "payloads", "expired")], ["anna", "operator", False, False])
        self.assertIn(hashlib.sha256(token.encode()).hexdigest(), str(self.sql(f"SELECT digest FROM {self.table('console_token')}")))
        self.fails(1, "console", "token", "add", "anna", "--role", "viewer", says="anna")
        self.fails(USAGE, "console", "token", "add", "bert", "--role", "boss", says="viewer")
        self.fails(USAGE, "console", "token", "add", "bert", says="--role")
        self.fails(USAGE, "console", "token", "add", "", "--role", "admin", says="NAME")
        for when in ("yesterday", "2020-01-01T00:00:00Z", "0s"):
            self.fails(USAGE, "console", "token", "add", "bert", "--role", "admin", "--expires", when, says="--expires")
        self.succeeds("console", "token", "remove", "anna")
        self.fails(1, "console", "token", "remove", "anna", says="anna")

    def test_who_has_no_token_learns_nothing(self):
        self.start_with_tokens()
        for path in ("/status", "/session", "/live", "/openapi.json", "/events/x/payload", "/nothing"):
            problem = self.problem(401, path)
            self.assertEqual(self.ask(path)[2]["WWW-Authenticate"], "Bearer")
            self.assertNotIn("orders", json.dumps(problem))
        self.problem(401, "/status", headers={"Authorization": "Bearer outbox_0"})
        self.problem(401, "/parked/retry", method="POST", body="{}", headers=CHANGE)

    def test_each_role_may_do_what_its_name_says(self):
        self.start_with_tokens()
        dead = self.parked("--state", "dead")[0]
        for name, path, body, status in (
                ("viewer", "/status", None, 200), ("viewer", "/subscriptions/orders/pause", "{}", 403),
                ("operator", "/subscriptions/orders/pause", "{}", 200), ("operator", "/subscriptions/orders/resume", "{}", 200),
                ("operator", f"/parked/{dead['seq']}/edit", "{}", 403), ("operator", "/verify/acknowledge", "{}", 403),
                ("admin", "/verify/acknowledge", "{}", 200), ("viewer", f"/events/{dead['id']}/payload", None, 403),
                ("admin", f"/events/{dead['id']}/payload", None, 403), ("reader", f"/events/{dead['id']}/payload", None, 200)):
            found, text, _ = self.ask(path, "POST" if body else "GET", body, self.as_(name) | (CHANGE if body else {}))
            self.assertEqual(found, status, (name, path, text))
        hidden = json.loads(self.ask(f"/parked/{dead['seq']}", headers=self.as_("viewer"))[1])["events"][0]
        shown = json.loads(self.ask(f"/parked/{dead['seq']}", headers=self.as_("reader"))[1])["events"][0]
        self.assertEqual(set(shown) - set(hidden), {"payload", "headers"})
        changes = self.succeeds("audit", "--json", "--person", "operator").json()["changes"]
        self.assertEqual([(one["verb"], one["origin"]) for one in changes],
                         [("subscription resume", "console"), ("subscription pause", "console")])

    def test_a_removed_token_is_refused_soon(self):
        self.start_with_tokens()
        self.assertEqual(self.ask("/session", headers=self.as_("viewer"))[0], 200)
        self.succeeds("console", "token", "remove", "viewer")
        wait_until(lambda: self.ask("/session", headers=self.as_("viewer"))[0] == 401, "the token is refused")

    def log_in(self, token):
        return self.ask("/login", "POST", json.dumps({"token": token}), CHANGE)

    def test_a_browser_has_a_session(self):
        self.start_with_tokens()
        status, body, headers = self.log_in(self.tokens["operator"])
        self.assertEqual((status, json.loads(body)["person"]), (200, "operator"))
        self.assertIn("HttpOnly; SameSite=Strict", headers["Set-Cookie"])
        cookie = {"Cookie": headers["Set-Cookie"].partition(";")[0]}
        self.assertEqual(self.ask("/status", headers=cookie)[0], 200)
        # A page of another site makes the browser send the cookie, and not the header.
        self.problem(403, "/subscriptions/orders/pause", method="POST", body="{}", headers=cookie | {"Content-Type": "application/json"})
        self.problem(403, "/login", method="POST", body="{}", headers={"Content-Type": "application/json"})
        self.assertEqual(self.ask("/logout", "POST", "{}", cookie | CHANGE)[0], 200)
        self.problem(401, "/status", headers=cookie)

    def test_guesses_are_refused_and_then_slowed_down(self):
        self.start_with_tokens()
        statuses = [self.log_in(guess)[0] for guess in ["", "outbox_", self.tokens["viewer"][:-1]] + ["x"] * 40]
        self.assertEqual(statuses[:3], [401] * 3)
        self.assertEqual(statuses[-1], 429)
        self.assertEqual(self.log_in(self.tokens["viewer"])[0], 200)
        for body in ("", "[]", "{}", '{"token": 1}', '{"token": null}'):
            self.problem(400, "/login", method="POST", body=body, headers=CHANGE)

    def certificate(self):
        names = ["key.pem", "chain.pem"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", names[0], "-out", names[1]],
                       cwd=self.folder, check=True, capture_output=True)
        return [str(self.folder / name) for name in names]

    def test_with_tls_it_answers_with_tls_only(self):
        key, chain = self.certificate()
        self.start_with_tokens("--tls-key", key, "--tls-certificate", chain)
        context = ssl.create_default_context(cafile=chain)

        def get(path, headers):
            connection = http.client.HTTPSConnection("localhost", self.port, context=context, timeout=60)
            try:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode(), dict(answer.getheaders())
            finally:
                connection.close()

        status, body, headers = get("/api/v1/status", self.as_("viewer"))
        self.assertEqual((status, json.loads(body)["subscriptions"][0]["name"]), (200, "orders"))
        self.assertIn("max-age=", headers["Strict-Transport-Security"])
        self.assertEqual(get("/api/v1/status", {})[0], 401)
        # A large answer, many at once, and clients that break off or talk no TLS.
        for talk in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b""):
            with socket.create_connection(("localhost", self.port), timeout=60) as broken:
                broken.sendall(talk)
        with concurrent.futures.ThreadPoolExecutor(20) as many:
            documents = list(many.map(lambda _: get("/api/v1/openapi.json", self.as_("viewer"))[1], range(60)))
        self.assertEqual(len(set(documents)), 1)
        self.assertGreater(len(documents[0]), 50_000)
        with self.assertRaises((http.client.HTTPException, OSError)):
            self.ask("/status")
        old = ssl.create_default_context(cafile=chain)
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, OSError)), socket.create_connection(("localhost", self.port), timeout=60) as plain:
            old.wrap_socket(plain, server_hostname="localhost")

    def test_a_certificate_that_cannot_be_used_is_said(self):
        key, chain = self.certificate()
        self.token("anna", "admin")
        other = self.certificate()[0] if os.rename(key, key + ".old") is None else None
        for certificate, its_key in ((str(self.folder / "none.pem"), other), (chain, key + ".old"), (chain, chain)):
            self.fails(1, "console", "--listen", "127.0.0.1:0", "--tls-certificate", certificate, "--tls-key", its_key, says="cannot use the")

    # ---- the description of the API

    def test_the_description_has_each_path_and_each_schema(self):
        document = self.get("/openapi.json")
        self.assertEqual(document["openapi"], "3.1.0")
        self.assertEqual(self.succeeds("config", "reference", "--openapi").json(), document)
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                for reference in re.findall(r'"#/components/schemas/([^"/]+)', json.dumps(operation)):
                    self.assertIn(reference, document["components"]["schemas"], (method, path))

    def test_whatever_is_sent_the_answer_is_as_described(self):
        if SCHEMATHESIS is None:
            self.skipTest("OUTBOX_TEST_SCHEMATHESIS is not set: schemathesis is not installed")
        # Texts have grammars that the description does not tell, so a valid one by its type can be refused.
        api = f"http://127.0.0.1:{self.port}/api/v1"
        done = subprocess.run(["python3", "-m", "schemathesis.cli", "run", f"{api}/openapi.json", "--url", api, "--max-examples", "20", "--checks", "all",
                               "--exclude-checks", "positive_data_acceptance,unsupported_method", "--seed", "1", "--no-color"],
                              cwd=self.folder, env=self.environment | {"PYTHONPATH": SCHEMATHESIS}, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"[0-9]{3,} (generated|passed)")
        self.assertEqual(self.console.poll(), None)

    # ---- what is refused

    def test_methods_that_are_not_served_are_refused(self):
        for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"):
            self.assertEqual(self.problem(405, "/status", method=method)["hint"], "GET looks, POST changes")

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
        self.fails(1, "console", "--listen", "0.0.0.0:0", "--behind-tls-proxy", says="by which name")
        self.fails(1, "console", "--listen", "0.0.0.0:0", "--behind-tls-proxy", "--host", "outbox.example", says="token add")
        self.fails(1, "console", "--tokens", "--listen", "127.0.0.1:0", says="token add")
        self.fails(USAGE, "console", "--tls-key", "key.pem", says="belong together")
        self.fails(1, "console", "--listen", "127.0.0.1:0", "--tls-key", "none.pem", "--tls-certificate", "none.pem", says=("token",))
        self.fails(USAGE, "console", "--listen", "nowhere", says="--listen")

    def test_it_ends_when_it_is_told(self):
        self.console.send_signal(signal.SIGTERM)
        self.assertEqual(self.console.wait(timeout=60), OK)


class ConsoleOnSqlite(OnSqlite, Console, Case):
    def table(self, name):
        return f"outbox_{name}"

    def test_a_store_that_is_away_is_said_and_comes_back(self):
        away = self.folder / "away.db"
        (self.folder / "shop.db").rename(away)
        self.assertIn(self.ask("/status")[0], (409, 500, 503))
        away.rename(self.folder / "shop.db")
        self.get("/events")


class ConsoleOnPostgres(OnPostgres, Console, Case):
    """The console runs as a login that has its role and nothing else."""

    def table(self, name):
        return f"{self.flags[1]}.{name}"

    def login(self, role):
        name = "console_" + uuid.uuid4().hex[:12]
        self.sql(f"CREATE ROLE {name} LOGIN IN ROLE {role}")
        self.addCleanup(subprocess.run, ["psql", self.server, "-qXc", f"DROP ROLE {name}"], check=False, capture_output=True)
        url = urlsplit(self.direct)
        return url._replace(netloc=f"{name}@{url.netloc.rpartition('@')[2]}").geturl()

    def start(self, *arguments):
        return super().start("--store", self.login("outbox_console"), *arguments)

    def sessions(self):
        found = self.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'console_%'")
        return set(found.split())

    def test_connections_are_used_again_and_one_that_the_server_ended_is_not(self):
        self.get("/events")
        used = self.sessions()
        self.assertGreater(len(used), 0)
        for _ in range(5):
            self.get("/events")
        self.assertLessEqual(self.sessions(), used)
        for pid in used:
            self.sql(f"SELECT pg_terminate_backend({pid})")
        wait_until(lambda: not self.sessions() & used, "its sessions have ended")
        for _ in range(5):
            self.get("/events")
            self.get("/parked")

    def test_its_role_cannot_deliver_or_remove_history(self):
        login = self.login("outbox_console")
        for statement in ("INSERT INTO settlement (subscription, kind, lanes, generation) VALUES (1, 'settle', 1, 1)", "DELETE FROM event",
                          "UPDATE event SET payload = ''", "DELETE FROM audit", "UPDATE audit SET actor = 'eve'", "DELETE FROM settlement",
                          "INSERT INTO console_token (name, digest, role, payloads, created_by) VALUES ('eve', 'x', 'admin', true, 'eve')",
                          "DELETE FROM parked_end", "DELETE FROM subscription", "SELECT drop_subscription(1)", "DELETE FROM history",
                          "SELECT release_pruning(gen_random_uuid())", "UPDATE fleet SET generation = 9", "DELETE FROM relay"):
            done = subprocess.run(["psql", login, "-qXAt", "-v", "ON_ERROR_STOP=1", "-c", f"SET search_path = {self.flags[1]}", "-c", statement],
                                  check=False, capture_output=True, text=True)
            self.assertIn("permission denied", done.stderr, statement)

    def test_a_login_that_is_not_the_owner_makes_no_tokens(self):
        for role in ("outbox_console", "outbox_relay", "outbox_reader", "outbox_app"):
            login = self.login(role)
            self.fails(1, "console", "token", "add", "eve", "--role", "admin", "--store", login, says=("permission denied", "the login that runs outbox migrate"))

    def test_while_nobody_asks_the_store_is_asked_nothing(self):
        self.get("/events")
        wait_until(lambda: not self.sessions(), "the console has no session")


del Console

if __name__ == "__main__":
    unittest.main()
