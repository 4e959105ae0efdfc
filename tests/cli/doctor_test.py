#!/usr/bin/env python3
"""outbox doctor: faults that are made on purpose are found, named and mended; and the repair of a restored outbox."""

import os
import shlex
import socket
import sqlite3
import subprocess
import unittest
import uuid
from pathlib import Path

from program import CHECK_FAILED, FILE_SUBSCRIPTION, USAGE, Case, OnPostgres, OnSqlite, in_database

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
        self.assertIn("outbox: relays: no relay is alive (hint: outbox relay", result.err)

    def test_each_command_names_the_store_that_was_looked_at(self):
        self.succeeds("subscription", "pause", "orders", "--reason", "broker is moved")
        (self.folder / "outbox.toml").rename(self.folder / "shop.toml")
        self.config('[subscription.other]\nsink = "null"\n')
        for where in (self.at_store(), ("-c", "shop.toml"), ("-c", "shop.toml", *self.at_store())):
            commands = [one["command"] for one in self.findings(*where) if (one["command"] or "").startswith("outbox ")]
            self.assertTrue(any("outbox relay" in one for one in commands), commands)
            self.assertTrue(any("outbox subscription resume orders" in one for one in commands), commands)
            for command in commands:
                words = shlex.split(command)
                self.assertEqual("-c" in words and words[words.index("-c") + 1] == "shop.toml", "shop.toml" in where, command)
                self.assertEqual("--store" in words, "--store" in where, command)
        told = self.complaint("difference", *self.at_store(), subject="other")["command"]
        self.assertTrue(told.startswith("outbox subscription apply -c outbox.toml --store "), told)
        self.succeeds(*shlex.split(told)[1:])

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

    def test_what_somebody_changed(self):
        for damage, object_ in (("DROP INDEX outbox_settlement_newest", "table outbox_settlement"),
                                ("DROP TRIGGER outbox_event_is_never_changed", "table outbox_event"),
                                ("DROP VIEW outbox_new_event", "view outbox_new_event"),
                                ("DROP TABLE outbox_former_name", "table outbox_former_name"),
                                ("CREATE TRIGGER mine AFTER INSERT ON outbox_event BEGIN DELETE FROM outbox_event; END", "table outbox_event"),
                                ("CREATE UNIQUE INDEX mine ON outbox_event (id)", "table outbox_event")):
            with self.subTest(damage):
                self.sql(damage)
                found = self.complaint("schema")
                self.assertEqual((found["subject"], found["severity"]), (object_, "error"))
                *_, statements = shlex.split(found["command"])
                with sqlite3.connect(self.folder / "shop.db") as database:
                    database.executescript(statements)
                self.in_order("schema")
        self.succeeds("migrate", "--with-lookup-indexes", *self.at_store())
        self.in_order("schema")
        self.sql("ALTER TABLE outbox_event ADD COLUMN mine TEXT")
        self.assertIn("differs", self.complaint("schema")["what"])

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

    def wrong(self, *arguments):
        """What is wrong with the schema, rights and numbers."""
        return [one for one in self.findings(*arguments) if one["check"] in ("schema", "roles", "sequence")
                and one["severity"] != "ok" and "this login, postgres" not in one["what"]]

    def restored(self, damage, *expected):
        """Does damage; the findings have these subjects, and their commands, in this order, leave nothing wrong."""
        with self.subTest(damage):
            self.sql(damage.replace("{s}", self.schema))
            found = self.wrong()
            self.assertEqual({one["subject"].replace(self.schema, "s") for one in found}, set(expected), found)
            for one in found:
                self.sql(one["command"])
            self.assertEqual(self.wrong(), [])
            return found

    def test_autovacuum_off(self):
        found = self.mended("autovacuum", f"ALTER TABLE {self.schema}.lane SET (autovacuum_enabled = off)")
        self.assertEqual(found["subject"], "lane")

    def test_partitions_that_are_missing(self):
        names = self.sql(f"SELECT name FROM {self.schema}.partitions() WHERE first_xid IS NOT NULL").split()
        found = self.mended("partitions", "; ".join(f"DROP TABLE {self.schema}.{name}" for name in names))
        self.assertEqual(found["severity"], "error")

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
        store = self.direct.replace("postgres@", "nobody_of_this_name@")
        found = self.complaint("store", "--store", store)
        self.assertEqual(found["severity"], "error")
        self.assertIn("pg_hba.conf", found["command"])

    def login(self, role):
        name = f"doctor_{uuid.uuid4().hex[:8]}"
        self.sql(f"CREATE ROLE {name} LOGIN IN ROLE {role}")
        self.addCleanup(self.sql, f"DROP ROLE {name}")
        return name, self.direct.replace("postgres@", name + "@")

    def test_a_login_that_may_only_write_events(self):
        name, store = self.login("outbox_app")
        result = self.outbox("doctor", "--store", store)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err, "")
        found = self.complaint("subscriptions", "--store", store)
        self.assertEqual((found["severity"], found["command"]), ("note", f'GRANT outbox_reader TO "{name}";'))
        self.assertEqual(self.complaint("wal", "--store", store)["command"], f'GRANT pg_monitor TO "{name}";')
        for check in ("store", "schema", "connections", "sink"):
            self.in_order(check, "--store", store)

    def test_a_login_that_delivers(self):
        _, store = self.login("outbox_relay")
        self.assertEqual({one["severity"] for one in self.findings("--store", store)} - {"ok", "note", "warning"}, set())
        for check in ("partitions", "wake_up", "lineage", "autovacuum", "subscriptions", "history"):
            self.in_order(check, "--store", store)

    @unittest.skipUnless(POOLER, "OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
    def test_a_pooler_that_forbids_the_wake_up(self):
        pooler = in_database(POOLER, self.direct.rpartition("/")[2])
        found = self.complaint("wake_up", "--store", pooler)
        self.assertEqual(found["severity"], "note")
        self.assertIn("pooler", found["what"])
        for check in ("schema", "sequence", "partitions"):
            self.in_order(check, "--store", pooler)

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

    def test_parts_that_are_missing_or_changed(self):
        self.assertEqual(self.wrong(), [])
        for table in ("settlement", "parked"):
            for index in self.sql(f"SELECT c.oid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                                  f"WHERE i.indrelid = '{self.schema}.{table}'::regclass AND NOT i.indisprimary").split():
                self.restored(f"DROP INDEX {index}", f"table s.{table}")
        event, view = "table s.event", "view s.event_in"
        for damage, *expected in (
                ("DROP INDEX {s}.event_by_seq", event),
                ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{s}.settlement_newest'::regclass", "table s.settlement"),
                ("ALTER TABLE {s}.event ALTER xid DROP DEFAULT", event),
                ("ALTER TABLE {s}.event ALTER created_at SET DEFAULT '2020-01-01'", event),
                ("ALTER TABLE {s}.event ALTER payload DROP NOT NULL", event),
                ("DROP RULE append ON {s}.event_in", view),
                ("ALTER TABLE {s}.lane DROP CONSTRAINT lane_pkey", "table s.lane"),
                ("ALTER TABLE {s}.settlement ALTER id SET CACHE 32", "table s.settlement"),
                ("ALTER TABLE {s}.subscription ALTER reason TYPE varchar", "table s.subscription"),
                ("ALTER SEQUENCE {s}.event_seq CACHE 32", "sequence s.event_seq"),
                ("ALTER SEQUENCE {s}.event_seq INCREMENT -1", "sequence s.event_seq"),
                ("DROP FUNCTION {s}.make_partitions(interval)", "function s.make_partitions"),
                ("ALTER FUNCTION {s}.make_partitions(interval) SECURITY INVOKER", "function s.make_partitions"),
                ("ALTER FUNCTION {s}.make_partitions(interval) RESET search_path", "function s.make_partitions"),
                ("DROP FUNCTION {s}.wake_and_xid() CASCADE", "function s.wake_and_xid", event),
                ("DROP VIEW {s}.new_event", "view s.new_event"),
                ("DROP DOMAIN {s}.new_event_text CASCADE", "domain s.new_event_text", "view s.new_event"),
                ("DROP TRIGGER new_event_insert ON {s}.new_event", "view s.new_event"),
                ("DROP TABLE {s}.former_name", "table s.former_name"),
                ("DROP TABLE {s}.event_default", event),
                ("ALTER TABLE {s}.incarnation SET LOGGED", "table s.incarnation")):
            self.restored(damage, *expected)

    def test_what_somebody_added(self):
        self.sql(f"CREATE FUNCTION {self.schema}.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        part = self.sql(f"SELECT name FROM {self.schema}.partitions() WHERE first_xid IS NOT NULL").split()[0]
        event = "table s.event"
        for damage, *expected in (
                ("CREATE TRIGGER t BEFORE INSERT ON {s}.event FOR EACH ROW EXECUTE FUNCTION {s}.mine()", event),
                ("CREATE TRIGGER t BEFORE INSERT ON {s}." + part + " FOR EACH ROW EXECUTE FUNCTION {s}.mine()", event),
                ("CREATE RULE r AS ON INSERT TO {s}.settlement DO INSTEAD NOTHING", "table s.settlement"),
                ("ALTER TABLE {s}.event ENABLE ROW LEVEL SECURITY", event),
                ("ALTER TABLE {s}.event FORCE ROW LEVEL SECURITY", event),
                ("ALTER TABLE {s}." + part + " ENABLE ROW LEVEL SECURITY", event),
                ("ALTER TABLE {s}." + part + " SET UNLOGGED", event),
                ("ALTER TABLE {s}.settlement SET UNLOGGED", "table s.settlement"),
                ("ALTER TABLE {s}.event ADD CHECK (event_type <> 'Forbidden')", event),
                ("CREATE UNIQUE INDEX once ON {s}." + part + " (id)", event),
                ("ALTER TABLE {s}.parked ADD COLUMN mine integer NOT NULL DEFAULT 1", "table s.parked"),
                ("CREATE FUNCTION {s}.enqueue(varchar, varchar, varchar, jsonb) RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
                 "function s.enqueue"),
                ("ALTER TABLE {s}.settlement OWNER TO postgres", "table s.settlement")):
            self.restored(damage, *expected)

    def test_rights(self):
        for damage, *expected in (
                ("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC", "PUBLIC"),
                ("GRANT EXECUTE ON FUNCTION {s}.make_partitions(interval) TO PUBLIC", "PUBLIC"),
                ("GRANT INSERT ON {s}.settlement TO outbox_app", "outbox_app"),
                ("GRANT SELECT ON {s}.parked TO outbox_app", "outbox_app"),
                ("GRANT SELECT (payload) ON {s}.event TO outbox_app", "outbox_app"),
                ("GRANT SELECT ON {s}.event_default TO outbox_app", "outbox_app"),
                ("GRANT INSERT ON {s}.event_in TO outbox_app WITH GRANT OPTION", "outbox_app"),
                ("GRANT UPDATE ON {s}.event TO PUBLIC", "PUBLIC"),
                ("GRANT CREATE ON SCHEMA {s} TO outbox_app; REVOKE USAGE ON SCHEMA {s} FROM outbox_relay", "outbox_app", "outbox_relay"),
                ("GRANT UPDATE ON SEQUENCE {s}.event_seq TO outbox_app", "outbox_app"),
                ("REVOKE SELECT ON {s}.event FROM outbox_relay", "outbox_relay"),
                ("REVOKE INSERT ON {s}.event FROM outbox_owner", "outbox_owner")):
            self.restored(damage, *expected)
        [found] = self.restored("GRANT DELETE, SELECT ON {s}.event TO outbox_app", "outbox_app")
        self.assertEqual((found["check"], found["severity"]), ("roles", "warning"))
        self.assertIn(f"has DELETE ON {self.schema}.event, SELECT ON {self.schema}.event", found["what"])

    def test_rights_of_a_login_and_those_through_a_membership(self):
        name, _ = self.login("outbox_relay")
        self.sql(f"CREATE ROLE {name}_team")
        self.addCleanup(self.sql, f"DROP ROLE IF EXISTS {name}_team")
        for damage, subject, command in (
                (f"GRANT pg_write_all_data TO {name}", name, f"REVOKE pg_write_all_data FROM {name};"),
                ("GRANT pg_write_all_data TO outbox_app", "outbox_app", "REVOKE pg_write_all_data FROM outbox_app;"),
                (f"GRANT outbox_owner TO {name}", name, f"REVOKE outbox_owner FROM {name};"),
                (f"GRANT pg_write_all_data TO {name}_team; GRANT {name}_team TO {name}", name, f"REVOKE {name}_team FROM {name};"),
                (f"GRANT outbox_relay, pg_write_all_data TO {name}_team; GRANT {name}_team TO {name}", f"{name}_team",
                 f"REVOKE pg_write_all_data FROM {name}_team;"),
                (f"GRANT DELETE ON {self.schema}.event TO {name}", name, f"REVOKE DELETE ON {self.schema}.event FROM {name};")):
            [found] = self.restored(damage, subject)
            self.assertEqual((found["check"], found["severity"], found["command"]), ("roles", "warning", command))

    def test_a_sequence_that_was_set_back(self):
        self.succeeds("enqueue", "order", "1", "Placed", "{}")
        self.succeeds("enqueue", "order", "2", "Placed", "{}")
        [found] = self.restored("SELECT setval('{s}.event_seq', 1)", "s.event_seq")
        self.assertEqual((found["check"], found["what"]), ("sequence", "stands at 1, and 2 is in use"))
        self.succeeds("relay", "--once")
        self.restored("DELETE FROM {s}.event; SELECT setval('{s}.event_seq', 1)", "s.event_seq")
        self.restored("ALTER TABLE {s}.settlement ALTER id RESTART", "s.settlement_id_seq")

    def test_what_people_may_choose_is_no_finding(self):
        name, _ = self.login("outbox_relay")
        self.succeeds("migrate", "--with-lookup-indexes")
        self.sql(f"CREATE ROLE {name}_report; GRANT USAGE ON SCHEMA {self.schema} TO {name}_report; "
                 f"GRANT SELECT ON {self.schema}.event TO {name}_report; CREATE VIEW {self.schema}.mine AS SELECT 1; "
                 f"CREATE INDEX mine_too ON {self.schema}.parked_end (outcome); "
                 f"ALTER TABLE {self.schema}.relay SET (fillfactor = 70); COMMENT ON TABLE {self.schema}.event IS 'the log'; "
                 f"CREATE TABLE {name}_orders (id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb, sent boolean)")
        self.addCleanup(self.sql, f"DROP OWNED BY {name}_report CASCADE; DROP ROLE {name}_report; DROP TABLE {name}_orders")
        self.succeeds("adopt", f"public.{name}_orders", "--apply")
        self.sql(f"SELECT {self.schema}.make_partitions()")
        self.assertEqual(self.wrong(), [])

    def test_damage_is_seen_by_logins_with_few_rights(self):
        for role in ("outbox_app", "outbox_relay", "outbox_reader"):
            _, store = self.login(role)
            self.assertEqual(self.wrong("--store", store), [])
            self.sql(f"DROP INDEX {self.schema}.settlement_newest")
            [found] = self.wrong("--store", store)
            self.assertEqual((found["subject"], found["what"]), (f"table {self.schema}.settlement", "lacks index settlement_newest"))
            self.sql(found["command"])

    def test_the_printed_text_of_a_function_restores_it(self):
        self.sql(f"DROP FUNCTION {self.schema}.make_partitions(interval)")
        result = self.outbox("doctor")
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn(f"function {self.schema}.make_partitions: is missing (hint: run what stands behind > above)", result.err)
        self.sql(result.out.partition("> SET ROLE")[2].partition("RESET ROLE;")[0].join(("SET ROLE", "RESET ROLE;")))
        self.assertEqual(self.wrong(), [])

    def test_a_migration_does_not_bless_damage(self):
        self.drop(self.schema)
        printed = self.succeeds("migrate", "--print").out
        last, end = printed.rindex("-- migration "), printed.index("-- for outbox doctor")
        for script in (printed[:last], printed[end:]):
            subprocess.run(["psql", self.direct, "-qX", "-v", "ON_ERROR_STOP=1"], input=script, check=True, text=True, stdout=subprocess.DEVNULL)
        self.sql(f"DROP INDEX {self.schema}.settlement_newest; ALTER TABLE {self.schema}.event ADD COLUMN mine text")
        self.migrate()
        self.assertEqual({(one["subject"].replace(self.schema, "s"), one["what"]) for one in self.wrong()},
                         {("table s.settlement", "lacks index settlement_newest"), ("table s.event", "has what is not of the outbox: column mine")})

    def test_what_another_version_has_stored_is_renewed(self):
        for damage in ("DELETE FROM {s}.definition", "UPDATE {s}.definition SET makes = 'PostgreSQL 9' WHERE part = 'made by'"):
            self.sql(damage.replace("{s}", self.schema))
            [found] = self.wrong()
            self.assertEqual((found["check"], found["severity"]), ("schema", "warning"))
            self.assertIn("not compared", found["what"])
            self.succeeds(*found["command"].split()[1:])
            self.assertEqual(self.wrong(), [])

    def copy(self):
        """The schema as a dump and restore leave it."""
        if not PROGRAMS:
            self.skipTest("OUTBOX_TEST_PGBIN is not set: no pg_dump")
        dump = subprocess.run([Path(PROGRAMS) / "pg_dump", "-n", self.schema, self.direct], check=True, capture_output=True,
                              text=True).stdout
        self.drop(self.schema)
        subprocess.run(["psql", self.direct, "-qX", "-v", "ON_ERROR_STOP=1"], input=dump, check=True, text=True, stdout=subprocess.DEVNULL)

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
