"""Debounce, with a manual clock: intervals, runs that were promised, cancellations."""

import asyncio
import gc
import tempfile
import threading
import time
import unittest
from unittest import mock

import semel
from semel import Debounce, Debounced, Engine, State, _debounce, aio


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)


class DebounceTest(Case):
    def setUp(self):
        super().setUp()
        self.clicks = self.engine.claims('clicks', 'debounce')
        self.runs = 0

    def click(self):
        self.runs += 1

    def test_not_again_within_the_interval(self):
        guard = Debounce(self.clicks, interval=45)
        self.assertIs(guard.run('u', self.click), Debounced.RAN)
        self.assertIs(guard.run('u', self.click), Debounced.SUPPRESSED)
        self.assertEqual(guard.remaining_ms('u'), 45_000)
        self.assertIs(guard.run('other', self.click), Debounced.RAN)
        self.engine.advance(44_999)
        self.assertIs(guard.run('u', self.click), Debounced.SUPPRESSED)
        self.engine.advance(1)
        self.assertEqual(guard.remaining_ms('u'), 0)
        self.assertIs(guard.run('u', self.click), Debounced.RAN)
        self.assertEqual(self.runs, 3)

    def test_removed_when_it_has_ended(self):
        finish = Debounce(self.clicks, remove_on_finish=True)
        self.assertIs(finish.run('a', self.click), Debounced.RAN)
        self.assertIs(finish.run('a', self.click), Debounced.RAN)
        self.assertIs(finish.run('a', lambda: False), Debounced.FAILED)
        self.assertIs(finish.run('a', self.click), Debounced.SUPPRESSED)
        error = Debounce(self.clicks, remove_on_error=True)
        with self.assertRaises(ZeroDivisionError):
            error.run('b', lambda: 1 // 0)
        self.assertIs(error.run('b', lambda: False), Debounced.FAILED)
        self.assertIs(error.run('b', self.click), Debounced.RAN)
        self.assertIs(error.run('b', self.click), Debounced.SUPPRESSED)

    def test_once_more_for_all_that_came_meanwhile(self):
        guard = Debounce(self.clicks, run_once_more_after=True)

        def rebuild():
            self.runs += 1
            if self.runs == 1:
                for _ in range(100):
                    self.assertIs(guard.run('r', self.fail), Debounced.WILL_RUN_AGAIN)
                raise ValueError('the first')

        with self.assertRaisesRegex(ValueError, 'the first'):
            guard.run('r', rebuild)
        self.assertEqual(self.runs, 2)
        self.assertIs(guard.run('r', self.click), Debounced.RAN)

    def test_two_at_once_in_threads_lose_no_call(self):
        guard = Debounce(self.clicks, run_once_more_after=True)
        done, seen, asked = [], [0], [0]
        lock = threading.Lock()

        def rebuild():
            with lock:
                seen[0] = asked[0]

        def caller():
            for _ in range(300):
                with lock:
                    asked[0] += 1
                done.append(guard.run('r', rebuild))

        threads = [threading.Thread(target=caller) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        self.assertEqual((len(done), asked[0], seen[0]), (1200, 1200, 1200))

    def test_coroutines(self):
        guard = Debounce(self.clicks, interval=45, remove_on_error=True)

        async def main():
            async def work():
                await asyncio.sleep(0)
                self.runs += 1

            both = await asyncio.gather(*(aio.debounce(guard, 'u', work) for _ in range(5)))
            self.assertEqual(both.count(Debounced.RAN), 1)
            started = asyncio.Event()

            async def endless():
                started.set()
                await asyncio.Event().wait()

            task = asyncio.ensure_future(aio.debounce(guard, 'c', endless))
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return await aio.debounce(guard, 'c', work)

        self.assertIs(asyncio.run(main()), Debounced.RAN)

    def test_a_runner_that_is_cancelled_keeps_what_others_were_promised(self):
        guard = Debounce(self.clicks, run_once_more_after=True)

        async def main():
            started = asyncio.Event()

            async def rebuild():
                self.runs += 1
                if self.runs == 1:
                    started.set()
                    await asyncio.Event().wait()
                await asyncio.sleep(0)

            runner = asyncio.ensure_future(aio.debounce(guard, 'r', rebuild))
            await started.wait()
            self.assertIs(await aio.debounce(guard, 'r', self.fail), Debounced.WILL_RUN_AGAIN)
            runner.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await runner
            self.assertEqual(self.runs, 2)

        asyncio.run(main())
        self.assertEqual(guard.remaining_ms('r'), 0)

    def test_once_again_13_with_a_storage_no_cancellation_loses_a_promised_run(self):
        async def main(engine, times, after_s):
            clicks = engine.claims('clicks', 'debounce')
            guard, runs = Debounce(clicks, run_once_more_after=True), []
            inside, end = asyncio.Event(), asyncio.Event()

            async def rebuild():
                runs.append(1)
                if len(runs) == 1:
                    inside.set()
                    await end.wait()
                if len(runs) <= times:  # while the end is on its way to the disk
                    asyncio.get_running_loop().call_later(after_s, runner.cancel)

            runner = asyncio.ensure_future(aio.debounce(guard, 'r', rebuild))
            await inside.wait()
            self.assertIs(await aio.debounce(guard, 'r', self.fail), Debounced.WILL_RUN_AGAIN)
            end.set()
            with self.assertRaises(asyncio.CancelledError):
                await runner
            self.assertEqual(len(runs), 2)
            self.assertIsNot(clicks.get('r').state, State.HELD)

        for times in (1, 2):
            with tempfile.TemporaryDirectory() as folder, Engine(folder) as engine:
                asyncio.run(main(engine, times, 0))

    def test_once_again_13_a_coroutine_that_is_closed_leaves_no_claim(self):
        def slow(turn):
            ended(turn, True)
            time.sleep(0.05)

        ended = _debounce.Turn.ended

        async def main(engine):
            clicks = engine.claims('clicks', 'debounce')
            guard = Debounce(clicks, run_once_more_after=True)
            for rounds in range(2):  # closed while it asks, and while it ends
                call = aio.debounce(guard, 'r', lambda: None)
                for _ in range(rounds + 1):
                    asked = call.send(None)
                    await asyncio.sleep(0.1 if rounds == 0 else 0.05)
                    if rounds == 0:
                        break
                    while not asked.done():
                        await asyncio.sleep(0.001)
                call.close()
                del call, asked
                await asyncio.sleep(0.2)
                gc.collect()
                self.assertIsNot(clicks.get('r').state, State.HELD, rounds)

        with tempfile.TemporaryDirectory() as folder, Engine(folder) as engine, \
                mock.patch.object(_debounce.Turn, 'ended', lambda turn, ok: slow(turn)):
            asyncio.run(main(engine))

    def test_an_interpreter_that_is_to_end_runs_nothing_more(self):
        guard = Debounce(self.clicks, run_once_more_after=True)
        for kind in (KeyboardInterrupt, SystemExit):
            runs = []

            def rebuild():
                runs.append(guard.run('r', self.fail))
                raise kind

            with self.assertRaises(kind):
                guard.run('r', rebuild)
            self.assertEqual(runs, [Debounced.WILL_RUN_AGAIN])
            self.assertEqual(guard.remaining_ms('r'), 0)

    def test_a_closed_engine_refuses(self):
        guard = Debounce(self.clicks)
        self.engine.close()
        with self.assertRaises(semel.Closed):
            guard.run('u', self.click)
        self.assertEqual(self.runs, 0)


if __name__ == '__main__':
    unittest.main()
