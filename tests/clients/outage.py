"""What the suites in Python have their group do: its leader is killed again and again while one
client claims one key after the other. See group_target.py."""

import os
import sys
import threading
import time

from report import check, until

NODES = [int(port) for port in os.environ['SEMEL_TEST_NODES'].split()]
DEAD_PORT = int(os.environ['SEMEL_TEST_DEAD_PORT'])
KILLS = int(os.environ['SEMEL_TEST_KILLS'])
GOES_ON_SECONDS = 10
CLAIMS = 20  # so many show that a client goes on


def need(*words):
    """What the runner has done, or found."""
    print('need', *words, flush=True)
    said = sys.stdin.readline().split(maxsplit=1)
    assert said[:1] == ['done'], f'{" ".join(words)}: {" ".join(said)}'
    return said[1].strip() if len(said) > 1 else ''


class Writer(threading.Thread):
    """`claim(key, value)` returns what the key had before, or None; what it raises of `retried`
    makes it be asked again with the same words."""

    def __init__(self, claim, retried, prefix):
        super().__init__(daemon=True)
        self.claim = claim
        self.retried = retried
        self.prefix = prefix
        self.is_over = False
        self.times = []  # of acknowledgements, one for each key
        self.tries = 0
        self.wrong = None

    def run(self):
        try:
            while not self.is_over:
                self.insist(len(self.times))
                time.sleep(0.001)
        except Exception as error:  # pylint: disable=broad-except
            self.wrong = error

    def insist(self, number):
        key, value = self.pair(number)
        while True:
            self.tries += 1
            try:
                owner = self.claim(key, value)
            except self.retried:
                assert self.tries < 1_000_000, 'it is refused for ever'
                time.sleep(0.005)
                if self.is_over:
                    return
                continue
            assert owner in (None, value), f'{key} is {owner}, not {value}'
            self.times.append(time.monotonic())
            return

    def pair(self, number):
        return f'{self.prefix}{number}', f'value of {number}'

    def goes_on(self):
        before = len(self.times)

        def is_done():
            if self.wrong:
                raise self.wrong
            return len(self.times) >= before + CLAIMS
        until(is_done, GOES_ON_SECONDS)

    def gap_since(self, begin):
        """The longest time between two acknowledgements, in ms."""
        times = list(self.times)
        gaps = (after - before for before, after in zip(times, times[1:]) if after > begin)
        return round(1000 * max(gaps))


def disturb(writer, name, fault, repair=None):
    began = time.monotonic()
    fault()
    writer.goes_on()
    print(f'figure {name} {writer.gap_since(began)}', flush=True)
    if repair:
        repair()
        writer.goes_on()


def patient(read, retried, key):
    """What the key has, though the group may change its leader meanwhile."""
    end = time.monotonic() + GOES_ON_SECONDS
    while True:
        try:
            return read(key)
        except retried:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)


def outages(claim, read, retried, prefix):
    """The checks. `read(key)` returns the value."""
    writer = Writer(claim, retried, prefix)

    def kills():
        writer.start()
        writer.goes_on()
        for _ in range(KILLS):
            disturb(writer, 'kill', lambda: need('kill-leader'), lambda: need('restart'))

    def nothing_is_lost():
        writer.is_over = True
        writer.join(GOES_ON_SECONDS)
        assert not writer.is_alive(), 'the client does not return'
        acknowledged = len(writer.times)
        lost = [key for key, value in map(writer.pair, range(acknowledged))
                if patient(read, retried, key) != value]
        assert not lost, f'{len(lost)} of {acknowledged} are lost: {lost[:3]}'
        # The last one may have been asked for without an answer.
        assert int(need('count', prefix)) in (acknowledged, acknowledged + 1)
        print(f'figure acknowledged {acknowledged}', flush=True)

    check(f'goes on when the leader is killed, {KILLS} times', kills)
    check('goes on when another node is made the leader',
          lambda: disturb(writer, 'transfer', lambda: need('transfer')))
    check('has lost nothing that was acknowledged, and counts agree', nothing_is_lost)
