#!/usr/bin/env python3
"""Kills a process that works on a storage, again and again, and compares what the next life finds
with what the last one was told. The state is kept here, never by the victim.

A key may hold what was acknowledged last, or what was asked after that and not answered."""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile

from victims import Ledger, Victim


class Killer:
    def __init__(self, victim, directory, seed, levels, more):
        self.more = more
        self.victim, self.directory, self.levels = victim, directory, levels
        self.random = random.Random(seed)
        self.ledger = Ledger()
        self.wrong = 0

    def compare(self, found):
        for text in self.ledger.missing(found):
            self.wrong += 1
            if self.wrong <= 5:
                print(f"kill: {text}")

    def one_life(self, number):
        level = self.levels[number % len(self.levels)]
        victim = Victim([self.victim, self.directory, level, number, *self.more], self.ledger)
        if not victim.is_ready:
            sys.exit(f"kill: life {number} did not come up, exit code {victim.finish(kill=True)}")
        self.compare(victim.found)
        victim.work(self.random.uniform(0.001, 0.08))
        code = victim.finish(kill=True)
        if code != -signal.SIGKILL:
            sys.exit(f"kill: life {number} ended by itself, exit code {code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("victim")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--self-test", action="store_true",
                        help="acknowledge before it is written: this must be noticed")
    parser.add_argument("--written", action="store_true", help="the log's files are not mapped")
    options = parser.parse_args()
    print(f"kill: seed {options.seed}")
    levels = ["early"] if options.self_test else ["logged", "synced"]
    directory = tempfile.mkdtemp(prefix="semel_kill_")
    try:
        killer = Killer(options.victim, os.path.join(directory, "storage"), options.seed, levels,
                        ["written"] if options.written else [])
        for number in range(options.kills + 1):  # the last life is only looked at
            killer.one_life(number)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"kill: {options.kills} kills, {killer.ledger.acknowledged} acknowledged, "
          f"{killer.wrong} wrong")
    if killer.ledger.acknowledged < options.kills:
        sys.exit("kill: the victim did next to nothing")
    if options.self_test:
        return 0 if killer.wrong else 1
    return 1 if killer.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
