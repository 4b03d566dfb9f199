"""As much of Redis' protocol as the fixture itself needs."""

from __future__ import annotations

import socket
from typing import Any, BinaryIO, Union

Word = Union[str, bytes, int, float]


class ReplyError(RuntimeError):
    """The server answered with an error, which is the text."""


def encode(words: tuple[Word, ...]) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b'*%d\r\n' % len(parts) + b''.join(b'$%d\r\n%s\r\n' % (len(p), p) for p in parts)


def read(stream: BinaryIO) -> Any:
    line = stream.readline()
    if not line.endswith(b'\r\n'):
        raise ConnectionError('the connection was closed')
    kind, text = line[:1], line[1:-2]
    if kind == b'+':
        return text.decode()
    if kind == b'-':
        raise ReplyError(text.decode(errors='replace'))
    if kind == b':':
        return int(text)
    count = int(text)
    if count < 0:
        return None
    if kind == b'$':
        return stream.read(count + 2)[:-2]
    return [read(stream) for _ in range(count)]


class Wire:
    """One connection, for one thread."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=seconds)
        self._stream = self._socket.makefile('rb')

    def call(self, *words: Word) -> Any:
        """The reply. Bulk strings are bytes. Raises ReplyError, ConnectionError, TimeoutError."""
        self._socket.sendall(encode(words))
        return read(self._stream)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
