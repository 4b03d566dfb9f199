"""The face of the package: every name is there for coroutines too, nothing hides behind **, and
what is raised has one base, survives a pickle, and says why."""

import inspect
import pickle
import subprocess
import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

import semel
from semel import Code, Engine, aio
from semel._numbers import TTL_MAX_MS, milliseconds

PACKAGE = Path(semel.__file__).resolve().parent


def public_functions():
    for owner in (semel, aio, *(one for one in vars(semel).values() if inspect.isclass(one)),
                  aio.lock, aio.hold):
        for name, one in vars(owner).items():
            if inspect.isfunction(one) and (not name.startswith('_') or name == '__init__'):
                if one.__module__.startswith('semel'):
                    yield f'{getattr(owner, "__name__", owner)}.{name}', one


class SurfaceTest(unittest.TestCase):
    def test_no_keyword_is_hidden(self):
        count = 0
        for name, function in public_functions():
            kinds = [one.kind for one in inspect.signature(function).parameters.values()]
            count += 1
            self.assertNotIn(inspect.Parameter.VAR_KEYWORD, kinds, name)
        self.assertGreater(count, 80)

    def test_all_is_there(self):
        self.assertEqual([], [name for name in semel.__all__ if not hasattr(semel, name)])
        self.assertEqual([], [name for name in aio.__all__ if not hasattr(aio, name)])

    def test_a_coroutine_takes_what_its_twin_takes(self):
        claims = semel.Claims
        pairs = ((aio.claim, claims.claim, set()), (aio.once, claims.once, {'thread'}),
                 (aio.consume_once, claims.consume_once, {'thread'}),
                 (aio.hold.__init__, claims.hold, set()), (aio.lock.__init__, claims.lock, set()),
                 (aio.idempotent, semel.idempotent, set()),
                 (aio.check, semel.ReplayGuard.check, set()))
        for there, here, more in pairs:
            ours = set(inspect.signature(there).parameters) - {'self', 'claims', 'guard'}
            theirs = set(inspect.signature(here).parameters) - {'self', 'claims'}
            self.assertEqual(ours, theirs | more, here)

    def test_mypy_strict(self):
        try:
            from mypy import api
        except ImportError:
            self.skipTest('mypy is not installed')
        said, errors, code = api.run(['--strict', '--no-incremental', '--cache-dir=/dev/null',
                                      str(PACKAGE)])
        self.assertEqual((code, errors), (0, ''), said)

    def test_it_is_typed(self):
        self.assertTrue((PACKAGE / 'py.typed').exists())
        for name, function in public_functions():
            for parameter in list(inspect.signature(function).parameters.values()):
                if parameter.name != 'self':
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty,
                                     f'{name}({parameter.name})')


class DurationTest(unittest.TestCase):
    def test_what_is_a_duration(self):
        for value, ms in ((0, 0), (1, 1000), (0.5, 500), (0.0011, 2), (timedelta(0), 0),
                          (timedelta(microseconds=1001), 2), (timedelta(milliseconds=3), 3),
                          (0.1, 100), (2.3, 2300), (1e300, TTL_MAX_MS), (10**400, TTL_MAX_MS),
                          (float('inf'), TTL_MAX_MS), (timedelta.max, TTL_MAX_MS),
                          (TTL_MAX_MS / 1000, TTL_MAX_MS)):
            self.assertEqual(milliseconds('wait', value), ms, value)

    def test_what_is_not(self):
        for value in (-1, -0.001, float('nan'), float('-inf'), timedelta(microseconds=-1),
                      1e-10, 0.0009, timedelta(microseconds=1)):
            with self.assertRaisesRegex(semel.OutOfRange, 'wait'):
                milliseconds('wait', value)
        for value in (True, '5', b'5', None, [1]):
            with self.assertRaisesRegex(TypeError, 'wait'):
                milliseconds('wait', value)

    def test_both_ways_to_say_it_are_refused(self):
        with Engine(manual_clock=True) as engine:
            calls = engine.claims('calls', 'call', lease=timedelta(seconds=2))
            with self.assertRaisesRegex(TypeError, 'wait or wait_ms'):
                calls.claim('k', wait=1, wait_ms=1)
            with self.assertRaisesRegex(TypeError, 'lease or lease_ms'):
                engine.claims('other', 'call', lease=1, lease_ms=1)
            self.assertEqual(calls.claim('k').remaining_ms, 0)
            engine.advance(1_999)
            self.assertIs(calls.claim('k').answer, semel.Answer.IN_FLIGHT)
            engine.advance(1)
            self.assertTrue(calls.claim('k', lease=0.5).takeover)
            self.assertTrue(engine.set('s', 'v', ttl=0.25).stored)
            self.assertEqual(engine.ttl('s'), 250)

    def test_a_moment_has_a_time_zone(self):
        with Engine(manual_clock=True) as engine:
            calls = engine.claims('calls', 'call', window=60)
            with self.assertRaisesRegex(TypeError, 'time zone'):
                calls.claim('k', first_sent=datetime(2026, 1, 1))
            long_ago = datetime(2001, 1, 1, tzinfo=timezone.utc)
            with self.assertRaises(semel.TooOld):
                calls.claim('k', first_sent=long_ago).require()


class ErrorsTest(unittest.TestCase):
    def test_a_code_has_its_class(self):
        for code, kind in ((Code.MEMORY_FULL, semel.Full), (Code.CLOSING, semel.Closed),
                           (Code.FORKED, semel.Forked), (Code.NOT_OWNER, semel.StaleOwner),
                           (Code.STORAGE_IN_USE, semel.StorageError), (Code.BAD_OPTION,
                                                                      semel.SemelError)):
            raised = semel.SemelError(code, 'why')
            self.assertIs(type(raised), kind)
            self.assertIsInstance(raised, semel.Error)
            again = pickle.loads(pickle.dumps(raised))
            self.assertEqual((type(again), again.code, again.detail, str(again)),
                             (kind, code, 'why', str(raised)))

    def test_every_answer_that_has_no_result_has_its_class(self):
        for answer in semel.OnceAnswer:
            if answer.name in ('UNANSWERED', 'RAN', 'UNGUARDED'):
                continue
            once = semel.Once(answer, None, False, 'why', None, False, False, 1, 1, 30)
            raised = semel.NoResult(once)
            self.assertIsNot(type(raised), semel.NoResult, answer)
            again = pickle.loads(pickle.dumps(raised))
            self.assertEqual((type(again), again.outcome, again.retry_after_ms),
                             (type(raised), once, 30))

    def test_a_storage_in_use_says_so(self):
        script = '''
import semel, sys
try: semel.Engine(sys.argv[1])
except semel.StorageError as error: print(error.code)
'''
        import tempfile
        with tempfile.TemporaryDirectory() as storage, Engine(storage):
            done = subprocess.run([sys.executable, '-c', script, storage], capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual((done.stdout.strip(), done.stderr), (str(int(Code.STORAGE_IN_USE)), ''))


if __name__ == '__main__':
    unittest.main()
