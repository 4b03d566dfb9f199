#!/usr/bin/env python3
"""Makes the wheel with the library inside: build_wheel.py LIBSEMEL OUT, with an interpreter that
has requirements-wheel.txt. tools/package wheel calls it.

The package is copied beside a stripped libsemel.so.0, made a wheel, and auditwheel adds what the
library needs (RocksDB and what that is linked with) and gives the manylinux tag. The licences of
what is added go into the wheel too. The last line is the wheel with its size.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Of every system that a manylinux tag allows; auditwheel leaves them out as well.
SYSTEM = re.compile(r'(linux-vdso|ld-linux[^.]*|libc|libm|libdl|librt|libpthread|libgcc_s'
                    r'|libstdc\+\+|libz)\.so')
SIZE_MAX = 20_000_000  # a wheel that is larger has something in it that is not meant to be


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, timeout=300,
                          stdout=subprocess.PIPE, text=True, **more).stdout


def needed(library):
    """The files that it is linked with and that go into the wheel."""
    found = {}
    for line in run('ldd', library).splitlines():
        name, arrow, rest = line.strip().partition(' => ')
        if not arrow or SYSTEM.match(name):
            continue
        if rest.startswith('not found'):
            sys.exit(f'build_wheel: {library} needs {name}, which is not there')
        found[name] = Path(rest.split(' (')[0]).resolve()
    return found


def licence_of(file):
    """The text that Debian keeps for the package of a file."""
    for path in (file, Path(str(file).replace('/usr/lib/', '/lib/'))):
        owner = subprocess.run(['dpkg-query', '-S', str(path)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False).stdout
        if owner:
            text = Path('/usr/share/doc') / owner.split(':')[0] / 'copyright'
            if text.exists():
                return text
    sys.exit(f'build_wheel: no licence is known for {file}, which would go into the wheel')


def stage(library, where):
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(HERE, where, ignore=shutil.ignore_patterns(
        '__pycache__', 'tests', 'examples', 'build', '*.egg-info', '.mypy_cache'))
    shutil.copy(ROOT / 'LICENSE', where / 'LICENSE')
    run('strip', '--strip-unneeded', '-o', where / 'semel/libsemel.so.0', library)
    licences = where / 'semel/licenses'
    licences.mkdir()
    for name, file in needed(library).items():
        shutil.copy(licence_of(file), licences / f'{name.split(".so")[0]}.txt')


def main(library, out):
    out = Path(out).resolve()
    copy, raw, done = out / 'stage', out / 'raw', out / 'dist'
    stage(Path(library).resolve(), copy)
    for folder in (raw, done):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    run(sys.executable, 'setup.py', '-q', 'bdist_wheel', '--dist-dir', raw, cwd=copy,
        stderr=subprocess.STDOUT)
    made, = raw.glob('*.whl')
    paths = dict(os.environ, PATH=f'{Path(sys.executable).parent}:{os.environ["PATH"]}')
    run(sys.executable, '-m', 'auditwheel', 'repair', '--strip', '-w', done, made, env=paths,
        stderr=subprocess.STDOUT)
    wheel, = done.glob('*.whl')
    size = wheel.stat().st_size
    if 'manylinux' not in wheel.name or size > SIZE_MAX:
        sys.exit(f'build_wheel: {wheel.name} has {size} bytes; a manylinux tag and at most '
                 f'{SIZE_MAX} are wanted')
    print(f'{wheel} {size} bytes')


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('usage: build_wheel.py LIBSEMEL OUT')
    main(*sys.argv[1:])
