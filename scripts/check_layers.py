#!/usr/bin/env python3
"""Checks that the #include lines of src/, include/, bench/ and demo/ follow the layers.

    base <- event <- {format, schedule} <- subscription <- pg <- {store, sink, feed, testing} <- source <- history <- {relay, task, inbox} <- {metrics, health, verify} <- http <- console <- cli

A folder includes only folders of lower layers. Folders of one layer do not include each other, except that feed uses the
interfaces of store; nor do the stores (src/store/postgres, src/store/sqlite), the sinks (src/sink/NAME) and the sources (src/source/NAME),
of which each knows its sink. Files directly in
src/store and src/sink are shared by them, or open them by name; src/store/sql, src/sink/curl and src/sink/hiredis are shared, too. Public
headers include public headers and the standard library; only the adapters (postgres.hpp, sqlite.hpp, json.hpp, prometheus.hpp) include a third-party one.

usage: scripts/check_layers.py [ROOT]      prints what is wrong, one line each; 1 if anything is
"""

import re
import sys
from pathlib import Path

CORE = {"base", "event", "format", "schedule", "subscription"}
SIDES = CORE | {"store", "sink", "source", "feed"}
BELOW_ENGINES = SIDES | {"history"}
ENGINES = BELOW_ENGINES | {"relay", "task", "inbox", "config"}

# What each folder of src/ may include, besides itself.
ALLOWED = {
    "base": set(),
    "event": {"base"},
    "format": {"base", "event"},
    "schedule": {"base", "event"},
    "subscription": {"base", "event", "format"},
    # What the PostgreSQL store and the PostgreSQL sink share of libpq.
    "pg": CORE,
    "store": CORE | {"pg"},
    "sink": CORE | {"pg"},
    # A source shares the client code of the sink of the same name.
    "source": CORE | {"sink"},
    "feed": CORE | {"store"},
    "testing": CORE,
    "history": CORE | {"store"},
    "relay": BELOW_ENGINES,
    "task": BELOW_ENGINES,
    "inbox": BELOW_ENGINES,
    # The settings of all parts, as text: the declared settings of sinks and the syntax of store addresses, nothing that runs.
    "config": CORE | {"store", "sink", "source"},
    "metrics": CORE | {"relay"},
    "health": ENGINES,
    "verify": ENGINES,
    "http": ENGINES | {"metrics", "health", "verify"},
    "console": CORE | {"http"},
    "cli": ENGINES | {"metrics", "health", "verify", "http", "console"},
}

# The programs beside src/: each runs the whole path, and nothing includes them. support is tests/support.
PROGRAMS = {
    "bench": ENGINES | {"verify", "http", "cli", "support"},
    "demo": ENGINES | {"cli", "support"},
}
KNOWN = {*ALLOWED, *PROGRAMS, "support"}

# Folders whose subfolders do not include each other.
DIVIDED = {"store", "sink", "source"}
SHARED = {"sql", "curl", "hiredis"}  # The subfolders that the others may include.

ADAPTERS = {"json.hpp", "postgres.hpp", "pqxx.hpp", "prometheus.hpp", "sqlite.hpp"}

SHIPPED = ("testing", "sink_conformance")  # Sources that are installed: they include their neighbours.

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def includes(path):
    """Yields (line number, path between quotes or None, path between angles or None)."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def part_of(parts):
    """The divided part that a path below src/ belongs to, such as ('sink', 'kafka'), or None."""
    if len(parts) > 2 and parts[0] in DIVIDED:
        return parts[0], parts[1]
    return None


def check_source(own, quoted, angled):
    """What is wrong with one include of a file below src/ or of a program beside it, or None."""
    if quoted is None:
        target = angled.split("/")
        return "own headers go in quotes" if len(target) > 1 and target[0] in KNOWN else None
    target = quoted.split("/")
    if target[0] == "outbox":
        # In quotes only above the code that implements it.
        if Path(quoted).stem == Path(own[-1]).stem:
            return None
        return f"write <{quoted}>: public headers go in angles"
    if own[:-1] == SHIPPED and len(target) == 1:
        return None
    if target[0] not in KNOWN:
        return f'"{quoted}" is not a path from src/'
    if target[0] != own[0] and target[0] not in {**ALLOWED, **PROGRAMS}[own[0]]:
        return f"{own[0]} must not know {target[0]}"
    ours, theirs = part_of(own), part_of(target)
    if ours and theirs and ours != theirs and theirs[1] not in SHARED and ours != ("source", theirs[1]):
        return f"{'/'.join(ours)} must not know {'/'.join(theirs)}"
    return None


def check_public(name, quoted, angled):
    """What is wrong with one include of a public header, or None."""
    if quoted is not None:
        return f'"{quoted}": public headers include only <outbox/...> and the standard library'
    if angled.startswith("outbox/") or name in ADAPTERS:
        return None
    if "/" in angled or "." in angled:
        return f"<{angled}> is neither public nor of the C++ standard library"
    return None


def files_below(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in {".hpp", ".cpp", ".h", ".ipp"})


def check(root):
    problems = []

    def report(path, number, problem):
        if problem:
            problems.append(f"{path.relative_to(root)}:{number}: {problem}")

    for path in files_below(root / "src"):
        own = path.relative_to(root / "src").parts
        if own[0] not in ALLOWED:
            report(path, 1, f"src/{own[0]} has no place among the layers; give it one in ALLOWED")
            continue
        for number, quoted, angled in includes(path):
            report(path, number, check_source(own, quoted, angled))
    for program in PROGRAMS:
        for path in files_below(root / program):
            for number, quoted, angled in includes(path):
                report(path, number, check_source(path.relative_to(root).parts, quoted, angled))
    for path in files_below(root / "include" / "outbox"):
        for number, quoted, angled in includes(path):
            report(path, number, check_public(path.name, quoted, angled))
    return problems


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    if not (root / "src").is_dir():
        sys.exit(f"check_layers: {root} has no src/")
    problems = check(root)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
