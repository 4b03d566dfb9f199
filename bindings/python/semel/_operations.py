"""One function for each operation: two that derive one name would get each other's results."""

import functools
import sys
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

from ._errors import Code, InvalidType

if TYPE_CHECKING:
    from ._claims import Claims

_VALUES = (int, float, str, bytes, bool, type(None))
_lock = threading.Lock()


def declare(claims: 'Claims', name: str, function: Any) -> None:
    """That a function is an operation by the name it has itself. Raises InvalidType if another has
    it in these claims. A module that is loaded anew replaces its functions."""
    load = getattr(sys.modules.get(function.__module__), '__spec__', None)
    made = (load, _snapshot(function))
    with _lock:
        declared: Dict[Tuple[str, str], Any] = vars(claims.engine).setdefault('_operations', {})
        known = declared.get((claims.name, name))
        if known is None or known[0] is not load:
            declared[claims.name, name] = made
        elif known[1] != made[1]:
            raise InvalidType(Code.BAD_OPTION, f'another function of these claims is the operation '
                                               f'{name}: say operation= for one of them')


class _Same:
    """An object by itself: what has gone is the same as none."""

    def __init__(self, value: Any) -> None:
        self._get: Callable[[], Any] = lambda: value
        try:
            self._get = weakref.ref(value)
        except TypeError:
            pass

    def __eq__(self, other: object) -> bool:
        mine = self._get()
        return isinstance(other, _Same) and mine is not None and mine is other._get()


def _snapshot(value: Any, above: Tuple[int, ...] = ()) -> Any:
    """What makes a function another: its code, and what its cells and defaults hold. One that was
    compiled from the same text is the same."""
    if isinstance(value, types.FunctionType) and id(value) not in above:
        above += (id(value),)
        cells = [_in_cell(cell, above) for cell in value.__closure__ or ()]
        is_inner = '<locals>' in value.__qualname__
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return value.__code__, cells, [_snapshot(one, above) for one in defaults if is_inner]
    if isinstance(value, types.MethodType):
        return _snapshot(value.__func__, above), _Same(value.__self__)
    if isinstance(value, functools._lru_cache_wrapper):
        return 'cached', _snapshot(value.__wrapped__, above)
    if isinstance(value, types.FunctionType):
        return above.index(id(value))  # it calls itself
    if type(value) in _VALUES:
        return type(value), value
    if type(value) is tuple:
        return [_snapshot(one, above) for one in value]
    return _Same(value)


def _in_cell(cell: Any, above: Tuple[int, ...]) -> Optional[Any]:
    try:
        return _snapshot(cell.cell_contents, above)
    except ValueError:  # it is filled later
        return None
