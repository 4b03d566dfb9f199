"""Calls that did not run, for who wants to know of them."""

import enum
import logging
import time
from dataclasses import dataclass
from typing import Callable, Dict, Optional

from ._functions import check_takes_one
from ._lazy import discard, refuse_lazy
from ._library import Text
from ._types import OnceAnswer

_log = logging.getLogger('semel')


class Event(enum.Enum):
    """Why a call did not run."""

    REPLAYED = 'replayed'  # done before: its result, or Expired
    REJECTED = 'rejected'  # another has it, there is no room, it is outside the window
    MISMATCH = 'mismatch'
    IN_DOUBT = 'in_doubt'
    KEPT_FAILURE = 'kept_failure'
    UNKNOWN_TOKEN = 'unknown_token'


@dataclass(frozen=True)
class Observed:
    """A call that did not run."""

    event: Event
    namespace: str
    key: Text  # as the caller gave it
    seconds: float  # since the call began, its wait included


Observer = Callable[[Observed], object]

# Of Answer and OnceAnswer, by name. An answer of work that ran is not asked for.
_EVENTS: Dict[str, Event] = {
    'REPLAY': Event.REPLAYED, 'REPLAYED': Event.REPLAYED, 'EXPIRED': Event.REPLAYED,
    'IN_FLIGHT': Event.REJECTED, 'BUSY': Event.REJECTED, 'REFUSED': Event.REJECTED,
    'TOO_OLD': Event.REJECTED, 'TOO_NEW': Event.REJECTED, 'MISMATCH': Event.MISMATCH,
    'IN_DOUBT': Event.IN_DOUBT, 'KEPT_FAILURE': Event.KEPT_FAILURE,
    'UNKNOWN': Event.UNKNOWN_TOKEN}


def check_observer(observer: Optional[Observer]) -> Optional[Observer]:
    """Raises InvalidType or Unfinished for what cannot be called, or runs nothing when it is."""
    if observer is not None:
        check_takes_one(observer, 'observer', 'an Observed')
        refuse_lazy(observer, 'observer')
    return observer


class Watch:
    """One call, from its beginning. The caller holds no lock of ours, and but for a batch no claim,
    when it says how the call ended; the engine may be closed meanwhile."""

    __slots__ = ('_observer', '_namespace', '_key', '_began')

    def __init__(self, observer: Optional[Observer], namespace: str, key: Text,
                 began: Optional[float] = None) -> None:
        self._observer, self._namespace, self._key = observer, namespace, key
        self._began = 0.0 if observer is None else time.monotonic() if began is None else began

    def ended(self, answer: enum.Enum) -> None:
        """With this answer, of a call that did not run."""
        event = _EVENTS.get(answer.name)
        if self._observer is None or event is None:
            return
        try:
            discard(self._observer(Observed(event, self._namespace, self._key,
                                            time.monotonic() - self._began)))
        except Exception:  # the call has an outcome of its own
            _log.debug('an observer raised', exc_info=True)


def refused_of(watch: Watch) -> bool:
    """Of a lock or permit that another has: False."""
    watch.ended(OnceAnswer.IN_FLIGHT)
    return False
