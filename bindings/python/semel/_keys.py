"""Keys: what may be one, and formats that make one out of a call's arguments.

A format is that of format_key() in semel/patterns/keys.hpp: separators in a value are escaped, and
one whose values could run into each other is refused where it is declared.
"""

import enum
import inspect
import json
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional, Tuple, Union
from uuid import UUID

from ._canonical import canonical_json, format_key, names_in
from ._errors import Code, InvalidKey, InvalidType, NotCanonical
from ._identity import json_of
from ._lazy import refuse_lazy
from ._library import Text, raw
from ._signatures import Call

KeyOf = Callable[..., Text]
BoundKey = Callable[[Tuple[Any, ...], Dict[str, Any], Dict[str, Any]], Text]
_PLAIN = 10**21  # below it all digits of an integer are in its canonical text
_FIELDS = (str, int, Decimal, UUID, date, time, timedelta, enum.Enum)


def key_bytes(key: Any, what: str = 'the key', *, may_be_empty: bool = False) -> bytes:
    """A key as bytes. How long it may be, the library says."""
    if isinstance(key, enum.Enum) or not isinstance(key, (str, bytes, bytearray, memoryview)):
        raise InvalidType(Code.BAD_OPTION,
                          f'{what}: text or bytes, not {type(key).__name__}')
    try:
        made = raw(key)
    except UnicodeEncodeError as wrong:
        raise InvalidKey(Code.BAD_ENCODING, f'{what} has half of a character: {wrong}') from None
    if not made and not may_be_empty:
        raise InvalidKey(Code.KEY_EMPTY, what)
    return made


def field_text(name: str, value: Any) -> str:
    """An argument as it stands in a key, before it is escaped."""
    if value is None or (isinstance(value, str) and not value):
        raise InvalidKey(Code.KEY_EMPTY, f"the argument '{name}' is {value!r}")
    if not isinstance(value, _FIELDS):
        raise InvalidType(Code.BAD_OPTION, f"the argument '{name}' is no field of a key: "
                                           f'{type(value).__name__}')
    if type(value) is int and -_PLAIN < value < _PLAIN:
        return str(value)
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        text = str.__str__(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotCanonical(Code.BAD_ENCODING,
                               f"the argument '{name}' has half of a character") from None
        return text
    text = canonical_json(json_of(value, name).encode()).decode()
    if text[0] == '{':
        raise InvalidType(Code.BAD_OPTION, f"the argument '{name}' is no field of a key: {value!r}")
    return str(json.loads(text)) if text[0] == '"' else text


def key_of(call: Call, key: Union[str, KeyOf]) -> BoundKey:
    """From a call's arguments, and the same by name, to its key. What is wrong with a format is
    said now."""
    if callable(key):
        refuse_lazy(key, 'key')
        make = key
        return lambda arguments, named, bound: make(*arguments, **named)
    if not isinstance(key, str):
        raise InvalidType(Code.BAD_OPTION,
                          f'key: a format or a function, not {type(key).__name__}')
    form = key
    names = names_in(form)
    values_of = {name: _value_of(call, form, name) for name in names}
    format_key(form, {name: 'x' for name in names})  # its braces and what parts its names

    def formatted(arguments: Tuple[Any, ...], named: Dict[str, Any],
                  bound: Dict[str, Any]) -> str:
        return format_key(form, {name: field_text(name, value_of(bound))
                                 for name, value_of in values_of.items()})

    return formatted


def _value_of(call: Call, form: str, name: str) -> Callable[[Dict[str, Any]], Any]:
    """How a name of a format finds its value among the arguments of a call."""
    parameters = call.parameters
    places: List[Tuple[str, Optional[int]]] = []
    if name.isascii() and name.isdigit():
        plain = [one.name for one in parameters if one.kind in (
            inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        place = int(name)
        if place < len(plain):
            places.append((plain[place], None))
        else:
            places.extend((one.name, place - len(plain)) for one in parameters
                          if one.kind is inspect.Parameter.VAR_POSITIONAL)
    else:
        places.extend((one.name, None) for one in parameters if one.name == name and one.kind
                      not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD))
    if places:
        return lambda bound: _found(name, bound, *places[0])
    for one in parameters:
        if one.kind is inspect.Parameter.VAR_KEYWORD and name.isidentifier():
            more = one.name
            return lambda bound: bound.get(more, {}).get(name)
    raise InvalidKey(Code.BAD_OPTION, f"{form!r} names '{name}', which {call.name} has not as an "
                                      f'argument: it has {", ".join(call.names) or "none"}')


def _found(name: str, bound: Dict[str, Any], argument: str, place: Optional[int]) -> Any:
    value = bound[argument]
    if place is None:
        return value
    return value[place] if place < len(value) else None
