#!/usr/bin/env python3
"""outbox-bench: what it refuses. The figures themselves need an idle machine."""

import subprocess
import unittest
import uuid

from program import BENCH, BINARY, CHECK_FAILED, Case, ERROR, INTERRUPTED, OK, POSTGRES, ROOT, USAGE, drop_database_later, signal, wait_until


class Bench(Case):
    program = BENCH

    def test_wrong_usage(self):
        for arguments, says in ((("--length", "0s"), "--length"), (("--repeats", "0"), "--repeats"),
                                (("--repeats", "101"), "--repeats"), (("--events", "1"), "--events"),
                                (("nope",), 'unknown benchmark "nope"'), (("kafka",), "--brokers"),
                                (("tasks", "--peer", "nowhere/river"), ("--peer nowhere/river", "scripts/bench-peers"))):
            self.fails(USAGE, *arguments, "--store", "sqlite:shop.db", says=says)

    def test_a_length_needs_a_unit(self):
        self.fails(USAGE, "--length", "5", says=("--length: the number 5 has no unit", 'write "5s" for seconds'))

    def test_help_names_its_options_and_those_of_the_store(self):
        text = self.succeeds("--help").out
        for part in ("Usage: outbox-bench", "--list", "--store URL", "Example:\n  outbox-bench"):
            self.assertIn(part, text)
        self.assertEqual(self.succeeds("--version").out, self.succeeds("--version", program=BINARY).out.replace("outbox", "outbox-bench"))

    def test_without_a_store(self):
        self.fails(USAGE, says=("no store", "--store"))


class BenchPostgres(Case):
    program = BENCH

    def setUp(self):
        if not POSTGRES:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        super().setUp()
        self.database = "cli_" + uuid.uuid4().hex[:12]
        self.sql(POSTGRES, f"CREATE DATABASE {self.database}")
        self.addCleanup(drop_database_later, POSTGRES, self.database)
        self.store = POSTGRES.rsplit("/", 1)[0] + "/" + self.database

    @staticmethod
    def sql(url, statement):
        return subprocess.run(["psql", url, "-qXAtc", statement], check=True, capture_output=True, text=True).stdout

    def test_a_schema_that_is_not_its_own_stays(self):
        self.sql(self.store, "CREATE SCHEMA outbox_bench CREATE TABLE mine (n int)")
        self.fails_with_figures(ERROR, "schema outbox_bench exists and is not the benchmarks'")
        self.assertEqual(self.sql(self.store, "SELECT count(*) FROM outbox_bench.mine"), "0\n")

    def fails_with_figures(self, code, says):
        result = self.outbox("drain", "--events", "1000", "--repeats", "1", "--length", "100ms", "--store", self.store)
        self.assertEqual(result.code, code, result)
        self.assertIn(says, result.err)

    def test_what_a_killed_run_left_is_replaced(self):
        self.sql(self.store, "CREATE SCHEMA IF NOT EXISTS outbox_bench; COMMENT ON SCHEMA outbox_bench IS 'made by outbox-bench'")
        result = self.outbox("drain", "--events", "1000", "--repeats", "1", "--length", "100ms", "--store", self.store)
        self.assertNotEqual(result.code, ERROR, result)  # the figure itself may be missed
        self.assertEqual(self.sql(self.store, "SELECT count(*) FROM pg_namespace WHERE nspname = 'outbox_bench'"), "0\n")

    def test_events_and_status_are_measured(self):
        result = self.outbox("events", "--events", "2000", "--json", "--store", self.store)
        self.assertIn(result.code, (OK, CHECK_FAILED), result)  # the figure itself may be missed
        self.assertEqual([figure["name"] for figure in result.json()["figures"]], ["events.id", "events.status"])

    def test_what_is_asked_over_http_is_measured(self):
        result = self.outbox("http", "--events", "2000", "--json", "--store", self.store)
        self.assertIn(result.code, (OK, CHECK_FAILED), result)
        self.assertEqual([figure["name"] for figure in result.json()["figures"]], ["http.scrape", "http.overview", "http.event"])

    def test_an_adoption_loses_nothing(self):
        result = self.outbox("adopt", "--events", "10000", "--length", "500ms", "--json", "--store", self.store)
        self.assertIn(result.code, (OK, CHECK_FAILED), result)  # its times may be missed
        figures = {figure["name"]: figure["value"] for figure in result.json()["figures"]}
        self.assertEqual([figures[name] for name in ("adopt.lost", "adopt.twice", "adopt.disorder")], [0, 0, 0])

    def short_run_of_tasks(self, *arguments):
        return self.outbox("tasks", "--events", "1000", "--repeats", "1", "--length", "500ms", *arguments, "--store", self.store)

    def test_river_is_measured_in_the_run_of_tasks(self):
        built = subprocess.run([ROOT / "scripts" / "bench-peers", "--build"], capture_output=True, text=True, check=False)
        if built.returncode:
            self.skipTest(f"River: {built.stdout.strip()}")
        result = self.short_run_of_tasks("--json", "--peer", built.stdout.strip())
        self.assertIn(result.code, (OK, CHECK_FAILED), result)  # the figures themselves may be missed
        figures = {figure["name"]: figure for figure in result.json()["figures"]}
        self.assertEqual(list(figures), ["tasks", "tasks.river", "tasks.memory", "tasks.cpu", "tasks.wal", "tasks.pinned",
                                         "tasks.after_finished", "tasks.rows", "tasks.scheduled", "tasks.pick_up_p50", "tasks.pick_up_p99"])
        self.assertGreater(figures["tasks.river"]["limit"], 0)
        self.assertEqual(self.sql(self.store, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'outbox_bench%'"), "0\n")

    def test_a_peer_that_fails_is_an_error(self):
        peer = self.write("peer", "#!/bin/sh\necho started\necho 'no such server'\nexit 3\n")
        peer.chmod(0o755)
        result = self.short_run_of_tasks("--peer", peer)
        self.assertEqual(result.code, ERROR, result)
        self.assertIn(f"{peer} failed: exit status 3", result.err)
        self.assertIn("no such server", result.err)

    def test_an_interrupted_run_says_so_and_leaves_its_schema_to_the_next_one(self):
        process = self.spawn("drain", "--events", "100000000", "--store", self.store)
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'outbox_bench'"
        wait_until(lambda: self.sql(self.store, schemas) == "1\n", "its schema")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.test_what_a_killed_run_left_is_replaced()


if __name__ == "__main__":
    unittest.main()
