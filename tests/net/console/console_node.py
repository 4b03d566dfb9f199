"""A node with its console, for the tests of this folder: HTTP as a browser sends it, and RESP."""

import http.client
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'support'))
import servers  # noqa: E402

PATIENCE = 20  # seconds until something that must happen counts as missing


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def word(self):
        """The kind of an error, beside its status."""
        return self.status, self.json().get('error')


class ConsoleNode:
    """Ends when the test case does."""

    def __init__(self, case, semel, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.ready, self.errors = self.folder / 'ready', self.folder / 'stderr'
        with self.errors.open('wb') as errors:
            self.process = subprocess.Popen(
                [semel, 'node', '--port', '0', '--admin-port', '0', '--console', 'yes',
                 '--shards', '4', '--ready-file', str(self.ready), *map(str, arguments)],
                stdout=subprocess.DEVNULL, stderr=errors)
        case.addCleanup(self.kill)
        self.facts = servers.until(self.read_facts, 'the ready file', PATIENCE)
        self.admin = int(self.facts['admin_port'])
        self.case = case

    def read_facts(self):
        if self.process.poll() is not None:
            raise AssertionError(f'ended with {self.process.returncode}: {self.log()}')
        return servers.ready_facts(self.ready)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)

    def log(self):
        return self.errors.read_text()

    def logged(self, text):
        return servers.until(lambda: text in self.log(), f'{text!r} in the log', PATIENCE)

    def client(self):
        plug = socket.create_connection(('127.0.0.1', int(self.facts['port'])))
        self.case.addCleanup(plug.close)
        return servers.Client(plug, PATIENCE)

    def plug(self):
        """A bare connection to the admin port."""
        plug = socket.create_connection(('127.0.0.1', self.admin), timeout=PATIENCE)
        self.case.addCleanup(plug.close)
        return plug

    def origin(self):
        return f'http://127.0.0.1:{self.admin}'

    def get(self, path, **headers):
        return self.ask('GET', path, None, headers)

    def post(self, path, body, **headers):
        return self.ask('POST', f'/console/api/{path}', body,
                        {'Origin': self.origin(), 'Content-Type': 'application/json', **headers})

    def ask(self, method, path, body, headers):
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
