#!/usr/bin/env python3
"""outbox doctor: what a relay checks at its start, and the repair of a restored outbox."""

import os
import subprocess
import unittest
from pathlib import Path

from program import CHECK_FAILED, FILE_SUBSCRIPTION, NOT_NOW, POSTGRES, USAGE, Case, OnPostgres, OnSqlite

PROGRAMS = os.environ.get("OUTBOX_TEST_PGBIN")


class Doctor:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")

    def test_a_sound_store_has_nothing_to_repair(self):
        self.assertEqual(self.succeeds("doctor").out, "the store can be used\n")
        self.assertTrue(self.succeeds("doctor", "--json").json()["ok"])
        for arguments in ((), ("--apply",)):
            self.assertIn("nothing to repair", self.succeeds("doctor", "--repair-lineage", *arguments).out)
            self.assertFalse(self.succeeds("doctor", "--repair-lineage", "--json", *arguments).json()["needed"])

    def test_it_refuses_what_makes_no_sense(self):
        self.fails(USAGE, "doctor", "--apply", says="--repair-lineage --apply")

    def test_a_store_that_is_not_there(self):
        self.fails(NOT_NOW if self.flags else CHECK_FAILED, "doctor", "--store",
                   "postgresql://127.0.0.1:1/none" if self.flags else "sqlite:none.db")


class DoctorOnSqlite(Doctor, OnSqlite, Case):
    pass


class DoctorOnPostgres(Doctor, OnPostgres, Case):
    def copy(self):
        """The schema as a dump and restore leave it."""
        if not PROGRAMS:
            self.skipTest("OUTBOX_TEST_PGBIN is not set: no pg_dump")
        schema = self.flags[1]
        dump = subprocess.run([Path(PROGRAMS) / "pg_dump", "-n", schema, POSTGRES], check=True, capture_output=True, text=True).stdout
        self.drop(schema)
        subprocess.run(["psql", POSTGRES, "-qX", "-v", "ON_ERROR_STOP=1"], input=dump, check=True, text=True, stdout=subprocess.DEVNULL)

    def delivered(self):
        return [line for line in (self.folder / "orders.jsonl").read_text().splitlines() if line]

    def test_a_restored_outbox_delivers_what_was_pending_after_the_repair(self):
        for number in range(3):
            self.succeeds("enqueue", "order", number, "Placed", "{}")
        self.succeeds("relay", "--once")
        for number in range(4):
            self.succeeds("enqueue", "order", number, "Changed", "{}")
        self.copy()
        self.fails(CHECK_FAILED, "doctor", says=("of another database", "outbox doctor --repair-lineage"))
        self.assertFalse(self.outbox("doctor", "--json").json()["ok"])
        self.sql(f"SELECT {self.flags[1]}.enqueue('order', '1', 'Paid', '{{}}'::jsonb)")

        shown = self.succeeds("doctor", "--repair-lineage").out
        self.assertRegex(shown, r"7 events were restored, 1 were written since\n")
        self.assertRegex(shown, r"orders +4\n")
        self.assertIn("nothing was changed", shown)
        self.fails(CHECK_FAILED, "doctor")

        self.assertEqual(self.succeeds("doctor", "--repair-lineage", "--apply", "--json").json(),
                         {"needed": True, "applied": True, "restored": 7, "written_since": 1,
                          "pending": [{"subscription": "orders", "events": 4}]})
        self.succeeds("doctor")
        self.succeeds("relay", "--once")
        types = [part.split('"')[0] for line in self.delivered() for part in line.split('"event_type":"')[1:]]
        self.assertEqual(types, ["Placed"] * 3 + ["Changed"] * 4 + ["Paid"])
        self.succeeds("verify")
        self.succeeds("events", "--key", "order/1")


if __name__ == "__main__":
    unittest.main()
