#!/usr/bin/env python3
"""docs/memory-model.md names the pairs of memory orders that the sources have, and no others.

Vocabulary: pair - two ends that synchronise, written [area.name] in comments of the sources;
row - a line of a table of the page that begins with `area.name`.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'memory-model.md'
PARTS = ('base', 'include', 'engine', 'patterns', 'storage', 'net', 'lua_compat', 'bindings',
         'tools')
LABEL = re.compile(r'\[([a-z_]+\.[a-z_]+)\]')
COMMENT = re.compile(r'//.*')
ROW = re.compile(r'^\|((?:\s*`[a-z_]+\.[a-z_]+`,?)+)\s*\|', re.MULTILINE)


def pairs_of_source(text):
    """The pairs that `mo:` comments name, which may go on in the lines of comment below."""
    pairs = set()
    goes_on = False
    for line in text.splitlines():
        comment = COMMENT.search(line)
        goes_on = comment is not None and ('mo:' in line or goes_on and line.lstrip()[:2] == '//')
        if goes_on:
            pairs.update(LABEL.findall(comment.group()))
    return pairs


def pairs_of_page(text):
    """The pairs that begin a row. A row may name several, separated by commas."""
    return {name.strip(' `') for cell in ROW.findall(text) for name in cell.split(',')}


def sources():
    for part in PARTS:
        for path in sorted((ROOT / part).rglob('*')):
            if path.suffix in ('.hpp', '.cpp', '.h'):
                yield path


class MemoryModelPage(unittest.TestCase):
    def setUp(self):
        self.named = {}
        for path in sources():
            for pair in pairs_of_source(path.read_text(encoding='utf-8')):
                self.named.setdefault(pair, path.relative_to(ROOT))
        self.rows = pairs_of_page(PAGE.read_text(encoding='utf-8'))

    def test_each_pair_of_the_sources_has_a_row(self):
        missing = {pair: str(path) for pair, path in self.named.items() if pair not in self.rows}
        self.assertEqual({}, missing)

    def test_each_row_is_a_pair_of_the_sources(self):
        self.assertEqual(set(), self.rows - set(self.named))

    def test_there_are_pairs_to_compare(self):
        self.assertGreater(len(self.rows), 20)


class Reading(unittest.TestCase):
    def test_a_label_counts_in_a_comment_of_a_memory_order_only(self):
        self.assertEqual({'slot.publish', 'slot.free'}, pairs_of_source(
            '// A section [of.settings] in an example.\n'
            'at(x[node.place]);  // mo: release [slot.publish]: its bytes are\n'
            '                    // complete, [slot.free]\n'
            'next(y[node.place]);\n'))

    def test_a_row_may_name_several_pairs(self):
        self.assertEqual({'timers.filled', 'timers.next', 'log.seal'}, pairs_of_page(
            '| pair | writer |\n|---|---|\n| `timers.filled`, `timers.next` | release |\n'
            '| `log.seal` | release, see `log.room` |\n'))


if __name__ == '__main__':
    unittest.main(argv=sys.argv)
