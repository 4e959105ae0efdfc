"""Parked events, as a relay writes them."""


def park(case):
    """Of the first three events of the first subscription one is dead, one retrying, and one waiting."""
    states = ("dead", "retrying", "waiting")
    postgres = bool(case.flags)
    event, table = ("outbox.event", "outbox.parked") if postgres else ("outbox_event", "outbox_parked")
    if postgres:
        event, table = (name.replace("outbox.", f"{case.flags[1]}.") for name in (event, table))
    lane, lane_of = ("lane, ", "e.lane, ") if postgres else ("", "")
    now, number = ("now()", "row_number() OVER (ORDER BY seq)") if postgres else ("1", "row_number() OVER (ORDER BY seq)")
    parked_at = "" if postgres else ", parked_at"
    parked_value = "" if postgres else ", 1"
    case.sql(f"""INSERT INTO {table} (subscription, seq, id, {lane}aggregate_type, aggregate_id, event_type, payload,
        content_type, headers, created_at, state, attempts, next_attempt_at, error{parked_at})
        SELECT 1, e.seq, e.id, {lane_of}e.aggregate_type, e.aggregate_id, e.event_type, e.payload, e.content_type, e.headers,
        e.created_at, CASE e.n WHEN 1 THEN '{states[0]}' WHEN 2 THEN '{states[1]}' ELSE '{states[2]}' END, 3, {now},
        CASE e.n WHEN 3 THEN '' ELSE 'too large' END{parked_value}
        FROM (SELECT *, {number} AS n FROM {event}) e WHERE e.n <= 3""")
