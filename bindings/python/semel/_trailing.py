"""After the last call, once: an index that is rebuilt when the edits have ended, a mail about all
changes, a form that is saved when its user has stopped typing."""

import ctypes
import enum
from contextlib import suppress
from ctypes import byref, c_size_t
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

from . import _library as c
from ._claims import Claims
from ._debounce import said
from ._errors import Code, Full, LeaseLost, SemelError, last_error
from ._functions import check_takes_one
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._lazy import refuse_lazy
from ._library import Text, library, raw
from ._numbers import Duration, flag, number, span
from ._requests import _request
from ._types import Answer, Claim, OwnerAnswer

_DONE, _AGAIN = 1, 2


class TrailingState(enum.IntEnum):
    IDLE = 1  # nothing is stored
    QUIET = 2  # the time of the run has not come
    DUE = 3  # it has
    RUNNING = 4  # a run has the payload, or stands in its way


class TrailingAnswer(enum.Enum):
    IDLE = 'idle'  # nothing is stored
    QUIET = 'quiet'  # it is not due
    RUNNING = 'running'  # another runs it
    RAN = 'ran'
    FAILED = 'failed'  # it ran, and returned False: it comes again after a quiet time


@dataclass(frozen=True)
class TrailingCall:
    due_in_ms: int  # until the run, if no other call comes
    replaced: bool  # a payload that no run has taken


@dataclass(frozen=True)
class TrailingRun:
    """What became of a try to run. It is neither true nor false by itself: ask `answer`."""

    answer: TrailingAnswer
    due_in_ms: int = 0  # QUIET: until the run

    def __bool__(self) -> bool:
        raise TypeError('a TrailingRun is no answer by itself: ask its `answer`')


@dataclass(frozen=True)
class TrailingView:
    key: bytes
    state: TrailingState
    due_in_ms: int  # QUIET: until the run


class TrailingOf:
    """The terms of calls and of runs."""

    def __init__(self, claims: Claims, *, quiet: Duration, max_wait: Optional[Duration] = None,
                 keep: Optional[Duration] = None, lease: Optional[Duration] = None,
                 keep_lease: bool = True, work_max: Duration = WORK_MAX) -> None:
        self.claims = claims
        self._terms = c.DebounceTerms(quiet_ms=span('quiet', None, quiet),
                                      max_wait_ms=span('max_wait', None, max_wait),
                                      keep_ms=span('keep', None, keep))
        self._lease_ms = span('lease', None, lease)
        total = work_max_ms(work_max) / 1000
        self._kept = (self._lease_ms, total) if flag('keep_lease', keep_lease) else None

    def _call(self, key: Text, payload: Text) -> TrailingCall:
        name, data, made = key_bytes(key), raw(payload), c.DebounceCall()
        self.claims.engine._do(library.debounce, self.claims._handle, name, len(name), data,
                               len(data), byref(self._terms), byref(made))
        return TrailingCall(made.due_in_ms, bool(made.replaced))

    def _debounces(self, count: int) -> List[TrailingView]:
        wanted, found = number('debounces.count', count), c_size_t()
        views = (c.DebounceView * wanted)(*(c.DebounceView() for _ in range(wanted)))
        try:
            self.claims.engine._do(library.debounces, self.claims._handle, views, wanted,
                                   byref(found))
            return [TrailingView(_copy(one.key), TrailingState(one.state), one.due_in_ms)
                    for one in views[:found.value]]
        finally:
            for one in views:
                library.buffer_free(byref(one.key))


def _copy(buffer: c.Buffer) -> bytes:
    """What it holds, which stays for whom a signal interrupts."""
    return ctypes.string_at(buffer.data, buffer.length) if buffer.data else b''


class TrailingTurn:
    """One try to run: from the question to the end of the run, if it gets one."""

    payload: Optional[bytes] = None  # of the run; None: there is none
    _epoch = 0

    def __init__(self, of: TrailingOf, key: Text) -> None:
        self._of, self._key, self._claims = of, key_bytes(key), of.claims
        self._keeper: Optional[Keeper] = None
        self._run_key = b''
        if of._kept is not None:
            check_can_keep(of.claims, of._lease_ms)
        turn, outcome = c.DebounceTurn(), c.ClaimOutcome()
        request = _request(self._key, lease_ms=of._lease_ms or None)
        try:
            code = self._claims.engine._call(library.debounce_run, self._claims._handle,
                                             byref(request), byref(turn), byref(outcome))
            if code != Code.OK:
                raise last_error(code)
            self._begin(turn, Claim._of(outcome))
        except BaseException:  # KeyboardInterrupt, too: others may run it at once
            self._epoch = turn.epoch
            with suppress(SemelError):
                self._run_key = _copy(turn.key)
                self.give_up()
            raise
        finally:
            library.buffer_free(byref(turn.payload))
            library.buffer_free(byref(turn.key))

    def _begin(self, turn: Any, claim: Claim) -> None:
        answers = {TrailingState.IDLE: TrailingAnswer.IDLE,
                   TrailingState.QUIET: TrailingAnswer.QUIET}
        self.result = TrailingRun(answers.get(turn.state, TrailingAnswer.RUNNING), turn.due_in_ms)
        if turn.state != TrailingState.RUNNING:
            return
        if claim.answer is Answer.UNPROTECTED:  # to run so would not be alone
            raise Full(Code.MEMORY_FULL)
        if not turn.epoch:
            if claim.answer is not Answer.IN_FLIGHT:
                claim.require()
            return
        self._run_key, payload = _copy(turn.key), _copy(turn.payload)
        if self._of._kept is not None:
            self._keeper = Keeper(self._claims, self._run_key, turn.epoch, *self._of._kept)
        self._epoch, self.payload = turn.epoch, payload

    def _stop_keeping(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def ended(self, ok: bool) -> TrailingRun:
        """Raises LeaseLost if another may have run it as well."""
        self._stop_keeping()
        outcome = c.OwnerOutcome()
        code = self._claims.engine._end(
            library.debounce_end, self._claims._handle, self._key, len(self._key), self._epoch,
            _DONE if ok else _AGAIN, byref(outcome))
        self._epoch = 0  # a signal before it ends the run once more, which changes nothing
        if code != Code.OK:
            raise last_error(code)
        library.buffer_free(byref(outcome.result))
        if outcome.answer != OwnerAnswer.OK or outcome.late:
            raise LeaseLost(Code.NOT_OWNER, f'the run of {self._key!r} was lost before it ended')
        return TrailingRun(TrailingAnswer.RAN if ok else TrailingAnswer.FAILED)

    def leave(self) -> None:
        """The function has raised, which is the news: the payload comes again."""
        if self._epoch:
            with suppress(SemelError):  # with the end of its lease
                self.ended(False)

    def give_up(self) -> None:
        """Before the function was called: another may run it at once."""
        self._stop_keeping()
        epoch, self._epoch = self._epoch, 0
        if epoch:
            self._claims.release(self._run_key, epoch)

    def __del__(self) -> None:
        """A coroutine that was closed while a thread asked for it never gets its turn."""
        with suppress(SemelError):
            if self._epoch:
                self.give_up()


class TrailingDebounce(TrailingOf):
    """One run when the calls have ended, with the latest payload: `quiet` after the last call, at
    the latest `max_wait` (a minute, or `quiet` if that is longer) after the first. A payload that
    no run takes within `keep`, a day, is forgotten. `claims` should have the policy 'debounce' or
    'lock'; nothing else uses its keys. `lease`: of a run, by default the policy's; it is renewed
    for `work_max` in total, unless keep_lease is False. Thread-safe."""

    def call(self, key: Text, payload: Text) -> TrailingCall:
        """Stores the payload in place of the one before, and moves the time of the run. Raises
        SemelError for terms out of range, WrongKind where the key holds something else, Full where
        memory is full: nothing was changed."""
        return self._call(key, payload)

    def run(self, key: Text, function: Callable[[bytes], Any]) -> TrailingRun:
        """Runs function(payload) if it is due and no other runs it. It returns None or True, or
        False if it has failed; any other answer is an error. One that failed, or raises, comes
        again after a quiet time, unless a call has replaced the payload. What it raises goes on.
        Raises LeaseLost if it ran, but the lease was lost before, and other errors where nothing
        could be asked (Full ..), or where the end of a run could not be written: it comes again
        when its lease is over."""
        refuse_lazy(function, 'TrailingDebounce.run')
        check_takes_one(function, 'TrailingDebounce.run', 'the payload')
        ran: TrailingRun = self.claims.engine._call(self._run, key, function)
        return ran

    def _run(self, key: Text, function: Callable[[bytes], Any]) -> TrailingRun:
        turn = TrailingTurn(self, key)
        try:
            if turn.payload is None:
                return turn.result
            return turn.ended(said(function(turn.payload)))
        finally:
            turn.leave()

    def debounces(self, count: int = 100) -> List[TrailingView]:
        """The keys of the namespace with a payload, at most so many, those that are due longest
        first. Looks at all records of the engine."""
        return self._debounces(count)
