#!/usr/bin/env python3
"""A real gateway between real sockets: gateway_test.py PROGRAM [unittest's arguments]."""

import os
import random
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (WITHIN, Client, Gateway, Upstream, handshake, message,  # noqa: E402
                     new_directory)
from stores import wait_until  # noqa: E402
from servers import CannotStart  # noqa: E402  (stores has found the folder)

PROGRAM = ''
PAY = '''
[[route]]
name = "pay"
methods = ["POST", "DELETE"]
path = "/pay/**"
guard = "idempotency-key"
body-bytes = 1000
record-bytes = 2000
timeout = "1s"
'''


def route(name, path, lines):
    return f'\n[[route]]\nname = "{name}"\npath = "{path}"\n{lines}\n'


class GatewayCase(unittest.TestCase):
    routes = PAY
    settings = 'threads = 2\n'
    stores = False

    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.stop)
        flags = ['--store', os.path.join(self.directory.name, 'store')] if self.stores else []
        self.gateway = Gateway(PROGRAM, self.upstream.port, self.routes, self.directory.name, flags,
                               self.settings)
        self.addCleanup(self.gateway.end)

    def pay(self, body=b'1', key='k', target='/pay', **more):
        return self.gateway.request('POST', target, body, key=key, **more)

    def effects(self, body=b'1'):
        return self.upstream.effects[body]


class Guarded(GatewayCase):
    routes = PAY + route('wait', '/wait', 'guard = "idempotency-key"\nwait = "20s"\n'
                         'on-broken = "release"')

    def test_a_duplicate_gets_the_recorded_reply(self):
        first = self.pay()
        again = self.pay(key='"k"')
        self.assertEqual((first.status, first.body, first.is_replay), (201, b'1:1', False))
        self.assertEqual((again.status, again.body, again.is_replay), (201, b'1:1', True))
        self.assertEqual(again.fields['x-effect'], ['1'])
        self.assertEqual(self.effects(), 1)
        self.assertNotIn('content-encoding', again.fields)

    def test_refusals_reach_no_upstream(self):
        for reply, status, problem in (
                (self.pay(key=None), 400, 'key-missing'),
                (self.pay(key='a b'), 400, 'key-invalid'),
                (self.pay(key='k' * 256), 400, 'key-invalid'),
                (self.pay(who=None), 400, 'scope-missing'),
                (self.pay(body=b'1' * 1001), 413, 'body-too-large')):
            self.assertEqual((reply.status, reply.problem), (status, problem))
            self.assertEqual(reply.fields['content-type'], ['application/problem+json'])
        self.assertEqual(self.upstream.requests, [])
        self.assertEqual(self.pay(body=b'1' * 1000, key='k' * 255).status, 201)

    def test_cookies_and_the_date_are_of_the_first_client_alone(self):
        first = self.pay(target='/pay?do=login')
        self.assertEqual(first.fields['set-cookie'], ['session=1', 'b=1'])
        self.assertEqual(first.fields['date'], ['x'])
        again = self.pay(target='/pay?do=login')
        self.assertTrue(again.is_replay)
        self.assertEqual((again.status, again.body), (first.status, first.body))
        self.assertEqual(again.fields['x-effect'], ['1'])
        for name in ('set-cookie', 'date'):
            self.assertNotIn(name, again.fields)

    def test_another_payload_or_target_is_a_mismatch(self):
        self.pay()
        for reply in (self.pay(b'2'), self.pay(target='/pay?a=1'), self.pay(target='/pay/x')):
            self.assertEqual((reply.status, reply.problem), (422, 'mismatch'))
        self.assertEqual(len(self.upstream.requests), 1)

    def test_two_clients_with_one_key_do_not_meet(self):
        self.assertEqual(self.pay(b'a').body, b'1:a')
        self.assertEqual(self.pay(b'b', who='bob').body, b'1:b')

    def test_a_request_under_way_is_a_conflict(self):
        with Client(self.gateway.port) as first:
            first.send(message('POST', '/pay?do=hold&name=x', b'1', key='k'))
            self.assertTrue(self.upstream.arrived['x'].wait(WITHIN))
            reply = self.pay(target='/pay?do=hold&name=x')
            self.assertEqual((reply.status, reply.problem), (409, 'in-flight'))
            self.assertIn('retry-after', reply.fields)
            self.assertEqual(self.pay(b'2', target='/pay?do=hold&name=x').status, 422)
            self.upstream.release('x')
            self.assertEqual(first.receive().status, 201)
        self.assertEqual(self.effects(), 1)

    def test_duplicates_wait_where_the_route_says_so(self):
        target = '/wait?do=hold&name=w'
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.pay(target=target)))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        self.assertTrue(self.upstream.arrived['w'].wait(WITHIN))
        self.upstream.release('w')
        for thread in threads:
            thread.join(WITHIN)
        self.assertEqual([r.body for r in replies], [b'1:1'] * 8)
        self.assertEqual(sum(r.is_replay for r in replies), 7)

    def test_one_of_many_at_once_runs(self):
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.pay())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN)
        self.assertEqual(self.effects(), 1)
        self.assertEqual({r.status for r in replies} - {201, 409}, set())

    def test_a_client_that_goes_away_ends_nothing(self):
        client = Client(self.gateway.port)
        client.send(message('POST', '/pay?do=hold&name=x', b'1', key='k'))
        self.assertTrue(self.upstream.arrived['x'].wait(WITHIN))
        client.close()
        self.upstream.release('x')
        reply = self.pay(target='/pay?do=hold&name=x')
        while reply.status == 409:  # until it is recorded
            reply = self.pay(target='/pay?do=hold&name=x')
        self.assertTrue(reply.is_replay)
        self.assertEqual(self.effects(), 1)

    def test_a_client_that_goes_away_while_it_waits_is_served(self):
        target = '/wait?do=hang&name=gone'
        with Client(self.gateway.port) as first:
            first.send(message('POST', target, b'1', key='k'))
            wait_until(lambda: self.effects() == 1, 'the first one runs')
            second = Client(self.gateway.port)
            second.send(message('POST', target, b'1', key='k'))
            second.close()
            self.upstream.release('gone')
            self.assertEqual(first.receive().status, 502)
        wait_until(lambda: self.effects() == 2, 'the second one runs')
        self.assertEqual(self.pay(target=target).status, 502)
        self.assertEqual(self.effects(), 3)  # the key was free again

    def test_no_reply_is_a_doubt_that_an_operator_ends(self):
        for target, status in (('/pay?do=close', 502), ('/pay?do=half', 502),
                               ('/pay?do=garbage', 502), ('/pay?do=hang', 504)):
            body = target.encode()
            first = self.pay(body, target=target, key=target[-4:])
            self.assertEqual(first.status, status)
            again = self.pay(body, target=target, key=target[-4:])
            self.assertEqual((again.status, again.problem), (409, 'in-doubt'))
            self.assertEqual(self.effects(body), 1)
        import json
        key = json.loads(again.body)['detail'].split(': ')[1]
        query = '/resolve?route=pay&as=released&key=' + key.replace('|', '%7C')
        self.assertEqual(self.gateway.admin('POST', query).status, 403)
        yes = {'Semel-Admin': 'yes'}
        # A page whose name was turned to this machine sends its own name, and may send any header.
        for foreign in ({'Host': 'evil.example'}, {'Host': 'localhost.evil.example:9102'},
                        {'Host': '127.0.0.1.evil.example'}, {'Host': '[::1].evil.example'},
                        {'Host': ''}, {'Origin': 'http://127.0.0.1'}):
            self.assertEqual(self.gateway.admin('POST', query, {**yes, **foreign}).status, 403)
        self.assertEqual(self.gateway.admin('GET', query, yes).status, 405)
        self.assertEqual(self.gateway.admin('POST', query + 'x', yes).status, 404)
        self.assertEqual(self.gateway.admin('POST', query, yes).status, 200)
        self.assertEqual(self.gateway.admin('POST', query, yes).status, 404)
        self.assertEqual(self.pay(body, target=target, key='hang').status, 504)
        self.assertEqual(self.effects(body), 2)

    def test_statuses(self):
        for code, again in ((404, 404), (500, 409), (429, 429), (204, 204), (304, 304)):
            target = f'/pay?do=status&code={code}'
            body = str(code).encode()
            self.assertEqual(self.pay(body, key=body.decode(), target=target).status, code)
            self.assertEqual(self.pay(body, key=body.decode(), target=target).status, again)
            self.assertEqual(self.effects(body), 2 if code == 429 else 1)

    def test_nothing_was_sent_frees_the_key(self):
        port = self.upstream.port
        self.upstream.stop()
        reply = self.pay()
        self.assertEqual((reply.status, reply.problem), (502, 'upstream-unreachable'))
        self.upstream = Upstream(port)
        self.addCleanup(self.upstream.stop)
        self.assertEqual(self.pay().status, 201)

    def test_a_reply_above_the_limit_is_passed_on_and_done(self):
        target = '/pay?do=big&bytes=300000'
        self.assertEqual(len(self.pay(target=target).body), 300000)
        reply = self.pay(target=target)
        self.assertEqual((reply.status, reply.problem), (409, 'reply-not-kept'))
        self.assertEqual(self.effects(), 1)

    def test_forms_of_replies(self):
        chunked = self.pay(target='/pay?do=chunked', key='c')
        self.assertEqual(chunked.body, b'hello world')
        self.assertNotIn('x-hop', chunked.fields)
        self.assertEqual(self.pay(target='/pay?do=chunked', key='c').fields['x-end'], ['2'])
        self.assertEqual(self.pay(target='/pay?do=interim', key='i').status, 201)

    def test_expect_continue(self):
        with Client(self.gateway.port) as client:
            client.send(message('POST', '/pay', b'', {'Expect': '100-continue'}, 'k')
                        .replace(b'Content-Length: 0', b'Content-Length: 1'))
            self.assertEqual(client.receive().status, 100)
            client.send(b'1')
            self.assertEqual(client.receive().status, 201)
            client.send(message('POST', '/pay', b'', {'Expect': '100-continue'})
                        .replace(b'Content-Length: 0', b'Content-Length: 1'))
            self.assertEqual(client.receive().status, 400)  # before the body

    def test_the_upstream_sees_what_it_should(self):
        self.pay(fields={'X-Forwarded-For': '6.6.6.6', 'Connection': 'TE, X-Hop', 'X_Hop': '1',
                         'Semel-Fencing-Token': '99', 'TE': 'trailers'})
        fields = self.upstream.requests[0][2]
        self.assertEqual(fields['x-forwarded-for'], ['127.0.0.1'])
        self.assertEqual(fields['host'], ['shop'])
        self.assertNotIn('x_hop', fields)
        self.assertNotIn('te', fields)
        self.assertNotEqual(fields['semel-fencing-token'], ['99'])
        self.assertEqual(fields['idempotency-key'], ['k'])

    def test_an_encoded_path_is_the_same_route(self):
        for target in ('/%70ay', '//pay', '/pay//x'):
            self.assertEqual(self.pay(key=None, target=target).problem, 'key-missing')
        for target in ('/x/../pay', '/%2570ay', '/x/%2e%2e/pay', '/x%2f..%2fpay', '/x\\..\\pay'):
            self.assertEqual(self.pay(key=None, target=target).problem, 'bad-request')
        self.assertEqual(self.upstream.requests, [])

    def test_a_trailer_changes_no_key(self):
        head = message('POST', '/pay', b'', {'Transfer-Encoding': 'chunked'}, 'k')
        head = head.replace(b'Content-Length: 0\r\n', b'')
        with Client(self.gateway.port) as client:
            client.send(head + b'1\r\n1\r\n0\r\n'
                        b'Idempotency-Key: other\r\nAuthorization: bob\r\n\r\n')
            self.assertEqual(client.receive().status, 201)
        self.assertTrue(self.pay().is_replay)


class Stored(GatewayCase):
    stores = True
    routes = PAY + route('free', '/free', 'guard = "idempotency-key"\non-lease-end = "release"')

    def test_a_recorded_reply_outlives_a_kill(self):
        self.assertEqual(self.pay().status, 201)
        self.gateway.kill()
        self.gateway.start()
        self.assertTrue(self.pay().is_replay)
        self.assertEqual(self.effects(), 1)

    def test_a_kill_while_the_upstream_works_is_a_doubt_or_free(self):
        for path, status in (('/pay', 409), ('/free', 201)):
            target = f'{path}?do=hold&name={path[1:]}'
            with Client(self.gateway.port) as client:
                client.send(message('POST', target, b'1', key='k'))
                self.assertTrue(self.upstream.arrived[path[1:]].wait(WITHIN))
                self.gateway.kill()
            self.upstream.release(path[1:])
            self.gateway.start()
            self.assertEqual(self.pay(target=target).status, status)

    def test_sigterm_finishes_what_runs(self):
        with Client(self.gateway.port) as client, Client(self.gateway.port) as idle:
            client.send(message('POST', '/pay?do=hold&name=x', b'1', key='k'))
            self.assertTrue(self.upstream.arrived['x'].wait(WITHIN))
            ended = []
            thread = threading.Thread(target=lambda: ended.append(self.gateway.stop()))
            thread.start()
            self.assertIsNone(idle.receive())
            self.upstream.release('x')
            reply = client.receive()
            self.assertEqual((reply.status, reply.fields['connection']), (201, ['close']))
            thread.join(WITHIN)
        self.assertEqual(ended, [0])
        self.gateway.start()
        self.assertTrue(self.pay(target='/pay?do=hold&name=x').is_replay)

    def test_one_process_at_a_time(self):
        with new_directory() as other, self.assertRaisesRegex(CannotStart, 'store'):
            Gateway(PROGRAM, 1, PAY, other, ['--store', self.directory.name + '/store'])


class FullDisk(unittest.TestCase):
    """A file system of 80 MiB, on which the store keeps no reserve."""

    def test_nothing_is_sent_that_cannot_be_written_and_replies_stay(self):
        directory = new_directory()
        self.addCleanup(directory.cleanup)
        volume = os.path.join(directory.name, 'volume')
        os.mkdir(volume)
        mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', volume],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f'nothing can be mounted: {mounted.stderr.strip()}')
        self.addCleanup(subprocess.run, ['umount', '-l', volume], check=False,
                        stderr=subprocess.DEVNULL)
        upstream = Upstream()
        self.addCleanup(upstream.stop)
        gateway = Gateway(PROGRAM, upstream.port, PAY.replace('2000', '1000000'), directory.name,
                          ['--store', os.path.join(volume, 'store')])
        self.addCleanup(gateway.end)

        def ask(number):
            body = b'%d' % number
            return gateway.request('POST', '/pay?do=big&bytes=500000', body, key=f'k{number}')
        statuses = {}
        while list(statuses.values()).count(503) < 10 and len(statuses) < 400:
            number = len(statuses)
            statuses[number] = ask(number).status
        refused = [number for number, status in statuses.items() if status == 503]
        self.assertEqual(len(refused), 10, statuses)
        self.assertEqual([n for n in refused if upstream.effects[b'%d' % n]], [])
        for _ in range(2):  # it opens on the full disk, as often as it is killed
            gateway.kill()
            gateway.start()
            self.assertEqual(ask(refused[0]).status, 503)
            for number in list(statuses)[:20]:
                self.assertTrue(ask(number).is_replay)
        subprocess.run(['mount', '-o', 'remount,size=200m', volume], check=True)
        deadline = time.monotonic() + WITHIN
        while ask(refused[0]).status == 503 and time.monotonic() < deadline:
            time.sleep(0.05)  # a poll interval; the condition is the reply
        self.assertTrue(ask(refused[0]).is_replay)
        self.assertEqual({upstream.effects[b'%d' % n] for n in statuses}, {0, 1})


class Passed(GatewayCase):
    routes = PAY + route('echo', '/echo', 'upgrade = true') + route('no', '/no', 'guard = "refuse"')

    def test_bodies_stream_both_ways(self):
        body = os.urandom(3_000_000)
        reply = self.gateway.request('PUT', '/other', body)
        self.assertEqual(reply.body, b'1:' + body)
        reply = self.gateway.request('GET', '/other?do=big&bytes=5000000')
        self.assertEqual(len(reply.body), 5_000_000)

    def test_a_chunked_request(self):
        head = message('POST', '/other', b'', {'Transfer-Encoding': 'chunked'})
        with Client(self.gateway.port) as client:
            client.send(head.replace(b'Content-Length: 0\r\n', b'') + b'3\r\nabc\r\n')
            client.send(b'2;x=y\r\nde\r\n0\r\n\r\n')
            self.assertEqual(client.receive().body, b'1:abcde')
            self.assertEqual(client.request('GET', '/other').status, 200)

    def test_a_reply_before_the_end_of_the_request(self):
        with Client(self.gateway.port) as client:
            client.send(message('POST', '/other?do=early', b'x' * 10)[:-5])
            self.assertEqual(client.receive().status, 413)

    def test_keep_alive_and_pipelined_requests(self):
        with Client(self.gateway.port) as client:
            client.send(message('GET', '/a') * 20)
            self.assertEqual([client.receive().status for _ in range(20)], [200] * 20)
        self.assertEqual(self.gateway.metric('semel_gateway_upstream_connections_opened_total'), 1)

    def test_head_and_old_clients(self):
        self.assertEqual(self.gateway.request('HEAD', '/a').fields['content-length'], ['2'])
        with Client(self.gateway.port) as client:
            client.send(b'GET /a?do=chunked HTTP/1.0\r\n\r\n')
            reply = client.receive()
            self.assertEqual(reply.body, b'hello world')
            self.assertNotIn('transfer-encoding', reply.fields)

    def test_upgrades_by_policy(self):
        self.assertEqual(self.gateway.request('GET', '/a', fields=handshake()).status, 501)
        with Client(self.gateway.port) as client:
            client.send(message('GET', '/echo?do=upgrade', b'', handshake()) + b'early ')
            self.assertEqual(client.receive().status, 101)
            client.send(b'late')
            self.assertEqual(client.stream.read(10), b'EARLY LATE')
        reply = self.gateway.request('GET', '/a?do=upgrade')
        self.assertEqual(reply.status, 502)

    def test_a_pooled_connection_that_ended_is_not_used(self):
        self.assertEqual(self.gateway.request('GET', '/a').status, 200)
        self.upstream.cut()
        self.assertEqual(self.gateway.request('GET', '/a').status, 200)
        self.assertEqual(self.pay().status, 201)

    def test_routes_that_are_refused(self):
        self.assertEqual(self.gateway.request('GET', '/no').problem, 'route-refused')

    def test_metrics_health_and_log(self):
        self.assertEqual(self.gateway.admin('GET', '/healthz').status, 200)
        self.assertEqual(self.gateway.admin('GET', '/readyz').status, 200)
        self.gateway.request('GET', '/a"\x7f?secret=1'.replace('\x7f', ''))
        self.pay()
        self.assertEqual(self.gateway.wait_for_metric(
            'semel_gateway_requests_total{route="pay",outcome="granted"}', 1), 1)
        self.gateway.stop()
        import json
        with open(self.gateway.access_log, encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line['status'] for line in lines], [200, 201])
        self.assertEqual(lines[0]['path'], '/a"')
        self.assertEqual(lines[1]['outcome'], 'granted')


class Hostile(GatewayCase):
    settings = '''threads = 1
connections = 40
head-timeout = "300ms"
body-timeout = "300ms"
idle-timeout = "600ms"
head-bytes = 2048
body-memory = 1400
upstream-connections = 2
upstream-queue = 1
queue-timeout = "200ms"
'''

    def test_smuggling_is_refused_and_the_connection_closed(self):
        for fields in (b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
                       b'Content-Length: 5\r\nContent-Length: 5\r\n',
                       b'Transfer-Encoding: xchunked\r\n', b'Transfer-Encoding : chunked\r\n',
                       b'X: a\r\n b\r\n', b'X: a\nContent-Length: 3\r\n', b'X: a\rb\r\n',
                       b'X: \0\r\n'):
            with Client(self.gateway.port) as client:
                client.send(b'POST /a HTTP/1.1\r\nHost: a\r\n' + fields + b'\r\n0\r\n\r\n'
                            b'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n')
                self.assertEqual(client.receive().status, 400)
                self.assertIsNone(client.receive())
        self.assertEqual(self.upstream.requests, [])

    def test_slow_and_silent_clients_are_ended(self):
        clients = [Client(self.gateway.port) for _ in range(16)]
        for client in clients[:8]:
            client.send(b'GET / HTTP/1.1\r\nHost')
        for client in clients[8:]:
            client.send(message('POST', '/pay', b'', None, 'k').replace(b'h: 0', b'h: 9') + b'12')
        self.assertEqual([client.receive() for client in clients], [None] * 16)
        self.assertEqual(self.gateway.request('GET', '/a').status, 200)
        with Client(self.gateway.port) as silent:
            self.assertIsNone(silent.receive())
        for client in clients:
            client.close()
        self.assertEqual(self.upstream.effects[b'12'], 0)

    def test_heads_have_a_bound(self):
        def head(bytes_of_it):
            start = b'GET /a HTTP/1.1\r\nHost: a\r\nX: '
            return start + b'x' * (bytes_of_it - len(start) - 4) + b'\r\n\r\n'
        with Client(self.gateway.port) as client:
            client.send(head(2048))
            self.assertEqual(client.receive().status, 200)
            client.send(head(2049))
            self.assertEqual(client.receive().status, 431)

    def test_connections_have_a_bound(self):
        clients = [Client(self.gateway.port) for _ in range(40)]
        for client in clients:
            client.send(b'G')
        late = Client(self.gateway.port)
        try:
            reply = late.receive()
            self.assertTrue(reply is None or reply.status == 503)
        except ConnectionError:
            pass
        for client in [*clients, late]:
            client.close()

    def test_buffered_bodies_have_a_bound(self):
        with Client(self.gateway.port) as first:
            body = b'x' * 900  # a quarter of the budget is for replies
            first.send(message('POST', '/pay', body, key='a')[:-1])
            while (reply := self.pay(b'x' * 200, key='b')).status != 503:
                self.assertEqual(reply.status, 201)  # the first was not read yet
            self.assertEqual(reply.problem, 'gateway-busy')
            first.send(b'x')
            self.assertEqual(first.receive().status, 201)
        self.assertEqual(self.pay(b'x' * 1000, key='c').status, 201)

    def test_a_port_is_of_one_gateway(self):
        with new_directory() as other, self.assertRaisesRegex(CannotStart, 'cannot listen'):
            Gateway(PROGRAM, 1, PAY, other, settings=f'listen = "127.0.0.1:{self.gateway.port}"')

    def test_the_queue_for_the_upstream_has_a_bound(self):
        held = []
        for name in 'ab':
            held.append(Client(self.gateway.port))
            held[-1].send(message('GET', f'/a?do=hold&name={name}'))
            self.assertTrue(self.upstream.arrived[name].wait(WITHIN))
        reply = self.gateway.request('GET', '/b')  # waits, and gives up
        self.assertEqual((reply.status, reply.problem), (503, 'upstream-busy'))
        reply = self.pay()
        self.assertEqual(reply.status, 503)
        for name in 'ab':
            self.upstream.release(name)
        for client in held:
            self.assertEqual(client.receive().status, 200)
            client.close()
        self.assertEqual(self.pay().status, 201)  # nothing was sent: the key is free

    def test_odd_requests(self):
        for data, status in ((b'\x16\x03\x01\x02\0\x01\n\n', 400), (b'\n\n', 400),
                             (b'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 400),
                             (b'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 501),
                             (b'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n', 501),
                             (b'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n1', 400)):
            with Client(self.gateway.port) as client:
                client.send(data)
                client.socket.shutdown(socket.SHUT_WR)
                self.assertEqual(client.receive().status, status, data)


class Mutated(GatewayCase):
    """Requests with random bytes changed, cut, doubled and joined, on 16 connections at a time."""
    routes = PAY + route('echo', '/echo', 'upgrade = true') + route(
        'click', '/click', 'guard = "debounce"') + route(
        'issue', '/token', 'guard = "issue-token"\ntoken-route = "form"') + route(
        'form', '/form', 'guard = "form-token"')
    settings = 'threads = 2\nhead-timeout = "200ms"\nbody-timeout = "200ms"\n'
    rounds = int(os.environ.get('SEMEL_GATEWAY_ROUNDS', '20'))

    def test_nothing_ends_it(self):
        seed = int(os.environ.get('SEMEL_SEED', random.SystemRandom().randrange(1 << 31)))
        print(f'seed {seed} (again with SEMEL_SEED={seed})', file=sys.stderr)
        threads = [threading.Thread(target=self.attack, args=(seed + i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.pay(b'end', key='end').status, 201)
        self.assertTrue(self.pay(b'end', key='end').is_replay)

    def attack(self, seed):
        rng = random.Random(seed)
        plain = [message('GET', '/a'), message('HEAD', '/a'), message('POST', '/other', b'abc'),
                 message('POST', '/pay', b'm', key='m'), message('POST', '/click', b'c'),
                 message('GET', '/token'), message('GET', '/a?do=chunked'),
                 message('POST', '/pay?do=half', b'm', key='h'),
                 message('GET', '/echo?do=upgrade', b'', handshake()),
                 message('POST', '/other', b'', {'Transfer-Encoding': 'chunked'})
                 .replace(b'Content-Length: 0\r\n', b'') + b'3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n']
        for _ in range(self.rounds):
            data = bytearray(b''.join(rng.choices(plain, k=rng.randrange(1, 4))))
            for _ in range(rng.randrange(4)):
                if not data:
                    break
                at = rng.randrange(len(data))
                kind = rng.randrange(4)
                if kind == 0:
                    data[at] = rng.randrange(256)
                elif kind == 1:
                    del data[at:at + rng.randrange(1, 8)]
                elif kind == 2:
                    data[at:at] = data[at:at + rng.randrange(1, 40)]
                else:
                    del data[at + 1:]
            try:
                with Client(self.gateway.port, 3) as client:
                    client.send(bytes(data))
                    if rng.random() < 0.5:
                        client.socket.shutdown(socket.SHUT_WR)
                    client.socket.settimeout(rng.choice((0.01, 0.5)))
                    while client.socket.recv(65536):
                        pass
            except OSError:
                pass


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    unittest.main()
