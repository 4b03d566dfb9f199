#!/usr/bin/env python3
"""The tables of failures name what holds their sentences, and that is there: shown_by_test.py.

A name is a code span of the column "shown by", or where there is none of any cell of the row:

    tools/prove NAME         a proof that tools/prove lists
    [between-9]              a tag of a test, or the number of a program of tests/attacks
    tests/.../file           a file
    area: what it says       a test case, by its full name
    storage_kill             a test of ctest
"""

import functools
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By page and heading. The last cell of each row is names and commas, nothing else.
TABLES = [
    ("docs/guarantees.md", "Failure by failure"),
    ("docs/guarantees.md", "Joined commits"),
    ("docs/operations.md", "A storage that does not start, or was changed from outside"),
]
# Tables without that column: how many of their rows may name nothing. It only falls.
UNNAMED_MAX = {("docs/replication.md", "Losses, failure by failure"): 14}

LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
SPAN = re.compile(r"`([^`]+)`")


def rows_of(text, heading):
    """Header and rows of the first table below a heading, as lists of cells."""
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    if section is None:
        raise LookupError(f"no heading '{heading}'")
    lines = [line for line in section[1].splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    if len(split) < 3:
        raise LookupError(f"no table below '{heading}'")
    return split[0], split[2:]


@functools.cache
def known():
    """What can be named: proofs, tags, cases, tests of ctest."""
    proofs = set(re.findall(r"^(\S+) {2,}\S", re.search(
        r"^list\(\) \{\n.*?\n(.*?)^TXT$", (ROOT / "tools/prove").read_text(), re.M | re.S)[1],
        re.M))
    cases, tags = set(), set()
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        text = path.read_text()
        for name, tagged in re.findall(rf"TEST_CASE\(\s*{LITERALS}(?:,\s*{LITERALS})?", text):
            cases.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', name)))
            tags.update(re.findall(r"\[[^\]]+\]", tagged))
    for path in (ROOT / "tests/attacks").glob("*.py"):
        match = re.match(r"([a-z_]+)_0?(\d+)_", path.name)
        if match:
            tags.add(f"[{match[1].replace('_', '-')}-{match[2]}]")
    ctests = set()
    for path in (ROOT / "tests").rglob("CMakeLists.txt"):
        ctests.update(re.findall(r'add_test\(NAME "?([\w.]+)"?', path.read_text()))
    return proofs, tags, cases, ctests


def is_known(name):
    proofs, tags, cases, ctests = known()
    if name.startswith("tools/prove "):
        return name.removeprefix("tools/prove ") in proofs
    if name.startswith("["):
        return name in tags
    if name.startswith("tests/"):
        return (ROOT / name).is_file()
    return name in cases or name in ctests


def findings_of(text, heading):
    """What is wrong with a table that has the column: lines for people."""
    header, rows = rows_of(text, heading)
    if header[-1] != "shown by":
        return [f"'{heading}' has no last column 'shown by'"]
    findings = []
    for row in rows:
        names = SPAN.findall(row[-1])
        if not names or SPAN.sub("", row[-1]).strip(" ,"):
            findings.append(f"{row[0][:60]}: its last cell is no list of names: {row[-1]}")
        findings += [f"{row[0][:60]}: there is no {name}" for name in names if not is_known(name)]
    return findings


def names_within(cells):
    """Code spans that can be nothing but a name."""
    spans = [name for cell in cells for name in SPAN.findall(cell)]
    return [name for name in spans
            if re.match(r"tools/prove |\[[a-z-]+-\d+\]$|tests/|[a-z][a-z ]+: [a-z]", name)]


class Pages(unittest.TestCase):
    maxDiff = None

    def test_each_row_names_what_holds_it_and_that_is_there(self):
        findings = [f"{page}: {finding}" for page, heading in TABLES
                    for finding in findings_of((ROOT / page).read_text(), heading)]
        self.assertEqual(findings, [])

    def test_rows_of_other_tables_name_what_is_there_and_ever_more_of_them_do(self):
        for (page, heading), most in UNNAMED_MAX.items():
            header, rows = rows_of((ROOT / page).read_text(), heading)
            if header[-1] == "shown by":
                self.assertEqual(findings_of((ROOT / page).read_text(), heading), [])
                continue
            names = [names_within(row) for row in rows]
            self.assertEqual([name for row in names for name in row if not is_known(name)], [])
            self.assertLessEqual(sum(not row for row in names), most, page)


class Check(unittest.TestCase):
    def findings(self, cell, header="shown by"):
        table = f"| failure | {header} |\n|---|---|\n| it ends | {cell} |\n"
        return findings_of(f"## Failures\n{table}", "Failures")

    def test_names_that_are_there_are_found(self):
        for name in ("tools/prove images", "[between-9]", "[between-7]", "storage_kill",
                     "tests/storage/full_open_test.cpp", "storage: ended spans leave the disk"):
            self.assertEqual(self.findings(f"`{name}`"), [], name)

    def test_a_name_that_is_not_there_is_a_finding(self):
        for name in ("tools/prove image", "[between-99]", "[between-]", "storage_kills", "storage",
                     "tests/storage/full_open_tests.cpp", "tests/storage",
                     "storage: ended spans leave"):
            self.assertEqual(self.findings(f"`tools/prove kill`, `{name}`"),
                             [f"it ends: there is no {name}"])

    def test_a_cell_without_a_name_or_with_other_words_is_a_finding(self):
        for cell in ("", "-", "tools/prove kill", "see `tools/prove kill`"):
            self.assertEqual(len(self.findings(cell)), 1, cell)

    def test_a_table_without_the_column_is_a_finding(self):
        self.assertEqual(len(self.findings("`tools/prove kill`", "what")), 1)

    def test_a_heading_that_has_gone_is_an_error(self):
        with self.assertRaises(LookupError):
            findings_of("# Other\n", "Failures")

    def test_within_other_cells_a_setting_is_no_name(self):
        self.assertEqual(names_within(["`tls-reload`", "as `storage: it ends` and `semel verify`"]),
                         ["storage: it ends"])


if __name__ == "__main__":
    sys.exit(unittest.main())
