"""JSON that gives back the types of Python. What JSON has is written as it is; anything else as an
object with one member:

    {"$tuple": [..]}  {"$set": [..]}  {"$frozenset": [..]}  {"$map": [[key, value], ..]}
    {"$bytes": base64}  {"$bytearray": base64}  {"$decimal": "1.50"}  {"$uuid": ".."}
    {"$date": iso}  {"$time": iso}  {"$datetime": iso}  {"$zoned": [iso, zone, fold]}
    {"$duration": microseconds}  {"$enum": [class, name]}  {"$object": [class, {field: value}]}

A name that begins with '$' gets another '$' in front. Classes are only those that are named to the
codec: what is kept cannot make others.
"""

import base64
import enum
import json
import typing
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, Dict, List, Optional
from uuid import UUID

from ._identity import _fields_of, members_of


class Classes:
    """The classes that may come back, by their names."""

    def __init__(self) -> None:
        self.by_name: Dict[str, type] = {}
        self.names: Dict[type, str] = {}

    @classmethod
    def of(cls, annotation: Any, *, strict: bool) -> 'Classes':
        """Those that an annotation names, and the annotations of their fields. `strict`: raises
        NameError and the like where annotations cannot be resolved."""
        found: Dict[type, None] = {}
        _collect(annotation, found, strict)
        made = cls()
        plain = [one.__qualname__ for one in found]
        for one in found:
            name = one.__qualname__
            if plain.count(name) > 1:
                name = f'{one.__module__}.{name}'
            made.by_name[name], made.names[one] = one, name
        return made


def _collect(annotation: Any, found: Dict[type, None], strict: bool) -> None:
    for part in typing.get_args(annotation):
        _collect(part, found, strict)
    kind = typing.get_origin(annotation) or annotation
    if not isinstance(kind, type) or kind in found:
        return
    if issubclass(kind, enum.Enum):
        found[kind] = None
        return
    is_record, is_dict = _fields_of(kind) is not None, hasattr(kind, '__total__')
    if not (is_record or is_dict):
        return
    if is_record:
        found[kind] = None
    try:
        hints = typing.get_type_hints(kind)
    except Exception:
        if strict:
            raise
        return
    for hint in hints.values():
        _collect(hint, found, strict)


class TypedJson:
    """Both directions, with these classes."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes

    def encode(self, value: Any) -> bytes:
        return json.dumps(self._plain(value), separators=(',', ':'), ensure_ascii=False,
                          allow_nan=False).encode()

    def decode(self, data: bytes) -> Any:
        try:
            return self._typed(json.loads(data))
        except (TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as wrong:
            raise ValueError(f'no such JSON: {wrong}') from wrong

    def _plain(self, value: Any) -> Any:
        kind = type(value)
        if kind in (str, int, float, bool, type(None)):
            return value
        if kind is list:
            return [self._plain(one) for one in value]
        if kind is dict:
            return self._plain_dict(value)
        if kind in _ENCODERS:
            mark, encode = _ENCODERS[kind]
            return {mark: encode(value)}
        if kind in _HOLDERS:
            return {_HOLDERS[kind]: [self._plain(one) for one in value]}
        if kind is datetime:
            return _plain_datetime(value)
        return self._plain_object(value)

    def _plain_dict(self, value: Dict[Any, Any]) -> Dict[str, Any]:
        if all(type(key) is str for key in value):
            return {_escaped(key): self._plain(one) for key, one in value.items()}
        return {'$map': [[self._plain(key), self._plain(one)] for key, one in value.items()]}

    def _plain_object(self, value: Any) -> Dict[str, Any]:
        kind = type(value)
        name = self._classes.names.get(kind)
        if name is None:
            raise TypeError(f'{kind.__module__}.{kind.__qualname__} is not among the types that '
                            'the codec knows: annotate what the function returns, or say codec=')
        if isinstance(value, enum.Enum):
            if value.name not in kind.__members__:
                raise TypeError(f'{value!r} has no name of its own')
            return {'$enum': [name, value.name]}
        members = members_of(value)
        assert members is not None
        fields: List[Any] = [name, {_escaped(field): self._plain(one) for field, one in members}]
        for named in ('__pydantic_fields_set__', '__fields_set__'):  # of pydantic 2 and 1
            if hasattr(value, named):
                fields.append(sorted(getattr(value, named)))
                break
        return {'$object': fields}

    def _typed(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._typed(one) for one in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            (mark, inside), = value.items()
            if mark in _DECODERS:
                return _DECODERS[mark](inside)
            if mark in _MADE_OF:
                return _MADE_OF[mark](self._typed(one) for one in inside)
            if mark == '$map':
                return {self._typed(key): self._typed(one) for key, one in inside}
            if mark == '$enum':
                return self._class(inside[0]).__members__[inside[1]]
            if mark == '$object':
                return self._object(self._class(inside[0]), inside[1], *inside[2:])
        return {(name[1:] if name.startswith('$$') else name): self._typed(one)
                for name, one in value.items()}

    def _class(self, name: str) -> Any:
        if name not in self._classes.by_name:
            raise ValueError(f'{name} is not among the types that the codec knows')
        return self._classes.by_name[name]

    def _object(self, kind: Any, written: Dict[str, Any], named: Optional[List[str]] = None) -> Any:
        fields = {(name[1:] if name.startswith('$') else name): self._typed(one)
                  for name, one in written.items()}
        if named is not None:
            make = getattr(kind, 'model_construct', None) or kind.construct
            return make(set(named), **fields)
        if issubclass(kind, tuple):
            return tuple.__new__(kind, [fields[name] for name in kind._fields])
        if hasattr(kind, '__struct_fields__'):
            return kind(**fields)
        made = kind.__new__(kind)  # as it was: not made anew
        for name, one in fields.items():
            object.__setattr__(made, name, one)
        return made


def _escaped(name: str) -> str:
    return '$' + name if name.startswith('$') else name


def _plain_datetime(value: datetime) -> Dict[str, Any]:
    zone = value.tzinfo
    if zone is None or type(zone) is timezone:
        return {'$datetime': [value.isoformat(), value.fold]}
    key = getattr(zone, 'key', None)
    if type(zone).__module__ != 'zoneinfo' or not isinstance(key, str):
        raise TypeError(f'a time zone of type {type(zone).__qualname__}')
    return {'$zoned': [value.replace(tzinfo=None).isoformat(), key, value.fold]}


def _zoned(inside: List[Any]) -> datetime:
    import zoneinfo
    text, key, fold = inside
    return datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(key), fold=fold)


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()


_MICRO = timedelta(microseconds=1)
_ENCODERS: Dict[type, Any] = {
    bytes: ('$bytes', _base64), bytearray: ('$bytearray', _base64), Decimal: ('$decimal', str),
    UUID: ('$uuid', str), date: ('$date', date.isoformat),
    time: ('$time', lambda value: [value.isoformat(), value.fold]),
    timedelta: ('$duration', lambda value: value // _MICRO),
}
_HOLDERS: Dict[type, str] = {tuple: '$tuple', set: '$set', frozenset: '$frozenset'}
_MADE_OF: Dict[str, Callable[[Any], Any]] = {mark: kind for kind, mark in _HOLDERS.items()}
_DECODERS: Dict[str, Callable[[Any], Any]] = {
    '$bytes': lambda text: base64.b64decode(text, validate=True),
    '$bytearray': lambda text: bytearray(base64.b64decode(text, validate=True)),
    '$decimal': Decimal, '$uuid': UUID, '$date': date.fromisoformat,
    '$time': lambda inside: time.fromisoformat(inside[0]).replace(fold=inside[1]),
    '$datetime': lambda inside: datetime.fromisoformat(inside[0]).replace(fold=inside[1]),
    '$zoned': _zoned, '$duration': lambda micros: micros * _MICRO,
}


def same(one: Any, other: Any) -> Optional[bool]:
    """Whether two values are equal, and of the same types at every depth. None: a type has no
    equality of its own."""
    kind = type(one)
    if one is None or other is None:
        return one is other
    if kind is not type(other):
        return None if _is_bare(kind) and _is_bare(type(other)) else False
    if kind in (list, tuple):
        return len(one) == len(other) and _all(same(a, b) for a, b in zip(one, other))
    if issubclass(kind, dict):
        return _same_dicts(one, other)
    if kind in (set, frozenset):
        return _same_dicts(dict.fromkeys(one), dict.fromkeys(other))
    if kind is float:
        return bool(one.hex() == other.hex())
    if isinstance(one, (datetime, time)):
        return bool(one == other and one.utcoffset() == other.utcoffset()
                    and one.fold == other.fold)
    if kind is Decimal:
        return str(one) == str(other)
    members = None if isinstance(one, enum.Enum) else members_of(one)
    if members is not None:
        fields = _same_dicts(dict(members), dict(members_of(other) or ()))
        return fields if _is_bare(kind) or not fields else bool(one == other)
    if _is_bare(kind):
        return None
    try:
        return bool(one == other)
    except Exception:  # as of arrays
        return None


def _is_bare(kind: Any) -> bool:
    """Whether a type has no equality of its own."""
    return bool(kind.__eq__ is object.__eq__)


def _same_dicts(one: Dict[Any, Any], other: Dict[Any, Any]) -> Optional[bool]:
    if len(one) != len(other):
        return False
    theirs = {(type(key), key): (key, value) for key, value in other.items()}
    if any((type(key), key) not in theirs for key in one):
        return False
    return _all(same(pair, theirs[type(pair[0]), pair[0]]) for pair in one.items())


def _all(answers: Any) -> Optional[bool]:
    unknown = False
    for answer in answers:
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True
