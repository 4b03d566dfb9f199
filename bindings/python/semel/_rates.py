"""Rate limits: so many per period."""

from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from . import _library as c
from ._library import Text, library
from ._numbers import Duration, Ms, number, one_of, span

if TYPE_CHECKING:
    from ._engine import Engine

_KINDS = {'fixed': 0, 'sliding': 1, 'bucket': 2}


@dataclass(frozen=True)
class Rate:
    """The answer to a call. It is neither true nor false by itself: ask `allowed`."""

    allowed: bool  # False: nothing was taken
    remaining: int  # available now, after this call
    retry_after_ms: int  # not allowed: the cost is available then, if no other call takes any
    reset_after_ms: int  # until the whole limit is available, if no other call takes any

    def __bool__(self) -> bool:
        raise TypeError('a Rate is no answer by itself: ask its `allowed`')


class RateLimiter:
    """At most `limit` per `period` for each key. Thread-safe.

    kind 'sliding': in any span of a period. 'fixed': in a window, which begins with its first call.
    'bucket': `limit` tokens, of which `refill` (as many, if not given) come back in a period,
    evenly. A limit is one string of the store, which ends when the limit would be as new;
    engine.delete(key) resets it."""

    def __init__(self, engine: 'Engine', *, limit: int, period: Optional[Duration] = None,
                 period_ms: Ms = None, kind: str = 'sliding',
                 refill: Optional[int] = None) -> None:
        self.engine = engine
        self._terms = c.RateTerms(
            kind=one_of('kind', kind, _KINDS), limit=number('limit', limit),
            period_ms=span('period', period_ms, period),
            refill=0 if refill is None else number('refill', refill))

    def take(self, key: Text, cost: int = 1) -> Rate:
        """Takes `cost`, or nothing. Raises SemelError for a cost above the limit, WrongKind where
        the key holds something else, Full where memory is full: nothing was taken."""
        rate = c.Rate()
        self.engine._keyed(library.rate_take, key, byref(self._terms), number('cost', cost),
                           byref(rate))
        return Rate(bool(rate.allowed), rate.remaining, rate.retry_after_ms, rate.reset_after_ms)

    def look(self, key: Text) -> Rate:
        """Takes nothing."""
        return self.take(key, 0)
