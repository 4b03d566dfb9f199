"""A gateway process and an upstream whose behaviour a request chooses, for tests and proofs.

The upstream counts an effect for each request it has read whole, by the request's body. What it
does then is in the query: do=status&code=500, do=login, do=close, do=half, do=hang, do=big&bytes=N,
do=chunked, do=garbage, do=interim, do=early, do=hold&name=X (until release(X)).
"""

import collections
import os
import socket
import socketserver
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import servers  # noqa: E402

WITHIN = 20  # seconds for anything that must happen


def receive_head(stream):
    """The lines of a head, without the empty one; None: the other side has gone."""
    lines = []
    while True:
        line = stream.readline(65536)
        if not line:
            return None
        if line in (b'\r\n', b'\n'):
            return lines
        lines.append(line.rstrip(b'\r\n').decode('latin-1'))


def fields_of(lines):
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(':')
        fields.setdefault(name.lower(), []).append(value.strip())
    return fields


def receive_body(stream, fields):
    if 'chunked' in fields.get('transfer-encoding', []):
        body = b''
        while True:
            size = int(stream.readline().split(b';')[0], 16)
            if size == 0:
                while stream.readline() not in (b'\r\n', b''):
                    pass
                return body
            body += stream.read(size)
            stream.readline()
    length = int(fields.get('content-length', ['0'])[0])
    body = stream.read(length)
    if len(body) != length:
        raise ConnectionError('the body ended early')
    return body


class Upstream:
    """Listens on a free port until stop()."""

    def __init__(self, port=0, handler=None):
        self.effects = collections.Counter()
        self.requests = []  # (method, target, fields, body)
        self.lock = threading.Lock()
        self.held = collections.defaultdict(threading.Event)  # by name: it may go on
        self.arrived = collections.defaultdict(threading.Event)  # by name: it is held
        self.open = set()
        upstream = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self):
                with upstream.lock:
                    upstream.open.add(self.connection)
                try:
                    while upstream.serve(self.rfile, self.wfile, self.connection):
                        pass
                except (OSError, ValueError):
                    pass
                finally:
                    with upstream.lock:
                        upstream.open.discard(self.connection)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, client_address):
                pass

        self.handler = handler or self.reply
        self.server = Server(('127.0.0.1', port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def serve(self, rfile, wfile, connection):
        lines = receive_head(rfile)
        if lines is None:
            return False
        method, target, _ = lines[0].split(' ')
        fields = fields_of(lines)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))
        if query.get('do') == 'early':
            wfile.write(b'HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong')
            return False
        body = receive_body(rfile, fields)
        with self.lock:
            self.effects[body] += 1
            number = self.effects[body]
            self.requests.append((method, target, fields, body))
        return self.handler(wfile, connection, method, query, body, number)

    def reply(self, wfile, connection, method, query, body, number):
        do = query.get('do', 'ok')
        if do == 'hold':
            name = query['name']
            self.arrived[name].set()
            self.held[name].wait(WITHIN)
        if do == 'close':
            return False
        if do == 'half':
            wfile.write(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf')
            return False
        if do == 'hang':
            self.held[query.get('name', 'hang')].wait(WITHIN)
            return False
        if do == 'garbage':
            wfile.write(b'SMTP 220 hello\r\n\r\n')
            return False
        if do == 'interim':
            wfile.write(b'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
        if do == 'chunked':
            wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\n'
                        b'X-Hop: 1\r\nX-End: 2\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n')
            return True
        if do == 'upgrade':
            wfile.write(b'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n'
                        b'Upgrade: websocket\r\n\r\n')
            while data := connection.recv(4096):
                connection.sendall(data.upper())
            return False
        status = int(query.get('code', '201' if method == 'POST' else '200'))
        text = b'%d:%s' % (number, body)
        if 'bytes' in query:
            text = b'x' * int(query['bytes'])
        head = f'HTTP/1.1 {status} Status\r\nX-Effect: {number}\r\n'
        if do == 'login':
            head += f'Set-Cookie: session={number}\r\nset-cookie: b={number}\r\nDate: x\r\n'
        if status != 204:
            head += f'Content-Length: {len(text)}\r\n'
        empty = method == 'HEAD' or status in (204, 304)
        wfile.write(head.encode() + b'\r\n' + (b'' if empty else text))
        return True

    def release(self, name):
        self.held[name].set()

    def cut(self):
        """Ends all connections at once, as a crash does."""
        with self.lock:
            for connection in list(self.open):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for event in list(self.held.values()):
            event.set()
        self.cut()


class Gateway(servers.Server):
    """A process of `semel gateway`. `routes` is TOML behind [gateway]. Requests without a route
    pass, unless `settings` say otherwise. It is started at once.
    """

    name = 'gateway'
    must_live = True

    def __init__(self, program, upstream_port, routes, directory, flags=(), settings='',
                 has_log=True, under=()):
        super().__init__(directory)
        self.program = os.path.abspath(program)
        self.under = under
        self.access_log = os.path.join(directory, 'access.log')
        config = os.path.join(directory, 'gateway.toml')
        with open(config, 'w', encoding='utf-8') as file:
            default = '' if 'default = ' in settings else 'default = "pass"\n'
            file.write('[gateway]\n' + settings + '\n' + default + routes)
        if '--upstream' not in flags:
            flags = ['--upstream', f'http://127.0.0.1:{upstream_port}', *flags]
        if 'listen' not in settings:
            flags = ['--listen', '127.0.0.1:0', *flags]
        self.flags = ['--config', config, *flags]
        if '--admin' not in flags:
            self.flags += ['--admin', '127.0.0.1:0']
        if has_log:
            self.flags += ['--access-log', self.access_log]
        self.start()

    def words(self):
        return [self.program, 'gateway', '--ready-file', self.ready, *self.flags]

    @property
    def admin_port(self):
        return int(self.facts['admin-port'])

    def end(self):
        """Raises also if a stop() before has not ended it well."""
        code = self.process.poll() if self.process is not None else None
        super().end()
        if code not in (None, 0):
            raise AssertionError(f'the gateway ended with {code}')

    def request(self, method='POST', target='/pay', body=b'', fields=None, key=None, who='alice',
                timeout=WITHIN):
        with Client(self.port, timeout) as client:
            return client.request(method, target, body, fields, key, who)

    def admin(self, method, target, fields=None):
        with Client(self.admin_port) as client:
            return client.request(method, target, b'', {'Host': '127.0.0.1', **(fields or {})},
                                  None, None)

    def metric(self, series):
        text = self.admin('GET', '/metrics').body.decode()
        for line in text.splitlines():
            if line.startswith(series + ' '):
                return float(line.split()[-1])
        return 0.0

    def wait_for_metric(self, series, least):
        """The value, once it is `least` or after a while: a request is counted behind its reply."""
        deadline = time.monotonic() + WITHIN
        while (value := self.metric(series)) < least and time.monotonic() < deadline:
            time.sleep(0.01)  # a poll interval
        return value


class Reply:
    def __init__(self, lines, body):
        self.status = int(lines[0].split(' ')[1])
        self.fields = fields_of(lines)
        self.body = body

    @property
    def is_replay(self):
        return 'idempotency-replayed' in self.fields

    @property
    def problem(self):
        import json
        return json.loads(self.body)['type'].rsplit(':', 1)[1]


class Client:
    """One connection, on which bytes can also be sent as they are."""

    def __init__(self, port, timeout=WITHIN):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile('rb')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stream.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, method='GET'):
        """None: the gateway has closed the connection."""
        lines = receive_head(self.stream)
        if lines is None:
            return None
        fields = fields_of(lines)
        status = int(lines[0].split(' ')[1])
        if status == 100:
            return Reply(lines, b'')
        if method == 'HEAD' or status in (204, 304, 101):
            return Reply(lines, b'')
        if 'content-length' not in fields and 'transfer-encoding' not in fields:
            return Reply(lines, self.stream.read())
        return Reply(lines, receive_body(self.stream, fields))

    def request(self, method='POST', target='/pay', body=b'', fields=None, key=None, who='alice'):
        self.send(message(method, target, body, fields, key, who))
        return self.receive(method)


def message(method='POST', target='/pay', body=b'', fields=None, key=None, who='alice'):
    lines = [f'{method} {target} HTTP/1.1']
    if 'Host' not in (fields or {}):
        lines.append('Host: shop')
    if who:
        lines.append(f'Authorization: {who}')
    if key is not None:
        lines.append(f'Idempotency-Key: {key}')
    for name, value in (fields or {}).items():
        lines.append(f'{name}: {value}')
    if body or method in ('POST', 'PUT'):
        lines.append(f'Content-Length: {len(body)}')
    return ('\r\n'.join(lines) + '\r\n\r\n').encode() + body


def handshake():
    """The fields by which a client asks for a websocket (RFC 6455)."""
    return {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
            'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ=='}


def new_directory():
    return tempfile.TemporaryDirectory(prefix='semel_gateway_')
