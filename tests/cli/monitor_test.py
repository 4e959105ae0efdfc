#!/usr/bin/env python3
"""What a relay and a worker answer to those who watch them: /metrics, /livez, /readyz."""

import http.client
import http.server
import re
import shutil
import socket
import subprocess
import threading
import unittest
from urllib.parse import urlsplit

from own_server import OwnServer
from program import CHECK_FAILED, Case, ERROR, FILE_SUBSCRIPTION, OK, OnPostgres, OnSqlite, ROOT, USAGE, jsonl, signal, wait_until

LISTEN = '[http]\nlisten = "127.0.0.1:0"\n[metrics]\ninterval = "1s"\n'
PAGE = ROOT / "docs" / "reference" / "metrics.md"


class Asking:
    """A relay or a worker, and what it answers."""

    def log(self):
        path = self.folder / "relay.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def relay(self, *arguments, verb="relay"):
        with open(self.folder / "relay.log", "a", encoding="utf-8") as log:
            process = self.spawn(verb, *arguments, stdout=subprocess.DEVNULL, stderr=log)
        self.port = int(wait_until(lambda: re.search(r"url=http://127\.0\.0\.1:(\d+)", self.log()), "the listener")[1])
        return process

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            connection.close()

    def metrics(self):
        """The samples of the exposition by their names with labels."""
        status, text, _ = self.ask("/metrics")
        self.assertEqual(status, 200, text)
        return {name: float(value) for name, value in re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", text, re.M)}

    def wait_for(self, name, value):
        wait_until(lambda: self.metrics().get(name) == value, f"{name} {value}")


class Watched(Asking):
    def setUp(self):
        super().setUp()
        self.migrate()

    def test_it_says_what_was_delivered_and_what_is_pending(self):
        self.config(FILE_SUBSCRIPTION + '[subscription.none]\nsink = "null"\nevent_types = ["*None"]\n', LISTEN)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(500))
        process = self.relay()
        self.wait_for('outbox_events_delivered_total{subscription="orders"}', 500)
        self.wait_for('outbox_events_filtered_total{subscription="none"}', 500)
        self.wait_for('outbox_pending_events{subscription="orders"}', 0)
        self.wait_for('outbox_relays_alive{group="default"}', 1)
        found = self.metrics()
        self.assertEqual(found["outbox_store_up"], 1)
        self.assertEqual(found['outbox_oldest_pending_timestamp_seconds{subscription="orders"}'], 0)
        self.assertEqual(found['outbox_subscription_state{subscription="none",state="delivering"}'], 1)
        self.assertEqual(found['outbox_events_dead_total{subscription="none"}'], 0, "a known label set begins at 0")
        self.wait_for('outbox_delivery_latency_seconds_count{subscription="orders"}', 500)
        found = self.metrics()
        self.assertEqual(found['outbox_send_outcomes_total{subscription="orders",sink="file",outcome="acked"}'], 500)
        self.assertEqual(found['outbox_send_outcomes_total{subscription="none",sink="null",outcome="rejected"}'], 0)
        self.assertEqual(found['outbox_send_duration_seconds_bucket{subscription="orders",le="+Inf"}'], 500)
        self.assertEqual(found['outbox_delivery_latency_seconds_count{subscription="none"}'], 0)
        self.assertGreater(found['outbox_batch_duration_seconds_count{subscription="orders"}'], 0)
        self.assertGreater(found['outbox_last_delivery_timestamp_seconds{subscription="orders"}'], 1.7e9)
        self.assertEqual(found['outbox_last_delivery_timestamp_seconds{subscription="none"}'], 0)
        self.assertEqual(found['outbox_insecure_transport{subscription="orders",sink="file"}'], 0)
        self.assertEqual(found['outbox_lanes_held{group="default"}'], 64)
        self.assertGreater(found['outbox_wakeups_total{kind="poll"}'], 0)
        self.assertGreater(found["outbox_oldest_retained_timestamp_seconds"], 1.7e9)
        self.assertGreater(sum(value for name, value in found.items() if name.startswith("outbox_store_bytes{")), 1000)
        self.assertGreater(found["process_resident_memory_bytes"], 1e6)
        self.succeeds("subscription", "pause", "orders")
        self.wait_for('outbox_subscription_state{subscription="orders",state="paused"}', 1)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(3))
        self.wait_for('outbox_pending_events{subscription="orders"}', 3)
        self.assertGreater(self.metrics()['outbox_oldest_pending_timestamp_seconds{subscription="orders"}'], 1.7e9)
        self.succeeds("subscription", "resume", "orders")
        self.wait_for('outbox_events_delivered_total{subscription="orders"}', 503)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), OK, self.log())

    def test_what_it_says_is_documented_and_well_formed(self):
        self.config(FILE_SUBSCRIPTION, LISTEN)
        self.relay()
        self.wait_for("outbox_store_up", 1)
        _, text, headers = self.ask("/metrics")
        self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        documented = set(re.findall(r"^\| `((?:outbox|process)_[a-z_]+)`", PAGE.read_text(encoding="utf-8"), re.M))
        exported = set(re.findall(r"^# TYPE (\S+)", text, re.M))
        self.assertLessEqual(exported, documented)

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool")
    def test_promtool_accepts_it(self):
        self.config(FILE_SUBSCRIPTION, LISTEN)
        self.relay()
        self.wait_for("outbox_store_up", 1)
        checked = subprocess.run(["promtool", "check", "metrics"], input=self.ask("/metrics")[1], capture_output=True, text=True, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_others_get_nothing(self):
        self.config(FILE_SUBSCRIPTION, LISTEN.replace("[metrics]", 'token = "very secret"\n[metrics]'))
        self.relay()
        for authorization in ("", "Bearer", "Bearer wrong", "Basic very secret", "Bearer very secret2", "Bearer very secre"):
            status, text, _ = self.ask("/metrics", Authorization=authorization)
            self.assertEqual((status, text), (401, ""), authorization)
        self.assertEqual(self.ask("/metrics", Authorization="Bearer very secret")[0], 200)
        self.assertEqual(self.ask("/livez")[0], 200)
        self.assertEqual(self.ask("/metrics", Host="evil.example", Authorization="Bearer very secret")[0], 403)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            self.assertEqual(self.ask("/metrics", method)[0], 405, method)
        self.assertEqual(self.ask("/metrics/../etc/passwd")[0], 404)
        self.assertNotIn("very secret", self.log())

    def test_an_address_that_cannot_be_used_ends_the_verb(self):
        self.config(FILE_SUBSCRIPTION)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.fails(ERROR, "relay", "--log-level", "off", "--set", f"http.listen=127.0.0.1:{port}", says=("cannot listen", str(port)))
            self.succeeds("relay", "--once", "--set", f"http.listen=127.0.0.1:{port}")
        self.fails(USAGE, "relay", "--log-level", "off", "--set", "http.listen=9464", says="http.listen")
        self.fails(ERROR, "relay", "--log-level", "off", "--set", "http.listen=0.0.0.0:0", says=("other machines", "http.token"))
        self.fails(CHECK_FAILED, "config", "check", "--set", "http.listen=0.0.0.0:0", says=("other machines", "http.token"))
        self.fails(CHECK_FAILED, "config", "check", "--set", "http.listen=9464", says="http.listen")
        self.succeeds("config", "check", "--set", "http.listen=0.0.0.0:0", "--set", "http.token=secret")


class Systemd:
    """The socket to which a service tells how it is."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(60)

    def hears(self, word):
        """Waits for a message with this line, and returns all messages until then."""
        heard = []
        while not heard or word not in heard[-1].splitlines():
            heard.append(self.socket.recv(4096).decode())
        return heard


class MonitorOnSqlite(OnSqlite, Watched, Case):
    def supervised(self):
        systemd = Systemd(self.folder)
        self.addCleanup(systemd.socket.close)
        self.environment |= {"NOTIFY_SOCKET": systemd.path, "WATCHDOG_USEC": "300000"}
        return systemd

    def test_systemd_is_told_how_it_is(self):
        systemd = self.supervised()
        self.config(FILE_SUBSCRIPTION, LISTEN)
        process = self.relay()
        self.assertEqual(systemd.hears("READY=1"), ["READY=1\nSTATUS=delivering"])
        for _ in range(3):
            self.assertEqual(systemd.hears("WATCHDOG=1"), ["WATCHDOG=1"])
        process.send_signal(signal.SIGTERM)
        systemd.hears("STOPPING=1")
        self.assertEqual(process.wait(timeout=60), OK, self.log())

    def test_systemd_does_not_wait_for_a_store_that_is_not_there(self):
        systemd = self.supervised()
        self.store = "postgresql://postgres@127.0.0.1:1/none"
        self.config(FILE_SUBSCRIPTION)
        with open(self.folder / "relay.log", "a", encoding="utf-8") as log:
            process = self.spawn("relay", "--wait", stdout=subprocess.DEVNULL, stderr=log)
        self.assertIn("STATUS=waiting for the store", systemd.hears("READY=1")[-1])
        systemd.hears("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)

    def test_programs_of_handlers_do_not_speak_in_its_name(self):
        systemd = self.supervised()
        self.config('[task.look]\ncommand = ["/bin/sh", "-c", "env > seen"]\n', LISTEN)
        self.relay(verb="work")
        systemd.hears("READY=1")
        self.succeeds("enqueue", "--jsonl", stdin='{"aggregate_type":"outbox-task:default","aggregate_id":"","event_type":"look","payload":{}}\n')
        seen = self.folder / "seen"
        wait_until(lambda: seen.exists() and seen.stat().st_size > 0, "the program")
        self.assertNotIn("NOTIFY_SOCKET", seen.read_text(encoding="utf-8"))


class MonitorOnPostgres(OnPostgres, Watched, Case):
    def test_a_worker_says_how_its_queue_is(self):
        self.config('[task."report.make"]\nqueue = "reports"\ncommand = ["/bin/true"]\n', LISTEN)
        self.relay(verb="work")
        self.wait_for('outbox_workers_alive{queue="reports"}', 1)
        self.assertEqual(self.ask("/livez")[0], 200)
        runs = 'outbox_tasks_finished_total{queue="reports",type="report.make",outcome="%s"}'
        self.assertEqual(self.metrics()[runs % "completed"], 0)
        task = '{"aggregate_type":"outbox-task:reports","aggregate_id":"","event_type":"report.make","payload":{}}\n'
        self.succeeds("enqueue", "--jsonl", stdin=3 * task)
        self.wait_for(runs % "completed", 3)
        found = self.metrics()
        self.assertEqual(found[runs % "failed"], 0)
        self.assertEqual(found['outbox_task_duration_seconds_count{queue="reports",type="report.make"}'], 3)
        self.assertEqual(found['outbox_task_pickup_seconds_count{queue="reports",type="report.make"}'], 3)
        self.assertEqual(found['outbox_tasks_recovered_total{queue="reports"}'], 0)
        self.assertGreater(found["outbox_partitions_ahead"], 0)

    def test_it_says_why_events_do_not_arrive(self):
        class Refuses(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_error(500)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}/"
        self.config(f'[subscription.down]\nsink = "http"\n[subscription.down.http]\nurl = "{url}"\nallow_http = true\nallow_networks = ["127.0.0.1/32"]\n', LISTEN)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(5))
        self.relay()
        failures = 'outbox_publish_failures_total{subscription="down",event_type="OrderPlaced"}'
        wait_until(lambda: self.metrics().get(failures, 0) > 0, "a send that failed")
        self.wait_for('outbox_pending_events{subscription="down"}', 5)
        found = self.metrics()
        outcomes = [value for name, value in found.items() if name.startswith('outbox_send_outcomes_total{subscription="down"')]
        self.assertGreaterEqual(sum(outcomes), found[failures])
        self.assertEqual(found['outbox_send_outcomes_total{subscription="down",sink="http",outcome="acked"}'], 0)
        self.assertEqual(found['outbox_delivery_latency_seconds_count{subscription="down"}'], 0)
        self.assertGreater(found['outbox_send_duration_seconds_count{subscription="down"}'], 0)


class MonitorOfAServerThatStops(Asking, Case):
    def test_it_is_not_ready_and_lives(self):
        server = OwnServer()
        self.addCleanup(server.remove)
        self.store = server.url
        self.migrate()
        self.config(FILE_SUBSCRIPTION, LISTEN)
        self.relay()

        def is_ready():
            return self.ask("/readyz")[0] == 200

        wait_until(is_ready, "ready")
        server.stop()
        wait_until(lambda: not is_ready(), "not ready")
        self.assertEqual(self.ask("/livez")[0], 200)
        found = self.metrics()
        self.assertEqual(found["outbox_store_up"], 0)
        self.assertNotIn('outbox_pending_events{subscription="orders"}', found, "old numbers are not shown as new ones")
        server.start()
        wait_until(is_ready, "ready again")


if __name__ == "__main__":
    unittest.main()
