"""The programs of the pages run: each ```python block that imports semel, as a program of its own.
tests/c_abi/docs_test.py runs that of docs/c-abi.md."""

import subprocess
import sys
import unittest
from pathlib import Path

from wheel_check import blocks_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = ('README.md', 'docs/python.md', 'docs/start/python.md')


class PagesTest(unittest.TestCase):
    def test_their_programs_run(self):
        for page in PAGES:
            blocks = list(blocks_of(ROOT / page))
            self.assertTrue(blocks, page)
            for line, block in blocks:
                done = subprocess.run([sys.executable, '-W', 'error', '-c', block],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ''), f'{page}:{line}')


if __name__ == '__main__':
    unittest.main()
