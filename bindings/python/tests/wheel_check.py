#!/usr/bin/env python3
"""Installs a wheel as a stranger would, and plays the pages with it: wheel_check.py WHEEL PAGE...

The interpreter of an empty virtual environment gets it with --no-index; neither a compiler nor the
system's libsemel or RocksDB is in reach: PATH is the environment's alone, and what is mapped into
the process afterwards must come from the wheel or be part of every system. Each ```python block of
a page that imports semel runs as a program of its own.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = '''
import re, sys, tempfile
import semel
with tempfile.TemporaryDirectory() as storage:
    for again in (False, True):
        with semel.Engine(storage) as engine:
            once = engine.claims('orders', 'call').once('4711', lambda: b'paid')
            assert once.value == b'paid'
            assert (once.answer is semel.OnceAnswer.REPLAYED) == again
own = sys.argv[1]
mapped = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}
ours = [name for name in mapped if name.startswith(own)]
assert any('/libsemel.so.0' in name for name in ours), mapped
assert any('librocksdb' in name for name in ours), mapped
foreign = [name for name in mapped
           if not name.startswith(own) and re.search('semel|rocksdb|snappy|lz4|zstd', name)]
assert not foreign, foreign
print(semel.__version__, len(ours))
'''


def blocks_of(page):
    text = Path(page).read_text(encoding='utf-8')
    for found in re.finditer(r'^```python\n(.*?)^```', text, re.S | re.M):
        if re.search(r'^\s*(import semel|from semel)', found[1], re.M):
            yield text.count('\n', 0, found.start()) + 2, found[1]


def main(wheel, *pages):
    where = Path(tempfile.mkdtemp(prefix='semel_wheel_'))
    try:
        subprocess.run([sys.executable, '-m', 'venv', where / 'env'], check=True, timeout=120)
        python = where / 'env/bin/python'
        env = {'PATH': str(where / 'env/bin'), 'HOME': str(where), 'LANG': 'C.UTF-8'}
        assert shutil.which('cc', path=env['PATH']) is None

        def play(*arguments, text=None):
            done = subprocess.run([str(python), *map(str, arguments)], env=env, cwd=where,
                                  input=text, text=True, timeout=120, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                sys.exit(f'wheel_check: {arguments} ended with {done.returncode}:\n{done.stdout}')
            return done.stdout.strip()

        play('-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index',
             '--find-links', Path(wheel).resolve().parent, 'semel')
        version, files = play('-c', PROBE, os.path.realpath(where / 'env/lib')).split()
        played = 0
        for page in pages:
            for line, block in blocks_of(page):
                script = where / f'{Path(page).stem}_{line}.py'
                script.write_text(block, encoding='utf-8')
                play(script)
                played += 1
        if pages and played == 0:
            sys.exit('wheel_check: no page has a program')
        print(f'{Path(wheel).name}: {version}, {files} libraries of its own, '
              f'{played} programs of the pages')
    finally:
        shutil.rmtree(where, ignore_errors=True)


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit('usage: wheel_check.py WHEEL PAGE...')
    main(*sys.argv[1:])
