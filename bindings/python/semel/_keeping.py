"""Leases that are kept while work runs: by the engine's own thread, and for so long in total."""

import os
import threading
import time
import weakref
from ctypes import byref, c_int
from typing import TYPE_CHECKING, Dict, Optional, Tuple

from ._errors import Code, Forked, SemelError, last_error
from ._library import Text, library, raw
from ._numbers import Duration, OutOfRange, milliseconds, number
from ._waits import Held

if TYPE_CHECKING:
    from ._claims import Claims

LEASE_OF_POLICY = -1 << 31  # SEMEL_TTL_POLICY
WORK_MAX = 3600.0  # seconds, of the engine as well: what hangs does not keep its key for ever


class Keeper(Held):
    """The engine's own thread renews the lease of a claim when a third of it has passed, until this
    is closed or `work_max` is over. Thread-safe."""

    def __init__(self, claims: 'Claims', key: Text, epoch: int, lease_ms: int,
                 work_max: Optional[Duration] = None) -> None:
        super().__init__(claims.engine, library.keep_end)
        self._over = False
        name, total = raw(key), work_max_ms(WORK_MAX if work_max is None else work_max)
        self._engine._call(self._start, library.keep_begin, claims._handle, name, len(name),
                           number('epoch', epoch), lease_ms if lease_ms != 0 else LEASE_OF_POLICY)
        _caps.add(self, total / 1000)

    @property
    def lost(self) -> bool:
        """Whether another may have the work by now."""
        return bool(self._engine._call(self._lost))

    def _lost(self) -> int:
        if self._over:
            return 1  # as good as: it is not renewed any more
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

    def abandon(self) -> None:
        _caps.remove(self)
        super().abandon()

    def _end_of_work_max(self) -> None:
        self._over = True
        super().abandon()

    def __enter__(self) -> 'Keeper':
        if not self._engine.is_here:
            raise Forked(Code.FORKED)  # the parent holds the claim
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def work_max_ms(work_max: Duration) -> int:
    total = milliseconds('work_max', work_max)
    if total == 0:
        raise OutOfRange(Code.BAD_OPTION, 'work_max = 0, say keep_lease=False')
    if total > WORK_MAX * 1000:
        raise OutOfRange(Code.BAD_OPTION, f'work_max = {work_max}, an hour is the most that the '
                                          'engine renews: say a longer lease and keep_lease=False')
    return total


def check_can_keep(claims: 'Claims', lease_ms: int) -> None:
    """Before a claim is made. Raises SemelError (BAD_OPTION) for a lease that is too short to be
    renewed in time: the given one, or 0 for that of the namespace."""
    terms = claims.engine._terms
    if claims._kept.get(lease_ms) == terms:
        return
    # It begins to keep nobody's claim, which looks at the lease first, and ends at once.
    try:
        lease = lease_ms if lease_ms != 0 else LEASE_OF_POLICY
        Held(claims.engine, library.keep_end)._probe(library.keep_begin, claims._handle, b'-', 1, 0,
                                                     lease)
    except SemelError as wrong:
        if wrong.code != Code.BAD_OPTION:
            raise
        raise SemelError(Code.BAD_OPTION, f'{wrong.detail}; or say keep_lease=False') from None
    if len(claims._kept) >= 64:
        claims._kept.clear()
    claims._kept[lease_ms] = terms


class _Caps:
    """Ends keepers whose time is over: one thread for all, which sleeps until the first of them may
    be due, so that a keeper costs no wake-up."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: Dict[int, Tuple[float, 'weakref.ref[Keeper]']] = {}
        self._next = 0.0
        self._thread: Optional[threading.Thread] = None

    def add(self, keeper: Keeper, seconds: float) -> None:
        due = time.monotonic() + seconds
        self._due[id(keeper)] = due, weakref.ref(keeper)
        if self._thread is not None and due >= self._next:
            return
        with self._condition:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name='semel-work-max',
                                                daemon=True)
                self._next = due
                try:
                    self._thread.start()
                except RuntimeError:  # an isolated subinterpreter has none
                    self._thread = None
            elif due < self._next:
                self._next = due
                self._condition.notify()

    def remove(self, keeper: Keeper) -> None:
        self._due.pop(id(keeper), None)

    def _watch(self) -> None:
        while True:
            over = []
            with self._condition:
                now = time.monotonic()
                for mark, (due, of) in list(self._due.items()):
                    keeper = of()
                    if due <= now or keeper is None:
                        self._due.pop(mark, None)
                        if keeper is not None:
                            over.append(keeper)
                keeper = None
                if not over:
                    if self._due:
                        self._next = min(due for due, _ in list(self._due.values()))
                    elif now >= self._next:
                        self._thread = None
                        if not self._due:  # who adds looks for a thread afterwards
                            return
                        self._thread = threading.current_thread()
                        continue
                    self._condition.wait(min(max(0.0, self._next - now), threading.TIMEOUT_MAX))
            while over:
                over.pop()._end_of_work_max()


_caps = _Caps()


def _renew() -> None:
    """In a child of fork(): the thread is not there, and its mutex may be locked."""
    _caps.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_renew)
