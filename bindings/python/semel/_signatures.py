"""A decorated function: its name as an operation, and its arguments by name."""

import functools
import inspect
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._errors import Code, InvalidType

# What belongs to a request or a worker and not to the work: by their types and subtypes.
_LEFT_OUT = (('django.http.request', 'HttpRequest'), ('werkzeug.wrappers.request', 'Request'),
             ('flask.wrappers', 'Request'), ('starlette.requests', 'Request'),
             ('starlette.background', 'BackgroundTask'), ('celery.app.task', 'Task'))
_RECEIVERS = ('self', 'cls')


def is_left_out(value: Any) -> bool:
    """Whether its type is one of those that identify no work."""
    for module, name in _LEFT_OUT:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return True
    return False


class Call:
    """Of one function: raises InvalidType where its name or its arguments are not known."""

    def __init__(self, function: Callable[..., Any], operation: Optional[str] = None,
                 ignore: Sequence[str] = ()) -> None:
        if not callable(function):
            raise InvalidType(Code.BAD_OPTION, f'a function, not {type(function).__name__}: put '
                                               'the decorator below @classmethod and the like')
        self.name = operation_of(function) if operation is None else _checked(operation)
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError) as wrong:
            raise InvalidType(Code.BAD_OPTION, f'{self.name}: {wrong}') from None
        known = list(self._signature.parameters.values())
        self._receiver = _receiver(function, known)
        self._plain = [one.name for one in known] if all(one.kind in (
            inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for one in known) else None
        if isinstance(ignore, str):
            raise InvalidType(Code.BAD_OPTION, 'ignore: a sequence of names, not a text')
        for name in ignore:
            if name not in self._signature.parameters:
                raise InvalidType(Code.BAD_OPTION, f"ignore: {self.name} has no argument '{name}'")
        self.parameters = [one for one in known if one.name != self._receiver]
        self._hidden = set(ignore)
        self._declared = (getattr(function, '__module__', None), *_parts(function))
        self.names = [one.name for one in self.parameters]

    def bind(self, arguments: Tuple[Any, ...], named: Mapping[str, Any]) -> Dict[str, Any]:
        """All arguments by name, also those that have their default. Raises TypeError as the call
        itself would."""
        plain = self._plain
        if not named and plain is not None and len(arguments) == len(plain):
            return dict(zip(plain, arguments))
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def counted(self, bound: Dict[str, Any]) -> Dict[str, Any]:
        """Those that say which work it is."""
        return {name: value for name, value in bound.items()
                if name not in self._hidden and not is_left_out(value)
                and not (name == self._receiver and _is_bound_to(value, *self._declared))}


def operation_of(function: Callable[..., Any]) -> str:
    module = getattr(function, '__module__', None)
    name = getattr(function, '__qualname__', None)
    if isinstance(function, functools.partial) or not module or not name or '<lambda>' in name:
        raise InvalidType(Code.BAD_OPTION, f'{function!r} has no name of its own: say operation=')
    return _checked(f'{module}.{name}')


def _checked(operation: Any) -> str:
    if not isinstance(operation, str):
        raise InvalidType(Code.BAD_OPTION, f'operation: a text, not {type(operation).__name__}')
    if not 1 <= len(operation.encode(errors='surrogatepass')) <= 512:
        raise InvalidType(Code.BAD_OPTION, 'operation: 1 to 512 bytes')
    return operation


def _parts(function: Any) -> Tuple[str, str]:
    """The class that a function is declared in, and its name there."""
    holder, _, name = getattr(function, '__qualname__', '').rpartition('.')
    return ('' if holder.endswith('<locals>') else holder), name


def _receiver(function: Callable[..., Any], known: List[inspect.Parameter]) -> Optional[str]:
    """The name of what may be the receiver of a function that is declared in a class."""
    if _parts(function)[0] and known and known[0].name in _RECEIVERS and known[0].kind in (
            inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        return known[0].name
    return None


def _is_bound_to(value: Any, module: Optional[str], holder: str, name: str) -> bool:
    """Whether an argument is the receiver: an instance of the class that declares the function, or
    the class, in which it is no static method. A name alone does not make it one."""
    kinds = type(value).__mro__ + (value.__mro__ if isinstance(value, type) else ())
    return any(kind.__qualname__ == holder and kind.__module__ == module
               and not isinstance(vars(kind).get(name), staticmethod) for kind in kinds)
