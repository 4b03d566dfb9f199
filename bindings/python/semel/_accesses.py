"""Holds of read/write locks: many readers of a key, or one writer."""

import os
from ctypes import byref, c_uint64
from typing import TYPE_CHECKING, Optional, Tuple

from . import _library as c
from ._errors import NotTaken
from ._library import Text, library
from ._numbers import Duration
from ._one_hold import OneHold, Holder, Waiting

if TYPE_CHECKING:
    from ._claims import Claims

READ, WRITE = 1, 2
NEXT_MS = 1_000  # a waiter that dies stops the others for so long


class AccessOf(OneHold):
    """One hold at most, of whichever thread or task: readers have an object each."""

    def __init__(self, claims: 'Claims', key: Text, access: int, wait_ms: int, owner: Text,
                 lease_ms: int, keep_lease: bool, work_max: Duration) -> None:
        super().__init__(claims, key, wait_ms, owner, lease_ms, keep_lease, work_max)
        self._access = access
        self._what = 'write lock' if access == WRITE else 'read lock'

    def _ask_once(self, request: c.Request, turn: Optional[Waiting], outcome: c.ClaimOutcome,
                  key: c.Buffer) -> Tuple[int, int]:
        token = c_uint64()
        next_ms = NEXT_MS if turn is not None and turn.more else 0
        code = self._claims.engine._call(library.rwlock, self._claims._handle, byref(request),
                                         self._access, next_ms, byref(outcome), byref(token),
                                         byref(key))
        return code, token.value

    @property
    def token(self) -> Optional[int]:
        """The fencing token while it is held and its lease runs, else None. That of a reader is at
        least that of every writer before it, and smaller than that of every writer after it."""
        token = self._number
        return token if self._is_live else None

    def _refused(self) -> NotTaken:
        return NotTaken(f'others are in, or in front, at the {self._what} of {self._name!r}')

    def _turn(self) -> Optional[Waiting]:
        return Waiting(os.urandom(16), True)


class Access(AccessOf, Holder):
    """A hold of a read/write lock, as a reader or the writer: `with` takes it, or take() and
    give(). take() is False while others are in whom it excludes, or wait in front."""
