#!/usr/bin/env python3
"""Gateways whose store is a node or a group, with real ones, with connections that are cut at each
step, and with what only pretends to be a node: store_test.py PROGRAM [unittest's arguments].
"""

import os
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from features_test import signed  # noqa: E402
from harness import WITHIN, Client, Gateway, Upstream, message, new_directory  # noqa: E402
from stores import (Node, Pretender, Relay, always, in_threads, once, seconds_of,  # noqa: E402
                    wait_until)
from group import Group  # noqa: E402  (stores has found the folder)
from servers import CannotStart  # noqa: E402

PROGRAM = ''
ROUTES = '''
[[key]]
id = "k1"
secret = "0123456789abcdef"
[[route]]
name = "pay"
path = "/pay/**"
guard = "idempotency-key"
lease = "6s"
[[route]]
name = "slow"
path = "/slow/**"
guard = "idempotency-key"
lease = "1s"
[[route]]
name = "wait"
path = "/wait"
guard = "idempotency-key"
wait = "10s"
[[route]]
name = "free"
path = "/free"
guard = "idempotency-key"
on-broken = "release"
[[route]]
name = "click"
path = "/click"
guard = "debounce"
debounce = "10s"
[[route]]
name = "form"
path = "/form"
guard = "form-token"
[[route]]
name = "token"
path = "/token"
guard = "issue-token"
token-route = "form"
[[route]]
name = "hook"
path = "/hook"
signature = true
'''


class Case(unittest.TestCase):
    settings = 'threads = 1\nstore-timeout = "500ms"\nstore-patience = "3s"\n'

    def setUp(self):
        self.directory = new_directory()
        self.addCleanup(self.directory.cleanup)
        self.upstream = Upstream()
        self.addCleanup(self.upstream.stop)
        self.count = 0

    def place(self, name):
        path = os.path.join(self.directory.name, name)
        os.makedirs(path, exist_ok=True)
        return path

    def start_node(self, *flags, **how):
        node = Node(PROGRAM, self.place('store'), *flags, **how)
        self.addCleanup(node.end)
        return node

    def start_gateway(self, *addresses, settings='', routes=ROUTES):
        self.count += 1
        flags = ['--store-node', ','.join(addresses)] if addresses else []
        gateway = Gateway(PROGRAM, self.upstream.port, routes, self.place(f'gw{self.count}'),
                          flags, self.settings + settings)
        self.addCleanup(gateway.end)
        return gateway

    def refused(self, *addresses, **how):
        """Why the gateway does not start."""
        with self.assertRaises(CannotStart) as failed:
            self.start_gateway(*addresses, **how)
        return str(failed.exception)

    def effects(self, body):
        with self.upstream.lock:
            return self.upstream.effects[body]


class OneNode(Case):
    def setUp(self):
        super().setUp()
        self.node = self.start_node()

    def test_each_guard_works_as_with_a_store_of_its_own(self):
        gateway = self.start_gateway(self.node.address)
        first = gateway.request(target='/pay/1', body=b'a', key='k')
        again = gateway.request(target='/pay/1', body=b'a', key='k')
        self.assertEqual((first.status, first.is_replay), (201, False))
        self.assertEqual((again.status, again.body, again.is_replay), (201, first.body, True))
        self.assertEqual(gateway.request(target='/pay/1', body=b'b', key='k').problem, 'mismatch')
        self.assertFalse(gateway.request(target='/pay/1', body=b'a', key='k', who='bob').is_replay)
        self.assertEqual(gateway.request(target='/click', body=b'c').status, 201)
        self.assertEqual(gateway.request(target='/click', body=b'c').problem, 'debounced')
        token = gateway.request('GET', '/token').body.split(b'"')[3].decode()
        form = {'Semel-Form-Token': token}
        self.assertEqual(gateway.request(target='/form', body=b'f', fields=form).status, 201)
        self.assertTrue(gateway.request(target='/form', body=b'f', fields=form).is_replay)
        unknown = {'Semel-Form-Token': '0' * 32}
        self.assertEqual(gateway.request(target='/form', fields=unknown).problem, 'token-unknown')
        self.assertEqual(gateway.admin('GET', '/readyz').status, 200)

    def test_signed_requests_are_taken_once_by_the_nodes_clock(self):
        gateway = self.start_gateway(self.node.address)
        other = self.start_gateway(self.node.address)

        def hook(by, nonce, seconds=None):
            fields = signed('POST', '/hook', '', b'1', nonce, seconds=seconds)
            return by.request('POST', '/hook', b'1', fields)
        replies = in_threads([lambda by=by: hook(by, 'n1')
                              for by in (gateway, other) for _ in range(6)])
        self.assertEqual(sorted(reply.status for reply in replies), [201] + [409] * 11)
        now = int(time.time())
        self.assertEqual(hook(gateway, 'n2', now - 61).problem, 'signature-expired')
        self.assertEqual(hook(gateway, 'n3', now + 120).problem, 'signature-expired')
        self.assertEqual(hook(gateway, 'n4', now - 30).status, 201)
        fields = signed('POST', '/hook', '', b'1', 'n5', secret=b'another secret..')
        self.assertEqual(gateway.request('POST', '/hook', b'1', fields).problem,
                         'signature-invalid')

    def test_two_gateways_have_one_effect_for_each_key(self):
        gateways = [self.start_gateway(self.node.address) for _ in range(2)]
        for number in range(20):
            body = b'%d' % number
            replies = in_threads([
                lambda by=by, body=body: by.request(target='/wait', body=body, key=body.decode())
                for by in gateways for _ in range(4)])
            self.assertEqual({(reply.status, reply.body) for reply in replies},
                             {(201, b'1:' + body)})
            self.assertEqual(sum(not reply.is_replay for reply in replies), 1)
            self.assertEqual(self.effects(body), 1)

    def test_a_duplicate_at_another_gateway_waits_for_the_first(self):
        one, two = (self.start_gateway(self.node.address) for _ in range(2))
        results = []
        first = threading.Thread(target=lambda: results.append(
            one.request(target='/wait?do=hold&name=x', body=b'w', key='k')))
        first.start()
        self.assertTrue(self.upstream.arrived['x'].wait(WITHIN))
        second = threading.Thread(target=lambda: results.append(
            two.request(target='/wait?do=hold&name=x', body=b'w', key='k')))
        second.start()
        quick = two.request(target='/pay/x', body=b'w', key='k')
        self.assertEqual(quick.status, 201)  # others are not held up
        self.upstream.release('x')
        first.join(WITHIN)
        second.join(WITHIN)
        self.assertEqual(sorted(reply.is_replay for reply in results), [False, True])
        self.assertEqual(self.upstream.effects[b'w'], 2)  # of two routes

    def test_a_lease_is_renewed_while_the_upstream_works(self):
        gateway = self.start_gateway(self.node.address)
        other = self.start_gateway(self.node.address)
        results = []
        first = threading.Thread(target=lambda: results.append(
            gateway.request(target='/slow/1?do=hold&name=s', body=b's', key='k')))
        first.start()
        self.assertTrue(self.upstream.arrived['s'].wait(WITHIN))
        until = time.monotonic() + 2.5  # leases of 1 s
        while time.monotonic() < until:
            reply = other.request(target='/slow/1?do=hold&name=s', body=b's', key='k')
            self.assertEqual(reply.problem, 'in-flight')
        self.upstream.release('s')
        first.join(WITHIN)
        self.assertNotIn('semel-recorded', results[0].fields)
        self.assertEqual(self.effects(b's'), 1)

    def test_an_operator_ends_a_doubt_at_the_node(self):
        gateway = self.start_gateway(self.node.address)
        reply = gateway.request(target='/pay/1?do=close', body=b'd', key='k')
        self.assertEqual(reply.status, 502)
        self.assertEqual(gateway.request(target='/pay/1?do=close', body=b'd', key='k').problem,
                         'in-doubt')
        key = self.node.keys()[0].replace('|', '%7C')

        def resolve(how, route='pay'):
            return gateway.admin('POST', f'/resolve?route={route}&as={how}&key={key}',
                                 {'Semel-Admin': 'yes'}).status
        self.assertEqual(resolve('done', 'nobody'), 400)
        self.assertEqual(resolve('released'), 200)
        self.assertEqual(resolve('released'), 404)
        gateway.request(target='/pay/1?do=close', body=b'd', key='k')
        self.assertEqual(resolve('done'), 200)
        self.assertEqual(gateway.request(target='/pay/1?do=close', body=b'd', key='k').problem,
                         'reply-not-kept')
        self.assertEqual(self.effects(b'd'), 2)

    def test_large_replies_are_recorded_and_replayed(self):
        gateway = self.start_gateway(self.node.address)
        target = '/pay/1?do=big&bytes=900000'
        replies = in_threads([lambda n=n: gateway.request(target=target, body=b'%d' % n,
                                                          key=f'big-{n}') for n in range(8)])
        self.assertEqual({len(reply.body) for reply in replies}, {900_000})
        again = gateway.request(target=target, body=b'3', key='big-3')
        self.assertTrue(again.is_replay)
        self.assertEqual(len(again.body), 900_000)

    def test_a_full_node_is_503_and_nothing_is_sent(self):
        full = Node(PROGRAM, self.place('full'), '--maxmemory', '33554432', storage=False)
        self.addCleanup(full.end)
        gateway = self.start_gateway(full.address)
        big = '/pay/1?do=big&bytes=900000'
        self.assertEqual(gateway.request(target=big, body=b'0', key='0').status, 201)
        sizes = [1_000_000, 100_000, 10_000, 1_000, 100, 8]
        for size in sizes[:2]:
            full.fill(size)
        # There is room for a claim, and none for a large reply: it is done, and not kept.
        self.assertEqual(gateway.request(target=big, body=b'1', key='1').status, 201)
        self.assertEqual(gateway.request(target=big, body=b'1', key='1').problem, 'reply-not-kept')
        for size in sizes[2:]:
            full.fill(size)
        reply = gateway.request(target=big, body=b'2', key='2')
        self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
        self.assertTrue(gateway.request(target=big, body=b'0', key='0').is_replay)
        self.assertEqual([self.effects(body) for body in (b'0', b'1', b'2')], [1, 1, 0])

    def test_a_node_without_a_storage_that_starts_again_gets_the_routes_terms_anew(self):
        node = Node(PROGRAM, self.place('memory'), storage=False)
        self.addCleanup(node.end)
        gateway = self.start_gateway(node.address)
        gateway.request(target='/pay/1', body=b'1', key='1')
        node.kill()
        node.start()
        self.assertEqual(gateway.request(target='/pay/1?do=close', body=b'2', key='2').status, 502)
        self.assertEqual(gateway.request(target='/pay/1?do=close', body=b'2', key='2').problem,
                         'in-doubt')
        shown = node.ask('SEMEL.NAMESPACE', 'SHOW', 'gw.pay')
        self.assertEqual(shown[shown.index(b'on_lease_end') + 1], b'in-doubt')


class Refusals(Case):
    def test_what_a_node_cannot_do_is_named_at_the_start(self):
        node = self.start_node()
        self.assertIn('record-bytes', self.refused(node.address, routes=ROUTES.replace(
            'lease = "6s"', 'record-bytes = "5mb"')))
        for line, word in (('store = "/tmp/x"', 'one store'), ('durability = "synced"', 'own'),
                           ('memory = "64mb"', 'own'), ('store-user = "x"', 'password'),
                           ('store-ca = "x"', 'store-tls')):
            text = self.refused(settings=f'store-node = ["{node.address}"]\n{line}\n')
            self.assertIn(word, text)
        self.assertIn('is not host:port', self.refused('nonsense'))

    def test_two_nodes_by_themselves_are_no_group(self):
        nodes = [Node(PROGRAM, self.place(name), storage=False) for name in ('a', 'b')]
        for node in nodes:
            self.addCleanup(node.end)
        self.assertIn('of one group', self.refused(*(node.address for node in nodes)))


class EachStep(Case):
    """The connection is cut, or nothing comes, at each command of a request."""

    def setUp(self):
        super().setUp()
        self.node = self.start_node()
        self.relay = Relay(self.node.port)
        self.addCleanup(self.relay.stop)
        self.gateway = self.start_gateway(self.relay.address)

    def pay(self, body, target='/pay/1', key=None):
        return self.gateway.request(target=target, body=body, key=key or body.decode())

    def test_a_cut_at_any_command_is_not_seen_by_the_client(self):
        for verb in (b'SEMEL.CLAIM', b'SEMEL.COMPLETE'):
            for how in ('request', 'reply', 'mute'):
                with self.subTest(verb=verb, how=how):
                    body = verb[6:] + b'-' + how.encode()
                    self.relay.fault = once(verb, how)
                    reply = self.pay(body)
                    self.relay.fault = lambda request: None
                    self.assertEqual((reply.status, reply.is_replay), (201, False))
                    self.assertNotIn('semel-recorded', reply.fields)
                    self.assertTrue(self.pay(body).is_replay)
                    self.assertEqual(self.effects(body), 1)

    def test_a_doubt_and_a_release_are_asked_again(self):
        for target, problem in (('/pay/1?do=close', 'in-doubt'), ('/free?do=close', None)):
            for how in ('request', 'reply'):
                body = target.encode() + how.encode()
                self.relay.fault = once(b'SEMEL.FAIL', how)
                self.assertEqual(self.pay(body, target, 'k' + how).status, 502)
                again = self.pay(body, target, 'k' + how)
                if problem:
                    self.assertEqual(again.problem, problem)
                self.assertEqual(self.effects(body), 1 if problem else 2)

    def test_a_claim_that_nobody_knows_is_503_and_given_back(self):
        self.relay.fault = always(b'SEMEL.CLAIM', 'reply')
        seconds, reply = seconds_of(lambda: self.pay(b'u'))
        self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
        self.assertIn('retry-after', reply.fields)
        self.assertLess(seconds, 6)
        self.assertEqual(self.effects(b'u'), 0)
        self.assertEqual(self.node.claim('pay', self.node.keys()[0])['state'], b'held')
        self.relay.fault = lambda request: None
        # Its lease is 6 s: within it the claim is given back, and is no doubt afterwards.
        wait_until(lambda: self.pay(b'u').status == 201, 'the key is free again', 3)
        self.assertEqual(self.effects(b'u'), 1)

    def test_a_reply_that_cannot_be_recorded_says_so_when_the_lease_is_over(self):
        self.relay.fault = always(b'SEMEL.COMPLETE', 'request')
        seconds, reply = seconds_of(lambda: self.pay(b'r'))
        self.assertEqual((reply.status, reply.fields['semel-recorded']), (201, ['no']))
        self.assertTrue(4 < seconds < 9, seconds)
        self.relay.fault = lambda request: None
        wait_until(lambda: self.pay(b'r').problem == 'in-doubt', 'the claim is in doubt', 4)
        self.assertEqual(self.effects(b'r'), 1)
        self.assertEqual(self.gateway.metric('semel_gateway_replies_unrecorded_total'), 1)

    def test_a_nonce_that_nobody_knows_is_given_back(self):
        fields = signed('POST', '/hook', '', b'1', 'n')
        self.relay.fault = always(b'SEMEL.CLAIM', 'reply')
        self.assertEqual(self.gateway.request('POST', '/hook', b'1', fields).status, 503)
        self.relay.fault = lambda request: None
        wait_until(lambda: self.gateway.request('POST', '/hook', b'1', fields).status == 201,
                   'the same signed request is taken', 5)
        self.assertEqual(self.gateway.request('POST', '/hook', b'1', fields).problem,
                         'nonce-reused')
        self.assertEqual(self.effects(b'1'), 1)

    def test_a_node_that_is_killed_at_each_step_doubles_nothing(self):
        for number, verb in enumerate((b'SEMEL.CLAIM', b'SEMEL.COMPLETE') * 2):
            body = b'kill-%d' % number
            killed = threading.Event()

            def drop(request, verb=verb, killed=killed):
                if verb in request and not killed.is_set():
                    self.node.kill()
                    killed.set()
                return None
            self.relay.fault = drop
            replies = []
            payer = threading.Thread(target=lambda body=body, replies=replies: replies.extend(
                self.pay(body) for _ in range(3)))
            payer.start()
            self.assertTrue(killed.wait(WITHIN))
            self.node.start()
            payer.join(3 * WITHIN)
            self.assertEqual(self.effects(body), 1)
            self.assertEqual(replies[-1].body, b'1:' + body)
            self.assertTrue(replies[-1].is_replay)

    def test_a_node_that_stands_still_is_503_within_the_patience_and_comes_back(self):
        self.pay(b'0')
        self.node.pause()
        seconds, reply = seconds_of(lambda: self.pay(b'1'))
        self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
        self.assertLess(seconds, 6)
        self.assertEqual(self.effects(b'1'), 0)
        self.node.resume()
        wait_until(lambda: self.pay(b'1').status == 201, 'the node is used again', 8)
        self.assertEqual(self.effects(b'1'), 1)


class Pretended(Case):
    settings = Case.settings.replace('"3s"', '"1s"').replace('"500ms"', '"300ms"')

    def setUp(self):
        super().setUp()
        self.store = Pretender()
        self.addCleanup(self.store.stop)
        self.gateway = self.start_gateway(self.store.address)

    def ask(self, answer):
        self.store.answer = answer if callable(answer) else lambda request: answer
        return self.gateway.request(target='/pay/1', body=b'x', key='k', timeout=WITHIN)

    def test_whatever_is_no_answer_reaches_neither_the_upstream_nor_the_client(self):
        granted = b'*4\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$1\r\n7\r\n'
        for answer in (b'HTTP/1.1 200 OK\r\n\r\n', b'\x00' * 4096, b'$99999999999\r\n', b'*-5\r\n',
                       b'*1000000\r\n', b'*1\r\n*1\r\n*1\r\n', b'$-7\r\n', b':\r\n', b'$1\r\nabc',
                       b'-' + b'x' * 10_000, b'*2\r\n$7\r\noutcome\r\n', granted[:-3],
                       b'*2\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n', b'+OK\r\n', b'$-1\r\n',
                       b':7\r\n',
                       granted.replace(b'\r\n7\r\n', b'\r\n0\r\n'),
                       granted.replace(b'\r\n7\r\n', b'\r\nx\r\n'),
                       b'*2\r\n$7\r\noutcome\r\n$7\r\nperhaps\r\n', None,
                       b'-NOPERM no\r\n', b'-OOM full\r\n', b'-MISCONF disk\r\n', b'-\r\n',
                       b'-TRYAGAIN\r\n', b'-MOVED 1 127.0.0.1:1\r\n', b'-MOVED\r\n',
                       b'-MOVED 1 nonsense\r\n', b'-CLUSTERDOWN\r\n', b'-LOADING\r\n',
                       b'-READONLY\r\n'):
            with self.subTest(answer=answer):
                reply = self.ask(answer)
                self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
                self.assertEqual(self.upstream.requests, [])
        self.assertEqual(self.gateway.admin('GET', '/healthz').status, 200)

    def test_more_answers_than_questions_end_the_connection(self):
        before = self.store.connections
        self.ask(b'-OOM full\r\n-OOM full\r\n-OOM full\r\n')
        wait_until(lambda: self.store.connections > before, 'it connects anew', 5)
        self.assertEqual(self.ask(b'-OOM full\r\n').status, 503)

    def test_an_answer_in_single_bytes_is_taken(self):
        def slowly(request):
            if b'SEMEL.CLAIM' in request:
                return b'*4\r\n$7\r\noutcome\r\n$7\r\ngranted\r\n$5\r\nepoch\r\n$1\r\n7\r\n'
            return b'*2\r\n$7\r\noutcome\r\n$2\r\nok\r\n'
        reply = self.ask(slowly)
        self.assertEqual(reply.status, 201)
        self.assertEqual(reply.body, b'1:x')

    def test_many_requests_of_a_silent_store_are_bounded_in_time(self):
        self.store.answer = lambda request: None
        seconds, replies = seconds_of(lambda: in_threads(
            [lambda n=n: self.gateway.request(target='/pay/1', body=b'%d' % n, key=f'{n}')
             for n in range(60)]))
        self.assertEqual({reply.status for reply in replies}, {503})
        self.assertLess(seconds, 10)
        self.assertEqual(self.upstream.requests, [])

    def test_a_gateway_ends_with_a_silent_store(self):
        self.store.answer = lambda request: None
        with Client(self.gateway.port) as client:
            client.send(message(target='/pay/1', body=b'x', key='k'))
            self.assertEqual(self.gateway.stop(), 0)


class ThreeNodes(Case):
    settings = Case.settings.replace('"3s"', '"8s"')

    def setUp(self):
        super().setUp()
        self.group = Group(PROGRAM, 3)
        self.addCleanup(self.group.end)
        self.group.wait_leader()
        self.group.wait_complete()
        self.addresses = [f'127.0.0.1:{port}' for port in self.group.ports]

    def test_leaders_are_killed_while_requests_run(self):
        gateways = [self.start_gateway(*self.addresses) for _ in range(2)]
        replies, errors, ended = {}, [], threading.Event()

        def client(number):
            for i in range(1_000_000):
                if ended.is_set():
                    return
                key = f'{number}-{i}'
                for attempt in range(200):
                    by = gateways[attempt % 2]
                    reply = by.request(target='/pay/1', body=key.encode(), key=key, timeout=60)
                    if reply.status == 201 and 'semel-recorded' not in reply.fields:
                        replies[key] = reply.body
                        break
                    if reply.status == 409 and reply.problem == 'in-doubt':
                        errors.append(f'{key}: in doubt')
                        break
                    time.sleep(0.02)  # between tries
                else:
                    errors.append(f'{key}: no answer')
        threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = len(replies)
            wait_until(lambda before=before: len(replies) > before + 20, 'requests run', 60)
            leader = self.group.wait_leader()
            leader.kill()
            self.group.wait_leader()
            leader.start()
            self.group.wait_complete()
        ended.set()
        for thread in threads:
            thread.join(120)
        self.assertEqual(errors, [])
        with self.upstream.lock:
            doubled = {body: n for body, n in self.upstream.effects.items() if n > 1}
        self.assertEqual(doubled, {})
        for key, body in replies.items():
            reply = gateways[0].request(target='/pay/1', body=key.encode(), key=key, timeout=60)
            self.assertEqual((reply.status, reply.body, reply.is_replay), (201, body, True))

    def test_one_address_of_a_follower_leads_to_the_leader(self):
        leader = self.group.wait_leader()
        follower = next(node for node in self.group.nodes if node is not leader)
        gateway = self.start_gateway(f'127.0.0.1:{self.group.ports[follower.number]}')
        self.assertEqual(gateway.request(target='/pay/1', body=b'1', key='1').status, 201)

    def test_a_node_that_is_no_member_is_never_asked(self):
        alone = self.start_node()
        addresses = (alone.address, self.addresses[0])
        try:
            gateway = self.start_gateway(*addresses)
        except CannotStart as refused:  # by the one that was asked first
            self.assertIn('of one group', str(refused))
            gateway = self.start_gateway(*self.addresses[:2])
        self.assertEqual(gateway.request(target='/pay/1', body=b'1', key='1').status, 201)
        for node in self.group.nodes:
            node.kill()
        reply = gateway.request(target='/pay/1', body=b'2', key='2')
        self.assertEqual((reply.status, reply.problem), (503, 'store-unavailable'))
        self.assertEqual(gateway.admin('GET', '/readyz').status, 503)
        self.assertEqual(alone.keys(), [])
        self.assertEqual(self.effects(b'2'), 0)


if __name__ == '__main__':
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
