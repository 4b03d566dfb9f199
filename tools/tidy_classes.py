#!/usr/bin/env python3
"""How large the classes of the product are: tools/tidy_classes.py [--all] [--root DIR]

Limits of files and functions do not show a class that owns too much. Counted for each class: its
functions with a body, wherever they stand, constructors included; the lines of these; its data
members, unless it is a record with hardly a function. Prints the classes over a limit, with --all
the 40 largest, with --ratchet the list that tidy.py allows; the last line is the figure.

The list says of each class why it is larger: {"PATH:CLASS": {"counts": [methods, lines, members],
"reason": "one sentence"}}. --ratchet renews the counts and leaves new reasons to be written.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy_lex  # noqa: E402

METHODS_MAX = 25
BODY_LINES_MAX = 500
MEMBERS_MAX = 20
RECORD_LINES_MAX = 50  # of bodies: a record of settings or figures is no owner
REASON_CHARS_MIN = 20  # less says nothing
RATCHET = 'tools/class_ratchet.json'
ROOMS = ('base', 'bindings', 'engine', 'gateway', 'include', 'lua_compat', 'net', 'replication',
         'storage', 'tools')
CLASS = re.compile(r'(?:^|\s)(?:class|struct)\s+(?:alignas\s*\([^)]*\)\s*)?'
                   r'(?:SEMEL_\w+(?:\([^)]*\))?\s+)?([\w:]+)(?:\s*<[^{]*>)?\s*(?:final\s*)?(?::|$)')
NO_MEMBER = re.compile(r'^(?:using|typedef|friend|static|template|enum|class|struct|union|public|'
                       r'private|protected|constexpr|inline|extern|operator)\b')
ACCESS = re.compile(r'\b(?:public|private|protected)\s*:(?!:)')


class Owner:
    """A class, and what was found of it."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.methods = self.lines = self.members = 0

    def counts(self):
        """Methods, lines in tens (how a line is broken says nothing) and members, as the limits
        look at them."""
        is_record = self.lines <= RECORD_LINES_MAX
        return self.methods, -(-self.lines // 10) * 10, 0 if is_record else self.members

    def is_over(self, limits=(METHODS_MAX, BODY_LINES_MAX, MEMBERS_MAX)):
        return any(count > limit for count, limit in zip(self.counts(), limits))

    def key(self):
        return f'{self.path}:{self.name}'

    def __str__(self):
        return (f'{self.name} has {self.methods} methods with {self.lines} lines and '
                f'{self.members} data members')


def without_types(text):
    """Drops what stands between angle brackets, whose parentheses mislead."""
    depth, shown = 0, []
    for char in re.sub(r'operator\s*[<>=]+|->', 'operator_', text):
        depth += {'<': 1, '>': -1}.get(char, 0)
        if depth == 0:
            shown.append(char)
    return ''.join(shown)


def members_in(statement):
    """Data members that a statement of a class declares: 0 or 1."""
    text = tidy_lex.without_templates(ACCESS.sub(' ', statement)).strip()
    text = re.sub(r'\bSEMEL_\w+\s*\([^)]*\)', ' ', text)
    text = re.sub(r'\bmutable\b', ' ', text).strip()
    if not text or NO_MEMBER.match(text):
        return 0
    return 0 if '(' in without_types(re.split(r'[={]', text)[0]) else 1


class Reader:
    """Finds classes and functions of one file, with the class that each belongs to."""

    def __init__(self, path, text):
        self.path = path
        code = tidy_lex.split(text)[0]
        self.code = tidy_lex.DIRECTIVE.sub(lambda m: tidy_lex.blank(m.group()), code)
        self.at_line = tidy_lex.Lines(text).of
        self.classes = {}    # name -> members
        self.functions = []  # (class, lines)
        self.read(0, len(self.code), '')

    def lines(self, first, last):
        return self.at_line(last) - self.at_line(first) + 1

    def read(self, at, end, owner):
        code, start = self.code, at
        while at < end:
            char = code[at]
            if char == '(':
                at = tidy_lex.close_of(code, at)
            elif char == ';':
                if owner:
                    self.classes[owner] += members_in(code[start:at])
                start = at + 1
            elif char == '}':
                start = at + 1
            elif char == '{':
                close = min(tidy_lex.close_of(code, at), end)
                start = self.read_block(start, at, close, owner)
                at = close
            at += 1

    def read_block(self, start, at, close, owner):
        """Returns where the next statement begins."""
        raw = self.code[start:at]
        raw = ACCESS.sub(lambda m: tidy_lex.blank(m.group()), raw)
        header = tidy_lex.without_templates(raw)
        is_scope = tidy_lex.SCOPE.match(header)
        found = CLASS.search(header) if is_scope else None
        if found and not header.startswith('enum'):
            name = (owner + '::' if owner else '') + found.group(1)
            self.classes.setdefault(name, 0)
            self.read(at + 1, close, name)
            return start if self.code[close + 1:close + 2] not in (';', '') else close + 1
        if is_scope:
            if 'enum' not in header:
                self.read(at + 1, close, owner)
            return close + 1
        follows = self.code[close + 1:].lstrip()[:1]
        if tidy_lex.INITIALISERS.search(header) and follows in (',', '{'):
            return start  # member{value} of a constructor's initialiser list
        if '(' in without_types(header) and not header.endswith('='):
            name = tidy_lex.name_of(header)
            of = owner or name.rpartition('::')[0]
            if of:
                first = start + len(raw) - len(raw.lstrip())
                self.functions.append((of, self.lines(first, close)))
            return close + 1
        return start  # an initialiser: its statement goes on


def owners(texts):
    """All classes of files by path, those with most lines first."""
    found, readers = {}, []
    for path, text in texts:
        if path.split('/')[0] not in ROOMS or not path.endswith(('.hpp', '.cpp')):
            continue
        reader = Reader(path, text)
        readers.append(reader)
        for name, members in reader.classes.items():
            owner = found.setdefault((path, name), Owner(name, path))
            owner.members += members
    by_name = collections.defaultdict(list)
    for (path, name), owner in found.items():
        by_name[name].append(owner)
    for reader in readers:
        for name, lines in reader.functions:
            owner = owner_of(by_name, name, reader.path)
            if owner is not None:
                owner.methods += 1
                owner.lines += lines
    return sorted(found.values(), key=lambda each: -each.lines)


def owner_of(by_name, name, path):
    """The class of that name which is nearest: of this file, else with the longest common path."""
    known = by_name.get(name, ()) or by_name.get(name.removeprefix('detail::'), ())
    if not known:
        return None

    def distance(owner):
        mine, other = path.split('/'), owner.path.split('/')
        same = 0
        while same < min(len(mine), len(other)) and mine[same] == other[same]:
            same += 1
        return -same

    return min(known, key=distance)


def texts_of(root):
    listed = subprocess.run(['git', '-C', str(root), 'ls-files', '*.hpp', '*.cpp'],
                            check=True, capture_output=True, text=True).stdout.split()
    return [(path, (root / path).read_text(encoding='utf-8')) for path in listed
            if (root / path).is_file()]


def reason_of(entry):
    """The reason of an entry of the list; empty: it has none."""
    reason = entry.get('reason', '') if isinstance(entry, dict) else ''
    return reason.strip() if isinstance(reason, str) else ''


def counts_of(entry):
    """The counts of an entry of the list; none: it is not of the form above."""
    counts = entry.get('counts') if isinstance(entry, dict) else None
    is_sound = (isinstance(counts, list) and len(counts) == 3 and
                all(isinstance(count, int) for count in counts))
    return tuple(counts) if is_sound else None


def findings(texts, ratchet):
    """Yields (path, message) for each class that is larger than `ratchet` allows, and for each of
    its entries that is no longer needed, or does not say why its class is larger."""
    limits = (METHODS_MAX, BODY_LINES_MAX, MEMBERS_MAX)
    known = {key: counts_of(entry) for key, entry in ratchet.items()}
    over = {}
    for owner in owners(texts):
        allowed = tuple(map(max, zip(limits, known.get(owner.key()) or limits)))
        if owner.is_over():
            over[owner.key()] = owner
        if owner.is_over(allowed):
            yield owner.path, (f'{owner}; the limits are '
                               f'{allowed[0]}, {allowed[1]} and {allowed[2]}')
    for key, entry in ratchet.items():
        if key not in over:
            yield RATCHET, f'{key} no longer needs its entry: remove it'
        elif known[key] is None:
            yield RATCHET, f'{key} needs "counts": [methods, lines, members] and a "reason"'
        elif len(reason_of(entry)) < REASON_CHARS_MIN:
            yield RATCHET, f'{key} needs a "reason": why is this class larger than the limits?'
        elif any(count < had and had > limit for count, had, limit in
                 zip(over[key].counts(), known[key], limits)):
            yield RATCHET, f'{key} has shrunk: lower its entry to {list(over[key].counts())}'


def ratchet_text(over, ratchet):
    """The list for the classes `over` the limits, with the reasons that `ratchet` has."""
    rows = {each.key(): {'counts': list(each.counts()),
                         'reason': reason_of(ratchet.get(each.key(), {}))}
            for each in sorted(over, key=Owner.key)}
    entries = [f'  {json.dumps(key)}: {{\n    "counts": {json.dumps(row["counts"])},\n'
               f'    "reason": {json.dumps(row["reason"])}\n  }}' for key, row in rows.items()]
    return '{\n' + ',\n'.join(entries) + '\n}'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', default=Path(__file__).resolve().parents[1], type=Path)
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--ratchet', action='store_true')
    options = parser.parse_args()
    every = owners(texts_of(options.root))
    over = [owner for owner in every if owner.is_over()]
    if options.ratchet:
        known = options.root / RATCHET
        ratchet = json.loads(known.read_text(encoding='utf-8')) if known.is_file() else {}
        print(ratchet_text(over, ratchet))
        return
    for owner in every[:40] if options.all else over:
        print(f'{owner.path}: {owner}')
    print(f'{len(over)} of {len(every)} classes are over {METHODS_MAX} methods, {BODY_LINES_MAX} '
          f'lines or {MEMBERS_MAX} members')


if __name__ == '__main__':
    main()
