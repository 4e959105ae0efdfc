#!/usr/bin/env python3
"""Places an order in shop.db from Python: no library of ours, only the view outbox_new_event."""

import sqlite3

with sqlite3.connect("shop.db") as database:
    database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL)")
    database.commit()
    database.execute("BEGIN IMMEDIATE")
    order = database.execute("INSERT INTO orders (total) VALUES (12.5)").lastrowid
    database.execute(
        "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?)",
        ("order", str(order), "OrderPlaced", '{"total": 12.5}'))
    database.execute("COMMIT")
