"""semel.aio: coroutines that wait and run once, cancelled, on several loops, and closed under."""

import asyncio
import functools
import gc
import os
import tempfile
import threading
import time
import unittest
from unittest import mock

import semel
from semel import (Answer, Code, Engine, OnceAnswer, SemelError, State, Verdict, aio)
from semel._waits import Wait

LIMIT_S = 60


def descriptors():
    return len(os.listdir('/proc/self/fd'))


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')

    def run_it(self, coroutine):
        async def limited():
            return await asyncio.wait_for(coroutine, LIMIT_S)
        outcomes = asyncio.run(limited())
        self.assertEqual(self.engine._owned, {})
        self.assertEqual(self.engine._on_close, {})
        if self.engine._handle is not None:
            self.assertEqual(self.engine.stats()['waiters'], 0)
        return outcomes

    async def waiters(self, count):
        while self.engine.stats()['waiters'] != count:
            await asyncio.sleep(0.001)


class WaitTest(Case):
    def test_many_wait_on_one_loop_which_goes_on(self):
        async def main():
            held = self.calls.claim('k')
            waits = [asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=3_600_000))
                     for _ in range(200)]
            await self.waiters(200)
            self.assertTrue(self.calls.complete('k', held.epoch, b'done').ok)
            return await asyncio.gather(*waits)

        before = descriptors()
        outcomes = self.run_it(main())
        self.assertEqual({(one.answer, one.result) for one in outcomes}, {(Answer.REPLAY, b'done')})
        self.assertEqual(descriptors(), before)

    def test_a_deadline(self):
        async def main():
            self.calls.claim('k')
            wait = asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=1_000))
            await self.waiters(1)
            self.engine.advance(1_000)
            return await wait

        outcome = self.run_it(main())
        self.assertEqual((outcome.answer, outcome.error.code), (Answer.IN_FLIGHT, Code.TIMED_OUT))

    def test_a_deadline_by_the_system_s_clock_without_a_background_thread(self):
        async def main():
            with Engine(memory_bytes=16 << 20, background_ms=-1) as engine:
                calls = engine.claims('c', 'call')
                calls.claim('k')
                return await aio.claim(calls, 'k', wait_ms=30)

        self.assertEqual(self.run_it(main()).error.code, Code.TIMED_OUT)

    def test_who_is_cancelled_leaves_the_line(self):
        async def main():
            held = self.calls.claim('k')
            first = asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=3_600_000))
            await self.waiters(1)
            second = asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=3_600_000))
            await self.waiters(2)
            first.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await first
            await self.waiters(1)
            self.calls.release('k', held.epoch)
            self.assertEqual((await second).answer, Answer.GRANTED)

        self.run_it(main())

    def test_who_is_cancelled_in_the_moment_of_the_grant_gives_it_back(self):
        async def main():
            for ask in (lambda: aio.claim(self.calls, 'k', wait_ms=3_600_000),
                        lambda: aio.once(self.calls, 'k', self.fail, wait_ms=3_600_000)):
                held = self.calls.claim('k')
                self.assertTrue(held.granted)
                task = asyncio.create_task(ask())
                await self.waiters(1)
                self.calls.release('k', held.epoch)  # it is granted, and does not know
                self.assertIs(self.calls.get('k').state, State.HELD)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertIsNot(self.calls.get('k').state, State.HELD)

        self.run_it(main())

    def test_once_again_12_a_grant_that_is_over_is_not_acted_on(self):
        async def main():
            for theirs, wait_ms, answers in ((True, 400, (Answer.IN_FLIGHT,)),
                                             (False, 400, (Answer.GRANTED,)),
                                             (True, 3_600_000, (Answer.REPLAY,))):
                held = self.calls.claim('k')
                wait = asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=wait_ms,
                                                     lease_ms=300))
                await self.waiters(1)
                self.calls.release('k', held.epoch)  # it is granted, but the loop is blocked
                self.engine.advance(400)
                other = self.calls.claim('k', lease_ms=60_000) if theirs else None
                if wait_ms > 400:
                    await self.waiters(1)
                    self.calls.complete('k', other.epoch, b'theirs')
                else:
                    time.sleep(0.45)
                mine = await wait
                self.assertIn(mine.answer, answers)
                if mine.granted:
                    self.assertEqual(self.calls.get('k').epoch, mine.epoch)
                    self.assertEqual(self.calls.get('k').lease_remaining_ms, 300)
                self.calls.forget('k')

        self.run_it(main())

    def test_once_again_12_a_lock_that_is_over_is_not_taken(self):
        async def main(engine):
            space = engine.claims('locks', 'lock')
            for wait_ms in (400, 3_600_000):
                first = space.claim('l')
                lock = aio.lock(space, 'l', wait_ms=wait_ms, lease_ms=300)
                take = asyncio.create_task(lock.take())
                while engine.stats()['waiters'] == 0:
                    await asyncio.sleep(0.001)
                space.release('l', first.epoch)
                time.sleep(0.45)  # it is granted, but the loop is blocked
                other = space.claim('l', lease_ms=60_000)
                self.assertTrue(other.granted)
                if wait_ms == 400:
                    self.assertFalse(await take)
                    space.release('l', other.epoch)
                    continue
                while engine.stats()['waiters'] == 0:
                    await asyncio.sleep(0.001)
                self.assertFalse(take.done())
                space.release('l', other.epoch)
                self.assertTrue(await take)
                self.assertTrue(await lock.give())

        with Engine(memory_bytes=16 << 20) as engine:
            self.run_it(main(engine))

    def test_once_again_12_a_thread_does_not_act_on_a_grant_that_is_over(self):
        space = self.engine.claims('locks', 'lock')
        lock = space.lock('l', lease_ms=300)
        sleep, others = Wait.sleep, []

        def sleep_long(wait):
            if others:
                self.engine.advance(50)
            sleep(wait)
            if not others:
                self.engine.advance(400)
                others.append(space.claim('l', lease_ms=60_000))
                others.append(self.calls.claim('k', lease_ms=60_000))

        with mock.patch.object(Wait, 'sleep', sleep_long):
            self.assertFalse(lock.take(50))
            others.clear()
            self.engine.advance(60_000)
            late = self.calls.claim('k', wait_ms=50, lease_ms=300)
        self.assertIs(late.answer, Answer.IN_FLIGHT)

    def test_once_again_12_grants_that_are_always_over_are_no_endless_wait(self):
        space = self.engine.claims('locks', 'lock')
        grants = []

        def end_late(wait, outcome):
            self.engine.advance(400)  # the lease is over when the caller learns of the grant
            grants.append(wait)
            return end(wait, outcome)

        async def ask():
            lock = aio.lock(space, 'l', lease_ms=300)
            claim = await aio.claim(self.calls, 'k', wait_ms=3_600_000, lease_ms=300)
            return claim, await lock.take(3_600_000)

        end = Wait.end
        with mock.patch.object(Wait, 'end', end_late):
            blocking = (self.calls.claim('k', wait_ms=3_600_000, lease_ms=300),
                        space.lock('l', lease_ms=300).take(3_600_000))
            for claim, taken in (blocking, self.run_it(ask())):
                self.assertIs(claim.answer, Answer.IN_FLIGHT)
                self.assertEqual(claim.error.code, Code.TIMED_OUT)
                self.assertFalse(taken)
        self.assertEqual(len(grants), 4 * 16)
        self.assertTrue(self.calls.claim('k').granted)  # each was given back
        self.assertTrue(space.claim('l').granted)

    def test_several_loops_and_threads(self):
        held = self.calls.claim('k')
        outcomes, lock = [], threading.Lock()

        def loop():
            async def main():
                return await asyncio.gather(*(
                    aio.once(self.calls, 'k', self.never, wait_ms=3_600_000) for _ in range(20)))
            mine = asyncio.run(main())
            with lock:
                outcomes.extend(mine)

        threads = [threading.Thread(target=loop) for _ in range(3)]
        for thread in threads:
            thread.start()
        while self.engine.stats()['waiters'] != 60:
            self.assertTrue(all(thread.is_alive() for thread in threads))
        self.calls.complete('k', held.epoch, b'x')
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual([one.value for one in outcomes], [b'x'] * 60)

    async def never(self):
        self.fail('it ran')

    def test_an_engine_that_is_closed_ends_the_waits(self):
        async def main():
            self.calls.claim('k')
            tasks = [asyncio.create_task(aio.claim(self.calls, 'k', wait_ms=3_600_000)),
                     asyncio.create_task(aio.once(self.calls, 'k', self.never, wait_ms=60_000))]
            await self.waiters(2)
            self.engine.close()  # on the loop's own thread
            for task in tasks:
                with self.assertRaises(SemelError) as raised:
                    await task
                self.assertEqual(raised.exception.code, Code.CLOSING)

        before = descriptors()
        self.run_it(main())
        self.assertEqual(descriptors(), before)

    def test_a_loop_that_ends_without_its_tasks(self):
        before = descriptors()
        self.calls.claim('k')
        loop = asyncio.new_event_loop()
        task = loop.create_task(aio.claim(self.calls, 'k', wait_ms=3_600_000))
        loop.run_until_complete(self.waiters(1))
        task._log_destroy_pending = False
        loop.close()
        del task, loop
        gc.collect()
        self.assertEqual((self.engine.stats()['waiters'], self.engine._owned), (0, {}))
        self.assertEqual(descriptors(), before)


class OnceTest(Case):
    def test_a_coroutine_runs_once(self):
        runs = []

        async def pay(work):
            runs.append(work.attempt)
            await asyncio.sleep(0)
            return b'paid'

        async def main():
            return await asyncio.gather(*(aio.once(self.calls, 'k', pay, wait_ms=3_600_000)
                                          for _ in range(20)))

        outcomes = self.run_it(main())
        self.assertEqual(runs, [1])
        self.assertEqual({one.value for one in outcomes}, {b'paid'})
        self.assertEqual(sorted(one.answer for one in outcomes),
                         [OnceAnswer.RAN] + 19 * [OnceAnswer.REPLAYED])

    def test_failures_and_exceptions(self):
        async def fail():
            raise semel.Failed('slow')

        async def wrong():
            raise KeyError('gone')

        async def main():
            self.assertEqual((await aio.once(self.calls, 'k', fail)).failure, 'slow')
            with self.assertRaisesRegex(KeyError, 'gone'):
                await aio.once(self.calls, 'k', wrong)
            self.assertEqual((await aio.once(self.calls, 'k', lambda: b'plain')).value, b'plain')

        self.run_it(main())

    def test_a_coroutine_that_is_cancelled_ends_as_on_exception_says(self):
        async def main(name, policy, state):
            space = self.engine.claims(name, policy)
            inside = asyncio.Event()

            async def slow():
                inside.set()
                await asyncio.Event().wait()

            for key, ask in (('a', aio.once), ('b', aio.consume_once)):
                inside.clear()
                task = asyncio.create_task(ask(space, key, slow))
                await inside.wait()
                self.assertIs(space.get(key).state, State.HELD)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertIn(space.get(key).state, state)

        self.run_it(main('p', 'payment', [State.IN_DOUBT]))
        self.run_it(main('c', 'call', [State.ABSENT, State.VACANT]))

    def test_messages_and_guarded(self):
        async def handle():
            await asyncio.sleep(0)

        async def no():
            return False

        @aio.guarded(self.calls, 'order-{order}')
        async def charge(order):
            await asyncio.sleep(0)
            return {'order': order}

        async def main():
            queue = self.engine.claims('mq', 'message')
            self.assertEqual((await aio.consume_once(queue, 'm', handle)).verdict, Verdict.ACK)
            self.assertEqual((await aio.consume_once(queue, 'm', handle)).verdict,
                             Verdict.ACK_DUPLICATE)
            self.assertEqual((await aio.consume_once(queue, 'n', no)).verdict,
                             Verdict.RETRY_LATER)
            self.assertEqual([await charge(7), await charge(order=7)], [{'order': 7}] * 2)

        self.run_it(main())

    def test_once_again_13_who_is_cancelled_before_the_work_has_used_no_try(self):
        async def main(engine):
            queue = engine.claims('queue', 'message', attempts_max=2)
            for asks in (lambda: aio.claim(queue, 'm'), lambda: aio.once(queue, 'm', self.fail),
                         lambda: aio.consume_once(queue, 'm', self.fail),
                         aio.hold(queue, 'm').__aenter__):
                first = queue.claim('m')
                queue.fail('m', first.epoch)
                for _ in range(3):
                    task = asyncio.ensure_future(asks())
                    await asyncio.sleep(0)  # it is on its way to the disk
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                    asks = functools.partial(aio.claim, queue, 'm')
                second = queue.claim('m')
                self.assertEqual((second.answer, second.attempt), (Answer.GRANTED, 2))
                queue.forget('m')

        with tempfile.TemporaryDirectory() as folder, Engine(folder) as engine:
            asyncio.run(main(engine))

    def test_with_a_storage_the_loop_goes_on(self):
        async def main(directory):
            try:
                engine = Engine(directory + '/s', log_bytes=8 << 20, durability='synced')
            except SemelError as error:
                self.skipTest(error.detail)
            with engine:
                calls = engine.claims('c', 'call')
                ticks = 0

                async def tick():
                    nonlocal ticks
                    while True:
                        ticks += 1
                        await asyncio.sleep(0)

                ticker = asyncio.create_task(tick())
                outcomes = await asyncio.gather(*(aio.once(calls, f'k{i % 4}', lambda: b'x',
                                                           wait_ms=10_000) for i in range(8)))
                task = asyncio.create_task(aio.once(calls, 'late', lambda: b'y'))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                self.assertIsNot(calls.get('late').state, State.HELD)
                ticker.cancel()
                self.assertEqual({one.value for one in outcomes}, {b'x'})
                self.assertGreater(ticks, 8)
                self.assertEqual(engine._owned, {})

        with tempfile.TemporaryDirectory() as directory:
            self.run_it(main(directory))


class LockTest(Case):
    def test_one_after_another(self):
        inside = []

        async def work(locks, i):
            async with aio.lock(locks, 'l', wait_ms=3_600_000) as lock:
                inside.append(i)
                self.assertGreater(lock.token, 0)
                await asyncio.sleep(0)
                self.assertEqual(inside.pop(), i)

        async def main():
            locks = self.engine.claims('locks', 'fair-lock')
            await asyncio.gather(*(work(locks, i) for i in range(20)))
            async with aio.lock(locks, 'l') as held:
                other = aio.lock(locks, 'l', wait_ms=3_600_000)
                self.assertFalse(await other.take(0))
                with self.assertRaises(semel.NotTaken):
                    async with aio.lock(locks, 'l'):
                        self.fail('another has it')
                task = asyncio.create_task(other.take())
                await self.waiters(1)
                await held.give()
                task.cancel()  # granted, and does not know
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertIsNone(other.token)
                self.assertTrue(await held.take())

        self.run_it(main())


if __name__ == '__main__':
    unittest.main()
