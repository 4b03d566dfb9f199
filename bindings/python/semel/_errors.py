"""What is raised.

    Error                      everything that Semel raises itself
      SemelError               a call failed: `code`, `text`, `detail`
        Full                   no room: memory, waiters or the log; later it may work
        TimedOut  Closed  Forked  StorageError  WrongKind  OutOfRange
        InvalidKey             a key that is empty or too long, or its format; a ValueError as well
        InvalidType            a value of a type that is not taken; a TypeError as well
          NotCanonical         an argument that cannot be part of an identity
          Unfinished           work that was handed over instead of being done
        StaleOwner             it is not yours, or no longer: NotHeld, LeaseLost, Conflict
      NoResult                 a call under a key has no result to give: `outcome` says why
        InFlight  Mismatch  InDoubt  KeptFailure  RunFailed  AlreadyDone (Expired)  TooOld
        TooNew  UnknownKey  Busy  Superseded  NotRecorded  ResultNotKept
      NotTaken                 another has the lock; a TimeoutError as well

Failed, Rejected and OutcomeUnknown go the other way: a function that runs once raises them.
"""

import enum
from typing import Any, Dict, Tuple, Type

from ._library import library


class Error(Exception):
    """The base of what Semel raises itself."""


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
    SYNTAX = 116
    BAD_OPTION = 117
    BAD_NAMESPACE = 118
    TOO_MANY_KEYS = 119
    BAD_ENCODING = 121
    NOT_OWNER = 122
    RESULT_NOT_KEPT = 123
    NAMESPACE_DIFFERS = 124
    NAMESPACE_IN_USE = 125
    NAMESPACE_DROPPED = 126
    SESSION_CLOSED = 127
    OBJECT_IN_USE = 128
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
    VERSIONS_EXHAUSTED = 310


class SemelError(Error):
    """An error of the library: `code` as in semel.h, its sentence, and which value or limit. Made
    with a code it is of the class for that code."""

    _of: Dict[int, 'Type[SemelError]'] = {}

    def __new__(cls, code: int, detail: str = '') -> 'SemelError':
        chosen = SemelError._of.get(code, cls) if cls is SemelError else cls
        return super().__new__(chosen, code, detail)

    def __init__(self, code: int, detail: str = '') -> None:
        self.code = code
        self.text = library.error_text(code).decode()
        self.detail = detail
        super().__init__(f'{self.text}: {detail}' if detail else self.text)

    def __reduce__(self) -> Tuple[Any, ...]:  # brokers and pools send errors on
        return type(self), (self.code, self.detail)


class Full(SemelError):
    """No room: nothing was changed, and later it may work."""


class TimedOut(SemelError):
    """The wait was over before the answer."""


class Closed(SemelError):
    """The engine is closed, or is being closed."""


class Forked(SemelError):
    """The engine belongs to the parent of this process. Open one after the fork."""


class StorageError(SemelError):
    """The storage: failed, damaged, in use by another process, or of a newer release."""


class WrongKind(SemelError):
    """The key holds something else."""


class InvalidKey(SemelError, ValueError):
    """A key that is empty or too long, or a format that cannot make one: a mistake of the caller,
    which no repetition helps."""


class InvalidType(SemelError, TypeError):
    """A value of a type that is not taken. Nothing was claimed, unless it is an answer of the
    function that ran."""

    def __init__(self, code: int, detail: str = '') -> None:
        super().__init__(code, detail)
        self.args = (detail,)  # says all


class NotCanonical(InvalidType, ValueError):
    """An argument that has no canonical form, by its type or as NaN by its value; named with the
    path to the part in question."""


class Unfinished(InvalidType):
    """A coroutine, generator, future, iterator or function in place of work that is done: given as
    a function that would not be run to its end, or returned by one."""


class StaleOwner(SemelError):
    """The claim has another owner by now, or none: do not act on it. `result` is what a newer
    owner completed it with, if that is known."""

    result: 'bytes | None' = None


class NotHeld(StaleOwner):
    """The claim is not held: it was given back, forgotten, or was never there."""


class LeaseLost(StaleOwner):
    """A lock's lease has ended while it was thought to be held: another may have had it."""


class Conflict(StaleOwner):
    """The claim is done already, with something else."""


for _code, _class in ((Code.MEMORY_FULL, Full), (Code.WAITERS_FULL, Full), (Code.LOG_BUSY, Full),
                      (Code.TIMED_OUT, TimedOut), (Code.CLOSING, Closed), (Code.FORKED, Forked),
                      (Code.STORAGE_FAILED, StorageError), (Code.STORAGE_DAMAGED, StorageError),
                      (Code.STORAGE_IN_USE, StorageError), (Code.STORAGE_NEWER, StorageError),
                      (Code.KEY_EMPTY, InvalidKey), (Code.KEY_TOO_LONG, InvalidKey),
                      (Code.WRONG_KIND, WrongKind), (Code.WRONG_TYPE, WrongKind),
                      (Code.NOT_OWNER, StaleOwner)):
    SemelError._of[_code] = _class


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


class NoResult(Error):
    """A call under a key that has no result to give. `outcome` (a Once or a Claim) says why, and
    `retry_after_ms` when to ask again; 0: not known."""

    _of: Dict[str, 'Type[NoResult]'] = {}

    def __new__(cls, outcome: Any) -> 'NoResult':
        return super().__new__(NoResult._of.get(outcome.answer.name, cls)
                               if cls is NoResult else cls)

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.retry_after_ms: int = outcome.retry_after_ms
        why = getattr(outcome, 'failure', None) or outcome.error
        super().__init__(f'{outcome.answer.name}: {why}' if why else outcome.answer.name)
        self.__cause__ = outcome.error

    def __init_subclass__(cls, answers: Tuple[str, ...] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        for answer in answers:
            NoResult._of[answer] = cls

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.outcome,)


class InFlight(NoResult, answers=('IN_FLIGHT',)):
    """Another runs it; say `wait` to wait for it."""


class Mismatch(NoResult, answers=('MISMATCH',)):
    """The key was used with another payload."""


class InDoubt(NoResult, answers=('IN_DOUBT',)):
    """Its owner went silent and nobody runs it before Claims.resolve()."""


class KeptFailure(NoResult, answers=('KEPT_FAILURE',)):
    """It failed for good; `outcome` has the failure."""


class RunFailed(NoResult, answers=('FAILED',)):
    """It ran now, and said that it failed."""


class AlreadyDone(NoResult, answers=('REPLAY', 'REPLAYED')):
    """It is done: there is nothing to do. `outcome` has the result."""


class Expired(AlreadyDone, answers=('EXPIRED',)):
    """It is done, but its result is gone or was never kept."""


class TooOld(NoResult, answers=('TOO_OLD',)):
    """Sent before what the namespace remembers."""


class TooNew(NoResult, answers=('TOO_NEW',)):
    """Sent further in the future than the namespace takes."""


class UnknownKey(NoResult, answers=('UNKNOWN',)):
    """Keys are issued here, and this one was not."""


class Busy(NoResult, answers=('BUSY', 'REFUSED')):
    """No room, or the node refuses it: nothing ran."""


class Superseded(NoResult, answers=('SUPERSEDED',)):
    """It ran, but another owner had taken the work over: its result does not count."""


class NotRecorded(NoResult, answers=('UNRECORDED',)):
    """It ran, but that could not be written down."""


class ResultNotKept(NoResult, answers=('RAN',)):
    """It ran and is done, but its result cannot be kept as it is: `value` has it, repeats get
    Expired. `outcome.error` says why."""

    @property
    def value(self) -> Any:
        return self.outcome.value


class NotTaken(Error, TimeoutError):
    """Another has the lock."""
