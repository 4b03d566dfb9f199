"""Which function a decorated call belongs to, and which of its arguments is its receiver.

Words: bank = what a closure holds; charge = a function that was decorated.
"""

import asyncio
import dataclasses
import functools
import gc
import importlib
import pathlib
import sys
import tempfile
import types
import unittest
import weakref

import semel
from semel import Engine, aio


@dataclasses.dataclass
class Shop:
    name: str


def decorated(calls, text, name='charges'):
    """A module of this text, as if it had been imported."""
    module = types.ModuleType(name)
    module.calls, module.semel = calls, semel
    exec(compile(text, name, 'exec'), vars(module))
    return module


def plain(cents):
    return cents


class OperationTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')

    def charge_of(self, bank, **options):
        @semel.idempotent(self.calls, **options)
        def charge(cents):
            return f'{bank} charged {cents}'

        return charge

    def refused(self, declare):
        with self.assertRaisesRegex(semel.InvalidType, 'charge.*operation='):
            declare()

    def test_once_again_5_closures_of_one_factory_are_not_one_operation(self):
        charge = self.charge_of('a')
        self.refused(lambda: self.charge_of('b'))
        self.assertEqual(charge(5), 'a charged 5')
        self.assertEqual(self.charge_of('a')(5), 'a charged 5')  # the same cells
        self.assertEqual(self.charge_of('b', operation='b')(5), 'b charged 5')
        self.refused(lambda: self.charge_of(Shop('a')))
        held = self.engine.claims('others', 'call')
        self.calls, calls = held, self.calls
        self.assertEqual(self.charge_of('b')(5), 'b charged 5')  # other claims
        self.calls = self.engine.claims(calls.name)  # the same
        self.refused(lambda: self.charge_of('b'))

    def test_once_again_5_a_closure_that_has_gone_has_not_given_its_name(self):
        shop = Shop('a')
        self.charge_of(shop)
        gone = weakref.ref(shop)
        del shop
        gc.collect()
        self.assertIsNone(gone())
        self.refused(lambda: self.charge_of(Shop('a')))

    def test_once_again_5_a_name_that_is_defined_twice_is_not_one_operation(self):
        text = '@semel.idempotent(calls)\ndef charge(cents):\n    return {}\n'
        once = decorated(self.calls, text.format(1))
        self.refused(lambda: decorated(self.calls, text.format(2)))
        self.refused(lambda: decorated(self.calls, text.format(1) + '\n\n' + text.format(1)))
        self.assertEqual(decorated(self.calls, text.format(1)).charge(5), once.charge(5))
        decorated(self.calls, text.format(2), 'others')

    def test_once_again_5_defaults_of_an_inner_function_are_a_part_of_it(self):
        def make(bank):
            @semel.idempotent(self.calls, 'k:{cents}', ignore=('bank',))
            def charge(cents, bank=bank):
                return bank

            return charge

        self.assertEqual((make('a')(5), make('a')(5)), ('a', 'a'))
        self.refused(lambda: make('b'))

    def test_once_again_5_wrapped_functions_are_told_apart_by_what_they_wrap(self):
        def logged(function):
            @functools.wraps(function)
            def call(*arguments):
                return function(*arguments)

            return call

        def make(bank):
            def charge(cents):
                return bank
            return charge

        for wrap in (logged, functools.lru_cache(None)):
            with self.subTest(wrap=wrap):
                self.calls = self.engine.claims(f'calls-{wrap is logged}', 'call')
                semel.idempotent(self.calls)(wrap(make('a')))
                semel.idempotent(self.calls)(wrap(make('a')))
                self.refused(lambda: semel.idempotent(self.calls)(wrap(make('b'))))

    def test_once_again_5_a_function_may_be_decorated_twice_and_call_itself(self):
        for _ in range(2):
            self.assertEqual(semel.idempotent(self.calls)(plain)(5), 5)

        def make():
            def count(n):
                return n and count(n - 1)
            return count

        for _ in range(2):
            semel.idempotent(self.calls)(make())

    def test_once_again_5_coroutine_functions_have_the_same_rule(self):
        for face in (semel, aio):
            def make(bank):
                @face.idempotent(self.calls)
                async def charge(cents):
                    return bank

                return charge

            with self.subTest(face=face.__name__):
                self.assertEqual(asyncio.run(make('a')(5)), 'a')
                self.refused(lambda: make('b'))
                self.calls = self.engine.claims('others', 'call')

    def test_once_again_5_a_module_that_is_loaded_anew_replaces_its_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 'semel_charges.py'
            text = 'import semel\n\ndef declare(calls):\n    semel.idempotent(calls)(charge)\n\n'
            file.write_text(text + 'def charge(cents):\n    return 1\n')
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            self.addCleanup(sys.modules.pop, 'semel_charges', None)
            module = importlib.import_module('semel_charges')
            module.declare(self.calls)
            file.write_text(text + 'def charge(cents):\n    return 1 + 1\n')
            importlib.reload(module).declare(self.calls)

    def test_once_again_5_an_engine_is_not_held_by_what_it_has_declared(self):
        class Held:
            def __init__(self):
                self.engine = Engine(memory_bytes=16 << 20)
                calls = self.engine.claims('calls', 'call')

                @semel.idempotent(calls)
                def charge():
                    return self and calls and None

        held = weakref.ref(Held().engine)
        gc.collect()
        self.assertIsNone(held())


class ReceiverTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        calls = self.engine.claims('calls', 'call')

        @dataclasses.dataclass
        class Till:
            name: str = 't'

            @semel.idempotent(calls)
            def pay(self, cents):
                return [self.name, cents]

            @classmethod
            @semel.idempotent(calls)
            def open(cls, cents):
                return cents

            @staticmethod
            @semel.idempotent(calls)
            def count(cls, cents):
                return [cls, cents]

            @staticmethod
            @semel.idempotent(calls)
            def name_of(self, cents):
                return self.name

            @property
            @semel.idempotent(calls)
            def total(self):
                return self.name

        class Drawer(Till):
            def pay(self, cents):
                return super().pay(cents)

        self.Till, self.Drawer = Till, Drawer

    def test_once_again_5_an_argument_that_is_only_named_self_counts(self):
        self.assertEqual((self.Till.count('a', 5), self.Till.count('b', 5)), (['a', 5], ['b', 5]))
        self.assertEqual(self.Till().count('c', 5), ['c', 5])
        tills = [self.Till('a'), self.Till('b')]
        self.assertEqual([self.Till.name_of(till, 5) for till in tills], ['a', 'b'])

    def test_once_again_5_a_receiver_does_not_count_however_it_is_bound(self):
        a = ['a', 5]
        self.assertEqual([self.Till('a').pay(5), self.Till('b').pay(5), self.Till.pay(
            self.Till('c'), 5), self.Till.pay(self=self.Till('d'), cents=5),
            self.Drawer('e').pay(5)], [a] * 5)
        self.assertEqual([self.Till.open(5), self.Till().open(5), self.Drawer.open(5)], [5] * 3)
        self.assertEqual([self.Till('a').total, self.Drawer('b').total], ['a', 'a'])
        self.assertEqual(self.engine.stats()['claims_granted'], 3)

    def test_once_again_5_what_is_not_of_the_class_is_no_receiver(self):
        self.assertEqual(self.Till.pay(Shop('shop'), 5), ['shop', 5])
        self.assertEqual(self.Till.pay(Shop('other'), 5), ['other', 5])


if __name__ == '__main__':
    unittest.main()
