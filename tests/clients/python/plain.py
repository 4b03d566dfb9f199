"""redis-py's Redis, which knows nothing of a cluster, with nodes that hand over to the leader."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import redis  # noqa: E402
from outage import NODES, outages  # noqa: E402
from redis.backoff import NoBackoff  # noqa: E402
from redis.exceptions import ClusterDownError, TryAgainError  # noqa: E402
from redis.retry import Retry  # noqa: E402
from report import HOST, PORT, check  # noqa: E402

# Not MovedError, which this client could not follow.
AGAIN = (redis.ConnectionError, redis.TimeoutError, ClusterDownError, TryAgainError)
RELEASE = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
           'else return 0 end')


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


def connect(port):
    return redis.Redis(HOST, port, decode_responses=True, socket_timeout=5,
                       retry=Retry(NoBackoff(), 0))  # the caller tries another node


client = connect(PORT)


def claim():
    same(client.set('claim', 'mine', nx=True, get=True, px=60_000), None)
    for port in NODES:
        same(connect(port).set('claim', 'other', nx=True, get=True, px=60_000), 'mine')
        same(connect(port).get('claim'), 'mine')


def several_keys():
    same(client.mset({'a': '1', 'b': '2', 'c': '3'}), True)
    same(client.mget('a', 'b', 'c'), ['1', '2', '3'])


def pipeline():
    with client.pipeline(transaction=False) as pipe:
        for _ in range(300):
            pipe.incr('count')
        same(pipe.execute(), list(range(1, 301)))


def transaction():
    with client.pipeline() as pipe:
        pipe.watch('t')
        pipe.multi()
        pipe.set('t', 1)
        pipe.incr('t')
        same(pipe.execute(), [True, 2])


def script():
    client.set('lock', 'mine')
    release = client.register_script(RELEASE)
    same(release(keys=['lock'], args=['other']), 0)
    same(release(keys=['lock'], args=['mine']), 1)


def lock():
    with client.lock('held', timeout=60):
        assert not connect(NODES[0]).lock('held', timeout=60).acquire(blocking=False)
    same(client.exists('held'), 0)


class Caller:
    """Knows all addresses, as a Redis does not, and leaves a node that has ended for the next."""

    def __init__(self):
        self.index = NODES.index(PORT)
        self.node = connect(PORT)

    def call(self, name, *words, **options):
        try:
            return getattr(self.node, name)(*words, **options)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            if not isinstance(error, (ClusterDownError, TryAgainError)):
                self.index = (self.index + 1) % len(NODES)
                self.node = connect(NODES[self.index])
            raise

    def claim(self, key, value):
        return self.call('set', key, value, nx=True, get=True)

    def read(self, key):
        return self.call('get', key)


for each in (claim, several_keys, pipeline, transaction, script, lock):
    check(each.__name__.replace('_', ' '), each)
caller = Caller()
outages(caller.claim, caller.read, AGAIN, 'called:')
print('end')
