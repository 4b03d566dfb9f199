"""Read/write locks: many readers or one writer; holds that are lost, turns, cancelled waits."""

import asyncio
import copy
import tempfile
import threading
import unittest
from unittest import mock

import semel
from semel import Code, Engine, aio
from semel._accesses import AccessOf

LIMIT_S = 60


class ReadWriteLocks(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.locks = self.engine.claims('locks', 'lock')

    def test_many_readers_or_one_writer_each_with_a_token(self):
        writer = self.locks.write_lock('k')
        with self.locks.read_lock('k') as one:
            with self.locks.read_lock('k') as other:
                self.assertGreaterEqual(other.token, one.token)
                self.assertFalse(writer.take())
                self.assertFalse(writer.take(20))
                self.assertIsNone(writer.token)
                with self.assertRaises(semel.NotTaken):
                    with self.locks.write_lock('k', wait=0.01):
                        self.fail('it was taken')
                with self.locks.read_lock('k'):  # no place was left in front
                    pass
            self.assertIsNone(other.token)
        self.assertTrue(writer.take())

    def test_a_writer_is_alone_and_its_token_is_larger(self):
        with self.locks.read_lock('k') as reader:
            before = reader.token
        with self.locks.write_lock('k') as writer:
            self.assertGreater(writer.token, before)
            self.assertFalse(self.locks.read_lock('k').take())
            self.assertFalse(self.locks.write_lock('k').take())
            self.assertTrue(writer.renew())
            written = writer.token
        with self.locks.read_lock('k') as reader:
            self.assertGreaterEqual(reader.token, written)
        self.assertFalse(writer.give())
        self.assertFalse(writer.renew())

    def test_a_writer_that_waits_is_not_starved_by_readers(self):
        stop, errors = threading.Event(), []

        def read():
            try:
                while not stop.is_set():
                    one = self.locks.read_lock('k')
                    if one.take(50):
                        one.give()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            with self.locks.write_lock('k', wait=LIMIT_S):
                pass
        stop.set()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(errors, [])

    def test_what_was_lost_is_said_to_be_lost(self):
        engine = Engine(manual_clock=True)
        self.addCleanup(engine.close)
        locks = engine.claims('locks', 'lock')
        for slow in (locks.read_lock('k', lease=30, keep_lease=False),
                     locks.write_lock('k', lease=30, keep_lease=False)):
            self.assertTrue(slow.take())
            engine.advance(29_999)
            self.assertFalse(slow.lost)
            engine.advance(1)
            self.assertTrue(slow.lost)
            self.assertIsNone(slow.token)
            with locks.write_lock('k', keep_lease=False) as writer:
                self.assertFalse(slow.renew())
                with self.assertRaises(semel.LeaseLost):
                    slow.give()
                self.assertIsNotNone(writer.token)
        with self.assertRaises(ZeroDivisionError):  # the news, not that it was lost
            with locks.write_lock('k', lease=30, keep_lease=False):
                engine.advance(30_000)
                raise ZeroDivisionError

    def test_what_is_wrong_is_refused(self):
        for make in (self.locks.read_lock, self.locks.write_lock):
            for key in ('', b''):
                with self.assertRaises(semel.InvalidKey):
                    make(key).take()
            with self.assertRaises(semel.OutOfRange):
                make('k', lease=0)
            one = make('k')
            with self.assertRaises(TypeError):
                copy.copy(one)
            with one:
                with self.assertRaises(semel.NotHeld) as twice:
                    one.take()
                self.assertEqual(twice.exception.code, Code.OBJECT_IN_USE)
        self.engine.set('locks:{w}#write', 'mine')
        with self.assertRaises(semel.WrongKind):
            self.locks.read_lock('w').take(LIMIT_S * 1000)

    def test_many_threads_never_a_writer_with_anybody_else(self):
        inside, wrong, mutex = [0], [], threading.Lock()

        def work(number):
            try:
                for turn in range(15):
                    writes = (turn + number) % 3 == 0
                    make = self.locks.write_lock if writes else self.locks.read_lock
                    with make('k', wait=LIMIT_S):
                        with mutex:
                            if inside[0] >= 1000 or (writes and inside[0]):
                                wrong.append(inside[0])
                            inside[0] += 1000 if writes else 1
                        with mutex:
                            inside[0] -= 1000 if writes else 1
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(wrong, [])

    def test_tasks_wait_and_a_cancelled_one_holds_nothing(self):
        async def play():
            async with aio.read_lock(self.locks, 'k') as reader:
                self.assertGreater(reader.token, 0)
                waits = asyncio.ensure_future(
                    aio.write_lock(self.locks, 'k').take(LIMIT_S * 1000))
                await asyncio.sleep(0.01)
                self.assertFalse(await aio.read_lock(self.locks, 'k').take())  # it is next
                waits.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waits
                with self.assertRaises(semel.NotTaken):
                    async with aio.write_lock(self.locks, 'k'):
                        self.fail('it was taken')
                writer = aio.write_lock(self.locks, 'k')
                waits = asyncio.ensure_future(writer.take(LIMIT_S * 1000))
                await asyncio.sleep(0)
            self.assertTrue(await waits)
            self.assertGreater(writer.token, 0)
            self.assertTrue(await writer.renew())
            self.assertTrue(await writer.give())

        asyncio.run(asyncio.wait_for(play(), LIMIT_S))
        with self.locks.write_lock('k'):
            pass

    def test_who_is_interrupted_is_not_in_front_any_more(self):
        engine = Engine(manual_clock=True)  # a place in front never ends by itself
        self.addCleanup(engine.close)
        locks = engine.claims('locks', 'lock')
        ask_once, readers = AccessOf._ask_once, [locks.read_lock('k')]

        def give_and_interrupt(_):
            readers.pop().give()
            raise KeyboardInterrupt

        def asked_and_interrupt(*arguments):
            asked.stop()
            ask_once(*arguments)
            raise KeyboardInterrupt

        for interrupt in (KeyboardInterrupt, KeyError, give_and_interrupt, None):
            if readers:
                readers[0].take()
            writer = locks.write_lock('k', wait=LIMIT_S)
            if interrupt is None:  # in the call itself
                readers = [locks.read_lock('k')]
                self.assertTrue(readers[0].take())
                asked = mock.patch.object(AccessOf, '_ask_once', asked_and_interrupt)
                asked.start()
            with mock.patch('semel._one_hold.time.sleep', side_effect=interrupt or AssertionError):
                with self.assertRaises((KeyboardInterrupt, KeyError)):
                    writer.take()
            self.assertIsNone(writer.token)
            with locks.read_lock('k'):
                pass
            for reader in readers:
                reader.give()
            with writer, self.assertRaises(semel.NotHeld):  # another thread's hold is left alone
                writer.take()
            with locks.write_lock('k'):
                pass

    def test_who_is_cancelled_is_not_in_front_any_more(self):
        async def play(locks):
            reader = aio.read_lock(locks, 'k')
            async with aio.read_lock(locks, 'k'):
                for _ in range(5):
                    waits = asyncio.ensure_future(
                        aio.write_lock(locks, 'k').take(LIMIT_S * 1000))
                    while await reader.take():
                        await reader.give()
                        await asyncio.sleep(0)
                    waits.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await waits
                    self.assertTrue(await reader.take())
                    await reader.give()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(aio.write_lock(locks, 'k').take(LIMIT_S * 1000), 0.02)
                self.assertTrue(await reader.take())
                await reader.give()
                if not locks.engine.is_durable:
                    left = aio.write_lock(locks, 'k').take(LIMIT_S * 1000)
                    left.send(None)
                    self.assertFalse(await reader.take())
                    left.close()
                    self.assertTrue(await reader.take())
                    await reader.give()
            async with aio.write_lock(locks, 'k'):
                pass

        with tempfile.TemporaryDirectory() as directory:
            for storage in (None, directory + '/s'):
                with self.subTest(storage=storage), Engine(storage, manual_clock=True) as engine:
                    locks = engine.claims('locks', 'lock')
                    asyncio.run(asyncio.wait_for(play(locks), LIMIT_S))


if __name__ == '__main__':
    unittest.main()
