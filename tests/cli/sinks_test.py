#!/usr/bin/env python3
"""outbox sinks: connects to the destination of each subscription, and says what can be relied on there."""

import os
import unittest

from program import CHECK_FAILED, ERROR, NOT_NOW, USAGE, Case

REDIS = os.environ.get("OUTBOX_TEST_REDIS")

FILE = """
[subscription.lines]
sink = "file"
file.path = "orders.jsonl"
"""


class Sinks(Case):
    def test_one_line_says_what_is_promised(self):
        self.config(FILE)
        out = self.succeeds("sinks").out
        self.assertEqual(out.splitlines(), [
            f"lines: file to {self.folder}/orders.jsonl",
            "  acked when the line is on the disk; twice after a crash of the relay or a takeover; in order of each key"])
        self.assertFalse((self.folder / "orders.jsonl").exists(), "it only looks")

    def test_a_setting_that_weakens_it_is_named(self):
        self.config(FILE + 'file.fsync = "never"')
        self.assertIn('weak: fsync = "never": events that are not on the disk', self.succeeds("sinks").out)
        self.assertEqual(self.outbox("sinks", "--strict").code, CHECK_FAILED)
        [found] = self.succeeds("sinks", "--json").json()
        self.assertEqual(found["guarantee"]["acked_when"], "the kernel has the line")
        self.assertEqual([one["setting"] for one in found["weaknesses"]], ['fsync = "never"'])

    def test_it_needs_no_store(self):
        self.config(FILE)
        self.succeeds("sinks", "--store", "postgresql://127.0.0.1:1/none", "--strict")

    def test_those_that_are_named(self):
        self.config(FILE + '[subscription.prints]\nsink = "stdout"')
        self.assertTrue(self.succeeds("sinks", "prints").out.startswith("prints: stdout to"))
        self.fails(USAGE, "sinks", "print", says="no subscription print")

    def test_none(self):
        self.config()
        self.assertIn("no subscriptions", self.succeeds("sinks").out)
        self.assertEqual(self.succeeds("sinks", "--json").json(), [])

    def test_settings_are_checked_without_a_server(self):
        self.config('[subscription.jobs]\nsink = "asynq"\nasynq.url = "redis://127.0.0.1:1"\nasynq.retention = "0"')
        self.fails(CHECK_FAILED, "config", "check", "--store", "sqlite:x.db", says="asynq.retention: is 0")

    def test_the_others_are_shown_when_one_cannot_be_used(self):
        self.config(FILE + '[subscription.none]\nsink = "file"\nfile.path = "none/x"')
        result = self.outbox("sinks")
        self.assertEqual(result.code, ERROR, result)
        self.assertIn("there is no directory", result.out)
        self.assertIn("lines: file to", result.out)
        self.assertEqual(self.outbox("sinks", "lines").code, 0)


@unittest.skipUnless(REDIS, "OUTBOX_TEST_REDIS is not set: no Redis server")
class OnRedis(Case):
    def test_what_the_server_says_of_itself(self):
        self.config(f'[subscription.fast]\nsink = "redis"\nredis.url = "{REDIS}"')
        out = self.succeeds("sinks").out
        self.assertIn("fast: redis to redis://", out)
        self.assertNotIn(REDIS.partition("@")[0].rpartition(":")[2] + "@", out, "no password")
        self.assertIn("twice only when more than 10min lie between", out)
        self.assertIn("acked when the server has it on disk", out)

    def test_a_setting_that_weakens_it(self):
        self.config(f'[subscription.fast]\nsink = "redis"\nredis.url = "{REDIS}"\nredis.max_length = 100')
        self.assertIn("weak: max_length = 100: the oldest events of a longer stream", self.succeeds("sinks").out)

    def test_tasks_of_asynq(self):
        self.config(f'[subscription.jobs]\nsink = "asynq"\nasynq.url = "{REDIS}"\nasynq.retention = "2h"')
        out = self.succeeds("sinks").out
        self.assertIn("jobs: asynq to redis://", out)
        self.assertIn("acked when the server has it on disk", out)
        self.assertIn("twice only when its task has been deleted, by asynq 2h after it has succeeded", out)
        self.assertIn("in order of nothing: workers run the tasks of a queue at the same time", out)

    def test_one_that_does_not_answer(self):
        self.config('[subscription.fast]\nsink = "redis"\nredis.url = "redis://127.0.0.1:1"')
        result = self.outbox("sinks", "--json")
        self.assertEqual(result.code, NOT_NOW, result)
        self.assertIn("127.0.0.1:1", result.json()[0]["error"])

    def test_a_wrong_password(self):
        self.config(f'[subscription.fast]\nsink = "redis"\nredis.url = "redis://:wrong@{REDIS.partition("@")[2]}"')
        result = self.outbox("sinks")
        self.assertEqual(result.code, ERROR, result)
        self.assertIn("error: redis", result.out)


if __name__ == "__main__":
    unittest.main()
