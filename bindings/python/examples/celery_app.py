"""Celery tasks that run once, whatever the broker delivers: @once_task beside acks_late.

    celery -A celery_app worker --pool=solo

With acks_late a worker that is killed leaves its message to be delivered again, with the same id.
The next attempt takes the work over at once, since the owner's process is known to be dead, and
goes on behind the last step that was remembered. The storage is one process's: a pool of processes
needs a node instead (docs/python.md).
"""

import functools
import os
import time
from pathlib import Path
from typing import Any, Callable

import semel
from celery import Celery
from celery.exceptions import Reject

HOME = Path(os.environ.get('SHOP_HOME', '.'))
app = Celery('shop', broker=os.environ.get('SHOP_BROKER', 'memory://'))
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1,
                broker_connection_retry_on_startup=True,
                broker_transport_options={'data_folder_in': str(HOME / 'queue'),
                                          'data_folder_out': str(HOME / 'queue'),
                                          'control_folder': str(HOME / 'control')})
# Opened by the first task, so in the process that runs it.
engine = semel.PerProcess(lambda: semel.Engine(HOME / 'semel'))


def once_task(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A task that gets a semel.Work as its first argument. What it returns is not kept."""

    def decorate(function: Callable[..., Any]) -> Any:
        @app.task(bind=True, max_retries=None, **options)  # type: ignore[untyped-decorator]
        @functools.wraps(function)
        def run(task: Any, *arguments: Any, **named: Any) -> Any:
            def handle(work: semel.Work) -> None:
                function(work, *arguments, **named)

            done = engine().claims('tasks', 'message').consume_once(task.request.id, handle)
            if done.verdict is semel.Verdict.RETRY_LATER:
                raise task.retry(countdown=max(0.1, done.retry_after_ms / 1000),
                                 exc=semel.Failed(done.failure or done.answer.name))
            if done.verdict is semel.Verdict.DEAD_LETTER:
                raise Reject(done.failure or done.answer.name, requeue=False)
            return done.answer.name

        return run

    return decorate


def effect(what: str) -> None:
    """Something that the world sees."""
    with open(HOME / 'effects', 'a', encoding='utf-8') as file:
        file.write(what + '\n')


@once_task(name='ship')
def ship(work: semel.Work, order: str, slow: bool = False) -> None:
    assert work.steps is not None
    work.steps.run('charge', lambda: effect(f'charge {order}'))
    if slow and not (HOME / 'go').exists():
        (HOME / 'in the middle').touch()
        time.sleep(600)  # the test kills the worker here
    work.steps.run('mail', lambda: effect(f'mail {order}'))
