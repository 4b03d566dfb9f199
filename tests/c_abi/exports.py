#!/usr/bin/env python3
"""What semel.h declares is what the library exports: exports.py LIBRARY HEADER ERROR_CODES

At most 80 functions, all of them semel_*, none missing and none beside; and the numbers of the
errors are those of error_codes.def.
"""

import re
import subprocess
import sys
from pathlib import Path

FUNCTIONS_MAX = 80


def exported(library):
    done = subprocess.run(['nm', '--dynamic', '--defined-only', '--format=posix', library],
                          capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0].split('@')[0] for row in rows if row[1] != 'A'}  # A: the version itself


def main():
    library, header, codes = sys.argv[1:]
    text = re.sub(r'/\*.*?\*/', '', Path(header).read_text(encoding='utf-8'), flags=re.DOTALL)
    declared = set(re.findall(r'^SEMEL_API [^;(]*?(\w+)\(', text, re.MULTILINE))
    shown = exported(library)
    wrong = [f'{name}: declared, not exported' for name in sorted(declared - shown)]
    wrong += [f'{name}: exported, not declared' for name in sorted(shown - declared)]
    wrong += [f'{name}: does not begin with semel_' for name in sorted(shown)
              if not name.startswith('semel_')]
    if not 0 < len(shown) <= FUNCTIONS_MAX:
        wrong.append(f'{len(shown)} functions; the limit is {FUNCTIONS_MAX}')
    known = {name.upper(): int(number) for name, number in
             re.findall(r'^SEMEL_X\((\w+), *(\d+),', Path(codes).read_text(encoding='utf-8'),
                        re.MULTILINE)}
    first = text[text.index('SEMEL_OK = 0'):]
    said = {name: int(number) for name, number in
            re.findall(r'SEMEL_(\w+) = (\d+)', first[:first.index('}')])}
    wrong += [f'error {name}: {known.get(name)} in the engine, {said.get(name)} in the header'
              for name in sorted(known.keys() | said.keys()) if known.get(name) != said.get(name)]
    print('\n'.join(wrong) or f'exports: {len(shown)} functions, {len(said)} errors')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
