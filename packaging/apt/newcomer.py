#!/usr/bin/env python3
"""What a newcomer does, in new systems that have nothing:
newcomer.py PACKAGES [--suite NAME].. [--audience NAME]..

For each suite (bookworm and trixie) debootstrap makes a minimal system. There the commands of
docs/packaging.md add the directory of packages as a source and install the service; the node is
started by the command line of its unit, as the unit's user and without capabilities, and asked by
redis-cli, also after a restart. The shell of docs/start, for users of Redis, data and operators, is
played with the installed program. Then libsemel-dev is installed, and the program of
docs/start/cpp.md compiled and run. Where libsemel0 cannot be installed, since packages link the
RocksDB of the system they were made on, that part is skipped and counted.

With --audience (java, python, go, node) the page of that language is played instead, in a Debian
13 that has the node of the packages: audiences.py.

Each step is printed with its seconds. Nodes listen in a network of their own. A suite is skipped,
and said to be, where debootstrap or its mirror cannot be had. The last line is the figure; 77:
every suite, or audience, was skipped.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import audiences
from bare import ROOT, Skip, System, block, expect, failures, run, serve

# @UNIT@ is the command of the unit. The loops are bounded: 20 s at most.
SERVE = r'''
cd /var/lib/semel
start() {
  setpriv --reuid semel --regid semel --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all @UNIT@ >>/tmp/node.log 2>&1 &
  node=$!
  for _ in {1..200}; do
    [ "$(redis-cli ping 2>&1)" != PONG ] || return 0
    kill -0 $node || break
    sleep 0.1
  done
  cat /tmp/node.log
  return 1
}
stop() { kill -TERM $node && wait $node && echo stopped; }
ask() { redis-cli "$@" | paste -sd ' '; }
start
ask SET job:1 mine NX GET PX 600000
ask SET job:1 other NX GET PX 600000
ask SEMEL.CLAIM orders order-4711
stop
start
ask GET job:1
ask SEMEL.CLAIM orders order-4711
ps -o user= -p $node 2>/dev/null || stat -c %U /proc/$node
stop
'''
ANSWERS = ('', 'mine', 'outcome granted', 'stopped',
           'mine', 'outcome in_flight', 'semel', 'stopped')

def install_node(system, address):
    commands = block('docs/packaging.md', 'sh', 'From a directory of packages')
    expect('http://packages.example' in commands, 'the page installs from another place')
    system.must('apt-get install curl redis-tools',
                'apt-get -qy update && apt-get -qy install --no-install-recommends curl '
                'ca-certificates redis-tools')
    system.must('apt-get install semel-node',
                commands.replace('http://packages.example', address)
                .replace('apt-get install', 'apt-get -qy install'))


def check_service(system):
    unit = (system.folder / 'lib/systemd/system/semel.service').read_text(encoding='utf-8')
    command = re.search(r'^ExecStart=(.*)$', unit, re.M)[1]
    expect(re.search(r'^User=semel$', unit, re.M), 'the unit has another user')
    # systemd makes the StateDirectory.
    done = system.must(command, 'install -d -o semel -g semel -m 700 /var/lib/semel\n'
                       + SERVE.replace('@UNIT@', command), alone=True)
    said = done.stdout.splitlines()
    fits = len(said) == len(ANSWERS) and all(
        line.startswith(wanted) for line, wanted in zip(said, ANSWERS))
    expect(fits, f'{system.name}: the node answers {said}')


def check_pages(system):
    """What the pages of docs/start show in a shell."""
    pages = system.folder / 'root/pages'
    shutil.copytree(ROOT / 'docs/start', pages / 'docs/start')
    (pages / 'tests/tools').mkdir(parents=True)
    shutil.copy(ROOT / 'README.md', pages)
    shutil.copy(ROOT / 'tests/tools/readme_shell_test.py', pages / 'tests/tools')
    system.must('apt-get install python3-redis',
                'apt-get -qy install --no-install-recommends python3-redis')
    done = system.must('the shell of docs/start', 'cd /root/pages && '
                       'python3 -B tests/tools/readme_shell_test.py /usr/bin/semel', alone=True)
    print(f'{system.name:<9} {done.stdout.strip()}', flush=True)


def check_library(system):
    """False: not to be had there."""
    done = system.play('apt-get install libsemel-dev g++ pkg-config',
                       'apt-get -qy install --no-install-recommends libsemel-dev g++ pkg-config')
    if done.returncode != 0 and re.search(r'libsemel0 : Depends: librocksdb', done.stdout):
        print(f'{system.name:<9} skipped: libsemel-dev needs the RocksDB of the system it was '
              'made on', flush=True)
        return False
    expect(done.returncode == 0, f'{system.name}: no libsemel-dev:\n'
                                 f'{done.stdout[-2000:]}{done.stderr[-1000:]}')
    (system.folder / 'root/yours.cpp').write_text(block('docs/start/cpp.md', 'cpp', 'Use it'))
    compiler = 'g++ -std=c++20 yours.cpp $(pkg-config --cflags --libs semel-core)'
    done = system.must(compiler, f'cd /root && {compiler} && ./a.out')
    expect('2 booked' in done.stdout, f'{system.name}: the program writes {done.stdout!r}')
    return True


def play_packages(suite, where, address):
    """The number of steps."""
    system = System.make(suite, where)
    install_node(system, address)
    check_service(system)
    check_pages(system)
    check_library(system)
    shutil.rmtree(system.folder, ignore_errors=True)
    return system.steps


def play_audiences(suite, where, address, names):
    """The number of steps, and of audiences that were skipped."""
    started = time.monotonic()
    system = System.make(suite, where)
    install_node(system, address)
    system.trust()
    steps, skipped = system.steps, 0
    common = time.monotonic() - started
    for name in names:
        try:
            steps += audiences.play(system, name, common)
        except Skip as why:
            print(f'{name:<9} skipped: {why}', flush=True)
            skipped += 1
    shutil.rmtree(system.folder, ignore_errors=True)
    return steps, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('packages', type=Path)
    parser.add_argument('--suite', action='append', help='bookworm or trixie; may repeat')
    parser.add_argument('--audience', action='append', choices=sorted(audiences.PAGES),
                        help='may repeat; only these are played, on trixie unless --suite says')
    arguments = parser.parse_args()
    suites = arguments.suite or (['trixie'] if arguments.audience else ['bookworm', 'trixie'])
    each = len(arguments.audience or ['all'])
    steps = skipped = 0
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        where.chmod(0o755)
        address = serve(arguments.packages.resolve(), where)
        for suite in suites:
            started = time.monotonic()
            try:
                if os.geteuid() != 0 or not shutil.which('debootstrap'):
                    raise Skip('needs root and debootstrap')
                if arguments.audience:
                    more, less = play_audiences(suite, where, address, arguments.audience)
                    steps, skipped = steps + more, skipped + less
                else:
                    steps += play_packages(suite, where, address)
            except Skip as why:
                print(f'{suite:<9} skipped: {why}', flush=True)
                skipped += each
                continue
            print(f'{suite:<9} {(time.monotonic() - started) / 60:.1f} minutes', flush=True)
        run('gpgconf', '--kill', 'all')
    of = each * len(suites)
    print(f'newcomer: {steps} steps in {of - skipped} of {of} '
          f'{"audiences" if arguments.audience else "suites"}, {skipped} skipped, '
          f'{len(failures)} failures')
    return 1 if failures else 77 if skipped == of else 0


if __name__ == '__main__':
    sys.exit(main())
