#!/usr/bin/env python3
"""clang-tidy over the product's sources: clang_tidy.py [--since COMMIT] [FILE...]

The checks are those of .clang-tidy, which says what each is for. Without arguments all sources of
the product are read, which takes a quarter of an hour on two processors; --since reads those that
have changed since COMMIT, and those beside a header that has. The last line is
`clang-tidy: N files, M findings`; the exit code is 1 if there are any.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ('base', 'bindings', 'engine', 'lua_compat', 'net', 'patterns', 'storage', 'tools')
FINDING = re.compile(r'^(?P<where>[^:\s]+:\d+:\d+): (?:warning|error): .*\[[\w.,-]+\]$')


def flags():
    """Those that decide what a source says; the checks need no others."""
    luajit = subprocess.run(['pkg-config', '--cflags', 'luajit'], capture_output=True, text=True,
                            check=False).stdout.split()
    return ['-std=c++20', '-DXXH_INLINE_ALL=', '-DSEMEL_HAS_NODE', '-DTOML_EXCEPTIONS=0',
            '-Iinclude', '-I.', *luajit]


def git(*arguments):
    done = subprocess.run(['git', *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line]


def sources(since):
    every = git('ls-files', *(f'{part}/*.cpp' for part in PARTS))
    if since is None:
        return every
    changed = {os.path.splitext(name)[0] for name in git('diff', '--name-only', since)}
    return [name for name in every if os.path.splitext(name)[0] in changed]


def findings_in(source):
    """Each finding once, with the lines that explain it."""
    done = subprocess.run(['clang-tidy', '--quiet', source, '--', *flags()], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    found = {}
    where = None
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            where = line.replace(f'{ROOT}/', '').removeprefix('./')
            found[where] = []
        elif where:
            found[where].append(line)
    if done.returncode != 0 and not found:
        found[f'{source}: clang-tidy ended with {done.returncode}'] = (
            done.stdout + done.stderr).splitlines()[-5:]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--since', metavar='COMMIT', help='only what has changed since then')
    parser.add_argument('files', nargs='*', help='only these')
    chosen = parser.parse_args()
    if shutil.which('clang-tidy') is None:
        print('clang-tidy: skipped, it is not installed')
        return 77
    names = chosen.files or sources(chosen.since)
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for each in pool.map(findings_in, names):
            found.update(each)  # one in a header is in all that include it
    for where in sorted(found):
        print('\n'.join([where, *found[where]]))
    print(f'clang-tidy: {len(names)} files, {len(found)} findings')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
