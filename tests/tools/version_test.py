#!/usr/bin/env python3
"""tools/version: the tree has one version; a copy that differs is found, and so is one that the
program does not know."""

import importlib.machinery
import importlib.util
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True


def load(path):
    loader = importlib.machinery.SourceFileLoader('version', str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('version', loader))
    loader.exec_module(module)
    return module


version = load(ROOT / 'tools/version')


class Copies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        for name in {version.HEADER, *(name for name, _ in version.COPIES)}:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.number = version.read(ROOT)

    def change(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def test_the_tree_has_one_version(self):
        self.assertEqual(version.check(ROOT), [])

    def test_a_copy_that_differs_is_found(self):
        for name in sorted({name for name, _ in version.COPIES}):
            with self.subTest(name):
                before = (self.root / name).read_text()
                minor = self.number.rpartition('.')[0]
                # The last mention of a changelog may be of another section.
                self.change(name, self.number if self.number in before else minor, '9.8.7'
                            if self.number in before else '9.8')
                found = version.check(self.root)
                self.assertTrue(found and found[0].startswith(name), found)
                (self.root / name).write_text(before)
        self.assertEqual(version.check(self.root), [])

    def test_a_copy_that_is_gone_is_found(self):
        self.change('clients/node/package.json', '"version"', '"versions"')
        self.assertIn('no version where one should stand', version.check(self.root)[0])

    def test_a_copy_in_another_file_is_found(self):
        (self.root / 'engine').mkdir()
        (self.root / 'engine/about.cpp').write_text(f'const char* text = "{self.number}";\n')
        found, = version.check(self.root)
        self.assertTrue(found.startswith('engine/about.cpp:1: '), found)

    def test_numbers_that_only_begin_alike_are_none(self):
        (self.root / 'addresses').write_text(f'1{self.number} {self.number}.7 v1.{self.number}\n')
        self.assertEqual(version.check(self.root), [])

    def test_another_version_is_written_everywhere_but_into_the_changelog(self):
        version.write(self.root, '9.8.7')
        found, = version.check(self.root)
        self.assertTrue(found.startswith('CHANGELOG.md:'), found)
        self.change('CHANGELOG.md', f'## {self.number} ', '## 9.8.7 unreleased\n\n## 0.0.0 ')
        self.assertEqual(version.check(self.root), [])


if __name__ == '__main__':
    unittest.main()
