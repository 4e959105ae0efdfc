#!/usr/bin/env python3
"""The command line itself: help, typing errors, pipes."""

import resource
import subprocess
import unittest

from program import BINARY, Case, ERROR, OK, USAGE

VERBS = ("init", "migrate", "enqueue", "relay", "status", "subscription", "config", "version", "help")
INNER = ("subscription list", "subscription apply", "subscription pause", "subscription resume", "config check", "config show",
         "config reference")


class Help(Case):
    def test_without_arguments_it_shows_the_verbs_and_fails(self):
        result = self.outbox()
        self.assertEqual(result.code, USAGE)
        self.assertEqual(result.out, "")
        for verb in VERBS:
            self.assertRegex(result.err, rf"(?m)^  {verb} ")

    def test_help_goes_to_stdout(self):
        result = self.succeeds("--help")
        self.assertEqual(result.err, "")
        self.assertIn("--config", result.out)

    def test_every_verb_has_help(self):
        for verb in VERBS:
            self.assertIn(f"Usage: outbox {verb}", self.succeeds(verb, "--help").out)

    def test_help_of_every_verb_has_an_example_and_names_the_options_of_all(self):
        for verb in (*VERBS, *INNER):
            text = self.succeeds(*verb.split(), "--help").out
            self.assertRegex(text, rf"Example:\n  .*outbox {verb}", verb)
            for option in ("-c,--config FILE", "--store URL", "--set PATH=VALUE"):
                self.assertIn(option, text, verb)

    def test_the_verb_help(self):
        self.assertEqual(self.succeeds("help").out, self.succeeds("--help").out)
        for verb in (*VERBS, *INNER):
            self.assertEqual(self.succeeds("help", *verb.split()).out, self.succeeds(*verb.split(), "--help").out)
        self.fails(USAGE, "help", "rely", says=("unknown verb rely", "did you mean relay?"))

    def test_help_of_the_relay_names_its_settings_with_default_and_range(self):
        self.assertIn("relay.page (1000; 1 to 10000)", self.succeeds("relay", "--help").out)

    def test_a_verb_with_verbs_of_its_own_shows_them(self):
        result = self.outbox("subscription")
        self.assertEqual(result.code, USAGE)
        self.assertIn("Usage: outbox subscription", result.err)
        self.assertIn("pause", result.err)

    def test_version(self):
        self.assertRegex(self.succeeds("version").out, r"^outbox \d+\.\d+\.\d+\n$")
        for flag in ("-V", "--version"):
            self.assertEqual(self.succeeds(flag).out, self.succeeds("version").out)
        self.assertIn("sqlite", self.succeeds("version", "--json").json()["stores"])


class Slips(Case):
    def test_unknown_verb(self):
        self.fails(USAGE, "rely", says=("unknown verb rely", "did you mean relay?"))

    def test_unknown_verb_of_a_verb(self):
        self.fails(USAGE, "subscription", "puase", "x", says=("unknown verb puase", "did you mean pause?"))

    def test_unknown_option(self):
        self.fails(USAGE, "relay", "--nmae", "x", says=("unknown option --nmae", "did you mean --name?"))

    def test_missing_argument(self):
        self.fails(USAGE, "subscription", "pause", says=("NAME is missing", "hint: outbox subscription pause NAME"))

    def test_argument_too_many(self):
        self.fails(USAGE, "status", "now", says='unexpected argument "now"')

    def test_not_a_number(self):
        self.fails(USAGE, "status", "--limit", "many", says='expected a whole number, found "many"')

    def test_every_slip_is_told_in_our_words(self):
        """What, where, and a hint; not the parser's own message."""
        for arguments, what, hint in (
                ("status --limit", "--limit has no value: outbox status", "--limit N"),
                ("status --limit=", "--limit has no value: outbox status", "--limit N"),
                ("status --limit 1 --limit 2", "--limit is given more than once", "give it once"),
                ("status --json=5", "--json takes no value: outbox status", "write --json alone"),
                ("--store", "--store has no value: outbox", "--store URL"),
                ("relay -c", "--config has no value: outbox relay", "--config FILE"),
                ("enqueue --header", "--header has no value", "--header NAME=VALUE"),
                ("status --limit 99999999999999999999999", "--limit: the number 9999", "outbox status --help"),
                ("status -x", "unknown option -x", "outbox status --help"),
                ("subscription resume", "NAME is missing: outbox subscription resume", "outbox subscription resume NAME"),
                ("status --log-level loud --store sqlite:x.db", "log.level: expected one of", "choose one of"),
                ("status --set relay.page=x --store sqlite:x.db", "relay.page: expected an integer", "--set relay.page=1000"),
                ("status --store mysql://db/x", "store.url: is not a URL of PostgreSQL or SQLite", "postgresql://USER@HOST"),
                ("migrate --store postgresql://db/x?sslmod=require", "has a parameter that libpq does not know", "sslmode?"),
                ("enqueue order 1 OrderPlaced {} --id 5", "id: is not a UUID", ""),
                ("init --set relay.page=5", "--set: init does not take this setting", "write it into the file")):
            result = self.fails(USAGE, *arguments.split(), says=what)
            self.assertIn(hint, result.err.split("(hint: ", 1)[1])
            self.assertNotRegex(result.err, "required|received|At Most|Could not", arguments)

    def test_no_store(self):
        self.fails(USAGE, "status", says=("store.url is not set", "--store"))

    def test_setting_without_a_value(self):
        self.fails(USAGE, "status", "--set", "relay.page", says="--set relay.page=500")


class Init(Case):
    def test_it_writes_a_configuration_that_works(self):
        self.assertIn("outbox.toml written", self.succeeds("init").out)
        self.assertIn("ok, 1 subscription", self.succeeds("config", "check").out)
        self.succeeds("migrate")
        self.succeeds("enqueue", "order", "42", "OrderPlaced", '{"total": 12.5}')
        self.succeeds("relay", "--once")
        self.assertEqual(len((self.folder / "orders.jsonl").read_text(encoding="utf-8").splitlines()), 1)

    def test_what_it_proposes_in_comments_is_right_too(self):
        self.succeeds("init")
        text = (self.folder / "outbox.toml").read_text(encoding="utf-8")
        head, _, rest = text.partition("[store]")
        lines = [line[2:] if line.startswith("# ") and ("=" in line or "[" in line) and "$" not in line else line
                 for line in rest.splitlines()]
        self.write("all.toml", head + "[store]\n" + "\n".join(lines))
        self.succeeds("config", "check", "-c", "all.toml")

    def test_it_names_each_kind_of_sink(self):
        self.succeeds("init")
        text = (self.folder / "outbox.toml").read_text(encoding="utf-8")
        kinds = text.split("(sink) are\n# ")[1].split(".\n")[0].split(", ")
        self.assertEqual(sorted(kinds), sorted(self.succeeds("version", "--json").json()["sinks"]))

    def test_a_write_that_fails_leaves_nothing(self):
        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        # Python ignores SIGXFSZ, and so does the program, whose write then fails.
        self.fails(ERROR, "init", says=("outbox.toml: File too large", "nothing was written"), preexec_fn=limit_files, restore_signals=False)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.succeeds("init")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["outbox.toml"])
        self.assertEqual((self.folder / "outbox.toml").stat().st_mode & 0o137, 0)

    def test_it_writes_over_nothing(self):
        self.write("outbox.toml", "# mine\n")
        self.fails(ERROR, "init", says=("outbox.toml: File exists", "nothing was changed"))
        self.assertEqual((self.folder / "outbox.toml").read_text(encoding="utf-8"), "# mine\n")
        self.succeeds("init", "-c", "other.toml", "--store", "postgresql://app@db/shop")
        self.assertIn('url = "postgresql://app@db/shop"', (self.folder / "other.toml").read_text(encoding="utf-8"))


class Pipes(Case):
    def test_a_reader_that_leaves_is_no_crash_and_no_noise(self):
        process = subprocess.Popen([BINARY, "config", "reference"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env=self.environment)
        process.stdout.close()
        error = process.stderr.read()
        process.stderr.close()
        self.assertIn(process.wait(), (OK, 1))
        self.assertEqual(error, b"")

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([BINARY, "config", "reference"], stdout=full, stderr=subprocess.PIPE, text=True,
                                 cwd=self.folder, env=self.environment, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("outbox: stdout: not everything could be written (hint: ", run.stderr)


if __name__ == "__main__":
    unittest.main()
