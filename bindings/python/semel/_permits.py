"""Permits of semaphores: at most so many holders of a key."""

from ctypes import byref, c_uint
from typing import TYPE_CHECKING, Optional, Tuple

from . import _library as c
from ._errors import NotTaken
from ._library import Text, library
from ._numbers import Duration, number
from ._one_hold import OneHold, Holder, Waiting

if TYPE_CHECKING:
    from ._claims import Claims


class PermitOf(OneHold):
    """One permit at most, of whichever thread or task: to hold several, have several."""

    _what = 'permit'

    def __init__(self, claims: 'Claims', key: Text, permits: int, wait_ms: int, owner: Text,
                 lease_ms: int, keep_lease: bool, work_max: Duration) -> None:
        super().__init__(claims, key, wait_ms, owner, lease_ms, keep_lease, work_max)
        self._permits = number('permits', permits)

    def _ask_once(self, request: c.Request, turn: Optional[Waiting], outcome: c.ClaimOutcome,
                  key: c.Buffer) -> Tuple[int, int]:
        slot = c_uint()
        code = self._claims.engine._call(library.permit, self._claims._handle, byref(request),
                                         self._permits, byref(outcome), byref(slot), byref(key))
        return code, slot.value

    @property
    def token(self) -> Optional[int]:
        """The fencing token while a permit is held and its lease runs, else None. It grows with
        each holder of the slot; what the holders write to keeps one for each slot."""
        epoch = self._epoch
        return epoch if self._is_live else None

    @property
    def slot(self) -> Optional[int]:
        """0 to permits - 1: no other holder has it. None: no permit is held."""
        return None if self._held_key is None else self._number

    def _refused(self) -> NotTaken:
        return NotTaken(f'all {self._permits} permits of {self._name!r} are held')


class Permit(PermitOf, Holder):
    """A permit of a semaphore: `with` takes it, or take() and give(). take() is False while all
    permits are held; waiters have no order."""
