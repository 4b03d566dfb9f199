"""Leases that are kept, and work as a context manager."""

from ctypes import byref, c_int
from typing import TYPE_CHECKING, Any, Optional

from . import _library as c
from ._errors import Code, NoResult, last_error
from ._library import Text, library, raw
from ._numbers import number
from ._runs import Ending, Run, once_of
from ._types import Once, OnceAnswer, Work
from ._waits import Held

if TYPE_CHECKING:
    from ._claims import Claims


class Keeper(Held):
    """The engine's own thread renews the lease of a claim when a third of it has passed, until this
    is closed. Thread-safe."""

    def __init__(self, claims: 'Claims', key: Text, epoch: int, lease_ms: int) -> None:
        super().__init__(claims.engine, library.keep_end)
        name = raw(key)
        self._engine._call(self._start, library.keep_begin, claims._handle, name, len(name),
                           number('epoch', epoch), lease_ms)

    @property
    def lost(self) -> bool:
        """Whether another may have the work by now."""
        return bool(self._engine._call(self._lost))

    def _lost(self) -> int:
        if self._mark not in self._engine._owned:
            raise ValueError('the keeper is closed')
        lost = c_int()
        code = library.keep_lost(self._handle, byref(lost))
        if code != Code.OK:
            raise last_error(code)
        return lost.value

    def close(self) -> None:
        """No renewal comes after it."""
        self.abandon()

    def __enter__(self) -> 'Keeper':
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Holding:
    """A block that is the work, from Claims.hold(). It ends well: done, with `result`. It raises:
    as of a function in once(), and the exception goes on (Failed, Rejected and OutcomeUnknown as
    well). The end is written down when the block is left."""

    def __init__(self, claims: 'Claims', key: Text, run: Run, work: Work) -> None:
        self.result: Text = b''
        self.work = work
        self._claims, self._key, self._run = claims, key, run
        self.outcome: 'Optional[Once[bytes]]' = None  # there when the block has ended

    @property
    def epoch(self) -> int:
        """The fencing token: pass it to what the work writes to. 0: it is not guarded."""
        return self.work.epoch

    def __enter__(self) -> 'Holding':
        return self

    def __exit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        try:
            if self._claims.engine.is_here:
                self._finish(raised)
        finally:
            self._run.abandon()

    def _finish(self, raised: Optional[BaseException]) -> None:
        ending, outcome = Ending(raw), c.OnceOutcome()
        if raised is None:
            ending.returned(self.result)
        else:
            ending.threw(raised)
            ending.raised = None  # it goes on anyway
        error = self._run.finish(ending, outcome)
        if raised is not None and error is not None:
            for buffer in (outcome.value, outcome.failure):
                library.buffer_free(byref(buffer))
            return  # what the block raised is the news
        self.outcome = once_of(self._key, ending, outcome, error, bytes)
        if raised is None and self.outcome.answer in (OnceAnswer.SUPERSEDED,
                                                      OnceAnswer.UNRECORDED):
            raise NoResult(self.outcome)
