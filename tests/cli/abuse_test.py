#!/usr/bin/env python3
"""Clients that misbehave, at the console and at a relay's metrics: answers stay right, memory stays bounded, and events are delivered."""

import concurrent.futures
import http.client
import json
import re
import socket
import threading
import time
import unittest

from program import Case, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, jsonl, wait_until

REQUESTS = 10_000
SLOW = 200
# What a request may hold, times the connections that may be open (src/http/server.hpp), and what a program needs by itself.
MEMORY = 200 << 20


def peak_memory(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) * 1024


class SlowClients:
    """Each sends a byte of a request that never ends, now and then, and comes back when it was sent away."""

    def __init__(self, port):
        self.port, self.ends, self.served = port, threading.Event(), 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        client.setblocking(False)
        return client

    def run(self):
        clients = [self.connect() for _ in range(SLOW)]
        while not self.ends.wait(0.5):
            for number, client in enumerate(clients):
                try:
                    client.send(b"GET /livez HTTP/1.1\r\nX: "[: 1 + self.served % 24])
                except OSError:
                    client.close()
                    clients[number] = self.connect()
            self.served += 1
        for client in clients:
            client.close()

    def stop(self):
        self.ends.set()
        self.thread.join(60)


class Abuse:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION, '[http]\nlisten = "127.0.0.1:0"\n')
        self.relay, self.metrics = self.start("relay")
        self.console, self.api = self.start("console", "--listen", "127.0.0.1:0")
        wait_until(lambda: self.ask(self.api, "/api/v1/status")[0] == 200 and self.ask(self.metrics, "/readyz")[0] == 200, "both answer")

    def start(self, *words):
        log = self.folder / f"{words[0]}.log"
        with open(log, "w", encoding="utf-8") as to:
            process = self.spawn(*words, stderr=to)
        return process, int(wait_until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8")), f"{words[0]} listens")[1])

    def ask(self, port, path, method="GET", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask_many(self, port, paths, number):
        """Over one connection, as a browser would."""
        statuses = set()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for asked in range(number):
            connection.request("GET", paths[asked % len(paths)])
            answer = connection.getresponse()
            answer.read()
            statuses.add(answer.status)
        connection.close()
        return statuses

    def raw(self, port, data):
        """The status of the answer; None if the connection was closed without one."""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            try:
                client.sendall(data)
                answer = client.recv(4096)
            except OSError:
                return None
        found = re.match(rb"HTTP/1\.1 (\d+)", answer)
        return int(found[1]) if found else None

    def test_requests_of_every_wrong_kind_are_refused(self):
        host = b"Host: 127.0.0.1\r\n"
        for port in (self.metrics, self.api):
            for data, statuses in (
                    (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 40_000 + b"\r\n\r\n", {431, 400}),
                    (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n" + host + b"\r\n", {431, 414, 400}),
                    (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 999999999\r\n\r\n", {413}),
                    (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", {400}),
                    (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 411}),
                    (b"\x00\xff\xfe\r\n\r\n", {400, None}), (b"x" * 100_000, {431, 400, None}), (b"GET / HTTP/9.9\r\n\r\n", {400, 403, 404, 505}),
                    (b"\r\n" * 20_000, {400, 431, None})):
                self.assertIn(self.raw(port, data), statuses, data[:80])
        self.assertEqual(self.ask(self.api, "/api/v1/status")[0], 200)
        self.assertEqual(self.ask(self.metrics, "/metrics")[0], 200)

    def test_ten_thousand_requests_beside_slow_clients(self):
        slow = [SlowClients(self.metrics), SlowClients(self.api)]
        big = json.dumps({"reason": "x" * 2_000_000}).encode()
        head = f"POST /api/v1/subscriptions/orders/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(big)}\r\n\r\n"
        try:
            with concurrent.futures.ThreadPoolExecutor(20) as many:
                asked = [many.submit(self.ask_many, self.metrics, ["/metrics", "/livez", "/readyz"], REQUESTS // 20) for _ in range(10)]
                asked += [many.submit(self.ask_many, self.api, ["/api/v1/session", "/api/v1/live", "/"], REQUESTS // 20) for _ in range(10)]
                for _ in range(20):
                    self.succeeds("enqueue", "--jsonl", stdin=jsonl(10))
                    # It answers before the body has come, and closes.
                    self.assertIn(self.raw(self.api, head.encode() + big), {413, None})
                for one in asked:
                    self.assertLessEqual(one.result(), {200, 406}, "the page is sent compressed only")
        finally:
            for clients in slow:
                clients.stop()
        delivered = self.folder / "orders.jsonl"
        wait_until(lambda: delivered.exists() and len(delivered.read_text(encoding="utf-8").splitlines()) == 200, "all are delivered")
        for process in (self.relay, self.console):
            self.assertIsNone(process.poll())
            self.assertLess(peak_memory(process), MEMORY)
        begun = time.monotonic()
        self.assertEqual(self.ask(self.api, "/api/v1/status")[0], 200)
        print(f"{REQUESTS} requests; then /status answered in {time.monotonic() - begun:.3f} s; "
              f"at most {peak_memory(self.relay) >> 20} and {peak_memory(self.console) >> 20} MiB")


class AbuseOnSqlite(OnSqlite, Abuse, Case):
    pass


class AbuseOnPostgres(OnPostgres, Abuse, Case):
    pass


del Abuse

if __name__ == "__main__":
    unittest.main()
