"""Decorators."""

import functools
import inspect
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar, Union, cast

from ._claims import Claims
from ._codecs import Codec, codec_of_result
from ._identity import identity
from ._keeping import WORK_MAX
from ._keys import KeyOf, key_of
from ._lazy import refuse_lazy
from ._library import Text
from ._numbers import Duration, Ms
from ._operations import declare
from ._requests import SHA256_IDENTITY, Fingerprint
from ._signatures import Call, operation_of

F = TypeVar('F', bound=Callable[..., Any])


class Arguments:
    """Of `payload`: all arguments of the call."""

    def __repr__(self) -> str:
        return 'ARGUMENTS'


ARGUMENTS = Arguments()
Payload = Union[Arguments, None, Callable[..., Any]]


class Plan:
    """How calls of one function are told apart: all that can be refused is, when it is made."""

    def __init__(self, function: Callable[..., Any], key: Union[str, KeyOf, None], *,
                 operation: Optional[str], payload: Payload, ignore: Sequence[str],
                 scope: Optional[Callable[..., Mapping[str, str]]],
                 claims: Optional[Claims] = None) -> None:
        self.call = Call(function, operation, ignore)
        self._key = None if key is None else key_of(self.call, key)
        for what, given in (('payload', payload), ('scope', scope)):
            if given is not None and not isinstance(given, Arguments):
                refuse_lazy(given, what)
        self._payload, self._scope = payload, scope
        if claims is not None and operation is None:
            declare(claims, self.call.name, function)

    def of(self, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[Text, Fingerprint]:
        """The key of a call, and the fingerprint of its operation, scope and payload."""
        bound = self.call.bind(arguments, named)
        if self._payload is None:
            payload: Any = {}
        elif isinstance(self._payload, Arguments):
            payload = self.call.counted(bound)
        else:
            payload = self._payload(*arguments, **named)
        scope: Mapping[str, Any] = {}
        if self._scope is not None:
            scope = {name: '' if text is None else text for name, text in self._scope(
                *arguments, **named).items()} or {'tenant': ''}  # a scope of nobody is refused
        made = identity(self.call.name, payload, **scope)
        key = made.key if self._key is None else self._key(arguments, named, bound)
        return key, Fingerprint(SHA256_IDENTITY, made.digest)


def idempotent(claims: Claims, key: Union[str, KeyOf, None] = None, *,
               operation: Optional[str] = None, payload: Payload = ARGUMENTS,
               ignore: Sequence[str] = (),
               scope: Optional[Callable[..., Mapping[str, str]]] = None,
               codec: 'Optional[Codec[Any]]' = None,
               encode: Optional[Callable[[Any], Text]] = None,
               decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
               lease: Optional[Duration] = None,
               wait: Optional[Duration] = None, lease_ms: Ms = None,
               wait_ms: Ms = None, remote_owner: bool = False, keep_lease: bool = True,
               work_max: Duration = WORK_MAX) -> Callable[[F], F]:
    """Decorator: a call runs once under its key, and its result is what later calls get.

    `key`: a format of the arguments ('order:{order}', 'order:{0}'), in which separators are
    escaped, or a function of them; without one, the digest of the call's identity. That is the
    operation, the scope and the arguments by name, with their defaults: another operation or other
    arguments under the same key are a Mismatch. `operation`: its name, if not module and function;
    another function of the same name in these claims must say one.
    `ignore`: arguments that do not count. `payload`: a function of the arguments whose value counts
    instead of them; None: the operation alone. `scope`: a function of the arguments that returns
    {'tenant': ..}, {'user': ..} or both. What cannot be counted is NotCanonical, before the claim.

    `codec`: by default that of the function's return annotation (codec_for). Raises NoResult where
    there is no result: InFlight (say `wait`), InDoubt, KeptFailure, Expired .. A coroutine function
    becomes one that never blocks its loop (semel.aio)."""

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            from . import aio
            made = aio.idempotent(
                claims, key, operation=operation, payload=payload, ignore=ignore, scope=scope,
                codec=codec, encode=encode, decode=decode, owner=owner, lease=lease, wait=wait,
                lease_ms=lease_ms, wait_ms=wait_ms, remote_owner=remote_owner,
                keep_lease=keep_lease, work_max=work_max)(function)
            if operation is None:
                declare(claims, operation_of(function), function)
            return made
        refuse_lazy(function, 'idempotent')
        plan = Plan(function, key, operation=operation, payload=payload, ignore=ignore, scope=scope,
                    claims=claims)
        kept_by = codec or codec_of_result(function)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            name, fingerprint = plan.of(arguments, named)
            return claims.once(
                name, lambda: function(*arguments, **named), codec=kept_by, encode=encode,
                decode=decode, owner=owner, fingerprint=fingerprint, lease=lease, wait=wait,
                lease_ms=lease_ms, wait_ms=wait_ms, remote_owner=remote_owner,
                keep_lease=keep_lease, work_max=work_max).require()

        return cast(F, call)

    return decorate


guarded = idempotent
