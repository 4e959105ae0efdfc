#!/usr/bin/env python3
"""Tests scripts/check_layers.py on small trees."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "check_layers.py"


def problems(files):
    """Runs the check on a tree of these files; returns what it printed, by line."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "src").mkdir()
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False
        )
    lines = run.stdout.splitlines()
    assert run.stderr == "", run.stderr
    assert run.returncode == (1 if lines else 0)
    return lines


class Layers(unittest.TestCase):
    def accepts(self, name, text):
        self.assertEqual(problems({name: text}), [])

    def refuses(self, name, text, why):
        found = problems({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{name}:1: "), found[0])
        self.assertIn(why, found[0])

    def test_arrows_point_down(self):
        self.accepts("src/event/key.cpp", '#include "base/error.hpp"\n')
        self.accepts("src/relay/relay.cpp", '#include "store/store.hpp"\n')
        self.accepts("src/store/postgres/store.cpp", '#include "pg/url.hpp"\n')
        self.refuses("src/pg/url.cpp", '#include "store/url.hpp"\n', "pg must not know store")
        self.refuses("src/relay/relay.cpp", '#include "pg/url.hpp"\n', "relay must not know pg")
        self.accepts("src/cli/main.cpp", '#include "health/doctor.hpp"\n')
        self.refuses("src/base/error.cpp", '#include "event/key.hpp"\n', "base must not know event")
        self.refuses("src/store/open.cpp", '#include "relay/relay.hpp"\n', "must not know relay")
        self.refuses("src/health/doctor.cpp", '#include "cli/exit.hpp"\n', "must not know cli")

    def test_programs_beside_the_sources(self):
        self.accepts("bench/main.cpp", '#include "cli/program.hpp"\n#include "bench/figure.hpp"\n#include "support/judge.hpp"\n')
        self.refuses("bench/main.cpp", '#include "demo/shop.hpp"\n', "bench must not know demo")
        self.refuses("demo/main.cpp", '#include "health/doctor.hpp"\n', "demo must not know health")
        self.refuses("src/cli/main.cpp", '#include "demo/demo.hpp"\n', "cli must not know demo")
        self.refuses("src/relay/relay.cpp", '#include "support/judge.hpp"\n', "relay must not know support")

    def test_neighbours_do_not_know_each_other(self):
        self.refuses("src/sink/registry.cpp", '#include "store/store.hpp"\n', "must not know store")
        self.refuses("src/feed/poll.cpp", '#include "sink/kind.hpp"\n', "must not know sink")
        self.refuses("src/task/worker.cpp", '#include "relay/relay.hpp"\n', "must not know relay")

    def test_stores_and_sinks_are_apart(self):
        self.accepts("src/store/open.cpp", '#include "store/sqlite/path.hpp"\n')
        self.accepts("src/store/sqlite/page.cpp", '#include "store/store.hpp"\n')
        self.accepts("src/store/sqlite/page.cpp", '#include "store/sqlite/path.hpp"\n')
        self.accepts("src/store/sqlite/page.cpp", '#include "store/sql/events.hpp"\n')
        self.accepts("src/sink/http/http_sink.cpp", '#include "sink/curl/transfers.hpp"\n')
        self.accepts("src/sink/asynq/tasks.cpp", '#include "sink/hiredis/purpose.hpp"\n')
        self.refuses(
            "src/sink/asynq/tasks.cpp",
            '#include "sink/redis/command.hpp"\n',
            "sink/asynq must not know sink/redis",
        )
        self.refuses(
            "src/sink/curl/transfers.cpp",
            '#include "sink/http/answer.hpp"\n',
            "sink/curl must not know sink/http",
        )
        self.refuses(
            "src/store/sql/events.cpp",
            '#include "store/sqlite/path.hpp"\n',
            "store/sql must not know store/sqlite",
        )
        self.refuses(
            "src/store/sqlite/page.cpp",
            '#include "store/postgres/connection.hpp"\n',
            "store/sqlite must not know store/postgres",
        )
        self.refuses(
            "src/sink/kafka/client.cpp",
            '#include "sink/file/line_file.hpp"\n',
            "sink/kafka must not know sink/file",
        )

    def test_paths_start_at_src(self):
        self.refuses("src/event/key.cpp", '#include "../base/error.hpp"\n', "not a path from src/")
        self.refuses("src/event/key.cpp", '#include "key.hpp"\n', "not a path from src/")
        self.refuses("src/event/key.cpp", "#include <base/error.hpp>\n", "in quotes")

    def test_public_headers_may_be_included_by_all(self):
        self.accepts("src/base/error.cpp", "#include <outbox/error.hpp>\n")
        self.accepts("src/relay/relay.cpp", '#include "outbox/relay.hpp"\n')
        self.refuses("src/relay/settler.cpp", '#include "outbox/relay.hpp"\n', "go in angles")

    def test_public_headers_name_nothing_foreign(self):
        self.accepts("include/outbox/error.hpp", "#include <string>\n#include <outbox/expected.hpp>\n")
        self.refuses("include/outbox/error.hpp", "#include <tl/expected.hpp>\n", "neither public")
        self.accepts("include/outbox/postgres.hpp", "#include <libpq-fe.h>\n")
        self.refuses("include/outbox/event.hpp", '#include "event/key.hpp"\n', "only <outbox/...>")
        self.refuses("include/outbox/event.hpp", "#include <fmt/format.h>\n", "neither public")
        self.refuses("include/outbox/event.hpp", "#include <sqlite3.h>\n", "neither public")

    def test_a_new_folder_needs_a_place(self):
        self.refuses("src/misc/tools.cpp", "int main() {}\n", "no place among the layers")

    def test_comments_do_not_count(self):
        self.accepts("src/base/error.cpp", '// #include "relay/relay.hpp"\n')

    def test_this_tree_follows_them(self):
        run = subprocess.run([sys.executable, SCRIPT, ROOT], capture_output=True, text=True, check=False)
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
