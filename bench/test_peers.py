#!/usr/bin/env python3
"""A Redis for tests beside those that people use: start-up, memory, 500 tests of a small service.

Question: what does each cost a test suite?
Method:   the same tests (test_peers/service.py, go, java) through the usual client of each
          language. Each flushes, lets a key end, uses a list, a sorted set and a hash, and takes
          and releases a lock by a script. Where a peer has a clock that tests move, they move it;
          else they wait for a ttl of 10 ms. The peers of a language take turns; medians of the
          rounds.
Compare:  fakeredis, miniredis and jedis-mock, which are part of the test's process, redis-server.
Report:   a table in Markdown. What cannot be had here is named.

Start-up is from the start of the process, or from the call that starts the peer, to its first
answer. Memory of a server is what is resident when it has started, and what of it is private; of a
peer in the test's process, by how much that grew until the tests had run.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests/support')]
from servers import free_ports  # noqa: E402
from sides import Side, machine  # noqa: E402

HERE = ROOT / 'bench/test_peers'
STARTS = 9  # of a server in each round
PYTHON_PACKAGES = ('fakeredis[lua]==2.32.0', 'redis==8.1.0')


class CannotHave(Exception):
    """A language or a peer that is not here."""


def run(*words, cwd=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CannotHave(f'{Path(str(words[0])).name}: '
                         f'{(done.stderr or done.stdout).strip()[-300:]}')
    return done.stdout


def tool(name):
    found = shutil.which(name)
    if not found:
        raise CannotHave(f'{name} is not installed')
    return found


def results(service, kind, port, tests):
    try:
        return json.loads(run(*service, kind, port, tests).splitlines()[-1])
    except CannotHave as why:  # it is here, and fails
        sys.exit(f'tests: {kind}: {why}')


def python(work):
    interpreter = work / 'python/bin/python'
    if not interpreter.exists():
        run(sys.executable, '-m', 'venv', work / 'python')
    run(interpreter, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *PYTHON_PACKAGES)
    return [interpreter, '-W', 'ignore', HERE / 'service.py']


def go(work):
    run(tool('go'), 'build', '-o', work / 'go-service', '.', cwd=HERE / 'go')
    return [work / 'go-service']


def java(work):
    tool('java')
    place = work / 'java'
    place.mkdir(exist_ok=True)
    for path in (HERE / 'java').iterdir():
        shutil.copy(path, place)
    run(tool('mvn'), '-q', '-B', 'compile', 'dependency:copy-dependencies', cwd=place)
    return ['java', '-cp', f'{place}/target/classes:{place}/target/dependency/*', 'Service']


# Language: how its tests are built, its peer, the kind that the tests know it by, whether that
# moves time.
LANGUAGES = {
    'Python': (python, 'fakeredis', 'fake', False),
    'Go': (go, 'miniredis', 'mini', True),
    'Java': (java, 'jedis-mock', 'mock', False),
}


def command_of(kind, semel, port):
    if kind == 'semel':
        return [semel, 'redis-server', '--port', port, '--save', '']
    return [tool('redis-server'), '--port', port, '--save', '']


def memory_of(pid):
    """MiB resident, and of these private to the process."""
    text = Path(f'/proc/{pid}/smaps_rollup').read_text(encoding='ascii')

    def value(name):
        return int(re.search(rf'^{name}:\s+(\d+)', text, re.MULTILINE)[1]) / 1024
    return value('Rss'), value('Anonymous')


class Quick(Side):
    """Looks for its first answer without a pause that would hide what is measured."""
    poll_seconds = 0.0001


def start_ms(kind, semel):
    with tempfile.TemporaryDirectory() as folder:
        port = free_ports(1)[0]
        with Quick(kind, command_of(kind, semel, port), port, folder, core=None) as server:
            return server.ready_ms


def served(kind, semel, service, tests):
    starts = [start_ms(kind, semel) for _ in range(STARTS)]
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        with Quick(kind, command_of(kind, semel, port), port, folder, core=None) as server:
            resident, private = memory_of(server.pid)
            found = results(service, kind, port, tests)
            return {'start': statistics.median(starts), 'mib': resident, 'private': private,
                    'seconds': found['seconds']}


def inside(kind, service, tests):
    found = results(service, kind, 0, tests)
    return {'start': found['start_ms'], 'mib': found['mib'], 'private': None,
            'seconds': found['seconds']}


def measure(options, language, service):
    """{name of a peer: its medians}."""
    _, peer, kind, _ = LANGUAGES[language]
    sides = {peer: lambda: inside(kind, service, options.tests),
             'redis-server': lambda: served('redis', options.semel, service, options.tests),
             'Semel': lambda: served('semel', options.semel, service, options.tests)}
    runs = {name: [] for name in sides}
    for turn in range(options.rounds):
        names = list(sides)
        for name in names[::-1] if turn % 2 else names:
            runs[name].append(sides[name]())
    return {name: {field: statistics.median(each[field] for each in made)
                   if made[0][field] is not None else None for field in made[0]}
            for name, made in runs.items()}


def shown_memory(row):
    if row['private'] is None:
        return f'+{row["mib"]:.1f} in the test'
    return f'{row["mib"]:.1f} ({row["private"]:.1f})'


def table(rows, options):
    lines = ['| language | peer | start-up, ms | resident MiB (private) '
             f'| {options.tests} tests, s | time |', '|---|---|---|---|---|---|']
    for language, name, row in rows:
        moves = name == 'Semel' or (LANGUAGES[language][3] and name == LANGUAGES[language][1])
        lines.append(f'| {language} | {name} | {row["start"]:.1f} | {shown_memory(row)} '
                     f'| {row["seconds"]:.2f} | {"moved" if moves else "waited"} |')
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--semel', required=True, type=Path)
    parser.add_argument('--work', default=ROOT / 'build/test-peers', type=Path)
    parser.add_argument('--tests', default=500, type=int)
    parser.add_argument('--rounds', default=3, type=int)
    parser.add_argument('--only', choices=LANGUAGES, action='append')
    options = parser.parse_args()
    options.semel = options.semel.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    rows, skipped = [], 0
    load = os.getloadavg()[0]
    for language in options.only or LANGUAGES:
        try:
            service = LANGUAGES[language][0](options.work.resolve())
            rows += [(language, name, row)
                     for name, row in measure(options, language, service).items()]
        except CannotHave as why:
            skipped += 1
            print(f'{language} is skipped: {why}', flush=True)
    print(f'- Machine: {machine()}; load of other programs at the start: {load:.1f}')
    print(f'- {time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}, medians of {options.rounds}'
          ' rounds\n')
    print(table(rows, options))
    print(f'\ntests: {len(rows)} rows, {skipped} languages skipped')
    return 0 if rows else 77


if __name__ == '__main__':
    sys.exit(main())
