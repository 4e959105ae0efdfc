#!/usr/bin/env python3
"""What consumers see of the formats, on a real broker and a real HTTP server, read by programs that are not ours: kcat, and the package
cloudevents."""

import base64
import json
import os
import subprocess
import sys
import threading
import unittest
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from program import Case, ROOT, signal, wait_until

KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")
PACKAGE = os.environ.get("OUTBOX_TEST_CLOUDEVENTS")
GOLDEN = ROOT / "tests" / "unit" / "format" / "golden" / "debezium-3.4.1-event-router.jsonl"
if PACKAGE:
    sys.path.insert(0, PACKAGE)
    from cloudevents.core.bindings import http, kafka
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

needs_package = unittest.skipUnless(PACKAGE, "OUTBOX_TEST_CLOUDEVENTS is not set: no Python package cloudevents (scripts/test)")
needs_kafka = unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEADERS = {"tenant": 'größe 50% "x" %41', "correlation_id": "c 1", "causation_id": "018f3b1c-7a2e-7c3d-8e4f-0123456789ac",
           "traceparent": TRACE, "X-Not-An-Attribute": "n"}
EXTENSIONS = {"tenant": "tenant", "correlationid": "correlation_id", "causationid": "causation_id", "traceparent": "traceparent"}
CLOUDEVENTS = """format_options = { source = "https://shop.example/{aggregate_type|kebab}/größe {event_type}", type = "com.example.{event_type|kebab}" }"""
SOURCE, TYPE = "https://shop.example/purchase-order/gr%C3%B6%C3%9Fe%20OrderPlaced", "com.example.order-placed"
TIME = "2026-01-05T08:09:12.123456Z"


def event(number, key, content_type, **payload):
    return {"id": f"018f3b1c-7a2e-7c3d-8e4f-{number:012}", "aggregate_type": "PurchaseOrder", "aggregate_id": key, "event_type": "OrderPlaced",
            "content_type": content_type, "occurred_at": TIME, "headers": HEADERS, **payload}


BYTES = bytes(range(256))
EVENTS = [event(1, "Zoë 42%", "application/json", payload={"total": 12.5, "name": "größe \"日本\" %20", "none": None}),
          event(2, "plain", "text/plain; charset=utf-8", payload="grüß dich\r\n\"🙂\""),
          event(3, "bytes", "application/octet-stream", payload_base64=base64.b64encode(BYTES).decode())]


def data_of(one):
    """As the package hands it over."""
    return base64.b64decode(one["payload_base64"]) if "payload_base64" in one else one["payload"]


def bytes_of(one):
    """As they were enqueued."""
    if "payload_base64" in one:
        return base64.b64decode(one["payload_base64"])
    text = one["payload"]
    return (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).encode()


class Formats(Case):
    def setUp(self):
        super().setUp()
        self.migrate()
        self.subscriptions = ""

    def subscription(self, name, sink, settings, more=""):
        self.subscriptions += f'[subscription.{name}]\nsink = "{sink}"\n{more}\n[subscription.{name}.{sink}]\n{settings}\n'

    def deliver(self, events, arrived):
        self.deliver_lines("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in events), arrived)

    def deliver_lines(self, lines, arrived):
        self.config(self.subscriptions)
        self.succeeds("enqueue", "--jsonl", stdin=lines)
        relay = self.spawn("relay", stderr=subprocess.DEVNULL)
        wait_until(arrived, "delivery")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(60), 0)

    def compare(self, parsed, one, seq):
        attributes = parsed.get_attributes()
        expected = {"specversion": "1.0", "id": one["id"], "source": SOURCE, "type": TYPE, "subject": one["aggregate_id"],
                    "time": datetime(2026, 1, 5, 8, 9, 12, 123456, timezone.utc), "datacontenttype": one["content_type"],
                    "partitionkey": one["aggregate_id"], "outboxseq": str(seq),
                    **{name: HEADERS[header] for name, header in EXTENSIONS.items()}}
        self.assertEqual(attributes, expected)
        self.assertEqual(parsed.get_data(), data_of(one))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.requests.append((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@needs_package
class CloudEventsOverHttp(Formats):
    def setUp(self):
        super().setUp()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.server.requests = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def received(self, form, settings="", requests=len(EVENTS)):
        self.subscription("hook", "http", f'url = "http://127.0.0.1:{self.server.server_port}/"\nallow_http = true\n'
                                          f'allow_networks = ["127.0.0.0/8"]\nconcurrency = 1\n{settings}', f'format = "{form}"\n{CLOUDEVENTS}')
        self.deliver(EVENTS, lambda: len(self.server.requests) >= requests)
        return [http.HTTPMessage(headers=headers, body=body) for headers, body in self.server.requests]

    def test_binary(self):
        messages = self.received("cloudevents")
        self.assertEqual(len(messages), len(EVENTS))
        for message in messages:
            parsed = http.from_http(message, JSONFormat(), CloudEvent)
            seq = int(parsed.get_extension("outboxseq"))
            self.compare(parsed, EVENTS[seq - 1], seq)
            self.assertEqual(message.body, bytes_of(EVENTS[seq - 1]))
            self.assertEqual(message.headers["X-Not-An-Attribute"], "n")

    def test_structured(self):
        messages = self.received("cloudevents-json")
        self.assertEqual(len(messages), len(EVENTS))
        for message in messages:
            self.assertTrue(message.headers["content-type"].startswith("application/cloudevents+json"), message.headers)
            parsed = http.from_structured(message, JSONFormat(), CloudEvent)
            seq = int(parsed.get_extension("outboxseq"))
            self.compare(parsed, EVENTS[seq - 1], seq)

    def test_a_batch(self):
        (message,) = self.received("cloudevents-json", "batch = 100", 1)
        self.assertTrue(message.headers["content-type"].startswith("application/cloudevents-batch+json"), message.headers)
        elements = json.loads(message.body)
        self.assertEqual(len(elements), len(EVENTS))
        for seq, (element, one) in enumerate(zip(elements, EVENTS), 1):
            self.compare(JSONFormat().read(CloudEvent, json.dumps(element)), one, seq)


class OnKafka(Formats):
    """Topics of one partition, made by the sink."""

    def setUp(self):
        super().setUp()
        self.prefix = "outbox-formats-" + uuid.uuid4().hex[:12]

    def topic(self, name, form, more=""):
        self.subscription(name, "kafka", f'brokers = "{KAFKA}"\ncreate = {{ partitions = 1 }}',
                          f'topic = "{self.prefix}.{name}"\nformat = "{form}"\n{more}')
        return f"{self.prefix}.{name}"

    @staticmethod
    def read(topic, *options):
        return subprocess.run(["kcat", "-C", "-q", "-e", "-o", "beginning", "-b", KAFKA, "-t", topic, *options],
                              check=False, capture_output=True).stdout

    def records(self, topic):
        """As kcat shows them, but for the payload of bytes that are no text."""
        return [json.loads(line) for line in self.read(topic, "-J").decode("utf-8", "replace").splitlines()]

    def values(self, topic):
        rest, values = self.read(topic, "-f", "%S\\n%s"), []
        while rest:
            size, _, rest = rest.partition(b"\n")
            values.append(rest[:int(size)])
            rest = rest[int(size):]
        return values

    def arrive(self, events, *topics):
        self.deliver(events, lambda: all(len(self.records(topic)) >= len(events) for topic in topics))

    def messages(self, topic):
        return [kafka.KafkaMessage(headers={name: value.encode() for name, value in headers_of(record)}, key=record["key"], value=value)
                for record, value in zip(self.records(topic), self.values(topic), strict=True)]


def headers_of(record):
    return list(zip(record["headers"][::2], record["headers"][1::2]))


@needs_kafka
class Kafka(OnKafka):
    @needs_package
    def test_cloudevents(self):
        binary, structured = self.topic("binary", "cloudevents", CLOUDEVENTS), self.topic("structured", "cloudevents-json", CLOUDEVENTS)
        self.arrive(EVENTS, binary, structured)
        for seq, (message, one) in enumerate(zip(self.messages(binary), EVENTS, strict=True), 1):
            self.compare(kafka.from_kafka(message, JSONFormat(), CloudEvent), one, seq)
            self.assertEqual(message.key, one["aggregate_id"])
            self.assertEqual(message.value, bytes_of(one))
        for seq, (message, one) in enumerate(zip(self.messages(structured), EVENTS, strict=True), 1):
            self.assertTrue(message.headers["content-type"].startswith(b"application/cloudevents+json"))
            self.compare(kafka.from_kafka(message, JSONFormat(), CloudEvent), one, seq)

    def test_well_known_headers_are_metadata_and_headers(self):
        topic = self.topic("envelope", "json")
        self.arrive(EVENTS[:1], topic)
        (record,) = self.records(topic)
        envelope = json.loads(record["payload"])
        self.assertEqual(envelope["metadata"], HEADERS)
        self.assertEqual(envelope["payload"], EVENTS[0]["payload"])
        self.assertEqual(dict(headers_of(record)) | HEADERS, dict(headers_of(record)))

    def test_debezium(self):
        """The messages that were captured from Debezium (golden/README.md)."""
        placed = {"id": "00000000-0000-4000-8000-000000000001", "aggregate_type": "Order", "aggregate_id": "42", "event_type": "OrderPlaced",
                  "headers": {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
        deleted = {"id": "00000000-0000-4000-8000-000000000002", "aggregate_type": "Order", "aggregate_id": "43", "event_type": "OrderDeleted",
                   "payload_base64": "", "content_type": "application/octet-stream"}
        payload = '{"n": null, "t": 12.50, "list": [1, 2], "name": "Zoë \\"x\\"", "order": 42}'
        topics = [self.topic("g1", "debezium"),
                  self.topic("g2", "debezium", 'format_options = { converter = "json", expand_json = "true" }'),
                  self.topic("g3", "debezium", 'format_options = { converter = "json", placement = "type:header:eventType, '
                                               'traceparent:header:traceparent, aggregatetype:envelope:aggregateType" }'),
                  self.topic("g4", "debezium", 'format_options = { converter = "json", placement = "type:header, aggregatetype:header" }')]
        line = json.dumps(placed, ensure_ascii=False)[:-1] + f', "payload": {payload}}}\n'
        self.deliver_lines(line + json.dumps(deleted) + "\n", lambda: all(len(self.records(topic)) >= 2 for topic in topics))
        captured = [json.loads(text) for text in GOLDEN.read_text(encoding="utf-8").splitlines()]
        sent = [record for topic in topics for record in self.records(topic)]
        self.assertEqual(len(sent), len(captured))
        for ours, theirs in zip(sent, captured):
            own = [header for header in headers_of(theirs) if not header[0].startswith("__debezium.")]
            self.assertEqual((ours["key"], ours["payload"], headers_of(ours)), (theirs["key"], theirs["payload"], own))


if __name__ == "__main__":
    unittest.main()
