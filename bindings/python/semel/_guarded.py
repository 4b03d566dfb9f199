"""Decorators."""

import functools
import inspect
from typing import Any, Callable, Optional, TypeVar, Union, cast

from ._claims import Claims
from ._codecs import JSON, Codec
from ._library import Text, raw
from ._numbers import Duration

F = TypeVar('F', bound=Callable[..., Any])


def key_of(function: Callable[..., Any], key: Union[str, Callable[..., Text]]
           ) -> Callable[..., Text]:
    """From a call's arguments to its key."""
    if callable(key):
        return key
    form, signature = key, inspect.signature(function)

    def formatted(*arguments: Any, **named: Any) -> str:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        return form.format(*arguments, **bound.arguments)

    return formatted


def idempotent(claims: Claims, key: Union[str, Callable[..., Text]], *,
               codec: 'Codec[Any]' = JSON, encode: Optional[Callable[[Any], Text]] = None,
               decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
               payload: Optional[Callable[..., Text]] = None, lease: Optional[Duration] = None,
               wait: Optional[Duration] = None, lease_ms: int = 0, wait_ms: int = 0,
               remote_owner: bool = False, keep_lease: bool = False) -> Callable[[F], F]:
    """Decorator: a call runs once under its key, and its result, as JSON, is what later calls get.
    `key` is made of the arguments: a format ('order-{0}', 'order-{order}') or a function of them.
    So is `payload`, what tells calls apart that must not share a key (Mismatch). Raises NoResult
    where there is no result: InFlight (say `wait`), InDoubt, KeptFailure, Expired .. A coroutine
    function becomes one that never blocks its loop (semel.aio)."""

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            from . import aio
            return aio.idempotent(
                claims, key, codec=codec, encode=encode, decode=decode, owner=owner,
                payload=payload, lease=lease, wait=wait, lease_ms=lease_ms, wait_ms=wait_ms,
                remote_owner=remote_owner, keep_lease=keep_lease)(function)
        name_of = key_of(function, key)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return claims.once(
                name_of(*arguments, **named), lambda: function(*arguments, **named), codec=codec,
                encode=encode, decode=decode, owner=owner,
                payload=None if payload is None else raw(payload(*arguments, **named)),
                lease=lease, wait=wait, lease_ms=lease_ms, wait_ms=wait_ms,
                remote_owner=remote_owner, keep_lease=keep_lease).require()

        return cast(F, call)

    return decorate


guarded = idempotent
