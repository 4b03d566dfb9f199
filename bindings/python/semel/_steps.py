"""Steps of one piece of work: what each has brought about is remembered until the work is over, so
that the next attempt goes on where the last one stopped. The memos are a part of the claim's
record; those of a run that is not guarded live as long as the run.

    def ship(work):
        receipt = work.steps.run('charge', lambda: bank.charge(order))   # once
        work.steps.run('mail', lambda: mailer.send(order, receipt))

A step runs only while its claim is held and the lease runs, else StaleOwner is raised. A step is
run again if its process ends between its effect and its memo, or if its memo cannot be kept, which
raises: its result has no form in the codec, or the memos of the claim have more than 1 MiB.
"""

import weakref
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from . import _library as c
from ._codecs import JSON, Codec
from ._engine import Engine
from ._errors import Code, SemelError, last_error
from ._functions import check_takes_nothing
from ._lazy import finished, refuse_lazy
from ._library import Text, library, raw, take
from ._numbers import number
from ._requests import _owner_call, _refuse
from ._types import Owned
from ._waits import closed

if TYPE_CHECKING:
    from ._claims import Claims
    from ._runs import Run

T = TypeVar('T')


class Steps:
    """Of work that runs (Work.steps), or of a claim (Claims.steps()). For one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def recall(self, name: Text) -> Optional[bytes]:
        """The memo of a step; None: there is none, and the step may run. Raises StaleOwner unless
        the claim is held with this epoch."""
        memo, step = c.Buffer(), raw(name)
        self._do(self._recall, step, byref(memo))
        return take(memo)

    def remember(self, name: Text, memo: Text) -> None:
        """Raises StaleOwner, and changes nothing, if the claim is not held with this epoch."""
        self._do(self._remember, raw(name), raw(memo))

    def run(self, name: Text, step: Callable[[], T], *, codec: 'Codec[T]' = JSON) -> T:
        """The result of `step` as its memo has it: from the memo if there is one, else it runs.
        What it raises is not remembered."""
        refuse_lazy(step, 'step')
        check_takes_nothing(step, 'step')
        memo = self.recall(name)
        if memo is None:
            memo = raw(codec.encode(finished(step())))
            self.remember(name, memo)
        return self._read(name, memo, codec)

    def _read(self, name: Text, memo: bytes, codec: 'Codec[T]') -> T:
        try:
            return codec.decode(memo)
        except ValueError as wrong:
            raise SemelError(Code.BAD_ENCODING, f'memo of step {name!r}') from wrong

    def _do(self, call: Callable[..., int], *arguments: Any) -> None:
        code = self._engine._end(call, *arguments)  # also while close() waits for the work
        if code != Code.OK:
            raise last_error(code)

    def _recall(self, name: bytes, memo: Any) -> int:
        raise NotImplementedError

    def _remember(self, name: bytes, memo: bytes) -> int:
        raise NotImplementedError


class ClaimSteps(Steps):
    """Of a claim that the caller holds itself."""

    def __init__(self, claims: 'Claims', key: Text, epoch: int) -> None:
        super().__init__(claims.engine)
        self._claims = claims
        self._key, self._epoch = raw(key), number('epoch', epoch)

    def complete(self, result: Text = b'') -> Owned:
        """As Claims.complete(), with which the memos go."""
        outcome = c.OwnerOutcome()
        call = _owner_call(self._key, self._epoch, payload=result)
        code = self._engine._call(library.steps_complete, self._claims._handle, byref(call),
                                  byref(outcome))
        _refuse(code, outcome.error)
        return Owned._of(outcome)

    def _recall(self, name: bytes, memo: Any) -> int:
        code: int = library.step_recall(self._claims._handle, self._key, len(self._key),
                                        self._epoch, name, len(name), memo)
        return code

    def _remember(self, name: bytes, memo: bytes) -> int:
        code: int = library.step_remember(self._claims._handle, self._key, len(self._key),
                                          self._epoch, name, len(name), memo, len(memo))
        return code


class RunSteps(Steps):
    """Of a run, while it runs. If it is not guarded, the memos live as long as it."""

    def __init__(self, engine: Engine, run: 'Run') -> None:
        super().__init__(engine)
        self._run = weakref.ref(run)  # no circle: a run that is dropped is given back at once
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def _handle(self) -> c_void_p:
        run = self._run()
        if run is None or self._ended:
            raise ValueError('the work has ended, and its steps with it')
        if run._mark not in self._engine._owned:
            raise closed()
        return run._handle

    def _recall(self, name: bytes, memo: Any) -> int:
        code: int = library.run_recall(self._handle(), name, len(name), memo)
        return code

    def _remember(self, name: bytes, memo: bytes) -> int:
        code: int = library.run_remember(self._handle(), name, len(name), memo, len(memo))
        return code
