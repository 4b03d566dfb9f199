"""Cases of the scripts that the node knows, on random states, with usual arguments and others: each
text of lua_compat/matcher/known_catalogue.def, and some that are one command."""

import re
from pathlib import Path

from cases import Case, Script

CATALOGUE = Path(__file__).resolve().parents[2] / 'lua_compat/matcher/known_catalogue.def'
# Several with one load are a pipeline of EVALSHA, which the node runs in another way than one.
WAYS = [('eval', 2), ('evalsha', 2), ('evalsha', 3), ('multi', 2), ('fcall', 3)]
KEYS = ('a', 'b', 'c')
# No time that could end meanwhile.
USUAL = ('owner', 'owner', 'v', '100000', '200000', '90000')
UNUSUAL = ('', '0', '-1', '-5', 'abc', '1.5', ' 70000', '0070000', '0x186A0', '1e5', 'k\r\n',
           'publish', 'PUBLISH', 'get')
VALUES = ('owner', 'owner', 'v', '1', '0', '-1', '41', 'abc', '', ' 3', '9007199254740992',
          '9223372036854775807')
SINGLE = (
    "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])",
    "local k = KEYS[1] local v, ttl = ARGV[1], ARGV[2] "
    "return redis.call('set', k, v, 'NX', 'GET', 'PX', ttl)",
    "local k, v = KEYS[1], ARGV[1] return redis.call('set', k, v, 'PX', 100000, 'NX', 'GET')",
    "local r = redis.call('set', KEYS[1], 'CONSUMING', 'NX', 'GET', 'PX', 100000) return r",
    "return redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2], 'XX')",
    "return redis.call('get', KEYS[1])",
    "return redis.call('incr', KEYS[1])",
    "return redis.call('incrby', KEYS[1], ARGV[1])",
    "return redis.call('getdel', KEYS[1])",
    "return redis.call('del', KEYS[1])",
    "return redis.call('del', KEYS[1], KEYS[2])",
    "return redis.call('pexpire', KEYS[1], ARGV[1])",
    "return redis.call('expire', KEYS[1], ARGV[1], 'NX')",
    "return redis.call('pttl', KEYS[1])",
    "return redis.call('type', KEYS[1])",
    "return redis.call('append', KEYS[1], ARGV[1])",
    "return redis.call('hget', KEYS[1], ARGV[1])",
    "return redis.call('hmget', KEYS[1], ARGV[1], ARGV[2])",
    "return redis.call('mget', KEYS[1], KEYS[2])",
    "return redis.call('getex', KEYS[1], 'EX', ARGV[1])",
    "return redis.call('setnx', KEYS[1], ARGV[1])",
    "return redis.call('incrbyfloat', KEYS[1], ARGV[1])",
)


def catalogue():
    """[(text, keys, arguments)], something for each wildcard"""
    source = CATALOGUE.read_text(encoding='utf-8')
    found = [(text, 2, 2) for text in SINGLE]
    for entry in re.findall(r'^X\((.*?)\)$', source, re.MULTILINE | re.DOTALL):
        strings = re.search(r'"[^"]*",(?:\s*//[^\n]*)?\s*((?:"[^"]*"\s*)+),', entry)
        text = ''.join(re.findall(r'"([^"]*)"', strings.group(1)))
        keys, arguments = re.search(r'(\d+),\s*(\d+)$', entry).groups()
        for constant in ('100000', "'0200'") if "'?1'" in text else ("'?1'",):
            found.append((text.replace("'?1'", constant), int(keys), int(arguments)))
    return found


TEXTS = catalogue()


def respelled(dice, text):
    """Over several lines, so that errors have lines."""
    parts = re.split(r"('[^']*')", text)
    breaks = ('\n', ' ', ' ', ' -- then\r\n')
    return ''.join(part if part.startswith("'") else
                   re.sub(' ', lambda _: dice.choice(breaks), part) for part in parts)


def view():
    asked = []
    for key in KEYS:
        asked += [['TYPE', key], ['GET', key], ['HLEN', key], ['PTTL', key]]
        asked += [['HGET', key, field] for field in sorted(set(USUAL))]
    return asked


def change(dice):
    key, value = dice.choice(KEYS), dice.choice(VALUES)
    return dice.choice((['DEL', key], ['SET', key, value], ['HSET', key, dice.choice(USUAL), value],
                        ['EXPIRE', key, '500'], ['PERSIST', key],
                        ['SET', key, value, 'PX', '300000'], ['SET', key, value, 'PX', '300000']))


def call(dice, text, keys, arguments):
    def about(count):
        return max(0, count + dice.choice((-1, 1) if dice.random() < 0.1 else (0,)))
    key_count = about(keys or dice.randrange(4))
    count = about(arguments if keys else max(arguments, key_count + 1))
    return Script(text, [dice.choice(KEYS) for _ in range(key_count)],
                  [dice.choice(UNUSUAL if dice.random() < 0.15 else USUAL) for _ in range(count)])


def case(dice, name, number):
    text, keys, arguments = TEXTS[number % len(TEXTS)]
    text = respelled(dice, text)
    steps = [change(dice) for _ in range(4)]
    for _ in range(4):
        steps += [change(dice) for _ in range(dice.randrange(3))]
        steps += [call(dice, text, keys, arguments) for _ in range(dice.choice((1, 1, 8)))] + view()
    return Case(name, steps, {'as': WAYS, 'times': []})
