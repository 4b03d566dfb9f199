"""once, guarded, consume_once, locks, tokens, claims and waiting."""

import threading
import unittest

import semel
from semel import Answer, Code, Engine, OnceAnswer, OwnerAnswer, SemelError, State, Verdict

LIMIT_S = 60  # of every wait in here; none is meant to last


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.runs = 0

    def space(self, policy='call', **figures):
        return self.engine.claims(policy, policy, **figures)

    def pay(self):
        self.runs += 1
        return b'paid'

    def handle(self):
        self.runs += 1

    def never(self):
        self.fail('it ran')


class OnceTest(Case):
    def test_the_first_runs_and_the_next_get_its_answer(self):
        calls = self.space()
        first = calls.once('k', self.pay)
        self.assertEqual((first.answer, first.value, first.attempt),
                         (OnceAnswer.RAN, b'paid', 1))
        second = calls.once(b'k', self.pay)
        self.assertEqual((second.answer, second.value), (OnceAnswer.REPLAYED, b'paid'))
        self.engine.advance(3_599_999)
        self.assertEqual(calls.once('k', self.pay).answer, OnceAnswer.REPLAYED)
        self.assertEqual(self.runs, 1)
        self.engine.advance(1)
        self.assertEqual(calls.once('k', self.pay).answer, OnceAnswer.RAN)

    def test_an_exception_gives_back_and_goes_on(self):
        calls = self.space(on_failure=1)
        with self.assertRaisesRegex(KeyError, 'gone'):
            calls.once('k', lambda: {}['gone'])
        with self.assertRaises(KeyboardInterrupt):
            calls.once('k', self.interrupt)
        self.assertEqual(calls.once('k', self.pay).answer, OnceAnswer.RAN)

    def test_work_whose_result_is_no_bytes_is_done_without_it(self):
        calls = self.space()
        self.assertEqual(calls.once('k', lambda: 5, on_unkept='return').answer, OnceAnswer.RAN)
        self.assertEqual(calls.once('k', self.pay).answer, OnceAnswer.EXPIRED)

    def interrupt(self):
        raise KeyboardInterrupt

    def test_failures_are_given_back_or_kept(self):
        def fail():
            raise semel.Failed('the bank is slow')

        def reject():
            raise semel.Rejected('no such card')

        calls = self.space()
        failed = calls.once('k', fail)
        self.assertEqual((failed.answer, failed.failure, failed.has_value),
                         (OnceAnswer.FAILED, 'the bank is slow', False))
        self.assertEqual(calls.once('k', self.pay).answer, OnceAnswer.RAN)
        self.assertEqual(calls.once('r', reject).answer, OnceAnswer.FAILED)
        kept = calls.once('r', self.never)
        self.assertEqual((kept.answer, kept.failure), (OnceAnswer.KEPT_FAILURE, 'no such card'))
        keeping = self.engine.claims('keeping', 'call', on_failure=1)
        keeping.once('k', fail)
        self.assertEqual(keeping.once('k', self.never).failure, 'the bank is slow')

    def test_a_failure_counts_as_one_attempt(self):
        def fail():
            self.runs += 1
            raise semel.Failed(f'run {self.runs}')

        calls = self.space('message', attempts_max=3)
        outcomes = [calls.once('k', fail) for _ in range(4)]
        self.assertEqual([one.attempt for one in outcomes], [1, 2, 3, 3])
        self.assertEqual([one.failure for one in outcomes[:3]], ['run 1', 'run 2', 'run 3'])
        self.assertEqual((outcomes[3].answer, self.runs), (OnceAnswer.KEPT_FAILURE, 3))
        self.assertEqual(self.engine.stats()['stale_owners'], 0)

    def test_another_payload_is_a_mismatch(self):
        calls = self.space()
        self.assertEqual(calls.once('k', self.pay, payload='1').answer, OnceAnswer.RAN)
        self.assertEqual(calls.once('k', self.pay, payload='2').answer, OnceAnswer.MISMATCH)
        self.assertEqual(calls.once('k', self.pay, payload='1').answer, OnceAnswer.REPLAYED)

    def test_who_was_taken_over_is_superseded(self):
        calls = self.space()
        newer = []

        def slow(beyond):
            self.assertEqual(calls.once('k', self.never).answer, OnceAnswer.IN_FLIGHT)
            self.engine.advance(60_000 + beyond)
            newer.append(calls.once('k', lambda: b'newer'))
            return b'slow'

        self.assertEqual(calls.once('k', lambda: slow(-1)).value, b'slow')
        self.assertEqual(newer[0].answer, OnceAnswer.IN_FLIGHT)
        calls.forget('k')
        old = calls.once('k', lambda: slow(0))
        self.assertEqual((newer[1].answer, newer[1].takeover, newer[1].attempt),
                         (OnceAnswer.RAN, True, 2))
        self.assertEqual((old.answer, old.value), (OnceAnswer.SUPERSEDED, b'newer'))

    def test_the_function_may_know_its_work(self):
        calls = self.space()
        seen = []
        calls.claim('k')
        self.engine.advance(60_000)
        run = calls.once('k', lambda work: seen.append(work))
        self.assertEqual(seen, [semel.Work(b'k', run.epoch, 2, True)])
        self.assertEqual(run.value, b'')  # what returns nothing has an empty result
        self.assertTrue(run.has_value)

    def test_without_a_key(self):
        calls = self.space()
        with self.assertRaises(semel.InvalidKey) as refused:
            calls.once('', self.never)
        self.assertEqual(refused.exception.code, Code.KEY_EMPTY)
        run = calls.once('', self.pay, without_key=True)
        self.assertEqual((run.answer, run.epoch), (OnceAnswer.UNGUARDED, 0))
        with self.assertRaises(SemelError):
            calls.once('k', self.never, wait_ms=-1)
        with self.assertRaises(SemelError):
            calls.once('k', self.never, claim_id=b'short')

    def test_many_threads_and_one_run(self):
        calls = self.space()
        ready = threading.Barrier(6, timeout=LIMIT_S)
        outcomes = []

        def ask():
            ready.wait()
            outcomes.append(calls.once('k', self.pay, wait_ms=3_600_000))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(self.runs, 1)
        self.assertEqual(sorted(one.answer for one in outcomes),
                         [OnceAnswer.RAN] + 5 * [OnceAnswer.REPLAYED])
        self.assertEqual({one.value for one in outcomes}, {b'paid'})

    def test_the_engine_keeps_a_lease(self):
        calls = self.space()

        def slow():
            self.engine.advance(20_000)
            while calls.get('k').lease_remaining_ms != 60_000:
                pass  # the engine's thread looks ten times a second
            return b''

        self.assertFalse(calls.once('k', slow, keep_lease=True).late)


class GuardedTest(Case):
    def test_calls_by_their_arguments(self):
        calls = self.space()

        @semel.guarded(calls, 'order-{order}')
        def charge(order, amount=1):
            self.runs += 1
            return {'order': order, 'amount': amount}

        @semel.guarded(calls, lambda a, b: semel.composite_key(a, b))
        def join(a, b):
            self.runs += 1
            return a + b

        self.assertEqual(charge(7), {'order': 7, 'amount': 1})
        self.assertEqual(charge(order=7, amount=1), {'order': 7, 'amount': 1})
        self.assertEqual(charge(8)['order'], 8)
        self.assertEqual(self.runs, 2)
        self.assertEqual([join('a', 'b'), join('a', 'b'), join('a|', 'b')], ['ab', 'ab', 'a|b'])
        self.assertEqual(self.runs, 4)
        self.assertEqual(charge.__name__, 'charge')

    def test_no_result(self):
        calls = self.space()

        @semel.guarded(calls, 'k', payload=None)
        def again(depth):
            return again(depth + 1)

        with self.assertRaises(semel.NoResult) as raised:
            again(0)
        self.assertEqual(raised.exception.outcome.answer, OnceAnswer.IN_FLIGHT)
        epoch = calls.claim('k', fingerprint=semel.Fingerprint(9, semel.identity(
            f'{again.__module__}.{again.__qualname__}', {}).digest)).epoch
        calls.complete('k', epoch, b'{no json')
        with self.assertRaises(SemelError) as wrong:
            again(0)
        self.assertEqual(wrong.exception.code, Code.BAD_ENCODING)


class ConsumeTest(Case):
    def test_verdicts(self):
        queue = self.space('message')
        self.assertEqual(queue.consume_once('a', self.handle).verdict, Verdict.ACK)
        self.assertEqual(queue.consume_once('a', self.never).verdict, Verdict.ACK_DUPLICATE)
        no = queue.consume_once('b', lambda: False)
        self.assertEqual((no.verdict, no.failure, no.retry_after_ms),
                         (Verdict.RETRY_LATER, 'the handler said no', 1000))

        def reject():
            raise semel.Rejected('no such account')

        self.assertEqual(queue.consume_once('c', reject).verdict, Verdict.DEAD_LETTER)
        again = queue.consume_once('c', self.never)
        self.assertEqual((again.verdict, again.answer, again.failure),
                         (Verdict.DEAD_LETTER, OnceAnswer.KEPT_FAILURE, 'no such account'))
        inner = []
        outer = queue.consume_once('d', lambda: inner.append(queue.consume_once('d', self.never)))
        self.assertEqual((outer.verdict, inner[0].verdict), (Verdict.ACK, Verdict.RETRY_LATER))
        self.assertEqual(queue.consume_once('f', self.handle, payload='1').verdict, Verdict.ACK)
        other = queue.consume_once('f', self.never, payload='2')
        self.assertEqual((other.verdict, other.answer),
                         (Verdict.DEAD_LETTER, OnceAnswer.MISMATCH))

    def test_poison(self):
        queue = self.space('message', attempts_max=3)

        def gone():
            raise ConnectionError('gone')

        for attempt in (1, 2):
            with self.assertRaises(ConnectionError):
                queue.consume_once('m', gone)
        last = queue.consume_once('m', lambda: False)
        self.assertEqual((last.verdict, last.attempts), (Verdict.DEAD_LETTER, 3))
        self.assertEqual(queue.consume_once('m', self.never).verdict, Verdict.DEAD_LETTER)
        for _ in range(3):  # owners that go silent count as well
            self.assertTrue(queue.claim('s').granted)
            self.engine.advance(60_000)
        self.assertEqual(queue.consume_once('s', self.never).verdict, Verdict.DEAD_LETTER)

    def test_without_an_id(self):
        queue = self.space('message')
        with self.assertRaises(semel.InvalidKey):
            queue.consume_once('', self.never)
        unguarded = queue.consume_once('', self.handle, without_key=True)
        self.assertEqual((unguarded.verdict, unguarded.unguarded), (Verdict.ACK, True))
        with self.assertRaises(SemelError):
            queue.consume_once('k', self.never, wait_ms=1)


class LockTest(Case):
    def test_tokens_grow_and_leases_end(self):
        locks = self.space('lock')
        first = locks.lock('l', owner='first', keep_lease=False)  # the clock is set by hand
        second = locks.lock('l', keep_lease=False)
        self.assertIsNone(first.token)
        with self.assertRaises(semel.LeaseLost), first:
            token = first.token
            self.assertGreater(token, 0)
            self.assertFalse(second.take())
            with self.assertRaises(semel.NotTaken):
                with second:
                    self.never()
            self.engine.advance(29_999)
            self.assertEqual(first.token, token)
            self.assertTrue(first.renew())
            self.engine.advance(29_999)
            self.assertFalse(second.take())
            self.engine.advance(1)
            self.assertIsNone(first.token)
            self.assertTrue(second.take())
            self.assertGreater(second.token, token)
            self.assertFalse(first.renew())
        self.assertIsNotNone(second.token)  # who lost it has not given it back
        self.assertTrue(second.give())
        self.assertFalse(second.give())

    def test_it_goes_back_with_its_owner(self):
        locks = self.space('lock')
        held = locks.lock('l')
        self.assertTrue(held.take())
        self.assertTrue(held.take())
        del held
        self.assertTrue(locks.lock('l').take())


class TokensTest(Case):
    def test_unknown_issued_spent_and_given_back(self):
        tokens = semel.Tokens(self.engine)
        self.assertEqual(tokens.spend('made up', self.never).answer, OnceAnswer.UNKNOWN)
        self.assertIs(tokens.state('made up'), semel.TokenState.UNKNOWN)
        token = tokens.issue()
        self.assertIs(tokens.state(token), semel.TokenState.ISSUED)
        self.assertNotEqual(token, tokens.issue())

        def fail():
            self.assertIs(tokens.state(token), semel.TokenState.IN_USE)
            raise semel.Failed('not now')

        self.assertEqual(tokens.spend(token, fail).answer, OnceAnswer.FAILED)
        self.assertIs(tokens.state(token), semel.TokenState.ISSUED)
        self.engine.advance(5_999)
        self.assertEqual(tokens.spend(token, self.pay).answer, OnceAnswer.RAN)
        self.assertIs(tokens.state(token), semel.TokenState.SPENT)
        self.assertEqual(tokens.spend(token, self.never).value, b'paid')
        late = tokens.issue('mine')
        self.engine.advance(6_000)
        self.assertEqual(tokens.spend(late, self.never).answer, OnceAnswer.UNKNOWN)


class ClaimsTest(Case):
    def test_owner_calls(self):
        calls = self.space()
        claim = calls.claim('k', owner='me')
        self.assertEqual((claim.answer, claim.takeover), (Answer.GRANTED, False))
        self.assertEqual(calls.claim('k').owner, b'me')
        self.assertTrue(calls.renew('k', claim.epoch).ok)
        self.assertEqual(calls.complete('k', claim.epoch - 1, 'x').answer, OwnerAnswer.STALE)
        self.assertTrue(calls.complete('k', claim.epoch, 'r').ok)
        self.assertEqual(calls.complete('k', claim.epoch, 's').answer, OwnerAnswer.CONFLICT)
        view = calls.get('k')
        self.assertEqual((view.state, view.result), (State.DONE, b'r'))
        self.assertTrue(calls.forget('k'))
        self.assertFalse(calls.forget('k'))
        claim = calls.claim('k')
        self.assertTrue(calls.release('k', claim.epoch).ok)
        claim = calls.claim('k')
        self.assertTrue(calls.fail('k', claim.epoch, 'why', keep=True).ok)
        self.assertEqual(calls.claim('k').result, b'why')
        with self.assertRaises(SemelError):
            calls.claim('')
        with self.assertRaises(TypeError):
            self.engine.claims('x', 'call', no_such=1)
        with self.assertRaises(SemelError):
            self.engine.claims('x', 'no such')
        with self.assertRaises(SemelError):
            self.engine.claims('never')

    def test_namespaces_are_changed_dropped_and_listed(self):
        jobs = self.engine.claims('jobs', 'call')
        with self.assertRaises(SemelError) as refused:
            self.engine.claims('jobs', 'call', lease_ms=5)
        self.assertEqual(refused.exception.code, Code.NAMESPACE_DIFFERS)
        self.assertEqual(self.engine.change_claims('jobs', 'call', lease_ms=5), 'lease 60000 -> 5')
        self.assertEqual(self.engine.change_claims('jobs', 'call', lease_ms=5), '')
        jobs.claim('k')
        with self.assertRaises(SemelError) as refused:
            self.engine.drop_claims('jobs', 'finished')
        self.assertEqual(refused.exception.code, Code.NAMESPACE_IN_USE)
        self.assertEqual(self.engine.drop_claims('jobs', 'all'), 1)
        with self.assertRaises(SemelError) as refused:
            jobs.claim('k')
        self.assertEqual(refused.exception.code, Code.NAMESPACE_DROPPED)
        for i in range(2_500):
            self.engine.claims(f'n{i}', 'call')
        names = [name for name in self.engine.namespaces() if name.startswith('n')]
        self.assertEqual(names, [f'n{i}' for i in range(2_500)])

    def test_a_doubt_is_resolved(self):
        payments = self.space('payment')
        payments.claim('k')
        self.engine.advance(60_000)
        self.assertEqual(payments.claim('k').answer, Answer.IN_DOUBT)
        self.assertTrue(payments.resolve('k', '7'))
        self.assertEqual(payments.claim('k').result, b'7')

    def test_batches(self):
        calls = self.space()
        outcomes = calls.claim_batch(['a', 'b', 'a'])
        self.assertEqual([one.folded_onto for one in outcomes], [None, None, 0])
        done = calls.complete_batch([('a', outcomes[0].epoch, 'x'), ('b', 1 << 40, 'y')])
        self.assertTrue(done[0].ok)
        self.assertFalse(done[1].ok)
        self.assertEqual(calls.claim_batch([]), [])

    def test_who_waits_does_not_hold_up_other_threads(self):
        # The main thread works while the other waits in the library: if that held the
        # interpreter's lock, nothing below would go on, and the wait would never end.
        calls = self.space()
        claim = calls.claim('k')
        outcomes = []
        waiter = threading.Thread(
            target=lambda: outcomes.append(calls.claim('k', wait_ms=3_600_000)))
        waiter.start()
        while self.engine.stats()['waiters'] == 0:
            self.assertTrue(waiter.is_alive())
        self.assertEqual(outcomes, [])
        calls.complete('k', claim.epoch, 'done')
        waiter.join(LIMIT_S)
        self.assertEqual((outcomes[0].answer, outcomes[0].result), (Answer.REPLAY, b'done'))

    def test_a_wait_ends_at_its_deadline(self):
        calls = self.space()
        calls.claim('k')
        outcomes = []
        waiter = threading.Thread(target=lambda: outcomes.append(calls.claim('k', wait_ms=1_000)))
        waiter.start()
        while self.engine.stats()['waiters'] == 0:
            self.assertTrue(waiter.is_alive())
        self.engine.advance(1_000)
        waiter.join(LIMIT_S)
        self.assertEqual((outcomes[0].answer, outcomes[0].error.code),
                         (Answer.IN_FLIGHT, Code.TIMED_OUT))


if __name__ == '__main__':
    unittest.main()
