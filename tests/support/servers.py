"""Servers that tests and benches start on this machine: a node, a redis-server, or any program.

    with Node('build/dev/tools/semel/semel', '--io-threads', 2) as node:
        node.ask('SET', 'key', 'value')

A server ends with its `with`, also when its start fails, and when the process that started it is
killed. Nothing sleeps for a guessed time: until() looks again and again, with a bound.
"""

import contextlib
import ctypes
import http.client
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from resp import LOOPBACK, PATIENCE, RAISED, Client, Failed

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # here, since a child that was just forked should load nothing
TICKS = os.sysconf('SC_CLK_TCK')
REDIS_MAJOR = '7'


class CannotStart(AssertionError):
    """The server did not come up; the text says why, with the end of what it printed."""


class NoPeer(CannotStart):
    """There is no redis-server here whose answers ours can be compared with."""


def end_with_parent():
    """For preexec_fn: the child is killed when the thread that starts it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def until(condition, what, seconds=PATIENCE):
    """What `condition` returns as soon as that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)  # between two looks
    raise AssertionError(f'not within {seconds} s: {what}')


def ready_facts(path):
    """The names and values of a ready file; none while it is missing or being written."""
    file = Path(path)
    text = file.read_text(encoding='utf-8') if file.exists() else ''
    if not text.endswith('\n'):
        return {}
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


def free_ports(count):
    """Ports that are free now, and that the system does not give to connections that go out: a
    server that was killed must find its own free when it is started again. Another process may
    take one before its server does."""
    limits = Path('/proc/sys/net/ipv4/ip_local_port_range').read_text(encoding='ascii').split()
    first, last = (10_000, int(limits[0])) if int(limits[0]) > 12_000 else (int(limits[1]), 65_535)
    found = []
    for port in random.SystemRandom().sample(range(first, last), 50 * count):
        with socket.socket() as plug:
            try:
                plug.bind((LOOPBACK, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError('no free ports')


class Server:
    """A process that serves on this machine, in a folder of its own or in the one that is given.
    A subclass has its command in words(); it may be used when its ready file is there."""

    name = 'server'
    must_live = False  # True: kill() and end() raise if it had ended by itself, unnoticed
    host = LOOPBACK
    form = RAISED  # of the replies to a client()
    start_seconds = 30
    poll_seconds = 0.005  # between two looks whether it is ready
    reply_seconds = PATIENCE

    def __init__(self, folder=None, environment=None):
        """`environment`: what is added to ours. Nothing is started yet."""
        self.owns_folder = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix='semel_server_'))
        self.environment = environment or {}
        self.under = ()  # words in front of the command, as of a tool that runs it
        self.out, self.errors = self.folder / 'stdout', self.folder / 'stderr'
        self.ready = self.folder / 'ready'
        self.facts = {}  # what is in that file
        self.process = None
        self.is_expected = False  # that the process ends
        self.port = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.end()

    def start(self, ready=True):
        """Also after a kill() or a stop(). `ready`: whether to wait until it serves."""
        try:
            self.spawn()
            if ready:
                self.wait_ready()
        except BaseException:
            self.clean()
            raise
        return self

    def spawn(self):
        self.ready.unlink(missing_ok=True)
        self.is_expected = False
        # A child would end with the thread that starts it, and threads end before their tests.
        is_main = threading.current_thread() is threading.main_thread()
        with open(self.out, 'ab') as out, open(self.errors, 'ab') as errors:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [str(word) for word in (*self.under, *self.words())], stdin=subprocess.DEVNULL,
                stdout=out, stderr=errors, cwd=self.folder, env={**os.environ, **self.environment},
                preexec_fn=end_with_parent if is_main else None)

    def wait_ready(self):
        end = time.monotonic() + self.start_seconds
        while not self.is_ready():
            if self.process.poll() is not None:
                raise CannotStart(
                    f'{self.name} ended with {self.process.returncode}: {self.log_tail()}')
            if time.monotonic() > end:
                raise CannotStart(
                    f'{self.name} not ready in {self.start_seconds} s: {self.log_tail()}')
            time.sleep(self.poll_seconds)
        return self

    def is_ready(self):
        self.facts = ready_facts(self.ready)
        self.port = int(self.facts['port']) if 'port' in self.facts else self.port
        return bool(self.facts)

    def answers(self):
        try:
            return self.ask('PING') == b'PONG' and self.is_alive()
        except (OSError, Failed):
            return False

    @property
    def address(self):
        return f'{self.host}:{self.port}'

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        """Returns when each of its threads stands still: one that runs on another processor may
        answer a request that comes after the signal was sent."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait(self, seconds=PATIENCE):
        """Its exit code; negative: the signal that ended it."""
        self.is_expected = True
        return self.process.wait(seconds)

    def stop(self, seconds=PATIENCE):
        """Ends it as an operator does. Returns the exit code."""
        if self.is_alive():
            self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self):
        """kill -9, as a crash."""
        code = self.process.poll()
        self.process.kill()
        self.process.wait()
        self.process = None
        if self.must_live and code is not None and not self.is_expected:
            raise AssertionError(f'{self.name} had ended with {code}: {self.log_tail()}')

    def end(self):
        """Behind it nothing is left of the process, nor of a folder of its own."""
        try:
            if self.process is not None:
                self.kill()
        finally:
            self.clean()

    def clean(self):
        """end(), whatever the process has done."""
        self.is_expected = True
        if self.process is not None:
            self.kill()
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, form=None, seconds=None, host=None, port=None):
        return Client((host or self.host, port or self.port), seconds or self.reply_seconds,
                      form or self.form)

    def ask(self, *words, seconds=None):
        """One request on a connection of its own. An error reply raises Failed."""
        with self.client(RAISED, seconds) as client:
            return client.ask(*words)

    def log(self):
        return self.errors.read_text(encoding='utf-8', errors='replace')

    def log_tail(self):
        """The ends of what it printed."""
        return '\n'.join(path.read_text(encoding='utf-8', errors='replace')[-2000:].strip()
                         for path in dict.fromkeys((self.out, self.errors)) if path.exists())

    def cpu(self):
        """Seconds of processor time."""
        fields = Path(f'/proc/{self.pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / TICKS

    def rss(self):
        """Bytes of memory."""
        status = Path(f'/proc/{self.pid}/status').read_text(encoding='ascii')
        return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) * 1024

    def open_files(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))


class Node(Server):
    """`semel node` on a port that the system chooses, or on `port`; None: as `flags` say.
    "{dir}" in a flag is the folder. `under`: words in front of the program."""

    name = 'semel'
    must_live = True

    def __init__(self, program, *flags, folder=None, port=0, under=(), environment=None):
        super().__init__(folder, environment)
        self.program = Path(program).resolve()
        self.flags = [str(flag).replace('{dir}', str(self.folder)) for flag in flags]
        if port is not None:
            self.flags = ['--port', port, *self.flags]
        self.under = under

    def words(self):
        return [self.program, 'node', '--ready-file', self.ready, *self.flags]

    def spawn(self):
        if not os.access(self.program, os.X_OK):
            raise CannotStart(f'no program {self.program}')
        super().spawn()

    def page(self, path):
        """Status and text of the port for health and metrics."""
        port = int(self.facts['admin_port'])
        web = http.client.HTTPConnection(self.host, port, timeout=PATIENCE)
        with contextlib.closing(web):
            web.request('GET', path)
            answer = web.getresponse()
            return answer.status, answer.read().decode()


def redis_program():
    """redis-server, of the major version whose answers ours are compared with."""
    program = shutil.which('redis-server')
    if not program:
        raise NoPeer('redis-server is not installed')
    said = subprocess.run([program, '--version'], capture_output=True, text=True,
                          check=False).stdout
    version = re.search(r' v=(\S+)', said)
    if not version or not version[1].startswith(REDIS_MAJOR + '.'):
        raise NoPeer(f'the answers of redis-server {REDIS_MAJOR} are compared with; here is '
                     f'{version[1] if version else said.strip()}')
    return program


class Redis(Server):
    """A redis-server that keeps nothing, unless `flags` say otherwise."""

    name = 'redis-server'

    def __init__(self, *flags, folder=None, port=None):
        """`port`: the one that it is to have each time."""
        super().__init__(folder)
        self.port, self.flags, self.has_own_port = port, flags, port is not None

    def words(self):
        return [redis_program(), '--port', self.port, '--bind', self.host, '--save', '',
                '--appendonly', 'no', '--dir', self.folder, *self.flags]

    def spawn(self):
        if not self.has_own_port:
            self.port = free_ports(1)[0]
        super().spawn()

    def is_ready(self):
        return self.answers()

    def wait_ready(self):
        for _ in range(5):  # another process may take the port in between
            try:
                return super().wait_ready()
            except CannotStart as error:
                if self.has_own_port or 'in use' not in str(error):
                    raise
                self.spawn()
        return super().wait_ready()
