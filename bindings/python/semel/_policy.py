"""The figures of a namespace."""

import dataclasses
from ctypes import byref
from dataclasses import dataclass
from typing import Optional

from . import _library as c
from ._errors import Code, last_error
from ._library import library
from ._numbers import FLAGS, Duration, OutOfRange, flag, milliseconds, number

RELEASE, KEEP, IN_DOUBT = 0, 1, 2  # what a failure or an exception means
RETRY = 0  # what the end of a lease means, or IN_DOUBT_AT_LEASE_END
IN_DOUBT_AT_LEASE_END = 1


@dataclass(frozen=True)
class Policy:
    """A policy by its name, and what is different from its figures (semel_policy in semel.h). Each
    duration is a timedelta or seconds; its twin in whole milliseconds ends in _ms. What is None is
    as the named policy has it."""

    name: Optional[str] = None
    lease: Optional[Duration] = None
    result_ttl: Optional[Duration] = None
    unique_ttl: Optional[Duration] = None
    failure_ttl: Optional[Duration] = None
    attempts_ttl: Optional[Duration] = None
    window: Optional[Duration] = None
    ahead: Optional[Duration] = None
    retry_after_max: Optional[Duration] = None
    sliding_max: Optional[Duration] = None  # a sliding window: what duplicates may add up to
    lease_ms: Optional[int] = None
    result_ttl_ms: Optional[int] = None
    unique_ttl_ms: Optional[int] = None
    failure_ttl_ms: Optional[int] = None
    attempts_ttl_ms: Optional[int] = None
    window_ms: Optional[int] = None
    ahead_ms: Optional[int] = None
    retry_after_max_ms: Optional[int] = None
    sliding_max_ms: Optional[int] = None
    attempts_max: Optional[int] = None
    on_lease_end: Optional[int] = None
    on_failure: Optional[int] = None
    on_exception: Optional[int] = None
    strict: Optional[bool] = None
    fail_open: Optional[bool] = None
    issued: Optional[bool] = None
    fair: Optional[bool] = None
    db: Optional[int] = None

    def _is_plain(self) -> bool:
        return self == _PLAIN

    def _with(self, other: 'Policy') -> 'Policy':
        """This one, and what `other` says beyond it."""
        said = {field.name: getattr(other, field.name) for field in dataclasses.fields(other)
                if getattr(other, field.name) is not None}
        return dataclasses.replace(self, **said)

    def _struct(self) -> c.Policy:
        wanted = c.Policy()
        if self.name is not None:
            code = library.policy_named(self.name.encode(), byref(wanted))
            if code != Code.OK:
                raise last_error(code)
        figures = {name for name, *_ in c.Policy._fields_} - {'size'}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or field.name == 'name':
                continue
            if field.name in figures:
                whole = (flag if field.name in FLAGS else number)(field.name, value)
                setattr(wanted, field.name, _figure(field.name, whole))
                continue
            if getattr(self, field.name + '_ms') is not None:
                raise TypeError(f'{field.name} or {field.name}_ms, not both')
            setattr(wanted, field.name + '_ms',
                    _figure(field.name + '_ms', milliseconds(field.name, value)))
        return wanted


def _figure(name: str, value: int) -> int:
    """In semel.h 0 is the usual value of these; here what is not said is."""
    if value == 0 and name in ('lease_ms', 'result_ttl_ms', 'failure_ttl_ms', 'attempts_ttl_ms',
                               'retry_after_max_ms'):
        raise OutOfRange(Code.BAD_OPTION, f'{name} = 0, at least 1 ms')
    return value


_PLAIN = Policy()
