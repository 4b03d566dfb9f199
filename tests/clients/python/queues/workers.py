"""What the suites of queues share: workers that are processes, so that one can be killed while it
has a job, and the job whose worker is killed.

A suite's file has both sides: started with the word `worker` it takes jobs.
"""

import atexit
import ctypes
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import redis  # noqa: E402
from report import HOST, PORT, check, until  # noqa: E402, F401 (check is for the suites)

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
URL = f'redis://{HOST}:{PORT}/0'
PATIENCE = 15

store = redis.Redis(HOST, PORT, decode_responses=True)


def same(found, expected):
    assert found == expected, f'{found!r} instead of {expected!r}'


class Worker:
    """A process that takes jobs, until its `with` ends."""

    def __init__(self, *words):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, sys.argv[0], 'worker', *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        atexit.register(self.kill)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()


def held_job(name):
    """What a worker does with the job `name`: it does not end before it is let go."""
    store.incr(f'{name}:started')
    while store.exists(f'{name}:held'):
        time.sleep(0.01)
    store.incr(f'{name}:done')
    return name


def survives(name, enqueue, finish, recover=lambda: None):
    """Kills the worker that has the job; another one does it. `recover` is what the queue wants
    done, or waited for, before. `finish` is given what `enqueue` has returned, while the other
    worker lives."""
    store.set(f'{name}:held', 1)
    with Worker() as first:
        handle = enqueue(name)
        until(lambda: store.get(f'{name}:started'), PATIENCE)
        first.kill()
    store.delete(f'{name}:held')
    same(store.get(f'{name}:done'), None)
    recover()
    with Worker():
        until(lambda: store.get(f'{name}:done'), PATIENCE)
        finish(handle)
    same((store.get(f'{name}:started'), store.get(f'{name}:done')), ('2', '1'))
