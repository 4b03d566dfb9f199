"""huey, its usual queue and the one with priorities. A task that its worker has taken is in no list
of the server: huey itself loses it with the worker. What waits is for the next one."""

import os
import sys
import time

from huey import PriorityRedisHuey, RedisHuey
from huey.exceptions import RateLimitExceeded, TaskException, TaskLockedException
from workers import PATIENCE, URL, Worker, check, same, store, until

PRIORITY = 'priority' in sys.argv[1:]
NAME = 'priority' if PRIORITY else 'usual'
huey = (PriorityRedisHuey if PRIORITY else RedisHuey)(NAME, url=URL)


@huey.task()
def add(left, right):
    return left + right


@huey.task(retries=3, retry_delay=0)
def third_time(name):
    if store.incr(name) < 3:
        raise ValueError('again')
    return int(store.get(name))


@huey.task()
def fails():
    raise ValueError('as it should')


@huey.task()
def held(name):
    store.incr(f'{name}:started')
    while store.exists(f'{name}:held'):
        time.sleep(0.01)


def result(task):
    return task.get(blocking=True, timeout=PATIENCE)


def jobs():
    same([result(add(n, 1)) for n in range(5)], [1, 2, 3, 4, 5])
    same([result(each) for each in [add(n, n) for n in range(50)]], [2 * n for n in range(50)])
    chained = huey.enqueue(add.s(1, 2).then(add, 3))
    same(chained.get(blocking=True, timeout=PATIENCE), [3, 6])


def failure():
    name = f'{NAME} tries'
    third_time(name)  # until it is done, its result is that it has failed
    until(lambda: store.get(name) == '3', PATIENCE)
    try:
        result(fails())
    except TaskException as error:
        assert 'as it should' in str(error)
    else:
        raise AssertionError('it did not fail')


def delayed():
    began = time.monotonic()
    same(result(add.schedule((1, 2), delay=1)), 3)
    took = time.monotonic() - began
    assert 0.9 <= took < 10, f'{took} s'
    taken_back = add.schedule((1, 2), delay=3600)
    until(lambda: len(huey.scheduled()) == 1, PATIENCE)
    taken_back.revoke()
    same(taken_back.is_revoked(), True)


def limit():
    with huey.lock_task('lock'):
        try:
            with huey.lock_task('lock'):
                raise AssertionError('locked twice')
        except TaskLockedException:
            pass
    with huey.lock_task('lock'):
        pass
    refused = 0
    limiter = huey.rate_limit('few', 3, 3600)
    for _ in range(6):
        try:
            limiter.acquire()
        except RateLimitExceeded:
            refused += 1
    same(refused, 3)


def order():
    """Nobody works: the tasks wait in the order in which they are taken."""
    for name, priority in (('low', 1), ('high', 9), ('low', 1), ('high', 9)):
        huey.enqueue(add.s(name, '', priority=priority))
    same([huey.dequeue().args[0] for _ in range(4)], ['high', 'high', 'low', 'low'])


def killed():
    name = f'{NAME} held'
    store.set(f'{name}:held', 1)
    with Worker(NAME) as first:
        held(name)
        until(lambda: store.get(f'{name}:started'), PATIENCE)
        waiting = [add(n, n) for n in range(20)]
        first.kill()
    store.delete(f'{name}:held')
    same(huey.pending_count(), 20)
    with Worker(NAME):
        same([result(each) for each in waiting], [2 * n for n in range(20)])
    same(store.get(f'{name}:started'), '1')


def suite():
    with Worker(NAME):
        check(f'jobs, and their results, {NAME}', jobs)
        check(f'retries, failure, {NAME}', failure)
        check(f'a task for later, {NAME}', delayed)
    check(f'lock and rate limit, {NAME}', limit)
    if PRIORITY:
        check('priorities', order)
    check(f'a worker killed in the middle: what waits is done, {NAME}', killed)


if __name__ == '__main__':
    if sys.argv[1:2] == ['worker']:
        huey.create_consumer(workers=1, scheduler_interval=1, initial_delay=0.01,
                             max_delay=0.05).run()
    else:
        suite()
        if not PRIORITY:  # the other queue, in this process
            os.execv(sys.executable, [sys.executable, sys.argv[0], 'priority'])
        print('end')
