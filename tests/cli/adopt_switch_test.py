#!/usr/bin/env python3
"""outbox adopt beside writers: nothing lost, nothing twice, each key in order, whatever is in flight and whoever is killed."""

import json
import subprocess
import unittest

from adopting import Adopting, HAND
from program import ERROR, NOT_NOW, OK, signal, wait_until

WRITER = """
DO $$ DECLARE
  one     text;
  number  int;
BEGIN
  FOR i IN 1..1000000 LOOP
    EXIT WHEN (SELECT stop FROM {schema}.control);
    one := floor(random() * 20)::int::text;
    UPDATE {schema}.counter SET n = n + 1 WHERE key = one RETURNING n INTO number;
    INSERT INTO {table} (topic, key, type, payload) VALUES ('order', one, 'Placed', jsonb_build_object('n', number));
    IF random() < 0.3 THEN PERFORM pg_sleep(random() * 0.004); END IF;
    IF random() < 0.2 THEN
      ROLLBACK;
    ELSE
      IF random() < 0.2 THEN DELETE FROM {table} WHERE key = one AND payload = jsonb_build_object('n', number) AND {forwarded}; END IF;
      COMMIT;
    END IF;
  END LOOP;
END $$
"""


class Switch(Adopting):
    """Each key counts the events that its committed transactions wrote: then its events are 1, 2, 3 ... in this order."""

    def setUp(self):
        super().setUp()
        self.table(HAND)
        self.sql(f"CREATE TABLE {self.schema}.control AS SELECT false AS stop; "
                 f"CREATE TABLE {self.schema}.counter AS SELECT i::text AS key, 0 AS n FROM generate_series(0, 19) i; "
                 f"ALTER TABLE {self.schema}.counter ADD PRIMARY KEY (key)")
        self.config('[subscription.all]\nsink = "file"\nfile.path = "all.jsonl"\n')
        self.succeeds("subscription", "apply")

    def one(self, key="0"):
        """A statement that writes the next event of a key."""
        return (f"WITH c AS (UPDATE {self.schema}.counter SET n = n + 1 WHERE key = '{key}' RETURNING n) "
                f"INSERT INTO {self.name} (topic, key, type, payload) SELECT 'order', '{key}', 'Placed', jsonb_build_object('n', n) FROM c")

    def backlog(self, rows):
        self.sql(f"DO $$ BEGIN FOR i IN 1..{rows} LOOP "
                 f"WITH c AS (UPDATE {self.schema}.counter SET n = n + 1 WHERE key = (i % 20)::text RETURNING key, n) "
                 f"INSERT INTO {self.name} (topic, key, type, payload) SELECT 'order', key, 'Placed', jsonb_build_object('n', n) FROM c; "
                 "END LOOP; END $$")

    def start_writers(self, count, forwarded="false"):
        sql = WRITER.format(schema=self.schema, table=self.name, forwarded=forwarded)
        writers = [subprocess.Popen(["psql", self.direct, "-qX", "-v", "ON_ERROR_STOP=1", "-c", sql]) for _ in range(count)]
        for writer in writers:
            self.addCleanup(self.end, writer)
        return writers

    def stop_writers(self, writers):
        self.sql(f"UPDATE {self.schema}.control SET stop = true")
        self.assertEqual([writer.wait(timeout=60) for writer in writers], [0] * len(writers))

    def progress(self, rows):
        """Waits until the writers have written so many rows more."""
        total = lambda: int(self.sql(f"SELECT sum(n) FROM {self.schema}.counter"))
        target = total() + rows
        wait_until(lambda: total() >= target, "the writers")

    def counters(self):
        return {key: int(n) for key, n in (line.split("|") for line in
                                           self.sql(f"SELECT key, n FROM {self.schema}.counter").splitlines())}

    def check(self, expected=None):
        """What the relay has delivered, against the writers' own counters."""
        self.succeeds("relay", "--once")
        path = self.folder / "all.jsonl"
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        seen = {}
        for line in lines:
            seen.setdefault(line["key"], []).append(line["body"]["n"])
        expected = self.counters() if expected is None else expected
        for key, count in expected.items():
            self.assertEqual(seen.get(key, []), list(range(1, count + 1)), f"key {key}")
        self.assertEqual(len({line["id"] for line in lines}), len(lines))
        self.assertEqual(self.sql(f"SELECT count(*) FROM {self.schema}.adopt_stage"), "0\n")

    def spawn_adopt(self, *arguments):
        return self.spawn(*self.adopt("--apply", *arguments))

    def locks(self, granted="true"):
        """How many locks of the adoption on tables of this test."""
        return int(self.sql("SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_class c ON c.oid = l.relation "
                            f"WHERE c.relnamespace = '{self.schema}'::regnamespace AND a.application_name = 'outbox adopt' AND {granted}"))

    def waits_for_a_lock(self):
        return self.locks("NOT l.granted") > 0

    def kill(self, process):
        """And waits until the server has noticed."""
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda: self.locks() == 0, "the end of its session")

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, OK, out + err)

    def test_writers_go_on(self):
        """Also some that delete what they have inserted, once it is staged or forwarded."""
        self.backlog(20_000)
        adopted = f"EXISTS (SELECT FROM {self.schema}.adoption)"
        writers = self.start_writers(4, adopted)
        self.progress(200)
        done = self.succeeds(*self.adopt("--apply", "--json")).json()
        self.assertGreater(done["taken_over"], 20_000)
        self.progress(200)
        self.stop_writers(writers)
        self.check()

    def test_what_was_inserted_before_the_cut_and_is_committed_after_it(self):
        early = self.session()
        early.run(f"BEGIN; {self.one()}")
        adopt = self.spawn_adopt("--lock-wait", "60s")
        wait_until(self.waits_for_a_lock, "the first cut")
        early.run(f"{self.one()}; COMMIT")
        self.finish(adopt)
        self.sql(self.one())
        self.check({"0": 3})

    def test_a_table_that_stays_in_use_is_left_alone(self):
        self.sql(self.one())
        early = self.session()
        early.run(f"BEGIN; {self.one()}")
        self.fails_after_tries("idle in transaction")
        self.assertEqual(self.sql(f"SELECT count(*) FROM pg_trigger WHERE tgrelid = '{self.name}'::regclass"), "0\n")
        self.assertEqual(self.state(), "")
        early.run("ROLLBACK")
        self.succeeds(*self.adopt("--apply"))
        self.check({"0": 1})

    def fails_after_tries(self, says):
        for patience in ("200ms", "5s"):  # on a machine with too much to do there is one try in the first
            result = self.outbox(*self.adopt("--apply", "--lock-wait", "50ms", "--patience", patience))
            if "trying again" in result.err:
                break
        self.assertEqual(result.code, NOT_NOW, result)
        for part in ("writers go on, trying again", "the table's lock was not got", says, "--patience"):
            self.assertIn(part, result.err)

    def blocked_copy(self, *arguments):
        """An adoption that has made its first cut and cannot write to the log."""
        blocker = self.session()
        blocker.run(f"BEGIN; LOCK TABLE {self.schema}.event IN SHARE MODE")
        adopt = self.spawn_adopt(*arguments)
        wait_until(lambda: self.state() == "copying" and self.waits_for_a_lock(), "the copy")
        return blocker, adopt

    def test_rows_that_come_while_old_ones_are_copied_stay_behind_them(self):
        self.backlog(100)
        blocker, adopt = self.blocked_copy("--lock-wait", "60s")
        self.sql(self.one())
        self.sql(f"BEGIN; {self.one()}; DELETE FROM {self.name} WHERE id = (SELECT max(id) FROM {self.name}); COMMIT")
        late = self.session()
        late.run(f"BEGIN; {self.one('1')}")
        blocker.run("ROLLBACK")
        wait_until(lambda: self.state() == "draining" and self.waits_for_a_lock(), "the second cut")
        late.run(f"{self.one('1')}; COMMIT")
        self.finish(adopt)
        for key in ("0", "1"):
            self.sql(self.one(key))
        self.check()

    def sleeps(self):
        """The relay has the lock of the wake-up: it reads nothing until a writer notifies, or for an hour."""
        return self.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND objsubid = 1 "
                        "AND (classid::bigint << 32) + objid::bigint = "
                        f"hashtextextended('outbox:wake:{self.schema}', 0)") == "1\n"

    def delivered(self):
        path = self.folder / "all.jsonl"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    def test_moved_rows_wake_a_relay_that_sleeps(self):
        """The copy, what was staged, and what is forwarded: each finds it asleep."""
        self.backlog(3)
        relay = self.spawn("relay", "--set", "relay.idle_poll=1h")
        wait_until(self.sleeps, "the relay sleeps")

        blocker, adopt = self.blocked_copy("--lock-wait", "60s")
        late = self.session()
        late.run(f"BEGIN; {self.one()}")
        self.assertTrue(self.sleeps())
        blocker.run("ROLLBACK")
        wait_until(lambda: self.delivered() == 3, "the copied rows")

        wait_until(lambda: self.state() == "draining" and self.waits_for_a_lock(), "the second cut")
        self.kill(adopt)
        late.run("COMMIT")
        wait_until(self.sleeps, "the relay sleeps again")
        self.assertEqual(self.delivered(), 3)
        self.succeeds(*self.adopt("--apply"))
        wait_until(lambda: self.delivered() == 4, "the staged row")

        wait_until(self.sleeps, "the relay sleeps again")
        self.sql(self.one())
        wait_until(lambda: self.delivered() == 5, "the forwarded row")
        relay.send_signal(signal.SIGTERM)
        self.assertEqual(relay.wait(timeout=60), OK)
        self.check()

    def test_killed_while_it_copies_and_run_again(self):
        self.backlog(100)
        blocker, adopt = self.blocked_copy()
        self.sql(self.one())
        self.kill(adopt)
        self.assertEqual(self.state(), "copying")
        self.assertIn("new rows wait", self.succeeds(*self.adopt()).out)
        self.sql(f"{self.one()}; {self.one('1')}")
        blocker.run("ROLLBACK")
        self.succeeds(*self.adopt("--apply"))
        self.sql(self.one())
        self.check()

    def test_killed_before_the_second_cut_and_run_again(self):
        self.backlog(100)
        blocker, adopt = self.blocked_copy("--lock-wait", "60s")
        late = self.session()
        late.run(f"BEGIN; {self.one()}")
        blocker.run("ROLLBACK")
        wait_until(lambda: self.state() == "draining" and self.waits_for_a_lock(), "the second cut")
        self.kill(adopt)
        late.run("COMMIT")
        self.sql(self.one())
        both = [self.spawn_adopt(), self.spawn_adopt()]
        for one in both:
            self.finish(one)
        self.sql(self.one())
        self.check()

    def test_two_at_once_from_the_beginning(self):
        self.backlog(2000)
        both = [self.spawn_adopt(), self.spawn_adopt()]
        for one in both:
            self.finish(one)
        self.check()

    def test_two_at_once_that_say_different_things(self):
        """The second one waits for the first, finds its adoption, and does not copy by options of its own."""
        self.backlog(20)
        early = self.session()
        early.run(f"BEGIN; {self.one()}")
        first = self.spawn_adopt("--lock-wait", "60s", "--header", "topic=first")
        wait_until(self.waits_for_a_lock, "the first cut")
        second = self.spawn_adopt("--lock-wait", "60s", "--header", "topic=second")
        wait_until(lambda: self.waits_for_another(second), "the second command")
        early.run("COMMIT")
        self.finish(first)
        _, err = second.communicate(timeout=60)
        self.assertEqual(second.returncode, ERROR, err)
        self.assertIn("is adopted with other options", err)
        self.assertEqual(set(self.log("headers ->> 'first'")), {"order"})
        self.check()

    def waits_for_another(self, process):
        """A command, for the end of another one's transaction."""
        return process.poll() is None and self.sql(
            "SELECT EXISTS (SELECT FROM pg_locks w JOIN pg_locks h USING (transactionid) JOIN pg_locks r ON r.pid = h.pid "
            "JOIN pg_class c ON c.oid = r.relation WHERE w.locktype = 'transactionid' AND NOT w.granted AND h.granted "
            f"AND c.relnamespace = '{self.schema}'::regnamespace AND c.relname = 'adoption')") == "t\n"

    def test_killed_again_and_again_beside_writers(self):
        self.backlog(5000)
        writers = self.start_writers(3)
        for moment in range(6):
            process = self.spawn_adopt()
            wait_until(lambda: process.poll() is not None or self.states_seen() > moment // 2, "a state")
            if process.poll() is None:
                self.kill(process)
        self.succeeds(*self.adopt("--apply"))
        self.progress(100)
        self.stop_writers(writers)
        self.check()

    def states_seen(self):
        return {"": 0, "copying": 1, "draining": 2, "forwarding": 3}[self.state()]

    def test_what_the_old_relay_marked_before_is_not_taken_over(self):
        self.backlog(40)
        self.sql(f"UPDATE {self.name} SET status = 'sent' WHERE id <= 20")
        self.succeeds(*self.adopt("--apply"))
        self.assertEqual(len(self.log()), 20)

    def test_undo_loses_nothing_and_doing_it_again_sends_nothing_twice(self):
        self.backlog(1000)
        writers = self.start_writers(3)
        self.succeeds(*self.adopt("--apply"))
        self.progress(200)
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.progress(200)
        pending = f"SELECT count(*) FROM {self.name} WHERE status = 'pending'"
        self.assertGreater(int(self.sql(pending)), 0)
        self.succeeds(*self.adopt("--apply"))
        self.progress(200)
        self.stop_writers(writers)
        self.check()

    def test_settings_of_a_session_make_no_other_event(self):
        """A row that comes while old ones are copied is the same event by the trigger and by the copy."""
        self.table("id bytea PRIMARY KEY, topic text, key text, type text, payload jsonb, created_at timestamp, tenth real, status text")
        insert = (f"INSERT INTO {self.name} VALUES (convert_to('%s', 'UTF8'), 'order', '0', 'Placed', '{{\"n\": %s}}', "
                  "'2026-01-05 08:00', 0.1, 'pending')")
        self.sql(insert % ("old", 1))
        blocker, adopt = self.blocked_copy("--header", "tenth", "--header", "created_at=made")
        settings = "SET timezone = 'Asia/Tokyo'; SET bytea_output = 'escape'; SET datestyle = 'SQL, DMY'; SET extra_float_digits = -5; "
        self.sql(settings + insert % ("new", 2))
        self.kill(adopt)
        blocker.run("ROLLBACK")
        # The command goes on in a session with other settings, too.
        self.environment["PGOPTIONS"] = "-c timezone=America/New_York -c bytea_output=escape"
        self.succeeds(*self.adopt("--apply"))
        self.sql(settings + insert % ("newer", 3))
        headers = '{{"made": "2026-01-05 08:00:00", "tenth": "0.1", "adopted-id": "\\\\x{}"}}'
        self.assertEqual(self.log("occurred_at AT TIME ZONE 'UTC', headers"),
                         ["2026-01-05 08:00:00|" + headers.format(id.encode().hex()) for id in ("old", "new", "newer")])
        self.check({"0": 3})

    def test_undo_in_the_middle_first_finishes(self):
        self.backlog(100)
        blocker, adopt = self.blocked_copy()
        self.kill(adopt)
        self.sql(self.one())
        blocker.run("ROLLBACK")
        self.succeeds(*self.adopt("--undo", "--apply"))
        self.assertEqual(self.sql(f"SELECT count(*) FROM {self.name} WHERE status = 'pending'"), "0\n")
        self.check()

    def renamed_in_the_middle(self):
        """As a migration between two colours does it: the adoption was killed while it copied, and the table is called otherwise now."""
        self.backlog(100)
        blocker, adopt = self.blocked_copy()
        self.sql(self.one())
        self.kill(adopt)
        blocker.run("ROLLBACK")
        former, self.name = self.name, f'{self.schema}."Blue outbox"'
        self.sql(f'ALTER TABLE {former} RENAME TO "Blue outbox"')
        self.sql(self.one())
        return former

    def test_a_table_that_is_renamed_in_the_middle_is_finished_under_either_name(self):
        """With the ids that it had: the copy knows by them which rows came meanwhile."""
        for which in (0, 1):
            with self.subTest(which):
                former = self.renamed_in_the_middle()
                name = (former, self.name)[which]
                out = self.succeeds(*self.adopt(table=name)).out
                self.assertIn(f"{self.name} is copying", out)
                done = self.succeeds(*self.adopt("--apply", "--json", table=name)).json()
                self.assertEqual((done["table"], done["state"]), (self.name, "forwarding"))
                self.sql(self.one())
                self.check()
                self.succeeds(*self.adopt("--undo", "--apply", table=name))
                self.sql(f"ALTER TABLE {self.name} RENAME TO shop_outbox")
                self.name = former

    def test_a_table_that_is_renamed_in_the_middle_is_undone_under_either_name(self):
        for which in (0, 1):
            with self.subTest(which):
                former = self.renamed_in_the_middle()
                name = (former, self.name)[which]
                self.assertIn(f"{self.name} is copying", self.succeeds(*self.adopt("--undo", table=name)).out)
                self.succeeds(*self.adopt("--undo", "--apply", table=name))
                self.assertEqual(self.sql(f"SELECT count(*) FROM {self.name} WHERE status = 'pending'"), "0\n")
                self.assertEqual(self.sql(f"SELECT count(*) FROM pg_trigger WHERE tgrelid = '{self.name}'::regclass"), "0\n")
                self.check()
                self.sql(f"ALTER TABLE {self.name} RENAME TO shop_outbox")
                self.name = former

    def test_a_view_that_has_the_former_name_stands_for_the_table(self):
        former = self.renamed_in_the_middle()
        self.sql(f"CREATE VIEW {former} AS SELECT * FROM {self.name}")
        self.succeeds(*self.adopt("--apply", table=former))
        self.check()
        self.succeeds(*self.adopt("--undo", "--apply", table=former))
        self.assertEqual(self.succeeds(*self.adopt("--json", table="")).json()["tables"][-1]["state"], "ended")

    def test_two_tables_that_swap_their_names(self):
        self.succeeds(*self.adopt("--apply"))
        green = f"{self.schema}.green"
        self.sql(self.one())
        self.sql(f"CREATE TABLE {green} (LIKE {self.name} INCLUDING ALL); "
                 f"BEGIN; ALTER TABLE {self.name} RENAME TO blue; ALTER TABLE {green} RENAME TO shop_outbox; COMMIT")
        plan = self.succeeds(*self.adopt("--json")).json()
        self.assertEqual((plan["state"], plan["pending"]), (None, 0))
        self.succeeds(*self.adopt("--apply"))
        self.sql(self.one())
        blue = f"{self.schema}.blue"
        self.succeeds(*self.adopt("--undo", "--apply", table=blue))
        self.sql(self.one())
        self.check({"0": 3})
        states = {row["table"]: row["state"] for row in self.succeeds(*self.adopt("--json", table="")).json()["tables"]}
        self.assertEqual(states, {blue: "ended", self.name: "forwarding"})

    def test_a_prepared_transaction_is_named(self):
        if self.sql("SHOW max_prepared_transactions") == "0\n":
            self.skipTest("max_prepared_transactions is 0 on this server")
        self.sql(f"BEGIN; {self.one()}; PREPARE TRANSACTION '{self.schema}'")
        try:
            self.fails_after_tries("a prepared transaction")
        finally:
            self.sql(f"COMMIT PREPARED '{self.schema}'")
        self.succeeds(*self.adopt("--apply"))
        self.check({"0": 1})


if __name__ == "__main__":
    unittest.main()
