#!/usr/bin/env python3
"""Three nodes of a group beside etcd and Redis with replicas, and what changes of leaders cost.

Question: what does a claim cost that a majority has on its disk; for how long do clients get no
          answer when the leader ends or hands over; what do a new member and a restart cost?
Method:   everything is on one machine: three nodes and the load share its processors and its disk.
          One group at a time; all sync what they acknowledge. A claim is SET key value NX GET PX
          60000, for Redis with WAIT 1 1000 behind it in the same write, for etcd a transaction
          that puts the key if it is absent (gRPC, the same load with another protocol, without a
          lease). All of a group's clients ask its leader. Gaps are those of eight clients that
          follow the leader (bench/follow_load.cpp): the longest of any of them counts.
Compare:  etcd 3.4; Redis 7 with appendonly, appendfsync always on all three; Semel itself.
Report:   medians of the rounds, a ratio within its round. Checked: each claim is granted once,
          asked again it is refused, and all members end with as many keys as were granted.
"""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster_changes import Changes  # noqa: E402
from group_bench import ENDLESS  # noqa: E402
from groups import Etcd, Failed, Redis, ask, ask_all  # noqa: E402
from sides import pinned, run_bench  # noqa: E402

GRANTED = '$-1\r\n'
TAKEN = '$1\r\nv\r\n'
WAIT = {'batch_end': 'WAIT 1 1000'}
CLAIM = {'work': 'call', 'request': 'SET {key} v NX GET PX 60000', 'keys': ENDLESS}
# Of a group: how it is asked for a claim.
ASKING = {'semel': CLAIM, 'redis': CLAIM | WAIT, 'etcd': {'work': 'etcd'}}


def version_of(program):
    if shutil.which(program) is None:
        return ''
    said = subprocess.run([program, '--version'], capture_output=True, text=True, check=True)
    return re.search(r'\d+\.\d+\.\d+', said.stdout).group(0)


class Bench(Changes):
    def __init__(self, options, directory):
        super().__init__(options, directory)
        self.redis = f'Redis {version_of("redis-server")}, always, WAIT 1'
        self.etcd = f'etcd {version_of("etcd")}'
        missing = self.lacks_for_etcd()
        self.has_etcd = not missing
        if missing:
            print(f'etcd: skipped, {missing}', flush=True)
            self.etcd = f'etcd (skipped: {missing})'

    def lacks_for_etcd(self):
        for program in ('etcd', 'etcdctl'):
            if shutil.which(program) is None:
                return f'{program} is not installed'
        words = [self.options.load, '--work', 'etcd', '--pipeline', '1', '--connections', '0',
                 '--operations', '0']
        can = subprocess.run(words, capture_output=True, check=False).returncode == 0
        return '' if can else 'the load was built without libnghttp2-dev'

    def claims_of(self, make, works, seconds):
        """{(clients, pipeline): figures} of a group that is new."""
        found = {}
        with make() as group:
            port, asking, granted = group.leader_port(), ASKING[group.name], 0
            for number, (clients, pipeline) in enumerate([(64, 1), *works]):
                run = self.drive(port, connections=clients, pipeline=pipeline, reply=GRANTED,
                                 first=number * 10**9, seconds=seconds if number else 0.3,
                                 **asking)
                granted += run['operations']
                again = {name: value for name, value in asking.items() if name != 'batch_end'}
                self.drive(port, connections=4, pipeline=1, reply=TAKEN, first=number * 10**9,
                           **again | {'operations': min(500, run['operations'])})
                if number != 0:  # the first one warms up
                    found[clients, pipeline] = run
            if group.count() != granted:
                raise SystemExit(f'{group.name}: {granted} granted, {group.count()} keys')
        return found

    def claims(self, seconds):
        works = [(1, 1), (64, 1), (256, 1), (64, 16)]
        makes = {'semel': self.semel, 'redis': lambda: Redis(self.directory)}
        if self.has_etcd:
            makes['etcd'] = lambda: Etcd(self.directory)
        found = {name: [] for name in makes}
        for number in range(self.options.rounds):
            turn = number % len(makes)
            for name in (list(makes) * 2)[turn:turn + len(makes)]:
                mine = works[:3] if name == 'etcd' else works
                found[name].append(self.steadily(
                    functools.partial(self.claims_of, makes[name], mine, seconds)))

        def compare(title, work, figure, unit, goals):
            for name, peer in (('etcd', self.etcd), ('redis', self.redis)):
                if name in goals:
                    self.row(title, [run[work][figure] for run in found['semel']],
                             [run[work][figure] for run in found.get(name, [])], peer, unit,
                             goals[name])
        compare('claims one at a time, 64 clients', (64, 1), 'rate', 'claims/s',
                {'etcd': '>= 6x', 'redis': '>= 1.5x'})
        compare('claims one at a time, 256 clients', (256, 1), 'rate', 'claims/s',
                {'etcd': '>= 8x', 'redis': '>= 1.5x'})
        compare('claims of one client, p50', (1, 1), 'p50_us', 'us',
                {'etcd': '', 'redis': '<= 1.2x'})
        compare('claims, 64 connections, 16 at once', (64, 16), 'rate', 'claims/s',
                {'redis': '>= 2x'})
        self.row('leader changes while claims are measured', [self.changes], [], '', '', '<= 0')

    def repeats(self, keys, seconds):
        """GETs, and claims that are done, asked of a follower: one processor for the server, one
        for the load and the two other nodes."""
        asking = {'keys': keys, 'connections': 50, 'pipeline': 16, 'seconds': seconds, 'core': 1}
        works = [{'work': 'get'} | asking,
                 {'work': 'call', 'request': 'SEMEL.CLAIM bench {key} LEASE 60000',
                  'reply_part': 'replay'} | asking]
        found = [self.steadily(lambda: self.repeats_of_follower(keys, works)) +
                 self.repeats_of_one(keys, works) for _ in range(self.options.rounds)]
        for at, title in enumerate(('READONLY GET', 'SEMEL.CLAIM of what is done')):
            ours = [run[at] for run in found if run[at]]
            self.row(f'{title}, on a follower, one core', ours,
                     [run[2 + at] for run in found] if ours else [], 'one node of Semel', 'op/s',
                     '>= 0.8x')

    def prepare(self, port, keys):
        ask(port, 'SEMEL.NAMESPACE', 'DECLARE', 'bench')
        for work in ('fill', 'claim'):
            self.drive(port, work=work, pipeline=16, operations=keys)

    def repeats_of_follower(self, keys, works):
        """Rates; 0 for what it refuses."""
        with self.semel() as group:
            self.prepare(group.leader_port(), keys)
            group.count()
            which = (group.leader() + 1) % 3
            self.part_processors(group, which)
            port = group.ports[which]
            return [self.drive(port, greeting='READONLY', **works[0])['rate'],
                    self.drive(port, greeting='READONLY', **works[1])['rate']
                    if self.answers_repeats(port) else 0]

    def repeats_of_one(self, keys, works):
        server = self.start('semel')
        try:
            self.prepare(server.port, keys)
            return [self.drive(server.port, **work)['rate'] for work in works]
        finally:
            server.end()

    @staticmethod
    def answers_repeats(port):
        try:
            ask_all(port, [['READONLY'], ['SEMEL.CLAIM', 'bench', 'key:000000000000']])
        except Failed as error:
            print(f'  a follower does not answer SEMEL.CLAIM: {error}', flush=True)
            return False
        return True

    @staticmethod
    def part_processors(group, which):
        for number, member in enumerate(group.members):
            for thread in os.listdir(f'/proc/{member.pid}/task'):
                if pinned(0):
                    os.sched_setaffinity(int(thread), {0 if number == which else 1})


def work(bench, runs, scale):
    quick = bench.options.quick
    print('one machine: all nodes, their peers and the load share its processors', flush=True)
    if runs('claims'):
        bench.claims(0.3 if quick else 3)
    if runs('repeats'):
        bench.repeats(100_000 // scale, 0.3 if quick else 3)
    if runs('kills'):
        bench.kills(1 if quick else 100)
    if runs('transfers'):
        bench.transfers(2 if quick else 20)
    if runs('joins'):
        bench.joins(5_000 if quick else 1_000_000, 1000 if quick else 5000, 0.5 if quick else 10)
    if runs('restarts'):
        bench.restarts(5_000 if quick else 10_000_000)


def main():
    # A bench that is asked to end ends what it has started.
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit('asked to end'))
    return run_bench('cluster', __doc__, 'claims, repeats, kills, transfers, joins, restarts',
                     Bench, work)


if __name__ == '__main__':
    sys.exit(main())
