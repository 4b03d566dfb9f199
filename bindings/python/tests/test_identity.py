"""What identifies a call: tests/identity/cases.json, the types of Python, formats of keys, and the
decorators that are built on them."""

import asyncio
import collections
import concurrent.futures
import dataclasses
import enum
import functools
import io
import json
import pathlib
import types
import typing
import unittest
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import semel
from semel import Code, Engine, aio
from semel import _canonical, _identity, _keys

TABLE = json.loads((pathlib.Path(__file__).resolve().parents[3] / 'tests' / 'identity'
                    / 'cases.json').read_text(encoding='utf-8'))


class Color(enum.Enum):
    RED = 7


class Small(enum.IntEnum):
    ONE = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Box:
    name: str
    size: int


Pair = collections.namedtuple('Pair', 'left right')


class Opaque:
    pass


def generator():
    yield 1


def cycle():
    made = []
    made.append(made)
    return made


def made(kind, value):
    """A value of the table in Python."""
    if kind == 'record':
        name, second = value[2], value[5]
        return Box(name, int(second))
    if kind in ('list', 'set'):
        parts = [made(*pair) for pair in zip(value[::2], value[1::2])]
        return parts if kind == 'list' else set(parts)
    if kind == 'map':
        parts = iter(zip(value[::2], value[1::2]))
        return {made(*key): made(*one) for key, one in zip(parts, parts)}
    return {
        'null': lambda: None, 'bool': lambda: value, 'integer': lambda: int(value),
        'big_integer': lambda: int(value), 'float': lambda: float(value),
        'decimal': lambda: Decimal(value), 'text': lambda: value,
        'lone_surrogate': lambda: chr(int(value, 16)), 'bytes': lambda: bytes.fromhex(value),
        'enum': lambda: Color[value], 'uuid': lambda: uuid.UUID(value),
        'date': lambda: date.fromisoformat(value), 'time': lambda: time.fromisoformat(value),
        'datetime': lambda: datetime.fromisoformat(value),
        'instant': lambda: datetime.fromisoformat(value.replace('Z', '+00:00')),
        'duration': lambda: timedelta(seconds=float(value)), 'function': lambda: generator,
        'stream': lambda: io.StringIO('x'), 'future': concurrent.futures.Future,
        'generator': generator, 'cycle': cycle, 'opaque': Opaque,
    }[kind]()


class TableTest(unittest.TestCase):
    def test_once_again_5_cases_are_the_same_bytes(self):
        kinds = {'identity': self.identity, 'json': self.json}
        for case in TABLE['cases']:
            with self.subTest(case['name']):
                kinds[case['kind']](case)

    def identity(self, case):
        scope = case['scope'] or {}

        def make():
            if case['scope'] == {}:
                return _canonical.canonical_call(case['operation'], {}, case['arguments'])
            return _canonical.canonical_call(case['operation'], scope or None, case['arguments'])

        if 'error' in case:
            with self.assertRaises(semel.SemelError) as raised:
                make()
            self.assertEqual(raised.exception.code, Code[case['error'].upper()])
            return
        found = _identity.Identity(make())
        self.assertEqual(found.canonical.decode(), case['canonical'])
        self.assertEqual((found.key, found.digest.hex()), (case['key'], case['sha256']))
        if scope and case['arguments'] == '{}':
            self.assertEqual(semel.identity(case['operation'], {}, **scope), found)

    def json(self, case):
        if 'error' in case:
            with self.assertRaises(semel.SemelError) as raised:
                semel.fingerprint(case['json'], json_text=True, sha256=True)
            self.assertEqual(raised.exception.code, Code.SYNTAX)
            return
        found = semel.fingerprint(case['json'], json_text=True, sha256=True)
        self.assertEqual((found.algorithm, found.digest.hex()), (7, case['sha256']))
        quick = semel.fingerprint(case['json'], json_text=True)
        self.assertEqual(quick.algorithm, 6)
        self.assertEqual(quick.digest, semel.fingerprint(case['canonical']).digest)

    def test_once_again_5_values_of_python_become_the_json_of_the_table(self):
        for case in TABLE['values']:
            with self.subTest(case['name']):
                value = made(case['type'], case['value'])
                if case.get('refused'):
                    with self.assertRaisesRegex(semel.NotCanonical, 'payload'):
                        semel.fingerprint([value])
                    continue
                self.assertEqual(semel.identity('o', value).canonical.decode(),
                                 f'["o",null,{case["json"]}]')

    def test_once_again_5_formats_make_the_keys_of_the_table(self):
        for case in TABLE['formats']:
            fields = case['fields']

            def function(**_):
                """Its arguments are those of the case."""

            parameters = [f'{name}=None' for name in fields]
            space = {}
            exec(f'def function({", ".join(parameters)}): return 1', space)
            function = space['function']
            function.__module__ = 'table'

            def key(function=function, fields=fields, form=case['format']):
                call = semel._signatures.Call(function)
                return _keys.key_of(call, form)((), fields, call.bind((), fields))

            with self.subTest(case['format']):
                if 'error' in case:
                    with self.assertRaises(semel.InvalidKey) as raised:
                        key()
                    self.assertEqual(raised.exception.code, Code[case['error'].upper()])
                else:
                    self.assertEqual(key(), case['key'])


class TypesTest(unittest.TestCase):
    def json(self, value):
        return semel.identity('o', value).canonical.decode()[len('["o",null,'):-1]

    def test_once_again_5_types_beyond_the_table(self):
        class Number(int):
            def __repr__(self):
                return 'another'

        for value, text in (
                (Number(5), '5'), (Small.ONE, '"ONE"'), (Right.READ, '"READ"'),
                (Right.READ | Right.WRITE, '{"$set":["READ","WRITE"]}'),
                (Pair(1, 'a'), '{"left":1,"right":"a"}'), ((1, 2), '[1,2]'),
                (frozenset({2, 1}), '{"$set":[1,2]}'), (bytearray(b'\0'), '{"$bytes":"AA=="}'),
                (memoryview(b'\0\xff')[::2], '{"$bytes":"AA=="}'),
                ({True: 1, 'x': 2}, '{"$map":[["x",2],[true,1]]}'),
                ({(1, 2): {'$a': 3}}, '{"$map":[[[1,2],{"$$a":3}]]}'),
                (collections.OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
                (timedelta(seconds=-90.5), '"PT-90.5S"'), (timedelta(0), '"PT0S"'),
                (10**9999, '1e+9999'), (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))),
                                        '"2025-12-31T23:00:00Z"')):
            with self.subTest(value=value):
                self.assertEqual(self.json(value), text)

    def test_once_again_5_models_of_attrs_and_pydantic_are_objects(self):
        class Fields:  # as pydantic 2 has them
            __pydantic_validator__ = True
            __pydantic_fields__ = {'id': None, 'cents': None}

            def __init__(self):
                self.id, self.cents = 'o', 5
                self.__pydantic_extra__ = {'note': 'x'}

        class Attributes:
            __attrs_attrs__ = (types.SimpleNamespace(name='id'),)

            def __init__(self):
                self.id = 1

        self.assertEqual(self.json(Fields()), '{"cents":5,"id":"o","note":"x"}')
        self.assertEqual(self.json(Attributes()), '{"id":1}')

    def test_once_again_5_what_a_record_has_besides_its_fields_counts(self):
        class Priced(Box):
            @functools.cached_property
            def label(self):
                return 'computed'

        one, other = Priced('a', 1), Priced('a', 1)
        other.price = 7
        one.label
        self.assertEqual(self.json(one), '{"name":"a","size":1}')
        self.assertEqual(self.json(other), '{"name":"a","price":7,"size":1}')

    def test_once_again_5_a_dict_that_hides_values_is_read_below(self):
        class Form(dict):  # as those of Django and Werkzeug
            def items(self):
                return [(key, values[-1]) for key, values in dict.items(self)]

        self.assertEqual(self.json(Form(a=[1, 2])), '{"a":[1,2]}')

    def test_once_again_5_what_has_no_canonical_form_is_refused_by_its_place(self):
        class Money(int):
            pass

        money = Money(5)
        money.currency = 'EUR'
        twice = {Color.RED: 1, 'RED': 2}
        deep = []
        for _ in range(200):
            deep = [deep]
        coroutine = asyncio.sleep(0)
        self.addCleanup(coroutine.close)
        for value, why in (
                ({'a': [1, {2, Opaque}]}, 'type'), (Opaque(), 'Opaque'), (money, 'currency'),
                (twice, 'twice'), (deep, 'levels'), (10**10000, 'out of range'),
                (float('nan'), 'nan'),
                (Decimal('sNaN'), 'sNaN'), (time(1, tzinfo=timezone.utc), 'time zone'),
                (coroutine, 'coroutine'), (iter([]), 'iterator'), (lambda: 1, 'function'),
                (range(3), 'range'), (collections.deque(), 'deque'), (1j, 'complex'),
                ('\ud800', 'half'), ({'\ud800': 1}, 'half'), (Right(0).__class__, 'EnumType|Meta'),
                (types.MappingProxyType({}), 'mappingproxy')):
            with self.subTest(why=why):
                with self.assertRaisesRegex(semel.NotCanonical, f"'order'.*({why})"):
                    semel.identity('o', {'order': value})
        place = r"'order', at .lines\[1\]\['x'\]: .*Opaque"
        with self.assertRaisesRegex(semel.NotCanonical, place):
            semel.identity('o', {'order': types_of(lines=[1, {'x': Opaque()}])})

    def test_once_again_5_fingerprints_are_checked_when_they_are_made(self):
        digest = b'x' * 16
        for number in (0, 256, 257, -1, True, False, 1.0, None, '1'):
            with self.subTest(number=number):
                with self.assertRaises((TypeError, semel.OutOfRange)):
                    semel.Fingerprint(number, digest)
        for wrong in (b'', b'x' * 15, b'x' * 17, 'x' * 16, None, bytearray(digest)):
            with self.assertRaises(semel.SemelError):
                semel.Fingerprint(1, wrong)
        self.assertNotEqual(semel.fingerprint({'id': 2**53 + 1}), semel.fingerprint({'id': 2**53}))
        self.assertEqual(semel.fingerprint(' {"b":1, "a":2.0}', json_text=True, sha256=True),
                         semel.fingerprint({'a': 2, 'b': 1}, sha256=True))


def by_nobody(a):
    raise AssertionError('ran')


def types_of(lines):
    @dataclasses.dataclass
    class Order:
        lines: list

    return Order(lines)


class DecoratedTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')
        self.ran = []

    def granted(self):
        return self.engine.stats()['claims_granted']

    def test_once_again_5_fields_do_not_run_into_each_other(self):
        @semel.idempotent(self.calls, 'charge:{tenant}:{order}')
        def charge(tenant, order):
            return [tenant, order]

        self.assertEqual(charge('acme', 'eu:7'), ['acme', 'eu:7'])
        self.assertEqual(charge('acme:eu', '7'), ['acme:eu', '7'])
        for form in ('move-{shop}-{order}', '{shop}{order}', '{shop}.{order}', '{shop', '}', '{}',
                     '', '{other}', '{shop.name}', '{shop:>5}', '{shop!r}', '{2}'):
            with self.subTest(form=form):
                with self.assertRaises(semel.InvalidKey):
                    @semel.idempotent(self.calls, form)
                    def move(shop, order):
                        self.fail('ran')

    def test_once_again_5_a_place_is_found_however_the_argument_is_given(self):
        @semel.idempotent(self.calls, 'pay:{0}:{1}')
        def pay(order, cents=5):
            self.ran.append((order, cents))
            return 1

        pay('a')
        pay('a', 5)
        pay(order='a')
        pay(cents=5, order='a')
        self.assertEqual(self.ran, [('a', 5)])
        self.assertIsNot(self.calls.get('pay:a:5').state, semel.State.ABSENT)

        @semel.idempotent(self.calls, 'more:{1}:{name}')
        def more(first, *rest, **named):
            return 1

        self.assertEqual(more(1, 2, name='n'), 1)
        self.assertIsNot(self.calls.get('more:2:n').state, semel.State.ABSENT)
        for arguments, named in (((1,), {'name': 'n'}), ((1, 2), {})):
            with self.assertRaises(semel.InvalidKey):
                more(*arguments, **named)

    def test_once_again_5_none_and_nothing_are_refused_before_the_claim(self):
        @semel.idempotent(self.calls, 'pay:{order}')
        def pay(order=None):
            self.fail('ran')

        for order in (None, ''):
            with self.assertRaisesRegex(semel.InvalidKey, "'order'"):
                pay(order)
        for order in (b'x', 1.5, [], Opaque(), Right.READ | Right.WRITE):
            with self.assertRaisesRegex(TypeError, "'order'"):
                pay(order)
        self.assertEqual(self.granted(), 0)

    def test_once_again_5_fields_are_their_identity_text(self):
        names = [(7, '7'), (True, 'true'), (Decimal('1.50'), '1.5'), (Color.RED, 'RED'),
                 (date(2026, 1, 31), '2026-01-31'), (Small.ONE, 'ONE'), (10**21, '1e+21'),
                 (uuid.UUID(int=7), str(uuid.UUID(int=7))), ('None', 'None')]

        @semel.idempotent(self.calls, 'of:{what}')
        def of(what):
            return None

        for value, text in names:
            of(value)
            self.assertIs(self.calls.get(f'of:{text}').state, semel.State.DONE, text)

    def test_once_again_5_two_functions_do_not_share_a_result(self):
        @semel.idempotent(self.calls, '{product}')
        def charge(product):
            return 'charged'

        @semel.idempotent(self.calls, '{product}')
        def refund(product):
            self.fail('ran')

        @semel.idempotent(self.calls, '{product}', operation='refund', payload=None)
        def other(product):
            self.fail('ran')

        @semel.idempotent(self.calls, '{product}', operation=f'{__name__}.{charge.__qualname__}')
        def renamed(product):
            self.fail('ran')

        self.assertEqual(charge('banana'), 'charged')
        self.assertRaises(semel.Mismatch, refund, 'banana')
        self.assertRaises(semel.Mismatch, other, 'banana')
        self.assertEqual(renamed('banana'), 'charged')
        for function in (lambda product: 1, functools.partial(refund, 'x')):
            with self.assertRaisesRegex(semel.InvalidType, 'operation='):
                semel.idempotent(self.calls, 'k')(function)
        for operation in ('', 'x' * 513, 5, b'x'):
            with self.assertRaises(semel.InvalidType):
                semel.idempotent(self.calls, 'k', operation=operation)(len)

    def test_once_again_5_all_arguments_count_unless_they_are_left_out(self):
        class Session:
            pass

        class Shop:
            @semel.idempotent(self.calls, 'pay:{order}', ignore=('session',))
            def pay(this, order, cents=5, session=None):
                self.fail('a receiver of another name counts')

            @semel.idempotent(self.calls, 'charge:{0}', ignore=('session',))
            def charge(self, order, cents=5, session=None):
                return cents

        self.assertEqual(Shop().charge('a'), 5)
        self.assertEqual(Shop().charge('a', 5, Session()), 5)
        self.assertRaises(semel.Mismatch, Shop().charge, 'a', 6)
        with self.assertRaisesRegex(semel.NotCanonical, "'this'"):
            Shop().pay('a')
        with self.assertRaisesRegex(semel.InvalidType, 'nobody'):
            semel.idempotent(self.calls, 'k', ignore=('nobody',))(types_of)
        with self.assertRaises(semel.InvalidType):
            semel.idempotent(self.calls, 'k', ignore='order')(types_of)

        @semel.idempotent(self.calls, 'open:{order}')
        def opened(order, file):
            self.fail('ran')

        before = self.granted()
        with self.assertRaisesRegex(TypeError, "'file'"):
            opened('a', io.StringIO())
        self.assertEqual(self.granted(), before)

    def test_once_again_5_payload_and_scope_are_said(self):
        @semel.idempotent(self.calls, 'k', payload=lambda a, b: a,
                          scope=lambda a, b: {'tenant': b})
        def run(a, b):
            return a

        self.assertEqual(run(1, 'x'), 1)
        self.assertRaises(semel.Mismatch, run, 1, 'y')
        self.assertRaises(semel.Mismatch, run, 2, 'x')
        for nobody in ('', None):
            with self.assertRaises(semel.SemelError) as raised:
                run(1, nobody)
            self.assertEqual(raised.exception.code, Code.KEY_EMPTY)

        for scope in ({'tenant': 5}, {'user': b'x'}, {'tenant': '\ud800'}, {'other': 'x'}):
            with self.assertRaises(TypeError):
                semel.idempotent(self.calls, 'k', scope=lambda a: scope)(by_nobody)(1)
        with self.assertRaises(TypeError):
            semel.identity('\ud800', {})

        @semel.idempotent(self.calls)
        def by_identity(a):
            self.ran.append(a)
            return a

        self.assertEqual([by_identity(1), by_identity(1), by_identity('1')], [1, 1, '1'])
        self.assertEqual(self.ran, [1, '1'])
        key = semel.identity(f'{__name__}.{by_identity.__qualname__}', {'a': 1}).key
        self.assertIs(self.calls.get(key).state, semel.State.DONE)

    def test_once_again_5_requests_and_tasks_of_frameworks_are_left_out(self):
        module = types.ModuleType('starlette.requests')
        module.Request = type('Request', (), {})
        import sys
        held = sys.modules.get('starlette.requests')
        sys.modules['starlette.requests'] = module
        self.addCleanup(lambda: sys.modules.pop('starlette.requests') if held is None else
                        sys.modules.__setitem__('starlette.requests', held))

        @semel.idempotent(self.calls, 'order:{order}')
        def create(request, order):
            self.ran.append(order)
            return order

        class Mine(module.Request):
            pass

        create(module.Request(), 1)
        create(Mine(), 1)
        self.assertEqual(self.ran, [1])
        lookalike = type('Request', (), {'__module__': 'starlette.requests'})
        with self.assertRaisesRegex(semel.NotCanonical, "'request'"):
            create(lookalike(), 1)

    def test_once_again_5_coroutine_functions_keep_the_same_rules(self):
        @semel.idempotent(self.calls, 'a:{shop}:{order}')
        async def charge(shop, order):
            self.ran.append((shop, order))
            return [shop, order]

        async def main():
            self.assertEqual(await charge('a', 'b:c'), ['a', 'b:c'])
            self.assertEqual(await charge('a:b', 'c'), ['a:b', 'c'])
            with self.assertRaises(semel.InvalidKey):
                await charge(None, 'c')
            with self.assertRaises(semel.InvalidKey):
                aio.idempotent(self.calls, '{shop}-{order}')(charge.__wrapped__)

        asyncio.run(main())


class KeysTest(unittest.TestCase):
    """Words: wrong = a key that is none."""

    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20, key_bytes_max=100)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('c', 'call')

    def calls_with(self, key):
        engine, calls, never = self.engine, self.calls, lambda: self.fail('ran')
        tokens = semel.Tokens(engine, 'c2')
        guard = semel.Debounce(engine.claims('d', 'debounce'))
        yield from (
            lambda: engine.set(key, 'v'), lambda: engine.get(key), lambda: engine.delete(key),
            lambda: engine.incr_by(key), lambda: engine.ttl(key), lambda: engine.expire(key, 5),
            lambda: engine.compare_and_set(key, 0, 'v'),
            lambda: engine.transition(key, '', 'x'),
            lambda: engine.decrement_if_at_least(key, 1), lambda: calls.claim(key),
            lambda: calls.once(key, never), lambda: calls.consume_once(key, never),
            lambda: calls.hold(key), lambda: calls.lock(key).take(),
            lambda: calls.complete(key, 1), lambda: calls.fail(key, 1),
            lambda: calls.renew(key, 1), lambda: calls.release(key, 1),
            lambda: calls.issue(key), lambda: calls.get(key), lambda: calls.resolve(key),
            lambda: calls.forget(key), lambda: calls.keep(key, 1),
            lambda: calls.steps(key, 1).recall('s'), lambda: calls.claim_batch(['fine', key]),
            lambda: calls.complete_batch([(key, 1, b'')]), lambda: tokens.issue(key),
            lambda: tokens.spend(key, never), lambda: tokens.state(key),
            lambda: guard.run(key, never), lambda: guard.remaining_ms(key),
            lambda: asyncio.run(aio.claim(calls, key)),
            lambda: asyncio.run(aio.once(calls, key, never)),
            lambda: asyncio.run(aio.consume_once(calls, key, never)),
            lambda: asyncio.run(aio.debounce(guard, key, never)),
            lambda: asyncio.run(aio.lock(calls, key).take()),
            lambda: asyncio.run(aio.hold(calls, key).__aenter__()),
            lambda: semel.idempotent(calls, lambda: key)(never_runs)())

    def test_once_again_5_a_wrong_key_is_an_error_of_its_own_in_every_call(self):
        for key, kind, code in (('', ValueError, Code.KEY_EMPTY), (b'', ValueError, Code.KEY_EMPTY),
                                ('x' * 101, ValueError, Code.KEY_TOO_LONG),
                                ('\ud800', ValueError, Code.BAD_ENCODING),
                                (5, TypeError, None), (None, TypeError, None),
                                (True, TypeError, None), (['k'], TypeError, None),
                                (Word.A, TypeError, None)):
            for i, call in enumerate(self.calls_with(key)):
                if key is None and i == 26:
                    continue  # Tokens.issue() makes one
                with self.subTest(key=repr(key)[:20], call=i):
                    with self.assertRaises(kind) as raised:
                        call()
                    self.assertIsInstance(raised.exception, semel.SemelError)
                    self.assertNotIsInstance(raised.exception, semel.NoResult)
                    if code is not None:
                        self.assertEqual(raised.exception.code, code)
        self.assertEqual(self.engine.stats()['claims_granted'], 0)


class Word(str, enum.Enum):
    A = 'a'


def never_runs() -> typing.NoReturn:
    raise AssertionError('ran')


if __name__ == '__main__':
    unittest.main()
