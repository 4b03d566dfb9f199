"""The contract of the doors (docs/doors.md) in both faces: what has run, one answer, what is no
value, leases that are kept.

Words: lazy = a function that returns work instead of doing it.
"""

import asyncio
import collections
import concurrent.futures
import dataclasses
import enum
import functools
import gc
import math
import threading
import typing
import unittest
import uuid
import warnings
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import semel
from semel import Answer, Code, Engine, OnceAnswer, State, Verdict, aio

LIMIT_S = 60


async def coroutine_function():
    raise AssertionError('it is not to run')


def generator_function():
    raise AssertionError('it is not to run')
    yield


async def async_generator_function():
    raise AssertionError('it is not to run')
    yield


class AsyncCall:
    async def __call__(self):
        raise AssertionError('it is not to run')

    async def method(self):
        raise AssertionError('it is not to run')

    def rows(self):
        yield 1


def declared_iterator() -> typing.Iterator[int]:
    raise AssertionError('it is not to run')


def declared_future() -> 'concurrent.futures.Future[int]':
    raise AssertionError('it is not to run')


def declared_callable() -> typing.Optional[typing.Callable[[], int]]:
    raise AssertionError('it is not to run')


def declared_awaitable() -> typing.Awaitable[int]:
    raise AssertionError('it is not to run')


GENERATORS = (generator_function, async_generator_function, AsyncCall().rows, declared_iterator,
              functools.partial(generator_function), declared_future, declared_callable)
COROUTINES = (coroutine_function, AsyncCall(), AsyncCall().method, declared_awaitable,
              functools.partial(coroutine_function), functools.partial(AsyncCall()),
              functools.lru_cache(coroutine_function))


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')
        self.queue = self.engine.claims('queue', 'message')
        self.clicks = semel.Debounce(self.engine.claims('clicks', 'debounce'),
                                     remove_on_error=True)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter('error')  # "was never awaited" is a failure
        self.unraisable = []
        import sys
        hook, sys.unraisablehook = sys.unraisablehook, self.unraisable.append
        self.addCleanup(setattr, sys, 'unraisablehook', hook)
        self.addCleanup(self.nothing_was_dropped)

    def nothing_was_dropped(self):
        gc.collect()
        self.assertEqual([one.exc_value for one in self.unraisable], [])

    def granted(self):
        return self.engine.stats()['claims_granted']

    def run_it(self, coroutine):
        async def limited():
            return await asyncio.wait_for(coroutine, LIMIT_S)

        return asyncio.run(limited())


class LazyTest(Case):
    def blocking(self, function):
        yield 'once', lambda: self.calls.once('k', function)
        yield 'consume_once', lambda: self.queue.consume_once('k', function)
        yield 'Debounce.run', lambda: self.clicks.run('k', function)
        yield 'spend', lambda: semel.Tokens(self.engine).spend('t', function)
        yield 'aio thread', lambda: self.run_it(aio.once(self.calls, 'k', function, thread=True))
        yield 'aio message', lambda: self.run_it(aio.consume_once(self.queue, 'k', function,
                                                                  thread=True))
        yield 'key', lambda: semel.idempotent(self.calls, function)(declared_nothing)
        yield 'payload', lambda: semel.idempotent(self.calls, 'k',
                                                  payload=function)(declared_nothing)
        yield 'codec', lambda: semel.Codec(function, bytes)
        yield 'decode', lambda: self.calls.once('k', declared_nothing, decode=function)
        yield 'secrets', lambda: semel.ReplayGuard(self.engine, secrets=function)
        yield 'open', lambda: semel.PerProcess(function)

    def awaiting(self, function):
        yield 'once', lambda: self.run_it(aio.once(self.calls, 'k', function))
        yield 'consume_once', lambda: self.run_it(aio.consume_once(self.queue, 'k', function))
        yield 'debounce', lambda: self.run_it(aio.debounce(self.clicks, 'k', function))
        yield 'idempotent', lambda: aio.idempotent(self.calls, 'k', operation='o')(function)
        yield 'idempotent', lambda: semel.idempotent(self.calls, 'k', operation='o')(function)

    def test_once_again_7_a_lazy_function_is_refused_before_the_claim(self):
        for functions, faces in ((GENERATORS + COROUTINES, self.blocking),
                                 (GENERATORS, self.awaiting)):
            for function in functions:
                for name, call in faces(function):
                    with self.subTest(call=name, function=function):
                        with self.assertRaises(semel.Unfinished):
                            call()
        self.assertEqual(self.granted(), 0)

    def test_once_again_7_what_a_function_returns_may_be_work_too(self):
        pool = concurrent.futures.Future()
        for made in (coroutine_function, generator_function, async_generator_function,
                     lambda: pool, lambda: iter([1]), lambda: map(str, []), lambda: len,
                     lambda: functools.partial(len), lambda: open(__file__, encoding='utf-8')):
            results = []

            def lazy():
                results.append(made())
                return results[-1]

            def plain(key):
                return self.calls.get(key).state

            for name, key, call in (
                    ('once', 'k', lambda: self.calls.once('k', lazy)),
                    ('consume', 'm', lambda: self.queue.consume_once('m', lazy)),
                    ('debounce', 'd', lambda: self.clicks.run('d', lazy)),
                    ('idempotent', 'i', lambda: semel.idempotent(
                        self.calls, 'i', operation='i')(lazy)()),
                    ('thread', 'k', lambda: self.run_it(aio.once(self.calls, 'k', lazy,
                                                                 thread=True)))):
                with self.subTest(call=name, made=made):
                    with self.assertRaises(semel.Unfinished):
                        call()
                    self.assertIsNot(plain(key), State.DONE)
                    self.assertIsNot(self.queue.get(key).state, State.DONE)
            for one in results:
                if hasattr(one, 'close'):
                    one.close()
        payments = self.engine.claims('payments', 'payment')
        with self.assertRaises(semel.Unfinished):
            payments.once('k', lambda: coroutine_function())
        self.assertIs(payments.get('k').state, State.IN_DOUBT)
        with self.assertRaises(semel.Unfinished):
            with self.calls.hold('h') as work:
                work.result = coroutine_function()
        self.assertIsNot(self.calls.get('h').state, State.DONE)

    def test_once_again_7_a_step_is_no_work_that_is_still_to_be_done(self):
        claim = self.calls.claim('k')
        steps = self.calls.steps('k', claim.epoch)
        for step in (generator_function, coroutine_function, lambda: coroutine_function(),
                     lambda: generator_function()):
            with self.assertRaises(semel.Unfinished):
                steps.run('s', step)
            if step not in (coroutine_function,):
                with self.assertRaises(semel.Unfinished):
                    self.run_it(aio.step(steps, 's', lambda: step() if step is generator_function
                                         else self.of(step)))
        self.assertIsNone(steps.recall('s'))
        for i, made in enumerate(((1, 2), {1: Decimal('1.50')})):
            twice = [steps.run(f's{i}', lambda: made) for _ in range(2)]
            self.assertEqual(twice, [made, made])

    async def of(self, made):
        return made()

    def test_once_again_7_a_coroutine_that_returns_work_has_not_run(self):
        async def of(made):
            return made()

        async def main():
            for made in (coroutine_function, generator_function, async_generator_function,
                         lambda: asyncio.get_running_loop().create_future()):
                with self.assertRaises(semel.Unfinished):
                    await aio.once(self.calls, 'k', lambda made=made: of(made))
                with self.assertRaises(semel.Unfinished):
                    await aio.consume_once(self.queue, 'k', lambda made=made: of(made))
                with self.assertRaises(semel.Unfinished):
                    await aio.debounce(self.clicks, 'k', lambda made=made: of(made))
                for made in (generator_function, async_generator_function):
                    with self.assertRaises(semel.Unfinished):
                        await aio.once(self.calls, 'k', lambda made=made: made())
            seen = []

            async def handler():
                seen.append(1)

            consumed = await aio.consume_once(self.queue, 'lambda', lambda: handler())
            self.assertEqual((consumed.verdict, seen), (Verdict.ACK, [1]))
            task = await aio.once(self.calls, 'task',
                                  lambda: asyncio.get_running_loop().create_task(value()))
            self.assertEqual(task.value, b'7')

        async def value():
            return b'7'

        self.run_it(main())
        self.assertIsNot(self.calls.get('k').state, State.DONE)


def declared_nothing():
    raise AssertionError('it is not to run')


class Color(enum.Enum):
    RED = 7


class Level(enum.IntEnum):
    LOW = 0


@dataclasses.dataclass
class Line:
    name: str
    price: Decimal
    tags: typing.Tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Order:
    id: uuid.UUID
    lines: typing.List[Line]
    color: Color = Color.RED
    at: typing.Optional[datetime] = None
    also: 'typing.Optional[Order]' = None


class Point(typing.NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Other:
    id: int


ORDER = Order(uuid.UUID(int=5), [Line('a', Decimal('1.50'), ('x',))], Color.RED,
              datetime(2026, 1, 1, tzinfo=timezone.utc),
              Order(uuid.UUID(int=6), [], Color.RED))


class AnswerTest(Case):
    def twice(self, result, **options):
        first = self.calls.once('k', lambda: result, on_unkept='return', **options)
        second = self.calls.once('k', lambda: self.fail('ran'), **options)
        self.calls.forget('k')
        return first, second

    def test_once_again_8_both_callers_get_the_same_or_the_first_is_told(self):
        class Text(str):
            pass

        for result in (
                None, True, 5, 1.5, -0.0, 'text', [1, [2]], {'a': None}, (1, (2, 3)), [(1, 2)],
                {1: 'a', 2: 'b'}, {1: 'int', '1': 'text'}, {True: 1}, {(1, 2): 3}, {'$set': [1]},
                {'$$x': 1}, {'$tuple': [1]}, {'$map': 1, 'b': 2}, b'\0\xff', bytearray(b'x'),
                {1, 2}, frozenset({1}), {(1, 'a')}, Decimal('1.50'), Decimal('NaN'),
                uuid.UUID(int=7), date(2026, 1, 31), time(10, 20, 30, 5),
                timedelta(days=-1, seconds=1),
                datetime(2026, 1, 31, 10, 20), datetime(2026, 1, 1, fold=1),
                datetime(2026, 1, 31, tzinfo=timezone(timedelta(hours=1))), 2**70):
            with self.subTest(result=result):
                first, second = self.twice(result, codec=semel.JSON)
                self.assertIsNone(first.error)
                for one in (first, second):
                    self.assertIs(semel._typed_json.same(result, one.value), True)
        for result in (float('nan'), Text('x'), Color.RED, Level.LOW, ORDER, Point(1, 2), 1j,
                       object(), collections.OrderedDict(a=1), collections.defaultdict(int),
                       '\ud800', {'a': object()}, {1: Color.RED}, memoryview(b'x')):
            with self.subTest(result=result):
                first, second = self.twice(result, codec=semel.JSON)
                self.assertEqual((first.answer, first.error.code),
                                 (OnceAnswer.RAN, Code.RESULT_NOT_KEPT))
                self.assertIs(first.value, result)
                self.assertIs(second.answer, OnceAnswer.EXPIRED)
                with self.assertRaises(semel.ResultNotKept) as told:
                    first.require()
                self.assertIs(told.exception.value, result)

    def test_a_result_that_is_not_kept_is_raised_unless_the_call_says_otherwise(self):
        async def later():
            return object()

        def ran():
            self.fail('ran')

        calls = (lambda key, **options: self.calls.once(key, object, codec=semel.JSON, **options),
                 lambda key, **options: self.run_it(aio.once(self.calls, key, later,
                                                             codec=semel.JSON, **options)))
        for i, call in enumerate(calls):
            for options in ({}, {'on_unkept': 'raise'}):
                key = f'{i}{options}'
                with self.subTest(key=key), self.assertRaises(semel.ResultNotKept) as told:
                    call(key, **options)
                self.assertIs(type(told.exception.value), object)
                self.assertIs(told.exception.outcome.answer, OnceAnswer.RAN)
                self.assertIs(self.calls.once(key, ran).answer, OnceAnswer.EXPIRED)
            self.assertIs(call(f'{i}r', on_unkept='return').answer, OnceAnswer.RAN)
            for wrong in ('Raise', '', True, None):
                with self.assertRaisesRegex(semel.SemelError, "allowed 'raise', 'return'"):
                    call(f'{i}w', on_unkept=wrong)
            self.assertIs(self.calls.get(f'{i}w').state, semel.State.ABSENT)
        tokens = semel.Tokens(self.engine)
        with self.assertRaises(semel.ResultNotKept):
            tokens.spend(tokens.issue(), object, codec=semel.JSON)

    def test_flags_of_a_policy_are_true_or_false(self):
        for name in ('strict', 'fail_open', 'issued', 'fair'):
            self.engine.claims(f'no-{name}', 'call', **{name: False})
            self.engine.claims(f'is-{name}', 'call', **{name: True})
            for wrong in (0, 1, 2, 'yes', 1.0):
                with self.subTest(name=name, wrong=wrong), self.assertRaisesRegex(
                        semel.InvalidType, f'{name}: True or False'):
                    self.engine.claims(f'not-{name}', 'call', **{name: wrong})

    def test_an_unknown_policy_lists_those_that_there_are(self):
        for name in ('calls', '', 'x' * 10_000):
            with self.assertRaises(semel.SemelError) as wrong:
                self.engine.claims('n', name)
            self.assertIn('; there are call, debounce, ', str(wrong.exception))
            self.assertLess(len(str(wrong.exception)), 300)

    def test_once_again_8_a_codec_for_a_type_gives_it_back(self):
        for kind, result in ((Order, ORDER), (typing.List[Order], [ORDER]),
                             (typing.Optional[Point], Point(1, 2)), (Color, Color.RED),
                             (typing.Dict[Level, Color], {Level.LOW: Color.RED}),
                             (typing.Union[Other, Line], Line('a', Decimal(1)))):
            with self.subTest(kind=kind):
                first, second = self.twice(result, codec=semel.codec_for(kind))
                self.assertIsNone(first.error)
                self.assertEqual((first.value, second.value), (result, result))
                self.assertIs(type(second.value), type(result))
        first, _ = self.twice(Other(1), codec=semel.codec_for(Order))
        self.assertEqual(first.error.code, Code.RESULT_NOT_KEPT)
        self.calls.complete('forged', self.calls.claim('forged').epoch,
                            b'{"$object":["Other",{"id":1}]}')
        with self.assertRaises(semel.SemelError) as wrong:
            self.calls.once('forged', declared_nothing, codec=semel.codec_for(Order))
        self.assertEqual(wrong.exception.code, Code.BAD_ENCODING)

    def test_once_again_8_a_decorated_function_is_kept_by_its_annotation(self):
        @semel.idempotent(self.calls, 'o:{id}')
        def order(id: int) -> 'typing.Optional[Order]':
            return ORDER

        @semel.idempotent(self.calls, 'c:{id}')
        async def later(id: int) -> typing.Tuple[Order, ...]:
            return (ORDER,)

        @semel.idempotent(self.calls, 'u:{id}')
        def unknown(id: int):
            return ORDER

        self.assertEqual([order(1), order(1)], [ORDER, ORDER])
        self.assertEqual([self.run_it(later(1)) for _ in range(2)], [(ORDER,), (ORDER,)])
        with self.assertRaises(semel.ResultNotKept) as told:
            unknown(1)
        self.assertIs(told.exception.value, ORDER)
        self.assertRaises(semel.Expired, unknown, 1)

    def test_once_again_8_models_come_back(self):
        try:
            import attr
            import pydantic
        except ImportError:
            self.skipTest('pydantic or attrs is not installed')

        class Item(pydantic.BaseModel):
            id: uuid.UUID
            prices: typing.Tuple[Decimal, ...]

        @attr.s(auto_attribs=True)
        class Plain:
            id: int
            item: Item

        item = Item(id=uuid.UUID(int=1), prices=(Decimal('1.50'),))
        self.assertEqual(semel.identity('o', item).canonical.decode(),
                         f'["o",null,{{"id":"{item.id}","prices":[1.5]}}]')
        made = semel._codecs._codec_of(semel._typed_json.Classes.of(
            typing.Union[Item, Plain], strict=False))
        for value in (item, Plain(1, item)):
            back = made.decode(made.encode(value))
            self.assertEqual((back, type(back)), (value, type(value)))

    def test_once_again_8_bytes_are_what_both_callers_get(self):
        for result, kept in ((b'x', b'x'), ('x', b'x'), (None, b''), (b'', b'')):
            first, second = self.twice(result)
            self.assertEqual((first.value, second.value), (kept, kept))
        first, second = self.twice(5)
        self.assertEqual(first.error.code, Code.RESULT_NOT_KEPT)
        first, second = self.twice('5', encode=lambda value: value)  # it would come back as bytes
        self.assertEqual(first.error.code, Code.RESULT_NOT_KEPT)

    def test_once_again_8_a_type_without_equality_is_compared_by_its_bytes(self):
        class Reply:
            def __init__(self, body):
                self.body = body

        kept = semel.Codec(lambda reply: reply.body, Reply)
        first, second = self.twice(Reply(b'x'), codec=kept)
        self.assertEqual((first.error, first.value.body, second.value.body), (None, b'x', b'x'))
        lossy = semel.Codec(lambda reply: reply.body, lambda data: Reply(data + b'!'))
        self.assertEqual(self.twice(Reply(b'x'), codec=lossy)[0].error.code, Code.RESULT_NOT_KEPT)

        @dataclasses.dataclass(eq=False)
        class Bare:
            value: tuple

        self.assertIs(semel._typed_json.same(Bare((1,)), Bare((1,))), True)
        self.assertIs(semel._typed_json.same(Bare((1,)), Bare((True,))), False)


class VerdictTest(Case):
    def test_once_again_9_only_named_answers_are_verdicts(self):
        for answer, verdict in ((None, Verdict.ACK), (True, Verdict.ACK),
                                (Verdict.ACK, Verdict.ACK), (False, Verdict.RETRY_LATER),
                                (Verdict.RETRY_LATER, Verdict.RETRY_LATER),
                                (Verdict.DEAD_LETTER, Verdict.DEAD_LETTER)):
            consumed = self.queue.consume_once(f'{answer!r}', lambda: answer)
            self.assertIs(consumed.verdict, verdict, answer)
        for wrong in (0, 1, -1, '', 'ok', b'', [], {}, 0.0, Color.RED, Level.LOW, object(),
                      Verdict.ACK_DUPLICATE, (), Decimal(0)):
            with self.subTest(wrong=wrong):
                with self.assertRaises(semel.InvalidType):
                    self.queue.consume_once('wrong', lambda: wrong)
                self.assertIsNot(self.queue.get('wrong').state, State.DONE)
                self.queue.forget('wrong')
                with self.assertRaises(semel.InvalidType):
                    self.run_it(aio.consume_once(self.queue, 'wrong', lambda: wrong))
                self.queue.forget('wrong')
                if wrong is not Verdict.ACK_DUPLICATE:
                    with self.assertRaises(semel.InvalidType):
                        self.clicks.run(f'{wrong!r}', lambda: wrong)
                    with self.assertRaises(semel.InvalidType):
                        self.run_it(aio.debounce(self.clicks, f'a{wrong!r}', lambda: wrong))
        queue = self.engine.claims('three', 'message', attempts_max=3)
        for _ in range(3):  # retried, but not for ever
            with self.assertRaises(semel.InvalidType):
                queue.consume_once('poison', lambda: 0)
        self.assertIs(queue.consume_once('poison', declared_nothing).verdict, Verdict.DEAD_LETTER)

    def test_once_again_9_flags_are_true_or_false(self):
        claim = self.calls.claim('k')
        for wrong in (0, 1, 2, 'no', None, []):
            for call in (lambda: self.calls.once('q', declared_nothing, keep_lease=wrong),
                         lambda: self.calls.once('q', declared_nothing, without_key=wrong),
                         lambda: self.calls.claim('q', remote_owner=wrong),
                         lambda: self.calls.lock('q', keep_lease=wrong),
                         lambda: self.calls.fail('k', claim.epoch, in_doubt=wrong),
                         lambda: semel.Debounce(self.calls, remove_on_finish=wrong)):
                self.assertRaises(semel.InvalidType, call)
            if wrong is not None:
                with self.assertRaises(semel.InvalidType):
                    self.calls.fail('k', claim.epoch, keep=wrong)
        self.assertIs(self.calls.get('k').state, State.HELD)


class NoneTest(Case):
    def test_once_again_11_zero_is_not_the_default(self):
        calls, engine = self.calls, self.engine
        token = calls.claim('held').epoch
        for call in (
                lambda ms: calls.claim('q', **ms('lease')),
                lambda ms: calls.once('q', declared_nothing, **ms('lease')),
                lambda ms: calls.consume_once('q', declared_nothing, **ms('lease')),
                lambda ms: calls.hold('q', **ms('lease')),
                lambda ms: calls.claim_batch(['q'], **ms('lease')),
                lambda ms: calls.renew('held', token, **ms('lease')),
                lambda ms: calls.keep('held', token, **ms('lease')),
                lambda ms: calls.lock('q', **ms('lease')),
                lambda ms: calls.issue('q', **ms('ttl')),
                lambda ms: engine.set('q', '', **ms('ttl')),
                lambda ms: semel.Tokens(engine).issue(**ms('ttl')),
                lambda ms: engine.first_seen('n', 'f', **ms('window')),
                lambda ms: engine.claims('other', 'call', **ms('lease')),
                lambda ms: engine.claims('other', 'call', **ms('result_ttl')),
                lambda ms: engine.change_claims('calls', **ms('failure_ttl')),
                lambda ms: self.run_it(aio.claim(calls, 'q', **ms('lease'))),
                lambda ms: self.run_it(aio.lock(calls, 'q', **ms('lease')).take())):
            for value in (0, 0.0, 1e-10, 0.0009, -1, -1e-10, float('nan'), -math.inf,
                          timedelta(0), timedelta(microseconds=1)):
                with self.subTest(value=value):
                    self.assertRaises(semel.OutOfRange, call, lambda name: {name: value})
            for value in (True, False, '5', b'5'):
                self.assertRaises(TypeError, call, lambda name: {name: value})
            with self.assertRaises(semel.OutOfRange):
                call(lambda name: {name + '_ms': 0})
        for wrong in (0, 1e-10, True, float('nan')):
            for call in (lambda: semel.Debounce(calls, interval=wrong),
                         lambda: semel.ReplayGuard(engine, secrets=['s'], window=wrong),
                         lambda: calls.once('q', declared_nothing, work_max=wrong)):
                self.assertRaises((semel.SemelError, TypeError), call)
        with self.assertRaises(semel.OutOfRange):
            calls.once('q', declared_nothing, work_max=3600.001)
        for name in ('memory_bytes', 'log_bytes', 'key_bytes_max', 'value_bytes_max',
                     'sync_every_ms', 'background_ms'):
            with self.assertRaises(semel.OutOfRange):
                Engine(**{name: 0})
        self.assertEqual(self.calls.get('q').state, State.ABSENT)
        self.assertTrue(calls.claim('w', wait=0).granted)
        self.assertTrue(calls.claim('inf', lease=math.inf).granted)

    def test_once_again_11_what_is_not_said_is_none(self):
        engine = self.engine
        engine.set('s', 'v')
        self.assertEqual(engine.ttl('s'), -1)
        engine.set('t', 'v', ttl=5)
        version = engine.get_versioned('t').version
        engine.compare_and_set('t', version, 'w', ttl_ms=None)
        self.assertEqual(engine.ttl('t'), -1)

    def test_once_again_11_the_year_1970_is_a_time(self):
        calls = self.engine.claims('window', 'call', window=60)
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
        for said in ({'first_sent': epoch}, {'first_sent_unix_ms': 0}, {'first_sent_unix_ms': -1},
                     {'first_sent': datetime(1960, 1, 1, tzinfo=timezone.utc)}):
            self.assertIs(calls.claim('k', **said).answer, Answer.TOO_OLD, said)
            self.assertIs(calls.once('k', declared_nothing, **said).answer, OnceAnswer.TOO_OLD)
            self.assertIs(calls.claim_batch(['k'], **said)[0].answer, Answer.TOO_OLD)
        self.assertTrue(calls.claim('k').granted)

    def test_once_again_11_no_token_is_none(self):
        lock = self.calls.lock('l')
        self.assertIsNone(lock.token)
        with lock:
            self.assertGreater(lock.token, 0)
        self.assertIsNone(lock.token)


class LeaseTest(unittest.TestCase):
    """With the machine's clock: a lease of 0.4 s is renewed each 0.13 s."""

    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call', lease=0.4)
        self.queue = self.engine.claims('queue', 'message', lease=0.4)
        self.ended = []

    def outlast(self, space, key):
        """Returns when the lease of the beginning is over."""
        def function(work=None):
            late = space.claim(key, wait=1)
            self.assertIs(late.answer, Answer.IN_FLIGHT)
            self.ended.append(key)

        return function

    def test_once_again_10_a_lease_is_kept_unless_it_is_said_otherwise(self):
        async def hold():
            async with aio.hold(self.calls, 'ah'):
                await asyncio.to_thread(self.outlast(self.calls, 'ah'))

        async def lock():
            async with aio.lock(self.calls, 'al'):
                await asyncio.to_thread(self.outlast(self.calls, 'al'))

        def held():
            with self.calls.hold('h'):
                self.outlast(self.calls, 'h')()

        def locked():
            with self.calls.lock('l'):
                self.outlast(self.calls, 'l')()

        clicks = semel.Debounce(self.calls, interval=0.4)
        told = [
            lambda: self.calls.once('o', self.outlast(self.calls, 'o')),
            lambda: self.queue.consume_once('m', self.outlast(self.queue, 'm')),
            lambda: clicks.run('d', self.outlast(self.calls, 'd')), held, locked,
            lambda: semel.idempotent(self.calls, 'i', operation='i')(
                self.outlast(self.calls, 'i'))(),
            lambda: asyncio.run(aio.once(self.calls, 'ao', self.outlast(self.calls, 'ao'),
                                         thread=True)),
            lambda: asyncio.run(aio.consume_once(self.queue, 'am', self.outlast(self.queue, 'am'),
                                                 thread=True)),
            lambda: asyncio.run(hold()), lambda: asyncio.run(lock())]
        failures = []

        def run(one):
            try:
                one()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(one,)) for one in told]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(failures, [])
        self.assertEqual(len(self.ended), len(told))

    def test_once_again_10_it_is_kept_for_work_max_in_total(self):
        def hang(work):
            late = self.calls.claim('k', wait=30)
            self.assertTrue(late.granted and late.takeover)
            self.assertTrue(work.lost)
            return b'late'

        outcome = self.calls.once('k', hang, work_max=0.3)
        self.assertIs(outcome.answer, OnceAnswer.SUPERSEDED)
        lock = self.calls.lock('l', work_max=0.3)
        lock.take()
        self.assertTrue(self.calls.claim('l', wait=30).granted)
        self.assertIsNone(lock.token)
        keeper = self.calls.keep('m', self.calls.claim('m').epoch, work_max=0.3)
        self.assertTrue(self.calls.claim('m', wait=30).takeover)
        self.assertTrue(keeper.lost)
        keeper.close()

    def test_once_again_10_a_lease_that_cannot_be_kept_is_refused_before_the_claim(self):
        short = self.engine.claims('short', 'call', lease_ms=199)
        for call in (
                lambda: short.once('k', declared_nothing),
                lambda: short.consume_once('k', declared_nothing), lambda: short.hold('k'),
                lambda: short.lock('k').take(), lambda: semel.Debounce(short, interval=0.1),
                lambda: self.calls.once('k', declared_nothing, lease=0.1),
                lambda: self.queue.consume_once('k', declared_nothing, lease_ms=199),
                lambda: self.calls.lock('k', lease=0.1).take(),
                lambda: asyncio.run(aio.once(short, 'k', declared_nothing)),
                lambda: asyncio.run(aio.consume_once(short, 'k', declared_nothing)),
                lambda: asyncio.run(aio.lock(short, 'k').take()),
                lambda: asyncio.run(aio.hold(short, 'k').__aenter__())):
            with self.assertRaisesRegex(semel.SemelError, 'keep_lease=False'):
                call()
        self.assertEqual(self.engine.stats()['claims_granted'], 0)
        self.assertEqual(short.once('k', lambda: b'x', keep_lease=False).value, b'x')
        self.calls.once('first', lambda: b'')  # what was looked at before counts for its terms only
        self.engine.change_claims('calls', 'call', lease_ms=150)
        with self.assertRaises(semel.SemelError):
            self.calls.once('second', declared_nothing)

    def test_work_is_told_that_its_lease_is_lost(self):
        with Engine(manual_clock=True) as engine:
            calls = engine.claims('calls', 'call')

            def slow(work):
                self.assertFalse(work.lost)
                engine.advance(60_000)
                self.assertTrue(work.lost)

            calls.once('k', slow, keep_lease=False)
            calls.once('', lambda work: self.assertFalse(work.lost), without_key=True)


if __name__ == '__main__':
    unittest.main()
