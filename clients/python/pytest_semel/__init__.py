"""A Redis for tests: the program semel, started by a test, with a clock that the test moves.

    with SemelRedis.start() as redis:
        redis.call('SET', 'job:1', 'mine', 'PX', 60_000)
        redis.clock.advance(60)
        assert redis.call('EXISTS', 'job:1') == 0

With pytest the fixture semel_redis does this (plugin.py). No client library is needed; `client` is
a redis.Redis where redis-py is installed.
"""

from ._binary import SemelNotFound, find_binary
from ._server import Clock, Faults, SemelRedis, StartFailed
from ._wire import ReplyError

__all__ = ['Clock', 'Faults', 'ReplyError', 'SemelNotFound', 'SemelRedis', 'StartFailed',
           'find_binary']
