#!/usr/bin/env python3
"""The same as inventory.cpp with a consumer of its own: outbox.receive() in the transaction of the effect, then the commit of the offset.

Needs psycopg and confluent-kafka. DATABASE_URL, KAFKA_BROKERS and TOPIC say where."""

import json
import os

import psycopg
from confluent_kafka import Consumer


def apply(connection, kind, order):
    if kind == "OrderPlaced":
        reserved = connection.execute(
            "UPDATE stock SET pieces = pieces - %(count)s WHERE article = %(article)s AND pieces >= %(count)s", order).rowcount == 1
        if reserved:
            connection.execute("INSERT INTO reservation VALUES (%(order)s, %(article)s, %(count)s)", order)
        return "StockReserved" if reserved else "OrderRejected"
    if kind == "OrderCancelled":
        released = connection.execute(
            "WITH gone AS (DELETE FROM reservation WHERE order_id = %(order)s RETURNING article, pieces) "
            "UPDATE stock s SET pieces = s.pieces + gone.pieces FROM gone WHERE s.article = gone.article", order).rowcount
        return "StockReleased" if released else None
    return None


def handle(connection, message):
    headers = {name: value.decode() for name, value in message.headers() or []}
    with connection.transaction():
        first = connection.execute("SELECT outbox.receive('inventory', %s)", (headers["outbox-id"],)).fetchone()[0]
        if not first:
            return
        order = json.loads(message.value())
        what = apply(connection, headers["outbox-type"], order)
        if what:
            connection.execute("SELECT outbox.enqueue('stock', %s, %s, %s)", (order["order"], what, json.dumps({"order": order["order"]})))


def main():
    consumer = Consumer({"bootstrap.servers": os.environ["KAFKA_BROKERS"], "group.id": "inventory-python",
                         "auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 10000})
    consumer.subscribe([os.environ["TOPIC"]])
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while True:
            message = consumer.poll(1.0)
            if message is None or message.error():
                continue
            handle(connection, message)
            consumer.commit(message)   # after the transaction: a message that comes again is known


if __name__ == "__main__":
    main()
