"""All that an instance holds: its attributes, and the plain value or container below them."""

import dataclasses
import functools
import inspect
import types
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Dict, List, Mapping, Optional, Tuple
from uuid import UUID

PLAIN = (int, float, str, bytes, bytearray, Decimal, datetime, time, date, timedelta, UUID)
HOLDERS = (list, tuple, set, frozenset, dict)
_METHODS = (types.FunctionType, types.BuiltinFunctionType, classmethod, staticmethod,
            functools.partialmethod)
# Not state: the alias that a generic was made by, which fields were given, a hash that is kept.
_NO_STATE = ('__orig_class__', '__fields_set__', '_attrs_cached_hash')


def base_of(kind: type) -> Optional[type]:
    """The plain type or container that a class is derived from."""
    for base in PLAIN + HOLDERS:
        if issubclass(kind, base):
            return base
    return None


def attributes_of(value: Any) -> Dict[str, Any]:
    """What an instance holds in attributes: its __dict__, the slots of all its classes, and what
    pydantic keeps beside them. Without what a property has computed."""
    kind: Any = type(value)
    found: Dict[str, Any] = {}
    for name, slot in _slots_of(kind):
        try:
            found[name] = slot.__get__(value, kind)
        except AttributeError:
            continue  # nothing is in it
    held = getattr(value, '__dict__', None)
    if held is not None and held is not value:  # a dict may be its own attributes
        for name, one in held.items():
            if not _is_no_state(name) and not _is_cached(kind, name):
                found[f'{name} of __dict__' if name in found else name] = one
    for more in ('__pydantic_extra__', '__pydantic_private__'):
        found.update(getattr(value, more, None) or {})
    return found


@functools.lru_cache(maxsize=1024)
def _slots_of(kind: type) -> List[Tuple[str, Any]]:
    """By their names; one that a class has declared once more is another slot."""
    below = (base_of(kind) or object).__mro__
    items = getattr(kind, 'n_sequence_fields', 0) - getattr(kind, 'n_unnamed_fields', 0)
    found: Dict[str, Any] = {}
    for holder in kind.__mro__:
        if holder in below:
            continue
        for name, slot in vars(holder).items():
            if type(slot) is types.MemberDescriptorType and not _is_no_state(name):
                found[f'{name} of {holder.__qualname__}' if name in found else name] = slot
    return list(found.items())[items:]  # of C's sequences the first are the items of the tuple


def _is_no_state(name: str) -> bool:
    return name in _NO_STATE or name.startswith('__pydantic')


def _is_cached(kind: type, name: str) -> bool:
    """Whether an attribute of an instance is what a property has computed."""
    found = inspect.getattr_static(kind, name, None)
    return (hasattr(type(found), '__get__') and not hasattr(type(found), '__set__')
            and not isinstance(found, _METHODS))


def fields_of(kind: type) -> Optional[List[str]]:
    """The fields of a dataclass, a model, a class of attrs or msgspec, a named tuple."""
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


def members_of(value: Any) -> Optional[List[Tuple[str, Any]]]:
    """The members of a record: its fields, and whatever attributes it has besides. None: it is no
    record. What it holds besides its members, uncovered() says."""
    kind = type(value)
    names = fields_of(kind)
    if names is None:
        return None
    held = attributes_of(value)
    if _is_named_tuple(kind):
        members = dict(zip(names, tuple.__iter__(value)))
    else:
        members = {name: getattr(value, name) for name in names
                   if name in held or hasattr(value, name)}
    for name, one in held.items():
        members.setdefault(name, one)
    return list(members.items())


def uncovered(value: Any) -> Optional[str]:
    """What a record holds that is not among its members."""
    kind = type(value)
    base = base_of(kind)
    if base is None:
        return f'{kind.__qualname__} holds more than attributes' if _is_opaque(kind) else None
    if not _is_named_tuple(kind):
        return f'{kind.__qualname__} is a {base.__name__} besides its fields'
    if tuple.__len__(value) != len(fields_of(kind) or ()):
        return f'{kind.__qualname__} has not as many items as fields'
    return None


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and not dataclasses.is_dataclass(kind)


def _is_opaque(kind: type) -> bool:
    """Whether instances have room that is neither slots nor attributes, as exceptions do."""
    word = tuple.__itemsize__
    seen = [kind.__dictoffset__ > 0, kind.__weakrefoffset__ > 0] + [
        type(slot) is types.MemberDescriptorType for holder in kind.__mro__
        for slot in vars(holder).values()]
    return kind.__basicsize__ - object.__basicsize__ > word * sum(seen) or kind.__itemsize__ > 0
