#!/usr/bin/env python3
"""Tests scripts/check_paths.py on small trees."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "check_paths.py"


def problems(text, files=("src/store/queries.cpp", "docs/guide.md")):
    """What the check says of docs/page.md with this text, in a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**dict.fromkeys(files, ""), "docs/page.md": text}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        run = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    assert run.stderr == "", run.stderr
    lines = run.stdout.splitlines()
    assert run.returncode == (1 if lines else 0)
    return lines


class Paths(unittest.TestCase):
    def test_what_exists_is_accepted(self):
        for text in ("`src/store` and src/store/queries.cpp.", "[guide](guide.md#part), [code](../src/store)", "`queries.cpp`",
                     "src/*/queries.cpp", "a new docs/stores/NAME.md", "[elsewhere](https://example.org/docs/no.md)",
                     "/etc/docs/no.md, my.src/no", "```\ncat docs/no.md\n```"):
            self.assertEqual(problems(text), [], text)

    def test_what_is_missing_is_named_with_its_line(self):
        for text, what in (("one\n`src/store/read.cpp`\n", "there is no src/store/read.cpp"),
                           ("one\nsee docs/no/page.md.\n", "there is no docs/no/page.md"),
                           ("one\n[guide](no.md#part)\n", "the link to no.md leads nowhere"),
                           ("one\n[out](../../etc/passwd)\n", "the link to ../../etc/passwd leads nowhere"),
                           ("one\n`read_queries.cpp`\n", "there is no file read_queries.cpp"),
                           ("one\ntests/*/no_test.cpp\n", "there is no tests/*/no_test.cpp")):
            self.assertEqual(problems(text), [f"docs/page.md:2: {what}"])

    def test_the_documents_of_this_tree_name_what_exists(self):
        run = subprocess.run([sys.executable, SCRIPT, ROOT], capture_output=True, text=True, check=False)
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
