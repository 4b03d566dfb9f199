#!/usr/bin/env python3
"""Kills a process that works with joined commits, again and again, and looks in the next life
whether each effect is there exactly if its claim is done, once, and whether everything that
somebody was told is still so. The state is kept here, never by the victim."""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from victims import Talking

LIVES_MAX = 25  # of one storage: each life looks at everything


class Killer:
    def __init__(self, options, directory):
        self.victim, self.directory = options.victim, directory
        self.way = "apart" if options.self_test else "joined"
        self.random = random.Random(options.seed)
        self.asked, self.told = set(), set()
        self.found = None  # done, effects: what a life says before it is ready
        self.kills = self.early = self.acknowledged = self.compared = self.wrong = 0

    def report(self, what):
        self.wrong += 1
        if self.wrong <= 5:
            print(f"join: {what}")

    def compare(self, done, effects):
        self.compared += len(done | effects.keys())
        for key in sorted(done ^ effects.keys()):
            self.report(f"{key} is done, without its effect" if key in done
                        else f"{key} has its effect, and is not done")
        for key, epochs in effects.items():
            if len(epochs) > 1:
                self.report(f"{key} has effects of several owners: {' '.join(epochs)}")
        for key in sorted(self.told - done):
            self.report(f"{key} was told to be done")
        for key in sorted((done | effects.keys()) - self.asked):
            self.report(f"{key} was never asked for")
        self.told &= done  # reported once

    def take(self, line):
        word, key = line.split(" ")
        if word == "t":
            self.asked.add(key)
        elif word == "a":
            self.told.add(key)
            self.acknowledged += 1

    def last_look(self):
        """Of a storage that is given up."""
        self.one_life(self.kills, looks_only=True)
        shutil.rmtree(self.directory)
        self.asked, self.told = set(), set()

    def read(self, victim, seconds, stop):
        """Takes lines until stop() or time is up. The first part of a life is what it found,
        which counts if the life got to its end."""
        for line in victim.lines(time.monotonic() + seconds):
            if self.found is None:
                self.take(line)
            elif line == "ready":
                self.compare(*self.found)
                self.found = None
            else:
                word, key, *epoch = line.split(" ")
                if word == "d":
                    self.found[0].add(key)
                else:
                    self.found[1].setdefault(key, []).extend(epoch)
            if stop():
                return

    def one_life(self, number, looks_only=False):
        level = self.random.choice(["logged", "synced"])
        victim = Talking([self.victim, self.directory, self.way, level, number])
        process = victim.process
        self.found = (set(), {})
        if not looks_only and self.random.random() < 0.1:  # while it opens and recovers, perhaps
            try:
                process.wait(self.random.uniform(0, 0.05))
            except subprocess.TimeoutExpired:
                pass
        else:
            self.read(victim, 60, lambda: self.found is None)
            if self.found is not None:
                process.kill()
                sys.exit(f"join: life {number} did not come up, exit code {process.wait()}")
            end = time.monotonic() + self.random.uniform(0.001, 0.08)
            self.read(victim, end - time.monotonic(), lambda: time.monotonic() >= end)
        process.send_signal(signal.SIGKILL)
        self.kills += not looks_only
        self.read(victim, 60, lambda: False)
        code = process.wait()
        if code != -signal.SIGKILL:
            sys.exit(f"join: life {number} ended by itself, exit code {code}")
        self.early += self.found is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("victim")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--self-test", action="store_true",
                        help="write effect and claim one after the other: this must be noticed")
    options = parser.parse_args()
    print(f"join: seed {options.seed}")
    directory = tempfile.mkdtemp(prefix="semel_join_")
    killer = Killer(options, os.path.join(directory, "storage"))
    try:
        while killer.kills < options.kills:
            killer.one_life(killer.kills)
            if killer.kills % LIVES_MAX == 0 or killer.kills == options.kills:
                killer.last_look()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"join: {killer.kills} kills, {killer.early} before anything was done, "
          f"{killer.acknowledged} told, {killer.compared} compared, {killer.wrong} wrong")
    if killer.acknowledged < options.kills:
        sys.exit("join: the victim did next to nothing")
    if options.self_test:
        return 0 if killer.wrong else 1
    return 1 if killer.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
