"""A console with a page, a browser, and stores that have something to show."""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))

from inbox_rows import receive_some
from program import BINARY, OK, ROOT, Case, OnPostgres, OnSqlite, wait_until

HERE = Path(__file__).resolve().parent
CONSOLE = ROOT / "console"
CHROMIUM = os.environ.get("OUTBOX_TEST_CHROMIUM", "/usr/bin/chromium")


@functools.cache
def missing():
    """What this machine lacks for these tests, or None."""
    if shutil.which("node") is None:
        return "node is not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < 18:
        return f"node {version} is older than 18"
    if not (CONSOLE / "node_modules" / "playwright-core").is_dir():
        return "console/node_modules is not there: (cd console && npm ci)"
    if not Path(CHROMIUM).exists():
        return f"{CHROMIUM} is not there: apt-get install chromium"
    return None


def skip_without_browser():
    """For setUpModule()."""
    if why := missing():
        raise unittest.SkipTest(why)


class Receiver:
    """A destination of webhooks. It rejects bodies with the word `bad`, each with the reason that follows it."""

    def __init__(self):
        receiver = self
        self.taken = []
        self.merciful = False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                bad = re.search(r"bad (\w+)", body)
                if bad and not receiver.merciful:
                    answer = bad[1].encode()
                    self.send_response(422)
                else:
                    answer = b""
                    receiver.taken.append(body)
                    self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def webhook(name, url, more=""):
    return f"""
[subscription.{name}]
sink = "http"
event_types = ["Mail*"]
max_attempts = 1
{more}
[subscription.{name}.http]
url = "{url}"
allow_http = true
allow_networks = ["127.0.0.1/32"]
"""


SHOP = """
[subscription.orders]
sink = "file"
aggregate_types = ["order"]
[subscription.orders.file]
path = "orders.jsonl"
"""

SLOW = """
[subscription.slow]
sink = "null"
aggregate_types = ["bulk"]
rate = "20/s"
"""

TASKS = """
[task."report.make"]
queue = "reports"
command = ["true"]
[task."report.long"]
queue = "reports"
command = ["sleep", "600"]
[task."report.bad"]
queue = "reports"
command = ["sh", "-c", "[ -e paper ] && exit 0; echo no such month >&2; exit 65"]
[schedule.nightly]
queue = "reports"
type = "report.make"
cron = "0 3 * * *"
"""

SETTINGS = """
[relay]
lease = "3s"
[history]
interval = "1s"
[worker]
delays = ["1h"]
jitter = 0
"""


class PageCase(Case):
    """Relays, workers and a console beside a store, and scenarios of tests/page/*.mjs in a browser."""

    def setUp(self):
        super().setUp()
        self.migrate()

    def table(self, name):
        return f"{self.flags[1]}.{name}" if self.flags else f"outbox_{name}"

    def begin(self, *arguments, log):
        with open(self.folder / log, "a", encoding="utf-8") as to:
            return self.spawn(*arguments, stdout=to, stderr=to)

    def console(self, listen="127.0.0.1:0", *arguments):
        """Starts a console; its address."""
        self.consoles = getattr(self, "consoles", 0) + 1
        log = self.folder / f"console-{self.consoles}.log"
        self.running = self.begin("console", "--listen", listen, *arguments, log=log.name)
        found = wait_until(lambda: re.search(r"url=(http://127\.0\.0\.1:\d+)", log.read_text(encoding="utf-8")), "the console listens")
        return found[1]

    def event(self, aggregate_type, key, kind, payload="{}", *more):
        self.succeeds("enqueue", aggregate_type, key, kind, payload, *more)

    def task(self, kind, key="", payload="{}"):
        self.event("outbox-task:reports", key, kind, payload)

    def status(self):
        return self.succeeds("status", "--json").json()

    def subscription(self, name):
        return next(one for one in self.status()["subscriptions"] if one["name"] == name)

    def parked(self, *arguments):
        return self.succeeds("parked", "list", "--json", *arguments).json()["events"]

    def tasks(self, *arguments):
        return self.succeeds("tasks", "list", "--json", *arguments).json()["tasks"]

    def browse(self, script, scenario, **facts):
        """Runs a scenario. What it says is shown when it fails."""
        environment = self.environment | {
            "OUTBOX_BINARY": str(BINARY),
            "OUTBOX_TEST_CHROMIUM": CHROMIUM,
            "OUTBOX_TEST_OUTPUT": str(Path(os.environ.get("OUTBOX_TEST_OUTPUT", ROOT / "build" / "page")) / type(self).__name__),
        }
        run = subprocess.run(["node", HERE / script, scenario, json.dumps(facts)], cwd=self.folder, env=environment, capture_output=True,
                             text=True, check=False, timeout=600)
        if run.stdout:
            print(run.stdout, end="", file=sys.stderr)
        self.assertEqual(run.returncode, 0, f"{script} {scenario}\n{run.stdout}{run.stderr}")


class Shop(PageCase):
    """Something of everything: delivered, parked, dead, replayed and paused events; tasks that ran, run, wait and are dead;
    messages that consumers have received."""

    def setUp(self):
        super().setUp()
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        self.configure(SLOW)
        self.succeeds("subscription", "apply")
        for number in range(6):
            self.event("order", f"{number}", "OrderPlaced", f'{{"number":{number},"text":"<b>not markup</b>"}}', "--header", "correlation_id=c1")
        for number, why in enumerate(("address", "address", "amount", "amount", "amount")):
            self.event("mail", f"{number}", "MailWanted", f'{{"text":"bad {why}"}}')
        self.event("mail", "good", "MailWanted", '{"text":"fine"}')
        self.begin("relay", log="relay.log")
        self.begin("work", log="work.log")
        self.task("report.make")
        self.task("report.long", "k")
        self.task("report.make", "k")
        self.task("report.bad")
        wait_until(lambda: self.subscription("mails")["parked"]["dead"] == 5, "five mails are dead")
        wait_until(lambda: sorted(one["state"] for one in self.tasks()) == ["dead", "running", "waiting"], "tasks run, wait and are dead")
        receive_some(self, next(one["id"] for one in self.tasks() if one["state"] == "running"))
        wait_until(lambda: self.subscription("orders")["delivered"] == 6, "all orders are delivered")
        self.url = self.console()

    def configure(self, slow):
        """Writes the file of the shop, with `slow` as the lines of the subscription of that name."""
        self.config(SHOP + webhook("mails", self.receiver.url) + slow + TASKS, SETTINGS)


__all__ = ["CONSOLE", "OK", "PageCase", "Receiver", "SETTINGS", "SHOP", "SLOW", "Shop", "TASKS", "skip_without_browser", "webhook", "OnPostgres", "OnSqlite", "wait_until",
           "missing"]
