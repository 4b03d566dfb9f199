"""Debounce after the last call: one run with the latest payload, which fails, is lost, or ends
elsewhere."""

import asyncio
import threading
import unittest

import semel
from semel import Code, Engine, TrailingAnswer, TrailingDebounce, TrailingState, aio

LIMIT_S = 60


class Trailing(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=32 << 20, manual_clock=True)
        self.addCleanup(self.engine.close)
        self.claims = self.engine.claims('edits', 'lock')
        self.seen = []

    def edits(self, **more):
        more = {'quiet': 1, 'max_wait': 10, 'keep_lease': False, **more}
        return TrailingDebounce(self.claims, **more)

    def is_quiet(self, edits, due_in_ms):
        ran = edits.run('k', self.seen.append)
        self.assertEqual((ran.answer, ran.due_in_ms), (TrailingAnswer.QUIET, due_in_ms))

    def test_the_latest_payload_runs_once_when_the_calls_have_ended(self):
        edits = self.edits()
        self.assertIs(edits.run('k', self.seen.append).answer, TrailingAnswer.IDLE)
        first = edits.call('k', 'a')
        self.assertEqual((first.due_in_ms, first.replaced), (1_000, False))
        self.engine.advance(999)
        self.is_quiet(edits, 1)
        self.assertTrue(edits.call('k', b'\0ab').replaced)
        self.engine.advance(999)
        self.is_quiet(edits, 1)
        self.engine.advance(1)
        ran = edits.run('k', self.seen.append)
        self.assertIs(ran.answer, TrailingAnswer.RAN)
        with self.assertRaises(TypeError):
            bool(ran)
        self.assertIs(edits.run('k', self.seen.append).answer, TrailingAnswer.IDLE)
        self.assertEqual(self.seen, [b'\0ab'])

    def test_a_steady_stream_runs_at_max_wait(self):
        edits = self.edits(max_wait=2)
        for passed, left in ((0, 1_000), (700, 1_000), (700, 600), (500, 100)):
            self.engine.advance(passed)
            self.assertEqual(edits.call('k', 'x').due_in_ms, left)
        self.is_quiet(edits, 100)
        self.engine.advance(100)
        self.assertIs(edits.run('k', self.seen.append).answer, TrailingAnswer.RAN)

    def test_work_that_fails_or_raises_comes_again_after_a_quiet_time(self):
        edits = self.edits()
        edits.call('k', 'x')
        self.engine.advance(1_000)
        self.assertIs(edits.run('k', lambda text: False).answer, TrailingAnswer.FAILED)
        self.is_quiet(edits, 1_000)
        for error in (ZeroDivisionError, KeyboardInterrupt):
            self.engine.advance(1_000)

            def fail(text, error=error):
                raise error

            with self.assertRaises(error):
                edits.run('k', fail)
            self.is_quiet(edits, 1_000)
        self.engine.advance(1_000)
        for odd in (lambda text: 0, lambda text: iter(())):
            with self.assertRaises(semel.InvalidType):
                edits.run('k', odd)
            self.engine.advance(1_000)
        self.assertIs(edits.run('k', self.seen.append).answer, TrailingAnswer.RAN)
        self.assertEqual(self.seen, [b'x'])

    def test_payloads_are_bytes_of_any_length_up_to_the_limit(self):
        edits = self.edits()
        for payload in (b'', b'x' * ((1 << 20) - 200)):
            edits.call('k', payload)
            self.engine.advance(1_000)
            edits.run('k', self.seen.append)
            self.assertEqual(self.seen.pop(), payload)
        for payload, error in ((b'x' * (1 << 20), Code.VALUE_TOO_LONG),
                               (b'x' * ((1 << 20) + 1), Code.VALUE_TOO_LONG)):
            with self.assertRaises(semel.SemelError) as refused:
                edits.call('k', payload)
            self.assertEqual(refused.exception.code, error)
        with self.assertRaises(TypeError):
            edits.call('k', None)

    def test_a_call_during_a_run_begins_the_next_quiet_time(self):
        edits = self.edits()
        edits.call('k', 'a')
        self.engine.advance(1_000)

        def during(text):
            self.seen.append(text)
            other = edits.run('k', self.seen.append)
            self.assertIs(other.answer, TrailingAnswer.RUNNING)
            self.assertFalse(edits.call('k', 'b').replaced)

        self.assertIs(edits.run('k', during).answer, TrailingAnswer.RAN)
        self.is_quiet(edits, 1_000)
        self.engine.advance(1_000)
        edits.run('k', self.seen.append)
        self.assertEqual(self.seen, [b'a', b'b'])

    def test_a_run_that_was_lost_is_said_to_be_lost(self):
        edits = self.edits(lease=30)
        edits.call('k', 'x')
        self.engine.advance(1_000)

        def slow(text):
            self.engine.advance(30_000)
            self.assertIs(edits.run('k', self.seen.append).answer, TrailingAnswer.RAN)

        with self.assertRaises(semel.LeaseLost):
            edits.run('k', slow)
        edits.call('k', 'y')
        self.engine.advance(1_000)
        with self.assertRaises(semel.LeaseLost):  # late
            edits.run('k', lambda text: self.engine.advance(30_000))
        edits.call('k', 'z')
        self.engine.advance(1_000)

        def fail(text):
            self.engine.advance(30_000)
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):  # the news, not that it was lost
            edits.run('k', fail)
        self.assertEqual(self.seen, [b'x'])

    def test_what_is_wrong_is_refused(self):
        for more in ({'quiet': 0}, {'quiet': -1}, {'keep': 0}, {'lease': 0}):
            with self.assertRaises(semel.OutOfRange):
                self.edits(**more)
        for more in ({'max_wait': 0.5}, {'keep': 400 * 86_400}):
            with self.assertRaises(semel.SemelError) as refused:
                self.edits(**more).call('k', 'x')
            self.assertEqual(refused.exception.code, Code.BAD_OPTION)
        edits = self.edits()
        for key in ('', b''):
            with self.assertRaises(semel.InvalidKey):
                edits.call(key, 'x')
            with self.assertRaises(semel.InvalidKey):
                edits.run(key, self.seen.append)
        for function in (None, lambda: None, self.later):
            with self.assertRaises(TypeError):
                edits.run('k', function)
        with self.assertRaises(semel.SemelError):
            self.edits(lease=0.1, keep_lease=True).run('k', self.seen.append)
        self.engine.set('edits:{k}#last', 'else')
        with self.assertRaises(semel.WrongKind):
            edits.call('k', 'x')
        with self.assertRaises(semel.WrongKind):
            edits.run('k', self.seen.append)

    async def later(self, text):
        self.seen.append(text)

    def test_the_list_has_what_is_due_first(self):
        edits = self.edits()
        self.edits(quiet=5).call('later', 'x')
        edits.call('first', 'x')
        self.engine.advance(1_000)
        found = edits.debounces()
        self.assertEqual([(one.key, one.state, one.due_in_ms) for one in found],
                         [(b'first', TrailingState.DUE, 0), (b'later', TrailingState.QUIET, 4_000)])
        self.assertEqual([one.key for one in edits.debounces(1)], [b'first'])
        for count in (0, 10_001):
            with self.assertRaises(semel.SemelError):
                edits.debounces(count)

    def test_a_closed_engine_says_so(self):
        edits = self.edits()
        self.engine.close()
        for call in (lambda: edits.call('k', 'x'), lambda: edits.run('k', self.seen.append),
                     edits.debounces):
            with self.assertRaises(semel.Closed):
                call()

    def test_of_two_runners_at_once_one_runs(self):
        engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(engine.close)
        edits = TrailingDebounce(engine.claims('edits', 'lock'), quiet=0.001)
        begun, ends, answers = threading.Event(), threading.Event(), []

        def slow(text):
            self.seen.append(text)
            begun.set()
            self.assertTrue(ends.wait(LIMIT_S))

        def loop():
            while not answers:
                ran = edits.run('k', slow).answer
                if ran is TrailingAnswer.RAN:
                    answers.append(ran)

        edits.call('k', 'x')
        threads = [threading.Thread(target=loop) for _ in range(2)]
        for one in threads:
            one.start()
        self.assertTrue(begun.wait(LIMIT_S))
        while edits.run('k', slow).answer is not TrailingAnswer.RUNNING:
            pass
        ends.set()
        for one in threads:
            one.join(LIMIT_S)
        self.assertEqual((self.seen, answers), ([b'x'], [TrailingAnswer.RAN]))

    def test_a_coroutine_runs_and_one_that_is_cancelled_comes_again(self):
        edits = aio.trailing_debounce(self.claims, quiet=1, keep_lease=False)

        async def play():
            self.assertEqual((await edits.call('k', 'x')).due_in_ms, 1_000)
            self.engine.advance(1_000)
            begun = asyncio.Event()

            async def never(text):
                begun.set()
                await asyncio.Event().wait()

            task = asyncio.ensure_future(edits.run('k', never))
            await begun.wait()
            other = await edits.run('k', self.later)
            self.assertIs(other.answer, TrailingAnswer.RUNNING)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await edits.run('k', self.later)).due_in_ms, 1_000)
            self.engine.advance(1_000)
            self.assertEqual([one.key for one in await edits.debounces()], [b'k'])
            self.assertIs((await edits.run('k', self.later)).answer, TrailingAnswer.RAN)
            self.assertIs((await edits.run('k', self.seen.append)).answer, TrailingAnswer.IDLE)
            with self.assertRaises(TypeError):
                await edits.run('k', lambda: None)

        asyncio.run(asyncio.wait_for(play(), LIMIT_S))
        self.assertEqual(self.seen, [b'x'])


if __name__ == '__main__':
    unittest.main()
