#!/usr/bin/env python3
"""The page of the console: logging in, what each role may do, pages of lists, and many subscriptions."""

import unittest

from page import OK, OnSqlite, Shop, skip_without_browser, wait_until


def setUpModule():
    skip_without_browser()


class Roles(OnSqlite, Shop):
    def test_somebody_logs_in_and_out(self):
        self.browse("roles.mjs", "login", url=self.url)

    def test_tokens_of_the_console(self):
        if self.outbox("console", "token", "--help").code != OK:
            self.skipTest("this console has no tokens")
        tokens = {role: self.succeeds("console", "token", "add", name, "--role", role).out.split()[0]
                  for name, role in (("vera", "viewer"), ("otto", "operator"))}
        self.browse("roles.mjs", "tokens", url=self.console("127.0.0.1:0", "--tokens"), **tokens)

    def test_a_viewer_changes_nothing_and_sees_why(self):
        self.browse("roles.mjs", "viewer", url=self.url)

    def test_an_operator_does_what_operators_may(self):
        self.browse("roles.mjs", "operator", url=self.url)

    def test_an_admin_corrects_an_event_and_removes_a_schedule(self):
        self.browse("roles.mjs", "admin", url=self.url)
        wait_until(lambda: any('"better"' in body for body in self.receiver.taken), "the corrected copy is delivered")

    def test_lists_have_pages(self):
        self.browse("roles.mjs", "pages", url=self.url)

    def test_an_inbox_that_cannot_be_read_and_one_that_is_empty(self):
        self.browse("roles.mjs", "inbox", url=self.url)

    def test_many_subscriptions(self):
        self.browse("roles.mjs", "many", url=self.url)


if __name__ == "__main__":
    unittest.main()
