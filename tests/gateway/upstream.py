"""An upstream that counts its effects, and breaks where it is told to.

A request's header X-Break says at which point: before-reply closes without a word, in-head and
in-body close in the middle, slow waits until the test lets it go, status-N answers with it. Each
request that is read whole is an effect, whatever is answered.
"""

import socket
import ssl
import threading


class Upstream:
    def __init__(self, port=0, begins=True):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(('127.0.0.1', port))
        self.listener.listen(128)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.effects = {}  # by key: how often
        self.requests = []  # (method, target, headers, body)
        self.let_go = threading.Event()
        self.arrived = threading.Semaphore(0)
        if begins:
            self.begin()

    def begin(self):
        threading.Thread(target=self.accept_all, daemon=True).start()

    def close(self):
        self.let_go.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept_all(self):
        while True:
            try:
                plug, _ = self.listener.accept()
            except ssl.SSLError:
                continue  # a client that does not trust it
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plug,), daemon=True).start()

    def serve(self, plug):
        with plug, plug.makefile('rb') as lines:
            try:
                while self.serve_one(plug, lines):
                    pass
            except OSError:
                pass

    def read(self, lines):
        first = lines.readline().decode('latin-1').split()
        if len(first) != 3:
            return None
        headers = []
        while (line := lines.readline().decode('latin-1').strip()):
            name, _, value = line.partition(':')
            headers.append((name.lower(), value.strip()))
        found = dict(headers)
        body = b''
        if found.get('transfer-encoding') == 'chunked':
            while (size := int(lines.readline(), 16)):
                body += lines.read(size)
                lines.readline()
            lines.readline()
        else:
            body = lines.read(int(found.get('content-length', 0)))
        return first[0], first[1], headers, body

    def serve_one(self, plug, lines):
        request = self.read(lines)
        if request is None:
            return False
        method, target, headers, body = request
        found = dict(headers)
        key = found.get('idempotency-key', target)
        with self.lock:
            self.requests.append(request)
            self.effects[key] = self.effects.get(key, 0) + 1
            effect = self.effects[key]
        self.arrived.release()
        how = found.get('x-break', '')
        if how == 'before-reply':
            return False
        if how == 'slow':
            self.let_go.wait(30)
        status = int(how.removeprefix('status-')) if how.startswith('status-') else 201
        text = b'x' * int(found['x-bytes']) if 'x-bytes' in found else (
            f'{method} {target} {len(body)} effect {effect}\n'.encode())
        extra = b'X-Upstream: yes\r\nSet-Cookie: a=b\r\nConnection: X-Hop\r\nX-Hop: 1\r\n'
        if how == 'chunked':
            head = b'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n' + extra + b'\r\n'
            plug.sendall(head + b'%x\r\n' % len(text) + text + b'\r\n0\r\n\r\n')
            return True
        head = (f'HTTP/1.1 {status} Status\r\nContent-Length: {len(text)}\r\n').encode() + extra
        if how == 'hints':
            head = b'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' + head
        if how == 'in-head':
            plug.sendall(head[:-4])
            return False
        if how == 'in-body':
            plug.sendall(head + b'\r\n' + text[:3])
            return False
        plug.sendall(head + b'\r\n' + (b'' if method == 'HEAD' else text))
        return True
