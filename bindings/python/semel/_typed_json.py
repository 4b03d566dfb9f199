"""JSON that gives back the types of Python. What JSON has is written as it is; anything else as an
object with one member:

    {"$tuple": [..]}  {"$set": [..]}  {"$frozenset": [..]}  {"$map": [[key, value], ..]}
    {"$bytes": base64}  {"$bytearray": base64}  {"$decimal": "1.50"}  {"$uuid": ".."}
    {"$date": iso}  {"$time": [iso, fold]}  {"$datetime": [iso, fold]}  {"$duration": microseconds}
    {"$zoned": [iso, zone, fold]}  {"$zoned_time": [iso, zone, fold]}  {"$enum": [class, name]}
    {"$object": [class, {field: value}]}

An offset that has a name of its own has it behind the fold.

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

from ._same import same as same  # by which what was decoded is compared
from ._state import fields_of, members_of, uncovered


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
    is_record, is_dict = fields_of(kind) is not None, hasattr(kind, '__total__')
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
        if kind in (datetime, time):
            return _plain_moment(value)
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
        why, members = uncovered(value), members_of(value)
        if why is not None:
            raise TypeError(why)
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
            private = {name: fields.pop(name) for name in list(fields)
                       if name in kind.__private_attributes__}
            made = make(set(named), **fields)
            for name, one in private.items():
                setattr(made, name, one)
            return made
        if issubclass(kind, tuple):
            made = tuple.__new__(kind, [fields.pop(name) for name in kind._fields])
        elif hasattr(kind, '__struct_fields__'):
            made = kind(**{name: fields.pop(name) for name in kind.__struct_fields__})
        else:
            made = kind.__new__(kind)  # as it was: not made anew
        for name, one in fields.items():
            object.__setattr__(made, name, one)
        return made


def _escaped(name: str) -> str:
    return '$' + name if name.startswith('$') else name


def _plain_moment(value: Any) -> Dict[str, Any]:
    """A datetime or a time."""
    mark, zone = type(value).__name__, value.tzinfo
    if zone is None:
        return {f'${mark}': [value.isoformat(), value.fold]}
    if type(zone) is timezone:
        name = zone.__getinitargs__()[1:]  # type: ignore[attr-defined]
        return {f'${mark}': [value.isoformat(), value.fold, *name]}
    key = getattr(zone, 'key', None)
    if type(zone).__module__ != 'zoneinfo' or not isinstance(key, str):
        raise TypeError(f'a time zone of type {type(zone).__qualname__}')
    return {_ZONED[mark]: [value.replace(tzinfo=None).isoformat(), key, value.fold]}


def _moment(kind: Any) -> Callable[[List[Any]], Any]:
    def made(inside: List[Any]) -> Any:
        moment = kind.fromisoformat(inside[0]).replace(fold=inside[1])
        if len(inside) == 2:
            return moment
        return moment.replace(tzinfo=timezone(moment.utcoffset(), inside[2]))

    return made


def _zoned(kind: Any) -> Callable[[List[Any]], Any]:
    def made(inside: List[Any]) -> Any:
        import zoneinfo
        text, key, fold = inside
        return kind.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(key), fold=fold)

    return made


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()


_ZONED = {'datetime': '$zoned', 'time': '$zoned_time'}
_MICRO = timedelta(microseconds=1)
_ENCODERS: Dict[type, Any] = {
    bytes: ('$bytes', _base64), bytearray: ('$bytearray', _base64), Decimal: ('$decimal', str),
    UUID: ('$uuid', str), date: ('$date', date.isoformat),
    timedelta: ('$duration', lambda value: value // _MICRO),
}
_HOLDERS: Dict[type, str] = {tuple: '$tuple', set: '$set', frozenset: '$frozenset'}
_MADE_OF: Dict[str, Callable[[Any], Any]] = {mark: kind for kind, mark in _HOLDERS.items()}
_DECODERS: Dict[str, Callable[[Any], Any]] = {
    '$bytes': lambda text: base64.b64decode(text, validate=True),
    '$bytearray': lambda text: bytearray(base64.b64decode(text, validate=True)),
    '$decimal': Decimal, '$uuid': UUID, '$date': date.fromisoformat,
    '$time': _moment(time), '$datetime': _moment(datetime), '$zoned': _zoned(datetime),
    '$zoned_time': _zoned(time), '$duration': lambda micros: micros * _MICRO,
}


