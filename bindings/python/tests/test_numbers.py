"""Every integer of every public call: what does not fit is refused, and nothing is changed.

Words: place = one integer parameter of one call.
"""

import inspect
import unittest

import semel
from semel import Code, Engine, OutOfRange, SemelError
from semel._claims import _request
from semel._numbers import FLAGS, RANGES

FAR = [1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, (1 << 64) + 1,
       1 << 200, 1 << 100_000]
NO_INTEGERS = [1.0, 1e3, float('inf'), '5', b'5', None, True, False]


def integers(function):
    return [name for name, one in inspect.signature(function).parameters.items()
            if one.annotation in (int, 'int', 'Optional[int]') or 'Optional[int]' in
            str(one.annotation)]


def may_be_unsaid(function, name):
    one = inspect.signature(function).parameters.get(name)
    return one is not None and one.default is not inspect.Parameter.empty and (
        name != 'window_ms' or 'lease_ms' in inspect.signature(function).parameters) and (
        'Optional[int]' in str(one.annotation))


class NumbersTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.engine.set('k', '7')
        self.calls = self.engine.claims('calls', 'call')
        self.lock = self.engine.claims('locks', 'lock').lock('l')
        self.tokens = semel.Tokens(self.engine)

    def places(self):
        """(what is called, its integer's name, its range's name, the call)"""
        engine, calls = self.engine, self.calls
        targets = [
            (engine.set, ('k', '8'), {}), (engine.incr_by, ('k',), {}),
            (engine.expire, ('k',), {}), (engine.compare_and_set, ('k',), {'value': '8'}),
            (engine.decrement_if_at_least, ('k',), {'amount': 1}),
            (engine.transition, ('s', '', 'new'), {}), (engine.first_seen, ('n', 'f'), {}),
            (engine.advance, (), {}), (Engine, (), {'manual_clock': True}),
            (calls.complete, ('c',), {}), (calls.fail, ('c',), {}), (calls.release, ('c',), {}),
            (calls.renew, ('c',), {'epoch': 1}), (calls.issue, ('c',), {}),
            (calls.lock, ('l2',), {}), (self.lock.take, (), {}),
            (self.tokens.issue, (), {}),
        ]
        for function, arguments, others in targets:
            names = integers(function)
            self.assertTrue(names, function)
            for name in names:
                if name in ('version', 'epoch') or name not in others or len(names) > 1:
                    rest = {n: v for n, v in others.items() if n != name}
                    if function == engine.compare_and_set and name != 'version':
                        rest['version'] = 0
                    span = 'first_seen.window_ms' if name == 'window_ms' else name
                    yield function, name, span, (
                        lambda value, f=function, a=arguments, r=rest, n=name:
                        f(*a, **r, **{n: value}))
        for name in integers(_request):
            for function, more in ((calls.claim, ()), (calls.once, (lambda: self.fail('ran'),)),
                                   (calls.consume_once, (lambda: self.fail('ran'),)),
                                   (self.tokens.spend, (lambda: self.fail('ran'),))):
                yield function, name, name, (
                    lambda value, f=function, m=more, n=name: f('q', *m, **{n: value}))
            yield calls.claim_batch, name, name, (
                lambda value, n=name: calls.claim_batch(['q'], **{n: value}))
        yield calls.complete_batch, 'epoch', 'epoch', (
            lambda value: calls.complete_batch([('q', value, b'')]))
        for name in [n for n, _ in semel._library.Policy._fields_
                     if n != 'size' and n not in FLAGS]:
            for function in (engine.claims, engine.change_claims):
                yield function, name, name, (
                    lambda value, f=function, n=name: f('calls', 'call', **{n: value}))

    def untouched(self):
        view = self.calls.get('q')
        return (self.engine.get('k'), self.engine.ttl('k'), self.engine.get('s'), view.state,
                self.calls.get('c').state, self.lock.token, self.engine.stats()['claims_granted'],
                list(self.engine.namespaces()))

    def test_what_does_not_fit_is_refused_and_named(self):
        before, count = self.untouched(), 0
        for function, name, span, call in self.places():
            least, most = RANGES[span]
            for value in [least - 1, most + 1, -(1 << 63) - 1, *FAR, *(-far for far in FAR)]:
                if least <= value <= most:
                    continue
                with self.subTest(call=function.__qualname__, name=name, bits=value.bit_length()):
                    count += 1
                    with self.assertRaises(OverflowError) as raised:
                        call(value)
                    self.assertIsInstance(raised.exception, OutOfRange)
                    self.assertEqual(raised.exception.code, Code.BAD_OPTION)
                    self.assertIn(f'{name} = ', raised.exception.detail)
                    self.assertIn(f'{least}..{most}', raised.exception.detail)
                    if abs(value) < 1 << 100:
                        self.assertIn(f'{name} = {value},', raised.exception.detail)
        self.assertGreater(count, 1000)
        self.assertEqual(self.untouched(), before)

    def test_what_is_no_integer_is_refused(self):
        before = self.untouched()
        for function, name, _, call in self.places():
            for value in NO_INTEGERS:
                if value is None and may_be_unsaid(function, name):
                    continue
                with self.subTest(call=function.__qualname__, name=name, value=value):
                    with self.assertRaisesRegex(TypeError, name):
                        call(value)
        self.assertEqual(self.untouched(), before)

    def test_once_again_9_what_is_no_flag_no_word_and_no_name_is_refused_and_named(self):
        engine = self.engine
        for value in ('', 'x', 0, 1, -1, float('inf'), None, []):
            for name, call in (('manual_clock', lambda: Engine(manual_clock=value)),
                               ('if_absent', lambda: engine.set('k', '', if_absent=value)),
                               ('if_present', lambda: engine.set('k', '', if_present=value)),
                               ('get', lambda: engine.set('k', '', get=value))):
                with self.assertRaisesRegex(semel.InvalidType, f'{name}: True or False, not '):
                    call()
            for name, call in (('durability', lambda: Engine(durability=value)),
                               ('rule', lambda: engine.drop_claims('calls', value))):
                with self.assertRaisesRegex(SemelError, f'{name} = .*, allowed \'') as raised:
                    call()
                self.assertEqual(raised.exception.code, Code.BAD_OPTION)
                self.assertIn(repr(value), str(raised.exception))
        for value in (0, 1.5, b'call', []):
            for call in (lambda: engine.claims('n', value), lambda: engine.claims(value),
                         lambda: engine.claims('n', semel.Policy(value)),
                         lambda: engine.change_claims('calls', value),
                         lambda: engine.drop_claims(value), lambda: engine.change_claims(value),
                         lambda: engine.first_seen(value, 'f', window=1)):
                with self.assertRaisesRegex(semel.InvalidType, 'text, not '):
                    call()
        with self.assertRaisesRegex(semel.InvalidType, 'storage'):
            Engine(5)
        self.assertEqual(engine.get('k'), b'7')

    def test_once_again_9_what_is_of_no_type_is_an_error_of_semel(self):
        for call in (lambda: self.calls.claim('q', lease='1'),
                     lambda: self.engine.incr_by('k', 1.0),
                     lambda: self.calls.claim('q', lease=1, lease_ms=1),
                     lambda: self.calls.fail('q', 1, keep=True, in_doubt=True)):
            self.assertRaises(semel.InvalidType, call)

    def test_the_ends_of_a_range_are_in_it(self):
        engine = self.engine
        self.assertEqual(engine.incr_by('n', (1 << 63) - 1), (1 << 63) - 1)
        self.assertEqual(engine.incr_by('m', -1 << 63), -1 << 63)
        self.assertTrue(engine.set('t', '', ttl_ms=RANGES['ttl_ms'][1]).stored)
        self.assertFalse(engine.compare_and_set('k', (1 << 64) - 1, 'x').stored)
        self.assertFalse(self.calls.complete('k', (1 << 64) - 1).ok)
        self.assertTrue(self.calls.claim('most', wait_ms=RANGES['wait_ms'][1]).granted)
        with self.assertRaises(SemelError):
            Engine(memory_bytes=(1 << 64) - 1)

    def test_bytes_of_all_kinds(self):
        for key in (b'key', bytearray(b'key'), memoryview(b'key'), 'key',
                    memoryview(b'k.e.y')[::2]):
            self.engine.set(key, key)
            self.assertEqual(self.engine.get(key), b'key')
        for wrong in (None, 5, ['k'], object()):
            for call in (lambda: self.engine.get(wrong), lambda: self.calls.claim(wrong),
                         lambda: self.calls.once(wrong, lambda: b''),
                         lambda: self.calls.lock(wrong), lambda: semel.composite_key(wrong),
                         lambda: self.calls.claim('k', claim_id=wrong) if wrong else raw_none()):
                self.assertRaises(TypeError, call)
        self.assertRaises(SemelError, self.calls.claim, 'k', claim_id=b'x' * 17)


def raw_none():
    raise TypeError('not said')


if __name__ == '__main__':
    unittest.main()
