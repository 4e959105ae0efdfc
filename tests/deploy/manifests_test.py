#!/usr/bin/env python3
"""The files for Docker Compose and Kubernetes: valid by the published schemas, safe, and consistent with each other and with the program.

Nothing is run in a container. The program runs with the configurations that the containers get, and is asked what the health checks ask.
"""

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import jsonschema
import tomllib
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from own_server import OwnServer  # noqa: E402
from program import BINARY, Case, OK, wait_until  # noqa: E402

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
GUIDE = ROOT / "docs" / "guide" / "install.md"
# Left out of kustomization.yaml: a template, and what needs the operator's definitions.
OPTIONAL = {"secrets.example.yaml", "servicemonitor.yaml"}
OURS = {"migrate", "relay", "worker", "console"}
MONITORED = {"relay", "worker"}
PORT = 9464
# What a relay or a worker may take to stop after its grace (docs/guide/install.md).
AFTER_GRACE = 5
SECRET = re.compile(r"PASSWORD|TOKEN|SECRET")
VERSION = re.search(r"project\(outbox VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def read(path):
    return path.read_text(encoding="utf-8")


def documents(path):
    return list(yaml.safe_load_all(read(path)))


@functools.cache
def schema(name):
    """What a function of scripts/lib/schemas.sh fetches; skips the test if it cannot."""
    script = 'root=$1; for lib in say cache schemas; do . "$root/scripts/lib/$lib.sh"; done; "$2"'
    done = subprocess.run(["sh", "-c", script, "sh", str(ROOT), name], check=False, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise unittest.SkipTest(f"{name}: {done.stdout.strip() or done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


def errors(validator, thing):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(thing)]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|min)", text).groups()
    return int(number) * (1 if unit == "s" else 60)


@functools.cache
def defaults():
    """The defaults of all settings, by their names."""
    page = subprocess.run([BINARY, "config", "reference"], check=True, capture_output=True, text=True).stdout
    return {name: value.strip('"') for name, value in re.findall(r"^\| `([a-z.]+\.[a-z_]+)` \| [^|]+ \| `([^`]+)`", page, re.M)}


def grace(component, configuration):
    """How long a relay or a worker with this configuration may take to stop, in seconds."""
    section = component
    return seconds(configuration.get(section, {}).get("grace", defaults()[f"{section}.grace"])) + AFTER_GRACE


def listens_at(configuration):
    host, _, port = configuration["http"]["listen"].rpartition(":")
    return host, int(port)


class Images(unittest.TestCase):
    def check_image(self, image):
        name, _, tag = image.partition(":")
        self.assertRegex(tag, r"^v?\d+\.\d+", f"{image}: a version must be named")
        if name.rpartition("/")[2] == "outbox":
            self.assertEqual(tag, VERSION)


# ---- Docker Compose

COMPOSE = yaml.safe_load(read(DEPLOY / "compose.yaml"))
SERVICES = COMPOSE["services"]
DEVELOPMENT = dict(line.split("=", 1) for line in read(DEPLOY / "compose" / "development.env").splitlines() if not line.startswith("#"))


def filled_in(text):
    """With the variables of development.env instead of ${NAME:?...}, as docker compose does it."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: DEVELOPMENT[match[1]], text)


def mounts(service):
    """(source, target) of its bind mounts."""
    return [tuple(volume.split(":")[:2]) for volume in SERVICES[service].get("volumes", []) if volume.startswith(".")]


class Compose(Images):
    def test_it_is_valid_by_the_specification(self):
        specification = json.loads(read(schema("schema_compose")))
        validator = jsonschema.validators.validator_for(specification)(specification)
        self.assertEqual(errors(validator, COMPOSE), [])
        wrong = COMPOSE | {"services": SERVICES | {"relay": SERVICES["relay"] | {"read_onyl": True}}}
        self.assertNotEqual(errors(validator, wrong), [], "the schema refuses unknown keys")

    def test_every_image_has_a_version(self):
        for service in SERVICES.values():
            self.check_image(service["image"])

    def test_our_image_is_built_from_the_dockerfile(self):
        built = [service["build"] for service in SERVICES.values() if "build" in service]
        self.assertEqual(len(built), 1, "once; the others have the same image")
        context = (DEPLOY / built[0]["context"]).resolve()
        self.assertEqual(context, ROOT)
        self.assertTrue((context / built[0]["dockerfile"]).is_file())

    def test_only_this_machine_reaches_the_ports(self):
        for name, service in SERVICES.items():
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:\d+:\d+$", name)
            self.assertNotIn("network_mode", service)
            self.assertFalse(service.get("privileged"))

    def test_our_containers_are_confined(self):
        self.assertEqual({name for name, service in SERVICES.items() if service["image"].startswith("outbox:")}, OURS)
        for name in OURS:
            service = SERVICES[name]
            self.assertIs(service["read_only"], True, name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertNotIn("cap_add", service, name)
            self.assertIn("no-new-privileges:true", service["security_opt"], name)
            self.assertNotIn("user", service, "the image has a user that is not root")
        self.assertIn("\nUSER 10001:10001\n", read(DEPLOY / "Dockerfile"))

    def test_no_password_is_in_the_file(self):
        for name, service in SERVICES.items():
            for variable, value in service.get("environment", {}).items():
                if SECRET.search(variable):
                    self.assertRegex(value, r"^\$\{\w+:\?.+\}$", f"{name}: {variable}")
                self.assertNotRegex(value, r"://[^@/]*:[^@/]*@", f"{name}: {variable}")

    def test_the_passwords_for_development_are_named_so_and_are_all(self):
        for variable, value in DEVELOPMENT.items():
            self.assertRegex(value, r"^development-only-\w+$", variable)
        self.assertEqual(len(set(DEVELOPMENT.values())), len(DEVELOPMENT), "each is another one")
        asked = set(re.findall(r"\$\{(\w+)", read(DEPLOY / "compose.yaml")))
        asked |= {secret["environment"] for secret in COMPOSE["secrets"].values()}
        self.assertEqual(asked, set(DEVELOPMENT))

    def test_what_is_mounted_is_in_the_repository(self):
        for name in SERVICES:
            for source, _ in mounts(name):
                if source in ("./prometheus/alerts.yaml", "./grafana/outbox.json"):
                    continue  # the next two tests
                self.assertTrue((DEPLOY / source).exists(), f"{name}: {source}")

    def test_the_alerts_are_in_the_repository(self):
        self.check_mounted("prometheus", "./prometheus/alerts.yaml")

    def test_the_dashboard_is_in_the_repository(self):
        self.check_mounted("grafana", "./grafana/outbox.json")

    def check_mounted(self, service, source):
        self.assertIn(source, [one for one, _ in mounts(service)])
        if not (DEPLOY / source).exists():
            self.skipTest(f"there is no deploy/{source[2:]}")
        self.assertTrue((DEPLOY / source).is_file())

    def test_mounted_files_cannot_be_written(self):
        for name, service in SERVICES.items():
            for volume in service.get("volumes", []):
                if volume.startswith("."):
                    self.assertTrue(volume.endswith(":ro"), f"{name}: {volume}")
                else:
                    self.assertIn(volume.partition(":")[0], COMPOSE["volumes"])
        self.assertEqual({network for service in SERVICES.values() for network in service["networks"]}, set(COMPOSE["networks"]))

    def test_services_wait_for_what_they_need(self):
        for name, service in SERVICES.items():
            for other, how in service.get("depends_on", {}).items():
                if how["condition"] == "service_healthy":
                    self.assertIn("healthcheck", SERVICES[other], f"{name} waits for {other}")
                else:
                    self.assertEqual(how["condition"], "service_completed_successfully")
                    self.assertNotIn(SERVICES[other]["restart"], ("always", "unless-stopped"), f"{name} waits for {other}")
        for name in "relay", "worker":
            self.assertEqual(SERVICES[name]["depends_on"]["migrate"]["condition"], "service_completed_successfully")
        self.assertEqual({name for name, service in SERVICES.items() if "healthcheck" not in service}, {"migrate"})

    def test_they_have_time_to_stop(self):
        for name, file in ("relay", "outbox.toml"), ("worker", "work.toml"):
            configuration = tomllib.loads(read(DEPLOY / "compose" / file))
            self.assertGreater(seconds(SERVICES[name]["stop_grace_period"]), grace(name, configuration), name)

    def test_the_monitoring_does_not_reach_the_store(self):
        for name in "prometheus", "grafana":
            self.assertEqual(SERVICES[name]["networks"], ["monitoring"])
        for name in "postgres", "kafka", "migrate", "console":
            self.assertEqual(SERVICES[name]["networks"], ["data"])


class Prometheus(unittest.TestCase):
    configuration = yaml.safe_load(read(DEPLOY / "prometheus" / "prometheus.yaml"))

    def test_it_asks_each_relay_and_worker_with_the_token(self):
        job = next(job for job in self.configuration["scrape_configs"] if job["job_name"] == "outbox")
        service = SERVICES["prometheus"]
        self.assertEqual(service["secrets"], ["http_token"])
        self.assertEqual(job["authorization"], {"credentials_file": "/run/secrets/http_token"})
        self.assertEqual(COMPOSE["secrets"]["http_token"], {"environment": "OUTBOX_HTTP_TOKEN"})
        names = [name for found in job["dns_sd_configs"] for name in found["names"]]
        self.assertEqual(set(names), MONITORED)
        self.assertEqual({found["port"] for found in job["dns_sd_configs"]}, {PORT})

    def test_it_finds_its_files(self):
        targets = dict(map(reversed, mounts("prometheus")))
        file = next(flag for flag in SERVICES["prometheus"]["command"] if flag.startswith("--config.file=")).partition("=")[2]
        self.assertEqual(targets[file], "./prometheus/prometheus.yaml")
        for rules in self.configuration["rule_files"]:
            self.assertIn(str(Path(file).parent / rules), targets)

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool")
    def test_promtool_accepts_it(self):
        checked = subprocess.run(["promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yaml"],
                                 check=False, capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class Grafana(unittest.TestCase):
    """There is no published schema of these files: what is checked is what Grafana's documentation says of them."""

    folder = DEPLOY / "grafana" / "provisioning"
    targets = dict(map(reversed, mounts("grafana")))

    def mounted(self, kind):
        self.assertEqual(self.targets[f"/etc/grafana/provisioning/{kind}"], f"./grafana/provisioning/{kind}")
        (file,) = (self.folder / kind).iterdir()
        configuration = yaml.safe_load(read(file))
        self.assertEqual(configuration["apiVersion"], 1)
        return configuration

    def test_the_data_come_from_prometheus(self):
        (source,) = self.mounted("datasources")["datasources"]
        self.assertLessEqual(set(source), {"name", "uid", "type", "access", "url", "isDefault", "editable", "jsonData"})
        self.assertEqual((source["type"], source["access"], source["url"]), ("prometheus", "proxy", "http://prometheus:9090"))
        self.assertEqual(source["jsonData"]["timeInterval"], Prometheus.configuration["global"]["scrape_interval"])

    def test_the_dashboard_is_where_it_is_looked_for(self):
        (provider,) = self.mounted("dashboards")["providers"]
        self.assertLessEqual(set(provider), {"name", "type", "allowUiUpdates", "options"})
        self.assertEqual(provider["type"], "file")
        target = f"{provider['options']['path']}/outbox.json"
        self.assertEqual(self.targets[target], "./grafana/outbox.json")
        self.assertEqual(SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"], target)


# ---- Kubernetes

FILES = sorted(path for path in KUBERNETES.iterdir() if path.suffix == ".yaml" and path.name != "kustomization.yaml")
OBJECTS = {(one["kind"], one["metadata"]["name"]): one for path in FILES for one in documents(path)}
KUSTOMIZATION = yaml.safe_load(read(KUBERNETES / "kustomization.yaml"))
COMPONENTS = {"relay": OBJECTS["Deployment", "outbox-relay"], "worker": OBJECTS["Deployment", "outbox-worker"]}
CONFIGURATIONS = OBJECTS["ConfigMap", "outbox"]["data"]
PODS = {name: one["spec"]["template"] for name, one in COMPONENTS.items()} | {"migrate": OBJECTS["Job", "outbox-migrate"]["spec"]["template"]}


def container(name):
    (only,) = PODS[name]["spec"]["containers"]
    return only


def file_of(name):
    """The key of the ConfigMap that the program is given as its configuration."""
    arguments = container(name)["args"]
    path = Path(arguments[arguments.index("--config") + 1])
    (mount,) = (one for one in container(name)["volumeMounts"] if one["mountPath"] == str(path.parent))
    (volume,) = (one for one in PODS[name]["spec"]["volumes"] if one["name"] == mount["name"])
    assert volume["configMap"]["name"] == "outbox"
    return path.name


def selects(selector, labels):
    return selector.items() <= labels.items()


class Kubernetes(Images):
    def test_every_object_is_valid_by_the_schemas_of_each_version(self):
        folder = schema("schema_kubernetes")
        # unhealthyPodEvictionPolicy is on by default from 1.27 on.
        versions = sorted(path for path in folder.glob("v1.*-local-strict") if int(path.name.split(".")[1]) >= 27)
        self.assertGreater(len(versions), 5)
        for version in versions:
            definitions = json.loads(read(version / "_definitions.json"))["$defs"]
            kinds = {(kind["group"], kind["version"], kind["kind"]): name
                     for name, definition in definitions.items() for kind in definition.get("x-kubernetes-group-version-kind", [])}
            for (kind, name), thing in OBJECTS.items():
                if kind == "ServiceMonitor":
                    continue  # not of Kubernetes
                group, _, of = thing["apiVersion"].rpartition("/")
                definition = kinds[group, of, kind]
                validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions})
                self.assertEqual(errors(validator, thing), [], f"{version.name}: {kind} {name}")
                self.assertNotEqual(errors(validator, thing | {"sepc": {}}), [], "the schema refuses unknown keys")

    def operator_accepts(self, thing):
        """What the operator's own validation says; nothing if it accepts it."""
        folder = schema("schema_operator")
        version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
        if int(version.lstrip("v").partition(".")[0]) < 20:
            self.skipTest(f"the operator's kinds need node 20, this is {version.strip()}")
        done = subprocess.run(["node", Path(__file__).with_name("operator_kind.mjs"), folder], input=json.dumps(thing), check=False,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1 if done.stdout else 0, ""))
        return done.stdout

    def test_the_operator_accepts_the_service_monitor(self):
        monitor = OBJECTS["ServiceMonitor", "outbox"]
        self.assertEqual(self.operator_accepts(monitor), "")
        self.assertIn("selector", self.operator_accepts(monitor | {"spec": {"endpoints": []}}))

    def test_the_service_monitor_has_no_unknown_key(self):
        # The operator's schema is not strict.
        monitor = OBJECTS["ServiceMonitor", "outbox"]
        self.assertEqual(set(monitor), {"apiVersion", "kind", "metadata", "spec"})
        self.assertEqual(monitor["apiVersion"], "monitoring.coreos.com/v1")
        self.assertLessEqual(set(monitor["spec"]), {"jobLabel", "selector", "endpoints"})
        (endpoint,) = monitor["spec"]["endpoints"]
        self.assertLessEqual(set(endpoint), {"port", "path", "interval", "authorization"})
        self.assertEqual(set(endpoint["authorization"]), {"type", "credentials"})
        self.assertEqual(set(endpoint["authorization"]["credentials"]), {"name", "key"})

    def test_the_alerts_become_a_rule_of_the_operator(self):
        command = re.search(r"^\$ (\{ printf .*alerts\.yaml; \}) \| kubectl apply", read(GUIDE), re.M)[1]
        if not (DEPLOY / "prometheus" / "alerts.yaml").exists():
            self.skipTest("there is no deploy/prometheus/alerts.yaml")
        made = subprocess.run(["sh", "-ec", command], check=True, capture_output=True, text=True, cwd=ROOT).stdout
        rule = yaml.safe_load(made)
        self.assertEqual((rule["apiVersion"], rule["kind"]), ("monitoring.coreos.com/v1", "PrometheusRule"))
        self.assertEqual(rule["spec"], yaml.safe_load(read(DEPLOY / "prometheus" / "alerts.yaml")))
        self.assertEqual(self.operator_accepts(rule), "")

    def test_kustomize_takes_every_file(self):
        self.assertEqual(set(KUSTOMIZATION["resources"]) | OPTIONAL, {path.name for path in FILES})
        self.assertLessEqual(set(KUSTOMIZATION), {"apiVersion", "kind", "namespace", "resources", "images"})
        for optional in OPTIONAL:
            self.assertIn(optional, read(KUBERNETES / "kustomization.yaml"))
        (image,) = KUSTOMIZATION["images"]
        self.assertEqual((image["name"], image["newTag"]), ("outbox", VERSION))

    @unittest.skipUnless(shutil.which("kubectl"), "there is no kubectl")
    def test_kustomize_makes_the_objects(self):
        made = subprocess.run(["kubectl", "kustomize", KUBERNETES], check=False, capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        found = {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(made.stdout)}
        left_out = {(one["kind"], one["metadata"]["name"]) for name in OPTIONAL for one in documents(KUBERNETES / name)}
        self.assertEqual(found, set(OBJECTS) - left_out)
        for image in re.findall(r"image: (\S+)", made.stdout):
            self.assertTrue(image.startswith("registry.example.com/outbox:"), image)
            self.check_image(image)

    def test_every_image_has_a_version(self):
        for name in PODS:
            self.check_image(container(name)["image"])

    def test_the_pods_keep_to_the_restricted_profile(self):
        for name, pod in PODS.items():
            spec, only = pod["spec"], container(name)
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True, name)
            self.assertGreater(spec["securityContext"]["runAsUser"], 0, name)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, name)
            self.assertEqual(only["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                       "capabilities": {"drop": ["ALL"]}}, name)
            for shared in "hostNetwork", "hostPID", "hostIPC":
                self.assertNotIn(shared, spec)
            for volume in spec["volumes"]:
                self.assertLessEqual(set(volume), {"name", "configMap", "emptyDir"})
            # Not part of the profile.
            self.assertIs(spec["automountServiceAccountToken"], False, name)
            self.assertIs(spec["enableServiceLinks"], False, f"{name}: OUTBOX_PORT and the like would look like settings")
            self.assertLessEqual({"requests", "limits"}, set(only["resources"]), name)
            self.assertIn("memory", only["resources"]["limits"], name)

    def test_the_probes_ask_what_the_program_answers(self):
        for name in COMPONENTS:
            only = container(name)
            (port,) = only["ports"]
            self.assertEqual(port, {"name": "http", "containerPort": PORT})
            for probe, path in ("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz"):
                self.assertEqual(only[probe]["httpGet"], {"path": path, "port": "http"}, f"{name}: {probe}")

    def test_they_have_time_to_stop(self):
        for name in COMPONENTS:
            configuration = tomllib.loads(CONFIGURATIONS[file_of(name)])
            self.assertGreater(PODS[name]["spec"]["terminationGracePeriodSeconds"], grace(name, configuration), name)

    def test_two_of_each_and_one_stays(self):
        for name, deployment in COMPONENTS.items():
            self.assertEqual(deployment["spec"]["replicas"], 2)
            labels = PODS[name]["metadata"]["labels"]
            budget = OBJECTS["PodDisruptionBudget", f"outbox-{name}"]["spec"]
            self.assertEqual(budget["minAvailable"], 1)
            for selector in deployment["spec"]["selector"], budget["selector"], PODS[name]["spec"]["topologySpreadConstraints"][0]["labelSelector"]:
                selected = {other for other, pod in PODS.items() if selects(selector["matchLabels"], pod["metadata"]["labels"])}
                self.assertEqual(selected, {name})
            self.assertTrue(selects(deployment["spec"]["selector"]["matchLabels"], labels))

    def test_prometheus_reaches_relays_and_workers_and_nothing_else(self):
        service, monitor = OBJECTS["Service", "outbox"], OBJECTS["ServiceMonitor", "outbox"]["spec"]
        selected = {name for name, pod in PODS.items() if selects(service["spec"]["selector"], pod["metadata"]["labels"])}
        self.assertEqual(selected, set(COMPONENTS))
        self.assertTrue(selects(monitor["selector"]["matchLabels"], service["metadata"]["labels"]))
        self.assertEqual(service["metadata"]["labels"][monitor["jobLabel"]], "outbox")
        (port,), (endpoint,) = service["spec"]["ports"], monitor["endpoints"]
        self.assertEqual((port["name"], port["port"], port["targetPort"]), ("http", PORT, "http"))
        self.assertEqual((endpoint["port"], endpoint["path"]), ("http", "/metrics"))
        credentials = endpoint["authorization"]["credentials"]
        self.assertIn(credentials["key"], OBJECTS["Secret", credentials["name"]]["stringData"])
        for name in COMPONENTS:
            token = {one["name"]: one for one in container(name)["env"]}["OUTBOX_HTTP_TOKEN"]
            self.assertEqual(token["valueFrom"]["secretKeyRef"], credentials, "the program knows the token that Prometheus sends")

    def test_no_password_is_in_the_manifests(self):
        for (kind, name), thing in OBJECTS.items():
            if kind == "Secret":
                self.assertNotIn("data", thing)
                self.assertEqual(set(thing["stringData"].values()), {"REPLACE_ME"}, name)
        for name in PODS:
            for variable in container(name)["env"]:
                reference = variable["valueFrom"]["secretKeyRef"]
                self.assertIn(reference["key"], OBJECTS["Secret", reference["name"]]["stringData"], f"{name}: {variable['name']}")
        for name, text in CONFIGURATIONS.items():
            self.assertNotRegex(text, r"://[^@/\s]*:[^@/\s]*@", name)
            for key, value in re.findall(r"^\s*([\w.]*(?:password|token|secret)\w*)\s*=\s*\"(.*)\"", text, re.M):
                self.assertRegex(value, r"\$\{(env|file):", f"{name}: {key}")

    def test_only_the_job_may_change_the_schema(self):
        for name in PODS:
            secrets = {variable["valueFrom"]["secretKeyRef"]["name"] for variable in container(name)["env"]}
            self.assertEqual(secrets, {"outbox-owner"} if name == "migrate" else {"outbox"}, name)

    def test_the_store_is_the_same_for_all(self):
        stores = {re.sub(r"//\w+@", "//", tomllib.loads(text)["store"]["url"]) for text in CONFIGURATIONS.values()}
        self.assertEqual(len(stores), 1)


# ---- The program with these configurations

class Configurations(Case):
    """What compose.yaml and the manifests give the program, by itself."""

    def cases(self):
        """(name, verb and arguments, configuration, variables) of each container that reads a configuration."""
        for name, file in ("relay", "outbox.toml"), ("worker", "work.toml"):
            targets = dict(map(reversed, mounts(name)))
            self.assertEqual(targets["/etc/outbox/outbox.toml"], f"./compose/{file}")
            self.assertIn("\nENV OUTBOX_CONFIG=/etc/outbox/outbox.toml\n", read(DEPLOY / "Dockerfile"))
            yield (f"compose: {name}", SERVICES[name]["command"], read(DEPLOY / "compose" / file),
                   {key: filled_in(value) for key, value in SERVICES[name]["environment"].items()})
        for name in PODS:
            yield (f"kubernetes: {name}", container(name)["args"], CONFIGURATIONS[file_of(name)],
                   {variable["name"]: "REPLACE_ME" for variable in container(name)["env"]})

    def test_the_program_accepts_them(self):
        self.assertEqual(len(list(self.cases())), 5)
        for name, _, text, variables in self.cases():
            with self.subTest(name):
                file = self.write("outbox.toml", text)
                checked = self.outbox("config", "check", "-c", file, env=variables)
                self.assertEqual((checked.code, checked.err), (OK, ""), checked)

    def test_the_program_has_these_verbs_and_options(self):
        commands = [arguments for _, arguments, _, _ in self.cases()] + [SERVICES["migrate"]["command"]]
        for verb, *arguments in commands:
            usage = self.succeeds(verb, "--help").out
            for flag in (argument for argument in arguments if argument.startswith("-")):
                self.assertRegex(usage, rf"(?m)^  (-\w,)?{flag}\b")

    def test_they_listen_where_they_are_asked(self):
        for name, _, text, variables in self.cases():
            if name.endswith("migrate"):
                self.assertNotIn("http", tomllib.loads(text), name)
                continue
            self.assertEqual(listens_at(tomllib.loads(text)), ("0.0.0.0", PORT), name)
            self.assertTrue(variables["OUTBOX_HTTP_TOKEN"], name)

    def test_the_health_check_passes_when_the_store_answers(self):
        self.store = f"sqlite:{self.folder}/shop.db"
        self.migrate()
        for name, arguments, text, variables in self.cases():
            if name == "kubernetes: migrate":
                continue
            with self.subTest(name):
                self.check_running(name, arguments[0], text, variables)

    def check_running(self, name, verb, text, variables):
        file = self.write("outbox.toml", text)
        log = self.folder / f"{name.replace(': ', '-')}.log"
        self.environment |= variables
        with open(log, "w", encoding="utf-8") as output:
            process = self.spawn(verb, "-c", file, "--wait", "--store", self.store, "--set", "http.listen=0.0.0.0:0",
                                 stdout=subprocess.DEVNULL, stderr=output)
        port = wait_until(lambda: re.search(r"http://0\.0\.0\.0:(\d+)", read(log)), f"{name} listens")[1]

        def passes(path="/readyz"):
            command = list(SERVICES["relay"]["healthcheck"]["test"][1:])
            self.assertIn(f"/{PORT} ", command[-1])
            command[-1] = command[-1].replace(f"/{PORT} ", f"/{port} ").replace("/readyz", path)
            return subprocess.run(command, check=False, capture_output=True, timeout=10).returncode == 0

        wait_until(passes, f"{name} is ready")
        self.assertTrue(passes("/livez"), name)
        self.assertFalse(passes("/metrics"), f"{name}: /metrics needs the token")
        process.terminate()
        self.assertEqual(process.wait(timeout=60), OK, read(log))


class Logins(Case):
    """What deploy/compose/logins.sh makes, on a server of its own."""

    def test_each_may_do_what_it_is_for(self):
        server = OwnServer()
        self.addCleanup(server.remove)
        server.sql("CREATE DATABASE shop")
        host, _, port = server.address.rpartition(":")
        variables = SERVICES["postgres"]["environment"]
        self.environment |= {"PGHOST": server.socket, "PGPORT": port, "POSTGRES_USER": "postgres"}
        self.environment |= {name: filled_in(value) for name, value in variables.items()}
        script = DEPLOY / "compose" / "logins.sh"
        self.assertTrue(os.access(script, os.X_OK))
        made = subprocess.run([script], env=self.environment, check=False, capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

        def login(service, url=None):
            """What the service has as its store, at this server, and its password."""
            environment = {name: filled_in(value) for name, value in SERVICES[service]["environment"].items()}
            url = url or environment["OUTBOX_STORE_URL"]
            self.assertRegex(url, r"@postgres/shop$")
            return ("--store", url.replace("@postgres/", f"@{host}:{port}/")), {"PGPASSWORD": environment["PGPASSWORD"]}

        owner, its = login("migrate")
        self.succeeds("migrate", *owner, env=its)
        relay, its = login("relay", tomllib.loads(read(DEPLOY / "compose" / "outbox.toml"))["store"]["url"])
        app = ["psql", f"postgresql://shop_app:{DEVELOPMENT['SHOP_APP_PASSWORD']}@{host}:{port}/shop", "-qXAt", "-v", "ON_ERROR_STOP=1", "-c"]
        enqueued = subprocess.run([*app, "SELECT outbox.enqueue('order', 42, 'OrderPlaced', '{}')"], check=True, capture_output=True, text=True)
        found = self.succeeds("events", "--id", enqueued.stdout.strip(), *relay, env=its)
        self.assertIn("OrderPlaced", found.out)
        self.write("outbox.toml", '[subscription.all]\nsink = "stdout"\n')
        delivered = self.succeeds("relay", "--once", "-c", "outbox.toml", *relay, env=its)
        self.assertIn(enqueued.stdout.strip(), delivered.out)
        refused = subprocess.run([*app, "SELECT * FROM outbox.parked"], check=False, capture_output=True, text=True)
        self.assertIn("permission denied", refused.stderr)
        checked = self.outbox("migrate", *relay, env=its)
        self.assertNotEqual(checked.code, 5, checked)
        self.check_console(login("migrate"), login("console"))

    def check_console(self, owner, console):
        """It refuses to start until there is a token, and then its health check passes."""
        command = [word.replace("0.0.0.0:8484", "0.0.0.0:0") for word in SERVICES["console"]["command"]]
        store, its = console
        self.fails(1, *command, *store, env=its, says="token add")
        self.succeeds("console", "token", "add", "me", "--role", "admin", *owner[0], env=owner[1])
        log = self.folder / "console.log"
        with open(log, "w", encoding="utf-8") as output:
            self.environment |= its
            process = self.spawn(*command, *store, stdout=subprocess.DEVNULL, stderr=output)
        port = wait_until(lambda: re.search(r"http://0\.0\.0\.0:(\d+)", read(log)), "the console listens")[1]
        check = list(SERVICES["console"]["healthcheck"]["test"][1:])
        check[-1] = check[-1].replace("/8484 ", f"/{port} ")
        wait_until(lambda: subprocess.run(check, check=False, capture_output=True, timeout=10).returncode == 0, "the console is healthy")
        process.terminate()
        self.assertEqual(process.wait(timeout=60), OK, read(log))


class Guide(unittest.TestCase):
    """What the guide says about these files."""

    text = read(GUIDE)

    def test_every_file_it_names_is_there(self):
        named = set(re.findall(r"deploy/[\w./-]+\w", self.text))
        self.assertIn("deploy/compose.yaml", named)
        self.assertIn("deploy/kubernetes", named)
        for path in named - {"deploy/prometheus/alerts.yaml", "deploy/grafana/outbox.json"}:
            self.assertTrue((ROOT / path).exists(), path)

    def test_its_commands_are_about_what_there_is(self):
        for line in re.findall(r"^\$ (docker compose .*|kubectl .*)$", self.text, re.M):
            words = shlex.split(line, comments=True)
            for word in words:
                if word.startswith("deployment/") or word.startswith("job/"):
                    kind, _, name = word.partition("/")
                    self.assertIn((kind.capitalize(), name), OBJECTS, line)
            if words[:2] == ["docker", "compose"] and "exec" in words:
                self.assertIn(words[words.index("exec") + 1], SERVICES, line)


if __name__ == "__main__":
    unittest.main()
