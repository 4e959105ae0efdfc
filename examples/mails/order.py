#!/usr/bin/env python3
"""order.py NAME ADDRESS TOTAL: places an order in shop.db. The order and the event that confirms it by mail are one transaction."""

import json
import sqlite3
import sys

name, address, total = sys.argv[1:]
with sqlite3.connect("shop.db") as database:
    database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT, total TEXT)")
    database.commit()
    database.execute("BEGIN IMMEDIATE")
    order = database.execute("INSERT INTO orders (customer, total) VALUES (?, ?)", (name, total)).lastrowid
    database.execute(
        "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES (?, ?, ?, ?)",
        ("order", str(order), "OrderPlaced", json.dumps({"customer": {"name": name, "mail": address}, "total": total})))
    database.execute("COMMIT")
print(order)
