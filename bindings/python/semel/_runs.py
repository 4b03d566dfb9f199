"""Work between the claim that it was granted and what is said of it: what functions and coroutines
that run once have in common."""

import inspect
from ctypes import POINTER, byref, string_at
from typing import Any, Callable, Optional

from . import _library as c
from ._engine import Engine
from ._errors import Code, Failed, OutcomeUnknown, Rejected, SemelError, last_error
from ._library import Text, library, raw, take
from ._steps import RunSteps
from ._types import Consumed, Once, OnceAnswer, Verdict, Work
from ._waits import Held, Wait, closed

_DONE, _FAILED, _REJECTED, _ABANDONED, _UNKNOWN, _DONE_WITHOUT = range(6)


def nothing_but_no(value: Any) -> bytes:
    if value is False:
        raise Failed('the handler said no')
    return b''


class Ending:
    """How the work went: said to the library first, raised afterwards."""

    def __init__(self, encode: Callable[[Any], Text]) -> None:
        self.ran = False
        self.unkept = False
        self.result: Any = None
        self.raised: Optional[BaseException] = None
        self.how = _ABANDONED
        self.data = b''
        self._encode = encode

    def returned(self, result: Any) -> None:
        """What goes wrong with the result must not make the work run again."""
        self.ran, self.result = True, result
        try:
            self.data, self.how = raw(self._encode(result)), _DONE
            return
        except Failed as failed:
            return self.threw(failed)
        except BaseException as wrong:
            why = f'{type(wrong).__name__}: {wrong}'
            if not isinstance(wrong, Exception):
                self.raised = wrong  # Ctrl-C: goes on, after the work is written down
        self.unkept = True
        self.data, self.how = why.encode(errors='replace'), _DONE_WITHOUT

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

    def __init__(self, engine: Engine, end: Any) -> None:
        super().__init__(engine, end, _ABANDONED, None, 0, None)
        self._say = end
        self.work: Optional[Work] = None  # None: there is none to do
        self.steps: Optional[RunSteps] = None

    @classmethod
    def once(cls, engine: Engine, wait: Wait) -> 'Run':
        run = cls(engine, library.once_end)
        engine._call(run._begin_once, wait)
        return run

    @classmethod
    def message(cls, engine: Engine, claims: Any, request: c.Request) -> 'Run':
        run = cls(engine, library.consume_end)
        engine._call(run._begin, library.consume_begin, claims, byref(request))
        return run

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
            if granted.epoch:  # memos are the claim's
                self.steps = RunSteps(self._engine, self)
            self.work = Work(key, granted.epoch, granted.attempt, bool(granted.takeover),
                             self.steps)
        return Code.OK

    def finish(self, ending: Ending, outcome: Any) -> Optional[SemelError]:
        error: Optional[SemelError] = None
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


def invoke(function: Callable[..., Any], work: Work) -> Any:
    return function(work) if _wants_work(function) else function()


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


def once_of(key: Any, ending: Ending, outcome: c.OnceOutcome, error: Optional[SemelError],
            decode: Callable[[bytes], Any]) -> 'Once[Any]':
    value, failure = take(outcome.value), take(outcome.failure)
    ending.reraise()
    unkept = error is not None and error.code == Code.RESULT_NOT_KEPT
    if error is not None and outcome.answer == OnceAnswer.RAN and not unkept:
        raise error  # there is no outcome
    read = None
    if ending.unkept and outcome.answer != OnceAnswer.SUPERSEDED:
        read, value = ending.result, b''
    elif ending.ran and value is not None and outcome.answer != OnceAnswer.SUPERSEDED:
        read = ending.result
    elif value is not None:
        try:
            read = decode(value)
        except ValueError as wrong:
            raise SemelError(Code.BAD_ENCODING, f'result of {key!r}') from wrong
    return Once(OnceAnswer(outcome.answer), read, value is not None, text_of(failure), error,
                bool(outcome.takeover), bool(outcome.late), outcome.attempt, outcome.epoch,
                outcome.retry_after_ms)


def consumed_of(ending: Ending, consumed: c.Consumed, error: Optional[SemelError]) -> Consumed:
    failure = take(consumed.failure)
    ending.reraise()
    if error is not None and consumed.answer == OnceAnswer.RAN:
        raise error  # there is no outcome
    return Consumed(Verdict(consumed.verdict), OnceAnswer(consumed.answer), text_of(failure),
                    error, bool(consumed.unguarded), consumed.attempts, consumed.epoch,
                    consumed.retry_after_ms)


def text_of(failure: Optional[bytes]) -> Optional[str]:
    return None if failure is None else failure.decode(errors='replace')
