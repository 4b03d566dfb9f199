"""Rate limits: what each kind allows, what is refused by name, and threads at once."""

import threading
import unittest
from datetime import timedelta

import semel
from semel import Engine, RateLimiter

LIMIT_S = 60


class Rates(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20, manual_clock=True)
        self.addCleanup(self.engine.close)

    def test_each_kind_on_both_sides_of_its_end(self):
        # Of two at once: how many there are again after 999 ms and after 1,000.
        for kind, refill, early, late in (('fixed', None, 0, 2), ('sliding', None, 0, 2),
                                          ('bucket', None, 1, 2), ('bucket', 1, 0, 1)):
            with self.subTest(kind, refill=refill):
                key = f'{kind} {refill}'
                limiter = RateLimiter(self.engine, limit=2, period=1, kind=kind, refill=refill)
                self.assertEqual(limiter.look(key).remaining, 2)
                self.assertTrue(limiter.take(key, 2).allowed)
                refused = limiter.take(key)
                self.assertFalse(refused.allowed)
                self.assertEqual(refused.remaining, 0)
                self.assertEqual(refused.retry_after_ms, 500 if early else 1000)
                self.engine.advance(999)
                self.assertEqual(limiter.look(key).remaining, early)
                self.engine.advance(1)
                self.assertEqual(limiter.look(key).remaining, late)

    def test_keys_are_apart_and_delete_resets(self):
        limiter = RateLimiter(self.engine, limit=1, period=timedelta(days=1))
        self.assertTrue(limiter.take('a').allowed)
        self.assertTrue(limiter.take(b'\x00\xff').allowed)
        self.assertFalse(limiter.take('a').allowed)
        self.engine.delete('a')
        self.assertTrue(limiter.take('a').allowed)
        self.assertEqual(limiter.take('b').reset_after_ms, 86_400_000)

    def test_what_is_wrong_is_refused_by_name_and_takes_nothing(self):
        for wrong in ({'limit': 0, 'period': 1}, {'limit': 10 ** 8 + 1, 'period': 1},
                      {'limit': 1, 'period': 0}, {'limit': 1, 'period': -1},
                      {'limit': 1, 'period_ms': 0}, {'limit': True, 'period': 1},
                      {'limit': 1.5, 'period': 1}, {'limit': 1, 'period': 1, 'kind': 'leaky'},
                      {'limit': 1, 'period': 1, 'refill': 0, 'kind': 'bucket'}):
            with self.subTest(wrong):
                with self.assertRaises(semel.SemelError):
                    RateLimiter(self.engine, **wrong)
        for late in ({'limit': 1}, {'limit': 1, 'period': 367 * 86_400},
                     {'limit': 1, 'period': 1, 'refill': 1}):
            with self.subTest(late):
                with self.assertRaises(semel.SemelError):
                    RateLimiter(self.engine, **late).take('k')
        limiter = RateLimiter(self.engine, limit=3, period=1)
        for cost in (4, -1, 1.0, True, 1 << 70):
            with self.assertRaises(semel.SemelError):
                limiter.take('k', cost)
        for key in ('', None, 5):
            with self.assertRaises(semel.SemelError):
                limiter.take(key)
        self.assertEqual(limiter.look('k').remaining, 3)
        self.engine.set('text', 'mine')
        with self.assertRaises(semel.WrongKind):
            limiter.take('text')
        with self.assertRaises(TypeError):
            bool(limiter.take('k'))
        self.engine.close()
        with self.assertRaises(semel.Closed):
            limiter.take('k')

    def test_threads_at_once_get_as_much_as_there_is(self):
        limiter, allowed, errors = RateLimiter(self.engine, limit=200, period=1), [], []

        def work():
            try:
                allowed.extend(limiter.take('k').allowed for _ in range(100))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(errors, [])
        self.assertEqual(sum(allowed), 200)


if __name__ == '__main__':
    unittest.main()
