#!/usr/bin/env python3
"""Instructions of a call, counted by callgrind: run.py PROGRAM.. [--write]

Question: does a call take more instructions than it did?
Method:   Each PROGRAM (rows.cpp, node_rows.cpp, queue_rows.cpp) under callgrind, which counts the
          same on a busy machine as on a quiet one. Each function row_NAME is a row: its
          instructions, with all that it calls, by call; of a node, by request.
Compare:  expected.txt, a column for each compiler. More than SLACK above it, or below it, fails: a
          gain is written down, so that it is not lost unseen. Without a column: shown, not judged.
Report:   a line a row. --write puts the counts into expected.txt.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXPECTED = Path(__file__).resolve().parent / 'expected.txt'
SLACK = 0.03
CALLS = 4_000
ROW = re.compile(r'^\s*([\d,]+) .*rows\.cpp:row_(\w+)')


def count(program, folder):
    """{row: instructions a call}"""
    data = Path(folder) / 'callgrind.out'
    subprocess.run(
        ['valgrind', '--tool=callgrind', f'--callgrind-out-file={data}', '--collect-atstart=no',
         '--toggle-collect=row_*', str(program)],
        check=True, timeout=300, stderr=subprocess.DEVNULL)
    told = subprocess.run(['callgrind_annotate', '--inclusive=yes', '--threshold=100', str(data)],
                          check=True, timeout=60, capture_output=True, text=True).stdout
    return {found.group(2): round(int(found.group(1).replace(',', '')) / CALLS)
            for found in map(ROW.match, told.split('\n')) if found}


def read_expected():
    """([comment lines], [compiler], {row: {compiler: count}})"""
    comments, compilers, rows = [], [], {}
    for line in EXPECTED.read_text(encoding='utf-8').split('\n'):
        words = line.split()
        if line.startswith('#'):
            comments.append(line)
        elif words and not compilers:
            compilers = words[1:]
        elif words:
            rows[words[0]] = {name: int(word) for name, word in zip(compilers, words[1:])
                              if word != '-'}
    return comments, compilers, rows


def write_expected(compiler, counted):
    comments, compilers, rows = read_expected()
    if compiler not in compilers:
        compilers.append(compiler)
    for row, figure in counted.items():
        rows.setdefault(row, {})[compiler] = figure
    lines = [*comments, ' '.join(f'{word:>12}' if at else f'{word:20}'
                                 for at, word in enumerate(['row', *compilers]))]
    lines += [' '.join([f'{row:20}', *(f'{rows[row].get(name, "-"):>12}' for name in compilers)])
              for row in rows]
    EXPECTED.write_text('\n'.join(lines) + '\n', encoding='utf-8')


def judge(counted, expected, compiler):
    """The lines to show, and how many rows are off."""
    lines, wrong = [], 0
    for row in sorted({*counted, *expected}):
        wanted, found = expected.get(row, {}).get(compiler), counted.get(row)
        if found is None:
            verdict, bad = 'NOT COUNTED', True
        elif wanted is None:
            verdict, bad = f'nothing is expected of {compiler}', False
        else:
            bad = abs(found - wanted) > SLACK * wanted
            verdict = f'{found / wanted:5.3f} of {wanted}' + (' FAR OFF' if bad else '')
        wrong += bad
        lines.append(f'{row:20} {found if found is not None else "-":>6}  {verdict}')
    return lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('programs', type=Path, nargs='+')
    parser.add_argument('--compiler', required=True, help='as a column of expected.txt')
    parser.add_argument('--write', action='store_true')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counted = {}
        for program in options.programs:
            rows = count(program, folder)
            if not rows:
                raise SystemExit(f'instructions: callgrind has counted no row of {program}')
            counted |= rows
    if options.write:
        write_expected(options.compiler, counted)
    _, _, expected = read_expected()
    lines, wrong = judge(counted, expected, options.compiler)
    print('\n'.join(lines))
    print(f'instructions: {len(counted)} rows of {options.compiler}, {wrong} off by more than '
          f'{SLACK:.0%}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
