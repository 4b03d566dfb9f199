#!/usr/bin/env python3
"""Kills a process that works on a storage, again and again, and compares what the next life finds
with what the last one was told. The state is kept here, never by the victim.

A key may hold what was acknowledged last, or what was asked after that and not answered. With
--shape joined a key is a claim that is completed together with an effect: it is "done" with both,
once, or there is nothing of it."""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile

from victims import READY_SECONDS, Ledger, Victim

LIVES_MAX = 25  # of one storage with claims: each life has new keys, and looks at all
WHILE_OPENING = 0.1  # of the lives are killed while they open and recover, perhaps


class Killer:
    def __init__(self, options, directory):
        self.victim, self.directory, self.shape = options.victim, directory, options.shape
        self.levels = ["logged", "synced"]
        if options.self_test and self.shape == "joined":
            self.shape = "apart"
        elif options.self_test:
            self.levels = ["early"]
        self.lives_max = LIVES_MAX if options.shape == "joined" else options.kills
        self.random = random.Random(options.seed)
        self.ledger = Ledger()
        self.early = self.compared = self.wrong = 0

    def compare(self, found):
        self.compared += len(found)
        for text in self.ledger.missing(found) + self.ledger.wrong:
            self.wrong += 1
            if self.wrong <= 5:
                print(f"kill: {text}")
        self.ledger.wrong.clear()

    def start(self, number, patience):
        level = self.levels[number % len(self.levels)]
        victim = Victim([self.victim, self.directory, level, number, self.shape], self.ledger,
                        patience)
        if victim.is_ready:
            self.compare(victim.found)
        return victim

    def end(self, victim, number):
        code = victim.finish(kill=True)
        if not victim.is_ready and code != -signal.SIGKILL:
            sys.exit(f"kill: life {number} did not come up, exit code {code}: {victim.refusal}")
        if code != -signal.SIGKILL:
            sys.exit(f"kill: life {number} ended by itself, exit code {code}")

    def one_life(self, number):
        is_short = self.random.random() < WHILE_OPENING
        victim = self.start(number, self.random.uniform(0, 0.05) if is_short else READY_SECONDS)
        if not victim.is_ready and not is_short:
            victim.process.kill()
            sys.exit(f"kill: life {number} did not come up: {victim.refusal}")
        self.early += not victim.is_ready
        if victim.is_ready:
            victim.work(self.random.uniform(0.001, 0.08))
        self.end(victim, number)

    def last_look(self, number):
        """Of a storage that is given up."""
        victim = self.start(number, READY_SECONDS)
        self.end(victim, number)
        if not victim.is_ready:
            sys.exit(f"kill: the last life did not come up: {victim.refusal}")
        shutil.rmtree(self.directory)
        self.ledger.keys.clear()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("victim")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--shape", choices=("few", "written", "joined"), default="few",
                        help="as storage_victim.cpp lists them")
    parser.add_argument("--self-test", action="store_true",
                        help="acknowledge before it is written, or write effect and claim one "
                             "after the other: this must be noticed")
    options = parser.parse_args()
    print(f"kill: {options.shape}, seed {options.seed}")
    directory = tempfile.mkdtemp(prefix="semel_kill_")
    killer = Killer(options, os.path.join(directory, "storage"))
    try:
        for number in range(options.kills):
            killer.one_life(number)
            if (number + 1) % killer.lives_max == 0 or number + 1 == options.kills:
                killer.last_look(number + 1)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"kill: {options.kills} kills, {killer.early} before it was open, "
          f"{killer.ledger.acknowledged} acknowledged, {killer.compared} compared, "
          f"{killer.wrong} wrong")
    if killer.ledger.acknowledged < options.kills:
        sys.exit("kill: the victim did next to nothing")
    if options.self_test:
        return 0 if killer.wrong else 1
    return 1 if killer.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
