#!/usr/bin/env python3
"""psql: events by function and view, as docs/guide/languages.md and its pages show them."""

import base64
import json
import subprocess
import unittest

from languages import HERE, HINT, REFUSED, OnPostgres


class Psql(OnPostgres):
    def test_the_events_arrive(self):
        pictures = base64.b64encode(bytes(range(256))).decode()
        run = subprocess.run(["psql", self.database, "-qXAt", "-v", "bytes=" + pictures, "-f", HERE / "psql" / "shop.sql"], check=False,
                             capture_output=True, text=True, timeout=60, env=self.environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        *lines, last = run.stdout.splitlines()
        self.assertEqual(lines, ["22023 " + REFUSED])
        self.assertEqual(run.stderr.splitlines()[0].partition("ERROR:  ")[2], REFUSED)
        self.assertIn("HINT:  " + HINT, run.stderr)
        said = json.loads(last)
        self.assertTrue(said["same"])
        self.check_shop(said)
        self.check_delivered(said)

    def copy(self, rows):
        command = "COPY outbox.new_event (aggregate_type, aggregate_id, event_type, payload) FROM STDIN"
        return subprocess.run(["psql", self.database, "-qXAt", "-c", command], check=False, capture_output=True, text=True, timeout=60,
                              env=self.environment, input=rows)

    def test_copy_into_the_view(self):
        run = self.copy('order\t46\tOrderPlaced\t{"number": 1}\norder\t46\tOrderPaid\t{"number": 2}\n')
        self.assertEqual(run.returncode, 0, run.stderr)
        run = self.copy('order\t46\tOrderShipped\t{}\norder\t46\t \t{}\n')
        self.assertEqual(run.returncode, 1)
        self.assertIn("ERROR:  event_type: is blank", run.stderr)
        self.assertIn("COPY new_event, line 2", run.stderr)
        found = [(line["event_type"], line["body"]) for line in self.delivered()]
        self.assertEqual(found, [("OrderPlaced", {"number": 1}), ("OrderPaid", {"number": 2})])


if __name__ == "__main__":
    unittest.main()
