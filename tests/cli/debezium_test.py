#!/usr/bin/env python3
"""deploy/debezium: Debezium's outbox event router on our table, in Kafka Connect, beside a relay; and how one takes over from the other."""

import http.client
import json
import os
import subprocess
import threading
import unittest
import urllib.error
import urllib.request
import uuid

from own_server import OwnServer
from program import Case, ROOT, wait_until

KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")
DEPLOY = ROOT / "deploy" / "debezium"
SLOT = "outbox_debezium"

# Writes events of a key in the order of their numbers, some in transactions that last, until the control table says stop.
WRITER = """
DO $$ DECLARE one text; number int; BEGIN
  FOR i IN 1..1000000 LOOP
    EXIT WHEN (SELECT stop FROM control);
    one := floor(random() * 20)::int::text;
    UPDATE counter SET n = n + 1 WHERE key = one RETURNING n INTO number;
    PERFORM outbox.enqueue('order', one, 'Placed', jsonb_build_object('n', number));
    PERFORM pg_sleep(random() * 0.02);
    IF random() < 0.2 THEN ROLLBACK; ELSE COMMIT; END IF;
  END LOOP;
END $$
"""


def fetch():
    """Where the plugins of Connect are."""
    script = 'root=$1; for part in say cache maven debezium; do . "$root/scripts/lib/$part.sh"; done; debezium_fetch'
    run = subprocess.run(["sh", "-c", script, "sh", str(ROOT)], check=False, capture_output=True, text=True, timeout=960)
    if run.returncode != 0:
        raise unittest.SkipTest("Debezium: " + (run.stdout.strip() or run.stderr.strip()[-200:]))
    return run.stdout.strip()


def kafka_jars():
    """Those of the broker; Kafka Connect is among them."""
    script = 'root=$1; for part in say cache maven kafka_jars; do . "$root/scripts/lib/$part.sh"; done; kafka_home'
    return subprocess.run(["sh", "-c", script, "sh", str(ROOT)], check=True, capture_output=True, text=True).stdout.strip() + "/libs/*"


def free_port():
    script = '. "$1/scripts/lib/ports.sh"; port_free'
    return subprocess.run(["sh", "-c", script, "sh", str(ROOT)], check=True, capture_output=True, text=True).stdout.strip()


class Debezium(Case):
    @classmethod
    def setUpClass(cls):
        if not KAFKA:
            raise unittest.SkipTest("needs Kafka: OUTBOX_TEST_KAFKA")
        cls.plugins = fetch()
        cls.server = OwnServer()
        cls.addClassCleanup(cls.server.remove)

    def setUp(self):
        super().setUp()
        self.topics = "debezium-" + uuid.uuid4().hex[:12]
        self.database = "d" + uuid.uuid4().hex[:12]
        self.server.sql(f"CREATE DATABASE {self.database}")
        self.url = self.server.url.rpartition("/")[0] + "/" + self.database
        self.environment["OUTBOX_STORE_URL"] = self.url
        self.succeeds("migrate")
        self.write("outbox.toml", f'[subscription.ours]\nsink = "kafka"\ntopic = "{self.topics}.ours.{{aggregate_type}}"\n'
                   'format = "debezium"\nformat_options = { placement = "event_type:header:eventType" }\n'
                   f'[subscription.ours.kafka]\nbrokers = "{KAFKA}"\ncreate = {{ partitions = 3 }}\n')
        self.sql((DEPLOY / "publication.sql").read_text(encoding="utf-8"))
        self.addCleanup(self.forget)

    def forget(self):
        """The login belongs to the server, the slot to its database."""
        self.server.sql(f"DROP DATABASE {self.database} WITH (FORCE)", f"DROP ROLE {SLOT}")

    def sql(self, text):
        return subprocess.run(["psql", self.url, "-qXAt", "-v", "ON_ERROR_STOP=1"], input=text, check=True, capture_output=True, text=True).stdout

    # ---- Kafka Connect

    def start_connect(self):
        """Returns when the connector follows the log."""
        port, host = free_port(), self.server.address.rpartition(":")
        self.write("secret.properties", "password=any\n")
        self.write("worker.properties", f"""
bootstrap.servers={KAFKA}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={self.folder}/offsets
offset.flush.interval.ms=500
plugin.path={self.plugins}
listeners=http://127.0.0.1:{port}
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
""")
        connector = json.loads((DEPLOY / "outbox-connector.json").read_text(encoding="utf-8"))
        connector["config"] |= {
            "database.hostname": host[0], "database.port": host[2], "database.dbname": self.database,
            "database.password": f"${{file:{self.folder}/secret.properties:password}}",
            "topic.prefix": self.topics, "transforms.outbox.route.topic.replacement": self.topics + ".theirs.${routedByValue}"}
        self.write("connector.json", json.dumps(connector))
        with open(self.folder / "connect.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(["java", "-Xmx400m", "-cp", kafka_jars(), "org.apache.kafka.connect.cli.ConnectStandalone",
                                        "worker.properties", "connector.json"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.end_connect, process)

        def runs():
            self.assertIsNone(process.poll(), self.end_of_log())
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/connectors/outbox/status", timeout=5) as answer:
                    status = json.load(answer)
            except (OSError, urllib.error.URLError, http.client.HTTPException):
                return False
            self.assertNotIn("FAILED", json.dumps(status))
            return self.sql(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{SLOT}'") == "t\n"

        wait_until(runs, "a connector that follows the log", 240)
        return process

    def end_of_log(self):
        return (self.folder / "connect.log").read_text(encoding="utf-8")[-3000:]

    @staticmethod
    def end_connect(process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def stop_connect(self, process):
        process.terminate()
        process.wait(120)
        wait_until(lambda: self.sql(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{SLOT}'") == "f\n", "a slot that is free")

    # ---- messages

    def read(self, whose, topic="order"):
        """All messages of a topic, each partition in order, without the headers of Debezium's own bookkeeping."""
        run = subprocess.run(["kcat", "-b", KAFKA, "-C", "-t", f"{self.topics}.{whose}.{topic}", "-o", "beginning", "-e", "-q", "-J"],
                             check=False, capture_output=True)
        found = []
        for line in run.stdout.decode("utf-8", "surrogateescape").splitlines():
            message = json.loads(line, strict=False)
            names = message["headers"][::2]
            headers = [(name, value) for name, value in zip(names, message["headers"][1::2]) if not name.startswith("__debezium")]
            found.append({"key": message["key"], "value": message["payload"], "headers": headers, "id": dict(headers)["id"]})
        return found

    def deliver(self):
        self.succeeds("relay", "--once")

    # ---- writers

    def start_writers(self):
        self.sql("CREATE TABLE IF NOT EXISTS control AS SELECT false AS stop; UPDATE control SET stop = false; "
                 "CREATE TABLE IF NOT EXISTS counter AS SELECT i::text AS key, 0 AS n FROM generate_series(0, 19) i")
        writers = [threading.Thread(target=self.sql, args=(WRITER,)) for _ in range(3)]
        for writer in writers:
            writer.start()
        return writers

    def stop_writers(self, writers):
        self.sql("UPDATE control SET stop = true")
        for writer in writers:
            writer.join()

    def wait_for_events(self, more):
        wanted = int(self.sql("SELECT count(*) FROM outbox.event")) + more
        wait_until(lambda: int(self.sql("SELECT count(*) FROM outbox.event")) >= wanted, f"{more} events more")

    def committed(self):
        return {line for line in self.sql("SELECT id FROM outbox.event").splitlines()}

    def check_orders(self, first, then):
        """What `first` sent and then `then`: together everything, nothing invented, each key in order but for what is sent again."""
        ids = [message["id"] for message in first + then]
        self.assertEqual(set(ids), self.committed())
        seen, last = set(), {}
        for message in first + then:
            number = json.loads(message["value"])["n"]
            if message["id"] in seen:
                continue
            seen.add(message["id"])
            self.assertEqual(number, last.get(message["key"], 0) + 1, message)
            last[message["key"]] = number
        return len(ids) - len(seen)


class Messages(Debezium):
    def test_the_same_messages_as_ours(self):
        process = self.start_connect()
        self.succeeds("subscription", "apply")
        self.sql("""
SELECT outbox.enqueue('order', '42', 'OrderPlaced', '{"customer": "Zoë 🚀", "cents": 1250, "list": [], "none": null}'::jsonb);
SELECT outbox.enqueue('order', '43', 'Bytes', '\\x00ff01'::bytea, content_type => 'application/octet-stream');
SELECT outbox.enqueue('order', '44', 'WithHeaders', '{}'::jsonb, '{"traceparent": "00-x"}'::jsonb);
SELECT outbox.enqueue('order', '45', 'Text', 'a "b"'::text, content_type => 'text/plain');
SELECT outbox.enqueue('invoice', 'ä', 'Sent', '[1, 2.50]'::jsonb);
SELECT outbox.enqueue_task('mail', 'Send', '{}'::jsonb);
BEGIN; SELECT outbox.enqueue('order', '42', 'RolledBack', '{}'::jsonb); ROLLBACK;
SELECT outbox.enqueue('order', '', 'NoKey', '{}'::jsonb);
SELECT outbox.enqueue('order', '46', 'Empty', ''::bytea, content_type => 'application/octet-stream');
""")
        self.deliver()
        ours = {message["id"]: message for topic in ("order", "invoice") for message in self.read("ours", topic)}
        self.assertEqual(len(ours), 7)

        def theirs():
            return {message["id"]: message for topic in ("order", "invoice") for message in self.read("theirs", topic)}

        wait_until(lambda: len(theirs()) >= 7, "seven messages of Debezium", 120)
        found = theirs()
        # The two differences, of which docs/guide/debezium.md tells.
        no_key, empty = (next(one for one in found.values() if dict(one["headers"])["eventType"] == kind) for kind in ("NoKey", "Empty"))
        self.assertEqual((no_key["key"], empty["value"]), ("", ""))
        no_key["key"] = empty["value"] = None
        self.assertEqual(found, ours)
        self.stop_connect(process)


class Switch(Debezium):
    def test_ours_begins_where_the_connector_stopped_and_the_connector_takes_over_again(self):
        process = self.start_connect()
        writers = self.start_writers()
        self.addCleanup(self.stop_writers, writers)
        wait_until(lambda: len(self.read("theirs")) > 200, "200 messages of Debezium", 120)
        # To ours. The connector stops at some moment, and events go on coming.
        self.stop_connect(process)
        self.wait_for_events(100)
        self.succeeds("subscription", "apply")
        plan = self.succeeds("subscription", "reset", "ours", "--to", f"slot:{SLOT}").out
        self.assertIn("never delivered by it", plan)
        before = self.read("theirs")
        self.assertGreater(len(before), 200)
        self.succeeds("subscription", "reset", "ours", "--to", f"slot:{SLOT}", "--apply")
        self.deliver()
        self.stop_writers(writers)
        self.deliver()
        again = self.check_orders(before, self.read("ours"))
        # What Kafka had got, and Connect had not noted, is sent again: a part of it.
        self.assertLess(again, len(before))
        self.succeeds("verify", "--subscription", "ours")

        # And back: a new slot first, and ours stops when it has passed its beginning.
        self.sql(f"SELECT pg_drop_replication_slot('{SLOT}')")
        (self.folder / "offsets").unlink()
        known = len(before)
        writers = self.start_writers()
        self.wait_for_events(50)
        process = self.start_connect()
        self.wait_for_events(50)
        self.deliver()
        self.succeeds("subscription", "pause", "ours")
        ours = self.read("ours")
        self.wait_for_events(100)
        self.stop_writers(writers)
        everything = self.committed()
        wait_until(lambda: {one["id"] for one in before + ours + self.read("theirs")} == everything, "all events", 120)
        self.check_orders(before + ours, self.read("theirs")[known:])
        self.stop_connect(process)

    def test_what_cannot_tell_a_position_is_named(self):
        self.succeeds("subscription", "apply")
        self.fails(1, "subscription", "reset", "ours", "--to", f"slot:{SLOT}", says=f"there is no replication slot {SLOT}")
        self.fails(2, "subscription", "reset", "ours", "--to", "slot:", says="--to")
        # It comes first by name, and leaves the event out.
        self.sql("CREATE PUBLICATION a FOR TABLE outbox.event WHERE (aggregate_type = 'other') WITH (publish = 'insert', publish_via_partition_root)")
        self.sql(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput'); SELECT pg_create_physical_replication_slot('physical'); "
                 "SELECT pg_create_logical_replication_slot('other', 'test_decoding')")
        self.fails(1, "subscription", "reset", "ours", "--to", "slot:physical", says="physical")
        self.fails(1, "subscription", "reset", "ours", "--to", "slot:other", says="test_decoding")
        self.sql("SELECT outbox.enqueue('order', '1', 'Placed', '{}'::jsonb)")
        self.assertIn("would begin at where the slot outbox_debezium stands, seq 1", self.succeeds("subscription", "reset", "ours", "--to", f"slot:{SLOT}").out)
        self.sql("DELETE FROM outbox.event")
        self.fails(1, "subscription", "reset", "ours", "--to", f"slot:{SLOT}", says="were removed from the log")
        process = self.start_connect()
        self.fails(1, "subscription", "reset", "ours", "--to", f"slot:{SLOT}", says=("is in use", "stop the connector"))
        self.stop_connect(process)
        self.sql("DROP PUBLICATION outbox_debezium, a; SELECT outbox.enqueue('order', '1', 'Placed', '{}'::jsonb)")
        self.fails(1, "subscription", "reset", "ours", "--to", f"slot:{SLOT}", says="publication")


if __name__ == "__main__":
    unittest.main()
