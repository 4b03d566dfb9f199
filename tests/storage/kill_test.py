#!/usr/bin/env python3
"""Kills a process that works on a storage, again and again, and compares what the next life finds
with what the last one was told. The state is kept here, never by the victim.

A key may hold what was acknowledged last, or what was asked after that and not answered."""
import argparse
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Kept:
    """What a key may hold."""

    def __init__(self):
        self.acknowledged = "-"
        self.asked = None  # after that

    def allows(self, value):
        return value == self.acknowledged or value == self.asked


def read_lines(pipe, until):
    """Lines that come before the time `until` (none: before the end)."""
    rest = b""
    descriptor = pipe.fileno()
    while True:
        if until is not None:
            left = until - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                break
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        *lines, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in lines)
    # A line without its end was cut by the kill: nobody was told.


class Killer:
    def __init__(self, victim, directory, seed, levels, more):
        self.more = more
        self.victim, self.directory, self.levels = victim, directory, levels
        self.random = random.Random(seed)
        self.kept = {}
        self.acknowledged = self.lost = self.strange = 0

    def take(self, line):
        word, key, value = line.split(" ")
        kept = self.kept.setdefault(key, Kept())
        if word == "t":
            kept.asked = value
        elif word == "a":
            kept.acknowledged, kept.asked = value, None
            self.acknowledged += 1

    def compare(self, found):
        for key, kept in self.kept.items():
            value = found.get(key, "-")
            if not kept.allows(value):
                self.lost += 1
                if self.lost <= 5:
                    print(f"kill: {key} holds {value}, acknowledged {kept.acknowledged}, "
                          f"asked {kept.asked}")
            kept.acknowledged, kept.asked = value, None
        for key in found.keys() - self.kept.keys():
            self.strange += 1
            print(f"kill: {key} was never asked for")

    def one_life(self, number):
        level = self.levels[number % len(self.levels)]
        process = subprocess.Popen([self.victim, self.directory, level, str(number), *self.more],
                                   stdout=subprocess.PIPE)
        found, ready = {}, False
        lines = read_lines(process.stdout, time.monotonic() + 60)
        for line in lines:
            if line == "ready":
                ready = True
                break
            _, key, value = line.split(" ")
            found[key] = value
        if not ready:
            process.kill()
            sys.exit(f"kill: life {number} did not come up, exit code {process.wait()}")
        self.compare(found)
        # The generator may hold lines it has read already, so it goes on to be used.
        end = time.monotonic() + self.random.uniform(0.001, 0.08)
        for line in lines:
            self.take(line)
            if time.monotonic() >= end:
                break
        process.send_signal(signal.SIGKILL)
        for line in lines:
            self.take(line)
        process.wait()


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
    print(f"kill: {options.kills} kills, {killer.acknowledged} acknowledged, {killer.lost} wrong, "
          f"{killer.strange} never asked for")
    if killer.acknowledged < options.kills:
        sys.exit("kill: the victim did next to nothing")
    if options.self_test:
        return 0 if killer.lost else 1
    return 1 if killer.lost or killer.strange else 0


if __name__ == "__main__":
    sys.exit(main())
