#!/usr/bin/env python3
"""Upstreams, clients and the gateway itself are killed in the middle of requests: no effect is
doubled, no reply that a client has had is another one later.

killed.py --program semel [--requests 10000] [--seed N] [--double]

Clients ask for keys of their own, each with a body of its own, until they are answered, and ask
again now and then for what was answered. Which point breaks is drawn: the upstream closes before,
in or behind its head, a client leaves in the middle, the gateway is killed and started again.
--double lets the upstream count an effect twice now and then: it must be found. The last line is
the figure.
"""

import argparse
import http.client
import json
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import gateway_test  # noqa: E402
from upstream import Upstream  # noqa: E402

ROUTES = '''
[[route]]
name = "orders"
path = "/orders"
methods = ["POST"]
wait = "2s"
timeout = "5s"
'''
BREAKS = ('', '', '', '', '', 'before-reply', 'in-head', 'in-body', 'chunked', 'hints')
CLIENTS = 8


class Proof:
    def __init__(self, options, place):
        self.place = place
        self.upstream = Upstream()
        self.gateway = gateway_test.Gateway(self.upstream.port, place, ROUTES)
        self.lock = threading.Lock()
        self.per_client = options.requests // CLIENTS
        self.seed = options.seed
        self.double = options.double
        self.replies = {}  # key: body that a client has had
        self.doubts = 0
        self.replayed = 0
        self.findings = []
        self.done = 0
        self.kills = 0
        self.is_over = threading.Event()

    def find(self, what):
        with self.lock:
            self.findings.append(what)

    def once(self, key, how, draw):
        """One try: the reply, or None."""
        try:
            if draw.random() < 0.05:  # it leaves in the middle
                with socket.create_connection(('127.0.0.1', self.gateway.port), 5) as plug:
                    plug.sendall(f'POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {key}\r\n'
                                 f'X-Break: {how}\r\nContent-Length: {len(key)}\r\n\r\n{key}'
                                 .encode())
                return None
            return self.gateway.ask('POST', '/orders', key.encode(), key=key, X_Break=how)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.002)
            return None

    def insist(self, key, how, draw):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            reply = self.once(key, how, draw)
            if reply is None or reply[0] in (502, 503):
                continue
            kind = json.loads(reply[2])['type'].rsplit(':', 1)[1] if reply[0] in (
                409, 504) else ''
            if kind == 'in-flight':
                continue
            return reply, kind
        self.find(f'{key}: no answer in 60 s')
        return None, ''

    def client(self, number):
        draw = random.Random(f'{self.seed} {number}')
        mine = []
        for i in range(self.per_client):
            key = f'{number}-{i}'
            reply, kind = self.insist(key, draw.choice(BREAKS), draw)
            self.judge(key, reply, kind)
            mine.append(key)
            if draw.random() < 0.2:
                old = draw.choice(mine)
                self.judge(old, *self.insist(old, '', draw))
            with self.lock:
                self.done += 1

    def judge(self, key, reply, kind):
        if reply is None:
            return
        with self.lock:
            if kind in ('no-reply', 'in-doubt'):
                self.doubts += 1
                if key in self.replies:
                    self.findings.append(f'{key}: was answered, and is in doubt now')
            elif reply[0] != 201:
                self.findings.append(f'{key}: {reply[0]} {reply[2][:80]}')
            elif self.replies.setdefault(key, reply[2]) != reply[2]:
                self.findings.append(f'{key}: another reply than before')
            else:
                self.replayed += reply[1].get('Idempotency-Replayed') == 'true'

    def killer(self, total):
        draw = random.Random(f'{self.seed} killer')
        while not self.is_over.wait(0.05 + draw.random() / 4):
            with self.lock:
                if self.done >= total:
                    return
            self.gateway.kill()
            self.gateway = gateway_test.Gateway(self.upstream.port, self.place, ROUTES)
            self.kills += 1

    def run(self):
        total = self.per_client * CLIENTS
        clients = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]
        killer = threading.Thread(target=self.killer, args=(total,))
        for thread in (*clients, killer):
            thread.start()
        for thread in clients:
            thread.join()
        self.is_over.set()
        killer.join()
        if self.double:
            self.upstream.effects[next(iter(self.upstream.effects))] += 1
        doubled = [key for key, count in self.upstream.effects.items() if count > 1]
        for key in doubled[:8]:
            self.find(f'{key}: {self.upstream.effects[key]} effects')
        lost = 0
        for key, body in sorted(self.replies.items()):
            again = self.gateway.ask('POST', '/orders', key.encode(), key=key, X_Break='')
            if again[0] != 201 or again[2] != body:
                lost += 1
                self.find(f'{key}: its reply is lost: {again[0]}')
        self.gateway.end()
        self.upstream.close()
        for finding in self.findings[:20]:
            print(f'gateway: seed {self.seed}: {finding}')
        print(f'gateway: {total} requests, {self.kills} gateways killed, {len(self.replies)} '
              f'replies, {self.replayed} replayed, {self.doubts} in doubt, {len(doubled)} effects '
              f'doubled, {lost} replies lost, {len(self.findings)} findings')
        return 1 if self.findings else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', required=True)
    parser.add_argument('--requests', type=int, default=10_000)
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--long', action='store_true')
    parser.add_argument('--double', action='store_true', help='plants a doubled effect')
    options = parser.parse_args()
    if options.long:
        options.requests *= 10
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    print(f'gateway: seed {options.seed}', flush=True)
    gateway_test.program = str(Path(options.program).resolve())
    place = Path(tempfile.mkdtemp(prefix='semel_gateway_'))
    try:
        verdict = Proof(options, place).run()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return (0 if verdict else 1) if options.double else verdict


if __name__ == '__main__':
    sys.exit(main())
