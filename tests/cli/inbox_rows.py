"""Rows of the inbox, as consumers write them."""


def receive(case, *messages):
    """Messages, the oldest first, a second apart: (consumer, id, type, place, task) of a consumer, (consumer, id) of receive()."""
    postgres = bool(case.flags)
    table = f"{case.flags[1]}.inbox" if postgres else "outbox_inbox"
    for ago, message in enumerate(reversed(messages), 1):
        at = f"clock_timestamp() - {ago} * interval '1 s'" if postgres else f"(unixepoch() - {ago}) * 1000000"
        names = ("consumer", "message_id", "event_type", "place", "task")[:len(message)]
        values = ", ".join("NULL" if value is None else f"'{value}'" for value in message)
        case.sql(f"INSERT INTO {table} ({', '.join(names)}, received_at) VALUES ({values}, {at})")


def receive_some(case, task="01a20011-7d5e-7b80-9d3c-2f1e9b3f6a11"):
    """Messages of two consumers, of which `mails` is a program that calls receive(); both have one with the id b-1."""
    receive(case, ("mails", "m-1"), ("billing", "b-1", "OrderPlaced", "orders/0/1", task), ("billing", "b-2", "OrderPaid", "orders/0/2", None),
            ("mails", "b-1"))
