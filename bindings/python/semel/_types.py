"""Answers."""

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ._errors import Code, Conflict, NoResult, NotHeld, SemelError, StaleOwner
from ._library import take

if TYPE_CHECKING:
    from . import _library as c
    from ._claims import Claims
    from ._steps import Steps

T = TypeVar('T')


def _error(code: int) -> Optional[SemelError]:
    return None if code == Code.OK else SemelError(code)


class Answer(enum.IntEnum):
    UNANSWERED = 0
    GRANTED = 1
    REGRANTED = 2
    IN_FLIGHT = 3
    REPLAY = 4
    KEPT_FAILURE = 5
    MISMATCH = 6
    IN_DOUBT = 7
    TOO_OLD = 8
    BUSY = 9
    UNPROTECTED = 10
    TOO_NEW = 11
    UNKNOWN = 12


class OwnerAnswer(enum.IntEnum):
    UNANSWERED = 0
    OK = 1
    STALE = 2
    CONFLICT = 3
    NOT_OWNER = 4
    UNKNOWN = 5
    REFUSED = 6


class State(enum.IntEnum):
    ABSENT = 0
    HELD = 1
    DONE = 2
    FAILED = 3
    IN_DOUBT = 4
    VACANT = 5


class OnceAnswer(enum.IntEnum):
    UNANSWERED = 0
    RAN = 1
    REPLAYED = 2
    EXPIRED = 3
    IN_FLIGHT = 4
    FAILED = 5
    KEPT_FAILURE = 6
    MISMATCH = 7
    IN_DOUBT = 8
    TOO_OLD = 9
    TOO_NEW = 10
    UNKNOWN = 11
    BUSY = 12
    REFUSED = 13
    SUPERSEDED = 14
    UNRECORDED = 15
    UNGUARDED = 16


class Verdict(enum.IntEnum):
    UNANSWERED = 0
    ACK = 1
    RETRY_LATER = 2
    ACK_DUPLICATE = 3
    DEAD_LETTER = 4


class TokenState(enum.Enum):
    UNKNOWN = 'unknown'
    ISSUED = 'issued'
    IN_USE = 'in use'
    SPENT = 'spent'
    FAILED = 'failed'


@dataclass(frozen=True)
class Claim:
    answer: Answer
    error: Optional[SemelError]
    result: Optional[bytes]
    owner: Optional[bytes]
    epoch: int
    attempt: int
    takeover: bool
    result_expired: bool
    poison: bool
    remaining_ms: int
    retry_after_ms: int
    folded_onto: Optional[int]
    version: int

    @classmethod
    def _of(cls, outcome: 'c.ClaimOutcome') -> 'Claim':
        """Takes the buffers."""
        return cls(
            answer=Answer(outcome.answer), error=_error(outcome.error), result=take(outcome.result),
            owner=take(outcome.owner), epoch=outcome.epoch, attempt=outcome.attempt,
            takeover=bool(outcome.takeover), result_expired=bool(outcome.result_expired),
            poison=bool(outcome.poison), remaining_ms=outcome.remaining_ms,
            retry_after_ms=outcome.retry_after_ms,
            folded_onto=None if outcome.folded_onto < 0 else outcome.folded_onto,
            version=outcome.version)

    @property
    def granted(self) -> bool:
        return self.answer in (Answer.GRANTED, Answer.REGRANTED)

    def require(self) -> 'Claim':
        """Itself if it is granted, or runs unprotected as its namespace says; else raises its
        error, or what its answer is: InFlight, Mismatch, AlreadyDone .."""
        if self.granted or self.answer is Answer.UNPROTECTED:
            return self
        if self.error is not None and self.answer is Answer.BUSY:
            raise self.error
        raise NoResult(self)


@dataclass(frozen=True)
class Owned:
    answer: OwnerAnswer
    error: Optional[SemelError]
    late: bool
    result: Optional[bytes]
    version: int

    @classmethod
    def _of(cls, outcome: 'c.OwnerOutcome') -> 'Owned':
        """Takes the buffer."""
        return cls(answer=OwnerAnswer(outcome.answer), error=_error(outcome.error),
                   late=bool(outcome.late), result=take(outcome.result), version=outcome.version)

    @property
    def ok(self) -> bool:
        return self.error is None and self.answer is OwnerAnswer.OK

    def require(self) -> 'Owned':
        """Itself if it is ok; else raises its error, or StaleOwner, NotHeld or Conflict."""
        if self.ok:
            return self
        if self.error is not None:
            raise self.error
        kind = {OwnerAnswer.CONFLICT: Conflict, OwnerAnswer.UNKNOWN: NotHeld,
                OwnerAnswer.NOT_OWNER: StaleOwner}.get(self.answer, StaleOwner)
        stale = kind(Code.NOT_OWNER, self.answer.name)
        stale.result = self.result
        raise stale


@dataclass(frozen=True)
class View:
    state: State
    result: Optional[bytes]
    owner: Optional[bytes]
    result_expired: bool
    poison: bool
    attempts: int
    epoch: int
    lease_remaining_ms: int
    result_remaining_ms: int
    unique_remaining_ms: int

    @classmethod
    def _of(cls, view: 'c.ClaimView') -> 'View':
        """Takes the buffers."""
        return cls(
            state=State(view.state), result=take(view.result), owner=take(view.owner),
            result_expired=bool(view.result_expired), poison=bool(view.poison),
            attempts=view.attempts, epoch=view.epoch, lease_remaining_ms=view.lease_remaining_ms,
            result_remaining_ms=view.result_remaining_ms,
            unique_remaining_ms=view.unique_remaining_ms)


@dataclass(frozen=True)
class Work:
    """What a function that runs may want to know."""

    key: bytes
    epoch: int  # the fencing token; 0: the run is not guarded
    attempt: int
    takeover: bool
    steps: 'Optional[Steps]' = field(default=None, compare=False, repr=False)
    _claims: 'Optional[Claims]' = field(default=None, compare=False, repr=False)

    @property
    def lost(self) -> bool:
        """Whether the lease has ended, so that another may have the work by now: look before an
        effect that must not be there twice. False for a run that is not guarded."""
        if self._claims is None or not self.epoch:
            return False
        view = self._claims.get(self.key)
        return not (view.state is State.HELD and view.epoch == self.epoch
                    and view.lease_remaining_ms > 0)


@dataclass(frozen=True)
class Once(Generic[T]):
    answer: OnceAnswer
    value: Optional[T]
    has_value: bool
    failure: Optional[str]
    error: Optional[SemelError]
    takeover: bool
    late: bool
    attempt: int
    epoch: int
    retry_after_ms: int

    def require(self) -> T:
        """The value, which ran now or is replayed; else raises what the answer is: InFlight,
        Mismatch, InDoubt, KeptFailure, Expired .. A run without a guard has its value too. Where
        repeats will not get the value: ResultNotKept or NotRecorded, which carry it."""
        kept = self.error is None or self.error.code != Code.RESULT_NOT_KEPT
        if self.has_value and (kept or self.answer is OnceAnswer.UNGUARDED) and (
                self.answer is not OnceAnswer.UNRECORDED):
            return self.value  # type: ignore[return-value]
        raise NoResult(self)


@dataclass(frozen=True)
class Consumed:
    verdict: Verdict
    answer: OnceAnswer
    failure: Optional[str]
    error: Optional[SemelError]
    unguarded: bool
    attempts: int
    epoch: int
    retry_after_ms: int


@dataclass(frozen=True)
class Versioned:
    value: bytes
    version: int


@dataclass(frozen=True)
class SetResult:
    stored: bool
    previous: Optional[bytes]
    version: int


@dataclass(frozen=True)
class CompareResult:
    stored: bool
    current: Optional[Versioned]


@dataclass(frozen=True)
class DecrementResult:
    taken: bool
    left: int


@dataclass(frozen=True)
class TransitionResult:
    moved: bool
    state: bytes


class Call(enum.IntEnum):
    """What a decision was about; ENDED is no call: the record's time had ended."""

    CLAIM = 0
    COMPLETE = 1
    FAIL = 2
    RENEW = 3
    RELEASE = 4
    ISSUE = 5
    FORGET = 6
    RESOLVE = 7
    ENDED = 8


@dataclass(frozen=True)
class Decision:
    """Why a call was answered so; several in a row that differ only in their time are one."""

    call: Call
    outcome: str
    why: str
    first_unix_ms: int
    last_unix_ms: int
    times: int
    epoch: int
    attempt: int
    owner: Optional[bytes]
    seen: State
    seen_epoch: int
    seen_owner: Optional[bytes]
