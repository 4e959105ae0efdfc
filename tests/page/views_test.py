#!/usr/bin/env python3
"""The page of the console: what each view shows, at three widths, dark and light, for everybody."""

import unittest

from page import OnPostgres, OnSqlite, Shop, skip_without_browser


def setUpModule():
    skip_without_browser()


class Views:
    """What depends on the store."""

    def test_they_show_what_is_in_the_store(self):
        self.browse("views.mjs", "seen", url=self.url)

    def test_messages_of_the_inbox_lead_to_their_tasks(self):
        self.browse("views.mjs", "inbox", url=self.url)


class ViewsOnSqlite(OnSqlite, Views, Shop):
    """And what the page is like, whatever store is behind it."""

    def test_every_view_fits_and_axe_finds_nothing(self):
        self.browse("views.mjs", "pictures", url=self.url)

    def test_dialogs_keep_the_focus_and_give_it_back(self):
        self.browse("views.mjs", "dialogs", url=self.url)

    def test_the_page_is_small(self):
        self.browse("views.mjs", "size", url=self.url)


class ViewsOnPostgres(OnPostgres, Views, Shop):
    pass


del Views

if __name__ == "__main__":
    unittest.main()
