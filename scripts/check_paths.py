#!/usr/bin/env python3
"""Checks that what the documents point to exists.

A path is the target of a Markdown link (relative to its document), or a word between backquotes or in plain text that
begins with a folder of the repository (docs/..., src/..., scripts/...). A name such as `queries.cpp` between backquotes must be
the name of some file of the repository. `*`, NAME and the like match anything. What follows the # of a link must be a heading of
that document. Names between backquotes in the text of a link to a file of tests/ must stand in that file; a name of five words and
more, as tests have, in some source. Links to elsewhere are checked for their form only. A picture must be well-formed.

usage: scripts/check_paths.py [ROOT]      prints what is missing, one line each; 1 if anything is
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

FOLDERS = ("bench", "cmake", "demo", "deploy", "docs", "examples", "include", "migrations", "scripts", "src", "tests")

FENCE = re.compile(r"^\s*```")
LINK = re.compile(r"(?:\[([^\[\]]*))?\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./:$-])((?:%s)/[\w.*/-]*[\w*])" % "|".join(FOLDERS))
SOURCE = re.compile(r"`([\w-]+\.(?:cpp|hpp|py|md|sh))`")
NAME = re.compile(r"`([a-z0-9_]+)`")
LONG_NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){4,})`")
ELSEWHERE = re.compile(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/[\w./~%@+:,=&?!$*-]*)?(#[\w./=%:~-]+)?")
HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
SOURCES = (".cpp", ".hpp", ".py", ".sh", ".sql", ".java", ".go")
PLACEHOLDER = re.compile(r"[A-Z]{3,}")


def tracked(root):
    """All files of the repository, and their folders."""
    try:
        command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    paths = {name for name in names if (root / name).exists()}
    return paths | {str(parent) for name in paths for parent in Path(name).parents}


def exists(path, paths):
    return bool(fnmatch.filter(paths, path)) if "*" in path else path in paths


def anchors(document):
    """What may follow the # of a link to it: its headings, as GitHub names them."""
    found, code = set(), False
    for line in document.read_text(encoding="utf-8").splitlines():
        if FENCE.match(line):
            code = not code
        heading = None if code else HEADING.match(line)
        if heading:
            text = LINK.sub(r"\1", heading[1])
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            number = 0
            while (anchor := f"{name}-{number}" if number else name) in found:
                number += 1
            found.add(anchor)
    return found


def check_link(document, text, link, root, paths):
    if "://" in link:
        return None if ELSEWHERE.fullmatch(link) else f"{link} is no address"
    target, _, anchor = link.partition("#")
    path = (document.parent / target).resolve() if target else document
    if not path.is_relative_to(root) or str(path.relative_to(root)) not in paths:
        return f"the link to {target} leads nowhere"
    if anchor and (path.suffix != ".md" or anchor not in anchors(path)):
        return f"{target or 'this document'} has no heading #{anchor}"
    if path.is_file() and path.is_relative_to(root / "tests"):
        missing = set(NAME.findall(text)) - {path.stem} - set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        if missing:
            return f"{target} has no {', '.join(sorted(missing))}"
    return None


def check_document(document, root, paths, names, words):
    """Yields (line number, what is wrong)."""
    code = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            code = not code
        if code:
            continue  # of the reader's own tree, or the output of a program
        for text, target in LINK.findall(line):
            if wrong := check_link(document, text, target, root, paths):
                yield number, wrong
        for path in PATH.findall(LINK.sub("]", line)):
            if not PLACEHOLDER.search(path) and not exists(path, paths):
                yield number, f"there is no {path}"
        for name in SOURCE.findall(line):
            if name not in names and not PLACEHOLDER.search(name):
                yield number, f"there is no file {name}"
        for name in LONG_NAME.findall(line):
            if name not in words:
                yield number, f"nothing is named {name}"


def words_of_sources(root, paths):
    return {word for path in paths if path.endswith(SOURCES)
            for word in re.findall(r"\w+", (root / path).read_text(encoding="utf-8", errors="replace"))}


def check_picture(picture):
    try:
        ElementTree.parse(picture)
    except ElementTree.ParseError as error:
        return f"{error.position[0]}: is no picture: {error}"
    return None


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    paths = tracked(root)
    names = {Path(path).name for path in paths}
    words = words_of_sources(root, paths)
    problems = [
        f"{name}:{number}: {what}"
        for name in sorted(path for path in paths if path.endswith(".md"))
        for number, what in check_document(root / name, root, paths, names, words)
    ]
    problems += [f"{name}:{wrong}" for name in sorted(path for path in paths if path.endswith(".svg"))
                 if (wrong := check_picture(root / name))]
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
