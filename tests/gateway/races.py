#!/usr/bin/env python3
"""Gateways with several threads and a node as their store, under ThreadSanitizer:
races.py PROGRAM [--seconds N] [--seed N]

Two gateways of four threads each share a node. Twelve clients send new keys, keys of others, form
tokens, signed requests and double clicks, all at once, while the node is killed or its password is
changed, operators ask for metrics and end doubts, and gateways end with requests under way. Each
process writes what its sanitizer reports to a file; the last line counts them. That the answers are
right is for other tests; here each has to be one that a request of its kind may get.
"""

import argparse
import collections
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from features_test import signed  # noqa: E402
from harness import WITHIN, Client, Gateway, Upstream, new_directory  # noqa: E402
from stores import Node  # noqa: E402
import resp  # noqa: E402  (stores has found the folder)

ROUTES = '''
[[key]]
id = "k1"
secret = "0123456789abcdef"
[[route]]
name = "pay"
path = "/pay"
guard = "idempotency-key"
lease = "1s"
timeout = "300ms"
wait = "200ms"
[[route]]
name = "form"
path = "/form"
guard = "form-token"
[[route]]
name = "token"
path = "/token"
guard = "issue-token"
token-route = "form"
[[route]]
name = "click"
path = "/click"
guard = "debounce"
[[route]]
name = "hook"
path = "/hook"
signature = true
'''
CLIENTS = 12
PASSWORDS = ('first', 'second')
# What a request may get while all this goes on. 500 is none of it. 403: for a form token that
# a node without a storage has forgotten.
ANSWERS = {200, 201, 403, 409, 429, 502, 503, 504}


class Run:
    def __init__(self, program, seed):
        self.random = random.Random(seed)
        self.directory = new_directory()
        self.upstream = Upstream()
        self.reports = os.path.join(self.directory.name, 'report')
        os.environ['TSAN_OPTIONS'] = f'log_path={self.reports}:second_deadlock_stack=1'
        self.password = os.path.join(self.directory.name, 'password')
        self.write_password(PASSWORDS[0])
        # Without a storage: RocksDB is not built for ThreadSanitizer.
        self.node = Node(program, self.directory.name, '--requirepass', PASSWORDS[0],
                         storage=False)
        settings = (f'store-password-file = "{self.password}"\nthreads = 4\n'
                    'store-timeout = "500ms"\nstore-patience = "2s"\n')
        self.gateways = []
        for name in ('a', 'b'):
            place = os.path.join(self.directory.name, name)
            os.mkdir(place)
            self.gateways.append(Gateway(program, self.upstream.port, ROUTES, place,
                                         ['--store-node', self.node.address], settings))
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.statuses = collections.Counter()
        self.errors = []
        self.disturbed = collections.Counter()

    def write_password(self, text):
        with open(self.password + '.new', 'w', encoding='ascii') as file:
            file.write(text + '\n')
        os.rename(self.password + '.new', self.password)

    def request(self, client, rng, number):
        kind = rng.randrange(5)
        if kind == 0:  # of all clients, a few keys at a time
            key = f'{int(time.monotonic() * 20)}'
            return client.request(target='/pay', body=key.encode(), key=key)
        if kind == 1:
            key = f'{number}-{rng.random()}'
            do = rng.choice(('ok', 'ok', 'close', 'hang', 'big&bytes=100000', 'chunked'))
            return client.request(target=f'/pay?do={do}', body=key.encode(), key=key)
        if kind == 2:
            return client.request(target='/click', body=b'%d' % rng.randrange(50))
        if kind == 3:
            fields = signed('POST', '/hook', '', b'1', f'{rng.randrange(5_000)}')
            return client.request('POST', '/hook', b'1', fields)
        reply = client.request('GET', '/token')
        if reply is None or reply.status != 200:
            return reply
        token = reply.body.split(b'"')[3].decode()
        return client.request(target='/form', body=b'f', fields={'Semel-Form-Token': token})

    def client(self, number, seed):
        rng = random.Random(seed)
        while not self.ended.is_set():
            try:
                with Client(rng.choice(self.gateways).port, WITHIN) as client:
                    for _ in range(20):
                        reply = self.request(client, rng, number)
                        if reply is None:
                            break
                        with self.lock:
                            self.statuses[reply.status] += 1
                            if reply.status not in ANSWERS:
                                self.errors.append(f'{reply.status}: {reply.body[:200]}')
            except (OSError, ValueError, IndexError):
                time.sleep(0.02)  # between tries: the gateway has just ended

    def operator(self, seed):
        rng = random.Random(seed)
        while not self.ended.wait(0.02):
            gateway = rng.choice(self.gateways)
            try:
                gateway.admin('GET', rng.choice(('/metrics', '/readyz')))
                gateway.admin('POST', '/resolve?route=pay&as=released&key=none',
                              {'Semel-Admin': 'yes'})
            except (OSError, ValueError, IndexError):
                continue

    def ask_node(self, known, *words):
        with resp.Client(self.node.port, WITHIN) as client:
            client.ask('AUTH', known)
            client.ask(*words)

    def change_password(self):
        """At the node and in the file, and back: a node that is started again has the first."""
        first, second = PASSWORDS
        for old, new in ((first, second), (second, first)):
            self.ask_node(old, 'CONFIG', 'SET', 'requirepass', new)
            self.ask_node(new, 'CLIENT', 'KILL', 'TYPE', 'normal')
            self.write_password(new)
            self.ended.wait(0.3)

    def disturb(self, end):
        """Also when it has run for `end`, each once at least."""
        steps = ('password', 'node', 'upstream', 'gateway')
        for number in range(10_000):
            step = steps[number % len(steps)]
            if number >= len(steps) and time.monotonic() > end:
                return
            time.sleep(self.random.uniform(0.2, 0.8))  # in which requests go on
            if step == 'password':
                self.change_password()
            elif step == 'node':
                self.node.kill()
                self.node.start()
            elif step == 'upstream':
                self.upstream.cut()
            else:
                gateway = self.random.choice(self.gateways)
                code = gateway.stop()
                if code != 0:
                    self.errors.append(f'a gateway ended with {code}')
                gateway.start()
            self.disturbed[step] += 1

    def run(self, seconds):
        threads = [threading.Thread(target=self.client, args=(n, self.random.random()))
                   for n in range(CLIENTS)]
        threads.append(threading.Thread(target=self.operator, args=(self.random.random(),)))
        for thread in threads:
            thread.start()
        try:
            self.disturb(time.monotonic() + seconds)
        finally:
            self.ended.set()
            for thread in threads:
                thread.join()
        for gateway in self.gateways:
            code = gateway.stop()
            if code != 0:
                self.errors.append(f'a gateway ended with {code}')
        self.node.end()
        self.upstream.stop()
        texts = []
        for name in sorted(os.listdir(self.directory.name)):
            if name.startswith('report.'):
                with open(os.path.join(self.directory.name, name), encoding='utf-8',
                          errors='replace') as file:
                    texts.append(file.read())
        self.directory.cleanup()
        return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--seconds', type=int, default=20)
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 31))
    arguments = parser.parse_args()
    print(f'seed {arguments.seed} (again with --seed {arguments.seed})', flush=True)
    run = Run(arguments.program, arguments.seed)
    texts = run.run(600 if arguments.long else arguments.seconds)
    for text in [*texts, *run.errors][:10]:
        print(text[:4000])
    reports = sum(text.count('WARNING: ThreadSanitizer') for text in texts)
    answered = run.statuses[200] + run.statuses[201]
    statuses = dict(sorted(run.statuses.items()))
    print(f'gateway-races: {sum(run.statuses.values())} answers {statuses}, '
          f'{dict(run.disturbed)}, {reports} reports, {len(run.errors)} errors')
    return 1 if texts or run.errors or answered == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
