"""What changes of a group cost its clients: leaders that end or hand over, new nodes, restarts."""

import contextlib
import math
import random
import statistics
import time

from followers import Followers
from group_bench import GroupBench
from groups import Failed, ask, until

CLIENTS = 8
# Nodes that notice soon that the leader has ended, as those of one room may.
SOON = ['--cluster-election-timeout', 150, '--cluster-heartbeat', 30]


class Changes(GroupBench):
    @staticmethod
    def check(group, acknowledged, unanswered):
        """Nothing acknowledged is lost, and all nodes are equal."""
        size = group.count()
        if not acknowledged <= size <= acknowledged + unanswered:
            raise SystemExit(f'{acknowledged} claims acknowledged, {size} keys are left')

    def check_followers(self, group, followers):
        found = followers.finish()
        self.check(group, found['operations'], CLIENTS)
        print(f'  {found}', flush=True)

    def kills(self, count):
        chance = random.Random(self.options.seed)
        longest = []
        with self.semel(SOON) as group, Followers(self.follow, group, gap_ms=50) as followers:
            for _ in range(count):
                time.sleep(chance.uniform(0.3, 0.6))  # anywhere between two heartbeats
                victim = group.leader()
                followers.forget()
                longest.append(self.gap_after_kill(group, victim, followers))
                # Its start must not disturb what was measured.
                group.start(victim)
                group.catch_up()
            self.check_followers(group, followers)
        longest.sort()
        print(f'  gaps: {", ".join(f"{gap:.0f}" for gap in longest)} ms', flush=True)
        title = f'gap, leader killed {count} times'
        self.row(f'{title}, median', [statistics.median(longest)], [], '', 'ms', '<= 350 ms')
        self.row(f'{title}, p99', [longest[math.ceil(0.99 * count) - 1]], [], '', 'ms',
                 '<= 600 ms')
        self.row(f'{title}, longest', [longest[-1]], [], '', 'ms')

    @staticmethod
    def gap_after_kill(group, victim, followers):
        """Each client must be without an answer for a while, and get one again; in ms."""
        began = time.monotonic()
        group.kill(victim)
        gaps = {}
        while len(gaps) < CLIENTS:
            found = followers.next_gap(20)
            if found is None:
                raise SystemExit(f'no answers after a kill: {gaps}\n{group.said()}')
            client, begin, end = found
            if end > began:
                gaps[client] = max(gaps.get(client, 0), (end - begin) * 1000)
        return max(gaps.values())

    def transfers(self, count):
        longest, refused = [], 0
        shortest = 5
        with self.semel(SOON) as group, Followers(self.follow, group, gap_ms=shortest) as followers:
            for _ in range(count):
                leader = group.leader()
                group.catch_up()
                time.sleep(0.3)
                followers.forget()
                began = time.monotonic()
                ask(group.ports[leader], 'SEMEL.GROUP', 'TRANSFER')
                refused += not self.has_moved(group, leader)
                time.sleep(0.5)  # the gaps of all clients have ended
                gap = shortest  # none was longer
                while (found := followers.next_gap(0)) is not None:
                    if found[2] > began:
                        gap = max(gap, (found[2] - found[1]) * 1000)
                longest.append(gap)
            self.check_followers(group, followers)
        print(f'  gaps: {", ".join(f"{gap:.0f}" for gap in sorted(longest))} ms', flush=True)
        title = f'gap, leader hands over {count} times'
        self.row(f'{title}, median', [statistics.median(longest)], [], '', 'ms', '<= 50 ms')
        self.row(f'{title}, longest', [max(longest)], [], '', 'ms', '<= 50 ms')
        self.row('hand-overs answered with OK that did not happen', [refused], [], '', '', '<= 0')

    @staticmethod
    def has_moved(group, leader):
        """Whether another node leads within a second: a hand-over may be given up."""
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if group.find_leader() not in (None, leader):
                return True
            time.sleep(0.01)
        return False

    def joins(self, keys, rate, seconds):
        value_bytes = 1000
        found = [self.join_one(keys, value_bytes, rate, seconds)
                 for _ in range(min(3, self.options.rounds))]
        before, during, times, changes = zip(*found)
        size = f'{keys * value_bytes / 1e9:g} GB'
        self.row(f'leader changes while a node joins, {size}', [max(changes)], [], '', '', '<= 0')
        self.row(f'p99 of {rate:,} claims/s while it joins', during, before, 'before', 'us',
                 '<= 3x')
        self.row('from ADD until it has a vote', times, [], '', 's')

    def join_one(self, keys, value_bytes, rate, seconds):
        """p99 before and while a node joins, in how many seconds, and changes of leaders."""
        load = {'clients': 64, 'rate': rate}
        with self.semel(maxmemory='6gb') as group:
            self.fill(group, value_bytes=value_bytes, pipeline=16, operations=keys)
            time.sleep(seconds / 4)  # what writing them has left behind
            with Followers(self.follow, group, prefix='before', seconds=seconds,
                           **load) as followers:
                before = followers.finish(end=False)
            term = group.status(group.leader())['term']
            with Followers(self.follow, group, prefix='during', **load) as followers:
                duration = self.join(group)
                during = followers.finish()
            changes = group.status(group.leader())['term'] - term
            self.check(group, keys + before['operations'] + during['operations'], 2 * 64)
        return before['p99_us'], during['p99_us'], duration, changes

    def join(self, group):
        number = group.grow()
        began = time.monotonic()
        self.insist(group, 'ADD', number + 1, group.address(number))
        self.insist(group, 'PROMOTE', number + 1)
        return time.monotonic() - began

    @staticmethod
    def insist(group, *words):
        """Whoever leads now: a change of leaders is counted, and does not end the bench."""
        def is_done():
            try:
                return ask(group.leader_port(), 'SEMEL.GROUP', *words) == b'OK'
            except Failed as error:
                if not str(error).startswith(('TRYAGAIN', 'MOVED', 'CLUSTERDOWN')):
                    raise
                return False
        until(is_done, f'{words}\n{group.said()}', 300, 0.05)

    def restarts(self, keys):
        times = []
        with self.semel() as group:
            self.fill(group, pipeline=64, operations=keys)
            for number in range(min(3, self.options.rounds)):
                for node in range(3):
                    group.kill(node)
                began = time.monotonic()
                for node in range(3):
                    group.start(node)
                port = until(lambda: self.first_answer(group, number), 'all started', 300)
                times.append(time.monotonic() - began)
                for key in range(0, keys, max(1, keys // 100)):
                    if ask(port, 'GET', f'key:{key:012}', seconds=10) != b'v':
                        raise SystemExit(f'key {key} is lost')
                if group.count() != keys + number + 1:
                    raise SystemExit(f'{group.count()} keys instead of {keys + number + 1}')
        self.row(f'all nodes killed, {keys:,} keys, until they serve', times, [], '', 's',
                 '<= 20 s')

    @staticmethod
    def first_answer(group, number):
        """The port of a node that has carried out a write."""
        for port in group.ports:
            with contextlib.suppress(OSError, Failed):
                if ask(port, 'SET', f'after:{number}', 'v', seconds=0.2) == b'OK':
                    return port
        return None
