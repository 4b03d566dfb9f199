"""Permits of semaphores: as many holders as permits, which are lost, given back or cancelled."""

import asyncio
import copy
import threading
import unittest

import semel
from semel import Code, Engine, aio

LIMIT_S = 60


class Permits(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.seats = self.engine.claims('seats', 'lock')

    def test_as_many_holders_as_permits_each_in_a_slot_with_a_token(self):
        with self.seats.permit('k', 2) as first:
            with self.seats.permit('k', 2) as second:
                self.assertEqual((first.slot, second.slot), (0, 1))
                third = self.seats.permit('k', 2)
                self.assertFalse(third.take())
                self.assertFalse(third.take(20))
                self.assertIsNone(third.slot)
                self.assertIsNone(third.token)
                with self.assertRaises(semel.NotTaken):
                    with self.seats.permit('k', 2, wait=0.01):
                        self.fail('it was taken')
            token = second.token
            self.assertIsNone(token)
            self.assertTrue(third.take())
            self.assertGreater(third.token, first.token)
            self.assertTrue(third.renew())
            self.assertTrue(third.give())
            self.assertFalse(third.give())
            self.assertFalse(third.renew())

    def test_fewer_permits_count_the_holders_that_are_beyond_them(self):
        first, second = self.seats.permit('k', 2), self.seats.permit('k', 2)
        self.assertTrue(first.take() and second.take())
        self.assertTrue(first.give())
        self.assertFalse(self.seats.permit('k', 1).take())
        self.assertTrue(second.give())
        with self.seats.permit('k', 1):
            with self.seats.permit('k', 3):  # more: at once
                pass

    def test_a_permit_that_was_lost_is_said_to_be_lost(self):
        engine = Engine(manual_clock=True)
        self.addCleanup(engine.close)
        seats = engine.claims('seats', 'lock')
        slow = seats.permit('k', 1, lease=30, keep_lease=False)
        self.assertTrue(slow.take())
        engine.advance(29_999)
        self.assertFalse(slow.lost)
        engine.advance(1)
        self.assertTrue(slow.lost)
        with seats.permit('k', 1, keep_lease=False) as next_one:
            self.assertFalse(slow.renew())
            with self.assertRaises(semel.LeaseLost):
                slow.give()
            self.assertEqual(next_one.slot, 0)
        with self.assertRaises(semel.LeaseLost):
            with seats.permit('k', 1, lease=30, keep_lease=False):
                engine.advance(30_000)
        with self.assertRaises(ZeroDivisionError):  # the news, not that it was lost
            with seats.permit('k', 1, lease=30, keep_lease=False):
                engine.advance(30_000)
                raise ZeroDivisionError

    def test_what_is_wrong_is_refused(self):
        for permits in (0, 1025, -1):
            with self.assertRaises(semel.OutOfRange):
                self.seats.permit('k', permits)
        with self.assertRaises(TypeError):
            self.seats.permit('k', '2')
        for key in ('', b''):
            with self.assertRaises(semel.InvalidKey):
                self.seats.permit(key, 1).take()
        with self.assertRaises(semel.OutOfRange):
            self.seats.permit('k', 1, lease=0)
        one = self.seats.permit('k', 2)
        with self.assertRaises(TypeError):
            copy.copy(one)
        with one:
            with self.assertRaises(semel.NotHeld) as twice:
                one.take()
            self.assertEqual(twice.exception.code, Code.OBJECT_IN_USE)
        self.engine.set('seats:{w}#0', 'mine')
        with self.assertRaises(semel.WrongKind):
            self.seats.permit('w', 1).take()

    def test_many_threads_never_hold_more_than_the_permits(self):
        inside, most, mutex, errors = [0], [0], threading.Lock(), []

        def work():
            try:
                for _ in range(20):
                    with self.seats.permit('k', 3, wait=LIMIT_S):
                        with mutex:
                            inside[0] += 1
                            most[0] = max(most[0], inside[0])
                        with mutex:
                            inside[0] -= 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(errors, [])
        self.assertLessEqual(most[0], 3)

    def test_tasks_wait_and_a_cancelled_one_holds_nothing(self):
        async def play():
            async with aio.permit(self.seats, 'k', 1) as held:
                self.assertEqual(held.slot, 0)
                waits = asyncio.ensure_future(aio.permit(self.seats, 'k', 1).take(LIMIT_S * 1000))
                await asyncio.sleep(0)
                waits.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waits
                with self.assertRaises(semel.NotTaken):
                    async with aio.permit(self.seats, 'k', 1):
                        self.fail('it was taken')
                next_one = aio.permit(self.seats, 'k', 1)
                waits = asyncio.ensure_future(next_one.take(LIMIT_S * 1000))
                await asyncio.sleep(0)
            self.assertTrue(await waits)
            self.assertTrue(await next_one.renew())
            self.assertTrue(await next_one.give())

        asyncio.run(asyncio.wait_for(play(), LIMIT_S))
        with self.seats.permit('k', 1):
            pass


if __name__ == '__main__':
    unittest.main()
