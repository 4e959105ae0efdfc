#!/usr/bin/env python3
"""outbox doctor and consumers: what the brokers say of what they read."""

import base64
import json
import os
import socket
import subprocess
import time
import unittest
import urllib.request
import uuid
from urllib.parse import unquote, urlsplit

from program import Case, CHECK_FAILED, OK, OnSqlite

KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")
NATS = os.environ.get("OUTBOX_TEST_NATS")
REDIS = os.environ.get("OUTBOX_TEST_REDIS")
RABBITMQ = os.environ.get("OUTBOX_TEST_RABBITMQ")
MANAGEMENT = os.environ.get("OUTBOX_TEST_RABBITMQ_MANAGEMENT")
HOUR = 3_600_000


class Consumers(OnSqlite):
    def setUp(self):
        super().setUp()
        self.migrate()
        self.name = "doctor-" + uuid.uuid4().hex[:12]

    def examine(self, source, connection, *read, retention="30d", code=OK):
        """What is found about a consumer that reads this: severity, what, and the command."""
        self.config(f'[consumer.billing]\nsource = "{source}"\nread = {json.dumps(read)}\n[consumer.billing.{source}]\n{connection}\n',
                    f'[inbox]\nretention = "{retention}"\n')
        result = self.outbox("doctor", "--json")
        self.assertEqual(result.code, code, result)
        found = [one for one in result.json() if one["check"] == "consumer"]
        self.assertEqual({one["subject"] for one in found}, {"billing"}, found)
        return [(one["severity"], one["what"], one["command"]) for one in found]


class OfNobody(Consumers, Case):
    def test_a_broker_that_is_away(self):
        for source, address in (("kafka", 'brokers = "127.0.0.1:1"'), ("nats", 'url = "nats://127.0.0.1:1"'),
                                ("redis", 'url = "redis://127.0.0.1:1"'), ("rabbitmq", 'url = "amqp://127.0.0.1:1"')):
            [(severity, what, command)] = self.examine(source, address, "orders", code=CHECK_FAILED)
            self.assertEqual(severity, "error", source)
            self.assertIn("127.0.0.1:1", what)
            self.assertIn("network", command)


@unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
class OfKafka(Consumers, Case):
    def topic(self, name, **settings):
        options = [part for key, value in settings.items() for part in ("--config", f"{key.replace('_', '.')}={value}")]
        subprocess.run(["java", "-cp", os.environ["OUTBOX_TEST_KAFKA_HOME"] + "/libs/*", "org.apache.kafka.tools.TopicCommand",
                        "--bootstrap-server", KAFKA, "--create", "--topic", name, "--partitions", "1", *options], check=True, capture_output=True)

    def look(self, *read, **more):
        return self.examine("kafka", f'brokers = "{KAFKA}"', *read, **more)

    def test_topics_that_are_not_there(self):
        for _ in range(2):  # The question has not made it.
            found = self.look(self.name, self.name + ".*", code=CHECK_FAILED)
            self.assertEqual([(one[0], one[1]) for one in found],
                             [("error", f"topic {name} does not exist, or this user may not see it") for name in (self.name, self.name + ".*")])

    def test_how_long_topics_keep_messages(self):
        self.topic(self.name + ".a", retention_ms=20 * HOUR, segment_ms=4 * HOUR)
        self.topic(self.name + ".b", retention_ms=40 * HOUR, segment_ms=10 * HOUR)
        self.assertEqual(self.look(self.name + ".a", self.name + ".b"),
                         [("ok", f"kafka at {KAFKA}: topic {self.name}.a, topic {self.name}.b", None)])
        self.assertEqual(self.look(self.name + ".a", retention="1d")[0][0], "ok")
        [(severity, what, command)] = self.look(self.name + ".*", retention="1d")
        self.assertEqual((severity, what, command),
                         ("warning", f"topic {self.name}.b keeps messages for up to 50h (retention.ms and segment.ms), and the inbox remembers them for 1d "
                          "(inbox.retention)", "inbox.retention above 50h, or shorten retention.ms or segment.ms of the topic"))

    def test_topics_that_keep_messages_for_ever(self):
        self.topic(self.name + ".all", retention_ms=-1)
        self.topic(self.name + ".keys", cleanup_policy="compact")
        for name, why in (("all", "retention.ms -1"), ("keys", "cleanup.policy compact")):
            [(severity, what, command)] = self.look(f"{self.name}.{name}", retention="1000d")
            self.assertEqual(severity, "warning")
            self.assertIn(f"keeps messages without a limit of time ({why})", what)
            self.assertTrue(command.startswith("shorten "), command)


@unittest.skipUnless(NATS, "OUTBOX_TEST_NATS is not set: no NATS server")
class OfNats(Consumers, Case):
    def ask(self, subject, **body):
        """A question to JetStream's API, in NATS' own protocol."""
        address, body = urlsplit(NATS), json.dumps(body)
        with socket.create_connection((address.hostname, address.port), timeout=30) as connection, connection.makefile("rwb") as stream:
            login = {"verbose": False, "user": unquote(address.username or ""), "pass": unquote(address.password or "")}
            stream.write(f"CONNECT {json.dumps(login)}\r\nSUB answers 1\r\nPUB $JS.API.{subject} answers {len(body)}\r\n{body}\r\n".encode())
            stream.flush()
            while not (line := stream.readline()).startswith(b"MSG "):
                self.assertFalse(line.startswith(b"-ERR") or not line, line)
            answer = json.loads(stream.read(int(line.split()[-1])))
            self.assertNotIn("error", answer)

    def stream(self, **settings):
        self.ask(f"STREAM.CREATE.{self.name}", name=self.name, subjects=[self.name + ".>"], **settings)
        self.addCleanup(self.ask, f"STREAM.DELETE.{self.name}")

    def look(self, **more):
        return self.examine("nats", f'url = "{NATS}"', self.name, **more)

    def test_a_stream_that_is_not_there(self):
        self.assertEqual(self.look(code=CHECK_FAILED), [("error", f"stream {self.name} does not exist", "create it, or correct `read`")])

    def test_how_long_a_stream_keeps_messages(self):
        self.stream(max_age=48 * HOUR * 1_000_000)
        [(severity, what, _)] = self.look()
        self.assertEqual(severity, "ok")
        self.assertIn(f"stream {self.name}", what)
        self.assertEqual(self.look(retention="1d"),
                         [("warning", f"stream {self.name} keeps messages for 2d (max_age), and the inbox remembers them for 1d (inbox.retention)",
                           "inbox.retention above 2d, or shorten max_age of the stream")])

    def test_a_stream_without_a_limit_of_time(self):
        self.stream()
        [(severity, what, _)] = self.look()
        self.assertEqual(severity, "warning")
        self.assertIn("without a limit of time (max_age 0)", what)

    def test_a_stream_that_removes_what_is_acknowledged(self):
        self.stream(retention="workqueue")
        self.assertEqual([one[0] for one in self.look(retention="1h")], ["ok"])


@unittest.skipUnless(REDIS, "OUTBOX_TEST_REDIS is not set: no Redis server")
class OfRedis(Consumers, Case):
    def redis(self, *command):
        address = urlsplit(REDIS)
        return subprocess.run(["redis-cli", "-h", address.hostname, "-p", str(address.port), *command], check=True, capture_output=True, text=True,
                              env=os.environ | {"REDISCLI_AUTH": unquote(address.password or "")}).stdout.strip()

    def test_how_old_the_messages_of_a_stream_are(self):
        look = lambda **more: self.examine("redis", f'url = "{REDIS}"', self.name, **more)
        [(severity, what, _)] = look()
        self.assertEqual((severity, what), ("warning", f"stream {self.name} does not exist"))
        self.assertEqual(self.redis("EXISTS", self.name), "0", "the question has not made it")
        self.addCleanup(self.redis, "DEL", self.name)
        self.redis("XADD", self.name, f"{int(time.time() * 1000) - 50 * HOUR}-0", "body", "x")
        self.assertEqual(look()[0][0], "ok")
        self.assertEqual(look(retention="1d"),
                         [("warning", f"stream {self.name} has messages that are more than 50h old, and the inbox remembers them for 1d (inbox.retention)",
                           "inbox.retention above 51h, or shorten the stream by XTRIM MINID")])
        self.redis("DEL", self.name)
        self.redis("SET", self.name, "no stream")
        self.assertEqual(look(code=CHECK_FAILED)[0][0], "error")


@unittest.skipUnless(RABBITMQ and MANAGEMENT, "OUTBOX_TEST_RABBITMQ is not set: no RabbitMQ server")
class OfRabbit(Consumers, Case):
    def manage(self, method, body=None):
        login = ":".join(unquote(part or "") for part in (urlsplit(RABBITMQ).username, urlsplit(RABBITMQ).password))
        request = urllib.request.Request(f"{MANAGEMENT}/api/queues/%2F/{self.name}", body and json.dumps(body).encode(), method=method, headers={
            "Authorization": "Basic " + base64.b64encode(login.encode()).decode(), "Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30).close()

    def test_queues(self):
        self.manage("PUT", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
        self.addCleanup(self.manage, "DELETE")
        look = lambda *queues, **more: self.examine("rabbitmq", f'url = "{RABBITMQ}"', *queues, **more)
        [(severity, what, _)] = look(self.name, retention="1h")
        self.assertEqual(severity, "ok")
        self.assertTrue(what.endswith(f": queue {self.name}"), what)
        self.assertNotIn("@", what, "no password")
        [(severity, what, command)] = look(self.name, self.name + "-other", code=CHECK_FAILED)
        self.assertEqual((severity, command), ("error", "create the queue, or correct `read`"))
        self.assertIn(f"no queue '{self.name}-other'", what)


if __name__ == "__main__":
    unittest.main()
