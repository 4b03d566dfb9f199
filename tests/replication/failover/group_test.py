#!/usr/bin/env python3
"""What clients of a group of nodes meet: group_test.py --program semel [unittest arguments]."""
import argparse
import select
import signal
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from group import Group  # noqa: E402
from resp import Client, Failed  # noqa: E402

program = None


class GroupTest(unittest.TestCase):
    options = ()

    def setUp(self):
        self.group = Group(program, 3, self.options)
        self.addCleanup(self.group.end)
        self.group.wait_complete()
        self.leader = self.group.wait_leader()
        self.others = [node for node in self.group.nodes if node is not self.leader]
        self.connections = {}

    def ask(self, node, *words):
        """The reply, or the text of the error."""
        if node not in self.connections:
            self.connections[node] = Client(self.group.ports[node.number], 10)
            self.addCleanup(self.connections[node].close)
        try:
            return self.connections[node].ask(*words)
        except Failed as error:
            return str(error)

    def lead(self, *words):
        """A leader that had no processor for an election may follow another: it says so, and has
        changed nothing."""
        reply = self.ask(self.leader, *words)
        while isinstance(reply, str) and reply.startswith('MOVED '):
            self.leader = self.group.wait_leader()
            self.others = [node for node in self.group.nodes if node is not self.leader]
            reply = self.ask(self.leader, *words)
        return reply

    def soon(self, node, wanted, *words, at=None):
        """`at`: of a list, the item that is meant."""
        end = time.monotonic() + 20
        while (reply := self.ask(node, *words)) != wanted and (at is None or reply[at] != wanted):
            self.assertLess(time.monotonic(), end, words)
            time.sleep(0.005)


class Commands(GroupTest):
    def test_other_nodes_say_who_leads(self):
        where = f'127.0.0.1:{self.group.ports[self.leader.number]}'
        for node in self.others:
            self.soon(node, f'MOVED 12182 {where}', 'SET', 'foo', 'bar')  # once it knows
            self.assertEqual(self.ask(node, 'GET', '{foo}x'), f'MOVED 12182 {where}')
            self.assertEqual(self.ask(node, 'PING'), b'PONG')
        self.assertEqual(self.lead('CLUSTER', 'KEYSLOT', 'foo'), 12182)
        slots = self.slots_with(3)
        self.assertEqual(slots[:2], [0, 16383])
        self.assertEqual(slots[2][1], self.group.ports[self.leader.number])
        self.assertIn(b'cluster_state:ok', self.lead('CLUSTER', 'INFO'))
        nodes = self.lead('CLUSTER', 'NODES').decode()
        self.assertEqual(nodes.count('myself,master'), 1)
        self.assertEqual(nodes.count('slave'), 2)
        self.assertEqual(self.lead('ROLE')[0], b'master')
        self.assertEqual(self.ask(self.others[0], 'ROLE')[0], b'slave')
        self.assertEqual(self.lead('WAIT', 1, 0), 1)

    def slots_with(self, count):
        """What CLUSTER SLOTS says, once it names so many nodes."""
        end = time.monotonic() + 20
        while len((slots := self.ask(self.others[0], 'CLUSTER', 'SLOTS'))[0]) != 2 + count:
            self.assertLess(time.monotonic(), end, slots)
        return slots[0]

    def test_a_replica_that_has_ended_is_not_read_from(self):
        self.slots_with(3)
        self.others[1].kill()
        named = [node[1] for node in self.slots_with(2)[2:]]
        self.assertEqual(named, [self.group.ports[node.number]
                                 for node in (self.leader, self.others[0])])

    def test_without_a_leader_clients_are_not_told_that_nobody_has_slots(self):
        self.slots_with(3)
        self.leader.kill()
        self.others[1].kill()
        self.soon(self.others[0], 'CLUSTERDOWN no leader is known', 'CLUSTER', 'SLOTS')
        self.assertTrue(self.ask(self.others[0], 'SET', 'foo', 'x').startswith('CLUSTERDOWN'))
        self.assertIn(b'cluster_state:fail', self.ask(self.others[0], 'CLUSTER', 'INFO'))

    def test_replicas_answer_reads_if_they_are_asked_to(self):
        self.lead('SET', 'foo', 'bar')
        for node in self.others:
            self.assertEqual(self.ask(node, 'READONLY'), b'OK')
            self.soon(node, b'bar', 'GET', 'foo')
            self.assertTrue(self.ask(node, 'SET', 'foo', 'x').startswith('MOVED'))
            self.assertEqual(self.ask(node, 'READWRITE'), b'OK')
            self.assertTrue(self.ask(node, 'GET', 'foo').startswith('MOVED'))

    def test_pipelines_are_answered_in_order(self):
        connection = Client(self.group.ports[self.leader.number], 10)
        self.addCleanup(connection.close)
        words = []
        for i in range(500):
            words += [('SET', f'k{i % 7}', i), ('GET', f'k{i % 7}'), ('PING', str(i)),
                      ('INCR', 'count')]
        self.assertEqual(connection.all(words), [
            reply for i in range(500)
            for reply in (b'OK', str(i).encode(), str(i).encode(), i + 1)])

    def test_transactions_are_one_step_and_see_what_was_watched(self):
        self.assertEqual(self.lead('MULTI'), b'OK')
        self.assertEqual(self.lead('SET', 'a', 1), b'QUEUED')
        self.assertEqual(self.lead('INCR', 'a'), b'QUEUED')
        self.assertEqual(self.lead('GET', 'a'), b'QUEUED')
        self.assertEqual(self.lead('EXEC'), [b'OK', 2, b'2'])
        for touched, wanted in ((False, [b'OK']), (True, None)):
            self.assertEqual(self.lead('WATCH', 'a'), b'OK')
            if touched:
                self.leader.ask('SET', 'a', 9)
            self.lead('MULTI')
            self.lead('SET', 'a', 5)
            self.assertEqual(self.lead('EXEC'), wanted)
        self.lead('MULTI')
        self.lead('NOSUCH')
        self.assertTrue(self.lead('EXEC').startswith('EXECABORT'))

    def test_a_transaction_that_changes_something_is_about_keys_alone(self):
        for words in (('SUBSCRIBE', 'news'), ('CONFIG', 'SET', 'timeout', 7), ('SELECT', 1),
                      ('CLIENT', 'SETNAME', 'x'), ('SHUTDOWN',), ('EVAL', 'return 1', 0)):
            self.lead('MULTI')
            self.lead('SET', 'a', 1)
            self.lead(*words)
            self.assertTrue(str(self.lead('EXEC')).startswith(('ERR in a group', 'EXECABORT')),
                            words)
        self.assertIsNone(self.lead('GET', 'a'))
        self.lead('MULTI')
        self.lead('PING')
        self.lead('SET', 'a', 1)
        self.assertEqual(self.lead('EXEC'), [b'PONG', b'OK'])
        self.lead('MULTI')
        self.lead('SELECT', 1)
        self.lead('GET', 'a')
        self.assertEqual(self.lead('EXEC'), [b'OK', None])
        self.assertTrue(all(node.is_alive() for node in self.group.nodes))

    def test_known_scripts_run_everywhere(self):
        unlock = ("if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) "
                  "else return 0 end")
        self.lead('SET', 'lock', 'me')
        sha = self.lead('SCRIPT', 'LOAD', unlock)
        self.assertEqual(self.lead('EVALSHA', sha, 1, 'lock', 'you'), 0)
        self.assertEqual(self.lead('EVALSHA', sha, 1, 'lock', 'me'), 1)
        self.assertEqual(self.lead('EVAL', unlock, 1, 'lock', 'me'), 0)
        self.assertTrue(self.lead('EVALSHA', '0' * 40, 0).startswith('NOSCRIPT'))
        self.assertTrue(self.ask(self.others[0], 'EVALSHA', sha, 1, 'x', 'y').startswith('MOVED'))
        up = dict(line.split(b':', 1) for line in self.lead('INFO', 'server').splitlines()
                  if b':' in line)
        self.assertLess(int(up[b'uptime_in_seconds']), 3600)

    def test_claims(self):
        first = self.lead('SEMEL.CLAIM', 'pay', 'order:7', 'CLAIM-ID', 'a' * 32)
        again = self.lead('SEMEL.CLAIM', 'pay', 'order:7', 'CLAIM-ID', 'a' * 32)
        other = self.lead('SEMEL.CLAIM', 'pay', 'order:7')
        self.assertEqual([first[1], again[1], other[1]], [b'granted', b'regranted', b'in_flight'])
        epoch = first[3]
        self.assertEqual(self.lead('SEMEL.COMPLETE', 'pay', 'order:7', epoch, 'paid')[1],
                         b'ok')
        self.assertIn(b'paid', self.lead('SEMEL.CLAIM', 'pay', 'order:7'))
        self.assertEqual(self.lead('SEMEL.WAIT', 50, 'pay', 'order:9')[1], b'granted')

    def test_each_node_explains_what_it_has_applied(self):
        first = self.lead('SEMEL.CLAIM', 'pay', 'order:8', 'OWNER', 'one')
        self.lead('SEMEL.CLAIM', 'pay', 'order:8', 'OWNER', 'two')
        self.lead('SEMEL.COMPLETE', 'pay', 'order:8', first[3], 'paid')
        for node in self.group.nodes:  # without MOVED: each answers for itself
            end = time.monotonic() + 20
            while len(told := self.ask(node, 'SEMEL.EXPLAIN', 'pay', 'order:8')) != 3:
                self.assertLess(time.monotonic(), end, told)
                time.sleep(0.005)
            maps = [dict(zip(each[::2], each[1::2])) for each in told]
            self.assertEqual([each[b'outcome'] for each in maps], [b'granted', b'in_flight', b'ok'])
            self.assertEqual([each[b'owner'] for each in maps], [b'one', b'two', b''])
            self.assertEqual(maps[1][b'seen_owner'], b'one')
            self.assertEqual(maps[2][b'epoch'], first[3])

    def test_what_is_too_long_is_refused_and_ends_nobody(self):
        self.assertTrue(self.lead('SET', 'big', b'x' * (9 << 20)).startswith('ERR value exceeds'))
        self.assertEqual(self.lead('SET', 'big', b'x' * (1 << 20)), b'OK')
        many = [word for i in range(40000) for word in (f'k{i}', 'v')]
        self.assertRegex(self.lead('MSET', *many), '^ERR too many keys')
        self.assertTrue(all(node.is_alive() for node in self.group.nodes))
        self.assertEqual(self.lead('DEL', 'big'), 1)

    def test_messages_reach_subscribers_of_all_nodes(self):
        node = self.others[0]
        self.ask(node, 'SUBSCRIBE', 'news')
        self.lead('PUBLISH', 'news', 'hello')
        connection = self.connections[node]
        self.assertEqual(connection.reply(), [b'message', b'news', b'hello'])

    def test_a_leader_that_is_asked_to_end_hands_over(self):
        self.lead('SET', 'a', 1)
        self.leader.signal(signal.SIGTERM)
        began = time.monotonic()
        self.group.wait_leader()
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(self.leader.wait(), 0)
        self.assertEqual(self.group.wait_leader().ask('GET', 'a'), b'1')


class Waiting(GroupTest):
    """SEMEL.WAIT, and claims that are bound to their connection."""

    def setUp(self):
        super().setUp()
        self.lead('SEMEL.NAMESPACE', 'DECLARE', 'pay')

    def connect(self, node=None):
        made = Client(self.group.ports[(node or self.leader).number], 30)
        self.addCleanup(made.close)
        return made

    def waits(self, count):
        """Until so many clients wait at the leader."""
        wanted = f'blocked_clients:{count}'.encode()
        end = time.monotonic() + 20
        while wanted not in self.lead('INFO', 'clients'):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)

    def test_one_waiter_after_the_other_gets_the_claim(self):
        epoch = self.lead('SEMEL.CLAIM', 'pay', 'a', 'LEASE', 60000)[3]
        waiters = [self.connect() for _ in range(5)]
        for each in waiters:
            each.send('SEMEL.WAIT', 30000, 'pay', 'a', 'LEASE', 60000)
        self.waits(5)
        epochs = [int(epoch)]
        for turn in range(5):
            self.assertEqual(self.lead('SEMEL.RELEASE', 'pay', 'a', epochs[-1])[1], b'ok')
            ready = self.ready(waiters)
            reply = ready.reply()
            self.assertEqual(reply[1], b'granted')
            epochs.append(int(reply[3]))
            waiters.remove(ready)
        self.assertEqual(epochs, sorted(set(epochs)))
        last = [self.connect() for _ in range(3)]
        for each in last:
            each.send('SEMEL.WAIT', 0, 'pay', 'a')
        self.waits(3)
        self.lead('SEMEL.COMPLETE', 'pay', 'a', epochs[-1], 'paid')
        for each in last:
            self.assertIn(b'paid', each.reply())

    def ready(self, connections):
        found, _, _ = select.select([each.plug for each in connections], [], [], 20)
        self.assertTrue(found)
        return next(each for each in connections if each.plug is found[0])

    def test_a_wait_ends_at_its_deadline_and_with_a_lease(self):
        self.lead('SEMEL.CLAIM', 'pay', 'b', 'LEASE', 60000, 'OWNER', 'me')
        began = time.monotonic()
        reply = self.lead('SEMEL.WAIT', 200, 'pay', 'b')
        self.assertEqual(reply[1], b'in_flight')
        self.assertIn(b'me', reply)
        self.assertGreater(time.monotonic() - began, 0.15)
        self.lead('SEMEL.CLAIM', 'pay', 'c', 'LEASE', 300)
        self.assertEqual(self.lead('SEMEL.WAIT', 30000, 'pay', 'c')[1], b'granted')
        self.assertTrue(self.lead('SEMEL.WAIT', 'x', 'pay', 'b').startswith('ERR'))
        self.assertTrue(self.lead('SEMEL.WAIT', 10, 'pay').startswith('ERR'))
        self.assertTrue(self.ask(self.others[0], 'SEMEL.WAIT', 9, 'pay', 'b').startswith('MOVED'))

    def test_what_is_granted_to_a_client_that_has_gone_is_free_again(self):
        epoch = self.lead('SEMEL.CLAIM', 'pay', 'd', 'LEASE', 600000)[3]
        gone = [self.connect() for _ in range(3)]
        for each in gone:
            each.send('SEMEL.WAIT', 0, 'pay', 'd', 'LEASE', 600000)
        self.waits(3)
        for each in gone:
            each.close()
        self.lead('SEMEL.RELEASE', 'pay', 'd', epoch)
        self.assertEqual(self.lead('SEMEL.WAIT', 20000, 'pay', 'd')[1], b'granted')

    def test_a_wait_outlives_its_leader_as_an_error(self):
        self.lead('SEMEL.CLAIM', 'pay', 'e', 'LEASE', 600000)
        waiter = self.connect()
        waiter.send('SEMEL.WAIT', 0, 'pay', 'e')
        self.waits(1)
        target = self.others[0].number + 1
        end = time.monotonic() + 20
        while (new := self.group.wait_leader()) is self.leader:
            reply = self.lead('SEMEL.GROUP', 'TRANSFER', target)  # which may take a moment
            self.assertLess(time.monotonic(), end, reply)
        new.ask('SEMEL.FORGET', 'pay', 'e')
        with self.assertRaisesRegex(Failed, 'MOVED'):
            waiter.reply()

    def take_permit(self, *words):
        """At once. The first leader raises the level of features when all members have met."""
        end = time.monotonic() + 20
        while 'feature level' in str(reply := self.lead('SEMEL.PERMIT', 'pay', *words)):
            self.assertLess(time.monotonic(), end)
        return reply

    def test_a_wait_for_a_permit_ends_with_its_leader(self):
        self.take_permit('desk', 1, 'LEASE', 600_000)
        waiter = self.connect()
        waiter.send('SEMEL.PERMIT', 'pay', 'desk', 1, 'WAIT', 0)
        self.waits(1)
        target = self.others[0].number + 1
        end = time.monotonic() + 20
        while (new := self.group.wait_leader()) is self.leader:
            reply = self.lead('SEMEL.GROUP', 'TRANSFER', target)  # which may take a moment
            self.assertLess(time.monotonic(), end, reply)
        new.ask('SEMEL.FORGET', 'pay', '{desk}#0')
        with self.assertRaisesRegex(Failed, 'MOVED'):
            waiter.reply()

    def permit(self, owner, *more):
        return self.connect(), ('SEMEL.PERMIT', 'pay', 'seats', *more, 'LEASE', 600_000, 'OWNER',
                                owner)

    def test_permits_go_to_waiters_in_order_and_are_counted(self):
        held = []
        for _ in range(2):
            reply = self.take_permit('seats', 2, 'LEASE', 600_000)
            held.append((reply[-1], reply[3]))
        gone, words = self.permit('gone', 2, 'WAIT', 0)
        gone.send(*words)
        self.waits(1)
        waiters = []
        for turn in range(3):
            client, words = self.permit(f'w{turn}', 2, 'WAIT', 30_000)
            client.send(*words)
            waiters.append(client)
            self.waits(2 + turn)
        gone.close()
        self.waits(3)
        began = time.monotonic()
        late = self.lead('SEMEL.PERMIT', 'pay', 'seats', 2, 'WAIT', 200)
        self.assertEqual(late[1], b'in_flight')
        self.assertGreater(time.monotonic() - began, 0.15)
        for key, epoch in (held[1], held[0]):
            self.assertEqual(self.lead('SEMEL.RELEASE', 'pay', key, epoch)[1], b'ok')
            reply = waiters.pop(0).reply()
            self.assertEqual((reply[1], reply[-1]), (b'granted', key))
            held.append((key, reply[3]))
        few, words = self.permit('few', 1, 'WAIT', 0)  # one permit, and two are held
        few.send(*words)
        self.waits(2)
        self.assertEqual(self.lead('SEMEL.RELEASE', 'pay', *held[-1])[1], b'ok')
        reply = waiters.pop(0).reply()
        self.assertEqual((reply[1], reply[-1]), (b'granted', held[-1][0]))
        self.assertEqual(self.lead('SEMEL.RELEASE', 'pay', reply[-1], reply[3])[1], b'ok')
        self.assertEqual(self.lead('SEMEL.PERMIT', 'pay', 'seats', 1)[1], b'in_flight')
        self.waits(1)  # it has asked in vain
        self.assertEqual(self.lead('SEMEL.RELEASE', 'pay', *held[-2])[1], b'ok')
        self.assertEqual(few.reply()[1], b'granted')

    def test_a_bound_claim_ends_with_its_connection(self):
        owner = self.connect()
        self.assertEqual(owner.ask('SEMEL.CLAIM', 'pay', 'f', 'LEASE', 600000, 'BIND')[1],
                         b'granted')
        self.assertEqual(self.lead('SEMEL.CLAIM', 'pay', 'f')[1], b'in_flight')
        waiter = self.connect()
        waiter.send('SEMEL.WAIT', 0, 'pay', 'f')
        self.waits(1)
        owner.close()
        self.assertEqual(waiter.reply()[1], b'granted')
        self.lead('MULTI')
        self.lead('SEMEL.CLAIM', 'pay', 'g', 'LEASE', 600000, 'BIND')
        self.assertEqual(self.lead('EXEC')[0][1], b'granted')
        self.lead('RESET')
        self.soon(self.leader, b'granted', 'SEMEL.WAIT', 20000, 'pay', 'g', at=1)

    def test_what_was_bound_at_a_node_that_died_ends_with_its_next_life(self):
        self.assertEqual(self.lead('SEMEL.CLAIM', 'pay', 'h', 'LEASE', 600000, 'BIND')[1],
                         b'granted')
        self.leader.kill()
        new = self.group.wait_leader()
        self.assertEqual(new.ask('SEMEL.CLAIM', 'pay', 'h')[1], b'in_flight')
        self.leader.start()
        end = time.monotonic() + 20
        while True:
            try:
                if self.group.wait_leader().ask('SEMEL.CLAIM', 'pay', 'h')[1] == b'granted':
                    break
            except (Failed, OSError):
                pass
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


    def test_finished_work_is_repeated_by_every_node(self):
        epoch = self.lead('SEMEL.CLAIM', 'pay', 'r')[3]
        for node in self.others:
            self.assertTrue(self.ask(node, 'SEMEL.CLAIM', 'pay', 'r').startswith('MOVED'))
        self.lead('SEMEL.COMPLETE', 'pay', 'r', epoch, 'paid')
        for node in self.group.nodes:
            self.soon(node, b'replay', 'SEMEL.CLAIM', 'pay', 'r', at=1)
            self.assertIn(b'paid', self.ask(node, 'SEMEL.WAIT', 0, 'pay', 'r'))
            self.assertEqual(self.ask(node, 'SEMEL.CLAIM', 'pay', 'r', 'FINGERPRINT', 'f' * 32)[1],
                             b'replay')
            self.assertTrue(str(self.ask(node, 'SEMEL.CLAIM', 'pay', 'r', 'LEASE', 'x'))
                            .startswith(('ERR', 'MOVED')))
        first = self.entry_of('s')
        for _ in range(100):
            self.lead('SEMEL.CLAIM', 'pay', 'r')
        self.assertLess(self.entry_of('t') - first, 50)  # only the time goes on
        self.assertEqual(self.lead('SEMEL.FORGET', 'pay', 'r'), b'1')
        self.assertEqual(self.lead('SEMEL.CLAIM', 'pay', 'r')[1], b'granted')

    def entry_of(self, key):
        """The index of the entry that grants a new claim: its epoch has it."""
        return int(self.lead('SEMEL.CLAIM', 'pay', key)[3]) >> 16


class LeaseReads(GroupTest):
    options = ('--cluster-lease-reads', 'yes')

    def test_a_leader_reads_by_its_lease_and_a_cut_off_one_does_not(self):
        for i in range(200):
            self.assertEqual(self.lead('SET', 'k', i), b'OK')
            self.assertEqual(self.lead('GET', 'k'), str(i).encode())
        for node in self.others:
            node.pause()
        try:
            # Its lease is over within an election timeout; then it does not know whether it leads.
            end = time.monotonic() + 20
            while True:
                try:
                    self.leader.ask('GET', 'k', seconds=1)
                except (Failed, OSError):
                    break
                self.assertLess(time.monotonic(), end)
        finally:
            for node in self.others:
                node.resume()
        self.assertEqual(self.group.wait_leader().ask('GET', 'k'), b'199')


class Members(GroupTest):
    def members(self):
        status = self.lead('SEMEL.GROUP', 'STATUS')
        found = [dict(zip(each[::2], each[1::2])) for each in status[status.index(b'members') + 1]]
        return {each[b'id']: each[b'role'] for each in found}

    def test_a_node_is_added_promoted_and_another_removed(self):
        for i in range(100):
            self.lead('SET', f'k{i}', i)
        group = self.group
        group.grow()
        new = group.nodes[3]
        new.start()
        address = f'127.0.0.1:{group.peers[3]},127.0.0.1:{group.ports[3]}'
        for wrong in ('x', '127.0.0.1:0', '127.0.0.1:7100,', '127.0.0.1:7100,x',
                      '127.0.0.1:7100,a b:1', '127.0.0.1:7100,a:1,b:2', '127.0.0.1:7100,a:1\n'):
            self.assertRegex(self.lead('SEMEL.GROUP', 'ADD', 4, wrong), '^ERR .* is not host:port')
        # A new group still learns the logs of its members.
        self.soon(self.leader, b'OK', 'SEMEL.GROUP', 'ADD', 4, address)
        again = self.lead('SEMEL.GROUP', 'ADD', 4, address)
        self.assertTrue(again.startswith(('ERR', 'TRYAGAIN')))
        self.soon(self.leader, b'OK', 'SEMEL.GROUP', 'PROMOTE', 4)
        self.soon(new, b'OK', 'READONLY')
        self.soon(new, b'99', 'GET', 'k99')
        gone = self.others[0].number + 1
        self.soon(self.leader, b'OK', 'SEMEL.GROUP', 'REMOVE', gone)
        end = time.monotonic() + 20
        while self.members() != {number: b'voter' for number in {1, 2, 3, 4} - {gone}}:
            self.assertLess(time.monotonic(), end, self.members())
        end = time.monotonic() + 20
        while (reply := self.lead('SEMEL.GROUP', 'PROMOTE', 9)).startswith('TRYAGAIN'):
            self.assertLess(time.monotonic(), end, 'a change of members that does not end')
        self.assertTrue(reply.startswith('ERR'), reply)
        self.assertTrue(self.lead('SEMEL.GROUP', 'PROMOTE', 'x').startswith('ERR'))
        self.assertTrue(self.ask(self.others[1], 'SEMEL.GROUP', 'REMOVE', 4).startswith('MOVED'))
        self.assertEqual(self.lead('SEMEL.GROUP', 'TRANSFER', 4), b'OK')
        end = time.monotonic() + 20
        while self.ask(new, 'ROLE')[0] != b'master':
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.ask(new, 'SET', 'k1', 'after'), b'OK')


class FullMemory(GroupTest):
    # Leaders are not to change on a busy machine.
    options = ('--maxmemory', 33554432, '--cluster-election-timeout', 1000)

    def test_it_refuses_and_recovers(self):
        for _ in range(3):
            count = 0
            while (reply := self.lead('SET', f'k{count}', b'y' * 100000)) == b'OK':
                count += 1
            self.assertTrue(reply.startswith('OOM'), reply)
            self.assertGreater(count, 100)
            self.assertTrue(str(self.lead('SEMEL.CLAIM', 'ns', 'a')).startswith('OOM'))
            self.assertEqual(self.lead('DEL', *[f'k{i}' for i in range(count)]), count)
            self.soon(self.leader, b'OK', 'SET', 'small', 'x')
        self.assertTrue(all(node.is_alive() for node in self.group.nodes))


class Forwarding(GroupTest):
    options = ('--cluster-forward', 'yes')

    def test_every_node_takes_every_request(self):
        for number, node in enumerate(self.group.nodes):
            self.soon(node, b'OK', 'SET', f'k{number}', number)  # once it knows who leads
            self.assertEqual(self.ask(node, 'GET', f'k{number}'), str(number).encode())
        for node in self.group.nodes:
            self.assertEqual(self.ask(node, 'MGET', 'k0', 'k1', 'k2'), [b'0', b'1', b'2'])
            self.assertIn(self.ask(node, 'INCR', 'count'), (1, 2, 3))
        self.assertEqual(self.lead('GET', 'count'), b'3')
        # What operators ask of the leader is not handed over.
        self.assertTrue(self.ask(self.others[0], 'SEMEL.GROUP', 'TRANSFER').startswith('MOVED 0 '))

    def test_no_node_sends_clients_elsewhere_while_the_leader_changes(self):
        """Whoever needs a node that hands over cannot follow MOVED."""
        self.assertEqual(self.lead('SET', 'k', 1), b'OK')
        for _ in range(10):
            leader = self.group.wait_leader()
            self.ask(leader, 'SEMEL.GROUP', 'TRANSFER')
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                for node in self.group.nodes:
                    for words in (('SET', 'k', 1), ('GET', 'k')):
                        reply = self.ask(node, *words)
                        self.assertIsInstance(reply, bytes, reply)

    def count_through(self, node, name, ends, replies):
        """INCR, a transaction and SET NX in pipelines, until it is told to end."""
        connection = Client(self.group.ports[node.number], 30)
        for i in range(1_000_000):
            if ends.is_set():
                break
            words = [('INCR', 'count'), ('MULTI',), ('INCR', 'both'), ('INCR', 'both'), ('EXEC',),
                     ('SET', f'{name}:{i}', name, 'NX'), ('INCR', name)]
            replies += connection.all(words)
        connection.close()

    def test_a_leader_that_is_killed_is_not_seen_elsewhere_and_nothing_counts_twice(self):
        answered = 0
        for turn in range(4):
            self.group.wait_complete()
            leader = self.group.wait_leader()
            living = [node for node in self.group.nodes if node is not leader]
            ends = threading.Event()
            replies = [[] for _ in range(4)]
            threads = [threading.Thread(
                target=self.count_through,
                args=(living[i % 2], f'turn{turn}by{i}', ends, replies[i])) for i in range(4)]
            for thread in threads:
                thread.start()
            self.wait_for_more(replies, 20)
            leader.kill()
            self.wait_for_more(replies, 20)
            ends.set()
            for thread in threads:
                thread.join()
            for mine in replies:
                rounds = [mine[i:i + 7] for i in range(0, len(mine), 7)]
                answered += len(rounds)
                counts = [each[0] for each in rounds]
                self.assertEqual(counts, sorted(set(counts)))  # in the order of asking
                for i, each in enumerate(rounds):
                    self.assertEqual(each[4][1], each[4][0] + 1)
                    self.assertEqual(each[4][1] % 2, 0)
                    self.assertEqual(each[5:], [b'OK', i + 1])
            leader.start()
        self.leader = self.group.wait_leader()
        self.connections = {}
        self.assertEqual(int(self.lead('GET', 'count')), answered)
        self.assertEqual(int(self.lead('GET', 'both')), 2 * answered)

    def test_permits_outlive_a_leader_and_their_number_changes_with_them(self):
        ids = [f'{i:032x}' for i in range(1, 6)]

        def ask(node, permits, owner):
            reply = self.ask(node, 'SEMEL.PERMIT', 'pools', 'k', permits, 'CLAIM-ID', owner,
                             'LEASE', 600_000)
            self.assertIsInstance(reply, list, reply)
            return dict(zip(reply[::2], reply[1::2]))

        # It knows who leads, and all members have met.
        self.soon(self.others[0], [], 'SEMEL.PERMITS', 'pools', 'k')
        held = [ask(self.others[0], 4, owner) for owner in ids[:4]]
        self.assertEqual([each[b'slot'] for each in held], [b'0', b'1', b'2', b'3'])
        self.leader.kill()
        node = self.others[0]
        again = ask(node, 4, ids[2])
        self.assertEqual((again[b'outcome'], again[b'epoch'], again[b'slot']),
                         (b'regranted', held[2][b'epoch'], b'2'))
        for each in held[:2]:
            self.assertEqual(self.ask(node, 'SEMEL.RELEASE', 'pools', each[b'key'],
                                      each[b'epoch']), [b'outcome', b'ok', b'late', b'0'])
        self.assertEqual(ask(node, 2, ids[4])[b'outcome'], b'in_flight')  # slots 2 and 3 are held
        self.assertEqual(ask(node, 3, ids[4])[b'slot'], b'0')
        self.assertEqual(ask(node, 3, ids[0])[b'outcome'], b'in_flight')
        wanted = self.ask(node, 'SEMEL.PERMITS', 'pools', 'k')
        self.assertEqual([dict(zip(each[::2], each[1::2]))[b'slot'] for each in wanted],
                         [b'0', b'2', b'3'])
        if int(held[0][b'epoch']) >= int(ask(node, 3, ids[4])[b'epoch']):
            self.fail('the token of a slot did not grow')

    def test_a_debounced_payload_outlives_a_leader_and_its_runner(self):
        def ask(node, *words):
            reply = self.ask(node, *words)
            self.assertIsInstance(reply, list, reply)
            return dict(zip(reply[::2], reply[1::2]))

        # It knows who leads, and all members have met.
        self.soon(self.others[0], [], 'SEMEL.DEBOUNCES', 'edits')
        for payload in ('one', 'two'):
            found = ask(self.others[0], 'SEMEL.DEBOUNCE', 'edits', 'doc', payload, 'QUIET', 50)
            self.assertEqual(found[b'due_ms'], b'50')
        found = {b'outcome': b'quiet'}
        while found[b'outcome'] == b'quiet':
            found = ask(self.leader, 'SEMEL.DEBOUNCERUN', 'edits', 'doc', 'LEASE', 2_000)
        self.assertEqual((found[b'outcome'], found[b'payload']), (b'granted', b'two'))
        self.leader.kill()
        node = self.others[0]
        again = ask(node, 'SEMEL.DEBOUNCERUN', 'edits', 'doc', 'LEASE', 600_000)
        self.assertIn(again[b'outcome'], (b'in_flight', b'granted'))
        while again[b'outcome'] == b'in_flight':
            again = ask(node, 'SEMEL.DEBOUNCERUN', 'edits', 'doc', 'LEASE', 600_000)
        self.assertEqual((again[b'outcome'], again[b'payload']), (b'granted', b'two'))
        self.assertGreater(int(again[b'epoch']), int(found[b'epoch']))
        late = ask(node, 'SEMEL.DEBOUNCEEND', 'edits', 'doc', found[b'epoch'])
        self.assertEqual(late[b'outcome'], b'not_owner')
        ended = ask(node, 'SEMEL.DEBOUNCEEND', 'edits', 'doc', again[b'epoch'])
        self.assertEqual(ended[b'outcome'], b'ok')
        self.assertEqual(ask(node, 'SEMEL.DEBOUNCERUN', 'edits', 'doc')[b'outcome'], b'idle')

    def test_what_rate_limits_have_given_outlives_a_leader(self):
        kinds = ('FIXED', 'SLIDING', 'BUCKET')

        def take(node, kind, cost):
            reply = self.ask(node, 'SEMEL.LIMIT', f'limit:{kind}', kind, 5, 36_000_000,
                             'COST', cost)
            self.assertIsInstance(reply, list, reply)
            found = dict(zip(reply[::2], reply[1::2]))
            return found[b'outcome'], int(found[b'remaining'])

        # It knows who leads, and all members have met.
        self.soon(self.others[0], b'outcome', 'SEMEL.LIMIT', 'k', 'FIXED', 1, 1, at=0)
        for kind in kinds:
            self.assertEqual(take(self.others[0], kind, 2), (b'allowed', 3))
            self.assertEqual(take(self.leader, kind, 1), (b'allowed', 2))
        self.leader.kill()
        node = self.others[0]
        for kind in kinds:
            self.assertEqual(take(node, kind, 0), (b'allowed', 2))
            self.assertEqual(take(node, kind, 3), (b'limited', 2))
            self.assertEqual(take(self.others[1], kind, 2), (b'allowed', 0))
            self.assertEqual(take(node, kind, 1), (b'limited', 0))

    def wait_for_more(self, replies, rounds):
        wanted = [len(mine) + 7 * rounds for mine in replies]
        end = time.monotonic() + 30
        while any(len(mine) < least for mine, least in zip(replies, wanted)):
            self.assertLess(time.monotonic(), end, [mine[-7:] for mine in replies])
            time.sleep(0.005)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--program', required=True)
    given, rest = parser.parse_known_args()
    program = given.program
    unittest.main(argv=[sys.argv[0], *rest])
