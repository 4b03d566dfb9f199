"""The server that a client suite talks to: our node, or a redis-server to check the suite itself.

    with open_target('semel', program='build/release/tools/semel/semel') as target:
        reply = target.call('PING')

A target has a host and a port of its own; it ends with the `with`, and with this process.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'support'))
import servers  # noqa: E402
from servers import encode, end_with_parent, free_port, ready_facts  # noqa: E402,F401

START_SECONDS = 30
REDIS_MAJOR = '7'


class CannotStart(Exception):
    """The server did not come up; the text says why, with the end of what it printed."""


class ServerError(Exception):
    """An error reply."""


def raise_error(text):
    raise ServerError(text.decode(errors='replace'))


class Target:
    host = '127.0.0.1'

    def __init__(self):
        self.port = None
        self.process = None
        self.folder = None

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix='semel-target-'))
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def spawn(self, command):
        log = open(self.folder / 'log', 'wb')
        with log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=self.folder, preexec_fn=end_with_parent)

    def wait_until(self, is_ready):
        """Ends when is_ready() is true; the server may need some of these asked."""
        end = time.monotonic() + START_SECONDS
        while not is_ready():
            if self.process.poll() is not None:
                raise CannotStart(f'{self.name} ended with {self.process.returncode}: '
                                  f'{self.log_tail()}')
            if time.monotonic() > end:
                raise CannotStart(f'{self.name} not ready in {START_SECONDS} s: {self.log_tail()}')
            time.sleep(0.01)

    def log_tail(self):
        return (self.folder / 'log').read_text(errors='replace')[-2000:].strip()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_alive(self):
        return self.process.poll() is None

    def environment(self):
        """What a suite finds besides host and port."""
        return {}

    def answer(self, words):
        """What a suite reads after it has printed that it needs something."""
        return f'failed this server does nothing for suites: {words}'

    def connect(self):
        return Client(self.host, self.port)

    def call(self, *words):
        """One command on a connection of its own."""
        with self.connect() as client:
            return client(*words)

    def knows(self, *words):
        """Whether it knows a command: anything but "unknown command" is a yes."""
        try:
            self.call(*words)
        except ServerError as error:
            return not str(error).startswith('ERR unknown command')
        return True


class NoPeer(CannotStart):
    """There is no redis-server here that can be compared with."""


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


class RedisTarget(Target):
    name = 'redis-server'

    def __init__(self, scripts=True):
        super().__init__()
        self.hidden = [] if scripts else ['EVAL', 'EVALSHA', 'EVAL_RO', 'EVALSHA_RO', 'SCRIPT']

    def start(self):
        program = redis_program()
        for _ in range(5):  # another process may take the port in between
            self.port = free_port()
            self.spawn([program, '--port', str(self.port), '--bind', self.host, '--save', '',
                        '--appendonly', 'no', '--dir', str(self.folder),
                        *[word for name in self.hidden for word in ('--rename-command', name, '')]])
            try:
                self.wait_until(self.answers)
                return
            except CannotStart as error:
                if 'in use' not in str(error):
                    raise
        raise CannotStart('no free port in five tries')

    def answers(self):
        try:
            return self.call('PING') == b'PONG' and self.is_alive()
        except OSError:
            return False


class SemelTarget(Target):
    name = 'semel'

    def __init__(self, program, options=()):
        super().__init__()
        self.program = Path(program).resolve()
        self.options = list(options)
        self.ready = {}

    def environment(self):
        return {'SEMEL_TEST_PROGRAM': str(self.program)}

    def start(self):
        if not os.access(self.program, os.X_OK):
            raise CannotStart(f'no program {self.program}')
        file = self.folder / 'ready'
        self.spawn([str(self.program), 'node', '--port', '0', '--ready-file', str(file),
                    *self.options])

        def is_ready():
            self.ready = ready_facts(file)
            return 'port' in self.ready
        self.wait_until(is_ready)
        self.port = int(self.ready['port'])


TARGETS = ('semel', 'redis', 'redis-without-scripts')


def open_target(against, program=None, options=()):
    """`against` is one of TARGETS."""
    if against == 'semel':
        return SemelTarget(program, options)
    return RedisTarget(scripts=against == 'redis')


class Client(servers.Client):
    """Errors are raised."""

    error = staticmethod(raise_error)

    def __init__(self, host, port):
        super().__init__(socket.create_connection((host, port)), START_SECONDS)
