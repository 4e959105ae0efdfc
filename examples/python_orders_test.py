#!/usr/bin/env python3
"""examples/python-orders: orders and events agree, whoever is killed."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest
import uuid
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "languages"))

from languages import BINARY, ROOT, OnPostgres, client  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLE = ROOT / "examples" / "python-orders"
PSYCOPG, NO_PSYCOPG = client("psycopg")
CUSTOMER = "7b0c2f5e-8a53-4a58-9f0e-1f9a3a8f6c11"


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.02)
    return value


def order(quantity=2, price="12.50", **more):
    return {"customer": CUSTOMER, "currency": "EUR", "lines": [{"sku": "tea-250", "quantity": quantity, "price": price}]} | more


@unittest.skipIf(NO_PSYCOPG, NO_PSYCOPG)
class PythonOrders(OnPostgres):
    def setUp(self):
        super().setUp()
        self.sql(self.store, "DROP TABLE orders")
        self.environment |= {"OUTBOX_STORE_URL": self.store, "DATABASE_URL": self.store, "PYTHONPATH": PSYCOPG}
        (self.folder / "outbox.toml").write_text((EXAMPLE / "outbox.toml").read_text(encoding="utf-8"), encoding="utf-8")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.start()

    def start(self):
        self.app = subprocess.Popen([sys.executable, EXAMPLE / "app.py", str(self.port)], env=self.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.app.stdout.close)
        self.addCleanup(self.app.wait)
        self.addCleanup(self.app.kill)
        self.assertEqual(self.app.stdout.readline(), "ready\n")

    def kill(self):
        self.app.kill()
        self.app.wait()

    def ask(self, path, body=None, key=None):
        """Status and answer; (0, None) when the connection broke."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, data, {"Idempotency-Key": key} if key else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def events(self):
        """What the relay writes to its standard output: pairs of type and payload, each id once."""
        lines = [json.loads(line) for line in self.run_it(BINARY, "relay", "--once").splitlines()]
        self.assertEqual(len({line["id"] for line in lines}), len(lines))
        return [(line["event_type"], line["body"]) for line in lines]

    def rows(self):
        return dict(line.split("|") for line in self.sql(self.store, "SELECT id, total FROM orders").splitlines())

    def together(self, work, arguments, beside=lambda: None):
        """In a thread for each argument, to the end."""
        threads = [threading.Thread(target=work, args=(argument,), daemon=True) for argument in arguments]
        for thread in threads:
            thread.start()
        beside()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())

    def waiting(self):
        """Whether a session of the service waits for a lock."""
        count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return self.sql(self.store, count) == "1\n"

    def test_an_order_and_its_payment(self):
        status, placed = self.ask("/orders", order(), "a1")
        self.assertEqual((status, placed["total"]), (201, "25.00"))
        self.assertEqual(self.ask("/orders", order(), "a1"), (200, placed))
        self.assertEqual(self.ask("/orders", order(3), "a1")[0], 422)
        self.assertEqual(self.ask("/orders", order(currency="USD"), "a1")[0], 422)
        payment = f"/orders/{placed['id']}/payment"
        self.assertEqual(self.ask(payment, {"amount": "24.99"})[0], 422)
        answers = []
        self.together(lambda _: answers.append(self.ask(payment, {"amount": "25.00"})[0]), range(4))
        self.assertEqual(answers, [200] * 4)
        self.assertEqual(self.ask("/orders/" + placed["id"])[1], placed | {"currency": "EUR", "paid": True})
        expected = {"order": placed["id"], "customer": CUSTOMER, "currency": "EUR", "total": "25.00", "lines": order()["lines"]}
        self.assertEqual(self.events(), [("OrderPlaced", expected),
                                         ("OrderPaid", {"order": placed["id"], "amount": "25.00", "currency": "EUR"})])

    def test_a_key_is_its_customers(self):
        one = self.ask("/orders", order(), "a1")[1]["id"]
        status, other = self.ask("/orders", order(customer=str(uuid.uuid4())), "a1")
        self.assertEqual(status, 201)
        self.assertEqual(sorted(event["order"] for _, event in self.events()), sorted([one, other["id"]]))

    def test_killed_between_order_and_commit(self):
        gate = subprocess.Popen(["psql", self.store, "-qXAt"], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(gate.stdout.close)
        self.addCleanup(gate.wait)
        self.addCleanup(gate.kill)
        gate.stdin.write("BEGIN; LOCK TABLE outbox.event; SELECT 'locked';\n")
        gate.stdin.flush()
        self.assertEqual(gate.stdout.readline(), "locked\n")
        asking = threading.Thread(target=self.ask, args=("/orders", order(), "a1"), daemon=True)
        asking.start()
        wait_until(self.waiting)   # the order is inserted, and the event is being enqueued
        self.kill()
        asking.join(60)
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
        gate.stdin.write("ROLLBACK;\n")
        gate.stdin.close()
        gate.wait()
        wait_until(lambda: self.sql(self.store, sessions) == "1\n")   # only the one that asks
        self.assertEqual(self.rows(), {})
        self.assertEqual(self.events(), [])
        self.start()
        status, placed = self.ask("/orders", order(), "a1")
        self.assertEqual(status, 201)
        self.assertEqual([event["order"] for _, event in self.events()], [placed["id"]])

    def test_killed_again_and_again(self):
        """Customers ask until they have an answer."""
        answers = {}

        def customer(name):
            for number in range(10):
                key = f"{name}-{number}"
                while (answer := self.ask("/orders", order(number + 1, "0.01"), key))[0] not in (200, 201):
                    time.sleep(0.01)
                answers[key] = answer[1]
                while self.ask(f"/orders/{answer[1]['id']}/payment", {"amount": answer[1]["total"]})[0] != 200:
                    time.sleep(0.01)

        def killer():
            for kills in range(1, 4):
                wait_until(lambda enough=kills * 6: len(answers) >= enough)
                self.kill()
                self.start()

        self.together(customer, "abc", killer)
        self.assertEqual(self.rows(), {answer["id"]: answer["total"] for answer in answers.values()})
        self.assertEqual(len(answers), 30)
        events = self.events()
        for kind, amount in (("OrderPlaced", "total"), ("OrderPaid", "amount")):
            found = [(event["order"], event[amount]) for its_kind, event in events if its_kind == kind]
            self.assertEqual(sorted(found), sorted(self.rows().items()))
        paid = [event["order"] for kind, event in events if kind == "OrderPaid"]
        for at, (kind, event) in enumerate(events):
            if kind == "OrderPlaced":
                self.assertNotIn(("OrderPaid", event["order"]), [(k, e["order"]) for k, e in events[:at]])
        self.assertEqual(len(paid), 30)

    def test_what_is_no_order_is_refused(self):
        wrong = [[], {}, "{", order(0), order(1001), order(True), order(1.0), order(price="12.5"), order(price=12.5), order(price="-1.00"),
                 order(price="1e3.00"), order(price="1000000.01"), order(currency="eur"), order(customer="42"), order(customer=None),
                 order(lines=[]), order(lines=[1]), order(lines=[{"sku": "a\0", "quantity": 1, "price": "1.00"}]),
                 order(lines=order()["lines"] * 101), "[" * 90000, b"\xff"]
        for body in wrong:
            status, answer = self.ask("/orders", body, "a1")
            self.assertEqual((status, list(answer)), (400, ["error"]), body)
        self.assertEqual(self.ask("/orders", order())[0], 400)
        self.assertEqual(self.ask("/orders", order(), "k" * 101)[0], 400)
        self.assertEqual(self.ask("/orders", "x" * 100000, "a1")[0], 400)
        self.assertEqual(self.ask("/nothing", {})[0], 404)
        self.assertEqual(self.ask(f"/orders/{uuid.uuid4()}")[0], 404)
        self.assertEqual(self.ask(f"/orders/{uuid.uuid4()}/payment", {"amount": "1.00"})[0], 404)
        self.assertEqual(self.ask("/orders", order(price="1000000.00", quantity=1000), "a1")[1]["total"], "1000000000.00")
        self.assertEqual(self.rows().popitem()[1], str(Decimal("1000000000.00")))
        self.assertEqual(len(self.events()), 1)

    def test_a_stop_waits_for_requests(self):
        self.app.terminate()
        self.assertEqual(self.app.wait(timeout=30), 0)


class Files(unittest.TestCase):
    def test_it_pins_what_is_tested(self):
        version = re.search(r"^CLIENTS_PSYCOPG=(\S+)", (ROOT / "scripts" / "lib" / "clients.sh").read_text(encoding="utf-8"), re.M)[1]
        self.assertIn(f"psycopg[binary]=={version}", (EXAMPLE / "Dockerfile").read_text(encoding="utf-8"))

    def test_docker_compose_understands_the_file(self):
        """Without an engine."""
        if subprocess.run(["docker", "compose", "version"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no docker compose on this machine")
        run = subprocess.run(["docker", "compose", "-f", EXAMPLE / "compose.yaml", "config", "--quiet"], check=False,
                             capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    @unittest.skipUnless(yaml, "no Python module yaml (python3-yaml)")
    def test_what_the_file_names_is_there(self):
        file = yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))
        self.assertEqual(set(file), {"name", "services", "volumes"})
        services = file["services"]
        self.assertEqual(set(services), {"postgres", "migrate", "relay", "app"})
        images = {service["image"] for service in services.values() if "build" in service and "image" in service}
        for name, service in services.items():
            self.assertLessEqual(set(service), {"image", "build", "command", "environment", "volumes", "ports", "restart", "healthcheck",
                                                "depends_on"}, name)
            self.assertTrue("build" in service or service["image"] in images | {"postgres:17"}, name)
            self.assertTrue(all(isinstance(value, str) for value in service.get("environment", {}).values()), name)
            for other, condition in service.get("depends_on", {}).items():
                self.assertIn(other, services)
                self.assertIn(condition["condition"], ("service_healthy", "service_completed_successfully"))
                if condition["condition"] == "service_healthy":
                    self.assertIn("healthcheck", services[other])
            for volume in service.get("volumes", []):
                source = volume.partition(":")[0]
                self.assertTrue((EXAMPLE / source).exists() if source.startswith(".") else source in file["volumes"], volume)
        self.assertEqual(services["migrate"]["build"], {"context": "../..", "dockerfile": "deploy/Dockerfile"})
        self.assertEqual(services["app"]["build"], ".")
        for name in re.findall(r"^COPY (.*) /app/$", (EXAMPLE / "Dockerfile").read_text(encoding="utf-8"), re.M)[0].split():
            self.assertTrue((EXAMPLE / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
