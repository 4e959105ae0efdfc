"""Run by python_test.py with DATABASE_URL. Prints what it saw as one JSON object."""

import json
import os
from datetime import datetime, timezone

import psycopg
from psycopg.types.json import Jsonb
from uuid7 import uuid7


def place(connection):
    # [place]
    with connection.transaction():
        connection.execute("INSERT INTO orders (id, customer, cents) VALUES (%s, %s, %s)", (42, "Zoë 🚀", 1250))
        placed = connection.execute("SELECT outbox.enqueue('order', %s, 'OrderPlaced', %s)",
                                    (42, Jsonb({"customer": "Zoë 🚀", "cents": 1250}))).fetchone()[0]   # a uuid.UUID
    # [/place]
    return placed


def by_view(connection):
    # [view]
    with connection.transaction():
        connection.execute("UPDATE orders SET paid = true WHERE id = %s", (42,))   # first the order, which locks it
        paid = connection.execute(
            "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)"
            " VALUES ('order', %s, 'OrderPaid', %s) RETURNING id", ("42", Jsonb({"by": "card"}))).fetchone()[0]
    # [/view]
    return paid


def rolled_back(connection):
    with connection.transaction(force_rollback=True):
        connection.execute("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)")
        return connection.execute("SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}')").fetchone()[0]


def many(connection):
    # [many]
    events = [{"aggregate_type": "order", "aggregate_id": key, "event_type": kind, "payload": {"number": number}}
              for number, (key, kind) in enumerate([("43", "OrderPlaced"), ("43", "OrderPaid"), ("44", "OrderPlaced")], 1)]
    ids = [row[0] for row in connection.execute("SELECT outbox.enqueue_many(%s)", (Jsonb(events),))]
    # [/many]
    return ids


def picture(connection):
    # [bytes]
    picture = bytes(range(256))
    row = connection.execute("SELECT outbox.enqueue('picture', 7, 'Uploaded', %s, content_type => 'application/octet-stream')",
                             (picture,)).fetchone()
    # [/bytes]
    return row[0]


def own_id(connection):
    # [own]
    own = uuid7()
    happened = datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc)   # with a time zone: without one it is local time
    connection.execute(
        "SELECT outbox.enqueue('order', %s, 'OrderShipped', '{}', headers => %s, id => %s, occurred_at => %s)",
        (42, Jsonb({"tenant": "a"}), own, happened))
    # [/own]
    return own


def refused(connection):
    # [refused]
    with connection.transaction():
        kept = connection.execute("SELECT outbox.enqueue('order', 45, 'OrderPlaced', '{}')").fetchone()[0]
        try:
            with connection.transaction():   # a savepoint
                connection.execute("SELECT outbox.enqueue('order', 45, 'OrderPaid', '{}', headers => %s)", (Jsonb({"a b": "c"}),))
        except psycopg.errors.InvalidParameterValue as error:
            refusal = error.diag
    # [/refused]
    return kept, {"sqlstate": refusal.sqlstate, "message": refusal.message_primary, "hint": refusal.message_hint}


def task(connection):
    row = connection.execute("SELECT outbox.enqueue_task('reports', 'report.make', %s, key => %s)",
                             (Jsonb({"month": "2026-10"}), "customer-42")).fetchone()
    return row[0]


# [receive]
def receive(connection, message):
    with connection.transaction():
        first = connection.execute("SELECT outbox.receive('billing', %s)", (message,)).fetchone()[0]
        if first:
            connection.execute("UPDATE orders SET cents = cents WHERE id = 42")   # the effect of the message
    return first
# [/receive]


def in_bulk(connection):
    """executemany, COPY, and more executions than make psycopg prepare a statement."""
    more = []
    columns = "outbox.new_event (aggregate_type, aggregate_id, event_type, payload, id)"
    rows = [("order", "46", f"Step{number:02}", Jsonb({}), uuid7()) for number in range(20)]
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {columns} VALUES (%s, %s, %s, %s, %s)", rows)
        copied = [("order", "47", f"Step{number:02}", Jsonb({}), uuid7()) for number in range(3)]
        with cursor.copy(f"COPY {columns} FROM STDIN") as copy:
            for row in copied:
                copy.write_row(row)
    more += [(row[4], row[1], row[2]) for row in rows + copied]
    for number in range(8):
        row = connection.execute("SELECT outbox.enqueue('order', %s, %s, %s)", (48, f"Step{number}", json.dumps({}))).fetchone()
        more.append((row[0], "48", f"Step{number}"))
    return more


def main():
    # [connect]
    connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)   # transactions are written where they begin
    # [/connect]
    if "POOLER" in os.environ:
        # [pooler]
        connection.prepare_threshold = None   # behind PgBouncer before 1.21: no prepared statements
        # [/pooler]
    with connection:
        said = {"placed": place(connection), "paid": by_view(connection), "rolled_back": rolled_back(connection),
                "many": many(connection), "bytes": picture(connection), "own": own_id(connection)}
        said["kept"], said["refused"] = refused(connection)
        said["task"] = task(connection)
        said["received"] = [receive(connection, "message-1"), receive(connection, "message-1")]
        said["more"] = in_bulk(connection)
    print(json.dumps(said, default=str))


if __name__ == "__main__":
    main()
