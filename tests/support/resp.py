"""Redis' protocol for tests and benches: requests, replies in several forms, and one client."""

import collections
import io
import socket
import threading

LOOPBACK = '127.0.0.1'
PATIENCE = 20  # seconds until something that must happen counts as missing


class Failed(Exception):
    """An error reply, where errors are raised."""


class ErrorReply(str):
    """The text of an error reply, without its minus."""


def raise_failed(text):
    raise Failed(text.decode(errors='replace'))


def text_of(data):
    return data.decode('latin1')


# What simple strings and errors become. Bulk strings are always bytes.
Form = collections.namedtuple('Form', 'status error')
RAISED = Form(bytes, raise_failed)
PLAIN = Form(bytes, bytes)
SIGNED = Form(lambda text: '+' + text_of(text), lambda text: '-' + text_of(text))
TEXTS = Form(text_of, lambda text: ErrorReply(text_of(text)))
RAW = Form(None, None)  # a reply as the bytes that were sent


def encode(*words):
    """A request as the bytes of an array of bulk strings."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b'*%d\r\n' % len(parts) + b''.join(b'$%d\r\n%s\r\n' % (len(p), p) for p in parts)


def read_line(lines):
    line = lines.readline()
    if not line.endswith(b'\r\n'):
        raise ConnectionError('the connection was closed')
    return line


def read_reply(lines, form=RAISED):
    """One reply, RESP2 or RESP3, of a binary file. Arrays and sets are lists, maps are dicts."""
    line = read_line(lines)
    kind, text = line[:1], line[1:-2]
    if kind == b'+':
        return form.status(text)
    if kind == b'-':
        return form.error(text)
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
    items = [read_reply(lines, form) for _ in range(pairs * count)]
    if pairs == 1:
        return items
    keys = [tuple(key) if isinstance(key, list) else key for key in items[::2]]
    return dict(zip(keys, items[1::2]))


def read_raw(lines):
    """One reply, or one request, as its bytes. A loop: the replies of scripts have any depth."""
    parts, pending = [], 1
    while pending:
        pending -= 1
        line = read_line(lines)
        parts.append(line)
        kind = line[:1]
        if kind in b'$=!' and int(line[1:]) >= 0:
            parts.append(lines.read(int(line[1:]) + 2))
        elif kind in b'*~>%|':
            pending += max(int(line[1:]), 0) * (2 if kind in b'%|' else 1)
    return b''.join(parts)


def words_of(request):
    """The words of a request's bytes. None are those of an inline one."""
    return read_reply(io.BytesIO(request)) if request.startswith(b'*') else []


def connected(address, seconds=PATIENCE):
    """A socket. `address`: a port of this machine, a (host, port), or the path of a Unix socket."""
    if isinstance(address, (str, bytes)):
        plug = socket.socket(socket.AF_UNIX)
        plug.settimeout(seconds)
        plug.connect(address)
        return plug
    plug = socket.create_connection(
        (LOOPBACK, address) if isinstance(address, int) else address, timeout=seconds)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plug


class Client:
    """One connection, for one thread. Each wait for bytes ends with TimeoutError after `seconds`;
    a connection that ends instead of a reply raises ConnectionError."""

    def __init__(self, address, seconds=PATIENCE, form=RAISED):
        """`address`: as for connected(), or a socket that is connected."""
        self.plug = address if isinstance(address, socket.socket) else connected(address, seconds)
        self.plug.settimeout(seconds)
        self.lines = self.plug.makefile('rb')
        self.form = form

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, *words):
        """Sends a request and returns its reply. Calling the client is the same."""
        self.send(*words)
        return self.reply()

    __call__ = ask

    def all(self, requests):
        """The replies to requests that are sent together."""
        data = b''.join(encode(*words) for words in requests)
        if len(data) < 1 << 16:
            self.raw(data)
            return [self.reply() for _ in requests]
        # Both sides would stop if neither read: the buffers between them may be smaller.
        sender = threading.Thread(target=self.raw, args=(data,))
        sender.start()
        try:
            return [self.reply() for _ in requests]
        finally:
            sender.join()

    def send(self, *words):
        self.raw(encode(*words))

    def raw(self, data):
        self.plug.sendall(data)

    def reply(self):
        return read_raw(self.lines) if self.form is RAW else read_reply(self.lines, self.form)

    def rest(self):
        """All bytes up to the end of the connection."""
        try:
            return self.lines.read()
        except ConnectionError:
            return b''

    def is_closed(self):
        """Waits for the next line or the end. True: it is the end."""
        try:
            return self.lines.readline() == b''
        except ConnectionError:
            return True

    def close(self):
        self.lines.close()
        self.plug.close()
