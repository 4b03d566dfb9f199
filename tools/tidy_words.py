#!/usr/bin/env python3
"""Counts riddles and torn comments: tools/tidy_words.py [ROOM|PAGE ..] [--ratchet] [--root DIR]

A riddle is a phrase that makes the reader look for the noun: "what was here", "who asks", "nobody".
A torn comment has one word alone on a line inside a paragraph, as a formatter leaves it. Both are
counted for each room (comments of its C++ files) and each page; the decisions are one page.
Without arguments it prints the counts, with names of rooms or pages each place in them, with
--ratchet the list that tidy.py allows: `"room": [riddles, torn]`. It may only fall.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tidy_lex  # noqa: E402

RATCHET = 'tools/riddle_ratchet.json'
PARTS = ('base', 'bindings', 'engine', 'gateway', 'include', 'lua_compat', 'net', 'patterns',
         'replication', 'storage', 'tools')
COLUMNS_MAX = 100
RIDDLE = re.compile(
    r'\b(?:what|who|whoever|whom)\s+(?:is|was|are|were|has|had|comes?|came|waits?|asks?|goes|went|'
    r'needs?|follows?|must|may|can|cannot|does|did)\b'
    r'|\bnobody\b|\bnothing\s+of\s+it\b|\b(?:is|are)\s+told\b|\bsays\s+so\b|\bis\s+said\b'
    r'|\bso\s+(?:much|many|long)\s+(?:of|as)\b|\bmeanwhile\b|\bfor\s+good\b|\bin\s+its\s+place\b',
    re.IGNORECASE)
# Standard uses: (pattern around a riddle, reason). It matches from before the riddle's end.
STANDARD = [
    (re.compile(r'[^.?!:]*\?', re.IGNORECASE), 'a question: "What is it for?"'),
    (re.compile(r"\b(?:callers?|clients?|users?|operators?|readers?|people|person|customers?|"
                r"developers?|engineers?|owners?|anyone|everyone|someone)\swho\s", re.IGNORECASE),
     'a relative clause with its noun: "a client who waits"'),
    (re.compile(r'\bmeanwhile,\s|\bin\sthe\smeanwhile\b', re.IGNORECASE),
     'the adverb of a sentence with its own subject: "Meanwhile, the drainer ..."'),
]
REACH = 300  # characters of a sentence on each side
APART = re.compile(r'\n\s*\n')
END = re.compile(rf'[.?!:](?=\s|$)|{APART.pattern}|\|')
WORD = re.compile(r"[\w`'\"(<\[][\w`'\"()<>\[\]./:+-]*[.,;:]?")
PROSE = re.compile(r"[\w`'\"(<\[]")
ITEM = re.compile(r'- |\d+\. |\[[\w.]+\]  |[\w.]+:? {2,}\S')  # of a list or of a drawing


class Place:
    """One finding: `kind` is 0 for a riddle, 1 for a torn comment, as in the ratchet's rows."""

    def __init__(self, path, line, kind, text):
        self.path, self.line, self.kind, self.text = path, line, kind, text

    def __str__(self):
        return f'{self.path}:{self.line}: {("riddle", "torn")[self.kind]}: {self.text}'


def entry_of(path):
    """The room or the page that a file counts for; None: it is not counted."""
    if path.endswith('.md'):
        return 'docs/decisions' if path.startswith('docs/decisions/') else (
            path if path.startswith('docs/') or '/' not in path else None)
    is_cpp = path.endswith(('.cpp', '.hpp', '.h', '.c', '.def'))
    return os.path.dirname(path) if is_cpp and path.split('/')[0] in PARTS else None


def words_of(path, text):
    """The prose of a file, as long as the file: comments without marks, pages without code."""
    if path.endswith('.md'):
        text = re.sub(r'^(```|~~~).*?^\1[^\n]*$', lambda m: tidy_lex.blank(m.group()), text,
                      flags=re.MULTILINE | re.DOTALL)
        return re.sub(r'`[^`\n]*`', lambda m: '_' * len(m.group()), text)
    comments = tidy_lex.split(text)[1]
    comments = re.sub(r'^(\s*)(///?<?|\*)(?=\s|$)',
                      lambda m: m.group(1) + ' ' * len(m.group(2)), comments, flags=re.MULTILINE)
    return re.sub(r'`[^`\n]*`', lambda m: '_' * len(m.group()), comments)


def sentence_of(words, match):
    """The sentence around a riddle with one space for many, and where the riddle begins in it."""
    before = words[max(0, match.start() - REACH):match.start()]
    ends = [found.end() for found in END.finditer(before)]
    before = ' '.join(before[ends[-1] if ends else 0:].split())
    after = words[match.start():match.end() + REACH]
    stop = END.search(after, len(match.group()))
    after = ' '.join(after[:stop.start() + 1 if stop else len(after)].split())
    return f'{before} {after}'.lstrip(), len(before) + 1 if before else 0


def riddles(path, text):
    words = words_of(path, text)
    at_line = tidy_lex.Lines(text).of
    for match in RIDDLE.finditer(words):
        sentence, at = sentence_of(words, match)
        if not APART.search(match.group()) and not any(
                found.start() <= at < found.end()
                for pattern, _ in STANDARD for found in pattern.finditer(sentence)):
            shown = sentence[max(0, at - 30):at + len(match.group()) + 30]
            yield Place(path, at_line(match.start()), 0, f'..{shown}..')


def torn(path, text):
    """Lines of a comment with one word that belongs to the line before or to the one after."""
    if path.endswith('.md'):
        return
    comments = tidy_lex.split(text)[1].split('\n')
    rows = [row_of(comment) for comment in comments]
    for number in range(1, len(rows)):
        before, row = rows[number - 1:number + 1]
        if not row or not before or before.mark != row.mark or not WORD.fullmatch(row.said):
            continue
        full = len(comments[number - 1]) + 1 + len(row.said) > COLUMNS_MAX
        after = rows[number + 1] if number + 1 < len(rows) else None
        goes_on = (after and after.mark == row.mark and PROSE.match(after.said)
                   and not ITEM.match(after.said)
                   and not row.said.endswith(('.', ':'))
                   and len(comments[number]) + 1 + len(after.said.split()[0]) <= COLUMNS_MAX)
        if full and (goes_on or (row.column == before.column and ITEM.match(before.said))):
            yield Place(path, number + 1, 1, row.said)


class Row:
    """A line of a comment: columns of its mark and of its text, and the text."""

    def __init__(self, mark, column, said):
        self.mark, self.column, self.said = mark, column, said


def row_of(comment):
    found = re.search(r'///?<?(?= |$)', comment)
    said = comment[found.end():] if found else ''
    if not said.strip():
        return None
    return Row(found.start(), found.end() + len(said) - len(said.lstrip()), said.strip())


def places(texts):
    """{entry: [places]} of all files, entries without a place left out."""
    found = {}
    for path, text in texts:
        entry = entry_of(path)
        if entry is not None:
            for place in [*riddles(path, text), *torn(path, text)]:
                found.setdefault(entry, []).append(place)
    return found


def counts_of(found):
    return [sum(place.kind == kind for place in found) for kind in (0, 1)]


def findings(texts, ratchet):
    """Yields (path, line, message) for each place of an entry with more than `ratchet` allows, and
    for each row of the ratchet that could be lower."""
    found = places(texts)
    for entry, its in sorted(found.items()):
        for kind, (count, allowed) in enumerate(zip(counts_of(its), ratchet.get(entry, (0, 0)))):
            noun, advice = (('riddles', 'name the subject or the object'),
                            ('torn comments', 'join the paragraph'))[kind]
            for place in its if count > allowed else ():
                if place.kind == kind:
                    yield place.path, place.line, (f'{entry} has {count} {noun}, {allowed} are '
                                                   f'allowed: {advice}: {place.text}')
    for entry, row in sorted(ratchet.items()):
        now = counts_of(found.get(entry, ()))
        if any(count < allowed for count, allowed in zip(now, row)):
            yield RATCHET, 1, f'{entry} has fallen: lower its row to {now}, or drop it at [0, 0]'


def texts_of(root, paths):
    """(path, text) of those files that are counted."""
    return [(path, (root / path).read_text(encoding='utf-8')) for path in sorted(set(paths))
            if path and entry_of(path) is not None and (root / path).is_file()]


def listed(root):
    return subprocess.run(['git', '-C', str(root), 'ls-files', '-co', '--exclude-standard'],
                          check=True, capture_output=True, text=True).stdout.split('\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('names', nargs='*')
    parser.add_argument('--root', default=Path(__file__).resolve().parents[1], type=Path)
    parser.add_argument('--ratchet', action='store_true')
    options = parser.parse_args()
    found = places(texts_of(options.root, listed(options.root)))
    rows = {entry: counts_of(its) for entry, its in sorted(found.items())}
    if options.ratchet:
        print('{\n' + ',\n'.join(f'  {json.dumps(entry)}: {json.dumps(row)}'
                                 for entry, row in rows.items()) + '\n}')
        return
    for name in options.names:
        for place in found.get(name, ()):
            print(place)
    if not options.names:
        for entry, row in rows.items():
            print(f'{row[0]:5} {row[1]:3}  {entry}')
    print(f'{sum(row[0] for row in rows.values())} riddles and '
          f'{sum(row[1] for row in rows.values())} torn comments in {len(rows)} rooms and pages')


if __name__ == '__main__':
    main()
