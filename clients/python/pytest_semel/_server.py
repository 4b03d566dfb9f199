"""One process of semel for tests."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from ._binary import find_binary
from ._wire import Wire, Word

if TYPE_CHECKING:
    import redis

Duration = Union[timedelta, float]  # a number is in seconds


def milliseconds(time_: Duration) -> int:
    seconds = time_.total_seconds() if isinstance(time_, timedelta) else time_
    return round(seconds * 1000)


class StartFailed(RuntimeError):
    """The program did not start; the text has what it printed."""


class Clock:
    """The server's clock. It runs with the machine's until a test moves or stops it."""

    def __init__(self, server: SemelRedis) -> None:
        self._server = server

    def advance(self, time_: Duration) -> None:
        """Moves on by seconds or a timedelta. What has ended by then is gone when this returns."""
        self._server.call('SEMEL.CLOCK', 'ADVANCE', milliseconds(time_))

    def freeze(self) -> None:
        """Stands still from now on; advance() still moves it."""
        self._server.call('SEMEL.CLOCK', 'FREEZE')

    def run(self) -> None:
        """Runs on, ahead of the machine's clock by all that was advanced."""
        self._server.call('SEMEL.CLOCK', 'REAL')

    def now(self) -> float:
        """Unix time in seconds."""
        return float(self._server.call('SEMEL.CLOCK', 'NOW')) / 1000


class Faults:
    """What goes wrong with the requests that match. `command` and `key` are globs; without
    `command` those of a connection's begin (HELLO, AUTH, CLIENT, PING) are left alone. A fault acts
    from the `nth` matching request, on `count` of them, 0: on all. Each call returns a number for
    clear()."""

    def __init__(self, server: SemelRedis) -> None:
        self._server = server

    def error(self, text: str, **which: Any) -> int:
        """The reply is this error, and the command does not run: 'LOADING not yet'."""
        return self._add('ERROR', text, **which)

    def delay(self, time_: Duration, **which: Any) -> int:
        """The command runs after this time of the server's clock, 60 s at most."""
        return self._add('DELAY', milliseconds(time_), **which)

    def drop(self, **which: Any) -> int:
        """The connection is closed, and the command does not run."""
        return self._add('DROP', **which)

    def drop_reply(self, **which: Any) -> int:
        """The command runs, and the connection is closed instead of its reply."""
        return self._add('DROP-REPLY', **which)

    def _add(self, *action: Word, command: Optional[str] = None, key: Optional[str] = None,
             nth: int = 1, count: int = 1) -> int:
        words: list[Word] = [*action, 'NTH', nth, 'COUNT', count]
        if command is not None:
            words += ['COMMAND', command]
        if key is not None:
            words += ['KEY', key]
        return int(self._server.call('SEMEL.FAULT', 'ADD', *words))

    def list(self) -> Sequence[dict[str, Any]]:
        """What is planted, and in `acted` how often each has acted."""
        return [{name.decode(): value.decode() if isinstance(value, bytes) else value
                 for name, value in zip(each[::2], each[1::2])}
                for each in self._server.call('SEMEL.FAULT', 'LIST')]

    def clear(self, number: Optional[int] = None) -> int:
        """Removes one fault, or all; returns how many there were."""
        words: tuple[Word, ...] = () if number is None else (number,)
        return int(self._server.call('SEMEL.FAULT', 'CLEAR', *words))


class SemelRedis:
    """A running server. It ends with `with`, stop(), or the thread that started it."""

    host = '127.0.0.1'

    def __init__(self, process: subprocess.Popen[bytes], folder: str, port: int) -> None:
        self._process = process
        self._folder = folder
        self._wire: Optional[Wire] = None
        self._client: Optional[redis.Redis] = None
        self.port = port
        self.clock = Clock(self)
        self.faults = Faults(self)

    @classmethod
    def start(cls, *flags: str, binary: Optional[str] = None, seconds: float = 20) -> SemelRedis:
        """Starts one on a free port. `flags` are redis-server's: '--requirepass', 'x'. Raises
        SemelNotFound and StartFailed."""
        program = binary or find_binary()
        folder = tempfile.mkdtemp(prefix='semel-')
        ready = Path(folder) / 'ready'
        with open(Path(folder) / 'log', 'wb') as log:
            process = subprocess.Popen(
                [program, 'redis-server', '--port', 'auto', '--bind', cls.host, '--dir', folder,
                 '--ready-file', str(ready), '--exit-with-parent', 'yes', *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + seconds
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                process.wait()
                text = (Path(folder) / 'log').read_text(errors='replace')[-2000:]
                shutil.rmtree(folder, ignore_errors=True)
                raise StartFailed(f'{program} did not start: {text}')
            time.sleep(0.0005)
        facts = dict(line.split('=', 1) for line in ready.read_text().splitlines())
        return cls(process, folder, int(facts['port']))

    def __enter__(self) -> SemelRedis:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f'redis://{self.host}:{self.port}/0'

    @property
    def client(self) -> redis.Redis:
        """A client of redis-py, one for the server; it must be installed."""
        if self._client is None:
            import redis
            self._client = redis.Redis(host=self.host, port=self.port, decode_responses=True)
        return self._client

    def call(self, *words: Word) -> Any:
        """One command on a connection of its own. Bulk strings are bytes; raises ReplyError."""
        if self._wire is None:
            self._wire = Wire(self.host, self.port, 20)
        try:
            return self._wire.call(*words)
        except OSError:  # as by a fault: the next call has a new connection
            self._wire.close()
            self._wire = None
            raise

    def flush(self) -> None:
        """As if it had just started, but for the time: no keys, faults or functions, and the clock
        runs."""
        self.faults.clear()
        self.clock.run()
        self.call('FLUSHALL')
        self.call('FUNCTION', 'FLUSH')

    def stop(self) -> None:
        """Ends the process. May be called again."""
        for closing in (self._wire, self._client):
            if closing is not None:
                closing.close()
        self._wire = self._client = None
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
