"""Clients that hold many leases and values for seconds, and look whether they are there: until
their time is over by the client's clock, counted from before they were asked for."""
import time

from clients import Caller, as_map
from models import ends_from

HELD = 150
SHORTEST_MS, LONGEST_MS = 2_000, 9_000
SPACE = 'hold'


class Holder(Caller):
    def __init__(self, world, number):
        super().__init__(world, number)
        self.count = 0
        self.held = []  # (is it a claim, its name, when it may be gone, when it began, its ms)

    def work(self):
        now = time.monotonic_ns()
        self.held = [each for each in self.held if each[2] > now]
        if len(self.held) < HELD and self.chance.random() < 0.5:
            self.begin()
        elif self.held:
            self.look(*self.chance.choice(self.held))
        else:
            time.sleep(0.001)

    def begin(self):
        self.count += 1
        mine = f'{self.number}.{self.count}'
        ms = self.chance.randint(SHORTEST_MS, LONGEST_MS)
        is_claim = self.chance.random() < 0.5
        began = time.monotonic_ns()
        if is_claim:
            is_known, reply = self.attempt('SEMEL.CLAIM', SPACE, mine, 'LEASE', ms, 'OWNER', mine)
            is_ours = is_known == 'yes' and as_map(reply)['outcome'] == b'granted'
        else:
            is_known, reply = self.attempt('SET', f'hold-{mine}', mine, 'NX', 'GET', 'PX', ms)
            is_ours = is_known == 'yes' and reply is None
        if is_ours:
            self.held.append((is_claim, mine, ends_from(began, ms), began, ms))

    def look(self, is_claim, mine, end, began, ms):
        if is_claim:
            is_known, reply = self.attempt('SEMEL.CLAIM', SPACE, mine, 'LEASE', ms, 'OWNER', 'else')
            is_there = is_known != 'yes' or as_map(reply)['outcome'] == b'in_flight'
        else:
            is_known, reply = self.attempt('GET', f'hold-{mine}')
            is_there = is_known != 'yes' or reply == mine.encode()
        now = time.monotonic_ns()
        if is_there or now >= end:
            return
        what = 'a claim is granted to another owner' if is_claim else 'a value is gone'
        self.world.find(f'{what} within {(now - began) // 10**6} ms of {ms}')
