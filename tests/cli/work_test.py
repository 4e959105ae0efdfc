#!/usr/bin/env python3
"""outbox work: programs as handlers, on both stores."""

import json
import os
import signal
import socket
import threading
import unittest
from urllib.parse import urlsplit

from program import Case, ERROR, INTERRUPTED, OK, OnPostgres, USAGE, wait_until


class Work(Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    def handlers(self, *sections, more=""):
        """A [task.TYPE] section with a script for each (type, script, settings)."""
        text = ""
        for name, script, settings in sections:
            program = self.write(name + ".sh", "#!/bin/sh\n" + script)
            program.chmod(0o755)
            text += f'\n[task."{name}"]\ncommand = ["./{program.name}"]\n{settings}\n'
        self.config(text, f'[worker]\ndelays = ["50ms", "50ms"]\njitter = 0\n{more}\n[relay]\nlease = "2s"')

    def enqueue(self, kind, payload, key="", queue="default"):
        line = {"aggregate_type": "outbox-task:" + queue, "aggregate_id": key, "event_type": kind, "payload": payload}
        self.succeeds("enqueue", "--jsonl", stdin=json.dumps(line, separators=(",", ":")) + "\n")

    def lines(self, name):
        path = self.folder / name
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def start(self, *flags):
        return self.spawn("work", *flags, stdout=None, stderr=open(self.folder / "log", "a", encoding="utf-8"))

    def parked(self):
        return self.succeeds("parked", "list", "--json").json()["events"]

    def test_programs_do_tasks_in_the_order_of_their_keys(self):
        self.handlers(("note", 'cat >> done; echo " $OUTBOX_TASK_KEY" >> done\n', ""))
        self.start()
        for number in range(20):
            self.enqueue("note", {"n": number}, key="k")
        seen = wait_until(lambda: (done := self.lines("done")) and len(done) >= 40 and done, "all tasks")
        self.assertEqual(seen, [part for n in range(20) for part in (f'{{"n":{n}}}', "k")])

    def test_one_that_fails_is_tried_again_and_dies_with_what_the_program_said(self):
        self.handlers(("fails", "echo run >> runs; echo no such month >&2; exit 1\n", ""),
                      ("bad", "echo unreadable >&2; exit 65\n", ""))
        self.start()
        self.enqueue("fails", {})
        self.enqueue("bad", {})
        rows = wait_until(lambda: len(rows := self.parked()) == 2
                          and all(row["state"] == "dead" for row in rows) and rows, "both are dead")
        self.assertEqual(sorted((row["event_type"], row["attempts"], row["error"]) for row in rows), [
            ("bad", 1, "the program ended with status 65: unreadable"),
            ("fails", 3, "the program ended with status 1: no such month")])
        self.assertEqual(len(self.lines("runs")), 3)

    def test_a_stop_waits_for_what_runs_and_what_is_killed_with_the_worker_runs_again(self):
        self.handlers(("slow", "echo begin >> seen; while [ ! -e go ]; do sleep 0.05; done; echo end >> seen\n", ""))
        worker = self.start()
        self.enqueue("slow", {})
        wait_until(lambda: self.lines("seen") == ["begin"], "it runs")
        worker.kill()
        worker.wait()
        worker = self.start()
        wait_until(lambda: self.lines("seen") == ["begin", "begin"], "it runs again")
        worker.send_signal(signal.SIGTERM)
        (self.folder / "go").touch()
        self.assertEqual(worker.wait(), OK)
        self.assertEqual(self.lines("seen"), ["begin", "begin", "end"], "the first program died with its worker")
        self.assertEqual(self.parked(), [])

    def test_after_the_grace_period_a_program_is_told_to_end_and_its_task_runs_again(self):
        self.handlers(("slow", "trap 'echo told >> seen; exit 1' TERM\necho begin >> seen\n"
                               "while [ ! -e go ]; do sleep 0.05; done; echo end >> seen\n", ""), more='grace = "100ms"')
        worker = self.start()
        self.enqueue("slow", {})
        wait_until(lambda: self.lines("seen") == ["begin"], "it runs")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), INTERRUPTED)
        wait_until(lambda: self.lines("seen") == ["begin", "told"], "it was told")
        (self.folder / "go").touch()
        self.start()
        wait_until(lambda: self.lines("seen") == ["begin", "told", "begin", "end"], "it runs again")

    def test_each_queue_has_its_handlers(self):
        self.handlers(("a", "echo a >> done\n", 'queue = "first"'), ("b", "echo b >> done\n", 'queue = "second"'))
        self.enqueue("a", {}, queue="first")
        self.enqueue("b", {}, queue="second")
        worker = self.start("--queue", "second")
        wait_until(lambda: self.lines("done") == ["b"], "the task of its queue")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), OK)
        self.start()
        wait_until(lambda: self.lines("done") == ["b", "a"], "the other one")


class Door:
    """Between a program and a server. Of the connections of a verb itself, which are not those of its workers, only the first one is let
    through."""

    def __init__(self, server):
        self.server = (server.hostname, server.port or 5432)
        self.refused = False
        self.let_in = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        who, at, _ = server.netloc.rpartition("@")
        query = "&".join(filter(None, (server.query, "sslmode=disable&gssencmode=disable")))
        self.url = server._replace(netloc=f"{who}{at}127.0.0.1:{self.listener.getsockname()[1]}", query=query).geturl()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                first = client.recv(65536)
                if b"application_name\0outbox catalog\0" in first:
                    if self.let_in:
                        self.refused = True
                        client.close()
                        continue
                    self.let_in = True
                server = socket.create_connection(self.server)
                server.sendall(first)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()
        except OSError:
            pass  # closed

    @staticmethod
    def carry(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One end is gone; the other will notice.

    def close(self):
        self.listener.close()


class WorkOnPostgres(OnPostgres, Work):
    def test_a_stop_waits_for_what_runs_also_while_another_queue_waits_for_the_store(self):
        self.handlers(("slow", "echo begin >> seen; while [ ! -e go ]; do sleep 0.05; done; echo end >> seen\n", 'queue = "first"'),
                      ("note", "cat >> done\n", 'queue = "second"'))
        self.enqueue("slow", {}, queue="first")
        door = Door(urlsplit(self.store))
        self.addCleanup(door.close)
        worker = self.start("--wait", "--store", door.url, *self.flags)
        wait_until(lambda: self.lines("seen") == ["begin"] and door.refused, "the first queue works, and the second one waits")
        worker.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in (self.folder / "log").read_text(encoding="utf-8") or worker.poll() is not None, "it stops")
        (self.folder / "go").touch()
        self.assertEqual(worker.wait(), OK)
        self.assertEqual(self.lines("seen"), ["begin", "end"])
        self.assertEqual(self.parked(), [])


class Configuration(Case):
    def test_wrong_sections_are_refused_with_the_place(self):
        self.write("notes.txt", "no program")
        for section, says in (
                ('[task."x"]\n', "task.\"x\".command: is missing"),
                ('[task."x"]\ncommand = ["nowhere-to-be-found"]\n', "is no program that can be run in PATH"),
                ('[task."x"]\ncommand = ["./notes.txt"]\n', "is no program that can be run"),
                ('[task."x"]\ncommand = "ls"\n', "command"),
                ('[task."x"]\ncomand = ["ls"]\n', "did you mean command?"),
                ('[task."x"]\ncommand = ["ls"]\nqueue = "a b"\n', "queue: 'a b' is no name of a queue"),
                ('[task."x"]\ncommand = ["ls"]\ndeadline = "0s"\n', "deadline"),
                ('[task."x"]\ncommand = ["ls"]\nhandler = "exe"\n', "handler")):
            self.config(section)
            result = self.outbox("config", "check")
            self.assertNotEqual(result.code, OK, section)
            self.assertIn(says, result.err + result.out)

    def test_without_handlers_it_says_how_to_give_one(self):
        self.config()
        self.fails(USAGE, "work", says=("no handlers", "[task."))

    def test_a_queue_without_handlers_is_named(self):
        self.config('[task."x"]\ncommand = ["ls"]\n')
        result = self.outbox("work", "--queue", "other")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("--queue other", result.err)

    def test_what_is_shown(self):
        self.config('[task."report.make"]\ncommand = ["ls", "-l"]\n')
        shown = self.succeeds("config", "show").out
        self.assertIn('[task."report.make"]', shown)
        self.assertIn("[worker]", shown)


if __name__ == "__main__":
    unittest.main()
