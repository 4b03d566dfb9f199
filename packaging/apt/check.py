#!/usr/bin/env python3
"""Installs Semel with apt from a directory of repository.py: check.py PACKAGES.

Makes a key of its own and a signed directory, and installs semel-node over file:// and over http on
a free port of the loopback, each into a copy of this system that is thrown away: an overlay over
its root, where apt and dpkg are the real ones and know no other source. The program must run there.
What must be refused is played as well: another key, no signature, a package or a list that was
changed. Ends with 77 where overlays cannot be mounted. The last line is the figure.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ('semel-node', 'libsemel0')
SECONDS_MAX = 300

# $1: a folder for the copy, $2: the repository, $3: the script to play. The folder's own mount is
# gone with the namespace. Services must not start: policy-rc.d says so.
COPY = r'''
set -e
mount -t tmpfs -o size=1g semel "$1"
mkdir -p "$1/upper" "$1/work" "$1/root"
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" semel "$1/root"
cd "$1/root"
mount --rbind /dev dev
mount --bind /proc proc
mount -t tmpfs -o size=256m semel tmp
chmod 1777 tmp
mkdir repository
mount --bind "$2" repository
mkdir -p etc/apt/sources.list.d etc/apt/keyrings usr/sbin
rm -rf etc/apt/sources.list etc/apt/sources.list.d/* var/lib/apt/lists
mkdir -p var/lib/apt/lists/partial
printf '#!/bin/sh\nexit 101\n' > usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
chroot . /bin/sh -ec "$3"
'''

# @SOURCE@ is the line of the source. Nothing is to be downloaded from elsewhere: what the packages
# depend on is in the copy, or the check says what is missing.
UPDATE = r'''
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cp /repository/semel.gpg /etc/apt/keyrings/semel.gpg
echo '@SOURCE@' > /etc/apt/sources.list.d/semel.list
apt-get -q -o Acquire::Retries=0 -o APT::Update::Error-Mode=any update
'''
INSTALL = r'''
dpkg --purge semel-node semel-tools libsemel-dev libsemel0 >/dev/null 2>&1 || true
apt-get -q -y --no-install-recommends -o Acquire::Retries=0 install @PACKAGES@
semel --version
printf 'a\nb\na\n' | semel dedup | tr '\n' ' '
semel node --config /etc/semel/semel.toml --check-config
stat -c '%U:%G %a' /etc/semel/semel.toml
apt-get -q -y purge @PACKAGES@ semel-tools
test ! -e /usr/bin/semel
'''

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'apt: {what}')


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False, stdin=subprocess.DEVNULL, **options)


def play(where, repository, script):
    folder = Path(tempfile.mkdtemp(dir=where))
    return run('unshare', '--mount', '--pid', '--fork', '--propagation', 'private',
               'sh', '-c', COPY, 'copy', folder, repository, script)


def make_key(home, name):
    home.mkdir(mode=0o700)
    done = run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', name, 'ed25519',
               'sign', '1d', env={**os.environ, 'GNUPGHOME': str(home)})
    expect(done.returncode == 0, f'gpg makes no key: {done.stderr}')


def make_repository(packages, target, home, name):
    words = ['--key', name] if name else []
    done = run(sys.executable, HERE / 'repository.py', packages, target, *words,
               env={**os.environ, 'GNUPGHOME': str(home)})
    expect(done.returncode == 0, f'no repository: {done.stdout}{done.stderr}')


def check_install(where, repository, address):
    source = f'deb [signed-by=/etc/apt/keyrings/semel.gpg] {address} stable main'
    script = (UPDATE + INSTALL).replace('@SOURCE@', source).replace('@PACKAGES@',
                                                                    ' '.join(PACKAGES))
    done = play(where, repository, script)
    expect(done.returncode == 0,
           f'{address}: nothing is installed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}')
    for wanted in ('semel 0.', 'a b ', 'root:semel 640'):
        expect(wanted in done.stdout, f'{address}: no {wanted!r} in\n{done.stdout[-1500:]}')


def change_byte(path):
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    path.write_bytes(held)


def check_refusals(where, good, packages, homes):
    """Each of these must end before a byte is installed."""
    source = 'deb [signed-by=/etc/apt/keyrings/semel.gpg] file:/repository stable main'
    script = (UPDATE + INSTALL).replace('@SOURCE@', source).replace('@PACKAGES@',
                                                                    ' '.join(PACKAGES))
    lists = 'dists/stable/main/binary-*/Packages'

    def other_key(copy):
        make_repository(packages, copy, homes / 'other', 'other')
        shutil.copyfile(good / 'semel.gpg', copy / 'semel.gpg')

    def no_signature(copy):
        make_repository(packages, copy, homes / 'own', None)
        shutil.copyfile(good / 'semel.gpg', copy / 'semel.gpg')

    def changed_package(copy):
        change_byte(next(copy.glob('pool/semel-tools_*.deb')))

    def changed_list(copy):
        for path in copy.glob(lists):
            change_byte(path)
        for path in copy.glob(lists + '.gz'):
            path.unlink()

    def changed_release(copy):
        for name in ('Release', 'InRelease'):
            path = copy / 'dists/stable' / name
            path.write_text(path.read_text().replace('Origin: Semel', 'Origin: Other'))

    # What apt says of each; a refusal for another reason would prove nothing.
    cases = {other_key: 'NO_PUBKEY', no_signature: 'is not signed',
             changed_package: 'Hash Sum mismatch', changed_list: 'Hash Sum mismatch',
             changed_release: 'BADSIG'}
    for spoil, reason in cases.items():
        copy = where / spoil.__name__
        shutil.copytree(good, copy)
        spoil(copy)
        done = play(where, copy, script)
        expect(done.returncode != 0 and 'semel 0.' not in done.stdout,
               f'{spoil.__name__} is not refused:\n{done.stdout[-1500:]}')
        expect(reason in done.stdout + done.stderr,
               f'{spoil.__name__}: no {reason!r} in\n{done.stdout[-1000:]}{done.stderr[-1000:]}')
    return len(cases)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    packages = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        if os.geteuid() != 0 or play(where, where, 'true').returncode != 0:
            print('apt: skipped, an overlay over the root cannot be mounted here (root, overlayfs)')
            return 77
        homes = where / 'keys'
        homes.mkdir()
        make_key(homes / 'own', 'own')
        make_key(homes / 'other', 'other')
        good = where / 'good'
        make_repository(packages, good, homes / 'own', 'own')
        check_install(where, good, 'file:/repository')
        server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), functools.partial(Quiet, directory=str(good)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        check_install(where, good, f'http://127.0.0.1:{server.server_address[1]}')
        server.shutdown()
        server.server_close()
        refused = check_refusals(where, good, packages, homes)
        for home in ('own', 'other'):  # gpg's agents, which gpg started for these keys alone
            run('gpgconf', '--kill', 'all', env={**os.environ, 'GNUPGHOME': str(homes / home)})
    print(f'apt: installed over file and http, {refused} changed repositories refused, '
          f'{len(failures)} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
