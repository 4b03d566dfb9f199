"""Not again so soon: a click that comes twice, a webhook that rings, a rebuild that is asked for a
hundred times.

Protocol of run_once_more_after
  caller during a run   1. writes the mark, which gives it a new version   2. claims: in flight
  runner at the end     1. releases the claim   2. compares the mark with the version that it read
                        when it began, and runs again if it differs
At least one of them sees the other's first step, so no call that was answered WILL_RUN_AGAIN is
lost.
"""

import enum
from ctypes import byref
from typing import Any, Callable, Optional

from . import _library as c
from ._claims import Claims
from ._errors import Closed, Code, InvalidType, SemelError
from ._functions import check_takes_nothing
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._lazy import finished, refuse_lazy
from ._library import Text, library
from ._numbers import Duration, flag, span
from ._requests import _owner_call
from ._types import Answer, OwnerAnswer, State

_MARK_MS = 86_400_000  # longer than a run takes
# The interpreter is to end, or what runs is a coroutine that can await no more.
_NOTHING_MORE = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Debounced(enum.Enum):
    RAN = 'ran'
    SUPPRESSED = 'suppressed'  # it ran, or runs, within the interval
    WILL_RUN_AGAIN = 'will run again'  # it runs, and will be run once more when it ends
    FAILED = 'failed'  # it ran, and returned False


class Debounce:
    """Runs a function at most once in an interval, which is counted from the beginning of a run.
    `claims` should have the policy 'debounce'; nothing else uses its keys. Thread-safe.

    remove_on_finish, remove_on_error: the next may run as soon as this one has ended well, or has
    failed. run_once_more_after: a call during a run is not lost: there is one more run after it,
    for all such calls; runs then do not wait for the interval. What lasts longer than the interval
    is not joined by another run, for `work_max` in total, unless keep_lease is False."""

    def __init__(self, claims: Claims, *, interval: Duration = 45, remove_on_finish: bool = False,
                 remove_on_error: bool = False, run_once_more_after: bool = False,
                 keep_lease: bool = True, work_max: Duration = WORK_MAX) -> None:
        self.claims = claims
        self._interval_ms = span('interval', None, interval)
        self._on_finish = flag('remove_on_finish', remove_on_finish)
        self._on_error = flag('remove_on_error', remove_on_error)
        self._more = flag('run_once_more_after', run_once_more_after)
        self._keeps = flag('keep_lease', keep_lease)
        self._work_max = work_max_ms(work_max) / 1000
        if self._keeps:
            check_can_keep(claims, self._interval_ms)

    def run(self, key: Text, function: Callable[[], Any]) -> Debounced:
        """A function that returns None or True has run, one that returns False has failed, and any
        other answer is an error, as what it raises is. One that raises has failed; with
        run_once_more_after it is run once more for the calls that were promised it, and the first
        exception goes on after that; KeyboardInterrupt and SystemExit go on at once. Raises
        SemelError where nothing could be asked (Full ..)."""
        refuse_lazy(function, 'Debounce.run')
        check_takes_nothing(function, 'Debounce.run')
        answer: Debounced = self.claims.engine._call(self._run, key, function)
        return answer

    def _run(self, key: Text, function: Callable[[], Any]) -> Debounced:
        turn = Turn(self, key)
        try:
            while turn.starts():
                try:
                    ok = said(function())
                except BaseException as raised:
                    turn.threw(raised)
                else:
                    turn.ended(ok)
        finally:
            turn.leave()
        return turn.result()

    def remaining_ms(self, key: Text) -> int:
        """How long until it may run again; 0: now."""
        view = self.claims.get(key)
        return view.lease_remaining_ms if view.state is State.HELD else 0


def said(answer: Any) -> bool:
    """Whether a function says that it has run. What is neither yes nor no is not taken for one."""
    if answer is None or answer is True or answer is False:
        return answer is not False
    finished(answer)
    raise InvalidType(Code.BAD_OPTION,
                      f'a debounced function returns None, True or False, not {answer!r:.80}')


class Turn:
    """One call: the claim, and whether other calls came meanwhile."""

    runs = False  # it is granted, and the function is to be called, or runs

    def __init__(self, debounce: Debounce, key: Text) -> None:
        self._of, self._key = debounce, key_bytes(key)
        self._engine = debounce.claims.engine
        self._mark = b'asked/' + debounce.claims.name.encode() + b':' + self._key
        self._seen = 0
        self._epoch = 0
        self._keeper: Optional[Keeper] = None
        self._raised: Optional[BaseException] = None
        self._answer: Optional[Debounced] = None
        self._has_begun = False
        self._is_left = False
        if debounce._more:
            self._engine.set(self._mark, b'1', ttl_ms=max(_MARK_MS, debounce._interval_ms))
        self._ask()

    def _ask(self) -> None:
        claim = self._of.claims.claim(self._key, lease_ms=self._of._interval_ms)
        if claim.answer is Answer.GRANTED:
            self._epoch, self._has_begun, self.runs = claim.epoch, False, True
            try:
                self._begin()
            except BaseException:
                self.runs = False
                self._release()
                raise
            if self._is_left:  # the caller has gone while this was asked for it
                self.give_up()
            return
        if self._answer is not None:
            return  # another run serves the callers of this one
        if claim.answer is not Answer.IN_FLIGHT:
            claim.require()
            raise SemelError(claim.error.code if claim.error else 0, claim.answer.name)
        self._answer = Debounced.WILL_RUN_AGAIN if self._of._more else Debounced.SUPPRESSED

    def _begin(self) -> None:
        if self._of._more:
            found = self._engine.get_versioned(self._mark)
            self._seen = 0 if found is None else found.version
        if self._of._keeps:
            self._keeper = self._of.claims.keep(self._key, self._epoch,
                                                lease_ms=self._of._interval_ms,
                                                work_max=self._of._work_max)

    def starts(self) -> bool:
        """Whether the function is to be called now."""
        self._has_begun = self.runs
        return self.runs

    def ended(self, ok: bool) -> None:
        self._stop()
        self._answer = Debounced.RAN if ok else Debounced.FAILED
        if not (self._of._more or (self._of._on_finish if ok else self._of._on_error)):
            return
        # Another answer than OK: the run took longer than its interval. If another has begun, it
        # serves all earlier callers. If there is none (UNKNOWN), callers still wait for this one.
        if self._release() not in (OwnerAnswer.OK, OwnerAnswer.UNKNOWN) or not self._of._more:
            return
        # The mark of the others stays where nothing can run for them.
        if not isinstance(self._raised, _NOTHING_MORE) and self._others_asked():
            self._ask()

    def threw(self, raised: BaseException) -> None:
        self.note(raised)
        self.ended(False)

    def note(self, raised: BaseException) -> None:
        """What goes on when nothing runs any more."""
        if self._raised is None or isinstance(raised, _NOTHING_MORE):
            self._raised = raised

    def give_up(self) -> None:
        """Before the function was called: as if there had been no call."""
        if self.runs:
            self._stop()
            self._release()

    def leave(self) -> None:
        """Whatever has gone wrong: nothing is kept beyond its interval, and a claim for which the
        function was not called is given back."""
        self._is_left = True
        if self.runs and not self._has_begun:
            self.give_up()
        self._stop()

    def __del__(self) -> None:
        """A coroutine that was closed while a thread asked for it never gets its turn."""
        if self.runs:
            try:
                self.leave()
            except SemelError:
                pass  # it ends with its engine, or with its interval

    def result(self) -> Debounced:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        assert self._answer is not None
        return self._answer

    def _stop(self) -> None:
        self.runs = False
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _release(self) -> OwnerAnswer:
        outcome = c.OwnerOutcome(answer=OwnerAnswer.REFUSED)
        call = _owner_call(self._key, self._epoch)
        self._engine._end(library.release, self._of.claims._handle, byref(call), byref(outcome))
        library.buffer_free(byref(outcome.result))
        return OwnerAnswer(outcome.answer)

    def _others_asked(self) -> bool:
        """Ends the mark if it is still the one that the run began with."""
        try:
            found = self._engine.compare_and_set(self._mark, self._seen, b'1', ttl_ms=1)
        except Closed:  # nothing runs any more
            return False
        return not found.stored and found.current is not None
