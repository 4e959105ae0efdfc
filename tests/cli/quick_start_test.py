#!/usr/bin/env python3
"""docs/stores/postgres.md, "Quick start": its steps work as written, with no other privileges."""

import re
import subprocess
import unittest
import uuid
from urllib.parse import urlsplit

from program import Case, FILE_SUBSCRIPTION, POSTGRES, ROOT, drop_database, wait_until

PAGE = ROOT / "docs" / "stores" / "postgres.md"


class QuickStart(Case):
    def setUp(self):
        if not POSTGRES:
            self.skipTest("OUTBOX_TEST_POSTGRES is not set: no PostgreSQL server")
        super().setUp()
        # Roles belong to the whole server, so these have unique names.
        self.name = "quick_" + uuid.uuid4().hex[:8]
        self.page = PAGE.read_text(encoding="utf-8").partition("## Quick start\n")[2].partition("\n## ")[0]
        self.page = re.sub(r"\bshop_(owner|app|relay)\b", rf"{self.name}_\1", self.page)
        self.sql(POSTGRES, f"CREATE DATABASE {self.name}")
        self.addCleanup(self.clean)

    def clean(self):
        drop_database(POSTGRES, self.name)
        for role in ("owner", "app", "relay"):
            self.sql(POSTGRES, f"DROP ROLE IF EXISTS {self.name}_{role}")

    @staticmethod
    def sql(url, *statements):
        run = subprocess.run(["psql", url, "-qXAtv", "ON_ERROR_STOP=1"], input=";\n".join(statements), check=False,
                             capture_output=True, text=True)
        if run.returncode != 0:
            raise AssertionError(run.stderr)
        return run.stdout

    def url(self, role=None):
        server = urlsplit(POSTGRES)
        place = server.netloc.rpartition("@")[2]
        user = f"{self.name}_{role}" if role else server.netloc.rpartition("@")[0]
        return server._replace(netloc=f"{user}@{place}", path="/" + self.name).geturl()

    def test_as_it_stands_there(self):
        first, second = (block.replace("DATABASE shop", f"DATABASE {self.name}")
                         for block in re.findall(r"```sql\n(.*?)```", self.page, re.S))
        self.sql(self.url(), first)
        self.succeeds("migrate", "--store", self.url("owner"))
        self.sql(self.url(), second)
        self.assertEqual(self.sql(self.url("app"), "SELECT count(outbox.enqueue('order', '42', 'OrderPlaced', '{}'))"), "1\n")
        self.write("outbox.toml", FILE_SUBSCRIPTION)
        with open(self.folder / "relay.log", "w", encoding="utf-8") as log:
            relay = self.spawn("relay", "--store", self.url("relay"), stdout=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: (self.folder / "orders.jsonl").exists() and (self.folder / "orders.jsonl").stat().st_size, "the event")
        said = int(re.search(r"has \*\*(\d+) connections\*\*", self.page).group(1))
        count = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{self.name}_relay'"
        wait_until(lambda: int(self.sql(POSTGRES, count)) == said, f"{said} connections")
        relay.terminate()
        self.assertEqual(relay.wait(timeout=60), 0, (self.folder / "relay.log").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
