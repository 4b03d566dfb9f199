#!/usr/bin/env python3
"""Scripts beside redis-server: tests/scripts/run.py [--against redis] [--long] [--seed N] [AREA]..

Runs every case of corpus/ and random scripts on a redis-server and on our node: replies must be the
same bytes, and then all keys, their values and ttls. With --profile known the scripts that the node
knows, on random states: there times may differ by what passes between the two. With --against redis
both are redis-servers: what differs there is wrong with a case.
"""

import argparse
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import cases  # noqa: E402
import generator  # noqa: E402
import known  # noqa: E402
from cases import target  # noqa: E402
from pair import Difference, Pair, Silent, without_causes  # noqa: E402
from servers import CannotStart, NoPeer  # noqa: E402  (cases has found the folder)

ROOT = Path(__file__).resolve().parents[2]
# What makes the cases that are generated, how many, and with --long.
PROFILES = {'random': (generator.case, 2000, 200_000),
            'known': (known.case, 20 * len(known.TEXTS), 400 * len(known.TEXTS))}
# A script that ends there and not here shall not take a minute to say so. Random ones name commands
# that neither has; where such a text stops is compared, not that it is refused.
NODE_SETTINGS = ('--script-time-max', '5000', '--script-unknown-commands', 'run',
                 '--admin-port', '0')
FLUSH_EVERY = 500  # scripts that redis-server would otherwise keep


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.pair = None
        self.targets = []
        self.lacks = {}
        self.counts = {'scripts': 0, 'runs': 0, 'replies': 0, 'different': 0, 'deviations': 0,
                       'skipped': 0}

    def open(self):
        self.close()
        both = [target.open_target('redis'),
                target.open_target(self.arguments.against, self.arguments.program,
                                   NODE_SETTINGS)]
        for each in both:
            self.targets.append(each.start())
        self.pair = Pair(both)
        return self

    def close(self):
        if self.pair:
            self.counts['deviations'] += self.pair.deviations
            self.pair.close()
            self.pair = None
        while self.targets:
            self.targets.pop().end()

    def knows(self, command):
        if command not in self.lacks:
            self.lacks[command] = not self.targets[1].knows(command)
        return not self.lacks[command]

    def show(self, case, errors):
        """`errors`: [(way, what was different)]; the first one stands for all."""
        self.counts['different'] += 1
        if self.counts['different'] <= self.arguments.show:
            ways = ', '.join(f'{name} in RESP{dialect}' for (name, dialect), _ in errors)
            print(f'\n== {case.name}, {ways}\n{case.text()}')
            for step in case.steps:
                if isinstance(step, cases.Script) and (step.keys or step.args):
                    print(f'   keys {step.keys} args {step.args}')
            print(f'   {errors[0][1]}', flush=True)

    def run_one(self, case, way):
        """Whether both said the same."""
        self.counts['runs'] += 1
        try:
            self.counts['replies'] += self.pair.run(case, way)
            return None
        except Difference as error:
            return str(error)
        except Silent as error:
            text = f'{error}'
            alive = [each.is_alive() for each in self.targets]
            if not all(alive):
                text += f'; alive: {alive}: {self.targets[alive.index(False)].log_tail()[-200:]}'
            self.open()
            return text

    def corpus(self, areas):
        known = sorted(cases.CORPUS.glob('*.txt'))
        unknown = set(areas) - {path.stem for path in known}
        if unknown:
            raise SystemExit(f'scripts: no area {", ".join(sorted(unknown))}')
        for path in known:
            if areas and path.stem not in areas:
                continue
            for case in cases.read(path):
                self.run_case(case)

    def run_case(self, case):
        self.counts['scripts'] += 1
        missing = [name for name in case.needs if not self.knows(name)]
        if missing:
            self.counts['skipped'] += 1
            return
        if case.fresh:
            self.open()
        errors = []
        for way in case.ways or cases.WAYS:
            error = self.run_one(case, way)
            if error:
                errors.append((way, error))
        if case.differs and self.arguments.against == 'semel':
            self.counts['deviations'] += 1
            if not errors:
                self.show(case, [(way, 'listed as a deviation, and there is none')])
        elif errors:
            self.show(case, errors)

    def generated(self, make, count, seed):
        for number in range(count):
            source = random.Random(f'{seed}:{number}')
            case = make(source, f'generated {seed}:{number}', number)
            self.counts['scripts'] += 1
            if number % FLUSH_EVERY == 0:
                self.pair.ask(2, [['SCRIPT', 'FLUSH']])
            way = source.choice(case.ways or cases.WAYS)
            error = self.run_one(case, way)
            if error and self.is_listed_cause(case, way):
                self.counts['deviations'] += 1
            elif error:
                self.show(case, [(way, error)])

    def native(self):
        """How many scripts the node has run without Lua."""
        _, page = self.targets[1].page('/metrics')
        return sum(int(float(line.rsplit(' ', 1)[1])) for line in page.splitlines()
                   if line.startswith('semel_scripts_native_total'))

    def is_listed_cause(self, case, way):
        """Whether both say the same without what is listed in CAUSES (pair.py)."""
        other = without_causes(case)
        return other is not None and not self.run_one(other, way)


def main():
    parser = argparse.ArgumentParser(description='Scripts beside redis-server.')
    parser.add_argument('--against', choices=('semel', 'redis'), default='semel')
    parser.add_argument('--program', default=ROOT / 'build/release/tools/semel/semel')
    parser.add_argument('--long', action='store_true', help='100 times as many, or 20')
    parser.add_argument('--profile', choices=PROFILES, default='random',
                        help='of what is generated; known: without corpus/')
    parser.add_argument('--generated', type=int, help='how many cases')
    parser.add_argument('--seed', type=int, help='of what is generated')
    parser.add_argument('--only-generated', action='store_true', help='no case of corpus/')
    parser.add_argument('--number', type=int, help='only this one of those generated')
    parser.add_argument('--show', type=int, default=60, help='how many differences are shown')
    parser.add_argument('areas', nargs='*', metavar='AREA', help='only these files of corpus/')
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 32)
    make, usual, most = PROFILES[arguments.profile]
    count = most if arguments.long else usual
    if arguments.generated is not None:
        count = arguments.generated
    print(f'scripts: seed {seed}', flush=True)
    run = Run(arguments)
    started = time.monotonic()
    try:
        run.open()
        if arguments.number is not None:
            case = make(random.Random(f'{seed}:{arguments.number}'), 'one', arguments.number)
            print(case.text())
            for way in case.ways or cases.WAYS:
                print(way, run.run_one(case, way) or 'the same')
            return 0
        if not arguments.only_generated and arguments.profile == 'random':
            run.corpus(arguments.areas)
        if not arguments.areas:
            run.generated(make, count, seed)
        native = run.native() if arguments.against == 'semel' else 0
    finally:
        run.close()
    found = run.counts
    print(f'scripts: {found["scripts"]} scripts, {found["runs"]} runs, {found["replies"]} replies, '
          f'{found["different"]} different, {found["deviations"]} listed deviations, '
          f'{found["skipped"]} skipped, {native} without Lua, seed {seed}, '
          f'{time.monotonic() - started:.0f} s')
    # The comparison says nothing of what the node knows unless it knows nearly all of it.
    is_known = arguments.profile == 'known' and arguments.against == 'semel'
    if found['different'] or not found['replies'] or (is_known and native < 4 * found['runs']):
        return 1
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except NoPeer as reason:
        print(f'scripts: skipped, {reason}')
        sys.exit(77)
    except (CannotStart, cases.BadCase) as problem:
        sys.exit(f'scripts: {problem}')
