"""The structs of the module are those of semel.h; its version is the library's."""

import ctypes
import os
import re
import subprocess
import unittest
from pathlib import Path

import semel
from semel import _library


class LayoutTest(unittest.TestCase):
    @unittest.skipUnless(os.environ.get('SEMEL_LAYOUT'), 'SEMEL_LAYOUT names no program')
    def test_structs(self):
        done = subprocess.run([os.environ['SEMEL_LAYOUT']], capture_output=True, text=True,
                              timeout=60, check=True)
        lines = [line.split() for line in done.stdout.splitlines()]
        kinds = {kind for kind, *_ in lines}
        ours = [value for value in vars(_library).values() if isinstance(value, type)
                and issubclass(value, ctypes.Structure) and value is not _library.Sized]
        names = {'semel_' + re.sub(r'(?<!^)([A-Z])', r'_\1', one.__name__).lower(): one
                 for one in ours}
        self.assertEqual(kinds, set(names))
        for kind, size, last, offset in lines:
            struct = names[kind]
            self.assertEqual(ctypes.sizeof(struct), int(size), kind)
            self.assertEqual(struct._fields_[-1][0], last, kind)
            self.assertEqual(getattr(struct, last).offset, int(offset), kind)

    def test_version(self):
        project = Path(__file__).resolve().parent.parent / 'pyproject.toml'
        version = re.search(r'^version = "(.+)"$', project.read_text(), re.MULTILINE)
        self.assertEqual(version.group(1), semel.__version__)


if __name__ == '__main__':
    unittest.main()
