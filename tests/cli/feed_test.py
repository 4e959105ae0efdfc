#!/usr/bin/env python3
"""relay.feed: what migrate makes, what doctor wants, and what status shows."""

import subprocess
import unittest

from program import Case, ERROR, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE, wait_until

FEED = '[relay]\nfeed = "{}"\nlease = "3s"\n'


class OnAnyServer(OnPostgres, Case):
    """On a server whose wal_level need not be logical."""

    def migrate(self):
        super().migrate()
        self.config()

    def findings(self, feed):
        found = self.outbox("doctor", "--json", env={"OUTBOX_RELAY_FEED": feed}).json()
        return [one for one in found if one["check"] == "feed"]

    def relay_row(self):
        return next(iter(self.succeeds("status", "--json").json()["relays"]), None)

    def test_migrate_makes_the_publication_once(self):
        self.migrate()
        schema = self.SCHEMA
        self.assertRegex(self.succeeds("migrate", "--with-wal").out, rf"^made the publication {schema}_wal of {schema}\.event( \(lane\))?\n$")
        self.assertIn("nothing to do", self.succeeds("migrate", "--with-wal").out)
        self.assertEqual(self.succeeds("migrate", "--with-wal", "--json").json(), {"applied": [], "publication": None})
        self.sql(f"DROP PUBLICATION {schema}_wal; CREATE PUBLICATION {schema}_wal FOR TABLE {schema}.meta")
        self.fails(ERROR, "migrate", "--with-wal", says=(f"{schema}_wal is another one", "DROP PUBLICATION"))
        for other in ("--print", "--status"):
            self.fails(USAGE, "migrate", "--with-wal", other, says="--with-wal changes the schema")

    def test_doctor_names_what_is_missing_only_to_those_who_want_it(self):
        self.migrate()
        self.assertEqual(self.findings("poll"), [])
        for feed, severity in (("wal", "warning"), ("auto", "note")):
            missing = next(one for one in self.findings(feed) if "publication" in one["what"])
            self.assertEqual(missing["severity"], severity)
            self.assertIn("outbox migrate --with-wal", missing["command"])
        self.succeeds("migrate", "--with-wal")
        self.assertFalse([one for one in self.findings("wal") if "publication" in one["what"]])

    def test_what_cannot_be_followed_is_said_once_and_events_arrive(self):
        self.migrate()
        for feed, level in (("wal", "warning"), ("auto", "info")):
            with self.subTest(feed=feed):
                self.config(FILE_SUBSCRIPTION, FEED.format(feed))
                log = self.folder / f"{feed}.log"
                with open(log, "w", encoding="utf-8") as stderr:
                    relay = self.spawn("relay", stdout=subprocess.DEVNULL, stderr=stderr)
                wait_until(lambda: (self.relay_row() or {}).get("feed_trouble"), "a relay that says why it polls")
                row = self.relay_row()
                self.assertEqual(row["feed"], "poll")
                self.assertRegex(self.succeeds("status").out, f"polls, and cannot follow the write-ahead log: {row['feed_trouble']}")
                relay.terminate()
                self.assertEqual(relay.wait(60), 0)
                said = [line for line in log.read_text(encoding="utf-8").splitlines() if "the relay polls" in line]
                self.assertEqual(len(said), 1, said)
                self.assertIn(level, said[0])
                self.assertIn("hint=", said[0])


class OnFile(OnSqlite, Case):
    def test_a_file_has_no_such_log(self):
        self.migrate()
        self.fails(ERROR, *self.at_store("migrate", "--with-wal"), says="no log that a relay could follow")


if __name__ == "__main__":
    unittest.main()
