"""Integers on their way to C, which would wrap them: each is looked at first, by its name."""

import operator
from typing import Any, Dict, Tuple

from ._types import Code, SemelError

TTL_MAX_MS = 100 * 366 * 24 * 3600 * 1000  # a hundred years, as in semel/limits.hpp
_INT = (-1 << 31, (1 << 31) - 1)
_INT64 = (-1 << 63, (1 << 63) - 1)
_UINT64 = (0, (1 << 64) - 1)
_MS = (0, TTL_MAX_MS)

# What each may be, before the library looks closer.
RANGES: Dict[str, Tuple[int, int]] = {
    'ttl_ms': (-1, TTL_MAX_MS),
    'by': _INT64, 'amount': (1, _INT64[1]), 'floor': _INT64, 'first_sent_unix_ms': _INT64,
    'epoch': _UINT64, 'version': _UINT64, 'if_version': _UINT64,
    'memory_bytes': _UINT64, 'log_bytes': _UINT64, 'key_bytes_max': _UINT64,
    'value_bytes_max': _UINT64, 'background_ms': (-1, 1000), 'attempts_max': (0, (1 << 32) - 1),
    'first_seen.window_ms': (1, TTL_MAX_MS),
    **{name: _MS for name in (
        'ms', 'wait_ms', 'lease_ms', 'sync_every_ms', 'result_ttl_ms', 'unique_ttl_ms',
        'failure_ttl_ms', 'attempts_ttl_ms', 'window_ms', 'ahead_ms', 'retry_after_max_ms')},
    **{name: _INT for name in ('on_lease_end', 'on_failure', 'on_exception', 'db')},
    **{name: (0, 1) for name in ('strict', 'fail_open', 'issued', 'fair')},
}
FLAGS = ('strict', 'fail_open', 'issued', 'fair')  # True and False are as good as 1 and 0


class OutOfRange(SemelError, OverflowError):
    """An integer that is not allowed here; nothing was changed."""


def number(name: str, value: Any) -> int:
    """`value` as an int. Raises TypeError if it is none (a float may have lost digits, and True is
    not a number of milliseconds), OutOfRange (with name, value and limits) if it does not fit."""
    said = name.rpartition('.')[2]
    if isinstance(value, bool) and name not in FLAGS:
        raise TypeError(f'{said}: an int, not bool')
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f'{said}: an int, not {type(value).__name__}') from None
    least, most = RANGES[name]
    if not least <= whole <= most:
        shown = whole if abs(whole) < 1 << 128 else f'about 2^{whole.bit_length()}'
        raise OutOfRange(Code.BAD_OPTION, f'{said} = {shown}, allowed {least}..{most}')
    return whole
