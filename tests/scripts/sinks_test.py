#!/usr/bin/env python3
"""Tests scripts/check_sinks.py on small trees."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "check_sinks.py"

TREE = {
    "CMakeLists.txt": "add_subdirectory(src)\n",
    "cmake/Sinks.cmake": "# how a sink is built\n",
    "include/outbox/sink.hpp": "class Sink;\n",
    "src/sink/CMakeLists.txt": "foreach(sink pigeon http)\n  add_subdirectory(${sink})\nendforeach()\n",
    "src/sink/pigeon/CMakeLists.txt": "outbox_sink(pigeon\n  FOLDERS sink/birds\n  SOURCES pigeon.cpp)\n",
    "src/sink/pigeon/pigeon.cpp": "namespace pigeon {}\n",
    "src/sink/http/CMakeLists.txt": "outbox_sink(http SOURCES http.cpp)\n",
}


def problems(files):
    """Runs the check on TREE with these files, too; returns what it printed, by line."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**TREE, **files}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.stderr == "", run.stderr
    assert run.returncode == (1 if lines else 0)
    return lines


class Sinks(unittest.TestCase):
    def test_its_own_places_may_name_it(self):
        self.assertEqual(problems({}), [])
        self.assertEqual(problems({"src/sink/birds/wing.cpp": "// of a pigeon\n"}), [])

    def test_any_other_file_that_names_it_is_found(self):
        found = problems({"src/cli/send.cpp": "// such as Pigeon\n", "CMakeLists.txt": "option(WITH_PIGEON)\n"})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("pigeon is named in 2 files"), found[0])
        self.assertIn("CMakeLists.txt src/cli/send.cpp", found[0])

    def test_a_common_word_counts_where_it_means_the_sink(self):
        self.assertEqual(problems({"src/base/url.cpp": "// http://host\n"}), [])
        self.assertEqual(len(problems({"src/cli/send.cpp": '#include "sink/http/http.hpp"\n'})), 1)
        self.assertEqual(len(problems({"cmake/Sinks.cmake": "if(OUTBOX_WITH_HTTP)\n"})), 1)


if __name__ == "__main__":
    unittest.main()
