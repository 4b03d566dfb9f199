"""The runner itself: what it takes for a failure. python3 tests/clients/run_test.py"""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import group_target  # noqa: E402
import native  # noqa: E402
import run  # noqa: E402
import suites  # noqa: E402


class Server:
    """A target that is not there."""
    host = '127.0.0.1'
    port = 1

    def __init__(self, alive=True):
        self.alive = alive

    def ask(self, *_):
        return b'OK'

    def knows(self, *_):
        return False

    def variables(self):
        return {'SEMEL_TEST_MORE': 'more'}

    def answer(self, words):
        return f'done {" ".join(words)} 7'

    def is_alive(self):
        return self.alive

    def log_tail(self):
        return 'last words'


class Printing(suites.Suite):
    def __init__(self, code, error=None):
        super().__init__('printing', '.')
        self.code = code
        self.error = error

    def prepare(self, folder):
        if self.error:
            raise self.error
        return [sys.executable, '-c', self.code]


def verdict(code, error=None, alive=True):
    with tempfile.TemporaryDirectory() as build:
        return run.run_suite(Printing(code, error), Server(alive), Path(build))


class GroupTargetTest(unittest.TestCase):
    def answer(self, *words, **doors):
        server = group_target.GroupTarget('semel', (), 1)
        self.addCleanup(server.dead.close)
        for name, work in doors.items():
            setattr(server, name, work)
        return server.answer(words)

    def test_what_was_found_is_the_answer(self):
        self.assertEqual(self.answer('leader', leader=lambda: 7001), 'done 7001')
        self.assertEqual(self.answer('restart', restart=lambda: None), 'done')
        self.assertEqual(self.answer('count', 'k:', count=lambda prefix: f'{prefix}0'), 'done k:0')

    def test_what_cannot_be_done_is_one_line_that_says_why(self):
        def broken():
            raise OSError('two\nlines')
        self.assertEqual(self.answer('leader', leader=broken), 'failed OSError two lines')
        for words in ((), ('nothing',), ('count',), ('leader', 'more')):
            self.assertTrue(self.answer(*words).startswith('failed '), words)


class RunnerTest(unittest.TestCase):
    def test_checks_and_skips_are_counted(self):
        word, text, lines = verdict('print("ok a\\nok b\\nskipped c: waits\\nend")')
        self.assertEqual((word, text, lines), ('ok', '2 checks, 1 skipped', ['skipped c: waits']))

    def test_what_a_suite_needs_is_answered_and_its_figures_are_kept(self):
        _, text, lines = verdict(r'import os; print("need door wide", flush=True); print("ok", '
                                 'input(), os.environ["SEMEL_TEST_MORE"]); print("failed x: y"); '
                                 r'print("figure kill 3\nfigure kill 9\nfigure kill 5\nend")')
        self.assertEqual(lines, ['failed x: y', 'kill: median 5, longest 9, of 3'])
        self.assertTrue(text.startswith('1 checks, 1 failed'), text)

    def test_a_suite_that_does_not_end_is_stopped(self):
        before = run.SUITE_SECONDS
        run.SUITE_SECONDS = 0.5
        self.addCleanup(setattr, run, 'SUITE_SECONDS', before)
        word, text, lines = verdict('print("ok a", flush=True); input()')
        self.assertEqual((word, text), ('failed', 'not ended after 0.5 s'))
        self.assertEqual(lines, ['ok a'])

    def test_a_failed_check_fails_the_suite_and_is_shown(self):
        word, _, lines = verdict('print("ok a\\nfailed b: why\\nend")')
        self.assertEqual((word, lines), ('failed', ['failed b: why']))

    def test_a_suite_that_does_not_come_to_its_end_has_failed(self):
        word, _, lines = verdict('print("ok a"); raise SystemError("broke")')
        self.assertEqual(word, 'failed')
        self.assertIn('SystemError: broke', lines[-1])
        self.assertEqual(verdict('print("ok a\\nend"); raise SystemExit(3)')[0], 'failed')

    def test_a_suite_without_checks_has_failed(self):
        self.assertEqual(verdict('print("skipped a: b\\nend")')[0], 'failed')

    def test_a_server_that_ended_fails_the_suite(self):
        word, _, lines = verdict('print("ok a\\nend")', alive=False)
        self.assertEqual((word, lines), ('failed', ['last words']))

    def test_what_cannot_be_had_is_skipped_and_what_is_broken_fails(self):
        self.assertEqual(verdict('', suites.Missing('no npm'))[:2], ('skipped', 'no npm'))
        self.assertEqual(verdict('', suites.Broken('x.c:1: error'))[2], ['x.c:1: error'])

    def test_a_registry_out_of_reach_is_reported_from_a_build_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            def program(text):
                return [sys.executable, '-c', f'import sys; sys.exit({text!r})']
            with self.assertRaises(suites.Missing):
                suites.run(program('npm ERR! code ENOTFOUND'), folder)
            with self.assertRaises(suites.Broken):
                suites.run(program('main.go:3: undefined: x'), folder)

    def test_a_suite_about_claims_is_skipped_against_a_redis_server(self):
        named = {each.name for each in suites.ALL if each.needs_semel}
        self.assertEqual(named, {'semel-go', 'semel-go-newest', 'semel-node', 'semel-node-stories',
                                 'semel-node-drivers'})


class NativeTest(unittest.TestCase):
    def test_go_tests_are_checks_and_what_they_said_is_why(self):
        said = ['=== RUN   TestA', '--- PASS: TestA (0.00s)', '=== RUN   TestB', 'a log',
                '    b_test.go:3: 1 instead of 2', '--- FAIL: TestB (0.10s)',
                '--- SKIP: TestC (0.00s)', '    c_test.go:9: no program', 'FAIL']
        self.assertEqual(list(native.go(said)), [
            'ok TestA', 'failed TestB: a log | b_test.go:3: 1 instead of 2',
            'skipped TestC: c_test.go:9: no program', 'end'])

    def test_go_tests_that_panic_do_not_come_to_their_end(self):
        said = ['--- FAIL: TestA (0.00s)', 'panic: ouch', 'goroutine 7 [running]:']
        self.assertEqual(list(native.go(said)), ['failed TestA: '])

    def test_tap_is_checks_and_why_stands_behind(self):
        said = ['TAP version 13', '# Subtest: a', 'ok 1 - a', '  ---', '  ...',
                'not ok 2 - b, c', '  ---', "  error: 'it ran'", 'ok 3 - d # SKIP no program',
                '1..3', '# duration_ms 7']
        self.assertEqual(list(native.tap(said)), [
            'ok a', "failed b, c: --- | error: 'it ran'", 'skipped d: no program', 'end'])


class OutOfReachTest(unittest.TestCase):
    """What a package manager prints decides whether a suite is skipped or has failed."""

    def failing(self, text):
        with tempfile.TemporaryDirectory() as folder:
            suites.run([sys.executable, '-c', f'import sys; sys.exit({text!r})'], folder)

    def test_no_network_is_missing(self):
        for text in ('ERROR: Could not find a version that satisfies x==1 (from versions: none)',
                     'dial tcp 127.0.0.1:9: connect: connection refused',
                     'npm error code ECONNREFUSED'):
            with self.assertRaises(suites.Missing, msg=text):
                self.failing(text)

    def test_a_wrong_version_is_broken(self):
        for text in ('No matching distribution found for x==9 (from versions: 1.0, 1.1)',
                     'main.go:3: undefined: x'):
            with self.assertRaises(suites.Broken, msg=text):
                self.failing(text)


if __name__ == '__main__':
    unittest.main()
