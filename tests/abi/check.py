#!/usr/bin/env python3
"""The shared library for C shows what it always did: check.py LIBRARY [--baseline FILE] [--write]

It exports only names that begin with semel_, and beside the baseline nothing was taken away or
changed; additions are reported. --write makes the library the new baseline. Ends with 77 where
abidiff is not installed, or the library tells nothing of its types, after having looked at the
names.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Bits of abidiff's exit code, from its manual.
ERROR, USAGE, CHANGED, INCOMPATIBLE = 1, 2, 4, 8


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=300, check=False)


def exported(library):
    """Names that the library defines for others."""
    done = run('nm', '--dynamic', '--defined-only', '--format=posix', library)
    if done.returncode != 0:
        sys.exit(f'abi: {done.stderr.strip()}')
    rows = [line.split() for line in done.stdout.split('\n') if line.strip()]
    # A version of symbols is an absolute symbol of its own.
    return sorted({row[0].split('@')[0] for row in rows if row[1] != 'A'})


def described(library, header):
    """What abidw reports of the library, as far as the header shows it; "" without types in it."""
    with tempfile.TemporaryDirectory() as alone:
        # abidw knows headers by their folder and the names in it; given one header by its path it
        # takes that one's types for private as well.
        shutil.copy(header, alone)
        done = run('abidw', '--no-comp-dir-path', '--no-corpus-path', '--short-locs',
                   '--exported-interfaces-only', '--headers-dir', alone, '--drop-private-types',
                   library)
    if done.returncode != 0:
        sys.exit(f'abi: abidw: {done.stdout}{done.stderr}')
    return done.stdout if '<parameter ' in done.stdout else ''


def compare(text, baseline, names):
    # Both were described the same way; abidiff's own look at a header hides changes of its types.
    with tempfile.NamedTemporaryFile('w', suffix='.xml', encoding='utf-8') as now:
        now.write(text)
        now.flush()
        done = run('abidiff', baseline, now.name)
    if done.returncode & (ERROR | USAGE):
        print(f'abi: abidiff: {done.stdout}{done.stderr}')
        return 1
    if done.stdout.strip():
        print(done.stdout.strip())
    # Added functions are a change that is no incompatibility; changed ones may be one for what
    # abidiff knows, and are for us.
    removed_or_changed = any(
        not line.split(':', 1)[1].strip().startswith('0 Removed, 0 Changed')
        for line in done.stdout.split('\n') if 'summary:' in line)
    if done.returncode & INCOMPATIBLE or removed_or_changed:
        print('abi: something was taken away or changed')
        return 1
    added = 'some added' if done.returncode & CHANGED else 'as the baseline'
    print(f'abi: {len(names)} functions, {added}')
    return 0


def main():
    parser = argparse.ArgumentParser(description='Checks what the library for C shows.')
    parser.add_argument('library', type=Path)
    parser.add_argument('--baseline', type=Path, default=HERE / 'semel.abi.xml')
    parser.add_argument('--header', type=Path, default=HERE.parents[1] / 'include/semel.h',
                        help='types that are not in it are private to the library')
    parser.add_argument('--write', action='store_true')
    arguments = parser.parse_args()
    names = exported(arguments.library)
    strange = [name for name in names if not name.startswith('semel_')]
    if strange or not names:
        print(f'abi: exported, and not ours to export: {" ".join(strange[:20]) or "nothing"}')
        return 1
    if not shutil.which('abidiff') or not shutil.which('abidw'):
        print(f'abi: skipped, abidiff is not installed; {len(names)} names are well')
        return 77
    text = described(arguments.library, arguments.header)
    if not text:
        print(f'abi: skipped, the library is built without types (-g); {len(names)} names are well')
        return 77
    if arguments.write:
        arguments.baseline.write_text(text, encoding='utf-8')
        print(f'abi: {arguments.baseline} is written')
        return 0
    if not arguments.baseline.exists():
        print(f'abi: there is no {arguments.baseline}; make it with --write')
        return 1
    return compare(text, arguments.baseline, names)


if __name__ == '__main__':
    sys.exit(main())
