"""The blocks of a page of the documentation, with what the page says about them.

A comment on the line before a block says how it is held:

    <!-- FILE -->            it is this file of the repository, as it is
    <!-- part of FILE -->    each of its paragraphs stands in this file, with other spaces and line breaks maybe
    <!-- FILE: PART -->      it is a part of a program that runs in the tests of its folder, which compare it
    <!-- in TABLE -->        settings of this table of the configuration that the page shows first
    <!-- example -->         somebody else's system: the commands must be right, their output is not compared
    <!-- not run: WHY -->    it cannot run in a test; WHY is one of NOT_RUN

Without one a console block runs, unless it has the prompt of root (#), in the folder of the page, after the blocks before it, and its output is compared with what
stands there; a block of SQL runs in psql, a block of TOML is checked. Commands between "<!-- run" and "-->" prepare that, and are
not shown. What differs from run to run (ids, times, durations) is not compared; "..." stands for anything.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Why a block cannot run in a test.
NOT_RUN = {
    "installs": "installs packages, or changes the machine as root",
    "service": "needs a service manager",
    "containers": "needs a container runtime or a cluster",
    "brokers": "needs a broker, which the tests of its sink start",
    "network": "needs a host of the reader",
    "builds": "compiles or packages this project, which tests of their own do",
    "roles": "roles belong to the whole server; cli_quick_start and the tests of the sink make such",
}

# These programs say so by themselves.
NOT_RUN_PROGRAMS = {
    "installs": ("apt", "apt-get", "dpkg", "rpm", "dnf", "brew", "sudo", "install", "pip", "npm", "go", "gem", "cargo", "mvn"),
    "service": ("systemctl", "journalctl", "systemd-creds"),
    "containers": ("docker", "podman", "kubectl", "helm"),
    "network": ("ssh", "scp", "mail"),
    "brokers": ("redis-cli", "nats", "nats-server", "rabbitmqctl", "kafka-topics", "kafka-topics.sh", "kcat", "aws"),
    "builds": ("cmake", "c++", "g++", "tar", "scripts/build", "scripts/test", "scripts/demo"),
}

FENCE = re.compile(r"^(\s*)```([\w+-]*)\s*$")
COMMENT = re.compile(r"^\s*<!-- (.*?) -->\s*$")


class Block:
    def __init__(self, line, language, text, said=""):
        self.line, self.language, self.text, self.said = line, language, text, said

    def commands(self):
        """Of a console block: [(command, what it prints)]."""
        found, prompt = [], "# " if self.is_of_root() else "$ "
        for line in self.text.splitlines():
            if line.startswith(prompt):
                found.append([line[2:], []])
            elif found and not found[-1][1] and (line.startswith("> ") or found[-1][0].endswith("\\")):
                found[-1][0] += "\n" + line.removeprefix("> ")
            elif found:
                found[-1][1].append(line)
            else:
                raise ValueError(f"line {self.line}: a console block begins with a command: $ ...")
        return [(command, "\n".join(output).strip("\n")) for command, output in found]

    def is_of_root(self):
        return self.text.startswith("# ")

    def runs_elsewhere(self):
        return re.fullmatch(r"[\w./-]+: [\w -]+", self.said) is not None and not self.said.startswith("not run: ")

    def why_not_run(self):
        """A key of NOT_RUN, or None."""
        if self.said.startswith("not run: "):
            why = self.said.removeprefix("not run: ")
            if why not in NOT_RUN:
                raise ValueError(f"line {self.line}: not run: {why} is none of {', '.join(NOT_RUN)}")
            return why
        if self.language != "console":
            return None
        if self.is_of_root():
            return "installs"
        first = {word for command, _ in self.commands() for word in programs(command)}
        return next((why for why, names in NOT_RUN_PROGRAMS.items() if first & set(names)), None)


def programs(command):
    """The names of the programs that a shell command runs, as far as that can be seen."""
    for part in re.split(r"[|;&]+|\bthen\b|\bdo\b", command):
        words = [word for word in part.split() if not re.match(r"^\w+=", word)]
        if words:
            yield words[0]


def blocks(text):
    """All blocks of a page, in order; those that are hidden have the language "setup"."""
    lines, found, index = text.splitlines(), [], 0
    said = ""
    while index < len(lines):
        line = lines[index]
        if line.strip() == "<!-- run":
            end = next((n for n in range(index + 1, len(lines)) if lines[n].strip() == "-->"), None)
            if end is None:
                raise ValueError(f"line {index + 1}: the comment has no end")
            found.append(Block(index + 1, "setup", "".join(inner.strip() + "\n" for inner in lines[index + 1:end])))
            index = end + 1
            continue
        if fence := FENCE.match(line):
            end = next((n for n in range(index + 1, len(lines)) if lines[n].strip() == "```"), None)
            if end is None:
                raise ValueError(f"line {index + 1}: the block has no end")
            inside = [inner.removeprefix(fence[1]) for inner in lines[index + 1:end]]
            found.append(Block(index + 1, fence[2], "".join(inner + "\n" for inner in inside), said))
            index = end
        comment = COMMENT.match(line)
        said = comment[1] if comment else ""
        index += 1
    return found


def check_source(block):
    """What is wrong with a block that a comment says is of a file; None if nothing is, or no comment says so."""
    wanted = re.fullmatch(r"(part of )?((?:[\w.-]+/)+[\w.-]+)", block.said)
    if not wanted:
        return None
    path = ROOT / wanted[2]
    if not path.is_file():
        return f"there is no {wanted[2]}"
    text = path.read_text(encoding="utf-8")
    if wanted[1] is None:
        return None if block.text == text else f"is not as {wanted[2]}"
    whole = without_spaces(text)
    missing = [part for part in re.split(r"\n\s*\n", block.text) if without_spaces(part) not in whole]
    return f"does not stand in {wanted[2]}:\n{missing[0]}" if missing else None


def without_spaces(text):
    return re.sub(r"\s+", "", text)


DIFFERS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)?"), "TIME"),
    (re.compile(r"(?<![\w.])\d+(\.\d+)?(us|ms|s|m|h|d|min)\b"), "DURATION"),
    (re.compile(r"[\w.-]+:\d+(?=\s)"), "PROCESS"),
    (re.compile(r"postgresql://[^\s)\"']+"), "URL"),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r"[ \t]+"), " "),
)


def stable(text):
    """The lines of an output, without what differs from run to run."""
    for pattern, name in DIFFERS:
        text = pattern.sub(name, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


LOG = re.compile(r"^\d{4}-\d\d-\d\dT\S+ (info|warning|error) .*\n", re.M)


def same(shown, printed):
    """Whether the output is what the page shows. "..." stands for anything, alone on a line for any lines. The log needs not be shown."""
    if not LOG.search(shown + "\n"):
        printed = LOG.sub("", printed)
    pattern = ""
    for line in stable(shown):
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in stable(printed))) is not None
