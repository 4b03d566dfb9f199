#!/usr/bin/env python3
"""One table of requests, played to the admin port of a node and of a gateway, without and with a
token: admin_ports_test.py PROGRAM [unittest's arguments]."""

import contextlib
import os
import socket
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import WITHIN, Client, Gateway, Upstream, new_directory, servers  # noqa: E402

PROGRAM = ''
ROUTES = '[[route]]\nname = "pay"\npath = "/pay"\nguard = "idempotency-key"\n'
NAME = 'scrape_1.internal'
TOKEN = 'a-token-of-16-bytes-or-more'
HERE = 'Host: localhost'
EVIL = 'Host: evil.example'
BEARER = f'Authorization: Bearer {TOKEN}'
RESOLVE = '/resolve?route=pay&as=done&key=nothing'

# method, target, lines, bytes behind the head; the status of: node, gateway, gateway with a token.
# A row ends with words that the answer has, at all ports.
ANY_HOST = [(method, path, [host], b'', (200, 200, 200), ())
            for method in ('GET', 'HEAD') for path in ('/livez', '/healthz', '/readyz')
            for host in (HERE, EVIL, 'Host: 10.1.2.3', 'X: no host')]
HOSTS = [('GET', '/metrics', [host], b'', (status, status, 401), ())
         for status, hosts in ((200, ('127.0.0.1', '127.0.0.1:1', '[::1]', '[::1]:9', 'localhost',
                                      'LOCALHOST:80', NAME, NAME.upper() + ':7')),
                               (403, ('evil.example', 'evil.example:80', 'localhost.evil.example',
                                      '127.0.0.1.evil.example', '', '::1', '[::1', 'a b')))
         for host in (f'Host: {name}' for name in hosts)]
CASES = [
    *ANY_HOST, *HOSTS,
    ('GET', '/metrics', ['Host: 10.1.2.3'], b'', (200, 403, 401), ()),
    ('GET', '/metrics', ['X: no host'], b'', (403, 403, 401), ()),
    ('GET', '/metrics', [HERE, HERE], b'', (403, 403, 401), ()),
    ('GET', '/metrics', [HERE, 'Origin: http://localhost'], b'', (403, 403, 401), ()),
    ('GET', '/metrics', [HERE, 'Origin: null'], b'', (403, 403, 401), ()),
    ('GET', '/metrics', [HERE, BEARER], b'', (200, 200, 200), ('# TYPE', 'version=0.0.4')),
    ('GET', '/metrics', [EVIL, BEARER], b'', (403, 403, 200), ()),
    ('GET', '/metrics?a=b', [HERE, BEARER], b'', (200, 200, 200), ()),
    ('HEAD', '/metrics', [HERE, BEARER], b'', (200, 200, 200), ('Cache-Control: no-store',)),
    ('GET', '/metrics', [HERE, BEARER, BEARER], b'', (403, 403, 401), ()),
    # Who is not admitted learns nothing about paths and methods, and sends no body.
    ('GET', '/nothing', [HERE, BEARER], b'', (404, 404, 404), ('there is /metrics, ', '/healthz')),
    ('GET', '/nothing', [EVIL], b'', (403, 403, 401), ()),
    ('POST', '/metrics', [HERE, BEARER], b'', (405, 405, 405), ('Allow: GET, HEAD\r\n',)),
    ('PUT', '/livez', [HERE, BEARER], b'', (405, 405, 405), ('Allow: GET, HEAD\r\n',)),
    ('DELETE', '/metrics', [EVIL], b'', (403, 403, 401), ()),
    ('POST', '/livez', [EVIL], b'', (403, 403, 401), ()),
    ('get', '/livez', [HERE, BEARER], b'', (405, 405, 405), ()),
    ('GET', '/livez/', [HERE, BEARER], b'', (404, 404, 404), ()),
    ('GET', RESOLVE, [HERE, BEARER], b'', (404, 405, 405), ()),
    ('POST', RESOLVE, [HERE, BEARER], b'', (404, 403, 404), ()),
    ('POST', RESOLVE, [HERE, BEARER, 'Semel-Admin: yes'], b'', (404, 404, 404), ()),
    ('POST', RESOLVE, [HERE, 'Semel-Admin: yes', 'Semel-Admin: yes'], b'', (403, 403, 401), ()),
    ('POST', RESOLVE, [EVIL, 'Semel-Admin: yes'], b'', (403, 403, 401), ()),
    ('POST', RESOLVE, [EVIL, 'Content-Length: 9999999'], b'', (403, 403, 401), ()),
    # A body where none belongs; one that is announced is not waited for.
    ('GET', '/livez', [EVIL, 'Content-Length: 1'], b'x', (400, 400, 400), ('no body here',)),
    ('GET', '/livez', [EVIL, 'Transfer-Encoding: chunked'], b'', (400, 400, 400), ()),
    ('POST', RESOLVE, [HERE, BEARER, 'Semel-Admin: yes', 'Content-Length: 4'], b'',
     (404, 400, 400), ()),
    ('GET', '/livez', [HERE, 'Content-Length: 0'], b'', (200, 200, 200), ()),
    ('GET', '/livez', [HERE, 'bad header'], b'', (400, 400, 400), ()),
    ('GET', '/livez', [HERE, 'X: ' + 'x' * 8192], b'', (400, 400, 400), ('8192 bytes',)),
]


def answer(port, method, target, lines, rest):
    """All that the port sends before it closes."""
    head = '\r\n'.join([f'{method} {target} HTTP/1.1', *lines, 'Connection: close', '', ''])
    with socket.create_connection(('127.0.0.1', port), WITHIN) as plug:
        plug.sendall(head.encode() + rest)
        return plug.makefile('rb').read().decode()


class Ports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = contextlib.ExitStack()
        cls.addClassCleanup(held.close)
        upstream = Upstream()
        held.callback(upstream.stop)

        def gateway(settings):
            directory = held.enter_context(new_directory())
            made = Gateway(PROGRAM, upstream.port, ROUTES, directory, settings=settings)
            held.callback(made.end)
            return made.admin_port
        token = os.path.join(held.enter_context(new_directory()), 'token')
        with open(token, 'w', encoding='ascii') as file:
            file.write(TOKEN)
        node = held.enter_context(servers.Node(PROGRAM, '--admin-port', '0', '--admin-hosts', NAME))
        cls.ports = (int(node.facts['admin_port']),
                     gateway(f'threads = 1\nadmin-hosts = ["{NAME}"]\n'),
                     gateway(f'threads = 1\nadmin-token-file = "{token}"\n'))

    def test_every_case_at_every_port(self):
        for method, target, lines, rest, wanted, words in CASES:
            for name, port, status in zip(('node', 'gateway', 'token'), self.ports, wanted):
                with self.subTest(port=name, method=method, target=target, lines=lines):
                    text = answer(port, method, target, lines, rest)
                    self.assertEqual(text.split(' ')[1], str(status), text)
                    for word in words:
                        self.assertIn(word, text)

    def test_a_connection_serves_many_requests(self):
        for port in self.ports:
            with Client(port) as client:
                for _ in range(3):
                    self.assertEqual(client.request('GET', '/livez', who=None).status, 200)
                    refused = client.request('GET', '/nothing', who=None)
                    self.assertIn(refused.status, (401, 403))

    def test_requests_behind_each_other_are_answered_in_order(self):
        for port in self.ports:
            with Client(port) as client:
                client.send(b'GET /livez HTTP/1.1\r\n\r\nHEAD /metrics HTTP/1.1\r\n\r\n'
                            b'GET /livez HTTP/1.0\r\n\r\n')
                self.assertEqual(client.receive().status, 200)
                self.assertIn(client.receive('HEAD').status, (401, 403))
                self.assertEqual(client.receive().status, 200)
                self.assertIsNone(client.receive())

    def test_a_body_that_is_refused_is_not_the_next_request(self):
        for port in self.ports:
            with Client(port) as client:
                client.send(b'POST /a HTTP/1.1\r\nContent-Length: 40\r\n\r\n'
                            b'GET /livez HTTP/1.1\r\nX: 012345678901\r\n\r\n')
                self.assertIn(client.receive().status, (401, 403))
                self.assertIsNone(client.receive())


if __name__ == '__main__':
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
