"""redis-py, each of its dialects: dialogue.py 2 [3]"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import redis  # noqa: E402
from report import HOST, PORT, SCRIPTS, check, skip, until  # noqa: E402


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


class Dialogue:
    def __init__(self, dialect):
        self.dialect = dialect
        self.prefix = f'{dialect}:'
        self.client = self.connect()

    def connect(self, **options):
        if int(redis.__version__.split('.')[0]) >= 5:
            options['protocol'] = self.dialect
        return redis.Redis(host=HOST, port=PORT, decode_responses=True, **options)

    def key(self, name):
        return self.prefix + name

    def handshake(self):
        same(self.client.ping(), True)
        named = self.connect(db=2, client_name='tester')
        same(named.client_getname(), 'tester')
        same(named.set('k', '1'), True)
        same(named.dbsize(), 1)
        same(named.flushdb(), True)
        assert int(self.client.info('server')['redis_version'].split('.')[0]) >= 7

    def claim(self):
        key = self.key('claim')
        same(self.client.set(key, 'CONSUMING', nx=True, get=True, px=60_000), None)
        same(self.client.set(key, 'CONSUMING', nx=True, get=True, px=60_000), 'CONSUMING')
        assert 0 < self.client.pttl(key) <= 60_000

    def lock(self):
        key = self.key('lock')
        other = self.connect()
        assert self.client.set(key, 'mine', nx=True, px=60_000)
        same(other.set(key, 'theirs', nx=True, px=60_000), None)
        same(self.release(other, key, 'theirs'), False)
        same(self.release(self.client, key, 'mine'), True)
        assert other.set(key, 'theirs', nx=True, px=60_000)

    @staticmethod
    def release(client, key, token):
        """Compare and delete as it is done without a script."""
        with client.pipeline() as pipe:
            pipe.watch(key)
            if pipe.get(key) != token:
                return False
            pipe.multi()
            pipe.delete(key)
            return pipe.execute() == [1]

    def own_lock(self):
        with self.client.lock(self.key('own'), timeout=60) as lock:
            assert not self.connect().lock(self.key('own'), timeout=60).acquire(blocking=False)
            assert lock.reacquire()
            assert lock.extend(10)
        same(self.client.exists(self.key('own')), 0)

    def expiry(self):
        key = self.key('short')
        same(self.client.set(key, '1', px=30), True)
        until(lambda: self.client.exists(key) == 0)
        same(self.client.ttl(key), -2)
        self.client.set(key, '1')
        same(self.client.expire(key, 100), True)
        same(self.client.ttl(key), 100)
        same(self.client.persist(key), True)
        same(self.client.ttl(key), -1)

    def pubsub(self):
        channel = self.key('channel')
        listener = self.connect().pubsub()
        listener.subscribe(channel)
        listener.psubscribe(channel + '*')
        heard = [listener.get_message(timeout=10)['type'] for _ in range(2)]
        same(heard, ['subscribe', 'psubscribe'])
        same(self.client.publish(channel, 'news'), 2)
        heard = [listener.get_message(timeout=10) for _ in range(2)]
        same(sorted(m['type'] for m in heard), ['message', 'pmessage'])
        same({m['data'] for m in heard}, {'news'})
        listener.unsubscribe(channel)
        same(listener.get_message(timeout=10)['type'], 'unsubscribe')
        listener.close()

    def pipeline(self):
        with self.client.pipeline(transaction=False) as pipe:
            for _ in range(500):
                pipe.incr(self.key('n'))
            same(pipe.execute(), list(range(1, 501)))

    def transaction(self):
        key = self.key('t')
        with self.client.pipeline() as pipe:
            pipe.watch(key)
            self.connect().set(key, 'theirs')
            pipe.multi()
            pipe.set(key, 'mine')
            try:
                pipe.execute()
                assert False, 'not noticed'
            except redis.WatchError:
                pass
        same(self.client.get(key), 'theirs')
        same(self.client.transaction(lambda p: (p.multi(), p.set(key, '1'), p.incr(key)), key),
             [True, 2])

    def errors(self):
        self.client.set(self.key('text'), 'abc')
        try:
            self.client.incr(self.key('text'))
            assert False, 'no error'
        except redis.ResponseError as error:
            same(str(error), 'value is not an integer or out of range')

    def hashes(self):
        key = self.key('hash')
        same(self.client.hset(key, mapping={'a': '1', 'b': '2'}), 2)
        same(self.client.hgetall(key), {'a': '1', 'b': '2'})
        same(self.client.hincrby(key, 'a', 5), 6)

    def run(self):
        for name in ('handshake', 'claim', 'lock', 'expiry', 'pubsub', 'pipeline', 'transaction',
                     'errors', 'hashes'):
            check(f'{name}, RESP{self.dialect}', getattr(self, name))
        if SCRIPTS:
            check(f'own lock, RESP{self.dialect}', self.own_lock)
        else:
            skip(f'own lock, RESP{self.dialect}')


for each in sys.argv[1:]:
    Dialogue(int(each)).run()
print('end')
