#!/usr/bin/env python3
"""outbox enqueue: one event from arguments, many from lines."""

import json
import os
import socket
import sqlite3
import subprocess
import unittest
import uuid

from program import BINARY, Case, ERROR, FILE_SUBSCRIPTION, INTERRUPTED, OK, OnPostgres, OnSqlite, USAGE, jsonl, signal, wait_until

ARGUMENTS = ("enqueue", "order", "42", "OrderPlaced")


class Enqueue:
    def setUp(self):
        super().setUp()
        self.migrate()

    def enqueue(self, *arguments, **more):
        return self.succeeds(*self.at_store("enqueue", *arguments), **more)

    def enqueue_file(self, lines):
        """From a file: a pipe that pauses for 50 ms, as one does behind a busy writer, ends a transaction."""
        with open(self.write("lines.jsonl", lines), encoding="utf-8") as file:
            return self.enqueue("--jsonl", "--json", stdin=file).json()

    def test_one_event_prints_its_id(self):
        printed = self.enqueue("order", "42", "OrderPlaced", '{"total": 12.5}').out
        self.assertEqual(uuid.UUID(printed.strip()).version, 7)
        self.assertEqual(self.events(), 1)

    def test_an_id_of_the_callers(self):
        wanted = str(uuid.uuid4())
        self.assertEqual(self.enqueue(*ARGUMENTS[1:], "{}", "--id", wanted, "--json").json(), {"id": wanted})

    def test_payload_from_file_and_stdin(self):
        self.write("payload.json", '{"from": "a file"}\n')
        self.enqueue(*ARGUMENTS[1:], "@payload.json")
        self.enqueue(*ARGUMENTS[1:], "-", stdin="[1, 2]")
        self.enqueue(*ARGUMENTS[1:], "hello", "--content-type", "text/plain", "--header", "a=b", "--header", "c=d=e")
        self.assertEqual(self.events(), 3)

    def test_payloads_that_look_like_something_else(self):
        for payload in ("{}", "[1,2]", "[]", '""', "-5", "null"):
            self.enqueue("order", "", "status", payload)
        self.assertEqual(self.events(), 6)

    def test_bad_arguments_write_nothing(self):
        for arguments, code, says in (((*ARGUMENTS, "{"), USAGE, "payload"),
                                      (("enqueue", "", "42", "OrderPlaced", "{}"), USAGE, "aggregate_type"),
                                      (("enqueue", "order", "42", " ", "{}"), USAGE, "event_type"),
                                      ((*ARGUMENTS, "{}", "--id", "5"), USAGE, "id"),
                                      ((*ARGUMENTS, "{}", "--header", "x"), USAGE, "--header name=value"),
                                      ((*ARGUMENTS, "{}", "--header", "a b=c"), USAGE, "headers"),
                                      ((*ARGUMENTS, "@nope"), ERROR, "nope"),
                                      ((*ARGUMENTS, "{}", "--occurred-at", "now"), USAGE, "2026-01-05T08:09:12.5Z"),
                                      (ARGUMENTS, USAGE, "PAYLOAD"),
                                      ((*ARGUMENTS, "{}", "--jsonl"), USAGE, "--jsonl")):
            result = self.outbox(*self.at_store(*arguments))
            self.assertEqual(result.code, code, (arguments, result))
            self.assertEqual(len(result.err.splitlines()), 1, result)
            self.assertIn(says, result.err)
        self.assertEqual(self.events(), 0)

    def ways_in(self, payload, text, content_type):
        """Each way to enqueue `payload`, a JSON text, or `text`, the same as the characters that are to be delivered."""
        line = {"aggregate_type": "a", "event_type": "b", "payload": json.loads(payload)}
        said = () if content_type is None else ("--content-type", content_type)
        if content_type is not None:
            line["content_type"] = content_type
        self.enqueue("a", "", "b", text, *said)
        self.enqueue("a", "", "b", "-", *said, stdin=text)
        self.enqueue("--jsonl", stdin=json.dumps(line))
        return 3 + self.sql_ways_in(line, text, content_type)

    def test_a_json_string_means_the_same_in_every_way(self):
        for payload, text, content_type in (('"hi"', '"hi"', None), ('"hi"', '"hi"', "application/json"),
                                            ('"hi"', '"hi"', "a/b+json"), ('"hi"', "hi", "text/plain"), ('"hi"', "hi", ""),
                                            ('{"a": "hi"}', '{"a": "hi"}', "text/plain")):
            before = self.events()
            count = self.ways_in(payload, text, content_type)
            stored = self.stored()[before:]
            self.assertEqual(stored, [(text, "application/json" if content_type is None else content_type)] * count)

    def test_it_may_have_happened_before(self):
        self.enqueue(*ARGUMENTS[1:], "{}", "--occurred-at", "2001-02-03T05:05:06.789012+01:00")
        line = {"aggregate_type": "a", "event_type": "b", "payload": 1, "occurred_at": "2001-02-03T04:05:06.789012Z"}
        self.enqueue("--jsonl", stdin=json.dumps(line))
        self.config(FILE_SUBSCRIPTION)
        process = self.spawn("relay", "-c", "outbox.toml")
        lines = wait_until(lambda: (found := (self.folder / "orders.jsonl")).exists() and len(found.read_text().splitlines()) == 2
                           and found.read_text().splitlines(), "two lines")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        for text in lines:
            delivered = json.loads(text)
            self.assertEqual(delivered["occurred_at"], "2001-02-03T04:05:06.789012Z")
            self.assertEqual(delivered["headers"]["outbox-time"], "2001-02-03T04:05:06.789012Z")
            self.assertEqual(delivered["headers"]["outbox-seq"], str(delivered["seq"]))

    def test_lines_from_stdin(self):
        result = self.enqueue_file(jsonl(2500))
        self.assertEqual((result["events"], result["transactions"], result["lines"]), (2500, 3, 2500))
        self.assertEqual(self.events(), 2500)
        result = self.enqueue("--jsonl", "--json", stdin=jsonl(2500)).json()
        self.assertEqual((result["events"], result["lines"]), (2500, 2500))
        self.assertGreaterEqual(result["transactions"], 3)
        self.assertEqual(self.events(), 5000)

    def test_lines_from_a_file_with_ids(self):
        self.write("events.jsonl", jsonl(3) + "\n\r\n" + jsonl(1).rstrip("\n"))
        ids = self.enqueue("--jsonl", "events.jsonl", "--ids").out.split()
        self.assertEqual(len(set(ids)), 4)
        self.assertEqual(self.events(), 4)

    def test_ids_are_no_part_of_a_json_object(self):
        self.fails(USAGE, *self.at_store("enqueue", "--jsonl", "--ids", "--json"), stdin=jsonl(2), says=("--ids", "--json"))
        self.assertEqual(self.events(), 0)

    def test_an_empty_name_says_what_belongs_there(self):
        self.fails(USAGE, *self.at_store("enqueue", "", "1", "OrderPlaced", "{}"), says=("aggregate_type: is empty", "order"))
        self.fails(USAGE, *self.at_store("enqueue", "order", "1", " ", "{}"), says=("event_type: is blank", "OrderPlaced"))

    def test_ids_in_lines_are_kept(self):
        wanted = str(uuid.uuid4())
        line = json.dumps({"aggregate_type": "a", "event_type": "b", "payload": 1, "id": wanted})
        self.assertEqual(self.enqueue("--jsonl", "--ids", stdin=line).out.strip(), wanted)

    def test_large_lines_make_smaller_transactions(self):
        line = json.dumps({"aggregate_type": "a", "event_type": "b", "payload": "x" * 1_000_000}) + "\n"
        result = self.enqueue_file(line * 10)
        self.assertEqual((result["events"], result["transactions"]), (10, 2))

    def test_nothing_is_no_error(self):
        self.assertEqual(self.enqueue("--jsonl", "--json").json()["events"], 0)

    def bad_line(self, line, *says):
        """Line 1502: the first transaction of 1000 lines is committed, of the second nothing is."""
        before = self.events()
        self.write("events.jsonl", jsonl(1501) + line + "\n" + jsonl(1000))
        result = self.outbox(*self.at_store("enqueue", "--jsonl", "events.jsonl"))
        self.assertEqual(result.code, ERROR, result)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        for part in ("events.jsonl:1502", "1000 events were committed", "nothing from line 1001 on",
                     "continue with line 1001", *says):
            self.assertIn(part, result.err)
        self.assertEqual(self.events() - before, 1000)

    def test_malformed_lines(self):
        self.bad_line('{"aggregate_type": "a", "event_type": "b", "payload": 1', "is not a JSON object")
        self.bad_line("no json", "is not a JSON object")
        self.bad_line('{"aggregate_type": "a", "evnt_type": "b", "payload": 1}', "evnt_type", "event_type")
        self.bad_line('{"aggregate_type": "", "event_type": "b", "payload": 1}', "aggregate_type")
        self.bad_line('{"aggregate_type": "a", "event_type": "b"}', "payload: is missing")
        self.bad_line('{"aggregate_type": "a", "event_type": "b", "payload_base64": "eA=="}', "payload: is not JSON")
        self.bad_line('{"aggregate_type": "a", "event_type": "b", "payload": 1, "occurred_at": "now"}', "occurred_at: is not a time")

    def test_a_bad_first_line_writes_nothing(self):
        self.fails(ERROR, *self.at_store("enqueue", "--jsonl"), stdin="x\n" + jsonl(10),
                   says=("stdin:1", "0 events were committed"))
        self.assertEqual(self.events(), 0)

    def test_an_input_that_cannot_be_read(self):
        result = self.fails(ERROR, *self.at_store("enqueue", "--jsonl", "."),
                            says=("cannot be read", "0 events were committed", "continue with line 1)"))
        self.assertNotIn("correct the line", result.err)

    def test_a_read_error_names_the_line_that_follows(self):
        """Reading fails after the other end has reset the connection; what was read before is committed."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = self.spawn(*self.at_store("enqueue", "--jsonl"), stdin=theirs)
            ours.sendall(jsonl(5).encode())
            wait_until(lambda: self.events() == 5, "five events")
            theirs.sendall(b"unread")  # Closing a socket with unread data resets the connection.
            ours.close()
            _, error = process.communicate(timeout=30)
        self.assertEqual(process.returncode, ERROR)
        for part in ("stdin:6: cannot be read", "5 events were committed before it", "continue with line 6)"):
            self.assertIn(part, error)

    def ids_stop(self, output):
        self.write("events.jsonl", jsonl(5000))
        before = self.events()
        run = subprocess.run([BINARY, *self.at_store("enqueue", "--jsonl", "events.jsonl", "--ids")], check=False, text=True,
                             stdout=output, stderr=subprocess.PIPE, cwd=self.folder, env=self.environment, timeout=60)
        self.assertEqual(run.returncode, ERROR, run)
        self.assertEqual(self.events() - before, 1000)
        self.assertRegex(run.stderr, r"^outbox: .*1000 events were committed \(hint: continue with line 1001\)\n$")

    def test_ids_that_cannot_be_written_end_it(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.ids_stop(full)
        reader, writer = os.pipe()
        os.close(reader)
        self.ids_stop(writer)
        os.close(writer)

    def closed(self, redirection, *arguments):
        return subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", BINARY, *self.at_store(*arguments)],
                              check=False, capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=60)

    def test_a_closed_stdin_is_an_error(self):
        run = self.closed("<&-", "enqueue", "--jsonl")
        self.assertEqual(run.returncode, ERROR, run)
        self.assertIn("stdin:1: cannot be read", run.stderr)
        run = self.closed("<&-", *ARGUMENTS, "-", "--content-type", "text/plain")
        self.assertEqual(run.returncode, ERROR, run)
        self.assertEqual(self.events(), 0)

    def test_a_closed_stdout_takes_nothing(self):
        run = self.closed(">&- 2>&-", *ARGUMENTS, "{}")
        self.assertEqual(run.returncode, ERROR, run)
        self.assertEqual(self.events(), 1)
        self.succeeds(*self.at_store("status"))

    def test_an_interrupted_payload(self):
        process = self.spawn(*self.at_store(*ARGUMENTS, "-"), stdin=subprocess.PIPE)
        threads = f"/proc/{process.pid}/task"
        wait_until(lambda: len(os.listdir(threads)) > 1, "the thread that waits for signals")
        wait_until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None, "the end")
        self.assertEqual(process.wait(timeout=30), INTERRUPTED)
        self.assertEqual(self.events(), 0)

    def test_a_missing_file(self):
        self.fails(ERROR, *self.at_store("enqueue", "--jsonl", "nope.jsonl"), says="nope.jsonl")

    def test_what_came_is_written_when_the_input_pauses(self):
        process = self.spawn(*self.at_store("enqueue", "--jsonl"), stdin=subprocess.PIPE)
        process.stdin.write(jsonl(3))
        process.stdin.flush()
        wait_until(lambda: self.events() == 3, "three events without an end of input")
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertIn("3 events", out)

    def test_a_signal_stops_it_and_it_says_where_to_go_on(self):
        process = self.spawn(*self.at_store("enqueue", "--jsonl"), stdin=subprocess.PIPE)
        process.stdin.write(jsonl(3))
        process.stdin.flush()
        wait_until(lambda: self.events() == 3, "three events")
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
        self.assertEqual(process.wait(timeout=30), INTERRUPTED)
        self.assertEqual(error, "outbox: interrupted: 3 events were committed (hint: continue with line 4)\n")

    def test_progress(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        os.write(writer, jsonl(3).encode())  # before it starts, or the first line is "0 events"
        process = self.spawn(*self.at_store("enqueue", "--jsonl", "--progress"), stdin=reader)
        os.close(reader)
        self.assertRegex(process.stderr.readline(), r"^outbox: 3 events, \d+/s$")


    def test_progress_is_not_mixed_into_what_a_person_types(self):
        master, terminal = os.openpty()
        self.addCleanup(os.close, master)
        process = self.spawn(*self.at_store("enqueue", "--jsonl"), stdin=terminal, stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        for number in range(1, 21):  # each is written in a pause, after which progress is shown where it may be
            os.write(master, jsonl(1).encode())
            wait_until(lambda n=number: self.events() == n, "the event")
        os.write(master, b"\x04")
        self.assertEqual(process.wait(timeout=30), OK)
        self.assertNotIn(" events, ", os.read(master, 65536).decode())


class EnqueueSqlite(OnSqlite, Enqueue, Case):
    def sql_ways_in(self, line, text, content_type):
        with sqlite3.connect(self.folder / "shop.db") as database:
            for payload in (text, text.encode()):
                database.execute("INSERT INTO outbox_new_event (aggregate_type, event_type, payload, content_type)"
                                 " VALUES ('a', 'b', ?, ?)", (payload, content_type))
        return 2

    def stored(self):
        return [(payload.decode(), content_type) for payload, content_type in
                self.sql("SELECT payload, content_type FROM outbox_event ORDER BY seq")]

    def through_the_view(self, content_type, headers="{}"):
        """What is wrong, or none."""
        with sqlite3.connect(self.folder / "shop.db") as database:
            try:
                database.execute("INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload, content_type,"
                                 " headers) VALUES ('order', '42', 'OrderPlaced', '{}', ?, ?)", (content_type, headers))
            except sqlite3.IntegrityError as error:
                return str(error)
        return None

    def test_the_view_takes_the_content_types_that_we_take(self):
        for text in ("text/plain", "application/x-y+json; charset=utf-8", " text/plain ;x", "", "a", "a/b/c", "/b", "a/", "a b/c",
                     "a/b;\n", "a/\u00e4", "x;a/b", "a/[b"):
            ours = self.outbox(*self.at_store(*ARGUMENTS, "{}", "--content-type", text)).code == 0
            self.assertEqual(self.through_the_view(text) is None, ours, text)
        self.assertIn("content_type: is not a media type", self.through_the_view("json"))
        self.assertIn("content-type is set twice", self.through_the_view(None, '{"Content-Type": "text/plain"}'))


class EnqueuePostgres(OnPostgres, Enqueue, Case):
    def sql_ways_in(self, line, text, content_type):
        schema, json_text = self.flags[1], json.dumps(line["payload"])
        said = "NULL" if content_type is None else f"'{content_type}'"
        ways = [f"SELECT {schema}.enqueue('a', '', 'b', '{payload}'::{kind}, content_type => {said})"
                for payload, kind in ((text, "text"), (text, "bytea"), (json_text, "json"), (json_text, "jsonb"))]
        ways.append(f"SELECT {schema}.enqueue_many('[{json.dumps(line)}]')")
        ways.append(f"INSERT INTO {schema}.new_event (aggregate_type, event_type, payload, content_type)"
                    f" VALUES ('a', 'b', '{json_text}', {said})")
        for way in ways:
            self.sql(way)
        return len(ways)

    def stored(self):
        rows = self.sql(f"SELECT json_build_array(convert_from(payload, 'UTF8'), coalesce(content_type, ''))"
                        f" FROM {self.flags[1]}.event ORDER BY seq")
        return [tuple(json.loads(row)) for row in rows.splitlines()]


if __name__ == "__main__":
    unittest.main()
