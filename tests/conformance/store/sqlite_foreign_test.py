"""Another language at the view outbox_new_event: run by sqlite_foreign_test with the path of a migrated file.

Prints one line per step; the last one is "done". Exits with a message when something is not as it should be.
"""
import json
import sqlite3
import sys
import uuid

GOOD = {"aggregate_type": "order", "aggregate_id": "42", "event_type": "OrderPlaced", "payload": '{"total": 12.5}'}

# JSON with half of a surrogate pair, which is refused, and JSON that only looks like it.
HALF_PAIRS = [r'"\ud83d"', r'"\uDE00"', r'{"\uD83d": 1}', r'["\ud83d\ud83d\ude00"]', r'"\\\ud83d"', r'"\ud83dx\ude00"', r'"\ud83d\\\ude00"',
              r'"\u0000\ude00"', r'"\ud83d\u0000\ude00"']
WHOLE_PAIRS = [r'"\ud83d\ude00"', r'"\\ud83d"', r'"\u005cud83d"', r'["\uD83D\uDE00\\", "\u00fc"]', '"\ud7ff \U0001f680 \\ud83d\\ude80"']


def connect(path):
    return sqlite3.connect(path, timeout=10, isolation_level=None)


def insert(db, **fields):
    names = ", ".join(fields)
    marks = ", ".join("?" * len(fields))
    db.execute(f"INSERT INTO outbox_new_event ({names}) VALUES ({marks})", list(fields.values()))


def expect(condition, what):
    if not condition:
        sys.exit(f"not as it should be: {what}")


def newest(db):
    return db.execute(
        "SELECT hex(id), aggregate_type, aggregate_id, event_type, payload, content_type, headers, typeof(payload)"
        " FROM outbox_event ORDER BY seq DESC LIMIT 1").fetchone()


def count(db):
    return db.execute("SELECT count(*) FROM outbox_event").fetchone()[0]


def commits_and_rolls_back(db):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
    for place in ("COMMIT", "ROLLBACK"):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO orders VALUES (1)")
        insert(db, **{**GOOD, "aggregate_id": place})
        db.execute(place)
    expect(count(db) == 1, "one event, of the transaction that committed")
    expect(newest(db)[2] == "COMMIT", "the committed event")


def stores_what_it_was_given(db):
    insert(db, **GOOD)
    event_id, kind, key, event, payload, content_type, headers, stored_as = newest(db)
    made = uuid.UUID(event_id)
    expect(made.version == 7 and made.variant == uuid.RFC_4122, f"a UUIDv7, not {made}")
    expect((kind, key, event) == ("order", "42", "OrderPlaced"), "names")
    expect((payload, stored_as) == (GOOD["payload"].encode(), "blob"), "payload as bytes")
    expect((content_type, headers) == ("application/json", "{}"), "defaults")

    insert(db, **GOOD, headers=json.dumps({"tenant": "a"}), content_type="application/json; charset=utf-8")
    expect(json.loads(newest(db)[6]) == {"tenant": "a"}, "headers")
    insert(db, **{**GOOD, "payload": bytes(range(256)), "content_type": "application/octet-stream"})
    expect(newest(db)[4] == bytes(range(256)), "bytes")
    insert(db, **{**GOOD, "payload": "", "content_type": ""})
    expect(newest(db)[4] == b"", "empty payload")
    insert(db, **{**GOOD, "aggregate_id": 17})
    expect(newest(db)[2] == "17", "a number as the key")
    insert(db, **{**GOOD, "aggregate_id": None})
    expect(newest(db)[2] == "", "no key")
    insert(db, **{**GOOD, "payload": '"\U0001f680 \\u00fc"'})
    expect(newest(db)[4].decode() == '"\U0001f680 \\u00fc"', "unicode")
    for whole in WHOLE_PAIRS:
        insert(db, **{**GOOD, "payload": whole})
        expect(newest(db)[4].decode() == whole, whole)
    insert(db, **{**GOOD, "payload": HALF_PAIRS[0], "content_type": "text/plain"})
    expect(newest(db)[4].decode() == HALF_PAIRS[0], "text may be anything")

    for occurred, expected in (("2001-02-03T05:05:06.789+01:00", 981173106789000), ("2001-02-03 04:05:06Z", 981173106000000),
                               (981173106789012, 981173106789012), (None, None)):
        insert(db, **GOOD, occurred_at=occurred)
        found = db.execute("SELECT occurred_at FROM outbox_event ORDER BY seq DESC LIMIT 1").fetchone()[0]
        expect(found == expected, f"when it happened: {occurred!r} is {found}")

    given = uuid.uuid4()
    for form in (str(given), str(given).upper(), given.bytes):
        insert(db, **GOOD, id=form)
        expect(uuid.UUID(newest(db)[0]) == given, f"the caller's id, given as {form!r}")


def refuses_in_words(db):
    bad = [
        ("aggregate_type: is blank", {"aggregate_type": " \t"}),
        ("aggregate_type: must be text", {"aggregate_type": None}),
        ("aggregate_type: is longer than 255 bytes", {"aggregate_type": "\u00fc" * 128}),
        ("aggregate_id: has a control character", {"aggregate_id": "a\nb"}),
        ("aggregate_id: has a control character", {"aggregate_id": "a\0b"}),
        ("aggregate_id: must be text", {"aggregate_id": 1.5}),
        ("event_type: is blank", {"event_type": ""}),
        ("event_type: has a control character", {"event_type": "a\x7f"}),
        ("payload: is null", {"payload": None}),
        ("payload: is not JSON", {"payload": "{"}),
        ("payload: is not JSON", {"payload": ""}),
        ("payload: is not JSON", {"payload": "{}\0"}),
        ("payload: is not JSON", {"payload": "x", "content_type": "Application/Vnd.Shop+JSON; v=1"}),
        *(("payload: is not JSON: a \\u escape is half of a pair", {"payload": payload}) for payload in HALF_PAIRS),
        ("payload: is not JSON: a \\u escape is half of a pair", {"payload": HALF_PAIRS[0], "content_type": "A/B+JSON;c=d"}),
        ("payload: is larger than", {"payload": "x" * (1024 * 1024 + 1), "content_type": "text/plain"}),
        ("content_type: must be text", {"content_type": b"text/plain"}),
        ("headers: must be a JSON object", {"headers": "[]"}),
        ("headers: must be a JSON object", {"headers": ""}),
        ("headers: a value is not a string", {"headers": '{"a": 1}'}),
        ("headers: a value has a control character", {"headers": '{"a": "\\u0001"}'}),
        ("headers: a value has a control character", {"headers": '{"a": "\\u0000"}'}),
        ("headers: a name is not a token", {"headers": '{"a b": "c"}'}),
        ("headers: a name comes twice", {"headers": '{"a": "1", "A": "2"}'}),
        ("headers: a \\u escape is half of a pair", {"headers": '{"a": "\\ud83d"}'}),
        ("headers: names that begin with outbox- or outbox_ are reserved", {"headers": '{"Outbox-Seq": "1"}'}),
        ("headers: names that begin with outbox- or outbox_ are reserved", {"headers": '{"OUTBOX_SEQ": "1"}'}),
        ("headers: content-type is set twice", {"headers": '{"Content_Type": "text/plain"}'}),
        ("headers: are larger than", {"headers": json.dumps({"a": "x" * 65536})}),
        ("occurred_at: is not a time", {"occurred_at": "yesterday"}),
        ("occurred_at: is not a time", {"occurred_at": "now"}),
        ("occurred_at: is not a time", {"occurred_at": "2001-02-03T04:05:06"}),
        ("occurred_at: is not a time", {"occurred_at": "2001-13-03T04:05:06Z"}),
        ("occurred_at: must be", {"occurred_at": 1.5}),
        ("occurred_at: lies outside", {"occurred_at": 253402300800000000}),
        ("id: is not a UUID", {"id": "42"}),
        ("id: is not a UUID", {"id": b"42"}),
        ("id: is not a UUID", {"id": "0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0cg"}),
    ]
    before = count(db)
    db.execute("BEGIN IMMEDIATE")
    for message, fields in bad:
        try:
            insert(db, **{**GOOD, **fields})
        except sqlite3.Error as error:
            expect(str(error).startswith(message), f"{message!r}, not {str(error)!r}")
        else:
            sys.exit(f"not refused: {message}")
    insert(db, **GOOD)  # The transaction is still usable.
    db.execute("COMMIT")
    expect(count(db) == before + 1, "only the good event")


def the_table_keeps_the_outermost_limits(db):
    before = count(db)
    for headers, payload in (("x" * (1 << 20), b""), ("x" * ((1 << 20) + 1), b""), ("{}", bytes((64 << 20) + 1))):
        try:
            db.execute("INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, payload, headers)"
                       " VALUES (?, 'a', 'k', 'E', ?, ?)", (uuid.uuid4().bytes, payload, headers))
        except sqlite3.IntegrityError as error:
            expect("outbox_event_limits" in str(error), str(error))
    expect(count(db) == before + 1, "only what is within the limits")
    db.execute("DELETE FROM outbox_event WHERE headers LIKE 'x%'")


def never_reuses_a_seq(db):
    insert(db, **GOOD)
    last = db.execute("SELECT max(seq) FROM outbox_event").fetchone()[0]
    db.execute("DELETE FROM outbox_event")
    insert(db, **GOOD)
    expect(db.execute("SELECT seq FROM outbox_event").fetchone()[0] == last + 1, "a new seq after the deleted ones")


def deferred_transactions_fail_cleanly(db, path):
    db.execute("BEGIN")
    before = count(db)
    with connect(path) as other:
        insert(other, **GOOD)
    other.close()
    try:
        insert(db, **GOOD)
    except sqlite3.OperationalError as error:
        expect(error.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT", error.sqlite_errorname)
    else:
        sys.exit("a stale snapshot was written to")
    db.execute("ROLLBACK")
    db.execute("BEGIN IMMEDIATE")
    insert(db, **GOOD)
    db.execute("COMMIT")
    expect(count(db) == before + 2, "both events in the end")


def many_rows_in_one_statement(db):
    before = count(db)
    db.execute("INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload)"
               " SELECT 'order', value, 'OrderPlaced', '{}' FROM json_each('[1, 2, 3, 4, 5]')")
    rows = db.execute("SELECT aggregate_id, id FROM outbox_event ORDER BY seq DESC LIMIT 5").fetchall()
    expect(count(db) == before + 5, "five events")
    expect([row[0] for row in rows] == ["5", "4", "3", "2", "1"], "in order")
    expect(len({row[1] for row in rows}) == 5, "five ids")


def main():
    path = sys.argv[1]
    db = connect(path)
    for step in (commits_and_rolls_back, stores_what_it_was_given, refuses_in_words, the_table_keeps_the_outermost_limits,
                 never_reuses_a_seq, many_rows_in_one_statement):
        step(db)
        print(step.__name__)
    deferred_transactions_fail_cleanly(db, path)
    print("done")


if __name__ == "__main__":
    main()
