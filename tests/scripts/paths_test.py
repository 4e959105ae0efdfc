#!/usr/bin/env python3
"""Tests scripts/check_paths.py on small trees."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "check_paths.py"


FILES = {
    "src/store/queries.cpp": "",
    "docs/guide.md": "# A guide\n## Part `one`: why?\n## part one why\n```\n# no heading\n```\n## [Links](page.md) too\n",
    "docs/picture.svg": "<svg xmlns='http://www.w3.org/2000/svg'><text>a</text></svg>",
    "tests/lost_test.cpp": "TEST(Lost, nothing) {}\nTEST(Lost, nothing_is_lost_by_a_crash) {}\n",
}


def problems(text, **more):
    """What the check says of docs/page.md with this text, in a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**FILES, **more, "docs/page.md": text}.items():
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
        for text in ("`src/store` and src/store/queries.cpp.", "[guide](guide.md#a-guide), [code](../src/store)", "`queries.cpp`",
                     "src/*/queries.cpp", "a new docs/stores/NAME.md", "[elsewhere](https://example.org/docs/no.md)",
                     "/etc/docs/no.md, my.src/no", "```\ncat docs/no.md\n```"):
            self.assertEqual(problems(text), [], text)

    def test_what_is_missing_is_named_with_its_line(self):
        for text, what in (("one\n`src/store/read.cpp`\n", "there is no src/store/read.cpp"),
                           ("one\nsee docs/no/page.md.\n", "there is no docs/no/page.md"),
                           ("one\n[guide](no.md#part)\n", "the link to no.md leads nowhere"),
                           ("one\n[guide](guide.md#no-part)\n", "guide.md has no heading #no-part"),
                           ("one\n[guide](guide.md#no-heading)\n", "guide.md has no heading #no-heading"),
                           ("# One\n[above](#two)\n", "this document has no heading #two"),
                           ("one\n[code](../src/store/queries.cpp#L1)\n", "../src/store/queries.cpp has no heading #L1"),
                           ("[broken over\ntwo lines](no.md)\n", "the link to no.md leads nowhere"),
                           ("one\n[away](https://no/)\n", "https://no/ is no address"),
                           ("one\n[away](htps://example.org)\n", "htps://example.org is no address"),
                           ("one\n[`everything` is lost](../tests/lost_test.cpp)\n", "../tests/lost_test.cpp has no everything"),
                           ("one\n`nothing_is_lost_by_a_storm`\n", "nothing is named nothing_is_lost_by_a_storm"),
                           ("one\n[out](../../etc/passwd)\n", "the link to ../../etc/passwd leads nowhere"),
                           ("one\n`read_queries.cpp`\n", "there is no file read_queries.cpp"),
                           ("one\ntests/*/no_test.cpp\n", "there is no tests/*/no_test.cpp")):
            self.assertEqual(problems(text), [f"docs/page.md:2: {what}"])

    def test_headings_are_named_as_github_does(self):
        for link in ("guide.md#part-one-why", "guide.md#part-one-why-1", "guide.md#links-too", "#a-b_c"):
            self.assertEqual(problems(f"# A, b_c!\n[x]({link})"), [], link)

    def test_tests_are_named_with_their_file(self):
        for text in ("[`lost_test`: `nothing`](../tests/lost_test.cpp)", "`nothing_is_lost_by_a_crash`", "[away](https://example.org:8080/a?b=c#d)"):
            self.assertEqual(problems(text), [], text)

    def test_a_picture_that_no_browser_shows_is_named(self):
        self.assertEqual(len(problems("text", **{"docs/broken.svg": "<svg><text>a & b</text></svg>"})), 1)

    def test_the_documents_of_this_tree_name_what_exists(self):
        run = subprocess.run([sys.executable, SCRIPT, ROOT], capture_output=True, text=True, check=False)
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
