"""Results and memos as bytes: how values become what is kept, and come back."""

import pickle
from dataclasses import dataclass
from typing import Any, Callable, Generic, TypeVar

from ._lazy import refuse_lazy, return_type
from ._library import Text, raw
from ._typed_json import Classes, TypedJson

T = TypeVar('T')


@dataclass(frozen=True)
class Codec(Generic[T]):
    """Both directions. What `encode` has made is decoded at once and compared: if that is another
    value, or one of the two raises, the work counts as done and its result as not kept.
    `decode` raises ValueError for bytes that are not its own. `decoded`: the first caller gets what
    decode makes, as repeats do, and nothing is compared."""

    encode: Callable[[T], Text]
    decode: Callable[[bytes], T]
    decoded: bool = False

    def __post_init__(self) -> None:
        refuse_lazy(self.encode, 'encode')
        refuse_lazy(self.decode, 'decode')


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


def codec_for(kind: Any) -> 'Codec[Any]':
    """JSON for values of a type: beyond what JSON does, of the dataclasses, named tuples, enums and
    classes of attrs and pydantic that its annotation names, and those that theirs name."""
    return _codec_of(Classes.of(kind, strict=True))


def codec_of_result(function: Any) -> 'Codec[Any]':
    """That of what a function is annotated to return, as far as the annotations are known."""
    return _codec_of(Classes.of(return_type(function), strict=False))


def _codec_of(classes: Classes) -> 'Codec[Any]':
    made = TypedJson(classes)
    return Codec(made.encode, made.decode)



BYTES: 'Codec[Any]' = Codec(_bytes, bytes, decoded=True)  # text becomes bytes, and None nothing
TEXT: 'Codec[str]' = Codec(_text, bytes.decode)
# JSON, and tuples, sets, bytes, Decimal, UUID, dates, times and maps with any keys beside it.
JSON: 'Codec[Any]' = _codec_of(Classes())
# Whoever can write to the storage can run code in this process: never across a trust boundary.
PICKLE: 'Codec[Any]' = Codec(pickle.dumps, _unpickle)
