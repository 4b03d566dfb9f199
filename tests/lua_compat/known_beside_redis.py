#!/usr/bin/env python3
"""Known scripts on a redis-server and on our node, the same replies and the same keys:
tests/lua_compat/known_beside_redis.py [--program SEMEL | --against redis] [--rounds N] [--seed N]

Runs every text of lua_compat/matcher/known_catalogue.def, and some that are one command, by EVAL,
EVALSHA and in pipelines of EVALSHA, on random states and with random arguments, usual ones and
others. Times may differ by what passes between the two servers. With --against redis the second
server is a redis-server as well: what differs then is wrong with this program.
"""

import argparse
import os
import random
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/clients'))
import target  # noqa: E402
from resp import SIGNED  # noqa: E402  (target has found the folder)
from servers import CannotStart  # noqa: E402

TOLERANCE_MS = 20_000
KEYS = ('a', 'b', 'c')
# No time that could end meanwhile.
USUAL = ('owner', 'owner', 'v', '100000', '200000', '90000')
UNUSUAL = ('', '0', '-1', '-5', 'abc', '1.5', ' 70000', '0070000', '0x186A0', '1e5', 'k\r\n',
           'publish', 'PUBLISH', 'get')
VALUES = ('owner', 'owner', 'v', '1', '0', '-1', '41', 'abc', '', ' 3', '9007199254740992',
          '9223372036854775807')
SINGLE = (
    "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])",
    "local k, v = KEYS[1], ARGV[1] return redis.call('set', k, v, 'PX', 100000, 'NX', 'GET')",
    "return redis.call('incrby', KEYS[1], ARGV[1])",
    "return redis.call('getdel', KEYS[1])",
    "return redis.call('del', KEYS[1])",
    "return redis.call('expire', KEYS[1], ARGV[1], 'NX')",
    "return redis.call('hget', KEYS[1], ARGV[1])",
    "return redis.call('mget', KEYS[1], KEYS[2])",
)


def catalogue():
    """[(text, keys, arguments)], something for each wildcard"""
    source = (ROOT / 'lua_compat/matcher/known_catalogue.def').read_text(encoding='utf-8')
    found = [(text, 2, 2) for text in SINGLE]
    for entry in re.findall(r'^X\((.*?)\)$', source, re.MULTILINE | re.DOTALL):
        strings = re.search(r'"[^"]*",(?:\s*//[^\n]*)?\s*((?:"[^"]*"\s*)+),', entry)
        text = ''.join(re.findall(r'"([^"]*)"', strings.group(1)))
        keys, arguments = re.search(r'(\d+),\s*(\d+)$', entry).groups()
        for constant in ('100000', "'0200'") if "'?1'" in text else ("'?1'",):
            found.append((text.replace("'?1'", constant), int(keys), int(arguments)))
    return found


def respelled(dice, text):
    """Over several lines, so that errors have lines."""
    parts = re.split(r"('[^']*')", text)
    breaks = ('\n', ' ', ' ', ' -- then\r\n')
    return ''.join(part if part.startswith("'") else
                   re.sub(' ', lambda _: dice.choice(breaks), part) for part in parts)


def view(client):
    asked = []
    for key in KEYS:
        asked += [('TYPE', key), ('GET', key), ('HLEN', key), ('PTTL', key)]
        asked += [('HGET', key, field) for field in sorted(set(USUAL))]
    return client.all(asked)


def is_close(left, right):
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_close, left, right))
    if left == right or not (isinstance(left, int) and isinstance(right, int)):
        return left == right
    # Counters are nowhere near these.
    if min(left, right) > 2 * TOLERANCE_MS and max(left, right) < 10**12:
        return abs(left - right) < TOLERANCE_MS
    return 250 < min(left, right) and max(left, right) <= 500 and abs(left - right) < 20


def state_command(dice):
    key, value = dice.choice(KEYS), dice.choice(VALUES)
    return dice.choice((('DEL', key), ('SET', key, value), ('HSET', key, dice.choice(USUAL), value),
                        ('EXPIRE', key, 500), ('PERSIST', key),
                        ('SET', key, value, 'PX', 300000), ('SET', key, value, 'PX', 300000)))


def operands(dice, keys, arguments):
    def about(count):
        return max(0, count + dice.choice((-1, 1) if dice.random() < 0.1 else (0,)))
    key_count = about(keys or dice.randrange(4))
    count = about(arguments if keys else max(arguments, key_count + 1))
    words = [dice.choice(UNUSUAL if dice.random() < 0.15 else USUAL) for _ in range(count)]
    return [key_count, *[dice.choice(KEYS) for _ in range(key_count)], *words]


def requests_of(dice, text, sha, keys, arguments):
    kind = dice.randrange(3)
    if kind == 0:
        return [('EVAL', text, *operands(dice, keys, arguments))]
    count = 1 if kind == 1 else 8
    return [('EVALSHA', sha, *operands(dice, keys, arguments)) for _ in range(count)]


def run(dice, clients, text, keys, arguments):
    """How many scripts were compared; none: they differ, and it has been said how."""
    def both(*requests):
        return [client.all(requests) for client in clients]
    spelled = respelled(dice, text)
    both(('FLUSHALL',), *[state_command(dice) for _ in range(4)])
    shas = both(('SCRIPT', 'LOAD', spelled))
    story = [spelled]
    if shas[0] != shas[1]:
        print(f'differs: SCRIPT LOAD of {spelled!r}: {shas}')
        return None
    compared = 0
    for _ in range(4):
        changes = [state_command(dice) for _ in range(dice.randrange(3))]
        requests = requests_of(dice, spelled, shas[0][0], keys, arguments)
        before = view(clients[0])
        both(*changes)
        left, right = both(*requests)
        views = [view(client) for client in clients]
        story += [*changes, *requests]
        if not is_close(left, right) or not is_close(*views):
            print('differs:', *story, f'before {before}', f'redis-server {left}', f'other {right}',
                  *[f'  {a!r} {b!r}' for a, b in zip(*views) if not is_close(a, b)], sep='\n')
            return None
        compared += len(requests)
    return compared


def main():
    parser = argparse.ArgumentParser(description='Known scripts beside a redis-server.')
    parser.add_argument('--program', default=ROOT / 'build/dev/tools/semel/semel')
    parser.add_argument('--against', choices=('semel', 'redis'), default='semel')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seed', type=int, default=int.from_bytes(os.urandom(4), 'big'))
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    texts = catalogue()
    compared = 0
    try:
        with target.open_target('redis') as redis, \
                target.open_target(arguments.against, arguments.program) as other, \
                redis.client(SIGNED) as left, other.client(SIGNED) as right:
            for _ in range(arguments.rounds):
                for text in texts:
                    done = run(dice, (left, right), *text)
                    if done is None:
                        print(f'known: differs, seed {arguments.seed}')
                        return 1
                    compared += done
    except CannotStart as reason:
        print(f'known: skipped, {reason}')
        return 77
    print(f'known: {len(texts)} texts, {compared} runs, the same; seed {arguments.seed}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
