"""A RabbitMQ of its own for a test: loopback only, its own ports, folders, cookie and epmd.

    with Rabbit() as rabbit:
        channel = rabbit.connect().channel()

It shares nothing with a broker of the machine, and ends with the `with`, and with this process.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pika

# Not the one of /usr/sbin, which becomes the user rabbitmq and uses the machine's folders.
SERVER = Path('/usr/lib/rabbitmq/bin/rabbitmq-server')
START_SECONDS = 240
STOP_SECONDS = 20
PR_SET_PDEATHSIG = 1


class CannotStart(Exception):
    """The broker did not come up; the text says why, with the end of its log."""


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    """Held together until all are known, so that no two are one."""
    holders = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


class Rabbit:
    def __init__(self):
        self.port, self.dist_port, self.epmd_port = free_ports(3)
        self.folder = None
        self.processes = []  # epmd, broker

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix='semel_rabbit_'))
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def environment(self):
        folder = self.folder
        for name in ('conf_env', 'rabbitmq.conf'):
            (folder / name).touch()
        (folder / 'plugins').write_text('[].\n')
        cookie = folder / '.erlang.cookie'
        cookie.write_text(os.urandom(16).hex())
        cookie.chmod(0o400)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(('RABBITMQ_', 'ERL_', 'NOTIFY_SOCKET'))}
        return dict(
            kept, HOME=str(folder), ERL_EPMD_PORT=str(self.epmd_port),
            ERL_EPMD_ADDRESS='127.0.0.1', ERL_CRASH_DUMP=str(folder / 'crash'),
            RABBITMQ_NODENAME=f'semel-{os.getpid()}@localhost', RABBITMQ_NODE_PORT=str(self.port),
            RABBITMQ_NODE_IP_ADDRESS='127.0.0.1', RABBITMQ_DIST_PORT=str(self.dist_port),
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}',
            RABBITMQ_MNESIA_BASE=str(folder / 'data'), RABBITMQ_LOG_BASE=str(folder / 'log'),
            RABBITMQ_CONF_ENV_FILE=str(folder / 'conf_env'),
            RABBITMQ_CONFIG_FILE=str(folder / 'rabbitmq.conf'),
            RABBITMQ_CONFIG_FILES=str(folder / 'conf.d'),
            RABBITMQ_ADVANCED_CONFIG_FILE=str(folder / 'advanced.config'),
            RABBITMQ_ENABLED_PLUGINS_FILE=str(folder / 'plugins'),
            RABBITMQ_PID_FILE=str(folder / 'pid'),
            RUNNING_UNDER_SYSTEMD='true')  # the script becomes the broker: its pid is ours

    def spawn(self, command, environment):
        with open(self.folder / 'output', 'ab') as output:
            self.processes.append(subprocess.Popen(  # pylint: disable=consider-using-with
                command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, preexec_fn=end_with_parent))
        return self.processes[-1]

    def start(self):
        environment = self.environment()
        until = time.monotonic() + START_SECONDS
        # Started here, or the broker would start one that outlives it.
        epmd = self.spawn(['epmd', '-address', '127.0.0.1', '-port', str(self.epmd_port)],
                          environment)
        self.wait(epmd, until, lambda: socket.create_connection(
            ('127.0.0.1', self.epmd_port), 1).close())
        server = self.spawn([str(SERVER)], environment)
        self.wait(server, until, lambda: self.connect().close())

    def wait(self, process, until, attempt):
        while True:
            try:
                return attempt()
            except (OSError, pika.exceptions.AMQPError) as error:
                if process.poll() is not None or time.monotonic() > until:
                    raise CannotStart(f'{process.args[0]}: {error!r}\n{self.tail()}') from error
            time.sleep(0.2)

    def tail(self):
        text = (self.folder / 'output').read_text(errors='replace')
        return '\n'.join(text.splitlines()[-20:])

    def connect(self):
        return pika.BlockingConnection(pika.ConnectionParameters(
            '127.0.0.1', self.port, heartbeat=0, blocked_connection_timeout=60))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
