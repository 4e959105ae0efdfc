#!/usr/bin/env python3
"""outbox doctor: faults that are made on purpose are found, named and mended; and the repair of a restored outbox."""

import os
import socket
import sqlite3
import subprocess
import unittest
import uuid
from pathlib import Path

from program import CHECK_FAILED, FILE_SUBSCRIPTION, POSTGRES, USAGE, Case, OnPostgres, OnSqlite

PROGRAMS = os.environ.get("OUTBOX_TEST_PGBIN")
POOLER = os.environ.get("OUTBOX_TEST_PGBOUNCER")
KAFKA = os.environ.get("OUTBOX_TEST_KAFKA")

MISSING_FOLDER = """
[subscription.lost]
sink = "file"
file.path = "no/such/folder/x.jsonl"
"""


class Doctor:
    def setUp(self):
        super().setUp()
        self.migrate()
        self.config(FILE_SUBSCRIPTION)
        self.succeeds("subscription", "apply")

    def findings(self, *arguments, **more):
        return self.outbox("doctor", "--json", *arguments, **more).json()

    def complaint(self, check, *arguments, subject=None, **more):
        """The only finding of the check that is not in order."""
        found = [one for one in self.findings(*arguments, **more) if one["check"] == check and one["severity"] != "ok"]
        if subject is not None:
            found = [one for one in found if one["subject"] == subject]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def in_order(self, check, *arguments):
        found = [one["severity"] for one in self.findings(*arguments) if one["check"] == check]
        self.assertTrue(found, f"{check} was not looked at")
        self.assertEqual(set(found), {"ok"}, check)

    def test_a_sound_store(self):
        out = self.succeeds("doctor").out
        self.assertIn("ok       schema: version", out)
        self.assertRegex(out, r"\n0 errors, \d+ warnings?, \d+ notes?; \d+ in order\n$")
        found = self.findings()
        for one in found:
            self.assertEqual(list(one), ["check", "subject", "severity", "what", "reason", "command"])
            self.assertIn(one["severity"], ("ok", "note", "warning"))
            self.assertEqual(one["reason"] is None, one["severity"] == "ok", one)
        checks = {one["check"] for one in found}
        self.assertLessEqual({"configuration", "store", "schema", "sequence", "disk", "subscriptions", "pending", "parked",
                              "difference", "relays", "history", "sink"}, checks)

    def test_the_repair_of_a_sound_store(self):
        for arguments in ((), ("--apply",)):
            self.assertIn("nothing to repair", self.succeeds("doctor", "--repair-lineage", *arguments).out)
            self.assertFalse(self.succeeds("doctor", "--repair-lineage", "--json", *arguments).json()["needed"])

    def test_it_refuses_what_makes_no_sense(self):
        self.fails(USAGE, "doctor", "--apply", says="--repair-lineage --apply")
        self.fails(USAGE, "doctor", "--strict", "--repair-lineage", says="--strict")
        self.fails(USAGE, "doctor", "--timeout", "10ms", says="--timeout")
        self.fails(USAGE, "doctor", "--set", "relay.paeg=1", says="relay.paeg")

    def test_a_store_that_is_not_there_leaves_the_other_checks(self):
        store = "postgresql://127.0.0.1:1/none" if self.flags else "sqlite:none.db"
        self.fails(CHECK_FAILED, "doctor", "--store", store, says="store ")
        self.assertEqual(self.complaint("store", "--store", store)["severity"], "error")
        for check in ("configuration", "sink"):
            self.in_order(check, "--store", store)

    def test_a_broken_configuration_leaves_the_store(self):
        path = self.folder / "outbox.toml"
        path.write_text(path.read_text() + "\n[relay]\npaeg = 5\n")
        found = self.complaint("configuration", *self.at_store())
        self.assertEqual((found["severity"], found["subject"]), ("error", "relay.paeg"))
        self.assertIn("outbox.toml:", found["what"])
        self.in_order("schema", *self.at_store())

    def test_a_missing_secret_leaves_the_store(self):
        self.config(FILE_SUBSCRIPTION + '[subscription.more]\nsink = "file"\nfile.path = "${env:NOT_SET}"\n')
        self.assertIn("NOT_SET", self.complaint("configuration")["what"])
        self.in_order("schema")

    def test_one_destination_that_cannot_be_used_leaves_the_others(self):
        self.config(FILE_SUBSCRIPTION + MISSING_FOLDER)
        found = self.complaint("sink", subject="lost")
        self.assertEqual(found["severity"], "error")
        self.assertIn("there is no directory", found["what"])
        self.assertTrue(any(one["check"] == "sink" and one["subject"] == "orders" and one["severity"] == "ok"
                            for one in self.findings()))

    def test_the_destinations_of_a_store_without_a_file(self):
        (self.folder / "outbox.toml").unlink()
        self.in_order("sink", *self.at_store())

    def test_a_configuration_that_was_not_applied(self):
        self.config(FILE_SUBSCRIPTION.replace('"file"', '"file"\ntopic = "other"', 1))
        found = self.complaint("difference")
        self.assertEqual((found["subject"], found["severity"]), ("orders", "warning"))
        self.assertIn("topic", found["what"])
        self.succeeds(*found["command"].split()[1:])
        self.in_order("difference")

    def test_warnings_fail_only_when_asked_to(self):
        self.assertEqual(self.complaint("relays")["what"], "no relay is alive")
        self.succeeds("doctor")
        result = self.outbox("doctor", "--strict")
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn("outbox: relays: no relay is alive (hint: outbox relay)", result.err)

    def test_a_subscription_that_a_person_paused(self):
        self.succeeds("subscription", "pause", "orders", "--reason", "broker is moved")
        found = self.complaint("subscriptions")
        self.assertEqual((found["severity"], found["subject"], found["what"]), ("note", "orders", "paused: broker is moved"))
        self.succeeds(*found["command"].split()[1:])
        self.in_order("subscriptions")

    def test_a_server_that_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            url = f"postgresql://127.0.0.1:{deaf.getsockname()[1]}/none?connect_timeout=600"
            result = self.outbox("doctor", "--store", url, "--timeout", "2s")
            self.assertEqual(result.code, CHECK_FAILED, result)
            self.assertIn("did not answer in time", result.out)
            self.assertIn("ok       sink", result.out)
            self.assertIn("did not answer in time", result.err)


class DoctorOnSqlite(Doctor, OnSqlite, Case):
    def test_it_changes_nothing(self):
        self.succeeds("enqueue", "order", "1", "Placed", "{}")
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.execute("SELECT count(*) FROM outbox_event").fetchall()
            before = {path.name: path.read_bytes() for path in self.folder.glob("shop.db*") if not path.name.endswith("-shm")}
            self.succeeds("doctor")
            after = {path.name: path.read_bytes() for path in self.folder.glob("shop.db*") if not path.name.endswith("-shm")}
        self.assertEqual(before, after)

    def test_another_journal_mode(self):
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.execute("PRAGMA journal_mode = DELETE")
        self.fails(CHECK_FAILED, "doctor", says="journal: journal_mode is delete")
        self.succeeds(*self.complaint("journal")["command"].split()[1:])
        self.in_order("journal")

    def test_who_holds_the_write_lock(self):
        database = sqlite3.connect(self.folder / "shop.db", isolation_level=None)
        self.addCleanup(database.close)
        database.execute("BEGIN IMMEDIATE")
        found = self.complaint("busy")
        self.assertEqual(found["severity"], "warning")
        self.assertIn(f"pid {os.getpid()}", found["what"])
        database.execute("ROLLBACK")
        self.in_order("busy")

    def test_files_that_others_can_write_or_know_by_another_name(self):
        path = self.folder / "shop.db"
        path.chmod(0o666)
        self.assertIn("can be written by every user", self.complaint("files")["what"])
        path.chmod(0o640)
        os.link(path, self.folder / "other.db")
        self.assertIn("2 names", self.complaint("files")["what"])

    def test_a_file_that_is_no_database(self):
        self.write("shop.db", "this is no database at all, it is only text " * 100)
        for name in ("shop.db-wal", "shop.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        result = self.outbox("doctor")
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn("ok       sink", result.out)

    def test_a_schema_of_another_version(self):
        self.sql("UPDATE outbox_migration SET version = 99 WHERE version = (SELECT max(version) FROM outbox_migration)")
        found = self.complaint("schema")
        self.assertEqual(found["severity"], "error")
        self.assertIn("newer", found["what"])


class DoctorOnPostgres(Doctor, OnPostgres, Case):
    def setUp(self):
        super().setUp()
        self.schema = self.flags[1]

    def mended(self, check, statement, **more):
        """Makes a fault; it is found; its command mends it."""
        self.sql(statement)
        found = self.complaint(check, **more)
        self.assertTrue(found["command"].endswith(";"), found)
        self.sql(found["command"])
        rest = [one for one in self.findings() if one["check"] == check and one["what"] == found["what"]]
        self.assertEqual(rest, [])
        return found

    def test_a_role_with_too_many_rights(self):
        found = self.mended("roles", f"GRANT DELETE, SELECT ON {self.schema}.event TO outbox_app", subject="outbox_app")
        self.assertEqual(found["severity"], "warning")
        self.assertIn(f"has DELETE ON {self.schema}.event, SELECT ON {self.schema}.event", found["what"])
        self.mended("roles", f"GRANT UPDATE ON {self.schema}.event TO PUBLIC", subject="PUBLIC")

    def test_a_role_with_too_few_rights(self):
        found = self.mended("roles", f"REVOKE SELECT ON {self.schema}.event FROM outbox_relay", subject="outbox_relay")
        self.assertEqual(found["severity"], "error")
        found = self.mended("roles", f"REVOKE EXECUTE ON FUNCTION {self.schema}.make_partitions(interval) FROM outbox_relay",
                            subject="outbox_relay")
        self.assertIn("make_partitions(interval)", found["what"])

    def test_a_sequence_with_a_cache(self):
        self.mended("sequence", f"ALTER SEQUENCE {self.schema}.event_seq CACHE 32")

    def test_autovacuum_off(self):
        found = self.mended("autovacuum", f"ALTER TABLE {self.schema}.lane SET (autovacuum_enabled = off)")
        self.assertEqual(found["subject"], "lane")

    def test_partitions_that_are_missing(self):
        names = self.sql(f"SELECT name FROM {self.schema}.partitions() WHERE first_xid IS NOT NULL").split()
        found = self.mended("partitions", "; ".join(f"DROP TABLE {self.schema}.{name}" for name in names))
        self.assertEqual(found["severity"], "error")

    def test_who_holds_the_oldest_snapshot(self):
        holder = subprocess.Popen(["psql", POSTGRES, "-qXAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=os.environ | {"PGAPPNAME": "slow_report"})
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT pg_backend_pid();\n")
        holder.stdin.flush()
        pid = holder.stdout.readline().strip()
        self.sql("SELECT pg_current_xact_id()")
        [found] = [one for one in self.findings() if one["check"] == "snapshot"]
        self.assertIn(f"pid {pid} (application slow_report, login postgres, idle in transaction)", found["what"])

    def test_a_schema_of_another_version(self):
        newest = f"(SELECT max(version) FROM {self.schema}.migration)"
        self.sql(f"UPDATE {self.schema}.migration SET version = 99 WHERE version = {newest}")
        found = self.complaint("schema")
        self.assertEqual(found["severity"], "error")
        self.assertIn("newer", found["what"])
        self.sql(f"DELETE FROM {self.schema}.migration WHERE version = 99")
        found = self.complaint("schema")
        self.assertIn("older", found["what"])
        self.assertEqual(found["command"], f"outbox migrate --schema {self.schema}")
        self.in_order("connections")

    def test_a_login_that_is_refused(self):
        store = POSTGRES.replace("postgres@", "nobody_of_this_name@")
        found = self.complaint("store", "--store", store)
        self.assertEqual(found["severity"], "error")
        self.assertIn("pg_hba.conf", found["command"])

    def login(self, role):
        name = f"doctor_{uuid.uuid4().hex[:8]}"
        self.sql(f"CREATE ROLE {name} LOGIN IN ROLE {role}")
        self.addCleanup(self.sql, f"DROP ROLE {name}")
        return name, POSTGRES.replace("postgres@", name + "@")

    def test_a_login_that_may_only_write_events(self):
        name, store = self.login("outbox_app")
        result = self.outbox("doctor", "--store", store)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err, "")
        found = self.complaint("subscriptions", "--store", store)
        self.assertEqual((found["severity"], found["command"]), ("note", f'GRANT outbox_reader TO "{name}";'))
        self.assertEqual(self.complaint("wal", "--store", store)["command"], f'GRANT pg_monitor TO "{name}";')
        for check in ("store", "schema", "connections", "sequence", "sink"):
            self.in_order(check, "--store", store)

    def test_a_login_that_delivers(self):
        _, store = self.login("outbox_relay")
        self.assertEqual({one["severity"] for one in self.findings("--store", store)} - {"ok", "note", "warning"}, set())
        for check in ("partitions", "wake_up", "lineage", "autovacuum", "subscriptions", "history"):
            self.in_order(check, "--store", store)

    @unittest.skipUnless(POOLER, "OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
    def test_a_pooler_that_forbids_the_wake_up(self):
        found = self.complaint("wake_up", "--store", POOLER)
        self.assertEqual(found["severity"], "note")
        self.assertIn("pooler", found["what"])
        for check in ("schema", "sequence", "partitions"):
            self.in_order(check, "--store", POOLER)

    def test_functions_that_are_planted_in_the_search_path_are_not_called(self):
        name, store = self.login("outbox_relay")
        self.sql(f"CREATE SCHEMA {name}_planted; CREATE TABLE {name}_planted.called (x int); "
                 f"CREATE FUNCTION {name}_planted.age(xid) RETURNS integer LANGUAGE sql AS "
                 f"'INSERT INTO {name}_planted.called VALUES (1); SELECT 1'; "
                 f"GRANT ALL ON SCHEMA {name}_planted TO {name}; GRANT ALL ON {name}_planted.called TO {name}; "
                 f"ALTER ROLE {name} SET search_path = {name}_planted, pg_catalog")
        self.addCleanup(self.sql, f"DROP SCHEMA {name}_planted CASCADE")
        self.assertEqual({one["severity"] for one in self.findings("--store", store)} - {"ok", "note", "warning"}, set())
        self.in_order("autovacuum", "--store", store)
        self.assertEqual(self.sql(f"SELECT count(*) FROM {name}_planted.called").strip(), "0")

    def test_it_changes_nothing(self):
        tables = self.sql(f"SELECT relname FROM pg_class WHERE relnamespace = '{self.schema}'::regnamespace AND relkind = 'r'").split()
        rows = " UNION ALL ".join(f"SELECT '{table}', xmin::text, ctid::text FROM {self.schema}.{table}" for table in tables)
        before = self.sql(rows)
        self.succeeds("doctor")
        self.assertEqual(self.sql(rows), before)

    def copy(self):
        """The schema as a dump and restore leave it."""
        if not PROGRAMS:
            self.skipTest("OUTBOX_TEST_PGBIN is not set: no pg_dump")
        dump = subprocess.run([Path(PROGRAMS) / "pg_dump", "-n", self.schema, POSTGRES], check=True, capture_output=True,
                              text=True).stdout
        self.drop(self.schema)
        subprocess.run(["psql", POSTGRES, "-qX", "-v", "ON_ERROR_STOP=1"], input=dump, check=True, text=True, stdout=subprocess.DEVNULL)

    def delivered(self):
        return [line for line in (self.folder / "orders.jsonl").read_text().splitlines() if line]

    def test_a_restored_outbox_delivers_what_was_pending_after_the_repair(self):
        for number in range(3):
            self.succeeds("enqueue", "order", number, "Placed", "{}")
        self.succeeds("relay", "--once")
        for number in range(4):
            self.succeeds("enqueue", "order", number, "Changed", "{}")
        self.copy()
        self.fails(CHECK_FAILED, "doctor", says=("of another database", "outbox doctor --repair-lineage"))
        self.assertEqual(self.complaint("lineage")["severity"], "error")
        self.sql(f"SELECT {self.schema}.enqueue('order', '1', 'Paid', '{{}}'::jsonb)")

        shown = self.succeeds("doctor", "--repair-lineage").out
        self.assertRegex(shown, r"7 events were restored, 1 was written since\n")
        self.assertRegex(shown, r"orders +4\n")
        self.assertIn("nothing was changed", shown)
        self.fails(CHECK_FAILED, "doctor")

        self.assertEqual(self.succeeds("doctor", "--repair-lineage", "--apply", "--json").json(),
                         {"needed": True, "applied": True, "restored": 7, "written_since": 1,
                          "pending": [{"subscription": "orders", "events": 4}]})
        self.succeeds("doctor")
        self.succeeds("relay", "--once")
        types = [part.split('"')[0] for line in self.delivered() for part in line.split('"event_type":"')[1:]]
        self.assertEqual(types, ["Placed"] * 3 + ["Changed"] * 4 + ["Paid"])
        self.succeeds("verify")
        self.succeeds("events", "--key", "order/1")


@unittest.skipUnless(KAFKA, "OUTBOX_TEST_KAFKA is not set: no Kafka broker")
class DoctorAndKafka(OnSqlite, Case):
    def sink_findings(self, topic):
        self.config(f'[subscription.orders]\nsink = "kafka"\nkafka.brokers = "{KAFKA}"\ntopic = "{topic}"\n')
        return {one["what"]: one for one in self.outbox("doctor", "--json").json() if one["check"] == "sink"}

    @staticmethod
    def make_topic(**settings):
        topic = "doctor-" + uuid.uuid4().hex
        options = [part for name, value in settings.items() for part in ("--config", f"{name.replace('_', '.')}={value}")]
        subprocess.run(["java", "-cp", os.environ["OUTBOX_TEST_KAFKA_HOME"] + "/libs/*", "org.apache.kafka.tools.TopicCommand",
                        "--bootstrap-server", KAFKA, "--create", "--topic", topic, "--partitions", "1", *options],
                       check=True, capture_output=True)
        return topic

    def test_a_topic_that_is_not_there(self):
        [found] = self.sink_findings("doctor-none-" + uuid.uuid4().hex).values()
        self.assertEqual((found["severity"], found["subject"]), ("error", "orders"))

    def test_a_topic_that_loses_events(self):
        found = self.sink_findings(self.make_topic(min_insync_replicas=1, max_message_bytes=5000))
        self.assertEqual({one["severity"] for one in found.values()}, {"warning"})
        self.assertIn("min.insync.replicas 1", found)
        self.assertIn("replication factor 1", found)
        self.assertIn("max.message.bytes of the topic is 4.9 KiB, and the store takes payloads of 1.0 MiB", found)

    def test_a_topic_that_never_acks(self):
        [found] = self.sink_findings(self.make_topic(min_insync_replicas=2)).values()
        self.assertEqual(found["severity"], "error")
        self.assertIn("min.insync.replicas is 2, but it has 1 replica", found["what"])


if __name__ == "__main__":
    unittest.main()
