#!/usr/bin/env python3
"""A project that uses the installed library, with find_package() and with pkg-config; and the headers by themselves.

The library is installed from the build folder of the tests: nothing of it is compiled again.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ["OUTBOX_BUILD"])
OUTBOX = os.environ["OUTBOX_BINARY"]
COMPILER = os.environ["OUTBOX_COMPILER"]
ADAPTERS = {"json.hpp", "postgres.hpp", "prometheus.hpp", "sqlite.hpp", "pqxx.hpp"}
STANDARD = "-std=c++20"


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, **options)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="outbox-installed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        done = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.headers = sorted((cls.prefix / "include" / "outbox").iterdir())

    def succeeds(self, *command, **options):
        done = run(*command, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def delivers(self, app):
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            self.succeeds(OUTBOX, "migrate", "--store", f"sqlite:{data}/shop.db")
            self.assertEqual(self.succeeds(app, f"{data}/shop.db"), "OrderPlaced {}\n")

    def configure(self, build, *arguments, project=HERE / "installed"):
        return run("cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_CXX_COMPILER={COMPILER}", *arguments)

    def finding(self, arguments, then=""):
        """What CMake says of find_package(outbox ARGUMENTS)."""
        with tempfile.TemporaryDirectory(dir=self.folder) as project:
            (Path(project) / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nfind_package(outbox {arguments})\n{then}\n", encoding="utf-8")
            return self.configure(f"{project}/build", project=project)

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_find_package(self):
        build = self.folder / "build"
        done = self.configure(build)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.succeeds("cmake", "--build", build)
        self.delivers(build / "app")
        told = self.succeeds(build / "sink_test")
        self.assertRegex(told, r"(?m)^\[  PASSED  \] 10 tests\.$")

    def test_pkg_config(self):
        paths = {**os.environ, "PKG_CONFIG_PATH": str(next(self.prefix.rglob("pkgconfig")))}
        for name, flags in ("shared", []), ("static", ["--static"]):
            with self.subTest(name):
                flags = self.succeeds("pkg-config", *flags, "--cflags", "--libs", "outbox-testing", "outbox-relay", "outbox-sqlite", env=paths)
                app = self.folder / f"app-{name}"
                self.succeeds(COMPILER, STANDARD, HERE / "installed" / "app.cpp", "-o", app, *shlex.split(flags))
                self.delivers(app)

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_versions_and_components_that_are_not_there(self):
        self.assertIn("0.1.0", self.finding("9.0 REQUIRED").stderr)
        self.assertIn("0.1.0", self.finding("0.0.1 REQUIRED").stderr)
        self.assertIn("without the component oracle", self.finding("REQUIRED COMPONENTS core oracle").stderr)
        self.assertEqual(self.finding("0.1 REQUIRED COMPONENTS core OPTIONAL_COMPONENTS oracle").returncode, 0)
        only = "if(TARGET outbox::relay OR NOT TARGET outbox::core)\nmessage(FATAL_ERROR wrong)\nendif()"
        self.assertEqual(self.finding("REQUIRED COMPONENTS core", only).returncode, 0)

    def test_every_header_compiles_alone(self):
        for header in self.headers:
            with self.subTest(header.name):
                # As a source file that includes it twice: also a test of the guard.
                source = f"#include <outbox/{header.name}>\n" * 2
                self.succeeds(COMPILER, STANDARD, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++", "-",
                              "-I", self.prefix / "include", input=source)

    def test_headers_name_nothing_of_others(self):
        for header in self.headers:
            if header.name in ADAPTERS:
                continue
            foreign = [name for name in re.findall(r"#include [<\"]([^>\"]+)", header.read_text(encoding="utf-8"))
                       if not name.startswith("outbox/") and not re.fullmatch("[a-z_]+", name)]
            self.assertEqual(foreign, ["tl/expected.hpp"] if header.name == "expected.hpp" else [], header.name)

    def test_of_the_library_nothing_else_is_installed(self):
        others = {path.relative_to(self.prefix).parts[0] for path in self.prefix.rglob("*")
                  if path.is_file() and path.suffix not in {".hpp", ".cpp", ".a", ".cmake", ".pc"}}
        self.assertEqual(others, {"bin", "share"})
        self.assertEqual([path.name for path in (self.prefix / "bin").iterdir()], ["outbox"])
        names = {path.name for path in (self.prefix / "include").rglob("*.hpp")}
        self.assertEqual(names, {path.name for path in (ROOT / "include" / "outbox").iterdir()} | {"expected.hpp"})
        for text in list(self.prefix.rglob("*.cmake")) + list(self.prefix.rglob("*.pc")):
            for folder in (ROOT, BUILD):
                self.assertNotIn(str(folder), text.read_text(encoding="utf-8"), text.name)

    def test_results_can_be_those_of_the_standard(self):
        """-DOUTBOX_STD_EXPECTED=ON: the headers, and code of ours that makes results."""
        include = self.folder / "std"
        (include / "outbox").mkdir(parents=True)
        shutil.copy(ROOT / "cmake" / "expected_std.hpp.in", include / "outbox" / "expected.hpp")
        own = ["-I", include, "-I", ROOT / "include", "-fsyntax-only"]
        source = "#include <outbox/worker.hpp>\n#include <outbox/testing.hpp>\n"
        has = run(COMPILER, "-std=c++23", "-x", "c++", "-fsyntax-only", "-",
                  input="#include <version>\n#ifndef __cpp_lib_expected\n#error none\n#endif\n")
        if has.returncode != 0:
            self.skipTest(f"{COMPILER} has no std::expected")
        self.succeeds(COMPILER, "-std=c++23", "-Wall", "-Wextra", "-Werror", *own, "-x", "c++", "-", input=source)
        self.assertIn("compile with C++23", run(COMPILER, STANDARD, *own, "-x", "c++", "-", input=source).stderr)
        for file in "base/setting.cpp", "task/queue_sink.cpp":
            self.succeeds(COMPILER, "-std=c++23", "-I", ROOT / "cmake" / "std_expected", "-include", "tl/expected.hpp",
                          "-I", ROOT / "src", "-DSPDLOG_FMT_EXTERNAL", *own, ROOT / "src" / file)


class Partly(unittest.TestCase):
    """A folder in which only the program was built, or only the library: cmake/InstallBuilt.cmake, with files in their place."""

    def installs(self, archives, program, component=""):
        """What is installed of these, and what is said: none of it for an error."""
        with tempfile.TemporaryDirectory(prefix="outbox-installed-") as folder:
            there, missing = Path(folder) / "there", Path(folder) / "missing"
            there.write_text("", encoding="utf-8")
            script = Path(folder) / "script.cmake"
            places = {True: there, False: missing, None: ""}
            script.write_text(f'set(outbox_archives "{there};{places[archives]}")\nset(outbox_program "{places[program]}")\n'
                              f'set(CMAKE_INSTALL_COMPONENT "{component}")\ninclude({ROOT}/cmake/InstallBuilt.cmake)\n'
                              'message(STATUS "installs [${CMAKE_INSTALL_COMPONENT}]")\n', encoding="utf-8")
            done = run("cmake", "-P", script)
            installed = re.search(r"installs \[(.*)\]", done.stdout)
            self.assertEqual(done.returncode == 0, installed is not None, done.stderr)
            return installed and installed.group(1), done.stdout + done.stderr

    def test_what_was_built_is_installed(self):
        self.assertEqual(self.installs(True, True)[0], "")
        self.assertEqual(self.installs(True, None)[0], "", "a build of the library alone")
        for archives, program, component, says in ((False, True, "program", "the library was not built, so only the program is installed"),
                                                   (True, False, "development", "the program was not built, so only the library is installed")):
            installed, said = self.installs(archives, program)
            self.assertEqual(installed, component)
            self.assertIn(says, said)
            self.assertEqual(self.installs(archives, program, component)[0], component)

    def test_what_was_asked_for_must_be_there(self):
        for archives, program, component in ((False, True, "development"), (True, False, "program"), (False, False, ""), (False, None, "")):
            installed, said = self.installs(archives, program, component)
            self.assertIsNone(installed)
            self.assertIn("was not built", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
