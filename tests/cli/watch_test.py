#!/usr/bin/env python3
"""What a terminal gets that a pipe does not: outbox status --watch, outbox top, progress, colours."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import termios
import time
import unittest

from program import BINARY, Case, FILE_SUBSCRIPTION, NOT_NOW, OK, OnPostgres, POSTGRES, USAGE, jsonl, wait_until

ESCAPE = "\x1b"
ENTER, LEAVE, HOME = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H"
RED = "\x1b[31m"


class Terminal:
    """The program on a terminal of its own. What it writes to stdout and stderr arrives together."""

    def __init__(self, case, *arguments, stdin=None, env=None):
        self.terminal, other = pty.openpty()
        self.before = termios.tcgetattr(other)
        self.other = other  # kept open, so that its settings can be read at the end
        environment = {**case.environment, "TERM": "xterm", **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        self.process = subprocess.Popen([BINARY, *map(str, arguments)], stdin=stdin or other, stdout=other, stderr=other,
                                        cwd=case.folder, env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0))
        case.addCleanup(self.end)
        self.text = ""

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.other)

    def read_until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition(self.text):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"not within 60 s: {what}; the terminal shows {self.text!r}")
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def result(self):
        """The exit code, once everything was read."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None or select.select([self.terminal], [], [], 0)[0]:
            if time.monotonic() > deadline:
                raise AssertionError(f"it does not end; the terminal shows {self.text!r}")
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
        return self.process.returncode


class WatchOnATerminal(Case):
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")

    def watch(self, *arguments, **more):
        return Terminal(self, "status", "--watch", "100ms", *arguments, **more)

    def test_it_draws_in_place_and_leaves_the_terminal_as_it_was(self):
        for key in ("q", "Q", "\x03"):
            seen = self.watch()
            seen.read_until(lambda text: text.count(HOME) >= 3, "it draws three times")
            seen.type(key)
            self.assertEqual(seen.result(), OK)
            self.assertTrue(seen.text.endswith(LEAVE), seen.text)
            self.assertEqual(seen.text.count(ENTER), 1)
            self.assertNotIn("\x1b[2J", seen.text)  # would flicker
            self.assertEqual(termios.tcgetattr(seen.other), seen.before)
            self.assertRegex(seen.text, r"outbox status   every 100ms   20\S+Z   q ends it")
            self.assertIn("orders", seen.text)

    def test_signals_end_it_without_an_error(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            seen = self.watch()
            seen.read_until(lambda text: HOME in text, "it draws")
            seen.process.send_signal(number)
            self.assertEqual(seen.result(), OK)
            self.assertTrue(seen.text.endswith(LEAVE), seen.text)

    def test_other_keys_do_nothing(self):
        seen = self.watch()
        seen.type("x\n ")
        seen.read_until(lambda text: text.count(HOME) >= 2, "it goes on")
        seen.type("q")
        self.assertEqual(seen.result(), OK)

    def test_what_is_new_shows(self):
        seen = self.watch()
        seen.read_until(lambda text: HOME in text, "it draws")
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(321))
        seen.read_until(lambda text: re.search(r"orders +active +file +321", text), "321 are pending")

    def test_top_says_what_is_wrong_and_how_fast_events_are_delivered(self):
        seen = Terminal(self, "top", "--interval", "100ms")
        seen.read_until(lambda text: "no relay is alive" in text, "it says that nothing is delivered")
        self.assertRegex(seen.text, r"outbox top   every 100ms   20\S+Z   q ends it")
        self.spawn("relay", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(1000))
        seen.read_until(lambda text: re.search(r"orders +active +[1-9]\d* ", text), "it shows a rate")
        seen.read_until(lambda text: re.search(r"orders +active +0 ", text), "which falls to nothing")
        self.assertRegex(seen.text, r"RELAY +ROLE")
        seen.type("q")
        self.assertEqual(seen.result(), OK)
        self.assertTrue(seen.text.endswith(LEAVE), seen.text)

    def test_a_small_terminal_is_not_overrun(self):
        text = "".join(f'[subscription.s{i}]\nsink = "null"\n' for i in range(40))
        self.config(text)
        self.succeeds("subscription", "apply")
        seen = self.watch()
        subprocess.run(["stty", "rows", "10", "cols", "30"], stdin=seen.other, check=True)
        seen.read_until(lambda text: "more lines" in text, "it says that there is more")
        seen.type("q")
        self.assertEqual(seen.result(), OK)
        last = seen.text[seen.text.rindex(HOME):seen.text.rindex("\x1b[J")]
        self.assertEqual(last.count("\n"), 9)
        for line in last.split("\r\n"):
            self.assertLessEqual(len(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line)), 30)

    def test_what_cannot_work_ends_it(self):
        seen = Terminal(self, "status", "--watch", "--store", "sqlite:no.db")
        self.assertEqual(seen.result(), 1)
        self.assertNotIn(ESCAPE, seen.text)

    def test_a_dumb_terminal_gets_blocks(self):
        for env in ({"TERM": "dumb"}, {"TERM": None}):
            seen = self.watch(env=env)
            seen.read_until(lambda text: text.count("store sqlite:") >= 2, "two blocks")
            seen.process.send_signal(signal.SIGINT)
            self.assertEqual(seen.result(), OK)
            self.assertNotIn(ESCAPE, seen.text)


class WatchInAPipe(Case):
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")

    def test_a_block_each_time_below_its_time(self):
        process = self.spawn("status", "--watch", "100ms")
        lines = []
        while sum(line.startswith("store ") for line in lines) < 3:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (OK, ""))
        text = "".join(lines) + rest
        self.assertNotIn(ESCAPE, text)
        self.assertGreaterEqual(len(re.findall(r"(?m)^20\S+Z\nstore sqlite:", text)), 3)

    def test_json_is_a_document_per_line(self):
        process = self.spawn("status", "--watch", "100ms", "--json")
        found = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        rest, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (OK, ""))
        for line in rest.splitlines():
            json.loads(line)
        self.assertEqual([one["subscriptions"][0]["name"] for one in found], ["orders"] * 3)
        self.assertLess(found[0]["at"], found[2]["at"])

    def test_it_ends_when_nobody_reads(self):
        process = self.spawn("status", "--watch", "1h")
        self.assertTrue(process.stdout.readline())
        process.stdout.close()
        self.assertIn(process.wait(60), (OK, 1))
        self.assertEqual(process.stderr.read(), "")

    def test_a_store_that_does_not_answer_does_not_keep_it(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process = self.spawn("status", "--watch", "--store", f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/shop")
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), OK)
            connection.close()

    def test_wrong_input(self):
        self.fails(USAGE, "status", "--watch", "5", says=("--watch", 'write "5s"'))
        self.fails(USAGE, "top", "--interval", "5", says=("--interval", 'write "5s"'))
        self.fails(USAGE, "top", "--interval", "1ms", says="--interval 1ms is out of range")
        self.fails(USAGE, "status", "--watch", "soon", says="--watch")
        self.fails(USAGE, "status", "--watch", "1ms", says=("out of range", "100ms to 1h"))
        self.fails(USAGE, "status", "--watch", "2h", says=("out of range", "100ms to 1h"))
        self.fails(USAGE, "status", "--watch", "--check", says="exclude each other")
        self.fails(USAGE, "status", "--watch", "--store", "mysql://db/x", says="store.url")

    def test_a_store_that_comes_and_goes(self):
        """SQLite has no server: its file is moved away."""
        (self.folder / "shop.db").rename(self.folder / "away.db")
        self.fails(1, "status", "--watch", says="")
        (self.folder / "away.db").rename(self.folder / "shop.db")
        process = self.spawn("status", "--watch", "100ms", "--json")
        self.assertIn("subscriptions", json.loads(process.stdout.readline()))
        for name in ("shop.db", "shop.db-wal", "shop.db-shm"):
            if (self.folder / name).exists():
                (self.folder / name).rename(self.folder / ("away." + name))
        while "error" not in (found := json.loads(process.stdout.readline())):
            pass
        self.assertEqual(set(found), {"store", "at", "error"})
        for path in self.folder.glob("away.*"):
            path.rename(self.folder / path.name.removeprefix("away."))
        while "subscriptions" not in json.loads(process.stdout.readline()):
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, OK)


@unittest.skipUnless(POSTGRES and os.environ.get("OUTBOX_TEST_PGBIN"),
                     "OUTBOX_TEST_POSTGRES and OUTBOX_TEST_PGBIN are not set: no PostgreSQL server of its own can be started")
class WatchedServer(Case):
    """A server of its own, which is stopped and started."""

    def setUp(self):
        super().setUp()
        self.bin = os.environ["OUTBOX_TEST_PGBIN"]
        self.as_postgres = []
        if os.geteuid() == 0:
            self.as_postgres = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self.folder, "postgres")
        self.data = self.folder / "data"
        self.pg("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-N")
        self.start()
        self.addCleanup(lambda: self.pg("pg_ctl", "-D", self.data, "-m", "immediate", "stop", check=False))
        self.store = f"postgresql://postgres@/postgres?host={self.folder}"
        self.migrate()

    def pg(self, program, *arguments, check=True):
        subprocess.run([*self.as_postgres, f"{self.bin}/{program}", *map(str, arguments)], check=check, cwd=self.folder,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        self.pg("pg_ctl", "-w", "-D", self.data, "-o", f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off",
                "-l", self.folder / "server.log", "start")

    def stop(self):
        self.pg("pg_ctl", "-w", "-D", self.data, "-m", "fast", "stop")

    def test_it_survives_a_restart(self):
        process = self.spawn(*self.at_store("status"), "--watch", "100ms", "--json")
        read = lambda: json.loads(process.stdout.readline())
        self.assertIn("subscriptions", read())
        self.stop()
        while "error" not in (found := read()):
            pass
        self.assertNotIn("subscriptions", found)
        self.start()
        while "subscriptions" not in read():
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, OK)

    def test_it_waits_for_a_server_that_is_not_there_yet(self):
        self.stop()
        self.assertEqual(self.outbox(*self.at_store("status")).code, NOT_NOW)
        process = self.spawn(*self.at_store("status"), "--watch", "100ms")
        text = ""
        while "CANNOT BE READ" not in text:
            text += process.stdout.readline()
        self.start()
        while "nothing is delivered" not in text:
            text += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), OK)


class Progress(Case):
    """Long verbs on a terminal; `enqueue` is as long as what it reads."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)

    def enqueue(self, enough, **more):
        """Gives it events until what it shows is enough."""
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as source:
            seen = Terminal(self, "enqueue", "--jsonl", stdin=source.stdout, **more)
            deadline = time.monotonic() + 60
            while not enough(seen.text) and time.monotonic() < deadline:
                source.stdin.write(jsonl(1000).encode())
                source.stdin.flush()
                if select.select([seen.terminal], [], [], 0.02)[0]:
                    seen.text += os.read(seen.terminal, 65536).decode()
            source.stdin.close()
            self.assertEqual(seen.result(), OK)
        return seen.text

    def test_it_is_a_line_that_goes_away(self):
        text = self.enqueue(lambda text: text.count("events,") >= 2)
        self.assertRegex(text, r"^\r\x1b\[K[0-9,]+ events, [0-9,]+/s\r\x1b\[K[0-9,]+ events")
        self.assertRegex(text, r"\r\x1b\[K[0-9,]+ events in [^\x1b]*$")

    def test_no_escape_code_on_a_dumb_terminal_nor_in_a_pipe(self):
        for env in ({"TERM": "dumb"}, {"TERM": None}):
            text = self.enqueue(lambda _, until=time.monotonic() + 0.5: time.monotonic() > until, env=env)
            self.assertRegex(text, r"^[0-9,]+ events in ")
        self.write("events.jsonl", jsonl(1000))
        self.assertEqual(self.succeeds("enqueue", "--jsonl", "events.jsonl").err, "")

    def test_the_long_verbs_say_nothing_in_a_pipe(self):
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(20_000))
        self.succeeds("relay", "--once")
        for verb in ("verify", "replay orders", "prune --older-than 0s --apply", "migrate"):
            self.assertEqual(self.succeeds(*verb.split()).err, "", verb)


class ProgressOnPostgres(OnPostgres, Case):
    """A lock makes the verb wait for as long as the test wants."""

    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)

    def locking(self, statement):
        """Another session, when it has the lock."""
        session = subprocess.Popen(["psql", self.direct, "-qXAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, session)
        session.stdin.write(f"BEGIN; {statement}; SELECT 'locked';\n")
        session.stdin.flush()
        while session.stdout.readline() != "locked\n":
            pass
        return session

    def wait_for_waiting(self, table):
        statement = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{self.flags[1]}.{table}'::regclass"
        wait_until(lambda: int(self.sql(statement)) > 0, "it waits for the lock")

    def test_verify_counts_the_events_that_it_has_read(self):
        self.succeeds("enqueue", "--jsonl", stdin=jsonl(100))
        self.succeeds("relay", "--once")
        session = self.locking(f"LOCK TABLE {self.flags[1]}.settlement IN ACCESS EXCLUSIVE MODE")
        seen = Terminal(self, "verify")
        self.wait_for_waiting("settlement")
        session.stdin.write("SELECT pg_sleep(0.5);\n")  # longer than a line stays unchanged
        session.communicate("COMMIT;\n")
        self.assertEqual(seen.result(), OK)
        self.assertRegex(seen.text, r"\r\x1b\[Korders: 100 events, [0-9,]+/s\r\x1b\[K")
        self.assertIn("nothing differs", seen.text)

    def test_migrate_says_for_how_long_it_has_waited(self):
        schema = self.flags[1] + "_new"
        self.addCleanup(self.drop, schema)
        session = self.locking(f"SELECT pg_advisory_xact_lock(hashtextextended('outbox:migrate:{schema}', 0))")
        seen = Terminal(self, "migrate", "--schema", schema)
        seen.read_until(lambda text: "updating the schema: 2 s" in text, "it counts seconds")
        session.communicate("COMMIT;\n")
        self.assertEqual(seen.result(), OK)
        self.assertRegex(seen.text, r"\r\x1b\[Kapplied 0001_init")


class Colours(Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    def shown(self, **env):
        seen = Terminal(self, *self.at_store("status"), env=env)
        self.assertEqual(seen.result(), OK)
        self.assertIn("PROBLEM:", seen.text)
        return seen.text

    def test_on_a_terminal_only_and_not_where_they_are_unwanted(self):
        self.assertIn(RED + "PROBLEM:\x1b[0m", self.shown())
        self.assertIn(RED, self.shown(NO_COLOR=""))  # as https://no-color.org has it: only if it is not empty
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            self.assertNotIn(ESCAPE, self.shown(**env), env)
        self.assertNotIn(ESCAPE, self.succeeds(*self.at_store("status")).out)


if __name__ == "__main__":
    unittest.main()
