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
import contextlib
import contextvars
import functools
import inspect
import time
from datetime import datetime
from typing import Any, Callable, List, Mapping, Optional, Sequence, TypeVar, Union, cast

from . import _library as c
from ._accesses import READ, WRITE, AccessOf
from ._claims import Claims
from ._codecs import BYTES, JSON, Codec, codec_of_result
from ._debounce import Debounce, Debounced, Turn, said
from ._engine import Engine
from ._errors import Code, LeaseLost, NoResult, SemelError
from ._event_loop import Notifier, caught, ended, off_loop
from ._functions import check_takes_nothing, check_takes_one, wants_work
from ._guarded import ARGUMENTS, Payload, Plan
from ._holding import Holding
from ._keeping import WORK_MAX, work_max_ms
from ._keys import KeyOf
from ._lazy import finished, refuse_lazy
from ._library import Text, raw
from ._lock_all import LocksOf, Taken
from ._locks import Acquisition, LockOf
from ._numbers import Deadline, Duration, Ms, flag, number, one_of, span
from ._observer import refused_of
from ._one_hold import OneHold, Waiting
from ._permits import PermitOf
from ._replay import Parameters, ReplayGuard, Replayed
from ._requests import Fingerprint, _request, in_flight
from ._runs import (NOTHING, ON_UNKEPT, Ending, Kept, Run, codec_with, consumed_of, invoke, once_of,
                    unless_unkept, verdict_of)
from ._steps import Steps
from ._trailing import TrailingCall, TrailingOf, TrailingRun, TrailingTurn, TrailingView
from ._types import Claim, Consumed, Once, Work
from ._waits import Wait

F = TypeVar('F', bound=Callable[..., Any])

__all__ = ['check', 'claim', 'consume_once', 'debounce', 'guarded', 'hold', 'idempotent', 'lock',
           'lock_all', 'once', 'permit', 'read_lock', 'step', 'trailing_debounce', 'write_lock']


async def _wait(claims: Claims, request: c.Request, bell: Notifier, fd: int) -> Wait:
    """A wait that is answered."""
    wait: Wait = await off_loop(claims.engine, claims._begin, request, fd)
    try:
        await bell.answered(claims.engine, wait, request.wait_ms)
    except asyncio.CancelledError:
        await off_loop(claims.engine, wait.abandon)
        raise
    except BaseException:  # GeneratorExit, too: nothing can be awaited any more
        wait.abandon()
        raise
    return wait


async def claim(claims: Claims, key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
                payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
                lease: Optional[Duration] = None, wait: Optional[Duration] = None,
                first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
                first_sent_unix_ms: Ms = None, remote_owner: bool = False) -> Claim:
    """As Claims.claim()."""
    request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                       fingerprint=fingerprint, lease=lease, wait=wait, first_sent=first_sent,
                       lease_ms=lease_ms, wait_ms=wait_ms, first_sent_unix_ms=first_sent_unix_ms,
                       remote_owner=remote_owner)
    watch = claims._watch(key)
    answer = await _claim(claims, key, request)
    watch.ended(answer.answer)
    return answer


async def _claim(claims: Claims, key: Text, request: c.Request) -> Claim:
    deadline, bell = Deadline(request.wait_ms), Notifier.here()
    with bell as fd:
        while True:
            place = await _wait(claims, request, bell, fd)
            try:
                answer = claims._answer_of(key, place.end, awaited=True)
            finally:
                place.abandon()
            if answer is not None:
                return answer
            if request.wait_ms == 0 or not deadline.asks_again():
                return in_flight()
            request.wait_ms = deadline.left_ms


async def once(claims: Claims, key: Text, function: Callable[..., Any], *,
               codec: 'Codec[Any]' = BYTES, encode: Optional[Callable[[Any], Text]] = None,
               decode: Optional[Callable[[bytes], Any]] = None, thread: bool = False,
               owner: Text = b'', claim_id: Optional[bytes] = None,
               payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
               lease: Optional[Duration] = None, wait: Optional[Duration] = None,
               first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
               first_sent_unix_ms: Ms = None, remote_owner: bool = False,
               keep_lease: bool = True, work_max: Duration = WORK_MAX,
               without_key: bool = False, on_unkept: str = 'raise') -> 'Once[Any]':
    """As Claims.once(), of a function whose result may be awaited. `thread`: of a function that
    blocks; it runs on the loop's default executor. A task that is cancelled then waits for the
    thread, since its work cannot be stopped: it is written down as done, and CancelledError goes on
    after that."""
    request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                       fingerprint=fingerprint, lease=lease,
                       wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                       first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                       without_key=without_key)
    refuse_lazy(function, 'once', may_await=not flag('thread', thread))
    with_work = wants_work(function, 'once')
    kept_by = codec_with(codec, encode, decode)
    raises = one_of('on_unkept', on_unkept, ON_UNKEPT)
    kept, watch = claims._keeping(request, keep_lease, work_max), claims._watch(key)
    held = await _begin(claims, request, kept)
    try:
        ending, outcome = Ending(kept_by), c.OnceOutcome()
        await _work(held, ending, function, with_work, thread)
        error = await _finish(claims.engine, held, ending, outcome)
        made = once_of(key, ending, outcome, error)
    finally:
        held.abandon()
    if not ending.ran:
        watch.ended(made.answer)
    return unless_unkept(made, bool(raises))


async def _begin(claims: Claims, request: c.Request, kept: Kept) -> Run:
    """A run, after a wait."""
    bell = Notifier.here()
    with bell as fd:
        wait = await _wait(claims, request, bell, fd)
        try:
            return Run.once(claims, wait, kept)
        finally:
            wait.abandon()  # it does nothing once the run has it


async def consume_once(claims: Claims, message_id: Text, handler: Callable[..., Any], *,
                       thread: bool = False, owner: Text = b'', claim_id: Optional[bytes] = None,
                       payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
                       lease: Optional[Duration] = None, wait: Optional[Duration] = None,
                       first_sent: Optional[datetime] = None, lease_ms: Ms = None,
                       wait_ms: Ms = None, first_sent_unix_ms: Ms = None,
                       remote_owner: bool = False,
                       keep_lease: bool = True, work_max: Duration = WORK_MAX,
                       without_key: bool = False) -> Consumed:
    """As Claims.consume_once(), of a handler whose result may be awaited. `thread`: as in
    once()."""
    request = _request(message_id, owner=owner, claim_id=claim_id, payload=payload,
                       fingerprint=fingerprint, lease=lease,
                       wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                       first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                       without_key=without_key)
    refuse_lazy(handler, 'consume_once', may_await=not flag('thread', thread))
    with_work = wants_work(handler, 'consume_once')
    kept, watch = claims._keeping(request, keep_lease, work_max), claims._watch(message_id)
    run = await off_loop(claims.engine, Run.message, claims, request, kept)
    try:
        ending, consumed = Ending(NOTHING, verdict_of), c.Consumed()
        await _work(run, ending, handler, with_work, thread)
        error = await _finish(claims.engine, run, ending, consumed)
        made = consumed_of(ending, consumed, error)
    finally:
        run.abandon()
    if not ending.ran:
        watch.ended(made.answer)
    return made


class hold:
    """As Claims.hold(): `async with aio.hold(orders, 'order-1', wait=5) as work: ..`. A block that
    is cancelled has ended as the namespace's on_exception says. For one block."""

    def __init__(self, claims: Claims, key: Text, *, owner: Text = b'',
                 claim_id: Optional[bytes] = None,
                 payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
                 lease: Optional[Duration] = None, wait: Optional[Duration] = None,
                 first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
                 first_sent_unix_ms: Ms = None, remote_owner: bool = False,
                 keep_lease: bool = True, work_max: Duration = WORK_MAX) -> None:
        self._claims, self._key = claims, key
        self._request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                                 fingerprint=fingerprint, lease=lease,
                                 wait=wait, first_sent=first_sent, lease_ms=lease_ms,
                                 wait_ms=wait_ms,
                                 first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner)
        self._keeps = flag('keep_lease', keep_lease), work_max_ms(work_max) / 1000
        self._entered = False
        self._holding: Optional[Holding] = None

    async def __aenter__(self) -> Holding:
        if self._entered:
            raise SemelError(Code.NOT_OWNER, f'the block of {self._key!r} was entered before: each '
                                             'asks with a hold() of its own')
        self._entered = True
        kept = self._claims._keeping(self._request, bool(self._keeps[0]), self._keeps[1])
        watch = self._claims._watch(self._key)
        try:
            holding = await self._hold(kept)
        except NoResult as none:
            watch.ended(none.outcome.answer)
            raise
        self._holding = holding.__enter__()
        return holding

    async def _hold(self, kept: Kept) -> Holding:
        run = await _begin(self._claims, self._request, kept)
        try:
            return self._claims._holding(self._key, run)
        except BaseException:
            run.give_up()
            raise

    async def __aexit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        holding = self._holding
        assert holding is not None
        if isinstance(raised, GeneratorExit):  # nothing can be awaited any more
            holding.__exit__(kind, raised, trace)
            return
        await off_loop(self._claims.engine, holding.__exit__, kind, raised, trace)

    def __reduce__(self) -> Any:
        raise TypeError('a hold cannot be copied or pickled: the work is done once')


async def step(steps: Steps, name: Text, function: Callable[[], Any], *,
               codec: 'Codec[Any]' = JSON) -> Any:
    """As Steps.run(), of a function whose result may be awaited."""
    engine = steps._engine
    refuse_lazy(function, 'step', may_await=True)
    check_takes_nothing(function, 'step')
    memo = await off_loop(engine, steps.recall, name)
    if memo is None:
        made = function()
        if inspect.isawaitable(made):
            made = await made
        memo = raw(codec.encode(finished(made)))
        await off_loop(engine, steps.remember, name, memo)
    return steps._read(name, memo, codec)


async def debounce(guard: Debounce, key: Text, function: Callable[[], Any]) -> Debounced:
    """As Debounce.run(), of a function whose result may be awaited. One that is cancelled has
    failed: the run that others were promised comes before the cancellation goes on."""
    engine = guard.claims.engine
    refuse_lazy(function, 'debounce', may_await=True)
    check_takes_nothing(function, 'debounce')
    turn: Turn = await off_loop(engine, Turn, guard, key)
    try:
        while turn.starts():
            try:
                ok = function()
                if inspect.isawaitable(ok):
                    ok = await ok
                end = functools.partial(turn.ended, said(ok))
            except GeneratorExit as raised:
                turn.threw(raised)  # nothing can be awaited any more
                continue
            except BaseException as raised:
                end = functools.partial(turn.threw, raised)
            try:
                await off_loop(engine, end)
            except asyncio.CancelledError as cancelled:
                turn.note(cancelled)  # it has ended all the same, and may have to run again
    finally:
        turn.leave()
    return turn.result()


class trailing_debounce(TrailingOf):
    """As semel.TrailingDebounce, of functions whose result may be awaited. One that is cancelled
    has failed: its payload comes again."""

    async def call(self, key: Text, payload: Text) -> TrailingCall:
        made: TrailingCall = await off_loop(self.claims.engine, self._call, key, payload)
        return made

    async def run(self, key: Text, function: Callable[[bytes], Any]) -> TrailingRun:
        engine = self.claims.engine
        refuse_lazy(function, 'trailing_debounce.run', may_await=True)
        check_takes_one(function, 'trailing_debounce.run', 'the payload')
        turn: TrailingTurn = await off_loop(engine, TrailingTurn, self, key)
        if turn.payload is None:
            return turn.result
        try:
            ok = function(turn.payload)
            if inspect.isawaitable(ok):
                ok = await ok
            end = functools.partial(turn.ended, said(ok))
        except GeneratorExit:  # nothing can be awaited any more
            turn.leave()
            raise
        except BaseException:
            await off_loop(engine, turn.leave)
            raise
        ran: TrailingRun = await off_loop(engine, end)
        return ran

    async def debounces(self, count: int = 100) -> List[TrailingView]:
        found: List[TrailingView] = await off_loop(self.claims.engine, self._debounces, count)
        return found


async def check(guard: ReplayGuard, *, caller: Text, timestamp_unix_ms: int, nonce: Text,
                signature: str, parameters: Parameters = ()) -> Replayed:
    """As ReplayGuard.check()."""
    verdict: Replayed = await off_loop(
        guard._claims.engine, functools.partial(
            guard.check, caller=caller, timestamp_unix_ms=timestamp_unix_ms, nonce=nonce,
            signature=signature, parameters=parameters))
    return verdict


async def _work(run: Run, ending: Ending, function: Callable[..., Any], with_work: bool,
                thread: bool) -> None:
    if run.work is None:
        return
    if thread:
        return await _work_in_thread(run.work, ending, function, with_work)
    try:
        result = invoke(function, with_work, run.work)
        if inspect.isawaitable(result):
            result = await result
    except BaseException as raised:  # it goes on when it is written down
        ending.threw(raised)
    else:
        ending.returned(result)


async def _work_in_thread(work: Work, ending: Ending, function: Callable[..., Any],
                          with_work: bool) -> None:
    context = contextvars.copy_context()
    call = asyncio.get_running_loop().run_in_executor(
        None, caught, context.run, invoke, function, with_work, work)
    cancelled = await ended(call)
    result, raised = call.result()
    if raised is not None:
        ending.threw(raised)
    else:
        ending.returned(result)
    if cancelled is not None:
        ending.raised = cancelled  # after the work is written down


async def _finish(engine: Engine, run: Run, ending: Ending, outcome: Any) -> Any:
    if isinstance(ending.raised, GeneratorExit):  # nothing can be awaited any more
        return run.finish(ending, outcome)
    return await off_loop(engine, run.finish, ending, outcome)


def idempotent(claims: Claims, key: Union[str, KeyOf, None] = None, *,
               operation: Optional[str] = None, payload: Payload = ARGUMENTS,
               ignore: Sequence[str] = (),
               scope: Optional[Callable[..., Mapping[str, str]]] = None,
               codec: 'Optional[Codec[Any]]' = None,
               encode: Optional[Callable[[Any], Text]] = None,
               decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
               lease: Optional[Duration] = None,
               wait: Optional[Duration] = None, lease_ms: Ms = None, wait_ms: Ms = None,
               remote_owner: bool = False, keep_lease: bool = True,
               work_max: Duration = WORK_MAX) -> Callable[[F], F]:
    """As semel.idempotent, for coroutine functions."""

    def decorate(function: F) -> F:
        refuse_lazy(function, 'idempotent', may_await=True)
        plan = Plan(function, key, operation=operation, payload=payload, ignore=ignore, scope=scope,
                    claims=claims)
        kept_by = codec or codec_of_result(function)

        @functools.wraps(function)
        async def call(*arguments: Any, **named: Any) -> Any:
            name, fingerprint = plan.of(arguments, named)
            outcome = await once(
                claims, name, lambda: function(*arguments, **named), codec=kept_by, encode=encode,
                decode=decode, owner=owner, fingerprint=fingerprint, lease=lease, wait=wait,
                lease_ms=lease_ms, wait_ms=wait_ms, remote_owner=remote_owner,
                keep_lease=keep_lease, work_max=work_max)
            return outcome.require()

        return cast(F, call)

    return decorate


guarded = idempotent


class _OneHold(OneHold):
    """`async with` takes it and waits up to `wait`, else raises NotTaken; or take() and give()."""

    async def take(self, wait_ms: Optional[int] = None) -> bool:
        """False: others have it. A task that is cancelled holds none."""
        watch, longest = self._claims._watch(self._name), self._longest(wait_ms)
        turn = self._turn() if longest else None
        try:
            taken = await self._ask(turn)
            for pause in () if taken else self._pauses(longest):
                await asyncio.sleep(pause)
                if await self._ask(turn):
                    return True
            if turn is not None and not taken:
                taken = await self._ask(turn._replace(more=False))
        except GeneratorExit:  # nothing can be awaited any more
            self._leave(turn)
            raise
        except BaseException:
            await off_loop(self._claims.engine, self._leave, turn)
            raise
        return taken or refused_of(watch)

    async def _ask(self, turn: Optional[Waiting]) -> bool:
        made: List[bytes] = []
        try:
            return bool(await off_loop(self._claims.engine, self._take_now, made, turn))
        except asyncio.CancelledError:
            if made:  # it was granted meanwhile; what another task took by this is its own
                with contextlib.suppress(LeaseLost):
                    await off_loop(self._claims.engine, self._give_now, made)
            raise

    async def give(self) -> bool:
        return bool(await off_loop(self._claims.engine, self._give_now))

    async def renew(self) -> bool:
        return bool(await off_loop(self._claims.engine, self._renew_now))

    async def __aenter__(self) -> Any:
        if not await self.take():
            raise self._refused()
        return self

    async def __aexit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        """Raises LeaseLost, unless the block raises, which is the news."""
        if not self._claims.engine.is_here:
            return
        try:
            await self.give()
        except LeaseLost:
            if raised is None:
                raise


class permit(PermitOf, _OneHold):
    """`async with` takes one of so many permits as Claims.permit() and waits up to `wait`, else
    raises NotTaken; or take() and give()."""

    def __init__(self, claims: Claims, key: Text, permits: int, *, owner: Text = b'',
                 wait: Optional[Duration] = None, lease: Optional[Duration] = None,
                 wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
                 work_max: Duration = WORK_MAX) -> None:
        super().__init__(claims, key, permits, span('wait', wait_ms, wait, least=0), owner,
                         span('lease', lease_ms, lease), keep_lease, work_max)


class _Access(AccessOf, _OneHold):
    _wants = READ

    def __init__(self, claims: Claims, key: Text, *, owner: Text = b'',
                 wait: Optional[Duration] = None, lease: Optional[Duration] = None,
                 wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
                 work_max: Duration = WORK_MAX) -> None:
        super().__init__(claims, key, self._wants, span('wait', wait_ms, wait, least=0), owner,
                         span('lease', lease_ms, lease), keep_lease, work_max)


class read_lock(_Access):
    """`async with` is in as one of the readers of a read/write lock as Claims.read_lock(), or
    take() and give()."""


class write_lock(_Access):
    """`async with` is in as the only writer as Claims.write_lock(), or take() and give()."""

    _wants = WRITE


class lock_all(LocksOf):
    """`async with` takes the locks of all keys, or none, as Claims.lock_all() and waits up to
    `wait`, else raises NotTaken; or take() and give()."""

    def __init__(self, claims: Claims, keys: Sequence[Text], *, owner: Text = b'',
                 wait: Optional[Duration] = None, lease: Optional[Duration] = None,
                 wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
                 work_max: Duration = WORK_MAX) -> None:
        super().__init__(claims, keys, span('wait', wait_ms, wait, least=0), owner,
                         span('lease', lease_ms, lease), keep_lease, work_max)
        self._engine = claims.engine

    async def take(self, wait_ms: Optional[int] = None) -> bool:
        """False: another has one of them, and this task none. A task that is cancelled holds
        none."""
        began = time.monotonic()
        taken = await self._ask()
        for pause in () if taken else self._pauses(self._longest(wait_ms)):
            await asyncio.sleep(pause)
            if await self._ask():
                return True
        return taken or refused_of(self._claims._watch(self._obstacle, began))

    async def _ask(self) -> bool:
        made: List[Taken] = []
        try:
            return bool(await off_loop(self._engine, self._take_now, made))
        except asyncio.CancelledError:
            if made:  # they were granted meanwhile; what another task took by this is its own
                with contextlib.suppress(LeaseLost):
                    await off_loop(self._engine, self._give_now, made)
            raise

    async def give(self) -> bool:
        return bool(await off_loop(self._engine, self._give_now))

    async def __aenter__(self) -> 'lock_all':
        if not await self.take():
            raise self._refused()
        return self

    async def __aexit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        """Raises LeaseLost, unless the block raises, which is the news."""
        if not self._engine.is_here:
            return
        try:
            await self.give()
        except LeaseLost:
            if raised is None:
                raise


class lock(LockOf):
    """`async with` takes the lock of Claims.lock() and waits up to `wait`, else raises NotTaken; or
    take() and give(). A task that takes it is its owner, may take it once more, and gives it back;
    other tasks that take it by the same object wait."""

    def __init__(self, claims: Claims, key: Text, *, owner: Text = b'',
                 wait: Optional[Duration] = None, lease: Optional[Duration] = None,
                 wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
                 work_max: Duration = WORK_MAX) -> None:
        super().__init__(claims, key, span('wait', wait_ms, wait, least=0), owner,
                         span('lease', lease_ms, lease), keep_lease, work_max)
        self._engine = claims.engine

    def _me(self) -> Any:
        return asyncio.current_task()

    def _is_gone(self, owner: Any) -> bool:
        return owner is None or bool(owner.done())

    async def take(self, wait_ms: Optional[int] = None) -> bool:
        watch = self._claims._watch(self._name)
        longest = self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)
        mine, deadline = self._mine(), Deadline(longest)
        taken = await self._ask(mine, longest, deadline)
        while taken is None and longest != 0:
            longest = deadline.left_ms
            taken = await self._ask(mine, longest, deadline)
        return bool(taken) or refused_of(watch)

    async def _ask(self, mine: Acquisition, wait_ms: int, deadline: Deadline) -> Optional[bool]:
        if mine.depth:
            return bool(await off_loop(self._engine, mine.take_once_more))
        bell = Notifier.here()
        with bell as fd:
            wait = await off_loop(self._engine, mine.begin, wait_ms, fd)
            try:
                await bell.answered(self._engine, wait, wait_ms)
                return mine.end(wait, deadline)
            except asyncio.CancelledError:
                await off_loop(self._engine, wait.abandon)
                raise
            finally:
                wait.abandon()

    async def give(self) -> bool:
        """As Lock.give(), of a task."""
        mine = self._given()
        return mine is not None and self._was_held(await off_loop(self._engine, mine.give))

    async def renew(self) -> bool:
        return bool(await off_loop(self._engine, self._renew_of, self.token))

    async def __aenter__(self) -> 'lock':
        if not await self.take():
            raise self._refused()
        return self

    async def __aexit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        """Raises LeaseLost, unless the block raises, which is the news."""
        if not self._engine.is_here:
            return
        try:
            await self.give()
        except LeaseLost:
            if raised is None:
                raise
