"""Semel for asyncio: what blocks, or runs a function, as coroutines that never block their loop.

    from semel import aio

    claim = await aio.claim(claims, 'order-4711', wait_ms=5_000)
    receipt = await aio.once(claims, 'order-4711', lambda: charge(order))   # an async function
    async with aio.lock(locks, 'invoice-run', wait_ms=5_000) as lock: ...

A waiter takes no thread: it has a place in the queue, and a byte in a pipe wakes the loop. A task
that is cancelled leaves the queue, and what it was granted then is given back; a coroutine that
is cancelled while it runs once has ended as the namespace's on_exception says. With a storage,
calls that may wait for the disk run on the loop's default executor. A lease that ends elsewhere is
noticed by the engine's own thread (background_ms). Source: docs/c-abi.md
"""

import asyncio
import functools
import inspect
import json
import os
import weakref
from typing import Any, Callable, Dict, Tuple, TypeVar, Union

from . import _library as c
from ._claims import Claims, _request, key_of
from ._engine import Engine
from ._library import Text, raw
from ._locks import Lock
from ._numbers import number
from ._runs import (Ending, Run, bytes_of, consumed_of, invoke, nothing_but_no, once_of, same)
from ._types import Claim, Consumed, NoResult, NotTaken, Once, SemelError
from ._waits import Held, Wait

F = TypeVar('F', bound=Callable[..., Any])

__all__ = ['claim', 'consume_once', 'guarded', 'lock', 'once']


class _Notifier:
    """Notifies one loop that waits have ended: a pipe that exists while there are waits. Only they
    hold it, so it is freed with a loop that is dropped with its tasks."""

    _of: 'weakref.WeakKeyDictionary[Any, weakref.ref[_Notifier]]' = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._waits: Dict[Wait, 'asyncio.Future[None]'] = {}
        self._guests = 0
        self._ends: Tuple[int, int] = (-1, -1)

    @classmethod
    def here(cls) -> '_Notifier':
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


def _ring_soon(of: 'weakref.ref[_Notifier]') -> None:
    bell = of()
    loop = None if bell is None else bell._loop()
    if bell is None or loop is None:
        return
    try:
        loop.call_soon_threadsafe(bell._ring)
    except RuntimeError:
        pass  # the loop has ended, and its tasks with it


async def _off_loop(engine: Engine, function: Callable[..., Any], *arguments: Any) -> Any:
    """A call that may wait for the disk. It is not left before it has ended."""
    if not engine.is_durable:
        return function(*arguments)
    call = asyncio.get_running_loop().run_in_executor(None, lambda: function(*arguments))
    cancelled = None
    while not call.done():
        try:
            await asyncio.wait([call])
        except asyncio.CancelledError as why:
            cancelled = why
    if cancelled is not None:
        made = None if call.exception() is not None else call.result()
        if isinstance(made, Held):
            await _off_loop(engine, made.abandon)
        raise cancelled
    return call.result()


async def _wait(claims: Claims, request: c.Request, bell: _Notifier, fd: int) -> Wait:
    """A wait that is answered."""
    wait = await _off_loop(claims.engine, claims._begin, request, fd)
    try:
        await bell.answered(claims.engine, wait, request.wait_ms)
    except asyncio.CancelledError:
        await _off_loop(claims.engine, wait.abandon)
        raise
    except BaseException:  # GeneratorExit, too: nothing can be awaited any more
        wait.abandon()
        raise
    return wait


async def claim(claims: Claims, key: Text, **how: Any) -> Claim:
    """As Claims.claim()."""
    request, bell = _request(key, **how), _Notifier.here()
    with bell as fd:
        wait = await _wait(claims, request, bell, fd)
        try:
            return claims._answer_of(key, wait.end)
        finally:
            wait.abandon()


async def once(claims: Claims, key: Text, function: Callable[..., Any], *, encode: Any = bytes_of,
               decode: Any = same, **how: Any) -> 'Once[Any]':
    """As Claims.once(), of a function whose result may be awaited."""
    request, bell = _request(key, **how), _Notifier.here()
    with bell as fd:
        held: Any = await _wait(claims, request, bell, fd)
        try:
            held = Run.once(claims.engine, held)
        finally:
            if not isinstance(held, Run):
                held.abandon()
    try:
        ending, outcome = Ending(encode), c.OnceOutcome()
        await _work(held, ending, function)
        error = await _finish(claims.engine, held, ending, outcome)
        return once_of(key, ending, outcome, error, decode)
    finally:
        held.abandon()


async def consume_once(claims: Claims, message_id: Text, handler: Callable[..., Any],
                       **how: Any) -> Consumed:
    """As Claims.consume_once(), of a handler whose result may be awaited."""
    request = _request(message_id, **how)
    run = await _off_loop(claims.engine, Run.message, claims.engine, claims._handle, request)
    try:
        ending, consumed = Ending(nothing_but_no), c.Consumed()
        await _work(run, ending, handler)
        error = await _finish(claims.engine, run, ending, consumed)
        return consumed_of(ending, consumed, error)
    finally:
        run.abandon()


async def _work(run: Run, ending: Ending, function: Callable[..., Any]) -> None:
    if run.work is None:
        return
    try:
        result = invoke(function, run.work)
        if inspect.isawaitable(result):
            result = await result
    except BaseException as raised:  # it goes on when it is written down
        ending.threw(raised)
    else:
        ending.returned(result)


async def _finish(engine: Engine, run: Run, ending: Ending, outcome: Any) -> Any:
    if isinstance(ending.raised, GeneratorExit):  # nothing can be awaited any more
        return run.finish(ending, outcome)
    return await _off_loop(engine, run.finish, ending, outcome)


def guarded(claims: Claims, key: Union[str, Callable[..., Text]], *,
            encode: Callable[[Any], Text] = json.dumps,
            decode: Callable[[bytes], Any] = json.loads, **how: Any) -> Callable[[F], F]:
    """As semel.guarded, for coroutine functions."""

    def decorate(function: F) -> F:
        name_of = key_of(function, key)

        @functools.wraps(function)
        async def call(*arguments: Any, **named: Any) -> Any:
            outcome = await once(claims, name_of(*arguments, **named),
                                 lambda: function(*arguments, **named),
                                 encode=lambda value: raw(encode(value)), decode=decode, **how)
            if not outcome.has_value:
                raise NoResult(outcome)
            return outcome.value

        return call  # type: ignore[return-value]

    return decorate


class lock:
    """`async with` takes the lock of Claims.lock() and waits up to wait_ms; else take(), give()."""

    def __init__(self, claims: Claims, key: Text, *, wait_ms: int = 0, **how: Any) -> None:
        self._wait_ms = number('wait_ms', wait_ms)
        self._engine = claims.engine
        self._key = key
        self._lock: Lock = claims.lock(key, **how)

    async def take(self, wait_ms: 'Union[int, None]' = None) -> bool:
        longest = self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)
        bell = _Notifier.here()
        with bell as fd:
            wait = await _off_loop(self._engine, self._lock.begin, longest, fd)
            try:
                await bell.answered(self._engine, wait, longest)
                return self._lock.end(wait)
            except asyncio.CancelledError:
                await _off_loop(self._engine, wait.abandon)
                raise
            finally:
                wait.abandon()

    async def give(self) -> bool:
        return await _off_loop(self._engine, self._lock.give)

    @property
    def token(self) -> int:
        """As Lock.token."""
        return self._lock.token

    async def renew(self) -> bool:
        return await _off_loop(self._engine, self._lock.renew)

    async def __aenter__(self) -> 'lock':
        if not await self.take():
            raise NotTaken(f'another has the lock {self._key!r}')
        return self

    async def __aexit__(self, *_: Any) -> None:
        if self._engine.is_here:
            await self.give()
