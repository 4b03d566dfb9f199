"""An event loop: what wakes it when waits have ended, and calls that are made beside it."""

import asyncio
import functools
import os
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

from ._debounce import Turn
from ._engine import Engine
from ._errors import SemelError
from ._trailing import TrailingTurn
from ._waits import Held, Wait


class Notifier:
    """Notifies one loop that waits have ended: a pipe that exists while there are waits. Only they
    hold it, so it is freed with a loop that is dropped with its tasks."""

    _of: 'weakref.WeakKeyDictionary[Any, weakref.ref[Notifier]]' = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._waits: Dict[Wait, 'asyncio.Future[None]'] = {}
        self._guests = 0
        self._ends: Tuple[int, int] = (-1, -1)

    @classmethod
    def here(cls) -> 'Notifier':
        loop = asyncio.get_running_loop()
        known = cls._of.get(loop)
        bell = None if known is None else known()
        if bell is None:
            bell = cls(loop)
            cls._of[loop] = weakref.ref(bell)
        return bell

    def __enter__(self) -> int:
        if self._guests == 0:
            self._ends = os.pipe()
            for end in self._ends:
                os.set_blocking(end, False)
            asyncio.get_running_loop().add_reader(self._ends[0], self._ring)
        self._guests += 1
        return self._ends[1]

    def __exit__(self, *_: Any) -> None:
        self._guests -= 1
        if self._guests:
            return
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._ends[0])
        for end in self._ends:
            os.close(end)

    async def answered(self, engine: Engine, wait: Wait, wait_ms: int) -> None:
        """Returns when there is an pending. The caller that began the wait ends it."""
        loop = asyncio.get_running_loop()
        pending = self._waits[wait] = loop.create_future()
        mark = object()
        engine._on_close[mark] = functools.partial(_ring_soon, weakref.ref(self))
        due = loop.call_later(wait_ms / 1000 + 0.001, self._ring)
        try:
            if not wait.look():
                await pending
        finally:
            due.cancel()
            engine._on_close.pop(mark, None)
            self._waits.pop(wait, None)

    def _ring(self) -> None:
        if self._guests:
            try:
                os.read(self._ends[0], 65_536)
            except BlockingIOError:
                pass
        for wait, pending in list(self._waits.items()):
            if pending.done():
                continue
            try:
                if wait.look():
                    pending.set_result(None)
            except SemelError as error:  # the engine is closed
                pending.set_exception(error)


def _ring_soon(of: 'weakref.ref[Notifier]') -> None:
    bell = of()
    loop = None if bell is None else bell._loop()
    if bell is None or loop is None:
        return
    try:
        loop.call_soon_threadsafe(bell._ring)
    except RuntimeError:
        pass  # the loop has ended, and its tasks with it


async def off_loop(engine: Engine, function: Callable[..., Any], *arguments: Any) -> Any:
    """A call that may wait for the disk. It is not left before it has ended."""
    if not engine.is_durable:
        return function(*arguments)
    call = asyncio.get_running_loop().run_in_executor(None, caught, function, *arguments)
    cancelled = await ended(call)
    made, raised = call.result()
    if cancelled is not None:
        if isinstance(made, (Held, Turn, TrailingTurn)):  # what was granted meanwhile
            await off_loop(engine, made.give_up)
        raise cancelled
    if raised is not None:
        raise raised
    return made


def caught(function: Callable[..., Any], *arguments: Any) -> Tuple[Any, Optional[BaseException]]:
    """What it returns, and what it raises: a future cannot hold a StopIteration."""
    try:
        return function(*arguments), None
    except BaseException as raised:
        return None, raised


async def ended(call: 'asyncio.Future[Any]') -> Optional[BaseException]:
    """Waits for what cannot be stopped. Returns the cancellation that came meanwhile."""
    cancelled = None
    while not call.done():
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError as why:
            cancelled = why
    return cancelled
