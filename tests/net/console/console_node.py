"""A node with its console, for the tests of this folder: HTTP as a browser sends it, and RESP."""

import http.client
import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'support'))
import servers  # noqa: E402
from resp import PATIENCE, PLAIN  # noqa: E402


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def word(self):
        """The kind of an error, beside its status."""
        return self.status, self.json().get('error')


class Console:
    """What a browser sends to an admin port."""

    def __init__(self, case, admin):
        self.case, self.admin = case, admin

    def plug(self):
        """A bare connection to the admin port."""
        plug = socket.create_connection(('127.0.0.1', self.admin), timeout=PATIENCE)
        self.case.addCleanup(plug.close)
        return plug

    def origin(self):
        return f'http://127.0.0.1:{self.admin}'

    def get(self, path, **headers):
        return self.exchange('GET', path, None, headers)

    def post(self, path, body, **headers):
        return self.exchange('POST', f'/console/api/{path}', body,
                             {'Origin': self.origin(), 'Content-Type': 'application/json',
                              **headers})

    def exchange(self, method, path, body, headers):
        """A header that is None is left out; '_' in names stands for '-'."""
        web = http.client.HTTPConnection('127.0.0.1', self.admin, timeout=PATIENCE)
        try:
            bytes_ = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            chosen = {'Host': f'127.0.0.1:{self.admin}',
                      **{name.replace('_', '-'): value for name, value in headers.items()}}
            web.request(method, path, bytes_,
                        {name: value for name, value in chosen.items() if value is not None})
            answer = web.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            web.close()

    def login(self, user='default', password='', **headers):
        """A session; of a login that is refused the answer."""
        answer = self.post('login', {'user': user, 'password': password}, **headers)
        return Session(self, answer) if answer.status == 200 else answer


class ConsoleNode(Console, servers.Node):
    """Ends when the test case does. Errors are values: bytes, as other strings."""

    form = PLAIN

    def __init__(self, case, semel, *flags):
        servers.Node.__init__(self, semel, '--admin-port', 0, '--console', 'yes', '--shards', 4,
                              *flags)
        case.addCleanup(self.end)
        self.start()
        Console.__init__(self, case, int(self.facts['admin_port']))

    def logged(self, text):
        return servers.until(lambda: text in self.log(), f'{text!r} in the log')

    def client(self, **options):
        client = super().client(**options)
        self.case.addCleanup(client.close)
        return client


class Session:
    def __init__(self, node, answer):
        self.node = node
        self.csrf = answer.json()['csrf']
        self.set_cookie = answer.headers['Set-Cookie']
        self.cookie = self.set_cookie.split(';')[0]

    def post(self, path, body=None, **headers):
        return self.node.post(path, body or {}, **{'Cookie': self.cookie,
                                                   'X_Semel_Csrf': self.csrf, **headers})

    def user(self):
        return self.node.get('/console/api/session', Cookie=self.cookie).json()['user']

    def key(self, namespace, key):
        return self.post('key', {'namespace': namespace, 'key': key})

    def act(self, call, namespace, key, claim, **fields):
        return self.post(call, {'namespace': namespace, 'key': key, 'state': claim['state'],
                                'epoch': claim.get('epoch', '0'), **fields})
