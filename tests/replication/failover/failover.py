#!/usr/bin/env python3
"""Proof: nodes of a group are killed and stopped while clients claim keys, and nothing that was
acknowledged is lost, nothing has two owners, and the nodes are equal when it is over.

failover.py --program semel [--seed N] [--kills N] [--long]
Last line: the figure. Exit 1 if anything is wrong.
"""
import argparse
import collections
import random
import signal
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from group import PATIENCE, Connection, Failed, Group  # noqa: E402

CLIENTS = 8


class Client(threading.Thread):
    """Claims one key after the other, with others who want the same."""

    def __init__(self, world, number):
        super().__init__(daemon=True)
        self.world = world
        self.number = number
        self.connection = None
        self.port = random.Random(number).choice(world.group.ports)
        self.acknowledged = 0
        self.unknown = 0

    def insist(self, *words):
        """The reply of whoever leads. Asked again, with the same words, until there is one."""
        ports = self.world.group.ports
        while not self.world.is_over:
            try:
                if self.connection is None:
                    self.connection = Connection(self.port, 1)
                return self.connection.ask(*words)
            except Failed as error:
                text = str(error)
                if text.startswith('MOVED '):
                    self.leave(int(text.rsplit(':', 1)[1]))
                    continue
                if not text.startswith(('CLUSTERDOWN', 'TRYAGAIN', 'BUSY')):
                    raise
                self.unknown += text.startswith('TRYAGAIN')
            except (OSError, ConnectionError, ValueError):
                self.unknown += 1
            self.leave(ports[(ports.index(self.port) + 1) % len(ports)])
            time.sleep(0.002)
        return None

    def leave(self, port):
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self.port = port

    def run(self):
        try:
            while not self.world.is_over:
                self.claim(self.world.next_key())
        except Exception as error:  # told by the world
            self.world.find(f'client {self.number}: {error!r}')

    def claim(self, key):
        mine = f'{self.number}:{self.acknowledged}'
        if key % 2 == 0:
            name = f'set:{key}'
            found = self.insist('SET', name, mine, 'NX', 'GET')
            if self.world.is_over and found is None:
                return
            owner = mine if found is None else found.decode()
        else:
            name = f'pay:{key}'
            identity = f'{self.number:016x}{self.acknowledged:016x}'
            found = self.insist('SEMEL.CLAIM', 'pay', str(key), 'LEASE', 600000,
                                'CLAIM-ID', identity, 'OWNER', mine)
            if found is None:
                return
            answer = dict(zip(found[::2], found[1::2]))
            # Asked again with the same id, what was granted is granted still.
            is_mine = answer[b'outcome'] in (b'granted', b'regranted')
            owner = mine if is_mine else answer[b'owner'].decode()
        self.acknowledged += 1
        self.world.told(name, mine, owner)


class World:
    def __init__(self, group):
        self.group = group
        self.lock = threading.Lock()
        self.counter = 0
        self.owners = {}
        self.found = []
        self.is_over = False
        self.times = []  # of acknowledgements

    def next_key(self):
        with self.lock:
            self.counter += 1
            return self.counter // 3  # three clients want each

    def told(self, name, mine, owner):
        with self.lock:
            self.times.append(time.monotonic())
            known = self.owners.setdefault(name, owner)
            if known != owner:
                self.found.append(f'{name} has two owners: {known} and {owner}')

    def find(self, what):
        with self.lock:
            self.found.append(what)


def disturb(group, random, kinds):
    """One fault. Returns what it was and when it began."""
    leader = group.wait_leader()
    others = [node for node in group.nodes if node is not leader]
    kind = random.choice(kinds)
    began = time.monotonic()
    if kind == 'stop':
        leader.process.send_signal(signal.SIGSTOP)
        time.sleep(random.uniform(0.2, 2))
        leader.process.send_signal(signal.SIGCONT)
        return kind, began
    victims = {'leader': [leader], 'follower': [random.choice(others)],
               'two': [leader, random.choice(others)]}[kind]
    for victim in victims:
        victim.kill()
    time.sleep(random.uniform(0, 0.6) if kind != 'two' else 0.1)
    for victim in victims:
        victim.start()
    return kind, began


def dump(node):
    """Everything that a node has, by key."""
    connection = Connection(node.group.ports[node.number], 20)
    connection.ask('READONLY')
    found = {}
    cursor = b'0'
    while True:
        cursor, keys = connection.ask('SCAN', cursor, 'COUNT', 1000)
        for key in keys:
            if key.startswith(b'set:'):
                found[key.decode()] = connection.ask('GET', key).decode()
            elif key.startswith(b'pay:'):
                reply = connection.ask('SEMEL.GETCLAIM', 'pay', key[4:])
                answer = dict(zip(reply[::2], reply[1::2]))
                found[key.decode()] = answer[b'owner'].decode()
        if cursor == b'0':
            connection.close()
            return found


def judge(world, group):
    leader = group.wait_leader()
    leader.ask('SET', 'mark', str(world.counter))
    states = []
    for node in group.nodes:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                connection = Connection(group.ports[node.number], 5)
                connection.ask('READONLY')
                mark = connection.ask('GET', 'mark')
                connection.close()
                if mark == str(world.counter).encode():
                    break
            except (OSError, Failed):
                pass
            time.sleep(0.02)
        else:
            world.find(f'node {node.number + 1} does not catch up')
            return
        states.append(dump(node))
    for number, state in enumerate(states):
        if state != states[0]:
            world.find(f'node {number + 1} differs from node 1')
    lost = [name for name, owner in world.owners.items() if states[0].get(name) != owner]
    if lost:
        world.find(f'{len(lost)} acknowledged claims are lost or have another owner: {lost[:3]}')


def gap_after(times, began):
    """The longest time without an acknowledgement that begins in the second after a fault."""
    late = [at for at in times if began - 0.1 <= at <= began + 10]
    gaps = [second - first for first, second in zip(late, late[1:]) if first <= began + 1]
    return max(gaps, default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--program', required=True)
    parser.add_argument('--seed', type=int, default=random.randrange(10**6))
    parser.add_argument('--kills', type=int, default=12)
    parser.add_argument('--long', action='store_true')
    given = parser.parse_args()
    faults = 1000 if given.long else given.kills
    chance = random.Random(given.seed)
    print(f'failover: seed {given.seed}', flush=True)
    group = Group(given.program, 3)
    world = World(group)
    try:
        group.wait_leader()
        group.leader().ask('SEMEL.NAMESPACE', 'DECLARE', 'pay', seconds=5)
        clients = [Client(world, number) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        counts = collections.Counter()
        begins = []
        for _ in range(faults):
            kind, began = disturb(group, chance, ('leader', 'leader', 'follower', 'two', 'stop'))
            counts[kind] += 1
            if kind == 'leader':
                begins.append(began)
            time.sleep(chance.uniform(0.3, 0.9))
            if world.found:
                break
        group.wait_leader()
        time.sleep(0.5)
        world.is_over = True
        for client in clients:
            client.join(PATIENCE)
        judge(world, group)
        if world.found:
            print(group.said())
    finally:
        group.end()
    gaps = sorted(gap_after(world.times, began) for began in begins) or [0]
    for what in world.found[:10]:
        print(f'failover: {what}')
    print('failover: ' + ', '.join(f'{count} {kind}' for kind, count in sorted(counts.items())) +
          f'; without an answer after a leader was killed: median '
          f'{1000 * gaps[len(gaps) // 2]:.0f} ms, longest {1000 * gaps[-1]:.0f} ms')
    print(f'failover: {sum(counts.values())} faults, '
          f'{sum(client.acknowledged for client in clients)} acknowledged, '
          f'{sum(client.unknown for client in clients)} unknown, {len(world.owners)} keys, '
          f'{len(world.found)} findings')
    return 1 if world.found else 0


if __name__ == '__main__':
    sys.exit(main())
