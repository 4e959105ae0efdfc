#!/usr/bin/env python3
"""The configuration: where it comes from, what it refuses, what it shows."""

import os
import unittest

from program import CHECK_FAILED, Case, ERROR, FILE_SUBSCRIPTION, NOT_NOW, OnSqlite, USAGE


class Sources(Case):
    def shown(self, *arguments, **more):
        """Value and origin by path."""
        settings = self.succeeds("config", "show", "--json", *arguments, **more).json()["settings"]
        return {f"{s['section']}.{s['key']}": (s["value"], s["origin"]) for s in settings}

    def test_defaults(self):
        shown = self.shown()
        self.assertEqual(shown["relay.page"], (1000, "default"))
        self.assertEqual(shown["relay.lease"], ("15s", "default"))
        self.assertEqual(shown["relay.window_bytes"], ("16MiB", "default"))

    def test_the_file_in_the_working_directory_is_read(self):
        self.write("outbox.toml", "[relay]\npage = 7\n")
        self.assertEqual(self.shown()["relay.page"], (7, "outbox.toml:2"))

    def test_a_variable_names_the_file_and_a_flag_overrides_it(self):
        self.write("outbox.toml", "[relay]\npage = 7\n")
        self.write("a.toml", "[relay]\npage = 8\n")
        self.write("b.toml", "[relay]\npage = 9\n")
        env = {"OUTBOX_CONFIG": "a.toml"}
        self.assertEqual(self.shown(env=env)["relay.page"], (8, "a.toml:2"))
        self.assertEqual(self.shown("-c", "b.toml", env=env)["relay.page"], (9, "b.toml:2"))

    def test_flags_override_variables_and_variables_the_file(self):
        self.write("outbox.toml", '[relay]\npage = 7\n[store]\nurl = "sqlite:file.db"\n')
        env = {"OUTBOX_RELAY_PAGE": "8", "OUTBOX_STORE_URL": "sqlite:variable.db"}
        shown = self.shown(env=env)
        self.assertEqual(shown["relay.page"], (8, "environment OUTBOX_RELAY_PAGE"))
        self.assertEqual(shown["store.url"], ("sqlite:variable.db", "environment OUTBOX_STORE_URL"))
        shown = self.shown("--set", "relay.page=9", "--store", "sqlite:flag.db", env=env)
        self.assertEqual(shown["relay.page"], (9, "--set"))
        self.assertEqual(shown["store.url"], ("sqlite:flag.db", "--store"))

    def test_an_empty_variable_counts_as_not_set(self):
        self.assertEqual(self.shown(env={"OUTBOX_RELAY_PAGE": ""})["relay.page"], (1000, "default"))

    def test_units(self):
        self.write("outbox.toml", '[relay]\nlease = "1min"\nidle_poll = "500ms"\nwindow_bytes = "1024KiB"\ngrace = "90s"\n')
        shown = self.shown()
        self.assertEqual(shown["relay.lease"][0], "1min")
        self.assertEqual(shown["relay.idle_poll"][0], "500ms")
        self.assertEqual(shown["relay.window_bytes"][0], "1MiB")
        self.assertEqual(shown["relay.grace"][0], "90s")

    def test_settings_of_a_sink_are_numbers_lists_and_dotted_keys_too(self):
        self.write("outbox.toml", '[subscription.a]\nsink = "kafka"\n[subscription.a.kafka]\nbrokers = ["x:1", "y:2"]\n'
                                  'socket.keepalive.enable = true\n"batch.num.messages" = 500\n')
        shown = self.shown()
        self.assertEqual(shown["subscription.a.kafka.brokers"][0], "x:1,y:2")
        self.assertEqual(shown["subscription.a.kafka.socket.keepalive.enable"][0], "true")
        self.assertEqual(shown["subscription.a.kafka.batch.num.messages"][0], "500")

    def test_a_variable_that_looks_like_a_slip_is_a_warning(self):
        result = self.succeeds("config", "check", "--store", "sqlite:x.db", env={"OUTBOX_RELAY_PAEG": "5"})
        self.assertIn("OUTBOX_RELAY_PAEG is not a setting (hint: did you mean OUTBOX_RELAY_PAGE?)", result.err)


class InTheFolder(Case):
    """A verb that has its store from elsewhere does not care for an outbox.toml that happens to lie there."""

    BROKEN = "[relay\n"
    # They need nothing but the store.
    STORE_VERBS = (("migrate",), ("enqueue", "order", "1", "Placed", "{}"), ("parked", "list"), ("tasks", "list"), ("tasks", "schedule"),
                   ("replay", "--list"), ("verify",), ("migrate", "--status"))
    # They would show more with the rest of the configuration.
    SHOWING_VERBS = (("status",), ("subscription", "list"))
    # What they do depends on it.
    WHOLE_VERBS = (("relay",), ("work",), ("prune",), ("subscription", "apply"), ("config", "show"))

    def test_a_broken_one_does_not_matter_to_what_needs_only_the_store(self):
        self.write("outbox.toml", self.BROKEN)
        for verb in self.STORE_VERBS:
            for given in ({"env": {"OUTBOX_STORE_URL": self.store}}, None):
                result = self.succeeds(*verb, **given) if given else self.succeeds(*self.at_store(*verb))
                self.assertEqual(result.err, "", verb)

    def test_one_that_would_be_used_for_more_is_passed_over_aloud(self):
        self.write("outbox.toml", self.BROKEN)
        self.migrate()
        for verb in self.SHOWING_VERBS:
            result = self.succeeds(*self.at_store(*verb))
            self.assertIn("outbox.toml:", result.err)
            self.assertIn("passed over", result.err)

    def test_what_depends_on_it_does_not_run_without_it(self):
        self.write("outbox.toml", self.BROKEN)
        self.migrate()
        for verb in self.WHOLE_VERBS:
            self.fails(ERROR, *self.at_store(*verb), says="outbox.toml:")

    def test_one_that_was_named_must_be_right(self):
        self.write("outbox.toml", self.BROKEN)
        for verb in self.STORE_VERBS + self.SHOWING_VERBS:
            self.fails(ERROR, *self.at_store(*verb), "-c", "outbox.toml", says="outbox.toml:")
            self.fails(ERROR, *self.at_store(*verb), env={"OUTBOX_CONFIG": "outbox.toml"}, says="outbox.toml:")

    def test_without_another_store_it_must_be_right(self):
        self.write("outbox.toml", self.BROKEN)
        for verb in self.STORE_VERBS + self.SHOWING_VERBS:
            self.fails(ERROR, *verb, says="outbox.toml:")

    def printed(self, toml, *arguments):
        self.write("outbox.toml", toml)
        return self.outbox("migrate", "--print", "--store", "postgresql://h/d", *arguments)

    def test_the_schema_is_needed_too(self):
        if "postgresql" not in self.succeeds("version", "--json").json()["stores"]:
            self.skipTest("built without PostgreSQL")
        said = '[store]\nschema = "shop_box"\n'
        self.assertIn('TABLE "shop_box".event ', self.printed(said).out)
        self.assertIn('TABLE "shop_box".event ', self.printed(said + '[relay]\npaeg = 5\n[subscription.x]\nsink = "nowhere"\n').out)
        self.assertIn('TABLE "other".event ', self.printed(said, "--schema", "other").out)
        self.assertIn('TABLE "outbox".event ', self.printed(self.BROKEN).out)
        self.assertIn('TABLE "other".event ', self.printed(self.BROKEN + said, "--schema", "other").out)
        refused = self.printed(self.BROKEN + said)
        self.assertEqual((refused.code, "with --schema NAME" in refused.err), (ERROR, True), refused)


class Secrets(Case):
    def test_passwords_are_never_shown(self):
        self.write("outbox.toml", '[store]\nurl = "postgresql://app:hush@db/shop?sslpassword=hush&sslmode=require"\n'
                   '[subscription.a]\nsink = "kafka"\nheaders = { Authorization = "Bearer hush" }\n'
                   '[subscription.a.kafka]\nbrokers = "b:1"\nsasl.password = "hush"\nsasl.username = "${env:WHO}"\n'
                   '[subscription.b]\nsink = "nats"\n[subscription.b.nats]\nurl = "nats://app:hush@b"\n'
                   '[subscription.c]\nsink = "nats"\n[subscription.c.nats]\nurl = "nats://b"\ntoken = "hush"\n')
        for arguments in ((), ("--json",)):
            result = self.succeeds("config", "show", *arguments, env={"WHO": "hush"})
            self.assertNotIn("hush", result.out + result.err)
            self.assertIn("postgresql://app:***@db/shop?sslmode=require&sslpassword=***", result.out)

    def test_a_password_with_strange_characters_is_not_shown_either(self):
        for url in ("postgresql://app:hu%2Fsh%40x@db/shop", "host=db password=hush user=x", "host=db password='hu sh' user=x",
                    "host=db password=hu\\ sh", "postgresql://db/x?pass%77ord=hush", "postgresql://db/x?sslp%61ssword=hush"):
            shown = self.succeeds("config", "show", "--store", url).out
            self.assertNotRegex(shown, "hu.?sh")

    def test_the_relay_does_not_show_it_either(self):
        """Neither in its first line nor in the error about a missing server."""
        for url in ("postgresql://app:hush@127.0.0.1:1/shop", "host=127.0.0.1 port=1 password=hu\\ sh",
                    "postgresql://127.0.0.1:1/shop?pass%77ord=hush", "host=127.0.0.1 port=1 password = 'hu\\'sh'"):
            result = self.outbox("relay", "--store", url)
            self.assertEqual(result.code, NOT_NOW, url)
            self.assertIn("starting", result.err)
            self.assertIn("127.0.0.1:1", result.err)
            self.assertNotRegex(result.err, "hu.{0,2}sh")

    def test_a_setting_of_a_sink_that_may_hold_a_password_is_not_shown(self):
        self.write("outbox.toml", '[store]\nurl = "sqlite:x.db"\n[subscription.a]\nsink = "kafka"\n[subscription.a.kafka]\n'
                                  'brokers = "b:1"\nlinger = "5ms"\n"client.rack" = "https://me:hush@x/"\n'
                                  '"client.id" = "a password=hush"\n')
        shown = self.succeeds("config", "show").out
        self.assertNotIn("hush", shown)
        self.assertIn('linger = "5ms"', shown)

    def test_a_password_from_a_reference_needs_no_encoding(self):
        """No driver takes a part of it for something else, which it would quote in an error."""
        for password in ("s3cr:et", "s3cr/et", "s3cr@et", "s3cr?et", "s3cr%et", "s3cr et", "s3cr'et\\", "#&=s3cr"):
            for url in ("postgresql://app:${env:PW}@127.0.0.1:1/shop", "host=127.0.0.1 port=1 password=${env:PW} user=app",
                        "host=127.0.0.1 port=1 password='${env:PW}' user=app",
                        "postgresql://app@127.0.0.1:1/shop?password=${env:PW}", "postgresql://${env:BOTH}@127.0.0.1:1/shop"):
                for arguments in (("status", "--store", url), ("status",)):
                    self.write("outbox.toml", f'[store]\nurl = "{url}"\n')
                    result = self.outbox(*arguments, env={"PW": password, "BOTH": "app:" + password})
                    self.assertEqual(result.code, NOT_NOW, (url, password))
                    self.assertIn("127.0.0.1", result.err, (url, password))
                    for part in ("s3cr", "et\"", "et@", "invalid"):
                        self.assertNotIn(part, result.out + result.err, (url, password))

    def test_a_password_that_must_be_encoded_is_refused_unseen(self):
        for url in ("postgresql://app:s3cr@et@127.0.0.1:1/shop", "postgresql://app:s3cr/et@127.0.0.1:1/shop",
                    "postgresql://app:s3cr?et@127.0.0.1:1/shop", "postgresql://app:12?s3cret@127.0.0.1:1/shop",
                    "postgresql://app:s3cr%et@127.0.0.1:1/shop", "postgresql://app:12/s3cret@127.0.0.1:1/shop",
                    "postgresql://app:s3cr et@127.0.0.1:1/shop"):
            for verb in ("status", "migrate", "relay"):
                result = self.fails(USAGE, verb, "--store", url, says=("store.url", "--store", "percent-encode"))
                self.assertNotIn("s3cr", result.err)
                self.assertNotIn("et@", result.err)

    def test_addresses_that_are_fine(self):
        for url in ("postgresql:///shop?host=/var/run", "postgresql://[::1]:5432/shop", "postgresql://a:1,b:2/shop",
                    "postgresql://app:p%40s%3As@db:5432/shop?sslmode=require&application_name=a%20b", "postgresql://u@/x",
                    "shop.db", "sqlite:/a/b c.db", "sqlite:x?y@z", "dbname=shop"):
            self.succeeds("config", "show", "--store", url)

    def test_references_are_replaced(self):
        secret = self.write("password", "hush\n")
        secret.chmod(0o600)
        self.write("outbox.toml", '[store]\nurl = "sqlite:${env:NAME}-${file:password}-$${x}.db"\n')
        shown = self.succeeds("config", "show", env={"NAME": "shop"}).out
        self.assertIn(f'"sqlite:{self.folder}/shop-hush-${{x}}.db"', shown)

    def test_a_file_that_others_may_read_is_refused(self):
        self.write("password", "hush\n").chmod(0o644)
        self.write("outbox.toml", '[store]\nurl = "postgresql://app:${file:password}@db/x"\n')
        self.fails(ERROR, "config", "show", says=("store.url", "${file:password}", "outbox.toml:2:7", "chmod 600"))

    def test_missing_references_say_where(self):
        self.write("outbox.toml", '[store]\nurl = "postgresql://app:${env:NOPE}@db/x"\n')
        self.fails(ERROR, "config", "show", says=("${env:NOPE}", "is not set", "outbox.toml:2:7"))
        self.write("outbox.toml", '[store]\nurl = "postgresql://app:${file:nope}@db/x"\n')
        self.fails(ERROR, "config", "show", says=("${file:nope}", "No such file", "outbox.toml:2:7"))
        self.write("outbox.toml", '[store]\nurl = "${vault:x}"\n')
        self.fails(ERROR, "config", "show", says=("${vault:x}", "${env:NAME}"))

    def test_a_verb_that_does_not_deliver_needs_no_broker_password(self):
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n[subscription.a]\nsink = "kafka"\n'
                                  '[subscription.a.kafka]\nbrokers = "b:1"\nsasl.password = "${env:NOPE}"\n')
        self.succeeds("migrate")
        self.fails(CHECK_FAILED, "config", "check", says="${env:NOPE}")
        self.fails(ERROR, "relay", says="${env:NOPE}")


class Refusals(Case):
    def refused(self, text, *says):
        """By `check` with 3, by a verb that works with 1; the same line."""
        self.write("bad.toml", text)
        checked = self.fails(CHECK_FAILED, "config", "check", "-c", "bad.toml", "--store", "sqlite:x.db", says=says)
        used = self.fails(ERROR, "status", "-c", "bad.toml", "--store", "sqlite:x.db", says=says)
        self.assertEqual(checked.err, used.err)

    def test_unknown_key(self):
        self.refused("[relay]\npaeg = 5\n", "unknown setting relay.paeg", "bad.toml:2:1", "did you mean relay.page?")

    def test_unknown_section(self):
        self.refused("[realy]\npage = 5\n", "unknown section realy", "bad.toml:1:2", "did you mean relay?")

    def test_a_setting_outside_of_its_section(self):
        self.refused("page = 5\n", "unknown setting page", "bad.toml:1:1", "did you mean relay.page?")

    def test_unknown_key_of_a_subscription(self):
        self.refused('[subscription.a]\nsink = "null"\nevent_type = ["x"]\n', "unknown setting subscription.a.event_type",
                     "bad.toml:3:1", "did you mean event_types?")

    def test_wrong_types(self):
        for line, says in (("page = \"many\"", ("expected an integer from 1 to 10000", 'found the string "many"')),
                           ("page = 0", ("expected an integer from 1 to 10000", "found 0")),
                           ("page = 1.5", ("expected an integer", "found a number with a fraction 1.5")),
                           ("lease = 15", ("expected a duration", "found an integer 15", 'lease = "15s"')),
                           ('lease = "15"', ("expected a duration", 'found "15"', 'lease = "15s")')),
                           ('lease = "15 parsecs"', ("expected a duration", "ms, s, min, h or d")),
                           ('lease = "1ms"', ("from 1s to 10min", 'found "1ms"')),
                           ('window_bytes = "16M"', ("expected a size", "KiB, MiB or GiB")),
                           ('wake_up = "yes"', ("expected true or false", 'found the string "yes"')),
                           ("name = 5", ("expected a string", 'name = "5"')),
                           ("name = [5]", ("expected a string", "found an array"))):
            self.refused(f"[relay]\n{line}\n", line.split()[0], "bad.toml:2:", *says)

    def test_wrong_choices(self):
        self.refused('[log]\nlevel = "infos"\n', "debug | info | warn | error | off", 'did you mean "info"?')
        self.refused('[subscription.a]\nsink = "kafak"\n', 'found "kafak"', 'did you mean "kafka"?', "bad.toml:2:8")

    def test_a_table_where_a_value_belongs_and_the_other_way_round(self):
        self.refused("[relay.page]\nx = 1\n", "relay.page", "found a table")
        self.refused("relay = 5\n", "relay: expected a table, found an integer")
        self.refused("[subscription]\norders = 5\n", "subscription.orders: expected a table")

    def test_stores_that_are_none(self):
        self.refused_by_check('[store]\nurl = "mysql://app:hush@db/x"\n', "store.url", "PostgreSQL or SQLite", "bad.toml:2:7")
        self.refused_by_check('[store]\nurl = "app:hush@db/x"\n', "store.url", "postgresql://USER@HOST")
        self.refused_by_check('[store]\nschema = "My-Schema"\nurl = "sqlite:x.db"\n', "store.schema", "bad.toml:2:10")

    def refused_by_check(self, text, *says):
        self.write("bad.toml", text)
        self.assertNotIn("hush", self.fails(CHECK_FAILED, "config", "check", "-c", "bad.toml", says=says).err)

    def test_subscriptions(self):
        a = "[subscription.a]\n"
        self.refused(a + 'topic = "x"\n', "subscription.a.sink: is missing")
        self.refused(a + 'sink = "null"\nevent_types = "Order*"\n', "expected an array of strings", 'event_types = ["Order*"]')
        self.refused(a + 'sink = "null"\ntopic = "{nope}"\n', "topic", "nope", "bad.toml:3:1")
        self.refused('[subscription."a b"]\nsink = "null"\n', "subscription.a b", "name")

    def test_a_number_without_a_unit_is_given_one_that_fits(self):
        self.refused('[relay]\nsettle_interval = "50"\n', "relay.settle_interval", 'settle_interval = "50ms")')
        self.refused("[relay]\nlease = 15\n", 'lease = "15s")')

    def test_destinations_that_cannot_work(self):
        a = '[subscription.a]\nsink = "kafka"\n'
        brokers = '[subscription.a.kafka]\nbrokers = "b:9092"\n'
        for topic in ("", "a b", "a/b", "..", "x" * 250):
            self.refused(f'{a}topic = "{topic}"\n{brokers}', "subscription.a.topic", "bad.toml:3:1", "249")
        for wrong in ("", ",", "b:9092,", "b:9092,,c:9092", "b:many", "b:0", ":9092", "b:99999"):
            self.refused(f'{a}[subscription.a.kafka]\nbrokers = "{wrong}"\n', "subscription.a.kafka.brokers", "bad.toml:4:11")
        for good in ("b", "b:1, c:2", "SSL://b:1", "[::1]:9092", "10.0.0.1:9092"):
            self.write("good.toml", f'[store]\nurl = "sqlite:x.db"\n{a}topic = "x.{{event_type}}"\n[subscription.a.kafka]\nbrokers = "{good}"\n')
            self.succeeds("config", "check", "-c", "good.toml")
        self.refused('[subscription.a]\nsink = "custom"\n', 'found "custom"')

    def test_one_file_for_two_subscriptions(self):
        self.refused('[subscription.a]\nsink = "file"\nfile.path = "x.jsonl"\n'
                     '[subscription.b]\nsink = "file"\nfile.path = "./x.jsonl"\n',
                     "subscription.b.file.path: subscription a has the same value", "bad.toml:6:13")

    def test_all_mistakes_of_a_subscription(self):
        self.write("bad.toml", '[subscription.a]\nsink = "file"\ntopic = "{nope}"\nkey = "{nope}"\nevent_types = [""]\n'
                               '[subscription.a.file]\npath = ""\nmode = "x"\n')
        problems = self.outbox("config", "check", "-c", "bad.toml", "--json", "--store", "sqlite:x.db").json()
        self.assertEqual(problems["file"], "bad.toml")
        self.assertEqual(sorted(p["line"] for p in problems["problems"]), [3, 4, 5, 7, 8], problems)

    def test_settings_of_sinks(self):
        a = '[subscription.a]\nsink = "file"\n'
        self.refused(a, "subscription.a.file.path: is missing", "bad.toml:1:")
        self.refused(a + '[subscription.a.file]\npaht = "x"\n', "unknown setting subscription.a.file.paht", "bad.toml:4:1",
                     "did you mean path?")
        self.refused(a + '[subscription.a.kafka]\nbrokers = "x"\n', "settings of a sink that is not used", "is file")

    def test_not_toml(self):
        self.refused("[relay\n", "not valid TOML", "bad.toml:1:7")
        self.refused("[relay]\npage = 1\npage = 2\n", "not valid TOML", "bad.toml:3:")

    def test_what_is_too_deep(self):
        self.refused("a." * 20000 + "a = 1\n", "more than 32 parts", "bad.toml:1:")
        self.refused("a = " + "[" * 20000, "more than 16 deep", "bad.toml:1:")

    def test_values_that_do_not_fit_together(self):
        self.refused("[relay]\npage = 500\nwindow_events = 100\n", "relay.window_events", "bad.toml:3:17")

    def test_variables_and_flags_are_named(self):
        self.fails(CHECK_FAILED, "config", "check", "--store", "sqlite:x.db", env={"OUTBOX_RELAY_PAGE": "x"}, says="environment OUTBOX_RELAY_PAGE")
        self.fails(CHECK_FAILED, "config", "check", "--store", "sqlite:x.db", "--set", "relay.paeg=5", says=("relay.paeg", "--set", "relay.page?"))
        self.fails(USAGE, "status", "--log-level", "loud", says=("log.level", "--log-level"))

    def test_a_hint_is_written_as_the_value_was(self):
        for name, value, hint in (("OUTBOX_RELAY_PAGE", "x", "write OUTBOX_RELAY_PAGE=1000)"),
                                  ("OUTBOX_RELAY_LEASE", "15", "OUTBOX_RELAY_LEASE=15s)"),
                                  ("OUTBOX_RELAY_SETTLE_INTERVAL", "50", "OUTBOX_RELAY_SETTLE_INTERVAL=50ms)")):
            self.fails(CHECK_FAILED, "config", "check", "--store", "sqlite:x.db", env={name: value}, says=hint)
        self.fails(CHECK_FAILED, "config", "check", "--store", "sqlite:x.db", "--set", "relay.page=x", says="write --set relay.page=1000)")

    def test_missing_files(self):
        self.fails(ERROR, "status", "-c", "nope.toml", says=("No such file", "nope.toml", "-c"))
        self.fails(ERROR, "status", env={"OUTBOX_CONFIG": "nope.toml"}, says=("nope.toml", "OUTBOX_CONFIG"))
        self.fails(ERROR, "status", "-c", os.curdir, says="Is a directory")

    def test_every_mistake_is_reported(self):
        self.write("bad.toml", "[relay]\npaeg = 5\nlease = 15\n[log]\nlevel = 1\n[subscription.a]\nsink = \"file\"\n"
                               "format = \"xml\"\n[subscription.a.file]\npaht = 1\n")
        store = ("--store", "sqlite:x.db")
        result = self.outbox("config", "check", "-c", "bad.toml", *store)
        self.assertEqual(result.code, CHECK_FAILED)
        where = [line.split("bad.toml:")[1].split(":")[0] for line in result.err.splitlines()]
        self.assertEqual(where, ["2", "3", "5", "8", "10"])
        problems = self.outbox("config", "check", "-c", "bad.toml", "--json", *store).json()
        self.assertFalse(problems["ok"])
        self.assertEqual([p["line"] for p in problems["problems"]], [2, 3, 5, 8, 10])
        self.assertEqual(problems["problems"][0]["path"], "relay.paeg")

    def test_a_good_file_passes(self):
        self.write("outbox.toml", '[store]\nurl = "sqlite:x.db"\n' + FILE_SUBSCRIPTION)
        self.assertIn("outbox.toml: ok, 1 subscription", self.succeeds("config", "check").out)
        self.assertTrue(self.succeeds("config", "check", "--json").json()["ok"])


STORE = '[store]\nurl = "sqlite:x.db"\n'
KAFKA = STORE + '[subscription.a]\nsink = "kafka"\nkafka.brokers = "b:1"\n'
NATS = STORE + '[subscription.a]\nsink = "nats"\nnats.url = "nats://b"\n'
FILE = STORE + '[subscription.a]\nsink = "file"\n'


class Check(Case):
    def test_what_would_only_show_when_it_is_used(self):
        """Each with its place and a hint."""
        (self.folder / "a-directory").mkdir()
        for text, what, place, hint in (
                ("[relay]\npage = 5\n", "store.url: is not set", "bad.toml", 'write url = "sqlite:shop.db" below [store]'),
                ('[store]\nurl = ""\n', "store.url: is empty", "bad.toml:2:7", "or set OUTBOX_STORE_URL"),
                ('[store]\nurl = "sqlite:no/such/shop.db"\n', "no/such: No such file or directory", "bad.toml:2:7",
                 "create the directory first"),
                ('[store]\nurl = "sqlite:a-directory"\n', "is a directory", "bad.toml:2:7", "name a file in it"),
                ('[store]\nurl = "sqlite:~/shop.db"\n', "store.url: begins with ~", "bad.toml:2:7", "${env:HOME}"),
                ('[store]\nurl = "postgresql://db/x?sslmod=require"\n', "has a parameter that libpq does not know",
                 "bad.toml:2:7", "did you mean sslmode?"),
                ('[store]\nurl = "postgresql://db:99999/x"\n', "has a port that is not a number from 1 to 65535", "bad.toml:2:7",
                 "percent-encode"),
                ('[store]\nurl = "postgresql://db/x?sslmode=requird"\n', "has an unknown sslmode", "bad.toml:2:7", "require |"),
                ('[store]\nurl = "postgresql://u:${file:~/pw}@db/x"\n', "${file:~/pw}: begins with ~", "bad.toml:2:7",
                 "write the directory out"),
                (FILE + 'file.path = "no/such/x.jsonl"\n', "subscription.a.file.path: there is no directory", "bad.toml:5:13",
                 "mkdir -p /"),
                (FILE + 'file.path = "a-directory"\n', "subscription.a.file.path: is a directory", "bad.toml:5:13", "a file in it"),
                (FILE + 'file.path = "~/x.jsonl"\n', "subscription.a.file.path: begins with ~", "bad.toml:5:13", "${env:HOME}"),
                (NATS + 'topic = "a b"\n', "topic: is not a subject that NATS can publish to: it has a space", "bad.toml:6:", "parts between dots"),
                (NATS + 'nats.credentials_file = "no/such.creds"\n', "no/such.creds: No such file", "bad.toml:6:", "the relay's user can read"),
                (KAFKA + 'topic = "a b"\n', "topic: is not a valid name of a Kafka topic", "bad.toml:6:", "at most 249"),
                (KAFKA + 'topic = "a b.{event_type}"\n', "topic: does not make a valid name of a Kafka topic", "bad.toml:6:", "letters, digits"),
                (KAFKA + 'topic = "{{x}}"\n', "topic: does not make a valid name of a Kafka topic", "bad.toml:6:", "letters, digits"),
                (KAFKA + 'topic = "{event_typ}"\n', "topic", "bad.toml:6:", "event_type")):
            self.write("bad.toml", text)
            result = self.fails(CHECK_FAILED, "config", "check", "-c", "bad.toml", says=(what, place))
            self.assertIn(hint, result.err.split("(hint: ", 1)[1], text)

    def test_without_a_file(self):
        self.fails(CHECK_FAILED, "config", "check", says=("store.url: is not set", "outbox init"))
        self.succeeds("config", "check", "--store", "sqlite:shop.db")
        self.succeeds("config", "check", env={"OUTBOX_STORE_URL": "postgresql://db/shop"})

    def test_good_topics(self):
        for topic in ("orders", "a.b_c-d", "{aggregate_type|lower}.events", "{header:x}", "x.{event_type}.{seq}"):
            self.write("good.toml", KAFKA + f'topic = "{topic}"\n')
            self.succeeds("config", "check", "-c", "good.toml")


class Paths(OnSqlite, Case):
    def test_those_in_a_file_count_from_its_folder(self):
        (self.folder / "etc").mkdir()
        self.write("etc/outbox.toml", '[store]\nurl = "sqlite:shop.db"\n' + FILE_SUBSCRIPTION)
        file = ("-c", "etc/outbox.toml")
        self.succeeds("migrate", *file)
        self.succeeds("enqueue", "order", "42", "OrderPlaced", "{}", *file)
        self.succeeds("relay", "--once", *file)
        self.assertEqual(sorted(p.name for p in (self.folder / "etc").glob("*.db")), ["shop.db"])
        self.assertEqual(len((self.folder / "etc" / "orders.jsonl").read_text(encoding="utf-8").splitlines()), 1)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["etc"])

    def test_what_the_store_holds_does_not_depend_on_where_a_relay_is_started(self):
        self.write("outbox.toml", '[store]\nurl = "sqlite:shop.db"\n' + FILE_SUBSCRIPTION)
        self.succeeds("migrate")
        self.succeeds("subscription", "apply")
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"][0]
        self.assertEqual(listed["sink_settings"]["path"], f"{self.folder}/orders.jsonl")

    def test_flags_and_variables_count_from_the_working_directory(self):
        (self.folder / "etc").mkdir()
        self.write("etc/outbox.toml", '[store]\nurl = "sqlite:no.db"\n')
        self.succeeds("migrate", "-c", "etc/outbox.toml", "--store", "sqlite:flag.db")
        self.succeeds("migrate", "-c", "etc/outbox.toml", env={"OUTBOX_STORE_URL": "sqlite:variable.db"})
        self.assertTrue((self.folder / "flag.db").exists())
        self.assertTrue((self.folder / "variable.db").exists())

    def test_files_of_a_sinks_library_do_too(self):
        (self.folder / "etc").mkdir()
        self.write("etc/ca.pem", "")
        self.write("etc/outbox.toml", KAFKA.replace("x.db", "shop.db") +
                   'kafka.security.protocol = "ssl"\nkafka.ssl.ca.location = "ca.pem"\n')
        self.succeeds("migrate", "-c", "etc/outbox.toml")
        self.succeeds("subscription", "apply", "-c", "etc/outbox.toml")
        listed = self.succeeds("subscription", "list", "--json", "-c", "etc/outbox.toml").json()["subscriptions"][0]
        self.assertEqual(listed["sink_settings"]["ssl.ca.location"], f"{self.folder}/etc/ca.pem")


if __name__ == "__main__":
    unittest.main()
