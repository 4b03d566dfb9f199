"""redis-py's RedisCluster, of the release that is installed, against a group."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import redis  # noqa: E402
from outage import DEAD_PORT, NODES, need, outages  # noqa: E402
from redis.cluster import ClusterNode, RedisCluster  # noqa: E402
from redis.exceptions import RedisClusterException  # noqa: E402
from report import HOST, PORT, check, skip, until  # noqa: E402

RELEASE = tuple(int(part) for part in redis.__version__.split('.')[:2])
ERRORS = (redis.RedisError, RedisClusterException, OSError)
RELEASE_LOCK = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
                'else return 0 end')


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


def connect(*ports, **options):
    return RedisCluster(startup_nodes=[ClusterNode(HOST, port) for port in ports or (PORT,)],
                        decode_responses=True, **options)


client = connect()


def topology():
    same(client.get_primaries()[0].port, int(need('leader')))
    same({node.port for node in client.get_nodes()}, set(NODES))
    same(len(client.get_replicas()), 2)
    (span, shard), = client.cluster_slots().items()
    same(span, (0, 16383))
    same(shard['primary'][1], int(need('leader')))
    same(len(shard['replicas']), 2)
    found = client.cluster_nodes()
    same({int(address.rsplit(':', 1)[1].split('@')[0]) for address in found}, set(NODES))
    flags = sorted(each['flags'].replace('myself,', '') for each in found.values())
    same(flags, ['master', 'slave', 'slave'])
    if hasattr(client, 'cluster_shards'):
        shard, = client.cluster_shards()
        same(len(shard['nodes']), 3)


def claim():
    same(client.set('claim', 'mine', nx=True, get=True, px=60_000), None)
    same(client.set('claim', 'other', nx=True, get=True, px=60_000), 'mine')
    same(client.get('claim'), 'mine')
    assert 0 < client.pttl('claim') <= 60_000


def hash_tags():
    same(client.keyslot('{tag}a'), client.keyslot('{tag}b'))
    same(client.cluster_keyslot('{tag}a'), client.keyslot('{tag}b'))
    same(client.mset({'{tag}a': '1', '{tag}b': '2'}), True)
    same(client.mget('{tag}a', '{tag}b', '{tag}c'), ['1', '2', None])


def across_slots():
    pairs = {f'across:{i}': str(i) for i in range(50)}
    client.mset_nonatomic(pairs)
    same(client.mget_nonatomic(list(pairs)), list(pairs.values()))
    same(client.delete(*pairs), 50)
    same(client.exists(*pairs), 0)


def pipeline():
    with client.pipeline() as pipe:
        for i in range(300):
            pipe.set(f'pipe:{i}', i)
        for i in range(300):
            pipe.get(f'pipe:{i}')
        same(pipe.execute(), [True] * 300 + [str(i) for i in range(300)])


def transaction():
    """RedisCluster has transactions since 6; before, they are the leader's own connection's."""
    if RELEASE >= (6, 0):
        with client.pipeline(transaction=True) as pipe:
            pipe.set('{t}a', 1)
            pipe.incr('{t}a')
            same(pipe.execute()[1:], [2])
        return
    node = client.get_redis_connection(client.get_primaries()[0])
    same(node.transaction(lambda pipe: (pipe.multi(), pipe.set('{t}a', 1), pipe.incr('{t}a')),
                          '{t}a'), [True, 2])


def reads_of_replicas():
    client.set('read', 'here')
    reader = connect(read_from_replicas=True)
    until(lambda: all(reader.get('read') == 'here' for _ in range(3)))
    before = int(need('replica-calls', 'get'))
    for _ in range(30):
        same(reader.get('read'), 'here')
    assert int(need('replica-calls', 'get')) >= before + 10


def script():
    client.set('lock', 'mine')
    release = client.register_script(RELEASE_LOCK)
    same(release(keys=['lock'], args=['other']), 0)
    same(release(keys=['lock'], args=['mine']), 1)
    same(client.script_exists(release.sha), [True])
    same(client.evalsha(release.sha, 1, 'lock', 'mine'), 0)


def pubsub():
    nodes = [ClusterNode(HOST, port) for port in NODES]
    for node in nodes:
        listener = client.pubsub(node=node, ignore_subscribe_messages=True)
        listener.subscribe('news')
        until(lambda: listener.get_message(timeout=1) is None)
        client.publish('news', f'to {node.port}')
        end = time.monotonic() + 10
        # A node that does not lead may still come to what was published before.
        heard = None
        while heard != f'to {node.port}':
            assert time.monotonic() < end, f'{node.port} heard {heard}'
            message = listener.get_message(timeout=1)
            heard = message and message['data']
        listener.close()


def semel(command, *words):
    """A map in RESP3, and names and values in RESP2."""
    found = client.execute_command(f'SEMEL.{command}', 'pay', 'order:1', *words)
    return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2]))


def claims_of_semel():
    first = semel('CLAIM', 'CLAIM-ID', 'a' * 32)
    same(first['outcome'], 'granted')
    same(semel('CLAIM', 'CLAIM-ID', 'a' * 32)['outcome'], 'regranted')
    same(semel('CLAIM')['outcome'], 'in_flight')
    same(semel('COMPLETE', first['epoch'], 'paid')['outcome'], 'ok')
    assert 'paid' in semel('CLAIM').values()


def seeds():
    same(connect(DEAD_PORT, PORT).get('claim'), 'mine')
    began = time.monotonic()
    try:
        connect(DEAD_PORT).get('claim')
        assert False, 'no error'
    except ERRORS:
        assert time.monotonic() - began < 10


class Renewed:
    """As a caller does whose client does not recover: each error makes a new client."""
    client = None

    def call(self, name, *words, **options):
        try:
            if self.client is None:
                self.client = connect(*NODES, socket_timeout=1)
            return getattr(self.client, name)(*words, **options)
        except Exception:
            self.client = None
            raise

    def claim(self, key, value):
        return self.call('set', key, value, nx=True, get=True)

    def read(self, key):
        return self.call('get', key)


for each in (topology, claim, hash_tags, across_slots, pipeline, transaction, reads_of_replicas,
             script, pubsub, claims_of_semel, seeds):
    check(each.__name__.replace('_', ' '), each)
if RELEASE < (4, 4):
    skip('goes on by itself when the leader is killed',
         f'redis-py {redis.__version__} does not: it copies a lock; here callers make new clients')
    renewed = Renewed()
    outages(renewed.claim, renewed.read, Exception, 'renewed:')
else:
    seed = connect(int(need('leader')), socket_timeout=1)
    outages(lambda key, value: seed.set(key, value, nx=True, get=True), seed.get,
            ERRORS, 'kept:')
print('end')
