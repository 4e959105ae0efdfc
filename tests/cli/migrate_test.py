#!/usr/bin/env python3
"""outbox migrate; and the errors of all verbs when the schema is missing, too old or too new.
It is killed at four moments by default, and at ten with OUTBOX_TEST_LONG=1."""

import os
import shutil
import sqlite3
import subprocess
import time
import unittest
import uuid

from program import (BINARY, CHECK_FAILED, Case, ERROR, LONG, NOT_NOW, OnPostgres, USAGE, create_database, drop_database_later,
                     in_database)

NOBODY = 65534


class Migrate:
    def test_it_can_be_repeated(self):
        self.assertIn("applied 0001_", self.succeeds(*self.at_store("migrate")).out)
        self.assertIn("nothing to do", self.succeeds(*self.at_store("migrate")).out)
        self.assertEqual(self.succeeds(*self.at_store("migrate", "--json")).json(), {"applied": []})

    def test_status(self):
        self.migrate()
        status = self.succeeds(*self.at_store("migrate", "--status", "--json")).json()
        self.assertTrue(status["current"])
        self.assertEqual(status["version"], status["wanted"])

    def test_two_at_once(self):
        both = [self.spawn(*self.at_store("migrate")) for _ in range(2)]
        for process in both:
            _, error = process.communicate(timeout=60)
            self.assertEqual((process.returncode, error), (0, ""))

    def test_killed_at_any_moment_it_can_be_repeated(self):
        for number in range(0, 10, 1 if LONG else 3):
            process = self.spawn(*self.at_store("migrate"))
            time.sleep(0.01 * number)  # any moment is as good
            process.kill()
            process.wait()
            self.drop_everything()
            process = self.spawn(*self.at_store("migrate"))
            time.sleep(0.004 * number)
            process.kill()
            process.wait()
            self.migrate()
            self.assertTrue(self.succeeds(*self.at_store("migrate", "--status", "--json")).json()["current"])
            self.succeeds(*self.at_store("enqueue", "a", "b", "c", "{}"))

    def test_a_schema_that_is_not_there(self):
        if self.flags:
            status = self.outbox(*self.at_store("migrate", "--status"))
            self.assertEqual(status.code, CHECK_FAILED)
        for verb in (("status",), ("enqueue", "a", "b", "c", "{}"), ("subscription", "list"), ("relay",)):
            self.fails(ERROR, *self.at_store(*verb, "--log-level", "off"), says="outbox migrate")

    def test_a_migration_that_was_edited(self):
        self.migrate()
        self.assertIsNone(self.succeeds(*self.at_store("migrate", "--status", "--json")).json()["edited"])
        self.edit_migrations()
        self.fails(ERROR, *self.at_store("migrate"), says="differs from the one")
        status = self.outbox(*self.at_store("migrate", "--status"))
        self.assertEqual(status.code, CHECK_FAILED, status)
        self.assertRegex(status.out, r"^schema version \d+, but migration 0001_\w+ differs .* \(hint: .+\)\n$")
        status = self.outbox(*self.at_store("migrate", "--status", "--json"))
        self.assertEqual((status.code, status.json()["current"]), (CHECK_FAILED, False), status)
        self.assertIn("0001_", status.json()["edited"])

    def test_sql_is_not_printed_as_json(self):
        self.fails(USAGE, *self.at_store("migrate", "--print", "--json"), says=("--print", "--json"))

    def test_print_connects_to_nothing(self):
        printed = self.succeeds(*self.at_store("migrate", "--print")).out
        self.assertIn("CREATE TABLE", printed)
        if not self.flags:
            self.assertFalse((self.folder / "shop.db").exists())


class MigrateSqlite(Migrate, Case):
    def drop_everything(self):
        for name in ("shop.db", "shop.db-wal", "shop.db-shm"):
            (self.folder / name).unlink(missing_ok=True)

    def edit_migrations(self):
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.execute("UPDATE outbox_migration SET checksum = 'another'")

    def test_print_and_status_exclude_each_other(self):
        self.fails(USAGE, *self.at_store("migrate", "--print", "--status"), says="exclude")

    def test_what_is_printed_is_the_schema(self):
        with sqlite3.connect(":memory:") as database:
            database.executescript(self.succeeds(*self.at_store("migrate", "--print")).out)
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        self.assertIn("outbox_event", tables)

    def test_what_is_printed_makes_a_store(self):
        printed = self.succeeds(*self.at_store("migrate", "--print")).out
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.executescript(printed)
        self.assertTrue(self.succeeds(*self.at_store("migrate", "--status", "--json")).json()["current"])
        self.succeeds(*self.at_store("status"))
        self.succeeds(*self.at_store("enqueue", "a", "b", "c", "{}"))
        self.assertEqual(self.succeeds(*self.at_store("migrate", "--json")).json(), {"applied": []})

    def test_a_schema_that_is_too_new(self):
        self.migrate()
        with sqlite3.connect(self.folder / "shop.db") as database:
            columns = [row[1] for row in database.execute("PRAGMA table_info(outbox_migration)")]
            values = ", ".join("99" if column == "version" else column for column in columns)
            database.execute(f"INSERT INTO outbox_migration SELECT {values} FROM outbox_migration LIMIT 1")
        for verb in (("status",), ("enqueue", "a", "b", "c", "{}"), ("migrate",), ("relay",)):
            self.fails(ERROR, *self.at_store(*verb, "--log-level", "off"), says=("99", "newer outbox"))
        status = self.outbox(*self.at_store("migrate", "--status"))
        self.assertEqual(status.code, CHECK_FAILED, status)
        self.assertIn("newer outbox", status.out)

    def test_a_missing_file_is_not_made_by_looking(self):
        self.fails(ERROR, *self.at_store("status"), says=("does not exist", "outbox migrate"))
        self.assertFalse((self.folder / "shop.db").exists())

    def test_a_directory_is_no_file(self):
        for verb in ("status", "migrate"):
            self.fails(ERROR, verb, "--store", f"sqlite:{self.folder}", says=("is a directory", "sqlite:"))

    def test_a_missing_directory(self):
        self.fails(ERROR, "migrate", "--store", "sqlite:no/such/shop.db", says="no/such")

    def test_something_that_is_no_database(self):
        self.write("shop.db", "this is not a database, only a text that is long enough to look like a header" * 20)
        for verb in ("status", "migrate"):
            self.fails(ERROR, *self.at_store(verb), says=("not a database", "shop.db"))

    def refused_as_nobody(self, *verb):
        """Root may write everywhere: as root, run the program as another user."""
        command, more = [BINARY], {}
        if os.geteuid() == 0:
            more = {"user": NOBODY, "group": NOBODY}
            shutil.copy(BINARY, self.folder / "program")
            command = [str(self.folder / "program")]
        run = subprocess.run([*command, *verb, "--store", f"sqlite:{self.folder / 'shop.db'}"], capture_output=True,
                             text=True, check=False, timeout=60, cwd="/", env=self.environment, **more)
        self.assertEqual(run.returncode, ERROR, run)
        self.assertRegex(run.stderr, r"^outbox: .+ \(hint: .+\)\n$")
        self.assertIn(str(self.folder), run.stderr)

    def test_a_read_only_file(self):
        self.migrate()
        (self.folder / "shop.db").chmod(0o444)
        self.folder.chmod(0o777)
        self.refused_as_nobody("enqueue", "a", "b", "c", "{}")

    def test_a_read_only_directory(self):
        self.migrate()
        (self.folder / "shop.db").chmod(0o666)
        shutil.copy(BINARY, self.folder / "program")
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        for verb in (("enqueue", "a", "b", "c", "{}"), ("migrate",)):
            self.refused_as_nobody(*verb)


class MigratePostgres(OnPostgres, Migrate, Case):
    copies = False

    def drop_everything(self):
        # A session of the killed one may still be at work.
        self.sql(f"""SELECT pg_advisory_lock(hashtextextended('outbox:migrate:{self.flags[1]}', 0));
                     DROP SCHEMA IF EXISTS {self.flags[1]} CASCADE""")

    def test_missing_rights(self):
        login = self.flags[1] + "_login"
        self.sql(f"CREATE ROLE {login} LOGIN")
        self.addCleanup(self.sql, f"DROP ROLE {login}")
        store = self.direct.replace("//postgres@", f"//{login}@")
        self.fails(ERROR, "migrate", "--store", store, *self.flags, says="permission denied")
        self.assertIn("no schema yet", self.outbox(*self.at_store("migrate", "--status")).out)
        # One that may only deliver cannot change the schema either.
        self.migrate()
        self.sql(f"GRANT outbox_relay TO {login}")
        self.sql(f"DELETE FROM {self.flags[1]}.migration WHERE version = (SELECT max(version) FROM {self.flags[1]}.migration)")
        self.fails(ERROR, "migrate", "--store", store, *self.flags, says="permission denied")
        self.fails(ERROR, "status", "--store", store, *self.flags, says="run: outbox migrate")

    def edit_migrations(self):
        self.sql(f"UPDATE {self.flags[1]}.migration SET checksum = 'another'")

    def test_what_to_run_names_the_schema(self):
        self.fails(ERROR, *self.at_store("status"), says=f"outbox migrate --schema {self.flags[1]})")

    def test_an_unreachable_server(self):
        for verb in (("status",), ("migrate",), ("relay",), ("enqueue", "a", "b", "c", "{}")):
            self.fails(NOT_NOW, *verb, "--store", "postgresql://nobody:hush@127.0.0.1:1/none", "--log-level", "off",
                       says="127.0.0.1")

    def test_no_statement_is_compiled(self):
        """The look at what the schema consists of seems costly to the planner: compiling it took 12 s in a database of 6,000
        tables, and running it 0.2 s."""
        name = "cli_" + uuid.uuid4().hex[:12]
        create_database(self.server, name)
        self.addCleanup(drop_database_later, self.server, name)
        store = in_database(self.server, name)

        def sql(statement):
            return subprocess.run(["psql", store, "-qXAtc", statement], check=True, capture_output=True, text=True).stdout

        sql(f"ALTER DATABASE {name} SET jit = on")
        sql("CREATE TABLE public.seen (jit text)")
        sql("""CREATE FUNCTION public.see() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
               $$ BEGIN INSERT INTO public.seen VALUES (current_setting('jit')); END $$""")
        sql("CREATE EVENT TRIGGER see ON ddl_command_end EXECUTE FUNCTION public.see()")
        self.succeeds("migrate", "--store", store)
        self.assertEqual(sql("SELECT jit FROM public.seen GROUP BY 1"), "off\n")

    def test_a_database_that_does_not_exist(self):
        self.fails(ERROR, "status", "--store", self.store.rsplit("/", 1)[0] + "/no_such_database", says="no_such_database")

    def test_a_schema_that_is_too_new(self):
        self.migrate()
        self.sql(f"INSERT INTO {self.flags[1]}.migration (version, name, checksum) VALUES (99, 'later', '')")
        for verb in (("status",), ("enqueue", "a", "b", "c", "{}"), ("migrate",), ("relay",)):
            self.fails(ERROR, *self.at_store(*verb, "--log-level", "off"), says="99")

    def test_a_name_that_is_no_schema(self):
        self.fails(USAGE, "status", "--store", self.store, "--schema", 'x"; DROP', says="schema")

    def test_the_password_is_not_in_the_error(self):
        result = self.outbox("status", "--store", "postgresql://nobody:hush@127.0.0.1:1/none")
        self.assertNotIn("hush", result.err)


if __name__ == "__main__":
    unittest.main()
