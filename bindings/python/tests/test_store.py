"""The store and guarded changes; handles that end."""

import gc
import tempfile
import threading
import unittest
from datetime import timedelta

import semel
from semel import Code, Engine, SemelError


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)

    def refused(self, code, call, *arguments, **named):
        with self.assertRaises(SemelError) as raised:
            call(*arguments, **named)
        self.assertEqual(raised.exception.code, code)
        return raised.exception

    def test_values_of_bytes_and_text(self):
        engine = self.engine
        self.assertTrue(engine.set(b'k\0k', b'a\0b').stored)
        self.assertEqual(engine.get(b'k\0k'), b'a\0b')
        self.assertTrue(engine.set('schlüssel', 'wért').stored)
        self.assertEqual(engine.get('schlüssel'.encode()), 'wért'.encode())
        self.assertIsNone(engine.get('none'))
        self.assertTrue(engine.set('empty', b'').stored)
        self.assertEqual(engine.get('empty'), b'')
        self.assertTrue(engine.delete('empty'))
        self.assertFalse(engine.delete('empty'))
        self.assertRaises(TypeError, engine.set, 'k', 5)

    def test_conditions(self):
        engine = self.engine
        self.assertTrue(engine.set('k', 'a', if_absent=True).stored)
        self.assertFalse(engine.set('k', 'b', if_absent=True).stored)
        self.assertTrue(engine.set('k', 'b', if_present=True).stored)
        self.assertFalse(engine.set('k', 'c', if_equal='x').stored)
        outcome = engine.set('k', 'c', if_equal='b', get=True)
        self.assertEqual((outcome.stored, outcome.previous), (True, b'b'))
        self.assertFalse(engine.set('k', 'd', if_version=outcome.version + 1).stored)
        self.assertTrue(engine.set('k', 'd', if_version=outcome.version).stored)
        self.refused(Code.BAD_OPTION, engine.set, 'k', 'd', if_absent=True, if_present=True)

    def test_a_sliding_window(self):
        engine = self.engine
        calls = engine.claims('calls', 'call', result_ttl_ms=1600, sliding_max=timedelta(seconds=4))
        self.assertEqual(calls.once('k', lambda: b'1').value, b'1')
        for passes in (1600, 1600, 799):
            engine.advance(passes)
            self.assertEqual(calls.once('k', lambda: b'2').value, b'1')
        engine.advance(1)
        self.assertEqual(calls.once('k', lambda: b'2').value, b'2')
        self.refused(Code.BAD_OPTION, engine.claims, 'less', 'call', result_ttl_ms=2,
                     sliding_max_ms=1)
        self.assertEqual(engine.change_claims('calls', 'call', result_ttl_ms=1600),
                         'sliding_max 4000 -> 0')
        self.assertRaises(semel.OutOfRange, engine.claims, 'under', sliding_max_ms=-1)

    def test_times_to_the_millisecond(self):
        engine = self.engine
        engine.set('k', 'a', ttl_ms=100)
        engine.advance(99)
        self.assertEqual((engine.get('k'), engine.ttl('k')), (b'a', 1))
        engine.advance(1)
        self.assertEqual((engine.get('k'), engine.ttl('k')), (None, -2))
        engine.set('k', 'a', ttl_ms=100)
        engine.set('k', 'b', ttl_ms=semel.KEEP_TTL)
        self.assertEqual(engine.ttl('k'), 100)
        # once-again-11: a time to live that has become 0 makes no key eternal.
        with self.assertRaisesRegex(semel.OutOfRange, 'ttl_ms = 0, at least 1 ms'):
            engine.expire('k', 0)
        self.assertEqual(engine.ttl('k'), 100)
        self.assertTrue(engine.persist('k'))
        self.assertFalse(engine.persist('none'))
        self.assertEqual(engine.ttl('k'), -1)
        self.assertTrue(engine.expire('k', 7))
        self.assertEqual(engine.ttl('k'), 7)

    def test_guarded_changes(self):
        engine = self.engine
        first = engine.compare_and_set('k', 0, 'one')
        self.assertTrue(first.stored)
        self.assertFalse(engine.compare_and_set('k', 0, 'two').stored)
        self.assertTrue(engine.compare_and_set('k', first.current.version, 'two').stored)
        stale = engine.compare_and_set('k', first.current.version, 'three')
        self.assertEqual((stale.stored, stale.current.value), (False, b'two'))
        engine.delete('k')
        engine.set('k', 'one')  # it went and came back
        self.assertFalse(engine.compare_and_set('k', first.current.version, 'x').stored)

        engine.set('balance', '500')
        self.assertEqual(engine.decrement_if_at_least('balance', 300),
                         semel.DecrementResult(True, 200))
        self.assertEqual(engine.decrement_if_at_least('balance', 201),
                         semel.DecrementResult(False, 200))
        self.assertFalse(engine.decrement_if_at_least('balance', 101, 100).taken)
        self.assertTrue(engine.decrement_if_at_least('balance', 100, 100).taken)
        self.refused(Code.BAD_OPTION, engine.decrement_if_at_least, 'balance', 0)
        engine.set('text', 'many')
        error = self.refused(Code.NOT_AN_INTEGER, engine.incr_by, 'text')
        self.assertEqual(error.text, 'value is not an integer or out of range')

        self.assertTrue(engine.transition('order', '', 'new').moved)
        self.assertFalse(engine.transition('order', '', 'new').moved)
        self.assertEqual(engine.transition('order', 'paid', 'sent').state, b'new')
        self.assertEqual(engine.transition('order', 'new', 'paid'),
                         semel.TransitionResult(True, b'paid'))

    def test_first_seen(self):
        seen = [self.engine.first_seen('rows', *fields, window_ms=1000)
                for fields in (('invoice', '17'), ('invoice', '17'), ('invoice1', '7'))]
        self.assertEqual(seen, [True, False, True])
        self.engine.advance(999)
        self.assertFalse(self.engine.first_seen('rows', 'invoice', '17', window_ms=1000))
        self.engine.advance(1)
        self.assertTrue(self.engine.first_seen('rows', 'invoice', '17', window_ms=1000))
        self.refused(Code.KEY_EMPTY, self.engine.first_seen, 'rows', window_ms=1000)
        self.assertEqual(semel.composite_key('a|b', 'c'), b'a\\|b|c')

    def test_no_change_of_many_threads_is_lost(self):
        engine = self.engine
        engine.set('n', '0')

        def add():
            done = 0
            while done < 200:
                now = engine.get_versioned('n')
                done += engine.compare_and_set('n', now.version, str(int(now.value) + 1)).stored

        threads = [threading.Thread(target=add) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(engine.get('n'), b'600')

    def test_errors_say_code_text_and_detail(self):
        error = self.refused(Code.BAD_OPTION, Engine, memory_bytes=1)
        self.assertEqual(error.text, 'an option is out of its range')
        self.assertIn('memory_bytes', error.detail)
        self.assertEqual(str(error), f'{error.text}: {error.detail}')

    def test_a_closed_engine_refuses(self):
        engine = Engine(manual_clock=True)
        calls = engine.claims('calls', 'call')
        lock = engine.claims('locks', 'lock').lock('l')
        self.assertTrue(lock.take())
        engine.close()
        engine.close()
        self.refused(Code.CLOSING, engine.get, 'k')
        self.refused(Code.CLOSING, calls.claim, 'k')
        self.refused(Code.CLOSING, lock.take)
        lock.close()
        gc.collect()

    def test_an_engine_is_not_closed_from_inside(self):
        calls = self.engine.claims('calls', 'call')
        with self.assertRaises(RuntimeError):
            calls.once('k', self.engine.close)
        self.assertEqual(calls.once('k', lambda: b'ok').value, b'ok')

    def test_a_full_machine_refuses(self):
        engine = Engine(manual_clock=True, memory_bytes=4 << 20)
        self.addCleanup(engine.close)
        for size in (100_000, 1):
            with self.assertRaises(SemelError) as raised:
                for i in range(1_000_000):
                    engine.set(f'{size}-{i}', b'x' * size)
            self.assertEqual(raised.exception.code, Code.MEMORY_FULL)
        calls = engine.claims('calls', 'call')
        refused = calls.once('k', lambda: self.fail('there is no room'))
        self.assertEqual(refused.answer, semel.OnceAnswer.BUSY)
        self.assertEqual(refused.error.code, Code.MEMORY_FULL)
        later = engine.claims('mq', 'message').consume_once('m', lambda: self.fail('no room'))
        self.assertEqual(later.verdict, semel.Verdict.RETRY_LATER)
        open_calls = engine.claims('open', 'call', fail_open=True)
        self.assertEqual(open_calls.once('k', lambda: b'1').answer, semel.OnceAnswer.UNGUARDED)


class StorageTest(unittest.TestCase):
    def test_a_restart_replays(self):
        with tempfile.TemporaryDirectory() as directory:
            def open_it():
                return Engine(directory + '/s', manual_clock=True, log_bytes=8 << 20)
            try:
                engine = open_it()
            except SemelError as error:
                if 'without a storage' in error.detail:
                    self.skipTest(error.detail)
                raise
            with engine:
                calls = engine.claims('calls', 'call')
                self.assertEqual(calls.once('k', lambda: b'paid').answer, semel.OnceAnswer.RAN)
                version = engine.set('v', '1').version
                with self.assertRaises(SemelError) as raised:
                    open_it()
                self.assertEqual(raised.exception.code, Code.STORAGE_IN_USE)
            with open_it() as engine:
                calls = engine.claims('calls', 'call')
                again = calls.once('k', lambda: self.fail('it had run'))
                self.assertEqual((again.answer, again.value),
                                 (semel.OnceAnswer.REPLAYED, b'paid'))
                self.assertEqual(engine.get_versioned('v'), semel.Versioned(b'1', version))


if __name__ == '__main__':
    unittest.main()
