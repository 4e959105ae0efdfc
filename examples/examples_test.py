#!/usr/bin/env python3
"""The examples do what they say. That the pages show them as they are is held by tests/cli/pages_test.py."""

import email
import email.policy
import http.client
import json
import os
import queue
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "languages"))

from languages import BINARY, ROOT, client  # noqa: E402

PROGRAMS = Path(os.environ.get("OUTBOX_EXAMPLES", ROOT / "build" / "examples"))
POSTGRES = os.environ.get("OUTBOX_TEST_POSTGRES")
# Debian's package is for Debian's Python.
MAIL_PYTHON = next((python for python in (sys.executable, "/usr/bin/python3")
                    if subprocess.run([python, "-c", "import aiosmtpd"], check=False, capture_output=True).returncode == 0), None)
RABBITMQ = os.environ.get("OUTBOX_TEST_RABBITMQ")
KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.05)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="outbox-examples-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("OUTBOX_")}

    def run_it(self, *command, **more):
        run = subprocess.run([*map(str, command)], cwd=self.folder, env=self.environment | more, check=False,
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout


class OnSqlite(Case):
    def setUp(self):
        super().setUp()
        self.run_it(BINARY, "migrate", "--store", "sqlite:shop.db")

    def test_a_first_program_in_cpp_and_one_in_python(self):
        self.run_it(PROGRAMS / "place_order_sqlite")
        self.run_it(sys.executable, HERE / "place_order.py")
        out = self.run_it(PROGRAMS / "relay_inside", "sqlite:shop.db")
        self.assertEqual(out, 'OrderPlaced {"total": 12.5}\n' * 2)

    def test_the_tests_of_a_service(self):
        self.assertIn("2 tests", self.run_it(PROGRAMS / "order_test"))

    def test_the_configuration(self):
        shutil.copy(HERE / "outbox.toml", self.folder)
        self.run_it(PROGRAMS / "place_order_sqlite")
        self.run_it(BINARY, "enqueue", "order", "1", "OrderPaid", '{"by": "card"}')
        relay = subprocess.Popen([BINARY, "relay"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)
        try:
            line = json.loads(relay.stdout.readline())
            self.assertIn("OrderPaid", json.dumps(line))
        finally:
            relay.terminate()
            relay.communicate(timeout=60)
        lines = [json.loads(line) for line in (self.folder / "orders.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual([line["event_type"] for line in lines], ["OrderPlaced", "OrderPaid"])


class OnDatabase(Case):
    """In a database of its own."""

    def setUp(self):
        if not POSTGRES:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        super().setUp()
        name = "examples_" + uuid.uuid4().hex[:12]
        self.psql(POSTGRES, "-c", f'CREATE DATABASE "{name}"')
        self.addCleanup(self.psql, POSTGRES, "-c", f'DROP DATABASE "{name}" WITH (FORCE)')
        base, question, query = POSTGRES.partition("?")
        self.database = base.rpartition("/")[0] + "/" + name + question + query
        self.run_it(BINARY, "migrate", "--store", self.database)

    def psql(self, database, *arguments):
        return self.run_it("psql", database, "-qXAtv", "ON_ERROR_STOP=1", *arguments)


class OnPostgres(OnDatabase):
    def test_a_first_program_in_cpp_and_one_in_sql(self):
        for _ in range(2):
            self.psql(self.database, "-f", HERE / "place_order.sql")
        self.run_it(PROGRAMS / "place_order_postgres", DATABASE_URL=self.database)
        out = self.run_it(PROGRAMS / "relay_inside", self.database)
        self.assertEqual(out.splitlines(), ['OrderPlaced {"total": 12.5}', 'OrderPaid {"by": "card"}'] * 2 +
                         ['OrderPlaced {"total": 12.5}'])

    def test_a_server_that_is_not_there_is_told(self):
        run = subprocess.run([PROGRAMS / "place_order_postgres"], check=False, capture_output=True, text=True, timeout=60,
                             env=self.environment | {"DATABASE_URL": "postgresql://127.0.0.1:1/none"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("127.0.0.1", run.stderr)


@unittest.skipUnless(RABBITMQ, "OUTBOX_TEST_RABBITMQ is not set: no RabbitMQ server")
class OrdersToRabbitmq(OnDatabase):
    def setUp(self):
        super().setUp()
        self.name = "examples-" + uuid.uuid4().hex[:12]
        configuration = (HERE / "orders-rabbitmq" / "outbox.toml").read_text(encoding="utf-8")
        configuration = configuration.replace('"shop"', f'"{self.name}"').replace('"invoices"', f'"{self.name}"')
        (self.folder / "outbox.toml").write_text(configuration, encoding="utf-8")
        self.environment |= {"DATABASE_URL": self.database, "AMQP_URL": RABBITMQ}

    def start(self, *command):
        """Killed and started again by restart()."""
        process = subprocess.Popen([*map(str, command)], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def invoices(self):
        with sqlite3.connect(self.folder / "invoices.db", timeout=30) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'invoice'").fetchall():
                return []
            return sorted(database.execute("SELECT purchase, cents, currency FROM invoice").fetchall())

    def test_each_order_gets_one_invoice_whoever_is_killed(self):
        relay = [BINARY, "relay"]
        consumer = [PROGRAMS / "invoices", RABBITMQ, self.name]
        self.run_it(PROGRAMS / "order_service", 7, "12.50", "EUR")
        self.run_it(BINARY, "relay", "--once")
        orders = 1
        running = [self.start(*relay), self.start(*consumer)]
        for _ in range(4):
            for number in range(10):
                self.run_it(PROGRAMS / "order_service", number, "0.99", "EUR")
            orders += 10
            for process in running:
                process.kill()
            running = [self.start(*relay), self.start(*consumer)]
        wait_until(lambda: len(self.invoices()) >= orders)
        expected = [(1, 1250, "EUR")] + [(order, 99, "EUR") for order in range(2, orders + 1)]
        self.assertEqual(self.invoices(), expected)

    def test_what_is_no_amount_is_refused(self):
        for amount in ("12.5", "12", "-1.00", "1.2.3", ""):
            run = subprocess.run([PROGRAMS / "order_service", "7", amount, "EUR"], check=False, capture_output=True, text=True,
                                 timeout=60, env=self.environment)
            self.assertEqual(run.returncode, 2, amount)


@unittest.skipUnless(POSTGRES, "needs PostgreSQL: OUTBOX_TEST_POSTGRES")
@unittest.skipUnless((PROGRAMS / "report_service").exists(), "built without cpp-httplib (libcpp-httplib-dev)")
class Reports(Case):
    def setUp(self):
        super().setUp()
        name = "outbox_reports_" + uuid.uuid4().hex[:8]
        self.sql(POSTGRES, f"CREATE DATABASE {name}")
        self.addCleanup(self.sql, POSTGRES, f"DROP DATABASE {name} WITH (FORCE)")
        self.url = POSTGRES.rsplit("/", 1)[0] + "/" + name
        self.environment["DATABASE_URL"] = self.url
        self.run_it(BINARY, "migrate", "--store", self.url)
        self.port = free_port()
        self.start("report_service", self.port)
        wait_until(lambda: self.ask("/reports/none")[0] == 404)

    def start(self, program, *arguments):
        process = subprocess.Popen([PROGRAMS / program, *map(str, arguments)], env=self.environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def sql(self, url, statement):
        return self.run_it("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url, "-c", statement).strip()

    def ask(self, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET" if body is None else "POST", path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text else {}
        except ConnectionRefusedError:
            return 0, {}
        finally:
            connection.close()

    def order(self, month="2026-10", **headers):
        status, body = self.ask("/reports", {"customer": "42", "month": month}, **headers)
        self.assertEqual(status, 202)
        return body["id"]

    def state(self, report):
        return self.ask("/reports/" + report)[1].get("state")

    def test_a_report_is_ordered_at_once_and_made_later(self):
        report = self.order()
        self.assertEqual(self.state(report), "pending")
        self.start("report_worker", 1, 10)
        wait_until(lambda: self.state(report) == "completed")
        self.assertEqual(self.ask("/reports/" + report)[1]["result"], "1 pages")
        self.assertIn("Report of 2026-10 for 42", self.sql(self.url, f"SELECT text FROM report WHERE task = '{report}'"))
        self.assertEqual(self.sql(self.url, "SELECT count(*) FROM outbox.event WHERE event_type = 'ReportMade'"), "1")

    def test_a_request_that_comes_twice_is_one_report(self):
        one = self.order(**{"Idempotency-Key": "a1"})
        self.assertEqual(self.order(**{"Idempotency-Key": "a1"}), one)
        self.assertNotEqual(self.order(**{"Idempotency-Key": "a2"}), one)

    def test_the_key_of_a_request_is_its_customers_and_of_one_order(self):
        one = self.order(**{"Idempotency-Key": "a1"})
        status, other = self.ask("/reports", {"customer": "7", "month": "2026-10"}, **{"Idempotency-Key": "a1"})
        self.assertEqual(status, 202)
        self.assertNotEqual(other["id"], one)
        for key, month, expected in (("a1", "2026-11", 422), ("k" * 101, "2026-10", 400)):
            status, body = self.ask("/reports", {"customer": "42", "month": month}, **{"Idempotency-Key": key})
            self.assertEqual(status, expected)
            self.assertIn("Idempotency-Key", body["error"])

    def test_an_order_that_cannot_be_read_is_dead_at_once(self):
        wrong = self.sql(self.url, "SELECT outbox.enqueue_task('reports', 'report.make', '{\"customer\": 1, \"month\": \"2026-10\"}'::text)")
        self.start("report_worker", 1, 10)
        wait_until(lambda: self.state(wrong) == "dead")
        self.assertIn("must be string", self.ask("/reports/" + wrong)[1]["error"])

    def test_what_is_no_order_is_refused(self):
        for wrong in ({}, {"customer": "42"}, {"customer": "4\0", "month": "2026-10"}, {"customer": "42", "month": "2026-13"}, {"customer": 1, "month": "2026-10"}, []):
            self.assertEqual(self.ask("/reports", wrong)[0], 400, wrong)
        self.assertEqual(self.ask("/reports/" + str(uuid.uuid4()))[0], 404)

    def test_a_worker_that_dies_after_its_commit_makes_no_second_report(self):
        report = self.order()
        self.start("report_worker", 5, 300, "crash").wait(timeout=60)
        self.start("report_worker", 5, 300, "crash")
        wait_until(lambda: self.state(report) == "completed")
        self.assertEqual(self.sql(self.url, "SELECT count(*) FROM report"), "1")
        self.assertEqual(self.sql(self.url, "SELECT count(*) FROM outbox.event WHERE event_type = 'ReportMade'"), "1")

    def test_a_worker_that_is_killed_loses_and_doubles_nothing(self):
        report = self.order()
        worker = self.start("report_worker", 50, 100)
        wait_until(lambda: self.state(report) == "running")
        wait_until(lambda: "page" in self.ask("/reports/" + report)[1].get("progress", ""))
        worker.kill()
        self.start("report_worker", 3, 50)
        wait_until(lambda: self.state(report) == "completed")
        self.assertEqual(self.sql(self.url, "SELECT count(*) FROM report"), "1")
        self.assertEqual(self.sql(self.url, "SELECT count(*) FROM outbox.event WHERE event_type = 'ReportMade'"), "1")


class OrdersCase(OnDatabase):
    """The service of examples/orders, and clients that ask until they have an answer."""

    def setUp(self):
        if not (PROGRAMS / "order_api").exists():
            self.skipTest("built without cpp-httplib (libcpp-httplib-dev)")
        super().setUp()
        self.environment["DATABASE_URL"] = self.database
        self.port = free_port()
        self.service = None

    def start(self):
        self.service = subprocess.Popen([PROGRAMS / "order_api", str(self.port), "orders.jsonl"], cwd=self.folder, env=self.environment,
                                        stderr=subprocess.DEVNULL)
        self.addCleanup(self.service.wait)
        self.addCleanup(self.service.kill)
        wait_until(lambda: self.ask("GET", "/orders/1")[0] in (200, 404))

    def ask(self, method, path, body=None, key=None):
        """Status 0: no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body and json.dumps(body), {"Idempotency-Key": key} if key else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            connection.close()

    def place(self, customer, amount, key, currency="EUR"):
        return self.ask("POST", "/orders", {"customer": customer, "amount": amount, "currency": currency}, key)

    def until_answered(self, ask):
        found = []
        wait_until(lambda: found.append(ask()) or found[-1][0] not in (0, 503))
        return found[-1]

    def rows(self):
        """The id of each order, and whether it is paid."""
        text = self.psql(self.database, "-c", "SELECT id, paid FROM orders ORDER BY id")
        return {int(order): paid == "t" for order, paid in (line.split("|") for line in text.splitlines())}

    def expect_each_event(self, delivered):
        """`delivered`: (event's id, order, type) in the order of arrival. What came again, with its id, is left out."""
        first = {}
        for event, order, what in delivered:
            first.setdefault(event, (order, what))
        of_order = {}
        for order, what in first.values():
            of_order.setdefault(int(order), []).append(what)
        expected = {order: ["OrderPlaced", "OrderPaid"] if paid else ["OrderPlaced"] for order, paid in self.rows().items()}
        self.assertEqual(of_order, expected)

    def in_file(self):
        path = self.folder / "orders.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [(event["id"], event["aggregate_id"], event["event_type"]) for event in events]

    def run_clients_while_the_service_is_killed(self, kills):
        """Each client places orders and pays every second one; the service dies in between. All orders are there once."""
        answered = queue.Queue()

        def client(number):
            try:
                for one in range(25):
                    key = f"{number}-{one}"
                    status, order = self.until_answered(lambda key=key: self.place(number, "1.50", key))
                    if status == 201 and one % 2 == 0:
                        path = f"/orders/{order['order']}/payment"
                        status, order = self.until_answered(lambda path=path: self.ask("POST", path))
                    answered.put((status, key, order.get("order"), order.get("paid")))
            except BaseException as error:
                answered.put((0, str(error), None, None))

        clients = [threading.Thread(target=client, args=(number,)) for number in range(1, 5)]
        for one in clients:
            one.start()
        for kill in range(1, kills + 1):
            wait_until(lambda kill=kill: answered.qsize() >= kill * 100 // (kills + 1) or not any(one.is_alive() for one in clients))
            self.service.kill()
            self.service.wait()
            self.start()
        for one in clients:
            one.join()
        answers = [answered.get() for _ in range(answered.qsize())]
        self.assertEqual([answer for answer in answers if answer[0] not in (200, 201)], [])
        self.assertEqual(len(answers), 100)
        self.assertEqual({order: paid for _, _, order, paid in answers}, self.rows())

    def stop(self):
        self.service.terminate()
        self.assertEqual(self.service.wait(timeout=60), 0)


class Orders(OrdersCase):
    def test_each_order_arrives_whenever_the_service_is_killed(self):
        self.start()
        self.run_clients_while_the_service_is_killed(4)
        events = sum(2 if paid else 1 for paid in self.rows().values())
        wait_until(lambda: len({event for event, _, _ in self.in_file()}) >= events)
        self.stop()
        self.expect_each_event(self.in_file())

    def test_a_request_that_comes_twice_is_one_order(self):
        self.start()
        status, order = self.place(7, "12.50", "a1")
        self.assertEqual((status, order["amount"], order["currency"], order["paid"]), (201, "12.50", "EUR", False))
        self.assertEqual(self.place(7, "12.50", "a1"), (201, order))
        self.assertEqual(self.place(7, "12.51", "a1")[0], 422)
        self.assertNotEqual(self.place(8, "12.50", "a1")[1]["order"], order["order"])
        path = f"/orders/{order['order']}"
        for _ in range(2):
            self.assertEqual(self.ask("POST", path + "/payment")[1]["paid"], True)
        self.assertEqual(self.ask("GET", path), (200, order | {"paid": True}))
        self.assertEqual(self.ask("POST", "/orders/999/payment")[0], 404)
        wait_until(lambda: len(self.in_file()) >= 3)
        self.stop()
        self.expect_each_event(self.in_file())

    def test_orders_at_the_same_time_do_not_exceed_the_limit_together(self):
        self.start()
        answers = queue.Queue()
        clients = [threading.Thread(target=lambda key=str(key): answers.put(self.until_answered(lambda: self.place(7, "300.00", key))[0]))
                   for key in range(8)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        self.assertEqual(sorted(answers.get() for _ in clients), [201] * 3 + [409] * 5)
        self.assertEqual(len(self.rows()), 3)

    def test_what_is_no_order_is_refused(self):
        self.start()
        good = {"customer": 7, "amount": "12.50", "currency": "EUR"}
        for wrong in ({"amount": "12.5"}, {"amount": 12.5}, {"amount": "0.00"}, {"amount": "-1.00"}, {"currency": "euro"}, {"customer": 0},
                      {"customer": "7"}, {"customer": 1.5}, {"amount": "9999999999999.00"}):
            self.assertEqual(self.ask("POST", "/orders", good | wrong, "a1")[0], 400, wrong)
        for body, key in ((good, None), (good, "k" * 101), ([], "a1")):
            self.assertEqual(self.ask("POST", "/orders", body, key)[0], 400)
        self.assertEqual(self.rows(), {})


@unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
@unittest.skipUnless(shutil.which("kcat"), "kcat is not installed")
class OrdersToKafka(OrdersCase):
    def test_each_order_arrives_whenever_the_service_is_killed(self):
        topic = "orders-" + uuid.uuid4().hex[:12]
        self.environment |= {"KAFKA_BROKERS": KAFKA, "ORDERS_TOPIC": topic}

        def delivered():
            text = subprocess.run(["kcat", "-C", "-q", "-e", "-o", "beginning", "-b", KAFKA, "-t", topic, "-f", "%h\t%k\n"],
                                  check=False, capture_output=True, text=True).stdout
            found = []
            for line in text.splitlines():
                headers, key = line.split("\t")
                headers = dict(header.split("=", 1) for header in headers.split(","))
                found.append((headers["outbox-id"], key, headers["outbox-type"]))
            return found

        self.start()
        self.run_clients_while_the_service_is_killed(2)
        events = sum(2 if paid else 1 for paid in self.rows().values())
        wait_until(lambda: len({event for event, _, _ in delivered()}) >= events)
        self.stop()
        self.expect_each_event(delivered())


@unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
@unittest.skipUnless(POSTGRES, "OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
@unittest.skipUnless((PROGRAMS / "inventory").exists(), "the example inventory is not built")
class Inventory(Case):
    """The orders are events of a SQLite file, the stock is in PostgreSQL."""

    def setUp(self):
        super().setUp()
        name = "inventory_" + uuid.uuid4().hex[:12]
        self.sql(f"CREATE DATABASE {name}", POSTGRES)
        self.addCleanup(self.sql, f"DROP DATABASE {name} WITH (FORCE)", POSTGRES)
        self.database = POSTGRES.rpartition("/")[0] + "/" + name
        topic = "order-events-" + uuid.uuid4().hex[:12]
        self.environment |= {"DATABASE_URL": self.database, "KAFKA_BROKERS": KAFKA, "TOPIC": topic}
        # Two subscriptions: each event is on the topic twice.
        (self.folder / "outbox.toml").write_text('[store]\nurl = "sqlite:orders.db"\n' + "".join(
            f'[subscription.{each}]\nsink = "kafka"\ntopic = "{topic}"\n[subscription.{each}.kafka]\nbrokers = "{KAFKA}"\n'
            "create = { partitions = 3, replication = 1 }\n" for each in ("orders", "again")), encoding="utf-8")
        self.run_it(BINARY, "migrate")
        self.run_it(BINARY, "migrate", "--store", self.database)

    def sql(self, statement, database=None):
        return subprocess.run(["psql", database or self.database, "-qXAtc", statement], check=True, capture_output=True, text=True).stdout.strip()

    def start(self, *command):
        process = subprocess.Popen(command or [PROGRAMS / "inventory"], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def tell(self, kind, number, count=None):
        order = {"order": str(number)} | ({"article": "lamp", "count": count} if count else {})
        self.run_it(BINARY, "enqueue", "order", number, kind, json.dumps(order))

    def told(self, kind):
        return int(self.sql(f"SELECT count(*) FROM outbox.event WHERE event_type = '{kind}'"))

    def test_stock_is_reserved_once_and_what_cannot_be_served_is_rejected(self):
        process = self.start()
        wait_until(lambda: self.sql("SELECT to_regclass('reservation') IS NOT NULL") == "t")
        self.sql("INSERT INTO stock VALUES ('lamp', 10)")
        for number in range(12):
            self.tell("OrderPlaced", number, 1)
            if number in (4, 8):
                process.kill()
                process.wait()
                process = self.start()
                self.run_it(BINARY, "relay", "--once")
        self.run_it(BINARY, "relay", "--once")
        wait_until(lambda: self.told("StockReserved") + self.told("OrderRejected") == 12)
        self.assertEqual((self.told("StockReserved"), self.told("OrderRejected")), (10, 2))
        self.assertEqual(self.sql("SELECT pieces FROM stock"), "0")
        cancelled = self.sql("SELECT order_id FROM reservation ORDER BY order_id LIMIT 1")
        self.tell("OrderCancelled", cancelled)
        self.run_it(BINARY, "relay", "--once")
        wait_until(lambda: self.told("StockReleased") == 1)
        self.assertEqual(self.sql("SELECT pieces FROM stock"), "1")
        self.wait_for_second_arrivals()
        self.assertIn("nothing differs", self.run_it(BINARY, "verify", "--subscription", "orders", "--inbox", self.database, "--consumer", "inventory"))
        self.assertEqual(self.told("StockReserved") + self.told("OrderRejected") + self.told("StockReleased"), 13)

    def wait_for_second_arrivals(self):
        # A process that is killed after it has stored a message and before it has committed the offset lets it arrive once more.
        wait_until(lambda: self.sql("SELECT count(*) FROM outbox.inbox WHERE consumer = 'inventory' AND arrivals >= 2") == "13")


class InventoryInPython(Inventory):
    """With a consumer of its own, and outbox.receive()."""

    def setUp(self):
        folders = []
        for name in ("psycopg", "confluent_kafka"):
            folder, why = client(name)
            if why:
                self.skipTest(why)
            folders.append(folder)
        super().setUp()
        self.environment["PYTHONPATH"] = os.pathsep.join(folders)
        self.sql("CREATE TABLE stock (article text PRIMARY KEY, pieces bigint NOT NULL); "
                 "CREATE TABLE reservation (order_id text PRIMARY KEY, article text NOT NULL, pieces bigint NOT NULL)")

    def start(self, *command):
        return super().start(sys.executable, HERE / "inventory" / "inventory.py")

    def wait_for_second_arrivals(self):
        """What it has committed is what it has seen, and it does not count."""
        seen = subprocess.run(
            [sys.executable, "-c", "import sys; from confluent_kafka import Consumer, TopicPartition as P\n"
             "consumer = Consumer({'bootstrap.servers': sys.argv[1], 'group.id': 'inventory-python'})\n"
             "parts = [P(sys.argv[2], part) for part in range(3)]\n"
             "while sum(max(part.offset, 0) for part in consumer.committed(parts)) < 26: pass", KAFKA, self.environment["TOPIC"]],
            env=self.environment, check=False, capture_output=True, text=True, timeout=60)
        self.assertEqual(seen.returncode, 0, seen.stderr)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@unittest.skipUnless(MAIL_PYTHON, "no Python has aiosmtpd (python3-aiosmtpd)")
class Mails(Case):
    def setUp(self):
        super().setUp()
        for name in ("order.py", "catcher.py", "body.txt"):
            shutil.copy(HERE / "mails" / name, self.folder)
        port = free_port()
        text = (HERE / "mails" / "outbox.toml").read_text(encoding="utf-8")
        (self.folder / "outbox.toml").write_text(text.replace("2525", str(port)), encoding="utf-8")
        self.run_it(BINARY, "migrate", "--store", "sqlite:shop.db")
        catcher = subprocess.Popen([MAIL_PYTHON, "catcher.py", str(port)], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(catcher.communicate)
        self.addCleanup(catcher.kill)
        self.assertEqual(catcher.stdout.readline(), "ready\n")

    def test_each_order_is_confirmed_once(self):
        customers = [("Zoë Ångström", "zoe@customer.example", "12.50"), ("Bo", "bo@customer.example", "0.99")]
        for customer in customers:
            self.run_it(sys.executable, "order.py", *customer)
        self.run_it(BINARY, "enqueue", "order", "1", "OrderPaid", "{}")
        for _ in range(2):
            self.run_it(BINARY, "relay", "--once")
        mails = [email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
                 for path in sorted((self.folder / "mails").iterdir())]
        found = sorted((mail["Subject"], mail["To"].addresses[0].display_name, mail["To"].addresses[0].addr_spec) for mail in mails)
        self.assertEqual(found, [("Your order 1", "Zoë Ångström", "zoe@customer.example"), ("Your order 2", "Bo", "bo@customer.example")])
        for mail in mails:
            self.assertIn("thank you for your order " + mail["Subject"].rpartition(" ")[2], mail.get_content())
        self.assertEqual(len({mail["Message-ID"] for mail in mails}), 2)


if __name__ == "__main__":
    unittest.main()
