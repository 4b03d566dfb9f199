#!/usr/bin/env python3
"""Signatures, form tokens, debounce, TLS, and clients and servers of others, over a real gateway:
features_test.py PROGRAM [unittest's arguments]. Skips are what is not installed.
"""

import hashlib
import hmac
import json
import logging
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import WITHIN, Client, Gateway, Upstream, new_directory  # noqa: E402

PROGRAM = ''
SECRET = b'0123456789abcdef'


def signed(method, path, query, body, nonce, key_id='k1', seconds=None, secret=SECRET,
           headers=()):
    """The four headers, as docs/gateway.md has it."""
    stamp = str(int(time.time()) if seconds is None else seconds)
    parameters = [('method', method), ('path', path), ('query', query),
                  ('body-sha256', hashlib.sha256(body).hexdigest())]
    parameters += [('header:' + name.lower(), value) for name, value in headers]
    def quoted(text):
        return urllib.parse.quote(text, safe='-._~')
    canonical = '&'.join(f'{quoted(n)}={quoted(v)}' for n, v in sorted(parameters))
    text = f'semel-request-v1\n{quoted(key_id)}\n{stamp}000\n{quoted(nonce)}\n{canonical}'
    return {'Semel-Key-Id': key_id, 'Semel-Timestamp': stamp, 'Semel-Nonce': nonce,
            'Semel-Signature': hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()}


class Case(unittest.TestCase):
    routes = ''
    settings = 'threads = 1\n'

    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.stop)
        self.start(self.upstream.port)

    def start(self, port, flags=()):
        self.gateway = Gateway(PROGRAM, port, self.routes, self.directory.name, flags,
                               self.settings)
        self.addCleanup(self.gateway.end)


class Signatures(Case):
    routes = '''
[[key]]
id = "k1"
secret = "0123456789abcdef"
[[key]]
id = "k2"
secret = "fedcba9876543210"
[[route]]
name = "hook"
path = "/hook"
signature = true
signature-keys = ["k1"]
signature-headers = ["X-Amount"]
[[route]]
name = "pay"
path = "/pay"
guard = "idempotency-key"
scope = ["key-id"]
signature = true
'''

    def hook(self, body=b'1', amount='5', target='/hook?a=1', **how):
        fields = signed('POST', '/hook', 'a=1', b'1', how.pop('nonce', 'n1'),
                        headers=[('X-Amount', '5')], **how)
        return self.gateway.request('POST', target, body, {**fields, 'X-Amount': amount})

    def test_what_is_signed_cannot_be_changed_or_sent_twice(self):
        for reply in (self.hook(body=b'2'), self.hook(amount='6'), self.hook(target='/hook?a=2'),
                      self.hook(key_id='k2', secret=b'fedcba9876543210'), self.hook(key_id='k3'),
                      self.hook(secret=b'another secret..')):
            self.assertEqual((reply.status, reply.problem), (401, 'signature-invalid'))
        for seconds in (int(time.time()) - 61, int(time.time()) + 120):
            self.assertEqual(self.hook(seconds=seconds).problem, 'signature-expired')
        self.assertEqual(self.gateway.request('POST', '/hook', b'1').problem, 'signature-missing')
        self.assertEqual(self.upstream.requests, [])
        self.assertEqual(self.hook().status, 201)
        self.assertEqual((self.hook().status, self.hook().problem), (409, 'nonce-reused'))
        self.assertEqual(self.hook(nonce='n2').status, 201)

    def test_a_nonce_is_used_once_by_many_at_once(self):
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.hook().status))
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN)
        self.assertEqual(sorted(replies), [201] + [409] * 15)

    def test_a_key_belongs_to_who_signed(self):
        def pay(nonce, key_id='k1', secret=SECRET):
            fields = signed('POST', '/pay', '', b'1', nonce, key_id, secret=secret)
            return self.gateway.request('POST', '/pay', b'1', fields, key='k', who=None)
        self.assertFalse(pay('a').is_replay)
        self.assertTrue(pay('b').is_replay)
        self.assertFalse(pay('c', 'k2', b'fedcba9876543210').is_replay)
        self.assertEqual(pay('b').problem, 'nonce-reused')


class Forms(Case):
    routes = '''
[[route]]
name = "form"
methods = ["POST"]
path = "/form"
guard = "form-token"
[[route]]
name = "issue"
methods = ["GET"]
path = "/form/token"
guard = "issue-token"
token-route = "form"
[[route]]
name = "click"
path = "/click"
guard = "debounce"
debounce = "1h"
'''

    def test_a_form_that_is_sent_twice_gets_the_first_reply(self):
        def send(token, who='alice', target='/form'):
            fields = {'Semel-Form-Token': token} if token else {}
            return self.gateway.request('POST', target, b'1', fields, who=who)
        issued = self.gateway.request('GET', '/form/token')
        self.assertEqual(issued.fields['cache-control'], ['no-store'])
        token = json.loads(issued.body)['token']
        self.assertEqual(send(None).problem, 'token-missing')
        for bad in ('x', token + '0', 'y' * 300):
            self.assertEqual(send(bad).problem, 'token-unknown')
        self.assertEqual(send(token, 'bob').problem, 'token-unknown')
        self.assertEqual(self.gateway.request('GET', '/form/token', who=None).problem,
                         'scope-missing')
        self.assertEqual(send(token).status, 201)
        self.assertTrue(send(token).is_replay)
        self.assertEqual(self.upstream.effects[b'1'], 1)
        self.assertEqual(send(token, target='/form?x').problem, 'mismatch')

    def test_a_second_click_is_refused(self):
        def click(body=b'1', who='alice'):
            return self.gateway.request('POST', '/click', body, who=who)
        self.assertEqual(click().status, 201)
        again = click()
        self.assertEqual((again.status, again.problem), (429, 'debounced'))
        self.assertGreater(int(again.fields['retry-after'][0]), 3500)
        self.assertEqual(click(b'2').status, 201)
        self.assertEqual(click(who='bob').status, 201)


class Tls(Case):
    routes = '[[route]]\nname = "pay"\npath = "/pay"\nguard = "idempotency-key"\n'

    def setUp(self):
        super().setUp()
        if not shutil.which('openssl'):
            self.skipTest('openssl is not installed')
        self.cert = os.path.join(self.directory.name, 'cert.pem')
        self.key = os.path.join(self.directory.name, 'key.pem')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                        'ec_paramgen_curve:P-256', '-nodes', '-keyout', self.key, '-out', self.cert,
                        '-days', '2', '-subj', '/CN=localhost', '-addext',
                        'subjectAltName=DNS:localhost'], check=True, capture_output=True)

    def request_tls(self, path='/pay', key='k'):
        context = ssl.create_default_context(cafile=self.cert)
        context.set_alpn_protocols(['http/1.1'])
        with Client(self.gateway.port) as client:
            client.socket = context.wrap_socket(client.socket, server_hostname='localhost')
            client.stream = client.socket.makefile('rb')
            self.assertEqual(client.socket.selected_alpn_protocol(), 'http/1.1')
            return client.request('POST', path, b'1', key=key)

    def test_clients_by_tls(self):
        self.gateway.end()
        self.start(self.upstream.port, ['--tls-cert', self.cert, '--tls-key', self.key])
        self.assertEqual(self.request_tls().status, 201)
        self.assertTrue(self.request_tls().is_replay)
        self.assertEqual(self.upstream.requests[0][2]['x-forwarded-proto'], ['https'])
        with Client(self.gateway.port) as plain:
            plain.send(b'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
            self.assertNotIn(b'HTTP/1.1 200', plain.stream.read())

    def test_the_upstream_is_verified(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        secure = Upstream()
        self.addCleanup(secure.stop)
        secure.server.socket = context.wrap_socket(secure.server.socket, server_side=True)
        url = f'https://localhost:{secure.port}'
        for flags, status in ((['--upstream-ca', self.cert], 201), ([], 502)):
            self.gateway.end()
            self.start(1, ['--upstream', url, *flags])
            self.assertEqual(self.gateway.request(key='k', body=b'1').status, status)
        self.gateway.end()
        other_name = f'https://127.0.0.1:{secure.port}'
        self.start(1, ['--upstream', other_name, '--upstream-ca', self.cert])
        reply = self.gateway.request(key='k', body=b'1')
        self.assertEqual((reply.status, reply.problem), (502, 'upstream-unreachable'))
        self.assertEqual(secure.effects[b'1'], 1)


class Settings(unittest.TestCase):
    def run_with(self, *flags):
        return subprocess.run([PROGRAM, 'gateway', *flags], capture_output=True, text=True,
                              timeout=WITHIN, check=False)

    def test_what_is_wrong_is_named(self):
        good = ['--listen', ':0', '--upstream', 'http://localhost:1']
        for flags, text in (([], 'listen is missing'),
                            (['--listen', 'x', '--upstream', 'http://a'], "'x'"),
                            (['--listen', ':0', '--upstream', 'a'], "'a' is not http"),
                            ([*good, '--admin', '0.0.0.0:1'], 'without admin-token-file'),
                            ([*good, '--tls-cert', 'x'], 'belong together'),
                            ([*good, '--config', '/none'], '/none'),
                            ([*good, '--tls-cert', '/none', '--tls-key', '/none'], '/none'),
                            ([*good, '--durability', 'quorum'], 'quorum')):
            ended = self.run_with(*flags)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(text, ended.stderr)
        self.assertEqual(self.run_with(*good, '--check-config').returncode, 0)


class Others(Case):
    routes = '[[route]]\nname = "pay"\npath = "/pay"\nguard = "idempotency-key"\n'

    def test_curl(self):
        if not shutil.which('curl'):
            self.skipTest('curl is not installed')
        command = ['curl', '-sS', '-m', '20', '-D', '-', '-H', 'Authorization: a', '-H',
                   'Idempotency-Key: "k"', '-d', 'x=1', f'http://127.0.0.1:{self.gateway.port}/pay']
        first, again = (subprocess.run(command, capture_output=True, text=True, check=True).stdout
                        for _ in range(2))
        self.assertIn('1:x=1', first)
        self.assertNotIn('Replayed', first)
        self.assertIn('Idempotency-Replayed: true', again)
        self.assertIn('Idempotent-Replayed: true', again)  # until 0.3
        self.assertIn('1:x=1', again)

    def test_flask(self):
        try:
            import flask
            from werkzeug.serving import make_server
        except ImportError:
            self.skipTest('flask is not installed')
        logging.getLogger('werkzeug').setLevel(logging.ERROR)
        app = flask.Flask('shop')
        calls = []

        @app.post('/pay')
        def pay():
            calls.append(flask.request.json)
            return flask.jsonify(receipt=len(calls)), 201

        server = make_server('127.0.0.1', 0, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.gateway.end()
        self.start(server.server_port)
        fields = {'Content-Type': 'application/json'}
        for is_replay in (False, True, True):
            reply = self.gateway.request('POST', '/pay', b'{"a":1}', fields, key='k')
            self.assertEqual((reply.status, reply.is_replay), (201, is_replay))
            self.assertEqual(json.loads(reply.body), {'receipt': 1})
        self.assertEqual(calls, [{'a': 1}])

    def test_express(self):
        node = shutil.which('node')
        if not node or subprocess.run([node, '-e', 'require("express")'], capture_output=True,
                                      check=False).returncode:
            self.skipTest('express is not installed')
        shop = subprocess.Popen([node, '-e', EXPRESS_SHOP], stdout=subprocess.PIPE, text=True)
        self.addCleanup(shop.stdout.close)
        self.addCleanup(shop.wait, WITHIN)
        self.addCleanup(shop.terminate)
        self.gateway.end()
        self.start(int(shop.stdout.readline()))
        fields = {'Content-Type': 'application/json'}
        for is_replay in (False, True, True):
            reply = self.gateway.request('POST', '/pay', b'{"a":1}', fields, key='k')
            self.assertEqual((reply.status, reply.is_replay), (201, is_replay))
            self.assertEqual(json.loads(reply.body), {'receipt': 1})
            self.assertEqual('set-cookie' in reply.fields, not is_replay)
        self.assertEqual(self.gateway.request('GET', '/count').body, b'{"calls":1}')


EXPRESS_SHOP = '''
const express = require('express');
const app = express();
let calls = 0;
app.post('/pay', express.json(), (request, response) => {
  calls += request.body.a;
  response.cookie('seen', calls).status(201).json({receipt: calls});
});
app.get('/count', (request, response) => response.json({calls}));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
'''

if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    unittest.main()
