#!/usr/bin/env python3
"""Builds the image of Containerfile and runs it: check.py PACKAGES.

The base is a Debian 12 that debootstrap makes, with what semel-tools depends on; no registry is
asked. The container has a read-only root, no capabilities and no network. The node in it must
serve, be healthy, keep records over a restart, end with 0 when it is stopped, and be unhealthy when
it hangs; what must be refused is played as well. podman keeps all of it below a temporary folder.
Ends with 77, and says why, where no container can run. The last line is the figure.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IMAGE = 'localhost/semel'
BASE = 'localhost/semel-base'
HARDENED = ('--network', 'none', '--read-only', '--cap-drop=all',
            '--security-opt=no-new-privileges', '--health-interval=disable',
            # Below what any machine allows: raising a limit needs a right that may be missing.
            '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024')
failures = []


class Skip(Exception):
    """This machine cannot run the check; the text says why."""


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'container: {what}')


def run(*command, seconds=300, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=seconds, check=False, stdin=subprocess.DEVNULL, **options)


class Podman:
    def __init__(self, where):
        self.words = ('podman', '--runtime', 'runc', '--cgroup-manager', 'cgroupfs',
                      '--root', where / 'storage', '--runroot', where / 'run')

    def __call__(self, *command, **options):
        return run(*self.words, *command, **options)

    def start(self, *command):
        done = self('run', '-d', *HARDENED, '-v', 'data:/var/lib/semel', IMAGE, *command)
        return done.stdout.strip(), done

    def wait_healthy(self, container):
        """Asks until it is healthy, at most 20 times; bash in the container waits between them."""
        for _ in range(20):
            if self('healthcheck', 'run', container).returncode == 0:
                return True
            self('exec', container, '/bin/bash', '-c', 'read -t 0.5 <> <(:)')
        return False

    def shell(self, container, script):
        return self('exec', container, '/bin/bash', '-c', script)

    def send(self, container, commands, lines):
        """Lines that the node answers to inline commands."""
        script = (f"exec 3<>/dev/tcp/127.0.0.1/6379; printf '{commands}' >&3; "
                  f'for i in {{1..{lines}}}; do read -r -t 5 line <&3; echo "$line"; done')
        return self.shell(container, script).stdout.replace('\r', '').split()


def mirror():
    """The mirror that this system's own packages come from."""
    for path in (*Path('/etc/apt/sources.list.d').glob('*.sources'), Path('/etc/apt/sources.list')):
        if path.exists():
            found = re.search(r'^(?:URIs:|deb(?: +\[[^]]*\])?) *(\S+)', path.read_text(),
                              re.MULTILINE)
            if found and '/debian' in found[1]:
                return found[1].rstrip('/')
    raise Skip('the mirror of this system is not known, and debootstrap needs one')


def make_base(podman, where, package):
    depends = run('dpkg-deb', '-f', package, 'Depends').stdout
    names = ','.join(re.split(r'[ (|]', part.strip())[0] for part in depends.split(','))
    folder = where / 'base'
    done = run('debootstrap', '--variant=minbase', f'--include={names}', 'bookworm', folder,
               mirror(), seconds=900)
    if done.returncode != 0:
        raise Skip(f'debootstrap makes no base: {done.stdout[-200:]}{done.stderr[-200:]}')
    (folder / 'etc/apt/sources.list').unlink(missing_ok=True)  # nothing is to be downloaded
    archive = where / 'base.tar'
    run('tar', '-C', folder, '--exclude=./dev/*', '--exclude=./var/cache/apt/archives/*.deb',
        '-cf', archive, '.')
    done = podman('import', archive, BASE)
    if done.returncode != 0:
        raise Skip(f'podman takes no image: {done.stderr[-300:]}')


def build(podman, where, package):
    context = where / 'context'
    context.mkdir()
    for path in (HERE / 'Containerfile', HERE / 'semel.toml', package):
        shutil.copy(path, context)
    done = podman('build', '--isolation', 'chroot', '--format', 'docker', '--build-arg',
                  f'BASE={BASE}', '-t', IMAGE, '-f', context / 'Containerfile', context)
    expect(done.returncode == 0, f'no image: {done.stdout[-1500:]}{done.stderr[-1500:]}')
    return done.returncode == 0


def check_service(podman):
    container, started = podman.start()
    if started.returncode != 0:
        raise Skip(f'no container runs here: {started.stderr.strip()[-300:]}')
    expect(podman.wait_healthy(container), 'the node does not become healthy')
    answer = podman.send(container, 'SET job mine NX\\r\\nSET job other NX\\r\\nGET job\\r\\n', 4)
    expect(answer == ['+OK', '$-1', '$4', 'mine'], f'the node answers {answer}')
    said = podman.shell(container, "id -u; grep CapEff /proc/1/status; touch /x || echo refused"
                        ).stdout.split()
    expect(said == ['10001', 'CapEff:', '0' * 16, 'refused'], f'in the container: {said}')

    _, done = podman.start('--port', '0')
    other = done.stdout.strip()
    podman('wait', other, seconds=60)
    expect(podman('inspect', '-f', '{{.State.ExitCode}}', other).stdout.strip() == '2',
           'a second node on the same volume is not refused')

    expect(podman('kill', '-s', 'STOP', container).returncode == 0, 'no SIGSTOP')
    expect(podman('healthcheck', 'run', container).returncode != 0, 'a node that hangs is healthy')
    podman('kill', '-s', 'CONT', container)
    expect(podman.wait_healthy(container), 'a node that goes on is not healthy')

    podman('stop', '-t', '15', container)
    code = podman('inspect', '-f', '{{.State.ExitCode}}', container).stdout.strip()
    expect(code == '0', f'a stop ends the node with {code}')

    container, _ = podman.start()
    expect(podman.wait_healthy(container), 'the node does not start again')
    answer = podman.send(container, 'GET job\\r\\n', 2)
    expect(answer == ['$4', 'mine'], f'after a restart the node answers {answer}')
    podman('stop', '-t', '15', container)


def check_refusals(podman):
    container, _ = podman.start('--bind', '*')
    podman('wait', container, seconds=60)
    done = podman('logs', container)
    expect('set a password' in done.stdout + done.stderr,
           f'a node without a password opens to all: {done.stdout}{done.stderr}')


def main():
    packages = sorted(Path(sys.argv[1]).glob('semel-tools_*.deb'))
    if len(packages) != 1:
        print(f'container: {sys.argv[1]} holds {len(packages)} packages semel-tools, not 1')
        return 1
    where = Path(tempfile.mkdtemp())
    podman = Podman(where)
    try:
        for program in ('podman', 'runc', 'debootstrap'):
            if not shutil.which(program):
                raise Skip(f'{program} is missing')
        if os.geteuid() != 0:
            raise Skip('debootstrap needs root')
        make_base(podman, where, packages[0])
        if build(podman, where, packages[0]):
            check_service(podman)
            check_refusals(podman)
            size = int(podman('inspect', '-f', '{{.Size}}', IMAGE).stdout)
            base = int(podman('inspect', '-f', '{{.Size}}', BASE).stdout)
            print(f'container: {(size - base) >> 20} MiB beside a base of {base >> 20} MiB')
    except Skip as error:
        print(f'container: skipped, {error}')
        return 77
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            podman('rm', '-f', '-a', '-t', '0')
            run('umount', where / 'storage/overlay')
        shutil.rmtree(where, ignore_errors=True)
    print(f'container: built, run and stopped, {len(failures)} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
