"""All that an instance holds: it counts for the identity of a call, and it comes back with a
result, or both are refused.

Words: twins = two values that differ only beside their fields, their items or their number.
"""

import collections
import dataclasses
import enum
import functools
import typing
import unittest
import uuid
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal

import semel
from semel import Code, Engine, OnceAnswer
from semel._same import same

try:
    import pydantic
    import pydantic.v1 as pydantic_1
except ImportError:
    pydantic = None
try:
    import attr
except ImportError:
    attr = None
try:
    import msgspec
except ImportError:
    msgspec = None


class Basket(list):
    pass


class Items(tuple):
    pass


class Named(dict):
    pass


class Tags(set):
    pass


class Frozen(frozenset):
    pass


class Money(collections.namedtuple('Money', 'amount')):
    pass


class Short(tuple):
    _fields = ('only',)


class Text(str):
    __slots__ = ('mark',)


class Whole(int):
    pass


class Share(float):
    pass


class Raw(bytes):
    pass


class Buffer(bytearray):
    pass


class Exact(Decimal):
    __slots__ = ('mark',)


class Id(uuid.UUID):
    __slots__ = ('mark',)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Moment(datetime):
    __slots__ = ('mark',)


class Day(date):
    __slots__ = ('mark',)


class Hour(time):
    __slots__ = ('mark',)


class Span(timedelta):
    __slots__ = ('mark',)


SUBCLASSES = (
    (Basket, ([1],)), (Items, ([1],)), (Named, ({'a': 1},)), (Tags, ([1],)), (Frozen, ([1],)),
    (Text, ('5',)), (Whole, (5,)), (Share, (5.5,)), (Raw, (b'5',)), (Buffer, (b'5',)),
    (Exact, ('5',)), (Id, ('0' * 32,)), (Moment, (2026, 1, 1)), (Day, (2026, 1, 1)), (Hour, (1,)),
    (Span, (1,)))


class Slotted:
    __slots__ = ('mark',)


@dataclasses.dataclass
class Charge(Slotted):
    __slots__ = ('amount',)
    amount: int


@dataclasses.dataclass
class Plain:
    amount: int

    def price(self):
        return 5


@dataclasses.dataclass
class Listed(list):
    name: str


@dataclasses.dataclass
class Mapped(dict):
    name: str


@dataclasses.dataclass
class Numbered(int):
    name: str = 'n'


@dataclasses.dataclass
class Raised(Exception):
    name: str


def marked(made, mark):
    made.mark = mark
    return made


def key(value):
    return semel.identity('o', {'order': value}).key


class IdentityTest(unittest.TestCase):
    def refused(self, value, why):
        with self.assertRaisesRegex(semel.NotCanonical, f"'order'.*{why}"):
            key(value)
        with self.assertRaisesRegex(semel.NotCanonical, f"'order', at .*{why}"):
            key([value])

    def test_once_again_5_what_a_subclass_has_besides_its_value_is_refused(self):
        for kind, arguments in SUBCLASSES:
            with self.subTest(kind=kind.__name__):
                self.assertEqual(key(kind(*arguments)), key(kind.__mro__[1](*arguments)))
                self.refused(marked(kind(*arguments), 'EUR'), 'mark')

    def test_once_again_5_what_a_record_has_besides_its_fields_counts_wherever_it_is(self):
        class Labelled(Plain):
            @functools.cached_property
            def label(self):
                return 'computed'

        for make in (lambda: Money(5), lambda: Charge(5), lambda: Plain(5), lambda: Labelled(5)):
            with self.subTest(made=make()):
                self.assertEqual(key(make()), key(make()))
                twins = [key(marked(make(), mark)) for mark in ('EUR', 'USD')] + [key(make())]
                self.assertEqual(len(set(twins)), 3)
        hidden = Plain(5)
        hidden.price = 7  # in front of a method
        self.assertNotEqual(key(hidden), key(Plain(5)))

    def test_once_again_5_a_record_that_holds_more_than_attributes_is_refused(self):
        for made, why in ((Listed('n'), 'list'), (Mapped('n'), 'dict'), (Numbered(), 'int'),
                          (Raised('n'), 'attributes'), (Short((1, 2)), 'items')):
            with self.subTest(made=type(made)):
                self.refused(made, why)

    def test_once_again_5_a_container_that_shows_other_items_is_read_below(self):
        class Hidden(list):
            def __iter__(self):
                return iter([])

        class Odd(int):
            def __int__(self):
                return 7

        self.assertEqual(key(Hidden([1])), key([1]))
        self.assertEqual(key(Odd(5)), key(5))

    def test_once_again_5_a_view_of_numbers_is_not_their_bytes(self):
        import array
        for form in 'IHd':
            self.refused(memoryview(array.array(form, [1])), 'bytes')

    def test_once_again_5_what_is_no_state_does_not_count(self):
        item = typing.TypeVar('item')

        @dataclasses.dataclass
        class Held(typing.Generic[item]):
            value: item

        class Own(dict):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                self.__dict__ = self

        self.assertEqual(key(Held[int](5)), key(Held(5)))
        self.assertEqual(key(Own({'a': 1})), key({'a': 1}))
        for made in (collections.OrderedDict(a=1), collections.Counter(a=1),
                     collections.defaultdict(int, a=1)):
            self.assertEqual(key(made), key({'a': 1}))

    def test_once_again_5_names_of_items_are_no_attributes(self):
        import os
        import time as clock
        self.assertEqual(key(os.terminal_size((80, 24))), key([80, 24]))
        self.refused(clock.gmtime(0), 'value: tm_zone, tm_gmtoff')

    @unittest.skipIf(pydantic is None, 'once-again-5: without pydantic')
    def test_once_again_5_private_attributes_of_a_model_count(self):
        for model in (pydantic.BaseModel, pydantic_1.BaseModel):
            library = pydantic if model is pydantic.BaseModel else pydantic_1

            class Order(model):
                amount: int
                _currency: str = library.PrivateAttr('')

                def __init__(self, amount, currency):
                    super().__init__(amount=amount)
                    self._currency = currency

            with self.subTest(model=model):
                self.assertEqual(key(Order(1, 'EUR')), key(Order(1, 'EUR')))
                self.assertNotEqual(key(Order(1, 'EUR')), key(Order(1, 'USD')))

        class Plain(pydantic.BaseModel):
            amount: int

        self.assertEqual(key(Plain(amount=1)), key({'amount': 1}))
        self.assertEqual(key(pydantic.RootModel[list](root=[1])), key([1]))

    def test_once_again_5_classes_of_attrs_and_msgspec_are_their_fields(self):
        made = []
        if attr is not None:
            made.append(attr.make_class('Slots', {'amount': attr.ib()}, slots=True)(5))
            made.append(attr.make_class('Open', {'amount': attr.ib()})(5))
            made.append(attr.make_class('Hashed', {'amount': attr.ib()}, frozen=True, hash=True,
                                        cache_hash=True)(5))
            hash(made[-1])
        if msgspec is not None:
            made.append(msgspec.defstruct('Struct', [('amount', int)])(5))
        for one in made:
            with self.subTest(kind=type(one)):
                self.assertEqual(key(one), key({'amount': 5}))

    def test_once_again_5_twins_do_not_get_the_result_of_each_other(self):
        engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(engine.close)

        @semel.idempotent(engine.claims('calls', 'call'))
        def pay(money):
            return f'{money.amount} {money.mark}'

        for mark in ('EUR', 'USD'):
            for make in (Money, Charge):
                self.assertEqual(pay(marked(make(5), mark)), f'5 {mark}')


class Lossy(list):
    """Which pickle makes without its attributes."""

    def __reduce__(self):
        return Lossy, (list(self),)


class Zoned(tzinfo):
    """Without an equality of its own."""

    def utcoffset(self, when):
        return timedelta(0)

    def dst(self, when):
        return None

    def tzname(self, when):
        return 'zoned'


class Flat(enum.IntEnum):
    ONE = 1


class AnswerTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')

    def twice(self, result, codec):
        first, second = [self.calls.once('k', lambda: result, codec=codec, on_unkept='return')
                         for _ in range(2)]
        self.calls.forget('k')
        return first, second

    def kept(self, result, codec):
        first, second = self.twice(result, codec)
        self.assertIsNone(first.error)
        self.assertIs(same(result, second.value), True)
        return second.value

    def unkept(self, result, codec):
        first, second = self.twice(result, codec)
        self.assertEqual((first.error.code, second.answer),
                         (Code.RESULT_NOT_KEPT, OnceAnswer.EXPIRED))
        self.assertIs(first.value, result)

    def test_once_again_8_a_time_keeps_its_zone(self):
        import zoneinfo
        berlin = zoneinfo.ZoneInfo('Europe/Berlin')
        for zone, name in ((berlin, None), (timezone(timedelta(hours=1), 'CET'), 'CET'),
                           (timezone(timedelta(hours=1)), 'UTC+01:00'), (timezone.utc, 'UTC')):
            with self.subTest(zone=zone):
                back = self.kept(time(1, fold=1, tzinfo=zone), semel.JSON)
                self.assertEqual((back.tzinfo, back.tzname(), back.fold), (zone, name, 1))
                when = datetime(2026, 1, 1, fold=1, tzinfo=zone)
                back = self.kept(when, semel.JSON)
                self.assertEqual((back.tzinfo, back.tzname(), back.fold), (zone, when.tzname(), 1))
        cet, none = [timezone(timedelta(hours=1), *name) for name in (['CET'], [])]
        for one, other in ((time(1, tzinfo=berlin), time(1)),
                           (time(1, tzinfo=cet), time(1, tzinfo=none)),
                           (datetime(2026, 1, 1, tzinfo=cet), datetime(2026, 1, 1, tzinfo=none)),
                           (datetime(2026, 1, 1, tzinfo=berlin),
                            datetime(2026, 1, 1, tzinfo=cet))):
            self.assertIs(same(one, other), False)
        self.assertIsNone(same(time(1, tzinfo=Zoned()), time(1, tzinfo=Zoned())))

    def test_once_again_8_what_a_record_has_besides_its_fields_comes_back(self):
        for made in (Money(5), Charge(5), Plain(5)):
            back = self.kept(marked(made, 'EUR'), semel.codec_for(type(made)))
            self.assertEqual((back.mark, back.amount, type(back)), ('EUR', 5, type(made)))

    def test_once_again_8_a_record_that_holds_more_is_not_kept_as_its_fields(self):
        listed = Listed('n')
        listed.append(3)
        for made in (listed, Mapped('n'), Numbered(), Raised('n'), Short((1, 2))):
            with self.subTest(made=type(made)):
                self.unkept(made, semel.codec_for(type(made)))

    def test_once_again_8_a_subclass_that_loses_what_it_has_is_not_kept(self):
        self.unkept(marked(Lossy([1]), 'EUR'), semel.PICKLE)
        for made in (Lossy([1]), marked(Basket([1]), 'EUR'), marked(Whole(5), 'EUR'),
                     collections.OrderedDict(a=1, b=2), collections.defaultdict(int, a=1),
                     collections.Counter('ab'), Flat.ONE, Share('nan'), [Basket([1])],
                     {'a': (Lossy(),)}, True):
            with self.subTest(made=made):
                self.kept(made, semel.PICKLE)

    def test_once_again_8_twins_are_not_the_same(self):
        for kind, arguments in SUBCLASSES + ((Money, (5,)), (Charge, (5,)), (Plain, (5,))):
            with self.subTest(kind=kind.__name__):
                one, other, none = [kind(*arguments) for _ in range(3)]
                marked(one, 'EUR'), marked(other, 'USD')
                self.assertIs(same(one, other), False)
                self.assertIs(same(one, none), False)
                self.assertIs(same(marked(other, 'EUR'), one), True)
        ab, ba = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
        self.assertIs(same(ab, ba), False)
        self.assertIs(same(Basket([1]), Basket([True])), False)
        self.assertIs(same(collections.defaultdict(int), collections.defaultdict(list)), None)
        one, other = Listed('n'), Listed('n')
        one.append(1)
        self.assertIs(same(one, other), False)
        one, other = Raised('n'), Raised('n')
        other.args = (1,)
        self.assertIsNone(same(one, other))  # by their bytes

    @unittest.skipIf(pydantic is None, 'once-again-8: without pydantic')
    def test_once_again_8_a_model_keeps_its_private_attributes(self):
        for library in (pydantic, pydantic_1):
            class Order(library.BaseModel):
                amount: int
                note: str = ''
                _currency: str = library.PrivateAttr('')

            made = Order(amount=1)
            made._currency = 'EUR'
            with self.subTest(library=library.__name__):
                back = self.kept(made, semel.codec_for(Order))
                self.assertEqual((back._currency, back), ('EUR', made))
                other = Order(amount=1)
                self.assertIs(same(made, other), False)
                self.assertIs(same(other, Order(amount=1, note='')), False)  # which were given


if __name__ == '__main__':
    unittest.main()
