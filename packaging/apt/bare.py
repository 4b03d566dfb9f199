"""New systems that have nothing, made by debootstrap, and scripts that are played in them.

Each step is printed with its seconds. What is passed in from this machine: how it reaches other
machines (proxies, registries of packages, as environment variables), and the certificates that it
trusts.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STEP_SECONDS_MAX = 1200

PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# How a machine is told where registries are. Nothing else of its environment is passed on.
PASSED = re.compile(r'(all|ftp|https?|no)_proxy|maven_(args|opts)|'
                    r'pip_(default_timeout|extra_index_url|index_url|proxy|trusted_host)|'
                    r'npm_config_(https_proxy|noproxy|proxy|registry)|'
                    r'go(insecure|nosumdb|noproxy|private|proxy|sumdb)', re.I)
CERTIFICATES = Path('etc/ssl/certs/ca-certificates.crt')

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

failures = []


class Skip(Exception):
    """This cannot be had here; the text says why."""


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f'newcomer: {what}', flush=True)
    return condition


def run(*command, environment=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors='replace', timeout=STEP_SECONDS_MAX, check=False,
                          stdin=subprocess.DEVNULL,
                          env={**(os.environ if environment is None else environment),
                               'LC_ALL': 'C.UTF-8', 'DEBIAN_FRONTEND': 'noninteractive'})


def passed_on():
    """The environment of what is played."""
    return {'PATH': PATH, 'HOME': '/root',
            **{name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}}


def certificates(file):
    if not file.exists():
        return []
    return re.findall('-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n',
                      file.read_text(encoding='utf-8'), re.S)


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
    """`name` stands in front of what is reported; `steps` counts it."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.steps = 0

    @classmethod
    def make(cls, suite, where):
        self = cls(suite, where / suite)
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
        # Also as in a container: dpkg does not sync each file, which on a busy disk is most of it.
        (self.folder / 'etc/dpkg/dpkg.cfg.d/unsafe-io').write_text('force-unsafe-io\n')
        self.report('debootstrap', started)
        return self

    def copy(self, name):
        """Another one, with what is in this one. Its steps are its own."""
        other = System(name, self.folder.with_name(name))
        done = run('cp', '--archive', '--reflink=auto', self.folder, other.folder)
        expect(done.returncode == 0, f'{name}: no copy: {done.stderr[-500:]}')
        return other

    def trust(self):
        """The certificates of this machine, too: its way to a registry may be signed by one of
        its own. Needs ca-certificates; what is installed later, such as Java, takes them over."""
        theirs = set(certificates(self.folder / CERTIFICATES))
        ours = [each for each in certificates('/' / CERTIFICATES) if each not in theirs]
        place = self.folder / 'usr/local/share/ca-certificates'
        for number, each in enumerate(ours):
            (place / f'machine-{number}.crt').write_text(each, encoding='utf-8')
        if ours:
            self.must('update-ca-certificates', 'update-ca-certificates')

    def report(self, step, started):
        self.steps += 1
        print(f'{self.name:<9} {time.monotonic() - started:5.0f} s  {step}', flush=True)

    def play(self, step, script, alone=False):
        started = time.monotonic()
        net = ['--net'] if alone else []
        done = run('unshare', '--mount', '--pid', '--fork', '--kill-child', *net, 'bash', '-c',
                   INSIDE, 'inside', self.folder, script, 'alone' if alone else '',
                   environment=passed_on())
        self.report(step, started)
        return done

    def must(self, step, script, alone=False):
        done = self.play(step, script, alone)
        expect(done.returncode == 0, f'{self.name}: {step} ends with {done.returncode}:\n'
                                     f'{done.stdout[-2000:]}{done.stderr[-2000:]}')
        return done


def block(page, language, heading):
    """The first block of that language below the heading."""
    text = (ROOT / page).read_text(encoding='utf-8')
    found = re.search(rf'^#+ {heading}$.*?```{language}\n(.*?)```', text, re.S | re.M)
    if not found:
        raise SystemExit(f'{page} shows no {language} below {heading!r}')
    return found[1]


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
