"""What helpers of tests share that start a server and speak Redis' protocol to it."""

import ctypes
import signal
import socket
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # here, since a child that was just forked should load nothing


def end_with_parent():
    """For preexec_fn: the child is killed when the thread that starts it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def encode(*words):
    """A request as the bytes of an array of bulk strings."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b'*%d\r\n' % len(parts) + b''.join(b'$%d\r\n%s\r\n' % (len(p), p) for p in parts)


def read_reply(lines, status=bytes, error=bytes):
    """One reply, RESP2 or RESP3, of a binary file. Bulk strings are bytes, arrays lists and maps
    dicts; `status` and `error` make values of the other strings, whose bytes have no sign."""
    line = lines.readline()
    if not line.endswith(b'\r\n'):
        raise ConnectionError('the connection was closed')
    kind, text = line[:1], line[1:-2]
    if kind == b'+':
        return status(text)
    if kind == b'-':
        return error(text)
    if kind in b':(':
        return int(text)
    if kind == b',':
        return float(text)
    if kind == b'#':
        return text == b't'
    if kind == b'_':
        return None
    if kind not in b'$=!*~>%|':
        raise ConnectionError(f'not a reply: {line!r}')
    count = int(text)
    if count < 0:
        return None
    if kind in b'$=!':
        return lines.read(count + 2)[:-2]
    pairs = 2 if kind in b'%|' else 1
    items = [read_reply(lines, status, error) for _ in range(pairs * count)]
    if pairs == 1:
        return items
    keys = [tuple(key) if isinstance(key, list) else key for key in items[::2]]
    return dict(zip(keys, items[1::2]))


class Client:
    """One connection. Calling it sends a request and returns its reply, RESP2 or RESP3. A subclass
    chooses what simple strings and errors become."""

    status = staticmethod(bytes)
    error = staticmethod(bytes)

    def __init__(self, plug, seconds):
        plug.settimeout(seconds)
        self.plug = plug
        self.lines = plug.makefile('rb')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __call__(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words):
        self.raw(encode(*words))

    def raw(self, data):
        self.plug.sendall(data)

    def reply(self):
        return read_reply(self.lines, self.status, self.error)

    def rest(self):
        """Everything up to the end of the connection."""
        try:
            return self.lines.read()
        except ConnectionError:
            return b''

    def is_closed(self):
        try:
            return self.lines.readline() == b''
        except ConnectionError:
            return True

    def close(self):
        self.lines.close()
        self.plug.close()


def until(condition, what, seconds):
    """What `condition` returns as soon as that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)  # between two looks
    raise AssertionError(f'not within {seconds} s: {what}')


def ready_facts(path):
    """The names and values of a node's ready file; none while it is missing or being written."""
    file = Path(path)
    text = file.read_text(encoding='utf-8') if file.exists() else ''
    if not text.endswith('\n'):
        return {}
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


def free_port():
    """A port of 127.0.0.1 that is free now; another process may take it before its server does."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
