"""Claims of one namespace, and the patterns on top of them."""

import functools
import inspect
import json
import secrets
from ctypes import byref, c_int, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _library as c
from ._engine import Engine
from ._library import Text, library, raw, take
from ._locks import Lock
from ._numbers import number
from ._runs import (Ending, Run, bytes_of, consumed_of, invoke, nothing_but_no, once_of, same)
from ._types import (Answer, Claim, Code, Consumed, NoResult, Once, OwnerAnswer, Owned, SemelError,
                     State, TokenState, View, last_error)
from ._waits import Wait

F = TypeVar('F', bound=Callable[..., Any])


def policy_of(policy: Optional[str], figures: 'Dict[str, Any]') -> c.Policy:
    """A policy by its name, and what is different from its figures."""
    wanted = c.Policy()
    if policy is not None:
        code = library.policy_named(policy.encode(), byref(wanted))
        if code != Code.OK:
            raise last_error(code)
    for figure, value in figures.items():
        if figure == 'size' or not hasattr(wanted, figure):
            raise TypeError(f'a policy has no {figure}')
        setattr(wanted, figure, number(figure, value))
    return wanted


class Claims:
    """A namespace. From Engine.claims(); lives as long as its engine."""

    def __init__(self, engine: Engine, name: str, policy: Optional[str] = None,
                 **figures: int) -> None:
        self.engine = engine
        self.name = name
        wanted = None
        if policy is not None or figures:
            wanted = policy_of(policy, figures)
        handle = c_void_p()
        engine._do(library.claims_open, engine._handle, name.encode(),
                   None if wanted is None else byref(wanted), byref(handle))
        self._handle = handle.value

    # --- one piece of work ------------------------------------------------------------------

    def claim(self, key: Text, **how: Any) -> Claim:
        """Asks to be the one who does the work. `how`: owner, claim_id (16 bytes), payload (its
        fingerprint tells another payload under the same key), lease_ms, wait_ms (for another
        that has it), first_sent_unix_ms, remote_owner."""
        request = _request(key, **how)
        if request.wait_ms == 0:
            return self._answer_of(key, lambda outcome: self.engine._call(
                library.claim, self._handle, byref(request), byref(outcome)))
        wait = self._begin(request)
        try:
            wait.sleep()
            return self._answer_of(key, wait.end)
        finally:
            wait.abandon()

    def _begin(self, request: c.Request, fd: int = -1) -> Wait:
        return Wait(self.engine, library.wait_begin, self._handle, byref(request), fd=fd)

    def _answer_of(self, key: Text, ask: Callable[[c.ClaimOutcome], int]) -> Claim:
        """The answer of `ask`. Releases a grant if the caller is interrupted before it returns."""
        outcome = c.ClaimOutcome(answer=Answer.BUSY)
        try:
            code = ask(outcome)
            _refuse(code, outcome.error)
            return _claim(outcome)
        except BaseException:
            if outcome.answer == Answer.GRANTED and outcome.epoch:
                if outcome.attempt > 1:  # a release forgets the attempts before
                    self.fail(key, outcome.epoch, keep=False)
                else:
                    self.release(key, outcome.epoch)
            raise

    def complete(self, key: Text, epoch: int, result: Text = b'') -> Owned:
        return self._owner(library.complete, key, epoch, payload=result)

    def fail(self, key: Text, epoch: int, failure: Text = b'', *,
             keep: Optional[bool] = None, in_doubt: bool = False) -> Owned:
        """`in_doubt`: how it ended is unknown, and it must not run again before resolve()."""
        return self._owner(library.fail, key, epoch, payload=failure,
                           on_failure=3 if in_doubt else 0 if keep is None else 1 + int(keep))

    def renew(self, key: Text, epoch: int, *, lease_ms: int = 0) -> Owned:
        return self._owner(library.renew, key, epoch, lease_ms=lease_ms)

    def release(self, key: Text, epoch: int) -> Owned:
        return self._owner(library.release, key, epoch)

    def issue(self, key: Text, *, ttl_ms: int = 0) -> bool:
        """Where keys are issued: makes this one that can be claimed. False: it is known."""
        return self._flag(library.issue, key, number('ttl_ms', ttl_ms))

    def get(self, key: Text) -> View:
        view, name = c.ClaimView(), raw(key)
        self.engine._do(library.claim_get, self._handle, name, len(name), byref(view))
        return View(State(view.state), take(view.result), take(view.owner),
                    bool(view.result_expired), bool(view.poison), view.attempts, view.epoch,
                    view.lease_remaining_ms, view.result_remaining_ms, view.unique_remaining_ms)

    def resolve(self, key: Text, result: Optional[Text] = None) -> bool:
        """Ends a doubt: done with a result, or without one released."""
        data = bytes_of(result)
        return self._flag(library.resolve, key, int(result is None), data, len(data))

    def forget(self, key: Text) -> bool:
        return self._flag(library.resolve, key, 2, b'', 0)

    # --- many at once -----------------------------------------------------------------------

    def claim_batch(self, keys: Sequence[Text], **how: Any) -> List[Claim]:
        requests = (c.Request * len(keys))(*(_request(key, **how) for key in keys))
        outcomes = (c.ClaimOutcome * len(keys))(*(c.ClaimOutcome() for _ in keys))
        self.engine._do(library.claim_batch, self._handle, requests, outcomes, len(keys))
        return [_claim(outcome) for outcome in outcomes]

    def complete_batch(self, done: Sequence[Tuple[Text, int, Text]]) -> List[Owned]:
        """(key, epoch, result) each."""
        calls = (c.OwnerCall * len(done))(*(_owner_call(key, epoch, payload=result)
                                            for key, epoch, result in done))
        outcomes = (c.OwnerOutcome * len(done))(*(c.OwnerOutcome() for _ in done))
        self.engine._do(library.complete_batch, self._handle, calls, outcomes, len(done))
        return [_owned(outcome) for outcome in outcomes]

    # --- functions that run once ------------------------------------------------------------

    def once(self, key: Text, function: Callable[..., Any], *, encode: Any = bytes_of,
             decode: Any = same, **how: Any) -> 'Once[Any]':
        """Runs `function` unless it has run or is running under this key; its result, encoded
        to bytes, is kept and replayed. It may take a Work. If it raises Failed or Rejected the
        outcome says so. What any other exception means, which goes on, and OutcomeUnknown, which
        does not, is said by the namespace's on_exception: given back (0), kept (1), or in doubt (2,
        as of 'payment'): it is not run again before resolve(). A result that cannot be kept (encode
        raises, it is too long) does not undo the work: the outcome is RAN with its value and the
        error RESULT_NOT_KEPT, and repeats are EXPIRED. `how`: as in
        claim(), keep_lease (renewed while it runs), without_key."""
        request = _request(key, **how)
        return self.engine._call(self._once, key, request, function, encode, decode)

    def _once(self, key: Text, request: c.Request, function: Callable[..., Any], encode: Any,
              decode: Any) -> 'Once[Any]':
        wait = self._begin(request)
        run = None
        try:
            if request.wait_ms != 0:
                wait.sleep()
            run = Run.once(self.engine, wait)
            ending, outcome = Ending(encode), c.OnceOutcome()
            _run(run, ending, function)
            error = run.finish(ending, outcome)
            return once_of(key, ending, outcome, error, decode)
        finally:
            (run or wait).abandon()

    def consume_once(self, message_id: Text, handler: Callable[..., Any],
                     **how: Any) -> Consumed:
        """Runs `handler` if this message was not handled yet, and returns the broker's
        verdict. It has failed if it returns False or raises Failed; Rejected makes a dead letter;
        what any other exception means, which goes on, and OutcomeUnknown, which does not, is said
        by the namespace's on_exception, as in once()."""
        return self.engine._call(self._consume, _request(message_id, **how), handler)

    def _consume(self, request: c.Request, handler: Callable[..., Any]) -> Consumed:
        run = Run.message(self.engine, self._handle, request)
        try:
            ending, consumed = Ending(nothing_but_no), c.Consumed()
            _run(run, ending, handler)
            return consumed_of(ending, consumed, run.finish(ending, consumed))
        finally:
            run.abandon()

    def lock(self, key: Text, *, wait_ms: int = 0, owner: Text = b'', lease_ms: int = 0,
             keep_lease: bool = False) -> 'Lock':
        """An owner of the lock; `with` takes it and waits up to wait_ms."""
        return Lock(self, key, wait_ms, owner, lease_ms, keep_lease)

    def _owner(self, function: Any, key: Text, epoch: int, **fields: Any) -> Owned:
        outcome = c.OwnerOutcome()
        code = self.engine._call(function, self._handle,
                                 byref(_owner_call(key, epoch, **fields)), byref(outcome))
        _refuse(code, outcome.error)
        return _owned(outcome)

    def _flag(self, function: Any, key: Text, *arguments: Any) -> bool:
        flag, name = c_int(), raw(key)
        self.engine._do(function, self._handle, name, len(name), *arguments, byref(flag))
        return bool(flag)


def _run(run: Run, ending: Ending, function: Callable[..., Any]) -> None:
    if run.work is None:
        return
    try:
        result = invoke(function, run.work)
    except BaseException as raised:  # it goes on when it is written down
        ending.threw(raised)
    else:
        ending.returned(result)


class Tokens:
    """One-time tokens: what was not issued is unknown, what was spent stays spent."""

    def __init__(self, engine: Engine, name: str = 'tokens', **figures: int) -> None:
        self.claims = Claims(engine, name, 'token', **figures)

    def issue(self, token: Optional[str] = None, *, ttl_ms: int = 0) -> str:
        """A new token, or this one."""
        while True:
            made = secrets.token_urlsafe(24) if token is None else token
            if self.claims.issue(made, ttl_ms=ttl_ms) or token is not None:
                return made

    def spend(self, token: str, function: Callable[..., Any], **how: Any) -> 'Once[Any]':
        """Runs `function` once for the token. If it fails the token is given back, for its time."""
        return self.claims.once(token, function, **how)

    def state(self, token: str) -> TokenState:
        return {State.ABSENT: TokenState.UNKNOWN, State.VACANT: TokenState.ISSUED,
                State.HELD: TokenState.IN_USE, State.IN_DOUBT: TokenState.IN_USE,
                State.DONE: TokenState.SPENT,
                State.FAILED: TokenState.FAILED}[self.claims.get(token).state]


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


def guarded(claims: Claims, key: Union[str, Callable[..., Text]], *,
            encode: Callable[[Any], Text] = json.dumps,
            decode: Callable[[bytes], Any] = json.loads, **how: Any) -> Callable[[F], F]:
    """Decorator: a call runs once under its key, and its result is what later calls get. `key` is
    made of the arguments: a format ('order-{0}', 'order-{order}') or a function of them. Raises
    NoResult where there is none, e.g. while another runs it (say wait_ms to wait)."""

    def decorate(function: F) -> F:
        name_of = key_of(function, key)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            outcome = claims.once(name_of(*arguments, **named),
                                  lambda: function(*arguments, **named),
                                  encode=lambda value: raw(encode(value)), decode=decode, **how)
            if not outcome.has_value:
                raise NoResult(outcome)
            return outcome.value

        return call  # type: ignore[return-value]

    return decorate


def _request(key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, lease_ms: int = 0, wait_ms: int = 0,
             first_sent_unix_ms: int = 0, remote_owner: bool = False, keep_lease: bool = False,
             without_key: bool = False) -> c.Request:
    if claim_id is not None:
        claim_id = raw(claim_id)
        if len(claim_id) != 16:
            raise SemelError(Code.BAD_OPTION, f'claim_id has {len(claim_id)} bytes, not 16')
    name, label = raw(key), raw(owner)
    request = c.Request(key=name, key_length=len(name), owner=label, owner_length=len(label),
                        claim_id=claim_id, lease_ms=number('lease_ms', lease_ms),
                        wait_ms=number('wait_ms', wait_ms),
                        first_sent_unix_ms=number('first_sent_unix_ms', first_sent_unix_ms),
                        remote_owner=int(bool(remote_owner)), keep_lease=int(bool(keep_lease)),
                        without_key=int(bool(without_key)))
    if payload is not None:
        data = raw(payload)
        library.fingerprint_of(data, len(data), byref(request.fingerprint))
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
