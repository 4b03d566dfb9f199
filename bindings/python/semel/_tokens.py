"""One-time tokens."""

import secrets
from datetime import datetime
from typing import Any, Callable, Optional, Union

from ._claims import Claims
from ._codecs import BYTES, Codec
from ._engine import Engine
from ._keeping import WORK_MAX
from ._library import Text
from ._numbers import Duration, Ms
from ._policy import Policy
from ._requests import Fingerprint
from ._types import Once, State, TokenState


class Tokens:
    """One-time tokens: what was not issued is unknown, what was spent stays spent."""

    def __init__(self, engine: Engine, name: str = 'tokens', *,
                 policy: Union[str, Policy] = 'token') -> None:
        self.claims: Claims = engine.claims(name, policy)

    def issue(self, token: Optional[str] = None, *, ttl: Optional[Duration] = None,
              ttl_ms: Ms = None) -> str:
        """A new token, or this one."""
        while True:
            made = secrets.token_urlsafe(24) if token is None else token
            if self.claims.issue(made, ttl=ttl, ttl_ms=ttl_ms) or token is not None:
                return made

    def spend(self, token: str, function: Callable[..., Any], *, codec: 'Codec[Any]' = BYTES,
              encode: Optional[Callable[[Any], Text]] = None,
              decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
              claim_id: Optional[bytes] = None,
              payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
              lease: Optional[Duration] = None, wait: Optional[Duration] = None,
              first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
              first_sent_unix_ms: Ms = None, remote_owner: bool = False,
              keep_lease: bool = True, work_max: Duration = WORK_MAX,
              on_unkept: str = 'raise') -> 'Once[Any]':
        """Runs `function` once for the token, as Claims.once(). If it fails the token is given
        back, for its time."""
        return self.claims.once(
            token, function, codec=codec, encode=encode, decode=decode, keep_lease=keep_lease,
            work_max=work_max, owner=owner, claim_id=claim_id, payload=payload,
            fingerprint=fingerprint, lease=lease,
            wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
            first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
            on_unkept=on_unkept)

    def state(self, token: str) -> TokenState:
        return {State.ABSENT: TokenState.UNKNOWN, State.VACANT: TokenState.ISSUED,
                State.HELD: TokenState.IN_USE, State.IN_DOUBT: TokenState.IN_USE,
                State.DONE: TokenState.SPENT,
                State.FAILED: TokenState.FAILED}[self.claims.get(token).state]
