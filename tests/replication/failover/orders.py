#!/usr/bin/env python3
"""Plays examples/replicated_service.cpp: orders.py PROGRAM [--orders N] [--seed N]

Three of it are given the same orders. Each is killed once (SIGKILL) at a random order while the
others go on, then started again and given all orders from the first. At the end each service must
have answered each order with the same result, and no order may have run twice. As one order at a
time is under way in a service, a kill may take the line of one that ran: so at most one order a
kill has no line that it ran.
"""

import argparse
import collections
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'support'))
from servers import free_ports  # noqa: E402

SECONDS = 240  # for all of it
MEANWHILE = 20  # orders that the other two must answer before a killed one is started again


class Service:
    """One of the three, in all its lives."""

    def __init__(self, command, orders, log):
        self.command, self.orders, self.log = command, orders, log
        self.lives = []  # of each its lines, (order, ran or known, result)
        self.process = self.reader = None

    def found(self):
        subprocess.run([*self.command, '--found'], check=True, timeout=60)

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=self.log)
        self.process.stdin.write(''.join(f'{order}\n' for order in self.orders))
        self.process.stdin.close()
        self.lives.append([])
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout, self.lives[-1]))
        self.reader.start()

    @staticmethod
    def read(stdout, lines):
        with stdout:
            for line in stdout:
                if line.endswith('\n'):  # a kill may leave half of one
                    lines.append(tuple(line[:-1].split(' ', 2)))

    def answered(self):
        return len(self.lives[-1])

    def end(self, number):
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.reader.join()
        self.process = None
        return code


def wait_until(holds, until, what):
    while not holds():
        if time.monotonic() > until:
            sys.exit(f'orders: not within {SECONDS} s: {what}')
        time.sleep(0.005)


def play(services, orders, chance):
    """Kills each once. Ends when all have answered everything."""
    until = time.monotonic() + SECONDS
    for service in services:
        service.found()
    for service in services:
        service.start()
    victims = chance.sample(services, len(services))
    for number, victim in enumerate(victims):
        at = len(orders) * number // len(victims) + chance.randrange(1, len(orders) // 6)
        # The furthest one decides: those that come back begin with the first order again.
        wait_until(lambda: max(each.answered() for each in services) >= at, until, f'order {at}')
        victim.end(signal.SIGKILL)
        others = [each for each in services if each is not victim]
        goals = [min(each.answered() + MEANWHILE, len(orders)) for each in others]
        wait_until(lambda: all(each.answered() >= goal for each, goal in zip(others, goals)), until,
                   'two of three go on')
        victim.start()
    wait_until(lambda: all(each.answered() == len(orders) for each in services), until,
               f'all orders, answered: {[each.answered() for each in services]}')
    return [each.end(signal.SIGTERM) for each in services]


def findings(services, orders, codes):
    found = [f'a service ended with {code}' for code in codes if code != 0]
    results = collections.defaultdict(set)
    ran = collections.Counter()
    for service in services:
        if [order for order, _, _ in service.lives[-1]] != orders:
            found.append('a service did not answer each order once')
        for order, how, result in (line for life in service.lives for line in life):
            results[order].add(result)
            ran[order] += how == 'ran'
    found += [f'order {order} has {sorted(results[order])}' for order in orders
              if len(results[order]) != 1]
    found += [f'order {order} ran {ran[order]} times' for order in orders if ran[order] > 1]
    unseen = sum(ran[order] == 0 for order in orders)
    if unseen > len(services):
        found.append(f'{unseen} orders ran nowhere')
    return found, unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('program', type=Path)
    parser.add_argument('--orders', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    chosen = parser.parse_args()
    orders = [str(number) for number in range(1, chosen.orders + 1)]
    peers = ','.join(f'127.0.0.1:{port}' for port in free_ports(3))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='semel_orders_') as place:
        log = Path(place) / 'log'
        with log.open('w', encoding='utf-8') as out:
            services = [Service([str(chosen.program), '--id', str(number), '--peers', peers,
                                 '--dir', f'{place}/{number}'], orders, out)
                        for number in (1, 2, 3)]
            try:
                codes = play(services, orders, random.Random(chosen.seed))
            finally:
                for service in services:
                    service.end(signal.SIGKILL)
        found, unseen = findings(services, orders, codes)
        if found:
            print(log.read_text(encoding='utf-8')[-4000:], file=sys.stderr)
    for each in found[:20]:
        print(f'orders: {each}')
    by = collections.Counter(line[2].split()[1] for line in services[0].lives[-1])
    print(f'orders: seed {chosen.seed}, {len(orders)} orders, run by '
          f'{" ".join(f"{who}: {count}" for who, count in sorted(by.items()))}; 3 kills, {unseen} '
          f'lines lost by them, {time.monotonic() - started:.1f} s, {len(found)} findings')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
