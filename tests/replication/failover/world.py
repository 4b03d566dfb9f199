"""What clients and faults share, and the judgement about it all."""
import threading
import time

from clients import SHORT_MS, Keys, Owner, Writer, as_map, as_map_of, plain
from group import PATIENCE
from resp import Failed
from holders import SPACE, Holder

OWNERS = 3
WRITERS = 7
HOLDERS = 2
SPACES = (('pay',), ('claim',), ('lease',), ('token', 'ISSUED'), (SPACE,))


class World:
    def __init__(self, group, seed):
        self.group = group
        self.seed = seed
        self.lock = threading.Lock()
        self.counter = 0
        self.rounds = 0
        self.claimed = 0
        self.answers = 0
        self.unknown = 0
        self.found = []
        self.owners = {}
        self.times = []  # of acknowledgements
        self.keys = Keys()
        self.is_over = False
        self.may_ask = threading.Event()  # else clients wait
        self.may_ask.set()

    def next_key(self):
        with self.lock:
            self.counter += 1
            return self.counter // OWNERS  # each of them wants each

    def acknowledged(self, at):
        self.times.append(at)

    def told(self, name, owner):
        with self.lock:
            known = self.owners.setdefault(name, owner)
        if known != owner:
            self.find(f'{name} has two owners: {known} and {owner}')

    def find(self, what):
        with self.lock:
            self.found.append(what)

    def insist(self, *words):
        """The reply of whoever leads."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.group.wait_leader().ask(*words, seconds=5)
            except (OSError, Failed) as error:
                if time.monotonic() > end or str(error).startswith('ERR'):
                    raise
                time.sleep(0.02)

    def begin(self):
        self.rounds += 1
        self.is_over = False
        self.owners, self.times, self.keys = {}, [], Keys()
        self.insist('FLUSHALL')
        for space in SPACES:
            self.insist('SEMEL.NAMESPACE', 'DECLARE', *space)
        clients = [Owner(self, number) for number in range(OWNERS)]
        clients += [Writer(self, OWNERS + number) for number in range(WRITERS)]
        clients += [Holder(self, OWNERS + WRITERS + number) for number in range(HOLDERS)]
        for client in clients:
            client.start()
        return clients

    def end(self, clients):
        self.group.wait_leader()
        time.sleep(0.5)
        self.is_over = True
        for client in clients:
            client.join(PATIENCE)
            if client.is_alive():
                self.find(f'client {client.number} does not end')
        self.answers += sum(client.acknowledged for client in clients)
        self.unknown += sum(client.unknown for client in clients)
        self.claimed += len(self.owners)

    # --- the judgement ---------------------------------------------------------------------------

    def judge(self):
        mark = f'{self.rounds}:{self.counter}'
        time.sleep(1 + SHORT_MS / 1000)  # by then everything that ends has ended
        self.insist('SET', 'mark', mark)
        for node in self.group.nodes:
            if not self.group.has_seen(node, 'mark', mark):
                self.find(f'node {node.number + 1} does not catch up')
                return
        states = [self.dump(node) for node in self.group.nodes]
        for number, state in enumerate(states):
            if state != states[0]:
                differ = [name for name in {*state, *states[0]}
                          if state.get(name) != states[0].get(name)]
                self.find(f'node {number + 1} differs from node 1: {len(differ)} keys, '
                          f'{sorted(differ)[:3]}')
        lost = [name for name, owner in self.owners.items() if states[0].get(name) != owner]
        if lost:
            self.find(f'{len(lost)} acknowledged claims are lost or have another owner: '
                      f'{lost[:3]}')
        self.read_all()

    def dump(self, node):
        """Everything that a node has, by key: owners, values, whole records of claims."""
        found = {}
        # What is held for seconds ends meanwhile.
        names = sorted(name for name in self.group.keys(node, '*')
                       if not name.startswith(SPACE.encode()))
        with node.client(seconds=20) as connection:
            connection.ask('READONLY')
            for first in range(0, len(names), 500):
                some = names[first:first + 500]
                for name, reply in zip(some, connection.all([question(name) for name in some])):
                    found[name.decode()] = without_times(name, reply)
        return found

    def read_all(self):
        """Reads of the end, as the last calls of each history."""
        with self.group.wait_leader().client(seconds=20) as connection:
            for history in self.keys.all:
                is_claim = history.kind in ('claim', 'lease', 'token')
                called = time.monotonic_ns()
                if is_claim:
                    reply = connection.ask('SEMEL.GETCLAIM', history.kind, history.key)
                    history.add(['getclaim'], called, True, as_map_of(history.kind)(reply))
                    continue
                reply = connection.ask('GET', history.key)
                history.add(['get'], called, True, plain(reply))
                if history.kind == 'ending' and reply is not None:
                    self.find(f'{history.key} is there, and its time is over')


def question(name):
    space, _, key = name.decode().partition(':')
    is_claim = key and space in [space[0] for space in SPACES]
    return ('SEMEL.GETCLAIM', space, key) if is_claim else ('GET', name)


def without_times(name, reply):
    if not isinstance(reply, list):
        return plain(reply)
    found = as_map(reply)
    if name.startswith(b'pay:'):
        return found['owner'].decode()
    return tuple(sorted((field, plain(value)) for field, value in found.items()
                        if not field.endswith('_ms')))
