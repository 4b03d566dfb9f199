#!/usr/bin/env python3
"""What the client sent, what the gateway decided and what the upstream parsed are one request.

Generated requests, plain and odd, go through a real gateway to real servers that write down what
they have read. Then connections to the upstream are broken at each byte of requests and replies,
reused connections too. Every record is compared with what was sent.

proof_upstreams.py PROGRAM [--seed N] [--long] [--requests N] [--servers NAME,..]
    [--packages FOLDER] [--planted MUTANT]
--long: 1,000,000 requests in all. MUTANT: a gateway with planted faults (mutant_sources.py), each
of which must be found first. Servers that cannot be had are skipped, and counted.
Last line: the figure. Exit 1 after a difference, 77 if all of it was skipped.
"""

import argparse
import collections
import contextlib
import os
import random
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from breaker import Breaker  # noqa: E402
from harness import Client, Gateway, new_directory  # noqa: E402
from mirror_servers import SERVERS, Missing, Packages  # noqa: E402
from mutant_sources import FAULTS  # noqa: E402
from odd_requests import INNER, Generator  # noqa: E402
from upstream_checker import Checker  # noqa: E402

# As wide as each of the servers reads its own routes: see docs/gateway.md, "Guards".
ROUTES = '''
[[route]]
name = "payments"
methods = ["POST"]
path = "/payments/**"
guard = "idempotency-key"
scope = ["authorization"]
on-broken = "release"
[[route]]
name = "items"
methods = ["PUT"]
path = "/items/*"
guard = "idempotency-key"
'''
THREADS = 4
SHOWN_MAX = 10
ROUND = 20_000  # requests whose records are held at a time
SHORT_BREAKS = 100  # of each server
REPLY_BYTES = 400  # of a mirror's reply, at most
ADDED_BYTES = 120  # by the gateway to a request, at most
PLANTED_WITHIN = 60  # seconds


class Sender:
    """One connection to the gateway at a time."""

    def __init__(self, port, checker):
        self.port, self.checker, self.client = port, checker, None

    def send(self, requests):
        """Pipelined: all at once, then their replies."""
        replies = []
        try:
            if self.client is None:
                self.client = Client(self.port, 10)
            self.client.send(b''.join(each.data for each in requests))
            for each in requests:
                while (reply := self.client.receive(each.method)) and reply.status == 100:
                    pass
                if reply is None:
                    break
                replies.append(reply)
                if reply.fields.get('connection') == ['close']:
                    break
        except (OSError, ValueError, IndexError):
            replies.append(None)
        is_over = len(replies) < len(requests) or replies[-1] is None or (
            'connection' in replies[-1].fields)
        replies += [None] * (len(requests) - len(replies))
        for request, reply in zip(requests, replies):
            self.checker.note(request, reply)
        if is_over:
            self.close()

    def close(self):
        if self.client is not None:
            self.client.close()
            self.client = None


def play(port, checker, generator, count):
    """So many requests on one connection after the other, some pipelined, some cut off."""
    sender = Sender(port, checker)
    rng = generator.rng
    while generator.count < count and len(checker.differences) < SHOWN_MAX:
        requests = [generator.next() for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        if rng.random() < 0.02:
            cut_off(port, checker, requests[0], rng)
            requests = requests[1:]
        if requests:
            sender.send(requests)
    sender.close()


def cut_off(port, checker, request, rng):
    """The client goes away in the middle of it."""
    with Client(port, 5) as client:
        client.send(request.data[:rng.randrange(1, len(request.data) + 1)])
        client.socket.shutdown(socket.SHUT_WR)
        try:
            while client.socket.recv(65536):
                pass
        except OSError:
            pass
    checker.note(request, None)


class Breaks:
    """Connections broken at bytes, each followed by requests that have another one inside."""

    def __init__(self, port, breaker, checker, generator):
        self.breaker, self.checker, self.generator = breaker, checker, generator
        self.rng = generator.rng
        self.sender = Sender(port, checker)

    def play(self, is_all):
        """At each byte, for each method; or at some."""
        for method in ('GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'):
            size = len(self.request(method, INNER).data) + ADDED_BYTES
            ways = [(True, at) for at in range(size)] + [(False, at) for at in range(REPLY_BYTES)]
            if not is_all:
                ways = self.rng.sample(ways, SHORT_BREAKS // 5)
            for is_request, at in ways:
                if self.checker.differences:
                    return
                self.break_one(method, is_request, at)

    def break_one(self, method, is_request, at):
        if self.rng.random() < 0.3:
            self.breaker.cut()  # the next connection is new
        else:
            self.sender.send([self.request('GET', b'')])  # the next one is reused
        self.breaker.break_after(is_request, at)
        body = self.rng.choice((b'', INNER, b'x' * self.rng.randrange(1, 400)))
        request = self.request(method, body)
        self.sender.send([request])
        passed = self.breaker.mend()
        self.checker.counts['broken'] += passed is not None
        if is_request and passed and b'\r\n\r\n' not in passed:
            self.checker.cut_heads[request.proof] = passed
        for _ in range(2):
            self.sender.send([self.request('POST', INNER, '/other')])

    def request(self, method, body, target=None):
        """A plain one."""
        made = self.generator.next(is_plain=True)
        return self.generator.made(made.proof, method, target or made.target, made.fields, body,
                                   None)


class Shop:
    """A server, and gateways in front of it: one straight, one through a breaker."""

    def __init__(self, program, name, packages, directory, stack):
        self.name = name
        self.server = SERVERS[name](directory, packages)
        stack.callback(self.server.stop)
        self.breaker = Breaker(self.server.port)
        stack.callback(self.breaker.stop)
        self.gateways = []
        for at, port in enumerate((self.server.port, self.breaker.port)):
            own = os.path.join(directory, f'gateway{at}')
            os.mkdir(own)
            gateway = Gateway(program, port, ROUTES, own, has_log=False,
                              settings=f'threads = {2 - at}\n')
            stack.callback(gateway.end)
            self.gateways.append(gateway)
        self.checkers = [Checker(name), Checker(f'{name}, broken', is_broken=True)]

    def play(self, seed, count):
        def one(i):
            play(self.gateways[0].port, self.checkers[0],
                 Generator(random.Random(f'{seed} {i}'), f'{self.name}-{i}'), -(-count // THREADS))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def play_breaks(self, seed, is_all):
        generator = Generator(random.Random(f'{seed} broken'), f'{self.name}-b')
        breaks = Breaks(self.gateways[1].port, self.breaker, self.checkers[1], generator)
        breaks.play(is_all)
        breaks.sender.close()

    def check(self):
        """The counts and the differences."""
        for gateway in self.gateways:
            gateway.stop()  # finishes what it has begun
        self.server.stop()
        plain, broken = self.checkers
        records = ([], [])
        for record in self.server.records():
            # Whatever nobody has sent is a difference of the second.
            records[record['id'] not in plain.sent].append(record)
        plain.check(records[0])
        broken.check(records[1])
        return plain.counts + broken.counts, plain.differences + broken.differences


def prove(program, name, seed, packages, count, breaks):
    """`breaks`: 'no', 'some' or 'all'. Raises Missing."""
    with new_directory() as directory, contextlib.ExitStack() as stack:
        shop = Shop(program, name, packages, directory, stack)
        shop.play(f'{seed} {name}', count)
        if breaks != 'no':
            shop.play_breaks(f'{seed} {name}', breaks == 'all')
        return shop.check()


def prove_all(program, name, seed, packages, count, is_long):
    counts, differences = prove(program, name, seed, packages, min(count, ROUND),
                                'all' if is_long else 'some')
    number = 1
    while counts['sent'] < count and not differences:
        more, differences = prove(program, name, f'{seed}.{number}', packages,
                                  min(count - counts['sent'], ROUND), 'no')
        counts += more
        number += 1
    return counts, differences


def find_planted(mutant, seed):
    """Whether each of the planted faults is found in time."""
    for number, fault in enumerate(FAULTS, start=1):
        since = time.monotonic()
        os.environ['SEMEL_MUTANT'] = str(number)
        _, found = prove(mutant, 'strict', seed, None, 0, 'some')
        del os.environ['SEMEL_MUTANT']
        seconds = time.monotonic() - since
        print(f'planted, {fault}: {len(found)} differences within {seconds:.0f} s', flush=True)
        if not found or seconds > PLANTED_WITHIN:
            return False
        print('  ' + found[0][:200], flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('program')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--requests', type=int,
                        help='in all; else 3,000, and 1,000,000 with --long')
    parser.add_argument('--servers', default=','.join(SERVERS))
    parser.add_argument('--packages', help='where the servers are installed; else a new folder')
    parser.add_argument('--planted', metavar='MUTANT')
    arguments = parser.parse_args()
    print(f'seed {arguments.seed} (again with --seed {arguments.seed})', flush=True)
    if arguments.planted and not find_planted(arguments.planted, arguments.seed):
        print('gateway-upstreams: a planted fault was not found')
        sys.exit(1)
    names = [name for name in arguments.servers.split(',') if name]
    total = arguments.requests or (1_000_000 if arguments.long else 3_000)
    counts, differences, skipped = collections.Counter(), [], []
    with new_directory() as folder:
        packages = Packages(arguments.packages or folder)
        for name in names:
            since = time.monotonic()
            try:
                own, found = prove_all(arguments.program, name, arguments.seed, packages,
                                       -(-total // len(names)), arguments.long)
            except Missing as missing:
                skipped.append(f'{name} (no {missing})')
                print(f'{name}: skipped: no {missing}', flush=True)
                continue
            print(f'{name}: {dict(own)}, {time.monotonic() - since:.0f} s', flush=True)
            for text in found[:SHOWN_MAX]:
                print(text, flush=True)
            counts += own
            differences += found
    print(f"gateway-upstreams: {len(names) - len(skipped)} servers, {counts['sent']} requests, "
          f"{counts['guarded']} guarded, {counts['refused']} refused, "
          f"{counts['broken']} connections broken, {len(differences)} differences, "
          f"{len(skipped)} skipped"
          f"{': ' if skipped else ''}{', '.join(skipped)}")
    if names and not counts['sent']:
        sys.exit(77)
    sys.exit(1 if differences else 0)


if __name__ == '__main__':
    main()
