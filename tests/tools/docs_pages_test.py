#!/usr/bin/env python3
"""How pages of the tree become pages of the site: docs_pages_test.py [unittest arguments]."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'docs/site'))
sys.dont_write_bytecode = True

import pages  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write('README.md', '# S\n\n## Use\n\n[keys](docs/keys.md#a)\n\n```sh\n# no heading\n'
                                '```\n\n### Part\n\nx\n\n## Next\n\ny\n')
        self.write('docs/keys.md', '# Keys\n')
        self.write('examples/once.cpp', 'int main() {}\n')

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def relink(self, text, origin='docs/start/cpp.md', page='start/cpp.md'):
        return pages.relink(text, origin, page, self.root)

    def test_a_link_leads_to_the_page_that_a_file_has_on_the_site(self):
        self.assertEqual(self.relink('[a](../keys.md#x)'), '[a](../keys.md#x)')
        self.assertEqual(self.relink('[a](../../README.md)'), '[a](../overview.md)')
        self.assertEqual(self.relink('[a](../../examples/once.cpp)'),
                         '[a](../source/examples/once.cpp.md)')
        self.assertEqual(self.relink('[a](docs/keys.md)', 'README.md', 'overview.md'),
                         '[a](keys.md)')

    def test_what_is_no_link_to_a_file_stays(self):
        for text in ('[a](#x)', '[a](https://example.org/x.md)', '[a](../gone.md)',
                     '```\n[a](../../README.md)\n```'):
            self.assertEqual(self.relink(text), text)

    def test_a_section_is_included_with_its_links_and_without_its_heading(self):
        line = '[Use](../../README.md#use) <!-- include -->'
        text = pages.include(line, 'docs/start/cpp.md', 'start/cpp.md', self.root)
        self.assertEqual(text, '[keys](../keys.md#a)\n\n```sh\n# no heading\n```\n\n### Part\n\nx')

    def test_of_a_file_that_is_not_there_nothing_is_included(self):
        line = '[Client](../../clients/go/README.md) <!-- include -->'
        self.assertEqual(pages.include(line, 'docs/start/go.md', 'start/go.md', self.root), '')

    def test_a_section_that_is_not_there_is_an_error(self):
        with self.assertRaises(ValueError):
            pages.include('[x](../../README.md#no) <!-- include -->', 'docs/start/cpp.md',
                          'start/cpp.md', self.root)


class Markdown(unittest.TestCase):
    def test_anchors_are_those_of_a_repository_browser(self):
        self.assertEqual(pages.slug('The log: `log/%016x.log`'), 'the-log-log016xlog')
        self.assertEqual(pages.slug('In process: three services'), 'in-process-three-services')

    def test_lists_and_tables_behind_text_get_an_empty_line(self):
        self.assertEqual(pages.for_python_markdown('x\n- a\n  b\n- c'), 'x\n\n- a\n  b\n- c')
        self.assertEqual(pages.for_python_markdown('x\n| a |\n|---|\n| b |'),
                         'x\n\n| a |\n|---|\n| b |')
        self.assertEqual(pages.for_python_markdown('- a\n  - b'), '- a\n    - b')

    def test_code_stays_as_it_is(self):
        for text in ('```\nx\n- a\n```', '````text\n```\n| a |\n```\n````'):
            self.assertEqual(pages.for_python_markdown(text), text)


if __name__ == '__main__':
    unittest.main()
