#!/usr/bin/env python3
"""outbox adopt: which tables it takes, what it refuses, and what the trigger does with a statement."""

import json
import unittest
import uuid

from adopting import Adopting, DEBEZIUM, HAND
from program import CHECK_FAILED, Case, ERROR, USAGE


class AdoptSqlite(Case):
    def test_it_says_that_it_is_postgresql_only(self):
        self.migrate()
        self.fails(ERROR, *self.at_store("adopt", "outbox"), says=("PostgreSQL only", "outbox_new_event"))


class Shapes(Adopting):
    def plan(self, *arguments):
        return self.succeeds(*self.adopt(*arguments, "--json")).json()

    def test_a_plan_changes_nothing(self):
        self.table(HAND)
        self.insert("1", 1)
        text = self.succeeds(*self.adopt()).out
        for part in ("pending rows to take over: 1", "CREATE TRIGGER outbox_adopt AFTER INSERT", "nothing was changed (--apply"):
            self.assertIn(part, text)
        plan = self.plan()
        self.assertEqual((plan["table"], plan["state"], plan["pending"], plan["refused"]), (self.name, None, 1, 0))
        self.assertEqual(self.sql("SELECT count(*) FROM pg_trigger WHERE tgname = 'outbox_adopt' AND tgrelid = "
                                  f"'{self.name}'::regclass"), "0\n")
        self.assertEqual(self.succeeds(*self.adopt(table="")).out, "no table is adopted\n")

    def test_debezium_takes_nothing_over_unless_told(self):
        self.table(DEBEZIUM)
        self.sql(f"INSERT INTO {self.name} VALUES (gen_random_uuid(), 'order', '1', 'Placed', '{{\"n\": 1}}')")
        plan = self.plan()
        self.assertEqual((plan["layout"], plan["pending"]), ("Debezium's", 0))
        self.fails(ERROR, *self.adopt("--backlog", "all"), says=("order", "--column order="))
        done = self.succeeds(*self.adopt("--apply", "--json")).json()
        self.assertEqual((done["state"], done["taken_over"]), ("forwarding", 0))
        self.assertRegex(done["cut_lsn"], "^[0-9A-F]+/[0-9A-F]+$")
        one = self.sql(f"INSERT INTO {self.name} VALUES (gen_random_uuid(), 'order', '1', 'Placed', '{{\"n\": 2}}') RETURNING id").strip()
        self.assertEqual(self.log("id, aggregate_type, aggregate_id, event_type, convert_from(payload, 'UTF8'), content_type"),
                         [f"{one}|order|1|Placed|{{\"n\": 2}}|application/json"])

    def test_ways_to_say_what_was_sent(self):
        for mark, sent, pending in (("processed boolean", "true", "false"), ("is_sent boolean NOT NULL DEFAULT false", "true", "DEFAULT"),
                                    ("published_at timestamptz", "now()", "NULL"), ("\"sentAt\" timestamp", "now()", "NULL"),
                                    ("status text DEFAULT 'pending'", "'sent'", "DEFAULT"), ("state varchar(20)", "'DONE'", "'NEW'")):
            with self.subTest(mark):
                self.table(f"id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb, created_at timestamptz DEFAULT now(), {mark}")
                for value in (sent, pending):
                    self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', '1', 'Placed', '{{}}', DEFAULT, {value})")
                before = len(self.log())
                self.assertEqual(self.succeeds(*self.adopt("--apply", "--json")).json()["taken_over"], 1)
                for value in (sent, pending):
                    self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', '1', 'Placed', '{{}}', DEFAULT, {value})")
                self.assertEqual(len(self.log()) - before, 2)
                done = self.succeeds(*self.adopt("--undo", "--apply", "--json")).json()
                self.assertEqual((done["state"], done["marked"]), ("ended", 2))
                self.assertEqual(self.plan()["pending"], 0)

    def test_an_enum_and_a_number(self):
        self.sql(f"CREATE TYPE {self.schema}_s AS ENUM ('waiting', 'done')")
        self.addCleanup(self.sql, f"DROP TYPE IF EXISTS {self.schema}_s CASCADE")
        for kind, pending, sent, options in ((f"{self.schema}_s", "'waiting'", "'done'", ()),
                                             ("smallint", "0", "1", ("--pending-values", "0", "--sent-values", "1"))):
            self.table(f"id bigserial PRIMARY KEY, topic text, key text, type text, payload text, status {kind}")
            self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', '1', 'Placed', '{{}}', {pending}), (DEFAULT, 'order', '1', 'Placed', '{{}}', {sent})")
            self.assertEqual(self.succeeds(*self.adopt("--apply", "--json", *options)).json()["taken_over"], 1)
            self.succeeds(*self.adopt("--undo", "--apply"))
            self.assertEqual(self.sql(f"SELECT count(*) FROM {self.name} WHERE status = {sent}"), "2\n")

    def test_words_with_letters_of_other_languages(self):
        """The server has small letters for them, in most locales."""
        if self.sql("SELECT lower('Ü')") != "ü\n":
            self.skipTest("the locale of this database has no small letter for Ü")
        self.table(HAND)
        for status in ("ÜBERTRAGEN", "OFFEN"):
            self.sql(f"INSERT INTO {self.name} (topic, key, type, payload, status) VALUES ('order', '{status}', 'Placed', '{{}}', '{status}')")
        self.succeeds(*self.adopt("--sent-values", "ÜBERTRAGEN", "--pending-values", "OFFEN", "--apply"))
        self.assertEqual(self.log("aggregate_id"), ["OFFEN"])
        self.assertEqual(self.succeeds(*self.adopt("--undo", "--apply", "--json")).json()["marked"], 1)

    def test_what_was_left_out_is_not_marked(self):
        self.table(HAND)
        self.insert("1", 1)
        self.succeeds(*self.adopt("--backlog", "none", "--apply"))
        self.insert("2", 2)
        self.assertEqual(self.log("aggregate_id"), ["2"])
        self.assertIn("0 rows were marked as sent\nnothing tells rows that were forwarded from those that were left out", self.succeeds(*self.adopt("--undo", "--apply")).out)

    def test_an_unknown_word_is_not_guessed(self):
        self.table(HAND)
        self.insert("1", 1)
        self.sql(f"UPDATE {self.name} SET status = 'failed'")
        self.fails(ERROR, *self.adopt("--apply"), says=("'failed' (1 row)", "--sent-values", "--pending-values"))
        self.succeeds(*self.adopt("--apply", "--pending-values", "failed"))
        self.assertEqual(len(self.log()), 1)

    def test_ids_that_are_no_uuids(self):
        self.table("id varchar(40) PRIMARY KEY, topic text, key text, type text, payload text, created_at timestamptz DEFAULT now(), sent boolean")
        one = str(uuid.uuid4())
        for row in (one, "ab-17"):
            self.sql(f"INSERT INTO {self.name} VALUES ('{row}', 'order', '1', 'Placed', '{{}}')")
        self.succeeds(*self.adopt("--apply"))
        self.sql(f"INSERT INTO {self.name} VALUES ('ab-18', 'order', '1', 'Placed', '{{}}')")
        rows = self.log("id, headers")
        self.assertEqual(rows[0], f"{one}|{{}}")
        for row, name in ((rows[1], "ab-17"), (rows[2], "ab-18")):
            event, headers = row.split("|")
            self.assertEqual(json.loads(headers), {"adopted-id": name})
            self.assertEqual(uuid.UUID(event).version, 8)
        self.assertNotEqual(rows[1].split("|")[0], rows[2].split("|")[0])

    def test_payloads_and_headers(self):
        for kind, value, body, medium in (("jsonb", "'{\"a\":1}'", '{"a": 1}', "application/json"), ("json", "'{\"a\":1}'", '{"a":1}', "application/json"),
                                          ("text", "'{\"a\":1}'", '{"a":1}', "application/json"), ("bytea", "'\\x6869'", "hi", "application/octet-stream"),
                                          ("jsonb", "NULL", "", "")):
            with self.subTest(kind):
                self.table(f"id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype text, aggregateid int, type text, payload {kind}, "
                           "headers jsonb, tenant text, unused int")
                options = ("--header", "tenant=x-tenant", "--apply")
                self.assertEqual(self.succeeds(*self.adopt("--json")).json()["unused"], ["tenant", "unused"])
                self.succeeds(*self.adopt(*options))
                self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', 7, 'Placed', {value}, "
                         "'{\"a\": \"b\", \"n\": 5, \"none\": null}', 'acme')")
                self.assertEqual(self.log("aggregate_id, convert_from(payload, 'UTF8'), content_type, headers")[-1],
                                 f'7|{body}|{medium}|{{"a": "b", "n": "5", "x-tenant": "acme"}}')
                self.succeeds(*self.adopt("--undo", "--apply"))

    def test_headers_that_are_no_object(self):
        """SQLAlchemy writes None as the null of JSON."""
        table = "id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb, {} {}, tenant text, sent boolean"
        insert = "INSERT INTO {0} (topic, key, type, payload, {1}, tenant) VALUES ('order', '1', 'Placed', '{{}}', '{2}', 'acme')"
        for column, kind in (("headers", "json"), ("metadata", "jsonb")):
            with self.subTest(kind):
                self.table(table.format(column, kind))
                for value in ("null", "[1]", "5"):
                    self.sql(insert.format(self.name, column, value))
                result = self.outbox(*self.adopt("--header", "tenant", "--apply"))
                self.assertEqual(result.code, CHECK_FAILED, result)
                for part in ("2 of 3 pending rows are refused", "row 2: headers: is not a JSON object", "row 3: headers: is not a JSON object"):
                    self.assertIn(part, result.err)
                self.sql(f"DELETE FROM {self.name} WHERE id > 1")
                self.succeeds(*self.adopt("--header", "tenant", "--apply"))
                self.sql(insert.format(self.name, column, "null"))
                self.assertEqual(self.log("headers")[-2:], ['{"tenant": "acme", "adopted-id": "1"}', '{"tenant": "acme", "adopted-id": "4"}'])
                for value in ("[]", '"a"'):
                    self.assertIn("headers: is not a JSON object", self.refusal(insert.format(self.name, column, value)))
                self.succeeds(*self.adopt("--undo", "--apply"))

    def test_rows_that_the_log_refuses_are_listed_before_anything_is_changed(self):
        self.table(HAND)
        self.insert("1", 1)
        self.sql(f"INSERT INTO {self.name} (topic, key, type, payload) VALUES ('order', '1', '', '{{}}'), ('order', '1', 'Placed', jsonb_build_object('x', repeat('y', 1100000)))")
        for arguments in ((), ("--apply",)):
            result = self.outbox(*self.adopt(*arguments))
            self.assertEqual(result.code, CHECK_FAILED, result)
            for part in ("2 of 3 pending rows are refused", "row 2: event_type: is empty", "row 3: payload: is 1100"):
                self.assertIn(part, result.err)
        self.assertEqual(self.sql(f"SELECT count(*) FROM {self.schema}.adoption"), "0\n")

    def test_text_that_is_no_json(self):
        self.table("id bigserial PRIMARY KEY, topic text, key text, type text, payload text, sent boolean")
        self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', '1', 'Placed', 'hello')")
        self.assertIn("payload: is not JSON", self.outbox(*self.adopt()).err)
        self.succeeds(*self.adopt("--apply", "--value", "content_type=text/plain"))
        self.assertEqual(self.log("convert_from(payload, 'UTF8'), content_type"), ["hello|text/plain"])

    def test_json_with_half_of_a_surrogate_pair(self):
        self.table("id bigserial PRIMARY KEY, topic text, key text, type text, payload json, sent boolean")
        self.sql(f"INSERT INTO {self.name} VALUES (DEFAULT, 'order', '1', 'Placed', '\"\\ud83d\"')")
        self.assertIn("row 1: payload: is not JSON", self.outbox(*self.adopt()).err)
        self.sql(f"UPDATE {self.name} SET payload = '\"\\ud83d\\ude00\"'")
        self.succeeds(*self.adopt("--apply"))
        self.assertEqual(self.log("convert_from(payload, 'UTF8')"), ['"\\ud83d\\ude00"'])

    def test_refusals(self):
        for columns, says in (("id uuid, topic text, key text, type text, payload jsonb, sent boolean", ("no column has a unique id", "--column id=")),
                              ("id uuid PRIMARY KEY, topic text, key text, type text, sent boolean", ("as payload", "--column payload=")),
                              ("id uuid PRIMARY KEY, topic text, type text, payload jsonb, sent boolean", ("as aggregate_id", "--column aggregate_id=")),
                              ("id uuid PRIMARY KEY, key text, type text, payload jsonb, sent boolean", ("as aggregate_type", "--value aggregate_type=")),
                              ("id uuid PRIMARY KEY, topic text, key text, type text, payload jsonb", ("which rows were sent", "--backlog all")),
                              ("id uuid PRIMARY KEY, topic text, key text, type text, payload jsonb, sent boolean", ("the order of its rows", "--column order="))):
            self.table(columns)
            self.fails(ERROR, *self.adopt("--apply"), says=says)
        self.fails(ERROR, *self.adopt("--column", "id=nope"), says=("has no column 'nope'", "it has id, topic"))
        self.fails(ERROR, *self.adopt("--column", "ide=id"), says=("no such field", "aggregate_type"))
        self.fails(ERROR, *self.adopt("--column", "sent=payload"), says="does not say what was sent")
        self.fails(ERROR, *self.adopt(table="no_such_table"), says=("there is no table 'no_such_table'", "double quotes"))
        self.fails(ERROR, *self.adopt("--undo"), says="is not adopted")
        for wrong in (("--column", "id"), ("--backlog", "some"), ("--lock-wait", "1ms"), ("--column", "id=a", "--column", "id=b")):
            self.fails(USAGE, *self.adopt(*wrong))
        self.fails(USAGE, *self.adopt("--apply", table=""), says="no table")
        self.sql(f"CREATE VIEW {self.schema}.v AS SELECT 1 AS id")
        self.fails(ERROR, *self.adopt(table=f"{self.schema}.v"), says="is no table")

    GENERATED = ("id bigserial PRIMARY KEY, topic text, doc jsonb, key text GENERATED ALWAYS AS (doc ->> 'key') STORED, type text, "
                 "payload jsonb GENERATED ALWAYS AS (doc -> 'body') {}, sent_at timestamptz")

    def test_generated_columns(self):
        self.table(self.GENERATED.format("STORED") + ", sent boolean GENERATED ALWAYS AS (sent_at IS NOT NULL) STORED")
        self.fails(ERROR, *self.adopt("--column", "sent=sent"), says=("column 'sent' is generated", "--column sent="))
        self.succeeds(*self.adopt("--apply"))
        self.sql(f"INSERT INTO {self.name} (topic, doc, type) VALUES ('order', '{{\"key\": \"7\", \"body\": {{}}}}', 'Placed')")
        self.assertEqual(self.log("aggregate_id, convert_from(payload, 'UTF8')"), ["7|{}"])

    def test_columns_that_are_generated_when_they_are_read(self):
        if int(self.sql("SHOW server_version_num")) < 180000:
            self.skipTest("this server has no virtual generated columns: they come with PostgreSQL 18")
        self.table(self.GENERATED.format("VIRTUAL"))
        self.fails(ERROR, *self.adopt(), says=("column 'payload' is generated when it is read", "STORED"))

    def test_odd_names_and_values_are_quoted(self):
        self.name = f'{self.schema}."Out{{schema}}box"'
        self.sql(f"""CREATE TABLE {self.name} ("Id" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "aggregate Type" text, "it's" text, "a""b" text,
                     payload jsonb, created_at timestamptz DEFAULT clock_timestamp(), status text DEFAULT 'to $outbox_adopt$ do')""")
        self.sql(f"""INSERT INTO {self.name} ("aggregate Type", "it's", "a""b", payload) VALUES ('o', '1', 'x', '{{}}')""")
        self.succeeds(*self.adopt("--column", "aggregate_type=aggregate Type", "--column", "aggregate_id=it's", "--column", 'event_type=a"b',
                                  "--pending-values", "to $outbox_adopt$ do", "--sent-values", "it''s {name} \\ done,x", "--apply"))
        self.sql(f"""INSERT INTO {self.name} ("aggregate Type", "it's", "a""b", payload) VALUES ('o', '2', 'x', '{{}}')""")
        self.assertEqual(self.log("aggregate_id"), ["1", "2"])

    def test_types_whose_casts_are_anybody_s(self):
        """They would run with the rights of the owner of the log."""
        kind = f"{self.schema}.kind"
        self.sql(f"CREATE TYPE {kind} AS (a text); CREATE TYPE {kind}_enum AS ENUM ('1', '2'); CREATE DOMAIN {kind}_text AS text; "
                 f"CREATE DOMAIN {kind}_short AS {kind}_text CHECK (length(value) < 9); CREATE DOMAIN {kind}_row AS {kind}")

        def table(type):
            self.table(f"id bigserial PRIMARY KEY, topic text, key {type}, type text, payload jsonb, sent boolean")
        for type in ("", "_row"):
            table(kind + type)
            self.fails(ERROR, *self.adopt(), says=("column 'key' has the type", "rights of the owner of the log"))
        for type in (kind + "_enum", kind + "_text", kind + "_short", "varchar(9)", "uuid", "int[]", "citext"):
            with self.subTest(type):
                if type == "citext":
                    if self.sql("SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'") == "0\n":
                        self.skipTest("this server has no extension citext")
                    self.sql(f"CREATE EXTENSION IF NOT EXISTS citext SCHEMA {self.schema}")
                    type = self.sql("SELECT t.oid::regtype FROM pg_type t WHERE typname = 'citext'").strip()
                table(type)
                self.succeeds(*self.adopt())
        table(kind + "_enum")
        self.sql(f"CREATE FUNCTION {self.schema}.as_text({kind}_enum) RETURNS text LANGUAGE sql AS 'SELECT current_user::text'; "
                 f"CREATE CAST ({kind}_enum AS text) WITH FUNCTION {self.schema}.as_text({kind}_enum)")
        self.fails(ERROR, *self.adopt(), says="rights of the owner of the log")

    def test_rights(self):
        self.table(HAND)
        login = f"{self.schema}_login"
        self.sql(f"CREATE ROLE {login} LOGIN; GRANT USAGE ON SCHEMA {self.schema} TO {login}; GRANT SELECT ON ALL TABLES IN SCHEMA {self.schema} TO {login}")
        self.addCleanup(self.sql, f"DROP OWNED BY {login}; DROP ROLE {login}")
        store = self.direct.replace("postgres@", f"{login}@")
        command = ("adopt", self.name, "--store", store, *self.flags)
        self.fails(ERROR, *command, says=("put a trigger on it", "GRANT SELECT, TRIGGER"))
        self.sql(f"GRANT TRIGGER ON {self.name} TO {login}")
        self.fails(ERROR, *command, says=("may not make functions", "GRANT outbox_owner"))
        self.sql(f"GRANT outbox_owner TO {login}")
        self.succeeds(*command, "--apply")
        self.fails(ERROR, *command, "--undo", "--apply", says="only the owner")
        self.insert("1", 1)
        self.assertEqual(len(self.log()), 1)


class Statements(Adopting):
    """What the trigger makes of each kind of statement. The table has a unique column beside its id."""

    def setUp(self):
        super().setUp()
        self.table(HAND + ", mine int UNIQUE")
        self.succeeds(*self.adopt("--apply"))

    def forwarded(self, statement):
        before = len(self.log())
        self.sql(statement)
        return len(self.log()) - before

    def into(self, rows):
        return f"INSERT INTO {self.name} (topic, key, type, payload, mine) VALUES {rows}"

    def test_statements(self):
        row = "('order', '1', 'Placed', '{}', %s)"
        for expected, statement in (
                (1, self.into(row % 1)),
                (0, f"UPDATE {self.name} SET status = 'pending', payload = '{{\"n\": 2}}'"),
                (0, self.into(row % 1) + " ON CONFLICT (mine) DO NOTHING"),
                (1, self.into(row % 1 + "," + row % 2) + " ON CONFLICT (mine) DO UPDATE SET payload = excluded.payload"),
                (0, f"BEGIN; {self.into(row % 3)}; ROLLBACK"),
                (1, f"BEGIN; SAVEPOINT a; {self.into(row % 3)}; ROLLBACK TO a; {self.into(row % 3)}; COMMIT"),
                (2, f"BEGIN; {self.into(row % 4 + ',' + row % 5)}; DELETE FROM {self.name} WHERE mine IN (4, 5); COMMIT"),
                (0, f"INSERT INTO {self.name} (topic, key, type, payload, status) VALUES ('order', '1', 'Placed', '{{}}', 'sent')"),
                (1, f"INSERT INTO {self.name} (topic, key, type, payload, status) VALUES ('order', '1', 'Placed', '{{}}', NULL)"),
                (3, f"COPY {self.name} (topic, key, type, payload) FROM PROGRAM 'printf \"order\\t1\\tPlaced\\t{{}}\\n%.0s\" 1 2 3'"),
                (0, f"DELETE FROM {self.name}")):
            with self.subTest(statement):
                self.assertEqual(self.forwarded(statement), expected)
        self.assertEqual(self.sql(self.into(row % 9) + " RETURNING mine"), "9\n")

    def test_many_rows_keep_their_order(self):
        self.sql(f"INSERT INTO {self.name} (topic, key, type, payload) SELECT 'order', (i % 3)::text, 'Placed', jsonb_build_object('n', i) "
                 "FROM generate_series(1, 3000) i")
        self.assertEqual([int(n) for n in self.log("convert_from(payload, 'UTF8')::json ->> 'n'")], list(range(1, 3001)))

    def test_a_row_that_the_log_refuses_fails_its_statement(self):
        self.assertIn("event_type: is blank", self.refusal(self.into("('order', '1', ' ', '{}', 1)")))
        self.assertEqual((len(self.log()), self.sql(f"SELECT count(*) FROM {self.name}")), (0, "0\n"))

    def test_an_application_needs_no_right_on_the_log(self):
        app = f"{self.schema}_app"
        self.sql(f"CREATE ROLE {app}; GRANT USAGE ON SCHEMA {self.schema} TO {app}; GRANT INSERT ON {self.name} TO {app}; "
                 f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {self.schema} TO {app}")
        self.addCleanup(self.sql, f"DROP OWNED BY {app}; DROP ROLE {app}")
        self.sql(f"CREATE FUNCTION {self.schema}.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''sent'''")
        self.sql(f"SET ROLE {app}; SET search_path = {self.schema}, pg_catalog; " + self.into("('order', '1', 'Placed', '{}', 4)"))
        self.assertEqual(len(self.log()), 1)

    def test_again_is_nothing_to_do(self):
        done = self.succeeds(*self.adopt("--apply", "--json")).json()
        self.assertEqual((done["state"], done["changed"]), ("forwarding", False))
        self.assertIn("is adopted", self.succeeds(*self.adopt()).out)
        self.assertEqual(self.succeeds(*self.adopt("--json", table="")).json()["tables"][0]["state"], "forwarding")
        self.fails(ERROR, *self.adopt("--apply", "--header", "status"), says="with other options")

    def test_a_trigger_that_is_gone_is_noticed(self):
        self.sql(f"ALTER TABLE {self.name} DISABLE TRIGGER outbox_adopt")
        for arguments in ((), ("--apply",)):
            self.fails(CHECK_FAILED, *self.adopt(*arguments), says="its trigger outbox_adopt is disabled: rows inserted since then are in the table only")
        self.sql(f"DROP TABLE {self.name}")
        self.assertEqual(self.outbox(*self.adopt("--json", table="")).json()["tables"][0]["state"], "broken")
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.fails(ERROR, *self.adopt(), says="there is no table")

    def test_undo_shows_first(self):
        self.assertIn("--apply removes the trigger", self.succeeds(*self.adopt("--undo")).out)
        self.assertEqual(self.forwarded(self.into("('order', '1', 'Placed', '{}', 1)")), 1)


class Partitions(Adopting):
    def test_rows_put_into_a_partition_itself(self):
        self.sql(f"CREATE TABLE {self.name} (id bigserial, topic text, key text, type text, payload jsonb, sent boolean, day date, "
                 f"PRIMARY KEY (id, day)) PARTITION BY RANGE (day); CREATE TABLE {self.name}_1 PARTITION OF {self.name} DEFAULT")
        row = "(topic, key, type, payload, day) VALUES ('order', '1', 'Placed', '{}', now()), ('order', '1', 'Placed', '{}', now())"
        self.sql(f"INSERT INTO {self.name} {row}")
        self.fails(ERROR, *self.adopt(table=f"{self.name}_1"), says="is a partition")
        self.succeeds(*self.adopt("--apply"))
        self.sql(f"INSERT INTO {self.name} {row}; INSERT INTO {self.name}_1 {row}")
        self.assertEqual(len(self.log()), 6)
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.sql(f"INSERT INTO {self.name}_1 {row}")
        self.assertEqual(len(self.log()), 6)

    def parts(self, id):
        self.sql(f"DROP TABLE IF EXISTS {self.name}; CREATE TABLE {self.name} (id {id}, topic text, key text, type text, payload jsonb, sent boolean, "
                 f"made bigserial, region text, PRIMARY KEY (region, id)) PARTITION BY LIST (region); "
                 f"CREATE TABLE {self.name}_1 PARTITION OF {self.name} FOR VALUES IN ('eu'); CREATE TABLE {self.name}_2 PARTITION OF {self.name} DEFAULT")

    def test_an_id_that_is_in_two_partitions(self):
        """It would be one event for consumers. A uuid is not looked at."""
        self.parts("bigint")
        for region in ("eu", "us"):
            self.sql(f"INSERT INTO {self.name} VALUES (7, 'order', '1', 'Placed', '{{}}', true, DEFAULT, '{region}')")
        for arguments in ((), ("--apply",)):
            self.fails(ERROR, *self.adopt(*arguments), says=("several rows have the id '7'", "unique over all partitions"))
        self.sql(f"UPDATE {self.name} SET id = 8 WHERE region = 'us'")
        self.succeeds(*self.adopt("--apply"))
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.parts("uuid")
        one = uuid.uuid4()
        for region in ("eu", "us"):
            self.sql(f"INSERT INTO {self.name} VALUES ('{one}', 'order', '1', 'Placed', '{{}}', true, DEFAULT, '{region}')")
        self.succeeds(*self.adopt("--column", "order=made"))

    def test_a_row_that_moves_to_another_partition(self):
        """The server runs it as an INSERT: it is forwarded again, unless it is marked as sent, or no trigger fires in the session."""
        self.parts("bigserial")
        self.succeeds(*self.adopt("--apply"))
        move = f"UPDATE {self.name} SET region = '%s'"
        self.sql(f"INSERT INTO {self.name} (topic, key, type, payload, region) VALUES ('order', '1', 'Placed', '{{}}', 'eu')")
        self.sql(move % "us")
        self.assertEqual(len(self.log()), 2)
        self.assertEqual(len(set(self.log())), 1)
        self.sql("BEGIN; SET LOCAL session_replication_role = replica; " + move % "eu" + "; COMMIT")
        self.assertEqual(len(self.log()), 2)
        self.sql(f"UPDATE {self.name} SET sent = true; " + move % "us")
        self.assertEqual(len(self.log()), 2)


if __name__ == "__main__":
    unittest.main()
