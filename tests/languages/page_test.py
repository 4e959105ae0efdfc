#!/usr/bin/env python3
"""docs/guide/languages.md and the pages of languages show pieces of the tested programs as they are. With --write they are made so."""

import re
import sys
import textwrap
import unittest

from languages import HERE, ROOT

GUIDE = ROOT / "docs" / "guide"
PAGES = [GUIDE / "languages.md", *sorted((GUIDE / "languages").glob("*.md"))]
BLOCK = re.compile(r"(<!-- (tests/languages/\S+): (\S+) -->\n```\w*\n)(.*?)(```\n)", re.S)
SOURCES = sorted(path for folder in ("psql", "python", "node", "go", "go/sqlite", "java") for path in (HERE / folder).iterdir()
                 if path.suffix in (".sql", ".py", ".mjs", ".go", ".java"))


def pieces(path):
    """By name: the lines between [name] and [/name], without marks of other pieces."""
    text = path.read_text(encoding="utf-8")
    found = {}
    for name, inside in re.findall(r"^[ \t]*(?:#|//|--) \[([\w-]+)\]\n(.*?)^[ \t]*(?:#|//|--) \[/\1\]$", text, re.S | re.M):
        found[name] = textwrap.dedent(inside.replace("\t", "    ")).strip("\n") + "\n"
    return found


def text_of(page):
    return page.read_text(encoding="utf-8")


def as_it_should_be(page):
    return BLOCK.sub(lambda block: block[1] + pieces(ROOT / block[2])[block[3]] + block[5], text_of(page))


class Pages(unittest.TestCase):
    def test_they_show_the_programs_as_they_are(self):
        self.assertEqual(len(PAGES), 5)
        for page in PAGES:
            self.assertEqual(text_of(page), as_it_should_be(page), "hint: tests/languages/page_test.py --write")

    def test_every_piece_is_shown(self):
        shown = {(path, name) for page in PAGES for _, path, name, _, _ in BLOCK.findall(text_of(page))}
        there = {(str(path.relative_to(ROOT)), name) for path in SOURCES for name in pieces(path)}
        self.assertEqual(shown, there)
        self.assertGreater(len(there), 30)

    def test_each_piece_ends(self):
        for path in SOURCES:
            text = path.read_text(encoding="utf-8")
            marks = re.findall(r"^[ \t]*(?:#|//|--) \[([\w-]+)\]$", text, re.M)
            self.assertEqual(sorted(marks), sorted(pieces(path)), path)

    def test_the_versions_that_are_tried_are_named(self):
        first, rest = text_of(PAGES[0]), "".join(text_of(page) for page in PAGES[1:])
        scripts = (ROOT / "scripts" / "lib" / "clients.sh").read_text(encoding="utf-8")
        module = (HERE / "go" / "go.mod").read_text(encoding="utf-8")
        versions = re.findall(r"^CLIENTS_\w+=([\d.]+\d)", scripts, re.M)
        versions += [re.search(rf"{name} v(\S+)", module)[1] for name in ("pgx/v5", "gorm.io/gorm")]
        versions.append(re.search(r"go-sqlite3 v(\S+)", (HERE / "go" / "sqlite" / "go.mod").read_text(encoding="utf-8"))[1])
        self.assertEqual(len(versions), 15)
        for version in versions:
            self.assertIn(f" {version}", first)
            self.assertIn(f" {version}", rest)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for name in PAGES:
            name.write_text(as_it_should_be(name), encoding="utf-8")
    else:
        unittest.main()
