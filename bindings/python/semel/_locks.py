"""Locks with a lease."""

import threading
import weakref
from ctypes import byref, c_int, c_uint64
from typing import TYPE_CHECKING, Any, Dict, Optional

from . import _library as c
from ._errors import Code, Forked, LeaseLost, NotHeld, NotTaken, StaleOwner, last_error
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, library, raw
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._types import Answer
from ._waits import Held, Wait

if TYPE_CHECKING:
    from ._claims import Claims


class Acquisition(Held):
    """One owner of a lock, who may take it more than once. For one thread or task."""

    _keeper: Optional[Keeper] = None  # a signal's handler may raise before it is made

    def __init__(self, lock: 'LockOf') -> None:
        super().__init__(lock._claims.engine, library.lock_close)
        self.depth = 0  # how often it was taken and not given
        self._own = 0  # of these the times that the library has not counted
        self._claims, self._key, self._lease_ms = lock._claims, lock._key, lock._lease_ms
        self._kept = lock._kept
        options = c.LockOptions(owner=lock._owner, owner_length=len(lock._owner),
                                lease_ms=lock._lease_ms)
        self._engine._call(self._start, library.lock_open, lock._claims._handle, lock._key,
                           len(lock._key), byref(options))

    def take_now(self) -> bool:
        token = c_uint64()
        try:
            self._do(library.lock_take, 0, byref(token))
            return token.value != 0 and self._taken()
        except BaseException:
            self._not_taken(token.value != 0)
            raise

    def take_once_more(self) -> bool:
        """Of a task, which the library cannot tell by its thread: it may run on any."""
        if not self._is_live():
            self.depth = self._own = 0
            self._stop_keeping()
            self._do(library.lock_give, byref(c_int()))  # the library forgets it as well
            raise StaleOwner(Code.NOT_OWNER, f'the lock {self._key!r} was lost while it was held')
        self.depth += 1
        self._own += 1
        return True

    def _is_live(self) -> bool:
        return self._claims._is_held(self._key, self.token())

    def begin(self, wait_ms: int, fd: int = -1) -> Wait:
        """A place in the line for it."""
        return Wait(self._engine, library.lock_begin, self._handle, wait_ms, fd=fd)

    def end(self, wait: Wait, deadline: Deadline) -> Optional[bool]:
        """Takes what the wait was answered. None: ask again while there is time. It was granted,
        but the caller has learnt it so late that the lease is over; the library may have asked
        again itself, once, and says then that another has it."""
        outcome = c.ClaimOutcome(answer=Answer.BUSY)
        try:
            code = wait.end(outcome)
            library.buffer_free(byref(outcome.owner))
            library.buffer_free(byref(outcome.result))
            if code != Code.OK:
                raise last_error(code)
            if outcome.answer != Answer.GRANTED:
                again = outcome.answer == Answer.IN_FLIGHT and self._engine._clock_runs
                return None if again else False
            if not self.depth and not self.token():
                self._do(library.lock_give, byref(c_int()))  # as if it had not been granted
                return None if deadline.asks_again() else False
            return self._taken()
        except BaseException:
            self._not_taken(outcome.answer == Answer.GRANTED)
            raise

    def _taken(self) -> bool:
        """It is this owner's, and its lease is renewed from now on."""
        self.depth += 1
        try:
            if self._kept is not None and self._keeper is None:
                self._keeper = Keeper(self._claims, self._key, self.token(), *self._kept)
        except BaseException:
            self.depth -= 1
            raise
        return True

    def _not_taken(self, granted: bool) -> None:
        """The caller gets an exception, so it does not have it."""
        if granted:
            self.depth += 1
            self.give()
        elif self.depth and not self.token():  # it was lost, and this call has found out
            self.depth = self._own = 0
            self._stop_keeping()

    def give(self) -> bool:
        """Gives it back, after as many calls as it was taken. False: it was lost before."""
        if self._own:
            self._own -= 1
            self.depth -= 1
            return self._is_live()
        self.depth = max(0, self.depth - 1)
        if self.depth == 0:
            self._stop_keeping()
        held = c_int()
        self._do(library.lock_give, byref(held))
        return bool(held)

    def token(self) -> int:
        """0: it is not held."""
        return int(self._engine._call(lambda: library.lock_token(self._handle)))

    def abandon(self) -> None:
        self._stop_keeping()
        super().abandon()

    def _stop_keeping(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _do(self, function: Any, *arguments: Any) -> None:
        self._engine._do(function, self._handle, *arguments)


class LockOf:
    """A lock whose owners are acquisitions: one for each thread, or each task."""

    def __init__(self, claims: 'Claims', key: Text, wait_ms: int, owner: Text, lease_ms: int,
                 keep_lease: bool, work_max: Duration) -> None:
        self._claims, self._key, self._owner = claims, key_bytes(key), raw(owner)
        self._name, self._wait_ms, self._lease_ms = key, wait_ms, lease_ms
        total = work_max_ms(work_max) / 1000
        self._kept = (lease_ms, total) if flag('keep_lease', keep_lease) else None
        self._owners: 'Dict[Acquisition, weakref.ref[Any]]' = {}
        self._closed = False

    def _me(self) -> Any:
        """The thread or task that calls."""
        raise NotImplementedError

    def _is_gone(self, owner: Any) -> bool:
        raise NotImplementedError

    def _found(self) -> Optional[Acquisition]:
        """That of this thread or task."""
        me = self._me()
        for one, owner in list(self._owners.items()):
            if owner() is me:
                return one
        return None

    def _left(self) -> Optional[Acquisition]:
        """What a thread or task that has ended still holds, such as that of a wait_for(): it is for
        any other to give back."""
        for one, owner in list(self._owners.items()):
            if one.depth and self._is_gone(owner()):
                return one
        return None

    def _check(self) -> None:
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)  # the owner is in the parent
        if self._closed and self._claims.engine._handle is not None:
            raise ValueError('the lock is closed')

    def _mine(self) -> Acquisition:
        self._check()
        mine = self._found()
        if mine is None:
            for one, owner in list(self._owners.items()):
                if not one.depth and self._is_gone(owner()):
                    self._owners.pop(one, None)  # another thread may have been faster
            mine = Acquisition(self)
            self._owners[mine] = weakref.ref(self._me())
        if self._kept is not None and mine.depth == 0:
            check_can_keep(self._claims, self._lease_ms)
        return mine

    def _given(self) -> Optional[Acquisition]:
        """What is to be given back; None: there is nothing. Raises NotHeld for what another has."""
        self._check()
        mine = self._found()
        if mine is None or not mine.depth:
            mine = self._left()
        if mine is not None:
            return mine
        if any(one.depth for one in list(self._owners)):
            raise NotHeld(Code.NOT_OWNER, f'the lock {self._name!r} was taken by another '
                                          'thread or task, which gives it back')
        return None

    @property
    def token(self) -> Optional[int]:
        """The fencing token while this thread or task has the lock and its lease runs, else
        None."""
        if not self._claims.engine.is_here:
            return None
        self._check()
        mine = self._found()
        if mine is None or not mine.depth:
            mine = self._left()
        return None if mine is None else mine.token() or None

    def _renew_of(self, token: Optional[int]) -> bool:
        return token is not None and self._claims.renew(
            self._key, token, lease_ms=self._lease_ms or None).ok

    def close(self) -> None:
        """Gives it back if it is held, whoever has it; nothing can be done with it then."""
        self._closed = True
        for one in list(self._owners):
            one.abandon()

    def __reduce__(self) -> Any:
        raise TypeError(f'the lock {self._name!r} cannot be copied or pickled: a copy would own '
                        'nothing')

    def _was_held(self, held: bool) -> bool:
        if not held:
            raise LeaseLost(Code.NOT_OWNER, f'the lock {self._name!r} was lost before it was given '
                                            'back')
        return True

    def _refused(self) -> NotTaken:
        return NotTaken(f'another has the lock {self._name!r}')


class Lock(LockOf):
    """A lock with a lease. A thread that takes it is its owner, may take it once more, and gives it
    back; other threads that take it by the same object wait, as those of other processes do."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._mine()

    def _me(self) -> Any:
        return threading.current_thread()

    def _is_gone(self, owner: Any) -> bool:
        return owner is None or not owner.is_alive()

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """Takes it, or takes it once more. False: another has it. A signal's handler that raises
        ends the wait, and what was granted in that moment is given back."""
        watch = self._claims._watch(self._name)
        longest = self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)
        return self._take(longest) or refused_of(watch)

    def _take(self, longest: int) -> bool:
        mine, deadline = self._mine(), Deadline(longest)
        while longest != 0:
            wait = mine.begin(longest)
            try:
                wait.sleep()
                taken = mine.end(wait, deadline)
            finally:
                wait.abandon()
            if taken is not None:
                return taken
            longest = deadline.left_ms
        return mine.take_now()

    def give(self) -> bool:
        """Gives it back, after as many calls as it was taken. False: this thread has not taken it.
        Raises LeaseLost if it was lost before, also to an owner that has come and gone, and NotHeld
        if another thread has it by this object."""
        mine = self._given()
        return mine is not None and self._was_held(mine.give())

    def renew(self) -> bool:
        return self._renew_of(self.token)

    def __enter__(self) -> 'Lock':
        if not self.take():
            raise self._refused()
        return self

    def __exit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        """Raises LeaseLost, unless the block raises, which is the news."""
        if not self._claims.engine.is_here:
            return
        try:
            self.give()
        except LeaseLost:
            if raised is None:
                raise
