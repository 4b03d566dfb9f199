"""The fixtures. pytest loads this by its entry point."""

from __future__ import annotations

from typing import Iterator

import pytest

from . import SemelNotFound, SemelRedis


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini('semel_redis_flags', 'Flags of redis-server for the fixture semel_redis',
                  type='args', default=[])


@pytest.fixture(scope='session')
def semel_redis_server(pytestconfig: pytest.Config) -> Iterator[SemelRedis]:
    """One server for all tests of this process: under xdist each worker has its own."""
    try:
        server = SemelRedis.start(*pytestconfig.getini('semel_redis_flags'))
    except SemelNotFound as error:
        pytest.fail(str(error), pytrace=False)
    with server:
        yield server


@pytest.fixture
def semel_redis(semel_redis_server: SemelRedis) -> SemelRedis:
    """The server, as if it had just started: url, port, client, clock, faults, flush()."""
    semel_redis_server.flush()
    return semel_redis_server
