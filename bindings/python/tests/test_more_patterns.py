"""Debounce, replay guard, steps, blocks that are work, leases that are kept, fingerprints, codecs,
why. With a manual clock unless a lease has to be kept."""

import asyncio
import functools
import gc
import tempfile
import threading
import time
import unittest
from unittest import mock

import semel
from semel import (Answer, Code, Debounce, Debounced, Engine, OnceAnswer, Replayed, ReplayGuard,
                   State, _debounce, aio)


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20, decision_log_bytes=1 << 16)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')


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


class ReplayTest(Case):
    def setUp(self):
        super().setUp()
        self.steady, self.wall = 5_000, 1_800_000_000_000
        self.guard = ReplayGuard(self.engine, clocks=lambda: (self.steady, self.wall),
                                 secrets=lambda caller: {b'shop': ['new', b'old']}.get(caller, ()))

    def pass_ms(self, ms):
        self.steady += ms
        self.wall += ms
        self.engine.advance(ms)

    def signed(self, nonce='n', secret='old', at=None, **more):
        how = dict(caller='shop', timestamp_unix_ms=self.wall if at is None else at, nonce=nonce,
                   parameters=[('sum', '10'), ('order', '4&2')])
        how['signature'] = semel.signature_of(secret, **how)
        how.update(more)
        return how

    def test_the_signature_is_that_of_the_other_languages(self):
        # Of signature_of() in C++ (semel/patterns/signed_request.hpp).
        parameters = [('sum', '~-._'), ('order', '4&2'), ('a', '1'), ('a', '0'), ('é', '')]
        self.assertEqual(
            semel.signature_of('s', caller='shop 7', timestamp_unix_ms=1_800_000_000_000,
                               nonce=b'9f\n', parameters=parameters),
            '51227cf30a65be7fb2f535c5cd6fdb00ff202c17a3beddb7974bc11e11b8f48b')

    def test_once(self):
        request = self.signed()
        self.assertIs(self.guard.check(**request), Replayed.ACCEPTED)
        self.assertIs(self.guard.check(**request), Replayed.REPLAYED)
        self.assertIs(self.guard.check(**self.signed('other')), Replayed.ACCEPTED)
        upper = self.signed('upper')
        upper['signature'] = upper['signature'].upper()
        self.assertIs(self.guard.check(**upper), Replayed.ACCEPTED)

    def test_what_is_wrong(self):
        for change in ({'caller': 'nobody'}, {'signature': ''}, {'signature': 'é' * 64},
                       {'parameters': []}, {'nonce': b'm'}, {'timestamp_unix_ms': self.wall + 1}):
            self.assertIs(self.guard.check(**{**self.signed(), **change}), Replayed.BAD_SIGNATURE,
                          change)
        for change in ({'nonce': ''}, {'nonce': 'n' * 257}, {'caller': 'c' * 257},
                       {'timestamp_unix_ms': -1}, {'parameters': [('a', 'b')] * 1025},
                       {'parameters': [('a', 'b' * (1 << 20))]}):
            self.assertIs(self.guard.check(**{**self.signed(), **change}), Replayed.MALFORMED)
        self.assertIs(self.guard.check(**self.signed(secret='wrong')), Replayed.BAD_SIGNATURE)
        self.assertEqual(self.engine.stats()['claims_granted'], 0)

    def test_once_again_11_a_text_is_no_list_of_secrets(self):
        for secrets in ('long secret', b'long secret', bytearray(b's'), {'shop': 's'}, None, 7,
                        iter(['s']), [7], [None]):
            with self.assertRaises(semel.InvalidType, msg=secrets) as raised:
                ReplayGuard(self.engine, secrets=secrets, name='text')
            self.assertNotIn('long', str(raised.exception))
        for secrets in ([''], ['s', b'']):
            with self.assertRaises(semel.SemelError) as raised:
                ReplayGuard(self.engine, secrets=secrets, name='text')
            self.assertEqual(raised.exception.code, Code.BAD_OPTION)
        for secrets in ('long secret', b'', [''], {'s': 1}):
            guard = ReplayGuard(self.engine, name='text', secrets=lambda caller: secrets,
                                clocks=lambda: (self.steady, self.wall))
            with self.assertRaises(semel.SemelError):
                guard.check(**self.signed(secret='l'))
        nobody = ReplayGuard(self.engine, name='text', secrets=lambda caller: None,
                             clocks=lambda: (self.steady, self.wall))
        self.assertIs(nobody.check(**self.signed()), Replayed.BAD_SIGNATURE)
        self.assertRaises(semel.SemelError, self.signed, secret='')
        self.assertEqual(self.engine.stats()['claims_granted'], 0)

    def test_once_again_11_a_map_of_parameters_is_signed_with_its_values(self):
        how = dict(caller='shop', timestamp_unix_ms=self.wall, nonce='n')
        signature = semel.signature_of('old', parameters={'to': 'alice', 'id': '1'}, **how)
        self.assertEqual(signature, semel.signature_of(
            'old', parameters=[('id', '1'), ('to', 'alice')], **how))
        self.assertIs(self.guard.check(signature=signature, **how,
                                       parameters={'to': 'mallory', 'id': '1'}),
                      Replayed.BAD_SIGNATURE)

        class Several(dict):
            def getlist(self, name):
                return [self[name]]

        for parameters in (['to', 'id'], 'to', b'to', {'to': ['alice']}, [('to', 'a', 'b')],
                           [('to', 1)], {'to': None}, ['ab'], Several(to='alice')):
            with self.assertRaisesRegex(semel.InvalidType, 'parameters', msg=parameters):
                semel.signature_of('old', parameters=parameters, **how)
            with self.assertRaisesRegex(semel.InvalidType, 'parameters', msg=parameters):
                self.guard.check(signature=signature, parameters=parameters, **how)
        self.assertIs(self.guard.check(signature=None, **how), Replayed.MALFORMED)
        self.assertIs(self.guard.check(signature=signature, **{**how, 'timestamp_unix_ms': True}),
                      Replayed.MALFORMED)

    def test_the_window_has_two_ends(self):
        now = self.wall
        for at, answer in ((now - 60_000, Replayed.TOO_OLD), (now - 59_999, Replayed.ACCEPTED),
                           (now + 60_000, Replayed.ACCEPTED), (now + 60_001, Replayed.TOO_NEW)):
            self.assertIs(self.guard.check(**self.signed(f'n{at}', at=at)), answer)

    def test_a_clock_that_is_set_back_opens_no_window(self):
        early, late = self.signed('e'), self.signed('l', at=self.wall + 60_000)
        self.assertIs(self.guard.check(**early), Replayed.ACCEPTED)
        self.assertIs(self.guard.check(**late), Replayed.ACCEPTED)
        self.pass_ms(119_999)
        self.assertIs(self.guard.check(**late), Replayed.REPLAYED)  # its last millisecond
        self.pass_ms(10_000)
        self.wall -= 125_000
        for request in (early, late):
            self.assertIs(self.guard.check(**request), Replayed.TOO_OLD)

    def test_of_many_threads_one_is_accepted(self):
        guard = ReplayGuard(self.engine, secrets=['s'], name='many')
        import time
        how = dict(caller='c', timestamp_unix_ms=time.time_ns() // 1_000_000, nonce='n')
        how['signature'] = semel.signature_of('s', **how)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(guard.check(**how)))
                   for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        self.assertEqual(sorted(one.name for one in answers), ['ACCEPTED'] + ['REPLAYED'] * 7)
        self.assertIs(asyncio.run(aio.check(guard, **how)), Replayed.REPLAYED)

    def test_a_full_table_accepts_nothing(self):
        engine = Engine(memory_bytes=4 << 20, manual_clock=True)
        self.addCleanup(engine.close)
        guard = ReplayGuard(engine, secrets=['s'], clocks=lambda: (self.steady, self.wall))
        accepted = 0
        with self.assertRaises(semel.Full):
            for i in range(100_000):
                how = dict(caller='c', timestamp_unix_ms=self.wall, nonce=f'{i}')
                verdict = guard.check(signature=semel.signature_of('s', **how), **how)
                self.assertIs(verdict, Replayed.ACCEPTED)
                accepted += 1
        self.assertGreater(accepted, 100)


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
        broken = self.calls.once('b', lambda: object(), codec=semel.JSON)
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
