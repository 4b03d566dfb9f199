#!/usr/bin/env python3
"""The gateway as clients and an upstream meet it: gateway_test.py --program semel [unittest ..]."""

import argparse
import concurrent.futures
import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from upstream import Upstream  # noqa: E402

PATIENCE = 30
ROUTES = '''
[[route]]
name = "orders"
path = "/orders"
methods = ["POST", "PATCH"]
timeout = "1s"

[[route]]
name = "waiting"
path = "/orders/waiting"
methods = ["POST"]
wait = "20s"
timeout = "20s"

[[route]]
name = "turns"
path = "/turns"
methods = ["POST"]
wait = "20s"
timeout = "1s"
on_unknown = "release"

[[route]]
name = "brief"
path = "/brief"
methods = ["POST"]
wait = "300ms"
timeout = "20s"

[[route]]
name = "free"
path = "/free"
methods = ["POST"]
key = "optional"
scope = "header:X-Tenant"
fingerprint = ["query", "header:X-Kind"]
on_unknown = "release"
on_5xx = "release"
timeout = "1s"
request_bytes_max = 1000
reply_bytes_max = 1000
'''

program = None


class Gateway:
    def __init__(self, upstream_port, place, routes=ROUTES, options=(), scheme='http'):
        self.place = place
        place.mkdir(exist_ok=True)
        (place / 'routes.toml').write_text(routes, encoding='utf-8')
        ready = place / 'ready'
        ready.unlink(missing_ok=True)
        self.log = place / 'access.log'
        self.errors = (place / 'errors').open('ab')
        self.process = subprocess.Popen(
            [program, 'gateway', '--listen', '127.0.0.1:0', '--upstream',
             f'{scheme}://127.0.0.1:{upstream_port}', '--routes', place / 'routes.toml', '--dir',
             place / 'data', '--ready-file', ready, '--admin-port', '0', '--access-log', self.log,
             *options], stderr=self.errors)
        end = time.monotonic() + PATIENCE
        while not ready.exists() or 'admin' not in ready.read_text(encoding='utf-8'):
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError((place / 'errors').read_text(encoding='utf-8'))
            time.sleep(0.01)
        ports = dict(line.split() for line in ready.read_text(encoding='utf-8').splitlines())
        self.port, self.admin = int(ports['port']), int(ports['admin'])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        self.errors.close()

    def ask(self, method, path, body=b'', key=None, connection=None, **headers):
        """(status, headers, body) of a reply."""
        own = connection is None
        connection = connection or http.client.HTTPConnection('127.0.0.1', self.port,
                                                              timeout=PATIENCE)
        try:
            sent = {name.replace('_', '-'): value for name, value in headers.items()}
            if key is not None:
                sent['Idempotency-Key'] = key
            connection.request(method, path, body=body, headers=sent)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            if own:
                connection.close()

    def metric(self, name):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.admin}/metrics', timeout=10) as page:
            for line in page.read().decode().splitlines():
                if line.startswith(f'semel_gateway_{name} '):
                    return int(line.split()[1])
        raise AssertionError(name)


class GatewayTest(unittest.TestCase):
    routes = ROUTES
    options = ()

    def setUp(self):
        self.place = Path(tempfile.mkdtemp(prefix='semel_gateway_'))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.close)
        self.gateway = self.begin()

    def begin(self):
        gateway = Gateway(self.upstream.port, self.place, self.routes, self.options)
        self.addCleanup(gateway.end)
        return gateway

    def ask(self, *words, **named):
        return self.gateway.ask(*words, **named)

    def problem(self, reply, status, kind):
        self.assertEqual(reply[0], status, reply)
        self.assertEqual(reply[1]['Content-Type'], 'application/problem+json')
        self.assertEqual(json.loads(reply[2])['type'], f'urn:semel:gateway:{kind}')
        self.assertEqual(json.loads(reply[2])['status'], status)

    def raw(self, text, port=None):
        """Everything that comes for these bytes, until the gateway closes."""
        with socket.create_connection(('127.0.0.1', port or self.gateway.port), 10) as plug:
            plug.sendall(text)
            found = b''
            while (part := plug.recv(65536)):
                found += part
            return found


class Guarded(GatewayTest):
    def test_a_repeat_gets_the_first_reply(self):
        first = self.ask('POST', '/orders?x=1', b'one', key='k', Authorization='me')
        self.assertEqual((first[0], first[2]), (201, b'POST /orders?x=1 3 effect 1\n'))
        again = self.ask('POST', '/orders?x=1', b'one', key='k', Authorization='me')
        self.assertEqual((again[0], again[2]), (first[0], first[2]))
        self.assertEqual(again[1]['Idempotency-Replayed'], 'true')
        self.assertEqual(again[1]['X-Upstream'], 'yes')
        self.assertNotIn('Idempotency-Replayed', first[1])
        self.assertEqual(first[1]['Set-Cookie'], 'a=b')
        self.assertNotIn('Set-Cookie', again[1])
        for reply in (first, again):
            self.assertNotIn('X-Hop', reply[1])
        self.assertEqual(self.upstream.effects, {'k': 1})
        sent = dict(self.upstream.requests[0][2])
        self.assertEqual(sent['semel-attempt'], '1')
        self.assertGreater(int(sent['semel-epoch']), 0)
        self.assertEqual(sent['x-forwarded-for'], '127.0.0.1')
        self.assertEqual(self.gateway.metric('replayed_total'), 1)

    def test_quoted_and_bare_keys_are_one(self):
        self.ask('POST', '/orders', b'', key='"k-1"')
        again = self.ask('POST', '/orders', b'', key='k-1')
        self.assertEqual(again[1]['Idempotency-Replayed'], 'true')

    def test_keys_that_cannot_be_read(self):
        for key in ('', '"', '"a', '"a"b"', '"a\\x"', 'x' * 256, 'sch\xf6n'):
            self.problem(self.ask('POST', '/orders', b'', key=key), 400, 'key-malformed')
        self.problem(self.ask('POST', '/orders', b''), 400, 'key-missing')
        self.assertEqual(self.ask('POST', '/orders', b'', key='x' * 255)[0], 201)
        twice = self.raw(b'POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\r\n'
                         b'Idempotency-Key: a\r\nContent-Length: 0\r\n\r\n')
        self.assertIn(b'key-malformed', twice)
        self.assertEqual(len(self.upstream.requests), 1)

    def test_a_key_is_of_one_request(self):
        self.ask('POST', '/orders', b'one', key='k')
        self.problem(self.ask('POST', '/orders', b'two', key='k'), 422, 'key-reused')
        self.problem(self.ask('PATCH', '/orders', b'one', key='k'), 422, 'key-reused')
        self.problem(self.ask('POST', '/orders/1', b'one', key='k'), 422, 'key-reused')
        self.problem(self.ask('POST', '/orders?q', b'one', key='k'), 422, 'key-reused')
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_a_key_is_of_one_client(self):
        first = self.ask('POST', '/orders', b'one', key='k', Authorization='me')
        other = self.ask('POST', '/orders', b'one', key='k', Authorization='you')
        self.assertNotIn('Idempotency-Replayed', other[1])
        self.assertNotEqual(first[2], other[2])
        self.ask('POST', '/free', b'', key='k', X_Tenant='a')
        self.assertNotIn('Idempotency-Replayed',
                         self.ask('POST', '/free', b'', key='k', X_Tenant='b')[1])
        self.assertIn('Idempotency-Replayed',
                      self.ask('POST', '/free', b'other', key='k', X_Tenant='b')[1])

    def test_one_of_many_at_once_runs(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda _: self.ask('POST', '/orders/waiting', b'b', key='k'),
                                  range(64)))
        self.assertEqual({(reply[0], reply[2]) for reply in found},
                         {(201, b'POST /orders/waiting 1 effect 1\n')})
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_in_flight(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.ask, 'POST', '/orders', b'', key='k', X_Break='slow')
            self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
            busy = self.ask('POST', '/orders', b'', key='k', X_Break='slow')
            self.problem(busy, 409, 'in-flight')
            self.assertIn('Retry-After', busy[1])
            self.upstream.let_go.set()
            self.assertEqual(first.result()[0], 201)
        self.assertIn('Idempotency-Replayed',
                      self.ask('POST', '/orders', b'', key='k', X_Break='slow')[1])

    def test_a_wait_ends_at_its_time(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.ask, 'POST', '/brief', b'', key='k', X_Break='slow')
            self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
            began = time.monotonic()
            self.problem(self.ask('POST', '/brief', b'', key='k'), 409, 'in-flight')
            self.assertGreater(time.monotonic() - began, 0.29)
            self.upstream.let_go.set()
            self.assertEqual(first.result()[0], 201)

    def test_who_waits_has_its_turn_when_the_first_one_is_free_again(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.ask, 'POST', '/turns', b'', key='k', X_Break='slow')
            self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
            second = pool.submit(self.ask, 'POST', '/turns', b'', key='k')
            self.problem(first.result(), 504, 'no-reply')
            self.assertEqual(second.result()[0], 201)
        sent = [dict(request[2]) for request in self.upstream.requests]
        self.assertEqual([each['semel-attempt'] for each in sent], ['1', '1'])
        self.assertLess(int(sent[0]['semel-epoch']), int(sent[1]['semel-epoch']))

    def test_a_client_cannot_say_what_only_the_gateway_says(self):
        self.ask('POST', '/free', b'', Semel_Epoch='999', Semel_Attempt='9')
        self.ask('POST', '/orders', b'', key='k', Semel_Epoch='999', Semel_Attempt='9')
        passed, guarded = [request[2] for request in self.upstream.requests]
        self.assertEqual([name for name, _ in passed if name.startswith('semel-')], [])
        self.assertEqual(dict(guarded)['semel-attempt'], '1')
        self.assertEqual([value for name, value in guarded if name == 'semel-epoch' and
                          value == '999'], [])

    def test_a_client_that_goes_away_does_not_stop_its_request(self):
        with socket.create_connection(('127.0.0.1', self.gateway.port)) as plug:
            plug.sendall(b'POST /orders/waiting HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n'
                         b'X-Break: slow\r\nContent-Length: 0\r\n\r\n')
            self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
        self.upstream.let_go.set()
        reply = self.ask('POST', '/orders/waiting', b'', key='k', X_Break='slow', Host='a')
        self.assertEqual(reply[0], 201)
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_status_5xx(self):
        for _ in range(2):
            kept = self.ask('POST', '/orders', b'', key='k', X_Break='status-503')
            self.assertEqual(kept[0], 503)
        self.assertEqual(self.upstream.effects['k'], 1)
        self.assertEqual(self.ask('POST', '/free', b'', key='f', X_Break='status-500')[0], 500)
        self.assertEqual(self.ask('POST', '/free', b'', key='f', X_Break='status-404')[0], 404)
        self.assertEqual(self.ask('POST', '/free', b'', key='f', X_Break='status-500')[0], 404)
        self.assertEqual(self.upstream.effects['f'], 2)

    def test_an_upstream_that_breaks_leaves_a_doubt(self):
        for how in ('before-reply', 'in-head', 'in-body', 'slow'):
            reply = self.ask('POST', '/orders', b'', key=how, X_Break=how)
            self.problem(reply, 504, 'no-reply')
            self.problem(self.ask('POST', '/orders', b'', key=how, X_Break=how), 409, 'in-doubt')
            self.assertEqual(self.upstream.effects[how], 1)
        for how in ('before-reply', 'in-body'):
            self.problem(self.ask('POST', '/free', b'', key=how, X_Break=how), 504, 'no-reply')
            self.assertEqual(self.ask('POST', '/free', b'', key=how)[0], 201)

    def test_nothing_was_sent(self):
        self.upstream.close()
        for _ in range(2):
            reply = self.ask('POST', '/orders', b'', key='k')
            self.problem(reply, 502, 'bad-gateway')
        self.upstream = Upstream(self.upstream.port)
        self.addCleanup(self.upstream.close)
        self.assertEqual(self.ask('POST', '/orders', b'', key='k')[0], 201)
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_bounds(self):
        self.problem(self.ask('POST', '/free', b'x' * 1001, key='k'), 413, 'body-too-long')
        chunked = self.raw(b'POST /free HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n'
                           b'Transfer-Encoding: chunked\r\n\r\n' + b'ff\r\n' + b'x' * 255 + b'\r\n'
                           + b'3e8\r\n' + b'x' * 1000 + b'\r\n0\r\n\r\n')
        self.assertIn(b'body-too-long', chunked)
        self.assertEqual(self.upstream.effects, {})
        self.assertEqual(self.ask('POST', '/free', b'x' * 1000, key='k')[0], 201)
        long = self.ask('POST', '/free', b'', key='l', X_Bytes='200000')
        self.assertEqual((long[0], len(long[2])), (201, 200000))
        self.problem(self.ask('POST', '/free', b'', key='l'), 409, 'reply-not-kept')
        self.assertEqual(self.upstream.effects['l'], 1)
        even = self.ask('POST', '/free', b'', key='m', X_Bytes='1000')
        self.assertEqual(len(even[2]), 1000)
        self.assertEqual(len(self.ask('POST', '/free', b'', key='m')[2]), 1000)

    def test_forms_of_replies(self):
        for how in ('chunked', 'hints', 'status-204'):
            first = self.ask('POST', '/orders', b'', key=how, X_Break=how)
            again = self.ask('POST', '/orders', b'', key=how, X_Break=how)
            self.assertEqual((first[0], first[2]), (again[0], again[2]))
            self.assertIn('Idempotency-Replayed', again[1])
            self.assertEqual(self.upstream.effects[how], 1)


class Lives(GatewayTest):
    def test_replies_outlive_the_gateway(self):
        first = self.ask('POST', '/orders', b'b', key='k')
        self.gateway.kill()
        self.gateway = self.begin()
        again = self.ask('POST', '/orders', b'b', key='k')
        self.assertEqual((again[0], again[2]), (first[0], first[2]))
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_what_ran_when_it_was_killed_is_in_doubt_or_free(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for path in ('/orders/waiting', '/free'):
                pool.submit(self.ask, 'POST', path, b'', key=path, X_Break='slow')
                self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
            self.gateway.kill()
        self.gateway = self.begin()
        self.upstream.let_go.set()
        self.problem(self.ask('POST', '/orders/waiting', b'', key='/orders/waiting',
                              X_Break='slow'), 409, 'in-doubt')
        self.assertEqual(self.ask('POST', '/free', b'', key='/free')[0], 201)
        self.assertEqual(dict(self.upstream.requests[-1][2])['semel-attempt'], '2')

    def test_a_gateway_that_is_asked_to_end_finishes_what_runs(self):
        idle = http.client.HTTPConnection('127.0.0.1', self.gateway.port, timeout=PATIENCE)
        self.ask('GET', '/', connection=idle)
        self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.ask, 'POST', '/orders/waiting', b'', key='k', X_Break='slow')
            self.assertTrue(self.upstream.arrived.acquire(timeout=PATIENCE))
            self.gateway.process.send_signal(signal.SIGTERM)
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                try:
                    socket.create_connection(('127.0.0.1', self.gateway.port), 1).close()
                except OSError:
                    break
                time.sleep(0.01)
            self.upstream.let_go.set()
            reply = first.result()
        self.assertEqual((reply[0], reply[1]['Connection']), (201, 'close'))
        self.assertEqual(self.gateway.process.wait(PATIENCE), 0)
        idle.close()

    def test_a_route_may_change_its_times(self):
        first = self.ask('POST', '/orders', b'b', key='k')
        self.gateway.end()
        self.routes = self.routes.replace('timeout = "1s"', 'timeout = "2s"\nkeep = "1h"')
        self.gateway = self.begin()
        self.assertEqual(self.ask('POST', '/orders', b'b', key='k')[2], first[2])
        self.assertEqual(self.upstream.effects, {'k': 1})

    def test_two_gateways_cannot_share_a_directory(self):
        with self.assertRaises(AssertionError) as refused:
            Gateway(self.upstream.port, self.place)
        self.assertIn('used by another process', str(refused.exception))


class FullDisk(GatewayTest):
    def setUp(self):
        self.place = Path(tempfile.mkdtemp(prefix='semel_gateway_'))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        data = self.place / 'data'
        data.mkdir()
        mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', data],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f'no small file system can be mounted: {mounted.stderr.strip()}')
        self.addCleanup(subprocess.run, ['umount', '-l', data], check=False)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.close)
        self.gateway = self.begin()

    def test_nothing_is_sent_that_cannot_be_written_down(self):
        replies = {}
        for number in range(400):
            key = f'k{number}'
            replies[key] = self.ask('POST', '/orders', b'', key=key, X_Bytes='500000')[0]
            if list(replies.values()).count(503) == 20:
                break
        refused = [key for key, status in replies.items() if status == 503]
        self.assertEqual(len(refused), 20, replies)
        self.assertEqual([key for key in refused if key in self.upstream.effects], [])
        self.gateway.kill()
        subprocess.run(['mount', '-o', 'remount,size=200m', self.place / 'data'], check=True)
        self.gateway = self.begin()
        for key, status in replies.items():
            if status == 201:
                again = self.ask('POST', '/orders', b'', key=key, X_Bytes='500000')
                # One that could not be written down is in doubt, and not done again.
                self.assertIn(again[0], (201, 409), key)
        self.assertEqual({count for count in self.upstream.effects.values()}, {1})


class Passed(GatewayTest):
    def test_other_requests_pass_through(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.gateway.port, timeout=PATIENCE)
        for method in ('GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'):
            reply = self.gateway.ask(method, '/orders', b'', key='k', connection=connection)
            self.assertEqual(reply[0], 201)
            self.assertNotIn('X-Hop', reply[1])
        self.assertEqual(self.upstream.effects, {'k': 5})
        body = bytes(range(256)) * 8000
        reply = self.gateway.ask('PUT', '/big', body, connection=connection, X_Bytes='3000000')
        self.assertEqual(len(reply[2]), 3000000)
        self.assertEqual(self.upstream.requests[-1][3], body)
        chunks = iter([b'a' * 70000, b'b' * 70000])
        self.assertEqual(self.gateway.ask('PUT', '/chunks', chunks, connection=connection)[0], 201)
        self.assertEqual(self.upstream.requests[-1][3], b'a' * 70000 + b'b' * 70000)
        connection.close()
        self.assertEqual(self.ask('POST', '/free', b'no key')[0], 201)
        self.assertEqual(self.ask('POST', '/orders-old', b'')[0], 201)
        self.assertEqual(self.gateway.metric('guarded_total'), 0)

    def test_an_upstream_that_is_gone(self):
        self.upstream.close()
        self.problem(self.ask('GET', '/'), 502, 'bad-gateway')

    def test_expect_continue(self):
        with socket.create_connection(('127.0.0.1', self.gateway.port), 10) as plug:
            for path in (b'/orders', b'/other'):
                plug.sendall(b'POST ' + path + b' HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n'
                             b'Expect: 100-continue\r\nContent-Length: 3\r\n\r\n')
                self.assertEqual(plug.recv(1000), b'HTTP/1.1 100 Continue\r\n\r\n')
                plug.sendall(b'abc')
                self.assertIn(b'201', plug.recv(1000))
        self.assertNotIn('expect', dict(self.upstream.requests[-1][2]))

    def test_http_1_0(self):
        found = self.raw(b'GET / HTTP/1.0\r\nX-Break: chunked\r\n\r\n')
        self.assertTrue(found.startswith(b'HTTP/1.0 201'), found)
        self.assertNotIn(b'chunked', found)
        self.assertTrue(found.endswith(b'effect 1\n'))

    def test_the_access_log(self):
        self.ask('POST', '/orders?secret', b'', key='k')
        self.ask('GET', '/x"\u00e9'.encode().decode('latin-1').replace('\xc3\xa9', '%C3%A9'))
        self.gateway.end()
        lines = [json.loads(line) for line in self.gateway.log.read_text().splitlines()]
        self.assertEqual([(line['path'], line['outcome'], line['status'], line['route'])
                          for line in lines],
                         [('/orders', 'granted', 201, 'orders'), ('/x"%C3%A9', 'passed', 201, '')])


class Hostile(GatewayTest):
    options = ('--connections', '40')

    def test_what_two_ends_could_read_otherwise_is_refused(self):
        start = b'POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n'
        for head in (b'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n',
                     b'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n',
                     b'Content-Length: 3\r\nContent-Length: 4\r\n',
                     b'Content-Length: 3\r\nContent-Length: 3\r\n',
                     b'Transfer-Encoding: gzip, chunked\r\n', b'Transfer-Encoding: xchunked\r\n',
                     b'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n',
                     b'Transfer-Encoding : chunked\r\n', b'Content-Length: +3\r\n',
                     b'Content-Length: -1\r\n', b'Content-Length: 3 \x0b\r\n', b'Host: b\r\n',
                     b'Upgrade: websocket\r\nConnection: Upgrade\r\n', b'X: \x00\r\n'):
            found = self.raw(start + head + b'\r\nabc')
            self.assertTrue(found.startswith(b'HTTP/1.1 400'), (head, found))
        trailer = self.raw(start + b'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n'
                           b'Authorization: other\r\n\r\n')
        self.assertTrue(trailer.startswith(b'HTTP/1.1 400'), trailer)
        for path in (b'/%6frders', b'//orders', b'/x/../orders', b'/./orders', b'/orders%2f',
                     b'/x/%2e%2e/orders', b'/orders\\x', b'/orders/.', b'/orders/..', b'/%', b'/%4',
                     b'/..;/orders'):
            found = self.raw(b'POST ' + path + b' HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n')
            self.assertTrue(found.startswith(b'HTTP/1.1 400'), (path, found))
        for line in (b'GET http://other/ HTTP/1.1', b'GET * HTTP/1.1', b'GET /a b HTTP/1.1',
                     b'GET / HTTP/3.7', b'CONNECT /x HTTP/1.1', b'TRACE / HTTP/1.1', b'nonsense',
                     b'\x16\x03\x01\x02\x00'):
            found = self.raw(line + b'\r\nHost: a\r\n\r\n')
            self.assertTrue(found == b'' or found.startswith(b'HTTP/1.1 400'), (line, found))
        long = self.raw(b'GET / HTTP/1.1\r\nHost: a\r\nX: ' + b'x' * 40000 + b'\r\n\r\n')
        self.assertTrue(long.startswith((b'HTTP/1.1 431', b'HTTP/1.1 400')), long[:50])
        self.assertEqual(self.upstream.requests, [])

    def test_pipelined_requests_are_answered_in_order(self):
        found = self.raw(b'POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n'
                         b'Content-Length: 1\r\n\r\naGET /next HTTP/1.1\r\nHost: a\r\n'
                         b'Connection: close\r\n\r\n')
        self.assertLess(found.index(b'POST /orders'), found.index(b'GET /next'))

    def test_many_slow_clients_leave_room_for_none_and_end_nobody(self):
        slow = [socket.create_connection(('127.0.0.1', self.gateway.port)) for _ in range(60)]
        for plug in slow:
            try:
                plug.sendall(b'POST /orders HTTP/1.1\r\nHo')
            except OSError:
                pass
        self.assertLessEqual(self.gateway.metric('open_connections'), 40)
        for plug in slow:
            plug.close()
        end = time.monotonic() + PATIENCE
        while self.gateway.metric('open_connections') > 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.assertEqual(self.ask('POST', '/orders', b'', key='k')[0], 201)

    def test_a_reply_that_is_no_http(self):
        with socket.socket() as listener:
            listener.bind(('127.0.0.1', 0))
            listener.listen()
            other = Gateway(listener.getsockname()[1], self.place / 'other')
            self.addCleanup(other.end)
            twice = b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'
            for number, words in enumerate((b'nonsense\r\n\r\n', twice, b'')):
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    asked = pool.submit(other.ask, 'POST', '/orders', b'', key=str(number))
                    plug, _ = listener.accept()
                    plug.recv(10000)
                    plug.sendall(words)
                    plug.close()
                    self.problem(asked.result(), 504, 'no-reply')


class Tls(unittest.TestCase):
    """Both sides speak it. The upstream is known by its number, or not at all."""

    def setUp(self):
        self.place = Path(tempfile.mkdtemp(prefix='semel_gateway_'))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.files = {}
        for name, of in (('right', 'IP:127.0.0.1'), ('wrong', 'DNS:other.example')):
            pair = [self.place / f'{name}.{end}' for end in ('crt', 'key')]
            words = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
            subprocess.run([*words, '-subj', f'/CN={name}', '-addext', f'subjectAltName={of}',
                            '-out', pair[0], '-keyout', pair[1]], check=True, capture_output=True)
            self.files[name] = pair

    def reply_through(self, upstream_name, trusted):
        upstream = Upstream(begins=False)
        self.addCleanup(upstream.close)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(*self.files[upstream_name])
        upstream.listener = server.wrap_socket(upstream.listener, server_side=True)
        upstream.begin()
        own = self.files['right']
        gateway = Gateway(upstream.port, self.place / f'{upstream_name}-{trusted}',
                          options=('--tls-cert', own[0], '--tls-key', own[1], '--upstream-ca',
                                   self.files[trusted][0]), scheme='https')
        self.addCleanup(gateway.end)
        client = ssl.create_default_context(cafile=own[0])
        found = []
        for _ in range(2):
            connection = http.client.HTTPSConnection('127.0.0.1', gateway.port, context=client,
                                                     timeout=PATIENCE)
            found.append(gateway.ask('POST', '/orders', b'b', key='k', connection=connection))
            connection.close()
        return found, upstream

    def test_a_request_through_both(self):
        (first, again), upstream = self.reply_through('right', 'right')
        self.assertEqual((first[0], first[2]), (201, b'POST /orders 1 effect 1\n'))
        self.assertEqual(again[1]['Idempotency-Replayed'], 'true')
        self.assertEqual(dict(upstream.requests[0][2])['x-forwarded-proto'], 'https')

    def test_an_upstream_that_is_another_gets_nothing(self):
        for name, trusted in (('wrong', 'wrong'), ('right', 'wrong')):
            found, upstream = self.reply_through(name, trusted)
            self.assertEqual([reply[0] for reply in found], [502, 502])
            self.assertEqual(upstream.requests, [])


class Settings(unittest.TestCase):
    def test_what_is_wrong_is_named(self):
        place = Path(tempfile.mkdtemp(prefix='semel_gateway_'))
        self.addCleanup(shutil.rmtree, place)
        routes = place / 'routes.toml'
        for text, said in (('x = 1', 'only [[route]]'), ('[[route]]\nname = "a"\nmethods = ["GET"]',
                                                         'GET changes nothing'),
                           ('[[route]]\nname = ""', 'a name has'), ('[[route', 'routes.toml:1'),
                           ('[[route]]\nname = "a"\nwait = "soon"', "'soon' is no time"),
                           ('[[route]]\nname = "a"\nnews = 1', ':3:8: news: it is not known'),
                           ('[[route]]\nname = "a"\npath = "x"', 'begin with /'),
                           ('[[route]]\nname = "a"\ntimeout = "2h"', 'valid is 100 to 3600000 ms'),
                           ('[[route]]\nname = "a"\n[[route]]\nname = "a"\npath = "/b"',
                            'another route has this name'),
                           ('[[route]]\nname = "a"\n[[route]]\nname = "b"',
                            'another route has the path /'),
                           ('[[route]]\nname = "a"\nfingerprint = ["x"]', 'none of query'),
                           ('[[route]]\nname = "a"\nreply_bytes_max = 0', 'valid is 1 to')):
            routes.write_text(text, encoding='utf-8')
            done = subprocess.run([program, 'gateway', '--upstream', 'http://a', '--routes', routes,
                                   '--check'], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(said, done.stderr)
        routes.write_text(ROUTES, encoding='utf-8')
        for words in (('--upstream', 'ftp://a'), ('--upstream', 'http://a:99999'),
                      ('--upstream', 'http://a/b'), ('--upstream', 'http://a', '--listen', 'x'),
                      ('--upstream', 'http://a', '--workers', '0'),
                      ('--upstream', 'http://a', '--tls-cert', '/etc/hosts')):
            done = subprocess.run([program, 'gateway', '--routes', routes, *words], timeout=20,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn('semel gateway: ', done.stderr)


def main():
    global program
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--program', required=True)
    options, rest = parser.parse_known_args()
    program = str(Path(options.program).resolve())
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == '__main__':
    main()
