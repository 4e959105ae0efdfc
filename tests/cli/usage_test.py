#!/usr/bin/env python3
"""The command line itself: help, slips of the keyboard, pipes."""

import subprocess
import unittest

from program import BINARY, Case, OK, USAGE

VERBS = ("migrate", "enqueue", "relay", "status", "subscription", "config", "version")


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

    def test_help_is_silent_about_what_only_the_program_uses(self):
        self.assertNotIn("--publisher", self.succeeds("demo", "--help").out)
        self.assertNotIn("--publisher", self.fails(USAGE, "demo", "--publishe").err)

    def test_help_of_the_relay_names_its_settings_with_default_and_range(self):
        self.assertIn("relay.page (1000; 1 to 10000)", self.succeeds("relay", "--help").out)

    def test_a_verb_with_verbs_of_its_own_shows_them(self):
        result = self.outbox("subscription")
        self.assertEqual(result.code, USAGE)
        self.assertIn("Usage: outbox subscription", result.err)
        self.assertIn("pause", result.err)

    def test_version(self):
        self.assertRegex(self.succeeds("version").out, r"^outbox \d+\.\d+\.\d+\n$")
        self.assertIn("sqlite", self.succeeds("version", "--json").json()["stores"])


class Slips(Case):
    def test_unknown_verb(self):
        self.fails(USAGE, "rely", says=("unknown verb rely", "did you mean relay?"))

    def test_unknown_verb_of_a_verb(self):
        self.fails(USAGE, "subscription", "puase", "x", says=("unknown verb puase", "did you mean pause?"))

    def test_unknown_option(self):
        self.fails(USAGE, "relay", "--nmae", "x", says=("unknown option --nmae", "did you mean --name?"))

    def test_missing_argument(self):
        self.fails(USAGE, "subscription", "pause", says="NAME is required")

    def test_argument_too_many(self):
        self.fails(USAGE, "status", "now", says='unexpected argument "now"')

    def test_not_a_number(self):
        self.fails(USAGE, "status", "--limit", "many", says='expected a whole number, found "many"')

    def test_no_store(self):
        self.fails(USAGE, "status", says=("store.url is not set", "--store"))

    def test_setting_without_a_value(self):
        self.fails(USAGE, "status", "--set", "relay.page", says="--set relay.page=500")


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
