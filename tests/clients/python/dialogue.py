"""redis-py, each of its dialects: dialogue.py 2 [3]"""

import multiprocessing
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

    def lost_lock(self):
        """After its end another client can take the lock."""
        lock = self.client.lock(self.key('lost'), timeout=0.05)
        assert lock.acquire()
        until(lambda: self.client.exists(self.key('lost')) == 0)
        other = self.connect().lock(self.key('lost'), timeout=60)
        assert other.acquire(blocking=False)
        for work in (lock.release, lock.reacquire, lambda: lock.extend(5)):
            try:
                work()
                assert False, 'not noticed'
            except redis.exceptions.LockError:
                pass
        other.release()

    def fight(self):
        """Processes that read, and write one more, each under the lock: none is lost."""
        names = (self.key('fight'), self.key('fought'))
        fighters = [multiprocessing.Process(target=increments, args=(self.dialect, 25, *names))
                    for _ in range(3)]
        for each in fighters:
            each.start()
        for each in fighters:
            each.join(60)
            same(each.exitcode, 0)
        same(self.client.get(names[1]), '75')

    def scripts(self):
        key = self.key('scripted')
        script = self.client.register_script(
            "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) return {n, tostring(n / 4), 'x'}")
        same(script(keys=[key], args=[3]), [3, '0.75', 'x'])
        self.client.script_flush()
        same(self.client.script_exists(script.sha), [False])
        same(script(keys=[key], args=[3]), [6, '1.5', 'x'])
        same(self.client.script_exists(script.sha), [True])
        with self.client.pipeline() as pipe:
            pipe.set(key, 0)
            script(keys=[key], args=[1], client=pipe)
            script(keys=[key], args=[1], client=pipe)
            same(pipe.execute(), [True, [1, '0.25', 'x'], [2, '0.5', 'x']])
        same(self.client.eval('return {KEYS, ARGV}', 1, 'k', 'a', 'b'), [['k'], ['a', 'b']])
        try:
            self.client.eval("return redis.call('INCR', KEYS[1], 'x')", 1, key)
            assert False, 'no error'
        except redis.ResponseError as error:
            assert str(error).startswith('Wrong number of args calling Redis command'), error
        try:
            self.client.evalsha('f' * 40, 0)
            assert False, 'no error'
        except redis.exceptions.NoScriptError:
            pass

    def functions(self):
        code = """#!lua name=suite
redis.register_function('put', function(keys, args)
  return redis.call('SET', keys[1], args[1], 'NX', 'GET') end)
redis.register_function{function_name='look', flags={'no-writes'},
  callback=function(keys) return redis.call('GET', keys[1]) end}"""
        key = self.key('function')
        for work, expected in ((lambda: self.client.function_load(code, replace=True), 'suite'),
                               (lambda: self.client.fcall('put', 1, key, 'v'), None),
                               (lambda: self.client.fcall('put', 1, key, 'w'), 'v'),
                               (lambda: self.client.fcall_ro('look', 1, key), 'v'),
                               (lambda: len(self.client.function_list('suite')), 1),
                               (lambda: self.client.function_delete('suite'), True)):
            found = work()
            same(True if found == 'OK' else found, expected)

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
        with_functions = ('functions',) if hasattr(self.client, 'function_load') else ()
        for name in ('own_lock', 'lost_lock', 'fight', 'scripts', *with_functions):
            title = f'{name.replace("_", " ")}, RESP{self.dialect}'
            if SCRIPTS:
                check(title, getattr(self, name))
            else:
                skip(title)


def increments(dialect, count, name, counter):
    """A process of its own: reads and writes, which only a lock makes one step."""
    client = Dialogue(dialect).client
    for _ in range(count):
        with client.lock(name, timeout=60, sleep=0.002):
            client.set(counter, int(client.get(counter) or 0) + 1)


if __name__ == '__main__':
    for each in sys.argv[1:]:
        Dialogue(int(each)).run()
    print('end')
