#!/usr/bin/env python3
"""What must not compile does not: check.py COMPILER SOURCE INCLUDE

Asks COMPILER about SOURCE and wants an error in each line that says `refused` and in no other. The
error of a static_assert in a header is one of the line that instantiates it.
"""

import re
import subprocess
import sys
from pathlib import Path


def lines_of(source, said):
    """The lines of SOURCE with an error, that is in them or in what they instantiate; and errors
    that no line of SOURCE is the cause of."""
    met, foreign, cause, pending = set(), [], None, []
    where = re.compile(rf'^{re.escape(source)}:(\d+):\d+:\s+(error:|required from here|note: in)')
    for line in said.splitlines():
        found = where.match(line)
        if found and found[2] == 'error:':
            met.add(int(found[1]))
        elif found and found[2] == 'required from here':  # gcc says it before the error
            cause = int(found[1])
        elif found and pending:  # clang says it after the error, once for all of one line
            met.add(int(found[1]))
            cause, pending = int(found[1]), []
        elif ': error:' in line and cause is None:
            pending.append(line)
        elif ': error:' in line:
            met.add(cause)
            pending = [line] if 'static_assert' in line else []
    return met, foreign + pending


def main():
    compiler, source, include = sys.argv[1:]
    wanted = {number for number, line in
              enumerate(Path(source).read_text(encoding='utf-8').splitlines(), 1)
              if line.endswith('// refused')}
    limit = '-ferror-limit=0' if 'clang' in Path(compiler).name else '-fmax-errors=0'
    done = subprocess.run([compiler, '-std=c++20', '-fsyntax-only', limit, f'-I{include}', source],
                          capture_output=True, text=True, timeout=240, check=False)
    met, foreign = lines_of(source, done.stderr)
    wrong = [f'{source}:{number}: compiles' for number in sorted(wanted - met)]
    wrong += [f'{source}:{number}: does not compile' for number in sorted(met - wanted)]
    if not wanted or done.returncode == 0:
        wrong.append('nothing is refused')
    print('\n'.join(wrong + foreign) or f'compile_fail: {len(wanted)} lines are refused')
    return 1 if wrong or foreign else 0


if __name__ == '__main__':
    sys.exit(main())
