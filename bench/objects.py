#!/usr/bin/env python3
"""Lists, sets, sorted sets, hashes and streams beside redis-server: rates, processor time, memory.

Question: what does a command cost on many small objects, and on one that is large; what do the
          queues and limiters cost that people build of them; what does an element take; how long
          does another client wait while a large object goes; how fast does a storage with many
          elements open?
Method:   one server at a time, 50 connections, 16 operations in flight on each, by
          semel_object_load. With one I/O thread the server has a processor and the client the
          other; with two nothing is pinned, and redis-server keeps its one: with io-threads 2 and a
          client on two processors its threads, which spin, are in each other's way.
          Processor time is that of the server, from /proc. Median of the rounds, servers in turn,
          each of them fresh. A wait: another client asks again and again, and its longest wait
          counts; what the same client waits for while nothing happens has a row of its own.
Compare:  redis-server, without persistence.
Report:   a table of ratios, lost ones as well; replies and the keys at the end are checked.
"""

import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sides import Sides, middle, run_bench  # noqa: E402

EACH = 5  # elements of a small object
LIST = 'RPUSH {key} v{n} => int'
SET = 'SADD {key} m{n} => 1'
ZSET = 'ZADD {key} {n} m{n} => 1'
HASH = 'HSET {key} f{n} v{n} => 1'
STREAM = 'XADD {key} * f v{n} => text'
FIRST = 'key:000000000000'
SIZES = {'L': 'LLEN', 'R': 'LLEN', 'S': 'SCARD', 'Z': 'ZCARD', 'H': 'HLEN', 'X': 'XLEN'}
GROUP = ('XGROUP', 'CREATE', FIRST, 'g', '0', 'MKSTREAM')

# The same for one object that is large, many elements with a request.
AT_ONCE = 1_000
WORDS = {
    LIST: ('RPUSH', lambda n: (f'v{n}',)),
    SET: ('SADD', lambda n: (f'm{n}',)),
    ZSET: ('ZADD', lambda n: (n, f'm{n}')),
    HASH: ('HSET', lambda n: (f'f{n}', f'v{n}')),
}

# Name, the objects before ('': none), the request, whether the objects remain.
SMALL = (
    ('LPUSH', '', 'LPUSH {key} v{n} => int', True),
    ('RPUSH', '', LIST, True),
    ('LPOP', LIST, 'LPOP {key} => text', False),
    ('RPOP', LIST, 'RPOP {key} => text', False),
    ('SADD', '', SET, True),
    ('SPOP', SET, 'SPOP {key} => text', False),
    ('SISMEMBER', SET, 'SISMEMBER {key} m{n} => 1', True),
    ('ZADD', '', ZSET, True),
    ('ZPOPMIN', ZSET, 'ZPOPMIN {key} => some', False),
    ('ZSCORE', ZSET, 'ZSCORE {key} m{n} => text', True),
    ('ZRANGEBYSCORE', ZSET, 'ZRANGEBYSCORE {key} {n} +inf LIMIT 0 3 => some', True),
    ('HSET', '', HASH, True),
    ('HGET', HASH, 'HGET {key} f{n} => text', True),
    ('XADD', '', STREAM, True),
)

# On one object, whose size stays: what puts an element in has beside it what takes one out. The
# last word is the command that counts its elements.
LARGE = (
    ('LPUSH, RPOP', LIST, 'LPUSH {key} v{i} => int ; RPOP {key} => text', 'LLEN'),
    ('RPUSH, LPOP', LIST, 'RPUSH {key} v{i} => int ; LPOP {key} => text', 'LLEN'),
    ('SADD, SPOP', SET, 'SADD {key} x{i} => 1 ; SPOP {key} => text', 'SCARD'),
    ('SISMEMBER', SET, 'SISMEMBER {key} m{n} => 1', 'SCARD'),
    ('ZADD, ZPOPMIN', ZSET, 'ZADD {key} 5{i} x{i} => 1 ; ZPOPMIN {key} => some', 'ZCARD'),
    ('ZADD, a new score', ZSET, 'ZADD {key} {i} m{n} => 0', 'ZCARD'),
    ('ZSCORE', ZSET, 'ZSCORE {key} m{n} => text', 'ZCARD'),
    ('ZRANGEBYSCORE', ZSET, 'ZRANGEBYSCORE {key} {n} +inf LIMIT 0 3 => some', 'ZCARD'),
    ('HSET', HASH, 'HSET {key} f{n} w{i} => 0', 'HLEN'),
    ('HGET', HASH, 'HGET {key} f{n} => text', 'HLEN'),
    ('XADD', STREAM, 'XADD {key} MAXLEN = {elements} * f v{i} => text', 'XLEN'),
)

WINDOW = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
return 1
"""
IN_SCRIPT = 'EVALSHA {sha} 1 {key} {i} 1000000 10 => int'
IN_MULTI = ('MULTI => status | ZREMRANGEBYSCORE {key} -inf ({i} => status | ZADD {key} {i} {i} => '
            'status | ZCARD {key} => status | PEXPIRE {key} 60000 => status | EXEC => some')

# Name, requests of an operation, requests that find nothing at the end, a command before.
QUEUES = (
    ('BRPOPLPUSH', 'LPUSH {key} j{i} => int ; BRPOPLPUSH {key} busy 5 => text@0 ; '
     'LREM busy -1 {got} => 1', (('LLEN', FIRST), ('LLEN', 'busy')), ()),
    ('BLMOVE', 'LPUSH {key} j{i} => int ; BLMOVE {key} busy RIGHT LEFT 5 => text@0 ; '
     'LREM busy -1 {got} => 1', (('LLEN', FIRST), ('LLEN', 'busy')), ()),
    ('XREADGROUP', 'XADD {key} * f j{i} => text ; XREADGROUP GROUP g c COUNT 1 STREAMS {key} > => '
     'some@1 ; XACK {key} g {got} => 1 | XDEL {key} {got} => 1',
     (('XLEN', FIRST),), GROUP),
    ('BZPOPMIN', 'ZADD {key} {i} j{i} => 1 ; BZPOPMIN {key} 5 => some',
     (('ZCARD', FIRST),), ()),
)

# Of memory: a small object, and one element of a large one.
MEMORY = (
    ('list', 'RPUSH {key} v1 v2 v3 v4 v5 => 5', LIST),
    ('set', 'SADD {key} m1 m2 m3 m4 m5 => 5', SET),
    ('sorted set', 'ZADD {key} 1 m1 2 m2 3 m3 4 m4 5 m5 => 5', ZSET),
    ('hash', 'HSET {key} f1 v1 f2 v2 f3 v3 f4 v4 f5 v5 => 5', HASH),
    ('stream', 'XADD {key} * f v => text | XADD {key} * f v => text | XADD {key} * f v => text | '
     'XADD {key} * f v => text | XADD {key} * f v => text', STREAM),
)


# What makes a large object go; `other` is a key with a string.
ENDS = (
    ('DEL', ('DEL', FIRST)),
    ('UNLINK', ('UNLINK', FIRST)),
    ('PEXPIRE 1', ('PEXPIRE', FIRST, '1')),
    ('RENAME over it', ('RENAME', 'other', FIRST)),
    ('FLUSHALL', ('FLUSHALL',)),
)


class Prober:
    """Asks for a key again and again, and keeps its longest wait in ms."""

    def __init__(self, server):
        self.client = server.client()
        self.longest = 0.0
        self.stopped = False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped:
            begin = time.perf_counter()
            self.client.ask('GET', 'probe')
            self.longest = max(self.longest, (time.perf_counter() - begin) * 1000)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        self.thread.join()
        self.client.close()


def expect(server, found, expected, what):
    if found != expected:
        raise SystemExit(f'{server.name}: {what} is {found}, not {expected}')


class Bench(Sides):
    def fill(self, server, steps, objects, elements):
        if steps:
            self.load(server, core=1, steps=steps, operations=objects * elements, objects=objects,
                      elements=elements, pipeline=16)

    def fill_one(self, server, steps, elements):
        if steps not in WORDS:
            return self.fill(server, steps, 1, elements)
        command, words = WORDS[steps]
        for first in range(0, elements, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, elements))
            server.ask(command, FIRST, *(word for n in numbers for word in words(n)))
        return None

    def compare(self, title, threads, prepare, steps, count, verify, **shape):
        """`prepare(server)` returns the steps, or None where they are `steps`."""
        found = {'semel': [], 'redis': []}
        for _ in range(self.options.rounds):
            for which, runs in found.items():
                server = self.start(which, threads=threads)
                try:
                    text = prepare(server) or steps
                    runs.append(self.load(server, core=1 if threads == 1 else None, steps=text,
                                          operations=count, pipeline=16, **shape))
                    verify(server)
                finally:
                    server.end()
        if threads > 1:
            title += f', {threads} I/O threads'
        ours, theirs = found.values()
        self.add(title, middle(ours, 'rate'), middle(theirs, 'rate'), 'op/s')
        self.add(title + ', CPU', middle(ours, 'cpu_us'), middle(theirs, 'cpu_us'), 'us/op')

    def small(self, threads, objects):
        for name, before, steps, stay in SMALL:
            def prepare(server, before=before):
                self.fill(server, before, objects, EACH)

            def verify(server, name=name, stay=stay):
                expect(server, server.ask('DBSIZE'), objects if stay else 0, 'DBSIZE')
                size = SIZES[name[0]]
                expect(server, server.ask(size, FIRST), EACH if stay else 0, size)
            self.compare(f'{name}, objects of {EACH}', threads, prepare, steps, objects * EACH,
                         verify, objects=objects, elements=EACH)

    def large(self, threads, elements, count):
        for name, before, steps, size in LARGE:
            def prepare(server, before=before):
                self.fill_one(server, before, elements)

            def verify(server, size=size):
                expect(server, server.ask(size, FIRST), elements, size)
            self.compare(f'{name}, one object of {elements:,}', threads, prepare,
                         steps.replace('{elements}', str(elements)), count, verify, objects=1,
                         elements=elements)

    def limiters(self, threads, count):
        keys = count // 20

        def script(server):
            return IN_SCRIPT.replace('{sha}', server.ask('SCRIPT', 'LOAD', WINDOW).decode())

        def full(server):
            expect(server, server.ask('DBSIZE'), keys, 'DBSIZE')
            expect(server, server.ask('ZCARD', FIRST), 10, 'ZCARD')

        def some(server):  # the number depends on the order of clients
            expect(server, server.ask('DBSIZE'), keys, 'DBSIZE')
        self.compare('sliding window, script', threads, script, '', count,
                     full, objects=keys)
        self.compare('sliding window, MULTI', threads, lambda server: None, IN_MULTI, count,
                     some, objects=keys)

    def queues(self, threads, count):
        for name, steps, empty, before in QUEUES:
            def prepare(server, before=before):
                if before:
                    server.ask(*before)

            def verify(server, empty=empty):
                for words in empty:
                    expect(server, server.ask(*words), 0, ' '.join(words))
            self.compare(f'queue, {name}', threads, prepare, steps, count, verify)

    def longest_wait(self, server, act):
        with Prober(server) as prober:
            time.sleep(0.2)
            act()
            time.sleep(0.5)  # the server frees the object after its reply
        return prober.longest

    def waits(self, elements):
        for kind, steps in (('list', LIST), ('set', SET), ('sorted set', ZSET)):
            found = {}
            for which in ('semel', 'redis'):
                server = self.start(which)
                server.ask('SET', 'probe', 'v')
                found.setdefault('nothing', {}).setdefault(which, []).append(
                    self.longest_wait(server, lambda: None))
                for name, words in ENDS:
                    runs = found.setdefault(name, {}).setdefault(which, [])
                    for _ in range(self.options.rounds):
                        self.fill_one(server, steps, elements)
                        server.ask('SET', 'other', 'v')
                        runs.append(self.longest_wait(server,
                                                      lambda words=words: server.ask(*words)))
                        server.ask('FLUSHALL')
                server.end()
            for name, runs in found.items():
                ours, theirs = (sorted(runs[which])[len(runs[which]) // 2]
                                for which in ('semel', 'redis'))
                self.add(f'longest wait beside {name}, {kind} of {elements:,}', ours, theirs, 'ms')

    def opening(self, elements, each):
        """A storage with so many elements in lists, sets and sorted sets; redis-server reads its
        append-only file."""
        seconds = {}
        for which in ('semel', 'redis'):
            server = self.start(which, durable=True)
            with server.client() as client:
                for number in range(elements // each):
                    command, words = WORDS[(LIST, SET, ZSET)[number % 3]]
                    client.all([(command, f'o{number}',
                                 *(word for n in range(first, min(first + AT_ONCE, each))
                                   for word in words(n)))
                                for first in range(0, each, AT_ONCE)])
                keys = client.ask('DBSIZE')
            server.stop()
            server.start()
            expect(server, server.ask('DBSIZE'), keys, 'DBSIZE')
            seconds[which] = server.ready_ms / 1000
            server.end()
        self.add(f'open of {elements:,} elements, {each:,} an object',
                 elements / seconds['semel'] / 1e6, elements / seconds['redis'] / 1e6, 'M/s')

    def memory(self, count):
        for kind, whole, element in MEMORY:
            for title, fill, objects in (
                    (f'memory of a {kind} of {EACH}',
                     lambda server, steps=whole: self.fill(server, steps, count, 1), count),
                    (f'memory of an element, one {kind} of {count:,}',
                     lambda server, steps=element: self.fill_one(server, steps, count), 1)):
                bytes_each = {}
                for which in ('semel', 'redis'):
                    server = self.start(which)
                    empty = server.rss()
                    fill(server)
                    bytes_each[which] = (server.rss() - empty) / count
                    expect(server, server.ask('DBSIZE'), objects, 'DBSIZE')
                    server.end()
                self.add(title, bytes_each['semel'], bytes_each['redis'], 'bytes')


def work(bench, runs, scale):
    for threads in (int(each) for each in bench.options.threads.split(',')):
        if runs('small'):
            bench.small(threads, 200_000 // scale)
        if runs('large'):
            for elements in (int(each) for each in bench.options.sizes.split(',')):
                # Each command may cost as much as the object is large: not hours.
                count = max(2_000, 400_000 // max(1, elements // 1_000)) // min(scale, 10)
                bench.large(threads, elements, count)
        if runs('limiters'):
            bench.limiters(threads, 400_000 // scale)
        if runs('queues'):
            bench.queues(threads, 200_000 // scale)
    if runs('memory'):
        bench.memory(1_000_000 // scale)
    if runs('waits'):
        bench.waits(1_000_000 // scale)
    if runs('opening'):
        bench.opening(10_000_000 // scale, 10_000)


def arguments(parser):
    parser.add_argument('--sizes', default='1000', help='of one object; 1000,100000,1000000')
    parser.add_argument('--threads', default='1,2', help='I/O threads of ours')


if __name__ == '__main__':
    sys.exit(run_bench('objects', __doc__,
                       'small, large, limiters, queues, memory, waits, opening', Bench, work,
                       arguments))
