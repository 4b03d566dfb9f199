"""redis-cli -c against a group: cluster_cli.py PROGRAM; see group_target.py."""

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from outage import DEAD_PORT, NODES, need, outages  # noqa: E402
from report import HOST, PORT, check  # noqa: E402

RELEASE = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
           'else return 0 end')


class Unreachable(Exception):
    """Nobody, or nobody who leads, has answered."""


def cli(*words, port=PORT, text=None):
    """What it prints, which follows the node that leads."""
    done = subprocess.run([sys.argv[1], '-c', '-h', HOST, '-p', str(port), *map(str, words)],
                          input=text, stdin=None if text else subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=20, check=False)
    said = done.stdout.rstrip('\n')
    if done.stderr.strip() or said.startswith(('CLUSTERDOWN', 'TRYAGAIN', 'Error:')):
        raise Unreachable(done.stderr.strip() + said)
    return said


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


def topology():
    leader = need('leader')
    slots = cli('CLUSTER', 'SLOTS').splitlines()
    same(slots[:2] + slots[3:4], ['0', '16383', leader])
    nodes = [line.split() for line in cli('CLUSTER', 'NODES').splitlines()]
    same({int(each[1].split('@')[0].rsplit(':', 1)[1]) for each in nodes}, set(NODES))
    same(sorted(each[2].replace('myself,', '') for each in nodes), ['master', 'slave', 'slave'])
    shards = cli('CLUSTER', 'SHARDS').split()
    same((shards.count('master'), shards.count('replica'), shards.count('online')), (1, 2, 3))
    assert 'cluster_state:ok' in cli('CLUSTER', 'INFO')
    same(cli('CLUSTER', 'KEYSLOT', 'foo'), '12182')


def claim():
    for port in NODES:
        same(cli('SET', f'claim:{port}', 'mine', 'NX', 'GET', 'PX', 60_000, port=port), '')
        same(cli('SET', f'claim:{port}', 'other', 'NX', 'GET', 'PX', 60_000, port=port), 'mine')


def several_keys():
    same(cli('MSET', '{tag}a', 1, '{tag}b', 2), 'OK')
    same(cli('MGET', '{tag}a', '{tag}b'), '1\n2')
    same(cli('MSET', 'a', 1, 'b', 2, 'c', 3), 'OK')
    same(cli('MGET', 'a', 'b', 'c'), '1\n2\n3')


def transaction():
    """The connection stays where the first key has led it."""
    said = cli(text='SET {t}a 1\nMULTI\nINCR {t}a\nGET {t}a\nEXEC\n').splitlines()
    same(said[-5:], ['OK', 'QUEUED', 'QUEUED', '2', '2'])


def reads_of_replicas():
    cli('SET', 'read', 'here')
    before = int(need('replica-calls', 'get'))
    deadline = time.monotonic() + 10
    while cli(text='READONLY\nGET read\n') != 'OK\nhere':
        assert time.monotonic() < deadline, 'a replica does not come to it'
    assert int(need('replica-calls', 'get')) > before


def script():
    cli('SET', 'lock', 'mine')
    leader = need('leader')
    digest = cli('SCRIPT', 'LOAD', RELEASE, port=leader)
    same(cli('EVALSHA', digest, 1, 'lock', 'other', port=leader), '0')
    same(cli('EVALSHA', digest, 1, 'lock', 'mine', port=leader), '1')


def pubsub():
    for port in NODES:
        with subprocess.Popen([sys.argv[1], '-c', '-h', HOST, '-p', str(port), 'SUBSCRIBE', 'news'],
                              stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE) as listener:
            try:
                same([listener.stdout.readline().strip() for _ in range(3)],
                     ['subscribe', 'news', '1'])
                cli('PUBLISH', 'news', f'to {port}')
                # A node that does not lead may still come to what was published before.
                heard = [listener.stdout.readline().strip() for _ in range(3)]
                while heard != ['message', 'news', f'to {port}']:
                    same(heard[:2], ['message', 'news'])
                    heard = [listener.stdout.readline().strip() for _ in range(3)]
            finally:
                listener.terminate()


def claims_of_semel():
    def semel(command, *words):
        said = cli(f'SEMEL.{command}', 'pay', 'order:1', *words).splitlines()
        return dict(zip(said[::2], said[1::2]))
    first = semel('CLAIM', 'CLAIM-ID', 'a' * 32)
    same(first['outcome'], 'granted')
    same(semel('CLAIM', 'CLAIM-ID', 'a' * 32)['outcome'], 'regranted')
    same(semel('COMPLETE', first['epoch'], 'paid')['outcome'], 'ok')
    assert 'paid' in cli('SEMEL.CLAIM', 'pay', 'order:1')


def dead_seed():
    try:
        cli('GET', 'a', port=DEAD_PORT)
        assert False, 'no error'
    except Unreachable as error:
        assert 'Could not connect' in str(error), error


class Caller:
    """A call is a process, which knows one address: who calls tries the next one."""
    seed = 0

    def call(self, *words):
        try:
            return cli(*words, port=NODES[self.seed % len(NODES)])
        except Unreachable:
            self.seed += 1
            raise

    def claim(self, key, value):
        return self.call('SET', key, value, 'NX', 'GET') or None

    def read(self, key):
        return self.call('GET', key)


for each in (topology, claim, several_keys, transaction, reads_of_replicas, script, pubsub,
             claims_of_semel, dead_seed):
    check(each.__name__.replace('_', ' '), each)
outages(Caller().claim, Caller().read, (Unreachable, subprocess.TimeoutExpired), 'called:')
print('end')
