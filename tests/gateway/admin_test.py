#!/usr/bin/env python3
"""Who may end a doubt at a gateway's admin port: admin_test.py PROGRAM [unittest's arguments]."""

import json
import os
import socket
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import WITHIN, Client, Gateway, Upstream, new_directory  # noqa: E402
from servers import CannotStart  # noqa: E402  (harness has found the folder)

PROGRAM = ''
ROUTES = '[[route]]\nname = "pay"\npath = "/pay"\nguard = "idempotency-key"\n'
TOKEN = 'a token of 16 bytes or more'.replace(' ', '-')


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.stop)

    def token_file(self, text):
        path = os.path.join(self.directory.name, 'token')
        with open(path, 'w', encoding='latin-1') as file:
            file.write(text)
        return f'admin-token-file = "{path}"\n'

    def start(self, settings='', flags=(), has_log=True):
        gateway = Gateway(PROGRAM, self.upstream.port, ROUTES, self.directory.name,
                          ['--threads', '1', *flags], settings, has_log)
        self.addCleanup(gateway.end)
        return gateway

    def refused(self, settings, flags=()):
        with self.assertRaises(CannotStart) as failed:
            self.start(settings, flags)
        return str(failed.exception)

    def doubt(self, gateway):
        """Makes one, and has the target that ends it."""
        reply = gateway.request(target='/pay?do=close', body=b'd', key='k')
        self.assertEqual(reply.status, 502)
        detail = json.loads(gateway.request(target='/pay?do=close', body=b'd',
                                            key='k').body)['detail']
        key = next(word for word in detail.replace("'", ' ').split() if word.endswith('|k'))
        return '/resolve?route=pay&as=released&key=' + key.replace('|', '%7C')

    def audit_lines(self, gateway):
        """Of the admin port in the access log, which a thread of its own writes."""
        gateway.stop()
        with open(gateway.access_log, encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if 'admin' in line]


class WithToken(Case):
    def setUp(self):
        super().setUp()
        self.gateway = self.start(self.token_file(TOKEN + '\r\n'))

    def ask(self, method, target, authorization=None, fields=None):
        given = dict(fields or {})
        if authorization is not None:
            given['Authorization'] = authorization
        return self.gateway.admin(method, target, given)

    def test_a_doubt_is_ended_only_with_the_token(self):
        target = self.doubt(self.gateway)
        yes = {'Semel-Admin': 'yes'}
        for wrong in (None, '', 'Bearer', 'Bearer ', f'Basic {TOKEN}', TOKEN,
                      f'Bearer {TOKEN[:-1]}', f'Bearer {TOKEN}x', f'Bearer {TOKEN.upper()}',
                      'Bearer ' + 'x' * 4000):
            with self.subTest(wrong=wrong):
                reply = self.ask('POST', target, wrong, yes)
                self.assertEqual((reply.status, reply.fields['www-authenticate']),
                                 (401, ['Bearer']))
        # It needs no more than the token, from whatever name of the machine.
        away = {'Host': 'gateway.internal:9102'}
        self.assertEqual(self.ask('POST', target, f'Bearer {TOKEN}', away).status, 200)
        self.assertEqual(self.ask('POST', target, f'bearer {TOKEN}').status, 404)
        lines = self.audit_lines(self.gateway)
        self.assertEqual([line['status'] for line in lines], [401] * 10 + [200, 404])
        self.assertEqual({line['client'] for line in lines}, {'127.0.0.1'})
        self.assertEqual({(line['admin'], line['method']) for line in lines},
                         {('/resolve', 'POST')})
        done = lines[10]
        self.assertEqual((done['route'], done['as'], len(done['key'])), ('pay', 'released', 16))
        with open(self.gateway.access_log, encoding='utf-8') as file:
            text = file.read()
        self.assertNotIn(TOKEN, text)
        self.assertIn(f'"key":"{done["key"]}"', text.splitlines()[0])  # that of its request

    def test_two_tokens_are_none(self):
        with Client(self.gateway.admin_port) as client:
            line = f'Authorization: Bearer {TOKEN}\r\n'
            client.send(f'GET /metrics HTTP/1.1\r\nHost: x\r\n{line}{line}\r\n'.encode())
            self.assertEqual(client.receive().status, 401)

    def test_health_is_for_all_and_metrics_are_not(self):
        for path in ('/healthz', '/livez', '/readyz'):
            self.assertEqual(self.ask('GET', path).status, 200)
        for method, path in (('GET', '/metrics'), ('HEAD', '/metrics'), ('GET', '/nothing'),
                             ('GET', '/resolve'), ('POST', '/healthz'), ('PUT', '/metrics')):
            self.assertEqual(self.ask(method, path).status, 401, (method, path))
        reply = self.ask('GET', '/metrics', f'Bearer {TOKEN}')
        self.assertEqual(reply.status, 200)
        self.assertIn(b'semel_gateway_', reply.body)

    def test_a_head_that_is_too_long_is_400_and_the_port_goes_on(self):
        reply = self.ask('GET', '/metrics', 'Bearer ' + 'x' * 9000)
        self.assertEqual(reply.status, 400)
        self.assertEqual(self.ask('GET', '/healthz').status, 200)


class Addresses(Case):
    def test_without_a_token_the_port_is_on_loopback_only(self):
        for address in ('0.0.0.0:0', ':0', '[::]:0'):
            text = self.refused('', ['--admin', address])
            self.assertIn('without admin-token-file', text)

    def test_with_a_token_it_is_reached_from_elsewhere(self):
        for address in (':0', '0.0.0.0:0'):
            gateway = self.start(self.token_file(TOKEN), ['--admin', address])
            # Another address of this machine than the one that is allowed without a token.
            with socket.create_connection(('127.0.0.2', gateway.admin_port), WITHIN) as plug:
                plug.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
                self.assertIn(b' 401 ', plug.makefile('rb').readline())
            gateway.stop()

    def test_a_token_that_cannot_be_used_is_named_and_not_shown(self):
        for text, word in (('', 'can be read'), ('\n', 'no characters'), ('short-secret', '16'),
                           ('x' * 1025, '1024'), ('with blank and secret', 'blanks'),
                           ('caf\xe9-secret-secret', 'ASCII')):
            said = self.refused(self.token_file(text))
            self.assertIn(word, said)
            self.assertNotIn('secret', said)

    def test_without_an_access_log_lines_go_to_standard_error(self):
        gateway = self.start(has_log=False)
        target = self.doubt(gateway)
        self.assertEqual(gateway.admin('POST', target).status, 403)
        self.assertEqual(gateway.admin('POST', target, {'Semel-Admin': 'yes'}).status, 200)
        gateway.stop()
        lines = [json.loads(line) for line in gateway.log().splitlines() if line.startswith('{')]
        self.assertEqual([(line['admin'], line['status']) for line in lines],
                         [('/resolve', 403), ('/resolve', 200)])


if __name__ == '__main__':
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
