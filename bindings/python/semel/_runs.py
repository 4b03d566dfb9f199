"""Work between the claim that it was granted and what is said of it: what functions and coroutines
that run once have in common."""

from ctypes import POINTER, byref, string_at
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple

from . import _library as c
from ._codecs import Codec
from ._engine import Engine
from ._errors import (Code, Failed, InvalidType, NoResult, OutcomeUnknown, Rejected, SemelError,
                      last_error)
from ._keeping import Keeper
from ._lazy import finished
from ._library import Text, library, raw, take
from ._numbers import Duration
from ._steps import RunSteps
from ._typed_json import same
from ._types import Consumed, Once, OnceAnswer, Verdict, Work
from ._waits import Held, Wait, closed

if TYPE_CHECKING:
    from ._claims import Claims

Kept = Optional[Tuple[int, Duration]]  # the lease that is renewed, in ms, and how long in total
_DONE, _FAILED, _REJECTED, _ABANDONED, _UNKNOWN, _DONE_WITHOUT = range(1, 7)


def verdict_of(value: Any) -> None:
    """What a handler says by its answer. Nothing else is one: 0 is no failure, -1 no success."""
    if value is None or value is True or value is Verdict.ACK:
        return
    if value is False or value is Verdict.RETRY_LATER:
        raise Failed('the handler said no')
    if value is Verdict.DEAD_LETTER:
        raise Rejected('the handler said no')
    finished(value)
    raise InvalidType(Code.BAD_OPTION, 'a handler returns None, True, False, or ACK, RETRY_LATER '
                                       f'or DEAD_LETTER of Verdict, not {value!r:.80}')


NOTHING: 'Codec[Any]' = Codec(lambda answer: b'', lambda data: None, decoded=True)


def codec_with(codec: 'Codec[Any]', encode: Optional[Callable[[Any], Text]],
               decode: Optional[Callable[[bytes], Any]]) -> 'Codec[Any]':
    """A codec, or what is said in place of its halves."""
    if encode is None and decode is None:
        return codec
    return Codec(encode or codec.encode, decode or codec.decode)


class Ending:
    """How the work went: said to the library first, raised afterwards. `check` raises for a result
    that is none."""

    def __init__(self, codec: 'Codec[Any]',
                 check: Callable[[Any], Any] = finished) -> None:
        self.ran = False
        self.unkept: Optional[str] = None  # why the result of work that is done is not kept
        self.cause: Optional[BaseException] = None
        self.result: Any = None
        self.raised: Optional[BaseException] = None
        self.how = _ABANDONED
        self.data = b''
        self.codec, self._check = codec, check

    def returned(self, result: Any) -> None:
        """What goes wrong with the result must not make the work run again."""
        self.ran, self.result = True, result
        try:
            self._check(result)
        except (Failed, InvalidType) as none:
            return self.threw(none)
        try:
            self.data, self.how = self._encoded(result), _DONE
            return
        except Failed as failed:
            return self.threw(failed)
        except BaseException as wrong:
            self.unkept, self.cause = f'{type(wrong).__name__}: {wrong}', wrong
            if not isinstance(wrong, Exception):
                self.raised = wrong  # Ctrl-C: goes on, after the work is written down
        self.data, self.how = self.unkept.encode(errors='replace'), _DONE_WITHOUT

    def _encoded(self, result: Any) -> bytes:
        """The bytes to keep. Raises where a repeat would not get what the first caller has."""
        data = raw(self.codec.encode(result))
        back = self.codec.decode(data)
        if self.codec.decoded:
            self.result = back
            return data
        equal = same(result, back)
        if equal is None:  # no equality of its own: by its bytes
            equal = raw(self.codec.encode(back)) == data
        if not equal:
            raise ValueError(f'decoded it is {back!r:.100}, not {result!r:.100}')
        return data

    def threw(self, why: BaseException) -> None:
        self.ran = True
        said = ((OutcomeUnknown, _UNKNOWN), (Rejected, _REJECTED), (Failed, _FAILED))
        for kind, how in said:
            if isinstance(why, kind):
                self.data, self.how = str(why).encode(errors='replace'), how
                return
        self.raised = why

    def reraise(self) -> None:
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised


class Run(Held):
    """The right to do some work, from semel_once_begin or semel_consume_begin."""

    _keeper: Optional[Keeper] = None  # a signal's handler may raise before it is made

    def __init__(self, engine: Engine, end: Any) -> None:
        super().__init__(engine, end, _ABANDONED, None, 0, None)
        self._say = end
        self.work: Optional[Work] = None  # None: there is none to do
        self.steps: Optional[RunSteps] = None
        self._claims: 'Optional[Claims]' = None

    @classmethod
    def once(cls, claims: 'Claims', wait: Wait, kept: Kept) -> 'Run':
        run = cls(claims.engine, library.once_end)
        run._claims = claims
        claims.engine._call(run._begin_once, wait)
        return run._keep(kept)

    @classmethod
    def message(cls, claims: 'Claims', request: c.Request, kept: Kept) -> 'Run':
        run = cls(claims.engine, library.consume_end)
        run._claims = claims
        claims.engine._call(run._begin, library.consume_begin, claims._handle, byref(request))
        return run._keep(kept)

    def _keep(self, kept: Kept) -> 'Run':
        """Renews the lease from now on, as far as there is one."""
        try:
            if kept is not None and self.work is not None and self.work.epoch:
                assert self._claims is not None
                self._keeper = Keeper(self._claims, self.work.key, self.work.epoch, *kept)
        except BaseException:
            self.give_up()
            raise
        return self

    def give_up(self) -> None:
        """Before the function was called: as if there had been no claim. The attempts before it
        stay counted."""
        claims, work = self._claims, self.work
        if claims is not None and work is not None and work.epoch:
            try:
                claims.release(work.key, work.epoch)
            except SemelError:
                pass  # it ends with the engine, or with its lease
        self.abandon()

    def abandon(self) -> None:
        self._stop_keeping()
        super().abandon()

    def _stop_keeping(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _begin_once(self, wait: Wait) -> int:
        def begin(*places: Any) -> int:
            code = wait._ended_by(library.once_begin, *places)
            if code is None:
                raise closed()
            return code

        return self._begin(begin)

    def _begin(self, begin: Any, *arguments: Any) -> int:
        work = POINTER(c.Work)()
        self._start(begin, *arguments, byref(work))
        if work:
            granted = work.contents
            key = string_at(granted.key, granted.key_length) if granted.key_length else b''
            self.steps = RunSteps(self._engine, self)
            self.work = Work(key, granted.epoch, granted.attempt, bool(granted.takeover),
                             self.steps, self._claims)
        return Code.OK

    def finish(self, ending: Ending, outcome: Any) -> Optional[SemelError]:
        error: Optional[SemelError] = None
        self._stop_keeping()
        if self.steps is not None:
            self.steps.end()

        def say() -> int:
            nonlocal error
            code = self._ended_by(self._say, ending.how, ending.data, len(ending.data),
                                  byref(outcome))
            if code is None:
                raise closed()
            if code != Code.OK:
                error = last_error(code)
            return code

        self._engine._end(say)
        return error


def invoke(function: Callable[..., Any], takes_work: bool, work: Work) -> Any:
    return function(work) if takes_work else function()


def once_of(key: Any, ending: Ending, outcome: c.OnceOutcome,
            error: Optional[SemelError]) -> 'Once[Any]':
    value, failure = take(outcome.value), take(outcome.failure)
    ending.reraise()
    unkept = error is not None and error.code == Code.RESULT_NOT_KEPT
    if error is not None and (_is_mistake(ending, error) or (
            outcome.answer == OnceAnswer.RAN and not unkept)):
        raise error  # there is no outcome
    if unkept and ending.unkept:
        error = SemelError(Code.RESULT_NOT_KEPT, ending.unkept)
        error.__cause__ = ending.cause
    read = None
    if ending.unkept and outcome.answer != OnceAnswer.SUPERSEDED:
        read, value = ending.result, b''
    elif ending.ran and value is not None and outcome.answer != OnceAnswer.SUPERSEDED:
        read = ending.result
    elif value is not None:
        try:
            read = ending.codec.decode(value)
        except ValueError as wrong:
            raise SemelError(Code.BAD_ENCODING, f'result of {key!r}') from wrong
    return Once(OnceAnswer(outcome.answer), read, value is not None, text_of(failure), error,
                bool(outcome.takeover), bool(outcome.late), outcome.attempt, outcome.epoch,
                outcome.retry_after_ms)


ON_UNKEPT = {'raise': True, 'return': False}


def unless_unkept(made: 'Once[Any]', raises: bool) -> 'Once[Any]':
    """The outcome. Raises ResultNotKept if the work is done and repeats will not get its result."""
    is_unkept = made.error is not None and made.error.code == Code.RESULT_NOT_KEPT
    if raises and is_unkept and made.answer is OnceAnswer.RAN:
        raise NoResult(made)
    return made


def consumed_of(ending: Ending, consumed: c.Consumed, error: Optional[SemelError]) -> Consumed:
    failure = take(consumed.failure)
    ending.reraise()
    if error is not None and (_is_mistake(ending, error) or consumed.answer == OnceAnswer.RAN):
        raise error  # there is no outcome
    return Consumed(Verdict(consumed.verdict), OnceAnswer(consumed.answer), text_of(failure),
                    error, bool(consumed.unguarded), consumed.attempts, consumed.epoch,
                    consumed.retry_after_ms)


def _is_mistake(ending: Ending, error: SemelError) -> bool:
    """Of the caller, such as an empty key: nothing ran, and no repetition helps."""
    return not ending.ran and 100 <= error.code < 200


def text_of(failure: Optional[bytes]) -> Optional[str]:
    return None if failure is None else failure.decode(errors='replace')
