#!/usr/bin/env python3
"""Kills consumers of a real RabbitMQ at random moments and counts what they booked:
tests/broker/run.py CONSUMER [--long | --kills N] [--seed N]

CONSUMER is the program of examples/mq_consumer.cpp. Two of them run at a time, each with a queue
and a storage of its own and two threads. Messages come twice and three times, some fail at first,
some always, some cannot be read. At the end each good message is booked exactly once, and each copy
of a bad one is in the dead-letter queue exactly once. The same kills of consumers without claims
must show doubled bookings, or the run has proved nothing. Ends with 77 where there is no RabbitMQ.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
DEBIANS = '/usr/bin/python3'  # knows Debian's python3-pika, also where another comes first in PATH
try:
    import pika
    import rabbit
except ImportError:
    if os.path.realpath(sys.executable) == os.path.realpath(DEBIANS) or not os.path.exists(DEBIANS):
        print('broker: skipped, python3-pika is not installed')
        sys.exit(77)
    os.execv(DEBIANS, [DEBIANS, *sys.argv])

QUEUES = 2
BACKLOG = 250  # messages in a queue before a kill
READY_SECONDS = 60
DRAIN_SECONDS = 300
DEAD_SECONDS = 10  # for a rejected message to reach the dead-letter queue
THREADS = 2  # of a consumer


class Failure(Exception):
    """The run cannot go on."""


class Consumer:
    """One queue's consumer, in all its lives."""

    def __init__(self, program, folder, queue, port, naive):
        self.directory = str(folder / queue)
        self.program, self.queue = program, queue
        self.command = [program, self.directory, str(port), queue] + ['--naive'] * naive
        self.lines = collections.Counter()  # (verdict, id, redelivered, attempts) -> how often
        self.process = self.reader = None
        self.ready = 0

    def start(self):
        self.ready = 0
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            self.command, stdout=subprocess.PIPE, text=True, preexec_fn=rabbit.end_with_parent)
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,))
        self.reader.start()

    def read(self, stream):
        for line in stream:
            if not line.endswith('\n'):
                continue  # killed within it
            if line == 'ready\n':
                self.ready += 1
                continue
            verdict, name, how, attempts = line.split()
            self.lines[verdict, name, how == 'redelivered', int(attempts)] += 1

    def wait_ready(self):
        until = time.monotonic() + READY_SECONDS
        while self.ready < THREADS:
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failure(f'{self.queue}: the consumer did not come up, '
                              f'exit code {self.process.poll()}')
            time.sleep(0.005)

    def end(self, signal_number, expected):
        self.process.send_signal(signal_number)
        try:
            code = self.process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        if code != expected:
            raise Failure(f'{self.queue}: exit code {code} instead of {expected}')

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()

    def rows(self):
        """What is booked: [(id, cents)]"""
        done = subprocess.run([self.program, self.directory], check=True, text=True,
                              capture_output=True, timeout=READY_SECONDS)
        words = [line.split(' ') for line in done.stdout.splitlines()]
        return [(row[0], int(row[2])) for row in words]


class Run:
    """One exchange of messages under kills, with claims or naively."""

    def __init__(self, options, broker, folder, naive, kills):
        self.naive, self.kills = naive, kills
        self.random = random.Random(options.seed)
        self.channel = broker.connect().channel()
        self.channel.confirm_delivery()
        self.published = self.given_back = 0
        self.good = {}  # id -> cents
        self.copies = collections.Counter()
        self.fails = set()
        self.next_name = list(range(QUEUES))  # of each queue
        self.again = []  # published once, to come again later
        word = 'naive' if naive else 'work'
        self.dead = f'{word}.dead'
        self.channel.queue_declare(self.dead)
        self.consumers = []
        for number in range(QUEUES):
            queue = f'{word}.{number}'
            self.channel.queue_declare(queue, arguments={
                'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': self.dead})
            self.consumers.append(Consumer(options.consumer, folder, queue, broker.port, naive))

    # --- messages -------------------------------------------------------------------------------

    def publish(self, name, body):
        # The id chooses the queue: all copies of a message meet the same claims.
        queue = self.consumers[int(name) % QUEUES].queue
        self.channel.basic_publish('', queue, body, pika.BasicProperties(message_id=name))
        self.published += 1
        self.copies[name] += 1

    def publish_some(self, number):
        name = str(self.next_name[number])
        self.next_name[number] += QUEUES
        cents = self.random.randrange(1, 10000)
        chance = 1.0 if self.naive else self.random.random()
        if chance < 0.03:
            body = 'nonsense'
        elif chance < 0.05:
            body = f'{cents} 1000000'  # fails always
        else:
            self.good[name] = cents
            body = str(cents)
            if chance < 0.15:
                body += f' {self.random.randrange(1, 3)}'
                self.fails.add(name)
        self.publish(name, body)
        if not self.naive and self.random.random() < 0.15:
            self.publish(name, body)
        if not self.naive and self.random.random() < 0.1:
            self.again.append((name, body))
        if self.again and self.random.random() < 0.1:
            self.publish(*self.again.pop(self.random.randrange(len(self.again))))

    def ready(self, queue):
        return self.channel.queue_declare(queue, passive=True).method.message_count

    # --- kills ----------------------------------------------------------------------------------

    def go(self):
        """Wave by wave: both start with much to do, and are killed in the midst of it."""
        killed = 0
        while killed < self.kills:
            self.fill()
            for consumer in self.consumers:
                consumer.start()
            victims = self.random.sample(self.consumers, min(QUEUES, self.kills - killed))
            for victim in victims:
                self.kill(victim)
            killed += len(victims)
        while self.again:
            self.publish(*self.again.pop())
        for consumer in self.consumers:
            if not consumer.is_running():
                consumer.start()
        self.drain()

    def fill(self):
        for number, consumer in enumerate(self.consumers):
            for _ in range(BACKLOG - self.ready(consumer.queue)):
                self.publish_some(number)

    def kill(self, victim):
        if self.random.random() < 0.1:  # also while it opens, recovers and connects
            self.pause(self.random.uniform(0, 0.1))
        else:
            victim.wait_ready()
            self.pause(self.random.uniform(0, 0.1))
        victim.end(signal.SIGKILL, -signal.SIGKILL)

    def pause(self, seconds):
        self.channel.connection.sleep(seconds)

    def drain(self):
        """Until nothing is left, whether waiting or delivered to a consumer."""
        until = time.monotonic() + DRAIN_SECONDS
        while True:
            for consumer in self.consumers:
                consumer.wait_ready()
            while any(self.ready(consumer.queue) for consumer in self.consumers):
                if time.monotonic() > until:
                    raise Failure('the queues do not become empty')
                self.pause(0.1)
            for consumer in self.consumers:
                consumer.end(signal.SIGTERM, 0)
            # Without consumers, what was delivered and not settled waits again.
            if not any(self.ready(consumer.queue) for consumer in self.consumers):
                return
            self.given_back += sum(self.ready(consumer.queue) for consumer in self.consumers)
            for consumer in self.consumers:
                consumer.start()

    # --- what came of it ------------------------------------------------------------------------

    def count(self):
        rows = [row for consumer in self.consumers for row in consumer.rows()]
        booked = collections.Counter(name for name, _ in rows)
        wrong = [row for row in rows if self.good.get(row[0]) != row[1]]
        lost = [name for name in self.good if name not in booked]
        doubled = [name for name, times in booked.items() if times > 1]
        expected = {name: times for name, times in self.copies.items() if name not in self.good}
        dead = self.dead_letters(sum(expected.values()))
        return {'lost': lost, 'doubled': doubled, 'wrong': wrong,
                'dead': sum(dead.values()), 'misplaced': sorted(
                    name for name in dead.keys() | expected.keys()
                    if dead[name] != expected.get(name, 0))}

    def dead_letters(self, expected):
        """All that are there, once those that are expected have had time to come."""
        dead = collections.Counter()
        until = time.monotonic() + DEAD_SECONDS
        while True:
            method, properties, _ = self.channel.basic_get(self.dead, auto_ack=True)
            if method is not None:
                dead[properties.message_id] += 1
            elif sum(dead.values()) >= expected or time.monotonic() > until:
                return dead
            else:
                self.pause(0.1)

    def tally(self):
        """What the consumers said: redeliveries that only a kill explains, repeats that a claim
        answered, and bookings by who took over from a killed owner."""
        heard = collections.Counter()
        for consumer in self.consumers:
            for (verdict, name, redelivered, attempts), times in consumer.lines.items():
                heard['redelivered'] += times * redelivered
                heard['requeued'] += times * (verdict == 'retry')
                heard['repeats'] += times * (verdict == 'duplicate' and self.copies[name] == 1)
                heard['published twice'] += times * (verdict == 'duplicate'
                                                     and self.copies[name] > 1)
                heard['takeovers'] += times * (verdict == 'ack' and attempts > 1
                                               and name not in self.fails)
        heard['kills'] = max(0, heard['redelivered'] - heard['requeued'] - self.given_back)
        return heard

    def stop(self):
        for consumer in self.consumers:
            consumer.stop()


def measured(options, broker, folder, naive, kills):
    run = Run(options, broker, folder, naive, kills)
    try:
        run.go()
        return run, run.count(), run.tally()
    finally:
        run.stop()


def judge(options, broker, folder):
    naive, found, _ = measured(options, broker, folder, True, max(6, options.kills // 3))
    print(f'control: without claims {naive.published} messages, {naive.kills} kills, '
          f'{len(found["lost"])} lost, {len(found["doubled"])} doubled', flush=True)
    verdict = 0
    if not found['doubled']:
        print('broker: the control shows nothing doubled: these kills prove nothing')
        verdict = 1
    run, found, heard = measured(options, broker, folder, False, options.kills)
    print(f'bookings: {len(run.good)} expected, {heard["takeovers"]} by who took over from a '
          f'killed owner; repeats answered: {heard["repeats"]} of messages published once, '
          f'{heard["published twice"]} of others')
    print(f'dead letters: {found["dead"]}, {len(found["misplaced"])} not as they should be')
    for what in ('lost', 'doubled', 'wrong', 'misplaced'):
        for item in found[what][:5]:
            print(f'broker: {what}: {item}')
        verdict = verdict or bool(found[what])
    if heard['kills'] < run.kills or not heard['repeats'] or not heard['published twice']:
        print('broker: too few redeliveries to prove anything')
        verdict = 1
    print(f'broker: {run.published} messages, {run.kills} kills, {heard["kills"]} redeliveries, '
          f'{len(found["lost"])} effects lost, {len(found["doubled"])} doubled')
    return int(verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('consumer')
    parser.add_argument('--kills', type=int, default=15)
    parser.add_argument('--long', action='store_true', help='100 kills')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    if options.long:
        options.kills = 100
    if not rabbit.SERVER.exists():
        print('broker: skipped, rabbitmq-server is not installed')
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('broker: ended from outside'))
    print(f'broker: seed {options.seed}', flush=True)
    folder = Path(tempfile.mkdtemp(prefix='semel_broker_'))
    try:
        with rabbit.Rabbit() as broker:
            return judge(options, broker, folder)
    except (Failure, rabbit.CannotStart) as failure:
        print(f'broker: {failure}')
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
