"""Nodes as the store of a gateway, for tests: a real one, one between two sockets that a test cuts,
holds or answers for, and one that only pretends."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import servers  # noqa: E402
from relay import Listener, Relay  # noqa: E402,F401  (a test has Relay from here)
from resp import Failed, read_raw  # noqa: E402
from servers import free_ports, until  # noqa: E402

WITHIN = 20


class Node(servers.Node):
    """On one port each time, with a storage that it finds again. It is started at once."""

    def __init__(self, program, directory, *flags, storage=True):
        flags = ('--io-threads', 1, '--maxmemory', 268435456, *flags)
        if storage:
            flags += ('--storage-enabled', 'yes', '--durability', 'synced',
                      '--dir', os.path.join(directory, 'node'))
        super().__init__(program, *flags, folder=directory, port=free_ports(1)[0])
        self.start()

    def fill(self, size):
        """Takes memory in pieces of `size`, until there is none for one more."""
        with self.client() as client:
            for number in range(10_000_000):
                try:
                    client('SET', f'fill-{size}-{number}', 'x' * size)
                except Failed:
                    return

    def claim(self, route, key):
        """The record of `key`: its fields as text."""
        fields = self.ask('SEMEL.GETCLAIM', f'gw.{route}', key)
        return {str(fields[i], 'ascii'): fields[i + 1] for i in range(0, len(fields), 2)}

    def keys(self):
        return [key.decode().split(':', 1)[1] for key in self.ask('KEYS', 'gw.*')]


class Pretender(Listener):
    """Greets as a node does, and answers what comes then with `answer(request)`'s bytes; None:
    never."""

    GREETING = (b'-ERR This instance has cluster support disabled\r\n', b'+OK\r\n')

    def __init__(self):
        self.answer = None  # until it is set, all is well
        self.connections = 0
        super().__init__()

    def welcome(self, plug):
        self.connections += 1
        threading.Thread(target=self.serve, args=(plug,), daemon=True).start()

    def serve(self, plug):
        stream = plug.makefile('rb')
        try:
            while True:
                request = read_raw(stream)
                if b'MYID' in request:
                    plug.sendall(self.GREETING[0])
                elif b'SEMEL.NAMESPACE' in request:
                    plug.sendall(self.GREETING[1])
                elif self.answer is not None:
                    reply = self.answer(request)
                    if reply is not None:
                        plug.sendall(reply)
        except (OSError, ValueError):
            plug.close()


def once(which, how):
    """For Relay.fault: `how` for the first command that has `which` in it."""
    left = [1]

    def fault(request):
        if which in request and left[0]:
            left[0] -= 1
            return how
        return None
    return fault


def always(which, how):
    return lambda request: how if which in request else None


def wait_until(condition, what, seconds=WITHIN):
    return until(condition, what, seconds)


def in_threads(calls):
    """The results of all, each in a thread of its own."""
    results = [None] * len(calls)

    def run(i):
        results[i] = calls[i]()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * WITHIN)
    return results


def seconds_of(call):
    start = time.monotonic()
    result = call()
    return time.monotonic() - start, result
