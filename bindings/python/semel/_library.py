"""The shared library: where it is, its structs and its functions, as semel.h has them."""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_ubyte, c_uint, c_uint64
from ctypes import c_void_p
from pathlib import Path
from typing import Any, Iterator, Optional, Union

SONAME = 'libsemel.so.0'

Text = Union[str, bytes, bytearray, memoryview]


def _candidates() -> Iterator[str]:
    if os.environ.get('SEMEL_LIBRARY'):
        yield os.environ['SEMEL_LIBRARY']
        return
    for name in (SONAME, 'libsemel.so'):
        beside = Path(__file__).resolve().parent / name
        if beside.exists():
            yield str(beside)
    found = ctypes.util.find_library('semel')
    if found:
        yield found
    yield SONAME


def _load() -> ctypes.CDLL:
    failure: Optional[OSError] = None
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            failure = failure or error
    raise ImportError(f'{SONAME} is not there, say SEMEL_LIBRARY: {failure}')


class Buffer(ctypes.Structure):
    _fields_ = [('data', c_void_p), ('length', c_size_t)]


class Bytes(ctypes.Structure):
    _fields_ = [('data', c_char_p), ('length', c_size_t)]


class Fingerprint(ctypes.Structure):
    _fields_ = [('algorithm', c_ubyte), ('digest', c_ubyte * 16)]


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class Options(Sized):
    _fields_ = [('size', c_size_t), ('memory_bytes', c_size_t), ('key_bytes_max', c_size_t),
                ('value_bytes_max', c_size_t), ('storage_directory', c_char_p),
                ('log_bytes', c_size_t), ('sync_every_ms', c_int64), ('durability', c_int),
                ('background_ms', c_int), ('manual_clock', c_int),
                ('decision_log_bytes', c_size_t), ('work_max_ms', c_int64)]


class Stats(Sized):
    _fields_ = [('size', c_size_t), *((name, c_uint64) for name in (
        'records', 'operations', 'hits', 'misses', 'expired', 'refused', 'claims_granted',
        'claims_duplicate', 'takeovers', 'stale_owners', 'waiters', 'bytes_used',
        'bytes_limit')), ('accepting', c_int)]


class SetOptions(Sized):
    _fields_ = [('size', c_size_t), ('condition', c_int), ('get', c_int), ('ttl_ms', c_int64),
                ('expected', c_char_p), ('expected_length', c_size_t), ('version', c_uint64)]


class SetResult(Sized):
    _fields_ = [('size', c_size_t), ('previous', Buffer), ('version', c_uint64),
                ('stored', c_int)]


class Value(Sized):
    _fields_ = [('size', c_size_t), ('value', Buffer), ('version', c_uint64)]


class RateTerms(Sized):
    _fields_ = [('size', c_size_t), ('kind', c_int), ('limit', c_uint64), ('period_ms', c_int64),
                ('refill', c_uint64)]


class Rate(Sized):
    _fields_ = [('size', c_size_t), ('allowed', c_int), ('remaining', c_uint64),
                ('retry_after_ms', c_int64), ('reset_after_ms', c_int64)]


class Policy(Sized):
    _fields_ = [('size', c_size_t), *((name, c_int64) for name in (
        'lease_ms', 'result_ttl_ms', 'unique_ttl_ms', 'failure_ttl_ms', 'attempts_ttl_ms',
        'window_ms', 'ahead_ms', 'retry_after_max_ms')), ('attempts_max', c_uint),
        *((name, c_int) for name in ('on_lease_end', 'on_failure', 'strict', 'fail_open',
                                     'issued', 'fair', 'db', 'on_exception')),
        ('sliding_max_ms', c_int64)]


class Request(Sized):
    _fields_ = [('size', c_size_t), ('key', c_char_p), ('key_length', c_size_t),
                ('owner', c_char_p), ('owner_length', c_size_t), ('claim_id', c_char_p),
                ('fingerprint', Fingerprint), ('lease_ms', c_int64),
                ('first_sent_unix_ms', c_int64), ('wait_ms', c_int64), ('remote_owner', c_int),
                ('keep_lease', c_int), ('without_key', c_int), ('given', c_uint)]


class ClaimOutcome(Sized):
    _fields_ = [('size', c_size_t), ('result', Buffer), ('owner', Buffer), ('answer', c_int),
                ('takeover', c_int), ('result_expired', c_int), ('poison', c_int),
                ('attempt', c_uint), ('epoch', c_uint64), ('remaining_ms', c_int64),
                ('retry_after_ms', c_int64), ('window_start_unix_ms', c_int64),
                ('window_end_unix_ms', c_int64), ('folded_onto', c_int64), ('version', c_uint64),
                ('error', c_int)]


class OwnerCall(Sized):
    _fields_ = [('size', c_size_t), ('key', c_char_p), ('key_length', c_size_t),
                ('epoch', c_uint64), ('payload', c_char_p), ('payload_length', c_size_t),
                ('lease_ms', c_int64), ('on_failure', c_int), ('given', c_uint)]


class OwnerOutcome(Sized):
    _fields_ = [('size', c_size_t), ('result', Buffer), ('answer', c_int), ('late', c_int),
                ('version', c_uint64), ('error', c_int)]


class ClaimView(Sized):
    _fields_ = [('size', c_size_t), ('result', Buffer), ('owner', Buffer), ('state', c_int),
                ('result_expired', c_int), ('poison', c_int), ('attempts', c_uint),
                ('epoch', c_uint64), ('lease_remaining_ms', c_int64),
                ('result_remaining_ms', c_int64), ('unique_remaining_ms', c_int64),
                ('fingerprint', Fingerprint)]


class Decision(Sized):
    _fields_ = [('size', c_size_t), ('outcome', Buffer), ('owner', Buffer),
                ('seen_owner', Buffer), ('why', Buffer), ('first_unix_ms', c_int64),
                ('last_unix_ms', c_int64), ('times', c_uint64), ('epoch', c_uint64),
                ('seen_epoch', c_uint64), ('attempt', c_uint), ('call', c_int), ('seen', c_int)]


class DebounceTerms(Sized):
    _fields_ = [('size', c_size_t), ('quiet_ms', c_int64), ('max_wait_ms', c_int64),
                ('keep_ms', c_int64)]


class DebounceCall(Sized):
    _fields_ = [('size', c_size_t), ('due_in_ms', c_int64), ('replaced', c_int)]


class DebounceTurn(Sized):
    _fields_ = [('size', c_size_t), ('payload', Buffer), ('key', Buffer), ('epoch', c_uint64),
                ('due_in_ms', c_int64), ('state', c_int)]


class DebounceView(Sized):
    _fields_ = [('size', c_size_t), ('key', Buffer), ('due_in_ms', c_int64), ('state', c_int)]


class Work(Sized):
    _fields_ = [('size', c_size_t), ('key', c_void_p), ('key_length', c_size_t),
                ('epoch', c_uint64), ('attempt', c_uint), ('takeover', c_int)]


class OnceOutcome(Sized):
    _fields_ = [('size', c_size_t), ('value', Buffer), ('failure', Buffer), ('answer', c_int),
                ('takeover', c_int), ('late', c_int), ('attempt', c_uint), ('epoch', c_uint64),
                ('retry_after_ms', c_int64)]


class Consumed(Sized):
    _fields_ = [('size', c_size_t), ('failure', Buffer), ('verdict', c_int), ('answer', c_int),
                ('unguarded', c_int), ('attempts', c_uint), ('epoch', c_uint64),
                ('retry_after_ms', c_int64)]


class CallIdentity(Sized):
    _fields_ = [('size', c_size_t), ('operation', c_char_p), ('operation_length', c_size_t),
                ('tenant', c_char_p), ('tenant_length', c_size_t), ('user', c_char_p),
                ('user_length', c_size_t), ('arguments', c_char_p), ('arguments_length', c_size_t)]


class LockOptions(Sized):
    _fields_ = [('size', c_size_t), ('owner', c_char_p), ('owner_length', c_size_t),
                ('lease_ms', c_int64), ('keep_lease', c_int), ('remote_owner', c_int),
                ('given', c_uint)]


_KEY = [c_void_p, c_char_p, c_size_t]
_OWNER = [c_void_p, POINTER(OwnerCall), POINTER(OwnerOutcome)]
_FLAG = POINTER(c_int)
_SIGNATURES = {
    'version': (c_char_p, []),
    'error_text': (c_char_p, [c_int]),
    'error_detail': (c_char_p, []),
    'buffer_free': (None, [POINTER(Buffer)]),
    'engine_open': (c_int, [POINTER(Options), POINTER(c_void_p)]),
    'engine_close': (c_int, [c_void_p]),
    'engine_advance': (c_int, [c_void_p, c_int64]),
    'engine_stats': (c_int, [c_void_p, POINTER(Stats)]),
    'set': (c_int, [*_KEY, c_char_p, c_size_t, POINTER(SetOptions), POINTER(SetResult)]),
    'get': (c_int, [*_KEY, POINTER(Value)]),
    'del': (c_int, [*_KEY, _FLAG]),
    'incr_by': (c_int, [*_KEY, c_int64, POINTER(c_int64)]),
    'expire': (c_int, [*_KEY, c_int64, _FLAG]),
    'ttl': (c_int, [*_KEY, POINTER(c_int64)]),
    'compare_and_set': (c_int, [*_KEY, c_uint64, c_char_p, c_size_t, c_int64, _FLAG,
                                POINTER(Value)]),
    'decrement_if_at_least': (c_int, [*_KEY, c_int64, c_int64, _FLAG, POINTER(c_int64)]),
    'transition': (c_int, [*_KEY, c_char_p, c_size_t, c_char_p, c_size_t, c_int64, _FLAG,
                           POINTER(Buffer)]),
    'rate_take': (c_int, [*_KEY, POINTER(RateTerms), c_uint64, POINTER(Rate)]),
    'first_seen': (c_int, [c_void_p, c_char_p, POINTER(Bytes), c_size_t, c_int64, _FLAG]),
    'policy_named': (c_int, [c_char_p, POINTER(Policy)]),
    'claims_open': (c_int, [c_void_p, c_char_p, POINTER(Policy), POINTER(c_void_p)]),
    'claims_change': (c_int, [c_void_p, c_char_p, POINTER(Policy), POINTER(Buffer)]),
    'claims_drop': (c_int, [c_void_p, c_char_p, c_int, POINTER(c_uint64)]),
    'claims_list': (c_int, [c_void_p, POINTER(c_uint64), c_size_t, POINTER(Buffer)]),
    'claim': (c_int, [c_void_p, POINTER(Request), POINTER(ClaimOutcome)]),
    'permit': (c_int, [c_void_p, POINTER(Request), c_uint, POINTER(ClaimOutcome), POINTER(c_uint),
                       POINTER(Buffer)]),
    'rwlock': (c_int, [c_void_p, POINTER(Request), c_int, c_int64, POINTER(ClaimOutcome),
                       POINTER(c_uint64), POINTER(Buffer)]),
    'complete': (c_int, _OWNER),
    'fail': (c_int, _OWNER),
    'renew': (c_int, _OWNER),
    'release': (c_int, _OWNER),
    'claim_batch': (c_int, [c_void_p, POINTER(Request), POINTER(ClaimOutcome), c_size_t]),
    'claim_all': (c_int, [c_void_p, POINTER(Request), POINTER(ClaimOutcome), c_size_t,
                          POINTER(c_int)]),
    'complete_batch': (c_int, [c_void_p, POINTER(OwnerCall), POINTER(OwnerOutcome), c_size_t]),
    'issue': (c_int, [*_KEY, c_int64, _FLAG]),
    'claim_get': (c_int, [*_KEY, POINTER(ClaimView)]),
    'resolve': (c_int, [*_KEY, c_int, c_char_p, c_size_t, _FLAG]),
    'debounce': (c_int, [*_KEY, c_char_p, c_size_t, POINTER(DebounceTerms),
                         POINTER(DebounceCall)]),
    'debounce_run': (c_int, [c_void_p, POINTER(Request), POINTER(DebounceTurn),
                             POINTER(ClaimOutcome)]),
    'debounce_end': (c_int, [*_KEY, c_uint64, c_int, POINTER(OwnerOutcome)]),
    'debounces': (c_int, [c_void_p, POINTER(DebounceView), c_size_t, POINTER(c_size_t)]),
    'wait_begin': (c_int, [c_void_p, POINTER(Request), c_int, POINTER(c_void_p)]),
    'lock_begin': (c_int, [c_void_p, c_int64, c_int, POINTER(c_void_p)]),
    'wait_for': (c_int, [c_void_p, c_int64, _FLAG]),
    'wait_end': (c_int, [c_void_p, POINTER(ClaimOutcome)]),
    'once_begin': (c_int, [c_void_p, POINTER(POINTER(Work)), POINTER(c_void_p)]),
    'once_end': (c_int, [c_void_p, c_int, c_char_p, c_size_t, POINTER(OnceOutcome)]),
    'consume_begin': (c_int, [c_void_p, POINTER(Request), POINTER(POINTER(Work)),
                              POINTER(c_void_p)]),
    'consume_end': (c_int, [c_void_p, c_int, c_char_p, c_size_t, POINTER(Consumed)]),
    'lock_open': (c_int, [*_KEY, POINTER(LockOptions), POINTER(c_void_p)]),
    'lock_take': (c_int, [c_void_p, c_int64, POINTER(c_uint64)]),
    'lock_give': (c_int, [c_void_p, _FLAG]),
    'lock_token': (c_uint64, [c_void_p]),
    'lock_close': (None, [c_void_p]),
    'composite_key': (c_int, [POINTER(Bytes), c_size_t, POINTER(Buffer)]),
    'explain': (c_int, [*_KEY, POINTER(Decision), c_size_t, POINTER(c_size_t)]),
    'step_recall': (c_int, [*_KEY, c_uint64, c_char_p, c_size_t, POINTER(Buffer)]),
    'step_remember': (c_int, [*_KEY, c_uint64, c_char_p, c_size_t, c_char_p, c_size_t]),
    'steps_complete': (c_int, _OWNER),
    'run_recall': (c_int, [*_KEY, POINTER(Buffer)]),
    'run_remember': (c_int, [*_KEY, c_char_p, c_size_t]),
    'keep_begin': (c_int, [*_KEY, c_uint64, c_int64, POINTER(c_void_p)]),
    'keep_lost': (c_int, [c_void_p, _FLAG]),
    'keep_end': (None, [c_void_p]),
    'fingerprint_json': (c_int, [c_char_p, c_size_t, POINTER(Fingerprint)]),
    'fingerprint_of': (c_int, [c_char_p, c_size_t, POINTER(Fingerprint)]),
    'format_key': (c_int, [c_char_p, c_size_t, POINTER(Bytes), POINTER(Bytes), c_size_t,
                           POINTER(Buffer)]),
    'identity_json': (c_int, [c_char_p, c_size_t, POINTER(Buffer)]),
    'identity_text': (c_int, [POINTER(CallIdentity), POINTER(Buffer)]),
}


class Library:
    """Its functions, without their prefix."""

    def __init__(self) -> None:
        loaded = _load()
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, 'semel_' + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, 'delete' if name == 'del' else name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f'semel.h has no semel_{name}')


library = Library()


def raw(text: Text) -> bytes:
    """Bytes as they are, text as UTF-8."""
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f'bytes or text, not {type(text).__name__}')


def take(buffer: Buffer) -> Optional[bytes]:
    """What a buffer holds; it is freed."""
    if not buffer.data:
        return None
    held = ctypes.string_at(buffer.data, buffer.length)
    library.buffer_free(byref(buffer))
    return held


def list_of(fields: 'tuple[Text, ...]') -> Any:
    return (Bytes * len(fields))(*(Bytes(f, len(f)) for f in map(raw, fields)))
