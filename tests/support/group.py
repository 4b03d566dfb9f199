"""A group of nodes, each a process on this machine, which tests kill and start again.

    group = Group('build/release/tools/semel/semel', 3)
    try:
        group.wait_leader().ask('SET', 'key', 'value')
    finally:
        group.end()
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from resp import LOOPBACK, Failed
from servers import Server, free_ports, until

ELECTION_MS = 150
HEARTBEAT_MS = 30
PATIENCE = 60


class NoLeader(Exception):
    """There is none in time; the text is what the nodes have printed."""


class Node(Server):
    """A member, or one that is to become one. Its first start makes the group."""

    reply_seconds = 2

    def __init__(self, group, number, options=()):
        super().__init__(group.place)
        self.group = group
        self.number = number
        self.options = options
        self.port = group.ports[number]
        self.directory = group.place / str(number)
        self.out = self.errors = group.place / f'{number}.log'
        self.peer_host = LOOPBACK  # for the other nodes

    def addresses(self):
        return f'{self.peer_host}:{self.group.peers[self.number]},{self.host}:{self.port}'

    def words(self):
        group = self.group
        words = [group.program, 'node', '--port', self.port,
                 '--dir', self.directory, '--node-id', self.number + 1,
                 '--cluster-id', 'feed', '--cluster-election-timeout', ELECTION_MS,
                 '--cluster-heartbeat', HEARTBEAT_MS, '--maxmemory', 268435456,
                 '--io-threads', 1, *self.options]
        if self.number >= group.founders:
            words += ['--cluster-announce', self.addresses()]
        else:
            for other in group.nodes[:group.founders]:
                words += ['--peer', f'{other.number + 1}={other.addresses()}']
        return [str(word) for word in words]

    def start(self, ready=False):
        if self.number < self.group.founders and not (self.directory / 'vote').exists():
            subprocess.run([*self.words(), '--cluster-init'], check=True,
                           stdout=subprocess.DEVNULL)
        return super().start(ready)


class Group:
    def __init__(self, program, count, options=()):
        self.program = Path(program).resolve()
        self.place = Path(tempfile.mkdtemp(prefix='semel_group_'))
        ports = free_ports(2 * count)
        self.ports, self.peers = ports[:count], ports[count:]
        self.founders = count
        self.nodes = [Node(self, number, options) for number in range(count)]
        try:
            self.prepare()
            for node in self.nodes:
                node.start()
        except BaseException:
            self.end()
            raise

    def prepare(self):
        """For groups whose nodes are set up in another way, before they start."""

    def grow(self):
        """One more node, which is no member yet."""
        ports = free_ports(2)
        self.ports.append(ports[0])
        self.peers.append(ports[1])
        self.nodes.append(Node(self, len(self.nodes), self.nodes[0].options))

    def leader(self):
        for node in self.nodes:
            try:
                if node.is_alive() and node.ask('ROLE', seconds=0.5)[0] == b'master':
                    node.ask('GET', 'x', seconds=0.5)
                    return node
            except (OSError, Failed):
                continue
        return None

    def wait_leader(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            node = self.leader()
            if node is not None:
                return node
            time.sleep(0.01)
        raise NoLeader('no leader in time\n' + self.said())

    def is_complete(self):
        """Whether all nodes know the leader, and each other."""
        try:
            return all(len(slots) == 1 and len(slots[0]) == 2 + len(self.nodes) for slots in
                       (node.ask('CLUSTER', 'SLOTS') for node in self.nodes))
        except (OSError, Failed):
            return False

    def wait_complete(self):
        until(self.is_complete, 'all nodes know all nodes', PATIENCE)

    def has_seen(self, node, key, value):
        """Whether this node has it in time, by what it has itself."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                with node.client(seconds=5) as connection:
                    connection.ask('READONLY')
                    if connection.ask('GET', key) == str(value).encode():
                        return True
            except (OSError, Failed):
                pass
            time.sleep(0.02)
        return False

    def keys(self, node, pattern):
        """Of what this node has itself, each once."""
        found = set()
        cursor = b'0'
        with node.client(seconds=20) as connection:
            connection.ask('READONLY')
            while True:
                cursor, keys = connection.ask('SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000)
                found.update(keys)
                if cursor == b'0':
                    return found

    def said(self):
        return '\n'.join(f'--- {path.name}\n' + path.read_text(errors='replace')[-1500:]
                         for path in sorted(self.place.glob('*.log')))

    def end(self):
        for node in self.nodes:
            node.end()
        shutil.rmtree(self.place, ignore_errors=True)
