"""The good client, whom a flood must not harm, and floods in processes of their own."""

import multiprocessing
import os
import statistics
import time

from server import Client, encode

RATE = 2_000  # requests a second
ROUNDS = 5


def own_core():
    if (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})


class Flood:
    """`work(port, flood, *more)` in a process of its own until the end of the `with`; what it
    returns is in `result` then. When it has called begin() it runs only while the good client,
    which is on the same processor, does not want to."""

    def __init__(self, work, port, *more):
        context = multiprocessing.get_context('fork')
        self.stop = context.Event()
        self.ready = context.Event()
        self.results = context.SimpleQueue()
        self.process = context.Process(target=self.go, args=(work, port, more), daemon=True)
        self.result = None

    def go(self, work, port, more):
        own_core()
        self.results.put(work(port, self, *more))

    def begin(self):
        os.nice(19)
        self.ready.set()

    def over(self):
        return self.stop.is_set()

    def __enter__(self):
        self.process.start()
        if not self.ready.wait(60):
            raise SystemExit('a flood did not begin')
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        if kind is None:
            self.result = self.results.get()
        self.process.join(20)
        if self.process.is_alive():
            self.process.kill()


def p99_of(port, seconds, password=''):
    """Of requests at RATE, in microseconds; raises when one is answered wrongly."""
    client = Client(port)
    if password:
        client.ask('AUTH', password)
    request = encode('SET', 'good', 'v')
    times = []
    clock = time.perf_counter_ns
    due = clock()
    end = due + int(seconds * 1e9)
    while due < end:
        wait = due - clock()
        if wait > 0:
            time.sleep(wait / 1e9)
        began = clock()
        client.plug.sendall(request)
        reply = client.plug.recv(64)
        times.append(clock() - began)
        if reply != b'+OK\r\n':
            raise SystemExit(f'the good client was answered {reply!r}')
        due += 1_000_000_000 // RATE
    client.close()
    return statistics.quantiles(times, n=100)[98] / 1000


def rate_with(clients, seconds):
    """Requests a second of four of the clients, each with one under way."""
    request = encode('SET', 'good', 'v')
    count = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for client in clients[:4]:
            client.plug.sendall(request)
        for client in clients[:4]:
            if client.plug.recv(64) != b'+OK\r\n':
                raise SystemExit('a client that was there before the flood was not answered')
            count += 1
    return count / seconds


def spin(_, flood):
    flood.begin()
    while not flood.over():
        for _ in range(10_000):
            pass


def often(port, flood, act, rate):
    """act(port), `rate` times a second; how often it was."""
    flood.begin()
    began, count = time.monotonic(), 0
    while not flood.over():
        due = (time.monotonic() - began) * rate
        while count < due and not flood.over():
            act(port)
            count += 1
        time.sleep(0.002)
    return count


def in_turns(measure, flood, rounds=ROUNDS):
    """measure() alone and beside `flood`, in turns: the medians of both, and of the quotients of a
    turn; and the results of the floods. Alone means beside a loop that does nothing: a processor
    that goes to sleep between two requests is slower than one that has a flood to make."""
    alone, beside, results = [], [], []
    for _ in range(rounds):
        with Flood(spin, 0):
            alone.append(measure())
        with flood() as running:
            beside.append(measure())
        results.append(running.result)
    quotient = statistics.median(b / a for a, b in zip(alone, beside))
    return statistics.median(alone), statistics.median(beside), quotient, results
