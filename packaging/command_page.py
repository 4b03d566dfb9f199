#!/usr/bin/env python3
"""The page of the command line, docs/command-line.md, out of what the program says of itself.

command_page.py PROGRAM PAGE           writes it
command_page.py PROGRAM PAGE --check   says whether it is as the program has it; 1 if not
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from manual import below, helped, items, split  # noqa: E402

HEAD = '''# Command line

<!-- Written by packaging/command_page.py from the help of the program; tests/tools/semel_test.py
compares the two. -->

One program, `semel`, has a subcommand for each use. `semel SUBCOMMAND --help` prints the same as
this page, and `man semel-SUBCOMMAND` as well where Semel is installed as a package.
'''
TITLES = {'Positionals': 'Arguments'}


def marked(text):
    """Text of a help as Markdown that shows it unchanged."""
    return re.sub(r'([\\`*_|<>\[\]])', r'\\\1', text)


def table(title, lines):
    rows = [(what.replace('|', '\\|'), marked(text)) for what, text in items(lines)]
    return ['', f'| {TITLES.get(title, title)} | |', '|---|---|',
            *[f'| `{what}` | {text} |' for what, text in rows]]


def notes(lines):
    """Paragraphs; one with indented lines is shown as it stands."""
    out = []
    for paragraph in re.split(r'\n\s*\n', '\n'.join(lines).strip('\n')):
        if re.search(r'^  ', paragraph, re.MULTILINE):
            out += ['', '```text', *paragraph.split('\n'), '```']
        elif paragraph:
            out += ['', *map(marked, paragraph.split('\n'))]
    return out


def section(words, text):
    lines = text.rstrip('\n').split('\n')
    about, usage = lines[0].rstrip('.'), lines[1]
    out = ['', f'{"#" * min(2 + max(len(words) - 1, 0), 3)} {" ".join(["semel", *words])}', '',
           f'{marked(about[0].upper() + about[1:])}.', '', '```text', usage, '```']
    listed, rest = split(lines[2:])
    for title, body in listed:
        out += table(title, [line for line in body if line.strip()])
    return [*out, *notes(rest)]


def page(program):
    out = [HEAD.rstrip('\n'), *section([], helped(program))]
    for words in below(program):
        out += section(words, helped(program, *words))
    return '\n'.join(out) + '\n'


def main():
    program, path = sys.argv[1], Path(sys.argv[2])
    made = page(program)
    if sys.argv[3:] == ['--check']:
        if path.read_text(encoding='utf-8') == made:
            return 0
        print(f'{path} is not what {program} says; write it by '
              f'packaging/command_page.py {program} {path}')
        return 1
    path.write_text(made, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
