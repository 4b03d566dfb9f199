#!/usr/bin/env python3
"""Each file of the tier, one run of the suite each, so that what stops one does not hide the rest;
see run.sh. A file passes when none of its tests fails and it comes to its end."""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'clients'))
import target  # noqa: E402
from servers import CannotStart  # noqa: E402  (target has found the folder)

FILE_SECONDS = 300
TAGS = '-slow -needs:debug -needs:repl -cluster:only'
COLOUR = re.compile(r'\x1b\[[0-9;]*m')


def skip_list(path):
    """[(file, reason why the whole of it is left out or None, [names left out])]"""
    files = []
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        if line.startswith('file '):
            files.append([line[5:].strip(), None, []])
            continue
        name, _, reason = line.partition('  # ')
        if not files or not reason.strip():
            sys.exit(f'{path.name}:{number}: a name and "  # " and a reason, under a file')
        if name.strip() == 'whole':
            files[-1][1] = reason.strip()
        else:
            files[-1][2].append(name.strip())
    return files


def run_file(suite, name, skipped, server):
    """(tests that passed, lines to show, whether all is well)"""
    with tempfile.NamedTemporaryFile('w', suffix='.txt', encoding='utf-8') as skips:
        skips.write(''.join(f'{each}\n' for each in skipped))
        skips.flush()
        command = ['./runtest', '--host', server.host, '--port', str(server.port), '--single', name,
                   '--ignore-encoding', '--ignore-digest', '--durable', '--skipfile', skips.name,
                   '--tags', TAGS]
        with subprocess.Popen(command, cwd=suite, stdin=subprocess.DEVNULL, text=True,
                              errors='replace', stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            try:
                text = process.communicate(timeout=FILE_SECONDS)[0]
                ended = True
            except subprocess.TimeoutExpired:
                # The suite has processes of its own, in the session that was made for it.
                os.killpg(process.pid, signal.SIGKILL)
                text = process.communicate()[0]
                ended = False
    lines = COLOUR.sub('', text).splitlines()
    passed = sum(line.startswith('[ok]') for line in lines)
    bad = [line for line in lines if line.startswith(('[err]', '[exception]'))]
    if not ended:
        bad.append(f'not ended after {FILE_SECONDS} s')
    elif process.returncode != 0 and not bad:
        bad = lines[-5:]
    return passed, bad, not bad


def main():
    parser = argparse.ArgumentParser(description='Runs files of a Redis test suite.')
    parser.add_argument('--suite', type=Path, required=True)
    parser.add_argument('--skip', type=Path, required=True)
    parser.add_argument('--against', choices=target.TARGETS, default='semel')
    parser.add_argument('--program')
    arguments = parser.parse_args()
    passed = wrong = whole = named = 0
    for name, reason, skipped in skip_list(arguments.skip):
        if reason:
            print(f'skipped  {name:<24} {reason}')
            whole += 1
            continue
        started = time.monotonic()
        with target.open_target(arguments.against, arguments.program) as server:
            count, bad, good = run_file(arguments.suite, name, skipped, server)
        passed += count
        wrong += not good
        named += len(skipped)
        print(f'{"ok" if good else "failed":<8} {name:<24} {count} tests, {len(skipped)} left out '
              f'({time.monotonic() - started:.1f} s)')
        for line in bad[:20]:
            print(f'           {line[:200]}')
        sys.stdout.flush()
    print(f'tcl: {passed} tests passed against {arguments.against}, {wrong} files failed, '
          f'{named} tests and {whole} files left out')
    return 1 if wrong or not passed else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(f'tcl: {problem}')
