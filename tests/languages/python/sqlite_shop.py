"""Run by python_test.py in the folder of shop.db. Prints what it saw as one JSON object."""

import json
import sqlite3

from uuid7 import uuid7


def place():
    # [sqlite]
    connection = sqlite3.connect("shop.db", timeout=5, isolation_level=None)   # transactions are written where they begin
    placed = str(uuid7())   # the view cannot return the id that it makes
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)", (42, "Zoë 🚀", 1250))
    connection.execute("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?, ?)",
                       (placed, "order", 42, "OrderPlaced", json.dumps({"customer": "Zoë 🚀", "cents": 1250})))
    connection.execute("COMMIT")
    # [/sqlite]
    return connection, placed


def insert(connection, *values, more=""):
    made = uuid7()
    columns = "id, aggregate_type, aggregate_id, event_type, payload" + more
    connection.execute(f"INSERT INTO outbox_new_event ({columns}) VALUES ({', '.join('?' * (len(values) + 1))})", (str(made), *values))
    return str(made)


def rolled_back(connection):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)")
    made = insert(connection, "order", "41", "OrderPlaced", "{}")
    connection.execute("ROLLBACK")
    return made


def refused(connection):
    # [sqlite-refused]
    connection.execute("BEGIN IMMEDIATE")
    kept = insert(connection, "order", "45", "OrderPlaced", "{}")
    try:
        insert(connection, "order", "45", "OrderPaid", "{}", '{"a b": "c"}', more=", headers")
    except sqlite3.IntegrityError as error:
        refusal = str(error)
    connection.execute("COMMIT")   # the statement failed, the transaction goes on
    # [/sqlite-refused]
    return kept, refusal


def main():
    connection, placed = place()
    said = {"placed": placed, "paid": insert(connection, "order", "42", "OrderPaid", '{"by": "card"}'),
            "rolled_back": rolled_back(connection)}
    said["bytes"] = insert(connection, "picture", "7", "Uploaded", bytes(range(256)), "application/octet-stream", more=", content_type")
    said["own"] = insert(connection, "order", "42", "OrderShipped", "{}", '{"tenant": "a"}', "2001-02-03T04:05:06.789Z",
                         more=", headers, occurred_at")
    said["kept"], said["refused"] = refused(connection)
    connection.execute("BEGIN IMMEDIATE")
    said["returned"] = connection.execute("INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload)"
                                          " VALUES ('order', '41', 'OrderPlaced', '{}') RETURNING id").fetchone()[0]
    connection.execute("ROLLBACK")
    rows = [(str(uuid7()), "46", f"Step{number:02}") for number in range(20)]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO outbox_new_event (id, aggregate_type, aggregate_id, event_type, payload)"
                           " VALUES (?, 'order', ?, ?, '{}')", rows)
    connection.execute("COMMIT")
    said["more"] = rows
    print(json.dumps(said))


if __name__ == "__main__":
    main()
