#!/usr/bin/env python3
"""Requests with a key have one effect, and a recorded reply is never lost, while the gateway is
killed (-9), the upstream breaks off at each point and clients go away:
proof_gateway.py PROGRAM [--requests N] [--long] [--seed N] [--store directory|node|group]
    [--plant doubled|forgotten]

Sixteen clients send keys to a gateway with a store on disk. A key is asked for again until its
answer is final: a reply, or a doubt. Meanwhile the gateway is killed again and again, so that each
kill meets requests at all their steps. At the end every key is asked for once more.
With `--store node` two gateways share a node with a storage, and the node is killed as well; with
`--store group` they share three nodes of one group, and leaders, followers, two nodes at a time and
all of them are killed.
"""

import argparse
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Gateway, Upstream, message, new_directory  # noqa: E402
from servers import CannotStart  # noqa: E402  (harness has found the folder)
from killed_stores import Directory, OneNode, ThreeNodes  # noqa: E402

ROUTES = '''
[[route]]
name = "pay"
methods = ["POST"]
path = "/pay/**"
guard = "idempotency-key"
timeout = "300ms"
'''
# A claim whose gateway was killed is held at the node until its lease is over. A group elects a
# leader within it.
LEASES = {'node': 'lease = "1s"\n', 'group': 'lease = "3s"\n'}
NODE_SETTINGS = 'store-timeout = "500ms"\n'
CLIENTS = 16
KILL_EVERY = (0.02, 0.15)  # seconds, from and to
# Over how many seconds keys are spread at least, so that a short run meets kills as well.
SPREAD = {'directory': 3, 'node': 5, 'group': 10}
# What the upstream does with a request, with weights. It has had its effect in each case.
BEHAVIOURS = (('ok', 80), ('close', 4), ('half', 4), ('hang', 1), ('garbage', 2),
              ('status&code=500', 3), ('status&code=422', 3), ('chunked', 3))


class Run:
    def __init__(self, program, requests, seed, store, plant=None):
        self.random = random.Random(seed)
        self.plant = plant
        self.directory = new_directory()
        self.upstream = Upstream()
        place = self.directory.name
        if store == 'directory':
            self.store = Directory(place)
        elif store == 'node':
            self.store = OneNode(program, place, self.random)
        else:
            self.store = ThreeNodes(program, self.random)
        names, settings = ('a', 'b'), NODE_SETTINGS
        if store == 'directory':
            names, settings = ('a',), ''
        self.gateways = [self.new_gateway(program, name, ROUTES + LEASES.get(store, ''), settings)
                         for name in names]
        self.next = 0
        self.requests = requests
        self.pause = 0 if plant else 2 * SPREAD[store] * CLIENTS / requests
        self.lock = threading.Lock()
        self.replies = {}  # key -> (status, body) that a client was given as recorded
        self.doubts = set()
        self.errors = []
        self.kills = self.breaks = self.gone = self.asked = 0
        self.ended = threading.Event()

    def new_gateway(self, program, name, routes, settings):
        place = os.path.join(self.directory.name, name)
        os.mkdir(place)
        return Gateway(program, self.upstream.port, routes, place,
                       [*self.store.flags, '--threads', '2'], settings)

    def target(self, number):
        behaviours, weights = zip(*BEHAVIOURS)
        do = random.Random(number * 7919).choices(behaviours, weights)[0]
        return f'/pay/{number}?do={do}'

    def take(self):
        with self.lock:
            if self.next >= self.requests:
                return None
            self.next += 1
            return self.next - 1

    def ask(self, number, leaves):
        """One try. None: nothing was learned. The client may leave before the reply."""
        key = f'key-{number}'
        body = key.encode()
        try:
            with Client(random.choice(self.gateways).port, 20) as client:
                data = message('POST', self.target(number), body, key=key)
                if leaves:
                    client.send(data[:leaves])
                    return None
                client.send(data)
                return client.receive('POST')
        except (OSError, ValueError, IndexError):
            return None

    def client(self, seed):
        rng = random.Random(seed)
        while (number := self.take()) is not None:
            time.sleep(rng.uniform(0, self.pause))
            if rng.random() < 0.1:
                size = len(message('POST', self.target(number), b'key-%d' % number,
                                   key=f'key-{number}'))
                self.ask(number, rng.choice((rng.randrange(1, size), size)))
                with self.lock:
                    self.gone += 1
            for _ in range(2000):
                reply = self.ask(number, 0)
                with self.lock:
                    self.asked += 1
                if reply is not None and self.judge(number, reply):
                    break
                time.sleep(0.005)  # between tries, as a client does
            else:
                self.fail(f'key {number} has no final answer')

    def judge(self, number, reply):
        """Whether the answer is final."""
        with self.lock:
            if reply.status == 409:
                if reply.problem == 'in-flight':
                    return False
                self.doubts.add(number)
                return True
            if reply.status in (502, 503, 504) or reply.status == 500:
                return False  # asked again: free, or a doubt
            if 'semel-recorded' in reply.fields:
                return False
            seen = self.replies.setdefault(number, (reply.status, reply.body))
            if seen != (reply.status, reply.body):
                self.errors.append(f'key {number}: {seen}, and then {reply.status} {reply.body}')
            return True

    def fail(self, text):
        with self.lock:
            self.errors.append(text)

    @staticmethod
    def start(gateway):
        """A gateway ends when no node serves it within 10 s, and is started again."""
        for last in (False, False, False, False, True):
            try:
                gateway.start()
                return
            except CannotStart as failed:
                if last or 'store-node: ' not in str(failed):
                    raise

    def disturb(self):
        """Kills gateways and cuts the upstream's connections."""
        # Its own, since the store's is used by another thread.
        rng = random.Random(self.random.random())
        pauses = (0.02, 0.1) if self.plant else KILL_EVERY
        while not self.ended.wait(rng.uniform(*pauses)):
            if not self.plant and rng.random() < 0.3:
                self.upstream.cut()
                self.breaks += 1
                continue
            gateway = rng.choice(self.gateways)
            try:
                gateway.kill()
                self.kills += 1
                if self.plant == 'forgotten' and isinstance(self.store, Directory):
                    self.store.forget()
                self.start(gateway)
            except AssertionError as failed:
                self.fail(str(failed))
                return

    def check(self):
        """Asks for every key once more."""
        lost = 0
        for number in range(self.requests):
            for _ in range(2000):
                reply = self.ask(number, 0)
                if reply is not None and reply.status != 503:
                    break
                time.sleep(0.005)
            else:
                self.fail(f'key {number} is not answered at the end')
                continue
            if number in self.replies:
                same = (reply.status, reply.body) == self.replies[number]
                lost += 0 if same and reply.is_replay else 1
            elif reply.status != 409 and number not in self.replies:
                self.fail(f'key {number} was in doubt, and answered {reply.status}')
        if self.plant == 'doubled':  # of one that was done: a key in doubt may have no effect
            done = next(key for key, count in self.upstream.effects.items() if count)
            self.upstream.effects[done] += 1
        doubled = sum(count > 1 for key, count in self.upstream.effects.items())
        return doubled, lost

    def run(self):
        clients = [threading.Thread(target=self.client, args=(self.random.random(),))
                   for _ in range(CLIENTS)]
        trouble = threading.Thread(target=self.disturb)

        def wait():
            for thread in clients:
                thread.join()
            self.ended.set()
        waiting = threading.Thread(target=wait)
        for thread in [*clients, trouble, waiting]:
            thread.start()
        if self.plant == 'forgotten' and not isinstance(self.store, Directory):
            self.store.forget()
        try:
            self.store.disturb(self.ended)
        finally:
            for thread in (waiting, trouble):
                thread.join()
        doubled, lost = self.check()
        self.upstream.stop()
        for each in (*self.gateways, self.store):
            try:
                each.end()
            except AssertionError as ended:
                self.fail(str(ended))
        self.directory.cleanup()
        return doubled, lost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--requests', type=int, default=10_000)
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument('--store', choices=('directory', 'node', 'group'),
                        default='directory')
    parser.add_argument('--plant', choices=('doubled', 'forgotten'))
    arguments = parser.parse_args()
    requests = 100_000 if arguments.long else arguments.requests
    print(f'seed {arguments.seed} (again with --seed {arguments.seed})', flush=True)
    if not arguments.plant:
        for plant in ('doubled', 'forgotten'):
            doubled, lost = Run(arguments.program, 400, arguments.seed, arguments.store,
                                plant).run()
            print(f'planted, {plant}: {doubled} doubled, {lost} lost', flush=True)
            if doubled + lost == 0:
                print('gateway: a planted fault was not found')
                return 1
    run = Run(arguments.program, requests, arguments.seed, arguments.store, arguments.plant)
    start = time.monotonic()
    doubled, lost = run.run()
    for error in run.errors[:20]:
        print(error)
    print(f'gateway: {requests} keys, {run.asked} requests, {run.kills} kills, '
          f'{run.store.kills} of nodes, {run.store.leader_kills} of them of leaders, '
          f'{run.breaks} breaks of the upstream, {run.gone} clients gone, '
          f'{len(run.replies)} recorded, {len(run.doubts)} in doubt, '
          f'{time.monotonic() - start:.0f} s: {doubled} effects doubled, {lost} replies lost, '
          f'{len(run.errors)} other errors')
    return 1 if doubled or lost or run.errors else 0


if __name__ == '__main__':
    sys.exit(main())
