"""Locks of several keys: all or none."""

import asyncio
import concurrent.futures
import copy
import os
import tempfile
import threading
import unittest

import semel
from semel import aio


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = semel.Engine()
        self.addCleanup(self.engine.close)
        self.heard = []
        self.locks = self.engine.claims('locks', 'lock', observer=self.heard.append)

    def is_free(self, *keys):
        return all(self.locks.get(key).state is semel.State.ABSENT for key in keys)


class LockAllTest(Case):
    def test_all_or_none(self):
        both = self.locks.lock_all(['b', b'a', 'b'])
        self.assertIsNone(both.token('a'))
        self.assertTrue(both.take())
        self.assertGreater(both.token('a'), 0)
        self.assertGreater(both.token(b'b'), 0)
        self.assertIsNone(both.token('c'))
        with self.assertRaises(semel.NotHeld):
            both.take()  # by the same object, which holds them
        for wait in (0, 0.02):
            self.assertFalse(self.locks.lock_all(['c', 'a', 'd'], wait=wait).take())
        self.assertEqual([(one.key, one.event) for one in self.heard],
                         [(b'a', semel.Event.REJECTED)] * 2)  # the key that is in the way
        with self.assertRaisesRegex(semel.NotTaken, "b'a'"):
            with self.locks.lock_all(['c', 'a']):
                self.fail('it is held')
        self.assertTrue(self.is_free('c', 'd'))
        self.assertFalse(both.lost)
        self.assertTrue(both.give())
        self.assertFalse(both.give())
        self.assertTrue(self.is_free('a', 'b'))
        with self.locks.lock_all([b'\0\xff', 'x']) as held:
            self.assertGreater(held.token(b'\0\xff'), 0)

    def test_what_is_refused(self):
        for keys in ([], 'ab', b'ab', [str(i) for i in range(1025)]):
            with self.assertRaises(semel.Error):
                self.locks.lock_all(keys)
        for keys in (['a', ''], ['a', None], ['a', 'k' * 70_000]):
            with self.assertRaises(semel.Error):
                self.locks.lock_all(keys).take()
        self.assertTrue(self.is_free('a'))
        with self.locks.lock_all([str(i) for i in range(1024)], keep_lease=False):
            pass
        done = self.locks.claim('done')
        self.locks.complete('done', done.epoch)
        with self.locks.lock('held'), self.assertRaises(semel.AlreadyDone):
            self.locks.lock_all(['held', 'done', 'free'], wait=30).take()  # at once
        self.assertTrue(self.is_free('free'))
        both = self.locks.lock_all(['a', 'b'])
        for copied in (copy.copy, copy.deepcopy):
            with self.assertRaises(TypeError):
                copied(both)

    def test_a_lost_one(self):
        both = self.locks.lock_all(['a', 'b', 'c'])
        both.take()
        self.locks.forget('b')
        self.assertTrue(both.lost)
        self.assertIsNone(both.token('b'))
        with self.locks.lock('b') as next_one:
            with self.assertRaises(semel.LeaseLost):
                both.give()
            self.assertIsNotNone(next_one.token)  # it was not the other's to give
        self.assertTrue(self.is_free('a', 'b', 'c'))
        self.assertFalse(both.give())
        with self.assertRaisesRegex(ZeroDivisionError, 'news'):
            with self.locks.lock_all(['a', 'b']):
                self.locks.forget('a')
                raise ZeroDivisionError('the news')

    def test_leases_are_kept(self):
        with semel.Engine(manual_clock=True) as engine:
            locks = engine.claims('locks', 'lock')
            short = locks.lock_all(['a', 'b'], lease=1, keep_lease=False)
            short.take()
            engine.advance(1_000)
            self.assertTrue(short.lost)
            with self.assertRaises(semel.LeaseLost):
                short.give()
            with self.assertRaises(semel.SemelError):
                locks.lock_all(['a'], lease=0.1).take()  # too short to be kept

    def test_any_order_and_shared_objects(self):
        keys, inside, wrong = ['a', 'b', 'c'], [], []

        def play(i):
            try:
                for _ in range(10):
                    with self.locks.lock_all(keys[i % 3:] + keys[:i % 3], wait=60):
                        inside.append(i)
                        if len(inside) != 1:
                            wrong.append(list(inside))
                        inside.pop()
            except semel.Error as error:
                wrong.append(error)

        run([lambda i=i: play(i) for i in range(6)])
        self.assertEqual(wrong, [])
        for _ in range(50):
            both, given = self.locks.lock_all(['a', 'b']), []
            both.take()
            run([lambda: given.append(both.give())] * 2)
            self.assertEqual(sorted(given), [False, True])
        self.assertTrue(self.is_free(*keys))

    def test_a_child_gives_nothing_back(self):
        with self.locks.lock_all(['a', 'b']):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    self.locks.lock_all(['c']).take()
                except semel.Forked:
                    code = 0
                os._exit(code)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertFalse(self.is_free('a'))

    def test_closed_while_it_waits(self):
        held = self.locks.lock('a')
        held.take()
        ends, waits = [], threading.Event()

        def wait():
            waits.set()
            try:
                self.locks.lock_all(['a', 'b'], wait=60).take()
            except semel.Closed as error:
                ends.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        waits.wait()
        self.engine.close()
        thread.join(30)
        self.assertEqual(len(ends), 1)


class AioTest(Case):
    def test_all_or_none(self):
        async def play():
            async with aio.lock_all(self.locks, ['a', 'b']) as both:
                self.assertGreater(both.token('a'), 0)
                self.assertFalse(await aio.lock_all(self.locks, ['c', 'b'], wait=0.02).take())
                waits = asyncio.ensure_future(aio.lock_all(self.locks, ['b', 'd'], wait=60).take())
                await asyncio.sleep(0)
                waits.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waits
                after = asyncio.ensure_future(aio.lock_all(self.locks, ['d', 'a'], wait=60).take())
                await asyncio.sleep(0)
                self.assertFalse(after.done())
            self.assertTrue(await after)
            self.assertTrue(self.is_free('b', 'c'))
            lost = aio.lock_all(self.locks, ['x', 'y'])
            await lost.take()
            self.locks.forget('x')
            with self.assertRaises(semel.LeaseLost):
                await lost.give()

        asyncio.run(play())
        self.assertEqual([one.key for one in self.heard], [b'b'])


class SharedTest(unittest.TestCase):
    """Two tasks that use one object, of an engine with a storage: its calls leave the loop."""

    def test_a_cancelled_task_gives_back_only_what_it_took(self):
        async def play(make, engine, is_first):
            pool = concurrent.futures.ThreadPoolExecutor(1)  # so both attempts queue, in order
            asyncio.get_running_loop().set_default_executor(pool)
            waits, shared = threading.Event(), make(engine.claims('locks', 'lock'))
            pool.submit(waits.wait, 60)
            tasks = [asyncio.ensure_future(shared.take()) for _ in range(2)]
            await asyncio.sleep(0)
            left = tasks.pop(0 if is_first else 1)
            left.cancel()
            await asyncio.sleep(0)
            waits.set()
            with self.assertRaises(asyncio.CancelledError):
                await left
            if is_first:  # it had taken them, and gives them back
                with self.assertRaises(semel.NotHeld):
                    await tasks[0]
                self.assertFalse(await shared.give())
                self.assertTrue(await shared.take())
            else:
                self.assertTrue(await tasks[0])
            self.assertFalse(shared.lost)
            self.assertTrue(await shared.give())

        for make in (lambda claims: aio.lock_all(claims, ['a', 'b']),
                     lambda claims: aio.permit(claims, 'seat', 2)):
            for is_first in (True, False):
                with self.subTest(make=make, is_first=is_first), \
                        tempfile.TemporaryDirectory() as folder, \
                        semel.Engine(storage=folder) as engine:
                    asyncio.run(play(make, engine, is_first))


def run(functions):
    threads = [threading.Thread(target=one) for one in functions]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


if __name__ == '__main__':
    unittest.main()
