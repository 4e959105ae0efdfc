#!/usr/bin/env python3
"""outbox work: requests and mails as handlers, with real servers."""

import base64
import email
import email.policy
import hashlib
import hmac
import json
import signal
import subprocess
import sys
import unittest

from program import Case, ERROR, INTERRUPTED, OK, OnPostgres, ROOT, wait_until

SERVERS = ROOT / "tests" / "conformance" / "sink"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def python_with_aiosmtpd():
    """Debian's packages are not seen by another Python that comes first in PATH."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import aiosmtpd.smtp"], check=False, capture_output=True).returncode == 0:
            return python
    return None


class Sends(Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    def start_server(self, python, script):
        """Starts it; its folder and its port."""
        folder = self.folder / script
        folder.mkdir()
        process = subprocess.Popen([python, str(SERVERS / script), "--folder", str(folder)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = folder / "port"
        wait_until(port.exists, "the server listens")
        return folder, port.read_text(encoding="utf-8")

    retries = 2

    def handler(self, kind, settings, sink, more=""):
        """A [task.TYPE] section; `sink` are the settings of its table."""
        self.config(f'[task."{kind}"]\n{settings}\n[task."{kind}".{sink}\n[worker]\ndelays = {["50ms"] * self.retries}\njitter = 0\n{more}\n'
                    '[relay]\nlease = "2s"')

    def enqueue(self, kind, payload, key="", headers=None):
        line = {"aggregate_type": "outbox-task:default", "aggregate_id": key, "event_type": kind, "payload": payload,
                "headers": headers or {}}
        self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line, separators=(",", ":")) + "\n")

    def start(self):
        return self.spawn("work", stdout=None, stderr=open(self.folder / "log", "a", encoding="utf-8"))

    def parked(self):
        return self.succeeds("parked", "list", "--json").json()["events"]

    def task(self, name):
        return self.succeeds("tasks", "show", name, "--json").json()

    def dead(self):
        [row] = wait_until(lambda: [row for row in self.parked() if row["state"] == "dead"], "it is dead")
        return row

    @staticmethod
    def lines(path):
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


class Requests(Sends):
    def setUp(self):
        super().setUp()
        folder, port = self.start_server(sys.executable, "http_server.py")
        self.origin, self.mode, self.record = "http://127.0.0.1:" + port, folder / "mode", folder / "requests"

    def handler(self, path, sink="", settings="", more=""):  # pylint: disable=arguments-differ
        super().handler("report.make", 'handler = "http"\n' + settings,
                        f'http]\nurl = "{self.origin}{path}"\nallow_http = true\nallow_networks = ["127.0.0.1"]\n{sink}', more)

    def requests(self, count):
        return wait_until(lambda: len(all := self.lines(self.record)) >= count and all, f"{count} requests")

    def test_a_task_is_a_request(self):
        self.handler("/reports/{json:month}?by={event_type}", settings='headers = { "x-tenant" = "{header:tenant}" }')
        self.start()
        self.enqueue("report.make", {"month": "2026-10", "n": 1}, key="customer-42", headers={"tenant": "north"})
        [seen] = self.requests(1)
        self.assertEqual((seen["method"], seen["path"]), ("POST", "/reports/2026-10?by=report.make"))
        self.assertEqual(base64.b64decode(seen["body"]), b'{"month":"2026-10","n":1}')
        headers = seen["headers"]
        self.assertEqual(headers["content-type"], "application/json")
        self.assertEqual(headers["x-tenant"], "north")
        self.assertEqual(headers["outbox-key"], "customer-42")
        self.assertEqual(headers["outbox-task-attempt"], "1")
        self.assertRegex(headers["idempotency-key"], "^[0-9a-f-]{36}$")
        self.assertEqual(headers["idempotency-key"], headers["webhook-id"])
        self.assertEqual(self.parked(), [])

    def test_what_is_answered_is_the_result(self):
        self.handler("/{json:step}/200?body={json:body}")
        self.start()
        results = {"status": "17 pages", "empty": None, "huge": None}
        for step in results:
            self.enqueue("report.make", {"step": step, "body": "17 pages"})
        for request in self.requests(len(results)):
            name = request["headers"]["idempotency-key"]
            wait_until(lambda: self.task(name)["state"] == "completed", "it is done")  # pylint: disable=cell-var-from-loop
            self.assertEqual(self.task(name)["result"], results[request["path"].split("/")[1]], request["path"])
        log = (self.folder / "log").read_text(encoding="utf-8")
        self.assertEqual(log.count("a result is too large and is not kept"), 1, log)
        self.assertIn("most=65536", log)

    def test_a_body_of_its_own_is_signed(self):
        self.handler("/", f'secrets = "{SECRET}"\nbody = \'{{{{"text": "for {{json:who}}", "n": {{json:n}}}}}}\'')
        self.start()
        self.enqueue("report.make", {"who": '"me"', "n": 12.5})
        [seen] = self.requests(1)
        body, headers = base64.b64decode(seen["body"]), seen["headers"]
        self.assertEqual(json.loads(body), {"text": 'for "me"', "n": 12.5})
        self.assertEqual(headers["content-type"], "application/json")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        self.assertEqual(headers["webhook-signature"], "v1," + base64.b64encode(digest).decode())

    def test_an_outage_is_a_failed_run_and_the_next_one_has_the_same_key(self):
        self.retries = 1000
        self.handler("/")
        self.mode.write_text("503", encoding="utf-8")
        self.start()
        self.enqueue("report.make", {})
        self.requests(1)
        self.mode.unlink()
        seen = wait_until(lambda: (all := self.lines(self.record))[-1]["status"] == 200 and all, "it is done")
        self.assertEqual({one["headers"]["idempotency-key"] for one in seen}, {seen[0]["headers"]["idempotency-key"]})
        self.assertEqual([one["headers"]["outbox-task-attempt"] for one in seen],
                         [str(n + 1) for n in range(len(seen))])
        wait_until(lambda: self.parked() == [], "it is gone")

    def test_retry_after_is_waited_for(self):
        self.handler("/status/429?retry_after=3600")
        self.start()
        self.enqueue("report.make", {})
        [row] = wait_until(lambda: [row for row in self.parked() if row["attempts"] == 1], "a failed run")
        self.assertEqual(row["state"], "retrying")
        self.assertIn("answered 429", row["error"])
        self.assertEqual(len(self.lines(self.record)), 1)

    def test_a_refused_task_is_dead_at_once(self):
        for status in (400, 410, 422):
            with self.subTest(status):
                self.handler(f"/status/{status}?body=no+such+month")
                worker = self.start()
                self.enqueue("report.make", {})
                row = self.dead()
                self.assertEqual(row["attempts"], 1)
                self.assertIn(f"answered {status}: \"no such month\"", row["error"])
                worker.kill()
                worker.wait()
                self.succeeds("parked", "discard", "--state", "dead", "--reason", "test", "--apply")

    def test_what_cannot_be_done_is_tried_as_often_as_any_task(self):
        self.handler("/status/404")
        self.start()
        self.enqueue("report.make", {})
        row = self.dead()
        self.assertEqual(row["attempts"], 3)
        self.assertIn("answered 404", row["error"])

    def test_a_server_that_hangs_is_given_up_at_the_deadline(self):
        self.handler("/hang", settings='deadline = "300ms"')
        self.start()
        self.enqueue("report.make", {})
        row = self.dead()
        self.assertEqual(row["attempts"], 3)
        self.assertIn("its deadline has passed: http: the connection to", row["error"])

    def test_a_stop_gives_a_hanging_request_back_with_no_attempt(self):
        self.handler("/hang", sink='deadline = "10min"', more='grace = "100ms"')
        worker = self.start()
        self.enqueue("report.make", {})
        self.requests(1)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), INTERRUPTED)
        self.assertNotIn("does not answer", (self.folder / "log").read_text(encoding="utf-8"), "it was not waited for")
        self.handler("/")
        self.start()
        seen = self.requests(2)
        self.assertEqual(seen[1]["headers"]["outbox-task-attempt"], "1")
        self.assertEqual(seen[0]["headers"]["idempotency-key"], seen[1]["headers"]["idempotency-key"])

    def test_it_does_not_connect_into_private_networks(self):
        super().handler("report.make", 'handler = "http"', f'http]\nurl = "{self.origin}/"\nallow_http = true')
        self.start()
        self.enqueue("report.make", {})
        self.assertIn("is at 127.0.0.1, this host, where this sink must not connect to", self.dead()["error"])
        self.assertEqual(self.lines(self.record), [])

    def test_only_a_worker_needs_its_secrets(self):
        self.handler("/", sink='authorization = "Bearer ${env:REPORTS_TOKEN}"')
        self.succeeds("status")
        result = self.outbox("work")
        self.assertEqual(result.code, ERROR, result)
        self.assertIn("${env:REPORTS_TOKEN}: the environment variable is not set", result.err)
        self.environment["REPORTS_TOKEN"] = "right"
        self.start()
        self.enqueue("report.make", {})
        self.assertEqual(self.requests(1)[0]["headers"]["authorization"], "Bearer right")


class Mails(Sends):
    def setUp(self):
        python = python_with_aiosmtpd()
        if python is None:
            self.skipTest("python3-aiosmtpd is not installed: no mail server")
        super().setUp()
        folder, port = self.start_server(python, "smtp_server.py")
        self.url, self.mails = "smtp://127.0.0.1:" + port, folder / "mails"

    def handler(self, sink, settings=""):  # pylint: disable=arguments-differ
        super().handler("mail.send", 'handler = "smtp"\n' + settings,
                        f'smtp]\nurl = "{self.url}"\ntls = "off"\nfrom = "Shop <orders@example.com>"\n'
                        f'to = ["{{json:name}} <{{json:to}}>"]\n{sink}')

    def plan(self, answers):
        """Renamed, because the server may read the plan at this moment."""
        new = self.mails.parent / "plan.new"
        new.write_text(json.dumps(answers), encoding="utf-8")
        new.rename(self.mails.parent / "plan")

    def test_a_task_is_a_mail(self):
        self.handler('subject = "Your order {json:order.id}"\nbody = "Dear {json:name}, thanks for {json:order.total} EUR."')
        self.start()
        self.enqueue("mail.send", {"name": "Ada", "to": "ada@example.com", "order": {"id": 7, "total": 12.5}})
        [mail] = wait_until(lambda: self.lines(self.mails), "a mail")
        self.assertEqual((mail["from"], mail["to"]), ("orders@example.com", ["ada@example.com"]))
        text = email.message_from_bytes(base64.b64decode(mail["text"]), policy=email.policy.default)
        self.assertEqual((text["to"], text["subject"]), ("Ada <ada@example.com>", "Your order 7"))
        self.assertEqual(text.get_content().strip(), "Dear Ada, thanks for 12.5 EUR.")
        self.assertRegex(text["message-id"], "^<[0-9a-f-]{36}@example.com>$")

    def test_one_that_was_put_off_comes_with_the_id_and_the_date_of_its_task(self):
        self.retries = 1000
        self.handler('message_id_domain = "shop.example"')
        self.plan({"end": "451 4.7.1 try later"})
        self.start()
        self.enqueue("mail.send", {"name": "Ada", "to": "ada@example.com"})
        [row] = wait_until(lambda: [row for row in self.parked() if "answered 451" in (row["error"] or "")], "a failed run")
        self.plan({})
        [mail] = wait_until(lambda: self.lines(self.mails), "a mail")
        text = email.message_from_bytes(base64.b64decode(mail["text"]), policy=email.policy.default)
        self.assertEqual(text["message-id"], f"<{row['id']}@shop.example>")
        made = int(row["id"].replace("-", "")[:12], 16) / 1000
        self.assertLess(abs(text["date"].datetime.timestamp() - made), 600)

    def test_a_refused_recipient_is_a_dead_task(self):
        self.handler("")
        self.start()
        self.enqueue("mail.send", {"name": "Ada", "to": "rcpt-550@example.com"})
        row = self.dead()
        self.assertEqual(row["attempts"], 1)
        self.assertIn("answered 550 to RCPT", row["error"])
        self.assertEqual(self.lines(self.mails), [])

    def test_so_is_one_without_an_address(self):
        self.handler("")
        self.start()
        self.enqueue("mail.send", {"name": "Ada"})
        self.assertIn("no value for an address of smtp.to", self.dead()["error"])


class RequestsOnPostgres(OnPostgres, Requests):
    pass


if __name__ == "__main__":
    unittest.main()
