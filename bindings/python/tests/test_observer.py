"""Observers: who is told of calls that did not run, and what they cannot do to a call."""

import asyncio
import functools
import gc
import threading
import unittest
import warnings

import semel
from semel import Event, aio


class Heard:
    def __init__(self):
        self.all = []

    def __call__(self, seen):
        self.all.append(seen)

    def events(self):
        """Since the last call of this, in their order."""
        seen, self.all = self.all, []
        return [one.event for one in seen]


def fails():
    raise semel.Failed('no')


def unknown():
    raise semel.OutcomeUnknown('no')


class Blocking:
    """Both faces are asked the same."""

    async def once(self, claims, key, function, **options):
        return claims.once(key, function, **options)

    async def consume(self, claims, key, function):
        return claims.consume_once(key, function)

    async def claim(self, claims, key):
        return claims.claim(key)

    async def hold(self, claims, key):
        with claims.hold(key):
            pass

    async def lock(self, claims, key, wait=0):
        return claims.lock(key, wait=wait).take()

    async def permit(self, claims, key, wait=0):
        return claims.permit(key, 1, wait=wait).take()


class Asyncio:
    async def once(self, claims, key, function, **options):
        return await aio.once(claims, key, function, **options)

    async def consume(self, claims, key, function):
        return await aio.consume_once(claims, key, function)

    async def claim(self, claims, key):
        return await aio.claim(claims, key)

    async def hold(self, claims, key):
        async with aio.hold(claims, key):
            pass

    async def lock(self, claims, key, wait=0):
        return await aio.lock(claims, key, wait=wait).take()

    async def permit(self, claims, key, wait=0):
        return await aio.permit(claims, key, 1, wait=wait).take()


async def play(test, face):
    heard = Heard()
    with semel.Engine() as engine:
        calls = engine.claims('calls', 'call', failure_ttl=60, observer=heard)
        await face.once(calls, 'k', lambda: b'paid', payload=b'1')
        test.assertEqual(heard.events(), [])  # it ran
        again = await face.once(calls, 'k', lambda: b'paid', payload=b'1')
        test.assertIs(again.answer, semel.OnceAnswer.REPLAYED)
        seen = heard.all[0]
        test.assertEqual((seen.namespace, seen.key), ('calls', 'k'))
        test.assertGreaterEqual(seen.seconds, 0)
        test.assertEqual(heard.events(), [Event.REPLAYED])
        await face.once(calls, 'k', lambda: b'paid', payload=b'2')
        test.assertEqual(heard.events(), [Event.MISMATCH])
        with test.assertRaises(semel.AlreadyDone):
            await face.hold(calls, 'k')
        test.assertIs((await face.claim(calls, 'k')).answer, semel.Answer.REPLAY)
        test.assertEqual(heard.events(), [Event.REPLAYED, Event.REPLAYED])

        kept = engine.claims('kept', 'call', failure_ttl=60, on_failure=semel.KEEP,
                             on_exception=semel.IN_DOUBT, observer=heard)
        await face.once(kept, 'f', fails)
        await face.once(kept, 'd', unknown)
        test.assertEqual(heard.events(), [])  # these ran
        await face.once(kept, 'f', fails)
        await face.once(kept, 'd', unknown)
        test.assertEqual(heard.events(), [Event.KEPT_FAILURE, Event.IN_DOUBT])

        held = calls.claim('held')
        await face.once(calls, 'held', fails)
        await face.once(calls, 'held', fails, wait=0.01)
        test.assertEqual(heard.events(), [Event.REJECTED, Event.REJECTED])
        calls.release('held', held.epoch)
        for key, options in (('', {}), ('k', {'lease': -1})):
            with test.assertRaises((semel.Error, ValueError)):
                await face.once(calls, key, fails, **options)
        await face.once(calls, '', lambda: b'', without_key=True)  # unguarded: it ran
        test.assertEqual(heard.events(), [])

        mails = engine.claims('mails', 'message', observer=heard)
        for _ in range(2):
            await face.consume(mails, 'm', lambda: None)
        test.assertEqual(heard.events(), [Event.REPLAYED])
        await face.consume(mails, 'n', fails)
        test.assertEqual(heard.events(), [])
        issued = engine.claims('issued', 'token', observer=heard)
        await face.once(issued, 'forged', fails)
        test.assertEqual(heard.events(), [Event.UNKNOWN_TOKEN])

        locks = engine.claims('locks', 'lock', observer=heard)
        with engine.claims('locks').lock('k'), engine.claims('locks').permit('k', 1):
            for ask in (face.lock, face.permit):
                test.assertFalse(await ask(locks, 'k'))
                test.assertFalse(await ask(locks, 'k', 0.03))
        test.assertEqual(heard.events(), [Event.REJECTED] * 4)  # one a call
        test.assertTrue(await face.lock(locks, 'k'))
        test.assertEqual(heard.events(), [])


def ended(coroutine):
    """The end of a coroutine that awaits nothing, without a loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError('it awaits')


class ObserverTest(unittest.TestCase):
    def test_calls_that_did_not_run_are_observed(self):
        ended(play(self, Blocking()))

    def test_coroutines_as_well(self):
        asyncio.run(play(self, Asyncio()))

    def test_a_batch_and_a_decorator(self):
        heard = Heard()
        with semel.Engine() as engine:
            calls = engine.claims('calls', 'call', observer=heard)

            @semel.idempotent(calls, 'order:{order}')
            def charge(order: int) -> str:
                return f'paid {order}'

            self.assertEqual((charge(1), charge(1)), ('paid 1', 'paid 1'))
            self.assertEqual([one.key for one in heard.all], ['order:1'])
            self.assertEqual(heard.events(), [Event.REPLAYED])
            held = calls.claim('held')
            calls.claim_batch(['free', 'held'])
            self.assertEqual([one.key for one in heard.all], ['held'])
            self.assertEqual(heard.events(), [Event.REJECTED])
            calls.release('held', held.epoch)

    def test_a_batch_that_is_interrupted_leaves_no_claims(self):
        def stops(seen):
            if closes:
                engine.close()
            raise KeyboardInterrupt

        for closes in (False, True):
            with self.subTest(closes=closes), semel.Engine() as engine:
                calls = engine.claims('calls', 'call', observer=stops)
                held = calls.claim('held')
                with self.assertRaises(KeyboardInterrupt):
                    calls.claim_batch(['a', 'held', 'b', 'a'])
                if closes:
                    continue
                self.assertEqual([calls.get(key).state for key in ('a', 'b', 'held')],
                                 [semel.State.ABSENT, semel.State.ABSENT, semel.State.HELD])
                self.assertTrue(calls.release('held', held.epoch).ok)

    def test_what_it_raises_is_not_the_calls(self):
        def raises(seen):
            raise AssertionError('its own')

        async def lazy(seen):
            raise AssertionError('its own')

        with semel.Engine() as engine:
            plain = engine.claims('calls', 'call')
            plain.once('k', lambda: b'paid')
            for observer in (raises, lambda seen: lazy(seen), functools.partial(raises),
                             lambda seen: (one for one in [lazy])):
                calls = engine.claims('calls', observer=observer)
                with warnings.catch_warnings():
                    warnings.simplefilter('error')  # of a coroutine that nobody awaits
                    self.assertEqual(calls.once('k', lambda: b'no').require(), b'paid')
                    gc.collect()
                self.assertEqual(asyncio.run(aio.once(calls, 'k', lambda: b'no')).require(),
                                 b'paid')
                held = plain.lock('l')
                held.take()
                self.assertFalse(calls.lock('l').take())
                held.give()

    def test_an_interrupt_in_it_goes_on_and_leaves_nothing(self):
        def interrupted(seen):
            raise KeyboardInterrupt

        with semel.Engine() as engine:
            plain = engine.claims('calls', 'call')
            plain.once('k', lambda: b'paid')
            calls = engine.claims('calls', observer=interrupted)
            with self.assertRaises(KeyboardInterrupt):
                calls.once('k', lambda: b'no')
            with self.assertRaises(KeyboardInterrupt), calls.hold('k'):
                pass
            self.assertEqual(plain.once('k', lambda: b'no').require(), b'paid')

    def test_what_is_no_observer(self):
        async def awaits(seen):
            pass

        def makes(seen):
            yield seen

        with semel.Engine() as engine:
            for wrong in (1, 'f', lambda: None, lambda a, b: None, awaits, makes):
                with self.assertRaisesRegex(semel.Error, 'observer'):
                    engine.claims('calls', 'call', observer=wrong)
            with self.assertRaises(semel.SemelError):
                engine.claims('calls')  # nothing was declared

    def test_it_may_close_the_engine_and_call_it(self):
        for face in (lambda calls: calls.once('k', lambda: b'no'),
                     lambda calls: asyncio.run(aio.once(calls, 'k', lambda: b'no'))):
            engine, inner = semel.Engine(), []

            def closes(seen):
                if not inner:
                    inner.append('once')
                    inner.append(calls.once('k', lambda: b'no').require())
                engine.close()

            calls = engine.claims('calls', 'call', observer=closes)
            calls.once('k', lambda: b'paid')
            self.assertEqual(face(calls).require(), b'paid')
            self.assertEqual(inner, ['once', b'paid'])
            with self.assertRaises(semel.Closed):
                calls.once('k', lambda: b'no')

    def test_two_threads_observe_at_once(self):
        both = threading.Barrier(2, timeout=30)  # neither holds what the other needs
        broken = []

        def meets(seen):
            try:
                both.wait()
            except threading.BrokenBarrierError:
                broken.append(seen)

        with semel.Engine() as engine:
            calls = engine.claims('calls', 'call', observer=meets)
            calls.once('k', lambda: b'paid')
            with calls.permit('p', 1) as permit:
                tries = [lambda: calls.once('k', lambda: b'no'), permit_of(calls)]
                threads = [threading.Thread(target=one) for one in tries]
                for one in threads:
                    one.start()
                for one in threads:
                    one.join()
                self.assertEqual((broken, permit.lost), ([], False))


def permit_of(calls):
    return lambda: calls.permit('p', 1).take()


if __name__ == '__main__':
    unittest.main()
