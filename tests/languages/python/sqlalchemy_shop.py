"""Run by python_test.py with DATABASE_URL. Prints what it saw as one JSON object."""

import json
import os
import uuid
from datetime import datetime, timezone

from sqlalchemy import BigInteger, DateTime, Text, bindparam, cast, create_engine, event, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.orm.exc import ObjectDeletedError
from uuid7 import uuid7


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    customer: Mapped[str]
    cents: Mapped[int]
    paid: Mapped[bool] = mapped_column(default=False)


# [model]
class Event(Base):   # rows are only added; the view reads as empty
    __tablename__ = "new_event"
    __table_args__ = {"schema": "outbox"}
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid7)
    aggregate_type: Mapped[str] = mapped_column(Text)
    aggregate_id: Mapped[str] = mapped_column(Text)
    event_type: Mapped[str] = mapped_column(Text)
    payload: Mapped[dict] = mapped_column(JSONB)
    headers: Mapped[dict] = mapped_column(JSONB, default=dict)
    occurred_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
# [/model]


def place(engine):
    # [function]
    with Session(engine) as session, session.begin():
        session.add(Order(id=42, customer="Zoë 🚀", cents=1250))
        session.flush()   # first the order, then the event
        payload = cast({"customer": "Zoë 🚀", "cents": 1250}, JSONB)
        placed = session.scalar(select(func.outbox.enqueue("order", 42, "OrderPlaced", payload)))
    # [/function]
    return placed


def by_model(engine):
    # [orm]
    with Session(engine) as session, session.begin():
        order = session.get(Order, 42)
        order.paid = True
        session.flush()   # first the order: without it the ORM writes the event before it
        placed = Event(aggregate_type="order", aggregate_id=str(order.id), event_type="OrderPaid", payload={"by": "card"})
        session.add(placed)
        session.flush()
        paid = placed.id   # after the commit the ORM would look for the row, and find none
    # [/orm]
    return paid


def rolled_back(engine):
    with Session(engine) as session:
        session.add(Order(id=41, customer="nobody", cents=0))
        made = Event(aggregate_type="order", aggregate_id="41", event_type="OrderPlaced", payload={})
        session.add(made)
        session.flush()
        return made.id


def own_id(engine):
    own = uuid7()
    with Session(engine) as session, session.begin():
        session.add(Event(id=own, aggregate_type="order", aggregate_id="42", event_type="OrderShipped", payload={},
                          headers={"tenant": "a"}, occurred_at=datetime(2001, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc)))
    return own


def many_and_bytes(engine):
    with engine.begin() as connection:
        # [core]
        events = [{"aggregate_type": "order", "aggregate_id": key, "event_type": kind, "payload": {"number": number}}
                  for number, (key, kind) in enumerate([("43", "OrderPlaced"), ("43", "OrderPaid"), ("44", "OrderPlaced")], 1)]
        enqueue_many = text("SELECT outbox.enqueue_many(:events)").bindparams(bindparam("events", type_=JSONB))
        ids = connection.scalars(enqueue_many, {"events": events}).all()
        # [/core]
        enqueue = text("SELECT outbox.enqueue('picture', 7, 'Uploaded', :picture, content_type => 'application/octet-stream')")
        return ids, connection.scalar(enqueue, {"picture": bytes(range(256))})


def refused(engine):
    with Session(engine) as session, session.begin():
        kept = Event(aggregate_type="order", aggregate_id="45", event_type="OrderPlaced", payload={})
        session.add(kept)
        session.flush()
        # [refused]
        try:
            with session.begin_nested():   # a savepoint
                session.add(Event(aggregate_type="order", aggregate_id="45", event_type="OrderPaid", payload={}, headers={"a b": "c"}))
        except DBAPIError as error:
            refusal = error.orig.diag
        # [/refused]
        return kept.id, {"sqlstate": refusal.sqlstate, "message": refusal.message_primary, "hint": refusal.message_hint}


def task_and_inbox(engine):
    with engine.begin() as connection:
        month = cast({"month": "2026-10"}, JSONB)
        task = connection.scalar(select(func.outbox.enqueue_task("reports", "report.make", month, "customer-42")))
        received = [connection.scalar(select(func.outbox.receive("billing", "message-1"))) for _ in range(2)]
    return task, received


def several(engine):
    """One INSERT of several rows."""
    with Session(engine, expire_on_commit=False) as session, session.begin():
        events = [Event(aggregate_type="order", aggregate_id="46", event_type=f"Step{number:02}", payload={}) for number in range(20)]
        session.add_all(events)
    return [(made.id, made.aggregate_id, made.event_type) for made in events]


def what_trips(engine):
    """What the page warns of: the order of statements without a flush, and reading the event after its commit."""
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *call: statements.append(" ".join(call[2].split()[:3])))
    with Session(engine) as session, session.begin():
        order = session.get(Order, 42)
        statements.clear()
        order.cents = order.cents + 1
        made = Event(aggregate_type="order", aggregate_id="49", event_type="OrderChanged", payload={})
        session.add(made)
        session.flush()
        more = [(made.id, "49", "OrderChanged")]
        written = list(statements)
        order.cents = order.cents - 1
    session = Session(engine)
    session.add(made := Event(aggregate_type="order", aggregate_id="49", event_type="OrderChanged", payload={}, id=uuid7()))
    session.flush()
    more.append((made.id, "49", "OrderChanged"))
    session.commit()
    try:
        found = str(made.id)
    except ObjectDeletedError:
        found = "deleted"
    session.close()
    return more, {"without_flush": written, "after_commit": found}


def main():
    url = os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:")
    # [pooler]
    without_prepared_statements = {"prepare_threshold": None}   # behind PgBouncer before 1.21
    engine = create_engine(url, connect_args=without_prepared_statements)
    # [/pooler]
    if "POOLER" not in os.environ:
        engine = create_engine(url)
    said = {"placed": place(engine), "paid": by_model(engine), "rolled_back": rolled_back(engine), "own": own_id(engine)}
    said["many"], said["bytes"] = many_and_bytes(engine)
    said["kept"], said["refused"] = refused(engine)
    said["task"], said["received"] = task_and_inbox(engine)
    more, said["trips"] = what_trips(engine)
    said["more"] = several(engine) + more
    print(json.dumps(said, default=str))


if __name__ == "__main__":
    main()
