#!/usr/bin/env python3
"""Proof: nodes of a group are killed, stopped, cut off, and have disks that are full, slow or fail
and clocks that step, while clients use the group. Nothing that was acknowledged is lost, nothing
has two owners, what clients have seen can be explained (two checkers), and the nodes are equal when
it is over.

failover.py --program semel [--seed N] [--faults N] [--only KIND] [--keep DIR] [--long]
Last line: the figure. Exit 1 if anything is wrong.
"""
import argparse
import collections
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults  # noqa: E402
import histories  # noqa: E402
import networks  # noqa: E402
from faulty_group import FaultyGroup  # noqa: E402
from group import ELECTION_MS, PATIENCE, NoLeader  # noqa: E402
from world import World  # noqa: E402

ROUND = 60  # faults, after which the nodes are compared and the histories checked


def plan(given, chance, skipped):
    """The kinds of faults, in order."""
    if given.only:
        kinds = [kind for kind in ALL if kind.__name__ in given.only.split(',')]
        if not kinds:
            raise SystemExit(f'failover: no fault {given.only}, there are '
                             f'{", ".join(kind.__name__ for kind in ALL)}')
        wanted = kinds * (given.faults // len(kinds) + 1)
        del wanted[given.faults:]
    elif given.long:
        wanted = [faults.KILLS[i % 4] for i in range(1000)]
        wanted += [faults.CUTS[i % 5] for i in range(500)]
        wanted += [OTHERS[i % len(OTHERS)] for i in range(350)]
    else:
        # As many of each as there is room for, and of those that are left a choice.
        whole, rest = divmod(given.faults, len(ALL))
        wanted = [*ALL * whole, *chance.sample(ALL, rest)]
    left = [kind for kind in wanted if faults.NEEDS.get(kind) not in skipped]
    chance.shuffle(left)
    return left, len(wanted) - len(left)


ALL = (*faults.KILLS, *faults.CUTS, *faults.OTHERS)
OTHERS = faults.OTHERS
# Ten election timeouts, by each node's own clock.
LATE_REPEATS_NS = 10 * ELECTION_MS * 10**6


def gap_after(times, began):
    """The longest time without an acknowledgement that begins in the second after a fault."""
    late = [at for at in times if began - 0.1 <= at <= began + 10]
    gaps = [second - first for first, second in zip(late, late[1:]) if first <= began + 1]
    return max(gaps, default=0)


class Run:
    def __init__(self, given):
        self.given = given
        self.chance = random.Random(given.seed)
        self.place = Path(tempfile.mkdtemp(prefix='semel_histories_'))
        self.porcupine = histories.Porcupine(self.place)
        self.counts = collections.Counter()
        self.checked = 0
        self.refused = collections.Counter()  # what was changed so that it must be, by how
        self.gaps = []

    def round(self, world, kinds):
        clients = world.begin()
        begins = []
        try:
            for kind in kinds:
                situation = faults.Situation(world, self.chance, self.given.long)
                print(f'failover: {time.monotonic() - self.began:.1f} s {kind.__name__}, node '
                      f'{situation.leader.number + 1} leads', flush=True)
                if kind is faults.kill_leader:
                    begins.append(time.monotonic())
                kind(situation)
                self.counts[kind.__name__] += 1
                time.sleep(self.chance.uniform(0.2, 0.7))
                if world.found:
                    break
            world.end(clients)
            world.judge()
        except NoLeader:
            world.find(f'no leader answers within {PATIENCE} s')
            world.is_over = True
        self.gaps += [gap_after(world.times, began) for began in begins]
        self.check(world)

    def check(self, world):
        """What clients have seen, by both checkers; and what they have not."""
        recorded = [histories.without_late_repeats(history.whole(), LATE_REPEATS_NS)
                    for history in world.keys.all if history.calls]
        self.checked += len(recorded)
        for what in histories.refused_here(recorded).values():
            world.find(what)
        changed = histories.mutated(recorded, self.chance)
        named = {history['key'] for history in changed}
        refused = [set(histories.refused_here(changed))]
        if self.porcupine.missing is None:
            for key in sorted(self.porcupine.refused(recorded)):
                world.find(f'porcupine: no order explains {key}')
            refused.append(self.porcupine.refused(changed))
        for number, keys in enumerate(refused):
            for key in sorted(named - keys)[:3]:
                world.find(f'checker {number + 1} accepts {key}, which was changed')
        self.refused.update(key.partition('/')[0] for key in named)
        if world.found and self.given.keep:
            keep = Path(self.given.keep)
            keep.mkdir(parents=True, exist_ok=True)
            histories.write(recorded, keep / f'histories-{self.given.seed}.jsonl')
            histories.write(changed, keep / f'changed-{self.given.seed}.jsonl')

    def run(self):
        given = self.given
        print(f'failover: seed {given.seed}', flush=True)
        self.began = time.monotonic()
        group = FaultyGroup(given.program, 3, self.chance)
        world = World(group, given.seed)
        try:
            kinds, left_out = plan(given, self.chance, group.skipped)
            for first in range(0, len(kinds), ROUND):
                if not world.found:
                    self.round(world, kinds[first:first + ROUND])
            if world.found:
                print(group.said())
            if world.found and given.keep:
                shutil.copytree(group.place, Path(given.keep) / f'nodes-{given.seed}',
                                dirs_exist_ok=True)
        finally:
            group.end()
            shutil.rmtree(self.place, ignore_errors=True)
        return self.report(world, left_out)

    def report(self, world, left_out):
        for mutate in histories.MUTATIONS:
            if not self.refused[mutate.__name__]:
                world.find(f'no history that {mutate.__name__} could change')
        for what, why in world.group.skipped.items():
            print(f'failover: without {what}: {why}')
        if self.porcupine.missing:
            print(f'failover: one checker alone: {self.porcupine.missing}')
        for what in world.found[:10]:
            print(f'failover: {what}')
        gaps = sorted(self.gaps) or [0]
        print('failover: ' + ', '.join(f'{count} {kind}' for kind, count in
                                       sorted(self.counts.items())) +
              f'; without an answer after a leader was killed: median '
              f'{1000 * gaps[len(gaps) // 2]:.0f} ms, longest {1000 * gaps[-1]:.0f} ms')
        missing = left_out + (self.porcupine.missing is not None)
        print(f'failover: {sum(self.counts.values())} faults, {world.answers} acknowledged, '
              f'{world.unknown} unknown, {world.claimed} keys with one owner, {self.checked} '
              f'histories, {sum(self.refused.values())} changed ones refused, {missing} skipped, '
              f'{len(world.found)} findings')
        return 1 if world.found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--program', required=True)
    parser.add_argument('--seed', type=int, default=random.randrange(10**6))
    parser.add_argument('--faults', type=int, default=2 * len(ALL))
    parser.add_argument('--only', help='kinds of faults, separated by commas')
    parser.add_argument('--keep', help='where histories and nodes go if anything is wrong')
    parser.add_argument('--long', action='store_true')
    given = parser.parse_args()
    histories.fetch_porcupine()
    networks.isolate()
    return Run(given).run()


if __name__ == '__main__':
    sys.exit(main())
