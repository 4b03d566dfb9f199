"""An engine and its store."""

import os
import threading
import time
from ctypes import byref, c_int, c_int64, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Tuple, Union

from . import _library as c
from ._errors import Code, InvalidType, SemelError, last_error
from ._library import Text, library, list_of, raw, take
from ._keys import key_bytes
from ._numbers import Duration, Ms, OutOfRange, flag, number, one_of, span
from ._observer import Observer, check_observer
from ._policy import Policy
from ._requests import name_bytes
from ._types import CompareResult, DecrementResult, SetResult, TransitionResult, Versioned

if TYPE_CHECKING:
    from ._claims import Claims

_DURABILITY = {'usual': 0, 'memory': 1, 'logged': 2, 'synced': 3}
_DROP_RULES = {'unused': 0, 'finished': 1, 'all': 2}
KEEP_TTL = -1
_KEY_BYTES_MAX = 64 * 1024


class Engine:
    """One table with its claims. All threads may use it at once; calls run without the
    interpreter's lock. With `storage` what was done is there again after a restart.

    `ttl_ms` everywhere: None does not end, KEEP_TTL as it was, else so long from now on. `ttl` is
    the same as a timedelta or in seconds. An option that is None is as in semel.h; 0 never is.
    """

    def __init__(self, storage: 'Optional[Union[str, os.PathLike[str]]]' = None, *,
                 memory_bytes: Optional[int] = None, durability: str = 'usual',
                 sync_every_ms: Ms = None, log_bytes: Optional[int] = None,
                 key_bytes_max: Optional[int] = None, value_bytes_max: Optional[int] = None,
                 background_ms: Ms = None, decision_log_bytes: int = 0,
                 manual_clock: bool = False) -> None:
        self._handle: Optional[int] = None
        self._terms = 0  # how often the terms of a namespace were changed
        self._key_bytes_max = key_bytes_max or _KEY_BYTES_MAX
        self._process = os.getpid()
        self._calls: Dict[object, int] = {}  # under way, each with its thread
        self._ender: Optional[int] = None  # the thread that has ended what is owned
        self._owned: Dict[object, Tuple[Any, ...]] = {}  # end before this
        self._on_close: Dict[object, Callable[[], None]] = {}  # who waits without a call
        options = c.Options(
            memory_bytes=_said('memory_bytes', memory_bytes),
            durability=one_of('durability', durability, _DURABILITY),
            log_bytes=_said('log_bytes', log_bytes),
            sync_every_ms=_said('sync_every_ms', sync_every_ms),
            key_bytes_max=_said('key_bytes_max', key_bytes_max),
            value_bytes_max=_said('value_bytes_max', value_bytes_max),
            background_ms=_said('background_ms', background_ms),
            decision_log_bytes=number('decision_log_bytes', decision_log_bytes),
            manual_clock=flag('manual_clock', manual_clock),
            storage_directory=_directory(storage))
        self.is_durable = storage is not None  # a call may wait for the disk
        self._clock_runs = not manual_clock
        handle = c_void_p()
        code = library.engine_open(byref(options), byref(handle))
        if code != Code.OK:
            raise last_error(code)
        self._handle = handle.value

    def close(self) -> None:
        """Ends waits (CLOSING), waits for functions that run, and until everything is on the disk.
        Locks are given back; what coroutines still do is as if they had been cancelled. May be
        called again when it was interrupted. In a child of fork() it does nothing."""
        if not self.is_here:
            self._handle = None
            return
        if threading.get_ident() in list(self._calls.values()):
            raise RuntimeError('an engine cannot be closed by a function that runs in it')
        handle, self._handle = self._handle, None
        if handle is None:
            return
        try:
            for tell in list(self._on_close.values()):
                tell()
            while self._calls:
                time.sleep(0.002)
        except BaseException:
            self._handle = handle
            raise
        self._ender = threading.get_ident()
        while self._calls:
            time.sleep(0.0005)
        for last in (False, True):  # locks, which waits may be for, come last
            for mark, (held, end, more) in list(self._owned.items()):
                if (end is library.lock_close) == last:
                    end(held, *more)
                    del self._owned[mark]
        code = library.engine_close(handle)
        if code != Code.OK:
            raise last_error(code)

    @property
    def is_here(self) -> bool:
        """False: this is a child of the process that has opened it, where all calls are refused
        with FORKED."""
        return self._process == os.getpid()

    def __reduce__(self) -> Any:
        """A copy would end what it does not own, or call into the memory of another process."""
        raise TypeError('an engine cannot be copied or pickled; each process opens its own')

    def __enter__(self) -> 'Engine':
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, '_handle', None) is not None:
            try:
                self.close()
            except SemelError:
                pass  # no caller is left to raise it to

    def _call(self, function: Any, *arguments: Any) -> Any:
        """Calls what is not to run while the engine ends; returns what that returns."""
        mine = object()
        try:
            self._calls[mine] = threading.get_ident()
            if self._handle is None:  # close() sets it, then looks for calls
                raise SemelError(Code.CLOSING, 'the engine is closed')
            return function(*arguments)
        finally:
            self._calls.pop(mine, None)

    def _end(self, function: Any, *arguments: Any) -> Any:
        """The same for what ends something: also while close() waits for that."""
        mine = object()
        try:
            self._calls[mine] = threading.get_ident()
            if self._ender is not None:  # close() sets it, then looks for calls
                raise SemelError(Code.CLOSING, 'the engine is closed')
            return function(*arguments)
        finally:
            self._calls.pop(mine, None)

    def _await_end(self) -> None:
        """Returns when what is owned has ended; on the thread that ends it, at once."""
        while self._owned and self._ender not in (None, threading.get_ident()):
            time.sleep(0.001)

    def _do(self, function: Any, *arguments: Any) -> None:
        code = self._call(function, *arguments)
        if code != Code.OK:
            raise last_error(code)

    def _keyed(self, function: Any, key: Text, *arguments: Any) -> None:
        name = key_bytes(key)
        self._do(function, self._handle, name, len(name), *arguments)

    def claims(self, name: str, policy: Union[str, Policy, None] = None, *,
               lease: Optional[Duration] = None, result_ttl: Optional[Duration] = None,
               unique_ttl: Optional[Duration] = None, failure_ttl: Optional[Duration] = None,
               attempts_ttl: Optional[Duration] = None, window: Optional[Duration] = None,
               ahead: Optional[Duration] = None, retry_after_max: Optional[Duration] = None,
               lease_ms: Ms = None, result_ttl_ms: Ms = None,
               unique_ttl_ms: Ms = None, failure_ttl_ms: Ms = None,
               attempts_ttl_ms: Ms = None, window_ms: Ms = None,
               ahead_ms: Optional[int] = None, retry_after_max_ms: Optional[int] = None,
               attempts_max: Optional[int] = None, on_lease_end: Optional[int] = None,
               on_failure: Optional[int] = None, on_exception: Optional[int] = None,
               strict: Optional[bool] = None, fail_open: Optional[bool] = None,
               issued: Optional[bool] = None, fair: Optional[bool] = None,
               sliding_max: Optional[Duration] = None, sliding_max_ms: Ms = None,
               db: Optional[int] = None, observer: Optional[Observer] = None) -> 'Claims':
        """A namespace of claims: with a policy's name and what is different from its figures, or as
        it was declared before. Durations are timedeltas or seconds, their _ms twins whole numbers;
        on_failure and on_exception are semel.RELEASE, KEEP or IN_DOUBT, on_lease_end 0 (retry) or
        1 (in doubt). Raises SemelError: NAMESPACE_DIFFERS if it is there with other terms.

        `observer` is called with an Observed for each call of these claims that did not run: that
        was answered by a kept result, or refused. Not for work that ran, a wrong argument, or a
        caller that was interrupted or cancelled. It runs on the thread of the call, before that
        returns, outside of the engine and of every lock: it must not block. An exception of it is
        ignored (and is in the log `semel` at DEBUG)."""
        check_observer(observer)
        wanted = _policy_of(policy, Policy(
            lease=lease, result_ttl=result_ttl, unique_ttl=unique_ttl, failure_ttl=failure_ttl,
            attempts_ttl=attempts_ttl, window=window, ahead=ahead, retry_after_max=retry_after_max,
            lease_ms=lease_ms, result_ttl_ms=result_ttl_ms, unique_ttl_ms=unique_ttl_ms,
            failure_ttl_ms=failure_ttl_ms, attempts_ttl_ms=attempts_ttl_ms, window_ms=window_ms,
            ahead_ms=ahead_ms, retry_after_max_ms=retry_after_max_ms, attempts_max=attempts_max,
            on_lease_end=on_lease_end, on_failure=on_failure, on_exception=on_exception,
            strict=strict, fail_open=fail_open, issued=issued, fair=fair, db=db,
            sliding_max=sliding_max, sliding_max_ms=sliding_max_ms))
        from ._claims import Claims
        return Claims(self, name, wanted, observer)

    def change_claims(self, name: str, policy: Union[str, Policy, None] = None, *,
                      lease: Optional[Duration] = None, result_ttl: Optional[Duration] = None,
                      unique_ttl: Optional[Duration] = None, failure_ttl: Optional[Duration] = None,
                      attempts_ttl: Optional[Duration] = None, window: Optional[Duration] = None,
                      ahead: Optional[Duration] = None, retry_after_max: Optional[Duration] = None,
                      lease_ms: Ms = None, result_ttl_ms: Ms = None,
                      unique_ttl_ms: Ms = None, failure_ttl_ms: Ms = None,
                      attempts_ttl_ms: Ms = None, window_ms: Ms = None,
                      ahead_ms: Optional[int] = None, retry_after_max_ms: Optional[int] = None,
                      attempts_max: Optional[int] = None, on_lease_end: Optional[int] = None,
                      on_failure: Optional[int] = None, on_exception: Optional[int] = None,
                      strict: Optional[bool] = None, fail_open: Optional[bool] = None,
                      issued: Optional[bool] = None, fair: Optional[bool] = None,
                      sliding_max: Optional[Duration] = None, sliding_max_ms: Ms = None,
                      db: Optional[int] = None) -> str:
        """Gives a namespace another policy, for all who hold it; says what that changed, as
        'lease 60000 -> 5000'. What would forget is refused with NAMESPACE_DIFFERS."""
        wanted = _policy_of(policy, Policy(
            lease=lease, result_ttl=result_ttl, unique_ttl=unique_ttl, failure_ttl=failure_ttl,
            attempts_ttl=attempts_ttl, window=window, ahead=ahead, retry_after_max=retry_after_max,
            lease_ms=lease_ms, result_ttl_ms=result_ttl_ms, unique_ttl_ms=unique_ttl_ms,
            failure_ttl_ms=failure_ttl_ms, attempts_ttl_ms=attempts_ttl_ms, window_ms=window_ms,
            ahead_ms=ahead_ms, retry_after_max_ms=retry_after_max_ms, attempts_max=attempts_max,
            on_lease_end=on_lease_end, on_failure=on_failure, on_exception=on_exception,
            strict=strict, fail_open=fail_open, issued=issued, fair=fair, db=db,
            sliding_max=sliding_max, sliding_max_ms=sliding_max_ms))
        changed = c.Buffer()
        self._terms += 1
        try:
            self._do(library.claims_change, self._handle, name_bytes('the namespace', name),
                     byref(wanted._struct()), byref(changed))
        finally:
            self._terms += 1  # what was looked at meanwhile is looked at again
        return (take(changed) or b'').decode()

    def drop_claims(self, name: str, rule: str = 'unused') -> int:
        """For operators: ends a namespace; returns how many claims went. `rule`: which may go with
        it: 'unused' none, 'finished' those that are not held, 'all' held ones too. Refused with
        NAMESPACE_IN_USE while there are others."""
        gone = c_uint64()
        self._terms += 1
        self._do(library.claims_drop, self._handle, name_bytes('the namespace', name),
                 one_of('rule', rule, _DROP_RULES), byref(gone))
        return gone.value

    def namespaces(self) -> 'Iterator[str]':
        """The names of all namespaces, in the order in which they were declared."""
        cursor = c_uint64()
        while True:
            names = c.Buffer()
            self._do(library.claims_list, self._handle, byref(cursor), 1000, byref(names))
            yield from (take(names) or b'').decode().split('\n')[:-1]
            if cursor.value == 0:
                return

    def advance(self, ms: int = 0) -> None:
        """Moves a manual clock, and removes what has ended."""
        self._do(library.engine_advance, self._handle, number('ms', ms))

    def stats(self) -> Dict[str, int]:
        stats = c.Stats()
        self._do(library.engine_stats, self._handle, byref(stats))
        return {name: getattr(stats, name) for name, *_ in c.Stats._fields_[1:]}

    # --- store ------------------------------------------------------------------------------

    def set(self, key: Text, value: Text, *, ttl: Optional[Duration] = None, ttl_ms: Ms = None,
            if_absent: bool = False, if_present: bool = False, if_equal: Optional[Text] = None,
            if_version: Optional[int] = None, get: bool = False) -> SetResult:
        """Sets it, under one condition at most. `get`: the outcome has what was there before."""
        said = [bool(flag('if_absent', if_absent)), bool(flag('if_present', if_present)),
                if_equal is not None, if_version is not None]
        if sum(said) > 1:
            raise SemelError(Code.BAD_OPTION, 'one condition at most')
        expected = None if if_equal is None else raw(if_equal)
        options = c.SetOptions(
            condition=said.index(True) + 1 if any(said) else 0, get=flag('get', get),
            ttl_ms=span('ttl', ttl_ms, ttl), expected=expected,
            expected_length=len(expected or b''),
            version=0 if if_version is None else number('if_version', if_version))
        result, data = c.SetResult(), raw(value)
        self._keyed(library.set, key, data, len(data), byref(options), byref(result))
        return SetResult(bool(result.stored), take(result.previous), result.version)

    def get_versioned(self, key: Text) -> Optional[Versioned]:
        value = c.Value()
        self._keyed(library.get, key, byref(value))
        return _versioned(value)

    def get(self, key: Text) -> Optional[bytes]:
        found = self.get_versioned(key)
        return None if found is None else found.value

    def delete(self, key: Text) -> bool:
        return self._flag(library.delete, key)

    def incr_by(self, key: Text, by: int = 1) -> int:
        value = c_int64()
        self._keyed(library.incr_by, key, number('by', by), byref(value))
        return value.value

    def expire(self, key: Text, ttl_ms: int) -> bool:
        """It ends so long from now on. False: there is no such key."""
        if number('ttl_ms', ttl_ms) == 0:
            raise OutOfRange(Code.BAD_OPTION, 'ttl_ms = 0, at least 1 ms: say persist() for no end')
        return self._flag(library.expire, key, ttl_ms)

    def persist(self, key: Text) -> bool:
        """It does not end any more. False: there is no such key."""
        return self._flag(library.expire, key, 0)

    def ttl(self, key: Text) -> int:
        """In milliseconds; -1 it does not end, -2 there is no such key."""
        remaining = c_int64()
        self._keyed(library.ttl, key, byref(remaining))
        return remaining.value

    def compare_and_set(self, key: Text, version: int, value: Text, *,
                        ttl_ms: Ms = KEEP_TTL) -> CompareResult:
        """Sets `key` if nothing has changed it since it had `version` (0: there was none)."""
        stored, current, data = c_int(), c.Value(), raw(value)
        self._keyed(library.compare_and_set, key, number('version', version), data, len(data),
                    span('ttl', ttl_ms, None), byref(stored), byref(current))
        return CompareResult(bool(stored), _versioned(current))

    def decrement_if_at_least(self, key: Text, amount: int, floor: int = 0) -> DecrementResult:
        taken, left = c_int(), c_int64()
        self._keyed(library.decrement_if_at_least, key, number('amount', amount),
                    number('floor', floor), byref(taken), byref(left))
        return DecrementResult(bool(taken), left.value)

    def transition(self, key: Text, source: Text, target: Text, *,
                   ttl_ms: Ms = KEEP_TTL) -> TransitionResult:
        """Moves a state; an empty `source`: there must be none yet."""
        moved, state = c_int(), c.Buffer()
        before, after = raw(source), raw(target)
        self._keyed(library.transition, key, before, len(before), after, len(after),
                    span('ttl', ttl_ms, None), byref(moved), byref(state))
        return TransitionResult(bool(moved), take(state) or b'')

    def first_seen(self, name: str, *fields: Text, window: Optional[Duration] = None,
                   window_ms: Ms = None) -> bool:
        """True for the first of any number of callers with these fields within the window."""
        first = c_int()
        if window is not None:
            window_ms = span('window', window_ms, window)
        self._do(library.first_seen, self._handle, name_bytes('the name', name), _fields(fields),
                 len(fields), number('first_seen.window_ms', window_ms), byref(first))
        return bool(first)

    def _flag(self, function: Any, key: Text, *arguments: Any) -> bool:
        flag = c_int()
        self._keyed(function, key, *arguments, byref(flag))
        return bool(flag)


def _said(name: str, value: Optional[int]) -> int:
    """In semel.h 0 is the usual value; here what is not said is."""
    if value is None:
        return 0
    if number(name, value) == 0:
        raise OutOfRange(Code.BAD_OPTION, f'{name} = 0, say None for the usual value')
    return value


def _directory(storage: 'Optional[Union[str, os.PathLike[str]]]') -> Optional[bytes]:
    if storage is None:
        return None
    try:
        return os.fsencode(storage)
    except TypeError:
        raise InvalidType(Code.BAD_OPTION,
                          f'storage: a path, not {type(storage).__name__}') from None


def _policy_of(policy: Union[str, Policy, None], figures: Policy) -> Policy:
    named = policy if isinstance(policy, Policy) else Policy(policy)
    if named.name is not None:
        name_bytes('policy: a Policy or its name', named.name)
    return named._with(figures)


def _versioned(value: c.Value) -> Optional[Versioned]:
    held = take(value.value)
    return None if held is None else Versioned(held, value.version)


def _fields(fields: Tuple[Text, ...]) -> Any:
    return list_of(tuple(key_bytes(one, 'a field', may_be_empty=True) for one in fields))


def composite_key(*fields: Text) -> bytes:
    """The fields as one key that no other list of fields gives."""
    key = c.Buffer()
    code = library.composite_key(_fields(fields), len(fields), byref(key))
    if code != Code.OK:
        raise last_error(code)
    return take(key) or b''
