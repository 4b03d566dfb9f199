"""Ctrl-C during every call that waits, engines that are closed meanwhile, children of fork().

Each scene is a process of its own, which says on its standard output what it has seen.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import semel
from semel import Answer, Code, Engine, OnceAnswer, SemelError, State

LIMIT_S = 60
AT_ONCE_S = 0.35  # a slice, and what a busy machine takes

BEFORE = '''
import os, signal, sys, threading, time
# A job in the background of a shell has SIGINT ignored, and all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
import semel
from semel import aio
import asyncio
engine = semel.Engine(memory_bytes=16 << 20)
calls = engine.claims('calls', 'call')
pay = engine.claims('pay', 'payment')
locks = engine.claims('locks', 'fair-lock')
held = calls.claim('k')
owner = locks.lock('l'); owner.take()
def never(): raise SystemExit('it ran')
def interrupt():
    while engine.stats()['waiters'] == 0: time.sleep(0.005)
    time.sleep(0.05)
    said.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
said = []
def interrupted(call):
    before = set(engine._owned)  # locks, and what keeps their leases
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        call()
    except KeyboardInterrupt:
        took = time.monotonic() - said[0]
        assert engine.stats()['waiters'] == 0, 'a place in the line is left'
        assert not engine._owned.keys() - before, 'a handle'
        assert not engine._calls, 'a call'
        print('took', took)
    else:
        sys.exit('not interrupted')
other = locks.lock('l', wait_ms=600_000)
'''


def scene(text, *, limit_s=LIMIT_S):
    # Newer Pythons warn of fork() where there are threads, which is what is tried.
    return subprocess.run([sys.executable, '-B', '-W', 'ignore::DeprecationWarning', '-c',
                           BEFORE + textwrap.dedent(text)], capture_output=True,
                          text=True, timeout=limit_s, check=False)


class InterruptTest(unittest.TestCase):
    def seen(self, text, *, ignored=False):
        """`ignored`: a handler may raise in a __del__, which the interpreter prints."""
        done = scene(text)
        if ignored:
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout

    def assert_at_once(self, text):
        said = self.seen(text)
        took = [float(line.split()[1]) for line in said.splitlines() if line.startswith('took')]
        self.assertEqual(len(took), 1, said)
        self.assertLess(took[0], AT_ONCE_S)

    def test_a_claim(self):
        self.assert_at_once('''
            interrupted(lambda: calls.claim('k', wait_ms=600_000))
            assert calls.release('k', held.epoch).ok
            assert calls.claim('k').granted
            engine.close()
        ''')

    def test_once_and_what_is_built_on_it(self):
        for call in ("calls.once('k', never, wait_ms=600_000)",
                     "semel.guarded(calls, 'k', wait_ms=600_000)(never)()"):
            with self.subTest(call=call):
                self.assert_at_once(f'''
                    interrupted(lambda: {call})
                    assert calls.release('k', held.epoch).ok
                    assert calls.once('k', lambda: b'x').answer is semel.OnceAnswer.RAN
                ''')

    def test_a_lock(self):
        for call in ('other.take()', 'other.__enter__()', 'other.take(500_000)'):
            with self.subTest(call=call):
                self.assert_at_once(f'''
                    interrupted(lambda: {call})
                    owner.give()
                    assert other.take(0)
                ''')

    def test_a_close_that_waits_can_be_repeated(self):
        self.assert_at_once('''
            runs, go = threading.Event(), threading.Event()
            work = threading.Thread(target=lambda: calls.once(
                'busy', lambda: runs.set() or go.wait() and b''))
            work.start()
            runs.wait()  # a claim that is held is not enough: its function may be refused yet
            waiting = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT))
            timer = threading.Timer(0.1, waiting.start); timer.start()
            start = time.monotonic()
            try: engine.close()
            except KeyboardInterrupt: print('took', time.monotonic() - start - 0.1)
            assert engine.stats()['records'] > 0
            go.set()
            engine.close()
            work.join()
        ''')

    def test_asyncio(self):
        self.assert_at_once('''
            interrupted(lambda: asyncio.run(aio.claim(calls, 'k', wait_ms=600_000)))
        ''')

    def test_a_function_that_runs_ends_as_on_exception_says(self):
        self.seen('''
            def ctrl_c():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            for space, then in ((calls, semel.State.VACANT), (pay, semel.State.IN_DOUBT)):
                for key, call in (('c', space.once), ('d', space.consume_once)):
                    try: call(key, ctrl_c)
                    except KeyboardInterrupt: pass
                    else: sys.exit('not interrupted')
                    state = space.get(key).state
                    free = then is semel.State.VACANT and state is semel.State.ABSENT
                    assert state is then or free, state
            engine.close()
        ''')

    def test_any_exception_of_a_signal_handler(self):
        self.seen('''
            class Enough(Exception): pass
            def enough(*_): raise Enough
            signal.signal(signal.SIGALRM, enough)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            try: calls.once('k', never, wait_ms=600_000)
            except Enough: pass
            assert engine.stats()['waiters'] == 0
        ''')

    def test_signals_while_grants_come_lose_none(self):
        self.seen('''
            free = engine.claims('free', 'call')
            stop = threading.Event()
            def storm():
                while not stop.is_set():
                    os.kill(os.getpid(), signal.SIGUSR1)
                    time.sleep(0.0003)
            class Now(Exception): pass
            armed = False
            def now(*_):
                global armed
                if armed:
                    armed = False
                    raise Now
            signal.signal(signal.SIGUSR1, now)
            threading.Thread(target=storm, daemon=True).start()
            hits = i = 0
            while hits <= 20 or i < 1500:  # a busy machine interrupts fewer of them
                i += 1
                got = None
                try:
                    armed = True
                    got = free.claim(f'k{i}', wait_ms=(i % 2) * 1000)
                    armed = False
                except Now:
                    hits += 1
                armed = False
                if got is None:
                    again = free.claim(f'k{i}')
                    lost = globals().setdefault('lost', [])
                    if not again.granted: lost.append(i)
            stop.set()
            assert not engine._calls and engine.stats()['waiters'] == 0
            # between the return of a call and its assignment there is nothing that Semel could do
            assert len(globals().get('lost', [])) <= hits // 20, (hits, lost)
        ''')

    def test_signals_while_the_last_call_is_run_leave_no_run_behind(self):
        self.seen('''
            stop = threading.Event()
            def storm():
                while not stop.is_set():
                    os.kill(os.getpid(), signal.SIGUSR1)
                    time.sleep(0.0003)
            class Now(Exception): pass
            armed = False
            def now(*_):
                global armed
                if armed:
                    armed = False
                    raise Now
            signal.signal(signal.SIGUSR1, now)
            edits = semel.TrailingDebounce(engine.claims('edits', 'lock'), quiet=0.001)
            before = set(engine._owned)
            threading.Thread(target=storm, daemon=True).start()
            hits = i = 0
            left = []
            while hits <= 40 or i < 1500:
                i += 1
                edits.call('k', 'x')
                time.sleep(0.0011)
                try:
                    armed = True
                    edits.run('k', lambda text: None)
                    armed = False
                except Now:
                    hits += 1
                armed = False
                if edits.claims.get('{k}#run').state is semel.State.HELD:
                    left.append(i)
                    edits.claims.forget('{k}#run')
            stop.set()
            assert not engine._calls and not engine._owned.keys() - before
            assert len(left) <= hits // 20, (hits, left)
        ''', ignored=True)

    def test_signals_while_work_runs_leave_no_key_behind(self):
        self.seen('''
            import gc, random
            class Now(Exception): pass
            def now(*_): raise Now
            signal.signal(signal.SIGALRM, now)
            random.seed(7)
            busy = engine.claims('free', 'call')
            def hold(key):
                with busy.hold(key, wait=1) as work: work.result = b'x'
            def once(key): busy.once(key, lambda work: work.steps.run('a', lambda: 1))
            def consume(key): busy.consume_once(key, lambda: None)
            hits = i = 0
            while hits < 300:
                i += 1
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.random() * 0.0004 + 1e-6)
                    (hold, once, consume)[i % 3](f'k{i}')
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except (Now, semel.ResultNotKept):  # it came while the result became bytes
                    hits += 1
                while True:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                        break
                    except Now:
                        pass
            gc.collect()
            held = [j for j in range(1, i + 1)
                    if busy.get(f'k{j}').state is semel.State.HELD]
            assert not held, (len(held), hits, i)
        ''', ignored=True)


class ClosedTest(unittest.TestCase):
    """An engine that is closed while threads wait in it."""

    def ends(self, ask):
        engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        calls, locks = engine.claims('c', 'call'), engine.claims('l', 'lock')
        calls.claim('k')
        owner = locks.lock('l')
        owner.take()
        outcomes = []

        def wait():
            try:
                outcomes.append(ask(calls, locks))
            except SemelError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        while engine.stats()['waiters'] < 2:
            self.assertTrue(all(thread.is_alive() for thread in threads))
        engine.close()
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(outcomes, [Code.CLOSING] * 2)

    def test_waits_end(self):
        self.ends(lambda calls, locks: calls.claim('k', wait_ms=600_000))
        self.ends(lambda calls, locks: calls.once('k', lambda: b'', wait_ms=600_000))
        self.ends(lambda calls, locks: locks.lock('l', wait_ms=600_000).take())

    def test_a_function_that_runs_is_waited_for_and_kept(self):
        engine = Engine(manual_clock=True)
        calls = engine.claims('c', 'call')
        inside, go, outcomes = threading.Event(), threading.Event(), []

        def slow():
            inside.set()
            go.wait(LIMIT_S)
            return b'done'

        thread = threading.Thread(target=lambda: outcomes.append(calls.once('k', slow)))
        thread.start()
        inside.wait(LIMIT_S)
        closer = threading.Thread(target=engine.close)
        closer.start()
        while engine._handle is not None:
            pass
        go.set()
        closer.join(LIMIT_S)
        thread.join(LIMIT_S)
        self.assertEqual((outcomes[0].answer, outcomes[0].value), (OnceAnswer.RAN, b'done'))

    def test_what_is_let_go_leaves_the_line(self):
        engine = Engine(manual_clock=True)
        self.addCleanup(engine.close)
        calls = engine.claims('c', 'call')
        first = calls.claim('k')
        from semel._claims import _request
        wait = calls._begin(_request('k', wait_ms=600_000))
        self.assertFalse(wait.look())
        calls.release('k', first.epoch)
        self.assertTrue(wait.look())
        self.assertIs(calls.get('k').state, State.HELD)
        del wait
        self.assertEqual(calls.claim('k').answer, Answer.GRANTED)
        self.assertEqual(engine._owned, {})


class HalfMadeTest(unittest.TestCase):
    """A signal's handler may raise between any two lines that make a wait or a lock."""

    def make(self, call, line):
        """Raises at the n-th line of constructors below `call`; False: it has fewer."""
        class Now(Exception):
            pass
        lines = [0]
        package = os.path.dirname(semel.__file__)

        def trace(frame, event, _):
            code = frame.f_code
            if (event, code.co_name) == ('line', '__init__') and package in code.co_filename:
                lines[0] += 1
                if lines[0] == line:
                    sys.settrace(None)
                    raise Now
            return trace

        sys.settrace(trace)
        try:
            call()
        except Now:
            return True
        finally:
            sys.settrace(None)
        return False

    def test_nothing_is_said_and_nothing_is_left(self):
        said = []
        hook, sys.unraisablehook = sys.unraisablehook, said.append
        self.addCleanup(setattr, sys, 'unraisablehook', hook)
        engine = Engine(manual_clock=True, memory_bytes=16 << 20)
        self.addCleanup(engine.close)
        calls, locks = engine.claims('c', 'call'), engine.claims('l', 'lock')
        owner = locks.lock('k')
        owner.take()
        calls.claim('k')
        before = list(engine._owned)  # the lock, and what keeps its lease
        wait = semel._claims._request('k', wait_ms=600_000)
        for call in (lambda: locks.lock('k'), lambda: calls.once('k', self.fail, wait_ms=0),
                     lambda: calls._begin(wait)):
            line = 1
            while self.make(call, line):
                line += 1
                self.assertEqual(said, [])
                self.assertEqual(engine.stats()['waiters'], 0)
                self.assertEqual(list(engine._owned), before)
            self.assertGreater(line, 5)


class ForkTest(unittest.TestCase):
    CHILD = '''
        def forked(call, *arguments, **named):
            try: call(*arguments, **named)
            except semel.SemelError as error: assert error.code == semel.Code.FORKED, error.code
            else: assert False, call
        inner = locks.lock('in'); inner.take()
        def child():
            signal.alarm(20)
            claim = calls.claim
            for call, arguments in ((engine.get, 'k'), (engine.set, 'k'*2), (engine.stats, ''),
                    (engine.claims, 'n'), (engine.advance, ''), (calls.get, 'k'),
                    (locks.lock, 'k'), (calls.claim, 'x'), (inner.take, ''), (inner.give, '')):
                forked(call, *arguments)
            forked(calls.claim, 'k', wait_ms=600_000)
            forked(calls.once, 'k', never, wait_ms=600_000)
            forked(calls.once, '', never, without_key=True)
            forked(calls.consume_once, 'm', never)
            forked(owner.take, 600_000)
            forked(lambda: list(engine.namespaces()))
            forked(lambda: asyncio.run(aio.claim(calls, 'k', wait_ms=600_000)))
            assert inner.token is None
            with semel.Engine(memory_bytes=16 << 20) as mine:
                assert mine.claims('c', 'call').once('k', lambda: b'').answer.name == 'RAN'
        def after():
            assert calls.get('k').epoch == held.epoch and owner.token and inner.token
            assert calls.complete('k', held.epoch, b'parent').ok
    '''

    def run_scene(self, text):
        done = scene(textwrap.dedent(self.CHILD) + textwrap.dedent(text))
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)

    def test_a_child_that_exits_at_once_by_the_interpreter_or_closes(self):
        for end in ('os._exit(0)', 'sys.exit(0)', 'engine.close(); inner.close(); os._exit(0)',
                    'del globals()["engine"]; sys.exit(0)'):
            with self.subTest(end=end):
                self.run_scene(f'''
                    waiting = threading.Thread(
                        target=lambda: calls.claim('k', wait_ms=600_000), daemon=True)
                    waiting.start()
                    while engine.stats()['waiters'] == 0: time.sleep(0.005)
                    pid = os.fork()
                    if pid == 0:
                        try: child()
                        except BaseException as error: print(repr(error)); os._exit(9)
                        {end}
                    assert os.waitpid(pid, 0)[1] == 0
                    after()
                    waiting.join(20)
                    assert not waiting.is_alive()
                    engine.close()
                ''')

    def test_with_blocks_end_quietly(self):
        self.run_scene('''
            with semel.Engine(memory_bytes=16 << 20) as there:
                with there.claims('l', 'lock').lock('k') as lock:
                    pid = os.fork()
                    if pid == 0: sys.exit(0)
                    assert os.waitpid(pid, 0)[1] == 0
                    assert lock.token
            after()
        ''')

    def test_multiprocessing(self):
        self.run_scene('''
            import multiprocessing
            process = multiprocessing.get_context('fork').Process(target=child)
            process.start()
            process.join(30)
            assert process.exitcode == 0, process.exitcode
            after()
        ''')


if __name__ == '__main__':
    unittest.main()
