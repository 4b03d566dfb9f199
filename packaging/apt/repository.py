#!/usr/bin/env python3
"""Makes a directory that apt can install from: repository.py PACKAGES DIR [--key ID].

PACKAGES holds .deb files of one or several architectures. DIR is made anew beside its place and
then moved there, so that a failure leaves the old one as it was. It holds

    pool/NAME_VERSION_ARCH.deb
    dists/stable/main/binary-ARCH/Packages, Packages.gz
    dists/stable/Release; with a key also InRelease, Release.gpg, and semel.gpg at the top

and can be served by anything that serves files. With --key, gpg signs with that secret key, which
must be in its keyring and ask for no passphrase. The last line is the figure.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SUITE = 'stable'
COMPONENT = 'main'
SECONDS_MAX = 120


class Failed(Exception):
    """The directory cannot be made; the text says why."""


def run(*command, cwd=None):
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, timeout=SECONDS_MAX, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise Failed(f'{words[0]} did not end within {SECONDS_MAX} s') from error
    if done.returncode != 0:
        raise Failed(f'{words[0]} ended with {done.returncode}: '
                     f'{done.stderr.decode(errors="replace").strip()[:1000]}')
    return done.stdout


def architectures(packages):
    """What the packages are for; `all` alone has no list of its own."""
    found = {run('dpkg-deb', '-f', package, 'Architecture').decode().strip()
             for package in packages} - {'all'}
    if not found:
        raise Failed('no package is for a processor: apt would find none of them')
    return sorted(found)


def write_lists(root, names):
    for architecture in names:
        folder = root / f'dists/{SUITE}/{COMPONENT}/binary-{architecture}'
        folder.mkdir(parents=True)
        listed = run('apt-ftparchive', '--arch', architecture, 'packages', 'pool', cwd=root)
        (folder / 'Packages').write_bytes(listed)
        # mtime 0 and no name: the same packages give the same bytes.
        (folder / 'Packages.gz').write_bytes(gzip.compress(listed, mtime=0))


def write_release(root, names):
    """The hashes of the lists, which hold those of the packages: one signature covers all."""
    when = int(os.environ.get('SOURCE_DATE_EPOCH', time.time()))
    fields = {'Origin': 'Semel', 'Label': 'Semel', 'Suite': SUITE, 'Codename': SUITE,
              'Architectures': ' '.join(names), 'Components': COMPONENT,
              'Date': time.strftime('%a, %d %b %Y %H:%M:%S UTC', time.gmtime(when))}
    options = [word for name, value in fields.items()
               for word in ('-o', f'APT::FTPArchive::Release::{name}={value}')]
    folder = root / f'dists/{SUITE}'
    text = run('apt-ftparchive', *options, 'release', '.', cwd=folder)
    (folder / 'Release').write_bytes(text)


def sign(root, key):
    folder = root / f'dists/{SUITE}'
    gpg = ('gpg', '--batch', '--yes', '--pinentry-mode', 'error', '--local-user', key)
    run(*gpg, '--clearsign', '--output', folder / 'InRelease', folder / 'Release')
    run(*gpg, '--armor', '--detach-sign', '--output', folder / 'Release.gpg', folder / 'Release')
    public = run('gpg', '--batch', '--export', key)
    if not public:
        raise Failed(f'gpg has no public key {key}')
    (root / 'semel.gpg').write_bytes(public)


def make(packages, target, key):
    # Beside its place: a move within one file system is one step.
    fresh = target.with_name(target.name + '.new')
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        (fresh / 'pool').mkdir(parents=True)
        for package in packages:
            shutil.copyfile(package, fresh / 'pool' / package.name)
        names = architectures(packages)
        write_lists(fresh, names)
        write_release(fresh, names)
        if key:
            sign(fresh, key)
    except (OSError, Failed):
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('packages', type=Path)
    parser.add_argument('directory', type=Path)
    parser.add_argument('--key', help='ID or fingerprint of a secret key of gpg')
    given = parser.parse_args()
    packages = sorted(given.packages.glob('*.deb'))
    try:
        if not packages:
            raise Failed(f'{given.packages} holds no .deb')
        names = make(packages, given.directory.absolute(), given.key)
    except (OSError, Failed) as error:
        print(f'repository: {error}', file=sys.stderr)
        return 1
    print(f'repository: {len(packages)} packages for {" ".join(names)}, '
          f'{"signed" if given.key else "NOT signed"}, in {given.directory}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
