"""The source tree of a redis-server's own tests: REDIS_TCL_DIR, or Debian's source package.

The suite is not ours and never in this tree. The package comes through apt with lists and archives
of their own under the build folder, so that the system's are not touched.
"""

import os
import shutil
import subprocess
from pathlib import Path

ETC = Path('/etc/apt')
PATIENCE = 600


class NoSource(Exception):
    """There is no such tree here; the text says why."""


def deb_src(text):
    """The lines of a sources file, one-line or deb822, for source packages."""
    lines = []
    for line in text.splitlines():
        if line.startswith('Types:'):
            line = 'Types: deb-src'
        elif line.startswith('deb '):
            line = 'deb-src ' + line[4:]
        lines.append(line)
    return '\n'.join(lines) + '\n'


def write_sources(parts):
    """Debian's own sources, as source packages; says how many files there were."""
    count = 0
    for file in [ETC / 'sources.list', *sorted((ETC / 'sources.list.d').glob('*'))]:
        if file.suffix not in ('.list', '.sources') or not file.is_file():
            continue
        text = file.read_text(encoding='utf-8', errors='replace')
        if 'debian' not in text:
            continue
        (parts / file.name).write_text(deb_src(text), encoding='utf-8')
        count += 1
    return count


def run(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors='replace',
                              timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NoSource(str(problem)) from problem
    if done.returncode != 0:
        raise NoSource((done.stderr.strip().splitlines() or ['no reason'])[-1])


def fetch(folder):
    """The tree of Debian's package redis, unpacked below `folder`."""
    def trees():
        return sorted(tree for tree in folder.glob('redis-*') if (tree / 'runtest').exists())

    if trees():
        return trees()[-1]
    if not shutil.which('apt-get') or not shutil.which('dpkg-source'):
        raise NoSource('apt-get or dpkg-source is not here, and REDIS_TCL_DIR names no tree')
    scratch = folder / 'apt'
    for part in ('lists/partial', 'archives/partial', 'parts'):
        (scratch / part).mkdir(parents=True, exist_ok=True)
    if write_sources(scratch / 'parts') == 0:
        raise NoSource('this system has no package sources of Debian')
    options = ['-o', 'Dir::Etc::SourceList=/dev/null',
               '-o', f'Dir::Etc::SourceParts={scratch / "parts"}',
               '-o', f'Dir::State::Lists={scratch / "lists"}', '-o', f'Dir::Cache={scratch}']
    run(['apt-get', *options, 'update'], folder)
    run(['apt-get', *options, 'source', '--only-source', 'redis'], folder)
    if not trees():
        raise NoSource('the source package redis has no runtest')
    return trees()[-1]


def find(folder):
    """A tree with a program runtest. NoSource: there is none."""
    named = os.environ.get('REDIS_TCL_DIR')
    if named:
        tree = Path(named)
        if not os.access(tree / 'runtest', os.X_OK):
            raise NoSource(f'REDIS_TCL_DIR: no program runtest in {named}')
        return tree
    folder.mkdir(parents=True, exist_ok=True)
    return fetch(folder)
