"""From the words of a call to the structs of semel.h."""

import hashlib
import json
from ctypes import byref
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

from . import _library as c
from ._errors import Code, SemelError, last_error
from ._library import Text, library, raw
from ._numbers import Duration, number, span
from ._types import Claim, Answer, Owned, OwnerAnswer
from ._library import take

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SHA256_BYTES, SHA256_JSON = 2, 4


@dataclass(frozen=True)
class Fingerprint:
    """What tells one payload from another under the same key. Those of different algorithms (their
    numbers are in docs/keys.md) are never compared."""

    algorithm: int
    digest: bytes


def fingerprint(payload: Any, *, json_text: bool = False, sha256: bool = False) -> Fingerprint:
    """Of bytes or text as they are; with `json_text` of the JSON in them, whatever its order and
    blanks and ways to write numbers (RFC 8785); of anything else, e.g. a dict, as JSON. XXH3 finds
    mistakes; say `sha256` where a client could gain from two payloads with one fingerprint (then
    JSON has to be sorted already: it is hashed as text). Raises SemelError (SYNTAX), TypeError."""
    if not isinstance(payload, (str, bytes, bytearray, memoryview)):
        payload, json_text = json.dumps(payload, sort_keys=True, allow_nan=False), True
    data = raw(payload)
    if sha256:
        return Fingerprint(SHA256_JSON if json_text else SHA256_BYTES,
                           hashlib.sha256(data).digest()[:16])
    made = c.Fingerprint()
    code = (library.fingerprint_json if json_text else library.fingerprint_of)(
        data, len(data), byref(made))
    if code != Code.OK:
        raise last_error(code)
    return Fingerprint(made.algorithm, bytes(made.digest))


def unix_ms(moment: Union[datetime, int]) -> int:
    """Milliseconds since 1970 of a datetime with its time zone."""
    if not isinstance(moment, datetime):
        return number('first_sent_unix_ms', moment)
    if moment.tzinfo is None:
        raise TypeError('first_sent: a datetime with a time zone')
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _request(key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: int = 0, wait_ms: int = 0,
             first_sent_unix_ms: int = 0, remote_owner: bool = False, keep_lease: bool = False,
             without_key: bool = False) -> c.Request:
    if claim_id is not None:
        claim_id = raw(claim_id)
        if len(claim_id) != 16:
            raise SemelError(Code.BAD_OPTION, f'claim_id has {len(claim_id)} bytes, not 16')
    sent = number('first_sent_unix_ms', first_sent_unix_ms)
    if first_sent is not None:
        if sent:
            raise TypeError('first_sent or first_sent_unix_ms, not both')
        sent = unix_ms(first_sent)
    name, label = raw(key), raw(owner)
    request = c.Request(key=name, key_length=len(name), owner=label, owner_length=len(label),
                        claim_id=claim_id, lease_ms=span('lease', lease_ms, lease),
                        wait_ms=span('wait', wait_ms, wait), first_sent_unix_ms=sent,
                        remote_owner=int(bool(remote_owner)), keep_lease=int(bool(keep_lease)),
                        without_key=int(bool(without_key)))
    if payload is not None:
        if fingerprint is not None:
            raise TypeError('payload or fingerprint, not both')
        data = raw(payload)
        library.fingerprint_of(data, len(data), byref(request.fingerprint))
    elif fingerprint is not None:
        if len(fingerprint.digest) != 16:
            raise SemelError(Code.BAD_OPTION,
                             f'a digest of {len(fingerprint.digest)} bytes, not 16')
        request.fingerprint.algorithm = fingerprint.algorithm
        request.fingerprint.digest[:] = fingerprint.digest
    return request


def _owner_call(key: Text, epoch: int, *, payload: Text = b'', lease_ms: int = 0,
                on_failure: int = 0) -> c.OwnerCall:
    name, data = raw(key), raw(payload)
    return c.OwnerCall(key=name, key_length=len(name), epoch=number('epoch', epoch),
                       payload=data, payload_length=len(data),
                       lease_ms=number('lease_ms', lease_ms), on_failure=on_failure)


def _refuse(code: int, shown: int) -> None:
    """Raises what is not in the outcome, and what says that the call is not valid."""
    if code != Code.OK and (code != shown or 100 <= code < 200 or code == Code.FORKED):
        raise last_error(code)


def _error(code: int) -> Optional[SemelError]:
    return None if code == Code.OK else SemelError(code)


def _claim(outcome: c.ClaimOutcome) -> Claim:
    folded = None if outcome.folded_onto < 0 else outcome.folded_onto
    return Claim(Answer(outcome.answer), _error(outcome.error), take(outcome.result),
                 take(outcome.owner), outcome.epoch, outcome.attempt, bool(outcome.takeover),
                 bool(outcome.result_expired), bool(outcome.poison), outcome.remaining_ms,
                 outcome.retry_after_ms, folded, outcome.version)


def _owned(outcome: c.OwnerOutcome) -> Owned:
    return Owned(OwnerAnswer(outcome.answer), _error(outcome.error), bool(outcome.late),
                 take(outcome.result), outcome.version)
