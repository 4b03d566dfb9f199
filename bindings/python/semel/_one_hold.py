"""What permits and the holds of read/write locks have in common: one claim at most, which the
attempt names."""

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Iterator, List, NamedTuple, Optional, Tuple

from . import _library as c
from ._errors import Code, Error, Forked, Full, LeaseLost, NotHeld, NotTaken
from ._keeping import Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._library import Text, raw, take
from ._numbers import Deadline, Duration, flag, number
from ._observer import refused_of
from ._requests import _refuse, _request
from ._types import Answer, Claim

if TYPE_CHECKING:
    from ._claims import Claims

LOOK_FIRST, LOOK_LATER = 0.001, 0.02  # seconds between two attempts


class Waiting(NamedTuple):
    """What each attempt of a wait tells: the id of the caller, and whether it will ask again."""

    claim_id: bytes
    more: bool


class OneHold:
    """One hold at most, of whichever thread or task: to hold several, have several."""

    _what = 'hold'  # in the texts of errors

    def __init__(self, claims: 'Claims', key: Text, wait_ms: int, owner: Text, lease_ms: int,
                 keep_lease: bool, work_max: Duration) -> None:
        self._claims, self._key, self._owner = claims, key_bytes(key), raw(owner)
        self._name, self._wait_ms, self._lease_ms = key, wait_ms, lease_ms
        total = work_max_ms(work_max) / 1000
        self._kept = (lease_ms, total) if flag('keep_lease', keep_lease) else None
        self._keeper: Optional[Keeper] = None
        self._held_key: Optional[bytes] = None  # of the claim that is held
        self._epoch = self._number = 0
        self._mutex = threading.Lock()  # of an attempt: what it takes is not overwritten

    def _ask_once(self, request: c.Request, turn: Optional[Waiting], outcome: c.ClaimOutcome,
                  key: c.Buffer) -> Tuple[int, int]:
        """The code of the call, and the number that goes with what it grants."""
        raise NotImplementedError

    def _take_now(self, made: Optional[List[bytes]] = None, turn: Optional[Waiting] = None) -> bool:
        """`made` gets the key of what this very call took: an object of its own."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)
        with self._mutex:
            is_taken = self._attempt(turn)
            if is_taken and made is not None and self._held_key is not None:
                made.append(self._held_key)
            return is_taken

    def _leave(self, turn: Optional[Waiting]) -> None:
        """Ends a wait. Its place in front, left alone, would stop other callers until it ended.
        A grant that comes now is given back. The hold of this object, if it has one, is another
        caller's, and stays."""
        if turn is None or not self._claims.engine.is_here:
            return
        outcome, buffer = c.ClaimOutcome(answer=Answer.BUSY), c.Buffer()
        with contextlib.suppress(Error):  # the place ends by itself, then
            try:
                self._ask_once(self._request_of(turn), turn._replace(more=False), outcome, buffer)
            finally:
                granted = take(buffer)
                if granted is not None and outcome.epoch:
                    self._claims.release(granted, outcome.epoch)

    def _request_of(self, turn: Optional[Waiting]) -> c.Request:
        return _request(self._key, owner=self._owner, lease_ms=self._lease_ms or None,
                        claim_id=turn.claim_id if turn else None)

    def _attempt(self, turn: Optional[Waiting]) -> bool:
        """What is granted to a caller who gets an exception is given back."""
        if self._held_key is not None:
            raise NotHeld(Code.OBJECT_IN_USE, f'this object holds a {self._what} of '
                                              f'{self._name!r} already')
        if self._kept is not None:
            check_can_keep(self._claims, self._lease_ms)
        request = self._request_of(turn)
        outcome, buffer = c.ClaimOutcome(answer=Answer.BUSY), c.Buffer()
        granted: Optional[bytes] = None
        try:
            code, found = self._ask_once(request, turn, outcome, buffer)
            granted = take(buffer)
            _refuse(code, outcome.error)
            claim = Claim._of(outcome)
            if granted is None:
                if claim.answer is Answer.UNPROTECTED:  # to run so would hold nothing
                    raise Full(Code.MEMORY_FULL)
                if claim.answer is not Answer.IN_FLIGHT:
                    claim.require()
                return False
            if self._kept is not None:
                self._keeper = Keeper(self._claims, granted, claim.epoch, *self._kept)
            self._held_key, self._epoch, self._number = granted, claim.epoch, found
            return True
        except BaseException:
            self._stop_keeping()
            self._held_key = None
            granted = granted or take(buffer)
            if granted is not None and outcome.epoch:
                self._claims.release(granted, outcome.epoch)
            raise

    def _pauses(self, wait_ms: int) -> Iterator[float]:
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
            if made is not None and not (made and self._held_key is made[0]):
                return False
            key, self._held_key = self._held_key, None
            epoch = self._epoch
            self._stop_keeping()
        if key is None:
            return False
        given = self._claims.release(key, epoch)
        if not given.ok or given.late:
            raise LeaseLost(Code.NOT_OWNER, f'the {self._what} of {self._name!r} was lost before '
                                            'it was given back')
        return True

    def _stop_keeping(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    @property
    def _is_live(self) -> bool:
        key, epoch = self._held_key, self._epoch
        return key is not None and self._claims._is_held(key, epoch)

    @property
    def lost(self) -> bool:
        """Whether the lease of the hold is known to be over."""
        return self._held_key is not None and not self._is_live

    def _renew_now(self) -> bool:
        key = self._held_key
        return key is not None and self._claims.renew(key, self._epoch,
                                                      lease_ms=self._lease_ms or None).ok

    def _refused(self) -> NotTaken:
        raise NotImplementedError

    def _turn(self) -> Optional[Waiting]:
        """The turn of this caller; None: waiters have no order."""
        return None

    def __reduce__(self) -> Any:
        raise TypeError(f'the {self._what} of {self._name!r} cannot be copied or pickled: a copy '
                        'would own nothing')


class Holder(OneHold):
    """`with` takes it, or take() and give()."""

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """False: other callers have it. An interrupted caller holds none."""
        watch, longest = self._claims._watch(self._name), self._longest(wait_ms)
        turn = self._turn() if longest else None
        made: List[bytes] = []
        try:
            taken = self._take_now(made, turn)
            for pause in () if taken else self._pauses(longest):
                time.sleep(pause)
                if self._take_now(made, turn):
                    return True
            if turn is not None and not taken:
                taken = self._take_now(made, turn._replace(more=False))
        except BaseException:  # KeyboardInterrupt, too
            if made:  # it was granted just before
                with contextlib.suppress(Error):
                    self._give_now(made)
            else:
                self._leave(turn)
            raise
        return taken or refused_of(watch)

    def give(self) -> bool:
        """False: none is held. Raises LeaseLost if it was lost before."""
        return self._give_now()

    def renew(self) -> bool:
        return self._renew_now()

    def __enter__(self) -> Any:
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
