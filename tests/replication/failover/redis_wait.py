#!/usr/bin/env python3
"""Comparison: Redis loses claims that were acknowledged with WAIT, in two ways, and a group of
Semel nodes under the same schedule does not.

  two cut off     every node syncs each write (appendfsync always). One replica is away; a claim is
                  acknowledged by WAIT 1 = 1. Then the two nodes that have it are away, and the
                  third one is back and is promoted.
  restart empty   no files. All replicas have acknowledged the claim (WAIT 2 = 2). Then the primary
                  is killed, and starts again without anything; its replicas copy that.

It fails if Redis does not lose the claim, since the comparison is not true any more then, and if
Semel loses it. redis_wait.py --program semel. 77: there is no redis-server.
"""
import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from group import Group  # noqa: E402
from resp import Failed  # noqa: E402
from servers import NoPeer, Redis, free_ports, redis_program, until  # noqa: E402

SECONDS = 15
CLAIM = ('SET', 'job:1', 'first', 'NX')
AGAIN = ('SET', 'job:1', 'second', 'NX')


class Copy(Redis):
    """A redis-server that may be the replica of another one."""

    reply_seconds = SECONDS

    def all(self, *requests):
        """The replies on one connection: WAIT is about what the same client has written."""
        with self.client() as client:
            return [client.ask(*words) for words in requests]

    def follow(self, other):
        self.ask('REPLICAOF', '127.0.0.1', other.port)
        until(self.follows, 'a replica is in step', SECONDS)

    def follows(self):
        return b'master_link_status:up' in self.ask('INFO', 'replication')


class Servers:
    def __init__(self, *options):
        self.all = [Copy('--repl-diskless-sync-delay', '0', *options, port=port)
                    for port in free_ports(3)]

    def __enter__(self):
        for server in self.all:
            server.start()
        for replica in self.all[1:]:
            replica.follow(self.all[0])
        return self.all

    def __exit__(self, *_):
        for server in self.all:
            server.end()


def redis_two_cut_off():
    """Whether the claim is granted again."""
    with Servers('--appendonly', 'yes', '--appendfsync', 'always') as (primary, second, third):
        third.kill()
        granted, copies = primary.all(CLAIM, ('WAIT', 1, 1000 * SECONDS))
        assert (granted, copies) == (b'OK', 1), (granted, copies)
        for cut in (primary, second):
            cut.pause()
        third.start()
        third.ask('REPLICAOF', 'NO', 'ONE')
        return third.ask(*AGAIN) == b'OK'


def redis_restart_empty():
    with Servers('--appendonly', 'no') as (primary, *replicas):
        granted, copies = primary.all(CLAIM, ('WAIT', 2, 1000 * SECONDS))
        assert (granted, copies) == (b'OK', 2), (granted, copies)
        assert all(replica.ask('GET', 'job:1') == b'first' for replica in replicas)
        primary.kill()
        primary.start()
        for replica in replicas:
            until(lambda replica=replica: replica.follows() and replica.ask('DBSIZE') == 0,
                  'a replica copies what its primary has', SECONDS)
        return primary.ask(*AGAIN) == b'OK'


# --- Semel ----------------------------------------------------------------------------------------

def refuses(node):
    """What it answers to the second claim while it is alone; None: nothing in 2 s."""
    try:
        return node.ask(*AGAIN)
    except Failed as error:
        assert str(error).startswith('CLUSTERDOWN'), error
    except OSError:
        pass
    return None


def is_kept(group):
    """The second claim is not granted, and the first one is there."""
    def answered():
        try:
            leader = group.wait_leader()
            return [leader.ask(*AGAIN), leader.ask('GET', 'job:1')]
        except (OSError, Failed):
            return None
    return until(answered, 'the group answers', 4 * SECONDS) == [None, b'first']


def semel_two_cut_off(program):
    """Whether the claim is granted again."""
    group = Group(program, 3)
    try:
        leader = group.wait_leader()
        second, third = [node for node in group.nodes if node is not leader]
        third.kill()
        assert leader.ask(*CLAIM) == b'OK'
        for cut in (leader, second):
            cut.pause()
        third.start()
        end = time.monotonic() + 2  # many times its election timeout
        while time.monotonic() < end:
            if refuses(third) is not None:
                return True
        for cut in (leader, second):
            cut.resume()
        return not is_kept(group)
    finally:
        group.end()


def semel_restart_empty(program):
    group = Group(program, 3)
    try:
        leader = group.wait_leader()
        assert leader.ask(*CLAIM) == b'OK'
        leader.kill()
        shutil.rmtree(leader.directory)
        # As it is started every time; --cluster-init is for the first time alone.
        started = subprocess.run(leader.words(), capture_output=True, timeout=SECONDS, check=False)
        assert started.returncode > 0, started
        assert b'has no group' in started.stdout + started.stderr, started
        return not is_kept(group)
    finally:
        group.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--program', required=True)
    program = parser.parse_args().program
    try:
        redis_program()
    except NoPeer as why:
        print(f'wait_loses: skipped, {why}')
        return 77
    wrong = 0
    for name, of_redis, of_semel in (
            ('two cut off', redis_two_cut_off, semel_two_cut_off),
            ('restart empty', redis_restart_empty, semel_restart_empty)):
        began = time.monotonic()
        redis_loses, semel_loses = of_redis(), of_semel(program)
        wrong += (not redis_loses) + semel_loses
        print(f'wait_loses: {name}: an acknowledged claim is granted again: '
              f'Redis {"yes" if redis_loses else "no"}, Semel {"yes" if semel_loses else "no"}; '
              f'{time.monotonic() - began:.1f} s', flush=True)
    print(f'wait_loses: 2 schedules, {wrong} not as expected')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
