"""Signed requests: which are accepted, which never, and each once."""

import asyncio
import threading
import unittest

import semel
from semel import Code, Engine, Replayed, ReplayGuard, aio


class Case(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)


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


if __name__ == '__main__':
    unittest.main()
