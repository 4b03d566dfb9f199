#!/usr/bin/env python3
"""Runs real clients against our node: tests/clients/run.py [--against redis] [--only NAME]..

A suite is a program that prints one line a check, `ok NAME`, `failed NAME: why` or
`skipped NAME: why`, and at its end `end`. It finds the server in SEMEL_TEST_HOST and
SEMEL_TEST_PORT, and in SEMEL_TEST_SCRIPTS (yes, no) whether the server knows scripts. Packages are
pinned beside the suite and installed into --build, never into the source tree. A suite is skipped
only where its toolchain or its packages cannot be had.

With --against redis the suites are run against the redis-server of PATH, or one that knows no
scripts (redis-without-scripts): what fails there is wrong with the suite.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import suites  # noqa: E402
import target  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SUITE_SECONDS = 240
LINE = re.compile(r'(ok|failed|skipped) (.*)')


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


def run_suite(suite, server, build):
    """(verdict, what to say, lines under it)"""
    try:
        command = suite.prepare(build / suite.folder)
    except suites.Missing as missing:
        return 'skipped', str(missing), []
    except suites.Broken as broken:
        return 'failed', 'cannot be built', str(broken).splitlines()[-30:]
    server.call('FLUSHALL')
    environment = dict(os.environ, SEMEL_TEST_HOST=server.host, SEMEL_TEST_PORT=str(server.port),
                       SEMEL_TEST_SCRIPTS='yes' if server.knows('EVAL', 'return 1', 0) else 'no',
                       PYTHONDONTWRITEBYTECODE='1')
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                              errors='replace', capture_output=True, timeout=SUITE_SECONDS,
                              cwd=build / suite.folder, check=False)
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b''
        return 'failed', f'not ended after {SUITE_SECONDS} s', output.decode().splitlines()[-10:]
    counts, shown, ended = counted(done.stdout)
    text = f'{counts["ok"]} checks'
    if counts['skipped']:
        text += f', {counts["skipped"]} skipped'
    if not server.is_alive():
        return 'failed', f'{text}; the server has ended', server.log_tail().splitlines()[-20:]
    if counts['failed'] == 0 and counts['ok'] > 0 and ended and done.returncode == 0:
        return 'ok', text, shown
    text += f', {counts["failed"]} failed, exit code {done.returncode}'
    rest = [] if ended else done.stdout.splitlines()[-5:] + done.stderr.splitlines()[-20:]
    return 'failed', text, shown + rest


def main():
    parser = argparse.ArgumentParser(description='Runs real clients against our node.')
    parser.add_argument('--against', choices=target.TARGETS, default='semel')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel',
                        help='the program semel')
    parser.add_argument('--build', type=Path, default=ROOT / 'build/clients',
                        help='where packages are installed and suites are built')
    parser.add_argument('--only', action='append', default=[], metavar='NAME')
    arguments = parser.parse_args()
    chosen = [s for s in suites.ALL if not arguments.only or s.name in arguments.only]
    unknown = set(arguments.only) - {s.name for s in chosen}
    if unknown:
        parser.error(f'no suite {", ".join(sorted(unknown))}; there are '
                     + ', '.join(s.name for s in suites.ALL))
    if arguments.against != 'semel':
        try:
            target.redis_program()
        except target.NoPeer as reason:
            print(f'clients: skipped, {reason}')
            return 77
    verdicts = {'ok': 0, 'failed': 0, 'skipped': 0}
    checks = 0
    for suite in chosen:
        started = time.monotonic()
        try:  # a server each: what one suite leaves behind is nothing to the next
            with target.open_target(arguments.against, arguments.program) as server:
                verdict, text, lines = run_suite(suite, server, arguments.build.resolve())
        except target.CannotStart as error:
            print(f'clients: {error}')
            verdict, text, lines = 'failed', 'the server does not start', []
        verdicts[verdict] += 1
        checks += int(text.split()[0]) if text[:1].isdigit() else 0
        print(f'{verdict:<8} {suite.name:<24} {text} ({time.monotonic() - started:.1f} s)')
        for line in lines:
            print(f'           {line}')
        sys.stdout.flush()
    print(f'clients: {checks} checks against {arguments.against}')
    print(f'{verdicts["ok"]} passed, {verdicts["failed"]} failed, {verdicts["skipped"]} skipped')
    return 1 if verdicts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
