#!/usr/bin/env python3
"""Everything of the Python package at once: prove.py, with an interpreter that has
requirements-prove.txt (tools/prove python calls it).

The package's tests, mypy --strict over package and examples, and the examples in their frameworks.
What cannot be had is skipped and counted. The last line is the figure.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE / 'examples'


def checked_types():
    """Whether mypy was there. A framework without types of its own is Any."""
    try:
        import mypy  # noqa: F401
    except ImportError:
        print('skipped: mypy is not installed')
        return False
    done = subprocess.run([sys.executable, '-m', 'mypy', '--strict', '--ignore-missing-imports',
                           '--cache-dir=/dev/null', *sorted(map(str, EXAMPLES.glob('*_app.py')))],
                          env={**os.environ, 'MYPYPATH': str(HERE)}, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit('prove: mypy --strict does not accept the examples')
    return True


def played(folder, pattern):
    """The tests of a folder: how many, and how many of them were skipped."""
    loader = unittest.TestLoader()
    suite = loader.discover(str(folder), pattern=pattern)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    for test, why in result.skipped:
        print(f'skipped: {test}: {why}')
    if loader.errors or not result.wasSuccessful():
        sys.exit(f'prove: {folder.name}/{pattern} failed')
    return result.testsRun, len(result.skipped)


def main():
    sys.dont_write_bytecode = True
    os.environ['PYTHONDONTWRITEBYTECODE'] = '1'
    typed = checked_types()
    runs, skips = played(HERE / 'tests', 'test*.py')
    more, others = played(EXAMPLES, 'test*.py')
    skips += others + (0 if typed else 1)
    print(f'python: {runs + more} tests, {skips} skipped, '
          f'{"mypy --strict accepts package and examples" if typed else "types not checked"}')


if __name__ == '__main__':
    main()
