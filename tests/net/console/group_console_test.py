"""The consoles of three nodes that form a group: group_console_test.py PATH_OF_SEMEL.

A follower shows what it has, and says where the leader is when something is to be changed.
"""

import re
import sys
import unittest

from console_node import PATIENCE, Console, servers

import group as groups  # of tests/support, whose path console_node has added

SEMEL = ''


class GroupNode(Console):
    """The console of a node that a group has started."""

    def __init__(self, case, node):
        def address():
            return re.search(r'for="health and metrics" address=127\.0\.0\.1:(\d+)', node.log())
        super().__init__(case, int(servers.until(address, 'the admin port', PATIENCE)[1]))

    def status(self):
        answer = self.get('/console/api/status')
        return answer.json() if answer.status == 200 else {}


class GroupConsole(unittest.TestCase):
    def setUp(self):
        options = ('--admin-port', 0, '--console', 'yes', '--console-actions', 'yes')
        self.group = groups.Group(SEMEL, 3, options)
        self.addCleanup(self.group.end)
        self.leader = self.group.wait_leader()
        self.group.wait_complete()

    def test_a_follower_shows_and_the_leader_changes(self):
        follower = next(node for node in self.group.nodes if node is not self.leader)
        with self.leader.client(seconds=PATIENCE) as client:
            client.ask('SEMEL.NAMESPACE', 'payments', 'AS', 'payment')
            client.ask('SEMEL.CLAIM', 'payments', 'p-1', 'OWNER', 'worker-1')
            client.ask('SET', 'seen', '1')
        self.assertTrue(self.group.has_seen(follower, 'seen', '1'))

        console = GroupNode(self, follower)
        status = servers.until(console.status, 'the status', PATIENCE)
        self.assertFalse(status['group']['leads'])
        port = self.group.ports[self.leader.number]
        self.assertEqual(status['leader'], f'127.0.0.1:{port}')
        self.assertEqual(len(status['group']['members']), 2)
        session = console.login()
        claim = session.key('payments', 'p-1').json()['claim']
        self.assertEqual((claim['state'], claim['owner']), ('held', 'worker-1'))
        self.assertEqual([row['key'] for row in session.post('scan').json()['found']], ['p-1'])
        refused = session.act('resolve', 'payments', 'p-1', claim, **{'as': 'done'})
        self.assertEqual(refused.word(), (409, 'not_leader'))
        self.assertEqual(refused.json()['leader'], f'127.0.0.1:{port}')

        console = GroupNode(self, self.leader)
        self.assertTrue(console.status()['group']['leads'])
        session = console.login()
        members = console.status()['group']['members']
        self.assertEqual([member['match'] > 0 for member in members], [True, True])
        # Addresses of members are for users only.
        self.assertEqual(console.status()['addresses'], {})
        shown = console.get('/console/api/status', Cookie=session.cookie).json()
        self.assertEqual(set(shown['addresses'].values()),
                         {f'127.0.0.1:{each}' for each in self.group.ports})
        self.assertIn(str(shown['node']), shown['addresses'])
        claim = session.key('payments', 'p-1').json()['claim']
        answer = session.act('resolve', 'payments', 'p-1', claim, **{'as': 'done', 'result': 'r'})
        self.assertEqual(answer.status, 200, answer.body)
        with self.leader.client(seconds=PATIENCE) as client:
            self.assertEqual(client.ask('SEMEL.CLAIM', 'payments', 'p-1')[1], b'replay')


def main():
    global SEMEL
    SEMEL = sys.argv.pop(1)
    unittest.main()


if __name__ == '__main__':
    main()
