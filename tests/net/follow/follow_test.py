#!/usr/bin/env python3
"""A node that follows a redis-server: full and partial syncs under a random load, links that break,
masters that say nothing or nonsense, and the way back. follow_test.py PROGRAM. 77: there is no
redis-server."""

import os
import random
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from load import Load, content, difference  # noqa: E402
from relay import Listener  # noqa: E402
from resp import LOOPBACK, PLAIN, Failed, encode  # noqa: E402
from servers import Node, NoPeer, Redis, free_ports, redis_program, until  # noqa: E402

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else 'build/dev/tools/semel/semel'
SEED = int(os.environ.get('SEMEL_SEED', random.SystemRandom().randrange(1 << 30)))
SECONDS = 30


def master(*flags, **options):
    # redis-server ends a wait, as of BLPOP, with its next tick: by default in up to 100 ms.
    return Redis('--repl-diskless-sync-delay', '0', '--repl-backlog-size', '64mb', '--hz', '500',
                 *flags, **options)


def info(server, *sections):
    lines = server.ask('INFO', *sections).decode().split('\r\n')
    return dict(line.split(':', 1) for line in lines if ':' in line)


def play(server, seed, count, without=()):
    requests = [each for each in Load(seed).requests(count) if each[0] not in without]
    with server.client(PLAIN) as client:
        client.all([('CLIENT', 'NO-EVICT', 'on'), *requests])


def is_linked(node):
    return info(node, 'replication').get('master_link_status') == 'up'


def follow(node, port):
    node.ask('REPLICAOF', LOOPBACK, port)


class Gate(Listener):
    """Passes bytes on between a replica and its master, and cuts or holds what the master says."""

    def __init__(self, port):
        self.target, self.left, self.cuts = port, None, 0
        self.passes = threading.Event()
        self.passes.set()
        super().__init__()

    def welcome(self, near):
        try:
            far = socket.create_connection((LOOPBACK, self.target), SECONDS)
        except OSError:
            near.close()
            return
        threading.Thread(target=self.carry, args=(near, far, False), daemon=True).start()
        threading.Thread(target=self.carry, args=(far, near, True), daemon=True).start()

    def carry(self, source, target, is_of_master):
        try:
            while True:
                data = source.recv(1 << 16)
                if is_of_master:
                    self.passes.wait()
                    left = self.left
                    if left is not None and len(data) > left:
                        target.sendall(data[:left])
                        self.left = None
                        self.cuts += 1
                        break
                    if left is not None:
                        self.left = left - len(data)
                if not data:
                    break
                target.sendall(data)
        except OSError:
            pass
        for plug in (source, target):
            try:
                plug.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Liar(Listener):
    """A master that answers each request with the next of `replies`, and then says `stream`."""

    def __init__(self, *replies, stream=b''):
        self.replies, self.stream, self.connections = replies, stream, 0
        super().__init__()

    def welcome(self, plug):
        self.connections += 1
        threading.Thread(target=self.lie, args=(plug,), daemon=True).start()

    def lie(self, plug):
        try:
            for reply in self.replies:
                plug.recv(4096)
                plug.sendall(reply)
            plug.sendall(self.stream)
            while plug.recv(4096):
                pass
        except OSError:
            pass


class Follow(unittest.TestCase):
    def setUp(self):
        self.node = Node(PROGRAM, '--io-threads', 2, '--repl-timeout', 20)
        self.addCleanup(self.node.end)
        self.node.start()

    def start(self, *flags, **options):
        server = master(*flags, **options)
        self.addCleanup(server.end)
        return server.start()

    def fill(self, server):
        """About 200 kB that no packing makes smaller."""
        chance = random.Random(SEED)
        with server.client() as client:
            client.all([('SET', f'bytes:{i}', chance.randbytes(1000)) for i in range(200)])

    def caught_up(self, server):
        """What the master has, the node has acknowledged."""
        with server.client() as client:
            client.ask('SET', 'until', 'here')
            until(lambda: client.ask('WAIT', 1, 500) == 1, 'the replica is in step', SECONDS)

    def check_same(self, server, what):
        self.caught_up(server)

        def differs():
            return difference(content(self.node), content(server))
        # Keys that end in between end a moment later on the other server.
        try:
            until(lambda: not differs(), 'the same', 10)
        except AssertionError:
            self.fail(f'seed {SEED}, {what}:\n{differs()}')
        self.assertEqual(info(self.node, 'stats')['unexpected_error_replies'], '0', what)

    def test_full_sync_and_stream(self):
        for number, flags in enumerate((('--repl-diskless-sync', 'yes'),
                                        ('--repl-diskless-sync', 'no', '--rdbchecksum', 'no'))):
            with self.subTest(flags):
                server = self.start(*flags)
                play(server, SEED + number, 3000)
                # FLUSHALL ends the save that the full sync waits for, and with it the link.
                loader = threading.Thread(
                    target=play, args=(server, SEED + 10 + number, 6000, ('FLUSHALL',)))
                loader.start()
                follow(self.node, server.port)
                loader.join()
                self.check_same(server, flags)
                play(server, SEED + 20 + number, 3000)
                self.check_same(server, flags)
                self.assertEqual(info(server, 'stats')['sync_full'], '1')
                self.assertEqual(self.node.ask('ROLE')[:4],
                                 [b'slave', b'127.0.0.1', server.port, b'connected'])

    def wait_linked_after(self, gate):
        """The gate cuts no more, and the node has gone on after each of its cuts."""
        gate.left = None

        def goes_on():
            about = info(self.node, 'replication')
            return (about.get('master_link_status') == 'up' and
                    int(about['semel_partial_syncs']) == gate.cuts)
        until(goes_on, 'linked', SECONDS)

    def wait_cut_or_in_step(self, gate, cuts, server):
        """The gate has cut once more, or the node has run all that the master has said."""
        end = int(info(server, 'replication')['master_repl_offset'])
        until(lambda: gate.cuts > cuts or
              int(info(self.node, 'replication')['slave_repl_offset']) >= end,
              'cut or in step', SECONDS)

    def test_cut_links_go_on_where_they_were(self):
        server = self.start()
        chance = random.Random(SEED)
        with Gate(server.port) as gate:
            follow(self.node, gate.port)
            for turn in range(25):
                # A cut in the middle of a handshake would be one without a partial sync.
                self.wait_linked_after(gate)
                cuts = gate.cuts
                gate.left = chance.randrange(1, 40_000)
                play(server, SEED + turn, 400)
                self.wait_cut_or_in_step(gate, cuts, server)
            self.wait_linked_after(gate)
            self.check_same(server, 'cuts')
            about = info(server, 'stats')
            self.assertGreater(gate.cuts, 5)
            self.assertEqual(about['sync_full'], '1')
            self.assertEqual(int(about['sync_partial_ok']), gate.cuts)
            ours = info(self.node, 'replication')
            self.assertEqual(ours['semel_full_syncs'], '1')
            self.assertEqual(int(ours['semel_partial_syncs']), gate.cuts)

    def test_full_syncs_that_are_cut_off(self):
        server = self.start()
        self.fill(server)
        chance = random.Random(SEED)
        with Gate(server.port) as gate:
            gate.left = 100
            follow(self.node, gate.port)
            for _ in range(6):
                cuts = gate.cuts
                until(lambda: gate.cuts > cuts or is_linked(self.node), 'cut', SECONDS)
                if is_linked(self.node):
                    break
                gate.left = chance.randrange(1, 60_000)
            gate.left = None
            self.check_same(server, 'cut syncs')

    def test_master_that_is_started_anew(self):
        server = self.start(port=free_ports(1)[0])
        play(server, SEED, 500)
        follow(self.node, server.port)
        self.check_same(server, 'first life')
        server.kill()
        until(lambda: not is_linked(self.node), 'not linked', SECONDS)
        self.assertNotEqual(content(self.node), {'libraries': []})
        server.start()
        play(server, SEED + 1, 500)
        self.check_same(server, 'second life')
        self.assertEqual(info(self.node, 'replication')['semel_full_syncs'], '2')

    def test_no_one_in_the_middle_of_the_stream(self):
        server = self.start()
        follow(self.node, server.port)
        with server.client() as client:
            loader = threading.Thread(
                target=client.all, args=([('RPUSH', 'row', i) for i in range(60_000)],))
            loader.start()
            until(lambda: self.node.ask('LLEN', 'row') > 2000, 'some', SECONDS)
            self.assertEqual(self.node.ask('REPLICAOF', 'NO', 'ONE'), b'OK')
            count = self.node.ask('LLEN', 'row')
            self.node.ask('SET', 'mine', 'yes')
            loader.join()
        row = self.node.ask('LRANGE', 'row', 0, -1)
        self.assertEqual(row, [b'%d' % i for i in range(count)])
        self.assertEqual(self.node.ask('ROLE')[0], b'master')
        self.assertEqual(self.node.ask('GET', 'mine'), b'yes')

    def test_no_one_in_the_middle_of_a_full_sync(self):
        server = self.start()
        self.fill(server)
        self.node.ask('SET', 'old', 1)
        with Gate(server.port) as gate:
            gate.left = 30_000
            follow(self.node, gate.port)
            until(lambda: gate.cuts, 'cut', SECONDS)
            with self.assertRaisesRegex(Failed, 'LOADING'):
                self.node.ask('GET', 'old')
            self.node.ask('REPLICAOF', 'NO', 'ONE')
        self.assertEqual(self.node.ask('DBSIZE'), 0)
        self.node.ask('SET', 'mine', 'yes')

    def test_ten_switches(self):
        servers = [self.start(), self.start()]
        for number, server in enumerate(servers):
            play(server, SEED + number, 300)
        for turn in range(10):
            server = servers[turn % 2]
            follow(self.node, server.port)
            if turn % 3 == 0:
                self.check_same(server, f'switch {turn}')
                self.node.ask('REPLICAOF', 'NO', 'ONE')
        self.check_same_after_switches(servers[1])

    def check_same_after_switches(self, server):
        follow(self.node, server.port)
        self.check_same(server, 'after the switches')

    def test_writes_are_refused(self):
        server = self.start()
        follow(self.node, server.port)
        until(lambda: is_linked(self.node), 'linked', SECONDS)
        text = "READONLY You can't write against a read only replica."
        with self.node.client(PLAIN) as client:
            for request in (('SET', 'a', 1), ('FLUSHALL',), ('SPOP', 'a'), ('LPUSH', 'l', 1)):
                self.assertEqual(client.ask(*request).decode(), text)
            self.assertIn(text, client.ask('EVAL', "return redis.call('set','a',1)", 0).decode())
            self.assertEqual(client.all([('MULTI',), ('SET', 'a', 1), ('EXEC',)])[1:], [
                text.encode(),
                b'EXECABORT Transaction discarded because of previous errors.'])
            self.assertEqual(client.ask('GET', 'a'), None)
            self.assertIn(b'READONLY', client.ask('SEMEL.CLAIM', 'orders', '1'))
            client.ask('CONFIG', 'SET', 'replica-read-only', 'no')
            self.assertEqual(client.ask('SET', 'mine', 1), b'OK')
            self.assertIn(b'no claims', client.ask('SEMEL.CLAIM', 'orders', '1'))
            self.assertEqual(dict(zip(*[iter(client.ask('HELLO'))] * 2))[b'role'], b'replica')
            self.assertIn(b'transaction', client.all(
                [('MULTI',), ('REPLICAOF', 'NO', 'ONE'), ('EXEC',)])[2][0])

    def test_waiting_clients_are_let_go(self):
        server = self.start()
        with self.node.client(PLAIN) as client:
            client.send('BLPOP', 'none', 0)
            until(lambda: info(self.node, 'clients')['blocked_clients'] == '1', 'it waits')
            follow(self.node, server.port)
            self.assertTrue(client.reply().startswith(b'UNBLOCKED'))

    def test_a_node_with_claims_stays_what_it_is(self):
        server = self.start()
        self.node.ask('SEMEL.CLAIM', 'orders', '1')
        with self.assertRaisesRegex(Failed, 'claims'):
            follow(self.node, server.port)
        self.assertEqual(self.node.ask('ROLE')[0], b'master')
        self.assertEqual(self.node.ask('SET', 'a', 1), b'OK')

    def test_password(self):
        server = self.start()
        server.ask('CONFIG', 'SET', 'requirepass', 'secret')
        follow(self.node, server.port)
        until(lambda: 'NOAUTH' in info(self.node, 'replication').get('master_link_error', ''),
              'refused', SECONDS)
        self.node.ask('CONFIG', 'SET', 'masterauth', 'wrong')
        until(lambda: 'WRONGPASS' in info(self.node, 'replication').get('master_link_error', ''),
              'wrong', SECONDS)
        self.node.ask('CONFIG', 'SET', 'masterauth', 'secret', 'masteruser', 'default')
        until(lambda: is_linked(self.node), 'linked', SECONDS)

    def test_keys_do_not_end_ahead_of_the_master(self):
        server = self.start()
        with Gate(server.port) as gate, server.client() as client:
            follow(self.node, gate.port)
            until(lambda: is_linked(self.node), 'linked', SECONDS)
            client.ask('SET', 'renewed', 1, 'PX', 2000)
            client.ask('SET', 'ended', 1, 'PX', 2000)
            until(lambda: self.node.ask('GET', 'renewed'), 'it is here', SECONDS)
            gate.passes.clear()
            client.ask('PEXPIRE', 'renewed', 100_000)
            client.ask('INCR', 'renewed')
            until(lambda: self.node.ask('GET', 'renewed') is None, 'hidden', SECONDS)
            self.assertEqual(self.node.ask('DBSIZE'), 2)
            gate.passes.set()
            until(lambda: self.node.ask('GET', 'renewed') == b'2', 'renewed', SECONDS)
            self.assertGreater(self.node.ask('PTTL', 'renewed'), 50_000)
            until(lambda: self.node.ask('DBSIZE') == 1, 'the other one went', SECONDS)

    def test_masters_that_lie(self):
        self.node.ask('CONFIG', 'SET', 'repl-timeout', 1)
        self.node.ask('SET', 'mine', 1)
        ok, full = b'+OK\r\n', b'+FULLRESYNC ' + b'a' * 40 + b' 7\r\n'
        head = (b'+PONG\r\n', ok, ok)
        lies = [
            ((), b'', 'has sent nothing'),
            ((b'garbage\r\n',), b'', 'PING: garbage'),
            ((b'\x00' * 100_000,), b'', 'too long'),
            ((*head, b'+FULLRESYNC short 1\r\n'), b'', 'PSYNC'),
            ((*head, b'+FULLRESYNC ' + b'a' * 40 + b' -1\r\n'), b'', 'PSYNC'),
            ((*head, b'+CONTINUE\r\n'), b'', 'PSYNC'),
            ((*head, full), b'$-1\r\n', 'head of the RDB file'),
            ((*head, full), b'$99999999999999999999\r\n', 'head of the RDB file'),
            ((*head, full), b'$EOF:short\r\n', 'head of the RDB file'),
            ((*head, full), b'', 'has sent nothing'),
            ((*head, full), b'$9000000000000000000\r\nREDIS0010\xfa', 'has sent nothing'),
            ((*head, full), b'$100\r\n' + b'x' * 100, 'the RDB file'),
            ((*head, full), b'$EOF:' + b'e' * 40 + b'\r\nREDIS0010\x00\x01k\x81' + b'\xff' * 8,
             'the full sync'),
        ]
        for replies, stream, text in lies:
            with self.subTest(text=text, stream=stream[:30]), Liar(*replies, stream=stream) as liar:
                follow(self.node, liar.port)
                until(lambda: text in info(self.node, 'replication').get('master_link_error', ''),
                      (text, info(self.node, 'replication')), 10)
                until(lambda: liar.connections > 1, 'it tries again', 10)
        self.node.ask('REPLICAOF', 'NO', 'ONE')
        self.assertEqual(self.node.ask('SET', 'mine', 1), b'OK')

    def test_streams_that_lie(self):
        empty = bytes.fromhex('524544495330303130ff0000000000000000')
        full = b'+FULLRESYNC ' + b'a' * 40 + b' 7\r\n$%d\r\n' % len(empty) + empty
        replies = (b'+PONG\r\n', b'+OK\r\n', b'+OK\r\n')
        for stream, text in ((b'hello\r\n', 'something else'), (b'*1\r\n$-5\r\n', 'Protocol error'),
                             (b'*99999999999\r\n', 'Protocol error'),
                             (encode('SELECT', 99), 'beyond the setting databases')):
            with self.subTest(text), Liar(*replies, full + stream) as liar:
                follow(self.node, liar.port)
                until(lambda: text in info(self.node, 'replication').get('master_link_error', ''),
                      (text, info(self.node, 'replication')), 10)
        before = int(info(self.node, 'stats')['unexpected_error_replies'])
        words = encode('NOSUCH', 1) + encode('SET', 'a', 'b') + encode('LPUSH', 'a', 'c')
        with Liar(*replies, full + words) as liar:
            follow(self.node, liar.port)
            until(lambda: int(info(self.node, 'stats')['unexpected_error_replies']) == before + 2,
                  'they are counted', 10)
            self.assertEqual(self.node.ask('GET', 'a'), b'b')
            self.assertTrue(is_linked(self.node))
            self.assertEqual(int(info(self.node, 'replication')['slave_repl_offset']),
                             7 + len(words))

    def test_memory_that_is_full(self):
        server = self.start()
        with server.client() as client:
            client.all([('SET', f'key:{i}', 'x' * 10_000) for i in range(2000)])
        self.node.ask('CONFIG', 'SET', 'maxmemory', '8mb')
        follow(self.node, server.port)
        until(lambda: 'memory' in info(self.node, 'replication').get('master_link_error', ''),
              'full', SECONDS)
        with self.assertRaisesRegex(Failed, 'LOADING'):
            self.node.ask('GET', 'key:1')
        self.node.ask('CONFIG', 'SET', 'maxmemory', '200mb')
        self.check_same(server, 'after the memory')
        self.node.ask('CONFIG', 'SET', 'maxmemory', '40mb')
        with server.client() as client:
            client.all([('SET', f'more:{i}', 'x' * 10_000) for i in range(3000)])
        until(lambda: 'OOM' in info(self.node, 'replication').get('master_link_error', ''),
              'full in the stream', SECONDS)
        self.node.ask('CONFIG', 'SET', 'maxmemory', '200mb')
        self.check_same(server, 'after the stream')
        self.assertEqual(info(server, 'stats')['sync_partial_ok'], '0')

    def test_ends_while_it_syncs(self):
        server = self.start()
        self.fill(server)
        with Gate(server.port) as gate:
            gate.left = 40_000
            follow(self.node, gate.port)
            until(lambda: gate.cuts, 'cut', SECONDS)
            self.node.must_live = False
            began = time.monotonic()
            self.node.signal(15)
            self.assertEqual(self.node.wait(), 0)
            self.assertLess(time.monotonic() - began, 10)


class Storage(unittest.TestCase):
    @staticmethod
    def without_ends(node):
        """Of keys: which libraries there are is not kept by a storage."""
        return {key: value for key, value in content(node).items()
                if key != 'libraries' and value[1] == -1}

    def test_restart(self):
        with master() as server:
            play(server, SEED, 500)
            flags = ('--storage-enabled', 'yes', '--dir', '{dir}/data', '--durability', 'logged',
                     '--replicaof', LOOPBACK, server.port)
            with Node(PROGRAM, *flags) as node:
                until(lambda: is_linked(node), 'linked', SECONDS)
                until(lambda: not difference(content(node), content(server)), 'same', SECONDS)
                node.kill()
                play(server, SEED + 1, 500)
                node.start()
                until(lambda: is_linked(node), 'linked again', SECONDS)
                until(lambda: not difference(content(node), content(server)), 'same', SECONDS)
                node.ask('REPLICAOF', 'NO', 'ONE')
                kept = self.without_ends(node)
                node.stop()
                node.flags = node.flags[:-3]
                node.start()
                self.assertEqual(difference(self.without_ends(node), kept), '')
                self.assertGreater(len(kept), 20)
                self.assertEqual(node.ask('ROLE')[0], b'master')


if __name__ == '__main__':
    try:
        redis_program()
    except NoPeer as missing:
        print(missing)
        sys.exit(77)
    print('seed', SEED)
    unittest.main(verbosity=2)
