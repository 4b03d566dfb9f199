"""Claims of one namespace, and the patterns on top of them."""

from contextlib import suppress
from ctypes import byref, c_int, c_size_t, c_void_p
from datetime import datetime
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _library as c
from ._accesses import READ, WRITE, Access
from ._codecs import BYTES, Codec
from ._engine import Engine
from ._errors import Code, InvalidKey, InvalidType, NoResult, SemelError
from ._functions import wants_work
from ._holding import Holding
from ._keeping import WORK_MAX, Keeper, check_can_keep, work_max_ms
from ._keys import key_bytes
from ._lazy import refuse_lazy
from ._library import Text, library, raw, take
from ._lock_all import Locks
from ._locks import Lock
from ._numbers import Deadline, Duration, Ms, flag, number, one_of, span
from ._observer import Observer, Watch, check_observer
from ._permits import Permit
from ._policy import Policy
from ._requests import Fingerprint, _owner_call, _refuse, _request, in_flight, name_bytes
from ._runs import (NOTHING, ON_UNKEPT, Ending, Kept, Run, codec_with, consumed_of, invoke, once_of,
                    unless_unkept, verdict_of)
from ._steps import ClaimSteps
from ._types import (Answer, Call, Claim, Consumed, Decision, Once, Owned, State, View)
from ._waits import Wait


class Claims:
    """A namespace. From Engine.claims(); lives as long as its engine. Thread-safe."""

    def __init__(self, engine: Engine, name: str, policy: Optional[Policy] = None,
                 observer: Optional[Observer] = None) -> None:
        self.engine = engine
        self.observer = check_observer(observer)
        self.name = name
        plain = policy is None or policy._is_plain()
        wanted = None if plain or policy is None else policy._struct()
        handle = c_void_p()
        engine._do(library.claims_open, engine._handle, name_bytes('the namespace', name),
                   None if wanted is None else byref(wanted), byref(handle))
        self._handle = handle.value
        self._kept: Dict[int, int] = {}  # leases that can be renewed, and by which terms

    # --- one piece of work ------------------------------------------------------------------

    def claim(self, key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
              payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
              lease: Optional[Duration] = None, wait: Optional[Duration] = None,
              first_sent: Optional[datetime] = None, lease_ms: Ms = None,
              wait_ms: Ms = None, first_sent_unix_ms: Ms = None,
              remote_owner: bool = False) -> Claim:
        """Asks to be the one who does the work. `owner`: a label for people. `claim_id`: 16 bytes,
        the same when a lost reply is asked for again. `payload` or its `fingerprint` tells another
        payload under the same key. `wait`: for another that has it. `first_sent`: when the work was
        asked for first. `remote_owner`: the lease alone says whether the owner lives, not also the
        end of this process. Claim.require() raises what is no grant."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner)
        watch = self._watch(key)
        claim = self._claim(key, request)
        watch.ended(claim.answer)
        return claim

    def _watch(self, key: Text, began: Optional[float] = None) -> Watch:
        return Watch(self.observer, self.name, key, began)

    def _claim(self, key: Text, request: c.Request) -> Claim:
        deadline = Deadline(request.wait_ms)
        while request.wait_ms != 0:
            place = self._begin(request)
            try:
                place.sleep()
                claim = self._answer_of(key, place.end, awaited=True)
            finally:
                place.abandon()
            if claim is not None:
                return claim
            if not deadline.asks_again():
                return in_flight()
            request.wait_ms = deadline.left_ms
        return self._claim_now(key, request)

    def _claim_now(self, key: Text, request: c.Request) -> Claim:
        claim = self._answer_of(key, lambda outcome: self.engine._call(
            library.claim, self._handle, byref(request), byref(outcome)))
        assert claim is not None
        return claim

    def _begin(self, request: c.Request, fd: int = -1) -> Wait:
        return Wait(self.engine, library.wait_begin, self._handle, byref(request), fd=fd)

    def _answer_of(self, key: Text, ask: Callable[[c.ClaimOutcome], int], *,
                   awaited: bool = False) -> Optional[Claim]:
        """The answer of `ask`. Releases a grant if the caller is interrupted before it returns.
        None, of one that was `awaited`: it was granted, but the caller has learnt it so late that
        the lease is over; ask again."""
        outcome = c.ClaimOutcome(answer=Answer.BUSY)
        try:
            code = ask(outcome)
            _refuse(code, outcome.error)
            claim = Claim._of(outcome)
            if awaited and claim.granted and not self._is_held(key, claim.epoch):
                self.release(key, claim.epoch)  # as if it had not been granted
                return None
            return claim
        except BaseException:
            if outcome.answer == Answer.GRANTED and outcome.epoch:
                self.release(key, outcome.epoch)  # the attempts before this one stay counted
            raise

    def _is_held(self, key: Text, epoch: int) -> bool:
        """Whether this owner has it and its lease runs."""
        view = self.get(key)
        return (view.state is State.HELD and view.epoch == epoch
                and view.lease_remaining_ms > 0)

    def complete(self, key: Text, epoch: int, result: Text = b'') -> Owned:
        return self._owner(library.complete, key, epoch, payload=result)

    def fail(self, key: Text, epoch: int, failure: Text = b'', *,
             keep: Optional[bool] = None, in_doubt: bool = False) -> Owned:
        """`in_doubt`: how it ended is unknown, and it must not run again before resolve()."""
        doubt, kept = flag('in_doubt', in_doubt), 0 if keep is None else 1 + flag('keep', keep)
        if doubt and kept:
            raise InvalidType(Code.BAD_OPTION, 'keep or in_doubt, not both')
        return self._owner(library.fail, key, epoch, payload=failure,
                           on_failure=3 if doubt else kept)

    def renew(self, key: Text, epoch: int, *, lease: Optional[Duration] = None,
              lease_ms: Ms = None) -> Owned:
        """Moves the lease on; refused for one that has ended."""
        return self._owner(library.renew, key, epoch, lease_ms=span('lease', lease_ms, lease))

    def release(self, key: Text, epoch: int) -> Owned:
        return self._owner(library.release, key, epoch)

    def issue(self, key: Text, *, ttl: Optional[Duration] = None, ttl_ms: Ms = None) -> bool:
        """Where keys are issued: makes this one that can be claimed. False: it is known."""
        lives = span('ttl', ttl_ms, ttl)
        return self._flag(library.issue, key, lives if lives != 0 else -1 << 31)

    def get(self, key: Text) -> View:
        view, name = c.ClaimView(), key_bytes(key)
        self.engine._do(library.claim_get, self._handle, name, len(name), byref(view))
        return View._of(view)

    def resolve(self, key: Text, result: Optional[Text] = None) -> bool:
        """Ends a doubt: done with a result, or without one released."""
        data = b'' if result is None else raw(result)
        return self._flag(library.resolve, key, int(result is None), data, len(data))

    def forget(self, key: Text) -> bool:
        return self._flag(library.resolve, key, 2, b'', 0)

    def explain(self, key: Text, count: int = 8) -> List[Decision]:
        """What was lately decided about the key and why, from old to new: of an engine that was
        opened with decision_log_bytes. Raises SemelError (BAD_OPTION) for any other."""
        wanted, name = number('count', count), key_bytes(key)
        found = c_size_t()
        decisions = (c.Decision * wanted)(*(c.Decision() for _ in range(wanted)))
        self.engine._do(library.explain, self._handle, name, len(name), decisions, wanted,
                        byref(found))
        return [_decision(one) for one in decisions[:found.value]]

    def steps(self, key: Text, epoch: int) -> ClaimSteps:
        """The steps of a claim that the caller holds with this epoch."""
        return ClaimSteps(self, key_bytes(key), epoch)

    def keep(self, key: Text, epoch: int, *, lease: Optional[Duration] = None,
             lease_ms: Ms = None, work_max: Duration = WORK_MAX) -> Keeper:
        """Renews the lease of a claim from a thread of the engine, until the keeper is closed or
        `work_max` is over. Raises SemelError (BAD_OPTION) for a lease of less than 200 ms."""
        return Keeper(self, key_bytes(key), epoch, span('lease', lease_ms, lease), work_max)

    # --- many at once -----------------------------------------------------------------------

    def claim_batch(self, keys: Sequence[Text], *, owner: Text = b'',
                    lease: Optional[Duration] = None, lease_ms: Ms = None,
                    first_sent: Optional[datetime] = None, first_sent_unix_ms: Ms = None,
                    payloads: Optional[Sequence[Optional[Text]]] = None, wait_ms: Ms = None,
                    remote_owner: bool = False) -> List[Claim]:
        """An answer each; a key that comes twice folds onto the first. `payloads`: one a key.
        There is no waiting: a `wait_ms` is refused. An observer must not claim these keys: it runs
        while the batch has its claims. A caller that gets an exception has none of them."""
        if payloads is not None and len(payloads) != len(keys):
            raise ValueError(f'{len(payloads)} payloads for {len(keys)} keys')
        for key in keys:
            self._check_length(key)
        requests = (c.Request * len(keys))(*(
            _request(key, owner=owner, lease=lease, lease_ms=lease_ms, first_sent=first_sent,
                     first_sent_unix_ms=first_sent_unix_ms, wait_ms=wait_ms,
                     payload=None if payloads is None else payloads[i], remote_owner=remote_owner)
            for i, key in enumerate(keys)))
        outcomes = (c.ClaimOutcome * len(keys))(*(c.ClaimOutcome() for _ in keys))
        watches = [self._watch(key) for key in keys]
        try:
            self.engine._do(library.claim_batch, self._handle, requests, outcomes, len(keys))
            claims = [Claim._of(outcome) for outcome in outcomes]
            for watch, claim in zip(watches, claims):
                watch.ended(claim.answer)
            return claims
        except BaseException:  # such as KeyboardInterrupt within an observer
            for key, outcome in zip(keys, outcomes):
                if outcome.answer == Answer.GRANTED:
                    with suppress(SemelError):  # the engine was closed, the other is the news
                        self.release(key, outcome.epoch)
            raise

    def _check_length(self, key: Text) -> None:
        """Before any of several is claimed."""
        most = self.engine._key_bytes_max - len(self.name.encode()) - 1
        length = len(key_bytes(key))
        if length > most:
            raise InvalidKey(Code.KEY_TOO_LONG, f'key of {length} bytes, at most {most} in '
                                                f'{self.name!r}')

    def complete_batch(self, done: Sequence[Tuple[Text, int, Text]]) -> List[Owned]:
        """(key, epoch, result) each."""
        for key, _, _ in done:
            self._check_length(key)
        calls = (c.OwnerCall * len(done))(*(_owner_call(key, epoch, payload=result)
                                            for key, epoch, result in done))
        outcomes = (c.OwnerOutcome * len(done))(*(c.OwnerOutcome() for _ in done))
        self.engine._do(library.complete_batch, self._handle, calls, outcomes, len(done))
        return [Owned._of(outcome) for outcome in outcomes]

    # --- functions that run once ------------------------------------------------------------

    def once(self, key: Text, function: Callable[..., Any], *, codec: 'Codec[Any]' = BYTES,
             encode: Optional[Callable[[Any], Text]] = None,
             decode: Optional[Callable[[bytes], Any]] = None, owner: Text = b'',
             claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
             first_sent_unix_ms: Ms = None, remote_owner: bool = False,
             keep_lease: bool = True, work_max: Duration = WORK_MAX,
             without_key: bool = False, on_unkept: str = 'raise') -> 'Once[Any]':
        """Runs `function` unless it has run or is running under this key; its result, made bytes by
        `codec` (or `encode` and `decode`), is kept and replayed. It may take a Work. If it raises
        Failed or Rejected the outcome says so. What any other exception means, which goes on, and
        OutcomeUnknown, which does not, is said by the namespace's on_exception: RELEASE, KEEP, or
        IN_DOUBT (as of 'payment'): it is not run again before resolve(). A result that cannot be
        kept as it is (encode raises, decoded it is another value, it is too long) does not undo the
        work: ResultNotKept is raised, with the value, and repeats are EXPIRED. With
        on_unkept='return' the outcome is RAN with the value and the error RESULT_NOT_KEPT. What
        returns a coroutine, generator, future or iterator has not run: Unfinished, as after an
        exception. The lease is renewed
        while it runs, for `work_max` in total, unless `keep_lease` is False. `without_key`: an
        empty key runs unguarded. All else: as of claim()."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                           without_key=without_key)
        refuse_lazy(function, 'once')
        with_work = wants_work(function, 'once')
        kept_by = codec_with(codec, encode, decode)
        raises = one_of('on_unkept', on_unkept, ON_UNKEPT)
        kept = self._keeping(request, keep_lease, work_max)
        watch, ending = self._watch(key), Ending(kept_by)
        outcome: 'Once[Any]' = self.engine._call(self._once, key, request, function, with_work,
                                                   ending, kept)
        if not ending.ran:
            watch.ended(outcome.answer)
        return unless_unkept(outcome, bool(raises))

    def _keeping(self, request: c.Request, keep_lease: bool, work_max: Duration) -> Kept:
        """What is renewed, if anything is: looked at before a claim is made."""
        total = work_max_ms(work_max)
        if not flag('keep_lease', keep_lease):
            return None
        check_can_keep(self, request.lease_ms)
        return request.lease_ms, total / 1000

    def _once(self, key: Text, request: c.Request, function: Callable[..., Any], with_work: bool,
              ending: Ending, kept: Kept) -> 'Once[Any]':
        wait = self._begin(request)
        run = None
        try:
            if request.wait_ms != 0:
                wait.sleep()
            run = Run.once(self, wait, kept)
            outcome = c.OnceOutcome()
            _run(run, ending, function, with_work)
            error = run.finish(ending, outcome)
            return once_of(key, ending, outcome, error)
        finally:
            (run or wait).abandon()

    def consume_once(self, message_id: Text, handler: Callable[..., Any], *,
                     owner: Text = b'', claim_id: Optional[bytes] = None,
                     payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
                     lease: Optional[Duration] = None, wait: Optional[Duration] = None,
                     first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
                     first_sent_unix_ms: Ms = None, remote_owner: bool = False,
                     keep_lease: bool = True, work_max: Duration = WORK_MAX,
                     without_key: bool = False) -> Consumed:
        """Runs `handler` if this message was not handled yet, and returns the broker's
        verdict. It returns None, True or Verdict.ACK; it has failed if it returns False or
        RETRY_LATER or raises Failed; DEAD_LETTER and Rejected make a dead letter; any other answer
        is an error;
        what any other exception means, which goes on, and OutcomeUnknown, which does not, is said
        by the namespace's on_exception, as in once(). A message never waits for its turn."""
        request = _request(message_id, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner,
                           without_key=without_key)
        refuse_lazy(handler, 'consume_once')
        with_work = wants_work(handler, 'consume_once')
        kept = self._keeping(request, keep_lease, work_max)
        watch, ending = self._watch(message_id), Ending(NOTHING, verdict_of)
        consumed: Consumed = self.engine._call(self._consume, request, handler, with_work, ending,
                                               kept)
        if not ending.ran:
            watch.ended(consumed.answer)
        return consumed

    def hold(self, key: Text, *, owner: Text = b'', claim_id: Optional[bytes] = None,
             payload: Optional[Text] = None, fingerprint: Optional[Fingerprint] = None,
             lease: Optional[Duration] = None, wait: Optional[Duration] = None,
             first_sent: Optional[datetime] = None, lease_ms: Ms = None, wait_ms: Ms = None,
             first_sent_unix_ms: Ms = None, remote_owner: bool = False,
             keep_lease: bool = True, work_max: Duration = WORK_MAX) -> Holding:
        """The work as a block: `with orders.hold('order-1') as work: ...; work.result = b'paid'`.
        As once(): a block that ends well is done, one that raises ends as on_exception says.
        Raises what is no grant: InFlight, AlreadyDone (with outcome.value), Mismatch .."""
        request = _request(key, owner=owner, claim_id=claim_id, payload=payload,
                           fingerprint=fingerprint, lease=lease,
                           wait=wait, first_sent=first_sent, lease_ms=lease_ms, wait_ms=wait_ms,
                           first_sent_unix_ms=first_sent_unix_ms, remote_owner=remote_owner)
        kept = self._keeping(request, keep_lease, work_max)
        watch = self._watch(key)
        try:
            return self._hold(key, request, kept)
        except NoResult as none:
            watch.ended(none.outcome.answer)
            raise

    def _hold(self, key: Text, request: c.Request, kept: Kept) -> Holding:
        place = self._begin(request)
        run = None
        try:
            if request.wait_ms != 0:
                place.sleep()
            run = Run.once(self, place, kept)
            return self._holding(key, run)
        except BaseException:
            (run or place).give_up()
            raise

    def _holding(self, key: Text, run: Run) -> Holding:
        if run.work is not None:
            return Holding(self, key, run, run.work)
        ending, outcome = Ending(BYTES), c.OnceOutcome()
        raise NoResult(once_of(key, ending, outcome, run.finish(ending, outcome)))

    def _consume(self, request: c.Request, handler: Callable[..., Any], with_work: bool,
                 ending: Ending, kept: Kept) -> Consumed:
        run = Run.message(self, request, kept)
        try:
            consumed = c.Consumed()
            _run(run, ending, handler, with_work)
            return consumed_of(ending, consumed, run.finish(ending, consumed))
        finally:
            run.abandon()

    def lock(self, key: Text, *, owner: Text = b'', wait: Optional[Duration] = None,
             lease: Optional[Duration] = None, wait_ms: Ms = None, lease_ms: Ms = None,
             keep_lease: bool = True, work_max: Duration = WORK_MAX) -> Lock:
        """A lock: `with` takes it and waits up to `wait`, else raises NotTaken. Each thread that
        takes it is an owner of its own. A thread of the engine renews the lease, for `work_max` in
        total, unless `keep_lease` is False."""
        return Lock(self, key, span('wait', wait_ms, wait, least=0), owner,
                    span('lease', lease_ms, lease), keep_lease, work_max)

    def lock_all(self, keys: Sequence[Text], *, owner: Text = b'',
                 wait: Optional[Duration] = None, lease: Optional[Duration] = None,
                 wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
                 work_max: Duration = WORK_MAX) -> Locks:
        """The locks of 1 to 1,024 keys: `with` takes all of them in one step, waits up to `wait`
        and holds none meanwhile, else raises NotTaken. So the order of the keys does not matter.
        One that is named twice counts once. A thread of the engine renews each lease, for
        `work_max` in total, unless `keep_lease` is False."""
        return Locks(self, keys, span('wait', wait_ms, wait, least=0), owner,
                     span('lease', lease_ms, lease), keep_lease, work_max)

    def permit(self, key: Text, permits: int, *, owner: Text = b'',
               wait: Optional[Duration] = None, lease: Optional[Duration] = None,
               wait_ms: Ms = None, lease_ms: Ms = None, keep_lease: bool = True,
               work_max: Duration = WORK_MAX) -> Permit:
        """One of so many permits (1 to 1024) of a semaphore: `with` takes it, waits up to `wait`,
        else raises NotTaken. A thread of the engine renews its lease, for `work_max` in total,
        unless `keep_lease` is False. With fewer permits than before, none is given while as many
        are held."""
        return Permit(self, key, permits, span('wait', wait_ms, wait, least=0), owner,
                      span('lease', lease_ms, lease), keep_lease, work_max)

    def read_lock(self, key: Text, *, owner: Text = b'', wait: Optional[Duration] = None,
                  lease: Optional[Duration] = None, wait_ms: Ms = None, lease_ms: Ms = None,
                  keep_lease: bool = True, work_max: Duration = WORK_MAX) -> Access:
        """One of the readers of a read/write lock, 128 at most: `with` takes it, waits up to
        `wait`, else raises NotTaken. The waiter in front is not overtaken. A thread of the engine
        renews its lease, for `work_max` in total, unless `keep_lease` is False."""
        return Access(self, key, READ, span('wait', wait_ms, wait, least=0), owner,
                      span('lease', lease_ms, lease), keep_lease, work_max)

    def write_lock(self, key: Text, *, owner: Text = b'', wait: Optional[Duration] = None,
                   lease: Optional[Duration] = None, wait_ms: Ms = None, lease_ms: Ms = None,
                   keep_lease: bool = True, work_max: Duration = WORK_MAX) -> Access:
        """The only writer of a read/write lock, while there is no reader: as read_lock()."""
        return Access(self, key, WRITE, span('wait', wait_ms, wait, least=0), owner,
                      span('lease', lease_ms, lease), keep_lease, work_max)

    def _owner(self, function: Any, key: Text, epoch: int, payload: Text = b'',
               lease_ms: int = 0, on_failure: int = 0) -> Owned:
        outcome = c.OwnerOutcome()
        call = _owner_call(key, epoch, payload=payload, lease_ms=lease_ms, on_failure=on_failure)
        code = self.engine._call(function, self._handle, byref(call), byref(outcome))
        _refuse(code, outcome.error)
        return Owned._of(outcome)

    def _flag(self, function: Any, key: Text, *arguments: Any) -> bool:
        is_so, name = c_int(), key_bytes(key)
        self.engine._do(function, self._handle, name, len(name), *arguments, byref(is_so))
        return bool(is_so)


def _run(run: Run, ending: Ending, function: Callable[..., Any], with_work: bool) -> None:
    if run.work is None:
        return
    try:
        result = invoke(function, with_work, run.work)
    except BaseException as raised:  # it goes on when it is written down
        ending.threw(raised)
    else:
        ending.returned(result)


def _decision(made: c.Decision) -> Decision:
    outcome, why = take(made.outcome), take(made.why)
    return Decision(Call(made.call), (outcome or b'').decode(), (why or b'').decode(),
                    made.first_unix_ms, made.last_unix_ms, made.times, made.epoch, made.attempt,
                    take(made.owner), State(made.seen), made.seen_epoch, take(made.seen_owner))
