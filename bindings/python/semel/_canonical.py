"""Canonical texts of docs/identity.md, and formats of keys."""

import base64
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._errors import Code, InvalidKey, SemelError

LEVELS_MAX, VALUES_MAX, BYTES_MAX = 128, 1 << 20, 16 << 20
_PLACES_MAX = 10_000
_SEPARATORS = ':|/,;#=&{}\\ '


class _Number(str):
    """A number as it was written."""


def canonical_json(text: str) -> str:
    """Raises SemelError (SYNTAX)."""
    return _Writer().write(_parsed(text))


def canonical_identity(operation: str, scope: Optional[Mapping[str, str]], arguments: str) -> str:
    """Of a call, whose arguments are JSON."""
    if not operation:
        raise SemelError(Code.KEY_EMPTY, 'the operation')
    if len(operation.encode()) > 512:
        raise SemelError(Code.KEY_TOO_LONG, 'the operation')
    if scope is not None and (not scope or not all(scope.values())):
        raise SemelError(Code.KEY_EMPTY, 'the scope')
    whose = 'null' if scope is None else canonical_json(json.dumps(dict(scope)))
    return f'[{_Writer().write(operation)},{whose},{canonical_json(arguments)}]'


def _refuse(why: str) -> SemelError:
    return SemelError(Code.SYNTAX, why)


def _members(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _refuse('a name twice')
    return made


def _no_number(word: str) -> Any:
    raise _refuse(word)


def _parsed(text: str) -> Any:
    if len(text.encode(errors='surrogatepass')) > BYTES_MAX:
        raise _refuse('more than 16 MiB')
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_number,
                          object_pairs_hook=_members)
    except RecursionError:
        raise _refuse('more than 128 levels') from None
    except ValueError as wrong:
        raise _refuse(str(wrong)) from None


class _Writer:
    def __init__(self) -> None:
        self._values = 0

    def write(self, value: Any, level: int = 0) -> str:
        self._values += 1
        if self._values > VALUES_MAX:
            raise _refuse('more than 1048576 values')
        if value is None or value is True or value is False:
            return 'null' if value is None else 'true' if value else 'false'
        if isinstance(value, _Number):
            return _number(value)
        if isinstance(value, str):
            return _string(value)
        if level >= LEVELS_MAX:
            raise _refuse('more than 128 levels')
        if isinstance(value, list):
            return '[' + ','.join([self.write(one, level + 1) for one in value]) + ']'
        return self._object(value, level)

    def _object(self, value: Dict[str, Any], level: int) -> str:
        if len(value) == 1:
            (name, inside), = value.items()
            if name == '$set' and isinstance(inside, list):
                elements = sorted((self.write(one, level + 2) for one in inside), key=str.encode)
                return '{"$set":[' + ','.join(elements) + ']}'
            if name == '$map' and isinstance(inside, list) and all(
                    isinstance(pair, list) and len(pair) == 2 for pair in inside):
                return self._map(inside, level)
        members = sorted(value.items(),
                         key=lambda member: member[0].encode('utf-16-be', 'surrogatepass'))
        return '{' + ','.join([f'{_string(name)}:{self.write(one, level + 1)}'
                               for name, one in members]) + '}'

    def _map(self, pairs: List[List[Any]], level: int) -> str:
        written = {self.write(key, level + 3): self.write(one, level + 3) for key, one in pairs}
        if len(written) != len(pairs):
            raise _refuse('a key twice')
        return '{"$map":[' + ','.join(f'[{key},{written[key]}]' for key in sorted(
            written, key=str.encode)) + ']}'


def _number(written: str) -> str:
    """The exact decimal value, laid out as ECMAScript lays out a double."""
    sign = '-' if written[0] == '-' else ''
    mantissa, _, exponent = written.lower().lstrip('-').partition('e')
    whole, _, fraction = mantissa.partition('.')
    digits = (whole + fraction).lstrip('0')
    bare = digits.rstrip('0')
    if not bare:
        return '0'
    if len(exponent.lstrip('+-0')) > 18:
        raise _refuse(f'exponent {exponent[:40]}')
    last = int(exponent or '0') - len(fraction) + len(digits) - len(bare)
    point = len(bare) + last
    if point > _PLACES_MAX or last < -_PLACES_MAX:
        raise _refuse(f'a number with a digit more than {_PLACES_MAX} places from its point')
    if 0 < point <= 21:
        body = bare.ljust(point, '0') if last >= 0 else f'{bare[:point]}.{bare[point:]}'
    elif -6 < point <= 0:
        body = '0.' + '0' * -point + bare
    else:
        body = bare[0] + (f'.{bare[1:]}' if len(bare) > 1 else '') + f'e{point - 1:+d}'
    return sign + body


def _string(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse('half of a character') from None
    return json.dumps(value, ensure_ascii=False)


def bytes_json(value: bytes) -> str:
    return '{"$bytes":"' + base64.b64encode(value).decode() + '"}'


def names_in(form: str) -> List[str]:
    """The names that a format has, each once."""
    names: Dict[str, str] = {}
    _format(form, lambda name: names.setdefault(name, 'x'))
    return list(names)


def format_key(form: str, fields: Mapping[str, str]) -> str:
    """Raises InvalidKey, which names the field and its position."""
    def value_of(name: str) -> str:
        if name not in fields:
            raise InvalidKey(Code.BAD_OPTION, f"{form!r}: there is no field '{name}'")
        if not fields[name]:
            raise InvalidKey(Code.KEY_EMPTY, f"{form!r}: the value of '{name}'")
        return ''.join(f'%{ord(c):02X}' if c in _SEPARATORS or c == '%' or ord(c) < 0x20
                       or ord(c) == 0x7f else c for c in fields[name])

    return _format(form, value_of)


def _format(form: str, value_of: Callable[[str], str]) -> str:
    if not form:
        raise InvalidKey(Code.KEY_EMPTY, 'the format is empty')
    made, at, parted = '', 0, True
    while at < len(form):
        one = form[at]
        if one not in '{}' or form[at + 1:at + 2] == one:
            parted = parted or one in _SEPARATORS
            made += one
            at += 2 if one in '{}' else 1
            continue
        end = next((i for i in range(at + 1, len(form)) if form[i] in '{}'), -1)
        name = form[at + 1:end]
        if one == '}' or end < 0 or form[end] == '{':
            raise InvalidKey(Code.SYNTAX, f'{form!r}: a brace without its other half, at {at}')
        if not name:
            raise InvalidKey(Code.SYNTAX, f'{form!r}: a name is missing, at {at}')
        if not parted:
            raise InvalidKey(Code.SYNTAX, f"{form!r}: '{name}' runs into the name before it; put "
                                          'one of : | / , ; # = & or a blank between them')
        made += value_of(name)
        parted, at = False, end + 1
    return made
