"""Locks of several keys: all or none, in one step of the engine."""

import random
import threading
import time
from ctypes import byref, c_int
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import _library as c
from ._errors import Code, Forked, Full, InvalidType, LeaseLost, NotHeld, NotTaken, SemelError
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, library, raw
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._requests import _request
from ._types import Answer, Claim

if TYPE_CHECKING:
    from ._claims import Claims

LOOK_FIRST, LOOK_LATER = 0.001, 0.02  # seconds between two attempts
KEYS_MAX = 1024  # each lease is renewed by itself
Taken = Dict[bytes, Tuple[int, Optional[Keeper]]]  # by key: the epoch, and who renews it


def _distinct(claims: 'Claims', keys: Sequence[Text]) -> List[bytes]:
    if isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise InvalidType(Code.BAD_OPTION, 'keys: several, not one text')
    names = list(dict.fromkeys(key_bytes(key) for key in keys))
    if not 1 <= len(names) <= KEYS_MAX:
        raise SemelError(Code.BAD_OPTION, f'{len(names)} keys, 1 to {KEYS_MAX} are possible')
    for name in names:
        claims._check_length(name)
    return names


class LocksOf:
    """The locks of several keys, of whichever thread or task: to hold them twice, have two."""

    def __init__(self, claims: 'Claims', keys: Sequence[Text], wait_ms: int, owner: Text,
                 lease_ms: int, keep_lease: bool, work_max: Duration = WORK_MAX) -> None:
        self._claims, self._keys, self._owner = claims, _distinct(claims, keys), raw(owner)
        self._wait_ms, self._lease_ms = wait_ms, lease_ms
        total = work_max_ms(work_max) / 1000
        self._kept = (lease_ms, total) if flag('keep_lease', keep_lease) else None
        self._taken: Taken = {}
        self._obstacle = self._keys[0]  # of the last attempt
        self._mutex = threading.Lock()  # of an attempt: what it takes is not overwritten

    def _take_now(self, made: Optional[List[Taken]] = None) -> bool:
        """`made` gets what this very call took."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:
            is_taken = self._attempt()
            if is_taken and made is not None:
                made.append(self._taken)
            return is_taken

    def _attempt(self) -> bool:
        """What is granted to a caller who gets an exception is given back."""
        if self._taken:
            raise NotHeld(Code.OBJECT_IN_USE, 'this object holds its locks already')
        if self._kept is not None:
            check_can_keep(self._claims, self._lease_ms)
        count, granted = len(self._keys), c_int()
        requests = (c.Request * count)(*(_request(key, owner=self._owner,
                                                  lease_ms=self._lease_ms or None)
                                         for key in self._keys))
        outcomes = (c.ClaimOutcome * count)(*(c.ClaimOutcome(answer=Answer.BUSY)
                                              for _ in self._keys))
        taken: Taken = {}
        try:
            self._claims.engine._do(library.claim_all, self._claims._handle, requests, outcomes,
                                    count, byref(granted))
            answers = [Claim._of(outcome) for outcome in outcomes]
            if not granted.value:
                self._look_at(answers)
                return False
            for key, answer in zip(self._keys, answers):
                keeper = None if self._kept is None else Keeper(self._claims, key, answer.epoch,
                                                                *self._kept)
                taken[key] = answer.epoch, keeper
            self._taken = taken
            return True
        except BaseException:
            self._taken = {}
            _stop_keeping(taken)
            for key, outcome in zip(self._keys, outcomes) if granted.value else ():
                self._claims.release(key, outcome.epoch)
            raise

    def _look_at(self, answers: List[Claim]) -> None:
        """Raises what waiting does not change; otherwise notes the key that another holds."""
        first: Optional[bytes] = None
        for key, answer in zip(self._keys, answers):
            if answer.answer is Answer.IN_FLIGHT:
                first = first or key
            elif answer.answer is Answer.UNPROTECTED:  # to run so would not be a lock
                raise Full(Code.MEMORY_FULL)
            elif not answer.granted:  # one that is free is granted, with epoch 0
                answer.require()
        self._obstacle = first or self._keys[0]

    def _pauses(self, wait_ms: int) -> 'Iterator[float]':
        """How long to sleep between two attempts, until the wait is over."""
        deadline, pause = Deadline(wait_ms), LOOK_FIRST
        while wait_ms and deadline.left_ms:
            yield min(pause * random.uniform(0.5, 1.0), deadline.left_ms / 1000)
            pause = min(2 * pause, LOOK_LATER)

    def _longest(self, wait_ms: Optional[int]) -> int:
        return self._wait_ms if wait_ms is None else number('wait_ms', wait_ms)

    def _give_now(self, made: Optional[List[Taken]] = None) -> bool:
        """With `made`, gives back only what this call took, and only while it is still held."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:  # of two threads that give, one does
            if made is not None and not (made and self._taken is made[0]):
                return False
            taken, self._taken = self._taken, {}
        _stop_keeping(taken)
        lost: List[bytes] = []
        failed: List[SemelError] = []
        for key, (epoch, _) in taken.items():
            try:
                given = self._claims.release(key, epoch)
            except SemelError as error:  # the others are tried as well
                failed.append(error)
            else:
                if not given.ok or given.late:
                    lost.append(key)
        if lost:
            raise LeaseLost(Code.NOT_OWNER, f'the lock {lost[0]!r} was lost before it was given '
                                            'back')
        if failed:
            raise failed[0]
        return bool(taken)

    def token(self, key: Text) -> Optional[int]:
        """The fencing token of a key while its lock is held and its lease runs, else None."""
        held = self._taken.get(key_bytes(key))
        is_held = held is not None and self._claims._is_held(key_bytes(key), held[0])
        return held[0] if held is not None and is_held else None

    @property
    def lost(self) -> bool:
        """Whether the lease of one of the locks that were taken is known to be over."""
        return any(not self._claims._is_held(key, epoch)
                   for key, (epoch, _) in list(self._taken.items()))

    def _refused(self) -> NotTaken:
        return NotTaken(f'another has the lock {self._obstacle!r}')

    def __reduce__(self) -> Any:
        raise TypeError('locks cannot be copied or pickled: a copy would own nothing')


def _stop_keeping(taken: Taken) -> None:
    for _, keeper in taken.values():
        if keeper is not None:
            keeper.close()


class Locks(LocksOf):
    """The locks of several keys: `with` takes all of them or none, or take() and give()."""

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """False: another has one of them, and this caller none. Waiters have no order."""
        began = time.monotonic()
        taken = self._take_now()
        for pause in () if taken else self._pauses(self._longest(wait_ms)):
            time.sleep(pause)
            if self._take_now():
                return True
        return taken or refused_of(self._claims._watch(self._obstacle, began))

    def give(self) -> bool:
        """False: none is held. Gives all of them back. Raises LeaseLost, afterwards, if one was
        lost before."""
        return self._give_now()

    def __enter__(self) -> 'Locks':
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
