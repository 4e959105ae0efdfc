#!/usr/bin/env python3
"""outbox-demo: its output, how it ends, and that it removes what it made."""

import json
import os
import shutil
import subprocess
import time
import unittest
import uuid
from pathlib import Path

from program import BINARY, Case, CHECK_FAILED, DEMO, ERROR, INTERRUPTED, OK, POSTGRES, USAGE, drop_database_later, signal, wait_until

KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")
NUMBERS = {"committed", "delivered", "lost", "ghosts", "out_of_order", "duplicates", "kills"}


class Demo(Case):
    program = DEMO

    def setUp(self):
        super().setUp()
        self.work = self.folder / "tmp"
        self.work.mkdir()
        self.environment["TMPDIR"] = str(self.work)

    def left_behind(self):
        return sorted(path.name for path in self.work.iterdir())

    def run_demo(self, *arguments):
        result = self.succeeds("--json", *arguments)
        self.assertEqual(result.err, "")
        numbers = result.json()
        self.assertEqual(set(numbers), NUMBERS)
        self.assertEqual(self.left_behind(), [])
        return numbers

    def holds(self, *arguments, seconds, kills):
        """The numbers of a demo with enough events to prove something: a longer one if the machine was too slow."""
        for length in (seconds, 10 * seconds):
            numbers = self.run_demo(*arguments, "--seconds", length, "--kills", kills)
            self.held(numbers, kills)
            if numbers["committed"] > 20:
                break
        self.assertGreater(numbers["committed"], 20)
        return numbers

    def held(self, numbers, kills):
        self.assertEqual(numbers["delivered"], numbers["committed"])
        self.assertEqual((numbers["lost"], numbers["ghosts"], numbers["out_of_order"], numbers["kills"]), (0, 0, 0, kills))

    def invents(self, *arguments, seconds, kills):
        """A dual write goes wrong by chance: one time in twenty sales."""
        for length in (seconds, 10 * seconds):
            numbers = self.run_demo("--naive", *arguments, "--seconds", length, "--kills", kills)
            self.assertEqual(numbers["kills"], kills)
            if numbers["ghosts"] > 0:
                break
        self.assertGreater(numbers["ghosts"], 0)

    def children(self, process):
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()

    @staticmethod
    def alive(pid):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"


class Tasks(Demo):
    """Each order is a task: on SQLite."""

    store = ()

    def run_tasks(self, *arguments, seconds, kills):
        result = self.succeeds("--tasks", "--json", *self.store, *arguments, "--seconds", seconds, "--kills", kills)
        self.assertEqual(result.err, "")
        numbers = result.json()
        self.assertEqual(set(numbers), NUMBERS | {"stale"})
        self.held(numbers, kills)
        self.assertEqual((numbers["duplicates"], numbers["stale"]), (0, 0))
        self.assertGreater(numbers["committed"], 0)
        self.assertEqual(self.left_behind(), [])

    def test_each_order_is_packed_once_while_the_workers_are_killed(self):
        self.run_tasks(seconds=2, kills=2)

    def test_people_get_a_table_that_explains_itself(self):
        result = self.succeeds("--tasks", *self.store, "--seconds", "1", "--kills", "1")
        self.assertEqual(result.err, "")
        for name in ("committed", "done", "lost", "ghosts", "out of order", "twice", "stale", "kills"):
            self.assertRegex(result.out, rf"(?m)^  {name} +[\d,]+   \w")
        self.assertIn("Every promise held", result.out)
        self.assertEqual(self.left_behind(), [])

    def test_ctrl_c_ends_it_cleanly_with_the_table_so_far(self):
        process = self.spawn("--tasks", *self.store, "--seconds", "600", "--kills", "0")
        children = wait_until(lambda: self.children(process), "a child")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, out + err)
        self.assertIn("Stopped early", out)
        wait_until(lambda: not any(self.alive(child) for child in children), "the end of the children")
        self.assertEqual(self.left_behind(), [])

    def test_what_does_not_go_with_it_is_refused(self):
        for arguments, says in ((("--naive",), "--naive with --tasks"), (("--sink", "kafka"), "a broker with --tasks"),
                                (("--url", "redis://x"), "a broker with --tasks")):
            self.fails(USAGE, "--tasks", *arguments, says=says)


class OnSqliteAndFile(Demo):
    def test_every_promise_holds_while_the_relay_is_killed(self):
        self.holds(seconds=3, kills=4)

    def test_without_a_kill_nothing_comes_twice(self):
        numbers = self.holds("--writers", "2", seconds=1, kills=0)
        self.assertEqual(numbers["duplicates"], 0)

    def test_people_get_a_table_that_explains_itself(self):
        result = self.succeeds("--seconds", "1", "--kills", "1")
        self.assertEqual(result.err, "")
        for name in ("committed", "delivered", "lost", "ghosts", "out of order", "duplicates", "kills"):
            self.assertRegex(result.out, rf"(?m)^  {name} +[\d,]+   \w")
        self.assertIn("Every promise held.", result.out)
        self.assertNotIn("\r", result.out)
        self.assertNotIn("\x1b", result.out)
        self.assertEqual(self.left_behind(), [])

    def test_a_dual_write_invents_orders_and_that_is_no_error(self):
        self.invents(seconds=2, kills=2)

    def test_a_file_of_the_users_choice_is_made_and_removed(self):
        self.holds("--store", "sqlite:mine.db", seconds=1, kills=0)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["tmp"])

    def test_settings_meant_for_the_relay_of_the_user_do_not_disturb(self):
        result = self.succeeds("--json", "--seconds", "1", "--kills", "1",
                               env={"OUTBOX_STORE_URL": "sqlite:other.db", "OUTBOX_RELAY_PAGE": "nonsense"})
        self.held(result.json(), kills=1)

    def test_keep_keeps_what_can_be_looked_at(self):
        result = self.succeeds("--keep", "--seconds", "1", "--kills", "1")
        (folder,) = self.work.iterdir()
        for part in (f"Kept: {folder}", str(folder / "shop.db"), str(folder / "delivered.jsonl")):
            self.assertIn(part, result.out)
        names = {path.name for path in folder.iterdir()}
        self.assertLessEqual({"shop.db", "delivered.jsonl", "relay.toml", "relay.log"}, names)
        status = subprocess.run([BINARY, "status", "--json", "-c", folder / "relay.toml"], capture_output=True, check=True)
        self.assertEqual(json.loads(status.stdout)["subscriptions"][0]["pending"], 0)
        first = json.loads((folder / "delivered.jsonl").read_text(encoding="utf-8").splitlines()[0])
        self.assertEqual(first["event_type"], "OrderPlaced")
        self.assertEqual(set(first["body"]), {"order", "customer", "version", "cents"})

    def test_keep_says_where_beside_json_too(self):
        result = self.succeeds("--keep", "--json", "--seconds", "1", "--kills", "0")
        (folder,) = self.work.iterdir()
        self.assertEqual(set(result.json()), NUMBERS)
        self.assertIn(str(folder / "shop.db"), result.err)

    def test_a_short_demo_has_fewer_kills(self):
        self.held(self.run_demo("--seconds", "1"), kills=2)

    def test_an_existing_file_is_not_touched(self):
        mine = self.write("mine.db", "mine")
        for keep in ((), ("--keep",)):
            self.fails(ERROR, "--store", "sqlite:mine.db", *keep, says="the file exists")
            self.assertEqual(mine.read_text(encoding="utf-8"), "mine")
            self.assertEqual(self.left_behind(), [])

    def test_wrong_options_are_named(self):
        for arguments, says in ((("--seconds", "0"), "--seconds 0"), (("--writers", "100"), "--writers 100"),
                                (("--seconds", "2", "--kills", "5"), "--kills 5"), (("--sink", "stdout"), "--sink stdout"),
                                (("--sink", "kafka"), "--brokers"), (("--brokers", "x:1"), "--sink file"), (("--sink", "redis"), "--url"),
                                (("--store", "mysql://x"), "--store"), (("-c", "x.toml"), "-c"),
                                (("--set", "relay.page=5"), "--set"), (("--log-level", "debug"), "--log-level"),
                                (("--seconds", "999999999999999999999"), "too large"),
                                (("--seconds", "999999999999"), "--seconds 999999999999 is out of range"), (("--bogus",), "--bogus")):
            self.fails(USAGE, *arguments, says=says)

    def test_help_is_silent_about_what_only_the_program_uses(self):
        text = self.succeeds("--help").out
        self.assertIn("Usage: outbox-demo", text)
        self.assertIn("Example:\n  outbox-demo", text)
        self.assertNotIn("--publisher", text)
        self.assertNotIn("--publisher", self.fails(USAGE, "--publishe").err)

    def test_needs_no_other_program(self):
        alone = self.folder / "outbox-demo"
        shutil.copy(DEMO, alone)
        self.assertEqual(self.outbox("--seconds", "1", "--kills", "1", program=alone).code, OK)
        self.assertEqual(self.left_behind(), [])

    def test_a_store_that_cannot_be_made_is_one_clear_line(self):
        for keep in ((), ("--keep",)):
            self.fails(ERROR, "--store", "sqlite:nowhere/shop.db", *keep, says="nowhere")
            self.assertEqual(self.left_behind(), [])


class Interrupted(Demo):
    def start(self, *arguments):
        process = self.spawn("--seconds", "600", *arguments)
        children = wait_until(lambda: self.children(process), "a child")
        wait_until(lambda: any(path.stat().st_size > 0 for path in self.work.glob("*/delivered.jsonl")), "a delivery")
        return process, children

    def gone(self, children):
        wait_until(lambda: not any(self.alive(child) for child in children), "the end of the children")

    def test_ctrl_c_ends_it_cleanly_with_the_table_so_far(self):
        for arguments in ((), ("--naive",)):
            process, children = self.start(*arguments)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, INTERRUPTED, out + err)
            self.assertRegex(out, r"(?m)^  committed +[\d,]+")
            self.assertIn("Stopped early", out)
            self.gone(children)
            self.assertEqual(self.left_behind(), [])

    def test_sigterm_does_the_same(self):
        process, children = self.start()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.gone(children)
        self.assertEqual(self.left_behind(), [])

    def test_no_child_survives_it(self):
        for arguments in ((), ("--naive",)):
            process, children = self.start(*arguments)
            process.kill()
            process.communicate(timeout=60)
            self.gone(children)
            for folder in self.work.iterdir():
                subprocess.run(["rm", "-r", str(folder)], check=True)

    def test_a_relay_that_ends_by_itself_ends_the_demo(self):
        process, (child,) = self.start("--kills", "0")
        os.kill(int(child), signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, ERROR, out + err)
        self.assertRegex(err, r"^outbox-demo: the relay ended by itself with signal 9: .*\n$")
        self.assertEqual(self.left_behind(), [])


class Damaged(Demo):
    def damage_one(self):
        for path in self.work.glob("*/delivered.jsonl"):
            with open(path, "r+b") as file:
                first = file.readline()
                if first.endswith(b"\n"):
                    # The same length, so that its writer and reader continue at the same offsets.
                    file.seek(0)
                    file.write(first.replace(b'"order": "1-0', b'"order": "X-0'))
                    return path.parent
        return None

    def test_a_lost_order_is_noticed(self):
        """The check itself: lines are removed from the destination, and one is added."""
        for seconds in (2, 20):
            began = time.monotonic()  # before the shop opens, which so closes later than `seconds` from here
            process = self.spawn("--json", "--seconds", str(seconds), "--kills", "0", "--writers", "1", "--keep")
            damaged = wait_until(self.damage_one, "a delivery")
            in_time = time.monotonic() - began < seconds
            out, err = process.communicate(timeout=120)
            if in_time:
                break
            shutil.rmtree(damaged)  # On a machine that was suspended the check may have run first.
        self.assertTrue(in_time)
        self.assertEqual(process.returncode, CHECK_FAILED, out + err)
        numbers = json.loads(out)
        self.assertEqual((numbers["lost"], numbers["ghosts"]), (1, 1))
        self.assertIn("Kept: ", err)


@unittest.skipUnless(POSTGRES, "OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
class OnPostgres(Demo):
    """In its own database: the outboxes of other tests are in other ones."""

    def setUp(self):
        super().setUp()
        name = "demo_" + uuid.uuid4().hex[:12]
        self.psql(POSTGRES, f'CREATE DATABASE "{name}"')
        self.addCleanup(drop_database_later, POSTGRES, name)
        self.database = self.with_database(name)

    @staticmethod
    def with_database(name):
        base, question, query = POSTGRES.partition("?")
        return base.rpartition("/")[0] + "/" + name + question + query

    @staticmethod
    def psql(database, sql):
        return subprocess.run(["psql", database, "-qXAtv", "ON_ERROR_STOP=1", "-c", sql], check=True, capture_output=True,
                              text=True).stdout

    def schemas(self):
        return self.psql(self.database, "SELECT nspname FROM pg_namespace WHERE nspname LIKE '%demo%' ORDER BY 1").split()

    def test_every_promise_holds_while_the_relay_is_killed(self):
        self.holds("--store", self.database, seconds=2, kills=2)
        self.assertEqual(self.schemas(), [])

    def test_a_dual_write(self):
        self.invents("--store", self.database, seconds=2, kills=2)
        self.assertEqual(self.schemas(), [])

    def test_tasks_that_were_kept_are_dropped_by_the_next_one(self):
        for keep, left in ((("--keep",), ["outbox_demo", "outbox_demo_shop"]), ((), [])):
            self.succeeds("--tasks", "--store", self.database, "--seconds", "1", "--kills", "0", *keep)
            self.assertEqual(self.schemas(), left)

    def test_what_was_kept_is_dropped_by_the_next_one(self):
        self.succeeds("--store", self.database, "--seconds", "1", "--kills", "0", "--keep")
        self.assertEqual(self.schemas(), ["outbox_demo", "outbox_demo_shop"])
        self.succeeds("--store", self.database, "--seconds", "1", "--kills", "0")
        self.assertEqual(self.schemas(), [])

    def test_a_database_with_an_outbox_in_use_is_refused(self):
        self.write("outbox.toml", f'[store]\nurl = "{self.database}"\n[subscription.real]\nsink = "null"\n')
        self.succeeds("migrate", program=BINARY)
        self.succeeds("subscription", "apply", program=BINARY)
        self.fails(ERROR, "--store", self.database, says=("schema outbox has subscriptions", "another database"))
        self.assertEqual(self.schemas(), [])

    def test_a_schema_of_that_name_that_is_not_ours_is_not_dropped(self):
        self.psql(self.database, "CREATE SCHEMA outbox_demo_shop")
        self.fails(ERROR, "--store", self.database, says="is not the demo's")
        self.assertEqual(self.schemas(), ["outbox_demo_shop"])

    def test_a_server_that_is_not_there(self):
        self.fails(ERROR, "--store", "postgresql://127.0.0.1:1/none", says="connect")
        self.assertEqual(self.left_behind(), [])


@unittest.skipUnless(POSTGRES, "OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
class TasksOnPostgres(Tasks):
    def setUp(self):
        super().setUp()
        name = "demo_" + uuid.uuid4().hex[:12]
        OnPostgres.psql(POSTGRES, f'CREATE DATABASE "{name}"')
        self.addCleanup(drop_database_later, POSTGRES, name)
        self.store = ("--store", OnPostgres.with_database(name))


@unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
class OnKafka(Demo):
    def test_every_promise_holds_while_the_relay_is_killed(self):
        self.holds("--sink", "kafka", "--brokers", KAFKA, seconds=2, kills=2)

    def test_a_dual_write(self):
        self.invents("--sink", "kafka", "--brokers", KAFKA, seconds=2, kills=2)


class OnAnotherBroker(Demo):
    def test_every_promise_holds_while_the_relay_is_killed(self):
        for sink in ("redis", "nats", "rabbitmq"):
            with self.subTest(sink):
                url = os.environ.get(f"OUTBOX_TEST_{sink.upper()}")
                if not url:
                    self.skipTest(f"OUTBOX_TEST_{sink.upper()} is not set: no server")
                self.holds("--sink", sink, "--url", url, seconds=2, kills=2)


if __name__ == "__main__":
    unittest.main()
