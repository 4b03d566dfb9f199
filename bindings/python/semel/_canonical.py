"""Canonical texts of docs/identity.md, and formats of keys: made by the engine."""

import base64
import re
from ctypes import byref
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _library as c
from ._errors import Code, InvalidKey, InvalidType, SemelError, last_error
from ._library import library, list_of, take

LEVELS_MAX, VALUES_MAX = 128, 1 << 20  # of one text; the engine has the same limits
_PLACES = re.compile(r'{{|}}|{([^{}]*)}')


def canonical_json(text: bytes) -> bytes:
    """Raises SemelError (SYNTAX, VALUE_TOO_LONG)."""
    return _text(lambda made: library.identity_json(text, len(text), made))


def canonical_call(operation: str, scope: Optional[Mapping[str, str]], arguments: str) -> bytes:
    """The canonical text of a call, whose arguments are JSON. A scope is somebody's."""
    if scope is not None and (not scope or not all(scope.values())):
        raise SemelError(Code.KEY_EMPTY, 'the scope')
    fields: Dict[str, Any] = {}
    for name, text in (('operation', operation), ('arguments', arguments), *(scope or {}).items()):
        try:
            data = text.encode()
        except (AttributeError, UnicodeEncodeError):
            raise InvalidType(Code.BAD_OPTION, f'{name}: a text, not {text!r:.40}') from None
        fields[name], fields[name + '_length'] = data, len(data)
    call = c.CallIdentity(**fields)
    return _text(lambda made: library.identity_text(byref(call), made))


def _text(make: Callable[[Any], int]) -> bytes:
    made = c.Buffer()
    code = make(byref(made))
    if code != Code.OK:
        raise last_error(code)
    return take(made) or b''


def bytes_json(value: bytes) -> str:
    return '{"$bytes":"' + base64.b64encode(value).decode() + '"}'


def names_in(form: str) -> List[str]:
    """The names that a format has, each once. What is wrong with it, format_key() says."""
    return list(dict.fromkeys(found[1] for found in _PLACES.finditer(form) if found[1]))


def format_key(form: str, fields: Mapping[str, str]) -> str:
    """Raises InvalidKey, which names the field and its position."""
    try:
        data = form.encode()
        return _text(lambda made: library.format_key(
            data, len(data), list_of(tuple(fields)), list_of(tuple(fields.values())), len(fields),
            made)).decode()
    except (SemelError, UnicodeEncodeError) as wrong:
        code = wrong.code if isinstance(wrong, SemelError) else Code.BAD_ENCODING
        if code not in (Code.SYNTAX, Code.BAD_OPTION, Code.BAD_ENCODING):
            raise
        why = wrong.detail if isinstance(wrong, SemelError) else str(wrong)
        raise InvalidKey(code, f'the format {form!r}: {why}') from None
