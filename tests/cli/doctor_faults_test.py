#!/usr/bin/env python3
"""outbox doctor in faults that need a server or a disk of their own: a refused password, what holds rows or WAL back, a full disk."""

import os
import subprocess
import unittest
from pathlib import Path

from own_server import OwnServer
from program import BINARY, CHECK_FAILED, Case, NOT_NOW, Result, wait_until

SUBSCRIPTION = """
[subscription.orders]
sink = "file"
file.path = "{folder}/orders.jsonl"
"""
SEGMENT = 1 << 20  # transaction ids in a file of pg_xact


class Doctor(Case):
    def findings(self, check, *arguments):
        return [one for one in self.outbox("doctor", "--json", *arguments).json() if one["check"] == check]

    def complaint(self, check, *arguments):
        """The only one that is not in order."""
        found = [one for one in self.findings(check, *arguments) if one["severity"] != "ok"]
        self.assertEqual(len(found), 1, found)
        for member in ("what", "reason", "command"):
            self.assertTrue(found[0][member], found)
        return found[0]

    def in_order(self, check):
        self.assertEqual({one["severity"] for one in self.findings(check)}, {"ok"}, check)

    def types(self):
        """Of the events that were delivered."""
        path = self.folder / "orders.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [line.partition('"event_type":"')[2].partition('"')[0] for line in lines]


class OnOwnServer(Doctor):
    @classmethod
    def setUpClass(cls):
        cls.server = OwnServer()
        cls.addClassCleanup(cls.server.remove)
        cls.store = cls.server.url

    def setUp(self):
        super().setUp()
        self.server.sql("DROP SCHEMA IF EXISTS outbox CASCADE")
        self.migrate()
        self.config(SUBSCRIPTION.format(folder=self.folder))
        self.succeeds("subscription", "apply")

    def sql(self, *statements):
        return self.server.sql(*statements)


class Passwords(OnOwnServer):
    """With scram-sha-256, as servers have it by default."""

    SECRET = "tell-nobody"

    def setUp(self):
        super().setUp()
        self.sql("DROP ROLE IF EXISTS relay1", f"CREATE ROLE relay1 LOGIN PASSWORD '{self.SECRET}' IN ROLE outbox_relay")
        rules = self.server.data / "pg_hba.conf"
        before = rules.read_text(encoding="utf-8")
        self.addCleanup(self.sql, "SELECT pg_reload_conf()")
        self.addCleanup(rules.write_text, before, encoding="utf-8")
        rules.write_text("host all relay1 127.0.0.1/32 scram-sha-256\n" + before, encoding="utf-8")
        self.sql("SELECT pg_reload_conf()")
        wait_until(lambda: self.outbox("doctor", *self.at("relay1@")).code == CHECK_FAILED, "the server asks for a password")

    def at(self, login):
        return ("--store", f"postgresql://{login}{self.server.address}/postgres")

    def refused(self, login, says):
        found = self.complaint("store", *self.at(login))
        self.assertEqual(found["severity"], "error")
        self.assertIn(says, found["what"])
        self.assertIn("nothing is delivered", found["reason"])
        text = self.outbox("doctor", *self.at(login))
        self.assertEqual(text.code, CHECK_FAILED, text)
        self.assertIn("ok       sink orders", text.out, "the rest is looked at")
        return found, text.out + text.err

    def test_a_wrong_password(self):
        found, text = self.refused("relay1:my-wrong-guess@", 'password authentication failed for user "relay1"')
        self.assertIn("check user and password", found["command"])
        self.assertNotIn("guess", text)

    def test_no_password(self):
        found, _ = self.refused("relay1@", "no password supplied")
        self.assertIn("PGPASSWORD", found["command"])

    def test_the_right_one(self):
        self.assertEqual({one["severity"] for one in self.findings("store", *self.at(f"relay1:{self.SECRET}@"))}, {"ok"})


class Held(OnOwnServer):
    """What nobody uses any more, and keeps rows or WAL."""

    def enqueue(self, kind):
        self.succeeds("enqueue", "order", "1", kind, "{}")

    def deliver(self):
        self.succeeds("relay", "--once")

    def grow_old(self):
        """Lets 16 million transactions go by, for which a test has no time: the server begins with a later one."""
        self.sql("CHECKPOINT")
        self.server.stop()
        age = 16 * SEGMENT
        missing = self.server.data / "pg_xact" / "0010"
        missing.write_bytes(bytes(SEGMENT // 4))  # two bits for each
        os.chown(missing, self.server.owner(), -1)
        missing.chmod(0o600)
        self.server.run("pg_resetwal", "-x", age, "-D", self.server.data)
        self.server.start()

    def forget_prepared(self):
        """Else its locks hold up the next test."""
        if self.sql("SELECT count(*) FROM pg_prepared_xacts") != "0\n":
            self.sql("ROLLBACK PREPARED 'it''s held'")

    def test_who_holds_the_oldest_snapshot(self):
        holder = subprocess.Popen(["psql", self.server.url, "-qXAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=os.environ | {"PGAPPNAME": "slow_report"})
        self.addCleanup(holder.communicate)
        holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT pg_backend_pid();\n")
        holder.stdin.flush()
        pid = holder.stdout.readline().strip()
        self.sql("SELECT pg_current_xact_id()")
        [found] = self.findings("snapshot")
        self.assertIn(f"pid {pid} (application slow_report, login postgres, idle in transaction)", found["what"])

    def test_a_prepared_transaction(self):
        self.sql("BEGIN; SELECT outbox.enqueue('order', '1', 'Held', '{}'::jsonb); PREPARE TRANSACTION 'it''s held'")
        self.addCleanup(self.forget_prepared)
        self.in_order("snapshot")
        self.grow_old()
        self.enqueue("Later")
        self.deliver()
        self.assertEqual(self.types(), ["Later"], "it holds its own events back, and no others")
        found = self.complaint("snapshot")
        self.assertEqual((found["severity"], found["subject"]), ("warning", "it's held"))
        self.assertRegex(found["what"], r"prepared transaction 'it''s held' of postgres in database postgres .* \(1[67]\d{6} transaction ids ago\)")
        self.assertIn("its own events are delivered only after its commit", found["reason"])
        where, _, statements = found["command"].partition(": ")
        self.assertEqual(where, "in database postgres, as was decided")
        commit, rollback = statements.split(" or ")
        self.assertTrue(rollback.startswith("ROLLBACK PREPARED "), statements)
        self.sql(commit)
        self.in_order("snapshot")
        self.deliver()
        self.assertEqual(self.types(), ["Later", "Held"])

    def switch_wal(self, times=1):
        for _ in range(times):
            self.sql("SELECT pg_logical_emit_message(false, 'test', 'x')", "SELECT pg_switch_wal()")

    def test_a_slot_that_nobody_uses_and_that_keeps_wal(self):
        self.sql("SELECT pg_create_physical_replication_slot('forgotten', true)")
        self.addCleanup(self.sql, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        self.switch_wal(2)
        found = self.complaint("wal")
        self.assertEqual((found["severity"], found["subject"]), ("note", "forgotten"))
        self.assertRegex(found["what"], r"^replication slot forgotten keeps \d+\.\d MiB of WAL, and nobody uses it$")
        self.assertIn("no event can be enqueued", found["reason"])

        self.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'", "SELECT pg_reload_conf()")
        self.addCleanup(self.sql, "ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
        self.switch_wal(4)
        self.sql("CHECKPOINT")
        found = self.complaint("wal")
        self.assertEqual((found["severity"], found["what"]), ("warning", "replication slot forgotten has lost WAL that it needed"))
        self.sql(found["command"].rpartition("gone for good: ")[2])
        self.in_order("wal")

    def test_a_slot_of_a_standby_that_is_gone(self):
        """It keeps rows, as hot_standby_feedback asked for, and WAL."""
        folder = self.server.folder / "standby"
        folder.mkdir()
        os.chown(folder, self.server.owner(), -1)
        data, port = folder / "data", self.server.address.rpartition(":")[2]
        self.server.run("pg_basebackup", "-h", self.server.socket, "-p", port, "-U", "postgres", "-D", data, "-R", "-C", "-S", "standby1",
                        "--checkpoint=fast")
        self.addCleanup(self.sql, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c hot_standby_feedback=on -c wal_receiver_status_interval=1s"
        self.server.run("pg_ctl", "start", "--wait", "-D", data, "-l", folder / "log", "-o", settings)
        ended = []

        def end():
            if not ended:
                self.server.run("pg_ctl", "stop", "--wait", "-D", data, "-m", "immediate")
                ended.append(True)

        self.addCleanup(end)
        xmin = "SELECT count(xmin) FROM pg_replication_slots WHERE slot_name = 'standby1'"
        wait_until(lambda: self.sql(xmin) == "1\n", "the standby says which rows it needs")
        self.in_order("snapshot")
        end()
        wait_until(lambda: self.sql("SELECT active FROM pg_replication_slots") == "f\n", "the server notices")
        self.enqueue("Later")
        self.switch_wal()

        found = self.complaint("snapshot")
        self.assertEqual((found["severity"], found["subject"]), ("warning", "standby1"))
        self.assertIn("the unused replication slot standby1 holds a snapshot", found["what"])
        self.assertIn("history cannot be removed", found["reason"])
        self.assertIn("standby1 keeps", self.complaint("wal")["what"])
        self.deliver()
        self.assertEqual(self.types(), ["Later"], "what is written is delivered nevertheless")
        self.sql(found["command"].rpartition("gone for good: ")[2])
        self.in_order("snapshot")
        self.in_order("wal")


class FullDisk(Doctor):
    """A small disk of its own, which nobody else on this machine sees."""

    def setUp(self):
        super().setUp()
        disk = self.folder / "disk"
        disk.mkdir()
        self.store = f"sqlite:{disk}/shop.db"
        if os.geteuid() != 0:
            self.skipTest("only root can mount a disk")
        self.holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                        'mount -t tmpfs -o size=4m tmpfs "$0" && echo mounted && exec cat', disk],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.holder.communicate)
        if self.holder.stdout.readline() != "mounted\n":
            self.skipTest(f"this machine lets nobody mount: {self.holder.stderr.readline().strip()}")
        self.migrate()
        self.config(SUBSCRIPTION.format(folder=self.folder))
        self.succeeds("subscription", "apply")
        self.succeeds("enqueue", "order", "1", "Before", "{}")

    def inside(self, *command):
        entered = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "sh", "-c", 'cd "$0" && exec "$@"', self.folder, *map(str, command)]
        return subprocess.run(entered, capture_output=True, text=True, check=False, timeout=120, env=self.environment)

    def outbox(self, *arguments, **_):
        run = self.inside(BINARY, *arguments)
        return Result(run.returncode, run.stdout, run.stderr)

    def fill(self):
        run = self.inside("sh", "-c", "dd if=/dev/zero of=disk/other bs=4096; df --output=avail disk | tail -n 1")
        self.assertEqual(run.stdout.strip(), "0", run)

    def close_well(self):
        """The last program that closes the database removes -wal and -shm."""
        program = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('PRAGMA wal_checkpoint(TRUNCATE)'); d.close()"
        run = self.inside("python3", "-c", program, Path("disk") / "shop.db")
        self.assertEqual(run.returncode, 0, run)
        self.assertEqual(self.inside("ls", "disk").stdout, "shop.db\n")

    def is_full(self):
        found = self.complaint("disk")
        self.assertEqual(found["severity"], "error")
        self.assertIn("the disk is full: 0 bytes are free where the database has", found["what"])
        self.assertIn("none is lost", found["reason"])
        self.assertIn("df -h", found["command"])
        result = self.outbox("doctor")
        self.assertEqual(result.code, CHECK_FAILED, result)
        self.assertIn("outbox: disk: the disk is full", result.err)

    def works_again(self, refused=()):
        self.inside("rm", "disk/other")
        self.assertNotIn("the disk is full", self.complaint("disk")["what"])
        self.succeeds("enqueue", "order", "1", "After", "{}")
        self.succeeds("relay", "--once")
        self.assertEqual(self.types(), ["Before", *refused, "After"])

    def test_it_is_full_while_programs_use_the_database(self):
        self.fill()
        # Within the space that the -wal file has there may still be some.
        written = []
        while (result := self.outbox("enqueue", "order", "1", "Last", '{"x": "' + "x" * 4096 + '"}')).code == 0:
            written.append("Last")
            self.assertLess(len(written), 1000)
        self.assertEqual(result.code, NOT_NOW, result)
        self.assertIn("database or disk is full", result.err)
        self.is_full()
        self.assertEqual({one["severity"] for one in self.findings("store")}, {"ok"}, "it can be read")
        self.assertEqual(self.succeeds("status", "--json").json()["subscriptions"][0]["pending"], 1 + len(written))
        self.works_again(written)

    def test_it_is_full_and_the_database_cannot_be_opened(self):
        self.close_well()
        self.fill()
        found = self.complaint("store")
        self.assertEqual(found["severity"], "error")
        self.assertIn("is the disk full?", found["command"])
        self.is_full()
        self.assertIn("is the disk full?", self.fails(NOT_NOW, "enqueue", "order", "1", "Refused", "{}").err)
        self.works_again()


if __name__ == "__main__":
    unittest.main()
