"""Permits of semaphores: at most so many holders of a key."""

import random
import threading
import time
from ctypes import byref, c_uint
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

from . import _library as c
from ._errors import Code, Forked, Full, LeaseLost, NotHeld, NotTaken
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, library, raw, take
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._requests import _refuse, _request
from ._types import Answer, Claim

if TYPE_CHECKING:
    from ._claims import Claims

LOOK_FIRST, LOOK_LATER = 0.001, 0.02  # seconds between two attempts


class PermitOf:
    """One permit at most, of whichever thread or task: to hold several, have several."""

    def __init__(self, claims: 'Claims', key: Text, permits: int, wait_ms: int, owner: Text,
                 lease_ms: int, keep_lease: bool, work_max: Duration) -> None:
        self._claims, self._key, self._owner = claims, key_bytes(key), raw(owner)
        self._name, self._wait_ms, self._lease_ms = key, wait_ms, lease_ms
        self._permits = number('permits', permits)
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

    def _pauses(self, wait_ms: int) -> 'Iterator[float]':
        """How long to sleep between two attempts, until the wait is over."""
        deadline, pause = Deadline(wait_ms), LOOK_FIRST
        while wait_ms and deadline.left_ms:
            yield min(pause * random.uniform(0.5, 1.0), deadline.left_ms / 1000)
            pause = min(2 * pause, LOOK_LATER)

    def _longest(self, wait_ms: Optional[int]) -> int:
        return self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)

    def _give_now(self, made: Optional[List[bytes]] = None) -> bool:
        """With `made`, gives back only what this call took, and only while it is still held."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:  # what a new attempt takes meanwhile stays
            if made is not None and not (made and self._slot_key is made[0]):
                return False
            key, self._slot_key = self._slot_key, None
            epoch = self._epoch
            self._stop_keeping()
        if key is None:
            return False
        given = self._claims.release(key, epoch)
        if not given.ok or given.late:
            raise LeaseLost(Code.NOT_OWNER, f'the permit of {self._name!r} was lost before it was '
                                            'given back')
        return True

    def _stop_keeping(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    @property
    def token(self) -> Optional[int]:
        """The fencing token while a permit is held and its lease runs, else None. It grows with
        each holder of the slot; what the holders write to keeps one for each slot."""
        key, epoch = self._slot_key, self._epoch
        held = key is not None and self._claims._is_held(key, epoch)
        return epoch if held else None

    @property
    def slot(self) -> Optional[int]:
        """0 to permits - 1: no other holder has it. None: no permit is held."""
        return None if self._slot_key is None else self._slot

    @property
    def lost(self) -> bool:
        """Whether the lease of a permit that was taken is known to be over."""
        return self._slot_key is not None and self.token is None

    def _renew_now(self) -> bool:
        key = self._slot_key
        return key is not None and self._claims.renew(key, self._epoch,
                                                      lease_ms=self._lease_ms or None).ok

    def _refused(self) -> NotTaken:
        return NotTaken(f'all {self._permits} permits of {self._name!r} are held')

    def __reduce__(self) -> Any:
        raise TypeError(f'the permit of {self._name!r} cannot be copied or pickled: a copy would '
                        'own nothing')


class Permit(PermitOf):
    """A permit of a semaphore: `with` takes it, or take() and give()."""

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """False: all permits are held. Waiters have no order."""
        watch = self._claims._watch(self._name)
        taken = self._take_now()
        for pause in () if taken else self._pauses(self._longest(wait_ms)):
            time.sleep(pause)
            if self._take_now():
                return True
        return taken or refused_of(watch)

    def give(self) -> bool:
        """False: none is held. Raises LeaseLost if it was lost before."""
        return self._give_now()

    def renew(self) -> bool:
        return self._renew_now()

    def __enter__(self) -> 'Permit':
        if not self.take():
            raise self._refused()
        return self

    def __exit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        """Raises LeaseLost, unless the block raises, which is the news."""
        if not self._claims.engine.is_here:
            return
        try:
            self._give_now()
        except LeaseLost:
            if raised is None:
                raise
