#!/usr/bin/env python3
"""What must not compile does not: check.py COMPILER SOURCE INCLUDE

Asks COMPILER about SOURCE and wants an error in each line that says `refused` and in no other.
"""

import re
import subprocess
import sys
from pathlib import Path


def main():
    compiler, source, include = sys.argv[1:]
    wanted = {number for number, line in
              enumerate(Path(source).read_text(encoding='utf-8').splitlines(), 1)
              if line.endswith('// refused')}
    limit = '-ferror-limit=0' if 'clang' in Path(compiler).name else '-fmax-errors=0'
    done = subprocess.run([compiler, '-std=c++20', '-fsyntax-only', limit, f'-I{include}', source],
                          capture_output=True, text=True, timeout=240, check=False)
    met = {int(number) for number in
           re.findall(rf'^{re.escape(source)}:(\d+):\d+: error:', done.stderr, re.MULTILINE)}
    wrong = [f'{source}:{number}: compiles' for number in sorted(wanted - met)]
    wrong += [f'{source}:{number}: does not compile' for number in sorted(met - wanted)]
    if not wanted or done.returncode == 0:
        wrong.append('nothing is refused')
    foreign = [line for line in done.stderr.splitlines()
               if ': error:' in line and not line.startswith(source)]
    print('\n'.join(wrong + foreign) or f'compile_fail: {len(wanted)} lines are refused')
    return 1 if wrong or foreign else 0


if __name__ == '__main__':
    sys.exit(main())
