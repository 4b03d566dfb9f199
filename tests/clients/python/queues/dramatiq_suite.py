"""dramatiq: its broker is scripts, its limits are transactions."""

import sys
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage
from dramatiq.rate_limits import BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from workers import PATIENCE, URL, Worker, check, held_job, same, store, survives, until

DEAD_MS = 1_500  # a worker that says nothing for so long is dead

broker = RedisBroker(url=URL, heartbeat_timeout=DEAD_MS, maintenance_chance=1_000_000)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)
limits = LimitBackend(url=URL)


@dramatiq.actor(store_results=True)
def add(left, right):
    return left + right


@dramatiq.actor(store_results=True, max_retries=3, min_backoff=10, max_backoff=50)
def third_time():
    if store.incr('tries') < 3:
        raise ValueError('again')
    return int(store.get('tries'))


@dramatiq.actor(max_retries=0)
def fails():
    raise ValueError('as it should')


@dramatiq.actor(store_results=True)
def held(name):
    return held_job(name)


def result(message):
    return message.get_result(block=True, timeout=PATIENCE * 1000)


def jobs():
    same([result(add.send(n, 1)) for n in range(5)], [1, 2, 3, 4, 5])
    many = dramatiq.group(add.message(n, n) for n in range(100)).run()
    same(list(many.get_results(block=True, timeout=PATIENCE * 1000)), [2 * n for n in range(100)])
    same(result(dramatiq.pipeline([add.message(1, 2), add.message(3)]).run()), 6)


def failure():
    same(result(third_time.send()), 3)
    fails.send()
    until(lambda: store.zcard('dramatiq:default.XQ') == 1, PATIENCE)
    same(store.hlen('dramatiq:default.XQ.msgs'), 1)


def delayed():
    began = time.monotonic()
    same(result(add.send_with_options(args=(1, 2), delay=700)), 3)
    took = time.monotonic() - began
    assert 0.6 <= took < 10, f'{took} s'


def limit():
    one = ConcurrentRateLimiter(limits, 'one', limit=1)
    with one.acquire(raise_on_failure=False) as got:
        same(got, True)
        with one.acquire(raise_on_failure=False) as again:
            same(again, False)
    with one.acquire(raise_on_failure=False) as got:
        same(got, True)
    for limiter in (WindowRateLimiter(limits, 'window', limit=3, window=60),
                    BucketRateLimiter(limits, 'bucket', limit=3, bucket=60_000)):
        granted = 0
        for _ in range(6):
            with limiter.acquire(raise_on_failure=False) as got:
                granted += got
        same(granted, 3)


def killed():
    def finish(message):
        same(result(message), 'held')
        until(lambda: store.hlen('dramatiq:default.msgs') == 0, PATIENCE)
    survives('held', held.send, finish, lambda: time.sleep(1.2 * DEAD_MS / 1000))


def work():
    worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=100)
    worker.start()
    worker.join()  # what is there now
    while True:
        time.sleep(60)


def suite():
    with Worker():
        check('jobs, and their results', jobs)
        check('retries, failure', failure)
        check('a job for later', delayed)
    check('limits', limit)
    check('a worker killed in the middle', killed)
    print('end')


if __name__ == '__main__':
    if sys.argv[1:] == ['worker']:
        work()
    else:
        suite()
