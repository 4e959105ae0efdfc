#!/usr/bin/env python3
"""What README.md and the guides show runs as it stands there. page.py says how a page is read."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import tomllib
import unittest
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from page import NOT_RUN, Block, blocks, check_source, same
from program import BINARY, POSTGRES, ROOT, USAGE, drop_database_later

EXAMPLES = os.environ.get("OUTBOX_EXAMPLES", str(ROOT / "build" / "examples"))
# cli.md is a reference, with outputs of many systems; soak.md is a record of what was run.
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in ("cli.md", "soak.md")),
         *(page for folder in ("guide", "reference", "sinks") for page in sorted((ROOT / "docs" / folder).rglob("*.md")))]
ADDRESS = re.compile(r"postgresql://[^\s\"'`)]+")
UNTIL_STOPPED = re.compile(r"^outbox (relay|work)\b(?!.*--(once|help)\b)[^&|;]*$")


class Shell:
    """One bash for a page, so that variables, folders and programs in the background stay."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.background = []  # the logs of what runs there
        self.bash = subprocess.Popen(["bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def run(self, command, seconds=60):
        """(exit status, output)"""
        if UNTIL_STOPPED.match(program := command.partition(" # ")[0]):
            # A program that is asked to stop while it still starts says so; this one shall end in order.
            command = f"{self.behind(program)}\nuntil grep -q ' lanes' {self.background[-1]} || ! kill -0 $!; do sleep 0.05; done"
        elif command.rstrip().endswith("&"):
            command = self.behind(command.rstrip()[:-1])
        end = uuid.uuid4().hex
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        try:
            # The status stays in $? for a command that prints it.
            self.bash.stdin.write(f"(exit ${{status:-0}})\n{command}\nstatus=$?; echo; echo {end} $status\n")
            self.bash.stdin.flush()
            output = []
            for line in self.bash.stdout:
                if line.startswith(end):
                    return int(line.split()[1]), "".join(output)
                output.append(line)
        finally:
            timer.cancel()
        raise AssertionError(f"{command}: did not end within {seconds} s, or ended the shell:\n{''.join(output)}")

    def behind(self, command):
        """The command, run in the background."""
        self.background.append(self.folder / f".background.{len(self.background)}.log")
        return f"{command} >{self.background[-1]} 2>&1 </dev/null &"

    def kill(self):
        os.killpg(self.bash.pid, signal.SIGKILL)

    def stop(self):
        """Stops what runs in the background; what it ended with, and what it printed. A program that is asked to stop ends in order."""
        if self.bash.poll() is not None:
            return 0, ""  # that was reported
        status, _ = self.run("status=0; for job in $(jobs -p); do kill -TERM $job 2>/dev/null; wait $job || status=$?; done; (exit $status)")
        return status, "".join(log.read_text(encoding="utf-8") for log in self.background if log.exists())

    def end(self):
        if self.bash.poll() is None:
            self.kill()
        self.bash.communicate()


class Pages(unittest.TestCase):
    """A test for each page is added below."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="outbox-pages-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "outbox").symlink_to(Path(BINARY).resolve())
        (self.folder / "page").mkdir()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("OUTBOX_")}
        self.environment |= {"PATH": f"{self.folder / 'bin'}:{EXAMPLES}:{self.environment['PATH']}", "ROOT": str(ROOT), "LC_ALL": "C.UTF-8",
                             "PGOPTIONS": "-c client_min_messages=warning", "PYTHONDONTWRITEBYTECODE": "1"}

    def database(self):
        """The address of the page's own database, which stands for each address on it."""
        name = "pages_" + uuid.uuid4().hex[:12]
        subprocess.run(["psql", POSTGRES, "-qXc", f'CREATE DATABASE "{name}"'], check=True)
        self.addCleanup(drop_database_later, POSTGRES, name)
        url = urlsplit(POSTGRES)._replace(path="/" + name).geturl()
        subprocess.run([BINARY, "migrate", "--store", url], check=True, env=self.environment, stdout=subprocess.DEVNULL)
        return url

    def check(self, page):
        found = blocks(page.read_text(encoding="utf-8"))
        for block in found:
            if wrong := check_source(block):
                self.fail(f"{page.relative_to(ROOT)}:{block.line}: {wrong}")
        running = [block for block in found if block.language in ("console", "setup", "sql", "toml")
                   and not block.runs_elsewhere() and not block.why_not_run()]
        if not running:
            return
        self.url = ""
        if any(ADDRESS.search(block.text) or block.language == "sql" for block in running):
            if not POSTGRES:
                self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
            self.url = self.database()
        shell = Shell(self.folder / "page", self.environment)
        self.addCleanup(shell.end)
        for block in running:
            with self.subTest(line=block.line):
                self.run_block(shell, block)
        status, printed = shell.stop()
        self.assertEqual(status, 0, f"in the background:\n{printed}")

    def run_block(self, shell, block):
        text = ADDRESS.sub(lambda _: self.url, block.text)
        if block.language == "toml":
            self.run_toml(shell, block, text)
        elif block.language == "sql":
            self.run_sql(shell, block, text)
        else:
            self.run_console(shell, Block(block.line, block.language, text, block.said))

    def run_console(self, shell, block):
        """In the shell; an example is run where it can be, and must not be refused as wrong usage."""
        commands = block.commands()
        for number, (command, shown) in enumerate(commands):
            status, printed = shell.run(command)
            if block.said == "example":
                self.assertNotEqual(status, USAGE, f"$ {command}\n{printed}")
                continue
            status_is_shown = number + 1 < len(commands) and commands[number + 1][0] == "echo $?"
            if not status_is_shown:
                self.assertEqual(status, 0, f"$ {command}\n{printed}")
            if shown:
                self.assertTrue(same(shown, printed), f"$ {command}\n--- is shown:\n{shown}\n--- was printed:\n{printed}")

    def run_sql(self, shell, block, text):
        (self.folder / "block.sql").write_text(text, encoding="utf-8")
        status, printed = shell.run(f"psql {self.url} -qXv ON_ERROR_STOP=1 -f ../block.sql")
        self.assertEqual(status, 0, printed)
        self.assertEqual(block.said == "example", False, "SQL that is an example only should not be shown")

    def run_toml(self, shell, block, text):
        """A whole configuration becomes the outbox.toml of the page; of a part the rest is made up."""
        name = "outbox.toml"
        text = self.with_files(text)
        if not re.search(r"^\[store\]", text, re.M):
            name, text = ".part.toml", self.completed(block, text)
        (self.folder / "page" / name).write_text(text, encoding="utf-8")
        names = "".join(f"{name}={'whsec_' + 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' if 'SECRET' in name else 'x'} "
                        for name in sorted(set(re.findall(r"\$\{env:(\w+)\}", text))))
        status, printed = shell.run(f"{names}outbox config check -c {name}")
        self.assertEqual(status, 0, f"{block.text}\n{printed}")

    def with_files(self, text):
        """With programs, files and folders of this machine in place of the reader's."""
        def here(path):
            place = self.folder / path[1].lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
            return f'"{place}"'
        return re.sub(r'"(/(?:etc|var/lib)/[^"]+)"', here, re.sub(r'"/usr/local/bin/[\w-]+"', '"/bin/true"', text))

    def completed(self, block, text):
        """The part of a configuration with a store, and with what the page says first of the same subscription."""
        if block.said.startswith("in "):
            text = f"[{block.said.removeprefix('in ')}]\n{text}"
        part = tomllib.loads(text)
        bare = [name for name, settings in part.get("subscription", {}).items() if "sink" not in settings]
        if not bare:
            if "subscription" in part:
                self.first = getattr(self, "first", part)
            return '[store]\nurl = "sqlite:shop.db"\n' + text
        settings = getattr(self, "first", {"subscription": {bare[0]: {"sink": "null"}}})
        settings = {"subscription": {bare[0]: next(iter(settings["subscription"].values()))}}
        return "".join(f"{name} = {inline(value)}\n" for name, value in overlaid(settings, part).items()) + '[store]\nurl = "sqlite:shop.db"\n'


def overlaid(below, above):
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {name: overlaid(below.get(name, {}), above[name]) if name in above else below[name] for name in {**below, **above}}


def inline(value):
    """As TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {inline(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


class NotRun(unittest.TestCase):
    """Each block that no test runs is named, with the reason (-v prints it)."""


def add_tests():
    for page in PAGES:
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT)).removesuffix(".md"))
        setattr(Pages, f"test_{name}", lambda self, page=page: self.check(page))
        for block in blocks(page.read_text(encoding="utf-8")):
            why = NOT_RUN[block.why_not_run()] if block.why_not_run() else None
            if why is None and block.language not in ("", "console", "setup", "sql", "toml", "json", "text") and not block.said:
                why = f"no test runs {block.language}"
            if why:
                setattr(NotRun, f"test_{name}_line_{block.line}", unittest.skip(why)(lambda self: None))


class Reader(unittest.TestCase):
    """The runner notices what it is there to notice."""

    def test_commands_and_what_they_print(self):
        (block,) = blocks("text\n\n```console\n$ one\n> two\na\nb\n$ three \\\n  four\n```\n")
        self.assertEqual(block.commands(), [("one\ntwo", "a\nb"), ("three \\\n  four", "")])

    def test_what_is_hidden_and_what_is_said(self):
        found = blocks("<!-- run\n$ a\n-->\n<!-- example -->\n```console\n$ b\n```\n```sql\nSELECT 1;\n```\n")
        self.assertEqual([(block.language, block.said) for block in found], [("setup", ""), ("console", "example"), ("sql", "")])

    def test_a_block_without_an_end_or_a_reason_that_nobody_knows_is_an_error(self):
        with self.assertRaises(ValueError):
            blocks("```console\n$ a\n")
        (block,) = blocks("<!-- not run: too lazy -->\n```console\n$ a\n```\n")
        self.assertRaises(ValueError, block.why_not_run)

    def test_what_cannot_run_is_known_by_its_program(self):
        for command, why in (("apt-get install x", "installs"), ("A=b docker run x", "containers"), ("true | systemctl x", "service"), ("c++ x.cpp", "builds"),
                             ("outbox relay", None)):
            (block,) = blocks(f"```console\n$ {command}\n```\n")
            self.assertEqual(block.why_not_run(), why)
        (block,) = blocks("```console\n# outbox migrate\n```\n")
        self.assertEqual(block.why_not_run(), "installs")

    def test_outputs_are_compared(self):
        self.assertTrue(same("ID    STATE\n019a3f0e-5f0a-7c3e-9c59-0b1b5d8f3c11  dead  2s",
                             "ID STATE\n019a3f0e-5f0a-7c3e-9c59-0b1b5d8f3c12  dead  14ms\n"))
        self.assertTrue(same("first\n...\nlast is ...", "first\na\nb\nlast is 7\n"))
        self.assertFalse(same("1 event", "2 events"))
        self.assertFalse(same("one\ntwo", "one\n"))

    def test_a_block_of_a_file_must_be_as_the_file_is(self):
        text = (ROOT / "examples" / "outbox.toml").read_text(encoding="utf-8")
        for said, shown, right in (("examples/outbox.toml", text, True), ("examples/outbox.toml", text + "#\n", False),
                                   ("part of examples/outbox.toml", "  [store]\n", True), ("part of examples/outbox.toml", "[stores]\n", False),
                                   ("examples/none.toml", text, False)):
            self.assertEqual(check_source(Block(1, "toml", shown, said)) is None, right, said)

    def test_code_is_of_a_file_that_is_compiled(self):
        for page in PAGES:
            for block in blocks(page.read_text(encoding="utf-8")):
                if block.language == "cpp":
                    self.assertRegex(block.said, r"^(part of )?(examples|tests)/", f"{page.relative_to(ROOT)}:{block.line}")

    def test_the_first_page_names_every_example(self):
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        examples = [path for pattern in ("*.*", "*/README.md") for path in (ROOT / "examples").glob(pattern)
                    if path.name != "CMakeLists.txt" and not path.name.endswith("_test.py")]
        self.assertGreater(len(examples), 5)
        for path in examples:
            self.assertIn(f"({path.relative_to(ROOT)})", page)

    def test_each_promise_names_tests_that_hold_it(self):
        page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
        for number in range(1, 11):
            section = re.search(rf"^## P{number} .*?(?=^## )", page, re.M | re.S)
            self.assertIsNotNone(section, number)
            self.assertRegex(section[0], r"\[`\w+`\]\(\.\./(tests|examples)/", number)


add_tests()
if __name__ == "__main__":
    unittest.main()
