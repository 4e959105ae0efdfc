#!/usr/bin/env python3
"""Completion in bash, zsh and fish, asked from the shells themselves, and the manual pages."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest
from pathlib import Path

from program import BINARY, Case, ERROR, USAGE


def visible(text):
    """Without what only moves the cursor or colours."""
    return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()=>].?)|\r", "", text)


class Shell(Case):
    """Runs a shell, where the script is loaded and the folder has the files below."""

    shell = ""
    script = ""

    def setUp(self):
        if not shutil.which(self.shell):
            self.skipTest(f"{self.shell} is not installed (Debian package {self.shell})")
        super().setUp()
        self.script = self.write("outbox." + self.shell, self.succeeds("completion", self.shell).out)
        for name in ("fine.toml", "finer.toml", "with blank.jsonl"):
            self.write(name, "")
        (self.folder / "finest").mkdir()
        self.environment["HOME"] = str(self.folder)
        self.environment["PATH"] = f"{Path(BINARY).parent}:{self.environment['PATH']}"

    def words(self, line):
        raise NotImplementedError

    def offers(self, line, *words):
        self.assertEqual(sorted(self.words(line)), sorted(words), line)

    def offers_among(self, line, *words):
        found = self.words(line)
        for word in words:
            self.assertIn(word, found, line)
        return found


class Answers:
    """What each shell has to complete."""

    def test_verbs(self):
        self.offers("outbox par", "parked")
        self.offers("outbox sub", "subscription")
        self.offers_among("outbox ", "relay", "parked", "completion", "man", "help")

    def test_verbs_of_verbs(self):
        self.offers("outbox parked ", "list", "errors", "show", "retry", "edit", "discard")
        self.offers("outbox tasks schedule re", "resume", "remove")
        self.offers("outbox subscription li", "list")

    def test_options_of_the_verb_and_of_every_verb(self):
        found = self.offers_among("outbox relay --", "--once", "--name", "--config", "--store", "--help")
        self.assertNotIn("--reason", found)
        self.assertNotIn("--version", found)
        self.offers("outbox parked discard --app", "--apply")
        self.offers("outbox parked list --app")

    def test_options_before_the_verb(self):
        self.offers("outbox --config fine.toml parked dis", "discard")
        self.offers("outbox -c fine.toml parked dis", "discard")
        self.offers("outbox --set relay.page=5 parked dis", "discard")
        self.offers("outbox --store sqlite:shop.db parked dis", "discard")

    def test_a_value_is_not_taken_for_a_verb(self):
        self.offers("outbox --schema relay parked edi", "edit")

    def test_few_values(self):
        self.offers("outbox parked list --state d", "dead")
        self.offers("outbox tasks list --state sch", "scheduled")
        self.offers("outbox --log-format ", "json", "text")
        self.offers("outbox completion ", "bash", "zsh", "fish")

    def test_files(self):
        self.offers_among("outbox --config fine", "fine.toml", "finer.toml")
        self.offers("outbox relay -c finer", "finer.toml")
        self.offers_among("outbox enqueue --jsonl fine", "fine.toml", "finer.toml")

    def test_folders_only(self):
        self.assertEqual([word.rstrip("/") for word in self.words("outbox prune --archive fin")], ["finest"])
        self.assertEqual([word.rstrip("/") for word in self.words("outbox man fin")], ["finest"])

    def test_help(self):
        self.offers("outbox help rel", "relay")
        self.offers("outbox help parked dis", "discard")

    def test_other_words_are_not_completed(self):
        self.offers("outbox subscription pause ")
        self.offers("outbox relay --name f")


class Bash(Answers, Shell):
    shell = "bash"

    def words(self, line):
        """As readline divides it: at blanks, = and :"""
        *before, last = re.findall(r"[=:]+|[^\s=:]+|\s+$", line)
        words = [word for word in before if word.strip()]
        words.append("" if last.isspace() else last)
        quoted = " ".join(f"'{word}'" for word in words)
        command = (f"source {self.script}; compopt() {{ :; }}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _outbox; "
                   "printf '%s\\n' \"${COMPREPLY[@]}\"")
        run = subprocess.run(["bash", "--norc", "-uc", command], capture_output=True, text=True, check=True, cwd=self.folder,
                             env=self.environment)
        self.assertEqual(run.stderr, "", line)
        return run.stdout.split("\n")[:-1] if run.stdout.strip() else []

    def test_values_after_an_equals_sign(self):
        self.offers("outbox --config=finer", "finer.toml")
        self.offers("outbox --config=", *(path.name for path in self.folder.iterdir()))
        self.offers("outbox parked list --state=de", "dead")
        self.offers("outbox --set relay.page=")
        self.offers("outbox --config=fine.toml parked dis", "discard")

    def test_a_name_with_a_blank_stays_one(self):
        self.offers("outbox enqueue --jsonl with", "with blank.jsonl")

    def test_on_a_terminal(self):
        typed = Typed(self, ["bash", "--norc", "-i"], r"""PS1='> '; bind 'set enable-bracketed-paste off'
bind -x '"\C-t": printf "<%s>" "<$READLINE_LINE>"'; . ./outbox.bash""")
        self.assertEqual(typed.completed("outbox parked dis"), "outbox parked discard ")
        self.assertEqual(typed.completed("outbox enqueue --jsonl with"), r"outbox enqueue --jsonl with\ blank.jsonl ")
        self.assertEqual(typed.completed("outbox --config=finer"), "outbox --config=finer.toml ")


class Fish(Answers, Shell):
    shell = "fish"

    def words(self, line):
        run = subprocess.run(["fish", "--no-config", "-c", f"source {self.script}; complete -C '{line}'"], capture_output=True,
                             text=True, check=True, cwd=self.folder, env=self.environment)
        self.assertEqual(run.stderr, "", line)
        return [row.split("\t")[0] for row in run.stdout.splitlines()]

    def test_each_has_its_help(self):
        run = subprocess.run(["fish", "--no-config", "-c", f"source {self.script}; complete -C 'outbox parked sh'"],
                             capture_output=True, text=True, check=True, cwd=self.folder, env=self.environment)
        self.assertRegex(run.stdout, r"^show\t\S+")


class Typed:
    """A shell on a terminal. The program that it is asked to complete is not run."""

    def __init__(self, case, command, setup):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(case.folder)
            os.execvpe(command[0], command, case.environment | {"TERM": "xterm", "COLUMNS": "200", "LINES": "50"})
        case.addCleanup(self.end)
        self.text = ""
        self.run(setup)

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)

    def read_until(self, condition):
        deadline = time.monotonic() + 30
        while not condition(self.text):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"not within 30 s; the terminal shows {self.text!r}")
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def run(self, command):
        """Its end is a word that the echo of the command does not have."""
        os.write(self.terminal, (command + "; echo re''ady\n").encode())
        self.read_until(lambda text: "ready" in visible(text))
        self.text = ""

    def completed(self, line):
        """The line after the tabulator: ^T shows it between brackets, see the setups."""
        os.write(self.terminal, b"\x15" + line.encode() + b"\t\x14")
        self.read_until(lambda text: re.search(r"<<(.*?)>>", text))
        found = re.search(r"<<(.*?)>>", self.text).group(1)
        self.text = ""
        return found


class Zsh(Shell):
    shell = "zsh"

    SETUP = r"""PS1='> '; autoload -U compinit; compinit -D -u; source ./outbox.zsh
show() { printf "<%s>" "<$BUFFER>" }; zle -N show; bindkey '^T' show"""

    def setUp(self):
        super().setUp()
        self.typed = Typed(self, ["zsh", "-f", "-i"], self.SETUP)

    def completed(self, line):
        return self.typed.completed(line)

    def test_lines(self):
        for line, completed in (
                ("outbox par", "outbox parked "),
                ("outbox parked dis", "outbox parked discard "),
                ("outbox tasks schedule rem", "outbox tasks schedule remove "),
                ("outbox parked discard --app", "outbox parked discard --apply "),
                ("outbox --config fine.toml parked dis", "outbox --config fine.toml parked discard "),
                ("outbox -c fine.toml parked dis", "outbox -c fine.toml parked discard "),
                ("outbox --set relay.page=5 parked dis", "outbox --set relay.page=5 parked discard "),
                ("outbox parked list --state de", "outbox parked list --state dead "),
                ("outbox --log-format j", "outbox --log-format json "),
                ("outbox completion f", "outbox completion fish "),
                ("outbox relay -c finer", "outbox relay -c finer.toml "),
                ("outbox prune --archive fin", "outbox prune --archive finest/"),
                ("outbox help rel", "outbox help relay "),
                ("outbox help parked dis", "outbox help parked discard "),
                ("outbox parked list --app", "outbox parked list --app")):
            self.assertEqual(self.completed(line).rstrip(), completed.rstrip(), line)


class Completion(Case):
    def test_every_verb_that_is_shown_is_offered(self):
        verbs = re.findall(r"(?m)^  ([a-z]+) ", self.succeeds("--help").out.split("Verbs:")[1])
        self.assertIn("completion", verbs)
        self.assertNotIn("complete", verbs)
        offered = [line.split("\t")[0] for line in self.succeeds("complete", "--", "").out.splitlines()]
        self.assertEqual(sorted(offered), sorted(verbs))

    def test_words_that_the_program_itself_would_interpret(self):
        for words in (("--help",), ("relay", "--version", ""), ("--", "rel"), ("{}",), ("[a,b]", ""), ()):
            self.succeeds("complete", "--", *words)
        self.assertRegex(self.succeeds("complete", "--", "parked", "list", "--state=d").out, r"^dead\t.+\n$")
        self.assertEqual(self.succeeds("complete", "--", "relay", "-c", "").out, ":file\n")

    def test_another_shell(self):
        self.fails(USAGE, "completion", "fsh", says=("no completion for the shell fsh", "did you mean"))
        self.fails(USAGE, "completion", says="is missing")


class Man(Case):
    def pages(self):
        self.succeeds("man", "pages")
        return sorted((self.folder / "pages").iterdir())

    def test_there_is_one_for_each_verb(self):
        verbs = re.findall(r"(?m)^  ([a-z]+) ", self.succeeds("--help").out.split("Verbs:")[1])
        self.assertEqual([page.name for page in self.pages()],
                         sorted(["outbox.1"] + [f"outbox-{verb}.1" for verb in verbs]))

    def test_a_page_has_all_options_and_verbs(self):
        self.pages()
        parked = (self.folder / "pages" / "outbox-parked.1").read_text(encoding="ascii").replace("\\-", "-")
        for word in ("outbox parked discard", "--apply", "--keep-attempts", "retrying|waiting|dead|running", "outbox parked retry --"):
            self.assertIn(word, parked)
        program = (self.folder / "pages" / "outbox.1").read_text(encoding="ascii").replace("\\-", "-")
        for word in ("--config", "outbox-relay", "OUTBOX_STORE_URL", "EXIT STATUS"):
            self.assertIn(word, program)

    def checked(self, *command, env=None):
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        for page in self.pages():
            run = subprocess.run([*command, str(page)], capture_output=True, text=True, check=False,
                                 env=self.environment | (env or {}))
            self.assertEqual((run.returncode, run.stderr), (0, ""), page.name)
            yield page, run.stdout

    def test_man_has_no_warnings(self):
        for page, text in self.checked("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"):
            self.assertNotEqual(text, "", page)

    def test_groff_has_no_warnings(self):
        for page, text in self.checked("groff", "-ww", "-man", "-Tascii"):
            self.assertNotEqual(text, "", page)

    def test_mandoc_has_no_warnings(self):
        for page, text in self.checked("mandoc", "-T", "lint", "-W", "warning"):
            self.assertEqual(text, "", page)

    def test_the_same_date_makes_the_same_pages(self):
        epoch = {"SOURCE_DATE_EPOCH": "1767600000"}
        self.succeeds("man", "pages", env=epoch)
        self.assertIn("2026-01-05", (self.folder / "pages" / "outbox.1").read_text(encoding="ascii"))
        self.fails(USAGE, "man", "pages", env={"SOURCE_DATE_EPOCH": "today"}, says="SOURCE_DATE_EPOCH")

    def test_where_they_cannot_be_written(self):
        self.write("file", "")
        self.fails(ERROR, "man", "file", says="file")
        self.fails(ERROR, "man", "/dev/full/pages", says="/dev/full/pages")
        self.fails(USAGE, "man", says="DIR is missing")


if __name__ == "__main__":
    unittest.main()
