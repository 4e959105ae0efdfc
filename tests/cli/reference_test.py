#!/usr/bin/env python3
"""The reference pages match the program."""

import re
import unittest

from program import Case, ROOT


class Reference(Case):
    def test_the_page_is_up_to_date(self):
        page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
        self.assertEqual(self.succeeds("config", "reference").out, page,
                         "run: build/outbox config reference > docs/reference/settings.md")

    def test_the_page_of_metrics_is_up_to_date(self):
        page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
        self.assertEqual(self.succeeds("config", "reference", "--metrics").out, page,
                         "run: build/outbox config reference --metrics > docs/reference/metrics.md")

    def test_the_description_of_the_api_is_up_to_date(self):
        document = (ROOT / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8")
        self.assertEqual(self.succeeds("config", "reference", "--openapi").out, document,
                         "run: build/outbox config reference --openapi > docs/reference/openapi.json")

    def test_the_operations_page_has_every_line_of_the_log(self):
        page = (ROOT / "docs" / "guide" / "operations.md").read_text(encoding="utf-8")
        rows = [row.split("|") for row in page.splitlines() if row.startswith("| ")]
        call = re.compile(r'log::(info|warn|error)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
        found = [(level, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)))
                 for path in (ROOT / "src").rglob("*.cpp")
                 for level, text in call.findall(path.read_text(encoding="utf-8"))]
        self.assertGreater(len(found), 30)
        for level, message in found:
            level = "warning" if level == "warn" else level
            self.assertTrue(any(row[1].strip() == level and f"`{message}`" in row[2] for row in rows), (level, message))


if __name__ == "__main__":
    unittest.main()
