#!/usr/bin/env python3
"""outbox subscription list, apply, pause, resume."""

import unittest

from program import Case, ERROR, FILE_SUBSCRIPTION, OnPostgres, OnSqlite, USAGE


class Subscription:
    def setUp(self):
        super().setUp()
        self.migrate()

    def apply(self, subscriptions, *flags):
        self.config(subscriptions)
        return self.succeeds("subscription", "apply", *flags).out

    def names(self):
        return [s["name"] for s in self.succeeds("subscription", "list", "--json").json()["subscriptions"]]

    def test_the_difference_is_shown_and_written(self):
        self.assertEqual(self.apply(FILE_SUBSCRIPTION), "+ orders created\n")
        self.assertEqual(self.apply(FILE_SUBSCRIPTION), "= orders unchanged\n")
        changed = FILE_SUBSCRIPTION.replace("orders.jsonl", "other.jsonl").replace('"file"\n', '"file"\nformat = "json"\n')
        self.assertEqual(self.apply(changed), '~ orders changed format: "raw" -> "json"\n'
                                              f'~ orders changed file.path: "{self.folder}/orders.jsonl" -> "{self.folder}/other.jsonl"\n')
        self.assertEqual(self.apply(changed), "= orders unchanged\n")

    def test_a_setting_is_named_with_its_sink(self):
        self.apply(FILE_SUBSCRIPTION)
        nothing = '[subscription.orders]\nsink = "null"\n'
        self.assertEqual(self.apply(nothing), '~ orders changed sink: "file" -> "null"\n'
                                              f'~ orders changed file.path: "{self.folder}/orders.jsonl" -> -\n')
        self.assertEqual(self.apply(FILE_SUBSCRIPTION), '~ orders changed sink: "null" -> "file"\n'
                                                        f'~ orders changed file.path: - -> "{self.folder}/orders.jsonl"\n')

    def test_others_are_left_alone(self):
        self.apply(FILE_SUBSCRIPTION)
        out = self.apply('[subscription.more]\nsink = "null"\n')
        self.assertEqual(out, "+ more created\n  orders is only in the store, left alone\n")
        self.assertEqual(sorted(self.names()), ["more", "orders"])

    def test_a_dry_run_writes_nothing(self):
        self.assertIn("+ orders created\ndry run: nothing was written\n", self.apply(FILE_SUBSCRIPTION, "--dry-run"))
        self.assertEqual(self.names(), [])

    def test_as_json(self):
        self.config(FILE_SUBSCRIPTION)
        report = self.succeeds("subscription", "apply", "--json").json()
        self.assertEqual(report, {"dry_run": False, "subscriptions": [{"name": "orders", "action": "created", "changes": []}]})

    def test_passwords_are_not_shown(self):
        kafka = '[subscription.a]\nsink = "kafka"\n[subscription.a.kafka]\nbrokers = "b:1"\nsasl.password = "%s"\n'
        self.apply(kafka % "hush")
        self.assertEqual(self.apply(kafka % "hushhush"), '~ a changed kafka.sasl.password: "***" -> "***"\n')
        self.assertNotIn("hush", self.succeeds("subscription", "list", "--json").out)

    def test_what_came_from_a_reference_is_not_shown(self):
        kafka = ('[subscription.a]\nsink = "kafka"\ntopic = "${env:WHAT}"\nevent_types = ["${env:WHAT}"]\n'
                 'headers = { tenant = "${env:WHAT}", plain = "seen" }\n[subscription.a.kafka]\nbrokers = "b:1"\n'
                 'sasl.username = "${env:WHAT}"\nsasl.oauthbearer.config = "scope=hush"\n')
        self.config(kafka)
        for secret in ("hush1", "hush2"):
            applied = self.succeeds("subscription", "apply", env={"WHAT": secret}).out
            self.assertNotIn("hush", applied)
        self.assertIn('~ a changed topic: "***" -> "***"\n', applied)
        # A reference in a sink's setting is stored as it is.
        self.assertNotIn("sasl.username", applied)
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"][0]
        self.assertEqual(listed["sink_settings"]["sasl.username"], "${env:WHAT}")
        for verb in (("subscription", "list"), ("subscription", "list", "--json"), ("config", "show"), ("config", "show", "--json")):
            shown = self.succeeds(*verb).out
            self.assertNotIn("hush", shown)
        self.assertIn("seen", self.succeeds("subscription", "list", "--json").out)

    def test_pause_and_resume(self):
        self.apply(FILE_SUBSCRIPTION)
        self.assertEqual(self.succeeds("subscription", "pause", "orders").out, "orders paused: paused by hand\n")
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"][0]
        self.assertEqual((listed["state"], listed["reason"]), ("paused", "paused by hand"))
        self.succeeds("subscription", "resume", "orders")
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"][0]
        self.assertEqual((listed["state"], listed["reason"]), ("active", None))

    def stopped(self):
        """As the relay does it when an event is rejected."""
        table = f"{self.flags[1]}.subscription" if self.flags else "outbox_subscription"
        self.sql(f"UPDATE {table} SET state = 'stopped', reason = 'too large', stopped_seq = 7 WHERE name = 'orders'")

    def test_a_stopped_one_that_is_paused_stays_stopped(self):
        self.apply(FILE_SUBSCRIPTION)
        self.stopped()
        self.assertEqual(self.succeeds("subscription", "pause", "orders", "--reason", "holiday").out,
                         "orders stays stopped: too large\n")
        listed = self.succeeds("subscription", "list", "--json").json()["subscriptions"][0]
        self.assertEqual((listed["state"], listed["reason"]), ("stopped", "too large"))

    def test_unknown_names(self):
        self.apply(FILE_SUBSCRIPTION)
        for verb in ("pause", "resume"):
            self.fails(ERROR, "subscription", verb, "ordres", says=("unknown subscription: ordres", "did you mean orders?"))
            self.fails(ERROR, "subscription", verb, "quite-different", says="outbox subscription list")

    def test_nothing_to_apply(self):
        self.config()
        self.fails(USAGE, "subscription", "apply", says="[subscription.NAME]")


class SubscriptionSqlite(OnSqlite, Subscription, Case):
    def test_what_is_shown_was_written_also_if_a_later_one_fails(self):
        self.sql("CREATE TRIGGER refuse BEFORE INSERT ON outbox_subscription WHEN new.name = 'orders' "
                 "BEGIN SELECT RAISE(ABORT, 'not this one'); END")
        self.config('[subscription.more]\nsink = "null"\n' + FILE_SUBSCRIPTION)
        for flags, shown in (((), "+ more created\n"), (("--json",), "")):
            refused = self.outbox("subscription", "apply", *flags)
            self.assertEqual((refused.code, refused.out), (ERROR, shown), refused)
            self.assertIn("not this one", refused.err)
            self.assertEqual(self.names(), ["more"])
            self.sql("DELETE FROM outbox_subscription")


class SubscriptionPostgres(OnPostgres, Subscription, Case):
    pass


if __name__ == "__main__":
    unittest.main()
