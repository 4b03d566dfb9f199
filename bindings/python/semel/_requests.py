"""From the words of a call to the structs of semel.h."""

import hashlib
from ctypes import byref
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

from . import _library as c
from ._canonical import canonical_json
from ._errors import Code, InvalidType, SemelError, last_error
from ._identity import json_of
from ._keys import key_bytes
from ._library import Text, library, raw
from ._numbers import Duration, Ms, flag, number, span
from ._types import Answer, Claim

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SHA256_BYTES, SHA256_JSON, SHA256_IDENTITY = 2, 7, 9


@dataclass(frozen=True)
class Fingerprint:
    """What tells one payload from another under the same key. Those of different algorithms (their
    numbers are in docs/keys.md) are never compared."""

    algorithm: int  # 1 to 255
    digest: bytes  # 16 of them

    def __post_init__(self) -> None:
        number('algorithm', self.algorithm)
        if not isinstance(self.digest, bytes):
            raise InvalidType(Code.BAD_OPTION, 'a digest of bytes, not '
                              f'{type(self.digest).__name__}')
        if len(self.digest) != 16:
            raise SemelError(Code.BAD_OPTION, f'a digest of {len(self.digest)} bytes, not 16')


def fingerprint(payload: Any, *, json_text: bool = False, sha256: bool = False) -> Fingerprint:
    """Of bytes or text as they are; with `json_text` of the JSON in them, whatever its order and
    blanks and ways to write numbers; of anything else, e.g. a dict or a dataclass, as the JSON that
    docs/identity.md says. XXH3 finds mistakes; say `sha256` where a client could gain from two
    payloads with one fingerprint. Raises SemelError (SYNTAX), NotCanonical."""
    if not isinstance(payload, (str, bytes, bytearray, memoryview)):
        payload, json_text = json_of(payload, 'payload'), True
    data = raw(payload)
    if sha256:
        text = canonical_json(data) if json_text else data
        return Fingerprint(SHA256_JSON if json_text else SHA256_BYTES,
                           hashlib.sha256(text).digest()[:16])
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
        raise InvalidType(Code.BAD_OPTION, 'first_sent: a datetime with a time zone')
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _request(key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: Ms = None,
             wait_ms: Ms = None, first_sent_unix_ms: Ms = None,
             remote_owner: bool = False, without_key: bool = False) -> c.Request:
    if claim_id is not None:
        claim_id = raw(claim_id)
        if len(claim_id) != 16:
            raise SemelError(Code.BAD_OPTION, f'claim_id has {len(claim_id)} bytes, not 16')
    sent = 0
    if first_sent is not None and first_sent_unix_ms is not None:
        raise InvalidType(Code.BAD_OPTION, 'first_sent or first_sent_unix_ms, not both')
    moment = first_sent if first_sent_unix_ms is None else first_sent_unix_ms
    if moment is not None:
        sent = unix_ms(moment) or 1  # in semel.h 0 is none: the millisecond after it is as old
    no_key = flag('without_key', without_key)
    name, label = key_bytes(key, may_be_empty=bool(no_key)), raw(owner)
    request = c.Request(key=name, key_length=len(name), owner=label, owner_length=len(label),
                        claim_id=claim_id, lease_ms=span('lease', lease_ms, lease),
                        wait_ms=span('wait', wait_ms, wait, least=0), first_sent_unix_ms=sent,
                        remote_owner=flag('remote_owner', remote_owner), without_key=no_key)
    if payload is not None:
        if fingerprint is not None:
            raise InvalidType(Code.BAD_OPTION, 'payload or fingerprint, not both')
        data = raw(payload)
        library.fingerprint_of(data, len(data), byref(request.fingerprint))
    elif fingerprint is not None:
        if not isinstance(fingerprint, Fingerprint):
            raise InvalidType(Code.BAD_OPTION,
                              f'fingerprint: a Fingerprint, not {type(fingerprint).__name__}')
        request.fingerprint.algorithm = fingerprint.algorithm
        request.fingerprint.digest[:] = fingerprint.digest
    return request


def name_bytes(what: str, name: Any) -> bytes:
    """The name of a namespace or a policy. What a name may be, the library says."""
    if not isinstance(name, str):
        raise InvalidType(Code.BAD_OPTION, f'{what}: text, not {name!r:.40}')
    try:
        return name.encode()
    except UnicodeEncodeError as wrong:
        raise SemelError(Code.BAD_ENCODING, f'{what} has half of a character: {wrong}') from None


def _owner_call(key: Text, epoch: int, *, payload: Text = b'', lease_ms: int = 0,
                on_failure: int = 0) -> c.OwnerCall:
    name, data = key_bytes(key), raw(payload)
    return c.OwnerCall(key=name, key_length=len(name), epoch=number('epoch', epoch),
                       payload=data, payload_length=len(data),
                       lease_ms=lease_ms, on_failure=on_failure)


def _refuse(code: int, shown: int) -> None:
    """Raises what is not in the outcome, and what says that the call is not valid."""
    if code != Code.OK and (code != shown or 100 <= code < 200 or code == Code.FORKED):
        raise last_error(code)


def in_flight() -> Claim:
    """The answer where a grant was over before its caller came to it, and no wait is left."""
    return Claim._of(c.ClaimOutcome(answer=Answer.IN_FLIGHT, error=Code.TIMED_OUT, folded_onto=-1))
