"""Answers, and what is raised."""

import enum
from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

from ._library import library

T = TypeVar('T')


class SemelError(Exception):
    """An error of the library: `code` as in semel.h, its sentence, and which value or limit."""

    def __init__(self, code: int, detail: str = '') -> None:
        self.code = code
        self.text = library.error_text(code).decode()
        self.detail = detail
        super().__init__(f'{self.text}: {detail}' if detail else self.text)


class Code(enum.IntEnum):
    """The errors that a caller may act on; all are in semel.h."""

    OK = 0
    KEY_EMPTY = 100
    KEY_TOO_LONG = 101
    VALUE_TOO_LONG = 102
    INVALID_EXPIRE = 103
    NOT_AN_INTEGER = 105
    WRONG_TYPE = 111
    WRONG_KIND = 112
    BAD_OPTION = 117
    BAD_NAMESPACE = 118
    TOO_MANY_KEYS = 119
    BAD_ENCODING = 121
    NOT_OWNER = 122
    RESULT_NOT_KEPT = 123
    NAMESPACE_DIFFERS = 124
    NAMESPACE_IN_USE = 125
    NAMESPACE_DROPPED = 126
    MEMORY_FULL = 201
    WAITERS_FULL = 202
    TIMED_OUT = 204
    CLOSING = 205
    FORKED = 207
    OUTCOME_UNKNOWN = 302
    REFUSED = 303
    STORAGE_FAILED = 304
    STORAGE_DAMAGED = 305
    STORAGE_IN_USE = 306
    STORAGE_NEWER = 307
    NOT_LEADER = 308
    LOG_BUSY = 309


def last_error(code: int) -> SemelError:
    """Of the call that this thread has just made."""
    return SemelError(code, library.error_detail().decode(errors='replace'))


class Failed(Exception):
    """Raised by a function that runs once: it did not work; why goes into the outcome."""


class Rejected(Failed):
    """The same, and no other try will help: the failure is kept."""


class OutcomeUnknown(Exception):
    """Raised by a function that runs once and does not know what became of its work, e.g. after a
    timeout: the namespace's on_exception says what that means. It ends in the outcome."""


class NoResult(Exception):
    """A guarded function that has no result to give; `outcome` says why."""

    def __init__(self, outcome: 'Once[Any]') -> None:
        self.outcome = outcome
        super().__init__(outcome.answer.name)


class NotTaken(TimeoutError):
    """Another has the lock."""


class Answer(enum.IntEnum):
    GRANTED = 0
    REGRANTED = 1
    IN_FLIGHT = 2
    REPLAY = 3
    KEPT_FAILURE = 4
    MISMATCH = 5
    IN_DOUBT = 6
    TOO_OLD = 7
    BUSY = 8
    UNPROTECTED = 9
    TOO_NEW = 10
    UNKNOWN = 11


class OwnerAnswer(enum.IntEnum):
    OK = 0
    STALE = 1
    CONFLICT = 2
    NOT_OWNER = 3
    UNKNOWN = 4
    REFUSED = 5


class State(enum.IntEnum):
    ABSENT = 0
    HELD = 1
    DONE = 2
    FAILED = 3
    IN_DOUBT = 4
    VACANT = 5


class OnceAnswer(enum.IntEnum):
    RAN = 0
    REPLAYED = 1
    EXPIRED = 2
    IN_FLIGHT = 3
    FAILED = 4
    KEPT_FAILURE = 5
    MISMATCH = 6
    IN_DOUBT = 7
    TOO_OLD = 8
    TOO_NEW = 9
    UNKNOWN = 10
    BUSY = 11
    REFUSED = 12
    SUPERSEDED = 13
    UNRECORDED = 14
    UNGUARDED = 15


class Verdict(enum.IntEnum):
    ACK = 0
    RETRY_LATER = 1
    ACK_DUPLICATE = 2
    DEAD_LETTER = 3


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

    @property
    def granted(self) -> bool:
        return self.answer in (Answer.GRANTED, Answer.REGRANTED)


@dataclass(frozen=True)
class Owned:
    answer: OwnerAnswer
    error: Optional[SemelError]
    late: bool
    result: Optional[bytes]
    version: int

    @property
    def ok(self) -> bool:
        return self.error is None and self.answer is OwnerAnswer.OK


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


@dataclass(frozen=True)
class Work:
    """What a function that runs may want to know."""

    key: bytes
    epoch: int  # the fencing token; 0: the run is not guarded
    attempt: int
    takeover: bool


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
