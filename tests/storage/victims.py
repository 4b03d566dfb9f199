"""Processes that work on a storage until they are killed, and what they were told.

A victim says on its standard output what it is about to do and what was answered, a line each. A
line without its end was cut by the kill: nobody was told.
"""

import collections
import os
import select
import subprocess
import time

PATIENCE = 30
READY_SECONDS = 120


class Ledger:
    """What each key may hold: what was acknowledged last, and what was asked since."""

    def __init__(self):
        self.keys = {}
        self.acknowledged = self.refused = self.unknown = self.erased_when_full = 0
        self.wrong = []

    def take(self, line):
        word, _, rest = line.partition(" ")
        if word == "w":
            self.wrong.append(rest)
            return
        if word not in "taru":
            return
        key, value = rest.split(" ")
        may = self.keys.setdefault(key, ["-"])
        if word == "t":
            may.append(value)
        elif word == "a":
            may[:] = [value]
            self.acknowledged += 1
            self.erased_when_full += value == "-"  # the victim erases only what was refused
        elif word == "r":
            if value in may[1:]:
                may.remove(value)
            self.refused += 1
        else:
            self.unknown += 1

    def missing(self, found):
        lost = []
        for key, may in self.keys.items():
            value = found.get(key, "-")
            if value not in may:
                lost.append(f"{key} holds {value}, may hold {' or '.join(may[:4])}")
            may[:] = [value]
        lost += [f"{key} was never asked for" for key in found.keys() - self.keys.keys()]
        return lost


class Talking:
    """A process and the lines that it prints."""

    def __init__(self, words):
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pending = collections.deque()
        self.rest = b""

    def lines(self, until):
        """Those that come up to the time `until`; what is not taken is there the next time."""
        out = self.process.stdout.fileno()
        while True:
            while self.pending:
                yield self.pending.popleft()
            left = until - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return
            part = os.read(out, 1 << 16)
            if not part:
                return
            *lines, self.rest = (self.rest + part).split(b"\n")
            self.pending.extend(line.decode() for line in lines)


class Victim(Talking):
    """`words`: the program, the directory of its storage, ..; `found`: the records of which it
    tells before it is ready, which it must be within `patience` seconds."""

    def __init__(self, words, ledger, patience=READY_SECONDS):
        super().__init__(words)
        self.ledger, self.directory = ledger, words[1]
        self.found, self.refusal = {}, None
        self.failed = self.closed = False
        self.is_ready = self.wait_ready(patience)

    def wait_ready(self, patience):
        for line in self.lines(time.monotonic() + patience):
            if line == "ready":
                return True
            if line.startswith("s "):
                _, key, value = line.split(" ")
                self.found[key] = value
            elif line.startswith("x "):
                self.refusal = line[2:]
        return False

    def take(self, line):
        if line == "d":
            self.failed = True
        elif line == "closed":
            self.closed = True
        else:
            self.ledger.take(line)

    def work(self, seconds, until=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.lines(min(end, time.monotonic() + 0.05)):
                self.take(line)
                if until():
                    return True
                if time.monotonic() >= end:
                    break
            if self.process.poll() is not None or until():
                break
        return until()

    def finish(self, kill):
        """Ends it, and returns its exit code."""
        if kill:
            self.process.kill()
        else:
            try:
                self.process.stdin.close()
            except OSError:
                pass
        for line in self.lines(time.monotonic() + 2 * PATIENCE):
            self.take(line)
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "it does not end"
        self.process.stdout.close()
        return code
