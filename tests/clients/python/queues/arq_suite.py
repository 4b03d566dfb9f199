"""arq."""

import asyncio
import sys
import time
from datetime import timedelta

from arq import Retry, create_pool
from arq.connections import RedisSettings
from arq.jobs import JobStatus
from arq.worker import Worker as ArqWorker
from workers import HOST, PATIENCE, PORT, Worker, check, held_job, same, store, survives

LOST_S = 1  # a job whose worker says nothing for so long after its time is another's

settings = RedisSettings(HOST, PORT)


async def add(_, left, right):
    return left + right


async def third_time(context):
    if context['job_try'] < 3:
        raise Retry(defer=0.05)
    return context['job_try']


async def fails(_):
    raise ValueError('as it should')


async def held(_, name):
    return await asyncio.to_thread(held_job, name)


class Queue:
    """What arq has as coroutines."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.pool = self.do(create_pool(settings))

    def do(self, work):
        return self.loop.run_until_complete(work)

    def send(self, *words, **options):
        return self.do(self.pool.enqueue_job(*words, **options))

    def result(self, job):
        return self.do(job.result(timeout=PATIENCE, poll_delay=0.01))


def suite():
    queue = Queue()

    def jobs():
        same([queue.result(queue.send('add', n, 1)) for n in range(5)], [1, 2, 3, 4, 5])
        many = [queue.send('add', n, n) for n in range(50)]
        same([queue.result(job) for job in many], [2 * n for n in range(50)])

    def once():
        job = queue.send('add', 1, 2, _job_id='one')
        same(queue.send('add', 1, 2, _job_id='one'), None)
        same(queue.result(job), 3)
        same(queue.send('add', 1, 2, _job_id='one'), None)  # its result is kept

    def failure():
        same(queue.result(queue.send('third_time')), 3)
        try:
            queue.result(queue.send('fails'))
        except ValueError as error:
            same(str(error), 'as it should')
        else:
            raise AssertionError('it did not fail')

    def delayed():
        began = time.monotonic()
        job = queue.send('add', 1, 2, _defer_by=timedelta(milliseconds=700))
        same(queue.do(job.status()), JobStatus.deferred)
        same(queue.result(job), 3)
        took = time.monotonic() - began
        assert 0.6 <= took < 10, f'{took} s'

    def killed():
        def recover():  # what says that a worker is at it ends by itself
            time.sleep(LOST_S)

        def finish(job):
            same(queue.result(job), 'held')
            same(store.exists('arq:queue'), 0)
        survives('held', lambda name: queue.send('held', name), finish, recover)

    with Worker():
        check('jobs, and their results', jobs)
        check('one job of a name', once)
        check('retries, failure', failure)
        check('a job for later', delayed)
    check('a worker killed in the middle', killed)
    print('end')


if __name__ == '__main__':
    if sys.argv[1:] == ['worker']:
        asyncio.set_event_loop(asyncio.new_event_loop())
        worker = ArqWorker([add, third_time, fails, held], redis_settings=settings, poll_delay=0.05,
                           job_timeout=PATIENCE, handle_signals=False)
        worker.in_progress_timeout_s = LOST_S  # ten seconds more than the longest job, otherwise
        worker.run()
    else:
        suite()
