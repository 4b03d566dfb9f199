#!/usr/bin/env python3
"""docs/architecture.md is true: its parts and rooms are those of the tree, and its walks lead from
file to file: architecture_test.py

A step is a line `N. `file` `function`: ...`. Its function stands in its file, and is called by name
in a file of an earlier step of its list (header and source of a unit count as one).
"""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
import tidy  # noqa: E402
import tidy_lex  # noqa: E402
import tidy_rooms  # noqa: E402

PAGE = (ROOT / tidy_rooms.PAGE).read_text(encoding='utf-8')
STEP = re.compile(r'^(\d+)\. `([^`]+)` `([\w:]+)`: \S')
FILE = re.compile(r'`((?:[\w.-]+/)+[\w.-]+\.(?:cpp|hpp|c|h|def|py|json))`')


def walks_in(page):
    """(heading, [(file, function)]) of each list of steps."""
    section = re.search(r'^## Walks$(.*?)(?=^## |\Z)', page, re.M | re.S)[1]
    walks, heading = [], ''
    for line in section.splitlines():
        if line.startswith('### '):
            heading = line[4:]
        elif re.match(r'\d+\. ', line):
            step = STEP.match(line)
            if step is None:
                raise ValueError(f'no step of the form "N. `file` `function`: ..": {line[:60]}')
            if step[1] == '1':
                walks.append((heading, []))
            walks[-1][1].append((step[2], step[3]))
    return walks


def code_of(path, root=ROOT):
    text = (root / path).read_text(encoding='utf-8')
    return text if path.endswith('.def') else tidy_lex.split(text)[0]


def unit_code(path, root=ROOT):
    """The code of a file and of the header or source that belongs to it."""
    stem = pathlib.PurePosixPath(path).with_suffix('')
    paths = [path] if path.endswith('.def') else [f'{stem}{end}' for end in ('.hpp', '.cpp')]
    return '\n'.join(code_of(each, root) for each in paths if (root / each).is_file())


def findings_of(steps, root=ROOT):
    """What is not true of a list of steps: lines for people."""
    findings, before = [], []
    for path, function in steps:
        if not (root / path).is_file():
            findings.append(f'{path}: there is no such file')
            continue
        name = re.compile(rf'\b{re.escape(function.split("::")[-1])}\b')
        full = re.compile(rf'\b{re.escape(function)}\b')
        if not (full if path.endswith('.cpp') else name).search(code_of(path, root)):
            findings.append(f'{path} has no {function}')
        is_row = path.endswith('.def')  # a row is found by its command
        if before and not is_row and not any(name.search(unit_code(each, root)) for each in before):
            findings.append(f'no earlier step calls {function} of {path}')
        before.append(path)
    return findings


class Architecture(unittest.TestCase):
    maxDiff = None

    def test_each_walk_leads_from_file_to_file(self):
        walks = walks_in(PAGE)
        self.assertGreaterEqual(len(walks), 4)
        findings = [f'{heading}: {finding}' for heading, steps in walks
                    for finding in findings_of(steps)]
        self.assertEqual(findings, [])

    def test_each_file_that_the_page_names_is_there(self):
        self.assertEqual([name for name in FILE.findall(PAGE) if not (ROOT / name).is_file()], [])

    def test_the_parts_are_those_of_the_tree(self):
        block = re.search(r'^## Parts\n\n```\n(.*?)^```', PAGE, re.M | re.S)[1]
        listed = {line.split()[0].split('/')[0] for line in block.splitlines() if line[0] != ' '}
        self.assertEqual(listed, set(tidy.ROOM_PARTS))

    def test_the_rooms_are_those_of_the_tree_and_include_what_the_table_says(self):
        units = tidy_rooms.units_of_tree(ROOT)
        table = tidy_rooms.table_of(units, tidy.ROOMS, tidy_rooms.contents_in(PAGE))
        self.assertIn(table, PAGE, 'run `python3 tools/tidy_rooms.py --write`')
        self.assertNotIn(' | ? | ', table, 'a room has no text yet')


class Check(unittest.TestCase):
    def test_a_step_that_is_not_true_is_found(self):
        claims, rules = 'engine/claims/claims.cpp', 'engine/rules/claim_rules.cpp'
        self.assertEqual(findings_of([(claims, 'Claims::claim')]), [])
        self.assertEqual(findings_of([(claims, 'Claims::seize')]),
                         [f'{claims} has no Claims::seize'])
        self.assertEqual(findings_of([('engine/no.cpp', 'f')]),
                         ['engine/no.cpp: there is no such file'])
        self.assertEqual(findings_of([(claims, 'Claims::claim'), (rules, 'decide_claim')]),
                         [f'no earlier step calls decide_claim of {rules}'])

    def test_a_step_without_a_function_is_no_step(self):
        with self.assertRaises(ValueError):
            walks_in('## Walks\n\n### A\n\n1. `a/b.cpp`: x\n')


if __name__ == '__main__':
    unittest.main()
