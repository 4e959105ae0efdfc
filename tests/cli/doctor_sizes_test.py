#!/usr/bin/env python3
"""outbox doctor compares what destinations take with the payloads that there are: against real servers, which say it themselves."""

import json
import os
import subprocess
import sys
import unittest
import uuid
from urllib.parse import unquote, urlsplit

from program import Case, OnPostgres, OnSqlite, ROOT, wait_until

REDIS = os.environ.get("OUTBOX_TEST_REDIS")
NATS = os.environ.get("OUTBOX_TEST_NATS")
RABBITMQ = os.environ.get("OUTBOX_TEST_RABBITMQ")
KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")
SMTP_SERVER = ROOT / "tests" / "conformance" / "sink" / "smtp_server.py"


def python_with_aiosmtpd():
    """Debian's packages are not seen by another Python that comes first in PATH."""
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run([python, "-c", "import aiosmtpd.smtp"], capture_output=True, check=False)
        if tried.returncode == 0:
            return python
    return None


class Sizes:
    def findings(self, settings):
        """Of the destination, as pairs of what is the case and what mends it."""
        self.config(f"[subscription.orders]\n{settings}\n")
        found = [one for one in self.outbox("doctor", "--json").json() if one["check"] == "sink"]
        self.assertTrue(found)
        for one in found:
            self.assertIn(one["severity"], ("ok", "note", "warning"), found)
        return {one["what"]: one["command"] for one in found if one["severity"] == "warning"}

    def enqueue(self, size):
        """An event whose payload has so many bytes."""
        text = json.dumps("x" * (size - 2))
        self.write("payload", text)
        with open(self.folder / "payload", encoding="utf-8") as payload:
            self.succeeds(*self.at_store("enqueue", "order", "1", "Placed", "-"), stdin=payload)


class OnFile(Sizes, OnSqlite, Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    @unittest.skipUnless(python_with_aiosmtpd(), "no Python has aiosmtpd")
    def test_a_mail_server(self):
        process = subprocess.Popen([python_with_aiosmtpd(), SMTP_SERVER, "--folder", self.folder, "--most", "300000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = wait_until(lambda: (self.folder / "port").exists() and (self.folder / "port").read_text(), "the mail server")
        mails = f'sink = "smtp"\nsmtp.url = "smtp://127.0.0.1:{port}"\nsmtp.tls = "off"\nsmtp.from = "a@b.test"\nsmtp.to = ["c@d.test"]\nsmtp.subject = "x"'
        found = self.findings(mails)
        self.assertEqual(list(found), ["SIZE of the mail server is 293.0 KiB, and the store takes payloads of 1.0 MiB"])
        self.enqueue(500_000)
        found = self.findings(mails)
        self.assertEqual(list(found), ["SIZE of the mail server is 293.0 KiB, and a payload of the newest events has 488.3 KiB"])
        self.assertIn("message_size_limit", *found.values())
        self.assertEqual(self.findings(mails + '\nsmtp.body = "Thank you."'), {})

    @unittest.skipUnless(RABBITMQ, "OUTBOX_TEST_RABBITMQ is not set: no RabbitMQ server")
    def test_rabbitmq_tells_nothing_and_the_setting_counts(self):
        queue = f'sink = "rabbitmq"\nrabbitmq.url = "{RABBITMQ}"\nrabbitmq.max_message_size = "64KiB"'
        self.assertIn("rabbitmq.max_message_size is 64.0 KiB, and the store takes payloads of 1.0 MiB", self.findings(queue))
        self.enqueue(100_000)
        self.assertIn("rabbitmq.max_message_size is 64.0 KiB, and a payload of the newest events has 97.7 KiB", self.findings(queue))

    @unittest.skipUnless(REDIS, "OUTBOX_TEST_REDIS is not set: no Redis server")
    def test_redis(self):
        settings = f'sink = "redis"\nredis.url = "{REDIS}"\n'
        self.assertEqual(self.findings(settings), {})
        self.assertEqual(list(self.findings(settings + 'redis.max_message_bytes = "64KiB"')),
                         ["redis.max_message_bytes is 64.0 KiB, and the store takes payloads of 1.0 MiB"])
        before = self.redis("CONFIG", "GET", "proto-max-bulk-len").splitlines()[-1]
        self.addCleanup(self.redis, "CONFIG", "SET", "proto-max-bulk-len", before)
        self.redis("CONFIG", "SET", "proto-max-bulk-len", "1048576")
        found = self.findings(settings + 'redis.max_message_bytes = "8MiB"')
        self.assertEqual(found, {"redis.max_message_bytes is 8.0 MiB, and proto-max-bulk-len of the server is 1.0 MiB":
                                 "raise proto-max-bulk-len of the server, or lower redis.max_message_bytes"})

    def redis(self, *command):
        address = urlsplit(REDIS)
        run = subprocess.run(["redis-cli", "-h", address.hostname, "-p", str(address.port), *command], check=True, capture_output=True,
                             text=True, env=os.environ | {"REDISCLI_AUTH": unquote(address.password or "")})
        return run.stdout

    @unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
    def test_kafka(self):
        topic = "doctor-" + uuid.uuid4().hex
        subprocess.run(["java", "-cp", os.environ["OUTBOX_TEST_KAFKA_HOME"] + "/libs/*", "org.apache.kafka.tools.TopicCommand",
                        "--bootstrap-server", KAFKA, "--create", "--topic", topic, "--partitions", "1", "--config", "max.message.bytes=300000"],
                       check=True, capture_output=True)
        brokers = f'sink = "kafka"\nkafka.brokers = "{KAFKA}"\n'
        found = self.findings(f'{brokers}topic = "{topic}"\nkafka."message.max.bytes" = "4000000"')
        self.assertIn("max.message.bytes of the topic is 293.0 KiB, and the store takes payloads of 1.0 MiB", found)
        self.assertIn("kafka.message.max.bytes is 3.8 MiB, and max.message.bytes of the topic is 293.0 KiB", found)
        self.enqueue(400_000)
        self.assertIn("max.message.bytes of the topic is 293.0 KiB, and a payload of the newest events has 390.6 KiB",
                      self.findings(f'{brokers}topic = "{topic}"'))
        # Topics that are not known: those that have no limit of their own.
        self.assertEqual(list(self.findings(f'{brokers}topic = "{{aggregate_type}}"\nkafka."message.max.bytes" = "4000000"')),
                         ["kafka.message.max.bytes is 3.8 MiB, and message.max.bytes of the brokers is 1.0 MiB"])


@unittest.skipUnless(NATS, "OUTBOX_TEST_NATS is not set: no NATS server")
class AndNats(Sizes, OnPostgres, Case):
    def setUp(self):
        super().setUp()
        self.migrate()

    def test_what_the_server_takes(self):
        settings = f'sink = "nats"\nnats.url = "{NATS}"'
        self.assertEqual(self.findings(settings), {})
        # What a login may write.
        self.environment["PGOPTIONS"] = "-c outbox.payload_limit=3000000"
        self.assertEqual(list(self.findings(settings)), ["max_payload of the server is 1.0 MiB, and the store takes payloads of 2.9 MiB"])
        # What is there.
        self.sql(f"SET outbox.payload_limit = 3000000; SELECT {self.flags[1]}.enqueue('order', '1', 'Placed', repeat('x', 2000000), content_type => 'text/plain')")
        del self.environment["PGOPTIONS"]
        self.assertEqual(list(self.findings(settings)), ["max_payload of the server is 1.0 MiB, and a payload of the newest events has 1.9 MiB"])
        # Not among the newest.
        self.sql(f"SELECT count({self.flags[1]}.enqueue('order', '1', 'Placed', '{{}}'::jsonb)) FROM generate_series(1, 1000)")
        self.assertEqual(self.findings(settings), {})


if __name__ == "__main__":
    unittest.main()
