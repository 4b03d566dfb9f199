"""A node, or a redis-server, as a process; clients of it; what of both is measured."""

import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'support'))
from servers import encode, free_port, ready_facts  # noqa: E402,F401

TICKS = os.sysconf('SC_CLK_TCK')
SECONDS = 20  # within which whatever must happen happens


def pinned(core):
    """A process on a processor of its own, where there are two."""
    return ['taskset', '-c', str(core)] if (os.cpu_count() or 1) > 1 and shutil.which('taskset') \
        else []


def until(condition, seconds=SECONDS):
    """Whether it came true, and after how long."""
    began = time.monotonic()
    while True:
        if condition():
            return True, time.monotonic() - began
        if time.monotonic() - began > seconds:
            return False, seconds
        time.sleep(0.005)


class Client:
    """One connection; replies to single words only."""

    def __init__(self, port, receive_buffer=0, seconds=SECONDS):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(seconds)
        self.socket.connect(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, *words):
        """One line of reply, or a bulk with its line."""
        self.send(encode(*words))
        return self.reply()

    def reply_to(self, data):
        self.send(data)
        return self.reply()

    def reply(self):
        data = b''
        while not data.endswith(b'\r\n') or self.is_part(data):
            piece = self.socket.recv(1 << 20)
            if not piece:
                break
            data += piece
        return data

    @staticmethod
    def is_part(data):
        if not data.startswith(b'$') or data.startswith(b'$-1'):
            return False
        line, _, rest = data.partition(b'\r\n')
        return len(rest) < int(line[1:]) + 2

    def to_end(self):
        """What comes until the other side closes; None: it does not."""
        data = b''
        try:
            while True:
                piece = self.socket.recv(1 << 20)
                if not piece:
                    return data
                data += piece
        except ConnectionResetError:
            return data
        except TimeoutError:
            return None

    def is_closed(self):
        """Reads on without waiting; True: nothing more can come."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1 << 20):
                pass
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        self.socket.close()

    def cut(self):
        """Closes without leaving a port that waits."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.socket.close()


class Server:
    def __init__(self, args, place, files=0):
        def limit():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.log_path = os.path.join(place, 'log')
        with open(self.log_path, 'wb') as log:
            self.process = subprocess.Popen(pinned(0) + args, stdout=log, stderr=log, cwd=place,
                                            preexec_fn=limit)
        self.pid = self.process.pid
        self.port = 0

    def wait_until_ready(self, find_port):
        def answers():
            if self.process.poll() is not None:
                raise SystemExit(f'ended before it answered:\n{self.log()}')
            self.port = self.port or find_port()
            if not self.port:
                return False
            try:
                return Client(self.port).ask('PING') != b''
            except OSError:
                return False
        if not until(answers)[0]:
            raise SystemExit(f'does not answer:\n{self.log()}')
        return self

    def client(self, **kind):
        return Client(self.port, **kind)

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as file:
            return file.read()

    def cpu(self):
        """Seconds of processor time."""
        with open(f'/proc/{self.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss(self):
        with open(f'/proc/{self.pid}/status', encoding='ascii') as file:
            return int(re.search(r'VmRSS:\s+(\d+)', file.read()).group(1)) * 1024

    def open_files(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))

    def info(self, name):
        """A figure of INFO."""
        found = re.search(rb'^%s:(.*)\r$' % name.encode(), self.client().ask('INFO'), re.MULTILINE)
        return found.group(1).decode() if found else ''

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def start_node(program, place, *options, files=0):
    place = tempfile.mkdtemp(dir=place)
    ready = os.path.join(place, 'ready')
    args = [program, 'node', '--port', '0', '--bind', '127.0.0.1', '--io-threads', '1',
            '--ready-file', ready]

    def find_port():
        return int(ready_facts(ready).get('port', 0))
    node = Server(args + [str(option) for option in options], place, files)
    return node.wait_until_ready(find_port)


def start_redis(place, *options):
    """None: there is none on this machine."""
    if shutil.which('redis-server') is None:
        return None
    port = free_port()
    args = ['redis-server', '--port', str(port), '--save', '', *map(str, options)]
    return Server(args, tempfile.mkdtemp(dir=place)).wait_until_ready(lambda: port)
