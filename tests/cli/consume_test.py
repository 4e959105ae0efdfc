#!/usr/bin/env python3
"""outbox consume, outbox inbox and outbox verify --inbox, from one database through Kafka to another one, which is of each store."""

import os
import signal
import unittest
import uuid

from program import CHECK_FAILED, Case, ERROR, OK, OnPostgres, OnSqlite, USAGE, wait_until

KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")


class Settings(Case):
    """What is wrong with a section is said before anything is opened."""

    def refuses(self, text, *says):
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n' + text)
        result = self.outbox("config", "check")
        self.assertEqual(result.code, CHECK_FAILED, result)
        for part in says:
            self.assertIn(part, result.err)

    def test_wrong_sections_are_refused(self):
        good = '[consumer.billing]\nsource = "kafka"\nread = ["orders"]\n'
        table = '[consumer.billing.kafka]\nbrokers = "b:1"\n'
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n' + good + table)
        self.succeeds("migrate")
        self.succeeds("config", "check")
        self.refuses('[consumer.billing]\nread = ["orders"]\n', "consumer.billing.source: is missing", "one of kafka")
        self.refuses('[consumer.billing]\nsource = "pigeon"\nread = ["orders"]\n', "'pigeon' is no source")
        self.refuses('[consumer.billing]\nsource = "kafka"\n' + table, "read: is empty", "name the topics to read")
        self.refuses(good, "consumer.billing.kafka.brokers: is missing")
        self.refuses(good + table + 'linger = "1s"\n', "consumer.billing.kafka.linger: cannot be set here", "a consumer sends nothing")
        self.refuses(good + 'id = "somewhere"\n' + table, "'somewhere' says no place in a message", "header:NAME")
        self.refuses(good + 'quee = "x"\n' + table, "unknown setting consumer.billing.quee", "did you mean queue?")
        self.refuses(good + 'queue = "a b"\n' + table, "queue")
        self.refuses(good + "batch = 0\n" + table, "batch")
        self.refuses(good + 'start = "middle"\n' + table, "start", "earliest")
        self.refuses('[consumer."a b"]\nsource = "kafka"\nread = ["x"]\n[consumer."a b".kafka]\nbrokers = "b:1"\n', "name")

    def test_without_consumers_it_says_what_to_write(self):
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n')
        self.succeeds("migrate")
        self.fails(USAGE, "consume", says=("the configuration has no consumers", "[consumer.billing]"))
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n[consumer.a]\nsource = "kafka"\nread = ["x"]\n[consumer.a.kafka]\nbrokers = "b:1"\n')
        self.fails(USAGE, "consume", "--consumer", "b", says="there is no [consumer.b]")
        self.assertEqual(self.succeeds("inbox").out, "the inbox is empty: no consumer has received a message\n")
        self.assertEqual(self.succeeds("inbox", "--json").json(), {"consumers": []})
        self.assertIn("no such message was received", self.succeeds("inbox", "--id", "x").out)
        self.fails(USAGE, "inbox", "--limit", "0", says="--limit")
        for place in ("", "x", "1", "1.", "1.9.billing.a", "1.7.billing", "9223372036854775807.1.a.b"):
            self.fails(USAGE, "inbox", "--before", place, says="is not a place in the list")
        self.fails(USAGE, "verify", "--inbox", "sqlite:x.db", says="--consumer")
        self.fails(USAGE, "verify", "--consumer", "a", says="--inbox")
        self.fails(USAGE, "verify", "--inbox", "sqlite:x.db", "--consumer", "a", says="--subscription")


class Consume:
    """The producer's database is a SQLite file, that of the consumer the store under test."""

    def setUp(self):
        if not KAFKA:
            self.skipTest("OUTBOX_TEST_KAFKA is not set: no Kafka broker")
        super().setUp()
        self.migrate()
        self.topic = "cli-consume-" + uuid.uuid4().hex[:12]
        broker = f'brokers = "{KAFKA}"\n'
        self.write("producer.toml", '[store]\nurl = "sqlite:producer.db"\n' + "".join(
            f'[subscription.{name}]\nsink = "kafka"\ntopic = "{self.topic}"\n[subscription.{name}.kafka]\n{broker}'
            "create = { partitions = 3, replication = 1 }\n" for name in ("orders", "again")))
        self.succeeds("migrate", "-c", "producer.toml")
        self.configure()

    def configure(self, more="", others=""):
        program = self.write("note.sh", "#!/bin/sh\nprintf '%s\\n' \"$(cat)\" >> done\n")
        program.chmod(0o755)
        self.config(f'[consumer.billing]\nsource = "kafka"\nread = ["{self.topic}*"]\nqueue = "billing"\n{more}\n'
                    f'[consumer.billing.kafka]\nbrokers = "{KAFKA}"\n'
                    '[task.OrderPlaced]\nqueue = "billing"\ncommand = ["./note.sh"]\n', '[worker]\ndelays = ["1h"]\n[relay]\nlease = "2s"\n' + others)

    def produce(self, numbers):
        for number in numbers:
            self.succeeds("enqueue", "order", str(number % 5), "OrderPlaced", f'{{"n": {number}}}', "--header", f"correlation_id=c-{number}",
                          "-c", "producer.toml")
        self.succeeds("relay", "--once", "-c", "producer.toml")

    def start(self, *arguments):
        log = open(self.folder / "log", "a", encoding="utf-8")
        self.addCleanup(log.close)
        return self.spawn(*arguments, stdout=None, stderr=log)

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), OK)

    def messages(self, *arguments):
        return self.succeeds("inbox", "--json", "--consumer", "billing", *arguments).json()["messages"]

    def done(self):
        path = self.folder / "done"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def verify(self, *arguments):
        return ("verify", "-c", "producer.toml", "--subscription", "orders", "--inbox", self.store, "--inbox-schema",
                self.flags[1] if self.flags else "outbox", "--consumer", "billing", *arguments)

    def test_what_is_delivered_twice_is_done_once_and_the_two_databases_agree(self):
        self.produce(range(20))
        both = self.start("work", "--consume")
        wait_until(lambda: len(self.done()) == 20, "all tasks are done")
        wait_until(lambda: sum(m["arrivals"] for m in self.messages()) == 40, "each message has arrived twice")
        self.produce(range(20, 25))
        wait_until(lambda: sum(m["arrivals"] for m in self.messages()) == 50, "so have the next ones")
        wait_until(lambda: len(self.done()) == 25, "their tasks are done")
        self.stop(both)
        self.assertEqual(sorted(self.done()), sorted(f'{{"n": {n}}}' for n in range(25)), "each once")
        one = self.messages("--limit", "1")[0]
        self.assertEqual((one["consumer"], one["type"], one["arrivals"]), ("billing", "OrderPlaced", 2))
        self.assertTrue(one["place"].startswith(self.topic + "/"), one)
        self.assertEqual(self.succeeds("inbox", "--json", "--id", one["id"]).json()["messages"], [one])
        self.assertEqual(self.succeeds("tasks", "show", one["task"], "--json").json()["state"], "completed")
        self.assertEqual([c["name"] for c in self.succeeds("inbox", "--json").json()["consumers"]], ["billing"])
        self.assertIn("nothing differs", self.succeeds(*self.verify()).out)
        found = self.succeeds(*self.verify("--json")).json()["subscriptions"][0]["sink"]
        self.assertEqual((found["messages"], found["duplicates"], found["missing"], found["ghosts"]), (50, 25, 0, 0))
        self.forget(one["id"])
        result = self.outbox(*self.verify())
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn("1 delivered event is not in the destination", result.err)
        self.assertIn(one["id"], result.err)
        self.fails(ERROR, *self.verify()[:-1], "nobody", says="the inbox has no message of consumer nobody")

    def test_a_message_that_cannot_be_understood_is_dead_and_blocks_nothing(self):
        self.configure('id = "header:x-request-id"')
        self.produce(range(3))
        consumer = self.start("consume")
        worker = self.start("work")
        parked = lambda: self.succeeds("parked", "list", "--json").json()["events"]
        # Without an id of their own, what two subscriptions have delivered are six messages.
        wait_until(lambda: len(parked()) == 6, "all are dead")
        for event in parked():
            self.assertEqual(event["state"], "dead")
            self.assertIn("it has no id: no header x-request-id", event["error"])
        self.assertEqual(self.done(), [])
        self.succeeds("enqueue", "order", "1", "OrderPlaced", '{"n": 7}', "--header", "x-request-id=r-7", "-c", "producer.toml")
        self.succeeds("relay", "--once", "-c", "producer.toml")
        wait_until(lambda: self.done() == ['{"n": 7}'], "the next message is done")
        self.assertEqual(len(self.succeeds("inbox", "--json", "--id", "r-7").json()["messages"]), 1)
        self.stop(consumer)
        self.stop(worker)
        self.assertIn("a message cannot be understood", (self.folder / "log").read_text(encoding="utf-8"))

    def test_what_is_delivered_again_after_the_retention_happens_again_and_before_it_does_not(self):
        all_messages = lambda: self.succeeds("inbox", "--json", "--consumer", "billing", "--limit", "100").json()["messages"]
        self.produce(range(10))
        both = self.start("work", "--consume")
        wait_until(lambda: sum(m["arrivals"] for m in all_messages()) == 20, "the first ten have arrived twice")
        old = [m["id"] for m in all_messages()]
        self.produce(range(10, 20))
        wait_until(lambda: sum(m["arrivals"] for m in all_messages()) == 40, "so have the others")
        wait_until(lambda: len(self.done()) == 20, "all are done")
        self.stop(both)
        self.age(old)
        # Another group gets all messages again.
        self.configure('group = "%s-again"' % self.topic, '[inbox]\nretention = "1h"\n')
        self.succeeds("prune", "--apply")
        young = {m["id"] for m in all_messages()}
        self.assertEqual((len(young), young & set(old)), (10, set()))
        both = self.start("work", "--consume")

        def arrived():
            self.outbox("prune", "--apply")
            return sum(m["arrivals"] for m in all_messages()) == 60
        wait_until(arrived, "the young ones have arrived four times, the old ones twice again")
        wait_until(lambda: len(self.done()) == 30, "the old ones are done again")
        self.stop(both)
        self.assertEqual(sorted(self.done()), sorted(f'{{"n": {n}}}' for n in [*range(10), *range(20)]))

    def test_a_broker_that_is_away_is_waited_for(self):
        self.write("outbox.toml", (self.folder / "outbox.toml").read_text(encoding="utf-8").replace(KAFKA, "127.0.0.1:1"))
        consumer = self.start("consume")
        wait_until(lambda: "the consumer cannot read, it tries again" in (self.folder / "log").read_text(encoding="utf-8"), "it says so")
        self.assertIsNone(consumer.poll())
        self.stop(consumer)


class ConsumeSqlite(OnSqlite, Consume, Case):
    def forget(self, message):
        self.sql(f"DELETE FROM outbox_inbox WHERE message_id = '{message}'")

    def age(self, messages):
        self.sql(f"UPDATE outbox_inbox SET received_at = received_at - 7200000000 WHERE message_id IN ({str(messages)[1:-1]})")


class ConsumePostgres(OnPostgres, Consume, Case):
    def forget(self, message):
        self.sql(f"DELETE FROM {self.flags[1]}.inbox WHERE message_id = '{message}'")

    def age(self, messages):
        self.sql(f"UPDATE {self.flags[1]}.inbox SET received_at = received_at - interval '2 hours' WHERE message_id IN ({str(messages)[1:-1]})")


if __name__ == "__main__":
    unittest.main()
