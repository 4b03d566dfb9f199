#!/usr/bin/env python3
"""Redis' own test suite against the node, beside a redis-server:
tests/redis_suite/run.py --program SEMEL --build DIR [--external] [--unit UNIT ..]

The suite starts the servers; with --external one server that runs already has all of its tests that
need no other.

Each unit is a run of the suite of its own, so that one that stops does not hide the rest. A test
counts by its unit and name. What redis-server passes and the node does not is a difference; each
has a reason in reasons.txt, or fails this run. The last line has the figures: of all tests, and of
those that are not about replication, which is judged. Most of that is left out by its tag; the rest
has none and is known by its reason.
"""

import argparse
import collections
import contextlib
import fnmatch
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import source  # noqa: E402

UNIT_SECONDS = 600
LEFT_OUT = '-needs:repl'  # a node is neither master nor replica of a redis-server
SHARE_MIN = 0.98
BREAKS = 'breaks those behind it: '  # such a test is not run against the node
COLOUR = re.compile(r'\x1b\[[0-9;]*m')
OK = re.compile(r'^\[ok\]: (.*?)(?: \(\d+ ms\))?$')
BAD = re.compile(r'^\[(?:err|exception)\]: (.*?)(?: in tests/.*)?$')
# The suite calls a test passed whose own server did not start, so that nothing of it ran.
UNSTARTED = re.compile(r'^ERROR:### Starting server for test (.+) in tests/')
# What Semel is for. Left out: replication and clusters of redis-server, its files, its memory.
UNITS = '''
unit/printver unit/dump unit/auth unit/protocol unit/keyspace unit/scan unit/info
unit/info-command unit/type/string unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3
unit/type/set unit/type/zset unit/type/hash unit/type/stream unit/type/stream-cgroups unit/sort
unit/expire unit/other unit/multi unit/quit unit/acl unit/acl-v2 unit/latency-monitor unit/pubsub
unit/pubsubshard unit/slowlog unit/scripting unit/functions unit/introspection unit/introspection-2
unit/limits unit/obuf-limits unit/bitops unit/bitfield unit/geo unit/hyperloglog unit/lazyfree
unit/pause unit/querybuf unit/tracking unit/networking unit/violations unit/replybufsize
'''.split()


def prepare(tree, folder, server):
    """A copy of the suite whose src/redis-server is `server`."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / 'src').mkdir(parents=True)
    shutil.copytree(tree / 'tests', folder / 'tests')
    for name in ('runtest', 'redis.conf'):
        shutil.copy(tree / name, folder / name)
    shutil.copytree(tree / 'utils', folder / 'utils')
    os.symlink(server, folder / 'src' / 'redis-server')
    for tool in ('redis-cli', 'redis-benchmark', 'redis-check-aof', 'redis-check-rdb'):
        found = shutil.which(tool)
        if found:
            os.symlink(found, folder / 'src' / tool)


@contextlib.contextmanager
def server_on(command, folder, port):
    """A server that runs at the port until the end of the block; its output is in a file."""
    with open(folder / 'server.log', 'wb') as log, \
            subprocess.Popen([*command, '--port', str(port), '--save', '', '--bind', '127.0.0.1',
                              '--enable-debug-command', 'yes'],
                             cwd=folder, stdout=log, stderr=log) as server:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), \
                        socket.create_connection(('127.0.0.1', port), 1):
                    break
                if server.poll() is not None:
                    sys.exit(f'the server at {port} did not start: {folder / "server.log"}')
                time.sleep(0.1)
            yield
        finally:
            server.terminate()


def run_unit(folder, unit, port, environment, skipped, external=False):
    """{'passed': [names], 'failed': [names], 'ended': bool, 'seconds': s, 'last': [lines]}"""
    started = time.monotonic()
    command = ['./runtest', '--single', unit, '--clients', '1', '--durable', '--tags', LEFT_OUT]
    if external:  # databases other than 0, and the suite's own port behind that of the server
        command += ['--host', '127.0.0.1', '--port', str(port), '--baseport', str(port + 100)]
    else:
        command += ['--baseport', str(port), '--portcount', '900']
    for name in skipped:
        command += ['--skiptest', name]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                          errors='replace', stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, env={**os.environ, **environment}) as process:
        ended = True
        try:
            text = process.communicate(timeout=UNIT_SECONDS)[0]
        except subprocess.TimeoutExpired:
            ended = False
            os.killpg(process.pid, signal.SIGKILL)
            text = process.communicate()[0]
        finally:
            # Servers that the suite has left are in the session that was made for it.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    lines = COLOUR.sub('', text).splitlines()
    (folder / (unit.replace('/', '_') + '.log')).write_text('\n'.join(lines), encoding='utf-8')
    unstarted = {match[1] for match in map(UNSTARTED.match, lines) if match}
    passed = sorted({match[1] for match in map(OK.match, lines) if match} - unstarted)
    failed = sorted({match[1] for match in map(BAD.match, lines) if match} | unstarted)
    return {'passed': passed, 'failed': failed, 'ended': ended and any('overview' in each or
            'All tests passed' in each or 'tests failed' in each for each in lines),
            'seconds': round(time.monotonic() - started, 1), 'last': lines[-3:]}


def reasons():
    """[(unit pattern, name pattern, reason)]"""
    found = []
    text = (HERE / 'reasons.txt').read_text(encoding='utf-8')
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        parts = [part.strip() for part in line.split(' | ')]
        if len(parts) != 3 or not all(parts):
            sys.exit(f'reasons.txt:{number}: unit | name | reason')
        found.append(tuple(parts))
    return found


def reason_of(known, unit, name):
    for unit_pattern, name_pattern, reason in known:
        if fnmatch.fnmatchcase(unit, unit_pattern) and fnmatch.fnmatchcase(name, name_pattern):
            return reason
    return None


def results_of(who, tree, arguments, port):
    folder = arguments.build / who
    server = HERE / 'shim.sh' if who == 'node' else Path(shutil.which('redis-server'))
    prepare(tree, folder, server)
    environment = {'SEMEL_PROGRAM': str(arguments.program.resolve())} if who == 'node' else {}
    results = {}
    breaking = [] if who == 'redis' else [each for each in reasons() if each[2].startswith(BREAKS)]
    program = [arguments.program.resolve(), 'redis-server'] if who == 'node' else [server]
    for unit in arguments.unit or UNITS:
        skipped = [name for pattern, name, _ in breaking if fnmatch.fnmatchcase(unit, pattern)]
        # A unit that broke its server would hide the rest.
        with server_on(program, folder, port) if arguments.external else contextlib.nullcontext():
            results[unit] = run_unit(folder, unit, port, environment, skipped, arguments.external)
        each = results[unit]
        print(f'{who:<6} {unit:<24} {len(each["passed"]):>4} passed {len(each["failed"]):>4} failed'
              f'{"" if each["ended"] else "  STOPPED"}  {each["seconds"]} s', flush=True)
    return results


def kept_results(arguments, tree, port):
    """Of redis-server: kept, as neither the suite nor the server changes between runs."""
    file = arguments.build / ('external.json' if arguments.external else 'redis.json')
    kept = json.loads(file.read_text(encoding='utf-8')) if file.exists() else {}
    wanted = arguments.unit or UNITS
    missing = [unit for unit in wanted if unit not in kept]
    if missing:
        kept.update(results_of('redis', tree, argparse.Namespace(**{**vars(arguments),
                                                                    'unit': missing}), port))
        file.write_text(json.dumps(kept, indent=1), encoding='utf-8')
    return {unit: kept[unit] for unit in wanted}


def subject_of(reason):
    """The word in front of a reason, by which differences are counted together."""
    reason = reason.removeprefix(BREAKS)
    subject, colon, _ = reason.partition(': ')
    return subject if colon and ' ' not in subject else 'others'


def compare(node, redis):
    """Prints the differences and a table of units; returns (passes of both, passes of redis,
    unexplained, {subject: differences})."""
    known = reasons()
    table = []
    unexplained = 0
    subjects = collections.Counter()
    for unit, expected in redis.items():
        passed = set(node[unit]['passed'])
        missing = [name for name in expected['passed'] if name not in passed]
        table.append((unit, len(expected['passed']) - len(missing), len(expected['passed'])))
        for name in missing:
            reason = reason_of(known, unit, name)
            unexplained += reason is None
            subjects[subject_of(reason) if reason else 'unexplained'] += 1
            print(f'{"known" if reason else "DIFFERS":<8} {unit}: {name}'
                  f'{" - " + reason if reason else ""}')
    for unit, ours, theirs in table:
        print(f'{unit:<24} {ours:>4} of {theirs:>4}')
    return (sum(row[1] for row in table), sum(row[2] for row in table), unexplained, subjects)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', type=Path, required=True)
    parser.add_argument('--build', type=Path, required=True)
    parser.add_argument('--unit', action='append')
    parser.add_argument('--external', action='store_true')
    parser.add_argument('--port', type=int, default=23111)
    arguments = parser.parse_args()
    arguments.build.mkdir(parents=True, exist_ok=True)
    try:
        tree = source.find(arguments.build.resolve() / 'source')
    except source.NoSource as problem:
        print(f'redis-suite: skipped, {problem}')
        return 77
    redis = kept_results(arguments, tree, arguments.port + 1000)
    node = results_of('node', tree, arguments, arguments.port)
    both, of_redis, unexplained, subjects = compare(node, redis)
    share = both / of_redis if of_redis else 0
    judged = of_redis - subjects['replication']
    share_judged = both / judged if judged else 0
    counts = ', '.join(f'{count} {subject}' for subject, count in subjects.most_common())
    print(f'redis-suite: differences by subject: {counts or "none"}')
    print(f'redis-suite: {both} of {of_redis} tests that redis-server passes ({share:.1%}), '
          f'{share_judged:.1%} of those that are not about replication, '
          f'{unexplained} differences without a reason')
    return 1 if unexplained or (not arguments.unit and share_judged < SHARE_MIN) else 0


if __name__ == '__main__':
    sys.exit(main())
