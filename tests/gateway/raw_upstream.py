"""An upstream that reads HTTP/1.1 strictly as bytes come, for tests of how the gateway frames.

It may reply to a head before it has read the body, as servers do that need none of it. What it read
is in `requests`, in order, each with the number of its connection and whether its body came whole.
"""

import collections
import socket
import threading

Seen = collections.namedtuple('Seen', 'connection method target fields body is_whole')


class Ended(Exception):
    """The other side has closed, or `Hang up` was asked for."""


class Reader:
    def __init__(self, plug):
        self.plug = plug
        self.buffer = b''

    def fill(self):
        data = self.plug.recv(65536)
        if not data:
            raise Ended
        self.buffer += data

    def until(self, mark):
        while mark not in self.buffer:
            self.fill()
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def exactly(self, count):
        while len(self.buffer) < count:
            self.fill()
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def body(self, fields):
        if 'chunked' in fields.get('transfer-encoding', []):
            body = b''
            while size := int(self.until(b'\r\n').split(b';')[0], 16):
                body += self.exactly(size)
                self.exactly(2)
            self.until(b'\r\n')
            return body
        return self.exactly(int(fields.get('content-length', ['0'])[0]))


class RawUpstream:
    """`reply(method, target, count)` has the bytes to send, or None: the connection is closed.
    `count`: how many heads it has read before. A str of `early` names methods answered early."""

    def __init__(self, reply, early=('GET', 'HEAD', 'OPTIONS')):
        self.reply = reply
        self.early = early
        self.requests = []
        self.connections = 0
        self.lock = threading.Lock()
        self.plug = socket.create_server(('127.0.0.1', 0), backlog=128)
        self.port = self.plug.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                plug, _ = self.plug.accept()
            except OSError:
                return
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            threading.Thread(target=self.serve, args=(plug, self.connections), daemon=True).start()

    def serve(self, plug, number):
        with plug:
            reader = Reader(plug)
            try:
                while self.exchange(plug, reader, number):
                    pass
            except (Ended, OSError, ValueError):
                pass

    def exchange(self, plug, reader, number):
        lines = reader.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
        method, target = lines[0].split(' ')[:2]
        fields = collections.defaultdict(list)
        for line in lines[1:]:
            name, _, value = line.partition(':')
            fields[name.lower()].append(value.strip())
        with self.lock:
            at = len(self.requests)
            self.requests.append(Seen(number, method, target, dict(fields), b'', False))
        is_early = method in self.early
        answer = self.reply(method, target, at)
        if is_early and answer is not None:
            plug.sendall(answer)
        if answer is None and is_early:
            return False
        body = reader.body(fields)
        with self.lock:
            self.requests[at] = self.requests[at]._replace(body=body, is_whole=True)
        if answer is None:
            return False
        if not is_early:
            plug.sendall(answer)
        return True

    def targets(self):
        with self.lock:
            return [seen.target for seen in self.requests]

    def stop(self):
        self.plug.close()


def ok(text, extra=b''):
    return b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s' % (len(text), extra, text)
