#!/usr/bin/env python3
"""A project that includes this one with add_subdirectory() compiles its own code in its own way."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
class Consumer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="outbox-consumer-")
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        self.run_cmake("-S", HERE / "project", "-B", self.build, "-G", "Ninja", f"-DOUTBOX={ROOT}", "-DOUTBOX_WITH_KAFKA=OFF",
                       "-DOUTBOX_WITH_POSTGRES=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")

    def run_cmake(self, *arguments):
        run = subprocess.run(["cmake", *map(str, arguments)], check=False, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_its_sources_compile_with_its_own_warnings(self):
        self.run_cmake("--build", self.build, "--target", "app")

    def commands(self):
        return json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))

    def test_it_sees_the_public_headers_only(self):
        (command,) = [c["command"] for c in self.commands() if c["file"].endswith("app.cpp")]
        self.assertNotIn(f"{ROOT}/src", command)

    def test_no_warning_ends_the_build(self):
        """Of ours neither: its compiler and its libraries may warn of what ours do not."""
        self.assertGreater(len(self.commands()), 100)
        self.assertEqual([c["file"] for c in self.commands() if "-Werror" in c["command"]], [])

    def test_the_program_is_not_built_for_it(self):
        targets = subprocess.run(["ninja", "-C", str(self.build), "-t", "targets", "all"], check=True, capture_output=True,
                                 text=True).stdout
        self.assertIn("outbox_store_sqlite", targets)
        for part in ("outbox_cli", "outbox_bench", "outbox_demo"):
            self.assertNotIn(part, targets)


if __name__ == "__main__":
    unittest.main()
