"""Which tests tools/check takes for a change: check_test.py [unittest arguments]."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
import check_plan  # noqa: E402
import tidy_rooms  # noqa: E402


class Source:
    def __init__(self, path, *includes):
        self.path = path
        self.text = ''.join(f'#include "{each}"\n' for each in includes)


UNITS = tidy_rooms.Units([
    Source('base/hex.hpp'), Source('base/clock.hpp'),
    Source('engine/table.hpp', 'base/hex.hpp'), Source('engine/table.cpp', 'engine/table.hpp'),
    Source('storage/log.hpp', 'engine/table.hpp'), Source('gateway/head.hpp', 'base/clock.hpp'),
])


def near(*changed):
    return check_plan.folders_of(changed, check_plan.reached_units(UNITS, changed))


class CheckTest(unittest.TestCase):
    def test_a_change_reaches_who_includes_it_over_others(self):
        self.assertEqual(sorted(near('base/hex.hpp')), ['base', 'claim_rules', 'engine', 'storage'])
        self.assertEqual(list(near('gateway/head.hpp')), ['gateway'])

    def test_what_changed_itself_is_nearest_and_then_from_below(self):
        found = near('engine/table.cpp', 'base/hex.hpp')
        self.assertEqual((found['base'], found['engine'], found['claim_rules']), (0, 0, 0))
        self.assertGreater(found['storage'], 0)

    def test_tests_pages_and_tools_are_their_own_folder(self):
        self.assertEqual(near('tests/net/a_test.cpp', 'docs/a.md'), {'net': 0, 'tools': 0})
        self.assertEqual(near('tools/setup'), {'tools': 0})
        self.assertEqual(near('cmake/a.cmake'), {})

    def test_the_cheap_ones_of_the_nearest_folder_come_first(self):
        folders = {'slow': 'a', 'far': 'b', 'quick': 'a', 'endless': 'a', 'other': 'c',
                   'nowhere': None}
        costs = {'slow': 50, 'far': 20, 'quick': 1, 'endless': 61}
        chosen = check_plan.choose(folders, {'a': 0, 'b': 4}, costs, 60)
        self.assertEqual(chosen, (['quick', 'slow', 'far'], 1))
        chosen = check_plan.choose(folders, {'a': 0, 'b': 4}, costs, 20)
        self.assertEqual(chosen, (['quick', 'far'], 2))

    def test_a_long_test_that_was_never_run_counts_as_long(self):
        tests = {'long': {'properties': [{'name': 'TIMEOUT', 'value': 300.0},
                                         {'name': 'COST', 'value': 100.0}]},
                 'short': {'properties': [{'name': 'TIMEOUT', 'value': 300.0}]}, 'bare': {}}
        costs = check_plan.declared_costs(tests)
        self.assertEqual(costs, {'long': 100.0})
        chosen = check_plan.choose(dict.fromkeys(tests, 'a'), {'a': 0}, costs, 60)
        self.assertEqual(chosen, (['bare', 'short'], 1))


if __name__ == '__main__':
    unittest.main()
