"""Signed requests once: each is taken within a window of time, and its nonce once within it.

What is signed is that of semel/patterns/signed_request.hpp, so either side may be in C++:
HMAC-SHA-256 of "semel-request-v1\\n" caller "\\n" timestamp "\\n" nonce "\\n" parameters, where the
parameters are name=value sorted as bytes and joined with '&', and all but the unreserved characters
of RFC 3986 are escaped.
"""

import enum
import hashlib
import hmac
import threading
import time
from itertools import islice
from typing import (Any, Callable, Collection, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Tuple, Union)
from urllib.parse import quote

from ._engine import Engine
from ._errors import Code, Forked, InvalidType, SemelError
from ._functions import check_takes_one
from ._lazy import refuse_lazy
from ._library import Text, raw
from ._numbers import Duration, span
from ._types import Answer

CALLER_BYTES_MAX, NONCE_BYTES_MAX, PARAMETERS_MAX = 256, 256, 1024
PARAMETER_BYTES_MAX = 1 << 20  # of all together
_YEAR_9999_MS = 253_402_300_799_999

Parameters = Union[Mapping[str, Text], Iterable[Tuple[Text, Text]]]
_TEXT = (str, bytes, bytearray, memoryview)


class Replayed(enum.Enum):
    """What became of a request. Only ACCEPTED is to be served."""

    ACCEPTED = 'accepted'  # signed, in time, and the first with its nonce
    BAD_SIGNATURE = 'bad signature'  # by none of the caller's secrets
    TOO_OLD = 'too old'
    TOO_NEW = 'too new'
    REPLAYED = 'replayed'  # its nonce was taken before
    MALFORMED = 'malformed'  # something in it is out of its range


def signature_of(secret: Text, *, caller: Text, timestamp_unix_ms: int, nonce: Text,
                 parameters: Parameters = ()) -> str:
    """The signature of a request, as 64 hexadecimal digits. `parameters`: pairs of texts, or a map
    with one value for each name."""
    pairs = sorted(_pairs(parameters))
    _check_secret(secret)
    text = '\n'.join(('semel-request-v1', _escaped(raw(caller)), str(timestamp_unix_ms),
                      _escaped(raw(nonce)),
                      '&'.join(f'{_escaped(name)}={_escaped(value)}' for name, value in pairs)))
    return hmac.new(raw(secret), text.encode(), hashlib.sha256).hexdigest()


class ReplayGuard:
    """Accepts a signed request once. Thread-safe.

    `secrets`: a list of those of all callers, or a function from a caller to such a list of its own
    (none: unknown); any of them may have signed, so that they can be changed without a pause.
    Nonces are as durable as the engine is: without a storage, a process that is started again must
    wait for window + ahead before it serves, or it may accept a request twice.

    The guard's time is the engine's clock (it goes on while the machine sleeps, and is never set)
    plus the largest lead that the wall clock ever had on it: a wall clock that is set back does not
    open a window again. One that was far ahead once leaves it ahead until it is made anew."""

    def __init__(self, engine: Engine, *,
                 secrets: Union[Sequence[Text], Callable[[bytes], Sequence[Text]]],
                 window: Duration = 60, ahead: Duration = 60, name: str = 'nonce',
                 clocks: Optional[Callable[[], Tuple[int, int]]] = None) -> None:
        self._window = span('window', None, window)
        self._ahead = span('ahead', None, ahead, least=0)
        if callable(secrets):
            refuse_lazy(secrets, 'secrets')
            check_takes_one(secrets, 'secrets', 'the caller')
        elif not isinstance(secrets, Collection):  # an iterator would be empty the second time
            raise InvalidType(Code.BAD_OPTION, 'secrets: a list of them, or a function, not '
                                               f'{type(secrets).__name__}')
        else:
            _secrets_of(secrets)
        self._secrets = secrets
        self._clocks = clocks or _clocks
        self._lead: Optional[int] = None
        self._mutex = threading.Lock()
        self._claims = engine.claims(
            name, 'nonce', window_ms=0, ahead_ms=0,
            result_ttl_ms=min(self._window + self._ahead + 1000, 100 * 366 * 86_400_000))

    def check(self, *, caller: Text, timestamp_unix_ms: int, nonce: Text, signature: str,
              parameters: Parameters = ()) -> Replayed:
        """Looks at form, signature, time, nonce and the time again; the first that is wrong is the
        answer. Exactly one of any number of calls with one nonce is accepted,
        and one that could not
        be written down is not: that raises (Full, OUTCOME_UNKNOWN ..)."""
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)  # before a mutex of the parent's is waited for
        caller, nonce = raw(caller), raw(nonce)
        pairs = list(islice(_pairs(parameters), PARAMETERS_MAX + 1))
        if not (len(caller) <= CALLER_BYTES_MAX and 0 < len(nonce) <= NONCE_BYTES_MAX
                and len(pairs) <= PARAMETERS_MAX
                and sum(len(field) + len(value) for field, value in pairs) <= PARAMETER_BYTES_MAX
                and isinstance(signature, str) and type(timestamp_unix_ms) is int
                and 0 <= timestamp_unix_ms <= _YEAR_9999_MS):
            return Replayed.MALFORMED
        given = signature.lower().encode(errors='replace')
        known = _secrets_of(self._secrets(caller) if callable(self._secrets) else self._secrets)
        fits = [hmac.compare_digest(given, signature_of(
            secret, caller=caller, timestamp_unix_ms=timestamp_unix_ms, nonce=nonce,
            parameters=pairs).encode()) for secret in known]
        if not any(fits):
            return Replayed.BAD_SIGNATURE
        outside = self._outside(timestamp_unix_ms)
        if outside is not None:
            return outside
        key = len(caller).to_bytes(2, 'big') + caller + nonce
        claim = self._claims.claim(key)
        if claim.answer in (Answer.IN_FLIGHT, Answer.REPLAY):
            return Replayed.REPLAYED
        claim.require()
        # Only who completes is accepted: a claim alone may end with its lease or with the process.
        done = self._claims.complete(key, claim.epoch)
        if done.error is not None:
            raise done.error
        if not done.ok:
            return Replayed.REPLAYED
        return self._outside(timestamp_unix_ms) or Replayed.ACCEPTED

    def _outside(self, timestamp: int) -> Optional[Replayed]:
        steady, wall = self._clocks()
        with self._mutex:
            lead = wall - steady
            self._lead = lead if self._lead is None else max(self._lead, lead)
            now = steady + self._lead
        if timestamp <= now - self._window:
            return Replayed.TOO_OLD
        return Replayed.TOO_NEW if timestamp > now + self._ahead else None


def _pairs(parameters: Any) -> Iterator[Tuple[bytes, bytes]]:
    """Names and values. What would leave out a value is refused: it would not be signed."""
    if hasattr(parameters, 'getlist') or hasattr(parameters, 'getall'):
        raise InvalidType(Code.BAD_OPTION, f'parameters: a {type(parameters).__name__} may have '
                                           'several values for a name; give all of its pairs')
    if isinstance(parameters, Mapping):
        parameters = parameters.items()
    elif isinstance(parameters, _TEXT):
        raise InvalidType(Code.BAD_OPTION, 'parameters: pairs of texts, not one text')
    for pair in parameters:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2
                and isinstance(pair[0], _TEXT) and isinstance(pair[1], _TEXT)):
            raise InvalidType(Code.BAD_OPTION, f'parameters: pairs of texts, not {pair!r:.80}')
        yield raw(pair[0]), raw(pair[1])


def _secrets_of(secrets: Any) -> List[Text]:
    """Each of several. One text is not several: each of its letters would be a secret."""
    if isinstance(secrets, (*_TEXT, Mapping)):
        raise InvalidType(Code.BAD_OPTION, f'secrets: a list of them, not {type(secrets).__name__}')
    known: List[Text] = [] if secrets is None else list(secrets)
    for one in known:
        _check_secret(one)
    return known


def _check_secret(secret: Any) -> None:
    """What it is stays out of the error."""
    if not isinstance(secret, _TEXT):
        raise InvalidType(Code.BAD_OPTION,
                          f'a secret: text or bytes, not {type(secret).__name__}')
    if len(raw(secret)) == 0:
        raise SemelError(Code.BAD_OPTION, 'a secret is empty')


def _clocks() -> Tuple[int, int]:
    return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000,
            time.time_ns() // 1_000_000)


def _escaped(text: bytes) -> str:
    return quote(text, safe='')
