"""What Sidekiq asks of a server, with its keys: lists of jobs, one list a process for those that it
has, sorted sets `schedule`, `retry` and `dead`, a hash a process with its heartbeat."""

import json
import sys
import time
import uuid

from workers import PATIENCE, Worker, check, held_job, same, store, survives, until

QUEUES = ('queue:high', 'queue:default')
BEAT_MS = 1_000  # a process that says nothing for so long is dead
DEAD_AT_MOST = 5
POP_DUE = store.register_script("""
local key, now = KEYS[1], ARGV[1]
local jobs = redis.call("zrange", key, "-inf", now, "byscore", "limit", 0, 1)
if jobs[1] then
  redis.call("zrem", key, jobs[1])
  return jobs[1]
end
""")


def job_of(name, *words, **more):
    return {'class': name, 'args': words, 'jid': uuid.uuid4().hex, 'retry': 3, **more}


def push(job, queue='default'):
    with store.pipeline() as pipe:
        pipe.sadd('queues', queue)
        pipe.lpush(f'queue:{queue}', json.dumps(dict(job, enqueued_at=time.time())))
        pipe.execute()
    return job['jid']


def finish(job, failed):
    """The counts, and where a job that has failed goes."""
    day = time.strftime('%Y-%m-%d')
    with store.pipeline() as pipe:
        pipe.incrby('stat:processed', 1)
        pipe.incrby(f'stat:processed:{day}', 1)
        pipe.expire(f'stat:processed:{day}', 3600)
        if failed:
            job = dict(job, retry_count=job.get('retry_count', -1) + 1)
            pipe.incrby('stat:failed', 1)
            if job['retry_count'] < job['retry']:
                pipe.zadd('retry', {json.dumps(job): time.time() + 0.05})
            else:
                pipe.zadd('dead', {json.dumps(job): time.time()})
                pipe.zremrangebyscore('dead', '-inf', f'({time.time() - 3600}')
                pipe.zremrangebyrank('dead', 0, -DEAD_AT_MOST - 1)
        pipe.execute()


def do(job):
    name, words = job['class'], job['args']
    if name == 'Held':
        held_job(*words)
    elif name == 'Append':
        store.rpush(*words)
    elif name == 'Fails':
        raise ValueError('as it should')


def give_back():
    """What dead processes have had goes back to where it was."""
    for other in store.smembers('processes'):
        if not store.exists(other) and store.srem('processes', other):
            for queue in QUEUES:
                while store.lmove(f'{queue}|{other}', queue, 'RIGHT', 'RIGHT'):
                    pass


def enqueue_due():
    for key in ('schedule', 'retry'):
        while text := POP_DUE(keys=[key], args=[repr(time.time())]):
            job = json.loads(text)
            push(job, job.get('queue', 'default'))


def beat(me, busy):
    with store.pipeline() as pipe:
        pipe.sadd('processes', me)
        pipe.hset(me, mapping={'busy': busy, 'beat': time.time(), 'quiet': 'false'})
        pipe.pexpire(me, BEAT_MS)
        pipe.execute()


def work():
    me = f'here:{uuid.uuid4().hex[:12]}'
    while True:
        beat(me, 0)
        give_back()
        enqueue_due()
        taken = None
        for queue in QUEUES:
            taken = taken or (text := store.lmove(queue, f'{queue}|{me}', 'RIGHT', 'LEFT')) and (
                queue, text)
        if not taken:
            text = store.blmove(QUEUES[-1], f'{QUEUES[-1]}|{me}', 0.05, 'RIGHT', 'LEFT')
            taken = (QUEUES[-1], text) if text else None
        if taken:
            job, failed = json.loads(taken[1]), False
            try:
                do(job)
            except ValueError:
                failed = True
            finish(job, failed)
            same(store.lrem(f'{taken[0]}|{me}', -1, taken[1]), 1)


def jobs():
    for n in range(100):
        push(job_of('Append', 'seen', n))
    until(lambda: store.llen('seen') == 100, PATIENCE)
    same(store.lrange('seen', 0, -1), [str(n) for n in range(100)])
    until(lambda: store.get('stat:processed') == '100', PATIENCE)
    same(store.smembers('queues'), {'default'})


def failure():
    for _ in range(DEAD_AT_MOST + 2):
        push(job_of('Fails', retry=1))
    until(lambda: store.get('stat:failed') == str(2 * (DEAD_AT_MOST + 2)), PATIENCE)
    same((store.zcard('dead'), store.zcard('retry')), (DEAD_AT_MOST, 0))
    same(json.loads(store.zrange('dead', 0, 0)[0])['retry_count'], 1)


def delayed():
    due = time.time() + 0.7
    store.zadd('schedule', {json.dumps(job_of('Append', 'later', 1)): due})
    until(lambda: store.llen('later') == 1, PATIENCE)
    assert time.time() >= due
    same(store.zcard('schedule'), 0)


def order():
    for queue in ('default', 'high', 'default', 'high'):
        push(job_of('Append', 'order', queue), queue)
    with Worker():
        until(lambda: store.llen('order') == 4, PATIENCE)
    same(store.lrange('order', 0, -1), ['high', 'high', 'default', 'default'])


def unique():
    """A lock that a job takes when it is pushed."""
    taken = [store.set('unique:job', n, nx=True, ex=60) for n in range(3)]
    same(taken, [True, None, None])


def killed():
    def done(_):
        until(lambda: not store.keys('queue:*|*'), PATIENCE)
    survives('held', lambda name: push(job_of('Held', name)), done, lambda: until(
        lambda: not any(store.exists(each) for each in store.smembers('processes')), PATIENCE))


def suite():
    with Worker():
        check('jobs, in their order', jobs)
        check('retries, and those that are dead', failure)
        check('a job for later', delayed)
    check('a queue before another', order)
    check('one job of a name', unique)
    check('a process killed in the middle', killed)
    print('end')


if __name__ == '__main__':
    if sys.argv[1:] == ['worker']:
        work()
    else:
        suite()
