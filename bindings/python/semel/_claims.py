"""Claims of one namespace, and the patterns on top of them."""

import functools
import inspect
import json
import secrets
from ctypes import byref, c_int, c_uint64, c_void_p, string_at
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _library as c
from ._engine import Engine
from ._library import Text, library, raw, take
from ._types import (Answer, Claim, Code, Consumed, Failed, NoResult, NotTaken, Once,
                     OnceAnswer, OutcomeUnknown, OwnerAnswer, Owned, Rejected, SemelError, State,
                     TokenState, Verdict, View, Work, last_error)

T = TypeVar('T')
F = TypeVar('F', bound=Callable[..., Any])
_DONE, _FAILED, _REJECTED, _ABANDONED, _UNKNOWN, _DONE_WITHOUT = range(6)


def _bytes_of(value: Any) -> bytes:
    return b'' if value is None else raw(value)


def _nothing_but_no(value: Any) -> bytes:
    if value is False:
        raise Failed('the handler said no')
    return b''


def _same(value: bytes) -> bytes:
    return value


def policy_of(policy: Optional[str], figures: 'Dict[str, int]') -> c.Policy:
    """A policy by its name, and what is different from its figures."""
    wanted = c.Policy()
    if policy is not None:
        code = library.policy_named(policy.encode(), byref(wanted))
        if code != Code.OK:
            raise last_error(code)
    for figure, value in figures.items():
        if figure == 'size' or not hasattr(wanted, figure):
            raise TypeError(f'a policy has no {figure}')
        setattr(wanted, figure, int(value))
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
        outcome = c.ClaimOutcome()
        code = self.engine._call(library.claim, self._handle, byref(_request(key, **how)),
                                 byref(outcome))
        _refuse(code, outcome.error)
        return _claim(outcome)

    def complete(self, key: Text, epoch: int, result: Text = b'') -> Owned:
        return self._owner(library.complete, key, epoch, payload=result)

    def fail(self, key: Text, epoch: int, failure: Text = b'', *,
             keep: Optional[bool] = None, in_doubt: bool = False) -> Owned:
        """`in_doubt`: nobody knows what became of it, and nobody may run it before resolve()."""
        return self._owner(library.fail, key, epoch, payload=failure,
                           on_failure=3 if in_doubt else 0 if keep is None else 1 + int(keep))

    def renew(self, key: Text, epoch: int, *, lease_ms: int = 0) -> Owned:
        return self._owner(library.renew, key, epoch, lease_ms=lease_ms)

    def release(self, key: Text, epoch: int) -> Owned:
        return self._owner(library.release, key, epoch)

    def issue(self, key: Text, *, ttl_ms: int = 0) -> bool:
        """Where keys are issued: makes this one that can be claimed. False: it is known."""
        return self._flag(library.issue, key, ttl_ms)

    def get(self, key: Text) -> View:
        view, name = c.ClaimView(), raw(key)
        self.engine._do(library.claim_get, self._handle, name, len(name), byref(view))
        return View(State(view.state), take(view.result), take(view.owner),
                    bool(view.result_expired), bool(view.poison), view.attempts, view.epoch,
                    view.lease_remaining_ms, view.result_remaining_ms, view.unique_remaining_ms)

    def resolve(self, key: Text, result: Optional[Text] = None) -> bool:
        """Ends a doubt: done with a result, or without one released."""
        data = _bytes_of(result)
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

    def once(self, key: Text, function: Callable[..., Any], *, encode: Any = _bytes_of,
             decode: Any = _same, **how: Any) -> 'Once[Any]':
        """Runs `function` if nobody has, and nobody does, under this key; its result, encoded
        to bytes, is kept and replayed. It may take a Work. If it raises Failed or Rejected the
        outcome says so. What any other exception means, which goes on, and OutcomeUnknown, which
        does not, is said by the namespace's on_exception: given back (0), kept (1), or in doubt (2,
        as of 'payment'): nobody runs it before resolve(). A result that cannot be kept (encode
        raises, it is too long) does not undo the work: the outcome is RAN with its value and the
        error RESULT_NOT_KEPT, and repeats are EXPIRED. `how`: as in
        claim(), keep_lease (renewed while it runs), without_key."""
        run = _Run(function, encode)
        outcome = c.OnceOutcome()
        code = self.engine._call(library.once, self._handle, byref(_request(key, **how)),
                                 run.callback, None, byref(outcome))
        error = last_error(code) if code != Code.OK else None
        value, failure = take(outcome.value), take(outcome.failure)
        run.reraise()
        unkept = error is not None and error.code == Code.RESULT_NOT_KEPT
        if error is not None and outcome.answer == OnceAnswer.RAN and not unkept:
            raise error  # there is no outcome
        read = None
        if run.unkept and outcome.answer != OnceAnswer.SUPERSEDED:
            read, value = run.result, b''
        elif run.ran and value is not None and outcome.answer != OnceAnswer.SUPERSEDED:
            read = run.result
        elif value is not None:
            try:
                read = decode(value)
            except ValueError as wrong:
                raise SemelError(Code.BAD_ENCODING, f'result of {key!r}') from wrong
        return Once(OnceAnswer(outcome.answer), read, value is not None, _text(failure), error,
                    bool(outcome.takeover), bool(outcome.late), outcome.attempt, outcome.epoch,
                    outcome.retry_after_ms)

    def consume_once(self, message_id: Text, handler: Callable[..., Any],
                     **how: Any) -> Consumed:
        """Runs `handler` if this message was not handled yet, and says what the broker is to be
        told. It has failed if it returns False or raises Failed; Rejected makes a dead letter;
        what any other exception means, which goes on, and OutcomeUnknown, which does not, is said
        by the namespace's on_exception, as in once()."""
        run = _Run(handler, _nothing_but_no)
        consumed = c.Consumed()
        code = self.engine._call(library.consume_once, self._handle,
                                 byref(_request(message_id, **how)), run.callback, None,
                                 byref(consumed))
        error = last_error(code) if code != Code.OK else None
        failure = take(consumed.failure)
        run.reraise()
        if error is not None and consumed.answer == OnceAnswer.RAN:
            raise error  # there is no outcome
        return Consumed(Verdict(consumed.verdict), OnceAnswer(consumed.answer), _text(failure),
                        error, bool(consumed.unguarded), consumed.attempts, consumed.epoch,
                        consumed.retry_after_ms)

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


class _Run:
    """A function of Python as one of C: what it raises waits until the library has returned."""

    def __init__(self, function: Callable[..., Any], encode: Callable[[Any], bytes]) -> None:
        self.ran = False
        self.result: Any = None
        self._function = function
        self._encode = encode
        self.unkept = False
        self._raised: Optional[BaseException] = None
        self.callback = c.FUNCTION(self._call)

    def _call(self, _context: Any, work: Any, out: Any) -> int:
        self.ran = True
        try:
            self.result = self._invoke(work.contents)
            return self._done(out)
        except OutcomeUnknown as why:
            return self._say(out, str(why).encode(), _UNKNOWN)
        except Rejected as why:
            return self._say(out, str(why).encode(), _REJECTED)
        except Failed as why:
            return self._say(out, str(why).encode(), _FAILED)
        except BaseException as raised:  # nothing may leave through the library
            self._raised = raised
            return _ABANDONED

    def _done(self, out: Any) -> int:
        """The function has run: what goes wrong with its result must not make it run again."""
        try:
            data = self._encode(self.result)
            if library.out_write(out, data, len(data)) == Code.OK:
                return _DONE
            why = f'no memory for {len(data)} bytes'
        except Failed:
            raise
        except BaseException as wrong:
            why = f'{type(wrong).__name__}: {wrong}'
            if not isinstance(wrong, Exception):
                self._raised = wrong  # Ctrl-C: goes on, after the work is written down
        self.unkept = True
        self._say(out, why.encode(errors='replace'), _DONE_WITHOUT)
        return _DONE_WITHOUT

    def _invoke(self, work: Any) -> Any:
        if not _wants_work(self._function):
            return self._function()
        key = string_at(work.key, work.key_length) if work.key_length else b''
        return self._function(Work(key, work.epoch, work.attempt, bool(work.takeover)))

    @staticmethod
    def _say(out: Any, text: bytes, how: int) -> int:
        return how if library.out_write(out, text, len(text)) == Code.OK else _ABANDONED

    def reraise(self) -> None:
        raised, self._raised = self._raised, None
        self.callback = None  # type: ignore[assignment]  # it and this hold each other
        if raised is not None:
            raise raised


def _wants_work(function: Callable[..., Any]) -> bool:
    """Whether it can be called with one argument and not without."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    try:
        signature.bind()
        return False
    except TypeError:
        return True


class Lock:
    """One owner of a lock with a lease. For one thread at a time."""

    def __init__(self, claims: Claims, key: Text, wait_ms: int, owner: Text, lease_ms: int,
                 keep_lease: bool) -> None:
        self._claims, self._key, self._wait_ms, self._lease_ms = claims, key, wait_ms, lease_ms
        self._handle: Optional[int] = None
        name, label, handle = raw(key), raw(owner), c_void_p()
        options = c.LockOptions(owner=label, owner_length=len(label), lease_ms=lease_ms,
                                keep_lease=int(keep_lease))

        def open_it() -> int:  # what the engine is to close is known to it at once
            code = library.lock_open(claims._handle, name, len(name), byref(options),
                                     byref(handle))
            if code == Code.OK:
                claims.engine._locks.add(handle.value)
            return code

        claims.engine._do(open_it)
        self._handle = handle.value

    def take(self, wait_ms: Optional[int] = None) -> bool:
        """Takes it, or takes it once more. False: another has it."""
        token = c_uint64()
        self._claims.engine._do(library.lock_take, self._handle,
                                self._wait_ms if wait_ms is None else wait_ms, byref(token))
        return token.value != 0

    def give(self) -> bool:
        """Gives it back, after as many calls as it was taken. False: it was lost before."""
        held = c_int()
        self._claims.engine._do(library.lock_give, self._handle, byref(held))
        return bool(held)

    @property
    def token(self) -> int:
        """The fencing token while this owner has the lock and its lease runs, else 0."""
        return self._claims.engine._call(library.lock_token, self._handle)

    def renew(self) -> bool:
        token = self.token
        return bool(token) and self._claims.renew(self._key, token, lease_ms=self._lease_ms).ok

    def close(self) -> None:
        handle, self._handle = self._handle, None
        engine = self._claims.engine
        if handle is None or engine._handle is None:
            return  # the engine has given it back

        def close_it() -> int:
            engine._locks.discard(handle)
            library.lock_close(handle)
            return Code.OK

        engine._call(close_it)

    def __enter__(self) -> 'Lock':
        if not self.take():
            raise NotTaken(f'another has the lock {self._key!r}')
        return self

    def __exit__(self, *_: Any) -> None:
        self.give()

    def __del__(self) -> None:
        if getattr(self, '_handle', None) is not None:
            try:
                self.close()
            except SemelError:
                pass  # its engine ends in this moment


class Tokens:
    """One-time tokens: what was not issued is unknown, what was spent stays spent."""

    def __init__(self, engine: Engine, name: str = 'tokens', **figures: int) -> None:
        self.claims = Claims(engine, name, 'token', **figures)

    def issue(self, token: Optional[str] = None, *, ttl_ms: int = 0) -> str:
        """A new token, or this one."""
        while True:
            made = token or secrets.token_urlsafe(24)
            if self.claims.issue(made, ttl_ms=ttl_ms) or token:
                return made

    def spend(self, token: str, function: Callable[..., Any], **how: Any) -> 'Once[Any]':
        """Runs `function` once for the token. If it fails the token is given back, for its time."""
        return self.claims.once(token, function, **how)

    def state(self, token: str) -> TokenState:
        return {State.ABSENT: TokenState.UNKNOWN, State.VACANT: TokenState.ISSUED,
                State.HELD: TokenState.IN_USE, State.IN_DOUBT: TokenState.IN_USE,
                State.DONE: TokenState.SPENT,
                State.FAILED: TokenState.FAILED}[self.claims.get(token).state]


def guarded(claims: Claims, key: Union[str, Callable[..., Text]], *,
            encode: Callable[[Any], Text] = json.dumps,
            decode: Callable[[bytes], Any] = json.loads, **how: Any) -> Callable[[F], F]:
    """Decorator: a call runs once under its key, and its result is what later calls get. `key` is
    made of the arguments: a format ('order-{0}', 'order-{order}') or a function of them. Raises
    NoResult where there is none, e.g. while another runs it (say wait_ms to wait)."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if callable(key):
                name = key(*arguments, **named)
            else:
                bound = signature.bind(*arguments, **named)
                bound.apply_defaults()
                name = key.format(*arguments, **bound.arguments)
            outcome = claims.once(name, lambda: function(*arguments, **named),
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
    if claim_id is not None and len(claim_id) != 16:
        raise SemelError(Code.BAD_OPTION, f'claim_id has {len(claim_id)} bytes, not 16')
    name, label = raw(key), raw(owner)
    request = c.Request(key=name, key_length=len(name), owner=label, owner_length=len(label),
                        claim_id=claim_id, lease_ms=lease_ms, wait_ms=wait_ms,
                        first_sent_unix_ms=first_sent_unix_ms, remote_owner=int(remote_owner),
                        keep_lease=int(keep_lease), without_key=int(without_key))
    if payload is not None:
        data = raw(payload)
        library.fingerprint_of(data, len(data), byref(request.fingerprint))
    return request


def _owner_call(key: Text, epoch: int, *, payload: Text = b'', lease_ms: int = 0,
                on_failure: int = 0) -> c.OwnerCall:
    name, data = raw(key), raw(payload)
    return c.OwnerCall(key=name, key_length=len(name), epoch=epoch, payload=data,
                       payload_length=len(data), lease_ms=lease_ms, on_failure=on_failure)


def _refuse(code: int, told: int) -> None:
    """Raises what is not in the outcome, and what says that the call is not valid."""
    if code != Code.OK and (code != told or 100 <= code < 200):
        raise last_error(code)


def _error(code: int) -> Optional[SemelError]:
    return None if code == Code.OK else SemelError(code)


def _text(failure: Optional[bytes]) -> Optional[str]:
    return None if failure is None else failure.decode(errors='replace')


def _claim(outcome: c.ClaimOutcome) -> Claim:
    folded = None if outcome.folded_onto < 0 else outcome.folded_onto
    return Claim(Answer(outcome.answer), _error(outcome.error), take(outcome.result),
                 take(outcome.owner), outcome.epoch, outcome.attempt, bool(outcome.takeover),
                 bool(outcome.result_expired), bool(outcome.poison), outcome.remaining_ms,
                 outcome.retry_after_ms, folded, outcome.version)


def _owned(outcome: c.OwnerOutcome) -> Owned:
    return Owned(OwnerAnswer(outcome.answer), _error(outcome.error), bool(outcome.late),
                 take(outcome.result), outcome.version)
