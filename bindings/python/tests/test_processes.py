"""Forks, pools, other interpreters and the end of this one, with an engine that is open."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import semel
from semel import Debounce, Engine, ReplayGuard, aio

LIMIT_S = 60


def in_child(function):
    """What `function` returns in a child of fork(), as text; the child ends without clean-up."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = repr(function())
        except BaseException as error:
            said = f'raised {type(error).__name__}'
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def of_pool(number):
    claims = ENGINE().claims('calls', 'call')
    first = claims.once('k', lambda: b'%d' % os.getpid())
    return first.value == b'%d' % os.getpid(), number


ENGINE = semel.PerProcess(lambda: Engine(memory_bytes=16 << 20))


def run(script, *arguments):
    return subprocess.run([sys.executable, '-c', script, *arguments], capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)


class ForkTest(unittest.TestCase):
    def setUp(self):
        self.engine = Engine(memory_bytes=16 << 20)
        self.addCleanup(self.engine.close)
        self.calls = self.engine.claims('calls', 'call')

    def test_a_child_changes_nothing_of_the_parent_s(self):
        claim = self.calls.claim('mine')
        keeper = self.calls.keep('mine', claim.epoch)
        held = self.calls.hold('held')
        guard = ReplayGuard(self.engine, secrets=['s'])
        clicks = Debounce(self.engine.claims('clicks', 'debounce'))
        steps = self.calls.steps('mine', claim.epoch)
        how = dict(caller='c', timestamp_unix_ms=0, nonce='n', signature='')
        import asyncio
        for call in (lambda: self.calls.claim('x'), lambda: self.calls.hold('x'),
                     lambda: self.calls.keep('x', 1), lambda: keeper.lost,
                     lambda: steps.recall('s'), lambda: steps.remember('s', b''),
                     lambda: steps.complete(), lambda: held.work.steps.recall('s'),
                     lambda: clicks.run('x', self.fail), lambda: guard.check(**how),
                     lambda: self.calls.explain('x'),
                     held.__enter__, keeper.__enter__,  # once-again-12: the parent's blocks
                     lambda: asyncio.run(aio.once(self.calls, 'x', self.fail)),
                     lambda: asyncio.run(aio.debounce(clicks, 'x', self.fail)),
                     lambda: asyncio.run(aio.check(guard, **how))):
            self.assertEqual(in_child(call), 'raised Forked')

        def leave():
            keeper.close()
            held.__exit__(None, None, None)
            self.engine.close()
            return 'left'

        self.assertEqual(in_child(leave), "'left'")
        self.assertIs(self.calls.get('held').state, semel.State.HELD)
        self.assertFalse(keeper.lost)
        keeper.close()
        self.assertTrue(self.calls.complete('mine', claim.epoch, b'x').ok)
        with held as work:
            work.result = b'y'
        self.assertEqual(self.calls.get('held').result, b'y')

    def test_forks_while_threads_use_it(self):
        stop = threading.Event()

        def busy(name):
            number = 0
            while not stop.is_set():
                self.calls.once(f'{name}-{number}', lambda: b'')
                number = (number + 1) % 1000

        threads = [threading.Thread(target=busy, args=(i,)) for i in range(3)]
        for one in threads:
            one.start()
        try:
            for _ in range(30):
                self.assertEqual(in_child(lambda: self.calls.claim('x')), 'raised Forked')
        finally:
            stop.set()
            for one in threads:
                one.join(LIMIT_S)

    def test_an_engine_for_each_process(self):
        engine = semel.PerProcess(lambda: Engine(memory_bytes=16 << 20))
        self.addCleanup(engine.close)
        self.assertIs(engine(), engine())
        self.assertTrue(engine().claims('c', 'call').claim('k').granted)
        self.assertEqual(in_child(lambda: engine().claims('c', 'call').claim('k').granted), 'True')
        with engine._mutex:  # a thread of the parent's opens it in this moment
            self.assertEqual(in_child(lambda: engine().stats()['records'] >= 0), 'True')
        first = engine()
        engine.close()
        self.assertIsNot(first, engine())

    def test_pools(self):
        for way in ('fork', 'spawn'):
            with multiprocessing.get_context(way).Pool(2) as pool:
                answers = pool.map_async(of_pool, range(20)).get(LIMIT_S)
            self.assertEqual(answers, [(True, i) for i in range(20)], way)

    def test_no_copies(self):
        for copies, one in ((pickle.dumps, self.engine), (copy.copy, self.engine),
                            (pickle.dumps, self.calls), (copy.deepcopy, self.calls)):
            with self.assertRaisesRegex(TypeError, 'each process opens its own'):
                copies(one)

    def test_a_storage_is_one_process_s(self):
        with tempfile.TemporaryDirectory() as folder:
            with Engine(folder) as engine:
                engine.claims('c', 'call').once('k', lambda: b'v')
                self.assertEqual(in_child(lambda: Engine(folder)), 'raised StorageError')
            self.assertEqual(
                in_child(lambda: Engine(folder).claims('c', 'call').once('k', lambda: b'n').value),
                "b'v'")


class EndTest(unittest.TestCase):
    def test_the_interpreter_ends_with_an_open_engine(self):
        script = '''
import sys, threading, semel
engine = semel.Engine(sys.argv[1] or None)
calls = engine.claims('calls', 'call')
calls.claim('k')
work = calls.hold('held')
keeper = calls.keep('k', calls.get('k').epoch)
lock = engine.claims('locks', 'lock').lock('l'); lock.take()
if sys.argv[2] == 'waits':
    threading.Thread(target=lambda: calls.claim('k', wait=3600), daemon=True).start()
if sys.argv[2] == 'cycle':
    engine.mine = [engine, calls, work, keeper, lock]
print('end')
'''
        for storage in (False, True):
            for how in ('', 'waits', 'cycle'):
                with tempfile.TemporaryDirectory() as folder:
                    done = run(script, folder if storage else '', how)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, 'end\n', ''),
                                 (storage, how))

    def test_another_interpreter(self):
        script = '''
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
import semel
with semel.Engine() as engine:
    engine.claims('c', 'call').claim('k')
    other = interpreters.create()
    result = interpreters.run_string(other, """
import sys
try:
    import semel
except ImportError as error:
    print('refused')
else:
    with semel.Engine() as engine:
        calls = engine.claims('c', 'call')
        assert calls.once('k', lambda work: b'v').value == b'v'
        assert calls.once('k', lambda: 1 / 0).value == b'v'
    print('right')
sys.stdout.flush()
""")
    interpreters.destroy(other)
    assert not engine.claims('c').claim('k').granted
'''
        done = run('try:\n import _xxsubinterpreters\nexcept ImportError:\n import _interpreters')
        if done.returncode != 0:
            self.skipTest('this Python has no subinterpreters to be tried')
        done = run(script)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn(done.stdout, ('right\n', 'refused\n'))


if __name__ == '__main__':
    unittest.main()
