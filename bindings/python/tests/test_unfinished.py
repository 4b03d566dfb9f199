"""Work that has not been done is no result (docs/doors.md): what a function may not return, and
which data looks like it.

Words: lazy = what has not run when the function has returned.
"""

import asyncio
import collections
import contextlib
import dataclasses
import enum
import functools
import multiprocessing.pool
import operator
import subprocess
import sys
import threading
import types
import typing
import unittest
from datetime import datetime

import semel
from semel import Engine, State, aio
from semel._lazy import kind_of_value

try:
    import pydantic
except ImportError:
    pydantic = None
try:
    import numpy
except ImportError:
    numpy = None


@contextlib.contextmanager
def managed(*_):
    raise AssertionError('it is not to run')
    yield


@contextlib.asynccontextmanager
async def managed_later(*_):
    raise AssertionError('it is not to run')
    yield


@contextlib.contextmanager
def managed_block():
    yield


class Managed:
    @contextlib.contextmanager
    def method(self):
        raise AssertionError('it is not to run')
        yield

    held = staticmethod(managed)


class Called:
    def __call__(self):
        raise AssertionError('it is not to run')

    def cancel(self):
        raise AssertionError('it is not to run')


def only(name):
    """An object that offers nothing but one protocol."""
    return type(name, (), {f'__{name}__': lambda *_: None})()


@dataclasses.dataclass
class Order:
    id: int

    def __call__(self):
        raise AssertionError('it is not to run')

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Items(list):
    def __call__(self):
        raise AssertionError('it is not to run')


class Level(enum.Enum):
    LOW = 1

    def __call__(self):
        raise AssertionError('it is not to run')


class Picture:
    """As those of Pillow, or answers of requests."""
    size = 5

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        return iter(())


class Network:
    prefix = 24

    def __iter__(self):
        return iter(())


class Rows:
    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


def started(thread):
    thread.start()
    thread.join()
    return thread


class UnfinishedTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')
        self.payments = self.engine.claims('payments', 'payment')

    def granted(self):
        return self.engine.stats()['claims_granted']

    def test_once_again_7_a_context_manager_is_refused_before_the_claim(self):
        def declared() -> typing.ContextManager[int]:
            self.fail('ran')

        def pooled() -> 'multiprocessing.pool.AsyncResult':
            self.fail('ran')

        functions = (managed, managed_later, Managed().method, Managed.held, declared, pooled,
                     Managed.__dict__['held'], functools.partial(managed, 1))
        for function in functions:
            for call in (lambda: self.calls.once('k', function),
                         lambda: self.calls.consume_once('k', function),
                         lambda: semel.Debounce(self.calls).run('k', function),
                         lambda: semel.idempotent(self.calls, 'k', operation='o')(function),
                         lambda: aio.idempotent(self.calls, 'k', operation='o')(function),
                         lambda: asyncio.run(aio.once(self.calls, 'k', function))):
                with self.subTest(function=function), self.assertRaises(semel.Unfinished):
                    call()
        self.assertEqual(self.granted(), 0)

        @managed_block()
        def runs():
            return b'7'

        self.assertEqual(self.calls.once('k', runs).value, b'7')

    def lazy(self, loop):
        pool = multiprocessing.pool.ThreadPool(1)
        self.addCleanup(pool.join)
        self.addCleanup(pool.close)
        go = threading.Event()
        self.addCleanup(go.set)
        process = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'],
                                   stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        alive = threading.Thread(target=go.wait)
        alive.start()
        return (pool.apply_async(go.wait), pool.map_async(str, []), threading.Thread(), alive,
                threading.Timer(9, print), loop.call_soon(print), loop.call_later(9, print),
                process, functools.lru_cache(print), operator.methodcaller('x'),
                functools.partial(print), Called, int, Called(), contextlib.closing(self),
                contextlib.nullcontext(), contextlib.ExitStack(), managed(), managed_later(),
                (1).__add__, str.upper,
                *map(only, ('iter', 'next', 'await', 'aiter', 'enter', 'aenter', 'call')))

    def test_once_again_7_what_a_function_returns_is_no_result_if_it_has_not_run(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        kept = semel.Codec(lambda value: b'x', lambda data: data, decoded=True)
        for i, made in enumerate(self.lazy(loop)):
            with self.subTest(made=made):
                with self.assertRaises(semel.Unfinished):
                    self.calls.once('k', lambda: made, codec=kept)
                with self.assertRaises(semel.Unfinished):
                    semel.idempotent(self.calls, 'k', operation='o', codec=kept)(lambda: made)()
                with self.assertRaises(semel.Unfinished):
                    asyncio.run(aio.once(self.calls, 'k', lambda: made, codec=kept, thread=True))
                self.assertIs(self.calls.get('k').state, State.ABSENT)
                with self.assertRaises(semel.Unfinished):
                    self.payments.once(f'k{i}', lambda: made, codec=kept)
                self.assertIs(self.payments.get(f'k{i}').state, State.IN_DOUBT)

    def test_once_again_7_data_is_a_result_whatever_else_it_offers(self):
        data = [None, True, 5, 1.5, 1j, 'text', b'x', bytearray(b'x'), memoryview(b'x'), [1], (1,),
                {1}, frozenset(), {'a': 1}, range(3), datetime(2026, 1, 1), Order(1), Items(),
                Level.LOW, Picture(), Network(), Rows(), collections.deque(), {}.keys(), object(),
                types.SimpleNamespace(a=1), ValueError('x'), collections.OrderedDict(),
                types.MappingProxyType({}), started(threading.Thread())]
        process = subprocess.Popen([sys.executable, '-c', ''])
        process.wait()
        data.append(process)
        if pydantic is not None:
            data.append(type('Model', (pydantic.BaseModel,), {'__call__': lambda self: 1})())
        if numpy is not None:
            data += [numpy.float64(1), numpy.int64(1), numpy.arange(3), numpy.array(5)]
        kept = semel.Codec(lambda value: b'x', lambda data: data, decoded=True)
        for one in data:
            with self.subTest(one=one):
                self.assertIsNone(kind_of_value(one))
                self.assertEqual(self.calls.once('k', lambda: one, codec=kept).value, b'x')
                self.calls.forget('k')

    def test_once_again_7_a_response_is_data_and_a_stream_is_not(self):
        module = types.ModuleType('starlette.responses')
        module.Response = type('Response', (), {'__call__': lambda *_: None})
        streaming = type('StreamingResponse', (module.Response,), {'body_iterator': ()})
        held = sys.modules.get('starlette.responses')
        sys.modules['starlette.responses'] = module
        self.addCleanup(lambda: sys.modules.pop('starlette.responses') if held is None else
                        sys.modules.__setitem__('starlette.responses', held))
        self.assertIsNone(kind_of_value(type('Mine', (module.Response,), {})()))
        self.assertIn('callable', kind_of_value(streaming()))


if __name__ == '__main__':
    unittest.main()
