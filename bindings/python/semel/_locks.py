"""Locks with a lease."""

from ctypes import byref, c_int, c_uint64
from typing import TYPE_CHECKING, Any, Optional

from . import _library as c
from ._errors import Code, NotTaken, last_error
from ._library import Text, library, raw
from ._numbers import number
from ._types import Answer
from ._waits import Held, Wait

if TYPE_CHECKING:
    from ._claims import Claims


class Lock(Held):
    """One owner of a lock with a lease. For one thread at a time."""

    def __init__(self, claims: 'Claims', key: Text, wait_ms: int, owner: Text, lease_ms: int,
                 keep_lease: bool) -> None:
        super().__init__(claims.engine, library.lock_close)
        self._claims, self._key = claims, key
        self._wait_ms, self._lease_ms = number('wait_ms', wait_ms), number('lease_ms', lease_ms)
        name, label = raw(key), raw(owner)
        options = c.LockOptions(owner=label, owner_length=len(label), lease_ms=self._lease_ms,
                                keep_lease=int(bool(keep_lease)))
        self._engine._call(self._start, library.lock_open, claims._handle, name, len(name),
                           byref(options))

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """Takes it, or takes it once more. False: another has it. A signal's handler that raises
        ends the wait, and what was granted in that moment is given back."""
        longest = self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)
        if longest == 0:
            return self._take_now()
        wait = self.begin(longest)
        try:
            wait.sleep()
            return self.end(wait)
        finally:
            wait.abandon()

    def _take_now(self) -> bool:
        token = c_uint64()
        try:
            self._do(library.lock_take, 0, byref(token))
            return token.value != 0
        except BaseException:
            if token.value != 0:
                self.give()
            raise

    def begin(self, wait_ms: int, fd: int = -1) -> Wait:
        """A place in the line for it. For semel.aio."""
        self._check()
        return Wait(self._engine, library.lock_begin, self._handle, wait_ms, fd=fd)

    def end(self, wait: Wait) -> bool:
        """Takes what the wait was answered."""
        outcome = c.ClaimOutcome(answer=Answer.BUSY)
        try:
            code = wait.end(outcome)
            library.buffer_free(byref(outcome.owner))
            library.buffer_free(byref(outcome.result))
            if code != Code.OK:
                raise last_error(code)
            return bool(outcome.answer == Answer.GRANTED)
        except BaseException:
            if outcome.answer == Answer.GRANTED:
                self.give()
            raise

    def give(self) -> bool:
        """Gives it back, after as many calls as it was taken. False: it was lost before."""
        held = c_int()
        self._do(library.lock_give, byref(held))
        return bool(held)

    @property
    def token(self) -> int:
        """The fencing token while this owner has the lock and its lease runs, else 0."""
        return int(self._engine._call(self._token))

    def _token(self) -> int:
        self._check()
        return int(library.lock_token(self._handle))

    def renew(self) -> bool:
        token = self.token
        return bool(token) and self._claims.renew(self._key, token, lease_ms=self._lease_ms).ok

    def close(self) -> None:
        """Gives it back if it is held; nothing can be done with it then."""
        self.abandon()

    def _check(self) -> None:
        if self._mark not in self._engine._owned and self._engine._handle is not None:
            raise ValueError('the lock is closed')

    def _do(self, function: Any, *arguments: Any) -> None:
        self._check()
        self._engine._do(function, self._handle, *arguments)

    def __enter__(self) -> 'Lock':
        if not self.take():
            raise NotTaken(f'another has the lock {self._key!r}')
        return self

    def __exit__(self, *_: Any) -> None:
        if self._engine.is_here:
            self.give()
