#!/usr/bin/env python3
"""Checks that the paths in the documents exist.

A path is the target of a Markdown link (relative to its document), or a word between backquotes or in plain text that
begins with a folder of the repository (docs/..., src/..., scripts/...). A name such as `queries.cpp` between backquotes must be
the name of some file of the repository. `*`, NAME and the like match anything.

usage: scripts/check_paths.py [ROOT]      prints what is missing, one line each; 1 if anything is
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ("bench", "cmake", "docs", "examples", "include", "migrations", "scripts", "src", "tests")

FENCE = re.compile(r"^\s*```")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PATH = re.compile(r"(?<![\w./:$-])((?:%s)/[\w.*/-]*[\w*])" % "|".join(FOLDERS))
SOURCE = re.compile(r"`([\w-]+\.(?:cpp|hpp|py|md|sh))`")
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


def check_link(document, target, root, paths):
    if ":" in target:
        return None  # elsewhere
    path = (document.parent / target).resolve()
    if not path.is_relative_to(root) or str(path.relative_to(root)) not in paths:
        return f"the link to {target} leads nowhere"
    return None


def check_document(document, root, paths):
    """Yields (line number, what is wrong)."""
    names = {Path(path).name for path in paths}
    code = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            code = not code
        if code:
            continue  # of the reader's own tree, or the output of a program
        for target in LINK.findall(line):
            if wrong := check_link(document, target, root, paths):
                yield number, wrong
        for path in PATH.findall(LINK.sub("]", line)):
            if not PLACEHOLDER.search(path) and not exists(path, paths):
                yield number, f"there is no {path}"
        for name in SOURCE.findall(line):
            if name not in names and not PLACEHOLDER.search(name):
                yield number, f"there is no file {name}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    paths = tracked(root)
    problems = [
        f"{name}:{number}: {what}"
        for name in sorted(path for path in paths if path.endswith(".md"))
        for number, what in check_document(root / name, root, paths)
    ]
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
