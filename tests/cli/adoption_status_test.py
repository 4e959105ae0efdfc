#!/usr/bin/env python3
"""outbox status and outbox doctor about adopted tables: each fault is made on a real server, found, and mended by the command of its finding."""

import json
import shlex
import subprocess
import unittest
import uuid

from adopting import Adopting, DEBEZIUM, HAND
from program import CHECK_FAILED, Case, ERROR, wait_until

INSERT = "INSERT INTO {} (topic, key, type, payload) VALUES ('order', '{}', 'Placed', '{{\"n\": {}}}')"


class OnSqlite(Case):
    def test_no_table_is_adopted(self):
        self.migrate()
        self.assertEqual(self.succeeds(*self.at_store("status", "--json")).json()["adoptions"], [])


class Told(Adopting):
    def setUp(self):
        super().setUp()
        self.config('[subscription.all]\nsink = "file"\nfile.path = "all.jsonl"\n')
        self.succeeds("subscription", "apply")
        self.table(HAND)

    def status(self, *arguments):
        return self.succeeds("status", "--json", *arguments).json()

    def told(self):
        """What status says of the only table."""
        [row] = self.status()["adoptions"]
        return row

    def problems(self):
        return [line for line in self.status()["problems"] if line.startswith("adoption")]

    def findings(self, *arguments):
        return [one for one in self.outbox("doctor", "--json", *arguments).json() if one["check"] == "adoption"]

    def finding(self, *arguments):
        """The only one."""
        [found] = self.findings(*arguments)
        return found

    def is_in_order(self):
        found = self.finding()
        self.assertEqual(found["severity"], "ok", found)

    def mend(self, found, between=lambda: None):
        """Runs the command of a finding; what stands before a colon is for people. `between`: happens between two commands."""
        command = found["command"]
        if command.endswith(";"):
            for statement in command.split(";")[:-1]:
                self.sql(statement)
            return
        for number, one in enumerate(command.rpartition("then: ")[2].split(" && ")):
            if number > 0:
                between()
            self.assertTrue(one.startswith("outbox adopt "), found)
            self.succeeds(*shlex.split(one)[1:])

    def keys(self):
        """Of what the relay delivered."""
        self.succeeds("relay", "--once")
        return [json.loads(line)["key"] for line in (self.folder / "all.jsonl").read_text(encoding="utf-8").splitlines()]


class Healthy(Told):
    def test_no_table(self):
        self.assertEqual(self.status()["adoptions"], [])
        self.assertNotIn("ADOPTED TABLE", self.succeeds("status").out)
        self.assertEqual(self.finding()["what"], "no table is adopted")

    def test_a_table_that_is_forwarded(self):
        self.insert("1", 1)
        self.succeeds(*self.adopt("--apply"))
        self.insert("2", 2)
        since = self.succeeds(*self.adopt("--json", table="")).json()["tables"][0]["forwarding_since"]
        self.assertEqual(self.told(), {"table": self.name, "layout": "written by hand", "state": "forwarding", "since": since, "taken_over": 1,
                                       "staged": 0, "waiting": 0, "waiting_is_more": False, "trouble": None})
        self.assertEqual(self.problems(), [])
        out = self.succeeds("status").out
        self.assertRegex(out, r"(?m)^ADOPTED TABLE +LAYOUT +STATE +SINCE +TAKEN OVER +WAITING\n"
                              rf"{self.name} +written by hand +forwarding +{since} +1 +0$")
        self.assertEqual(self.finding()["what"], f"the rows of {self.name} are forwarded")

    def test_one_that_was_undone_is_not_told_of(self):
        self.succeeds(*self.adopt("--apply"))
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.assertEqual(self.status()["adoptions"], [])
        self.assertEqual(self.finding()["what"], "no table is adopted")

    def test_debezium_and_odd_names(self):
        self.name = f'{self.schema}."Out.Box ""of"" mine"'
        self.table(DEBEZIUM)
        self.succeeds(*self.adopt("--apply"))
        row = self.told()
        self.assertEqual((row["table"], row["layout"], row["state"]), (self.name, "Debezium's", "forwarding"))
        self.is_in_order()

    def test_logins_with_few_rights(self):
        """A relay's and a reader's login have no right on the application's schema."""
        place = f"{self.schema}_app"
        self.sql(f"CREATE SCHEMA {place}")
        self.addCleanup(self.drop, place)
        self.name = f"{place}.shop_outbox"
        self.table(HAND)
        self.succeeds(*self.adopt("--apply"))
        for role in ("outbox_relay", "outbox_reader"):
            login = f"adoption_{uuid.uuid4().hex[:8]}"
            self.sql(f"CREATE ROLE {login} LOGIN IN ROLE {role}")
            self.addCleanup(self.sql, f"DROP ROLE {login}")
            store = ("--store", self.direct.replace("postgres@", login + "@"))
            self.assertEqual(self.status(*store)["adoptions"][0]["state"], "forwarding")
            self.assertEqual([one["severity"] for one in self.findings(*store)], ["ok"])
        login = f"adoption_{uuid.uuid4().hex[:8]}"
        self.sql(f"CREATE ROLE {login} LOGIN IN ROLE outbox_app")
        self.addCleanup(self.sql, f"DROP ROLE {login}")
        self.assertEqual([one["severity"] for one in self.findings("--store", self.direct.replace("postgres@", login + "@"))], ["note"])

    def test_status_does_not_wait_for_a_lock_on_the_table(self):
        self.succeeds(*self.adopt("--apply"))
        session = self.session()
        session.run(f"BEGIN; LOCK TABLE {self.name} IN ACCESS EXCLUSIVE MODE")
        self.assertEqual(self.told()["state"], "forwarding")
        self.is_in_order()


class Triggers(Told):
    """The INSERTs are not forwarded any more."""

    def setUp(self):
        super().setUp()
        self.succeeds(*self.adopt("--apply"))
        self.insert("forwarded", 1)

    def broken(self, says):
        row = self.told()
        self.assertEqual(row["state"], "broken")
        self.assertIn(says, row["trouble"])
        [problem] = self.problems()
        self.assertIn(says, problem)
        result = self.outbox("status", "--check")
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn(f"adoption {self.name}: ", result.err)
        self.fails(CHECK_FAILED, *self.adopt(), says=says)
        found = self.finding()
        self.assertEqual(found["subject"], self.name)
        self.assertIn(says, found["what"])
        return found

    def mends(self, statement, says):
        """What was inserted meanwhile is delivered once the person has said what was forwarded before."""
        self.sql(statement)
        self.insert("missed", 2)
        found = self.broken(says)
        self.assertEqual(found["severity"], "error")
        self.assertIn("rows inserted since then are in the table only", found["reason"])
        self.assertIn("mark the rows that were forwarded before as sent", found["command"])
        self.sql(f"UPDATE {self.name} SET status = 'sent' WHERE key = 'forwarded'")
        self.mend(found, lambda: self.insert("between", 3))
        self.is_in_order()
        self.insert("after", 4)
        self.assertEqual(self.keys(), ["forwarded", "missed", "between", "after"])

    def test_a_trigger_that_was_dropped(self):
        self.mends(f"DROP TRIGGER outbox_adopt ON {self.name}", "its trigger outbox_adopt was dropped")

    def test_a_trigger_that_is_disabled(self):
        self.mends(f"ALTER TABLE {self.name} DISABLE TRIGGER outbox_adopt", "its trigger outbox_adopt is disabled")

    def test_all_triggers_are_disabled(self):
        self.mends(f"ALTER TABLE {self.name} DISABLE TRIGGER ALL", "its trigger outbox_adopt is disabled")

    def test_a_trigger_for_replicated_rows_only(self):
        self.mends(f"ALTER TABLE {self.name} ENABLE REPLICA TRIGGER outbox_adopt", "fires for replicated rows only (ENABLE REPLICA)")

    def test_a_trigger_that_always_fires_is_in_order(self):
        """In a session without rules the INSERT fails: nothing is lost unseen."""
        self.sql(f"ALTER TABLE {self.name} ENABLE ALWAYS TRIGGER outbox_adopt")
        self.is_in_order()
        with self.assertRaises(subprocess.CalledProcessError) as refused:
            self.sql("SET session_replication_role = replica; " + INSERT.format(self.name, "replica", 2))
        self.assertIn("event_in", refused.exception.stderr)
        self.insert("after", 3)
        self.assertEqual(self.keys(), ["forwarded", "after"])

    def test_a_table_that_was_dropped_and_made_again(self):
        self.table(HAND)
        self.insert("missed", 2)
        found = self.broken("the table was dropped and made again, without its trigger")
        self.assertEqual(found["severity"], "error")
        self.mend(found)
        self.is_in_order()
        self.assertEqual(self.keys(), ["forwarded", "missed"])

    def test_another_table_took_its_name(self):
        """Of the other one nothing is forwarded until it is adopted, too."""
        old = f"{self.schema}.old_outbox"
        self.sql(f"ALTER TABLE {self.name} RENAME TO old_outbox; CREATE TABLE {self.name} ({HAND})")
        self.insert("missed", 2)
        self.sql(INSERT.format(old, "old", 3))
        row = self.told()
        self.assertEqual((row["table"], row["state"]), (old, "forwarding"))
        self.assertIn(f"another table has its former name, {self.name}: rows inserted into that one are in it only", row["trouble"])
        [problem] = self.problems()
        self.assertIn(f"adoption {old}: ", problem)
        found = self.finding()
        self.assertEqual((found["severity"], found["subject"]), ("error", old))
        self.mend(found)
        self.insert("new", 4)
        self.assertEqual(self.problems(), [])
        self.is_in_order()
        self.assertEqual(self.keys(), ["forwarded", "old", "missed", "new"])
        # Each by its own name, also when one of them is gone.
        self.sql(f"DROP TABLE {old}")
        found = self.finding()
        self.assertEqual(found["subject"], old)
        self.mend(found)
        self.assertEqual(self.told()["table"], self.name)
        self.is_in_order()
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.assertEqual(self.finding()["what"], "no table is adopted")

    def test_a_table_that_was_dropped(self):
        self.sql(f"DROP TABLE {self.name}")
        found = self.broken("the table was dropped")
        self.assertEqual(found["severity"], "warning")
        self.mend(found)
        self.assertEqual(self.finding()["what"], "no table is adopted")

    def test_a_table_that_was_renamed(self):
        """Its rows are forwarded as before."""
        place = f"{self.schema}_moved"
        self.sql(f'CREATE SCHEMA {place}; ALTER TABLE {self.name} SET SCHEMA {place}; ALTER TABLE {place}.shop_outbox RENAME TO "New.Outbox"')
        self.addCleanup(self.drop, place)
        new = f'{place}."New.Outbox"'
        self.sql(INSERT.format(new, "renamed", 2))
        self.assertEqual((self.told()["table"], self.told()["state"]), (new, "forwarding"))
        self.assertEqual(self.problems(), [])
        self.is_in_order()
        for name in self.name, new:
            out = self.succeeds(*self.adopt(table=name)).out
            self.assertIn(f"{new} is adopted: rows are forwarded", out)
            self.assertIn("nothing to do", self.succeeds(*self.adopt("--apply", table=name)).out)
        self.assertEqual(self.keys(), ["forwarded", "renamed"])

    def test_a_table_without_a_mark(self):
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.name = f"{self.schema}.other"
        self.table("id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb")
        self.succeeds(*self.adopt("--backlog", "all", "--apply"))
        self.insert("kept", 1)
        self.sql(f"ALTER TABLE {self.name} DISABLE TRIGGER outbox_adopt")
        self.insert("missed", 2)
        found = self.finding()
        self.assertIn("delete the rows that were forwarded or sent before", found["command"])
        self.sql(f"DELETE FROM {self.name} WHERE key = 'kept'")
        self.mend(found, lambda: self.insert("between", 3))
        self.assertEqual(self.keys(), ["forwarded", "kept", "missed", "between"])

    def test_a_table_without_a_mark_and_an_order(self):
        """Debezium's layout: what is inserted without the trigger can neither be told from the rest nor taken over."""
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.name = f"{self.schema}.other"
        self.table(DEBEZIUM + ", tenant text DEFAULT 'acme'")
        self.succeeds(*self.adopt("--header", "tenant=x-tenant", "--apply"))
        insert = f"INSERT INTO {self.name} VALUES (gen_random_uuid(), 'order', '%s', 'Placed', '{{}}')"
        self.sql(insert % "kept")
        self.sql(f"DROP TRIGGER outbox_adopt ON {self.name}")
        self.sql(insert % "missed")
        found = self.finding()
        self.assertTrue(found["command"].startswith(f"stop what inserts into {self.name}, then: "), found)
        self.assertIn("until they are deleted and inserted again after the command", found["reason"])
        self.mend(found)
        self.is_in_order()
        self.sql(f"BEGIN; CREATE TEMP TABLE missed AS SELECT * FROM {self.name} WHERE aggregateid = 'missed'; "
                 f"DELETE FROM {self.name} WHERE aggregateid = 'missed'; INSERT INTO {self.name} SELECT * FROM missed; COMMIT")
        self.assertEqual(self.keys(), ["forwarded", "kept", "missed"])
        self.assertEqual(self.log("headers")[-1], '{"x-tenant": "acme"}')


class Partitions(Told):
    def setUp(self):
        super().setUp()
        self.sql(f"DROP TABLE {self.name}; CREATE TABLE {self.name} (id bigserial, topic text, key text, type text, payload jsonb, sent boolean, "
                 f"day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); CREATE TABLE {self.name}_1 PARTITION OF {self.name} DEFAULT")
        self.succeeds(*self.adopt("--apply"))

    def test_a_trigger_that_is_disabled_on_a_partition(self):
        self.is_in_order()
        for change, says in ((f"DISABLE TRIGGER outbox_adopt", "is disabled"), ("ENABLE REPLICA TRIGGER outbox_adopt", "(ENABLE REPLICA)")):
            self.sql(f"ALTER TABLE {self.name}_1 {change}")
            row = self.told()
            self.assertEqual(row["state"], "broken")
            self.assertIn(f"{says} on partition {self.name}_1", row["trouble"])
            self.assertIn(f"on partition {self.name}_1", self.finding()["what"])
        self.sql(f"ALTER TABLE {self.name}_1 ENABLE TRIGGER outbox_adopt")
        self.is_in_order()

    def test_partitions_that_come_later(self):
        self.sql(f"CREATE TABLE {self.name}_2 PARTITION OF {self.name} FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') PARTITION BY LIST (day); "
                 f"CREATE TABLE {self.name}_3 PARTITION OF {self.name}_2 DEFAULT")
        self.is_in_order()
        self.sql(f"ALTER TABLE {self.name}_3 DISABLE TRIGGER outbox_adopt")
        self.assertIn(f"on partition {self.name}_3", self.finding()["what"])


class Columns(Told):
    """The trigger's function no longer fits the table."""

    def setUp(self):
        super().setUp()
        self.succeeds(*self.adopt("--header", "created_at=made", "--header", "topic=kind", "--apply"))
        self.insert("before", 1)

    def headers(self):
        """Of the newest event: the names."""
        return sorted(json.loads(self.log("headers")[-1]))

    def insert_fails(self, columns="(topic, key, type, payload)"):
        run = subprocess.run(["psql", self.direct, "-qXc", f"INSERT INTO {self.name} {columns} VALUES ('order', 'x', 'Placed', '{{}}')"],
                             capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0, "the INSERT succeeded")

    def found(self, says):
        found = self.finding()
        self.assertEqual((found["severity"], found["subject"]), ("error", self.name))
        self.assertIn(says, found["what"])
        return found

    def test_a_column_that_was_renamed(self):
        for old in ("payload", "status", "created_at"):
            self.sql(f'ALTER TABLE {self.name} RENAME COLUMN {old} TO "New ""name"')
            columns = '(topic, key, type, "New ""name")' if old == "payload" else "(topic, key, type, payload)"
            self.insert_fails(columns)
            self.mend(self.found(f'its column {old} is now called New "name'))
            self.is_in_order()
        self.insert("after", 2)
        self.assertEqual(self.keys(), ["before", "after"])

    def test_a_column_that_was_dropped(self):
        self.sql(f"ALTER TABLE {self.name} DROP COLUMN created_at")
        self.insert_fails()
        self.assertIn("--apply makes it anew", self.succeeds(*self.adopt()).out)
        found = self.found("its column created_at was dropped")
        self.assertNotIn("--undo", found["command"])
        self.mend(found)
        self.is_in_order()
        self.insert("after", 2)
        self.assertEqual(self.keys(), ["before", "after"])
        self.assertEqual(self.headers(), ["adopted-id", "kind"])
        self.assertEqual(self.succeeds(*self.adopt("--apply", "--json")).json()["changed"], False)

    def test_a_column_that_is_needed_was_dropped(self):
        """Another one takes its place, which is recognised; no row is lost that comes between the commands."""
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN body jsonb; ALTER TABLE {self.name} DROP COLUMN payload")
        insert = f"INSERT INTO {self.name} (topic, key, type, body) VALUES ('order', '%s', 'Placed', '{{}}')"
        self.fails(ERROR, *self.adopt("--apply"), says=("has no column 'payload' any more", "bring the column back"))
        self.mend(self.found("its column payload was dropped"), lambda: self.sql(insert % "between"))
        self.is_in_order()
        self.sql(insert % "after")
        self.assertEqual(self.keys(), ["before", "between", "after"])
        self.assertEqual(self.headers(), ["adopted-id", "kind", "made"])

    def test_the_column_that_says_what_was_sent_was_dropped(self):
        self.sql(f"ALTER TABLE {self.name} DROP COLUMN status")
        self.insert_fails()
        self.mend(self.found("its column status was dropped"))
        self.is_in_order()
        self.insert("after", 2)
        self.assertEqual(self.keys(), ["before", "after"])

    def test_a_type_that_the_function_was_not_made_for(self):
        self.sql(f"ALTER TABLE {self.name} ALTER COLUMN payload TYPE bytea USING convert_to(payload::text, 'UTF8')")
        self.mend(self.found("the type of its column payload was changed from jsonb to bytea"))
        self.is_in_order()
        self.sql(f"INSERT INTO {self.name} (topic, key, type, payload) VALUES ('order', 'after', 'Placed', 'hi')")
        self.assertEqual(self.log("aggregate_id, convert_from(payload, 'UTF8')"), ['before|{"n": 1}', "after|hi"])
        self.assertEqual(self.headers(), ["adopted-id", "kind", "made"])

    def test_a_type_of_debezium_s_layout(self):
        """No row is left out, since the trigger stays."""
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.name = f"{self.schema}.other"
        self.table(DEBEZIUM)
        self.succeeds(*self.adopt("--apply"))
        self.sql(f"ALTER TABLE {self.name} ALTER COLUMN payload TYPE bytea USING convert_to(payload::text, 'UTF8')")
        insert = f"INSERT INTO {self.name} VALUES (gen_random_uuid(), 'order', 'after', 'Placed', 'hi')"
        self.mend(self.found("the type of its column payload was changed from jsonb to bytea"))
        self.is_in_order()
        self.sql(insert)
        self.assertEqual(self.log("aggregate_id, convert_from(payload, 'UTF8')")[-1], "after|hi")

    def kill_while_old_rows_are_copied(self):
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.sql(f"UPDATE {self.name} SET status = 'pending'")
        blocker = self.session()
        blocker.run(f"BEGIN; LOCK TABLE {self.schema}.event IN SHARE MODE")
        adopt = self.spawn(*self.adopt("--header", "created_at=made", "--apply"))
        wait_until(lambda: self.state() == "copying", "the copy")
        adopt.kill()
        adopt.communicate()
        blocker.run("ROLLBACK")
        self.insert("staged", 2)

    def test_a_column_that_is_needed_was_dropped_while_old_rows_are_copied(self):
        self.kill_while_old_rows_are_copied()
        for column, kind in (("payload", "jsonb"), ("id", "bigserial PRIMARY KEY")):
            self.sql(f"ALTER TABLE {self.name} DROP COLUMN {column}")
            for command in ("--apply",), ("--undo", "--apply"):
                self.fails(ERROR, *self.adopt(*command), says=(f"has no column '{column}' any more", "bring the column back"))
            self.assertTrue(any(f'ADD COLUMN "{column}"' in one["command"] for one in self.findings()))
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {column} {kind}")
        self.sql(f"ALTER TABLE {self.name} RENAME COLUMN key TO other")
        self.fails(ERROR, *self.adopt("--undo", "--apply"), says="its column 'key' is now called 'other'")
        self.sql(f"ALTER TABLE {self.name} RENAME COLUMN other TO key")
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.assertEqual(self.finding()["what"], "no table is adopted")

    def test_a_change_while_old_rows_are_copied(self):
        self.kill_while_old_rows_are_copied()
        self.sql(f"ALTER TABLE {self.name} DROP COLUMN created_at")
        self.refusal(INSERT.format(self.name, "x", 3))
        self.succeeds(*self.adopt("--apply"))
        self.is_in_order()
        self.insert("after", 4)
        self.assertEqual(self.keys(), ["before", "before", "staged", "after"])

    def test_changes_that_do_not_matter(self):
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN more int, ALTER COLUMN key TYPE varchar(40), ALTER COLUMN status TYPE varchar(20), "
                 f"ALTER COLUMN payload TYPE json")
        self.is_in_order()
        self.insert("after", 2)
        self.assertEqual(self.keys(), ["before", "after"])


class Sessions(Told):
    """No trigger fires where session_replication_role is replica."""

    def setUp(self):
        super().setUp()
        self.succeeds(*self.adopt("--apply"))
        self.login = f"adoption_{uuid.uuid4().hex[:8]}"
        self.sql(f"CREATE ROLE {self.login} LOGIN; ALTER ROLE {self.login} SET session_replication_role = REPLICA")
        self.addCleanup(self.sql, f"DROP OWNED BY {self.login}; DROP ROLE {self.login}")

    def test_a_login_that_may_insert(self):
        self.is_in_order()
        self.sql(f"GRANT INSERT ON {self.name} TO {self.login}")
        found = self.finding()
        self.assertEqual((found["severity"], found["subject"]), ("warning", self.login))
        self.assertIn(f"of login {self.login} is replica", found["what"])
        self.mend(found)
        self.is_in_order()

    def test_a_trigger_that_always_fires(self):
        self.sql(f"GRANT INSERT ON {self.name} TO {self.login}; ALTER TABLE {self.name} ENABLE ALWAYS TRIGGER outbox_adopt")
        self.is_in_order()


class Unfinished(Told):
    def test_one_that_runs_and_one_that_was_killed(self):
        self.insert("old", 1)
        blocker = self.session()
        blocker.run(f"BEGIN; LOCK TABLE {self.schema}.event IN SHARE MODE")
        adopt = self.spawn(*self.adopt("--apply"))
        sessions = f"SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c ON c.oid = l.relation " \
                   f"WHERE c.relnamespace = '{self.schema}'::regnamespace AND a.application_name = 'outbox adopt'"
        wait_until(lambda: self.state() == "copying" and self.sql(f"{sessions} AND NOT l.granted") != "0\n", "the copy")
        self.insert("new", 2)

        row = self.told()
        self.assertEqual((row["state"], row["waiting"], row["waiting_is_more"], row["trouble"]), ("copying", 1, False, None))
        self.assertEqual(self.problems(), [])
        found = self.finding()
        self.assertEqual(found["severity"], "note")
        self.assertIn("is being adopted (copying): 1 new row waits", found["what"])

        adopt.kill()
        adopt.communicate()
        wait_until(lambda: self.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outbox adopt'") == "0\n",
                   "the end of the session")
        self.assertIn("begun and not finished", self.told()["trouble"])
        [problem] = self.problems()
        self.assertIn(f"outbox adopt {self.name} --apply)", problem)
        self.assertIn("begun and not finished", self.succeeds("status").out)
        found = self.finding()
        self.assertEqual(found["severity"], "error")
        self.assertIn("not finished (copying): 1 new row waits", found["what"])
        blocker.run("ROLLBACK")
        self.mend(found)
        self.is_in_order()
        self.assertEqual(self.told()["staged"], 1)
        self.assertEqual(self.keys(), ["old", "new"])

    def test_many_that_wait(self):
        """As many as are counted, and more."""
        self.succeeds(*self.adopt("--apply"))
        self.sql(f"INSERT INTO {self.schema}.adopt_stage (adoption, id, aggregate_type, aggregate_id, event_type, payload, headers) "
                 f"SELECT a.id, gen_random_uuid(), 'order', '', 'Placed', '', '{{}}' FROM {self.schema}.adoption a, generate_series(1, 10001)")
        row = self.told()
        self.assertEqual((row["waiting"], row["waiting_is_more"]), (10000, True))
        self.assertIn("10,000+", self.succeeds("status").out)


if __name__ == "__main__":
    unittest.main()
