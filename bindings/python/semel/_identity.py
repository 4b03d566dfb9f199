"""What identifies a call (docs/identity.md): how Python's values become JSON, and the digests of
the canonical text."""

import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import math
import numbers
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple
from uuid import UUID

from ._canonical import LEVELS_MAX, VALUES_MAX, bytes_json, canonical_call, canonical_json
from ._errors import Code, NotCanonical, SemelError
from ._lazy import kind_of_value

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
    if value.bit_length() > _INT_BITS_MAX:
        raise at.refuse('an integer of more than 10000 digits')
    return format(Decimal(int(value)), 'f')  # str() has a limit of its own


def _float(value: float, at: _At) -> str:
    if not math.isfinite(value):
        raise at.refuse(float.__repr__(value))
    return float.__repr__(value)


def _decimal(value: Decimal, at: _At) -> str:
    if not value.is_finite():
        raise at.refuse(Decimal.__str__(value))
    return Decimal.__str__(value)


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
    return '[' + ','.join(at.inside(value, enumerate(value))) + ']'


def _set(value: Any, at: _At) -> str:
    return '{"$set":[' + ','.join(at.inside(value, (((one,), one) for one in value))) + ']}'


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


def members_of(value: Any) -> Optional[List[Tuple[str, Any]]]:
    """The members of a record: of a dataclass, a model, a class of attrs, a named tuple. None: it
    is none of these. What it has besides its fields is among them."""
    kind = type(value)
    names = _fields_of(kind)
    if names is None:
        return None
    if isinstance(value, tuple):
        return list(zip(names, value))
    held = getattr(value, '__dict__', {})
    members = [(name, getattr(value, name)) for name in names
               if name in held or hasattr(value, name)]
    known = set(names)
    members += [(name, one) for name, one in held.items() if name not in known
                and not _is_cached(kind, name) and not name.startswith('__pydantic')]
    members += list((getattr(value, '__pydantic_extra__', None) or {}).items())
    return members


def _is_cached(kind: type, name: str) -> bool:
    """Whether an attribute of an instance is what a property has computed."""
    found = type(inspect.getattr_static(kind, name, None))
    return hasattr(found, '__get__') and not hasattr(found, '__set__')


def _fields_of(kind: type) -> Optional[List[str]]:
    if dataclasses.is_dataclass(kind):
        return [one.name for one in dataclasses.fields(kind)]
    if issubclass(kind, tuple):
        named = getattr(kind, '_fields', None)
        return list(named) if isinstance(named, tuple) else None
    struct = getattr(kind, '__struct_fields__', None)  # of msgspec
    if isinstance(struct, tuple):
        return list(struct)
    attributes = getattr(kind, '__attrs_attrs__', None)
    if attributes is not None:
        return [one.name for one in attributes]
    for fields in ('__pydantic_fields__', 'model_fields', '__fields__'):
        named = getattr(kind, fields, None)
        if isinstance(named, Mapping) and (hasattr(kind, '__pydantic_validator__')
                                           or hasattr(kind, '__fields_set__')):
            return list(named)
    return None


def _record(value: Any, at: _At) -> str:
    members = members_of(value)
    assert members is not None
    if getattr(type(value), '__pydantic_root_model__', False) or [
            name for name, _ in members] == ['__root__']:
        return at.write(members[0][1])
    return _object(value, members, at)


def _constant(text: str) -> Writer:
    return lambda value, at: text


_WRITERS: Dict[type, Writer] = {
    type(None): _constant('null'), bool: lambda value, at: 'true' if value else 'false',
    int: _integer, float: _float, str: _string, list: _list, dict: _dict, tuple: _list,
    bytes: lambda value, at: bytes_json(value), set: _set, frozenset: _set, Decimal: _decimal,
    bytearray: lambda value, at: bytes_json(bytes(value)),
    memoryview: lambda value, at: bytes_json(bytes(value)), datetime: _datetime, time: _time,
    date: lambda value, at: f'"{date.isoformat(value)}"', timedelta: _duration,
    UUID: lambda value, at: f'"{UUID.__str__(value)}"',
}
_PLAIN = (int, float, str, bytes, bytearray, Decimal, datetime, time, date, timedelta, UUID)


def _writer_of(kind: type) -> Optional[Writer]:
    """Of a subclass. One of a plain type must not hold more than that."""
    if issubclass(kind, enum.Enum):
        return _enum
    if _fields_of(kind) is not None:
        return _record
    for plain in _PLAIN:
        if issubclass(kind, plain):
            return functools.partial(_subclass, _WRITERS[plain])
    if issubclass(kind, numbers.Integral):
        return lambda value, at: _integer(int(value), at)
    for holder in (list, tuple, set, frozenset, dict):
        if issubclass(kind, holder):
            return _WRITERS[holder]
    return None


def _subclass(writer: Writer, value: Any, at: _At) -> str:
    if getattr(value, '__dict__', None):
        raise at.refuse(f'{type(value).__qualname__} has attributes besides its value: '
                        f'{", ".join(vars(value))}')
    return writer(value, at)
