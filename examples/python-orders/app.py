"""An order service. Each request is one transaction: the order, and the event that tells of it.

usage: DATABASE_URL=postgresql://... app.py [PORT]
"""

import json
import os
import re
import signal
import sys
import threading
import uuid
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

DATABASE_URL = os.environ.get("DATABASE_URL", "")


class Refused(Exception):
    def __init__(self, status, problem):
        super().__init__(problem)
        self.status = status


def connect():
    """One connection per request: a busy service has a pool."""
    return psycopg.connect(DATABASE_URL, connect_timeout=5)


def make_tables():
    with connect() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('orders', 0))")  # several may start at once
        connection.execute((Path(__file__).parent / "schema.sql").read_text(encoding="utf-8"))


# ---- What a request may say


def require(condition, problem):
    if not condition:
        raise Refused(400, problem)


def identifier(text, name):
    require(isinstance(text, str) and re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text), f"{name}: is no UUID")
    return uuid.UUID(text)


def money(text, name):
    """Never a float: amounts are strings in JSON and Decimal here."""
    require(isinstance(text, str) and re.fullmatch(r"[0-9]{1,12}\.[0-9]{2}", text), f'{name}: is no amount such as "12.50"')
    return Decimal(text)


def order_of(body):
    require(isinstance(body, dict), "the body is no JSON object")
    lines = body.get("lines")
    require(isinstance(lines, list) and 1 <= len(lines) <= 100, "lines: 1 to 100 are needed")
    total = Decimal(0)
    for at, line in enumerate(lines):
        require(isinstance(line, dict) and set(line) == {"sku", "quantity", "price"}, f"lines {at}: needs sku, quantity and price")
        require(isinstance(line["sku"], str) and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", line["sku"]), f"lines {at}: sku: is no name")
        require(type(line["quantity"]) is int and 1 <= line["quantity"] <= 1000, f"lines {at}: quantity: must be from 1 to 1000")
        price = money(line["price"], f"lines {at}: price")
        require(price <= 1_000_000, f"lines {at}: price: is above 1000000.00")
        total += price * line["quantity"]
    currency = body.get("currency")
    require(isinstance(currency, str) and re.fullmatch(r"[A-Z]{3}", currency), "currency: is no code such as EUR")
    return identifier(body.get("customer"), "customer"), currency, lines, total


# ---- The transactions


def place(request, body):
    customer, currency, lines, total = order_of(body)
    with connect() as connection:  # commits at its end, rolls back after an exception
        order = uuid.uuid4()
        placed = connection.execute(
            "INSERT INTO orders (id, request, customer, currency, lines, total) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (customer, request) DO NOTHING RETURNING id", (order, request, customer, currency, Jsonb(lines), total)).fetchone()
        if placed:
            event = {"order": str(order), "customer": str(customer), "currency": currency, "total": str(total), "lines": lines}
            connection.execute("SELECT outbox.enqueue('order', %s, 'OrderPlaced', %s)", (order, Jsonb(event)))
            return 201, {"id": str(order), "total": str(total)}
        known, *first = connection.execute("SELECT id, currency, lines FROM orders WHERE customer = %s AND request = %s",
                                           (customer, request)).fetchone()
        if first != [currency, lines]:
            raise Refused(422, "Idempotency-Key: another order has it")
        return 200, {"id": str(known), "total": str(total)}


def pay(order, body):
    require(isinstance(body, dict), "the body is no JSON object")
    amount = money(body.get("amount"), "amount")
    with connect() as connection:
        # First the order, which locks it, then the event: so the events of an order come in the order of its changes.
        found = connection.execute("SELECT total, currency, paid_at FROM orders WHERE id = %s FOR UPDATE", (order,)).fetchone()
        if not found:
            raise Refused(404, "there is no such order")
        total, currency, paid_at = found
        if amount != total:
            raise Refused(422, f"amount: the order costs {total} {currency}")
        if not paid_at:
            connection.execute("UPDATE orders SET paid_at = now() WHERE id = %s", (order,))
            event = {"order": str(order), "amount": str(amount), "currency": currency}
            connection.execute("SELECT outbox.enqueue('order', %s, 'OrderPaid', %s)", (order, Jsonb(event)))
    return 200, {"id": str(order), "paid": True}


def show(order):
    with connect() as connection:
        found = connection.execute("SELECT total, currency, paid_at IS NOT NULL FROM orders WHERE id = %s", (order,)).fetchone()
    if not found:
        raise Refused(404, "there is no such order")
    return 200, {"id": str(order), "total": str(found[0]), "currency": found[1], "paid": found[2]}


# ---- HTTP


class Handler(BaseHTTPRequestHandler):
    timeout = 30

    def body(self):
        length = self.headers.get("Content-Length", "")
        require(re.fullmatch(r"[0-9]{1,5}", length), "Content-Length: is needed, and at most 99999")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refused(400, "the body is no JSON") from None

    def answer_post(self):
        if self.path == "/orders":
            request = self.headers.get("Idempotency-Key", "")
            require(re.fullmatch(r"[!-~]{1,100}", request), "Idempotency-Key: is needed, 1 to 100 characters")
            return place(request, self.body())
        found = re.fullmatch(r"/orders/([^/]+)/payment", self.path)
        if not found:
            raise Refused(404, "there is no such path")
        return pay(identifier(found[1], "order"), self.body())

    def answer_get(self):
        if self.path == "/health":
            return 200, {}
        found = re.fullmatch(r"/orders/([^/]+)", self.path)
        if not found:
            raise Refused(404, "there is no such path")
        return show(identifier(found[1], "order"))

    def respond(self, work):
        try:
            status, answer = work()
        except Refused as refused:
            status, answer = refused.status, {"error": str(refused)}
        except psycopg.Error as error:  # also when it is not known whether the commit happened: the client asks again with its key
            print("error:", error, file=sys.stderr)
            status, answer = 503, {"error": "try again"}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):  # pylint: disable=invalid-name
        self.respond(self.answer_post)

    def do_GET(self):  # pylint: disable=invalid-name
        self.respond(self.answer_get)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # a stop waits for the requests that run


def main():
    if not DATABASE_URL:
        sys.exit("app.py: DATABASE_URL is not set (hint: DATABASE_URL=postgresql://localhost/shop)")
    make_tables()
    server = Server((os.environ.get("HOST", "127.0.0.1"), int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print("ready", flush=True)
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
