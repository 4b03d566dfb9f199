"""Integers on their way to C, which would wrap them: each is looked at first, by its name. And
durations on their way to milliseconds."""

import math
import operator
import time
from datetime import timedelta
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from ._errors import Code, InvalidType, SemelError

Duration = Union[timedelta, float, int]  # a number is seconds
Ms = Optional[int]  # whole milliseconds; None: not said

TTL_MAX_MS = 100 * 366 * 24 * 3600 * 1000  # a hundred years, as in semel/limits.hpp
_INT = (-1 << 31, (1 << 31) - 1)
_INT64 = (-1 << 63, (1 << 63) - 1)
_UINT64 = (0, (1 << 64) - 1)
_MS = (0, TTL_MAX_MS)

# What each may be, before the library looks closer.
RANGES: Dict[str, Tuple[int, int]] = {
    'ttl_ms': (-1, TTL_MAX_MS),
    'by': _INT64, 'amount': (1, _INT64[1]), 'floor': _INT64, 'first_sent_unix_ms': _INT64,
    'algorithm': (1, 255), 'epoch': _UINT64, 'version': _UINT64, 'if_version': _UINT64,
    'memory_bytes': _UINT64, 'log_bytes': _UINT64, 'key_bytes_max': _UINT64,
    'value_bytes_max': _UINT64, 'decision_log_bytes': (0, 1 << 30), 'count': (1, 8),
    'permits': (1, 1024), 'limit': (1, 10 ** 8), 'refill': (1, 10 ** 8), 'cost': (0, 10 ** 8),
    'background_ms': (-1, 1000), 'attempts_max': (0, (1 << 32) - 1),
    'first_seen.window_ms': (1, TTL_MAX_MS), 'debounces.count': (1, 10_000),
    **{name: _MS for name in (
        'ms', 'wait_ms', 'lease_ms', 'period_ms', 'sync_every_ms', 'result_ttl_ms', 'unique_ttl_ms',
        'failure_ttl_ms', 'attempts_ttl_ms', 'window_ms', 'ahead_ms', 'retry_after_max_ms',
        'sliding_max_ms')},
    **{name: _INT for name in ('on_lease_end', 'on_failure', 'on_exception', 'db')},
}
FLAGS = ('strict', 'fail_open', 'issued', 'fair')  # of a policy: True or False, see flag()


class OutOfRange(SemelError, OverflowError):
    """An integer that is not allowed here; nothing was changed."""


def number(name: str, value: Any) -> int:
    """`value` as an int. Raises InvalidType if it is none (a float may have lost digits, and True
    is not a number of milliseconds), OutOfRange (with name, value and limits) if it does not
    fit."""
    said = name.rpartition('.')[2]
    if isinstance(value, bool):
        raise InvalidType(Code.BAD_OPTION, f'{said}: an int, not bool')
    try:
        whole = operator.index(value)
    except TypeError:
        raise InvalidType(Code.BAD_OPTION,
                          f'{said}: an int, not {type(value).__name__}') from None
    least, most = RANGES[name]
    if not least <= whole <= most:
        shown = whole if abs(whole) < 1 << 128 else f'about 2^{whole.bit_length()}'
        raise OutOfRange(Code.BAD_OPTION, f'{said} = {shown}, allowed {least}..{most}')
    return whole


def milliseconds(name: str, value: Duration) -> int:
    """A duration in whole milliseconds, rounded up. What is longer than a hundred years, as
    infinity is, is a hundred years. Raises OutOfRange for less than 0, for NaN, and for what is
    above 0 and below 1 ms, InvalidType for what is no duration."""
    if isinstance(value, timedelta):
        whole, rest = divmod(value, timedelta(milliseconds=1))
        short = whole == 0 and bool(rest)
        whole += bool(rest)
        negative = value < timedelta(0)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(Code.BAD_OPTION,
                          f'{name}: a timedelta or seconds, not {type(value).__name__}')
    else:
        negative = not value >= 0  # NaN as well
        # A float may be near the largest there is, so it is not multiplied before it is small.
        short = 0 < value < 0.001
        large = negative or value > TTL_MAX_MS // 1000
        whole = TTL_MAX_MS if large else math.ceil(round(value * 1000, 6))
    if negative:
        raise OutOfRange(Code.BAD_OPTION, f'{name} = {value}, a duration is not less than 0')
    if short:
        raise OutOfRange(Code.BAD_OPTION, f'{name} = {value}, 1 ms is the shortest there is')
    return min(whole, TTL_MAX_MS)


def span(name: str, ms: Optional[int], duration: Optional[Duration], *, least: int = 1) -> int:
    """What was said as `name` (a duration) or as `name`_ms (a number), of `least` at least; 0:
    neither was. A duration above 0 and below 1 ms is refused."""
    if duration is None and ms is None:
        return 0
    if duration is not None and ms is not None:
        raise InvalidType(Code.BAD_OPTION, f'{name} or {name}_ms, not both')
    said, made = (ms, number(f'{name}_ms', ms)) if duration is None else (
        duration, milliseconds(name, duration))
    shown = name if ms is None else f'{name}_ms'
    if 0 <= made < least:
        raise OutOfRange(Code.BAD_OPTION, f'{shown} = {said}, at least {least} ms')
    return made


def flag(name: str, value: Any) -> int:
    """0 or 1. Nothing becomes a flag by whether it is true."""
    if value is True or value is False:
        return int(value)
    raise InvalidType(Code.BAD_OPTION, f'{name}: True or False, not {value!r:.40}')


def one_of(name: str, value: Any, allowed: Mapping[str, int]) -> int:
    """The number of a word. Raises InvalidType if it is none, SemelError for another word."""
    found = allowed.get(value) if isinstance(value, str) else None
    if found is not None:
        return found
    kind = SemelError if isinstance(value, str) else InvalidType
    raise kind(Code.BAD_OPTION, f'{name} = {value!r:.40}, allowed {", ".join(map(repr, allowed))}')


LATE_GRANTS = 16  # as the library's own waits


class Deadline:
    """The end of a wait that may take several calls."""

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._end = time.monotonic() + wait_ms / 1000
        self._late = 0

    def asks_again(self) -> bool:
        """After a grant whose lease was over when the caller learnt of it. False: after so many of
        them the lease is shorter than a grant takes to be written down, and the wait has no end."""
        self._late += 1
        return self._late < LATE_GRANTS

    @property
    def left_ms(self) -> int:
        left = math.ceil((self._end - time.monotonic()) * 1000)
        return max(0, min(left, self._wait_ms))
