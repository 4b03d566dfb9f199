"""Tests of a small service in Python: service.py KIND PORT TESTS, with KIND fake, redis or semel.

fakeredis has no clock that a test moves, as redis-server has none: both wait for a short ttl.
The last line is JSON: ms of the peer's start (0: another program started it), seconds of the
tests, MiB that the process grew by.
"""

import json
import re
import sys
import time
from pathlib import Path

import redis

CAD = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
SHORT_MS = 10


def resident():
    status = Path('/proc/self/status').read_text(encoding='ascii')
    return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) / 1024


def expect(got, wanted):
    if got != wanted:
        sys.exit(f'{got!r} is not {wanted!r}')


def one_test(db, number, moves):
    db.flushall()
    session = f'session:{number}'
    db.set(session, 'ada')
    expect(db.get(session), b'ada')
    db.pexpire(session, 60_000 if moves else SHORT_MS)
    if moves:
        db.execute_command('SEMEL.CLOCK', 'ADVANCE', 60_000)
    else:
        time.sleep((SHORT_MS + 1) / 1000)
    expect(db.get(session), None)
    db.rpush('queue', 'a', 'b')
    expect(db.lpop('queue'), b'a')
    db.zadd('board', {'ada': 1, 'bob': 2})
    expect(db.zrange('board', 0, -1), [b'ada', b'bob'])
    db.hset('cart', 'tea', 2)
    expect(db.hincrby('cart', 'tea', 1), 3)
    expect(db.set('lock', 'mine', nx=True, px=30_000), True)
    expect(db.eval(CAD, 1, 'lock', 'other'), 0)
    expect(db.eval(CAD, 1, 'lock', 'mine'), 1)
    expect(db.get('lock'), None)


def main(kind, port, tests):
    before = resident()
    start_ms = 0
    if kind == 'fake':
        import fakeredis
        before = resident()  # without the code
        began = time.perf_counter()
        db = fakeredis.FakeRedis()
        expect(db.ping(), True)
        start_ms = (time.perf_counter() - began) * 1000
    else:
        db = redis.Redis(port=int(port))
        expect(db.ping(), True)
    began = time.perf_counter()
    for number in range(int(tests)):
        one_test(db, number, kind == 'semel')
    seconds = time.perf_counter() - began
    print(json.dumps({'start_ms': start_ms, 'seconds': seconds, 'mib': resident() - before}))


main(*sys.argv[1:])
