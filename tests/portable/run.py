#!/usr/bin/env python3
"""The README's commands in systems that have nothing yet: run.py [--suite NAME]... [--work DIR]

For each suite (bookworm and trixie; noble by name) debootstrap makes a minimal system with git and
ca-certificates alone. The last commit is cloned into it, and there `tools/run`, `tools/test` and
`tools/prove consumers` are called, which install what they need. Each system starts from an empty
build folder; `--ccache DIR` lends it a compiler cache, for a second look at the same commit.

A machine without debootstrap, without root, or without a way to the suite's packages skips the
suite and says so. The last line is `portable: N of M commands passed, S suites skipped`. Exit code
0: all that ran passed; 1: a command failed; 77: every suite was skipped.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ('tools/run', 'tools/test', 'tools/prove consumers')
PACKAGES = 'git,ca-certificates'
UBUNTU = ('noble',)
UBUNTU_SCRIPT = '/usr/share/debootstrap/scripts/gutsy'  # every Ubuntu since is made the same way
BOOTSTRAP_SECONDS = 1800
COMMAND_SECONDS = 3 * 3600
# Shown of a command that failed; the whole is in its log.
TAIL_LINES = 25

# Runs with mounts and processes of its own, so that nothing is left mounted or running.
INSIDE = r'''
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -sf pts/ptmx "$1/dev/ptmx"
[ -z "$3" ] || { mkdir -p "$1/ccache"; mount --bind "$3" "$1/ccache"; }
exec chroot "$1" /bin/bash -c "cd /src/semel && $2"
'''


class Skipped(Exception):
    """A suite cannot be had here; the text says why."""


def host_mirror():
    """Where this machine's own packages of Debian come from; none: debootstrap's own choice."""
    if shutil.which('apt-get') is None:
        return []
    done = subprocess.run(['apt-get', 'indextargets', '--format',
                           '$(REPO_URI) $(ORIGIN) $(CODENAME)', 'Created-By: Packages'],
                          capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        uri, origin, codename = (line.split() + ['', ''])[:3]
        if origin == 'Debian' and re.fullmatch('[a-z]+', codename):
            return [uri]
    return []


def bootstrap_command(suite, folder):
    # With mounts and processes of its own: one that is ended early leaves none behind.
    command = ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'debootstrap',
               '--variant=minbase', f'--include={PACKAGES}']
    if suite in UBUNTU:
        # Its libraries are in the part `universe`.
        command += ['--components=main,universe', suite, str(folder)]
        # A debootstrap that is older than the suite knows no script of its name. Its script for all
        # Ubuntus names two mirrors for this machine, of the retired suites and of the others.
        if not (Path('/usr/share/debootstrap/scripts') / suite).exists():
            mirrors = re.findall(r'default_mirror (\S+)', Path(UBUNTU_SCRIPT).read_text())
            command += [mirrors[1], UBUNTU_SCRIPT]
        return command
    return command + [suite, str(folder)] + host_mirror()


def run_for(command, seconds, **options):
    """The exit code; 124, as of timeout(1), if it took longer and was ended."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                              timeout=seconds, check=False, **options).returncode
    except subprocess.TimeoutExpired:
        return 124


def bootstrap(suite, work):
    """A new minimal system in work/suite; one that is made again starts from the packages."""
    if os.geteuid() != 0:
        raise Skipped('needs root')
    if shutil.which('debootstrap') is None:
        raise Skipped('needs debootstrap')
    folder = work / suite
    if folder.exists():
        shutil.rmtree(folder)
    log = work / f'{suite}-debootstrap.log'
    with open(log, 'w') as out:
        code = run_for(bootstrap_command(suite, folder), BOOTSTRAP_SECONDS, stdout=out)
    if code != 0:
        last = log.read_text(errors='replace').strip().splitlines()[-1:]
        raise Skipped(f'debootstrap ended with {code}: {"".join(last)}')
    for name in ('etc/resolv.conf', 'etc/hosts'):
        shutil.copyfile(f'/{name}', folder / name)
    (folder / 'src').mkdir(exist_ok=True)
    subprocess.run(['git', 'clone', '-q', '--no-hardlinks', str(ROOT), str(folder / 'src/semel')],
                   check=True)
    return folder


def environment(ccache):
    kept = {name: value for name, value in os.environ.items()
            if name.lower() in ('http_proxy', 'https_proxy', 'no_proxy') or name == 'SEMEL_JOBS'}
    kept |= {'HOME': '/root', 'LANG': 'C.UTF-8', 'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'}
    if ccache:
        kept['CCACHE_DIR'] = '/ccache'
    return kept


def run_inside(folder, command, log, ccache):
    """(exit code, seconds) of a command in the checkout inside of the system."""
    started = time.monotonic()
    with open(log, 'w') as out:
        code = run_for(['unshare', '--mount', '--pid', '--fork', '--kill-child', 'bash', '-c',
                        INSIDE, 'inside', str(folder), command, str(ccache or '')],
                       COMMAND_SECONDS, stdout=out, env=environment(ccache))
    return code, time.monotonic() - started


def versions(folder):
    """What of the system decides whether Semel builds there."""
    query = ("dpkg-query -W -f='${Package} ${Version}\\n' g++ cmake librocksdb-dev libssl-dev "
             "catch2 libtomlplusplus-dev 2>/dev/null || true")
    done = subprocess.run(['chroot', str(folder), 'bash', '-c', query], capture_output=True,
                          text=True, check=False)
    return ', '.join(done.stdout.split('\n')).strip(', ')


def prove_suite(suite, work, commands, ccache):
    """(passed, all) of the commands."""
    folder = bootstrap(suite, work)
    passed = 0
    for number, command in enumerate(commands):
        log = work / f'{suite}-{number}.log'
        code, seconds = run_inside(folder, command, log, ccache)
        lines = log.read_text(errors='replace').strip().splitlines()
        print(f'{suite:<10} {command:<24} {"passed" if code == 0 else f"FAILED {code}":<10} '
              f'{seconds:7.0f} s  {lines[-1] if lines else ""}', flush=True)
        passed += code == 0
        if code != 0:
            print('\n'.join(f'  | {line}' for line in lines[-TAIL_LINES:]), flush=True)
    print(f'{suite:<10} {versions(folder)}', flush=True)
    return passed, len(commands)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--suite', action='append', help='bookworm, trixie or noble; may repeat')
    parser.add_argument('--work', type=Path, default=ROOT / 'build/portable',
                        help='where the systems are made; 4 GiB each')
    parser.add_argument('--ccache', type=Path, help='a compiler cache to lend; none: all compiled')
    parser.add_argument('--command', action='append', help=f'instead of {", ".join(COMMANDS)}')
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    if chosen.ccache:
        chosen.ccache.mkdir(parents=True, exist_ok=True)
    suites = chosen.suite or ['bookworm', 'trixie']
    passed = asked = skipped = 0
    for suite in suites:
        try:
            good, of = prove_suite(suite, chosen.work.resolve(), chosen.command or COMMANDS,
                                   chosen.ccache and chosen.ccache.resolve())
        except Skipped as why:
            print(f'{suite:<10} skipped: {why}', flush=True)
            skipped += 1
            continue
        passed += good
        asked += of
    print(f'portable: {passed} of {asked} commands passed, {skipped} suites skipped')
    if asked == 0:
        return 77
    return 0 if passed == asked else 1


if __name__ == '__main__':
    sys.exit(main())
