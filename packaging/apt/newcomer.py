#!/usr/bin/env python3
"""What a newcomer does, in new systems that have nothing: newcomer.py PACKAGES [--suite NAME]...

For each suite (bookworm and trixie) debootstrap makes a minimal system. There the commands of
docs/packaging.md add the directory of packages as a source and install the service; the node is
started by the command line of its unit, as the unit's user and without capabilities, and asked by
redis-cli, also after a restart. The shell of docs/start, for users of Redis, data and operators, is
played with the installed program. Then libsemel-dev is installed, and the program of
docs/start/cpp.md compiled and run. Where libsemel0 cannot be installed, since packages link the
RocksDB of the system they were made on, that part is skipped and counted.

Each step is printed with its seconds. Nodes listen in a network of their own. A suite is skipped,
and said to be, where debootstrap or its mirror cannot be had. The last line is the figure; 77:
every suite was skipped.
"""

import argparse
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STEP_SECONDS_MAX = 1200

# $1: the system, $2: the script to play in it, $3: "alone" for a network of its own. Mounts and
# processes end with the namespace.
INSIDE = r'''
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
[ "$3" != alone ] || ip link set lo up
exec chroot "$1" /bin/bash -ec "$2"
'''

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

failures = []


class Skip(Exception):
    """This cannot be had here; the text says why."""


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'newcomer: {what}', flush=True)
    return condition


def run(*command, seconds=STEP_SECONDS_MAX):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=seconds, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, 'LC_ALL': 'C', 'DEBIAN_FRONTEND': 'noninteractive'})


def mirror():
    """Where this machine's own packages of Debian come from."""
    done = run('apt-get', 'indextargets', '--format', '$(REPO_URI) $(ORIGIN) $(CODENAME)',
               'Created-By: Packages')
    for line in done.stdout.splitlines():
        uri, origin, codename = (line.split() + ['', ''])[:3]
        if origin == 'Debian' and re.fullmatch('[a-z]+', codename):
            return uri
    raise Skip('the mirror of this system is not known, and debootstrap needs one')


class System:
    def __init__(self, suite, where):
        self.suite = suite
        self.folder = where / suite
        self.steps = 0
        started = time.monotonic()
        done = run('unshare', '--mount', '--pid', '--fork', '--kill-child', 'debootstrap',
                   '--variant=minbase', suite, self.folder, mirror())
        if done.returncode != 0:
            raise Skip(f'debootstrap: {(done.stdout + done.stderr).strip()[-200:]}')
        for name in ('resolv.conf', 'hosts'):
            shutil.copyfile(f'/etc/{name}', self.folder / 'etc' / name)
        policy = self.folder / 'usr/sbin/policy-rc.d'  # as in a container: no service is started
        policy.write_text('#!/bin/sh\nexit 101\n')
        policy.chmod(0o755)
        self.report('debootstrap', started)

    def report(self, step, started):
        self.steps += 1
        print(f'{self.suite:<9} {time.monotonic() - started:5.0f} s  {step}', flush=True)

    def play(self, step, script, alone=False):
        started = time.monotonic()
        net = ['--net'] if alone else []
        done = run('unshare', '--mount', '--pid', '--fork', '--kill-child', *net, 'bash', '-c',
                   INSIDE, 'inside', self.folder, script, 'alone' if alone else '')
        self.report(step, started)
        return done

    def must(self, step, script, alone=False):
        done = self.play(step, script, alone)
        expect(done.returncode == 0, f'{self.suite}: {step} ends with {done.returncode}:\n'
                                     f'{done.stdout[-2000:]}{done.stderr[-2000:]}')
        return done


def block(page, language, heading):
    """The first block of that language below the heading."""
    text = (ROOT / page).read_text(encoding='utf-8')
    found = re.search(rf'^#+ {heading}$.*?```{language}\n(.*?)```', text, re.S | re.M)
    if not found:
        raise SystemExit(f'{page} shows no {language} below {heading!r}')
    return found[1]


def check_service(system, address):
    commands = block('docs/packaging.md', 'sh', 'From a directory of packages')
    expect('http://packages.example' in commands, 'the page installs from another place')
    system.must('apt-get install curl redis-tools',
                'apt-get -qy update && apt-get -qy install --no-install-recommends curl '
                'ca-certificates redis-tools')
    system.must('apt-get install semel-node',
                commands.replace('http://packages.example', address)
                .replace('apt-get install', 'apt-get -qy install'))
    unit = (system.folder / 'lib/systemd/system/semel.service').read_text(encoding='utf-8')
    command = re.search(r'^ExecStart=(.*)$', unit, re.M)[1]
    expect(re.search(r'^User=semel$', unit, re.M), 'the unit has another user')
    # systemd makes the StateDirectory.
    done = system.must(command, 'install -d -o semel -g semel -m 700 /var/lib/semel\n'
                       + SERVE.replace('@UNIT@', command), alone=True)
    said = done.stdout.splitlines()
    fits = len(said) == len(ANSWERS) and all(
        line.startswith(wanted) for line, wanted in zip(said, ANSWERS))
    expect(fits, f'{system.suite}: the node answers {said}')


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
    print(f'{system.suite:<9} {done.stdout.strip()}', flush=True)


def check_library(system):
    """False: not to be had there."""
    done = system.play('apt-get install libsemel-dev g++ pkg-config',
                       'apt-get -qy install --no-install-recommends libsemel-dev g++ pkg-config')
    if done.returncode != 0 and re.search(r'libsemel0 : Depends: librocksdb', done.stdout):
        print(f'{system.suite:<9} skipped: libsemel-dev needs the RocksDB of the system it was '
              'made on', flush=True)
        return False
    expect(done.returncode == 0, f'{system.suite}: no libsemel-dev:\n'
                                 f'{done.stdout[-2000:]}{done.stderr[-1000:]}')
    (system.folder / 'root/yours.cpp').write_text(block('docs/start/cpp.md', 'cpp', 'Use it'))
    compiler = 'g++ -std=c++20 yours.cpp $(pkg-config --cflags --libs semel-core)'
    done = system.must(compiler, f'cd /root && {compiler} && ./a.out')
    expect('2 booked' in done.stdout, f'{system.suite}: the program writes {done.stdout!r}')
    return True


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(packages, where):
    """A signed directory of the packages, at a free port of the loopback: its address."""
    home = where / 'keys'
    home.mkdir(mode=0o700)
    os.environ['GNUPGHOME'] = str(home)
    done = run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', 'newcomer', 'ed25519',
               'sign', '1d')
    expect(done.returncode == 0, f'gpg makes no key: {done.stderr}')
    done = run(sys.executable, HERE / 'repository.py', packages, where / 'apt', '--key', 'newcomer')
    expect(done.returncode == 0, f'no repository: {done.stdout}{done.stderr}')
    server = http.server.ThreadingHTTPServer(
        ('127.0.0.1', 0), functools.partial(Quiet, directory=str(where / 'apt')))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f'http://127.0.0.1:{server.server_address[1]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('packages', type=Path)
    parser.add_argument('--suite', action='append', help='bookworm or trixie; may repeat')
    arguments = parser.parse_args()
    suites = arguments.suite or ['bookworm', 'trixie']
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
                system = System(suite, where)
            except Skip as why:
                print(f'{suite:<9} skipped: {why}', flush=True)
                skipped += 1
                continue
            check_service(system, address)
            check_pages(system)
            check_library(system)
            steps += system.steps
            print(f'{suite:<9} {(time.monotonic() - started) / 60:.1f} minutes', flush=True)
            shutil.rmtree(system.folder, ignore_errors=True)
        run('gpgconf', '--kill', 'all')
    print(f'newcomer: {steps} steps in {len(suites) - skipped} of {len(suites)} suites, '
          f'{len(failures)} failures')
    return 1 if failures else 77 if skipped == len(suites) else 0


if __name__ == '__main__':
    sys.exit(main())
