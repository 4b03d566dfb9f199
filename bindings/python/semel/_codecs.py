"""Results and memos as bytes: how values become what is kept, and come back."""

import json
import pickle
from dataclasses import dataclass
from typing import Any, Callable, Generic, TypeVar

from ._library import Text, raw

T = TypeVar('T')


@dataclass(frozen=True)
class Codec(Generic[T]):
    """Both directions. `encode` may raise what it likes: the work counts as done then, its result
    as not kept. `decode` raises ValueError for bytes that are not its own."""

    encode: Callable[[T], Text]
    decode: Callable[[bytes], T]


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False).encode()


def _text(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f'a result of type str, not {type(value).__name__}')
    return value.encode()


def _unpickle(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as wrong:  # it raises nearly everything
        raise ValueError(f'no pickle: {wrong}') from wrong


def _bytes(value: Any) -> bytes:
    return b'' if value is None else raw(value)


BYTES: 'Codec[Any]' = Codec(_bytes, bytes)
TEXT: 'Codec[str]' = Codec(_text, bytes.decode)
JSON: 'Codec[Any]' = Codec(_compact, json.loads)
# Whoever can write to the storage can run code in this process: never across a trust boundary.
PICKLE: 'Codec[Any]' = Codec(pickle.dumps, _unpickle)
