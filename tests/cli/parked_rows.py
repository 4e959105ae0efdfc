"""Parked events, as a relay writes them."""


def make_parked(case):
    """An outbox with the subscription `orders` and three events of two keys: one dead, one retrying, and one waiting behind that."""
    case.migrate()
    case.config('[subscription.orders]\nsink = "null"\n')
    case.succeeds("subscription", "apply")
    for key, payload in (("a", '{"n":1}'), ("b", '{"n":2}'), ("b", '{"n":3}')):
        case.succeeds("enqueue", "order", key, "Placed", payload)
    park(case)


def park(case, subscription=1):
    """Of the first three events of a subscription one is dead, one retrying, and one waiting behind that."""
    insert(case, key="CASE e.n WHEN 1 THEN 101 ELSE 102 END", dead="e.n = 1", error="too large", first=2, subscription=subscription)


def park_blocked(case):
    """Of two events of one key the first is dead and blocks it."""
    insert(case, key="101", dead="e.n = 1", error="bad amount", blocked_by=1)


def insert(case, key, dead, error, first=None, blocked_by=None, subscription=1):
    """The first three events. `first`: the one that is retried, `blocked_by`: the one that blocks its key, by their number."""
    postgres = bool(case.flags)
    prefix = f"{case.flags[1]}." if postgres else "outbox_"
    now, never = ("now()", "'infinity'") if postgres else ("1", "9223372036854775807")
    lane, lane_of = ("lane, ", "e.lane, ") if postgres else ("", "")
    parked_at, parked_value = ("", "") if postgres else (", parked_at", ", 1")
    events = f"(SELECT *, row_number() OVER (ORDER BY seq) AS n FROM {prefix}event) e WHERE e.n"
    case.sql(f"""INSERT INTO {prefix}parked (subscription, seq, id, {lane}key, dead, attempts, error, aggregate_type, aggregate_id,
        event_type, payload, content_type, headers, created_at{parked_at})
        SELECT {subscription}, e.seq, e.id, {lane_of}{key}, {dead}, CASE WHEN {dead} THEN 3 ELSE 0 END, CASE WHEN {dead} THEN '{error}' ELSE '' END,
        e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers, e.created_at{parked_value}
        FROM {events} <= 3""")
    attempts, error, due, blocks = (3, error, now, "NULL") if first else (0, "", never, "e.seq")
    case.sql(f"""INSERT INTO {prefix}parked_key (subscription, key, {lane}solo, attempts, error, next_attempt_at, blocked_by)
        SELECT {subscription}, {key}, {lane_of}{'false' if postgres else '0'}, {attempts}, '{error}', {due}, {blocks}
        FROM {events} = {first or blocked_by}""")
