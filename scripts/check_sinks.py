#!/usr/bin/env python3
"""Checks that a sink is one folder, one line and one page: counts the files elsewhere that name it.

The sinks are those of the line in src/sink/CMakeLists.txt. A sink may be named there, in its own folder, in a folder that its
CMakeLists.txt asks for (FOLDERS), and by what exists to look at it from outside: tests, docs and the servers that scripts start.
Every other file that names it is one more place that a change of the sink must not forget.

usage: scripts/check_sinks.py [ROOT]      prints what is wrong, one line each; 1 if anything is
"""

import re
import sys
from pathlib import Path

SEARCHED = ("CMakeLists.txt", "cmake", "include", "src")
ASIDE = {"src/sink/CMakeLists.txt", "src/source/CMakeLists.txt"}

# How many files may name a sink. Lower a number when it can be lower; a sink that is not here is named nowhere.
LIMITS = {
    "kafka": 8,  # examples of outbox init, pause, verify and consumers; tombstones; the JSON of Kafka Connect; its binding of CloudEvents
    "nats": 1,  # the header that has the id of a received message
    "redis": 4,  # asynq, whose queues are on a Redis server
    "smtp": 5,  # the handler of tasks
}

# Names that are words of other things, too: they count where they can mean only the sink.
COMMON_WORDS = {"file", "http", "null", "postgres", "stdout"}


def sinks_of(root):
    """The names in the one line."""
    text = (root / "src/sink/CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^foreach\(sink ([^)]*)\)", text, re.MULTILINE).group(1).split()


def own_folders(root, sink):
    text = (root / "src/sink" / sink / "CMakeLists.txt").read_text(encoding="utf-8")
    shared = re.search(r"\bFOLDERS ((?:[a-z/]+\s+)+)", text)
    return (f"src/sink/{sink}/", f"src/source/{sink}/", *(f"src/{one}/" for one in (shared.group(1).split() if shared else [])))


def pattern_of(sink):
    certain = rf"\bsink[/_:]+{sink}\b|\boutbox_sink_{sink}\b|\bOUTBOX_WITH_{sink.upper()}(?:_SINK)?\b"
    if sink == "postgres":  # The store has the shorter name.
        certain = r"\bsink[/_:]+postgres\b|\bPOSTGRES_SINK\b"
    word = "" if sink in COMMON_WORDS else rf"|(?i:(?<![a-z]){sink}(?![a-z]))"
    return re.compile(certain + word)


def files_of(root):
    for name in SEARCHED:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def check(root):
    problems = []
    files = [one for one in files_of(root) if one[0] not in ASIDE]
    for sink in sinks_of(root):
        own, pattern = own_folders(root, sink), pattern_of(sink)
        found = [name for name, text in files if not name.startswith(own) and pattern.search(text)]
        limit = LIMITS.get(sink, 0)
        if len(found) > limit:
            problems.append(f"{sink} is named in {len(found)} files outside its folder, more than {limit}: {' '.join(found)}")
        elif len(found) < limit:
            problems.append(f"{sink} is named in {len(found)} files outside its folder: lower its limit, {limit}, in LIMITS")
    return problems


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = check(root)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
