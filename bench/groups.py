"""Groups of three that a bench starts: nodes of Semel, etcd, and Redis with two replicas.

All are programs of this machine with directories of their own, and sync what they acknowledge.
A group is used by `with`: whatever happens inside, its processes have ended behind it. They end
as well when the bench itself is killed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../tests/support'))
from resp import Client, Failed  # noqa: E402
from servers import Server, free_ports  # noqa: E402

PATIENCE = 60


def until(condition, what, seconds=PATIENCE, pause=0.01):
    """What `condition` returns as soon as that is true. A server that is not up yet is no error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = condition()
        except (OSError, ConnectionError):
            found = None
        if found:
            return found
        time.sleep(pause)
    raise SystemExit(f'not within {seconds} s: {what}')


def ask_all(port, requests, seconds=2):
    """The replies to requests of one connection, one after the other. Errors raise Failed."""
    with Client(port, seconds) as client:
        return [client.ask(*words) for words in requests]


def ask(port, *words, seconds=2):
    return ask_all(port, [words], seconds)[0]


class Member(Server):
    def __init__(self, place, number, command):
        super().__init__(place)
        self.out = self.errors = self.folder / f'{number}.log'
        self.command = command

    def words(self):
        return self.command


class Group:
    """Three processes. A subclass says how each is started, and who leads."""

    name = ''

    def __init__(self, directory, count=3):
        self.place = tempfile.mkdtemp(prefix=self.name + '_', dir=directory)
        self.members = [None] * count
        self.ports = free_ports(2 * count)
        self.ports, self.peers = self.ports[:count], self.ports[count:]

    def __enter__(self):
        try:
            for number in range(len(self.members)):
                self.start(number)
            until(self.is_ready, f'{self.name} is ready\n{self.said()}')
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for number in range(len(self.members)):
            self.kill(number)
        shutil.rmtree(self.place, ignore_errors=True)

    def spawn(self, number, args):
        self.members[number] = Member(self.place, number, args).start(ready=False)

    def kill(self, number):
        if self.members[number] is not None:
            self.members[number].kill()
        self.members[number] = None

    def said(self):
        """The ends of the logs."""
        text = ''
        for number in range(len(self.members)):
            path = os.path.join(self.place, f'{number}.log')
            if os.path.exists(path):
                with open(path, encoding='utf-8', errors='replace') as file:
                    text += f'--- {self.name} {number}\n{file.read()[-1500:]}'
        return text

    def leader_port(self):
        return self.ports[self.leader()]


class Semel(Group):
    name = 'semel'

    def __init__(self, directory, program, options=(), maxmemory='4gb'):
        super().__init__(directory)
        self.program = program
        self.options = ['--maxmemory', maxmemory, '--io-threads', 1, *options]

    def grow(self):
        """One more node, which is no member yet; returns its number, from 0."""
        ports = free_ports(2)
        self.ports.append(ports[0])
        self.peers.append(ports[1])
        self.members.append(None)
        self.start(len(self.members) - 1)
        return len(self.members) - 1

    def address(self, number):
        return f'127.0.0.1:{self.peers[number]},127.0.0.1:{self.ports[number]}'

    def start(self, number):
        home = os.path.join(self.place, str(number))
        words = [self.program, 'node', '--port', self.ports[number], '--dir', home,
                 '--node-id', number + 1, '--cluster-id', 'feed', *self.options]
        if number < 3:
            for other in range(3):
                words += ['--peer', f'{other + 1}={self.address(other)}']
            if not os.path.exists(home):
                subprocess.run([*map(str, words), '--cluster-init'], check=True,
                               stdout=subprocess.DEVNULL)
        else:
            words += ['--cluster-announce', self.address(number)]
        self.spawn(number, words)

    def status(self, number):
        reply = ask(self.ports[number], 'SEMEL.GROUP', 'STATUS')
        return dict(zip((name.decode() for name in reply[::2]), reply[1::2]))

    def find_leader(self):
        """The number of the node that leads and answers; None while there is none."""
        for number, member in enumerate(self.members):
            try:
                if member is not None and ask(self.ports[number], 'ROLE')[0] == b'master':
                    ask(self.ports[number], 'GET', 'x')
                    return number
            except (OSError, ConnectionError, Failed):
                continue
        return None

    def is_ready(self):
        return self.find_leader() is not None and all(
            self.status(number)['leader'] for number in range(3))

    def leader(self):
        found = until(lambda: (number := self.find_leader()) is not None and [number],
                      f'a leader\n{self.said()}')
        return found[0]

    def catch_up(self):
        """Waits until every node has applied what the leader has."""
        wanted = self.status(self.leader())['commit']
        for number in range(len(self.members)):
            until(lambda: self.status(number)['applied'] >= wanted,
                  f'node {number + 1} has caught up\n{self.said()}')

    def count(self):
        """How many keys the leader has, once all other nodes have as many."""
        wanted = ask(self.leader_port(), 'DBSIZE', seconds=PATIENCE)
        for port in self.ports:
            until(lambda: ask_all(port, [['READONLY'], ['DBSIZE']], PATIENCE)[1] == wanted,
                  f'all nodes have {wanted} keys\n{self.said()}')
        return wanted


class Redis(Group):
    """A primary, whose number is 0, and its replicas."""

    name = 'redis'

    def start(self, number):
        home = os.path.join(self.place, str(number))
        os.makedirs(home, exist_ok=True)
        words = ['redis-server', '--port', self.ports[number], '--bind', '127.0.0.1',
                 '--dir', home, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always',
                 '--repl-diskless-sync-delay', '0']
        if number != 0:
            words += ['--replicaof', '127.0.0.1', self.ports[0]]
        self.spawn(number, words)

    def is_ready(self):
        replicas = re.findall(r'state=online', ask(self.ports[0], 'INFO', 'replication').decode())
        return len(replicas) == len(self.ports) - 1

    def leader(self):
        return 0

    def count(self):
        wanted = ask(self.ports[0], 'DBSIZE')
        for port in self.ports:
            until(lambda: ask(port, 'DBSIZE') == wanted, f'all servers have {wanted} keys')
        return wanted


class Etcd(Group):
    name = 'etcd'

    def start(self, number):
        members = ','.join(f'n{i}=http://127.0.0.1:{port}' for i, port in enumerate(self.peers))
        client, peer = (f'http://127.0.0.1:{ports[number]}' for ports in (self.ports, self.peers))
        self.spawn(number, [
            'etcd', '--name', f'n{number}', '--data-dir', os.path.join(self.place, str(number)),
            '--listen-client-urls', client, '--advertise-client-urls', client,
            '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
            '--initial-cluster', members, '--logger', 'zap', '--log-level', 'error'])

    def statuses(self):
        """What each member says of itself, in the order of the ports."""
        run = subprocess.run(
            ['etcdctl', '--endpoints', ','.join(f'127.0.0.1:{port}' for port in self.ports),
             'endpoint', 'status', '-w', 'json'],
            capture_output=True, text=True, check=False, env={**os.environ, 'ETCDCTL_API': '3'})
        return [each['Status'] for each in json.loads(run.stdout)] if run.returncode == 0 else []

    def is_ready(self):
        found = self.statuses()
        return len(found) == len(self.ports) and all(each.get('leader') for each in found)

    def leader(self):
        for number, each in enumerate(self.statuses()):
            if each['leader'] == each['header']['member_id']:
                return number
        raise SystemExit('etcd has no leader')

    def count(self):
        """Every key that was put made one revision, behind the first."""
        def equal():
            found = {each['header']['revision'] for each in self.statuses()}
            return found if len(found) == 1 else None
        return until(equal, 'the members of etcd are equal').pop() - 1
