"""Whether a value that was decoded is the one that was encoded."""

import enum
from collections import OrderedDict
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Dict, Iterable, Optional

from ._state import attributes_of, base_of, fields_of, members_of, uncovered

_FIELDS_SET = ('__pydantic_fields_set__', '__fields_set__')  # of pydantic 2 and 1


def same(one: Any, other: Any) -> Optional[bool]:
    """Whether two values are equal, and of the same types at every depth. None: a type has no
    equality of its own."""
    if one is other:
        return True
    kind = type(one)
    if one is None or other is None:
        return False
    if kind is not type(other):
        return None if _is_bare(kind) and _is_bare(type(other)) else False
    if isinstance(one, enum.Enum):
        return bool(one == other)
    base = base_of(kind)
    if base is kind:
        return _same_base(base, one, other)
    if base is None and fields_of(kind) is None:
        return None if _is_bare(kind) else _is_equal(one, other)
    parts = [True if base is None else _same_base(base, one, other),
             _same_dicts(_state_of(one), _state_of(other)),
             None if base is None and uncovered(one) else True]
    answer = _all(parts)
    if answer is not True or kind.__eq__ in (object.__eq__, getattr(base, '__eq__', None),
                                             OrderedDict.__eq__):
        return answer
    return _is_equal(one, other)


def _state_of(value: Any) -> Dict[str, Any]:
    """Besides what it has as a plain value or a container."""
    found = dict(members_of(value) or attributes_of(value))
    for name in _FIELDS_SET:
        if hasattr(value, name):
            found[name] = set(getattr(value, name))
            break
    return found


def _same_base(base: Any, one: Any, other: Any) -> Optional[bool]:
    """As values of a plain type or a container, which subclasses cannot hide."""
    if base in (list, tuple):
        return _same_items(base.__iter__(one), base.__iter__(other))
    if isinstance(one, OrderedDict):
        return same(list(OrderedDict.items(one)), list(OrderedDict.items(other)))
    if base is dict:
        return _same_dicts(dict(dict.items(one)), dict(dict.items(other)))
    if base in (set, frozenset):
        return _same_dicts(dict.fromkeys(base.__iter__(one)),
                           dict.fromkeys(base.__iter__(other)))
    if base is float:
        return bool(float.hex(one) == float.hex(other))
    if base is Decimal:
        return bool(Decimal.__str__(one) == Decimal.__str__(other))
    if base in (datetime, time):
        return base.__eq__(one, other) is True and one.fold == other.fold and _same_zones(
            one, other)
    return base.__eq__(one, other) is True


def _same_zones(one: Any, other: Any) -> Optional[bool]:
    """A time of day may have a zone and no offset, and equal offsets may have other names."""
    zone, theirs = one.tzinfo, other.tzinfo
    if zone is theirs:
        return True
    if (type(zone), one.utcoffset(), one.tzname()) != (type(theirs), other.utcoffset(),
                                                       other.tzname()):
        return False
    key = getattr(zone, 'key', None)
    if key is not None:
        return bool(key == getattr(theirs, 'key', None))
    return None if _is_bare(type(zone)) else _is_equal(zone, theirs)


def _is_equal(one: Any, other: Any) -> Optional[bool]:
    try:
        return bool(one == other)
    except Exception:  # as of arrays
        return None


def _is_bare(kind: Any) -> bool:
    """Whether a type has no equality of its own."""
    return bool(kind.__eq__ is object.__eq__)


def _same_items(one: Iterable[Any], other: Iterable[Any]) -> Optional[bool]:
    mine, theirs = list(one), list(other)
    return len(mine) == len(theirs) and _all(map(same, mine, theirs))


def _same_dicts(one: Dict[Any, Any], other: Dict[Any, Any]) -> Optional[bool]:
    if len(one) != len(other):
        return False
    theirs = {(type(key), key): (key, value) for key, value in other.items()}
    if any((type(key), key) not in theirs for key in one):
        return False
    return _all(same(pair, theirs[type(pair[0]), pair[0]]) for pair in one.items())


def _all(answers: Iterable[Optional[bool]]) -> Optional[bool]:
    unknown = False
    for answer in answers:
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True
