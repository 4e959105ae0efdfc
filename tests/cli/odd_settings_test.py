#!/usr/bin/env python3
"""Defaults of a database that change what statements mean: every verb and every function of ours does what it does without them.

By default three groups of settings are set together; with OUTBOX_TEST_LONG=1 each by itself, and
none. That queries are compiled whatever they cost (jit_above_cost = 0) takes most of the time of
each, so by default only the functions are called so; with OUTBOX_TEST_LONG=1 the verbs run so, too."""

import re
import subprocess
import unittest

from every_verb import EveryVerb
from program import LONG, ROOT

# What an application may call, with values that are refused or take a way of their own among them.
CALLS = """
SELECT outbox.enqueue('order', '1', 'Placed', '{"path": "a b"}');
SELECT outbox.enqueue('order', 1, 'Placed', '{}'::jsonb, '{"Tenant": "a b"}');
SELECT outbox.enqueue('order', '1', 'Placed', 'text'::bytea, '{"tenant": "a"}', content_type => 'text/plain; charset=utf-8');
SELECT outbox.enqueue('order', '1', 'Placed', '{}', occurred_at => '2001-02-03 04:05:06+00', lock_key => true);
SELECT outbox.enqueue_many('[{"aggregate_type": "order", "aggregate_id": "1", "event_type": "Placed", "payload": {},
  "occurred_at": "2001-02-03T04:05:06.5Z", "headers": {"a": "b"}},
  {"aggregate_type": "order", "event_type": "Placed", "payload_base64": "aMO8", "content_type": "text/plain"}]');
INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload, headers) VALUES ('order', '2', 'Placed', '{}', '{"x": "y"}');
SELECT outbox.enqueue_task('mail', 'send', '{}', 42, unique_key => 'u');
SELECT outbox.receive('billing', 'message-1');
SELECT * FROM outbox.pending('orders');
SELECT s.state FROM outbox.event e, outbox.event_status(e.id) s ORDER BY e.seq;
SELECT count(*) FROM outbox.recent_status;
SELECT outbox.glob_pattern(concat('a', chr(92), '%_*?'));
SELECT outbox.make_partitions('1 hour');
SELECT name FROM outbox.partitions() WHERE bytes < 0;
"""

WRITTEN = [
    "1|application/json|{}||7b2270617468223a2022612062227d",
    '1|application/json|{"Tenant": "a b"}||7b7d',
    '1|text/plain; charset=utf-8|{"tenant": "a"}||74657874',
    "1|application/json|{}|2001-02-03 04:05:06+00|7b7d",
    '1|application/json|{"a": "b"}|2001-02-03 04:05:06.5+00|7b7d',
    "|text/plain|{}||68c3bc",
    '2|application/json|{"x": "y"}||7b7d',
]

REFUSED = {
    "SELECT outbox.enqueue('order', '1', concat('a', chr(1)), '{}')": "event_type: contains a control character",
    "SELECT outbox.enqueue('order', '1', concat('a', chr(159)), '{}')": "event_type: contains a control character",
    "SELECT outbox.enqueue('order', '1', 'E', '{}', jsonb_build_object('a', concat('x', chr(10))))": "headers",
    "SELECT outbox.enqueue('order', '1', 'E', 'x'::bytea, content_type => 'no type')": "content_type: is not a media type",
    "SELECT outbox.enqueue('order', '1', 'E', 'x'::bytea, content_type => 'a/b+json')": "payload: is not JSON",
    """SELECT outbox.enqueue_many('[{"aggregate_type": "a", "event_type": "E", "payload": 1, "occurred_at": "2001-02-03T04:05:66Z"}]')""":
        "occurred_at: is not a time",
    """SELECT outbox.enqueue_many('[{"aggregate_type": "a", "event_type": "E", "payload_base64": "a"}]')""": "payload_base64: is not base64",
}

ODD = {
    "nothing": (),
    "backslashes": ("standard_conforming_strings = off", "escape_string_warning = on", "backslash_quote = off"),
    "meanings": ("quote_all_identifiers = on", "transform_null_equals = on", "search_path = nowhere, public", "array_nulls = off"),
    "texts": ("datestyle = 'SQL, DMY'", "timezone = 'Asia/Tokyo'", "intervalstyle = iso_8601", "bytea_output = escape", "extra_float_digits = -5",
              "xmlbinary = hex", "lc_messages = 'C'"),
    "serializable": ("default_transaction_isolation = serializable", "default_transaction_deferrable = on"),
    "plans": ("enable_seqscan = off", *(("jit_above_cost = 0",) if LONG else ()), "plan_cache_mode = force_generic_plan", "row_security = off",
              "synchronous_commit = off"),
}


class OddSettings(EveryVerb):
    def set_up_database(self, settings):
        for setting in settings:
            self.sql(f"ALTER DATABASE {self.database} SET {setting}")

    def calls(self):
        """What the application's own sessions get, which have these settings."""
        before = self.sql("SELECT max(seq) FROM outbox.event").strip()
        self.sql(CALLS, options=None)
        for statement, says in REFUSED.items():
            run = subprocess.run(["psql", self.store, "-qXAtc", statement], check=False, capture_output=True, text=True)
            self.assertIn(says, run.stderr, statement)
        self.assertEqual(self.sql("SELECT aggregate_id, content_type, headers, occurred_at, encode(payload, 'hex') FROM outbox.event "
                                  f"WHERE aggregate_type = 'order' AND seq > {before} ORDER BY seq").splitlines(), WRITTEN)


def with_settings(name, settings):
    def test(self):
        self.set_up_database(settings)
        self.every_verb()
        if name == "plans":
            self.set_up_database(("jit_above_cost = 0",))
        self.calls()
    test.__name__ = f"test_{name}"
    return test


TOGETHER = ("backslashes", "meanings", "texts")
if not LONG:
    ODD = {"texts_and_meanings": sum((ODD[name] for name in TOGETHER), ())} | {
        name: chosen for name, chosen in ODD.items() if name not in (*TOGETHER, "nothing")}

for odd, chosen in ODD.items():
    setattr(OddSettings, f"test_{odd}", with_settings(odd, chosen))


class Literals(unittest.TestCase):
    """A backslash in a plain literal means something else where standard_conforming_strings is off."""

    LITERAL = re.compile(r"--[^\n]*|\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'", re.DOTALL)

    def test_no_literal_of_the_migrations_depends_on_a_setting(self):
        for path in sorted((ROOT / "migrations" / "postgres").glob("*.sql")):
            for literal in self.LITERAL.findall(path.read_text(encoding="utf-8")):
                if literal.startswith("'"):
                    self.assertNotIn("\\", literal, f"{path.name}: write it as E'..'")


if __name__ == "__main__":
    unittest.main()
