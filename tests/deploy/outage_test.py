#!/usr/bin/env python3
"""A real Prometheus watches a real relay through four outages with the alerts of deploy/: the right one fires, and clears.

The alerts are those of alerts.yaml with shorter times, so that minutes are seconds.
"""

import http.server
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from program import Case, OK, OnSqlite, jsonl, wait_until  # noqa: E402

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def seconds_for_minutes(rules):
    """Every duration of the rules is a sixtieth; a window has at least 5 s, since a rate needs samples."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

    def shorter(found):
        least = 5 if found.string[found.start() - 1] == "[" else 2
        return f"{max(least, round(int(found[2]) * units[found[3]] / 60))}s"

    rules = re.sub(r"((?<=for: )|(?<=offset )|(?<=\[)|(?<=:))(\d+)([smhdw])(?=$|[\] ):])", shorter, rules, flags=re.M)
    return re.sub(r"(?<=< )600$", "10", rules, flags=re.M)


def set_threshold(rules, name, value):
    changed, times = re.subn(rf"(record: outbox:threshold:{name}\n\s+expr: vector\()\d+\)", rf"\g<1>{value})", rules)
    assert times == 1, name
    return changed


class Receiver:
    """An HTTP destination that takes everything, is down, or refuses events of one type for good."""

    def __init__(self):
        self.works = True
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = 503 if not receiver.works else 422 if b"poison" in body else 204
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


@unittest.skipUnless(shutil.which("prometheus"), "there is no prometheus (Debian's package prometheus)")
class Outages(OnSqlite, Case):
    def setUp(self):
        super().setUp()
        self.migrate()
        self.receiver = Receiver()
        self.addCleanup(self.receiver.end)
        self.port = free_port()
        self.config(f"""
[subscription.orders]
sink = "http"
max_attempts = 1
[subscription.orders.http]
url = "{self.receiver.url}"
allow_http = true
allow_networks = ["127.0.0.0/8"]
[relay]
lease = "5s"
verify = true
verify_after = "1s"
[http]
listen = "127.0.0.1:{self.port}"
[metrics]
interval = "1s"
""")
        self.start_relay()
        self.start_prometheus()
        self.enqueued = 0
        self.enqueue(10)
        wait_until(lambda: self.query('min(outbox_relays_alive) == 1 and sum(outbox_pending_events) == 0'), "it is scraped, and nothing is pending")
        self.clears()  # Prometheus knew no relay before the first scrape.

    def start_relay(self):
        with (self.folder / "relay.log").open("a", encoding="utf-8") as log:
            self.relay = self.spawn("relay", stderr=log)

    def start_prometheus(self):
        rules = seconds_for_minutes(RULES.read_text(encoding="utf-8"))
        rules = set_threshold(set_threshold(rules, "delivery_delayed_seconds", 5), "poll_seconds", 5)
        (self.folder / "alerts.yaml").write_text(rules, encoding="utf-8")
        (self.folder / "prometheus.yaml").write_text(f"""
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: outbox
    static_configs: [{{ targets: ["127.0.0.1:{self.port}"] }}]
""", encoding="utf-8")
        port = free_port()
        self.prometheus = f"http://127.0.0.1:{port}"
        log = (self.folder / "prometheus.log").open("w", encoding="utf-8")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yaml", f"--storage.tsdb.path={self.folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.terminate)

        def is_ready():
            self.assertIsNone(process.poll(), (self.folder / "prometheus.log").read_text(encoding="utf-8"))
            try:
                with urllib.request.urlopen(self.prometheus + "/-/ready", timeout=5) as answer:
                    return answer.status == 200
            except OSError:
                return False

        wait_until(is_ready, "prometheus")

    def ask(self, path):
        with urllib.request.urlopen(self.prometheus + path, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.ask("/api/v1/query?query=" + urllib.request.quote(expression))["result"]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("/api/v1/alerts")["alerts"] if alert["state"] == "firing"}

    def fires(self, *names):
        wait_until(lambda: set(names) <= self.firing(), f"{names} fire")

    def clears(self):
        wait_until(lambda: not self.firing(), "all alerts clear", 120)

    def enqueue(self, count):
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(count, self.enqueued))
        self.enqueued += count

    def test_the_destination_is_down(self):
        self.receiver.works = False
        self.enqueue(5)
        self.fires("OutboxDeliveryDelayed", "OutboxStalled", "OutboxErrors")
        self.assertFalse(self.firing() & {"OutboxRelayAbsent", "OutboxDead", "OutboxLedgerDiffers"}, "an outage of the destination is not more than that")
        self.receiver.works = True
        self.clears()

    def test_the_relay_is_killed(self):
        self.relay.send_signal(signal.SIGKILL)
        self.relay.wait(60)
        self.fires("OutboxRelayAbsent")
        self.start_relay()
        self.clears()

    def test_an_event_is_poison(self):
        self.succeeds("enqueue", "--jsonl", stdin='{"aggregate_type":"order","aggregate_id":"p","event_type":"OrderPlaced","payload":{"poison":1}}\n')
        self.fires("OutboxDead")
        self.assertFalse(self.firing() & {"OutboxRelayAbsent", "OutboxStalled", "OutboxLedgerDiffers"})
        self.succeeds("parked", "discard", "--subscription", "orders", "--state", "dead", "--reason", "a test", "--apply")
        self.clears()

    def test_an_event_is_deleted_from_the_log(self):
        wait_until(lambda: self.query(f"sum(outbox_verified_events_total) == {self.enqueued}"), "what is there is compared")
        self.enqueue(5)
        wait_until(lambda: self.query(f"sum(outbox_events_delivered_total) == {self.enqueued}"), "it is delivered")
        self.sql("DELETE FROM outbox_event WHERE seq = (SELECT max(seq) FROM outbox_event)")
        self.fires("OutboxLedgerDiffers")
        self.assertEqual(self.outbox("verify").code, 3, "a person finds the same")
        self.assertEqual(self.succeeds("verify", "--acknowledge").code, OK)
        self.clears()


if __name__ == "__main__":
    unittest.main()
