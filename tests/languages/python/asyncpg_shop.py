"""Run by python_test.py with DATABASE_URL. Prints what it saw as one JSON object."""

import asyncio
import json
import os
from datetime import datetime, timezone

import asyncpg

from uuid7 import uuid7


async def connect():
    if "POOLER" in os.environ:
        # [asyncpg-pooler]
        connection = await asyncpg.connect(os.environ["DATABASE_URL"], statement_cache_size=0)   # behind PgBouncer before 1.21
        # [/asyncpg-pooler]
        return connection
    return await asyncpg.connect(os.environ["DATABASE_URL"])


async def place(connection):
    # [asyncpg]
    async with connection.transaction():
        await connection.execute("INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3)", 42, "Zoë 🚀", 1250)
        placed = await connection.fetchval("SELECT outbox.enqueue('order', $1::bigint, 'OrderPlaced', $2)",
                                           42, json.dumps({"customer": "Zoë 🚀", "cents": 1250}))   # a uuid.UUID
    # [/asyncpg]
    return placed


async def by_view(connection):
    # [asyncpg-view]
    async with connection.transaction():
        await connection.execute("UPDATE orders SET paid = true WHERE id = $1", 42)   # first the order, which locks it
        paid = await connection.fetchval(
            "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)"
            " VALUES ('order', $1, 'OrderPaid', $2) RETURNING id", "42", json.dumps({"by": "card"}))
    # [/asyncpg-view]
    return paid


async def rolled_back(connection):
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("INSERT INTO orders (id, customer, cents) VALUES (41, 'nobody', 0)")
    made = await connection.fetchval("SELECT outbox.enqueue('order', 41, 'OrderPlaced', '{}')")
    await transaction.rollback()
    return made


async def many(connection):
    # [asyncpg-many]
    events = [{"aggregate_type": "order", "aggregate_id": key, "event_type": kind, "payload": {"number": number}}
              for number, (key, kind) in enumerate([("43", "OrderPlaced"), ("43", "OrderPaid"), ("44", "OrderPlaced")], 1)]
    ids = [row[0] for row in await connection.fetch("SELECT outbox.enqueue_many($1)", json.dumps(events))]
    # [/asyncpg-many]
    return ids


async def picture(connection):
    # [asyncpg-bytes]
    picture = bytes(range(256))
    made = await connection.fetchval(   # ::bytea, or asyncpg wants a str
        "SELECT outbox.enqueue('picture', '7', 'Uploaded', $1::bytea, content_type => 'application/octet-stream')", picture)
    # [/asyncpg-bytes]
    return made


async def own_id(connection):
    own = uuid7()
    happened = datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc)
    # [asyncpg-own]
    await connection.execute(
        "SELECT outbox.enqueue('order', $1, 'OrderShipped', '{}', headers => $2, id => $3, occurred_at => $4)",
        "42", json.dumps({"tenant": "a"}), own, happened)
    # [/asyncpg-own]
    return own


async def refused(connection):
    # [asyncpg-refused]
    async with connection.transaction():
        kept = await connection.fetchval("SELECT outbox.enqueue('order', '45', 'OrderPlaced', '{}')")
        try:
            async with connection.transaction():   # a savepoint
                await connection.execute("SELECT outbox.enqueue('order', '45', 'OrderPaid', '{}', headers => $1)",
                                         json.dumps({"a b": "c"}))
        except asyncpg.InvalidParameterValueError as error:
            refusal = error   # its sqlstate, message and hint
    # [/asyncpg-refused]
    return kept, {"sqlstate": refusal.sqlstate, "message": refusal.message, "hint": refusal.hint, "text": str(refusal)}


async def task(connection):
    return await connection.fetchval("SELECT outbox.enqueue_task('reports', 'report.make', $1, key => $2)",
                                     json.dumps({"month": "2026-10"}), "customer-42")


async def receive(connection, message):
    async with connection.transaction():
        first = await connection.fetchval("SELECT outbox.receive('billing', $1)", message)
        if first:
            await connection.execute("UPDATE orders SET cents = cents WHERE id = 42")   # the effect of the message
    return first


async def in_bulk(connection):
    """executemany and COPY."""
    columns = ("aggregate_type", "aggregate_id", "event_type", "payload", "id")
    rows = [("order", "46", f"Step{number:02}", "{}", uuid7()) for number in range(20)]
    await connection.executemany(
        f"INSERT INTO outbox.new_event ({', '.join(columns)}) VALUES ($1, $2, $3, $4, $5)", rows)
    copied = [("order", "47", f"Step{number:02}", "{}", uuid7()) for number in range(3)]
    # [asyncpg-copy]
    await connection.copy_records_to_table("new_event", schema_name="outbox", records=copied, columns=columns)
    # [/asyncpg-copy]
    return [(row[4], row[1], row[2]) for row in rows + copied]


async def told(work):
    try:
        await work
    except (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        return str(error)
    return None


async def trips(connection):
    """What one trips over."""
    seen = {"number": await told(connection.fetchval("SELECT outbox.enqueue('order', $1, 'OrderPlaced', '{}')", 42)),
            "dict": await told(connection.fetchval("SELECT outbox.enqueue('order', '42', 'OrderPlaced', $1)", {})),
            "bytes": await told(connection.fetchval("SELECT outbox.enqueue('order', '42', 'OrderPlaced', $1)", b"{}"))}
    return seen


async def main():
    connection = await connect()
    said = {"placed": await place(connection), "paid": await by_view(connection), "rolled_back": await rolled_back(connection),
            "many": await many(connection), "bytes": await picture(connection), "own": await own_id(connection)}
    said["kept"], said["refused"] = await refused(connection)
    said["task"] = await task(connection)
    said["received"] = [await receive(connection, "message-1"), await receive(connection, "message-1")]
    said["more"] = await in_bulk(connection)
    said["trips"] = await trips(connection)
    await connection.close()
    print(json.dumps(said, default=str))


if __name__ == "__main__":
    asyncio.run(main())
