"""How a caller's function can be called: looked at before a claim is made, so that one that cannot
be called leaves no claim in doubt."""

import inspect
import types
from typing import Any, Callable

from ._errors import Code, InvalidType


def wants_work(function: Callable[..., Any], what: str) -> bool:
    """Whether it can be called with a Work and not without. Raises InvalidType if it can be called
    neither way."""
    least = _least(function, what)
    if least > 1:
        raise _unfit(function, what, 'without arguments or with a Work')
    return least == 1


def check_takes_nothing(function: Callable[..., Any], what: str) -> None:
    """Raises InvalidType if it cannot be called without arguments."""
    if _least(function, what) > 0:
        raise _unfit(function, what, 'without arguments')


def check_takes_one(function: Callable[..., Any], what: str, of: str) -> None:
    """Raises InvalidType if it cannot be called with one argument."""
    if not callable(function) or not _binds(function, None):
        raise _unfit(function, what, f'with {of}')


def _least(function: Any, what: str) -> int:
    """With how many arguments it can be called: 0, else 1; 2: with neither."""
    if type(function) is types.FunctionType and not function.__dict__:  # as most are
        code = function.__code__
        if code.co_kwonlyargcount == 0:
            return min(2, code.co_argcount - len(function.__defaults__ or ()))
    if not callable(function):
        raise InvalidType(Code.BAD_OPTION, f'{what}: a function, not {type(function).__name__}')
    return 0 if _binds(function) else 1 if _binds(function, None) else 2


def _binds(function: Any, *arguments: Any) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # nothing is known of it
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _unfit(function: Any, what: str, how: str) -> InvalidType:
    name = getattr(function, '__qualname__', None) or repr(function)
    return InvalidType(Code.BAD_OPTION, f'{what}: {name} is called {how}, which it does not take')
