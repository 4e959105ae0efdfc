#!/usr/bin/env python3
"""The alerts and the dashboard of deploy/: their form, the metrics that they name, and what promtool says of them."""

import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

try:
    import yaml
except ImportError:
    yaml = None

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
RULE_TESTS = [ROOT / "deploy" / "prometheus" / name for name in ("alerts_test.yaml", "alerts_days_test.yaml")]
DASHBOARD = ROOT / "deploy" / "grafana" / "outbox.json"
REFERENCE = ROOT / "docs" / "reference" / "metrics.md"
RUNBOOK = ROOT / "docs" / "guide" / "operations.md"
COMMANDS = ROOT / "docs" / "cli.md"

# The severities of each alert, one for each of its rules.
SEVERITIES = {
    "OutboxDeliveryDelayed": ["page"], "OutboxStalled": ["page"], "OutboxRelayAbsent": ["page"] * 3,
    "OutboxBacklog": ["ticket"], "OutboxBacklogGrowing": ["ticket"], "OutboxDead": ["ticket"], "OutboxErrors": ["ticket"],
    "OutboxSlow": ["ticket"], "OutboxLatency": ["ticket"], "OutboxHistoryHeld": ["ticket"] * 2, "OutboxSnapshotOld": ["ticket"],
    "OutboxPartitionsLow": ["ticket"], "OutboxInsecureTransport": ["ticket"], "OutboxTakeoverFlapping": ["ticket"] * 2,
    "OutboxLedgerDiffers": ["page"], "OutboxTasksStuck": ["page"], "OutboxTasksBacklog": ["ticket"], "OutboxTasksDead": ["ticket"],
    "OutboxTasksFailing": ["ticket"], "OutboxTasksSlow": ["ticket"], "OutboxTasksIdle": ["ticket"],
}
ROWS = ["Health", "Throughput", "Latency", "Outcomes", "Parked", "Tasks", "Store", "Process"]
SERIES_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")
# Labels that Prometheus adds to a target, or to the series of a histogram.
LABELS_OF_ALL = {"outbox", "job", "instance", "le"}

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^{}]*)\}")
NAME = re.compile(r"(?<![\w.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
WORDS = {"and", "or", "unless", "offset", "bool", "by", "without", "on", "ignoring", "group_left", "group_right", "inf", "nan"}


def check_paths():
    """scripts/check_paths.py, which knows how headings are linked to."""
    spec = importlib.util.spec_from_file_location("check_paths", ROOT / "scripts" / "check_paths.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metrics_in(expression):
    """The names of all metrics and recorded series in an expression of PromQL."""
    text = GROUPING.sub("", STRING.sub("", expression))
    text = re.sub(r"\[[^\]]*\]", "", re.sub(r"\{[^{}]*\}", "", text))
    text = re.sub(r"\boffset\s+\w+", "", text)
    return {name for name in NAME.findall(text) if name.lower() not in WORDS}


def selectors_in(expression):
    """(metric, its labels that are compared) of each selector."""
    for name, matchers in SELECTOR.findall(STRING.sub('""', expression)):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))


def documented():
    """The metrics of the reference: {name: its labels}. A histogram has its three series."""
    found = {}
    for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", REFERENCE.read_text(encoding="utf-8"), re.M):
        words = {label for label in re.split(r"[,\s]+", labels) if label}
        for suffix in SERIES_OF_A_HISTOGRAM if kind == "histogram" else ("",):
            found[name + suffix] = words
    return found


def without_variables(expression):
    """The expression as Grafana sends it."""
    return re.sub(r"\$\w+", ".*", expression.replace("$__rate_interval", "5m"))


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], check=False, capture_output=True, text=True)


needs_promtool = unittest.skipUnless(shutil.which("promtool"), "there is no promtool (Debian's package prometheus)")


class Helpers(unittest.TestCase):
    """What this test makes of an expression."""

    def test_the_metrics_of_an_expression(self):
        for expression, names in (
                ('sum by (a, b) (rate(x_total{c="d_e", f=~"g"}[5m])) > scalar(outbox:threshold:y)', {"x_total", "outbox:threshold:y"}),
                ("time() - (max by (a) (x offset 7d) > 0) and on (b) y unless z", {"x", "y", "z"}),
                ("histogram_quantile(0.99, sum by (le) (rate(x_bucket[2m]))) > 1e9 or vector(0)", {"x_bucket"}),
                ("min_over_time(a:b:max[15m:1m]) > on (s) group_left () c", {"a:b:max", "c"})):
            self.assertEqual(metrics_in(expression), names, expression)

    def test_the_selectors_of_an_expression(self):
        self.assertEqual(list(selectors_in('rate(x{a="{b}", c!~"d=e"}[5m]) / y{f=""}')), [("x", {"a", "c"}), ("y", {"f"})])


class Names(unittest.TestCase):
    """Checks that metrics and labels are those of the reference."""

    def check_names(self, expressions, recorded=frozenset()):
        known = documented()
        self.assertGreater(len(known), 10)
        unknown, wrong = {}, []
        for place, expression in expressions:
            for name in metrics_in(expression) - set(known) - set(recorded):
                unknown.setdefault(name, place)
            wrong += [f"{place}: {name} has no label {', '.join(sorted(more))}" for name, labels in selectors_in(expression)
                      if name in known and (more := labels - known[name] - LABELS_OF_ALL)]
        self.assertFalse(unknown, f"not in {REFERENCE.relative_to(ROOT)}:\n" + "\n".join(f"{name} ({place})" for name, place in sorted(unknown.items())))
        self.assertEqual(wrong, [])


@unittest.skipUnless(yaml, "no Python module yaml (python3-yaml)")
class Alerts(Names):
    @classmethod
    def setUpClass(cls):
        groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
        cls.rules = [rule for group in groups for rule in group["rules"]]
        cls.alerts = [rule for rule in cls.rules if "alert" in rule]
        cls.sections = cls.read_sections()

    @staticmethod
    def read_sections():
        """The sections of the runbook that have the name of an alert."""
        parts = re.split(r"^(#{1,6} .*)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.M)
        return {title.lstrip("# ").strip(): body for title, body in zip(parts[1::2], parts[2::2])}

    def test_all_alerts_are_there_with_their_severities(self):
        found = {}
        for rule in self.alerts:
            found.setdefault(rule["alert"], []).append(rule["labels"]["severity"])
            self.assertRegex(rule["alert"], r"^Outbox([A-Z][a-z]+)+$")
        self.assertEqual(found, SEVERITIES)

    def test_rules_of_one_alert_differ_in_their_cause(self):
        places = [(rule["alert"], rule["labels"].get("cause")) for rule in self.alerts]
        self.assertEqual(len(places), len(set(places)))

    def test_each_alert_says_what_to_do(self):
        anchors = check_paths().anchors(RUNBOOK)
        for rule in self.alerts:
            name, texts = rule["alert"], rule["annotations"]
            with self.subTest(alert=name, cause=rule["labels"].get("cause")):
                self.assertEqual(set(texts), {"summary", "description", "runbook_url"})
                self.assertEqual(texts["runbook_url"], f"docs/guide/operations.md#{name.lower()}")
                self.assertTrue(name.lower() in anchors and name in self.sections, "the runbook has no such section")
                self.assertGreater(len(self.sections[name].split()), 30, "the section of the runbook says little")
                self.assertGreaterEqual(texts["description"].count(". "), 2, "what happened, what it means, what to do")
                self.assertNotIn("\n", texts["description"])

    def test_texts_use_labels_that_the_alert_has(self):
        for rule in self.alerts:
            has = {label for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"]) for label in re.split(r",\s*", labels)}
            for name in metrics_in(rule["expr"]):
                has |= {"subscription"} if name.startswith("subscription:") else {"queue"} if name.startswith("queue:") else set()
                has |= {"queue", "type"} if name.startswith("type:") else set()
            used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
            self.assertEqual(used - has, set(), rule["alert"])

    def test_commands_in_texts_exist(self):
        verbs = set(re.findall(r"^## ([\w -]+)$", COMMANDS.read_text(encoding="utf-8"), re.M))
        self.assertIn("status", verbs)
        places = [(rule["alert"], rule["annotations"]["description"]) for rule in self.alerts]
        places += [(name, self.sections.get(name, "")) for name in SEVERITIES]
        for place, text in places:
            for verb in re.findall(r"`outbox ([a-z]+)", text):
                self.assertIn(verb, verbs, place)

    def test_metrics_are_those_of_the_reference(self):
        recorded = {rule["record"] for rule in self.rules if "record" in rule}
        self.check_names([(rule.get("alert") or rule["record"], rule["expr"]) for rule in self.rules], recorded)

    def test_recorded_series_are_there_before_they_are_used(self):
        seen, used = set(), set()
        for rule in self.rules:
            names = {name for name in metrics_in(rule["expr"]) if ":" in name}
            self.assertEqual(names - seen, set(), rule.get("alert") or rule["record"])
            used |= names
            seen |= {rule["record"]} if "record" in rule else set()
        self.assertEqual(seen - used, set(), "is recorded, and nothing uses it")

    def test_no_threshold_is_hidden_in_an_alert(self):
        for rule in self.alerts:
            numbers = set(re.findall(r"[<>]=?\s*([\d.e]+)", rule["expr"]))
            # 600 s is the window of [10m], which no rule can be either.
            self.assertLessEqual(numbers, {"0", "600"}, rule["alert"])

    def test_each_alert_is_tested(self):
        """That it fires, that near misses do not make it fire, and that it ends."""
        fires, ends = set(), set()
        for test in (test for file in RULE_TESTS for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]):
            steps = [self.read_step(step) for step in test["promql_expr_test"]]
            for number, (rule, firing) in enumerate(steps):
                if firing:
                    fires.add(rule)
                if any(firing - later for _, later in steps[number + 1:]):
                    ends.add(rule)
        wanted = {(rule["alert"], rule["labels"].get("cause")) for rule in self.alerts}
        self.assertEqual(wanted - fires, set(), "nothing makes it fire")
        self.assertEqual(wanted - ends, set(), "no test in which it ends")
        texts = "".join(file.read_text(encoding="utf-8") for file in RULE_TESTS)
        for name in SEVERITIES:
            self.assertRegex(texts, rf"name: {name}\b(?:(?!\n  - name:)[\s\S])*# Near miss", name)

    @staticmethod
    def read_step(step):
        """((alert, cause), labels of what fires) of one expectation."""
        text = step["expr"] + "".join(sample["labels"] for sample in step["exp_samples"])
        cause = re.search(r'cause="(\w+)"', text)
        firing = {re.sub(r'[ ,]*(severity|cause)="\w+"', "", sample["labels"]) for sample in step["exp_samples"]}
        return (re.search(r'alertname="(\w+)"', text)[1], cause[1] if cause else None), firing

    @needs_promtool
    def test_promtool_accepts_the_rules(self):
        done = promtool("check", "rules", "--lint-fatal", RULES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @needs_promtool
    def test_promtool_runs_the_tests_of_the_rules(self):
        done = promtool("test", "rules", *RULE_TESTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Dashboard(Names):
    @classmethod
    def setUpClass(cls):
        cls.dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        cls.panels = cls.dashboard["panels"]
        cls.graphs = [panel for panel in cls.panels if panel["type"] != "row"]

    def expressions(self):
        return [(f"{panel['title']} {target['refId']}", target["expr"]) for panel in self.graphs for target in panel["targets"]]

    def test_its_head(self):
        self.assertEqual((self.dashboard["uid"], self.dashboard["title"]), ("outbox", "outbox"))
        self.assertEqual(self.dashboard["schemaVersion"], 39)
        self.assertIn("outbox", self.dashboard["tags"])
        self.assertEqual(set(self.dashboard["time"]), {"from", "to"})
        self.assertTrue(self.dashboard["refresh"])
        self.assertNotIn("id", self.dashboard, "an id belongs to one Grafana")
        self.assertNotIn("__inputs", self.dashboard, "it chooses its data source with a variable")

    def test_its_variables(self):
        variables = {one["name"]: one for one in self.dashboard["templating"]["list"]}
        self.assertEqual((variables["ds"]["type"], variables["ds"]["query"]), ("datasource", "prometheus"))
        self.assertRegex(variables["subscription"]["query"]["query"], r"^label_values\(outbox_pending_events.*, subscription\)$")
        for name, variable in variables.items():
            if variable["type"] == "query":
                self.assertEqual(variable["datasource"]["uid"], "${ds}", name)
                metric = re.match(r"label_values\((\w+)", variable["query"]["query"])[1]
                self.assertIn(metric, documented())
        used = {name for _, expression in self.expressions() for name in re.findall(r"\$(?!__)(\w+)", expression)}
        self.assertEqual(used, set(variables) - {"ds"})

    def test_its_rows(self):
        self.assertEqual([panel["title"] for panel in self.panels if panel["type"] == "row"], ROWS)
        types = {}
        for panel in self.panels:
            if panel["type"] == "row":
                row = panel["title"]
            else:
                types.setdefault(row, set()).add(panel["type"])
        self.assertEqual(list(types), ROWS, "a row is empty")
        self.assertIn("heatmap", types["Latency"])

    def test_its_panels(self):
        ids = [panel["id"] for panel in self.panels]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in self.graphs:
            with self.subTest(panel=panel["title"]):
                self.assertIn(panel["type"], {"timeseries", "stat", "heatmap"})
                self.assertTrue(panel["title"] and panel["description"])
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${ds}"})
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertTrue(panel["targets"])
                letters = [target["refId"] for target in panel["targets"]]
                self.assertEqual(letters, [chr(ord("A") + number) for number in range(len(letters))])
                for target in panel["targets"]:
                    self.assertTrue(target["expr"].strip() and target["legendFormat"].strip())
                    self.assertEqual(target["datasource"]["uid"], "${ds}")
                    self.assertEqual(target.get("format"), "heatmap" if panel["type"] == "heatmap" else None)

    def test_legends_use_labels_that_the_expression_keeps(self):
        for panel in self.graphs:
            for target in panel["targets"]:
                keeps = {label for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", target["expr"]) for label in re.split(r",\s*", labels)}
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), keeps, panel["title"])

    def test_panels_do_not_overlap(self):
        taken = {}
        for panel in self.panels:
            place = panel["gridPos"]
            self.assertGreaterEqual(place["x"], 0)
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies over {taken.get((x, y))}")
                    taken[x, y] = panel["title"]
            if panel["type"] == "row":
                self.assertEqual((place["x"], place["w"], place["h"], panel["panels"]), (0, 24, 1, []))

    def test_metrics_are_those_of_the_reference(self):
        self.check_names(self.expressions())

    @needs_promtool
    def test_promtool_accepts_each_expression(self):
        rules = [{"record": f"dashboard:expression_{number}", "expr": without_variables(expression)}
                 for number, (_, expression) in enumerate(self.expressions())]
        self.assertGreater(len(rules), 40)
        with tempfile.TemporaryDirectory(prefix="outbox-dashboard-") as folder:
            # JSON is YAML, too.
            file = Path(folder) / "rules.yaml"
            file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}, indent=1), encoding="utf-8")
            done = promtool("check", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(rules)} rules found", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
