#!/usr/bin/env python3
"""docs/reference/settings.md is what the program says about itself."""

import unittest

from program import Case, ROOT


class Reference(Case):
    def test_the_page_is_up_to_date(self):
        page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
        self.assertEqual(self.succeeds("config", "reference").out, page,
                         "run: build/outbox config reference > docs/reference/settings.md")


if __name__ == "__main__":
    unittest.main()
