#!/usr/bin/env python3
"""Compares two folders of packages byte by byte: compare.py FIRST SECOND.

Where a package differs, diffoscope says in what if it is installed; else the files in it that
differ are named. The last line is the figure.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHOWN_MAX = 20


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(package, where):
    """What is in a package, by name: bytes, modes and targets of links."""
    for flag, name in (('-x', 'data'), ('-e', 'control')):
        subprocess.run(['dpkg-deb', flag, package, where / name], check=True, timeout=120)
    found = {}
    for path in sorted(where.rglob('*')):
        state = path.lstat()
        what = path.readlink() if path.is_symlink() else digest(path) if path.is_file() else ''
        found[str(path.relative_to(where))] = (oct(state.st_mode), int(state.st_mtime), str(what))
    return found


def explain(first, second):
    if shutil.which('diffoscope'):
        done = subprocess.run(['diffoscope', '--max-report-size', '4000', first, second],
                              capture_output=True, text=True, timeout=900, check=False)
        return done.stdout.split('\n')[:SHOWN_MAX * 2]
    with tempfile.TemporaryDirectory() as name:
        held = []
        for number, package in enumerate((first, second)):
            (Path(name) / str(number)).mkdir()
            held.append(contents(package, Path(name) / str(number)))
    lines = []
    for path in sorted(held[0].keys() | held[1].keys()):
        if held[0].get(path) != held[1].get(path):
            lines.append(f'{path}: {held[0].get(path, "absent")} and {held[1].get(path, "absent")}')
    return lines[:SHOWN_MAX] or ['the files in them are equal; their order or packing is not']


def main():
    if len(sys.argv) != 3:
        print(__doc__.split('\n', maxsplit=1)[0], file=sys.stderr)
        return 2
    first, second = (Path(word) for word in sys.argv[1:])
    names = sorted({path.name for folder in (first, second) for path in folder.glob('*.deb')})
    differ = 0
    for name in names:
        here, there = first / name, second / name
        if not here.exists() or not there.exists():
            print(f'{name}: only in {first if here.exists() else second}')
            differ += 1
            continue
        if digest(here) == digest(there):
            print(f'{digest(here)}  {name}')
            continue
        differ += 1
        print(f'{name} differs:')
        for line in explain(here, there):
            print(f'  {line}')
    if not names:
        print(f'there is no package in {first} or {second}')
    print(f'reproducible: {len(names) - differ} of {len(names)} packages are the same bytes')
    return 0 if names and not differ else 1


if __name__ == '__main__':
    sys.exit(main())
