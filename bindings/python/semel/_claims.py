"""Claims of one namespace, and the patterns on top of them."""

from ctypes import byref, c_int, c_size_t, c_void_p
from datetime import datetime
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _library as c
from ._codecs import BYTES, Codec
from ._engine import Engine
from ._errors import NoResult
from ._holding import Holding, Keeper
from ._library import Text, library, raw, take
from ._locks import Lock
from ._numbers import Duration, number, span
from ._policy import Policy
from ._requests import (Fingerprint, _claim, _error, _owned, _owner_call, _refuse, _request)
from ._runs import Ending, Run, consumed_of, invoke, nothing_but_no, once_of
from ._steps import ClaimSteps
from ._types import (Answer, Call, Claim, Consumed, Decision, Once, Owned, State, View)
from ._waits import Wait


class Claims:
    """A namespace. From Engine.claims(); lives as long as its engine. Thread-safe."""

    def __init__(self, engine: Engine, name: str, policy: Optional[Policy] = None) -> None:
        self.engine = engine
        self.name = name
        plain = policy is None or policy._is_plain()
        wanted = None if plain or policy is None else policy._struct()
        handle = c_void_p()
        engine._do(library.claims_open, engine._handle, name.encode(),
                   None if wanted is None else byref(wanted), byref(handle))
        self._handle = handle.value

    # --- one piece of work ------------------------------------------------------------------

    def claim(self, key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
              payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
              lease: Optional[Duration] = None, wait: Optional[Duration] = None,
              first_sent: Optional[datetime] = None, lease_ms: int = 0, wait_ms: int = 0,
              first_sent_unix_ms: int = 0, remote_owner: bool = False) -> Claim:
        """Asks to be the one who does the work. `owner`: a label for people. `claim_id`: 16 bytes,
        the same when a lost reply is asked for again. `payload` or its `fingerprint` tells another
        payload under the same key. `wait`: for another that has it. `first_sent`: when the work was
        asked for first. `remote_owner`: the lease alone says whether the owner lives, not also the
        end of this process. Claim.require() raises what is no grant."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner)
        if request.wait_ms == 0:
            return self._answer_of(key, lambda outcome: self.engine._call(
                library.claim, self._handle, byref(request), byref(outcome)))
        place = self._begin(request)
        try:
            place.sleep()
            return self._answer_of(key, place.end)
        finally:
            place.abandon()

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

    def renew(self, key: Text, epoch: int, *, lease: Optional[Duration] = None,
              lease_ms: int = 0) -> Owned:
        """Moves the lease on; refused for one that has ended."""
        return self._owner(library.renew, key, epoch, lease_ms=span('lease', lease_ms, lease))

    def release(self, key: Text, epoch: int) -> Owned:
        return self._owner(library.release, key, epoch)

    def issue(self, key: Text, *, ttl: Optional[Duration] = None, ttl_ms: int = 0) -> bool:
        """Where keys are issued: makes this one that can be claimed. False: it is known."""
        return self._flag(library.issue, key, span('ttl', ttl_ms, ttl))

    def get(self, key: Text) -> View:
        view, name = c.ClaimView(), raw(key)
        self.engine._do(library.claim_get, self._handle, name, len(name), byref(view))
        return View(State(view.state), take(view.result), take(view.owner),
                    bool(view.result_expired), bool(view.poison), view.attempts, view.epoch,
                    view.lease_remaining_ms, view.result_remaining_ms, view.unique_remaining_ms)

    def resolve(self, key: Text, result: Optional[Text] = None) -> bool:
        """Ends a doubt: done with a result, or without one released."""
        data = b'' if result is None else raw(result)
        return self._flag(library.resolve, key, int(result is None), data, len(data))

    def forget(self, key: Text) -> bool:
        return self._flag(library.resolve, key, 2, b'', 0)

    def explain(self, key: Text, count: int = 8) -> List[Decision]:
        """What was lately decided about the key and why, from old to new: of an engine that was
        opened with decision_log_bytes. Raises SemelError (BAD_OPTION) for any other."""
        wanted, name = number('count', count), raw(key)
        found = c_size_t()
        decisions = (c.Decision * wanted)(*(c.Decision() for _ in range(wanted)))
        self.engine._do(library.explain, self._handle, name, len(name), decisions, wanted,
                        byref(found))
        return [_decision(one) for one in decisions[:found.value]]

    def steps(self, key: Text, epoch: int) -> ClaimSteps:
        """The steps of a claim that the caller holds with this epoch."""
        return ClaimSteps(self, key, epoch)

    def keep(self, key: Text, epoch: int, *, lease: Optional[Duration] = None,
             lease_ms: int = 0) -> Keeper:
        """Renews the lease of a claim from a thread of the engine, until the keeper is closed.
        Raises SemelError (BAD_OPTION) for a lease of less than 200 ms."""
        return Keeper(self, key, epoch, span('lease', lease_ms, lease))

    # --- many at once -----------------------------------------------------------------------

    def claim_batch(self, keys: Sequence[Text], *, owner: Text = b'',
                    lease: Optional[Duration] = None, lease_ms: int = 0,
                    first_sent: Optional[datetime] = None, first_sent_unix_ms: int = 0,
                    payloads: Optional[Sequence[Optional[Text]]] = None, wait_ms: int = 0,
                    remote_owner: bool = False) -> List[Claim]:
        """An answer each; a key that comes twice folds onto the first. `payloads`: one a key.
        There is no waiting: a `wait_ms` is refused."""
        if payloads is not None and len(payloads) != len(keys):
            raise ValueError(f'{len(payloads)} payloads for {len(keys)} keys')
        requests = (c.Request * len(keys))(*(
            _request(key, owner=owner, lease=lease, lease_ms=lease_ms, first_sent=first_sent,
                     first_sent_unix_ms=first_sent_unix_ms, wait_ms=wait_ms,
                     payload=None if payloads is None else payloads[i], remote_owner=remote_owner)
            for i, key in enumerate(keys)))
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

    def once(self, key: Text, function: Callable[..., Any], *, codec: 'Codec[Any]' = BYTES,
             encode: Optional[Callable[[Any], Text]] = None,
             decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
             claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: int = 0, wait_ms: int = 0,
             first_sent_unix_ms: int = 0, remote_owner: bool = False,
             keep_lease: bool = False, without_key: bool = False) -> 'Once[Any]':
        """Runs `function` unless it has run or is running under this key; its result, made bytes by
        `codec` (or `encode` and `decode`), is kept and replayed. It may take a Work. If it raises
        Failed or Rejected the outcome says so. What any other exception means, which goes on, and
        OutcomeUnknown, which does not, is said by the namespace's on_exception: RELEASE, KEEP, or
        IN_DOUBT (as of 'payment'): it is not run again before resolve(). A result that cannot be
        kept (encode raises, it is too long) does not undo the work: the outcome is RAN with its
        value and the error RESULT_NOT_KEPT, and repeats are EXPIRED. `keep_lease`: renewed while it
        runs. `without_key`: an empty key runs unguarded. All else: as of claim()."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                           keep_lease=keep_lease, without_key=without_key)
        encode, decode = encode or codec.encode, decode or codec.decode
        outcome: 'Once[Any]' = self.engine._call(self._once, key, request, function, encode,
                                                 decode)
        return outcome

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

    def consume_once(self, message_id: Text, handler: Callable[..., Any], *,
                     owner: Text = b'', claim_id: Optional[bytes] = None,
                     payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
                     lease: Optional[Duration] = None, wait: Optional[Duration] = None,
                     first_sent: Optional[datetime] = None, lease_ms: int = 0, wait_ms: int = 0,
                     first_sent_unix_ms: int = 0, remote_owner: bool = False,
                     keep_lease: bool = False, without_key: bool = False) -> Consumed:
        """Runs `handler` if this message was not handled yet, and returns the broker's
        verdict. It has failed if it returns False or raises Failed; Rejected makes a dead letter;
        what any other exception means, which goes on, and OutcomeUnknown, which does not, is said
        by the namespace's on_exception, as in once(). A message never waits for its turn."""
        request = _request(message_id, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                           keep_lease=keep_lease, without_key=without_key)
        consumed: Consumed = self.engine._call(self._consume, request, handler)
        return consumed

    def hold(self, key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: int = 0, wait_ms: int = 0,
             first_sent_unix_ms: int = 0, remote_owner: bool = False,
             keep_lease: bool = False) -> Holding:
        """The work as a block: `with orders.hold('order-1') as work: ...; work.result = b'paid'`.
        As once(): a block that ends well is done, one that raises ends as on_exception says.
        Raises what is no grant: InFlight, AlreadyDone (with outcome.value), Mismatch .."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                           keep_lease=keep_lease)
        place = self._begin(request)
        run = None
        try:
            if request.wait_ms != 0:
                place.sleep()
            run = Run.once(self.engine, place)
            return self._holding(key, run)
        except BaseException:
            (run or place).abandon()
            raise

    def _holding(self, key: Text, run: Run) -> Holding:
        if run.work is not None:
            return Holding(self, key, run, run.work)
        ending, outcome = Ending(BYTES.encode), c.OnceOutcome()
        raise NoResult(once_of(key, ending, outcome, run.finish(ending, outcome), BYTES.decode))

    def _consume(self, request: c.Request, handler: Callable[..., Any]) -> Consumed:
        run = Run.message(self.engine, self._handle, request)
        try:
            ending, consumed = Ending(nothing_but_no), c.Consumed()
            _run(run, ending, handler)
            return consumed_of(ending, consumed, run.finish(ending, consumed))
        finally:
            run.abandon()

    def lock(self, key: Text, *, owner: Text = b'', wait: Optional[Duration] = None,
             lease: Optional[Duration] = None, wait_ms: int = 0, lease_ms: int = 0,
             keep_lease: bool = False) -> Lock:
        """An owner of the lock; `with` takes it and waits up to `wait`, else raises NotTaken.
        `keep_lease`: a thread of the engine renews the lease."""
        return Lock(self, key, span('wait', wait_ms, wait), owner,
                    span('lease', lease_ms, lease), keep_lease)

    def _owner(self, function: Any, key: Text, epoch: int, payload: Text = b'',
               lease_ms: int = 0, on_failure: int = 0) -> Owned:
        outcome = c.OwnerOutcome()
        call = _owner_call(key, epoch, payload=payload, lease_ms=lease_ms, on_failure=on_failure)
        code = self.engine._call(function, self._handle, byref(call), byref(outcome))
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


def _decision(made: c.Decision) -> Decision:
    outcome, why = take(made.outcome), take(made.why)
    return Decision(Call(made.call), (outcome or b'').decode(), (why or b'').decode(),
                    made.first_unix_ms, made.last_unix_ms, made.times, made.epoch, made.attempt,
                    take(made.owner), State(made.seen), made.seen_epoch, take(made.seen_owner))
