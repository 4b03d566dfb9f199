"""Random requests of all types for a master, and what a server holds in a form that compares."""

import random

DATABASES = 4
KEYS = 40
LUA = ('redis.call("incr", KEYS[1]); redis.call("rpush", KEYS[2], ARGV[1], redis.call("time")[1]);'
       'redis.call("expire", KEYS[1], 900); return redis.call("spop", KEYS[3])')
LIBRARY = '#!lua name=lib{0}\nredis.register_function("f{0}", function() return {0} end)'


class Load:
    """Requests by a seed. Most keys hold something of the type that their name says, so that most
    requests change something; some are of any type."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        weights = {self.string: 20, self.list: 12, self.hash: 12, self.set: 12, self.zset: 14,
                   self.stream: 14, self.ends: 8, self.moves: 6, self.script: 4, self.counts: 3,
                   self.whole: 1, self.library: 1}
        self.makers = [make for make, weight in weights.items() for _ in range(weight)]

    def key(self, kind):
        kind = self.random.choice('slhzgx') if self.random.random() < 0.03 else kind
        return f'{kind}:{self.random.randrange(KEYS)}'

    def value(self):
        pick = self.random.random()
        if pick < 0.4:
            return str(self.random.randrange(-1000, 1_000_000))
        least, most = (0, 40) if pick < 0.97 else (500, 20_000)
        return self.random.randbytes(self.random.randrange(least, most))

    def member(self):
        return f'm{self.random.randrange(30)}'

    def pick(self, *makers):
        return self.random.choice(makers)()

    def requests(self, count):
        """About so many, some of them in transactions."""
        for _ in range(count):
            if self.random.random() < 0.05:
                yield ('SELECT', self.random.randrange(DATABASES))
            if self.random.random() < 0.03:
                yield ('MULTI',)
                for _ in range(self.random.randrange(1, 8)):
                    yield self.pick(*self.makers)
                yield ('EXEC',)
            yield self.pick(*self.makers)

    def string(self):
        some, key, other = self.random.randrange, self.key('s'), self.key('s')
        return self.pick(
            lambda: ('SET', key, self.value()),
            lambda: ('SET', key, self.value(), 'PX', self.random.choice((1, 20, 100_000))),
            lambda: ('SETEX', key, self.random.choice((1, 100)), self.value()),
            lambda: ('INCRBY', key, some(-9, 99)), lambda: ('INCRBYFLOAT', key, '0.1'),
            lambda: ('APPEND', key, self.value()), lambda: ('SETRANGE', key, some(99), 'ab'),
            lambda: ('GETDEL', key),
            lambda: ('GETEX', key, 'PX', self.random.choice((5, 90_000))),
            lambda: ('MSET', key, 'a', other, self.value()),
            lambda: ('SETBIT', key, some(200), 1),
            lambda: ('BITFIELD', key, 'INCRBY', 'u8', some(99), some(99)),
            lambda: ('BITOP', 'OR', key, other, self.key('s')))

    def list(self):
        key = self.key('l')
        return self.pick(
            lambda: ('RPUSH', key, self.value(), self.value()),
            lambda: ('LPUSH', key, self.value()), lambda: ('LPOP', key), lambda: ('RPOP', key, 2),
            lambda: ('LMOVE', key, self.key('l'), 'LEFT', 'RIGHT'),
            lambda: ('LTRIM', key, 0, 20), lambda: ('LSET', key, 0, self.value()),
            lambda: ('LINSERT', key, 'BEFORE', 'a', 'b'), lambda: ('LREM', key, 1, 'b'),
            lambda: ('BLPOP', key, '0.001'), lambda: ('LMPOP', 1, key, 'LEFT', 'COUNT', 2))

    def hash(self):
        key = self.key('h')
        return self.pick(
            lambda: ('HSET', key, self.member(), self.value(), self.member(), self.value()),
            lambda: ('HDEL', key, self.member()),
            lambda: ('HINCRBY', key, 'n', self.random.randrange(9)),
            lambda: ('HINCRBYFLOAT', key, 'f', '1.5'), lambda: ('HSETNX', key, self.member(), 1))

    def set(self):
        key, other = self.key('g'), self.key('g')
        return self.pick(
            lambda: ('SADD', key, self.member(), self.random.randrange(99)),
            lambda: ('SREM', key, self.member()), lambda: ('SPOP', key),
            lambda: ('SPOP', key, 3), lambda: ('SMOVE', key, other, 'm1'),
            lambda: ('SINTERSTORE', key, other, self.key('g')),
            lambda: ('SUNIONSTORE', key, other, self.key('g')),
            lambda: ('SORT', key, 'ALPHA', 'STORE', self.key('l')))

    def zset(self):
        score, key = self.random.random() * 80, self.key('z')
        return self.pick(
            lambda: ('ZADD', key, score, self.member(), 3, self.member()),
            lambda: ('ZINCRBY', key, '0.3', self.member()), lambda: ('ZREM', key, self.member()),
            lambda: ('ZPOPMIN', key), lambda: ('ZREMRANGEBYRANK', key, 10, -1),
            lambda: ('ZUNIONSTORE', key, 2, self.key('z'), self.key('z')),
            lambda: ('ZRANGESTORE', key, self.key('z'), 0, 5),
            lambda: ('GEOADD', key, score, score, self.member()),
            lambda: ('BZPOPMAX', key, '0.001'))

    def stream(self):
        key, group = self.key('x'), f'g{self.random.randrange(2)}'
        return self.pick(
            lambda: ('XADD', key, '*', self.member(), self.value()),
            lambda: ('XADD', key, 'MAXLEN', '~', 20, '*', 'a', self.value()),
            lambda: ('XADD', key, 'MAXLEN', 9, '*', 'a', 'b', 'c', self.value()),
            lambda: ('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM'),
            lambda: ('XREADGROUP', 'GROUP', group, self.member(), 'COUNT', 2, 'STREAMS', key, '>'),
            lambda: ('XAUTOCLAIM', key, group, self.member(), 0, 0, 'COUNT', 2),
            lambda: ('XTRIM', key, 'MAXLEN', self.random.randrange(9)),
            lambda: ('XGROUP', 'DELCONSUMER', key, group, self.member()),
            lambda: ('XGROUP', 'SETID', key, group, '$'), lambda: ('XGROUP', 'DESTROY', key, group))

    def ends(self):
        key = self.key(self.random.choice('slhzgx'))
        return self.pick(
            lambda: ('EXPIRE', key, self.random.choice((1, 50, 5000))),
            lambda: ('PEXPIRE', key, self.random.choice((1, 30))), lambda: ('PERSIST', key),
            lambda: ('DEL', key, self.key('l')), lambda: ('UNLINK', key),
            lambda: ('PEXPIREAT', key, 4_000_000_000_000))

    def moves(self):
        kind, database = self.random.choice('slhzgx'), self.random.randrange(DATABASES)
        return self.pick(
            lambda: ('RENAME', self.key(kind), self.key(kind)),
            lambda: ('COPY', self.key(kind), self.key(kind), 'DB', database, 'REPLACE'),
            lambda: ('MOVE', self.key(kind), database))

    def script(self):
        return ('EVAL', LUA, 3, self.key('s'), self.key('l'), self.key('g'), self.value())

    def counts(self):
        key = self.key('s') + 'hll'
        return self.pick(
            lambda: ('PFADD', key, self.member(), self.value()),
            lambda: ('PFMERGE', 's:hll', key, self.key('s') + 'hll'),
            lambda: ('PUBLISH', 'news', 'x'))

    def whole(self):
        some = self.random.randrange
        if some(10) < 7:
            return ('SWAPDB', some(DATABASES), some(DATABASES))
        return ('FLUSHDB', 'ASYNC') if some(10) < 8 else ('FLUSHALL',)

    def library(self):
        number = self.random.randrange(20)
        if number < 3:
            return ('FUNCTION', 'FLUSH')
        return ('FUNCTION', 'LOAD', 'REPLACE', LIBRARY.format(number % 5))


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def stream_of(client, key):
    """Without the times that a server counts for itself."""
    about = pairs(client.ask('XINFO', 'STREAM', key))
    about = {name: about[name] for name in (b'length', b'last-generated-id', b'entries-added',
                                            b'max-deleted-entry-id')}
    groups = []
    for group in map(pairs, client.ask('XINFO', 'GROUPS', key)):
        name = group[b'name']
        pending = [each[:2] for each in client.ask('XPENDING', key, name, '-', '+', 10_000)]
        names = sorted(pairs(each)[b'name'] for each in client.ask('XINFO', 'CONSUMERS', key, name))
        groups.append((name, group[b'last-delivered-id'], pending, names))
    return about, client.ask('XRANGE', key, '-', '+'), sorted(groups)


READ = {
    b'string': lambda client, key: client.ask('GET', key),
    b'list': lambda client, key: client.ask('LRANGE', key, 0, -1),
    b'hash': lambda client, key: pairs(client.ask('HGETALL', key)),
    b'set': lambda client, key: set(client.ask('SMEMBERS', key)),
    b'zset': lambda client, key: client.ask('ZRANGE', key, 0, -1, 'WITHSCORES'),
    b'stream': stream_of}


def content(server):
    """What each key holds and when it ends, and the libraries."""
    found = {}
    with server.client() as client:
        for database in range(DATABASES):
            client.ask('SELECT', database)
            for key in client.ask('KEYS', '*'):
                kind = client.ask('TYPE', key)
                if kind in READ:
                    found[database, key] = (kind, client.ask('PEXPIRETIME', key),
                                            READ[kind](client, key))
        libraries = map(pairs, client.ask('FUNCTION', 'LIST', 'WITHCODE'))
    found['libraries'] = sorted((each[b'library_name'], each[b'library_code'])
                                for each in libraries)
    return found


def difference(ours, theirs):
    """A few keys that differ, as a text; empty: none."""
    lines = []
    for key in sorted(set(ours) | set(theirs), key=repr):
        if ours.get(key) != theirs.get(key):
            lines.append(f'{key}: {str(ours.get(key))[:300]}, not {str(theirs.get(key))[:300]}')
    return '\n'.join(lines[:5])
