"""Work as a context manager."""

from ctypes import byref
from typing import TYPE_CHECKING, Any, List, Optional

from . import _library as c
from ._codecs import BYTES
from ._errors import Code, Forked, NoResult, SemelError, StaleOwner
from ._library import Text, library
from ._runs import Ending, Run, once_of
from ._types import Once, OnceAnswer, Work
from ._waits import closed

if TYPE_CHECKING:
    from ._claims import Claims


class Holding:
    """A block that is the work, from Claims.hold(). It ends well: done, with `result`. It raises:
    as of a function in once(), and the exception goes on (Failed, Rejected and OutcomeUnknown as
    well). The end is written down when the block is left. The block is not entered, and StaleOwner
    is raised, if the claim is not held any more."""

    _unused: List[bool] = []  # a signal's handler may raise before it is made

    def __init__(self, claims: 'Claims', key: Text, run: Run, work: Work) -> None:
        self.result: Text = b''
        self.work = work
        self._claims, self._key, self._run = claims, key, run
        self._unused = [True]  # pop() lets one thread through
        self.outcome: 'Optional[Once[bytes]]' = None  # there when the block has ended

    @property
    def epoch(self) -> int:
        """The fencing token: pass it to what the work writes to. 0: it is not guarded."""
        return self.work.epoch

    def __enter__(self) -> 'Holding':
        if not self._claims.engine.is_here:
            raise Forked(Code.FORKED)  # the parent holds the claim
        try:
            self._unused.pop()
        except IndexError:
            raise SemelError(Code.NOT_OWNER, f'the block of {self._key!r} was entered before: each '
                                             'asks with a hold() of its own') from None
        try:
            self._check_held()
        except BaseException:
            self._run.give_up()
            raise
        return self

    def _check_held(self) -> None:
        """Long after the grant another may have done the work."""
        if self._run._mark not in self._claims.engine._owned:
            raise closed()
        if self.work.lost:
            raise StaleOwner(Code.NOT_OWNER, f'the claim of {self._key!r} was lost before its '
                                             'block was entered')

    def __del__(self) -> None:
        """A block that was never entered leaves its claim in no doubt."""
        if self._unused and self._claims.engine.is_here:
            self._run.give_up()

    def __reduce__(self) -> Any:
        raise TypeError('a Holding cannot be copied or pickled: the work is done once')

    def __exit__(self, kind: Any, raised: Optional[BaseException], trace: Any) -> None:
        try:
            if self._claims.engine.is_here:
                self._finish(raised)
        finally:
            self._run.abandon()

    def _finish(self, raised: Optional[BaseException]) -> None:
        ending, outcome = Ending(BYTES), c.OnceOutcome()
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
        self.outcome = made = once_of(self._key, ending, outcome, error)
        if raised is None and (made.error is not None and made.error.code == Code.RESULT_NOT_KEPT
                               or made.answer in (OnceAnswer.SUPERSEDED, OnceAnswer.UNRECORDED)):
            raise NoResult(made)
