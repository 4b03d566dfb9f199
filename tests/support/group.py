"""A group of nodes, each a process on this machine, which tests kill and start again.

    group = Group('build/release/tools/semel/semel', 3)
    try:
        group.wait_leader().ask('SET', 'key', 'value')
    finally:
        group.end()
"""

import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from servers import Client, encode, end_with_parent, until

ELECTION_MS = 150
HEARTBEAT_MS = 30
PATIENCE = 60
LOOPBACK = '127.0.0.1'


class Failed(Exception):
    """An error reply."""


class NoLeader(Exception):
    """There is none in time; the text is what the nodes have printed."""


def raise_error(text):
    raise Failed(text.decode())


def free_ports(count):
    """Ports that are free now, and that the system does not give to connections that go out: a
    node that was killed must find its own free when it is started again."""
    limits = Path('/proc/sys/net/ipv4/ip_local_port_range').read_text(encoding='ascii').split()
    first, last = (10_000, int(limits[0])) if int(limits[0]) > 12_000 else (int(limits[1]), 65_535)
    found = []
    for port in random.SystemRandom().sample(range(first, last), 50 * count):
        with socket.socket() as plug:
            try:
                plug.bind(('127.0.0.1', port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError('no free ports')


class Connection(Client):
    """One connection to a node. Errors are raised as Failed."""

    error = staticmethod(raise_error)

    def __init__(self, port, seconds, host=LOOPBACK):
        super().__init__(socket.create_connection((host, port), timeout=seconds), seconds)
        self.plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *words):
        return self(*words)

    def all(self, requests):
        """The replies to requests that are sent together."""
        self.raw(b''.join(encode(*words) for words in requests))
        return [self.reply() for _ in requests]

    def next(self):
        """What comes without being asked for."""
        return self.reply()


class Node:
    def __init__(self, group, number, options=()):
        self.group = group
        self.number = number
        self.options = options
        self.process = None
        self.directory = group.place / str(number)
        self.host = LOOPBACK  # for clients
        self.peer_host = LOOPBACK  # for the other nodes
        self.prefix = ()  # words before the program's
        self.environment = None

    def addresses(self):
        ports = self.group.ports[self.number], self.group.peers[self.number]
        return f'{self.peer_host}:{ports[1]},{self.host}:{ports[0]}'

    def words(self):
        group = self.group
        words = [group.program, 'node', '--port', group.ports[self.number],
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

    def start(self):
        words = self.words()
        if self.number < self.group.founders and not (self.directory / 'vote').exists():
            subprocess.run([*words, '--cluster-init'], check=True, stdout=subprocess.DEVNULL)
        with open(self.group.place / f'{self.number}.log', 'ab') as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*self.prefix, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=end_with_parent, env=self.environment)

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def connect(self, seconds):
        return Connection(self.group.ports[self.number], seconds, self.host)

    def ask(self, *words, seconds=2):
        with self.connect(seconds) as connection:
            return connection.ask(*words)


class Group:
    def __init__(self, program, count, options=()):
        self.program = program
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
                if node.is_up() and node.ask('ROLE', seconds=0.5)[0] == b'master':
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
                with node.connect(5) as connection:
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
        with node.connect(20) as connection:
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
            if node.process is not None:
                node.process.send_signal(signal.SIGCONT)
                node.kill()
        shutil.rmtree(self.place, ignore_errors=True)
