#!/usr/bin/env python3
"""That what uses other libraries compiles on both releases of Debian: on the one that this machine is not, too. All is compiled and
tested there by scripts/soak --debian. And what the scripts say on other systems."""

import functools
import json
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# The headers of other libraries, by the beginnings of their names.
FOREIGN = re.compile(r"(CLI|curl|fmt|hiredis|librdkafka|nats|nlohmann|openssl|pqxx|protozero|rabbitmq-c|spdlog|tl|toml\+\+)/|libpq-|sqlite3\.h")
# Their calls are what a new version deprecates, so each file that includes one itself is compiled.
CLIENTS = re.compile(r"(CLI|curl|hiredis|librdkafka|nats|openssl|toml\+\+)/|sink/rabbitmq/librabbitmq\.hpp")


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, **options)


def libraries(script):
    """Runs a piece of shell with the libraries of scripts/."""
    names = ("say", "cache", "packages", "debian")
    return run("sh", "-c", "".join(f'. "{ROOT}/scripts/lib/{name}.sh"; ' for name in names) + script)


class OtherSystems(unittest.TestCase):
    """What the scripts say of the system that they are run on."""

    def check(self, release, before=""):
        with tempfile.NamedTemporaryFile("w", prefix="outbox-os-release-", encoding="utf-8") as file:
            file.write(release)
            file.flush()
            return libraries(f'SYSTEM_RELEASE="{file.name}"; {before} system_check')

    def test_nothing_on_debian_12_and_13(self):
        for version in "12", "13":
            done = self.check(f'PRETTY_NAME="Debian GNU/Linux {version}"\nID=debian\nVERSION_ID="{version}"\n')
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(shutil.which("apt-get"), "there is no apt-get")
    def test_its_name_where_there_is_apt(self):
        for release, name in (('PRETTY_NAME="Ubuntu 24.04 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n', "Ubuntu 24.04 LTS"),
                              ('PRETTY_NAME="Debian GNU/Linux forky/sid"\nID=debian\n', "Debian GNU/Linux forky/sid"),
                              ("", "an unknown system")):
            done = self.check(release)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn(f"this is {name}; the project is tested on Debian 12 and 13", done.stderr)

    def test_what_to_do_where_there_is_none(self):
        done = self.check('PRETTY_NAME="Fedora Linux 41"\nID=fedora\nVERSION_ID=41\n', "PATH=/nothing:$(dirname $(command -v sed));"
                          " command() { [ $2 != apt-get ]; };")
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is Fedora Linux 41", done.stderr)
        self.assertIn("scripts/build --no-setup", done.stderr)


@functools.cache
def foreign_of(path):
    """The headers of other libraries that a file includes itself, or through headers of ours."""
    found = set()
    for quote, name in re.findall(r'#include ([<"])([^>"]+)', path.read_text(encoding="utf-8")):
        if FOREIGN.match(name):
            found.add(name)
        for folder in ("src", "include", ".", "tests"):
            if (ROOT / folder / name).is_file() and ROOT / folder / name != path:
                found |= foreign_of(ROOT / folder / name)
    return frozenset(found)


def chosen(sources):
    """Those that include clients' headers themselves, and a few more, so that each header of another library is in one."""
    taken, covered = [], set()
    for source in sources:
        text = source.read_text(encoding="utf-8") + "".join(
            header.read_text(encoding="utf-8") for header in (source.with_suffix(".hpp"),) if header.exists())
        if any(CLIENTS.match(name) for name in re.findall(r"#include [<\"]([^>\"]+)", text)):
            taken.append(source)
            covered |= foreign_of(source)
    rest = [source for source in sources if source not in taken]
    while True:
        best = max(rest, key=lambda source: (len(foreign_of(source) - covered), -source.stat().st_size))
        if foreign_of(best) <= covered:
            return taken
        taken.append(best)
        covered |= foreign_of(best)


class OtherDebian(unittest.TestCase):
    def test_what_uses_other_libraries_compiles(self):
        release = "case $DEBIAN_RELEASE in bookworm) DEBIAN_RELEASE=trixie ;; *) DEBIAN_RELEASE=bookworm ;; esac; "
        unavailable = libraries(release + "debian_unavailable")
        if unavailable.returncode == 0:
            self.skipTest(unavailable.stdout.strip())
        made = libraries(release + "debian_tree $(packages_for build) libpqxx-dev")
        if made.returncode != 0:
            self.skipTest(f"another Debian {made.stdout.strip()}")
        folder = tempfile.TemporaryDirectory(prefix="outbox-debian-")
        self.addCleanup(folder.cleanup)

        def inside(*command):
            words = ["debian_run", made.stdout.strip(), "--bind", ROOT, "/outbox", "--bind", folder.name, "/build",
                     "env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", *command]
            done = libraries(shlex.join(map(str, words)))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        inside("cmake", "-S", "/outbox", "-B", "/build", "-G", "Ninja", "-DOUTBOX_WERROR=ON", "-Wno-dev")
        commands = json.loads((Path(folder.name) / "compile_commands.json").read_text(encoding="utf-8"))
        by_source = {ROOT / Path(one["file"]).relative_to("/outbox"): one for one in commands if one["file"].startswith("/outbox/")}
        sources = chosen(sorted(by_source))
        script = Path(folder.name) / "compile"
        lines = [re.sub(r" -o \S+ -c ", " -fsyntax-only ", by_source[source]["command"]) for source in sources]
        script.write_text("failed=0\ncd /build\n" + "".join(f"{line} || failed=1\n" for line in lines) + "exit $failed\n", encoding="utf-8")
        inside("sh", "/build/compile")
        print(f"{len(sources)} files compile")


if __name__ == "__main__":
    unittest.main(verbosity=2)
