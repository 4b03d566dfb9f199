#!/usr/bin/env python3
"""The stories of stories.json as a client of the gateway meets them; the store is the node behind
SEMEL_TEST_PORT. Prints a line a story: its name, a tab, its outcome."""

import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gateway'))
from harness import Gateway, Upstream, new_directory  # noqa: E402
from stores import wait_until  # noqa: E402
import resp  # noqa: E402  (stores has found the folder)

ROUTE = os.environ['SEMEL_TEST_NAMESPACE']
ROUTES = f'''
[[route]]
name = "{ROUTE}"
path = "/**"
guard = "idempotency-key"
scope = ["shared"]
wait = "10s"
on-broken = "release"
'''
LATE = 'store-unavailable'


class Door:
    def __init__(self, gateway, upstream):
        self.gateway, self.upstream = gateway, upstream

    def post(self, story, body=None, path='/pay'):
        return self.gateway.request(target=path, body=(body or story).encode(), key=story)

    def runs(self, *bodies):
        return sum(self.upstream.effects[body.encode()] for body in bodies)

    def tell(self, story, outcome):
        print(f'{story}\t{outcome}', flush=True)

    def result_equal(self, story):
        first, again = self.post(story), self.post(story)
        equal = (first.status, first.body) == (again.status, again.body) and again.is_replay
        self.tell(story, f"{'equal' if equal else 'other'}; runs {self.runs(story)}")

    def key_error(self, story, key):
        reply = self.gateway.request(body=story.encode(), key=key)
        named = reply.status == 400 and b'Idempotency-Key' in reply.body
        self.tell(story, f"{'key error' if named else reply.status}; runs {self.runs(story)}")

    def other(self, story, body, path):
        self.post(story)
        reply = self.post(story, body, path)
        word = 'mismatch' if reply.status == 422 else str(reply.status)
        self.tell(story, f"{word}; runs {self.runs(story, *([body] if body != story else []))}")

    def wire(self, story, expected):
        reply = self.post(story)
        if expected == 'ran':
            word = 'ran' if reply.status == 201 else f'{reply.status} {reply.body!r}'
        else:
            late = reply.status == 503 and reply.problem == LATE
            word = expected if late else f'{reply.status} {reply.body!r}'
        self.tell(story, f'{word}; runs {self.runs(story)}')


def nothing_is_held():
    """The gateway lives until it has given back what came too late."""
    with resp.Client(int(os.environ['SEMEL_TEST_DIRECT_PORT']), 10) as client:
        return client.ask('SEMEL.INFLIGHT', f'gw.{ROUTE}') == []


def main():
    upstream = Upstream()
    directory = new_directory()
    gateway = Gateway(
        os.environ['SEMEL_TEST_PROGRAM'], upstream.port, ROUTES, directory.name,
        ['--store-node', f"127.0.0.1:{os.environ['SEMEL_TEST_PORT']}"],
        'store-patience = "1s"\nstore-timeout = "1s"')
    door = Door(gateway, upstream)
    try:
        door.result_equal('result-equal')
        door.key_error('key-empty', '""')
        door.key_error('key-huge', 'k' * 256)
        door.other('payload-other', 'payload-other-2', '/pay')
        door.other('operation-other', 'operation-other', '/refund')
        for story in ('lost-claim', 'lost-complete', 'busy-claim', 'busy-complete',
                      'tryagain-claim', 'tryagain-complete', 'restart'):
            door.wire(story, 'ran')
        door.wire('late-claim', 'unavailable')
        wait_until(nothing_is_held, 'the late grant is given back')
    finally:
        gateway.end()
        upstream.stop()
        directory.cleanup()


if __name__ == '__main__':
    main()
