"""Steps, blocks that are work, functions, leases that are kept, fingerprints, codecs, why. With a
manual clock unless a lease has to be kept."""

import asyncio
import functools
import tempfile
import threading
import unittest
from unittest import mock

import semel
from semel import Answer, Code, Debounce, Engine, OnceAnswer, ReplayGuard, State, aio


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20, decision_log_bytes=1 << 16)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')

class StepsTest(Case):
    def test_the_next_attempt_goes_on(self):
        effects, tries = [], []

        def ship(work):
            tries.append(work.attempt)
            receipt = work.steps.run('charge', lambda: effects.append('charge') or {'no': 7})
            self.assertEqual(receipt, {'no': 7})
            if len(tries) == 1:
                raise semel.Failed('the mailer is down')
            work.steps.run('mail', lambda: effects.append('mail'))
            return b'shipped'

        self.assertIs(self.calls.once('o', ship).answer, OnceAnswer.FAILED)
        self.assertEqual(self.calls.once('o', ship).value, b'shipped')
        self.assertEqual(effects, ['charge', 'mail'])

    def test_steps_end_with_the_work(self):
        kept = []
        self.calls.once('o', lambda work: kept.append(work.steps))
        with self.assertRaisesRegex(ValueError, 'has ended'):
            kept[0].recall('s')

    def test_unguarded_work_has_steps_of_its_own(self):
        effects, kept = [], []

        def handle(work):
            self.assertEqual(work.epoch, 0)
            for _ in range(2):
                work.steps.run('charge', lambda: effects.append('charge') or 'receipt')
            self.assertEqual(work.steps.recall('charge'), b'"receipt"')
            with self.assertRaises(semel.SemelError):
                work.steps.run('', self.fail)
            kept.append(work.steps)

        queue = self.engine.claims('mq', 'message')
        for n in range(1, 3):
            consumed = queue.consume_once('', handle, without_key=True)
            self.assertTrue(consumed.unguarded)
            self.assertIs(consumed.verdict, semel.Verdict.ACK)
            self.assertEqual(len(effects), n)
        self.assertIs(self.calls.once('', handle, without_key=True).answer, OnceAnswer.UNGUARDED)
        with self.assertRaisesRegex(ValueError, 'has ended'):
            kept[0].recall('charge')

    def test_once_again_1_a_stale_owner_runs_no_step(self):
        for done in (False, True):
            first = self.calls.claim('s')
            self.engine.advance(60_000)
            with self.assertRaises(semel.StaleOwner):  # its lease is over, and nobody came yet
                self.calls.steps('s', first.epoch).run('charge', self.fail)
            second = self.calls.claim('s')
            if done:
                self.calls.complete('s', second.epoch, b'done')
            for epoch in (first.epoch, 0):
                with self.assertRaises(semel.StaleOwner):
                    self.calls.steps('s', epoch).run('charge', self.fail)
            self.calls.forget('s')

    def test_once_again_2_a_resolved_doubt_goes_on(self):
        effects = []
        payments = self.engine.claims('payments', 'payment', window=0, ahead=0)

        def pay(work):
            work.steps.run('charge', lambda: effects.append('charge') or 'receipt')
            if len(tries) == 1:
                raise RuntimeError('the mail')
            return b'paid'

        tries = [1]
        with self.assertRaises(RuntimeError):
            payments.once('k', pay)
        self.engine.advance(25 * 3600 * 1000)
        self.assertTrue(payments.resolve('k'))
        tries.append(2)
        self.assertEqual(payments.once('k', pay).value, b'paid')
        self.assertEqual(effects, ['charge'])

    def test_once_again_3_the_next_work_runs_its_own_steps(self):
        brief = self.engine.claims('brief', 'call', result_ttl=60, failure_ttl=60)

        def complete(key, epoch):
            brief.complete(key, epoch, b'x')

        def keep(key, epoch):
            brief.fail(key, epoch, b'x', keep=True)

        ends = (complete, keep, lambda key, epoch: brief.forget(key),
                lambda key, epoch: brief.resolve(key, b'by hand'))
        for number, end in enumerate(ends):
            key = f'work-{number}'
            epoch = brief.claim(key).epoch
            brief.steps(key, epoch).run('charge', lambda: 'first')
            end(key, epoch)
            self.engine.advance(60_000)
            epoch = brief.claim(key).epoch
            self.assertEqual(brief.steps(key, epoch).run('charge', lambda: 'second'), 'second')

    def test_a_stale_owner_has_no_steps(self):
        first = self.calls.claim('k')
        steps = self.calls.steps('k', first.epoch)
        steps.remember('a', b'memo')
        self.engine.advance(60_000)
        second = self.calls.claim('k')
        for call in (lambda: steps.recall('a'), lambda: steps.remember('a', b''),
                     lambda: steps.complete().require()):
            with self.assertRaises(semel.StaleOwner):
                call()
        theirs = self.calls.steps('k', second.epoch)
        self.assertEqual(theirs.recall('a'), b'memo')
        self.assertTrue(theirs.complete(b'done').ok)
        self.assertEqual(self.calls.get('k').result, b'done')

    def test_a_memo_that_is_none_of_its_codec(self):
        claim = self.calls.claim('k')
        steps = self.calls.steps('k', claim.epoch)
        steps.remember('a', b'{')
        with self.assertRaisesRegex(semel.SemelError, "memo of step 'a'"):
            steps.run('a', self.fail)
        with self.assertRaisesRegex(semel.SemelError, 'name of 0 bytes'):
            steps.remember('', b'')
        with self.assertRaisesRegex(semel.SemelError, 'name of 257 bytes.*256'):
            steps.remember('n' * 257, b'')

    def test_coroutines(self):
        effects, tries = [], []

        async def charge():
            await asyncio.sleep(0)
            effects.append('charge')
            return [7]

        async def ship(work):
            self.assertEqual(await aio.step(work.steps, 'charge', charge), [7])
            tries.append(work.attempt)
            if len(tries) == 1:
                raise semel.Failed('no')
            return b'shipped'

        async def main():
            return [(await aio.once(self.calls, 'o', ship)).answer for _ in range(2)]

        self.assertEqual(asyncio.run(main()), [OnceAnswer.FAILED, OnceAnswer.RAN])
        self.assertEqual(effects, ['charge'])


class HoldTest(Case):
    def test_a_block_is_the_work(self):
        with self.calls.hold('k') as work:
            self.assertGreater(work.epoch, 0)
            with self.assertRaises(semel.InFlight) as raised:
                self.calls.hold('k')
            self.assertEqual(raised.exception.outcome.answer, OnceAnswer.IN_FLIGHT)
            work.result = b'paid'
        self.assertIs(work.outcome.answer, OnceAnswer.RAN)
        with self.assertRaises(semel.AlreadyDone) as raised:
            self.calls.hold('k')
        self.assertEqual(raised.exception.outcome.value, b'paid')

    def test_a_block_that_raises(self):
        with self.assertRaises(ZeroDivisionError):
            with self.calls.hold('k'):
                1 // 0
        self.assertIsNot(self.calls.get('k').state, State.HELD)
        pay = self.engine.claims('pay', 'payment')
        with self.assertRaises(KeyboardInterrupt):
            with pay.hold('k'):
                raise KeyboardInterrupt
        with self.assertRaises(semel.InDoubt):
            pay.hold('k')
        with self.assertRaises(semel.Rejected):
            with self.calls.hold('r'):
                raise semel.Rejected('no such card')
        with self.assertRaises(semel.KeptFailure) as raised:
            self.calls.hold('r')
        self.assertIn('no such card', str(raised.exception))

    def test_a_result_of_another_type_is_done_without_it(self):
        with self.assertRaises(semel.ResultNotKept) as raised:
            with self.calls.hold('k') as work:
                work.result = 7
        self.assertEqual(raised.exception.value, 7)
        self.assertEqual(work.outcome.error.code, Code.RESULT_NOT_KEPT)
        with self.assertRaises(semel.Expired):
            self.calls.hold('k')

    def test_superseded(self):
        with self.assertRaises(semel.Superseded):
            with self.calls.hold('k'):
                self.engine.advance(60_000)
                self.assertTrue(self.calls.claim('k').takeover)

    def test_never_entered_is_given_back(self):
        self.calls.hold('k')  # and dropped
        self.assertIsNot(self.calls.get('k').state, State.HELD)
        pay = self.engine.claims('pay', 'payment')
        pay.hold('k')
        self.assertIs(pay.get('k').state, State.ABSENT)  # once-again-7: in no doubt

    def test_coroutines(self):
        async def main():
            async with aio.hold(self.calls, 'k') as work:
                work.result = b'paid'
            try:
                async with aio.hold(self.calls, 'k'):
                    self.fail()
            except semel.AlreadyDone as done:
                return done.outcome.value

        self.assertEqual(asyncio.run(main()), b'paid')

    def test_once_again_12_a_block_whose_claim_was_lost_is_not_entered(self):
        for take in (lambda: self.calls.once('k', lambda: b'theirs'), lambda: None):
            late = self.calls.hold('k', lease_ms=300, keep_lease=False)
            self.engine.advance(400)
            take()
            with self.assertRaises(semel.StaleOwner):
                with late:
                    self.fail('the block ran')
            self.calls.forget('k')
        pay = self.engine.claims('pay', 'payment')
        late = pay.hold('k', lease_ms=300, keep_lease=False)
        self.engine.advance(400)
        with self.assertRaises(semel.StaleOwner):
            with late:
                self.fail('the block ran')
        self.assertTrue(pay.claim('k').granted)  # in no doubt: nothing ran

    def test_once_again_12_a_block_is_not_entered_after_the_engine(self):
        late = self.calls.hold('k')
        self.engine.close()
        with self.assertRaises(semel.Closed):
            with late:
                self.fail('the block ran')

    def test_once_again_12_a_coroutine_enters_no_block_that_was_lost(self):
        begin = aio._begin

        async def begin_late(*arguments):
            run = await begin(*arguments)
            self.engine.advance(400)  # the loop was blocked so long
            self.calls.once('k', lambda: b'theirs')
            return run

        async def main():
            async with aio.hold(self.calls, 'k', lease_ms=300):
                self.fail('the block ran')

        with mock.patch.object(aio, '_begin', begin_late), self.assertRaises(semel.StaleOwner):
            asyncio.run(main())
        self.assertEqual(self.calls.once('k', self.fail).value, b'theirs')

    def test_a_cancelled_block_does_not_keep_the_key(self):
        async def main():
            inside = asyncio.Event()

            async def work():
                async with aio.hold(self.calls, 'k'):
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(work())
            await inside.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertTrue(self.calls.claim('k').granted)


class ThreadTest(Case):
    def test_a_cancelled_thread_is_waited_for_and_its_work_is_done(self):
        entered, leave = threading.Event(), threading.Event()

        def blocks():
            entered.set()
            leave.wait(60)
            return b'paid'

        async def main():
            loop = asyncio.get_running_loop()
            task = asyncio.ensure_future(aio.once(self.calls, 'k', blocks, thread=True))
            await loop.run_in_executor(None, entered.wait, 60)
            task.cancel()
            for _ in range(50):
                await asyncio.sleep(0)
            self.assertFalse(task.done())
            self.assertIs(self.calls.get('k').state, State.HELD)  # nobody else may run it
            leave.set()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assertEqual(self.calls.once('k', self.fail).value, b'paid')


    def test_once_again_27_a_thread_whose_work_raises_stop_iteration_ends(self):
        def empty():
            return next(iter(()))

        async def main():
            for call in (lambda: aio.once(self.calls, 'k', empty, thread=True),
                         lambda: aio.consume_once(self.calls, 'k', empty, thread=True),
                         lambda: aio.once(self.calls, 'k', empty)):
                with self.assertRaises(RuntimeError) as raised:
                    await asyncio.wait_for(call(), 10)
                self.assertIsInstance(raised.exception.__cause__, StopIteration)
                self.assertIsNot(self.calls.get('k').state, State.HELD)

        asyncio.run(main())

    def test_once_again_27_a_call_off_the_loop_that_raises_stop_iteration_ends(self):
        with tempfile.TemporaryDirectory() as folder, Engine(folder) as engine:
            guard = ReplayGuard(engine, secrets=lambda caller: next(iter(())))
            how = dict(caller='c', timestamp_unix_ms=0, nonce='n', signature='')
            with self.assertRaises(RuntimeError):
                asyncio.run(asyncio.wait_for(aio.check(guard, **how), 10))


class FunctionTest(Case):
    """once-again-7: a function that cannot be called makes no claim, so none is in doubt."""

    class Adds:
        def __call__(self, one, other):
            raise AssertionError('called')

        def one_more(self, one, other):
            raise AssertionError('called')

    def test_once_again_7_one_that_cannot_be_called_is_refused_before_the_claim(self):
        pay = self.engine.claims('pay', 'payment')
        tokens = semel.Tokens(self.engine)
        token = tokens.issue()
        clicks = Debounce(self.engine.claims('clicks', 'debounce'))
        unfit = (lambda one, other: 1, lambda *, named: 1, self.Adds(), self.Adds().one_more,
                 functools.partial(lambda *, named, other: 1, named=1), 7, None)
        before = self.engine.stats()['claims_granted']
        for function in unfit:
            for call in (lambda: pay.once('k', function), lambda: pay.consume_once('k', function),
                         lambda: tokens.spend(token, function), lambda: clicks.run('k', function),
                         lambda: asyncio.run(aio.once(pay, 'k', function)),
                         lambda: asyncio.run(aio.once(pay, 'k', function, thread=True)),
                         lambda: asyncio.run(aio.consume_once(pay, 'k', function)),
                         lambda: asyncio.run(aio.debounce(clicks, 'k', function))):
                with self.assertRaises(semel.InvalidType):
                    call()
        self.assertEqual(self.engine.stats()['claims_granted'], before)
        with self.assertRaisesRegex(semel.InvalidType, 'lambda.*does not take'):
            pay.once('k', lambda one, other: 1)
        with self.assertRaisesRegex(semel.InvalidType, 'step'):
            pay.once('s', lambda work: work.steps.run('s', lambda one: one))
        with self.assertRaisesRegex(semel.InvalidType, 'secrets'):
            ReplayGuard(self.engine, secrets=lambda: ['s'])

    def test_those_that_can_be_called_are(self):
        class Called:
            def __call__(self, work):
                return b'%d' % work.attempt

            def method(self, work, more=1):
                return b'%d' % work.attempt

        fit = (lambda: b'1', lambda work: b'1', lambda *all: b'1', lambda work=None: b'1',
               lambda work, *, named=1: b'1', Called(), Called().method,
               functools.partial(lambda a, work: b'1', 1), bytes, mock.Mock(return_value=b'1'))
        for number, function in enumerate(fit):
            first = self.calls.once(f'{number}', function)
            self.assertIs(first.answer, OnceAnswer.RAN, number)


class KeeperTest(unittest.TestCase):
    def test_it_keeps_and_says_what_is_lost(self):
        with Engine(memory_bytes=16 << 20) as engine:
            calls = engine.claims('calls', 'call', lease=0.4)
            claim = calls.claim('k')
            with calls.keep('k', claim.epoch) as keeper:
                late = calls.claim('k', wait=1.2)  # three leases later it is still held
                self.assertIs(late.answer, Answer.IN_FLIGHT)
                self.assertFalse(keeper.lost)
                calls.forget('k')
                self.assertTrue(calls.claim('k').granted)
                deadline = threading.Event()
                for _ in range(200):
                    if keeper.lost:
                        break
                    deadline.wait(0.02)
                self.assertTrue(keeper.lost)
            with self.assertRaisesRegex(ValueError, 'closed'):
                keeper.lost
            with self.assertRaisesRegex(semel.SemelError, 'lease_ms = 1,'):
                calls.keep('k', claim.epoch, lease_ms=1)
            left = calls.keep('k', claim.epoch)  # the engine ends it
        with self.assertRaises(semel.Closed):
            left.lost


class RestTest(Case):
    def test_fingerprints(self):
        one = semel.fingerprint({'b': [2], 'a': 1})
        self.assertEqual(one, semel.fingerprint(' {"a":1.0, "b":[2e0]}', json_text=True))
        self.assertNotEqual(one, semel.fingerprint('{"a":1,"b":[2]}'))
        self.assertNotEqual(semel.fingerprint(b'x').algorithm,
                            semel.fingerprint(b'x', sha256=True).algorithm)
        self.assertTrue(self.calls.claim('k', fingerprint=one).granted)
        self.assertIs(self.calls.claim('k', fingerprint=one).answer, Answer.IN_FLIGHT)
        with self.assertRaises(semel.Mismatch):
            self.calls.claim('k', fingerprint=semel.fingerprint({'a': 2})).require()
        with self.assertRaisesRegex(TypeError, 'not both'):
            self.calls.claim('k', payload=b'x', fingerprint=one)
        with self.assertRaisesRegex(semel.SemelError, '15 bytes'):
            self.calls.claim('k', fingerprint=semel.Fingerprint(1, b'x' * 15))
        for wrong in ('{', '{"a":1,"a":2}', b'\xff'):
            with self.assertRaises(semel.SemelError):
                semel.fingerprint(wrong, json_text=True)
        with self.assertRaises(ValueError):
            semel.fingerprint({'a': float('nan')})

    def test_codecs(self):
        for i, (codec, value) in enumerate(((semel.JSON, {'a': ['é', 1.5, None]}),
                                            (semel.TEXT, 'é'), (semel.BYTES, b'\0x'),
                                            (semel.PICKLE, {(1, 2): {3}}))):
            for _ in range(2):
                once = self.calls.once(f'k{i}', lambda v=value: v, codec=codec)
                self.assertEqual(once.require(), value)
            self.assertIs(once.answer, OnceAnswer.REPLAYED)
        broken = self.calls.once('b', lambda: object(), codec=semel.JSON, on_unkept='return')
        self.assertEqual(broken.error.code, Code.RESULT_NOT_KEPT)
        with self.assertRaises(semel.Expired):
            self.calls.once('b', self.fail, codec=semel.JSON).require()
        self.calls.once('p', lambda: b'no pickle')
        with self.assertRaises(semel.SemelError):
            self.calls.once('p', self.fail, codec=semel.PICKLE)

    def test_idempotent(self):
        ran = []

        class Order:
            def __init__(self, number, cents):
                self.id, self.cents = number, cents

        @semel.idempotent(self.calls, key=lambda order: f'order-{order.id}',
                          payload=lambda order: str(order.cents))
        def charge(order):
            """Charges."""
            ran.append(order.id)
            return {'id': order.id}

        self.assertEqual(charge(Order(1, 5)), charge(Order(1, 5)))
        with self.assertRaises(semel.Mismatch):
            charge(Order(1, 6))
        self.assertEqual((ran, charge.__doc__), ([1], 'Charges.'))

        @semel.idempotent(self.calls, 'async-{0}')
        async def fetch(number):
            ran.append(number)
            await asyncio.sleep(0)
            return number

        async def main():
            return await asyncio.gather(fetch(7)), await fetch(7)

        self.assertEqual(asyncio.run(main()), ([7], 7))
        self.assertEqual(ran, [1, 7])

    def test_why(self):
        claim = self.calls.claim('k', owner='w1')
        self.calls.claim('k', owner='w2')
        self.calls.complete('k', claim.epoch, b'x')
        known = self.calls.explain('k')
        self.assertEqual([(one.call, one.outcome) for one in known],
                         [(semel.Call.CLAIM, 'granted'), (semel.Call.CLAIM, 'in_flight'),
                          (semel.Call.COMPLETE, 'ok')])
        self.assertEqual((known[1].owner, known[1].seen, known[1].seen_owner),
                         (b'w2', State.HELD, b'w1'))
        self.assertTrue(all(one.why for one in known))
        self.assertEqual(len(self.calls.explain('k', 1)), 1)
        self.assertEqual(self.calls.explain('never'), [])
        for count in (0, 9):
            with self.assertRaises(semel.OutOfRange):
                self.calls.explain('k', count)
        with Engine(manual_clock=True) as engine:
            with self.assertRaisesRegex(semel.SemelError, 'decision_log'):
                engine.claims('c', 'call').explain('k')

    def test_owners_that_are_stale(self):
        first = self.calls.claim('k')
        self.engine.advance(60_000)
        second = self.calls.claim('k')
        self.calls.complete('k', second.epoch, b'theirs')
        with self.assertRaises(semel.StaleOwner) as raised:
            self.calls.complete('k', first.epoch, b'mine').require()
        self.assertEqual(raised.exception.result, b'theirs')
        with self.assertRaises(semel.Conflict):
            self.calls.complete('k', second.epoch, b'other').require()
        with self.assertRaises(semel.NotHeld):
            self.calls.complete('never', 1, b'').require()

    def test_batches(self):
        answers = self.calls.claim_batch(['a', 'b', 'a'], payloads=[b'1', None, b'1'], lease=5)
        self.assertEqual([one.folded_onto for one in answers], [None, None, 0])
        done = self.calls.complete_batch([('a', answers[0].epoch, b'x')])
        self.assertTrue(done[0].ok)
        with self.assertRaisesRegex(ValueError, '1 payloads for 2 keys'):
            self.calls.claim_batch(['a', 'b'], payloads=[b''])


if __name__ == '__main__':
    unittest.main()
