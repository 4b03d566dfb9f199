"""RQ."""

import sys
import time
from datetime import timedelta

import redis
from rq import Queue, Retry, SimpleWorker
from rq.job import Job
from rq.registry import FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.scheduler import RQScheduler
from workers import HOST, PATIENCE, PORT, Worker, check, held_job, same, store, survives, until

ENDS_S = 3600  # far beyond the time for which a worker answers for its job

connection = redis.Redis(HOST, PORT)
queue = Queue(connection=connection)


def add(left, right):
    return left + right


def fails():
    raise ValueError('as it should')


def third_time():
    if store.incr('tries') < 3:
        raise ValueError('again')
    return int(store.get('tries'))


def append(name):
    store.rpush('order', name)


def held(name):
    return held_job(name)


def result(job, status='finished'):
    until(lambda: job.get_status() == status, PATIENCE)
    return job.return_value()


def jobs():
    found = queue.enqueue_many([Queue.prepare_data('rq_suite.add', (n, 1)) for n in range(50)])
    same([result(job) for job in found], list(range(1, 51)))


def failure():
    lost = queue.enqueue('rq_suite.fails')
    result(lost, 'failed')
    same(lost.latest_result().exc_string.strip().splitlines()[-1], 'ValueError: as it should')
    same(FailedJobRegistry(queue=queue).get_job_ids(), [lost.id])
    same(result(queue.enqueue('rq_suite.third_time', retry=Retry(max=3))), 3)


def dependency():
    first = queue.enqueue('rq_suite.append', 'first')
    second = queue.enqueue('rq_suite.append', 'second', depends_on=first)
    result(second)
    same(store.lrange('order', 0, -1), ['first', 'second'])


def delayed():
    job = queue.enqueue_in(timedelta(seconds=2), 'rq_suite.add', 1, 2)
    same(ScheduledJobRegistry(queue=queue).get_job_ids(), [job.id])
    scheduler = RQScheduler([queue], connection=connection)
    same(scheduler.acquire_locks(), {queue.name})
    same(RQScheduler([queue], connection=connection).acquire_locks(), set())
    scheduler.enqueue_scheduled_jobs()
    same(job.get_status(), 'scheduled')
    until(lambda: scheduler.enqueue_scheduled_jobs() or job.get_status() != 'scheduled', PATIENCE)
    scheduler.release_locks()
    same(result(job), 3)


def limit():
    """No worker runs: one job is in the queue, the others wait beside it."""
    from rq import RateLimit  # pylint: disable=import-outside-toplevel
    each = [queue.enqueue('rq_suite.add', n, 0, rate_limit=RateLimit('one', 1)) for n in range(4)]
    same([job.get_status() for job in each], ['queued'] + 3 * ['rate_limited'])
    with Worker():
        same([result(job) for job in each], [0, 1, 2, 3])


def killed():
    def recover():  # what a later worker does when the time of the job is over
        StartedJobRegistry(queue=queue).cleanup(timestamp=time.time() + ENDS_S)

    survives('held', lambda name: queue.enqueue('rq_suite.held', name, retry=Retry(max=1)),
             lambda job: same(result(job), 'held'), recover)


def stopped():
    """Of a job that is waiting, nothing is left."""
    job = queue.enqueue('rq_suite.add', 1, 1)
    job.cancel()
    job.delete()
    same((queue.count, Job.exists(job.id, connection)), (0, False))


def suite():
    with Worker():
        check('jobs, and their results', jobs)
        check('failure, retries', failure)
        check('a job that waits for another', dependency)
        check('a job for later', delayed)
    check('rate limit', limit)
    check('a worker killed in the middle', killed)
    check('a job that is taken back', stopped)
    print('end')


if __name__ == '__main__':
    if sys.argv[1:] == ['worker']:
        SimpleWorker([queue], connection=connection).work(logging_level='CRITICAL')
    else:
        suite()
