"""What identifies a call (docs/identity.md): how Python's values become JSON, and the digests of
the canonical text."""

import dataclasses
import enum
import functools
import hashlib
import json
import math
import numbers
from collections import defaultdict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple
from uuid import UUID

from ._canonical import LEVELS_MAX, VALUES_MAX, bytes_json, canonical_call, canonical_json
from ._errors import Code, NotCanonical, SemelError
from ._lazy import kind_of_value
from ._state import attributes_of, base_of, fields_of, members_of, uncovered

_INT_BITS_MAX = 33_300  # of 10^10000


@dataclasses.dataclass(frozen=True)
class Identity:
    """Of one call."""

    canonical: bytes

    @property
    def key(self) -> str:
        """A key for those calls that are the same piece of work."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.canonical).digest()[:16]


def identity(operation: str, arguments: Any, *, tenant: Optional[str] = None,
             user: Optional[str] = None) -> Identity:
    """Of an operation with its arguments (a dict by their names, or one value that stands for
    them), for a tenant, a user, both or neither. Raises NotCanonical, which names the argument."""
    scope = {name: text for name, text in (('tenant', tenant), ('user', user)) if text is not None}
    named = type(arguments) is dict and all(type(name) is str for name in arguments)
    parts = ({name: json_of(value, name) for name, value in arguments.items()} if named
             else {'payload': json_of(arguments, 'payload')})
    if named:
        text = '{' + ','.join(f'{_string(_escaped(name), _At(name))}:{part}'
                              for name, part in parts.items()) + '}'
    else:
        text = parts['payload']
    try:
        return Identity(canonical_call(operation, scope or None, text))
    except SemelError as wrong:
        if wrong.code not in (Code.SYNTAX, Code.VALUE_TOO_LONG):
            raise
        raise _named(parts, wrong) from None


def _named(parts: Dict[str, str], whole: SemelError) -> NotCanonical:
    """Which argument it is that has no canonical form."""
    for name, text in parts.items():
        try:
            canonical_json(text.encode())
        except SemelError as wrong:
            return NotCanonical(Code.SYNTAX, f"the argument '{name}': {wrong.detail}")
    return NotCanonical(Code.SYNTAX, f'the arguments: {whole.detail}')


def json_of(value: Any, name: str) -> str:
    """A value as JSON. Raises NotCanonical, which names the argument and where in it."""
    at = _At(name)
    try:
        return at.write(value)
    except RecursionError:
        raise at.refuse('more levels than there may be') from None


class _At:
    """A walk through one argument: where it is, and what it is inside of."""

    def __init__(self, name: str) -> None:
        self._path: List[Any] = [name]
        self._inside: Dict[int, Any] = {}
        self._values = 0

    def refuse(self, why: str) -> NotCanonical:
        where = ''.join(map(_shown, self._path[1:]))
        return NotCanonical(Code.BAD_OPTION, f"the argument '{self._path[0]}'"
                                             f'{f", at {where}" if where else ""}: {why}')

    def write(self, value: Any) -> str:
        self._values += 1
        if self._values > VALUES_MAX:
            raise self.refuse('more than 1048576 values')
        writer = _WRITERS.get(type(value)) or _writer_of(type(value))
        if writer is not None:
            return writer(value, self)
        kind = kind_of_value(value)
        raise self.refuse(kind or f'{type(value).__module__}.{type(value).__qualname__} has no '
                                  'canonical form')

    def inside(self, holder: Any, parts: Iterable[Tuple[Any, Any]]) -> List[str]:
        """The JSON of each part, behind its place in the holder: a number, or a name in a tuple,
        or a text with a '.' in front."""
        if id(holder) in self._inside:
            raise self.refuse('it contains itself')
        if len(self._inside) >= LEVELS_MAX:
            raise self.refuse(f'more than {LEVELS_MAX} levels')
        self._inside[id(holder)] = holder
        made = []
        for step, part in parts:
            self._path.append(step)
            made.append(self.write(part))
            self._path.pop()
        del self._inside[id(holder)]
        return made


Writer = Callable[[Any, _At], str]


def _shown(step: Any) -> str:
    if not isinstance(step, tuple):
        return step if isinstance(step, str) else f'[{step}]'
    key = step[0]
    plain = type(key) in (int, str, bytes, bool, type(None), float)
    return f'[{key!r:.40}]' if plain else f'[a {type(key).__name__}]'


def _escaped(name: str) -> str:
    return '$' + name if name.startswith('$') else name


def _string(value: str, at: _At) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise at.refuse('text with half of a character') from None
    return json.dumps(text, ensure_ascii=False)


def _integer(value: int, at: _At) -> str:
    if int.bit_length(value) > _INT_BITS_MAX:
        raise at.refuse('an integer of more than 10000 digits')
    return format(Decimal(int.__int__(value)), 'f')  # str() has a limit of its own


def _float(value: float, at: _At) -> str:
    if not math.isfinite(value):
        raise at.refuse(float.__repr__(value))
    return float.__repr__(value)


def _decimal(value: Decimal, at: _At) -> str:
    if not value.is_finite():
        raise at.refuse(Decimal.__str__(value))
    return Decimal.__str__(value)


def _view(value: memoryview, at: _At) -> str:
    if value.ndim != 1 or value.itemsize != 1:
        raise at.refuse('a view of something else than bytes')
    return bytes_json(value.tobytes())


def _fraction(text: str) -> str:
    return text.rstrip('0').rstrip('.') if '.' in text else text


def _datetime(value: datetime, at: _At) -> str:
    if getattr(value, 'nanosecond', 0):
        raise at.refuse('a time with nanoseconds')
    zone = ''
    if value.utcoffset() is not None:
        try:
            value, zone = value.astimezone(timezone.utc), 'Z'
        except OverflowError as wrong:
            raise at.refuse(str(wrong)) from None
    return f'"{_fraction(datetime.isoformat(value.replace(tzinfo=None)))}{zone}"'


def _time(value: time, at: _At) -> str:
    if value.tzinfo is not None:
        raise at.refuse('a time of day with a time zone')
    return f'"{_fraction(time.isoformat(value))}"'


def _duration(value: timedelta, at: _At) -> str:
    micros = value // timedelta(microseconds=1)
    whole, rest = divmod(abs(micros), 1_000_000)
    return f'"PT{"-" if micros < 0 else ""}{_fraction(f"{whole}.{rest:06}")}S"'


def _enum(value: enum.Enum, at: _At) -> str:
    if value.name in type(value).__members__:
        return _string(value.name, at)
    # A flag of several bits, or of none.
    flags = [one for one in type(value).__members__.values()
             if one.value and not one.value & (one.value - 1) and one.value & value.value]
    if functools.reduce(lambda bits, one: bits | one.value, flags, 0) != value.value:
        raise at.refuse(f'{value!r} has bits without a name')
    return '{"$set":[' + ','.join(sorted({_string(one.name, at) for one in flags})) + ']}'


def _list(value: Any, at: _At) -> str:
    kind = list if isinstance(value, list) else tuple
    return '[' + ','.join(at.inside(value, enumerate(kind.__iter__(value)))) + ']'


def _set(value: Any, at: _At) -> str:
    kind = set if isinstance(value, set) else frozenset
    parts = at.inside(value, (((one,), one) for one in kind.__iter__(value)))
    return '{"$set":[' + ','.join(parts) + ']}'


def _dict(value: Dict[Any, Any], at: _At) -> str:
    items = list(dict.items(value))  # some types show only one of several values of a key
    if all(isinstance(key, str) and not isinstance(key, enum.Enum) for key, _ in items):
        return _object(value, [(str.__str__(key), one) for key, one in items], at,
                       lambda key: (key,))
    pairs = at.inside(value, (((key,), one) for key, held in items for one in (key, held)))
    return '{"$map":[' + ','.join(f'[{key},{one}]' for key, one in zip(pairs[::2],
                                                                       pairs[1::2])) + ']}'


def _object(holder: Any, members: List[Tuple[str, Any]], at: _At,
            path: Callable[[str], Any] = '.{}'.format) -> str:
    written = at.inside(holder, ((path(name), one) for name, one in members))
    names = (_string(_escaped(name), at) for name, _ in members)
    return '{' + ','.join(f'{name}:{one}' for name, one in zip(names, written)) + '}'


def _record(value: Any, at: _At) -> str:
    why, members = uncovered(value), members_of(value)
    if why is not None:
        raise at.refuse(why)
    assert members is not None
    if len(members) == 1 and (getattr(type(value), '__pydantic_root_model__', False)
                              or members[0][0] == '__root__'):
        return at.write(members[0][1])
    return _object(value, members, at)


def _constant(text: str) -> Writer:
    return lambda value, at: text


_WRITERS: Dict[type, Writer] = {
    type(None): _constant('null'), bool: lambda value, at: 'true' if value else 'false',
    int: _integer, float: _float, str: _string, list: _list, dict: _dict, tuple: _list,
    bytes: lambda value, at: bytes_json(value), set: _set, frozenset: _set, Decimal: _decimal,
    bytearray: lambda value, at: bytes_json(bytes(memoryview(value))), memoryview: _view,
    datetime: _datetime, time: _time,
    date: lambda value, at: f'"{date.isoformat(value)}"', timedelta: _duration,
    UUID: lambda value, at: f'"{UUID.__str__(value)}"',
}


def _writer_of(kind: type) -> Optional[Writer]:
    """Of a subclass."""
    if issubclass(kind, enum.Enum):
        return _enum
    if fields_of(kind) is not None:
        return _record
    base = base_of(kind)
    if base is not None:
        return functools.partial(_subclass, _WRITERS[base])
    if issubclass(kind, numbers.Integral):
        return functools.partial(_subclass, lambda value, at: _integer(int(value), at))
    return None


def _subclass(writer: Writer, value: Any, at: _At) -> str:
    """Of a plain type or a container: it must not hold more than that."""
    more = attributes_of(value)
    if isinstance(value, defaultdict):
        more.pop('default_factory', None)  # for what is not there; dicts are equal without it
    if more:
        raise at.refuse(f'{type(value).__qualname__} has attributes besides its value: '
                        f'{", ".join(more)}')
    return writer(value, at)
