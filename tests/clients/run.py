#!/usr/bin/env python3
"""Runs real clients against our node: tests/clients/run.py [--against TARGET] [--only NAME]..

A suite is a program that prints one line a check, `ok NAME`, `failed NAME: why` or
`skipped NAME: why`, and at its end `end`. It finds the server in SEMEL_TEST_HOST and
SEMEL_TEST_PORT, and in SEMEL_TEST_SCRIPTS (yes, no) whether the server knows scripts. Packages are
pinned beside the suite and installed into --build, never into the source tree. A suite is skipped
only where its toolchain or its packages cannot be had.

With --against redis the suites are run against the redis-server of PATH, or one that knows no
scripts (redis-without-scripts): what fails there is wrong with the suite. With --against both each
is run against the redis-server and then against our node.

With --against group there are other suites, against three nodes which they have killed and started
again (group_target.py). They also print figures, `figure NAME NUMBER`, of which medians are shown.
Those of clients/java run only by name, and also start nodes of their own: SEMEL_TEST_PROGRAM.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import group_target  # noqa: E402
import suites  # noqa: E402
import target  # noqa: E402
import servers  # noqa: E402  (target has found the folder)

ROOT = Path(__file__).resolve().parents[2]
SUITE_SECONDS = 240
LINE = re.compile(r'(ok|failed|skipped) (.*)')
FIGURE = re.compile(r'figure (\S+) (\d+)')


def counted(text):
    """What a suite has printed: ({word: count}, lines to show, whether it came to its end)."""
    counts = {'ok': 0, 'failed': 0, 'skipped': 0}
    shown = []
    ended = False
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match:
            counts[match.group(1)] += 1
        if match and match.group(1) != 'ok':
            shown.append(line)
        ended = ended or line == 'end'
    return counts, shown, ended


def figures(text):
    """A line for each figure that a suite has printed."""
    found = {}
    for name, number in FIGURE.findall(text):
        found.setdefault(name, []).append(int(number))
    return [f'{name}: median {statistics.median(each):.0f}, longest {max(each)}, of {len(each)}'
            for name, each in found.items()]


def end_all(process):
    """A suite, and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def converse(command, environment, folder, answer):
    """Runs a suite and answers what it needs: (output, errors, exit code, whether in time)."""
    late = threading.Event()
    lines = []
    with (tempfile.TemporaryFile('w+', errors='replace') as errors,
          subprocess.Popen(command, env=environment, cwd=folder, text=True, errors='replace',
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                           start_new_session=True, preexec_fn=servers.end_with_parent) as process):
        clock = threading.Timer(SUITE_SECONDS, lambda: (late.set(), end_all(process)))
        clock.start()
        try:
            for line in process.stdout:
                lines.append(line)
                if line.startswith('need '):
                    process.stdin.write(answer(line.split()[1:]) + '\n')
                    process.stdin.flush()
            process.wait()
        except BrokenPipeError:  # it has ended meanwhile
            process.wait()
        finally:
            clock.cancel()
            end_all(process)
        errors.seek(0)
        return ''.join(lines), errors.read(), process.returncode, not late.is_set()


def run_suite(suite, server, build):
    """(verdict, what to say, lines under it)"""
    try:
        command = suite.prepare(build / suite.folder)
    except suites.Missing as missing:
        return 'skipped', str(missing), []
    except suites.Broken as broken:
        return 'failed', 'cannot be built', str(broken).splitlines()[-30:]
    server.ask('FLUSHALL')
    environment = dict(os.environ, SEMEL_TEST_HOST=server.host, SEMEL_TEST_PORT=str(server.port),
                       SEMEL_TEST_SCRIPTS='yes' if server.knows('EVAL', 'return 1', 0) else 'no',
                       PYTHONDONTWRITEBYTECODE='1', **server.variables())
    output, errors, code, in_time = converse(command, environment, build / suite.folder,
                                             server.answer)
    if not in_time:
        return 'failed', f'not ended after {SUITE_SECONDS} s', output.splitlines()[-10:]
    counts, shown, ended = counted(output)
    text = f'{counts["ok"]} checks'
    if counts['skipped']:
        text += f', {counts["skipped"]} skipped'
    if not server.is_alive():
        return 'failed', f'{text}; the server has ended', server.log_tail().splitlines()[-20:]
    if counts['failed'] == 0 and counts['ok'] > 0 and ended and code == 0:
        return 'ok', text, shown + figures(output)
    text += f', {counts["failed"]} failed, exit code {code}'
    rest = [] if ended else output.splitlines()[-5:] + errors.splitlines()[-20:]
    return 'failed', text, shown + figures(output) + rest


def open_server(suite, against, arguments):
    """A server each: what one suite leaves behind is nothing to the next."""
    if suite.nodes is None:
        return target.open_target(against, arguments.program)
    return group_target.GroupTarget(arguments.program, suite.nodes, arguments.kills)


def run_at(suite, against, arguments):
    """Prints what there is to say. (verdict, how many checks were right)"""
    name = f'{suite.name}, {against}' if arguments.against == 'both' else suite.name
    if suite.needs_semel and against.startswith('redis'):
        print(f'skipped  {name:<24} needs a node of Semel')
        return 'skipped', 0
    if suite.needs_scripts and against == 'redis-without-scripts':
        print(f'skipped  {name:<24} needs scripts')
        return 'skipped', 0
    started = time.monotonic()
    try:
        with open_server(suite, against, arguments) as server:
            verdict, text, lines = run_suite(suite, server, arguments.build.resolve())
    except servers.CannotStart as error:
        print(f'clients: {error}')
        verdict, text, lines = 'failed', 'the server does not start', []
    print(f'{verdict:<8} {name:<24} {text} ({time.monotonic() - started:.1f} s)')
    for line in lines:
        print(f'           {line}')
    sys.stdout.flush()
    return verdict, int(text.split()[0]) if text[:1].isdigit() else 0


def main():
    parser = argparse.ArgumentParser(description='Runs real clients against our node.')
    parser.add_argument('--against', choices=(*target.TARGETS, 'both', 'group'), default='semel')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel',
                        help='the program semel')
    parser.add_argument('--build', type=Path, default=ROOT / 'build/clients',
                        help='where packages are installed and suites are built')
    parser.add_argument('--only', action='append', default=[], metavar='NAME')
    parser.add_argument('--kills', type=int, default=5, help='of leaders, in each suite of a group')
    arguments = parser.parse_args()
    usual = suites.GROUP if arguments.against == 'group' else suites.ALL
    known = usual + suites.STARTER if arguments.against == 'semel' else usual
    chosen = [s for s in known if s.name in arguments.only] if arguments.only else usual
    unknown = set(arguments.only) - {s.name for s in chosen}
    if unknown:
        parser.error(f'no suite {", ".join(sorted(unknown))}; there are '
                     + ', '.join(s.name for s in known))
    both = arguments.against == 'both'
    if both or arguments.against.startswith('redis'):
        try:
            servers.redis_program()
        except servers.NoPeer as reason:
            print(f'clients: skipped, {reason}')
            return 77
    verdicts = {'ok': 0, 'failed': 0, 'skipped': 0}
    checks = 0
    for suite in chosen:
        for against in ('redis', 'semel') if both else (arguments.against,):
            verdict, found = run_at(suite, against, arguments)
            verdicts[verdict] += 1
            checks += found
    print(f'clients: {checks} checks against {arguments.against}')
    print(f'{verdicts["ok"]} passed, {verdicts["failed"]} failed, {verdicts["skipped"]} skipped')
    return 1 if verdicts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
