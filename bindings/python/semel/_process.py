"""One engine for each process, opened when it is first used there."""

import os
import threading
import weakref
from typing import Callable, Optional

from ._engine import Engine
from ._lazy import refuse_lazy


class PerProcess:
    """Calls `open` once in each process that asks, and gives that engine to all its threads. For
    servers that fork their workers after the modules are loaded: an engine of the parent would
    refuse every call with Forked.

        engine = semel.PerProcess(lambda: semel.Engine())
        engine().claims('orders', 'call')

    A storage belongs to one process at a time, so the second worker that opens it gets
    StorageError (STORAGE_IN_USE): several workers share a node, not a directory."""

    def __init__(self, open: Callable[[], Engine]) -> None:
        refuse_lazy(open, 'PerProcess')
        self._open = open
        self._engine: Optional[Engine] = None
        self._mutex = threading.Lock()
        mine = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _renew(mine))

    def __call__(self) -> Engine:
        """The engine of this process. Raises what `open` raises; the next call tries again. One
        that close() has ended is opened anew."""
        with self._mutex:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def close(self) -> None:
        """Closes the engine of this process, if there is one."""
        with self._mutex:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def _renew(mine: 'weakref.ref[PerProcess]') -> None:
    """In a child: the mutex may be held by a thread that is not there any more."""
    one = mine()
    if one is not None:
        one._mutex = threading.Lock()
        one._engine = None
