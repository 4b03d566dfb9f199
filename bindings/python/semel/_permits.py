"""Permits of semaphores: at most so many holders of a key."""

from ctypes import byref, c_uint
from typing import TYPE_CHECKING, Optional, Tuple

from . import _library as c
<<<<<<< ours
from ._errors import Code, Forked, Full, LeaseLost, NotHeld, NotTaken
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, library, raw, take
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._requests import _refuse, _request
from ._types import Answer, Claim
||||||| base
from ._errors import Code, Forked, Full, LeaseLost, NotHeld, NotTaken
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, library, raw, take
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._requests import _claim, _refuse, _request
from ._types import Answer
=======
from ._errors import NotTaken
from ._library import Text, library
from ._numbers import Duration, number
from ._one_hold import OneHold, Holder, Waiting
>>>>>>> theirs

if TYPE_CHECKING:
    from ._claims import Claims


class PermitOf(OneHold):
    """One permit at most, of whichever thread or task: to hold several, have several."""

    _what = 'permit'

    def __init__(self, claims: 'Claims', key: Text, permits: int, wait_ms: int, owner: Text,
                 lease_ms: int, keep_lease: bool, work_max: Duration) -> None:
        super().__init__(claims, key, wait_ms, owner, lease_ms, keep_lease, work_max)
        self._permits = number('permits', permits)
<<<<<<< ours
        total = work_max_ms(work_max) / 1000
        self._kept = (lease_ms, total) if flag('keep_lease', keep_lease) else None
        self._keeper: Optional[Keeper] = None
        self._slot_key: Optional[bytes] = None  # of the permit that is held
        self._epoch = self._slot = 0
        self._mutex = threading.Lock()  # of an attempt: what it takes is not overwritten

    def _take_now(self, made: Optional[List[bytes]] = None) -> bool:
        """`made` gets the key of what this very call took: an object of its own."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:
            is_taken = self._attempt()
            if is_taken and made is not None and self._slot_key is not None:
                made.append(self._slot_key)
            return is_taken

    def _attempt(self) -> bool:
        """What is granted to a caller who gets an exception is given back."""
        if self._slot_key is not None:
            raise NotHeld(Code.OBJECT_IN_USE, 'this object holds a permit of '
                                              f'{self._name!r} already')
        if self._kept is not None:
            check_can_keep(self._claims, self._lease_ms)
        request = _request(self._key, owner=self._owner, lease_ms=self._lease_ms or None)
        outcome, slot, buffer = c.ClaimOutcome(answer=Answer.BUSY), c_uint(), c.Buffer()
        granted: Optional[bytes] = None
        try:
            code = self._claims.engine._call(library.permit, self._claims._handle, byref(request),
                                             self._permits, byref(outcome), byref(slot),
                                             byref(buffer))
            granted = take(buffer)
            _refuse(code, outcome.error)
            claim = Claim._of(outcome)
            if granted is None:
                if claim.answer is Answer.UNPROTECTED:  # to run so would not be a permit
                    raise Full(Code.MEMORY_FULL)
                if claim.answer is not Answer.IN_FLIGHT:
                    claim.require()
                return False
            if self._kept is not None:
                self._keeper = Keeper(self._claims, granted, claim.epoch, *self._kept)
            self._slot_key, self._epoch, self._slot = granted, claim.epoch, slot.value
            return True
        except BaseException:
            self._stop_keeping()
            self._slot_key = None
            granted = granted or take(buffer)
            if granted is not None and outcome.epoch:
                self._claims.release(granted, outcome.epoch)
            raise
||||||| base
        total = work_max_ms(work_max) / 1000
        self._kept = (lease_ms, total) if flag('keep_lease', keep_lease) else None
        self._keeper: Optional[Keeper] = None
        self._slot_key: Optional[bytes] = None  # of the permit that is held
        self._epoch = self._slot = 0
        self._mutex = threading.Lock()  # of an attempt: what it takes is not overwritten

    def _take_now(self, made: Optional[List[bytes]] = None) -> bool:
        """`made` gets the key of what this very call took: an object of its own."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:
            is_taken = self._attempt()
            if is_taken and made is not None and self._slot_key is not None:
                made.append(self._slot_key)
            return is_taken

    def _attempt(self) -> bool:
        """What is granted to a caller who gets an exception is given back."""
        if self._slot_key is not None:
            raise NotHeld(Code.OBJECT_IN_USE, 'this object holds a permit of '
                                              f'{self._name!r} already')
        if self._kept is not None:
            check_can_keep(self._claims, self._lease_ms)
        request = _request(self._key, owner=self._owner, lease_ms=self._lease_ms or None)
        outcome, slot, buffer = c.ClaimOutcome(answer=Answer.BUSY), c_uint(), c.Buffer()
        granted: Optional[bytes] = None
        try:
            code = self._claims.engine._call(library.permit, self._claims._handle, byref(request),
                                             self._permits, byref(outcome), byref(slot),
                                             byref(buffer))
            granted = take(buffer)
            _refuse(code, outcome.error)
            claim = _claim(outcome)
            if granted is None:
                if claim.answer is Answer.UNPROTECTED:  # to run so would not be a permit
                    raise Full(Code.MEMORY_FULL)
                if claim.answer is not Answer.IN_FLIGHT:
                    claim.require()
                return False
            if self._kept is not None:
                self._keeper = Keeper(self._claims, granted, claim.epoch, *self._kept)
            self._slot_key, self._epoch, self._slot = granted, claim.epoch, slot.value
            return True
        except BaseException:
            self._stop_keeping()
            self._slot_key = None
            granted = granted or take(buffer)
            if granted is not None and outcome.epoch:
                self._claims.release(granted, outcome.epoch)
            raise
=======
>>>>>>> theirs

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
