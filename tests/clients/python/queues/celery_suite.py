"""Celery, with the server as broker and as store of results."""

import sys
import time

from celery import Celery, chord, group
from workers import PATIENCE, URL, Worker, check, held_job, same, store, survives, until

VISIBLE_S = 2  # a job whose worker says nothing for so long is another's

app = Celery('suite', broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True, worker_prefetch_multiplier=1, worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={'visibility_timeout': VISIBLE_S, 'unacked_restore_interval': 1,
                              'unacked_restore_throttle': 1, 'priority_steps': [0, 9],
                              'queue_order_strategy': 'priority'})


@app.task
def add(left, right):
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def third_time(self, name):
    if store.incr(name) < 3:
        raise self.retry(countdown=0.1)
    return int(store.get(name))


@app.task
def fails():
    raise ValueError('as it should')


@app.task(rate_limit='5/s')
def limited(at):
    store.rpush('limited', time.time())
    return at


@app.task
def append(name):
    store.rpush('order', name)


@app.task
def held(name):
    return held_job(name)


def jobs():
    same([add.delay(n, 1).get(timeout=PATIENCE) for n in range(5)], [1, 2, 3, 4, 5])
    many = group(add.s(n, n) for n in range(100))()
    same(many.get(timeout=PATIENCE), [2 * n for n in range(100)])


def callback():
    same(chord((add.s(n, n) for n in range(10)), total.s())().get(timeout=PATIENCE), 90)
    same((add.s(1, 2) | add.s(3) | add.s(4)).delay().get(timeout=PATIENCE), 10)


def retries():
    same(third_time.delay('tries').get(timeout=PATIENCE), 3)
    lost = fails.delay()
    try:
        lost.get(timeout=PATIENCE)
    except ValueError as error:
        same(str(error), 'as it should')
    else:
        raise AssertionError('it did not fail')
    same(lost.state, 'FAILURE')


def delayed():
    began = time.monotonic()
    same(add.apply_async((1, 2), countdown=1).get(timeout=PATIENCE), 3)
    took = time.monotonic() - began
    assert 0.9 <= took < 10, f'{took} s'


def limit():
    found = [limited.delay(n) for n in range(8)]
    same([each.get(timeout=PATIENCE) for each in found], list(range(8)))
    times = [float(each) for each in store.lrange('limited', 0, -1)]
    # Eight at five a second: the first takes a token that is there.
    assert max(times) - min(times) > 1, f'{max(times) - min(times)} s'


def priorities():
    """What is 9 here is the lowest. No worker runs meanwhile."""
    for name, priority in (('low', 9), ('high', 0), ('low', 9), ('high', 0)):
        append.apply_async((name,), priority=priority)
    with Worker():
        add.apply_async((1, 1), priority=9).get(timeout=PATIENCE)
    same(sorted(store.lrange('order', 0, 1)), ['high', 'high'])


def killed():
    def finish(job):
        same(job.get(timeout=PATIENCE), 'held')
        until(lambda: not store.exists('unacked', 'unacked_index'), PATIENCE)
    survives('held', held.delay, finish, lambda: time.sleep(VISIBLE_S))


def suite():
    with Worker():
        check('jobs, and their results', jobs)
        check('chord and chain', callback)
        check('retries, failure', retries)
        check('a job with a countdown', delayed)
        check('rate limit of a task', limit)
    check('priorities', priorities)
    check('a worker killed in the middle', killed)
    print('end')


if __name__ == '__main__':
    if sys.argv[1:] == ['worker']:
        app.worker_main(['worker', '--pool=threads', '--concurrency=2', '--loglevel=ERROR'])
    else:
        suite()
