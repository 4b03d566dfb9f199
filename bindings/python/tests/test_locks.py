"""Locks that are shared, copied, lost or dropped, and calls of asyncio that are cancelled at each
of their steps.

Words: inside = between taking a lock and giving it back; step = one round of the loop.
"""

import asyncio
import copy
import gc
import pickle
import tempfile
import threading
import time
import unittest
import weakref

import semel
from semel import Code, Engine, OnceAnswer, State, aio

LIMIT_S = 60


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.locks = self.engine.claims('locks', 'fair-lock')
        self.calls = self.engine.claims('calls', 'call')
        self.inside, self.most, self.mutex = 0, 0, threading.Lock()

    def enter(self):
        with self.mutex:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self):
        with self.mutex:
            self.inside -= 1

    def run_it(self, coroutine):
        async def limited():
            return await asyncio.wait_for(coroutine, LIMIT_S)

        return asyncio.run(limited())

    def in_thread(self, function):
        """What `function` returned, or raised, in a thread of its own."""
        seen = []

        def run():
            try:
                seen.append(function())
            except BaseException as error:
                seen.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(LIMIT_S)
        return seen[0]


class SharedTest(Case):
    def test_once_again_12_threads_that_share_a_lock_are_inside_one_at_a_time(self):
        lock = self.locks.lock('l', wait=LIMIT_S)
        tokens = []

        def work():
            for _ in range(20):
                with lock:
                    self.enter()
                    tokens.append(lock.token)
                    self.leave()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual((self.most, len(set(tokens)), len(tokens)), (1, 80, 80))

    def test_once_again_12_tasks_that_share_a_lock_are_inside_one_at_a_time(self):
        async def main():
            lock = aio.lock(self.locks, 'l', wait=LIMIT_S)

            async def work():
                for _ in range(10):
                    async with lock:
                        self.enter()
                        await asyncio.sleep(0)
                        self.leave()

            await asyncio.gather(*(work() for _ in range(8)))

        self.run_it(main())
        self.assertEqual(self.most, 1)

    def test_once_again_12_one_that_cannot_wait_is_refused_with_the_locks_name(self):
        lock = self.locks.lock('ledger')
        with lock:
            self.assertIs(self.in_thread(lock.take), False)
            self.assertRegex(str(self.in_thread(lambda: lock.__enter__())), 'ledger')
            refused = self.in_thread(lock.give)
            self.assertIsInstance(refused, semel.NotHeld)
            self.assertIn('ledger', str(refused))
            self.assertIsNone(self.in_thread(lambda: lock.token))
            self.assertGreater(lock.token, 0)
            with lock:  # the same thread once more
                self.assertGreater(lock.token, 0)
            self.assertGreater(lock.token, 0)
        self.assertIs(lock.give(), False)

        async def main():
            shared = aio.lock(self.locks, 'ledger')

            async def other():
                self.assertIsNone(shared.token)
                self.assertFalse(await shared.take())
                with self.assertRaisesRegex(semel.NotHeld, 'ledger'):
                    await shared.give()

            async with shared, shared:
                await asyncio.create_task(other())
                self.assertGreater(shared.token, 0)

        self.run_it(main())

    def test_once_again_12_what_owns_something_is_not_copied(self):
        lock, shared = self.locks.lock('l'), aio.lock(self.locks, 'a')
        holding = self.calls.hold('h')
        keeper = self.calls.keep('k', self.calls.claim('k').epoch)
        self.addCleanup(keeper.close)
        for one in (lock, shared, holding, keeper, aio.hold(self.calls, 'x'), self.engine):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.subTest(one=type(one), copied=copied.__name__):
                    self.assertRaises(TypeError, copied, one)
        lock.take()
        self.assertRaises(TypeError, copy.copy, lock)
        gc.collect()
        self.assertIs(self.locks.get('l').state, State.HELD)

    def test_once_again_12_a_block_of_work_is_entered_once(self):
        holding = self.calls.hold('h')
        with holding:
            with self.assertRaisesRegex(semel.SemelError, "'h'"):
                holding.__enter__()
        with self.assertRaisesRegex(semel.SemelError, "'h'"):
            with holding:
                self.fail('entered again')
        self.assertIs(self.calls.get('h').state, State.DONE)

        async def main():
            shared, seen = aio.hold(self.calls, 'a', wait=LIMIT_S), []

            async def work():
                async with shared:
                    seen.append(1)
                    await asyncio.sleep(0)

            done = await asyncio.gather(work(), work(), return_exceptions=True)
            self.assertEqual([type(one) for one in done], [type(None), semel.StaleOwner])
            with self.assertRaises(semel.StaleOwner):
                await work()
            self.assertEqual(seen, [1])

        self.run_it(main())

    def test_once_again_12_what_is_dropped_is_given_back(self):
        lock = self.locks.lock('l')
        lock.take()
        seen = weakref.ref(lock)
        del lock
        gc.collect()
        self.assertIsNone(seen())
        self.assertIs(self.locks.get('l').state, State.ABSENT)

    def test_once_again_12_what_one_has_that_has_ended_is_given_back_by_another(self):
        lock = self.locks.lock('l')
        self.assertIs(self.in_thread(lock.take), True)  # and the thread has ended with it
        gc.collect()
        self.assertGreater(lock.token, 0)
        self.assertIs(lock.take(), False)
        self.assertIs(lock.give(), True)
        self.assertIs(lock.take(), True)

        async def main():
            shared = aio.lock(self.locks, 'a')
            # A wait_for() takes it in a task of its own, before Python 3.12.
            self.assertTrue(await asyncio.create_task(shared.take()))
            gc.collect()
            self.assertGreater(shared.token, 0)
            self.assertFalse(await shared.take())
            self.assertTrue(await shared.give())
            self.assertFalse(await shared.give())

        self.run_it(main())

    def test_once_again_12_many_threads_that_have_ended_are_forgotten_by_many(self):
        """Several threads at once find the owners that have ended; each goes once."""
        lock = self.locks.lock('l', keep_lease=False)

        class Slow(dict):
            """Another thread comes between the look and the deed."""

            def __delitem__(self, one):
                time.sleep(0.001)
                super().__delitem__(one)

            def pop(self, *arguments):
                time.sleep(0.001)
                return super().pop(*arguments)

        lock._owners = Slow(lock._owners)
        seen = []

        def look():
            try:
                lock.take(0)
                lock.give()
            except BaseException as error:
                seen.append(error)

        for _ in range(20):
            threads = [threading.Thread(target=look) for _ in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join(LIMIT_S)
        self.assertEqual(seen, [])
        self.assertLess(len(lock._owners), 16)

    def test_once_again_26_what_was_lost_is_not_given_back_as_if_it_were_held(self):
        with Engine(manual_clock=True) as engine:
            locks = engine.claims('locks', 'lock')
            for come_and_gone in (False, True):
                lock, other = locks.lock('l', keep_lease=False), locks.lock('l')
                with self.assertRaisesRegex(semel.LeaseLost, "'l'"), lock:
                    engine.advance(30_000)
                    self.assertTrue(other.take())
                    if come_and_gone:
                        other.give()
                self.assertEqual(other.token is None, come_and_gone)
                other.close()
                with self.assertRaises(KeyError), lock:  # what the block raises is the news
                    engine.advance(30_000)
                    raise KeyError
            lock.take()
            engine.advance(30_000)
            with self.assertRaises(semel.StaleOwner):
                lock.take()
            self.assertTrue(lock.take())

            async def main():
                shared = aio.lock(locks, 'a', keep_lease=False)
                with self.assertRaises(semel.LeaseLost):
                    async with shared:
                        engine.advance(30_000)

            self.run_it(main())


class TasksTest(unittest.TestCase):
    """Tasks whose calls run on any thread, as an engine with a storage has them."""

    def test_once_again_12_a_task_takes_once_more_what_it_waited_for(self):
        with tempfile.TemporaryDirectory() as folder, Engine(storage=folder) as engine:
            locks = engine.claims('locks', 'lock')

            async def main():
                ours, theirs = aio.lock(locks, 'a'), aio.lock(locks, 'a', wait=LIMIT_S)

                async def second():
                    async with theirs:
                        async with theirs:
                            self.assertGreater(theirs.token, 0)
                        self.assertGreater(theirs.token, 0)
                        self.assertFalse(await ours.take())
                    self.assertIsNone(theirs.token)
                    async with ours:
                        pass

                async with ours:
                    waits = asyncio.ensure_future(second())
                    await asyncio.sleep(0.05)
                await waits

            asyncio.run(main())

    def test_once_again_12_a_lock_that_was_lost_is_not_taken_once_more(self):
        with Engine() as engine:
            locks = engine.claims('locks', 'lock')

            async def main():
                lock = aio.lock(locks, 'a')
                self.assertTrue(await lock.take())
                locks.forget('a')
                with self.assertRaisesRegex(semel.StaleOwner, 'lost'):
                    await lock.take()
                self.assertTrue(await lock.take())

            asyncio.run(main())


class CancelTest(unittest.TestCase):
    """A call is cancelled after 0, 1, 2 .. steps, until one ends by itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='semel_cancel_')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def each_step(self, call, of):
        """`call` on a key of its own for each step; returns the keys and how many were cancelled.
        With a storage a step of the loop may wait for a thread."""
        async def main():
            keys, cancelled = [], 0
            while True:
                key = f'{of}-{len(keys)}'
                task = asyncio.create_task(call(key))
                for _ in range(len(keys)):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await asyncio.wait_for(asyncio.shield(asyncio.gather(task)), LIMIT_S)
                except asyncio.CancelledError:
                    cancelled += 1
                keys.append(key)
                if cancelled < len(keys) and len(keys) > 12 or len(keys) > 400:
                    return keys, cancelled

        return asyncio.run(main())

    def test_once_again_22_a_call_that_is_cancelled_leaves_no_owner(self):
        for storage in (None, self.folder):
            with Engine(storage, memory_bytes=16 << 20) as engine:
                calls = engine.claims('calls', 'call')
                pay = engine.claims('pay', 'payment')
                queue = engine.claims('queue', 'message')
                locks = engine.claims('locks', 'lock')
                clicks = semel.Debounce(engine.claims('clicks', 'debounce'), remove_on_error=True,
                                        remove_on_finish=True)

                async def work():
                    await asyncio.sleep(0)
                    return b'paid'

                async def handler():
                    await asyncio.sleep(0)

                async def claim(key):
                    made = await aio.claim(calls, key)
                    self.assertTrue(calls.release(key, made.epoch).ok)

                async def hold(key):
                    async with aio.hold(calls, key):
                        await asyncio.sleep(0)

                async def lock(key):
                    async with aio.lock(locks, key, wait=LIMIT_S):
                        await asyncio.sleep(0)

                stories = {
                    'claim': (calls, claim), 'hold': (calls, hold), 'lock': (locks, lock),
                    'once': (calls, lambda key: aio.once(calls, key, work, wait=LIMIT_S)),
                    'consume': (queue, lambda key: aio.consume_once(queue, key, handler)),
                    'debounce': (clicks.claims, lambda key: aio.debounce(clicks, key, handler))}
                for name, (space, call) in stories.items():
                    with self.subTest(name=name, storage=storage is not None):
                        keys, cancelled = self.each_step(call, name)
                        self.assertGreater(cancelled, 0)
                        left = [key for key in keys if space.get(key).state is State.HELD]
                        self.assertEqual(left, [])
                        self.assertEqual(engine.stats()['waiters'], 0)
                        gc.collect()  # what is in the tracebacks
                        self.assertEqual(engine._owned, {})

                async def nothing_began(key):  # so nothing is in doubt
                    ran = []
                    try:
                        await aio.consume_once(pay, key, lambda: ran.append(1))
                    except asyncio.CancelledError:
                        if not ran:
                            self.assertIsNot(pay.get(key).state, State.IN_DOUBT)
                        raise

                self.each_step(nothing_began, 'pay')

    def test_once_again_22_one_that_waits_in_line_leaves_it_for_the_next(self):
        with Engine(memory_bytes=16 << 20) as engine:
            calls = engine.claims('calls', 'call')
            locks = engine.claims('locks', 'fair-lock')

            async def main():
                for steps in range(12):
                    key = f'k{steps}'
                    held = calls.claim(key)
                    lock, other = aio.lock(locks, key), aio.lock(locks, key, wait=LIMIT_S)
                    await lock.take()
                    waiting = [asyncio.create_task(one) for one in (
                        aio.once(calls, key, lambda: self.fail('ran'), wait=LIMIT_S),
                        aio.claim(calls, key, wait=LIMIT_S), other.take())]
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    calls.release(key, held.epoch)  # in the moment of the cancellation
                    await lock.give()
                    for task in waiting:
                        task.cancel()
                    done = await asyncio.gather(*waiting, return_exceptions=True)
                    if isinstance(done[1], semel.Claim) and done[1].granted:
                        calls.release(key, done[1].epoch)
                    if done[2] is True:
                        other.close()
                    self.assertIsNot(calls.get(key).state, State.HELD)
                    self.assertIsNot(locks.get(key).state, State.HELD)
                    self.assertEqual(engine.stats()['waiters'], 0)

            asyncio.run(asyncio.wait_for(main(), LIMIT_S))


if __name__ == '__main__':
    unittest.main()
