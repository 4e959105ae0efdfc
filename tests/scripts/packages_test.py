#!/usr/bin/env python3
"""What scripts/package makes, installed into a Debian that has nothing else, and run there; and the files of deploy/.

The packages are made from the build folder of the tests: nothing is compiled.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["OUTBOX_BINARY"]
MIB = 1024 * 1024
# Beside the packages that outbox depends on: what the Dockerfile installs, too.
MORE = ["ca-certificates", "tzdata"]
# The tarball runs where glibc is as new as here.
GLIBC = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, **options)


def debian(call):
    """Calls a function of scripts/lib/debian.sh."""
    libraries = "".join(f'. "{ROOT}/scripts/lib/{name}.sh"; ' for name in ("cache", "packages", "debian"))
    return run("sh", "-c", libraries + call)


def dockerfile():
    """The instructions of the Dockerfile, each on one line, comments left out."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


class Case(unittest.TestCase):
    def succeeds(self, *command, **options):
        done = run(*command, **options)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout


class Deploy(Case):
    """The files of deploy/ by themselves."""

    UNITS = ("outbox.service", "outbox-work.service", "outbox-consume.service", "outbox-console.service")

    def unit(self, name):
        folder = tempfile.TemporaryDirectory(prefix="outbox-unit-")
        self.addCleanup(folder.cleanup)
        unit = Path(folder.name) / name
        # systemd looks whether the program is there.
        text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
        unit.write_text(text.replace("/usr/bin/outbox", PROGRAM), encoding="utf-8")
        return unit

    def texts(self):
        return {name: self.unit(name).read_text(encoding="utf-8") for name in self.UNITS}

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_systemd_accepts_the_units(self):
        for name in self.UNITS:
            done = run("systemd-analyze", "verify", "--man=no", self.unit(name))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_the_units_are_hardened(self):
        # From 0, nothing is exposed, to 100; 20 of 100 are 2.0 of 10.
        for name in self.UNITS:
            self.succeeds("systemd-analyze", "security", "--offline=true", "--threshold=20", self.unit(name))

    def test_the_units_stop_later_than_the_relay_and_the_worker(self):
        reference = self.succeeds(PROGRAM, "config", "reference")
        for (name, unit), setting in zip(self.texts().items(), ("relay.grace", "worker.grace")):
            seconds = int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M).group(1))
            grace = re.search(rf"`{setting}` \| duration \| `\"(\d+)s\"`", reference)
            self.assertGreater(seconds, int(grace.group(1)) + 5, name)

    def test_a_stop_tells_the_worker_and_not_its_programs(self):
        self.assertIn("\nKillMode=mixed\n", self.texts()["outbox-work.service"])

    def test_what_the_units_run_is_there(self):
        for name, unit in self.texts().items():
            _, verb, *flags = re.search(r"^ExecStart=(.+)$", unit, re.M).group(1).split()
            usage = self.succeeds(PROGRAM, verb, "--help")
            for flag in flags:
                self.assertIn(f"  {flag} ", usage, name)

    def test_the_scripts_of_the_package_know_the_units(self):
        for script in "postinst", "prerm":
            text = (ROOT / "deploy" / "debian" / script).read_text(encoding="utf-8")
            for name in self.UNITS:
                self.assertRegex(text, rf"systemctl.* {re.escape(name)}\b", script)
            self.assertNotRegex(text, r"(?m)^ *systemctl.* (enable|start|restart) ", "nothing is started by installing")

    def test_the_configuration_is_valid_once_it_has_a_store(self):
        text = (ROOT / "deploy" / "outbox.toml").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="outbox-configuration-") as folder:
            file = Path(folder) / "outbox.toml"
            file.write_text(text, encoding="utf-8")
            done = run(PROGRAM, "relay", "--once", "-c", file)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("store.url", done.stderr)
            text = re.sub(r"^# (url = \"sqlite|\[sub|sink|topic|kafka)", r"\1", text, flags=re.M)
            file.write_text(text.replace("/var/lib/outbox", folder), encoding="utf-8")
            self.succeeds(PROGRAM, "config", "check", "-c", file)
            # And with its tasks.
            text = re.sub(r"^# (\[task|queue|command)", r"\1", text, flags=re.M)
            file.write_text(text.replace("/var/lib/outbox", folder).replace("/usr/local/bin/make-report", "/bin/true"), encoding="utf-8")
            self.succeeds(PROGRAM, "config", "check", "-c", file)

    @unittest.skipUnless(os.environ.get("OUTBOX_TEST_HADOLINT"), "there is no hadolint (OUTBOX_TEST_HADOLINT)")
    def test_hadolint_accepts_the_dockerfile(self):
        self.assertEqual(self.succeeds(os.environ["OUTBOX_TEST_HADOLINT"], ROOT / "deploy" / "Dockerfile"), "")

    def test_the_build_of_the_image_gets_all_that_it_needs(self):
        def matches(pattern, path):
            regex = re.escape(pattern.rstrip("/")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            return re.match(rf"{regex}(/|$)", path) is not None

        patterns = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
        self.assertTrue(matches("**/build*", "scripts/build"))
        self.assertFalse(matches("build*/", "scripts/build"))
        for folder in ("scripts", "cmake", "src", "include", "migrations", "bench", "demo", "tests/support", "deploy"):
            for file in (ROOT / folder).rglob("*"):
                path = file.relative_to(ROOT).as_posix()
                if "__pycache__" not in path:
                    self.assertEqual([one for one in patterns if matches(one, path)], [], path)

    def test_the_rules_of_the_dockerfile(self):
        lines = dockerfile()
        froms = [line.split() for line in lines if line.startswith("FROM ")]
        self.assertEqual([words[1] for words in froms], ["debian:12-slim", "debian:12-slim"])
        self.assertEqual(froms[0][2:], ["AS", "build"])
        final = lines[max(index for index, line in enumerate(lines) if line.startswith("FROM ")) + 1:]
        words = [line.split()[0] for line in final]
        self.assertLess(set(words), {"COPY", "RUN", "USER", "WORKDIR", "ENV", "ENTRYPOINT", "CMD", "STOPSIGNAL", "LABEL", "VOLUME"})
        self.assertEqual(words.count("RUN"), 1)  # one layer: what it deletes takes no room
        user = next(line for line in final if line.startswith("USER ")).split()[1]
        self.assertRegex(user, r"^[1-9]\d*:[1-9]\d*$")  # Kubernetes' runAsNonRoot wants numbers
        self.assertGreater(words.index("USER"), words.index("RUN"))
        for word in "ENTRYPOINT", "CMD":
            self.assertRegex(final[words.index(word)], r'^\w+ \["')  # the program gets the signals, no shell
        for line in lines:
            if "apt-get install" in line:
                self.assertIn("--no-install-recommends", line)
                self.assertIn("rm -rf /var/lib/apt/lists/*", line)


@functools.cache
def made():
    """The files, by name and suffix: "outbox-dev.deb"."""
    folder = tempfile.TemporaryDirectory(prefix="outbox-packages-")
    unittest.addModuleCleanup(folder.cleanup)
    done = run(ROOT / "scripts" / "package", "--no-build", "--output", folder.name)
    assert done.returncode == 0, done.stdout + done.stderr
    paths = [Path(line) for line in done.stdout.splitlines()]
    return {re.sub(r"[-_]\d.*", "", path.name) + path.suffix: path for path in paths}


class Made(Case):
    @classmethod
    def setUpClass(cls):
        for program in "cpack", "dpkg-shlibdeps", "dpkg-deb", "file", "patchelf":
            if not shutil.which(program):
                raise unittest.SkipTest(f"there is no {program}")
        folder = tempfile.TemporaryDirectory(prefix="outbox-packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.files = made()
        cls.version = run(PROGRAM, "--version").stdout.split()[1]


class Packages(Made):
    """What was made, from outside."""

    def field(self, deb, name):
        return self.succeeds("dpkg-deb", "--field", self.files[deb], name).strip()

    def contents(self, deb):
        listing = self.succeeds("dpkg-deb", "--contents", self.files[deb])
        return {line.split()[5].removeprefix("./"): line.split() for line in listing.splitlines() if not line.endswith("/")}

    def test_names_and_sizes(self):
        self.assertEqual(set(self.files), {"outbox.deb", "outbox-dev.deb", "outbox-tools.deb", "outbox.gz", "outbox-tools.gz"})
        for name, limit in ("outbox.deb", 4), ("outbox-dev.deb", 8), ("outbox-tools.deb", 4), ("outbox.gz", 24), ("outbox-tools.gz", 8):
            size = self.files[name].stat().st_size
            print(f"{self.files[name].name}: {size / MIB:.1f} MiB")
            self.assertLess(size, limit * MIB, name)
            self.assertIn(self.version, self.files[name].name)

    def test_the_program_package(self):
        contents = self.contents("outbox.deb")
        for path in "usr/bin/outbox", "usr/lib/systemd/system/outbox.service", "usr/lib/systemd/system/outbox-work.service", \
                "usr/lib/systemd/system/outbox-consume.service", "usr/lib/systemd/system/outbox-console.service", \
                "etc/outbox/outbox.toml", "usr/share/doc/outbox/copyright", "usr/share/outbox/prometheus/alerts.yaml", \
                "usr/share/outbox/grafana/outbox.json":
            self.assertIn(path, contents)
        for path in "man/man1/outbox.1.gz", "man/man1/outbox-relay.1.gz", "bash-completion/completions/outbox", \
                "zsh/vendor-completions/_outbox", "fish/vendor_completions.d/outbox.fish":
            self.assertIn(f"usr/share/{path}", contents)
            self.assertGreater(int(contents[f"usr/share/{path}"][2]), 100, path)
        self.assertFalse([path for path in contents if path.endswith((".hpp", ".a"))])
        for path, words in contents.items():
            self.assertEqual(words[1], "root/root", path)
            self.assertRegex(words[0], "^(-rwxr-xr-x|-rw-r--r--)$", path)
        self.assertEqual(self.field("outbox.deb", "Version"), self.version)
        for library in "libpq5", "libsqlite3-0", "librdkafka1", "libcurl4":
            self.assertRegex(self.field("outbox.deb", "Depends"), rf"(^|, ){library}(t64)?\b")

    def test_the_library_package(self):
        contents = self.contents("outbox-dev.deb")
        for path in "usr/include/outbox/relay.hpp", "usr/lib/liboutbox-core.a", "usr/lib/pkgconfig/outbox-core.pc", \
                "usr/lib/cmake/outbox/outboxConfig.cmake":
            self.assertIn(path, contents)
        self.assertFalse([path for path in contents if "/bin/" in path or path.startswith("etc/")])

    def test_the_tools_package(self):
        programs = {path for path in self.contents("outbox-tools.deb") if "/doc/" not in path}
        self.assertEqual(programs, {"usr/bin/outbox-bench", "usr/bin/outbox-demo"})
        self.assertIn(f"outbox (= {self.version})", self.field("outbox-tools.deb", "Depends"))
        for name in "outbox.deb", "outbox-dev.deb":
            self.assertEqual(programs & set(self.contents(name)), set(), name)
        names = self.succeeds("tar", "-tf", self.files["outbox-tools.gz"]).splitlines()
        self.assertEqual({name.partition("/")[2] for name in names} - {"", "bin/"}, {"bin/outbox-bench", "bin/outbox-demo"})

    def test_no_symbol_of_a_later_glibc(self):
        unpacked = self.folder / "unpacked"
        unpacked.mkdir()
        for name in "outbox.gz", "outbox-tools.gz":
            self.succeeds("tar", "-xf", self.files[name], "-C", unpacked)
        for file in [*unpacked.glob("*/bin/*"), *unpacked.glob("*/lib/*")]:
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", self.succeeds("objdump", "-T", file))
            self.assertLessEqual(max((tuple(map(int, version)) for version in versions), default=GLIBC), GLIBC, file.name)

    def test_every_library_comes_with_its_licence(self):
        names = self.succeeds("tar", "-tf", self.files["outbox.gz"]).splitlines()
        libraries = [name for name in names if "/lib/lib" in name]
        licences = [name for name in names if "/licenses/" in name and not name.endswith("/")]
        self.assertGreater(len(libraries), 10)
        self.assertGreater(len(licences), 10)
        for unit in Deploy.UNITS:
            self.assertTrue(any(name.endswith(f"/{unit}") for name in names), unit)
        self.assertFalse([name for name in libraries if re.search(r"/(libc|libm|ld-linux.*)\.so", name)])


class Installed(Made):
    """In a root folder of its own."""

    @classmethod
    def setUpClass(cls):
        unavailable = debian("debian_unavailable")
        if unavailable.returncode == 0:
            raise unittest.SkipTest(unavailable.stdout.strip())
        super().setUpClass()
        depends = run("dpkg-deb", "--field", cls.files["outbox.deb"], "Depends").stdout
        needed = sorted({re.sub(r"[ (|:].*", "", item.strip()) for item in depends.split(",")})
        base = debian(f"debian_base {' '.join(needed + MORE)}")
        if base.returncode != 0:
            raise unittest.SkipTest(f"a Debian to install into {base.stdout.strip()}")
        cls.root = cls.folder / "root"
        cls.root.mkdir(mode=0o755)
        unpacked = run("tar", "-xpf", base.stdout.strip(), "-C", cls.root, "--numeric-owner")
        assert unpacked.returncode == 0, unpacked.stderr

    def inside(self, *command, user=None):
        # With /proc, where the dynamic linker learns what $ORIGIN is; it is gone with the command.
        mounted = ["unshare", "--mount", "sh", "-ec", 'mount --rbind /proc "$0/proc"; exec chroot "$@"', self.root]
        as_user = ["--userspec", user] if user else []
        return run(*mounted, *as_user, self.root, *command,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"})

    def works(self, *command, user=None):
        done = self.inside(*command, user=user)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def delivers(self, program, folder, user=None):
        self.assertEqual(self.works(program, "--version"), f"outbox {self.version}\n")
        configuration = self.root / folder.lstrip("/") / "outbox.toml"
        configuration.write_text('[store]\nurl = "sqlite:shop.db"\n[subscription.all]\nsink = "file"\nfile.path = "out.jsonl"\n', encoding="utf-8")
        configuration.chmod(0o644)
        options = ["-c", f"{folder}/outbox.toml"]
        self.works(program, "migrate", *options, user=user)
        self.works(program, "enqueue", "order", "1", "OrderPlaced", '{"total": 1}', *options, user=user)
        self.works(program, "relay", "--once", *options, user=user)
        self.assertIn("OrderPlaced", (configuration.parent / "out.jsonl").read_text(encoding="utf-8"))

    def shows(self, demo, user=None):
        numbers = json.loads(self.works(demo, "--json", "--seconds", "1", "--kills", "1", user=user))
        self.assertEqual((numbers["lost"], numbers["kills"]), (0, 1))

    def size(self):
        """What a container's image would have of it."""
        left_out = ["var/lib/apt/lists", "var/cache/apt", "srv", "proc", "sys"]
        return int(self.succeeds("du", "-s", "--block-size=1", *(f"--exclude=./{path}/*" for path in left_out), ".", cwd=self.root).split()[0])

    def test_1_the_tarball_needs_nothing(self):
        self.assertEqual(self.inside("ldconfig", "-p").stdout.count("libpq.so"), 0)
        folder = self.root / "srv"
        for name in "outbox.gz", "outbox-tools.gz":
            self.succeeds("tar", "-xf", self.files[name], "-C", folder)
        (program,) = folder.glob("*/bin/outbox")
        (folder / "data").mkdir()
        self.delivers("/" + str(program.relative_to(self.root)), "/srv/data")
        self.shows(f"/{program.relative_to(self.root)}-demo")

    def test_2_the_steps_of_the_dockerfile(self):
        (self.root / "tmp" / self.files["outbox.deb"].name).write_bytes(self.files["outbox.deb"].read_bytes())
        (step,) = [line.removeprefix("RUN ") for line in dockerfile()[-12:] if line.startswith("RUN ") and "outbox_" in line and "/tmp/" in line]
        self.assertIn("apt-get update", step)
        # The index is there, and is the one of the packages that are there.
        step = step.replace("apt-get update", "true").replace("/var/lib/apt/lists/*", "/nothing")
        before = self.size()
        print(self.works("sh", "-c", step))
        added = self.size() - before
        print(f"the image grows by {added / MIB:.1f} MiB")
        self.assertLess(added, 80 * MIB)

    def test_3_the_package_delivers(self):
        self.assertRegex(self.works("getent", "passwd", "outbox"), "^outbox:.*:/var/lib/outbox:/usr/sbin/nologin$")
        self.assertEqual(self.works("stat", "-c", "%a %U %G", "/etc/outbox/outbox.toml", "/var/lib/outbox"), "640 root outbox\n750 outbox outbox\n")
        self.delivers("/usr/bin/outbox", "/var/lib/outbox", user="outbox:outbox")
        self.assertIn("store.url", self.inside("outbox", "relay", "-c", "/etc/outbox/outbox.toml").stderr)

    def test_3_the_tools_beside_it(self):
        shutil.copy(self.files["outbox-tools.deb"], self.root / "tmp" / "tools.deb")
        self.works("dpkg", "--install", "/tmp/tools.deb")
        self.shows("/usr/bin/outbox-demo", user="outbox:outbox")
        self.assertIn("enqueue", self.works("outbox-bench", "--list"))
        self.works("dpkg", "--purge", "outbox-tools")

    def test_4_an_upgrade_keeps_what_was_changed(self):
        configuration = self.root / "etc" / "outbox" / "outbox.toml"
        changed = configuration.read_text(encoding="utf-8") + "# mine\n"
        configuration.write_text(changed, encoding="utf-8")
        configuration.chmod(0o600)
        shutil.copy(self.files["outbox.deb"], self.root / "tmp" / "new.deb")
        self.works("dpkg", "--install", "/tmp/new.deb")
        self.assertEqual(configuration.read_text(encoding="utf-8"), changed)
        self.assertEqual(configuration.stat().st_mode & 0o777, 0o600)

    def test_5_a_purge_keeps_the_data(self):
        self.works("dpkg", "--purge", "outbox")
        self.assertFalse((self.root / "usr" / "bin" / "outbox").exists())
        self.assertFalse((self.root / "etc" / "outbox").exists())
        self.assertTrue((self.root / "var" / "lib" / "outbox" / "shop.db").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
