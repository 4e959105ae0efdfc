#!/usr/bin/env python3
"""The page of the console: its pure functions, without a browser."""

import subprocess
import unittest

from page import CONSOLE, missing


class Units(unittest.TestCase):
    def test_pure_functions(self):
        if why := missing():
            self.skipTest(why)
        run = subprocess.run(["npm", "test", "--silent"], cwd=CONSOLE, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_types(self):
        if why := missing():
            self.skipTest(why)
        run = subprocess.run(["npm", "run", "--silent", "check"], cwd=CONSOLE, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
