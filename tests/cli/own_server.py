"""A PostgreSQL server of a test's own, whose files and settings it may change. The tests' server is shared."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import ROOT

SERVERS = ROOT / "scripts" / "servers"


class OwnServer:
    def __init__(self):
        why = subprocess.run([SERVERS, "check", "postgres"], capture_output=True, text=True, check=False)
        if why.returncode != 0:
            raise unittest.SkipTest(why.stdout.strip())
        self.folder = Path(tempfile.mkdtemp(prefix="outbox-own-"))
        self.data = self.folder / "postgres" / "data"
        started = self.servers("start", self.folder, "postgres")
        names = dict(line.removeprefix("export ").split("=", 1) for line in started.splitlines() if line.startswith("export "))
        self.url, self.socket, self.programs = (shlex.split(names[f"OUTBOX_TEST_{name}"])[0] for name in ("POSTGRES", "PGSOCKET", "PGBIN"))
        self.address = self.url.partition("@")[2].partition("/")[0]

    @staticmethod
    def servers(*arguments):
        return subprocess.run([SERVERS, *arguments], check=True, capture_output=True, text=True).stdout

    def sql(self, *statements):
        """By the Unix socket, which asks for no password. Each in a transaction of its own."""
        port = self.address.rpartition(":")[2]
        commands = [part for statement in statements for part in ("-c", statement)]
        return subprocess.run(["psql", "-h", self.socket, "-p", port, "-U", "postgres", "-d", "postgres", "-qXAt", "-v", "ON_ERROR_STOP=1",
                               *commands], check=True, capture_output=True, text=True).stdout

    def stop(self):
        self.servers("stop", self.folder)

    def start(self):
        self.servers("start", self.folder, "postgres")

    def run(self, program, *arguments):
        """One of the server's programs, as the user that it runs as."""
        script = f'. "{ROOT}/scripts/lib/server_user.sh"; as_server_user "$@"'
        return subprocess.run(["sh", "-ec", script, "sh", Path(self.programs) / program, *map(str, arguments)], check=True,
                              capture_output=True, text=True, cwd="/").stdout

    def owner(self):
        return os.stat(self.data).st_uid

    def remove(self):
        self.servers("stop", self.folder, "--remove")
        shutil.rmtree(self.folder, ignore_errors=True)  # what a test put there


__all__ = ["OwnServer"]
