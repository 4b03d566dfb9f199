"""Places in the line for a claim. The library keeps a place while Python sleeps in slices, so that
a signal is seen between two of them, and an interrupted caller leaves the line.

A claim that was granted to a caller who has left is given back by the call itself, else at the end
of its object, else at the end of the engine (Engine._owned).
"""

from ctypes import byref, c_int, c_void_p
from operator import itemgetter
from typing import Any, Callable, Optional

from ._engine import Engine
from ._errors import Code, SemelError, last_error
from ._library import library

SLICE_MS = 50
_handle_of = itemgetter(0)


class Held:
    """Something of C's that has to be ended before its engine, exactly once."""

    _mark: Optional[object] = None  # a signal's handler may raise before it is made

    def __init__(self, engine: Engine, end: Callable[..., Any], *more: Any) -> None:
        """`end(handle, *more)` ends it unasked; a function of the library."""
        self._engine = engine
        self._end, self._more = end, more
        self._handle = c_void_p()
        self._mark = object()

    def _start(self, begin: Callable[..., int], *arguments: Any) -> int:
        """Registers the wait before it begins, so that an interrupted caller can end it."""
        self._engine._owned[self._mark] = (self._handle, self._end, self._more)
        try:
            code = begin(*arguments, byref(self._handle))
            if code != Code.OK:
                raise last_error(code)
            return code
        except BaseException:
            self.abandon()
            raise

    def _probe(self, begin: Callable[..., int], *arguments: Any) -> None:
        """Begins it and ends it."""
        self._engine._call(self._start, begin, *arguments)
        self.abandon()

    def __reduce__(self) -> Any:
        """A copy would end what it does not own."""
        raise TypeError(f'a {type(self).__name__} cannot be copied or pickled: what it holds is '
                        'held once')

    def _ended_by(self, call: Callable[..., int], *more: Any) -> Optional[int]:
        """Ends it by `call(handle, *more)`; None: it has ended. What leaves the books is in
        the library a moment later, without a bytecode between: a signal's handler that raises there
        would leave a claim that nobody ends before its lease."""
        owned = self._engine._owned
        if self._mark not in owned:
            return None
        try:
            for code in map(call, map(_handle_of, map(owned.pop, (self._mark,))),
                            *((one,) for one in more)):
                return code
        except KeyError:  # another thread was faster
            pass
        return None

    def abandon(self) -> None:
        """Ends it if it has not ended."""
        if self._mark is not None and self._mark in self._engine._owned:
            try:
                self._engine._end(self._abandon)
            except SemelError:
                self._engine._await_end()  # it ends this as well

    def give_up(self) -> None:
        """Ends it before anything was done with it."""
        self.abandon()

    def _abandon(self) -> int:
        self._ended_by(self._end, *self._more)
        return Code.OK

    def __del__(self) -> None:
        self.abandon()


class Wait(Held):
    """From `begin`, which takes `arguments`, a descriptor to write to, and a place for a handle."""

    def __init__(self, engine: Engine, begin: Any, *arguments: Any, fd: int = -1) -> None:
        super().__init__(engine, library.wait_end, None)
        engine._call(self._start, begin, *arguments, fd)

    def look(self, longest_ms: int = 0) -> bool:
        """Whether there is an answer, after so long at most."""
        return bool(self._engine._call(self._look, longest_ms))

    def _look(self, longest_ms: int) -> int:
        if self._mark not in self._engine._owned:
            raise closed()
        answered = c_int()
        code = library.wait_for(self._handle, longest_ms, byref(answered))
        if code != Code.OK:
            raise last_error(code)
        return answered.value

    def sleep(self) -> None:
        """Until there is an answer, or a signal's handler raises, or the engine is closed."""
        while not self.look(SLICE_MS):
            pass

    def end(self, outcome: Any) -> int:
        """Fills the outcome with the answer."""
        return int(self._engine._end(self._finish, outcome))

    def _finish(self, outcome: Any) -> int:
        code = self._ended_by(library.wait_end, byref(outcome))
        if code is None:
            raise closed()
        return code


def closed() -> SemelError:
    return SemelError(Code.CLOSING, 'the engine is closed')
