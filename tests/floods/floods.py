#!/usr/bin/env python3
"""A node under floods: tests/floods/floods.py --program SEMEL [--long] [--seed N] [NAME]..

Starts the node on loopback, lets many clients do what clients should not, and measures what the
others notice of it. One line for each goal: what was measured, what it may be, the verdict. The
exit code is 1 if a goal was missed. NAME is one of files, idle, slow, sizes.

A good client asks 2,000 times a second on one connection; its p99 beside a flood is held against
its p99 alone, in turns, so that what else the machine does befalls both.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import files  # noqa: E402
import idle  # noqa: E402
import sizes  # noqa: E402
import slow  # noqa: E402
from judge import Judge  # noqa: E402

PARTS = {'files': files.run, 'idle': idle.run, 'slow': slow.run, 'sizes': sizes.run}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(PARTS))
    parser.add_argument('--program', required=True, type=os.path.abspath, help='the semel program')
    parser.add_argument('--long', action='store_true', help='more clients, for longer')
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PARTS]
    if unknown:
        parser.error(f'no part {unknown[0]}; parts are {", ".join(PARTS)}')
    print(f'seed {options.seed}', flush=True)
    judge = Judge()
    place = Path(tempfile.mkdtemp(prefix='semel_floods_'))
    began = time.monotonic()
    try:
        for name in options.names or PARTS:
            random.seed(options.seed)
            PARTS[name](judge, options.program, place, options.long)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    took = time.monotonic() - began
    print(f'floods: {judge.count} goals, {judge.missed} missed, {took:.0f} s')
    return 1 if judge.missed else 0


if __name__ == '__main__':
    sys.exit(main())
