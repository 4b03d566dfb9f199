"""A node, or a redis-server, as a process; clients of it; what of both is measured."""

import os
import re
import shutil
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'support'))
import resp  # noqa: E402
import servers  # noqa: E402
from resp import encode  # noqa: E402,F401

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


class Client(resp.Client):
    """Replies are bytes, as they came."""

    def __init__(self, port, receive_buffer=0, seconds=SECONDS):
        plug = socket.socket()
        if receive_buffer:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plug.settimeout(seconds)
        plug.connect(('127.0.0.1', port))
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(plug, seconds, resp.RAW)

    def reply_to(self, data):
        self.raw(data)
        return self.reply()

    def to_end(self):
        """What comes until the other side closes; None: it does not."""
        data = b''
        try:
            while True:
                piece = self.plug.recv(1 << 20)
                if not piece:
                    return data
                data += piece
        except ConnectionResetError:
            return data
        except TimeoutError:
            return None

    def is_closed(self):
        """Reads on without waiting; True: nothing more can come."""
        self.plug.setblocking(False)
        try:
            while self.plug.recv(1 << 20):
                pass
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True

    def cut(self):
        """Closes without leaving a port that waits."""
        self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.close()


class Flooded:
    def client(self, form=None, seconds=None, **kind):
        if form is not None:  # as is_ready() of a server asks for it
            return super().client(form, seconds)
        return Client(self.port, **kind)

    def info(self, name):
        """A figure of INFO."""
        found = re.search(rb'^%s:(.*)\r$' % name.encode(), self.client().ask('INFO'), re.MULTILINE)
        return found.group(1).decode() if found else ''


class Node(Flooded, servers.Node):
    def __init__(self, program, place, *options, files=0):
        """`files`: the limit of open files; 0: ours."""
        limit = ['prlimit', f'--nofile={files}'] if files else []
        super().__init__(program, '--bind', '127.0.0.1', '--io-threads', 1, *options,
                         folder=tempfile.mkdtemp(dir=place), under=[*limit, *pinned(0)])


class Redis(Flooded, servers.Redis):
    def __init__(self, place, *options):
        super().__init__(*options, folder=tempfile.mkdtemp(dir=place))
        self.under = pinned(0)


def redis_for(place, *options):
    """Not started yet. None: there is none on this machine."""
    try:
        servers.redis_program()
    except servers.NoPeer:
        return None
    return Redis(place, *options)
