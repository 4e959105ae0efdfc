"""A table of another outbox beside ours, for the tests of outbox adopt; sessions that hold a transaction open."""

import subprocess

from program import Case, OnPostgres

DEBEZIUM = "id uuid PRIMARY KEY, aggregatetype varchar(255), aggregateid varchar(255), type varchar(255), payload jsonb"
HAND = ("id bigserial PRIMARY KEY, topic text, key text, type text, payload jsonb, created_at timestamptz DEFAULT clock_timestamp(), "
        "status text DEFAULT 'pending'")


class Session:
    """psql with a transaction of its own."""

    def __init__(self, database):
        self.process = subprocess.Popen(["psql", database, "-qXAt", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, sql):
        """Waits until it is done; the rows."""
        self.process.stdin.write(f"{sql};\n\\echo ----\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) != "----\n":
            if line == "":
                raise AssertionError(f"the session ended: {sql}")
            lines.append(line.strip())
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Adopting(OnPostgres, Case):
    """In the schema of the outbox, so that it goes with it."""

    def setUp(self):
        super().setUp()
        self.schema = self.flags[1]
        self.name = f"{self.schema}.shop_outbox"
        self.migrate()

    def table(self, columns):
        self.sql(f"DROP TABLE IF EXISTS {self.name}; CREATE TABLE {self.name} ({columns})")

    def adopt(self, *arguments, table=None):
        name = self.name if table is None else table
        return self.at_store("adopt", *((name,) if name else ()), *arguments)

    def refusal(self, statement):
        """The error with which a statement fails."""
        with self.assertRaises(subprocess.CalledProcessError) as refused:
            self.sql(statement)
        return refused.exception.stderr

    def insert(self, key, number):
        self.sql(f"INSERT INTO {self.name} (topic, key, type, payload) VALUES ('order', '{key}', 'Placed', '{{\"n\": {number}}}')")

    def log(self, columns="id"):
        return self.sql(f"SELECT {columns} FROM {self.schema}.event ORDER BY seq").splitlines()

    def state(self):
        return self.sql(f"SELECT state FROM {self.schema}.adoption WHERE state <> 'ended'").strip()

    def session(self):
        session = Session(self.direct)
        self.addCleanup(session.close)
        return session


__all__ = ["Adopting", "DEBEZIUM", "HAND", "Session"]
