#!/usr/bin/env python3
"""What a node answers for whom the network holds messages up, and lets them go later:
held_network_test.py --program semel [unittest arguments].

The other nodes reach each node by a gate, which forwards their bytes or keeps them.
"""
import argparse
import selectors
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from group import ELECTION_MS, Group  # noqa: E402
from resp import LOOPBACK, Failed  # noqa: E402
from servers import free_ports  # noqa: E402

program = None
LIMIT = 10 * ELECTION_MS / 1000  # s, of a repeat after a forget


class Gate:
    """Connections to one port go to another. Bytes that come while it is shut wait in it."""

    def __init__(self, port, target):
        self.target = target
        self.lock = threading.Lock()
        self.shut = False
        self.held = []  # (when it came, whom it is for, bytes)
        self.stops, self.stop = socket.socketpair()
        self.listener = socket.create_server((LOOPBACK, port))
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.stops, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.stops:
                    return
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.forward(key.fileobj, *key.data)

    def accept(self):
        outside, _ = self.listener.accept()
        try:
            inside = socket.create_connection((LOOPBACK, self.target), timeout=5)
        except OSError:
            outside.close()
            return
        self.selector.register(outside, selectors.EVENT_READ, (inside, True))
        self.selector.register(inside, selectors.EVENT_READ, (outside, False))

    def forward(self, source, to, is_inwards):
        try:
            data = source.recv(65536)
        except OSError:
            data = b''
        with self.lock:
            if is_inwards and self.shut and data:
                self.held.append((time.monotonic(), to, data))
                return
        try:
            to.sendall(data)
        except OSError:
            data = b''
        if not data:
            for each in (source, to):
                try:
                    self.selector.unregister(each)
                except (KeyError, ValueError):  # closed already
                    continue
                each.close()

    def hold(self):
        with self.lock:
            self.shut = True

    def let_go(self, until=None):
        """What came until then, or everything; then the gate is open again."""
        with self.lock:
            gone = [each for each in self.held if until is None or each[0] < until]
            self.held = self.held[len(gone):]
            for _, to, data in gone:
                to.sendall(data)
            self.shut = until is not None
        return len(gone)

    def lose(self):
        """All that waits, and the gate is open again."""
        with self.lock:
            self.held.clear()
            self.shut = False

    def end(self):
        self.stop.send(b'x')
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.stop.close()


class GatedGroup(Group):
    def prepare(self):
        inside = free_ports(len(self.nodes))
        self.gates = [Gate(port, real) for port, real in zip(self.peers, inside)]
        for node, port in zip(self.nodes, inside):
            node.options = ('--cluster-listen', f'{LOOPBACK}:{port}', '--cluster-forward', 'yes')

    def end(self):
        super().end()
        for gate in self.gates:
            gate.end()


class Case(unittest.TestCase):
    nodes = 3

    def setUp(self):
        self.group = GatedGroup(program, self.nodes)
        self.addCleanup(self.group.end)
        self.choose()

    def choose(self):
        self.group.wait_complete()
        self.leader = self.group.wait_leader()
        self.behind = next(node for node in self.group.nodes if node is not self.leader)
        self.gate = self.group.gates[self.behind.number]

    def is_repeated(self, key):
        """Whether the node that is behind says at once that the work is done."""
        try:
            return b'paid' in self.behind.ask('SEMEL.CLAIM', 'pay', key, seconds=0.15)
        except (OSError, Failed):
            return False

    def finish(self, key):
        claim = self.leader.ask('SEMEL.CLAIM', 'pay', key)
        self.leader.ask('SEMEL.COMPLETE', 'pay', key, claim[3], 'paid')
        end = time.monotonic() + 20
        while not self.is_repeated(key):
            self.assertLess(time.monotonic(), end)

    def pass_time(self, seconds):
        """Nothing else is to happen for so long."""
        threading.Event().wait(seconds)


class HeldMessages(Case):
    def test_messages_that_were_held_up_do_not_make_a_node_current(self):
        # On a busy machine a leader may be late, and another one takes its place: what was held up
        # is of an earlier term then, and proves less.
        for number in range(5):
            if self.plays_with_one_leader(f'order {number}'):
                return
            self.choose()
        self.fail('of five times there were five in which the leader changed')

    def plays_with_one_leader(self, key):
        self.finish(key)
        self.gate.hold()
        self.pass_time(10 * 0.03)  # ten heartbeats that know nothing of what follows
        forgotten = time.monotonic()
        self.leader.ask('SEMEL.FORGET', 'pay', key)
        while self.is_repeated(key):
            self.assertLess(time.monotonic(), forgotten + LIMIT + 1)
        self.pass_time(max(0, forgotten + LIMIT + 0.2 - time.monotonic()))
        self.assertGreaterEqual(self.gate.let_go(forgotten), 3)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            self.assertFalse(self.is_repeated(key))
        is_one = self.leader.ask('ROLE')[0] == b'master'
        self.gate.let_go()
        # A claim that it sent on meanwhile may have been granted: then that is in flight.
        self.finish('behind ' + key)
        self.assertNotIn(b'paid', self.behind.ask('SEMEL.CLAIM', 'pay', key, seconds=10))
        return is_one

    def test_a_node_that_is_heard_is_current_for_as_long_as_the_limit(self):
        self.finish('order')
        self.pass_time(2 * LIMIT)
        self.assertTrue(self.is_repeated('order'))  # heartbeats keep it so
        self.gate.hold()
        self.assertTrue(self.is_repeated('order'))
        self.pass_time(LIMIT + 0.2)
        self.assertFalse(self.is_repeated('order'))


class OldLeader(Case):
    nodes = 5

    def is_forgotten(self, node):
        """Now, or by an earlier call that was not answered."""
        try:
            node.ask('SEMEL.FORGET', 'pay', 'order', seconds=1)
        except (OSError, Failed):
            return False
        return True

    def test_one_that_stood_still_makes_nobody_current(self):
        """It goes on for an election timeout: what it has heard last was a majority."""
        self.finish('order')
        here = [self.leader, self.behind]
        others = [node for node in self.group.nodes if node not in here]
        for node in here:
            node.pause()
        for node in here:
            self.group.gates[node.number].hold()
        end = time.monotonic() + 20
        while not self.is_forgotten(others[0]):
            self.assertLess(time.monotonic(), end)
        forgotten = time.monotonic()
        for node in others:
            node.pause()  # they say no more of it
        for node in here:
            self.group.gates[node.number].lose()
        self.pass_time(max(0, forgotten + LIMIT + 0.2 - time.monotonic()))
        for node in here:
            node.resume()
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            self.assertFalse(self.is_repeated('order'))
        for node in others:
            node.resume()


if __name__ == '__main__':
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--program', required=True)
    given, rest = parser.parse_known_args()
    program = given.program
    unittest.main(argv=[sys.argv[0], *rest])
